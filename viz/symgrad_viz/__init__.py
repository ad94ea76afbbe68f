"""Pictures of symgrad's graphs and programs: SVG, PNG and DOT.

>>> import symgrad_viz
>>> symgrad_viz.save(program, "step.svg")
PosixPath('step.svg')
"""

from symgrad_viz.picture import Picture, draw, render, save, to_dot

__all__ = ["Picture", "draw", "render", "save", "to_dot"]

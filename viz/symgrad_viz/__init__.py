"""Pictures of symgrad's graphs and programs: SVG, PNG, DOT, stories; and the explorer, a page.

>>> import symgrad_viz
>>> symgrad_viz.save(program, "step.svg")
PosixPath('step.svg')
"""

from symgrad_viz.explorer import explore
from symgrad_viz.explorer_compare import compare
from symgrad_viz.picture import Picture, draw, render, save, to_dot
from symgrad_viz.story import story

__all__ = ["Picture", "compare", "draw", "explore", "render", "save", "story", "to_dot"]

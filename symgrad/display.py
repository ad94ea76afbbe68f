"""The one door up: what draws a graph, or hands it to networkx, is reached when it is asked for."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any


def render(thing: Any, path: str | Path, **options: Any) -> Path:
    """Draw a graph or program into a file; its suffix (.svg, .png, .dot) says how."""
    written = import_module("symgrad_viz").save(thing, path, **options)
    assert isinstance(written, Path)
    return written


MOST_NODES_INLINE = 1000


def svg_or_none(thing: Any) -> str | None:
    """An SVG for a notebook, or None, which makes it fall back to text. Never raises.

    A graph of more than a thousand nodes is not drawn unasked.
    """
    try:
        if len(getattr(thing, "graph", thing).nodes) > MOST_NODES_INLINE:
            return None
        drawn = import_module("symgrad_viz").render(thing, timeout=5.0)
        return drawn if isinstance(drawn, str) else None
    except Exception:
        return None


def to_networkx(graph: Any) -> Any:
    """The graph as networkx has it."""
    return import_module("symgrad.analysis").to_networkx(graph)

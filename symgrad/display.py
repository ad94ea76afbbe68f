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


def svg_or_none(thing: Any) -> str | None:
    """An SVG for a notebook, or None (which makes it fall back to text). Never raises."""
    try:
        drawn = import_module("symgrad_viz").render(thing)
        return drawn if isinstance(drawn, str) else None
    except Exception:
        return None


def to_networkx(graph: Any) -> Any:
    """The graph as networkx has it."""
    return import_module("symgrad.analysis").to_networkx(graph)

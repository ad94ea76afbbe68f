"""The modules that scopes are of: their classes, sizes and parameters, as the variables tell."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

from symgrad.ir.dims import product
from symgrad.ir.leaf_ops import VARIABLE
from symgrad.ir.node import Node
from symgrad.ir.walk import GraphLike
from symgrad_viz.words import counted, name_text

Path: TypeAlias = tuple[str, ...]


def layers_of(graph: GraphLike) -> dict[Path, str]:
    """The label of each scope of a module: `Conv2d 6→16, 5×5 · 2,416 parameters`.

    The names of variables begin with the paths of their modules. The class is what a line called
    that made all variables of a module, and not all of the module around it.
    """
    variables = {str(n.name): n for n in graph.nodes if n.op is VARIABLE}
    # What an optimiser keeps for a parameter has a name that begins with the parameter's.
    own = {name: v for name, v in variables.items() if not _above(name, variables)}
    paths = dict.fromkeys(n.origin.scope[:i] for n in graph.nodes for i in range(1, 7))
    inside: dict[Path, list[Node]] = defaultdict(list)
    for path in paths:
        prefix = "".join(f"{name}." for name in path[1:])
        inside[path] = [v for name, v in own.items() if prefix and name.startswith(prefix)]
    found = {}
    for path, of in inside.items():
        if of:
            made = _class(of) if _class(of) != _class(inside.get(path[:-1], ())) else ""
            numbers = sum(product(v.shape) for v in of)
            count = counted(numbers, "parameter") if isinstance(numbers, int) else ""
            said = " ".join(filter(None, (made, _sizes(of) if made else "")))
            found[path] = " · ".join(filter(None, (said, count)))
    return found


def _above(name: str, names: dict[str, Node]) -> list[str]:
    """The names among these that begin this one, up to a dot."""
    parts = name.split(".")
    return [o for i in range(1, len(parts)) if (o := ".".join(parts[:i])) in names]


def _class(variables: Sequence[Node]) -> str:
    """The class that one line called to make all of these, if it is one line."""
    frames = {v.origin.frames[:1] for v in variables}
    place = variables[0].origin.nearest if len(frames) == 1 and variables else None
    try:
        written = None if place is None else ast.parse(place.text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    called = written.func if isinstance(written, ast.Call) else None
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name_text(name, 24) if name[:1].isupper() else ""


def _sizes(variables: Sequence[Node]) -> str:
    """The sizes that a layer takes and gives, by its one weight: `6→16, 5×5`."""
    weights = [v for v in variables if v.ndim > 1]
    if len(weights) != 1:
        return ""
    first, second, *window = weights[0].shape
    if not window:
        return f"{first}→{second}"
    return f"{second}→{first}, {'×'.join(map(str, window))}"

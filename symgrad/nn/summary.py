"""The layers and activations of a module in lines, with what each gives and its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

from symgrad.ir.arraylike import is_function
from symgrad.ir.formats.text import type_text
from symgrad.ir.graph import is_leaf
from symgrad.ir.node import Node, Variable
from symgrad.ir.origin import printable
from symgrad.ir.types import types_of
from symgrad.ir.walk import topological
from symgrad.nn.tree import ModuleBase, join, named_leaves


class Row(NamedTuple):
    """A layer or an activation: its path, its kind, its own variables."""

    path: str
    kind: str
    variables: tuple[tuple[str, Variable], ...] = ()
    parameters: int = 0  # of its own


class Summarized(ModuleBase):
    """A module that is printed as an outline of its layers."""

    def summary(self, *inputs: Any) -> str:
        """A table of its layers: the type that each gives for these inputs, and its parameters.

        >>> print(Linear(3, 2, key=sg.random.key(0)).summary(placeholder("x", ("N", 3))))
        layer  kind    gives          parameters
        ────────────────────────────────────────
               Linear  float64[N, 2]  8
                       in all         8
        """
        call: Any = self
        return table(self, call(*inputs))

    def __str__(self) -> str:
        return outline(self)


def outline(module: ModuleBase) -> str:
    """A line for each layer and activation, with its variables, below the number of parameters.

    >>> print(outline(Sequential(Linear(3, 4, key=sg.random.key(0)), relu)))
    Sequential: 16 parameters
      layers.0  Linear  weight: float64[3, 4], bias: float64[4]
      layers.1  relu
    """
    first, *rest = _parts(module)
    rows = [
        (p.path, p.kind, ", ".join(f"{n}: {type_text(v.type)}" for n, v in p.variables))
        for p in ([first] if first.variables else []) + rest
    ]
    total = sum(p.parameters for p in (first, *rest))
    return "\n".join([f"{first.kind}: {total:,} parameters", *(f"  {t}" for t in _aligned(rows))])


def table(module: ModuleBase, results: Any) -> str:
    """The same as a table, with the types that each layer gave on the way to these results."""
    given = results if isinstance(results, (list, tuple)) else [results]
    gave: dict[str, Node] = {}
    for node in topological([y for y in given if isinstance(y, Node)]):
        for i in range(1, 0 if is_leaf(node) else len(node.origin.scope) + 1):
            gave[".".join(node.origin.scope[1:i])] = node
    rows = [("layer", "kind", "gives", "parameters")]
    parts = list(_parts(module))
    for part in parts:
        made = gave.get(part.path)
        types = "" if made is None else ", ".join(map(type_text, types_of(made.type)))
        rows.append(
            (part.path, part.kind, types, f"{part.parameters:,}" if part.parameters else "")
        )
    rows.append(("", "", "in all", f"{sum(p.parameters for p in parts):,}"))
    head, *lines = _aligned(rows)
    return "\n".join([head, "─" * max(map(len, (head, *lines))), *lines])


def _parts(module: Any, path: str = "", seen: dict[int, None] | None = None) -> Iterator[Row]:
    """A module, and what it holds, in the order of its attributes, each once."""
    seen = {} if seen is None else seen
    seen[id(module)] = None
    own = tuple((n, v) for n, v in named_leaves(vars(module).items()) if isinstance(v, Variable))
    trained = (
        v for n, v in own if n.partition(".")[0] not in module.buffers and v.tensor.is_inexact
    )
    yield Row(path, type(module).__name__, own, sum(prod(v.value.shape) for v in trained))
    for name, value in vars(module).items():
        for at, part in _held(name, value):
            if not isinstance(part, ModuleBase):
                yield Row(join(path, at), str(getattr(part, "__name__", type(part).__name__)))
            elif id(part) not in seen:
                yield from _parts(part, join(path, at), seen)


def _held(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The modules and functions that an attribute holds, and where."""
    if isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            yield from _held(f"{name}.{i}", inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _held(f"{name}.{key}", inner)
    elif is_function(value) and not isinstance(value, type):
        yield name, value


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines with columns of one width."""
    shown = [[printable(cell) for cell in row] for row in rows]
    wide = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = ("  ".join(c.ljust(w) for c, w in zip(row, wide, strict=True)) for row in shown)
    return [line.rstrip() for line in lines]

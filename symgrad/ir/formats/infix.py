"""Expressions: nodes and patterns written in a line, as a person would write them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Protocol

import numpy as np

from symgrad.ir.node import Node, constant_value
from symgrad.ir.values import ArrayData, Cell

LONGEST = 72
SHORT = 12
SMALL = 16

# The signs of `operators.py`, each with how strongly it binds.
ATOM = 10
INFIX: Mapping[str, tuple[str, int]] = {
    "less": ("<", 1), "less_equal": ("<=", 1), "greater": (">", 1), "greater_equal": (">=", 1),
    "equal": ("==", 1), "not_equal": ("!=", 1),
    "bitwise_or": ("|", 2), "bitwise_xor": ("^", 3), "bitwise_and": ("&", 4),
    "bitwise_left_shift": ("<<", 5), "bitwise_right_shift": (">>", 5),
    "add": ("+", 6), "subtract": ("-", 6),
    "multiply": ("*", 7), "divide": ("/", 7), "floor_divide": ("//", 7), "remainder": ("%", 7),
    "matmul": ("@", 7), "pow": ("**", 9),
}  # fmt: skip
PREFIX: Mapping[str, str] = {"negative": "-", "positive": "+", "bitwise_invert": "~"}

Text = tuple[str, int]


class Applied(Protocol):
    """The interface that nodes and patterns share: an op applied to others, with attributes."""

    @property
    def op(self) -> Any: ...
    @property
    def inputs(self) -> Any: ...
    @property
    def attrs(self) -> Any: ...


def to_text(term: Any, leaf: Callable[[Any, int], str | Text | None], depth: int = 0) -> Text:
    """A term and how strongly it binds; `leaf` gives the text of what is not to be taken apart."""
    found = leaf(term, depth)
    if isinstance(found, tuple):
        return found
    if found is not None:
        return found, 8 if found.startswith("-") else ATOM
    parts = [to_text(x, leaf, depth + 1) for x in term.inputs]
    name, attrs = term.op.name, dict(term.attrs)
    if name == "permute_dims" and attrs["axes"] == (1, 0):
        return f"{_bound(parts[0], ATOM)}.T", ATOM
    if name in INFIX and len(parts) == 2:
        sign, strength = INFIX[name]
        power = sign == "**"
        left = _bound(parts[0], strength + power)
        return f"{left} {sign} {_bound(parts[1], strength + (not power))}", strength
    if name in PREFIX and len(parts) == 1:
        literal = parts[0][0][:1].isdigit()
        return f"{PREFIX[name]}{_bound(parts[0], 11 if literal else 8)}", 8
    listed = [text for text, _ in parts]
    return f"{name}({', '.join([*listed, *_attributes(attrs)])})", ATOM


def _bound(part: Text, strength: int) -> str:
    text, own = part
    return text if own >= strength else f"({text})"


def _attributes(attrs: Mapping[str, Any]) -> Iterator[str]:
    for key, value in attrs.items():
        if value is not None and value is not False and not hidden(value):
            text = attr_text(value[0] if key == "axis" and _is_single(value) else value)
            alone = key in ("shape", "axes", "dtype", text)
            yield text if alone else f"{key}={text}"


def _is_single(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 1


def hidden(value: Any) -> bool:
    """Whether an attribute is no text: storage, or a graph."""
    return isinstance(value, Cell) or hasattr(value, "nodes")


def attr_text(value: Any) -> str:
    """An attribute in a few characters."""
    if isinstance(value, str):
        return value
    if isinstance(value, np.dtype):
        return str(value.name)
    if isinstance(value, ArrayData):
        array = value.array
        if array.size == 1:
            return str(array.item() if array.dtype.kind == "b" else array.reshape(-1)[0])
        listed = repr(value) if array.size <= SMALL else f"digest {value.digest}"
        return f"{value.type!r} {' '.join(listed.split())}"
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    if isinstance(value, tuple):
        return f"({', '.join(map(attr_text, value))}{',' * (len(value) == 1)})"
    return repr(value)


def expressions(
    nodes: Sequence[Node], cuts: Collection[Node] = (), longest: int = LONGEST
) -> list[str]:
    """Nodes as expressions over one set of names: whole if they are short, else cut at `cuts`.

    What is not taken apart is a capital letter, the same one for the same node.
    """
    tries = ((5, (), longest // 2), *((depth, cuts, longest) for depth in (4, 3, 2)))
    texts: list[str] = []
    for depth, at, most in tries:
        leaf = _Cut(nodes, depth, frozenset(at))
        texts = [to_text(n, leaf)[0] for n in nodes]
        if all(len(t) <= most for t in texts) and (at or not cuts or not leaf.names):
            break
    return texts


def expression(node: Node, longest: int = LONGEST) -> str:
    """A node as an expression; see `expressions`."""
    return expressions([node], (), longest)[0]


class _Cut:
    """Says how leaves are written, and nodes that are not taken apart."""

    def __init__(self, nodes: Sequence[Node], depth: int, at: frozenset[Node]) -> None:
        self.depth = depth
        self.at = at
        self.names: dict[Node, str] = {}
        taken = {str(n.name) for n in _near(nodes, depth + 1) if n.name is not None}
        letters = (f"{a}{k or ''}" for k in count() for a in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        self.letters = (a for a in letters if a not in taken)

    def __call__(self, node: Node, depth: int) -> str | Text | None:
        if node in self.names:
            return self.names[node]
        if not node.inputs:
            return leaf_text(node)
        if depth < self.depth and node not in self.at:
            return None
        if all(x.name is not None for x in node.inputs):
            text = to_text(node, _named)
            if len(text[0]) <= SHORT:
                return text
        self.names[node] = next(self.letters)
        return self.names[node]


def _named(node: Node, depth: int) -> str | None:
    return str(node.name) if depth else None


def leaf_text(node: Node) -> str | None:
    """A node without inputs: its name or, of a constant, its number."""
    array = constant_value(node)
    if array is not None:
        data = node.attr("value")
        return attr_text(data) if array.size == 1 else f"constant{list(array.shape)}"
    return None if node.name is None else str(node.name)[:40]


def _near(nodes: Iterable[Node], depth: int) -> set[Node]:
    """The nodes within a distance of some."""
    found = layer = set(nodes)
    for _ in range(depth):
        layer = {x for n in layer for x in n.inputs} - found
        found = found | layer
    return found

"""The texts of a picture: labels and tooltips, made of whatever users call their things."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from symgrad.ir.dims import product
from symgrad.ir.errors import RenderError
from symgrad.ir.formats.text import type_text
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.op import Op
from symgrad.ir.types import types_of
from symgrad.ir.values import Cell
from symgrad_viz.theme import ADVANCE, NODE_SIZE

LONGEST = 200


def printable(text: str) -> str:
    r"""The text with every character that is no letter, digit, sign or blank written as an escape.

    Control characters, line breaks, marks that turn the direction of writing and halves of
    surrogate pairs are what a picture cannot or should not hold.

    >>> printable("a\x00b\n")
    'a\\x00b\\n'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, most: int = LONGEST) -> str:
    """The text, printable, cut to `most` characters with an ellipsis at the end.

    >>> shortened("abcdef", 4)
    'abc…'
    """
    shown = printable(text[: most + 1])
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def title_text(given: str | None, otherwise: str) -> str:
    """The title that a picture was given, or another. Raises `RenderError` for no text."""
    if given is not None and not isinstance(given, str):
        raise RenderError(f"title is a text, not {given!r}; write title={str(given)!r}")
    return shortened(otherwise if given is None else given, 120)


def name_text(name: str, most: int = 40) -> str:
    """A user's name for a label; one that cannot be seen, in quotation marks."""
    return shortened(name, most) if name.strip() else repr(name[:most])


def text_width(text: str, size: float = NODE_SIZE) -> float:
    """How wide a text is in a fixed-width font; letters of East Asia take two places."""
    wide = 0 if text.isascii() else sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return (len(text) + wide) * size * ADVANCE


def call_text(op: Op, operands: Sequence[object]) -> str:
    """An op with the constants among its operands: `pow 2.0`, `subtract(1.0, ·)`.

    `operands` are texts for the constants and anything else for what comes along an edge.
    """
    constants = [x for x in operands if isinstance(x, str)]
    if not constants:
        return op.name
    if len(operands) == 2 and len(constants) == 1:
        if op.commutative or isinstance(operands[1], str):
            return f"{op.name} {constants[0]}"
    return f"{op.name}({', '.join(x if isinstance(x, str) else '·' for x in operands)})"


def tooltip(node: Node, names: Mapping[Node, str]) -> str:
    """Lines that say what a node is, where the user wrote it, and what made it.

    n6 = relu(n5) : float32[N, 100]
    train.py:13  h = sg.relu(z)
    made by: vjp(relu) then mask_multiply
    """
    lines = [call_line(node, names)]
    for place in node.origin.locations:
        lines.append(f"{shortened(Path(place.file).name)}:{place.line}  {shortened(place.text)}")
    if node.origin.scope:
        lines.append(f"in: {shortened(' / '.join(node.origin.scope))}")
    if node.origin.made_by:
        lines.append(f"made by: {shortened(' then '.join(map(str, node.origin.made_by)))}")
    return "\n".join(dict.fromkeys(lines))


def call_line(node: Node, names: Mapping[Node, str]) -> str:
    """The first of these lines."""
    parts = [names[x] for x in node.inputs]
    parts += [f"{k}={_attr_text(v)}" for k, v in node.attrs if not isinstance(v, Cell)]
    call = shortened(f"{node.op.name}({', '.join(parts)})")
    return f"{names[node]} = {call} : {shortened(type_text(node.type))}"


def _attr_text(value: Any) -> str:
    if isinstance(value, np.dtype):
        return str(value.name)
    if isinstance(value, Graph):
        return f"{len(value)} nodes"
    if isinstance(value, str):
        return repr(value[: LONGEST + 1])
    return repr(value)


def nbytes(type: Any, sizes: Mapping[str, int] | None = None) -> Any:
    """The bytes of a value: a number, or an expression of named dimensions without their sizes."""
    found: Any = 0
    for t in types_of(type):
        size: Any = product(t.shape)
        found = found + size * t.dtype.itemsize
    return found if isinstance(found, int) or not sizes else found.evaluate(sizes)


def counted(count: int, what: str) -> str:
    """So many of something: `1 node`, `3 nodes`; an empty text for none."""
    return f"{count:,} {what}{'s' * (count != 1)}" if count else ""


def sizes_text(sizes: Iterable[tuple[str, int]]) -> str:
    """For which sizes of named dimensions something holds: ` (N = 64)`, or nothing."""
    listed = ", ".join(f"{name_text(k)} = {v}" for k, v in sizes)
    return f" ({listed})" if listed else ""


def bytes_text(number: Any) -> str:
    """A number of bytes: `25 KiB`; an expression of named dimensions: `400*N B`, `24*N KiB`."""
    if isinstance(number, int | float):
        return count_text(number, "B", 1024)
    unit = "B"
    if all(factor % 1024 == 0 for _, factor in number.terms):
        number, unit = number // 1024, "KiB"
    return f"({number!r}) {unit}" if len(number.terms) > 1 else f"{number!r} {unit}"


def count_text(number: float, unit: str, base: int = 1000) -> str:
    """A number with a unit, and as many digits as one can take in: `12.8 MFLOP`, `3.05 MiB`."""
    prefixes = ("", "k", "M", "G", "T") if base == 1000 else ("", "Ki", "Mi", "Gi", "Ti")
    sizes = tuple((p, base**i) for i, p in enumerate(prefixes))
    prefix, size = next((p for p in sizes if number < (base - 0.5) * p[1]), sizes[-1])
    return f"{number / size:.{3 + (number / size >= 1000)}g} {prefix}{unit}"


def time_text(seconds: float) -> str:
    """A time: `3.1 µs`."""
    for unit, size in (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3)):
        if seconds < 999.5 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"

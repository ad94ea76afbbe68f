"""Nodes in the notation of mathematics: which tree a node is, over names for other nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from symgrad.ir.dims import Dim
from symgrad.ir.node import Node, constant_value
from symgrad.ir.op import Op
from symgrad.ops.elementwise import (
    abs,
    add,
    divide,
    multiply,
    negative,
    pow,
    reciprocal,
    sqrt,
    square,
    subtract,
)
from symgrad.ops.identity import optimization_barrier
from symgrad.ops.index.gather import gather
from symgrad.ops.index.slices import place, put, slice_p
from symgrad.ops.leaves import size_of
from symgrad.ops.linalg.products import matmul_p, matmul_tn, vdot_p
from symgrad.ops.logic import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
)
from symgrad.ops.reduce import sum
from symgrad.ops.select import select
from symgrad.ops.shape import astype_p, broadcast_to, permute_dims, reshape_p
from symgrad_viz.formulas import sliced
from symgrad_viz.terms import (
    ADDED,
    ATOM,
    COMPARED,
    LOOSE,
    MATMUL,
    MULTIPLIED,
    RAISED,
    Term,
    bound,
    called,
    fence,
    listed,
    name,
    negated,
    number,
    raised,
    row,
    sign,
    word,
)

Named: TypeAlias = Callable[[Node], Term | None]
Form: TypeAlias = Callable[[Node, Sequence[Term]], Term]
DEEPEST = 24


def term_of(node: Node, named: Named, depth: int = 0) -> Term:
    """The formula that computes a node; operands that `named` knows are written as their names."""
    value = constant_value(node)
    if value is not None:
        return _constant(value)
    if depth:
        known = named(node)
        if known is not None:
            return known
    if not node.inputs and node.op is not size_of.op:
        return name(str(node.name)) if node.name is not None else word(node.op.name)
    if depth >= DEEPEST:
        return sign("…")
    parts = [term_of(x, named, depth + 1) for x in node.inputs]
    form = _FORMS.get(node.op)
    if form is not None:
        return form(node, parts)
    return _applied(node, parts)


def is_aside(node: Node) -> bool:
    """Whether a formula passes over it: it moves, repeats or converts elements."""
    return node.op in _ASIDE


def is_renamed(node: Node) -> bool:
    """Whether it is another name for its operand: a vector as a matrix of one column or row."""
    if node.op is optimization_barrier.op:
        return True
    if node.op is not reshape_p.op:
        return False
    return [s for s in node.shape if s != 1] == [s for s in node.inputs[0].shape if s != 1]


def _constant(value: np.ndarray[Any, Any]) -> Term:
    if value.size and (value == value.reshape(-1)[0]).all():
        first = value.reshape(-1)[0]
        if value.dtype.kind == "b":
            return word(str(bool(first)).lower())
        if value.dtype.kind != "c":
            return number(repr(first.item()))
    return word(f"constant {list(value.shape)}")


# ---- forms ----------------------------------------------------------------------------------


def _through(node: Node, parts: Sequence[Term]) -> Term:
    return parts[0]


def _permuted(node: Node, parts: Sequence[Term]) -> Term:
    axes = tuple(node.attr("axes"))
    if axes == (*range(len(axes)),):
        return parts[0]
    flipped = (*range(len(axes) - 2), len(axes) - 1, len(axes) - 2)
    if len(axes) >= 2 and axes == flipped:
        base = parts[0]
        if base.kind == "sup" and base.parts[1] == sign("⊤"):
            return base.parts[0]
        return raised(base, sign("⊤"))
    return called(word("transpose"), parts[0], _shape(axes))


def _reshaped(node: Node, parts: Sequence[Term]) -> Term:
    """A reshape between vectors and matrices of one column or row is passed over."""
    if is_renamed(node):
        return parts[0]
    return called(word("reshape"), parts[0], _shape(node.shape))


def _shape(sizes: Sequence[Any]) -> Term:
    inside = [number(str(s)) if isinstance(s, int) else name(str(s)) for s in sizes]
    return fence(listed(*inside))


def _is_scalar(x: Node) -> bool:
    return not isinstance(x.type, tuple) and all(s == 1 for s in x.shape)


def _product(node: Node, parts: Sequence[Term]) -> Term:
    (a, b), (x, y) = node.inputs, parts
    if not _is_scalar(a) and _is_scalar(b):
        (a, b), (x, y) = (b, a), (y, x)
    if a is b:
        return raised(x, number("2"))
    left, right = bound(x, MULTIPLIED), bound(y, MULTIPLIED + 1)
    both = "·" if _begins_with_number(right) else " "
    return row(left, both if _is_scalar(a) else "⊙", right, strength=MULTIPLIED)


def _begins_with_number(term: Term) -> bool:
    while term.parts and term.kind != "fence":
        term = term.parts[0]
    return term.kind == "number"


def _quotient(node: Node, parts: Sequence[Term]) -> Term:
    return Term("frac", tuple(parts), "", RAISED)


def _sum(signs: str) -> Form:
    def form(node: Node, parts: Sequence[Term]) -> Term:
        left, right = parts
        return row(left, signs, bound(right, ADDED + 1), strength=ADDED)

    return form


def _matmul(node: Node, parts: Sequence[Term]) -> Term:
    x, y = parts
    return row(bound(x, MATMUL), " ", bound(y, MATMUL + 1), strength=MATMUL)


def _power(node: Node, parts: Sequence[Term]) -> Term:
    return raised(*parts)


def _compared(signs: str, strength: int = COMPARED) -> Form:
    return lambda node, parts: row(
        bound(parts[0], strength + 1), signs, bound(parts[1], strength + 1), strength=strength
    )


def _selected(node: Node, parts: Sequence[Term]) -> Term:
    """By Iverson's bracket, which is 1 where a condition holds and 0 elsewhere."""
    mask, value = parts
    return row(fence(mask, "[]"), "⊙", bound(value, MULTIPLIED + 1), strength=MULTIPLIED)


def _summed(node: Node, parts: Sequence[Term]) -> Term:
    axes = node.attr("axis")
    if len(axes) == node.inputs[0].ndim:
        return row("∑", bound(parts[0], MULTIPLIED), strength=ADDED)
    return _reduced(node, parts)


def _reduced(node: Node, parts: Sequence[Term]) -> Term:
    axes = node.attr("axis")
    function = word(node.op.name)
    if len(axes) != node.inputs[0].ndim:
        function = Term("sub", (function, listed(*(number(str(axis)) for axis in axes))))
    return called(function, *parts)


def _dotted(node: Node, parts: Sequence[Term]) -> Term:
    a, b = parts
    if node.inputs[0] is node.inputs[1]:
        return Term("sup", (fence(a, "‖‖"), number("2")), "", RAISED)
    return fence(row(a, ",", b, strength=LOOSE), "⟨⟩")


def _sized(node: Node, parts: Sequence[Term]) -> Term:
    size = node.attr("dim")
    if not isinstance(size, (int, Dim)):
        return word("size")
    text = str(size)
    return replace(name(text), strength=ATOM if text.isidentifier() else LOOSE)


def _gathered(node: Node, parts: Sequence[Term]) -> Term:
    array, *indices = parts
    whole = [sign(":")] * node.attr("axis")
    return _indexed(array, listed(*whole, *indices))


def _indexed(array: Term, index: Term) -> Term:
    return Term("sub", (bound(array, RAISED + 1), index), "", RAISED)


def _slices(node: Node, shape: Sequence[Any]) -> Term:
    return word(sliced(node.attr("index"), shape)[1:-1])


def _placed(node: Node, parts: Sequence[Term]) -> Term:
    """Written into zeros, or into the first operand, where the slices say."""
    where = fence(_slices(node, node.shape), "[]")
    return called(word(node.op.name), *parts, where, *_options(node))


def _applied(node: Node, parts: Sequence[Term]) -> Term:
    if "keepdims" in dict(node.attrs) and "axis" in dict(node.attrs):
        return _reduced(node, parts)
    return called(word(node.op.name), *parts, *_options(node))


def _options(node: Node) -> list[Term]:
    return [
        word(f"{k}={v}") for k, v in node.attrs if isinstance(v, (int, str)) and len(str(v)) < 9
    ]


_FORMS: Mapping[Op, Form] = MappingProxyType(
    {
        **dict.fromkeys((broadcast_to.op, astype_p.op, optimization_barrier.op), _through),
        permute_dims.op: _permuted,
        reshape_p.op: _reshaped,
        add.op: _sum("+"),
        subtract.op: _sum("−"),
        negative.op: lambda node, parts: negated(parts[0]),
        multiply.op: _product,
        divide.op: _quotient,
        reciprocal.op: lambda node, parts: Term("frac", (number("1"), parts[0]), "", RAISED),
        pow.op: _power,
        square.op: lambda node, parts: raised(parts[0], number("2")),
        sqrt.op: lambda node, parts: Term("root", tuple(parts)),
        abs.op: lambda node, parts: fence(parts[0], "||"),
        matmul_p.op: _matmul,
        matmul_tn.op: lambda node, parts: _matmul(node, (raised(parts[0], sign("⊤")), parts[1])),
        vdot_p.op: _dotted,
        sum.op: _summed,
        select.op: _selected,
        gather.op: _gathered,
        slice_p.op: lambda node, parts: _indexed(parts[0], _slices(node, node.inputs[0].shape)),
        **dict.fromkeys((place.op, put.op), _placed),
        size_of.op: _sized,
        less.op: _compared("<"),
        less_equal.op: _compared("≤"),
        greater.op: _compared(">"),
        greater_equal.op: _compared("≥"),
        equal.op: _compared("="),
        not_equal.op: _compared("≠"),
        logical_and.op: _compared("∧", LOOSE),
        logical_or.op: _compared("∨", LOOSE),
        logical_not.op: lambda node, parts: row("¬", bound(parts[0], ATOM), strength=MULTIPLIED),
    }
)
_ASIDE = frozenset(
    {broadcast_to.op, astype_p.op, optimization_barrier.op, permute_dims.op, reshape_p.op,
     size_of.op}
)  # fmt: skip

"""Ops along rows, as vectors: running sums, the place of an extremum, one element of each row.

A running sum of a vector is made in steps of 1, 2, 4 … lanes, onto the sum of the vectors before
(Hillis and Steele, 1986). What could overflow on such a way, a product or a recurrence, is made
element by element.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from symgrad.ir.node import Node
from symgrad.ir.op import Op
from symgrad.native.operations import JOINS
from symgrad.native.placed import PLACED
from symgrad.native.vectors import Code, Number, Value
from symgrad.ops.cumulative import products_before, running_extremum, running_sum, scan
from symgrad.ops.index.in_rows import add_in_rows, pick_in_rows
from symgrad.ops.order import argmax_p, argmin_p

SCANS = (running_sum.op, products_before.op, running_extremum.op, scan.op)
PLACES = (argmax_p.op, argmin_p.op)
PICK, ADD = pick_in_rows.op, add_in_rows.op
ROW_OPS = (*SCANS, *PLACES, PICK, ADD)
# What an element takes, and what it takes NumPy: see `Operation`.
COSTS: Mapping[Op, tuple[int, int]] = {
    running_sum.op: (25, 90),
    running_extremum.op: (30, 90),
    products_before.op: (130, 150),
    scan.op: (250, 300),
    **dict.fromkeys(PLACES, (10, 20)),
    ADD: (6, 13),
    **dict.fromkeys(PLACED, (8, 30)),
}
NOWHERE = 2**31 - 1


def identity(join: str, kind: str) -> Number:
    """The value that a reduction starts from."""
    if join in ("add", "multiply"):
        return join == "multiply"
    if kind == "b1":
        return join == "minimum"
    if kind[0] == "f":
        return -math.inf if join == "maximum" else math.inf
    bits = 8 * int(kind[1:])
    low, high = (0, 1 << bits) if kind[0] == "u" else (-(1 << bits - 1), 1 << bits - 1)
    return low if join == "maximum" else high - 1


def is_turned(node: Node) -> bool:
    """Whether a scan goes from the end of a row to its beginning."""
    return node.op in SCANS and bool(dict(node.attrs).get("reverse"))


def axis_of(node: Node) -> int:
    """The axis of its first operand that an op goes along."""
    found: int = dict(node.attrs).get("axis", node.inputs[0].ndim - 1)
    return found


# ---- scans ----------------------------------------------------------------------------------


def scan_start(node: Node, kind: str) -> Number:
    """The value before the first element."""
    if node.op is running_sum.op and kind[0] == "f":
        return -0.0  # which added to -0 is -0
    return 0 if node.op is scan.op else identity(_join_of(node), kind)


def _join_of(node: Node) -> str:
    if node.op is running_extremum.op:
        return "maximum" if node.attr("largest") else "minimum"
    return "multiply" if node.op is products_before.op else "add"


def scanned(node: Node, values: Sequence[Value], carry: str, inside: Value | None) -> Value:
    """The next lanes of a scan, where memory at `carry` has what the elements before have made."""
    code, kind = values[0].code, values[0].kind
    start = scan_start(node, kind)
    if inside is not None and is_turned(node):
        # Those beyond the end come first; a recurrence stays 0.
        values = [code.select(inside, v, start) for v in values]
    # Products of integers that are 0 or 1 LLVM 20 makes selections, which it takes for those of
    # the lanes that are shifted.
    if node.op is scan.op or node.op is products_before.op:
        return _one_by_one(node, values, carry)
    write = JOINS[_join_of(node)]
    order = 1 if is_turned(node) else -1
    found, step = values[0], 1
    while step < code.lanes:
        found = write(_shifted(found, order * step, start), found)
        step *= 2
    before = code.load(kind, carry)
    end = code.lane(found, 0 if is_turned(node) else code.lanes - 1)
    code.store(write(before, code.splat(kind, end)), carry)
    return write(before, found)


def _shifted(x: Value, by: int, fill: Number) -> Value:
    """Each lane that of so many on, and a number where there is none."""
    code, t = x.code, x.code.type(x.kind)
    order = ((i + by if 0 <= i + by < code.lanes else code.lanes) for i in range(code.lanes))
    mask = ", ".join(f"i32 {i}" for i in order)
    end = code.constant(x.kind, fill)
    text = f"shufflevector {t} {x.text}, {t} {end.text}, <{code.lanes} x i32> <{mask}>"
    return code.line(x.kind, text)


def _one_by_one(node: Node, values: Sequence[Value], carry: str) -> Value:
    """A product before each element, or y[k + 1] = a[k] * y[k] + b[k]."""
    code, kind = values[0].code, values[0].kind
    one = code.of_lanes(1)
    lanes = range(code.lanes)
    held, found = one.load(kind, carry), [""] * code.lanes
    for i in reversed(lanes) if is_turned(node) else lanes:
        found[i] = held.text
        held = held * Value(one, kind, code.lane(values[0], i))
        if node.op is scan.op:
            held = held + Value(one, kind, code.lane(values[1], i))
    one.store(held, carry)
    return code.vector(kind, found)


# ---- places of extrema ----------------------------------------------------------------------


def place_start(node: Node, kind: str) -> Number:
    """The value that the first element is compared with."""
    return identity("maximum" if node.op is argmax_p.op else "minimum", kind)


def _is_better(node: Node, x: Value, best: Value) -> Value:
    """The mask of lanes that are larger (or smaller), or the first that are NaN."""
    found = x > best if node.op is argmax_p.op else x < best
    return found | (x.is_nan() & ~best.is_nan()) if x.is_float else found


def placed(node: Node, x: Value, at: str, best: str, place: str, inside: Value | None) -> None:
    """Note the lanes that are better than those before, and where they are."""
    code = x.code
    held = code.load(x.kind, best)
    better = _is_better(node, x, held)
    if inside is not None:
        better = better & inside
    here = code.numbered("i4") + code.splat("i4", code.scalar(f"trunc i64 {at} to i32"))
    code.store(code.select(better, x, held), best)
    code.store(code.select(better, here, code.load("i4", place)), place)


def place_of(node: Node, code: Code, kind: str, best: str, place: str) -> Value:
    """The index of the extremum among all lanes, the first of those that tie."""
    x, at = code.load(kind, best), code.load("i4", place)
    width = code.lanes
    while width > 1:
        width //= 2
        order = [i ^ width for i in range(code.lanes)]
        other, there = code.permuted(x, order), code.permuted(at, order)
        better = _is_better(node, other, x)
        worse = _is_better(node, x, other)
        take = better | (~worse & (there < at))
        x, at = code.select(take, other, x), code.select(take, there, at)
    # Where none was better than the start, all are it.
    found = Value(code.of_lanes(1), "i4", code.lane(code.select(at.equals(NOWHERE), 0, at), 0))
    return found.converted("i8")


# ---- one element of each row ----------------------------------------------------------------


def within(index: Value, columns: int) -> Value:
    """An index of a row; beyond it its end."""
    code, index = index.code, index.converted("i8")
    index = code.select(index > columns - 1, columns - 1, index)
    return code.select(index < 0, 0, index)


def added(x: Value, u: Value, index: Value, at: str) -> Value:
    """x with u added to the lane that is a row's element at an index, the first being that `at`."""
    code = x.code
    away = code.scalar(f"sub i64 {index.text}, {at}")
    here = code.splat("i4", code.scalar(f"trunc i64 {away} to i32"))
    return code.select(code.numbered("i4").equals(here), x + u, x)

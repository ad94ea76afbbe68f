"""Comparisons, logic and bits, element by element. None of them has a gradient."""

from __future__ import annotations

from functools import partial

import numpy as np

from symgrad.ir.node import Node, apply
from symgrad.ir.operators import call
from symgrad.ops.declare import NodeLike, elementwise
from symgrad.ops.sides import Side

INTEGERS = "int32 uint8"
LOGICAL = "bool"

_comparison = partial(elementwise, compares=True, piecewise_constant=True)
_order = partial(
    _comparison,
    real=True,
    locked=lambda side, y, a, b: apply(y.op, (side.lead(a, b), 0)),
    jumps=True,
)
_connective = partial(elementwise, piecewise_constant=True, commutative=True)


@_comparison(np.equal, commutative=True, complement="not_equal")
def equal(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 == x2."""
    ...


@_comparison(np.not_equal, commutative=True, complement="equal")
def not_equal(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 != x2."""
    ...


@_order(np.less, converse="greater", complement="greater_equal")
def less(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 < x2."""
    ...


@_order(np.less_equal, converse="greater_equal", complement="greater")
def less_equal(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 <= x2."""
    ...


@_order(np.greater, converse="less", complement="less_equal")
def greater(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 > x2."""
    ...


@_order(np.greater_equal, converse="less_equal", complement="less")
def greater_equal(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 >= x2."""
    ...


@elementwise(np.isfinite, piecewise_constant=True)
def isfinite(x: NodeLike, /) -> Node:
    """Whether x is neither infinite nor NaN."""
    ...


@elementwise(np.isinf, piecewise_constant=True)
def isinf(x: NodeLike, /) -> Node:
    """Whether x is infinite."""
    ...


@elementwise(np.isnan, piecewise_constant=True)
def isnan(x: NodeLike, /) -> Node:
    """Whether x is NaN."""
    ...


def _signbit_locked(side: Side, y: Node, x: Node) -> Node:
    lead = side.lead(x)
    return call("where", lead == 0, y, lead < 0)


@elementwise(np.signbit, piecewise_constant=True, locked=_signbit_locked, jumps=True)
def signbit(x: NodeLike, /) -> Node:
    """Whether the sign bit is set: true for -0.0 too."""
    ...


@_connective(np.logical_and, de_morgan="logical_or", dtypes=LOGICAL)
def logical_and(x1: NodeLike, x2: NodeLike, /) -> Node:
    """Whether both are true."""
    ...


@_connective(np.logical_or, de_morgan="logical_and", dtypes=LOGICAL)
def logical_or(x1: NodeLike, x2: NodeLike, /) -> Node:
    """Whether one of them is true."""
    ...


@_connective(np.logical_xor, dtypes=LOGICAL)
def logical_xor(x1: NodeLike, x2: NodeLike, /) -> Node:
    """Whether just one of them is true."""
    ...


@elementwise(np.logical_not, piecewise_constant=True, dtypes=LOGICAL)
def logical_not(x: NodeLike, /) -> Node:
    """Whether x is false."""
    ...


@_connective(np.bitwise_and, de_morgan="bitwise_or", dtypes=INTEGERS)
def bitwise_and(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The bits set in both; booleans are one bit."""
    ...


@_connective(np.bitwise_or, de_morgan="bitwise_and", dtypes=INTEGERS)
def bitwise_or(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The bits set in one of them."""
    ...


@_connective(np.bitwise_xor, dtypes=INTEGERS)
def bitwise_xor(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The bits set in just one of them."""
    ...


@elementwise(np.invert, piecewise_constant=True, dtypes=INTEGERS)
def bitwise_invert(x: NodeLike, /) -> Node:
    """Every bit flipped."""
    ...


@elementwise(np.left_shift, piecewise_constant=True, dtypes=INTEGERS, domain=((0, 9), (0, 5)))
def bitwise_left_shift(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 * 2**x2, on integers."""
    ...


@elementwise(np.right_shift, piecewise_constant=True, dtypes=INTEGERS, domain=((0, 9), (0, 5)))
def bitwise_right_shift(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 // 2**x2, on integers."""
    ...

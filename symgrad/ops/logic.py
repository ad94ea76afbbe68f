"""Comparisons, logic and bits, element by element. None of them has a gradient."""

# ruff: noqa: PIE790  (the body of a primitive is `...`)

from __future__ import annotations

import numpy as np

from symgrad.ir.node import Node
from symgrad.ir.op import REGISTRY
from symgrad.ops.declare import NodeLike, elementwise

INTEGERS = "int32 uint8"
LOGICAL = "bool"


@elementwise(np.equal, compares=True, piecewise_constant=True, commutative=True)
def equal(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 == x2."""
    ...


@elementwise(np.not_equal, compares=True, piecewise_constant=True, commutative=True)
def not_equal(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 != x2."""
    ...


@elementwise(np.less, compares=True, real=True, piecewise_constant=True)
def less(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 < x2."""
    ...


@elementwise(np.less_equal, compares=True, real=True, piecewise_constant=True)
def less_equal(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 <= x2."""
    ...


@elementwise(np.greater, compares=True, real=True, piecewise_constant=True)
def greater(x1: NodeLike, x2: NodeLike, /) -> Node:
    """x1 > x2."""
    ...


@elementwise(np.greater_equal, compares=True, real=True, piecewise_constant=True)
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


@elementwise(np.signbit, piecewise_constant=True)
def signbit(x: NodeLike, /) -> Node:
    """Whether the sign bit is set: true for -0.0 too."""
    ...


@elementwise(
    np.logical_and, piecewise_constant=True, commutative=True, associative=True, dtypes=LOGICAL
)
def logical_and(x1: NodeLike, x2: NodeLike, /) -> Node:
    """Whether both are true."""
    ...


@elementwise(
    np.logical_or, piecewise_constant=True, commutative=True, associative=True, dtypes=LOGICAL
)
def logical_or(x1: NodeLike, x2: NodeLike, /) -> Node:
    """Whether one of them is true."""
    ...


@elementwise(
    np.logical_xor, piecewise_constant=True, commutative=True, associative=True, dtypes=LOGICAL
)
def logical_xor(x1: NodeLike, x2: NodeLike, /) -> Node:
    """Whether just one of them is true."""
    ...


@elementwise(np.logical_not, piecewise_constant=True, dtypes=LOGICAL)
def logical_not(x: NodeLike, /) -> Node:
    """Whether x is false."""
    ...


@elementwise(
    np.bitwise_and, piecewise_constant=True, commutative=True, associative=True, dtypes=INTEGERS
)
def bitwise_and(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The bits set in both; booleans are one bit."""
    ...


@elementwise(
    np.bitwise_or, piecewise_constant=True, commutative=True, associative=True, dtypes=INTEGERS
)
def bitwise_or(x1: NodeLike, x2: NodeLike, /) -> Node:
    """The bits set in one of them."""
    ...


@elementwise(
    np.bitwise_xor, piecewise_constant=True, commutative=True, associative=True, dtypes=INTEGERS
)
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


__all__ = REGISTRY.public(__name__)

"""What each op is in vectors: exact ones, which give NumPy's bits, and functions, which round.

The payload and the sign of a NaN are whatever the processor makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from symgrad.native import circular, exponential, gaussian, hyperbolic, powers
from symgrad.native.precise import INF, absolute, copysign, root
from symgrad.native.vectors import LLVM, Value


class Operation(NamedTuple):
    """How an op is written: `write(*values, **attrs)`, for operands of some of the kinds `bifu`.

    An exact one gives the bits that NumPy gives. `cost` is in additions.
    """

    write: Callable[..., Value]
    kinds: str = "iuf"
    exact: bool = True
    cost: int = 1


def kind_of(dtype: np.dtype[Any]) -> str | None:
    """The kind of values of a dtype; None if the emitter has none."""
    found = f"{dtype.kind}{dtype.itemsize}"
    return found if found in LLVM and dtype.isnative else None


def _maximum(a: Value, b: Value) -> Value:
    if not a.is_float:
        return a.code.select(a > b, a, b)
    return a.code.select((a > b) | a.is_nan(), a, b)


def _minimum(a: Value, b: Value) -> Value:
    if not a.is_float:
        return a.code.select(a < b, a, b)
    return a.code.select((a < b) | a.is_nan(), a, b)


def _fmax(a: Value, b: Value) -> Value:
    return a.code.select((a >= b) | b.is_nan(), a, b)


def _fmin(a: Value, b: Value) -> Value:
    return a.code.select((a <= b) | b.is_nan(), a, b)


def _relu(x: Value) -> Value:
    return _maximum(x, x.code.constant(x.kind, 0))


def _abs(x: Value) -> Value:
    if x.kind[0] == "u":
        return x
    return absolute(x) if x.is_float else x.code.select(x < 0, -x, x)


def _sign(x: Value) -> Value:
    code = x.code
    one = code.constant(x.kind, 1)
    found = code.select(x > 0, one, 0)
    if x.kind[0] != "u":
        found = code.select(x < 0, -1, found)
    return code.select(x.is_nan(), x, found) if x.is_float else found


def _rounded(name: str) -> Callable[[Value], Value]:
    return lambda x: x.code.call(name, x) if x.is_float else x


def _is_finite(x: Value) -> Value:
    return absolute(x) < INF


def _mask_bits(mask: Value, dtype: np.dtype[Any]) -> Value:
    kind = f"i{dtype.itemsize}"
    return mask.code.convert("sext", mask, kind)


def _keep_bits(bits: Value, x: Value) -> Value:
    return (x.reinterpreted(bits.kind) & bits).reinterpreted(x.kind)


def _select(mask: Value, x: Value) -> Value:
    return x.code.select(mask, x, 0)


def _where(mask: Value, x: Value, y: Value) -> Value:
    return x.code.select(mask, x, y)


def _as_dtype(x: Value, dtype: np.dtype[Any]) -> Value:
    return x.converted(f"{dtype.kind}{dtype.itemsize}")


def _leaky_relu(x: Value, slope: float) -> Value:
    if slope == 0:
        return _relu(x)
    return (_maximum if slope <= 1 else _minimum)(x, x * slope)


def _logical(word: str) -> Callable[..., Value]:
    def write(a: Value, b: Value) -> Value:
        a, b = a.converted("b1"), b.converted("b1")
        return {"and": a & b, "or": a | b, "xor": a ^ b}[word]

    return write


def _function(write: Callable[..., Value], cost: int = 25) -> Operation:
    return Operation(write, "f", False, cost)


_LOGIC = "biuf"
OPERATIONS: Mapping[str, Operation] = {
    "add": Operation(lambda a, b: a + b),
    "subtract": Operation(lambda a, b: a - b),
    "multiply": Operation(lambda a, b: a * b),
    "divide": Operation(lambda a, b: a / b, "f", cost=6),
    "negative": Operation(lambda x: -x, "if"),
    "positive": Operation(lambda x: x),
    "abs": Operation(_abs),
    "square": Operation(lambda x: x * x),
    "sqrt": Operation(root, "f", cost=8),
    "reciprocal": Operation(lambda x: 1.0 / x, "f", cost=6),
    "maximum": Operation(_maximum, cost=2),
    "minimum": Operation(_minimum, cost=2),
    "fmax": Operation(_fmax, "f", cost=2),
    "fmin": Operation(_fmin, "f", cost=2),
    "relu": Operation(_relu),
    "leaky_relu": Operation(_leaky_relu, "f", cost=3),
    "sign": Operation(_sign, cost=3),
    "copysign": Operation(copysign, "f"),
    "floor": Operation(_rounded("floor")),
    "ceil": Operation(_rounded("ceil")),
    "trunc": Operation(_rounded("trunc")),
    "rint": Operation(_rounded("roundeven")),
    "equal": Operation(lambda a, b: a.equals(b), _LOGIC),
    "not_equal": Operation(lambda a, b: a.differs(b), _LOGIC),
    "less": Operation(lambda a, b: a < b),
    "less_equal": Operation(lambda a, b: a <= b),
    "greater": Operation(lambda a, b: a > b),
    "greater_equal": Operation(lambda a, b: a >= b),
    "isnan": Operation(lambda x: x.is_nan(), "f"),
    "isinf": Operation(lambda x: absolute(x).equals(INF), "f"),
    "isfinite": Operation(_is_finite, "f"),
    "signbit": Operation(lambda x: x.reinterpreted(f"i{x.kind[1:]}") < 0, "f"),
    "logical_and": Operation(_logical("and"), _LOGIC),
    "logical_or": Operation(_logical("or"), _LOGIC),
    "logical_xor": Operation(_logical("xor"), _LOGIC),
    "logical_not": Operation(lambda x: ~x.converted("b1"), _LOGIC),
    "bitwise_and": Operation(lambda a, b: a & b, "biu"),
    "bitwise_or": Operation(lambda a, b: a | b, "biu"),
    "bitwise_xor": Operation(lambda a, b: a ^ b, "biu"),
    "bitwise_invert": Operation(lambda x: ~x, "biu"),
    "where": Operation(_where, _LOGIC),
    "select": Operation(_select, _LOGIC),
    "keep_where_positive": Operation(lambda y, x: _select(y > 0, x)),
    "mask_bits": Operation(_mask_bits, "b"),
    "keep_bits": Operation(_keep_bits),
    "astype": Operation(_as_dtype, _LOGIC),
    "exp": _function(exponential.exp, 15),
    "expm1": _function(exponential.expm1),
    "log": _function(exponential.log),
    "log1p": _function(exponential.log1p),
    "log2": _function(exponential.log2),
    "log10": _function(exponential.log10),
    "logaddexp": _function(exponential.logaddexp, 50),
    "pow": _function(powers.power, 80),
    "hypot": _function(powers.hypot),
    "sin": _function(circular.sin),
    "cos": _function(circular.cos),
    "tan": _function(circular.tan, 40),
    "asin": _function(circular.asin),
    "acos": _function(circular.acos),
    "atan": _function(circular.atan),
    "atan2": _function(circular.atan2, 40),
    "sinh": _function(hyperbolic.sinh),
    "cosh": _function(hyperbolic.cosh),
    "tanh": _function(hyperbolic.tanh),
    "asinh": _function(hyperbolic.asinh, 40),
    "acosh": _function(hyperbolic.acosh, 40),
    "atanh": _function(hyperbolic.atanh, 40),
    "sigmoid": _function(exponential.sigmoid),
    "softplus": _function(exponential.softplus, 40),
    "erf": _function(gaussian.erf),
    "erfc": _function(gaussian.erfc, 40),
    "ndtr": _function(gaussian.ndtr, 40),
    "log_ndtr": _function(gaussian.log_ndtr, 80),
}
# How a reduction joins two partial results, and what it starts from (of floats, of integers).
JOINS: Mapping[str, Callable[[Value, Value], Value]] = {
    "add": lambda a, b: a + b,
    "maximum": _maximum,
    "minimum": _minimum,
}

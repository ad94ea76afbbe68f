"""The ops in vectors: exact ones, which give NumPy's bits, and functions, which round.

The payload and the sign of a NaN are whatever the processor makes of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir.evaluate import computed
from symgrad.ir.node import Node
from symgrad.ir.op import Op
from symgrad.native import circular, exponential, gamma, gaussian, hyperbolic, powers
from symgrad.native.precise import INF, absolute, copysign, root
from symgrad.native.vectors import LLVM, Code, Value
from symgrad.ops import kernels
from symgrad.ops.select import relu
from symgrad.ops.shape import broadcast_to, reshape_p
from symgrad.ops.special import gamma_kernels
from symgrad.ops.special import kernels as special

VIEWS = (broadcast_to.op, reshape_p.op)


class Operation(NamedTuple):
    """How an op is written: `write(*values, **attrs)`, for operands of some of the kinds `bifu`.

    An exact one gives the bits that NumPy gives. `cost` is what an element takes, and `numpy` what
    it takes NumPy, in hundredths of a nanosecond: of float32, with AVX-512, where NumPy has fast
    functions too, measured by benchmarks/native_functions.py. It is for attributes that are as in
    `only`.
    """

    write: Callable[..., Value]
    kinds: str = "iuf"
    exact: bool = True
    cost: int = 3
    numpy: int = 13
    only: Mapping[str, Any] = MappingProxyType({})


def operation(op: Op) -> Operation | None:
    """How an op is written, which its kernel tells; None if it has no native form."""
    return OPERATIONS.get(op.kernel) or OF_SOURCE.get(op.storage.source)


def kind_of(dtype: np.dtype[Any]) -> str | None:
    """The kind of values of a dtype; None if the emitter has none."""
    found = f"{dtype.kind}{dtype.itemsize}"
    return found if found in LLVM and dtype.isnative else None


def kind_in(node: Node) -> str:
    """The kind of values of a node that is in a group."""
    found = kind_of(node.tensor.dtype)
    assert found is not None
    return found


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
    if x.kind[0] in "bu":
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


def _left_shift(x: Value, n: Value) -> Value:
    fits, n = _shift(x, n)
    return x.code.select(fits, x << n, 0)


def _right_shift(x: Value, n: Value) -> Value:
    """All bits away, what is left is that of the sign."""
    fits, n = _shift(x, n)
    return x.code.select(fits, x >> n, x >> (x.bits - 1) if x.kind[0] == "i" else 0)


def _shift(x: Value, n: Value) -> tuple[Value, Value]:
    """Whether a shift is by fewer bits than there are, and by how many if so."""
    fits = n.reinterpreted(f"u{n.kind[1:]}") < x.bits
    return fits, x.code.select(fits, n, 0)


def _floor_divide(x: Value, n: Value) -> Value:
    """A quotient by a positive constant, which the compiler turns into a product or a shift."""
    shift = _shift_of(n)
    if shift is not None:
        return x >> shift
    if x.kind[0] == "u":
        return x.quotient(n)
    found = x.quotient(n)
    return x.code.select(x - found * n < 0, found - x.code.constant(x.kind, 1), found)


def _shift_of(n: Value) -> int | None:
    """The shift that divides by a constant, towards less; None if that is no power of 2."""
    found = re.fullmatch(r"(?:splat \(i\d+ )?([1-9]\d*)\)?", n.text)
    number = 0 if found is None else int(found[1])
    return None if not number or number & (number - 1) else number.bit_length() - 1


def _remainder(x: Value, n: Value) -> Value:
    if _shift_of(n) is not None:
        return x & (n - 1)
    return x - _floor_divide(x, n) * n


def _scaled_by(ufunc: np.ufunc) -> Callable[[Value], Value]:
    """A product with a number that NumPy has rounded in its own way."""
    return lambda x: x * float(ufunc(np.ones((), x.kind)))


def _heaviside(x: Value, middle: Value) -> Value:
    code = x.code
    found = code.select(x > 0, code.constant(x.kind, 1), 0)
    found = code.select(x.equals(0), middle, found)
    return code.select(x.is_nan(), x, found)


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


def _function(write: Callable[..., Value], cost: int, numpy: int) -> Operation:
    return Operation(write, "f", False, cost, numpy)


_LOGIC = "biuf"
OPERATIONS: Mapping[Callable[..., Any], Operation] = {
    np.add: Operation(lambda a, b: a + b, _LOGIC),
    np.subtract: Operation(lambda a, b: a - b),
    np.multiply: Operation(lambda a, b: a * b, _LOGIC),
    np.divide: Operation(lambda a, b: a / b, "f", cost=12),
    np.negative: Operation(lambda x: -x, "if"),
    np.positive: Operation(lambda x: x),
    np.absolute: Operation(_abs, _LOGIC),
    np.square: Operation(lambda x: x * x, _LOGIC),
    np.sqrt: Operation(root, "f", cost=15, numpy=38),
    np.reciprocal: Operation(lambda x: 1.0 / x, "f", cost=12),
    np.maximum: Operation(_maximum, _LOGIC, cost=4),
    np.minimum: Operation(_minimum, _LOGIC, cost=4),
    np.fmax: Operation(_fmax, "f", False, cost=4),  # of 0 and -0 NumPy gives now one, now the other
    np.fmin: Operation(_fmin, "f", False, cost=4),
    relu.op.kernel: Operation(_relu),
    kernels.leaky_relu: Operation(_leaky_relu, "f", cost=6),
    np.sign: Operation(_sign, cost=6, numpy=44),
    np.copysign: Operation(copysign, "f"),
    np.floor: Operation(_rounded("floor"), _LOGIC),
    np.ceil: Operation(_rounded("ceil"), _LOGIC),
    np.trunc: Operation(_rounded("trunc"), _LOGIC),
    np.rint: Operation(_rounded("roundeven"), "iuf"),
    np.equal: Operation(lambda a, b: a.equals(b), _LOGIC),
    np.not_equal: Operation(lambda a, b: a.differs(b), _LOGIC),
    np.less: Operation(lambda a, b: a < b, _LOGIC),
    np.less_equal: Operation(lambda a, b: a <= b, _LOGIC),
    np.greater: Operation(lambda a, b: a > b, _LOGIC),
    np.greater_equal: Operation(lambda a, b: a >= b, _LOGIC),
    np.isnan: Operation(lambda x: x.is_nan(), "f"),
    np.isinf: Operation(lambda x: absolute(x).equals(INF), "f"),
    np.isfinite: Operation(_is_finite, "f"),
    np.signbit: Operation(lambda x: x.reinterpreted(f"i{x.kind[1:]}") < 0, "f"),
    np.logical_and: Operation(_logical("and"), _LOGIC),
    np.logical_or: Operation(_logical("or"), _LOGIC),
    np.logical_xor: Operation(_logical("xor"), _LOGIC),
    np.logical_not: Operation(lambda x: ~x.converted("b1"), _LOGIC),
    np.bitwise_and: Operation(lambda a, b: a & b, "biu"),
    np.bitwise_or: Operation(lambda a, b: a | b, "biu"),
    np.bitwise_xor: Operation(lambda a, b: a ^ b, "biu"),
    np.invert: Operation(lambda x: ~x, "biu"),
    np.left_shift: Operation(_left_shift, "iu", cost=6),
    np.right_shift: Operation(_right_shift, "iu", cost=6),
    kernels.floor_of_quotient: Operation(_floor_divide, "iu", cost=16, numpy=60),
    np.floor_divide: Operation(_floor_divide, "iu", cost=16, numpy=60),
    np.remainder: Operation(_remainder, "iu", cost=20, numpy=120),
    np.heaviside: Operation(_heaviside, "f", cost=6, numpy=167),
    np.deg2rad: Operation(_scaled_by(np.deg2rad), "f", numpy=140),
    np.rad2deg: Operation(_scaled_by(np.rad2deg), "f", numpy=140),
    kernels.where: Operation(_where, _LOGIC),
    kernels.select: Operation(_select, _LOGIC),
    kernels.keep_where_positive: Operation(lambda y, x: _select(y > 0, x)),
    kernels.mask_bits: Operation(_mask_bits, "b"),
    kernels.keep_bits: Operation(_keep_bits),
    kernels.astype: Operation(_as_dtype, _LOGIC),
    np.exp: _function(exponential.exp, 26, 48),
    np.expm1: _function(exponential.expm1, 50, 37),
    np.log: _function(exponential.log, 37, 40),
    np.log1p: _function(exponential.log1p, 58, 44),
    np.log2: _function(exponential.log2, 48, 24),
    np.log10: _function(exponential.log10, 51, 25),
    kernels.logaddexp: _function(exponential.logaddexp, 129, 186),
    kernels.log1mexp: _function(exponential.log1mexp, 236, 585),
    kernels.xlogy: _function(exponential.xlogy, 50, 93),
    kernels.xlog1py: _function(exponential.xlog1py, 62, 100),
    special.logit: _function(exponential.logit, 142, 427),
    np.exp2: _function(exponential.exp2, 66, 23),
    np.cbrt: _function(powers.cbrt, 187, 32),
    np.power: _function(powers.power, 296, 68),
    np.hypot: _function(powers.hypot, 56, 383),
    np.sin: _function(circular.sin, 60, 55),
    np.cos: _function(circular.cos, 60, 55),
    np.tan: _function(circular.tan, 160, 43),
    np.arcsin: _function(circular.asin, 99, 40),
    np.arccos: _function(circular.acos, 123, 43),
    np.arctan: _function(circular.atan, 112, 42),
    np.arctan2: _function(circular.atan2, 163, 61),
    np.sinh: _function(hyperbolic.sinh, 100, 37),
    np.cosh: _function(hyperbolic.cosh, 87, 35),
    np.tanh: _function(hyperbolic.tanh, 48, 38),
    np.arcsinh: _function(hyperbolic.asinh, 233, 71),
    np.arccosh: _function(hyperbolic.acosh, 331, 64),
    np.arctanh: _function(hyperbolic.atanh, 223, 52),
    kernels.sigmoid: _function(exponential.sigmoid, 70, 94),
    kernels.softplus: _function(exponential.softplus, 120, 167),
    special.erf: _function(gaussian.erf, 62, 988),
    special.erfc: _function(gaussian.erfc, 167, 685),
    special.ndtr: _function(gaussian.ndtr, 87, 680),
    special.erfcx: _function(gaussian.erfcx, 246, 336),
    special.erfinv: _function(gaussian.erfinv, 413, 1300),
    special.erfcinv: _function(gaussian.erfcinv, 425, 1450),
    special.ndtri: _function(gaussian.ndtri, 430, 1280),
    special.log_ndtr: _function(gaussian.log_ndtr, 640, 542),
    gamma_kernels.polygamma: Operation(
        lambda x, order: gamma.digamma(x), "f", False, 630, 7000, {"order": 0}
    ),
}
# By how a program writes the kernel: that of SciPy is not imported for this.
OF_SOURCE: Mapping[Any, Operation] = {
    "scipy.special.gammaln": _function(gamma.gammaln, 560, 1050),
}
# By a positive constant only: others divide element by element, and NumPy does that as fast.
QUOTIENTS = (kernels.floor_of_quotient, np.floor_divide, np.remainder)
# Of 0 and -0 in float16 NumPy gives the first, elsewhere the second.
EXTREMA = (np.maximum, np.minimum, relu.op.kernel, kernels.leaky_relu)
# How a reduction joins two partial results, and what it starts from (of floats, of integers).
JOINS: Mapping[str, Callable[[Value, Value], Value]] = {
    "add": lambda a, b: a + b,
    "maximum": _maximum,
    "minimum": _minimum,
}


def constant(code: Code, node: Node) -> Value:
    """A constant that is one number."""
    return code.constant(kind_in(node), np.asarray(computed(node, [], dict(node.attrs))).item())


def emitted(node: Node, values: Sequence[Value]) -> Value:
    """The code of one op."""
    if node.op in VIEWS:
        return values[0]
    found = operation(node.op)
    assert found is not None
    if node.op.kernel is not kernels.keep_bits:
        values = [v.converted("f4") if v.kind == "f2" else v for v in values]
    made = found.write(*values, **dict(node.attrs))
    return made.converted("f2") if node.tensor.dtype == np.float16 else made

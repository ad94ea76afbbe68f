"""Intervals that hold what exact arithmetic gives: ops on arrays of lower and upper ends.

Ends are long doubles and are rounded outwards. IEEE 754 rounds +, -, *, / and sqrt correctly; of
libm's other functions in long double an error of 8 units in the last place is allowed for (glibc
documents at most 5), of SciPy's in double one of 64. Where the interval of a mask holds both
answers, both branches count. See Moore, Kearfott and Cloud, Introduction to Interval Analysis,
2009; for products of matrices by midpoint and radius, Rump, Fast and parallel interval arithmetic,
1999.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir.long_double import WIDE
from symgrad.ir.node import Node

EPS, TINY = np.finfo(WIDE).eps, np.finfo(WIDE).tiny
LIBM, SCIPY = 8, 64


class Interval(NamedTuple):
    """Arrays of lower and upper ends; of masks, whether they hold surely, and whether possibly."""

    low: Any
    high: Any

    @staticmethod
    def point(value: Any) -> Interval:
        """An array that is known exactly."""
        array = np.asarray(value)
        array = array.astype(WIDE) if array.dtype.kind == "f" else array
        return Interval(array, array)

    @property
    def is_point(self) -> bool:
        """Whether it holds one array only."""
        return self.low is self.high or np.array_equal(self.low, self.high)

    @property
    def size(self) -> Any:
        """The largest magnitude in it."""
        return np.fmax(np.abs(self.low), np.abs(self.high))


class UnboundedError(Exception):
    """No interval is known for the result of an op."""


def outward(low: Any, high: Any, units: float = 1, unit: Any = EPS) -> Interval:
    """Ends that were rounded, by so many units in the last place, moved away from each other."""
    low = low - units * (unit * np.abs(low) + TINY)
    high = high + units * (unit * np.abs(high) + TINY)
    return Interval(np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))


def hull(*ends: Any, units: float = 1) -> Interval:
    """The least interval that holds all of some values, rounded outwards; NaN is anything."""
    low, high = ends[0], ends[0]
    for x in ends[1:]:
        low, high = np.minimum(low, x), np.maximum(high, x)
    return outward(low, high, units)


# Functions that grow: of long doubles, and within which ends they are defined.
INCREASING: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
        "log10": np.log10, "log1p": np.log1p, "cbrt": np.cbrt, "asin": np.arcsin,
        "acosh": np.arccosh, "atan": np.arctan, "asinh": np.arcsinh, "atanh": np.arctanh,
        "sinh": np.sinh, "tanh": np.tanh, "deg2rad": np.deg2rad, "rad2deg": np.rad2deg,
        "sqrt": np.sqrt,
    }
)  # fmt: skip
EXACT: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "sign": np.sign}
)
BY_SCIPY = ("erf", "erfc", "ndtr")


class Table:
    """Elementwise ops on intervals: each method is called as its op, with the node at the end."""

    def lookup(self, node: Node) -> Callable[..., Interval]:
        """The op of a node on intervals. Raises `UnboundedError` if none is known."""
        name = node.op.name
        if hasattr(self, name):
            found: Callable[..., Interval] = getattr(self, name)
            return found
        if name in INCREASING:
            function = INCREASING[name]
            return lambda a, node: outward(function(a.low), function(a.high), LIBM)
        if name in EXACT:
            exact = EXACT[name]
            return lambda a, node: Interval(exact(a.low), exact(a.high))
        if name in BY_SCIPY:
            return self._by_scipy
        raise UnboundedError(f"no bound is known for {name}")

    def _by_scipy(self, a, node):
        """A monotone function of SciPy's."""
        ends = [node.op.kernel(np.asarray(x, np.float64)).astype(WIDE) for x in a]
        low, high = np.fmin(*ends), np.fmax(*ends)
        slack = np.fmax(a.size * np.finfo(np.float64).eps, TINY)  # ends were rounded to double
        found = outward(low, high, SCIPY, np.finfo(np.float64).eps)
        return Interval(found.low - 2 * slack, found.high + 2 * slack)

    # ---- arithmetic -------------------------------------------------------------------------

    def add(self, a, b, node):
        return outward(a.low + b.low, a.high + b.high)

    def subtract(self, a, b, node):
        return outward(a.low - b.high, a.high - b.low)

    def negative(self, a, node):
        return Interval(-a.high, -a.low)

    def positive(self, a, node):
        return a

    def multiply(self, a, b, node):
        if a.is_point and b.is_point:
            product = a.low * b.low
            return outward(product, product)
        products = [x * y for x in a for y in b]
        return hull(*(np.where(np.isnan(p), 0, p) for p in products))  # 0 * inf, at an end

    def divide(self, a, b, node):
        safe = (b.low > 0) | (b.high < 0)
        quotients = [x / y for x in a for y in b]
        low, high = hull(*quotients)
        return Interval(np.where(safe, low, -np.inf), np.where(safe, high, np.inf))

    def reciprocal(self, a, node):
        return self.divide(Interval.point(np.ones((), WIDE)), a, node)

    def abs(self, a, node):
        least = np.where((a.low <= 0) & (a.high >= 0), 0, np.fmin(np.abs(a.low), np.abs(a.high)))
        return Interval(least, a.size)

    def square(self, a, node):
        least, most = self.abs(a, node)
        found = outward(least * least, most * most)
        return Interval(np.fmax(found.low, 0), found.high)

    def cosh(self, a, node):
        least, most = self.abs(a, node)
        return outward(np.cosh(least), np.cosh(most), LIBM)

    def acos(self, a, node):
        return outward(np.arccos(a.high), np.arccos(a.low), LIBM)

    def sin(self, a, node):
        return self._lipschitz(np.sin, a)

    def cos(self, a, node):
        return self._lipschitz(np.cos, a)

    def _lipschitz(self, function, a):
        """Within -1 and 1, and no further from the middle than the operand."""
        middle = (a.low + a.high) / 2
        radius = np.fmax(a.high - middle, middle - a.low)
        value = function(middle)
        radius = radius + LIBM * EPS * (np.abs(value) + radius)  # which the sums may not show
        found = outward(value - radius, value + radius)
        return Interval(np.fmax(found.low, -1), np.fmin(found.high, 1))

    def remainder(self, a, b, node):
        times = self.divide(a, b, node)
        times = Interval(np.floor(times.low), np.floor(times.high))
        found = self.subtract(a, self.multiply(times, b, node), node)
        # It has the sign of b, and may fall from b to 0.
        least, most = np.where(b.low < 0, b.low, 0), np.where(b.high > 0, b.high, 0)
        known = times.low == times.high
        low = np.where(known, np.fmax(found.low, least), least)
        return Interval(low, np.where(known, np.fmin(found.high, most), most))

    def tan(self, a, node):
        return self.divide(self.sin(a, node), self.cos(a, node), node)

    def pow(self, a, b, node):
        if b.is_point and (b.low == np.rint(b.low)).all():
            even = np.mod(b.low, 2) == 0
            least, most = self.abs(a, node)
            across = (a.low <= 0) & (a.high >= 0) & (b.low < 0)
            low, high = hull(
                np.power(np.where(even, least, a.low), b.low),
                np.power(np.where(even, most, a.high), b.low),
                units=LIBM,
            )
            return Interval(np.where(across, -np.inf, low), np.where(across, np.inf, high))
        # Of what is negative only whole powers are real, which an interval may hold; so is -0.
        whole = ~((b.low == b.high) & (b.low != np.rint(b.low)))
        real = (a.low < 0) & whole
        pole = (a.low <= 0) & (a.high >= 0) & (b.low < 0) & whole
        least, most = self.abs(a, node)
        base = np.where(real, least, np.fmax(a.low, 0)), np.where(real, most, a.high)
        low, high = hull(*(np.power(x, y) for x in base for y in b), units=LIBM)
        low, high = np.where(real, -high, low), np.where(pole, np.inf, high)
        return Interval(np.where(pole, -np.inf, low), high)

    def hypot(self, a, b, node):
        total = self.add(self.square(a, node), self.square(b, node), node)
        return outward(np.sqrt(np.fmax(total.low, 0)), np.sqrt(total.high))

    def logaddexp(self, a, b, node):
        low, high = np.logaddexp(a.low, b.low), np.logaddexp(a.high, b.high)
        slack = LIBM * EPS * np.fmax(a.size, b.size)  # the larger one may cancel
        return outward(low - slack, high + slack, 2 * LIBM)

    def softplus(self, a, node):
        zero = WIDE.type(0)
        return outward(np.logaddexp(zero, a.low), np.logaddexp(zero, a.high), 2 * LIBM)

    def sigmoid(self, a, node):
        low, high = (1 / (1 + np.exp(-x)) for x in a)
        return outward(low, high, 2 * LIBM)

    def xlogy(self, a, b, node):
        found = self.multiply(a, outward(np.log(b.low), np.log(b.high), LIBM), node)
        zero = (a.low == 0) & (a.high == 0)
        return Interval(np.where(zero, 0, found.low), np.where(zero, 0, found.high))

    def astype(self, a, node):
        kind, other = node.dtype.kind, node.inputs[0].dtype.kind
        if kind == "f":
            return Interval(a.low.astype(WIDE), a.high.astype(WIDE))
        if kind == "b" and other != "b":
            return self.not_equal(a, Interval.point(np.zeros((), a.low.dtype)), node)
        low, high = (np.asarray(x).astype(node.dtype) for x in a)
        if not np.array_equal(low, high):
            raise UnboundedError("rounding decides which integer it is")
        return Interval(low, high)

    # ---- choices ----------------------------------------------------------------------------

    def relu(self, a, node):
        return Interval(np.maximum(a.low, 0), np.maximum(a.high, 0))

    def leaky_relu(self, a, node):
        slope = WIDE.type(np.asarray(node.attr("slope"), node.dtype))
        scaled = self.multiply(a, Interval.point(slope), node)
        return self.where(self.greater(a, Interval.point(WIDE.type(0)), node), a, scaled, node)

    def maximum(self, a, b, node):
        return Interval(np.maximum(a.low, b.low), np.maximum(a.high, b.high))

    def minimum(self, a, b, node):
        return Interval(np.minimum(a.low, b.low), np.minimum(a.high, b.high))

    def where(self, mask, a, b, node):
        low = np.where(mask.low, a.low, np.where(mask.high, np.minimum(a.low, b.low), b.low))
        high = np.where(mask.low, a.high, np.where(mask.high, np.maximum(a.high, b.high), b.high))
        return Interval(low, high)

    def select(self, mask, a, node):
        zero = Interval.point(np.zeros((), a.low.dtype))
        return self.where(mask, a, zero, node)

    def greater(self, a, b, node):
        return Interval(a.low > b.high, a.high > b.low)

    def greater_equal(self, a, b, node):
        return Interval(a.low >= b.high, a.high >= b.low)

    def less(self, a, b, node):
        return self.greater(b, a, node)

    def less_equal(self, a, b, node):
        return self.greater_equal(b, a, node)

    def equal(self, a, b, node):
        points = (a.low == a.high) & (b.low == b.high)
        return Interval(points & (a.low == b.low), (a.low <= b.high) & (b.low <= a.high))

    def not_equal(self, a, b, node):
        low, high = self.equal(a, b, node)
        return Interval(~high, ~low)

    def isfinite(self, a, node):
        ends = np.isfinite(a.low) & np.isfinite(a.high)
        return Interval(ends, np.ones_like(ends))

    def isnan(self, a, node):
        low, high = self.isfinite(a, node)
        return Interval(~high, ~low)

    isinf = isnan

    def _mask(self, a):
        """Where it is not 0."""
        if a.low.dtype.kind == "b":
            return a
        zero = Interval.point(np.zeros((), a.low.dtype))
        low, high = self.equal(a, zero, None)
        return Interval(~high, ~low)

    def logical_not(self, a, node):
        low, high = self._mask(a)
        return Interval(~high, ~low)

    def logical_and(self, a, b, node):
        a, b = self._mask(a), self._mask(b)
        return Interval(a.low & b.low, a.high & b.high)

    def logical_or(self, a, b, node):
        a, b = self._mask(a), self._mask(b)
        return Interval(a.low | b.low, a.high | b.high)

    def logical_xor(self, a, b, node):
        a, b = self._mask(a), self._mask(b)
        known = (a.low == a.high) & (b.low == b.high)
        return Interval(known & (a.low ^ b.low), ~known | (a.low ^ b.low))

    # ---- sums and products ------------------------------------------------------------------

    def summed(self, a: Interval, axis: Any, keepdims: bool = False) -> Interval:
        """The sum over axes; each of n additions is rounded."""
        ends = (np.sum(x, axis=axis, keepdims=keepdims) for x in a)
        count = int(np.prod([a.low.shape[k] for k in axis])) if axis is not None else a.low.size
        slack = (count + 1) * (EPS * np.sum(a.size, axis=axis, keepdims=keepdims) + TINY)
        low, high = ends
        return outward(low - slack, high + slack)

    def running_sum(self, a, node):
        axis = node.attr("axis")
        turned = (lambda x: np.flip(x, axis)) if node.attr("reverse") else (lambda x: x)
        return self.added(a, lambda x: turned(np.cumsum(turned(x), axis=axis)), a.low.shape[axis])

    def added(self, a: Interval, sums: Callable[..., Any], count: int) -> Interval:
        """A function whose results are sums of at most so many elements."""
        low, high, size = map(sums, (*a, a.size))
        slack = (count + 1) * (EPS * size + TINY)
        return outward(low - slack, high + slack)

    def sum(self, a, node):
        return self.summed(a, node.attr("axis"), node.attr("keepdims"))

    def matmul(self, a, b, node):
        return self.product(a, b, np.matmul, a.low.shape[-1])

    def product(self, a: Interval, b: Interval, times: Callable[..., Any], terms: int) -> Interval:
        """A function that is linear in both, whose results are sums of at most so many products."""
        middles, radii = zip(*(self._middle(x) for x in (a, b)), strict=True)
        (p, q), (r, s) = middles, radii
        value = times(p, q)
        count = terms + 4
        sizes = times(np.abs(p), np.abs(q))
        slack = times(np.abs(p) + r, s) + times(r, np.abs(q))
        slack = (1 + 2 * count * EPS) * slack + count * (EPS * sizes + TINY)
        return outward(value - slack, value + slack, 2)

    @staticmethod
    def _middle(a):
        middle = (a.low + a.high) / 2
        radius = np.fmax(a.high - middle, middle - a.low)
        return middle, radius * (1 + 2 * EPS)

    def norm2(self, a, node):
        total = self.summed(self.square(a, node), node.attr("axis"), node.attr("keepdims"))
        return outward(np.sqrt(np.fmax(total.low, 0)), np.sqrt(total.high))

    def vecdot(self, a, b, node):
        return self.summed(self.multiply(a, b, node), (-1,), node.attr("keepdims"))

    def prod(self, a, node):
        axes = sorted(node.attr("axis"))
        for k in axes:
            parts = [
                Interval(x, y) for x, y in zip(*(np.moveaxis(e, k, 0) for e in a), strict=True)
            ]
            found = Interval.point(np.ones(a.low.shape[:k] + a.low.shape[k + 1 :], WIDE))
            for part in parts:
                found = self.multiply(found, part, node)
            a = Interval(*(np.expand_dims(e, k) for e in found))
        return a if node.attr("keepdims") else Interval(*(np.squeeze(e, tuple(axes)) for e in a))

    def _exps(self, a, axis):
        """The exponentials of what is left of the largest one, which is in no sum."""
        most = np.max(a.high, axis=axis, keepdims=True)
        less = outward(a.low - most, a.high - most)
        return most, outward(np.exp(less.low), np.exp(less.high), LIBM)

    def logsumexp(self, a, node):
        axis = node.attr("axis")
        most, e = self._exps(a, axis)
        total = self.summed(e, axis, True)
        logs = outward(np.log(total.low), np.log(total.high), LIBM)
        found = outward(most + logs.low, most + logs.high)
        return found if node.attr("keepdims") else Interval(*(np.squeeze(e, axis) for e in found))

    def softmax(self, a, node):
        e = self._exps(a, node.attr("axis"))[1]
        return self.divide(e, self.summed(e, node.attr("axis"), True), node)

    def log_softmax(self, a, node):
        most, e = self._exps(a, node.attr("axis"))
        total = self.summed(e, node.attr("axis"), True)
        logs = outward(np.log(total.low) + most, np.log(total.high) + most, 2 * LIBM)
        return self.subtract(a, logs, node)

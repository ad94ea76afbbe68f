"""The table of ops, element by element: those that are no ufunc of a name that JAX knows as well.

Each method is called as its op, takes arrays of JAX's and the op's attributes, and gives what the
op's kernel gives of NumPy's. Dtypes need no care: a result is converted to that of the op's type.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from math import pi, prod
from typing import Any

import numpy as np


class Elementwise:
    """Ops that work element by element."""

    def __init__(self, jax: Any) -> None:
        self.jax, self.jnp, self.lax = jax, jax.numpy, jax.lax

    def failing(self, bad):
        """Note that the op fails if any element of this is true."""
        raise NotImplementedError

    # ---- conversions and bits ---------------------------------------------------------------

    def astype(self, x, dtype):
        return (
            x.real.astype(dtype) if x.dtype.kind == "c" and dtype.kind in "iuf" else x.astype(dtype)
        )

    def real(self, x):
        return self.jnp.real(x)

    def imag(self, x):
        return self.jnp.imag(x)

    def mask_bits(self, mask, dtype):
        return self.jnp.where(mask, -1, 0).astype(f"i{np.dtype(dtype).itemsize}")

    def keep_bits(self, bits, x):
        return self.jnp.where(bits != 0, x, self.jnp.zeros((), x.dtype))

    def select(self, mask, x):
        return self.jnp.where(mask, x, self.jnp.zeros((), x.dtype))

    def keep_where_positive(self, y, x):
        return self.select(y > 0, x)

    def where(self, condition, a, b):
        return self.jnp.where(condition, a, b)

    def binary_exponent(self, x):
        return self.jnp.frexp(x)[1]

    # ---- arithmetic -------------------------------------------------------------------------

    def floor_divide(self, x, y):
        """Of whole numbers x // 0 is 0, as NumPy has it."""
        if x.dtype.kind != "f":
            return self._by(self.jnp.floor_divide, x, y)
        quotient = x / y
        found = self.jnp.where(y == 0, quotient, self.jnp.floor_divide(x, y))
        return self.jnp.where(self.jnp.isinf(x) | self.jnp.isinf(y), quotient, found)

    def times(self, x, y):
        if x.dtype.kind != "f":
            return self._by(self.jnp.floor_divide, x, y)
        found = self.jnp.where(self.jnp.isinf(x), self.jnp.nan, self.jnp.floor_divide(x, y))
        return self.jnp.where(y == 0, x / y, found)

    def remainder(self, x, y):
        return self._by(self.jnp.remainder, x, y)

    def fmod(self, x, y):
        return self._by(self.jnp.fmod, x, y)

    def divmod(self, x, y):
        return self.floor_divide(x, y), self.remainder(x, y)

    def _by(self, function, x, y):
        if x.dtype.kind == "f":
            return function(x, y)
        found = function(x, self.jnp.where(y == 0, 1, y))
        return self.jnp.where(y == 0, 0, found)

    def pow(self, x, y):
        if y.dtype.kind == "i":
            self.failing(y < 0)
        if y.dtype.kind in "iu":
            return self._power(x, y)
        found = self.jnp.power(x, y)
        if found.dtype.kind == "c":
            return self.jnp.where((x == 0) & (self.jnp.real(y) > 0), 0, found)
        return found

    def _power(self, x, y):
        """The power of whole numbers, by all bits of the exponent: JAX takes the lowest six."""

        def step(_, carried):
            made, x, y = carried
            return self.jnp.where((y & 1) != 0, made * x, made), x * x, y >> 1

        x, y = self.jnp.broadcast_arrays(x, y)
        begin = (self.jnp.ones_like(x), x, y)
        return self.lax.fori_loop(0, 8 * y.dtype.itemsize, step, begin)[0]

    def heaviside(self, x, y):
        return self.jnp.heaviside(x, y)

    # ---- activations and logarithms ---------------------------------------------------------

    def relu(self, x):
        return self.jnp.maximum(x, self.jnp.zeros((), x.dtype))

    def leaky_relu(self, x, slope):
        if slope == 0:
            return self.relu(x)
        choose = self.jnp.maximum if slope <= 1 else self.jnp.minimum
        return choose(x, x * slope)

    def sigmoid(self, x):
        return 1 / (1 + self.jnp.exp(-x))

    def softplus(self, x):
        return self.jnp.maximum(x, 0) + self.jnp.log1p(self.jnp.exp(-abs(x)))

    def logaddexp(self, x, y):
        return self.jnp.logaddexp(x, y)

    def log1mexp(self, x):
        near = self.jnp.log(-self.jnp.expm1(x))
        return self.jnp.where(x > -0.6931471805599453, near, self.jnp.log1p(-self.jnp.exp(x)))

    def xlogy(self, x, y):
        return self.jnp.where((x == 0) & (y == y), 0, x * self.jnp.log(y))

    def xlog1py(self, x, y):
        return self.jnp.where((x == 0) & (y == y), 0, x * self.jnp.log1p(y))

    def _magnitude(self, x):
        """|x|, of the least integer, too, which has no opposite of its dtype."""
        size = self.jnp.abs(x)
        return size.astype(f"u{x.dtype.name}") if x.dtype.kind == "i" else size

    def gcd(self, a, b):
        """JAX's does not end for the least integer of a dtype."""
        return self.jnp.gcd(self._magnitude(a), self._magnitude(b))

    def lcm(self, a, b):
        a, b = self._magnitude(a), self._magnitude(b)
        return a // self.jnp.maximum(self.jnp.gcd(a, b), 1) * b

    def _log_of_quotient(self, a, b):
        """log(a / b), also where the quotient has lost digits, being small."""
        log, tiny = self.jnp.log, np.finfo(a.dtype).tiny
        return self.jnp.where(abs(a / b) < tiny, log(a) - log(b), log(a / b))

    def rel_entr(self, a, b):
        past = (a - b) / b
        near = self.jnp.log1p(past)
        y = a * self.jnp.where(abs(past) < 0.5, near, self._log_of_quotient(a, b))
        return self._entropy(a, b, y, 0)

    def kl_div(self, a, b):
        past = (a - b) / b
        near = abs(past) < 0.1
        t = self.jnp.where(near, past, 0)
        series = 0
        for k in range(18, 1, -1):
            series = (1 if k % 2 == 0 else -1) / (k * (k - 1)) + t * series
        far = a * self._log_of_quotient(a, b) + b - a
        return self._entropy(a, b, self.jnp.where(near, b * t * t * series, far), b)

    def _entropy(self, a, b, y, at_zero):
        """The value y of an entropy, and what it is at its ends."""
        y = self.jnp.where((a == 0) & (b >= 0), at_zero, y)
        y = self.jnp.where((a < 0) | (b < 0) | ((a > 0) & (b == 0)), self.jnp.inf, y)
        return self.jnp.where(self.jnp.isnan(a) | self.jnp.isnan(b), self.jnp.nan, y)

    def sinc(self, x, order):
        jnp = self.jnp
        y = jnp.sinc(x)
        if not order:
            return y
        near = abs(x) <= 1 + order / 8
        away = jnp.where(near, 1, x)
        for n in range(1, order + 1):
            y = (pi ** (n - 1) * jnp.sin(pi * away + n * pi / 2) - n * y) / away
        z = jnp.where(near, pi * x, 0)
        first = order % 2
        term = (-1) ** ((order + first) // 2) * pi**order * z**first
        series = term / (order + first + 1)
        for m in range(first + 2, 40, 2):
            term = term * (-z * z / (m * (m - 1)))
            series = series + term / (order + m + 1)
        return jnp.where(near, series, y)

    # ---- complex numbers --------------------------------------------------------------------

    def _mirrored(self, function, x, odd=False):
        """A function with branch cuts, whose sides the sign of 0 tells apart, which XLA drops.

        It is computed in the upper half-plane, an odd one in the first quadrant.
        """
        if x.dtype.kind != "c":
            return function(x)
        y = function(self.lax.complex(abs(x.real) if odd else x.real, abs(x.imag)))
        real = self._signed(y.real, x.real) if odd else y.real
        return self.lax.complex(real, self._signed(y.imag, x.imag))

    def _signed(self, y, x):
        return self.jnp.where(self.jnp.signbit(x), -y, y)

    def sqrt(self, x):
        return self._mirrored(self.jnp.sqrt, x)

    def acos(self, x):
        return self._mirrored(self.jnp.arccos, x)

    def acosh(self, x):
        return self._mirrored(self.jnp.arccosh, x)

    def asin(self, x):
        return self._mirrored(self.jnp.arcsin, x, odd=True)

    def asinh(self, x):
        return self._mirrored(self.jnp.arcsinh, x, odd=True)

    def complex_expm1(self, x):
        finite = self.jnp.isfinite(x.real)
        ends, y = self.jnp.exp(x), self.jnp.expm1(x)
        real = self.jnp.where(finite, y.real + 0, ends.real - 1)
        return self.lax.complex(real, self.jnp.where(finite, y.imag, ends.imag))

    def complex_tanh(self, x):
        y = self.jnp.tanh(x)
        end = self.jnp.copysign(self.jnp.zeros((), y.imag.dtype), x.imag)
        return self.lax.complex(y.real, self.jnp.where(self.jnp.isinf(x.real), end, y.imag))

    def complex_sign(self, x):
        return self.jnp.where(self.jnp.isnan(x), complex(np.nan, np.nan), self.jnp.sign(x))


class Reductions(Elementwise):
    """Ops over whole axes."""

    def sum(self, x, axis, keepdims, dtype):
        return self.jnp.sum(x, axis, dtype=dtype, keepdims=keepdims)

    def prod(self, x, axis, keepdims, dtype):
        return self.jnp.prod(x, axis, dtype=dtype, keepdims=keepdims)

    def max(self, x, axis, keepdims):
        return self._extremum(self.jnp.max, x, axis, keepdims)

    def min(self, x, axis, keepdims):
        return self._extremum(self.jnp.min, x, axis, keepdims)

    def _extremum(self, function, x, axis, keepdims):
        """Of complex numbers it is NaN where one is, which JAX passes over."""
        y = function(x, axis, keepdims=keepdims)
        if x.dtype.kind != "c":
            return y
        return self.jnp.where(self.jnp.any(self.jnp.isnan(x), axis, keepdims=keepdims), np.nan, y)

    def all(self, x, axis, keepdims):
        return self.jnp.all(x != 0, axis, keepdims=keepdims)

    def any(self, x, axis, keepdims):
        return self.jnp.any(x != 0, axis, keepdims=keepdims)

    def argmax(self, x, axis):
        return self.jnp.argmax(x, axis)

    def argmin(self, x, axis):
        return self.jnp.argmin(x, axis)

    def vdot(self, a, b):
        return self.jnp.vdot(a, b)

    def vecdot(self, a, b, keepdims):
        y = self.jnp.vecdot(a, b)
        return y[..., None] if keepdims else y

    def matmul_tn(self, a, b):
        return self.lax.dot_general(a, b, (((0,), (0,)), ((), ())))

    def row_sums(self, x, keepdims):
        return self.jnp.sum(x, -1, keepdims=keepdims)

    def _wide(self, x):
        return np.result_type(x.dtype, np.float32)

    def logsumexp(self, x, axis, keepdims):
        top = self.jnp.max(x, axis, keepdims=True, initial=-np.inf)
        shift = self.jnp.where(self.jnp.isfinite(top), top, 0)
        total = self.jnp.sum(self.jnp.exp(x - shift), axis, dtype=self._wide(x), keepdims=True)
        y = self.jnp.log(total) + shift
        return y if keepdims else self.jnp.squeeze(y, axis)

    def _away(self, x, axis):
        """Distances from the largest, their exponentials, and the sum of these.

        The sum is NaN where the largest is not finite, and divides nothing then. Asked of it, and
        not of the largest, XLA takes the maximum and the distances in one loop.
        """
        top = self.jnp.max(x, axis, keepdims=True, initial=-np.inf)
        away = x - top
        powers = self.jnp.exp(away)
        total = self.jnp.sum(powers, axis, dtype=self._wide(x), keepdims=True)
        return away, powers, self.jnp.where(self.jnp.isnan(total), 1, total)

    def softmax(self, x, axis):
        _, powers, total = self._away(x, axis)
        return powers / total

    def log_softmax(self, x, axis):
        away, _, total = self._away(x, axis)
        return away - self.jnp.log(total).astype(x.dtype)

    def norm2(self, x, axis, keepdims):
        """Scaled by the largest element, where squares overflow or vanish."""
        x = x.astype(self._wide(x))
        y = self.jnp.sqrt(self.jnp.sum(x * x, axis, keepdims=True))
        limits = np.finfo(x.dtype)
        top = self.jnp.max(abs(x), axis, keepdims=True, initial=0)
        scale = self.jnp.where((top > 0) & (top < np.inf), top, 1)
        scaled = scale * self.jnp.sqrt(
            self.jnp.sum(self.jnp.square(x / scale), axis, keepdims=True)
        )
        good = (y > np.sqrt(limits.tiny / limits.eps)) & (y < np.inf)
        y = self.jnp.where(good, y, scaled)
        return y if keepdims else self.jnp.squeeze(y, axis)

    def running_sum(self, x, axis, reverse):
        return self.lax.cumsum(x, axis, reverse)

    def products_before(self, x, axis, reverse):
        every = self.lax.cumprod(x, axis, reverse)
        ones = self.jnp.ones(
            (*x.shape[:axis], min(1, x.shape[axis]), *x.shape[axis + 1 :]), x.dtype
        )
        size = x.shape[axis]
        if reverse:
            return self.jnp.concatenate([self._part(every, axis, 1, size), ones], axis)
        return self.jnp.concatenate([ones, self._part(every, axis, 0, max(size - 1, 0))], axis)

    def _part(self, x, axis, start, stop):
        return self.lax.slice_in_dim(x, min(start, x.shape[axis]), stop, axis=axis)

    def running_extremum(self, x, axis, largest):
        x = x.astype("uint8") if x.dtype == bool else x  # of truth values JAX has none
        return (self.lax.cummax if largest else self.lax.cummin)(x, axis)

    def scan(self, a, b, axis, reverse):
        a, b = (self.jnp.moveaxis(x, axis, 0) for x in (a, b))

        def step(y, pair):
            return pair[0] * y + pair[1], y

        zeros = self.jnp.zeros(prod(b.shape[1:], start=1), b.dtype).reshape(b.shape[1:])
        _, y = self.lax.scan(step, zeros, (a, b), reverse=reverse)
        return self.jnp.moveaxis(y, 0, axis)

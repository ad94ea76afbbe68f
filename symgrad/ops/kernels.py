"""Kernels that NumPy does not have as one function.

Each uses nothing but NumPy and its own arguments, because its source is copied into the
stand-alone programs that symgrad writes. `out` may be the memory of an operand.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import numpy as np


def arange_from(start, step, count, dtype):
    """start + step * i for i below count."""
    return (start + np.arange(count) * step).astype(dtype)


def ones_on_diagonal(n_rows, n_cols, k, dtype):
    """A matrix of zeros with ones on its k-th diagonal."""
    return np.eye(n_rows, n_cols, k, dtype=dtype)


def select(mask, x, out=None, scratch=None):
    """x where the mask holds, 0 elsewhere, by its bits: exact for inf and NaN, and fast."""
    if scratch is None:
        if out is None:
            out = np.empty(np.broadcast_shapes(np.shape(mask), np.shape(x)), np.asarray(x).dtype)
        np.copyto(out, x)
        np.copyto(out, False, where=np.logical_not(mask))
        return out[()]
    bits = f"i{x.dtype.itemsize}"
    np.negative(np.asarray(mask).view(np.int8), scratch)
    np.bitwise_and(x.view(bits), scratch, out.view(bits))
    return out


def keep_where_positive(y, x, out=None, scratch=None):
    """x where y > 0, 0 elsewhere, by its bits: the backward of relu in three passes."""
    if scratch is None:
        if out is None:
            out = np.empty(np.broadcast_shapes(np.shape(y), np.shape(x)), np.asarray(x).dtype)
        np.copyto(out, x)
        np.copyto(out, False, where=np.logical_not(np.greater(y, 0)))
        return out[()]
    bits = f"i{x.dtype.itemsize}"
    np.greater(y, 0, scratch.view(bool))
    np.negative(scratch, scratch)
    np.bitwise_and(x.view(bits), scratch, out.view(bits))
    return out


def mask_bits(mask, dtype, out=None):
    """All bits set where a mask holds, none elsewhere: integers as wide as a dtype."""
    wide = np.empty(np.shape(mask), f"i{np.dtype(dtype).itemsize}") if out is None else out
    np.copyto(wide, np.asarray(mask).view(np.int8))
    np.negative(wide, wide)
    return wide[()]


def keep_bits(bits, x, out=None):
    """x where all bits are set, 0 where none is."""
    if out is None:
        out = np.empty(np.broadcast_shapes(np.shape(bits), np.shape(x)), np.asarray(x).dtype)
    np.bitwise_and(np.asarray(x).view(bits.dtype), bits, out.view(bits.dtype))
    return out[()]


def where(condition, a, b, out=None, scratch=None):
    """a where the condition holds, b elsewhere: b ^ ((a ^ b) & mask), on the bits."""
    if scratch is None or a is b:
        if out is None:
            shapes = np.shape(condition), np.shape(a), np.shape(b)
            out = np.empty(np.broadcast_shapes(*shapes), np.asarray(a).dtype)
        np.copyto(out, a)
        np.copyto(out, b, where=np.logical_not(condition))
        return out[()]
    bits = f"i{a.dtype.itemsize}"
    np.negative(np.asarray(condition).view(np.int8), scratch)
    target = out.view(bits)
    np.bitwise_xor(a.view(bits), b.view(bits), target)
    np.bitwise_and(target, scratch, target)
    np.bitwise_xor(target, b.view(bits), target)
    return out


def copy(x, out=None):
    """x itself."""
    if out is None:
        return x
    np.copyto(out, x)
    return out


def astype(x, dtype, out=None):
    """x converted as C does: towards zero from float to int."""
    if out is None:
        return np.asarray(x).astype(dtype)[()]
    np.copyto(out, x, casting="unsafe")
    return out


def real(x, out=None):
    """The real parts."""
    if out is None:
        return np.real(x)[()]  # of an array without axes a number, and no view
    np.copyto(out, np.real(x))
    return out


def imag(x, out=None):
    """The imaginary parts."""
    if out is None:
        return np.imag(x)[()]
    np.copyto(out, np.imag(x))
    return out


def concat(*arrays, axis, out=None):
    """The arrays one after the other along an axis."""
    return np.concatenate(arrays, axis=axis, out=out)


def place(x, shape, index, out=None):
    """x at the index of an array of zeros."""
    if out is None:
        out = np.zeros(shape, x.dtype)
    else:
        out.fill(0)
    out[tuple(slice(*s) for s in index)] = x
    return out


def matmul_tn(a, b, out=None):
    """a.T @ b."""
    return np.matmul(a.T, b, out=out)


def row_sums(x, keepdims, out=None):
    """The sums along the last axis."""
    return np.matmul(x, np.ones((x.shape[-1], *(1,) * keepdims), x.dtype), out=out)


def vdot(a, b):
    """The sum of the products of all elements; of many in parts, which rounds less than BLAS.

    So small that BLAS starts no threads for them, which in a block of rows is slow.
    """
    if a.size <= 8192 or a.dtype == np.float16:  # of which parts may overflow that cancel
        return np.vdot(a, b)
    x, y = a.reshape(-1), b.reshape(-1)
    parts = range(0, x.size, 8192)
    return np.add.reduce([np.vdot(x[i : i + 8192], y[i : i + 8192]) for i in parts])


def sigmoid(x, out=None):
    """1 / (1 + exp(-x)): where exp overflows, 0 is right."""
    y = np.exp(np.negative(x, out=out), out=out)
    return np.reciprocal(np.add(y, 1, out=out), out=out)


def softplus(x, out=None, scratch=None):
    """log(1 + exp(x)), without overflow."""
    small = np.negative(np.abs(x, out=scratch), out=scratch)
    small = np.log1p(np.exp(small, out=scratch), out=scratch)
    return np.add(np.maximum(x, 0, out=out), small, out=out)


def floor_of_quotient(x, y, out=None):
    """x / y rounded down: of infinities inf or 0, as x / y is, where NumPy has NaN or -1."""
    whole = np.result_type(x, y).kind != "f"
    if whole or not (np.isinf(x).any() or np.isinf(y).any()):
        return np.floor_divide(x, y, out=out)
    infinite, quotient = np.isinf(x) | np.isinf(y), np.divide(x, y)
    found = np.asarray(np.floor_divide(x, y, out=out))
    np.copyto(found, quotient, where=infinite)
    return found if out is not None else found[()]


def quotient_and_remainder(x, y, out=(None, None)):
    """x / y rounded down, as `floor_of_quotient` has it, and the remainder."""
    found = np.divmod(x, y, out=out)
    if not (np.isinf(x).any() or np.isinf(y).any()):
        return found
    return floor_of_quotient(x, y, out=out[0]), found[1]


def logaddexp(x, y, out=None, scratch=None):
    """log(exp(x) + exp(y)), without overflow; ten times as fast as NumPy's."""
    small = np.abs(np.subtract(x, y, out=scratch), out=scratch)
    small = np.exp(np.negative(small, out=scratch), out=scratch)
    small = np.log1p(small, out=scratch)
    if np.isnan(np.sum(small)):
        small = np.where(np.isnan(small) & np.equal(x, y), 0, small)
    return np.add(np.maximum(x, y, out=out), small, out=out)


def log1mexp(x, out=None):
    """log(1 - exp(x)): near 0 by expm1, far from it by log1p (Maechler, 2012)."""
    near = np.log(np.negative(np.expm1(x)))
    y = np.where(np.greater(x, -0.6931471805599453), near, np.log1p(np.negative(np.exp(x))))
    if out is None:
        return y[()]
    np.copyto(out, y)
    return out


def leaky_relu(x, slope, out=None):
    """x where it is positive, slope * x where it is negative."""
    if slope == 0:
        return np.maximum(x, 0, out=out)
    choose = np.maximum if slope <= 1 else np.minimum
    return choose(x, np.multiply(x, slope), out=out)


def xlogy(x, y, out=None):
    """x * log(y), but 0 where x is 0, unless y is NaN."""
    found = np.asarray(x * np.log(y))
    np.copyto(found, 0, where=np.equal(x, 0) & np.equal(y, y))
    if out is None:
        return found[()]
    np.copyto(out, found)
    return out


def xlog1py(x, y, out=None):
    """x * log(1 + y), but 0 where x is 0, unless y is NaN."""
    found = np.asarray(x * np.log1p(y))
    np.copyto(found, 0, where=np.equal(x, 0) & np.equal(y, y))
    if out is None:
        return found[()]
    np.copyto(out, found)
    return out


def sinc(x, order, out=None):
    """A derivative of sin(pi*x) / (pi*x): near 0 by its Taylor series, elsewhere by Leibniz's rule.

    That is x * s(n) + n * s(n-1) = pi**(n-1) * sin(pi*x + n*pi/2), with s(n) for the n-th.
    """
    y = np.asarray(np.sinc(x))
    if order:
        near = np.less_equal(np.abs(x), 1 + order / 8)
        away = np.where(near, 1, x)
        for n in range(1, order + 1):
            y = (np.pi ** (n - 1) * np.sin(np.pi * away + n * np.pi / 2) - n * y) / away
        z = np.where(near, np.pi * x, 0)
        first = order % 2
        term = (-1) ** ((order + first) // 2) * np.pi**order * z**first
        series = term / (order + first + 1)
        for m in range(first + 2, 40, 2):
            term = term * (-z * z / (m * (m - 1)))
            series = series + term / (order + m + 1)
        y = np.where(near, series, y)
    if out is None:
        return y[()]
    np.copyto(out, y)
    return out


def logsumexp(x, axis, keepdims, out=None, scratch=None):
    """log(sum(exp(x))), shifted by the largest element so that nothing overflows."""
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, 0)
    away = np.subtract(x, shift, out=scratch)
    wide = np.result_type(x, np.float32)  # a sum of float16 overflows, and loses small terms
    y = np.log(np.sum(np.exp(away, out=scratch), axis=axis, dtype=wide, keepdims=True)) + shift
    y = np.asarray(y if keepdims else np.squeeze(y, axis), x.dtype)
    if out is None:
        return y[()]
    np.copyto(out, y)
    return out


def softmax(x, axis, out=None):
    """exp(x) / sum(exp(x)), by distances from the largest element; as the formula at infinities."""
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    y = np.subtract(x, top, out=out)
    y = np.exp(y, out=out)
    total = np.sum(y, axis=axis, dtype=np.result_type(x, np.float32), keepdims=True)
    if not np.all(np.isfinite(top)):
        total = np.where(np.equal(top, np.inf), 1, total)
    y = np.divide(y, total, out=out)
    return y if y.dtype == x.dtype else x.dtype.type(y)


def log_softmax(x, axis, out=None, scratch=None):
    """x - log(sum(exp(x))), by distances from the largest element; as the formula at infinities."""
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    away = np.subtract(x, top, out=out)
    wide = np.result_type(x, np.float32)
    total = np.sum(np.exp(away, out=scratch), axis=axis, dtype=wide, keepdims=True)
    if not np.all(np.isfinite(top)):
        total = np.where(np.equal(top, np.inf), 1, total)
    return np.subtract(away, x.dtype.type(np.log(total)), out=out)


def norm2(x, axis, keepdims, out=None):
    """sqrt(sum(x * x)); scaled by the largest element where squares overflow or vanish."""
    given, x = x.dtype, np.asarray(x, np.result_type(x, np.float32))
    if np.size(axis) == np.ndim(x) and not keepdims:
        y = np.sqrt(np.vdot(x, x))
    else:
        y = np.sqrt(np.add.reduce(np.square(x), axis=axis, keepdims=keepdims))
    limits = np.finfo(y.dtype)
    if not ((y > np.sqrt(limits.tiny / limits.eps)) & (y < np.inf)).all():
        top = np.max(np.abs(x), axis=axis, keepdims=True, initial=0)
        top = np.where((top > 0) & (top < np.inf), top, 1)
        y = top * np.sqrt(np.add.reduce(np.square(x / top), axis=axis, keepdims=True))
        y = y if keepdims else np.squeeze(y, axis)
    if out is None:
        return y[()] if y.dtype == given else given.type(y)
    np.copyto(out, y, casting="same_kind")
    return out


def running_sum(x, axis, reverse, out=None):
    """For each element the sum of those up to it, or from it to the end."""
    if not reverse:
        return np.add.accumulate(x, axis=axis, dtype=x.dtype, out=out)
    out = np.empty(x.shape, x.dtype) if out is None else out
    np.add.accumulate(np.flip(x, axis), axis=axis, dtype=x.dtype, out=np.flip(out, axis))
    return out


def products_before(x, axis, reverse, out=None):
    """For each element the product of those before it, or of those after it."""
    out = np.empty(x.shape, x.dtype) if out is None else out
    x, y = np.moveaxis(x, axis, 0), np.moveaxis(out, axis, 0)
    if reverse:
        x, y = x[::-1], y[::-1]
    y[:1] = 1
    np.multiply.accumulate(x[:-1], axis=0, dtype=x.dtype, out=y[1:])
    return out


def scan(a, b, axis, reverse, out=None):
    """y[0] = 0 and y[k + 1] = a[k] * y[k] + b[k], or the same from the end."""
    out = np.empty(b.shape, b.dtype) if out is None else out
    a, b, y = (np.moveaxis(x, axis, 0) for x in (a, b, out))
    if reverse:
        a, b, y = a[::-1], b[::-1], y[::-1]
    y[:1] = 0
    for k in range(len(y) - 1):
        y[k + 1] = a[k] * y[k] + b[k]
    return out


def sort(x, axis, descending, out=None):
    """x in order, NaNs last."""
    if not descending:
        y = np.sort(x, axis=axis)
    elif x.dtype.kind in "fc":
        y = -np.sort(-x, axis=axis)
    else:
        y = ~np.sort(~x, axis=axis)
    if out is None:
        return y
    np.copyto(out, y)
    return out


def argsort(x, axis, descending):
    """The indices that sort x, NaNs last; equal elements stay in order."""
    if descending:
        x = -x if x.dtype.kind in "fc" else ~x
    return np.argsort(x, axis=axis, kind="stable")


def in_order(t, x, axis, descending, back, out=None):
    """t in the order that sorts x, or back from it; where elements of x tie, the mean of theirs."""
    if descending:
        x = -x if x.dtype.kind in "fc" else ~x
    order = np.argsort(x, axis=axis)
    keys = np.moveaxis(np.take_along_axis(x, order, axis), axis, -1)
    t = t if back else np.take_along_axis(t, order, axis)
    is_first = np.ones(keys.shape, bool)
    # A NaN ties with the one before it, which as all NaNs is among the last.
    before = keys[..., :-1]
    is_first[..., 1:] = (keys[..., 1:] != before) & (before == before)
    first = np.flatnonzero(is_first)
    if len(first) < keys.size:
        counts = np.diff(first, append=keys.size)
        wide = np.result_type(t, np.float32)  # float16 counts to 2,048
        sums = np.add.reduceat(np.moveaxis(t, axis, -1).ravel(), first, dtype=wide)
        means = np.repeat((sums / counts.astype(wide)).astype(t.dtype, copy=False), counts)
        t = np.moveaxis(means.reshape(keys.shape), -1, axis)
    out = np.empty(t.shape, t.dtype) if out is None else out
    if back:
        np.put_along_axis(out, order, t, axis)
    else:
        np.copyto(out, t)
    return out


def diagonal(x, offset):
    """A diagonal over the last two axes."""
    # Beyond the matrix there is nothing, however far; NumPy wants an int of 32 bits.
    return np.diagonal(x, max(-x.shape[-2], min(offset, x.shape[-1])), -2, -1)


def on_diagonal(x, shape, offset, out=None):
    """Matrices of zeros with x on a diagonal."""
    if out is None:
        out = np.zeros((*x.shape[:-1], *shape), x.dtype)
    else:
        out.fill(0)
    steps = np.arange(x.shape[-1])
    out[..., steps + max(-offset, 0), steps + max(offset, 0)] = x
    return out

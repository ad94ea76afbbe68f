"""Kernels of windows that slide along one axis, by one slice of the axis for each place in them."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import numpy as np


def _slices(ndim, axis, count, size, stride, dilation):
    """For each place in a window the elements that stand there, of all windows."""
    for i in range(size):
        start = i * dilation
        yield (*(slice(None),) * axis, slice(start, start + (count - 1) * stride + 1, stride))


def windows(x, axis, size, stride, dilation):
    """The windows along an axis, as a view, with the places in a window as the last axis."""
    span = dilation * (size - 1) + 1
    y = np.lib.stride_tricks.sliding_window_view(x, span, axis)
    return y[(*(slice(None),) * axis, slice(None, None, stride), ..., slice(None, None, dilation))]


def overlapped(y, axis, size, stride, dilation, length, out=None):
    """windows, transposed: each element is the sum of what stands at its places in windows."""
    shape = (*y.shape[:axis], length, *y.shape[axis + 1 : -1])
    x = np.empty(shape, y.dtype) if out is None else out
    x.fill(0)
    parts = _slices(x.ndim, axis, y.shape[axis], size, stride, dilation)
    for i, part in enumerate(parts):
        np.add(x[part], y[..., i], out=x[part])
    return x


def _over_windows(ufunc, x, axis, size, stride, dilation, out):
    """The reduction of each window by a binary ufunc, from its first element to its last."""
    count = (x.shape[axis] - dilation * (size - 1) - 1) // stride + 1
    first, *rest = _slices(x.ndim, axis, count, size, stride, dilation)
    if not rest:
        y = np.empty(x[first].shape, x.dtype) if out is None else out
        np.copyto(y, x[first])
        return y
    y = ufunc(x[first], x[rest[0]], out=out)
    for part in rest[1:]:
        ufunc(y, x[part], out=y)
    return y


def window_sum(x, axis, size, stride, dilation, out=None):
    """The sum of each window."""
    return _over_windows(np.add, x, axis, size, stride, dilation, out)


def window_spread(y, axis, size, stride, dilation, length, out=None):
    """window_sum, transposed: each element is the sum of what its windows have."""
    shape = (*y.shape[:axis], length, *y.shape[axis + 1 :])
    x = np.empty(shape, y.dtype) if out is None else out
    x.fill(0)
    for part in _slices(x.ndim, axis, y.shape[axis], size, stride, dilation):
        np.add(x[part], y, out=x[part])
    return x


def window_max(x, axis, size, stride, dilation, out=None):
    """The largest element of each window, NaN if one is NaN."""
    return _over_windows(np.maximum, x, axis, size, stride, dilation, out)


def at_window_max(t, x, y, axis, size, stride, dilation, back, out=None, scratch=None):
    """The elements of t at the first largest element of each window of x, or t put back to there.

    With scratch it is selected by its bits, as in `select`: exact for inf and NaN.
    """
    is_apart = stride > dilation * (size - 1)
    if scratch is None:
        sizes = size, stride, dilation
        return _at_first_largest(t, x, y, axis, sizes, back, is_apart, out)
    bits = f"i{x.dtype.itemsize}"
    mask, rest = scratch
    flags = (scratch if back and is_apart else rest).reshape(-1).view(bool)
    here, seen = flags[: 2 * y.size].reshape(2, *y.shape)
    bytes_here = here.view(np.int8)
    z = np.empty(x.shape if back else y.shape, t.dtype) if out is None else out
    if not (back and is_apart and size * y.shape[axis] == x.shape[axis]):
        z.fill(0)
    seen.fill(False)
    some_nan = np.isnan(np.min(y, initial=np.inf))
    for part in _slices(x.ndim, axis, y.shape[axis], size, stride, dilation):
        np.equal(x[part], y, here)
        if some_nan:  # which is the largest of its window
            np.logical_or(here, np.isnan(x[part]), here)
        np.greater(here, seen, here)
        np.logical_or(seen, here, seen)
        np.negative(bytes_here, bytes_here)
        if not back:
            np.bitwise_and(t[part].view(bits), bytes_here, mask)
            np.bitwise_or(z.view(bits), mask, z.view(bits))
        elif is_apart:
            np.bitwise_and(t.view(bits), bytes_here, z[part].view(bits))
        else:
            np.bitwise_and(t.view(bits), bytes_here, mask)
            np.add(z[part], mask.view(z.dtype), z[part])
    return z


def _at_first_largest(t, x, y, axis, sizes, back, is_apart, out):
    """at_window_max of any floats, long doubles too."""
    z = np.empty(x.shape if back else y.shape, t.dtype) if out is None else out
    z.fill(0)
    seen = np.zeros(y.shape, bool)
    some_nan = np.isnan(np.min(y, initial=np.inf))
    for part in _slices(x.ndim, axis, y.shape[axis], *sizes):
        here = (np.equal(x[part], y) | (some_nan & np.isnan(x[part]))) & ~seen
        seen |= here
        if not back:
            np.copyto(z, t[part], where=here)
        elif is_apart:
            np.copyto(z[part], t, where=here)
        else:
            np.add(z[part], t, z[part], where=here)
    return z

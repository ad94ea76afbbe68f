"""Kernels of indexing, sorting and counting; what holds for those of `kernels` holds for them."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import numpy as np


def put(x, u, index, mode, out=None):
    """x with u in place of a slice of it, or added to it."""
    if out is None:
        out = np.array(x)
    elif out is not x:
        np.copyto(out, x)
    part = out[tuple(slice(*s) for s in index)]
    np.copyto(part, u if mode == "set" else part + u)
    return out


def gather(x, *indices, axis, out=None):
    """The elements at the indices of neighbouring axes of x, of which `axis` is the first."""
    if len(indices) == 1 or x.flags.c_contiguous:
        at, end = one_index(indices, x.shape, axis), axis + len(indices)
        cells = int(np.prod(x.shape[axis:end]))
        x = x if len(indices) == 1 else x.reshape(*x.shape[:axis], cells, *x.shape[end:])
        return np.take(x, at, axis=axis, out=out, mode="clip")
    y = x[(slice(None),) * axis + indices]
    if out is None:
        return y
    np.copyto(out, y)
    return out


def one_index(indices, shape, axis):
    """The indices of neighbouring axes as those of one axis in their place, from 0 on.

    Refuses those that do not lie within their axis, as NumPy does.
    """
    at = None
    for k, index in enumerate(indices, axis):
        size = shape[k]
        if np.size(index):
            low, high = np.min(index), np.max(index)
            if low < -size or high >= size:
                bad = low if low < -size else high
                raise IndexError(f"index {bad} is out of bounds for axis {k} with size {size}")
            if low < 0:
                index = np.where(np.less(index, 0), np.add(index, size), index)
        at = index if at is None else at * size + index
    return at


def in_range(x, size, out=None):
    """x, if its elements are from 0 on and below a size."""
    if np.size(x):
        low, high = np.min(x), np.max(x)
        if low < 0 or high >= size:
            bad = low if low < 0 else high
            raise IndexError(f"{bad} is out of range: the numbers are from 0 to {size - 1}")
    return np.positive(x, out=out)


def scatter(x, u, *indices, axis, mode, out=None):
    """x with u written to the indices of neighbouring axes, of which `axis` is the first.

    Of elements written to one place the last stays, or they are added, or an extremum stays.
    """
    at = np.ravel(one_index(indices, x.shape, axis))
    if out is None or not out.flags.c_contiguous:
        y = np.array(x, order="C")
    else:
        y = out
        if y is not x:
            np.copyto(y, x)
    end = axis + len(indices)
    before, cells, after = (
        int(np.prod(s)) for s in (x.shape[:axis], x.shape[axis:end], x.shape[end:])
    )
    u = np.reshape(u, (before, len(at), after))
    if mode == "set":
        y.reshape(before, cells, after)[:, at] = u
    else:
        # NumPy is several times as fast at single elements as at rows.
        if before != 1 or after != 1:
            start = np.arange(before)[:, None, None] * cells
            at = ((start + at[:, None]) * after + np.arange(after)).ravel()
        ufunc = {"add": np.add, "max": np.maximum, "min": np.minimum}[mode]
        ufunc.at(y.reshape(-1), at, u.ravel())
    if out is None or out is y:
        return y
    np.copyto(out, y)
    return out


def running_extremum(x, axis, largest, out=None):
    """For each element the largest or smallest of those up to it; NaN from the first NaN on."""
    return (np.maximum if largest else np.minimum).accumulate(x, axis=axis, out=out)

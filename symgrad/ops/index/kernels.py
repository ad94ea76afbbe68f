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


def roll(x, shift, axis, out=None):
    """The elements moved on by a shift along an axis, those at its end to its beginning."""
    out = np.empty(x.shape, x.dtype) if out is None else out
    size = x.shape[axis]
    shift = shift % size if size else 0
    whole = (slice(None),) * axis
    np.copyto(out[(*whole, slice(shift, None))], x[(*whole, slice(None, size - shift))])
    np.copyto(out[(*whole, slice(None, shift))], x[(*whole, slice(size - shift, None))])
    return out


def gather(x, *indices, axis, out=None):
    """The elements at the indices of neighbouring axes of x, of which `axis` is the first."""
    if len(indices) == 1 or x.flags.c_contiguous:
        at, end = one_index(indices, x.shape, axis), axis + len(indices)
        if len(indices) > 1:
            x = x.reshape(*x.shape[:axis], _cells_of(x.shape[axis:end]), *x.shape[end:])
        return np.take(x, at, axis=axis, out=out, mode="clip")
    y = x[(slice(None),) * axis + indices]
    if out is None:
        return y
    np.copyto(out, y)
    return out


def _cells_of(sizes):
    """The product of a few sizes, in less time than NumPy takes."""
    y = 1
    for size in sizes:
        y *= size
    return y


def _all_below(index, size):
    """Whether integers are from 0 on and below a size: as unsigned, those below 0 are largest."""
    most = np.maximum.reduce(index.view(f"u{index.itemsize}"), axis=None, initial=0)
    return most < size or not index.size


def one_index(indices, shape, axis):
    """The indices of neighbouring axes as those of one axis in their place, from 0 on.

    Refuses those that do not lie within their axis, as NumPy does.
    """
    at = None
    for k, index in enumerate(indices, axis):
        size = shape[k]
        if not _all_below(index, size):
            low, high = np.min(index), np.max(index)
            if low < -size or high >= size:
                bad = low if low < -size else high
                raise IndexError(f"index {bad} is out of bounds for axis {k} with size {size}")
            index = np.where(np.less(index, 0), np.add(index, size), index)
        at = index if at is None else at * size + index
    return at


def in_range(x, size, out=None):
    """x, if its elements are from 0 on and below a size."""
    if not _all_below(x, size):
        low, high = np.min(x), np.max(x)
        bad = low if low < 0 else high
        raise IndexError(f"{bad} is out of range: the numbers are from 0 to {size - 1}")
    return np.positive(x, out=out)


def scatter(x, u, *indices, axis, mode, out=None):
    """x with u written to the indices of neighbouring axes, of which `axis` is the first.

    Of elements written to one place the last stays, or they are added, or an extremum stays.
    """
    at = one_index(indices, x.shape, axis).reshape(-1)
    if out is None or not out.flags.c_contiguous:
        y = np.array(x, order="C")
    else:
        y = out
        if y is not x:
            np.copyto(y, x)
    end = axis + len(indices)
    before, after = _cells_of(x.shape[:axis]), _cells_of(x.shape[end:])
    cells = _cells_of(x.shape[axis:end])
    u = np.reshape(u, (before, len(at), after))
    if mode == "set" and before == 1:
        y.reshape(cells, after)[at] = u[0]
    elif mode == "set":
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


def from_start(x, size, axis, out=None):
    """Indices of an axis of so many elements, those from its end as those from its start."""
    return np.positive(one_index((x,), {axis: size}, axis), out=out)


def _one_a_row(x, index):
    """The indices into x flattened, of one element of each of its rows."""
    size = x.shape[-1]
    first = np.arange(0, x.size, size).reshape(index.shape)
    return np.add(np.minimum(np.maximum(index, 0), size - 1), first, first)


def pick_in_rows(x, index, out=None):
    """Of each row the element at an index, which counts from 0; beyond the row its end."""
    if x.flags.c_contiguous:
        return x.take(_one_a_row(x, index), out=out, mode="clip")
    y = np.take_along_axis(x, np.clip(index, 0, x.shape[-1] - 1), axis=-1)
    if out is None:
        return y
    np.copyto(out, y)
    return out


def add_in_rows(x, u, index, out=None):
    """x with u added to one element of each row."""
    y = out if out is not None and out.flags.c_contiguous else np.empty(x.shape, x.dtype)
    if y is not x:
        np.copyto(y, x)
    flat, at = y.reshape(-1), _one_a_row(y, index)
    flat[at] = np.add(flat[at], u)
    if out is None or out is y:
        return y
    np.copyto(out, y)
    return out


def running_extremum(x, axis, largest, out=None):
    """For each element the largest or smallest of those up to it; NaN from the first NaN on."""
    return (np.maximum if largest else np.minimum).accumulate(x, axis=axis, out=out)

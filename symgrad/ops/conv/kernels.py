"""Kernels of convolutions, by products of matrices.

Arrays lie with the batch innermost, so that what is copied lies in long runs: x as (groups, rows,
channels, *other axes, batch), weights as (groups, filters, rows, *other axes, channels). Only the
other axes are lowered, by one copy a tap; along the rows a window is a matrix that lies in memory
as it is, after Cho and Brand, MEC: memory-efficient convolution, ICML 2017.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import numpy as np


def _taps(kernel, counts, stride, dilation):
    """For each tap its place in the kernel, and the part of the axes that it meets."""
    for tap in np.ndindex(*kernel):
        yield (
            tap,
            tuple(
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, n, s, d in zip(tap, counts, stride, dilation, strict=True)
            ),
        )


def _product(sizes):
    """As an int, and sooner than by NumPy."""
    total = 1
    for size in sizes:
        total *= size
    return total


def _as_matrices(x):
    """The array with its axes from the fourth on as one; a view if they are contiguous."""
    return x.reshape(*x.shape[:3], _product(x.shape[3:]))


def _lowered(rows, kernel, counts, stride, dilation, scratch):
    """The rows as matrices (taps of the other axes and channels, places and batch)."""
    groups, number, channels, *_, batch = rows.shape
    if tuple(counts) == rows.shape[3:-1]:
        return _as_matrices(np.ascontiguousarray(rows))
    shape = (groups, number, *kernel, channels, *counts, batch)
    size = _product(shape)
    y = np.empty(size, rows.dtype) if scratch is None else scratch[:size]
    y = y.reshape(shape)
    for tap, part in _taps(kernel, counts, stride, dilation):
        y[(..., *tap, *(slice(None),) * (len(tap) + 2))] = rows[(..., *part, slice(None))]
    return y.reshape(groups, number, _product(kernel) * channels, _product(counts) * batch)


def _windows(matrices, size, count, step):
    """Of contiguous matrices one below the other, so many windows of `size`, each one matrix."""
    # An array's own strides along axes of size 1 are no help.
    groups, number, height, width = matrices.shape
    line = width * matrices.itemsize
    shape = (groups, count, size * height, width)
    strides = (number * height * line, step * height * line, line, matrices.itemsize)
    return np.lib.stride_tricks.as_strided(matrices, shape, strides)


def _lines(count, size, stride, dilation):
    """A convolution along the rows as several without dilation: each takes every d-th row.

    For each: its rows and their number, its results, and its stride.
    """
    shared = int(np.gcd(stride, dilation))
    apart, step = dilation // shared, stride // shared
    for i in range(min(apart, count)):
        own = len(range(i, count, apart))
        number = (own - 1) * step + size
        first = i * stride
        yield (
            slice(first, first + (number - 1) * dilation + 1, dilation),
            slice(i, None, apart),
            step,
        )


def convolve(x, w, stride, dilation, out=None, scratch=None):
    """The sum over taps and channels of w * x, at every place that the whole kernel fits in."""
    spans = [d * (k - 1) + 1 for k, d in zip(w.shape[2:-1], dilation, strict=True)]
    sizes = (x.shape[1], *x.shape[3:-1])
    counts = [(n - m) // s + 1 for n, m, s in zip(sizes, spans, stride, strict=True)]
    shape = (x.shape[0], counts[0], w.shape[1], *counts[1:], x.shape[-1])
    is_fit = out is not None and out.flags.c_contiguous
    y = out if is_fit else np.empty(shape, x.dtype)
    flat = w.reshape(*w.shape[:2], _product(w.shape[2:]))[:, None]
    for rows, own, step in _lines(counts[0], w.shape[2], stride[0], dilation[0]):
        low = _lowered(x[:, rows], w.shape[3:-1], counts[1:], stride[1:], dilation[1:], scratch)
        target = _as_matrices(y[:, own])
        np.matmul(flat, _windows(low, w.shape[2], target.shape[1], step), out=target)
    if out is None or is_fit:
        return y
    np.copyto(out, y)
    return out


def convolve_weights(x, y, kernel, stride, dilation, out=None, scratch=None):
    """convolve, transposed with respect to its weights: products of x and y, summed over places."""
    shape = (x.shape[0], y.shape[2], *kernel, x.shape[2])
    size = _product(shape[2:])
    part = np.empty((shape[0], size, shape[1]), x.dtype)
    total = np.zeros(part.shape, np.result_type(x, np.float32))  # float16 counts to 2,048
    for rows, own, step in _lines(y.shape[1], kernel[0], stride[0], dilation[0]):
        low = _lowered(x[:, rows], kernel[1:], y.shape[3:-1], stride[1:], dilation[1:], scratch)
        flow = _as_matrices(y[:, own]).swapaxes(-1, -2)
        for i, found in enumerate(_windows(low, kernel[0], flow.shape[1], step).swapaxes(0, 1)):
            np.add(total, np.matmul(found, flow[:, i], out=part), out=total)
    found = total.swapaxes(1, 2).reshape(shape)
    if out is None:
        return np.ascontiguousarray(found, x.dtype)
    np.copyto(out, found)
    return out


def convolve_inputs(y, w, sizes, stride, dilation, out=None, scratch=None):
    """convolve, transposed with respect to x, whose axes have these sizes."""
    groups, filters, size, *inner, channels = w.shape
    shape = (groups, sizes[0], channels, *sizes[1:], y.shape[-1])
    is_fit = out is not None and out.flags.c_contiguous
    x = out if is_fit else np.empty(shape, y.dtype)
    x.fill(0)
    counts = y.shape[3:-1]
    is_plain = counts == x.shape[3:-1]
    height, width = _product(inner) * channels, _product(counts) * y.shape[-1]
    for rows, own, step in _lines(y.shape[1], size, stride[0], dilation[0]):
        flow = _as_matrices(np.ascontiguousarray(y[:, own]))
        number = flow.shape[1]
        # The taps of one remainder by the stride meet the same rows: a convolution without stride.
        for first in range(min(step, size)):
            taps = np.moveaxis(w[:, :, first::step][:, :, ::-1], (2, 1), (-2, -1))
            own_size = taps.shape[-2]
            taps = taps.reshape(groups, height, own_size * filters)
            target = x[:, rows][:, first::step][:, : number + own_size - 1]
            found = _windows(flow, own_size, max(number - own_size + 1, 0), 1)
            some, line = target.shape[1], groups * height * width
            if is_plain:
                back = _as_matrices(target)
            elif scratch is None:
                back = np.empty((groups, some, height, width), x.dtype)
            else:  # some rows at a time
                some = min(some, scratch.size // line) if line else some
                back = scratch[: some * line].reshape(groups, some, height, width)
            for start in range(0, target.shape[1], some):
                end = min(start + some, target.shape[1])
                low, high = max(start, own_size - 1), min(end, number)
                if low < high:
                    part = found[:, low - own_size + 1 : high - own_size + 1]
                    np.matmul(taps[:, None], part, out=back[:, low - start : high - start])
                for i in (i for i in range(start, end) if not low <= i < high):
                    top, bottom = max(i - own_size + 1, 0), min(i + 1, number)
                    skipped = (top - (i - own_size + 1)) * filters
                    part = flow[:, top:bottom].reshape(groups, (bottom - top) * filters, width)
                    own_taps = taps[:, :, skipped : skipped + part.shape[1]]
                    np.matmul(own_taps, part, out=back[:, i - start])
                if not is_plain:
                    here = back[:, : end - start].reshape(
                        groups, end - start, *inner, channels, *counts, y.shape[-1]
                    )
                    for tap, place in _taps(inner, counts, stride[1:], dilation[1:]):
                        into = target[:, start:end][(..., *place, slice(None))]
                        index = (..., *tap, *(slice(None),) * (len(tap) + 2))
                        np.add(into, here[index], out=into)
    if out is None or is_fit:
        return x
    np.copyto(out, x)
    return out

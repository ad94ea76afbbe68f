"""The table of ops, windows, convolutions and Fourier transforms. See `elementwise.py`."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from functools import partial

import numpy as np

from symgrad.backends.jax.arrays import Arrays


def _places(ndim, axis, count, size, stride, dilation):
    """For each place in a window, the elements that stand there, of all windows."""
    for i in range(size):
        start = i * dilation
        stop = start + (count - 1) * stride + 1 if count > 0 else start
        yield (*(slice(None),) * axis, slice(start, stop, stride))


class Windows(Arrays):
    """Ops over windows."""

    def _taps(self, x, axis, size, stride, dilation):
        count = (x.shape[axis] - dilation * (size - 1) - 1) // stride + 1
        return [x[place] for place in _places(x.ndim, axis, count, size, stride, dilation)]

    def windows(self, x, axis, size, stride, dilation):
        return self.jnp.stack(self._taps(x, axis, size, stride, dilation), -1)

    def overlapped(self, y, axis, size, stride, dilation, length):
        x = self.jnp.zeros((*y.shape[:axis], length, *y.shape[axis + 1 : -1]), y.dtype)
        places = _places(x.ndim, axis, y.shape[axis], size, stride, dilation)
        for i, place in enumerate(places):
            x = x.at[place].add(y[..., i])
        return x

    def _joined(self, function, taps):
        y = taps[0]
        for tap in taps[1:]:
            y = function(y, tap)
        return y

    def window_sum(self, x, axis, size, stride, dilation):
        return self._joined(self.jnp.add, self._taps(x, axis, size, stride, dilation))

    def window_max(self, x, axis, size, stride, dilation):
        return self._joined(self.jnp.maximum, self._taps(x, axis, size, stride, dilation))

    def window_spread(self, y, axis, size, stride, dilation, length):
        x = self.jnp.zeros((*y.shape[:axis], length, *y.shape[axis + 1 :]), y.dtype)
        for place in _places(x.ndim, axis, y.shape[axis], size, stride, dilation):
            x = x.at[place].add(y)
        return x

    def at_window_max(self, t, x, y, axis, size, stride, dilation, back):
        jnp = self.jnp
        z = jnp.zeros(x.shape if back else y.shape, t.dtype)
        seen = jnp.zeros(y.shape, bool)
        for place in _places(x.ndim, axis, y.shape[axis], size, stride, dilation):
            here = ((x[place] == y) | jnp.isnan(x[place])) & ~seen
            seen = seen | here
            z = z.at[place].add(self.select(here, t)) if back else jnp.where(here, t[place], z)
        return z

    # ---- convolutions -----------------------------------------------------------------------

    def convolve(self, x, w, stride, dilation):
        """x and w lie as in `ops/conv/kernels.py`; XLA takes all groups as batches of features."""
        jnp, others = self.jnp, x.ndim - 4
        groups, filters, batch = w.shape[0], w.shape[1], x.shape[-1]
        inner = tuple(range(3, 3 + others))
        given = jnp.transpose(x, (x.ndim - 1, 0, 2, 1, *inner))
        given = given.reshape(batch, groups * x.shape[2], x.shape[1], *x.shape[3:-1])
        weights = jnp.moveaxis(w, -1, 2).reshape(groups * filters, w.shape[-1], *w.shape[2:-1])
        y = self.lax.conv_general_dilated(
            given, weights, stride, "VALID", rhs_dilation=dilation, feature_group_count=groups
        )
        y = y.reshape(batch, groups, filters, *y.shape[2:])
        return jnp.transpose(y, (1, 3, 2, *range(4, 4 + others), 0))

    def convolve_inputs(self, y, w, sizes, stride, dilation):
        shape = (w.shape[0], sizes[0], w.shape[-1], *sizes[1:], y.shape[-1])
        convolved = partial(self.convolve, w=w, stride=stride, dilation=dilation)
        like = self.jax.ShapeDtypeStruct(shape, y.dtype)
        return self.jax.linear_transpose(convolved, like)(y)[0]

    def convolve_weights(self, x, y, kernel, stride, dilation):
        shape = (x.shape[0], y.shape[2], *kernel, x.shape[2])
        convolved = partial(self.convolve, x, stride=stride, dilation=dilation)
        like = self.jax.ShapeDtypeStruct(shape, x.dtype)
        return self.jax.linear_transpose(convolved, like)(y)[0]

    # ---- Fourier transforms -----------------------------------------------------------------

    def fourier(self, x, axis, inverse, norm):
        axes = axis if np.ndim(axis) else (axis,)
        y = x
        for a in axes:  # XLA transforms at most three axes at once
            y = (self.jnp.fft.ifft if inverse else self.jnp.fft.fft)(y, axis=a, norm=norm)
        return y

    def fourier_of_real(self, x, axis, norm):
        return self.jnp.fft.rfft(x, axis=axis, norm=norm)

    def fourier_to_real(self, x, axis, n, norm):
        return self.jnp.fft.irfft(x, n, axis=axis, norm=norm)

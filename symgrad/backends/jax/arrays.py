"""The table of ops, those that move elements: shapes, indices, order. See `elementwise.py`."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from symgrad.backends.jax.special import Special


class Arrays(Special):
    """Ops that make arrays and move their elements."""

    # Whether elements that are written to one place are written one after the other.
    in_turn = True

    # ---- made of a shape --------------------------------------------------------------------

    def arange(self, start, step, count, dtype):
        return (start + self.jnp.arange(count) * step).astype(dtype)

    def eye(self, n_rows, n_cols, k, dtype):
        return self.jnp.eye(n_rows, n_cols, k, dtype=dtype)

    def size_of(self, dim, dtype):
        return self.jnp.asarray(dim).astype(dtype)

    # ---- shapes -----------------------------------------------------------------------------

    def assume(self, x, facts):
        return x

    def reshape(self, x, shape):
        return self.jnp.reshape(x, shape)

    def permute_dims(self, x, axes):
        return self.jnp.transpose(x, axes)

    def broadcast_to(self, x, shape):
        return self.jnp.broadcast_to(x, shape)

    def concat(self, *arrays, axis):
        return self.jnp.concatenate(arrays, axis)

    def diagonal(self, x, offset):
        return self.jnp.diagonal(x, max(-x.shape[-2], min(offset, x.shape[-1])), -2, -1)

    def on_diagonal(self, x, shape, offset):
        steps = np.arange(x.shape[-1])
        zeros = self.jnp.zeros((*x.shape[:-1], *shape), x.dtype)
        return zeros.at[..., steps + max(-offset, 0), steps + max(offset, 0)].set(x)

    # ---- slices -----------------------------------------------------------------------------

    def slice(self, x, index):
        return x[tuple(slice(*i) for i in index)]

    def place(self, x, shape, index):
        return self.put(self.jnp.zeros(shape, x.dtype), x, index, "set")

    def put(self, x, u, index, mode):
        part = x.at[tuple(slice(*i) for i in index)]
        return part.set(u) if mode == "set" else part.add(u)

    def roll(self, x, shift, axis):
        return self.jnp.roll(x, shift, axis)

    # ---- indices ----------------------------------------------------------------------------

    def _indexed(self, x, indices, axis):
        """The place that indices of neighbouring axes are of; none may be out of bounds."""
        sizes = x.shape[axis : axis + len(indices)]
        found = [self._from_start(i, size) for i, size in zip(indices, sizes, strict=True)]
        return (slice(None),) * axis + tuple(found)

    def _from_start(self, index, size):
        """Indices from 0 on; those that do not lie within the axis fail, and are its ends."""
        whole = index.astype(np.int64)
        if index.dtype == np.uint64:
            self.failing(index >= size)
        self.failing((whole < -size) | (whole >= size))
        return self.jnp.clip(self.jnp.where(whole < 0, whole + size, whole), 0, size - 1)

    def from_start(self, x, size, axis):
        return self._from_start(x, size)

    def pick_in_rows(self, x, index):
        return self.jnp.take_along_axis(x, self.jnp.clip(index, 0, x.shape[-1] - 1), -1)

    def add_in_rows(self, x, u, index):
        size = x.shape[-1]
        here = self.jnp.arange(size) == self.jnp.clip(index, 0, size - 1)
        return self.jnp.where(here, x + u, x)

    def gather(self, x, *indices, axis):
        end = axis + len(indices)
        if 0 in x.shape[axis:end]:
            shape = (*x.shape[:axis], *indices[0].shape, *x.shape[end:])
            self.failing(self.jnp.ones(indices[0].shape, bool))
            return self.jnp.zeros(shape, x.dtype)
        return x.at[self._indexed(x, indices, axis)].get(mode="clip")

    def scatter(self, x, u, *indices, axis, mode):
        """Of elements set at one place the last stays; devices that write at once are told so."""
        if 0 in x.shape[axis : axis + len(indices)]:
            self.failing(self.jnp.ones(indices[0].shape, bool))
            return x
        place = self._indexed(x, indices, axis)
        if mode == "set" and not self.in_turn:
            at = place[axis:]
            flat = self.jnp.arange(at[0].size).reshape(at[0].shape)
            last = self.jnp.full(x.shape[axis : axis + len(at)], -1).at[at].max(flat)
            kept = (last[at] == flat).reshape(at[0].shape + (1,) * (x.ndim - axis - len(at)))
            # Those before the last are written beyond the end, where nothing is.
            beyond = self.jnp.where(kept.reshape(at[0].shape), at[0], x.shape[axis])
            place = (*place[:axis], beyond, *at[1:])
            return x.at[place].set(u, mode="drop")
        return getattr(x.at[place], mode)(u, mode="promise_in_bounds")

    def in_range(self, x, size):
        self.failing((x < 0) | (x >= size))
        return x

    def within(self, x, domain, name):
        jnp = self.jnp
        if domain == "true":
            good = x != 0
        elif domain == "positive":
            good = x > 0
        elif domain == "nonnegative":
            good = x >= 0
        elif domain == "count":
            good = (x >= 0) & (x == jnp.floor(x))
        else:
            good = (x >= 0) & (x <= 1)
        self.failing(~good)
        if domain == "law":
            off = abs(jnp.sum(x, -1, dtype=np.float64) - 1)
            self.failing(off > np.sqrt(np.finfo(x.dtype).eps))
        return x

    # ---- order ------------------------------------------------------------------------------

    def _falling(self, x):
        return -x if x.dtype.kind in "fc" else ~x

    def sort(self, x, axis, descending):
        if descending:
            return self._falling(self.jnp.sort(self._falling(x), axis))
        return self.jnp.sort(x, axis)

    def argsort(self, x, axis, descending):
        return self.jnp.argsort(self._falling(x) if descending else x, axis, stable=True)

    def in_order(self, t, x, axis, descending, back):
        jnp = self.jnp
        order = self.argsort(x, axis, descending)
        keys = jnp.moveaxis(jnp.take_along_axis(x, order, axis), axis, -1)
        t = jnp.moveaxis(t if back else jnp.take_along_axis(t, order, axis), axis, -1)
        before = keys[..., :-1]
        first = jnp.ones(keys.shape, bool)
        first = first.at[..., 1:].set((keys[..., 1:] != before) & (before == before))
        number = jnp.cumsum(first.reshape(-1)) - 1  # of the run of ties that an element is in
        wide = self._wide(t)
        size = max(keys.size, 1)
        sums = self.jax.ops.segment_sum(t.reshape(-1).astype(wide), number, size)
        counts = self.jax.ops.segment_sum(jnp.ones(keys.size, wide), number, size)
        means = (sums / jnp.maximum(counts, 1))[number].reshape(keys.shape)
        alone = counts[number].reshape(keys.shape) == 1
        t = jnp.moveaxis(jnp.where(alone, t, means.astype(t.dtype)), -1, axis)
        if not back:
            return t
        return jnp.put_along_axis(jnp.zeros_like(t), order, t, axis, inplace=False)

    def isin(self, x, values, invert):
        return self.jnp.isin(x, values, invert=invert)

    def searchsorted(self, a, x, side):
        return self.jnp.searchsorted(a, x, side)

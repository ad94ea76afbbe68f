"""The table of ops, random numbers: Philox4x64-10 as NumPy has it, bit for bit.

Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011. Laws that
reject what they have drawn take as many words as it happens, and are left to NumPy.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from symgrad.backends.jax.linear import Linear

ROUNDS = 10
FACTORS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)


class Draws(Linear):
    """Ops that draw, with keys of two words along the last axis."""

    def _product(self, a, b):
        """The high and the low word of a product, by halves of words."""
        half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
        a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
        low, mid = a0 * b0, a1 * b0
        mid = mid + (low >> half)
        other = a0 * b1 + (mid & mask)
        return a1 * b1 + (mid >> half) + (other >> half), a * b

    def _blocks(self, key, counter):
        """The four words of each counter, which are four arrays that broadcast with the key's."""
        c, k = list(counter), [key[..., 0], key[..., 1]]
        for i in range(ROUNDS):
            if i:
                k = [word + np.uint64(step) for word, step in zip(k, STEPS, strict=True)]
            high0, low0 = self._product(np.uint64(FACTORS[0]), c[0])
            high1, low1 = self._product(np.uint64(FACTORS[1]), c[2])
            c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
        return self.jnp.stack(self.jnp.broadcast_arrays(*c), -1)

    def _words(self, key, count, last=0):
        """So many words of a key; the counter's last word is given, its first goes up from 1."""
        key, zero = key[..., None, :], np.uint64(0)
        first = self.jnp.arange(1, -(-count // 4) + 1, dtype=np.uint64)
        found = self._blocks(key, (first, zero, zero, np.uint64(last)))
        return found.reshape(*key.shape[:-2], -1)[..., :count]

    def draw_key(self, key, count):
        return self._words(key, 2 * count, last=1).reshape(*key.shape[:-1], count, 2)

    def fold_key(self, key, data):
        zero = np.uint64(0)
        first = data.astype(np.uint64) + np.uint64(1)
        carried = (first == 0).astype(np.uint64)
        return self._blocks(key, (first, carried, zero, np.uint64(2)))[..., :2]

    def draw(self, key, law, shape, dtype):
        """The uniform law; `lowering` leaves the others to NumPy."""
        count = int(np.prod(shape))
        if dtype == np.float64:
            y = (self._words(key, count) >> np.uint64(11)).astype(dtype) * 2.0**-53
        else:
            words = self._words(key, -(-count // 2))[..., None]
            halves = self.jnp.concatenate(
                [words & np.uint64(0xFFFFFFFF), words >> np.uint64(32)], -1
            )
            halves = halves.reshape(*words.shape[:-2], -1)[..., :count]
            y = (halves >> np.uint64(8)).astype(dtype) * np.float32(2.0**-24)
        return y.reshape(*key.shape[:-1], *shape)

"""Kernels that draw: NumPy's Philox, started anew by each key, so that one key gives one answer.

What is drawn for a key has the counter from 0 on; what makes keys has a counter of its own.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, var-annotated"

import numpy as np


def _for_each(key, draw, shape, dtype, out):
    """An array of `draw(generator, index)` for each key."""
    shape = (*key.shape[:-1], *shape)
    y = np.empty(shape, dtype) if out is None else out
    for index in np.ndindex(key.shape[:-1]):
        generator = np.random.Generator(np.random.Philox(key=np.ascontiguousarray(key[index])))
        y[index] = draw(generator, index)
    return y if out is not None else y[()]


def draw_key(key, count):
    """`count` keys of a key."""
    y = np.empty((*key.shape[:-1], count, 2), np.uint64)
    for index in np.ndindex(key.shape[:-1]):
        bits = np.random.Philox(key=np.ascontiguousarray(key[index]), counter=[0, 0, 0, 1])
        y[index] = bits.random_raw(2 * count).reshape(count, 2)
    return y


def fold_key(key, data):
    """A key of a key and an integer."""
    y = np.empty((*np.shape(data), 2), np.uint64)
    keys = np.broadcast_to(key, y.shape)
    words = np.asarray(data).astype(np.uint64)
    for index in np.ndindex(np.shape(data)):
        counter = np.array([words[index], 0, 0, 2], np.uint64)
        y[index] = np.random.Philox(
            key=np.ascontiguousarray(keys[index]), counter=counter
        ).random_raw(2)
    return y


def draw(key, law, shape, dtype, out=None):
    """By a law of NumPy's that takes a size and a dtype."""
    return _for_each(key, lambda g, _: getattr(g, law)(shape, dtype), shape, dtype, out)


def draw_integers(key, low, high, shape, dtype, out=None):
    """Integers from low on and below high."""
    return _for_each(key, lambda g, _: g.integers(low, high, shape, dtype), shape, dtype, out)


def _rows_of(generator, rows, size, dtype, words, draw):
    """The rows of these numbers of what a generator draws, of `size` elements each.

    Each element takes so many words of 64 bits, so that those before are passed over at once; if it
    takes as many as it happens to (`words` is 0), they are drawn, and thrown away.
    """
    if not rows.size or not size:
        return np.empty((rows.size, size), dtype)
    first, last = int(rows.min()), int(rows.max()) + 1
    if words:
        begin = int(first * size * words)
        generator.bit_generator.advance(begin // 4)
        generator.bit_generator.random_raw(begin % 4)
        left = int(first * size - begin / words)
    else:
        left = first * size
    while left > 0:
        draw(min(left, 65536))
        left -= 65536
    found = draw((last - first) * size).reshape(last - first, size)
    return found if last - first == rows.size and rows[0] == first else found[rows - first]


def draw_rows(key, rows, law, shape, dtype, out=None):
    """The rows of these numbers of an array by a law of NumPy's."""
    size, words = int(np.prod(shape)), 0
    if law == "random":
        words = np.dtype(dtype).itemsize / 8

    def each(g, index):
        def draw(count):
            return getattr(g, law)(count, dtype)

        return _rows_of(g, rows[index], size, dtype, words, draw).reshape(-1, *shape)

    return _for_each(key, each, (rows.shape[-1], *shape), dtype, out)


def draw_integer_rows(key, rows, low, high, shape, dtype, out=None):
    """The rows of these numbers of an array of integers from low on and below high."""
    size = int(np.prod(shape))

    def each(g, index):
        def draw(count):
            return g.integers(low, high, count, dtype)

        return _rows_of(g, rows[index], size, dtype, 0, draw).reshape(-1, *shape)

    return _for_each(key, each, (rows.shape[-1], *shape), dtype, out)


def draw_order(key, count, out=None):
    """The integers below `count` in any order."""
    return _for_each(key, lambda g, _: g.permutation(count), (count,), np.int64, out)


def draw_gamma(concentration, key, out=None):
    """The gamma law of scale 1."""
    a = np.asarray(concentration)
    shape = a.shape[key.ndim - 1 :]
    return _for_each(key, lambda g, i: g.standard_gamma(a[i], shape, a.dtype), shape, a.dtype, out)


def draw_poisson(rate, key, out=None):
    """How many of what is rare happen."""
    a = np.asarray(rate)
    shape = a.shape[key.ndim - 1 :]
    return _for_each(key, lambda g, i: g.poisson(a[i], shape), shape, np.int64, out)


def draw_multinomial(p, n, key, out=None):
    """How often each class is drawn in n draws, with probabilities in proportion to p."""
    law, counts = np.asarray(p, np.float64), np.asarray(n)
    total = np.sum(law, axis=-1, keepdims=True)
    law = np.divide(law, total, out=np.ones(law.shape) / law.shape[-1], where=total > 0)
    shape = law.shape[key.ndim - 1 :]
    return _for_each(key, lambda g, i: g.multinomial(counts[i], law[i]), shape, np.int64, out)


def draw_vonmises(concentration, key, out=None):
    """Angles around 0 from von Mises's law."""
    a = np.asarray(concentration)
    shape = a.shape[key.ndim - 1 :]
    return _for_each(key, lambda g, i: g.vonmises(0, a[i], shape), shape, a.dtype, out)

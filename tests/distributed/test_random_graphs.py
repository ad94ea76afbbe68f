"""Random graphs over a named dimension: by pieces they are what they are whole, or are refused.

`python -m tests.distributed.test_random_graphs 2000` tries more of them.
"""

import sys

import numpy as np

import symgrad as sg
from symgrad.ir.errors import SymgradError, UnsupportedError
from symgrad.ir.evaluate import evaluate
from tests.distributed.pieces import by_pieces

ROWS = 7
N = sg.dim("N")


def axis(rng, x):
    """An axis, several, or all of them."""
    return None if rng.random() < 0.3 or not x.ndim else int(rng.integers(x.ndim))


def keep(rng):
    return bool(rng.random() < 0.5)


def along(function, whole=True):
    """A function with an axis."""

    def call(rng, pick):
        x = pick()
        a = axis(rng, x)
        return function(x, axis=a if whole or a is not None else 0)

    return call


def reduced(function):
    def call(rng, pick):
        x = pick()
        return function(x, axis=axis(rng, x), keepdims=keep(rng))

    return call


def unary(function):
    return lambda rng, pick: function(pick())


def binary(function):
    return lambda rng, pick: function(pick(), pick())


def sliced(rng, pick):
    x = pick()
    where = [slice(None)] * x.ndim
    for i, s in enumerate(x.shape):
        if isinstance(s, int) and s > 1 and rng.random() < 0.5:
            where[i] = [slice(1, None), 0, slice(None, None, -1), None][int(rng.integers(4))]
    return x[tuple(where)]


def permuted(rng, pick):
    x = pick()
    return sg.permute_dims(x, tuple(int(i) for i in rng.permutation(x.ndim)))


def reshaped(rng, pick):
    x = pick()
    kind = rng.integers(3)
    if kind == 0:
        return sg.reshape(x, (-1,))
    if kind == 1:
        return sg.expand_dims(x, axis=int(rng.integers(x.ndim + 1)))
    return sg.reshape(x, (N, -1))


def gradient(rng, pick):
    """The gradient of a function of a node by one that it is made of."""
    y, x = pick(), pick()
    return sg.grad(sg.sum(sg.tanh(y) * 0.5), x, disconnected="zero")


def looped(rng, pick):
    x = pick()
    return sg.scan(lambda c, row: (sg.tanh(c + row), c * 0.5), sg.zeros_like(x[0]), x)[
        int(rng.integers(2))
    ]


def numbered(rng, pick):
    """One element of each row, or one put into each row, by the rows' numbers."""
    x, n = pick(), sg.arange(N)
    column = n % 3 if rng.random() < 0.7 else sg.minimum(n, 2)
    if rng.random() < 0.5:
        return x[n, column]
    return sg.zeros((N, 3)).at[n, column].add(x if x.ndim == 1 else sg.sum(x, axis=1))


def taken(rng, pick):
    x, i = pick(), pick()
    where = sg.astype(sg.clip(i, 0, 1), "int64")
    return sg.take(
        x, where if where.ndim == 1 else sg.reshape(where, (-1,)), axis=axis(rng, x) or 0
    )


CALLS = [
    *map(unary, (sg.tanh, sg.relu, sg.abs, sg.square, sg.exp, sg.negative)),
    *map(binary, (sg.add, sg.subtract, sg.multiply, sg.maximum, sg.minimum, sg.hypot, sg.divide)),
    *map(binary, (sg.add, sg.multiply, sg.matmul, sg.matmul, sg.vecdot)),
    *map(reduced, (sg.sum, sg.mean, sg.max, sg.min, sg.prod, sg.var, sg.logsumexp, sg.std)),
    *map(reduced, (sg.sum, sg.mean)),
    *map(along, (sg.softmax, sg.log_softmax, sg.cumulative_sum, sg.sort, sg.flip)),
    lambda rng, pick: sg.concat([pick(), pick()], axis=int(rng.integers(2))),
    lambda rng, pick: sg.stack([pick(), pick()], axis=int(rng.integers(3))),
    lambda rng, pick: pick() / N,
    lambda rng, pick: sg.astype(sg.arange(N), "float64") * pick(),
    lambda rng, pick: sg.random.normal(sg.random.key(int(rng.integers(3))), (N, 3)) * pick(),
    lambda rng, pick: sg.linalg.vector_norm(pick(), axis=0),
    lambda rng, pick: sg.broadcast_to(pick(), (N, 3)),
    lambda rng, pick: sg.zeros((2, N)) + pick(),
    lambda rng, pick: sg.nn.dropout(pick(), sg.random.key(5)),
    sliced, permuted, reshaped, gradient, gradient, looped, numbered, numbered,
]  # fmt: skip
# These jump, and are asked of inputs only, which no rounding has changed.
JUMPS = [
    *map(unary, (sg.floor, sg.sign)),
    *map(reduced, (sg.any, sg.all, sg.argmax, sg.argmin, sg.count_nonzero)),
    lambda rng, pick: sg.where(pick() > 0, pick(), pick()),
    taken,
]


def grown(seed):
    """Some outputs of a random graph, its inputs, and arrays for them."""
    rng = np.random.default_rng(seed)
    xs = [
        sg.placeholder("a", ("N", 3)), sg.placeholder("b", (2, "N")), sg.placeholder("c", "N"),
        sg.placeholder("d", (3, 3)), sg.placeholder("e", 3), sg.placeholder("f", ("N", 2, 3)),
    ]  # fmt: skip
    arrays = [
        rng.integers(-8, 9, [ROWS if s == "N" else s for s in map(_plain, x.shape)]) / 8 + 1 / 64
        for x in xs
    ]
    nodes = [*xs]
    feeds = dict(zip(xs, arrays, strict=True))
    for _ in range(60):
        jumps = rng.random() < 0.2
        calls, pool = (JUMPS, xs) if jumps else (CALLS, nodes)
        call = calls[int(rng.integers(len(calls)))]
        try:
            y = call(rng, lambda pool=pool: pool[int(len(pool) * rng.random() ** 0.7)])
            (value,) = evaluate([y], feeds, {"N": ROWS})
        except (SymgradError, TypeError, ValueError, IndexError):
            continue
        tame = value.dtype.kind in "biu" or np.abs(value).max(initial=0) < 1e4
        if y.ndim <= 3 and value.size < 500 and tame:
            nodes.append(y)
    made = nodes[len(xs) :]
    return made[-3:], xs, arrays


def _plain(size):
    return size if isinstance(size, int) else "N"


def compared(seed):
    """How many outputs were right; the others were refused. Raises if one is wrong."""
    ys, xs, arrays = grown(seed)
    right = 0
    for y in ys:
        (expected,) = evaluate([y], dict(zip(xs, arrays, strict=True)), {"N": ROWS})
        for ends in ((3, 4, ROWS), (ROWS,)):
            try:
                (found,), _ = by_pieces([y], xs, arrays, ends)
            except UnsupportedError:
                break
            assert found.dtype == expected.dtype, seed
            far = {2: 4e-3, 4: 1e-5}.get(found.dtype.itemsize, 1e-8)
            np.testing.assert_allclose(
                found, expected, rtol=far, atol=far, err_msg=f"{seed}\n{sg.Graph([y])}"
            )
        else:
            right += 1
    return right


def test_random_graphs():
    assert sum(map(compared, range(100))) > 150


if __name__ == "__main__":
    right = [compared(seed) for seed in range(1000, 1000 + int(sys.argv[1]))]
    sys.stdout.write(f"{sum(right)} outputs right, {3 * len(right) - sum(right)} refused\n")

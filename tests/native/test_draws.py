"""What a key draws, in machine code: NumPy's bits, wherever a row or a block begins."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.graph import Graph
from symgrad.native.kernel import compiled
from symgrad.native.space import NotNative
from symgrad.ops.random.draws import draw
from symgrad.testing import assert_equivalent
from tests.native.campaign import everything

pytest.importorskip("llvmlite")

KEYS = ([0, 0], [2**64 - 1, 1], [0x9E3779B97F4A7C15, 2**63 + 5])


def drawn(key, shape, dtype):
    return np.random.Generator(np.random.Philox(key=key)).random(shape, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(2,), (20_011,), (37, 13), (6, 501), (5, 7, 33)])
def test_the_bits_are_numpys(shape, dtype):
    x, k = sg.placeholder("x", shape, dtype), sg.placeholder("k", (2,), "uint64")
    noise = draw(k, law="random", shape=shape, dtype=np.dtype(dtype))
    ends = [noise * 1, sg.where(noise < 0.3, x, 0)]
    if len(shape) > 1:
        ends.append(x / sg.max(x, axis=-1, keepdims=True) + noise)
    kernel = compiled(Graph(ends, [x, k]), {})
    a = np.random.default_rng(1).random(shape).astype(dtype)
    for key in KEYS:
        key = np.array(key, np.uint64)
        found, expected = kernel.run([a, key]), drawn(key, shape, dtype)
        np.testing.assert_array_equal(found[0], expected)
        np.testing.assert_array_equal(found[1], np.where(expected < a.dtype.type(0.3), a, 0))
        if len(shape) > 1:
            np.testing.assert_array_equal(found[2], a / a.max(-1, keepdims=True) + expected)


@pytest.mark.parametrize("exact", ["bits", "rounding"])
def test_dropout_draws_in_its_group(exact):
    x, k = sg.placeholder("x", ("N", 300), "float32"), sg.placeholder("k", (2,), "uint64")
    h = sg.nn.dropout(sg.relu(x), k, rate=0.3)
    halves = sg.nn.dropout(sg.astype(x, "float16"), k, rate=0.5)
    outputs = [h, sg.grad(sg.sum(h * h), x), halves]
    arrays = [np.random.default_rng(2).standard_normal((70, 300), np.float32)]
    arrays.append(np.array(KEYS[2], np.uint64))
    expected = sg.compile([x, k], outputs, backend="numpy", exact=exact)(*arrays)
    with everything(block=1000):
        for threads in (1, 2):
            program = sg.compile([x, k], outputs, backend="native", exact=exact, threads=threads)
            for y, z in zip(program(*arrays), expected, strict=True):
                np.testing.assert_array_equal(y, z)
            assert "draw(" not in program.source.split("def step")[1]


@pytest.mark.parametrize("backend", ["numpy", "native", "reference"])
def test_what_is_drawn_otherwise_is_drawn_outside(backend):
    """Another law, several keys, a key that is a view, noise that broadcasts, and a loop's body."""
    x, k = sg.placeholder("x", (40, 90)), sg.placeholder("k", (2,), "uint64")
    keys = sg.random.split(k, 3)
    normal = sg.tanh(x * sg.random.normal(keys[0], (40, 90)) + 1)
    rows = sg.exp(x) * sg.random.uniform(keys[1], (90,)) + sg.random.uniform(keys[2], (40, 1))
    many = sg.vmap(lambda key: sg.random.bernoulli(key, 0.2, (90,)) * x[0])(keys)
    last, _ = sg.scan(lambda c, key: (c * sg.random.uniform(key, (90,)) + 1, None), x[0], keys)
    outputs = [normal, rows, many, last, sg.random.uniform(k, (40, 90)) * x]
    arrays = [np.random.default_rng(3).random((40, 90)), np.array(KEYS[2], np.uint64)]
    with everything(tile=2000):
        assert_equivalent([x, k], outputs, arrays, backend=backend)


def test_what_is_drawn_for_other_rows_does_not_fit():
    x, k = sg.placeholder("x", (6, 50)), sg.placeholder("k", (2,), "uint64")
    column = draw(k, law="random", shape=(6, 1), dtype=np.dtype("float64"))
    with pytest.raises(NotNative, match="does not lie"):
        compiled(Graph([x * column + 1], [x, k]), {})

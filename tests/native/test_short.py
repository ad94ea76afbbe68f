"""Axes shorter than a vector, and quotients of integers: one loop, and NumPy's bits."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.graph import Graph
from symgrad.native.kernel import compiled
from symgrad.native.space import NotNative

pytest.importorskip("llvmlite")


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"])
def test_quotients_by_positive_constants(dtype):
    rng, i = np.random.default_rng(0), np.iinfo(dtype)
    a = rng.integers(i.min, i.max, 203, dtype, endpoint=True)
    a[:6] = [i.min, i.max, 0, 1, i.min + 1, i.max - 1]
    x = sg.placeholder("x", 203, dtype)
    for n in (1, 2, 7, 64, i.max):
        number = np.array(n, dtype)
        quotient, rest = compiled(Graph([x // number, x % number], [x]), {}).run([a])
        np.testing.assert_array_equal(quotient, a // number)
        np.testing.assert_array_equal(rest, a % number)
    for other in (x // x, x % np.array(0, dtype), sg.astype(x, "float32") // 2):
        with pytest.raises(NotNative):
            compiled(Graph([other], [x]), {})


@pytest.mark.parametrize(
    ("channels", "flipped", "dtype"),
    [(3, (), "uint8"), (3, (1,), "int32"), (3, (2,), "uint8"), (3, (0, 1, 2), "float64"),
     (15, (2,), "float32"), (16, (2,), "uint8"), (1, (2,), "uint8")],
)  # fmt: skip
def test_images_with_few_channels_are_one_loop(channels, flipped, dtype):
    rng, n = np.random.default_rng(1), "N"
    x, y = (sg.placeholder(name, (n, 9, 7, channels), dtype) for name in "xy")
    gain = sg.placeholder("gain", (n, 1, 1, channels), dtype)
    bias, column = sg.placeholder("bias", (channels,), dtype), sg.placeholder("c", (7, 1), dtype)
    mirrored = sg.placeholder("mirrored", (n, 1, 1, 1), "bool")
    z = sg.where(mirrored, sg.flip(x, axis=flipped) if flipped else y, x)
    outputs = [z * gain + bias, sg.maximum(z, y) - column * gain]
    inputs = [x, y, gain, bias, column, mirrored]
    shapes = [tuple(s if isinstance(s, int) else 3 for s in p.shape) for p in inputs]
    feeds = [rng.integers(0, 50, s).astype(p.dtype) for s, p in zip(shapes, inputs, strict=True)]
    feeds[-1] = rng.integers(0, 2, shapes[-1]) > 0
    program = sg.compile(inputs, outputs, backend="native", exact="bits", threads=2)
    raw = sg.compile(inputs, outputs, passes=(), backend="numpy")
    for found, wanted in zip(program(*feeds), raw(*feeds), strict=True):
        np.testing.assert_array_equal(found, wanted)
    (code,) = program.native
    assert bool(code.wide) == (1 < channels < 16)
    assert bool(code.group.space.scattered) == (1 < channels < 16 and 2 in flipped)


@pytest.mark.parametrize("shape", [(3, 4), (5, 9, 7, 3)])
def test_numbers_that_are_repeated_along_a_short_axis_are_each_read(shape):
    """The view repeats what a step outside the group made: its last stride is 0."""
    a = np.random.default_rng(2).standard_normal(shape).astype("float32")
    x = sg.placeholder("x", shape, "float32")
    repeated = np.broadcast_to(a[..., :1].copy(), shape)
    code = compiled(Graph([x * 2 + 1], [x]), {}, strides=[repeated.strides])
    np.testing.assert_array_equal(code.run([repeated])[0], repeated * 2 + 1)
    assert code.group.space.scattered

"""What tests of machine code share: values with special ones among them, and NumPy's answers."""

import numpy as np

from symgrad.ir.evaluate import evaluate

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1.0, 0.5, -3.0)
UNARY = ("negative", "abs", "square", "sqrt", "relu", "sign", "floor", "ceil", "trunc", "rint")
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "copysign")
COMPARE = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
WHOLE = ("add", "subtract", "multiply", "maximum", "minimum")


def values(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -50, 50, shape).astype(dtype)
    found = np.asarray(rng.standard_normal(shape) * 3)
    odd = rng.random(shape) < 0.15
    return np.where(odd, rng.choice(SPECIAL, shape), found).astype(dtype)


def reference(graph, arrays):
    with np.errstate(all="ignore"):
        return [
            np.asarray(v)
            for v in evaluate(graph.outputs, dict(zip(graph.inputs, arrays, strict=True)))
        ]


def assert_same_bits(found, expected):
    """The same bits, but for those of a NaN."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if found.dtype.kind == "f":
        both = np.isnan(found) & np.isnan(expected)
        found, expected = np.where(both, 0, found), np.where(both, 0, expected)
        assert (np.signbit(found) == np.signbit(expected)).all()
    np.testing.assert_array_equal(found, expected)

"""Sets and places: known when the graph is built, or as many as a bound says."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import ShapeError
from tests.helpers import close, each, generator, same, value

NAN = np.nan
RNG = generator("sets")
SHAPES = [(), (0,), (7,), (3, 4), (2, 0)]


def few(shape, dtype):
    """Few different elements, some of them NaN."""
    array = np.asarray(RNG.integers(0, 4, shape)).astype(dtype)
    if dtype == "float64" and array.ndim:
        array.reshape(-1)[::3] = NAN
    return array


def placeholder(array):
    return sg.placeholder("x", tuple(f"N{i}" for i in range(array.ndim)), array.dtype)


@each("shape", SHAPES)
@each("dtype", ["int64", "float64", "bool", "uint8"])
def test_unique_is_numpys(shape, dtype):
    array = few(shape, dtype)
    expected, x = np.unique_all(array), placeholder(array)
    for mine, numpys in zip(sg.unique_all(sg.constant(array)), expected, strict=True):
        same(value(mine), numpys)
    for bound in (0, 2, 9):
        program = sg.compile(x, list(sg.unique_all(x, size=bound)))
        values, indices, inverse, counts = program(array)
        same(inverse, expected.inverse_indices)
        kept = len(expected.values[:bound])
        for mine, numpys in ((values, expected[0]), (indices, expected[1]), (counts, expected[3])):
            assert mine.shape == (bound,)
            same(mine[:kept], numpys[:kept])
            assert not mine[kept:].any()


def test_the_other_uniques_are_parts_of_it():
    x = np.array([[3.0, 1], [NAN, 1]])
    for size in (None, 5):
        node = sg.constant(x) if size is None else sg.placeholder("x", (2, 2))
        found = sg.unique_all(node, size=size)
        pairs = [
            (sg.unique_values(node, size=size), found.values),
            (sg.unique_counts(node, size=size).counts, found.counts),
            (sg.unique_counts(node, size=size).values, found.values),
            (sg.unique_inverse(node, size=size).inverse_indices, found.inverse_indices),
        ]
        for one, other in pairs:
            same(value(one, {node: x}), value(other, {node: x}))


def test_numpys_unique_takes_all_nans_for_one():
    x = np.array([NAN, 2, NAN, 1, 2])
    asked = {"return_index": True, "return_inverse": True, "return_counts": True}
    node = sg.placeholder("x", 5)
    for mine, bounded, numpys in zip(
        np.unique(sg.constant(x), **asked),
        sg.unique(node, **asked, size=3),
        np.unique(x, **asked),
        strict=True,
    ):
        same(value(mine), numpys)
        same(value(bounded, {node: x}), numpys)
    same(value(np.unique(sg.constant(x))), np.unique(x))
    same(value(np.unique(sg.constant(x), return_counts=True)[1]), np.array([1, 2, 2]))


def test_equal_elements_share_the_gradient_of_their_value():
    x = sg.placeholder("x", 5)
    g = sg.grad(sg.sum(sg.unique_values(x, size=4, fill_value=9) * np.arange(1.0, 5)), x)
    close(value(g, {x: np.array([2.0, 1, 2, 5, 2])}), [2 / 3, 1, 2 / 3, 3, 2 / 3])


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_nonzero_is_numpys(shape):
    array = few(shape, "int64") > 1
    x = placeholder(array)
    expected = np.nonzero(array)
    for mine, numpys in zip(np.nonzero(sg.constant(array)), expected, strict=True):
        same(value(mine), numpys)
    for bound in (0, 3, 20):
        program = sg.compile(x, list(sg.nonzero(x, size=bound, fill_value=-1)))
        for mine, numpys in zip(program(array), expected, strict=True):
            same(mine, np.append(numpys, np.full(bound, -1))[:bound])


def test_a_masked_mean_by_a_bounded_nonzero():
    x = sg.placeholder("x", "N")
    (at,) = sg.nonzero(x > 0, size=x.shape[0])
    total = sg.sum(sg.where(sg.arange(x.shape[0]) < sg.sum(x > 0), x[at], 0))
    array = np.array([1.0, -2, 3])
    same(value(total, {x: array}), np.float64(4))
    same(value(sg.grad(total, x), {x: array}), np.array([1.0, 0, 1]))


@pytest.mark.parametrize("name", ["unique_all", "unique_counts", "unique_inverse", "unique_values"])
def test_what_only_a_run_tells_wants_a_bound(name):
    function = getattr(sg, name)
    for node in (sg.placeholder("x", 3), sg.variable("v", np.zeros(3)), sg.ones("N")):
        with pytest.raises(ShapeError, match=rf"only when the program runs.*{name}\(x, size=...\)"):
            function(node)
    with pytest.raises(ShapeError):
        function(sg.placeholder("x", 3), size=-1)


def test_what_nonzero_refuses():
    with pytest.raises(ShapeError, match=r"nonzero\(x, size=...\)"):
        sg.nonzero(sg.placeholder("x", 3))
    with pytest.raises(ShapeError, match=r"a scalar has no axes .* reshape\(x, \(1,\)\)"):
        sg.nonzero(1.0)


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1, 2, 3], [3, 1]),
        ([[1.0, NAN], [0.0, 2]], [NAN, -0.0]),
        (2, [[2]]),
        ([1, 2], []),
        ([1.5, 2], [2]),
    ],
)
def test_isin_is_numpys(a, b, invert):
    same(value(sg.isin(a, b, invert=invert)), np.isin(a, b, invert=invert))
    same(value(np.isin(sg.constant(a), b, invert=invert)), np.isin(a, b, invert=invert))
    x = sg.placeholder("x", np.shape(a), np.asarray(a).dtype)
    found = sg.compile(x, sg.isin(x, b, invert=invert))(np.asarray(a))
    same(found, np.isin(a, b, invert=invert))

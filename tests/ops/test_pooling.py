"""Pooling and sliding windows against NumPy's views, ties, and named dimensions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg
from symgrad.ir.errors import DtypeError, ShapeError
from tests.helpers import check_derivatives, close, generator, same, value

NAN, INF = np.nan, np.inf


@st.composite
def poolings(draw):
    """The shape of images and all that a pooling is told."""
    axes = draw(st.integers(1, 3))
    each = st.tuples(*(st.integers(1, 3),) * axes)
    size, stride, dilation = draw(each), draw(each), draw(each)
    spans = [d * (k - 1) + 1 for k, d in zip(size, dilation, strict=True)]
    widths = [st.tuples(st.integers(0, m - 1), st.integers(0, m - 1)) for m in spans]
    padding = draw(st.tuples(*(st.just((0, 0)) | w for w in widths)))
    sizes = tuple(m + draw(st.integers(0, 3)) for m in spans)
    shape = (draw(st.integers(0, 2)), draw(st.integers(1, 2)), *sizes)
    told = {"size": size, "stride": stride, "padding": padding, "dilation": dilation}
    return shape, told, draw(st.sampled_from(["first", "last"]))


def windows(x, size, stride, padding, dilation, fill):
    """A view of (N, C, …) with the places in a window flattened into the last axis."""
    x = np.pad(x, ((0, 0), (0, 0), *padding), constant_values=fill)
    spans = [d * (k - 1) + 1 for k, d in zip(size, dilation, strict=True)]
    found = np.lib.stride_tricks.sliding_window_view(x, spans, tuple(range(2, x.ndim)))
    found = found[(..., *(slice(None, None, s) for s in stride), *(slice(None),) * len(size))]
    found = found[(..., *(slice(None, None, d) for d in dilation))]
    return found.reshape(*found.shape[: -len(size)], np.prod(size))


def moved(x, channels):
    return x if channels == "first" else np.moveaxis(x, 1, -1)


@settings(max_examples=120)
@given(poolings(), st.sampled_from(["float32", "float64", "int32", "bool"]))
def test_max_pool(case, dtype):
    shape, told, channels = case
    x = (10 * generator(f"{case}").standard_normal(shape)).astype(dtype)
    least = -INF if x.dtype.kind == "f" else False if dtype == "bool" else np.iinfo(dtype).min
    found = value(sg.max_pool(moved(x, channels), **told, channels=channels))
    same(found, moved(np.max(windows(x, **told, fill=least), axis=-1), channels))


@settings(max_examples=120)
@given(poolings(), st.booleans())
def test_avg_pool(case, all_count):
    shape, told, channels = case
    x = generator(f"{case}").standard_normal(shape)
    found = sg.avg_pool(moved(x, channels), **told, count_include_pad=all_count, channels=channels)
    places = windows(x, **told, fill=0 if all_count else NAN)
    close(value(found), moved(np.nanmean(places, axis=-1), channels), 1e-12)


@settings(max_examples=25)
@given(poolings())
def test_their_derivatives(case):
    shape, told, channels = case
    rng = generator(f"{case}")
    array = moved(rng.permutation(np.prod(shape, dtype=int)).reshape(shape) / 10, channels)
    x = sg.placeholder("x", array.shape)
    for pool in (sg.max_pool, sg.avg_pool):
        y = pool(x, **told, channels=channels)
        check_derivatives([y], [x], [array], rng)
        (g,) = sg.grad(sg.sum(y**3), [x])
        check_derivatives([g], [x], [array], rng)


def gradient(array, size, **told):
    x = sg.placeholder("x", np.shape(array))
    g = sg.grad(sg.sum(sg.max_pool(x, size, **told)), x)
    return sg.compile([x], g)(np.asarray(array, float))


@pytest.mark.parametrize(
    ("row", "size", "told", "expected"),
    [
        ([1, 1, 1, 1], 2, {}, [1, 0, 1, 0]),
        ([0, 2, 2, 2], 4, {}, [0, 1, 0, 0]),
        ([1, 3, 3, 1], 2, {"stride": 1}, [0, 2, 1, 0]),
        ([1, 1, 1], 3, {"stride": 1, "padding": 1}, [2, 1, 0]),
        ([NAN, 1, 2, 3], 2, {}, [1, 0, 0, 1]),
        ([1, NAN, 2, NAN, NAN], 3, {"stride": 1}, [0, 2, 0, 1, 0]),
        ([INF, INF, -INF, -INF], 2, {}, [1, 0, 1, 0]),
        ([1, 2, 3, 4, 9], 2, {}, [0, 1, 0, 1, 0]),
    ],
)
def test_the_first_of_those_that_tie_has_the_gradient(row, size, told, expected):
    same(gradient([[row]], size, **told), np.array([[expected]], float))


def test_in_a_plane_the_first_is_that_of_the_first_row():
    image = np.array([[[[1, 2, 2], [2, 2, 2], [2, 2, 2.0]]]])
    same(gradient(image, 3), np.array([[[[0, 1, 0], [0, 0, 0], [0, 0, 0.0]]]]))
    same(gradient(np.swapaxes(image, 2, 3), 3), np.array([[[[0, 0, 0], [0, 0, 0], [0, 0, 0]]]])
         + np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]]).astype(float))  # fmt: skip


def test_an_infinite_cotangent_flows_to_one_place_only():
    x = sg.placeholder("x", (1, 1, 4))
    g = sg.vjp(sg.max_pool(x, 2), x, np.array([[[INF, 1.0]]]))
    same(value(g, {x: np.array([[[1, 2, 4, 3.0]]])}), np.array([[[0, INF, 1, 0]]]))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_dtype_is_kept(dtype):
    array = np.arange(8, dtype=dtype).reshape(1, 1, 8)
    x = sg.placeholder("x", array.shape, dtype)
    for pool in (sg.max_pool, sg.avg_pool):
        y = pool(x, 2)
        assert value(y, {x: array}).dtype == dtype
        assert value(sg.grad(sg.sum(y), x), {x: array}).dtype == dtype
    same(value(sg.avg_pool(np.array([[[1, 2]]]), 2)), np.array([[[1.5]]]))


def test_named_dimensions():
    x = sg.placeholder("x", ("N", 2, "H", "2*W"))
    outputs = [
        sg.max_pool(x, 3, stride=1, padding="same"),
        sg.avg_pool(x, (1, 2)),
        sg.avg_pool(x, (2, 1), stride=1, padding=(1, 0), count_include_pad=False),
    ]
    assert [str(y.shape) for y in outputs] == [
        "(N, 2, H, 2*W)",
        "(N, 2, H, W)",
        "(N, 2, H + 1, 2*W)",
    ]
    program = sg.compile([x], [*outputs, sg.grad(sum(sg.sum(y) for y in outputs), x)])
    for shape in ((2, 2, 3, 4), (1, 2, 2, 2), (0, 2, 2, 2)):
        array = generator("pool").standard_normal(shape)
        *found, g = program(array)
        expected = windows(array, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), -INF).max(-1)
        same(found[0], expected)
        close(found[1], (array[..., ::2] + array[..., 1::2]) / 2, 1e-12)
        close(g.sum(), sum(y.size for y in found), 1e-12)


def test_sliding_windows_are_numpys():
    x = generator("windows").standard_normal((4, 5, 3))
    numpys = np.lib.stride_tricks.sliding_window_view
    node = sg.constant(x)
    for told in (((2, 3, 1), None), (2, 0), ((2, 2), (1, 1)), ((3, 2), (1, -1))):
        same(value(sg.sliding_window_view(node, *told)), numpys(x, *told))
        same(value(numpys(node, *told)), numpys(x, *told))
    y = sg.placeholder("y", ("N", 3))
    found = sg.sliding_window_view(y, 3, 0)
    assert str(found.shape) == "(N - 2, 3, 3)"
    program = sg.compile([y], [found, sg.grad(sg.sum(found**2), y)])
    array = generator("windows").standard_normal((6, 3))
    view, g = program(array)
    same(view, numpys(array, 3, 0))
    close(g, 2 * array * np.array([1, 2, 3, 3, 2, 1])[:, None], 1e-12)
    with pytest.raises(ShapeError, match="a window of 7 is larger than an axis of 5; pad it"):
        sg.sliding_window_view(x, 7, 1)
    with pytest.raises(ShapeError, match="windows of 2 axes do not slide along 3"):
        sg.sliding_window_view(x, (2, 2))
    with pytest.raises(ShapeError, match="size is 1 or more, not 0"):
        sg.sliding_window_view(x, 0, 1)


@pytest.mark.parametrize("pool", [sg.max_pool, sg.avg_pool])
def test_bad_input(pool):
    x = np.ones((1, 1, 4, 4))
    with pytest.raises(ShapeError, match="a window of 5 is larger than an axis of 4; pad it"):
        pool(x, 5)
    with pytest.raises(ShapeError, match="size has 3 entries for 2 axes"):
        pool(x, (2, 2, 2))
    with pytest.raises(ShapeError, match="stride is 1 or more, not 0"):
        pool(x, 2, stride=0)
    with pytest.raises(ShapeError, match="makes windows of 2 that hold nothing else"):
        pool(x, 2, padding=2)
    with pytest.raises(ShapeError, match="images have a batch axis"):
        pool(np.ones((2, 2)), 1)
    with pytest.raises(DtypeError):
        pool(np.ones((1, 1, 4), "complex128") if pool is sg.max_pool else np.array([[["a"]]]), 1)

"""Convolutions against a direct loop, in every combination of what they can be told."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg
from symgrad.ir.errors import DtypeError, ShapeError
from tests.helpers import check_derivatives, close, each, generator, value

RNG = generator("convolution")


def direct(x, w, stride, padding, dilation, groups):
    """A loop over places and taps."""
    axes = x.ndim - 2
    x = np.pad(x, ((0, 0), (0, 0), *padding))
    spans = [d * (k - 1) + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    counts = [(n - m) // s + 1 for n, m, s in zip(x.shape[2:], spans, stride, strict=True)]
    y = np.zeros((len(x), len(w), *counts), np.result_type(x, w))
    own, filters = w.shape[1], len(w) // groups
    for place in np.ndindex(*counts):
        for tap in np.ndindex(*w.shape[2:]):
            at = tuple(place[i] * stride[i] + tap[i] * dilation[i] for i in range(axes))
            for g in range(groups):
                part = x[(slice(None), slice(g * own, (g + 1) * own), *at)]
                out = slice(g * filters, (g + 1) * filters)
                y[(slice(None), out, *place)] += part @ w[(out, slice(None), *tap)].T
    return y


def moved(x, channels):
    return x if channels == "first" else np.moveaxis(x, 1, -1)


@st.composite
def convolutions(draw):
    """The shapes of images and weights, and all that a convolution is told."""
    axes = draw(st.integers(1, 3))
    each = st.tuples(*(st.integers(1, 3),) * axes)
    kernel, stride, dilation = draw(each), draw(each), draw(each)
    padding = draw(st.tuples(*(st.tuples(st.integers(0, 2), st.integers(0, 2)),) * axes))
    sizes = tuple(
        max(d * (k - 1) + 1 - sum(p), 1) + draw(st.integers(0, 3))
        for k, d, p in zip(kernel, dilation, padding, strict=True)
    )
    groups, own, filters = draw(st.tuples(*(st.integers(1, 2),) * 3))
    batch = draw(st.integers(0, 2))
    shapes = (batch, groups * own, *sizes), (groups * filters, own, *kernel)
    told = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return shapes, told, draw(st.sampled_from(["first", "last"]))


@settings(max_examples=150, deadline=None)
@given(convolutions(), st.sampled_from(["float32", "float64", "complex128"]))
def test_a_convolution_is_the_loop(case, dtype):
    (x_shape, w_shape), told, channels = case
    rng = generator(f"{case}")
    x = rng.standard_normal(x_shape).astype(dtype)
    w = rng.standard_normal(w_shape).astype(dtype)
    found = value(sg.conv(moved(x, channels), w, **told, channels=channels))
    assert found.dtype == dtype
    close(found, moved(direct(x, w, **told), channels), 1e-5 if dtype == "float32" else 1e-12)


@settings(max_examples=80, deadline=None)
@given(convolutions())
def test_its_derivatives(case):
    (x_shape, w_shape), told, channels = case
    rng = generator(f"{case}")
    arrays = [moved(rng.standard_normal(x_shape), channels), rng.standard_normal(w_shape)]
    xs = [sg.placeholder(n, a.shape) for n, a in zip("xw", arrays, strict=True)]
    y = sg.conv(*xs, **told, channels=channels)
    check_derivatives([y], xs, arrays, rng)
    gradients = sg.grad(sg.sum(y * y), xs)
    check_derivatives(gradients, xs, arrays, rng)
    # A program has memory for what is lowered, and hands on views of results.
    program = sg.compile(xs, [y, *gradients])
    for found, node in zip(program(*arrays), [y, *gradients], strict=True):
        close(found, value(node, dict(zip(xs, arrays, strict=True))), 1e-11)


def test_axes_of_size_1_may_have_any_strides():
    """What a program hands on for one image and one filter a group is such a view."""
    arrays = RNG.standard_normal((1, 4, 9)), RNG.standard_normal((2, 2, 3))
    xs = [sg.placeholder(n, a.shape) for n, a in zip("xw", arrays, strict=True)]
    y = sg.conv1d(*xs, stride=4, dilation=2, groups=2)
    outputs = [y, *sg.grad(sg.sum(y**3), xs)]
    for found, node in zip(sg.compile(xs, outputs)(*arrays), outputs, strict=True):
        close(found, value(node, dict(zip(xs, arrays, strict=True))), 1e-12)


@settings(max_examples=60, deadline=None)
@given(convolutions(), st.booleans())
def test_conv_transpose_is_the_transpose(case, largest):
    (x_shape, w_shape), told, channels = case
    rng = generator(f"{case}")
    x, w = rng.standard_normal(x_shape), rng.standard_normal(w_shape)
    y = direct(x, w, **told)
    spans = [d * (k - 1) + 1 for k, d in zip(w.shape[2:], told["dilation"], strict=True)]
    extra = tuple(
        (n + sum(p) - m) % s
        for n, p, m, s in zip(x.shape[2:], told["padding"], spans, told["stride"], strict=True)
    )
    g = rng.standard_normal(y.shape)
    back = value(sg.conv_transpose(
        moved(g, channels), w, **told, output_padding=extra, channels=channels
    ))  # fmt: skip
    assert back.shape == moved(x, channels).shape
    close(np.vdot(back, moved(x, channels)), np.vdot(g, y), 1e-12)


def test_scipy_says_the_same():
    signal = pytest.importorskip("scipy.signal")
    x, w = RNG.standard_normal((1, 1, 9, 8)), RNG.standard_normal((1, 1, 3, 5))
    image, kernel = x[0, 0], w[0, 0]
    for padding in ("valid", "same"):
        expected = signal.correlate(image, kernel, padding)
        close(value(sg.conv2d(x, w, padding=padding))[0, 0], expected, 1e-12)
    close(value(sg.conv_transpose(x, w))[0, 0], signal.convolve(image, kernel, "full"), 1e-12)


@each("stride", [1, 2, 3])
@each("kernel", [1, 2, 3, 4])
def test_same_has_as_many_places_as_the_stride_has_steps(stride, kernel):
    for n in range(1, 8):
        x, w = RNG.standard_normal((1, 1, n)), RNG.standard_normal((1, 1, kernel))
        y = sg.conv1d(x, w, stride=stride, padding="same")
        assert y.shape == (1, 1, -(-n // stride))
        back = sg.conv_transpose(y, w, stride=stride, padding="same")
        assert back.shape == (1, 1, -(-n // stride) * stride)


@pytest.mark.parametrize("channels", ["first", "last"])
@pytest.mark.parametrize("groups", [1, 2])
def test_the_bias_belongs_to_the_filters(channels, groups):
    x, w, b = (RNG.standard_normal(s) for s in ((2, 4, 5, 6), (6, 4 // groups, 3, 2), (6,)))
    y = value(sg.conv2d(moved(x, channels), w, b, groups=groups, channels=channels))
    expected = direct(x, w, (1, 1), ((0, 0), (0, 0)), (1, 1), groups) + b[:, None, None]
    close(y, moved(expected, channels), 1e-12)
    back = value(sg.conv_transpose(np.zeros((1, 6, 2, 2)), w, np.arange(4 // groups * groups),
                                   groups=groups))  # fmt: skip
    same = np.broadcast_to(np.arange(4 // groups * groups)[:, None, None], back.shape[1:])
    close(back[0], same, 0)


def test_named_dimensions():
    x = sg.placeholder("x", ("N", 2, "H", "2*W"))
    w = sg.placeholder("w", (3, 2, 3, 2))
    outputs = [
        sg.conv2d(x, w),
        sg.conv2d(x, w, padding="same"),
        sg.conv2d(x, w, stride=(1, 2), dilation=(2, 1), padding=(2, 0)),
        sg.conv_transpose(x, sg.permute_dims(w, (1, 0, 2, 3)), stride=2),
    ]
    assert [str(y.shape) for y in outputs] == [
        "(N, 3, H - 2, 2*W - 1)",
        "(N, 3, H, 2*W)",
        "(N, 3, H, W)",
        "(N, 3, 2*H + 1, 4*W)",
    ]
    loss = sum(sg.sum(y * y) for y in outputs)
    program = sg.compile([x, w], [*outputs, *sg.grad(loss, [x, w])])
    for shape in ((2, 2, 4, 6), (0, 2, 3, 2), (1, 2, 9, 4)):
        arrays = RNG.standard_normal(shape), RNG.standard_normal(w.shape)
        fixed = [sg.placeholder(n, a.shape) for n, a in zip("xw", arrays, strict=True)]
        for found, y in zip(program(*arrays), outputs, strict=False):
            assert found.shape == tuple(s if isinstance(s, int) else s.evaluate(
                {"N": shape[0], "H": shape[2], "W": shape[3] // 2}) for s in y.shape)  # fmt: skip
        feeds = dict(zip(fixed, arrays, strict=True))
        close(program(*arrays)[0], value(sg.conv2d(*fixed), feeds), 1e-12)
    with pytest.raises(ShapeError, match="a kernel has sizes that are known"):
        sg.conv2d(x, sg.placeholder("v", (3, 2, "K", 2)))


def test_a_vmap_and_a_jacobian_go_through():
    x, w = sg.placeholder("x", (2, 1, 4, 3)), sg.placeholder("w", (2, 1, 2, 2))
    y = sg.conv2d(x, w, padding=1)
    feeds = {x: RNG.standard_normal(x.shape), w: RNG.standard_normal(w.shape)}
    for wrt in (x, w):
        found = value(sg.jacobian(y, wrt), feeds)
        for at in itertools.islice(np.ndindex(*y.shape), 0, None, 7):
            seed = np.zeros(y.shape)
            seed[at] = 1
            close(found[at], value(sg.vjp(y, wrt, seed), feeds), 1e-12)


def test_layers_stay_in_one_layout():
    """Between layers nothing is transposed, forwards and backwards."""
    x = sg.placeholder("x", ("N", 1, 12, 12), "float32")
    v, w = (
        sg.placeholder("v", (2, 1, 3, 3), "float32"),
        sg.placeholder("w", (3, 2, 3, 3), "float32"),
    )
    y = sg.conv2d(sg.max_pool(sg.relu(sg.conv2d(x, v)), 2), w)
    program = sg.compile([x, v, w], sg.grad(sg.sum(sg.relu(y)), [v, w]))
    moves = [n for n in program.graph.nodes if n.op.name == "permute_dims"]
    images = [n for n in moves if "N" in {str(s) for s in n.shape}]
    assert [n.inputs[0].op.name for n in images] == ["placeholder"]


@each(
    ("shapes", "told", "words"),
    [
        (((1, 2, 4), (3, 2, 5)), {}, "a window of 5 is larger than an axis of 4; pad it"),
        (
            ((1, 2, 4), (3, 2, 3)),
            {"dilation": 2},
            "3, dilated to 5, is larger than an axis",
        ),
        (((1, 2, 4), (3, 3, 2)), {}, "2 channels in 1 groups do not fit .* which take 3"),
        (((1, 4, 4), (3, 2, 2)), {"groups": 2}, "2 groups do not divide the 3 of the weights"),
        (((1, 4, 4), (4, 2, 2)), {"groups": 3}, "4 channels in 3 groups do not fit"),
        (((1, 4, 4), (4, 4, 2, 2)), {}, r"weights for float64\[1, 4, 4\] have 3 axes, not 4"),
        (((4, 4), (4, 4)), {}, "images have a batch axis, channels, and one axis or more"),
        (((1, 2, 4), (3, 2, 2)), {"stride": 0}, "stride is 1 or more, not 0"),
        (((1, 2, 4), (3, 2, 2)), {"stride": (1, 1)}, "stride has 2 entries for 1 axes"),
        (((1, 2, 4), (3, 2, 2)), {"stride": 1.5}, "stride is made of ints, not of 1.5"),
        (((1, 2, 4), (3, 2, 2)), {"padding": -1}, "a padding is a number or a pair, and not neg"),
        (((1, 2, 4), (3, 2, 2)), {"padding": "full"}, "'same' or 'valid', not 'full'"),
        (((1, 2, 4), (3, 2, 2)), {"channels": "middle"}, "channels are 'first'"),
        (((1, 2, 4), (3, 2, 2)), {"groups": 0}, "groups is 1 or more"),
    ],
)
def test_bad_input(shapes, told, words):
    with pytest.raises(ShapeError, match=words):
        sg.conv(*(np.ones(s) for s in shapes), **told)


def test_more_bad_input():
    x, w = np.ones((1, 2, 4, 4)), np.ones((3, 2, 2, 2))
    with pytest.raises(ShapeError, match="images with 1 spatial axes have 3, not 4"):
        sg.conv1d(x, w)
    with pytest.raises(ShapeError, match="one number for each of 3, not"):
        sg.conv2d(x, w, np.ones(2))
    with pytest.raises(ShapeError, match="output_padding is from 0 up to the stride 1, not 1"):
        sg.conv_transpose(x, np.ones((2, 2, 2, 2)), output_padding=1)
    with pytest.raises(ShapeError, match="leaves nothing of an axis of 5"):
        sg.conv_transpose(x, np.ones((2, 2, 2, 2)), padding=3)
    with pytest.raises(DtypeError, match="takes floats, complex, not int64"):
        sg.conv2d(x.astype(int), w.astype(int))

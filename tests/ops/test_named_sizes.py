"""Ops whose results are as long as no polynomial of named dimensions says; small sizes too.

What is built once for a named dimension is held to what is built for each size.
"""

from itertools import product

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.dim_text import dim
from symgrad.ir.dims import evaluate, least
from symgrad.ir.errors import BoundsError, ShapeError, SymgradError
from symgrad.ir.op import REGISTRY
from symgrad.ir.types import TensorType
from symgrad.ops.index.slices import slice_p
from symgrad.ops.linalg.solve import diagonal_p
from tests.helpers import close, each, generator

LA = sg.linalg
STEPS = (1, 2, 3, -1, -2, -3)
VECTORS = {
    "x[::2]": lambda x: x[::2],
    "x[1::3]": lambda x: x[1::3],
    "x[::-1]": lambda x: x[::-1],
    "x[::-2]": lambda x: x[::-2],
    "x[::2][::2]": lambda x: x[::2][::2],
    "x[::2] + x[1::2] if even": lambda x: sg.concat([x, x])[::2] + x,
    "x[:min(N, 3)]": lambda x: x[: least(x.size, 3)],
    "x[min(N, 1):]": lambda x: x[least(x.size, 1) :],
    "rolled by slices": lambda x: x + sg.concat([x[least(x.size, 2) :], x[: least(x.size, 2)]]),
    "at[::2].set": lambda x: x.at[::2].set(x[::2] ** 2),
    "at[::2].add": lambda x: x.at[1::2].add(1.5),
    "roll 1": lambda x: sg.roll(x, 1),
    "roll -7": lambda x: x * sg.roll(x, -7),
    "roll by N//2": lambda x: sg.roll(x, x.size // 2),
    "fftshift": lambda x: sg.fft.fftshift(x),
    "ifftshift": lambda x: sg.fft.ifftshift(x),
    "mean of every other": lambda x: sg.sum(x[::2]) / (x[::2].size + 1),
    "cut": lambda x: x[x.size // 2 :],
}
SEQUENCES = {
    "max_pool": lambda x: sg.max_pool(x, 2),
    "max_pool, padded": lambda x: sg.max_pool(x, 3, stride=2, padding=1),
    "max_pool, dilated": lambda x: sg.max_pool(x, 2, stride=3, dilation=2),
    "max_pool, same": lambda x: sg.max_pool(x, 3, stride=2, padding="same"),
    "avg_pool": lambda x: sg.avg_pool(x, 2),
    "avg_pool, same": lambda x: sg.avg_pool(
        x, 3, stride=2, padding="same", count_include_pad=False
    ),
    "conv, strided": lambda x: sg.conv1d(x, np.linspace(-1, 1, 24).reshape(4, 2, 3), stride=2),
    "conv, same": lambda x: sg.conv1d(
        x, np.linspace(-1, 1, 24).reshape(4, 2, 3), stride=3, padding="same"
    ),
    "pad wrap": lambda x: sg.pad(x, ((0, 0), (0, 0), (4, 7)), "wrap"),
    "pad reflect": lambda x: sg.pad(x, ((0, 0), (0, 0), (4, 7)), "reflect"),
    "pad symmetric": lambda x: sg.pad(x, ((0, 0), (0, 0), (4, 7)), "symmetric"),
    "pad odd": lambda x: sg.pad(x, ((0, 0), (0, 0), (9, 5)), "reflect", reflect_type="odd"),
    "pad odd symmetric": lambda x: sg.pad(
        x, ((0, 0), (0, 0), (9, 5)), "symmetric", reflect_type="odd"
    ),
    "pad edge": lambda x: sg.pad(x, ((0, 0), (0, 0), (2, 3)), "edge"),
    "windows": lambda x: sg.sliding_window_view(x, 2, axis=2)[:, :, ::2],
}
MATRICES = {
    "diagonal": lambda x: LA.diagonal(x),
    "diagonal 1": lambda x: LA.diagonal(x, offset=1),
    "diagonal -1": lambda x: LA.diagonal(x, offset=-1),
    "trace": lambda x: LA.trace(x),
    "einsum ii of a square": lambda x: sg.einsum("ii", x @ x.mT),
    "svdvals": lambda x: LA.svdvals(x),
    "svd": lambda x: sg.abs(LA.svd(x, full_matrices=False).U) @ LA.svd(x, full_matrices=False).Vh,
    "nuclear norm": lambda x: LA.matrix_norm(x, ord="nuc"),
    "Q": lambda x: LA.qr(x).Q,
    "R": lambda x: LA.qr(x).R,
    "every other row and column": lambda x: x[::2, ::-2],
    "pinv": lambda x: LA.pinv(x),
}


def derivatives(x, y):
    """A gradient, a tangent, and a gradient of the gradient, as far as there are."""
    loss = sg.sum(y * y + 3 * y)
    g = sg.grad(loss, x)
    (t,) = sg.jvp([y], [x], [sg.cos(x)])
    return [y, g, t]


def check(make, named, shapes, seed, second=True):
    x = sg.placeholder("x", named)
    results = derivatives(x, make(x))
    if second:
        results.append(sg.grad(sg.sum(sg.sin(results[1])), x))
    graph = sg.Graph(results, [x])
    assert sg.Graph.parse(graph.text(full=True)) == graph
    programs = [sg.compile(x, results), sg.compile(x, results, passes=())]
    for shape in shapes:
        array = generator(seed).standard_normal(shape)
        fixed = sg.placeholder("x", shape)
        expected = derivatives(fixed, make(fixed))
        if second:
            expected.append(sg.grad(sg.sum(sg.sin(expected[1])), fixed))
        expected = sg.compile(fixed, expected)(array)
        sizes = {s: n for s, n in zip(named, shape, strict=True) if isinstance(s, str)}
        for program in programs:
            for y, found, wanted in zip(results, program(array), expected, strict=True):
                assert found.shape == wanted.shape
                assert found.shape == tuple(evaluate(s, sizes) for s in y.shape)
                close(found, wanted, 1e-9)
        assert programs[0].cost(**sizes) is not None


@each("name", VECTORS)
def test_vectors(name):
    check(VECTORS[name], ("N",), [(n,) for n in (0, 1, 2, 3, 5, 8)], name)


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences(name):
    shapes = [(b, 2, n) for b, n in ((1, 3), (2, 4), (0, 5), (2, 9))]
    if name.startswith("pad"):
        shapes += [(1, 2, 1), (1, 2, 2)]
    check(SEQUENCES[name], ("B", 2, "N"), shapes, name)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("named", [("N", "M"), (3, "M"), ("N", 3)])
def test_matrices(name, named):
    fits = [
        s
        for s in ((3, 3), (3, 4), (4, 3), (3, 1), (1, 3), (2, 5))
        if all(isinstance(a, str) or a == b for a, b in zip(named, s, strict=True))
    ]
    # Of a number the matrix of what its singular vectors do is a constant, found from roundings.
    fits = [s for s in fits if 1 not in s] if name == "svd" else fits
    check(MATRICES[name], named, fits, name, second=name not in ("svd", "Q", "R", "pinv"))


def test_images_with_two_named_axes():
    w = generator("w").standard_normal((3, 2, 3, 3))

    def make(x):
        return sg.avg_pool(sg.relu(sg.conv2d(x, w, stride=2, padding=1)), 2, padding="same")

    check(make, ("B", 2, "H", "W"), [(1, 2, 4, 7), (2, 2, 5, 5)], "images", second=False)


def test_a_dimension_of_a_placeholder_is_found_where_it_says_itself():
    x, y = sg.placeholder("x", "N"), sg.placeholder("y", dim("(N + 1)//2"))
    add = sg.compile([y, x], x[::2] + y)
    close(add(np.ones(3), np.arange(5.0)), [1, 3, 5], 0)
    with pytest.raises(SymgradError, match="axis 0 is 2, not 3"):
        add(np.ones(2), np.arange(5.0))
    alone = sg.compile(y, y * 2)
    with pytest.raises(SymgradError, match=r"no N is found for which \(N \+ 1\)//2 is 1"):
        alone(np.ones(1))


def test_two_dims_that_are_equal_for_some_sizes_only_do_not_broadcast():
    x = sg.placeholder("x", "N")
    with pytest.raises(ShapeError, match=r"\(N \+ 1\)//2 and N//2 are not known to be equal"):
        x[::2] + x[1::2]
    with pytest.raises(ShapeError, match="not known to be equal"):
        LA.diagonal(sg.placeholder("x", ("N", "M"))) + x


@pytest.mark.parametrize(
    ("make", "fewest"),
    [
        (lambda x: x[1:], 1),
        (lambda x: x[:3], 3),
        (lambda x: x[-3:], 3),
        (lambda x: x[2:4], 4),
        (lambda x: x[4:1:-1], 5),
        (lambda x: x[:-3:-1], 2),
        (lambda x: x[3], 4),
    ],
)
def test_a_slice_of_fixed_length_wants_so_many_elements_before_anything_runs(make, fewest):
    x = sg.placeholder("x", "N")
    program = sg.compile(x, make(x))
    for n in range(7):
        array = np.arange(float(n))
        if n >= fewest:
            close(program(array), make(array), 0)
        else:
            with pytest.raises(ShapeError, match=r"test_named_sizes.*N = .*feed more elements"):
                program(array)


def test_where_no_margin_is_below_zero_no_size_is_too_small():
    """Of all slices with bounds up to 4 and steps up to 3, and of all diagonals."""
    n, whole = dim("N"), TensorType(("N",), "float64")
    bounds = [None, *range(-4, 5), n, n - 2, n // 2, least(n, 2)]
    slices = [(slice_p.op, (whole,), {"index": (i,)}) for i in product(bounds, bounds, STEPS)]
    matrix = TensorType(("N", 3), "float64")
    diagonals = [(diagonal_p.op, (matrix,), {"offset": k}) for k in range(-4, 4)]
    for op, types, attrs in slices + diagonals:
        try:
            op.infer(*types, **attrs)
        except ShapeError:
            continue
        margins = op.margins(*types, **attrs)
        for size in range(12):
            within = all(evaluate(m, {"N": size}) >= 0 for m in margins)
            fits = op.too_small(*types, sizes={"N": size}, **attrs) is None
            assert within <= fits, (attrs, size)
            if size == 11 and "N" not in str(attrs):  # far from all bounds
                assert within == fits, attrs


def test_an_op_that_can_be_too_small_tells_its_margins():
    ops = [op for op in REGISTRY.every().values() if op.too_small]
    assert slice_p.op in ops
    assert all(op.margins for op in ops)


def test_a_size_below_zero_is_refused_by_node():
    x = sg.placeholder("x", ("N",))
    program = sg.compile(x, sg.pad(x, (0, dim("N - 3"))))
    assert program(np.ones(4)).tolist() == [1, 1, 1, 1, 0]
    for n in (1, 2):
        with pytest.raises(ShapeError, match=r"place.*feed more elements"):
            program(np.ones(n))


def test_at_most_so_many_are_taken_by_a_dimension_that_is_written_out():
    x = sg.placeholder("x", "N")
    program = sg.compile(x, x[: sg.dim("min(N, 3)")])
    for n in range(6):
        close(program(np.arange(float(n))), np.arange(float(n))[:3], 0)


def test_a_slice_that_ends_before_it_begins_takes_nothing():
    x = sg.placeholder("x", "N")
    assert x[5:2].shape == (0,)
    assert sg.compile(x, x[5:2])(np.ones(9)).shape == (0,)
    assert sg.compile(x, sg.grad(sg.sum(x[5:2]), x))(np.ones(9)).shape == (9,)


@pytest.mark.parametrize("mode", ["edge", "wrap", "reflect", "symmetric"])
def test_nothing_is_not_padded_with_itself(mode):
    x = sg.placeholder("x", "N")
    with pytest.raises((ShapeError, BoundsError)):
        sg.compile(x, sg.pad(x, 2, mode))(np.ones(0))


def test_padding_by_named_widths():
    x = sg.placeholder("x", "N")
    n = x.shape[0]
    y = sg.compile(x, sg.pad(x, (n // 2, n), constant_values=2.0))
    close(y(np.ones(3)), [2, 1, 1, 1, 2, 2, 2], 0)
    with pytest.raises(ShapeError, match="pads by numbers"):
        sg.pad(x, n, "edge")

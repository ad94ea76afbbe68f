"""pad against NumPy's, in every mode, with its gradient."""

import itertools

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import DtypeError, ShapeError, UnsupportedError
from tests.helpers import check_derivatives, close, each, generator, same, value

WIDTHS = (0, 2, (0, 1), (3, 0), (7, 5), (5, 9))
OPTIONS = (
    *({"mode": m} for m in ("constant", "edge", "linear_ramp", "maximum", "mean", "median")),
    *({"mode": m} for m in ("minimum", "reflect", "symmetric", "wrap")),
    {"mode": "constant", "constant_values": 2.5},
    {"mode": "constant", "constant_values": (1, -1)},
    {"mode": "linear_ramp", "end_values": (1, -2)},
    {"mode": "mean", "stat_length": 2},
    {"mode": "maximum", "stat_length": (1, 2)},
    {"mode": "reflect", "reflect_type": "odd"},
    {"mode": "symmetric", "reflect_type": "odd"},
)  # fmt: skip


@each("options", OPTIONS, ids=str)
@each("shape", [(5,), (2,), (1,), (3, 4)])
def test_it_is_numpys_and_its_derivatives(options, shape):
    rng = generator(f"{options} {shape}")
    array = rng.standard_normal(shape)
    x = sg.placeholder("x", shape)
    for width in WIDTHS:
        y = sg.pad(x, width, **options)
        expected = np.pad(array, width, **options)
        assert y.shape == expected.shape
        close(value(y, {x: array}), expected, 1e-13)
        close(value(np.pad(sg.constant(array), width, **options)), expected, 1e-13)
        check_derivatives([y], [x], [array], rng)


@each("dtype", ["float32", "int8", "bool", "complex64"])
@each("mode", ["constant", "edge", "reflect", "symmetric", "wrap", "maximum"])
def test_the_dtype_is_kept(dtype, mode):
    x = generator("pad").uniform(-3, 3, (3, 4)).astype(dtype)
    if (dtype, mode) == ("complex64", "maximum"):
        with pytest.raises(DtypeError):
            sg.pad(x, 1, mode)
        return
    same(value(sg.pad(x, ((1, 2), (0, 3)), mode)), np.pad(x, ((1, 2), (0, 3)), mode))


def test_widths_for_some_axes():
    x = np.arange(6.0).reshape(2, 3)
    same(value(sg.pad(x, {1: 1})), np.pad(x, ((0, 0), (1, 1))))
    same(value(sg.pad(x, {-2: (1, 0), 1: 2}, "edge")), np.pad(x, ((1, 0), (2, 2)), "edge"))
    same(value(sg.pad(np.float64(3), 0)), np.float64(3))


def test_what_it_pads_with_may_be_a_node():
    x, c = sg.placeholder("x", 3), sg.placeholder("c", ())
    y = sg.pad(x, (2, 1), constant_values=c)
    same(value(y, {x: np.ones(3), c: np.float64(4)}), np.array([4, 4, 1, 1, 1, 4.0]))
    same(value(sg.grad(sg.sum(y), c), {c: np.float64(4)}), np.float64(3))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap", "mean"])
def test_named_dimensions(mode):
    x = sg.placeholder("x", ("N", 2))
    y = sg.pad(x, ((2, 1), (0, 0)), mode)
    assert str(y.shape) == "(N + 3, 2)"
    program = sg.compile([x], [y, sg.grad(sg.sum(y), x)])
    for n in (3, 5):
        array = generator("named").standard_normal((n, 2))
        found, g = program(array)
        close(found, np.pad(array, ((2, 1), (0, 0)), mode), 1e-13)
        close(g.sum(), 2 * n if mode == "constant" else 2 * (n + 3), 1e-12)


def test_a_value_that_is_nan_or_inf_comes_alone():
    x = np.array([np.inf, np.nan, 1.0])
    for mode, values in itertools.product(("constant", "edge", "reflect"), (0, -np.inf, np.nan)):
        same(
            value(sg.pad(x, 2, mode, constant_values=values)),
            np.pad(x, 2, mode, **({"constant_values": values} if mode == "constant" else {})),
        )


def test_bad_input():
    x = np.ones((2, 3))
    with pytest.raises(ShapeError, match="is an int and not negative, not -1"):
        sg.pad(x, -1)
    with pytest.raises(ShapeError, match=r"not 1\.5"):
        sg.pad(x, 1.5)
    with pytest.raises(ShapeError, match="such a pair for each of 2 axes"):
        sg.pad(x, ((1, 1), (1, 1), (1, 1)))
    with pytest.raises(UnsupportedError, match="no mode 'fold'; it has constant, empty, edge"):
        sg.pad(x, 1, "fold")
    with pytest.raises(UnsupportedError, match="'even' or 'odd'"):
        sg.pad(x, 1, "reflect", reflect_type="both")
    with pytest.raises(ShapeError, match="is empty: mode 'edge' cannot pad it"):
        sg.pad(np.ones((0, 2)), 1, "edge")
    with pytest.raises(ShapeError, match="stat_length is 1 or more"):
        sg.pad(x, 1, "maximum", stat_length=0)
    with pytest.raises(DtypeError, match="mode 'mean' pads with numbers"):
        sg.pad(np.ones(3, bool), 1, "mean")

"""Fourier transforms: NumPy's values, their derivatives and what they refuse."""

import importlib.util

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import DtypeError, ShapeError, UnsupportedError
from symgrad.testing import check_grads
from tests.helpers import close, each, generator, same, sample, value

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")
OF_REAL = ("rfft", "ihfft", "rfftn")
NORMS = ("backward", "ortho", "forward")
X = sample(generator("fft"), (4, 5, 6), "float64")
Z = X + 1j * X[::-1] ** 2


def operand(name, dtype="complex128"):
    if name in OF_REAL:
        return X.astype(np.empty(0, dtype).real.dtype)
    return Z.astype(dtype)


def both(name, x, **options):
    """Our transform and NumPy's."""
    found = value(getattr(sg.fft, name)(sg.constant(x), **options))
    return found, getattr(np.fft, name)(x, **options)


# ---- values ---------------------------------------------------------------------------------


@each("norm", NORMS)
@each("name", ONE)
@each("options", [{}, {"axis": 0}, {"n": 1}, {"n": 3, "axis": 1}, {"n": 8}])
def test_over_one_axis(name, norm, options):
    same(*both(name, operand(name), norm=norm, **options))


@each("norm", NORMS)
@each("name", SEVERAL)
@each(
    "options",
    [
        {},
        {"axes": (0, 2)},
        {"axes": (-1,)},
        {"axes": (2, 0), "s": (3, 7)},
        {"axes": (0, 1), "s": (-1, 3)},
    ],
)
def test_over_several_axes(name, norm, options):
    found, expected = both(name, operand(name), norm=norm, **options)
    assert found.dtype == expected.dtype
    close(found, expected, 1e-14)


@each("name", [*ONE, *SEVERAL])
@each("dtype", ["complex64", "complex128"])
def test_dtypes_are_numpys(name, dtype):
    found, expected = both(name, operand(name, dtype))
    assert found.dtype == expected.dtype
    close(found, expected, 1e-6)


@each("name", [*ONE, *SEVERAL])
@each("dtype", ["float16", "float32", "int32", "bool"])
def test_other_numbers_are_converted(name, dtype):
    x = (X > 0).astype(dtype)
    found = value(getattr(sg.fft, name)(x))
    kind = "complex64" if dtype.startswith("float") else "complex128"
    assert found.dtype in (np.dtype(kind), np.empty(0, kind).real.dtype)
    close(found, getattr(np.fft, name)(x), 1e-3 if dtype == "float16" else 1e-6)


@each("dtype", ["float32", "float64"])
@each("name", ["fft", "ifft", "fftn", "ifftn", "irfft", "hfft"])
def test_of_real_numbers(name, dtype):
    found, expected = both(name, X.astype(dtype))
    assert found.dtype == expected.dtype
    close(found, expected, 1e-6 if dtype == "float32" else 1e-14)
    if name in ("fft", "ifft"):
        same(found, expected)


def test_without_axes_the_sizes_are_of_the_last_ones():
    close(value(sg.fft.fftn(Z, s=(3, 7))), np.fft.fftn(Z, s=(3, 7), axes=(1, 2)), 1e-14)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("d", [1.0, 0.25])
def test_frequencies(n, d):
    same(value(sg.fft.fftfreq(n, d=d)), np.fft.fftfreq(n, d))
    same(value(sg.fft.rfftfreq(n, d=d)), np.fft.rfftfreq(n, d))
    assert sg.fft.fftfreq(n, dtype=sg.float32).dtype == np.float32
    assert sg.fft.rfftfreq(n, dtype="float32", device="cpu").dtype == np.float32


@pytest.mark.parametrize("axes", [None, 0, (1, 2), -1])
@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts(name, axes):
    same(*both(name, X, axes=axes))
    same(*both(name, Z, axes=axes))


def test_numpys_functions_build_nodes():
    z, x = sg.placeholder("z", (4, 5), "complex128"), sg.placeholder("x", (4, 5))
    for name in (*ONE, *SEVERAL, "fftshift", "ifftshift"):
        given = x if name in OF_REAL else z
        assert getattr(np.fft, name)(given).type == getattr(sg.fft, name)(given).type
    assert np.fft.fft(z, 3, 0, None).type == sg.fft.fft(z, n=3, axis=0).type


def test_a_named_dimension():
    z = sg.placeholder("z", ("N", 4), "complex128")
    program = sg.compile([z], sg.fft.fftn(z))
    close(program(Z[:, 0, :4]), np.fft.fftn(Z[:, 0, :4]), 1e-14)
    assert sg.fft.rfft(sg.placeholder("x", ("N", 4)), axis=1).shape == (z.shape[0], 3)


# ---- derivatives ----------------------------------------------------------------------------


@each("norm", NORMS)
@each("name", ONE)
@each("options", [{}, {"n": 3, "axis": 0}, {"n": 6}])
def test_derivatives_over_one_axis(name, norm, options):
    function = getattr(sg.fft, name)
    x = operand(name)[:, 0, :4]
    check_grads(lambda a: function(a * a, norm=norm, **options), x)


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("options", [{}, {"axes": (1, 0), "s": (2, 5)}])
def test_derivatives_over_several_axes(name, options):
    function = getattr(sg.fft, name)
    check_grads(lambda a: function(a * a, **options), operand(name)[:3, 0, :4])


@pytest.mark.parametrize("name", [*ONE, *SEVERAL])
def test_derivatives_by_real_numbers(name):
    check_grads(lambda a: getattr(sg.fft, name)(a * a), X[:3, 0, :4])


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_derivatives_of_shifts(name):
    check_grads(lambda a: getattr(sg.fft, name)(a * a, axes=0), Z[:, 0, :2])


def test_by_parseval_the_gradient_of_the_power_is_the_signal():
    x = sg.placeholder("x", (4, 5, 6))
    power = sg.sum(sg.abs(sg.fft.fftn(x, norm="ortho")) ** 2)
    close(sg.compile([x], sg.grad(power, x))(X), 2 * X, 1e-13)


def test_a_filter_is_learned():
    """A convolution by way of its spectrum: the kernel that made a signal is found again."""
    rng = generator("filter")
    signal, kernel = rng.standard_normal(32), rng.standard_normal(32)
    target = np.fft.irfft(np.fft.rfft(signal) * np.fft.rfft(kernel))
    w = sg.variable("w", np.zeros(17, complex))
    found = sg.fft.irfft(sg.fft.rfft(sg.constant(signal)) * w)
    loss = sg.sum((found - target) ** 2)
    (direction,) = sg.grad(loss, [w])
    # The loss is quadratic, and its Hessian diagonal: 2 * abs(spectrum)**2 / 32, twice inside.
    curvature = np.abs(np.fft.rfft(signal)) ** 2 / 32 * np.where(np.arange(17) % 16 == 0, 2, 4)
    sg.compile([], loss, updates={w: w - direction / curvature})()
    close(w.value, np.fft.rfft(kernel), 1e-12)


def test_jacobian_and_vmap():
    z = sg.placeholder("z", 4, "complex128")
    matrix = np.fft.fft(np.eye(4))
    close(sg.compile([z], sg.jacobian(sg.fft.fft(z), z))(Z[0, 0, :4]), matrix, 1e-14)
    rows = sg.placeholder("rows", (5, 4), "complex128")
    mapped = sg.vmap(lambda row: sg.fft.hfft(row, n=5))(rows)
    close(sg.compile([rows], mapped)(Z[0, :, :4]), np.fft.hfft(Z[0, :, :4], n=5), 1e-14)
    x = sg.placeholder("x", 5)
    found = sg.compile([x], sg.jacobian(sg.fft.rfft(x), x))(X[0, :, 0])
    close(found, np.fft.rfft(np.eye(5)).T, 1e-14)


def test_the_program_in_a_file_of_its_own(tmp_path):
    x = sg.placeholder("x", (4, 5, 6), "float32")
    loss = sg.sum(sg.abs(sg.fft.rfftn(x)) ** 2) + sg.sum(sg.real(sg.fft.fft(x, axis=1)) ** 3)
    program = sg.compile([x], [loss, sg.grad(loss, x)])
    program.save_source(tmp_path / "step.py")
    spec = importlib.util.spec_from_file_location("step", tmp_path / "step.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for a, b in zip(module.Program()(X.astype("f4")), program(X.astype("f4")), strict=True):
        same(a, b)


# ---- refusals -------------------------------------------------------------------------------


@each(
    ("build", "error", "words"),
    [
        (lambda: sg.fft.fft(X, n=0), ShapeError, "one element or more, not of n=0"),
        (lambda: sg.fft.fft(X, n=-1), ShapeError, "n=-1"),
        (lambda: sg.fft.fft(X, n=2.5), ShapeError, "n=2.5"),
        (lambda: sg.fft.fft(X, axis=3), ShapeError, "axis 3 is out of range"),
        (lambda: sg.fft.fft(X, axis=1.5), ShapeError, "an axis is an int"),
        (lambda: sg.fft.fft(1.0), ShapeError, "out of range for 0 dimensions"),
        (lambda: sg.fft.fftn(1.0), ShapeError, "one axis or more"),
        (lambda: sg.fft.rfftn(X, axes=()), ShapeError, "one axis or more"),
        (lambda: sg.fft.fftn(X, axes=(0, -3)), ShapeError, "names an axis twice"),
        (lambda: sg.fft.fftn(X, s=(2, 2), axes=(0,)), ShapeError, "2 sizes, and there are 1"),
        (lambda: sg.fft.fft(np.ones((3, 0))), ShapeError, "size 0"),
        (lambda: sg.fft.rfft(np.ones(0)), ShapeError, "size 0"),
        (lambda: sg.fft.irfft(np.ones(1)), ShapeError, "n=0"),
        (lambda: sg.fft.rfft(Z), DtypeError, r"takes real numbers, not complex128.*real\(x\)"),
        (lambda: sg.fft.fft(X, norm="half"), UnsupportedError, "'ortho' or 'forward', not 'half'"),
        (lambda: sg.fft.hfft(X, norm=None), UnsupportedError, "not None"),
        (lambda: sg.fft.fftfreq(0), ShapeError, "n=0"),
        (lambda: sg.fft.fftfreq(4, device="gpu"), UnsupportedError, "device"),
        (lambda: sg.fft.fft(sg.placeholder("x", "N"), n=4), ShapeError, "N is more than n=4"),
        (lambda: sg.fft.rfft(sg.placeholder("x", "N")), ShapeError, "no known size"),
    ],
)
def test_what_is_refused(build, error, words):
    with pytest.raises(error, match=words):
        build()

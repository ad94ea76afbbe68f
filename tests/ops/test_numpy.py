"""NumPy's functions beyond the standard: on nodes what they are on arrays, with gradients.

Every function of `symgrad.ops.numpy` is called by NumPy's name, on arrays and on nodes: the values,
shapes and dtypes are the same. A function that has no call here is missed by a test.
"""

import inspect

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.op import REGISTRY
from tests.helpers import generator, same, value
from tools import numpy_calls

REGISTRY.every()
HOMES = ("symgrad.ops.numpy.", "symgrad.ops.fourier.planes", "symgrad.ops.linalg.tensors")
OURS = {n: f for n, f in REGISTRY.functions.items() if f.__module__.startswith(HOMES)}
X, Y = (generator(n).uniform(-2, 2, (3, 4)) for n in "xy")
V, W = (generator(n).uniform(-2, 2, 4) for n in "vw")
UP = np.array([-1.5, -0.4, 0.3, 1.1, 1.9])
CUBE = generator("cube").uniform(-2, 2, (2, 3, 4))
Z = X + 1j * Y
SQUARE = generator("square").uniform(-1, 1, (4, 4)) + 3 * np.eye(4)
ODD = np.array([1.5, np.nan, np.inf, -np.inf, -0.0])
INTS = np.array([[12, -18, 0], [7, 30, 9]])

# Calls of NumPy's functions, and the arrays that are nodes; `d` has gradients to be checked.
CALLS = {
    "ravel": [(np.ravel, X), (np.ravel, V), (lambda x: np.ravel(x), CUBE)],
    "swapaxes": [(lambda x: np.swapaxes(x, 0, -1), CUBE)],
    "fliplr": [(np.fliplr, X)],
    "flipud": [(np.flipud, X)],
    "rot90": [(lambda x, k=k: np.rot90(x, k), X) for k in (-1, 0, 1, 2, 3, 7)]
    + [(lambda x: np.rot90(x, axes=(1, 2)), CUBE)],
    "atleast_1d": [(np.atleast_1d, V), (np.atleast_1d, np.float64(2.0)), (np.atleast_1d, X, V)],
    "atleast_2d": [(np.atleast_2d, V), (np.atleast_2d, np.float64(2.0)), (np.atleast_2d, X)],
    "atleast_3d": [(np.atleast_3d, x) for x in (V, np.float64(2.0), X, CUBE)],
    "hstack": [(lambda x, y: np.hstack([x, y]), X, Y), (lambda x, y: np.hstack((x, y)), V, W)],
    "vstack": [(lambda x, y: np.vstack([x, y]), X, V), (lambda x, y: np.vstack((x, y)), V, W)],
    "dstack": [(lambda x, y: np.dstack([x, y]), X, Y), (lambda x, y: np.dstack((x, y)), V, W)],
    "column_stack": [(lambda x, y: np.column_stack([x, y]), X.T, V)],
    "append": [
        (np.append, X, V),
        (lambda x, y: np.append(x, y, axis=0), X, Y),
        (lambda x: np.append(x, 3), INTS),
    ],
    "split": [(lambda x: np.split(x, 2, axis=1), X), (lambda x: np.split(x, [1, 3], 1), X),
              (lambda x: np.split(x, np.array([0, 5])), X)],
    "array_split": [(lambda x: np.array_split(x, 3), UP), (lambda x: np.array_split(x, 3, 1), X)],
    "hsplit": [(lambda x: np.hsplit(x, 2), X), (lambda x: np.hsplit(x, 2), V)],
    "vsplit": [(lambda x: np.vsplit(x, [1]), X)],
    "dsplit": [(lambda x: np.dsplit(x, 2), CUBE)],
    "delete": [(lambda x: np.delete(x, 1, 0), X), (lambda x: np.delete(x, [0, -1]), X),
               (lambda x: np.delete(x, slice(0, 4, 2), axis=1), X)],
    "rollaxis": [(lambda x: np.rollaxis(x, 2), CUBE), (lambda x: np.rollaxis(x, 0, 3), CUBE)],
    "dot": [(np.dot, X, Y.T), (np.dot, V, W), (np.dot, X, V), (np.dot, CUBE, V),
            (np.dot, CUBE, CUBE.mT), (np.dot, np.float64(2.0), X), (np.dot, V, X.T),
            (np.dot, Z, V)],
    "inner": [(np.inner, X, Y), (np.inner, V, W), (np.inner, CUBE, X),
            (np.inner, X, np.float64(2))],
    "vdot": [(np.vdot, V, W), (np.vdot, X, Y), (np.vdot, Z, X), (np.vdot, X, Z)],
    "vecmat": [(np.vecmat, X[:, :3], X), (np.vecmat, Z[0, :3], X)],
    "matvec": [(np.matvec, X, V), (np.matvec, CUBE, V)],
    "polyval": [(np.polyval, V, X), (lambda p: np.polyval(p, 2), INTS[0])],
    "vander": [(np.vander, V), (lambda x: np.vander(x, 3, increasing=True), V),
            (np.vander, INTS[0])],
    "convolve": [
        (lambda a, v, m=m: np.convolve(a, v, m), a, v)
        for m in ("full", "same", "valid") for a, v in ((UP, V), (V, UP), (UP, V[:3]), (UP, V[:1]))
    ],
    "correlate": [
        (lambda a, v, m=m: np.correlate(a, v, m), a, v)
        for m in ("full", "same", "valid") for a, v in ((UP, V), (V, UP), (UP, V[:3]), (UP, V[:1]))
    ],
    "cbrt": [(np.cbrt, X), (np.cbrt, INTS)],
    "exp2": [(np.exp2, X), (np.exp2, np.arange(3, dtype="int8"))],
    "deg2rad": [(np.deg2rad, X), (np.radians, X), (np.deg2rad, np.arange(3, dtype="int8"))],
    "rad2deg": [(np.rad2deg, X), (np.degrees, X)],
    "logaddexp2": [(np.logaddexp2, X, Y), (np.logaddexp2, X * 1e4, Y)],
    "fmod": [(np.fmod, X, np.abs(Y)), (np.fmod, INTS, 7)],
    "heaviside": [(np.heaviside, X, Y), (np.heaviside, ODD, 0.5)],
    "gcd": [(np.gcd, INTS, INTS[::-1])],
    "lcm": [(np.lcm, INTS, INTS[::-1])],
    "fabs": [(np.fabs, X), (np.fabs, INTS), (np.fabs, X.astype("float32"))],
    "float_power": [(np.float_power, np.abs(X), Y), (np.float_power, INTS, 2),
                    (np.float_power, np.abs(X).astype("float32"), 3)],
    "modf": [(np.modf, X), (np.modf, ODD)],
    "nan_to_num": [(np.nan_to_num, ODD), (np.nan_to_num, ODD.astype("float32")),
            (np.nan_to_num, INTS),
                   (lambda x: np.nan_to_num(x, nan=3.0, posinf=1.0, neginf=-1), ODD)],
    "isposinf": [(np.isposinf, ODD)],
    "isneginf": [(np.isneginf, ODD)],
    "iscomplex": [(np.iscomplex, Z), (np.iscomplex, X)],
    "isreal": [(np.isreal, Z), (np.isreal, X)],
    "isclose": [(np.isclose, X, X + 1e-6), (lambda x: np.isclose(x, ODD, equal_nan=True), ODD),
                (lambda x: np.isclose(x, ODD + 0.1, atol=0.2), ODD), (np.isclose, INTS, INTS)],
    "allclose": [(np.allclose, X, Y), (np.allclose, X, X + 1e-9)],
    "array_equal": [(np.array_equal, X, Y), (np.array_equal, X, X), (np.array_equal, X, V)],
    "ptp": [(np.ptp, X), (lambda x: np.ptp(x, axis=1), X),
            (lambda x: np.ptp(x, 0, keepdims=True), X)],
    "average": [
        (np.average, X), (lambda x: np.average(x, axis=1), X), (np.average, INTS),
        (lambda x, w: np.average(x, 1, w), X, np.abs(W)),
        (lambda x, w: np.average(x, weights=w), X, np.abs(Y)),
        (lambda x, w: np.average(x, 0, weights=w, keepdims=True), X, np.abs(Y)),
    ],
    "cov": [
        (np.cov, X), (np.cov, V), (np.cov, X, Y), (lambda x: np.cov(x, rowvar=False), X),
        (lambda x: np.cov(x, bias=True), X), (lambda x: np.cov(x, ddof=0), X), (np.cov, Z),
        (np.cov, V, W),
    ],
    "corrcoef": [(np.corrcoef, X), (np.corrcoef, V, W),
            (lambda x: np.corrcoef(x, rowvar=False), X)],
    "nancumsum": [(np.nancumsum, np.where(X > 1, np.nan, X)),
            (lambda x: np.nancumsum(x, axis=0), X)],
    "nancumprod": [(np.nancumprod, np.where(X > 1, np.nan, X)), (lambda x: np.nancumprod(x, 1), X)],
    "interp": [
        (lambda x: np.interp(x, UP, np.sin(UP)), X), (lambda x, f: np.interp(x, UP, f), X, UP**2),
        (lambda p, f: np.interp(X, p, f), UP, UP**2), (lambda x: np.interp(x, [1.0], [7.0]), V),
        (lambda x: np.interp(x, UP, UP, left=-9, right=9), np.append(ODD, UP)),
    ],
    "digitize": [(np.digitize, X, UP), (lambda x: np.digitize(x, UP, right=True), UP)],
    "trapezoid": [
        (np.trapezoid, X), (lambda y: np.trapezoid(y, dx=0.3, axis=0), X), (np.trapezoid, INTS),
        (lambda y, x: np.trapezoid(y, x), X, V), (lambda y, x: np.trapezoid(y, x, axis=0), X, Y),
    ],
    "ediff1d": [(np.ediff1d, X), (lambda x: np.ediff1d(x, to_begin=[1.0, 2.0], to_end=-3.0), V)],
    "gradient": [
        (np.gradient, UP), (np.gradient, X), (lambda x: np.gradient(x, 0.3, axis=1), X),
        (lambda x: np.gradient(x, 2.0, W[[0, 1, 2, 3]].cumsum()), np.sort(X)),
        (lambda x: np.gradient(x, UP, edge_order=2), UP**2),
        (lambda x: np.gradient(x, edge_order=2), CUBE[0]),
    ],
    "fft2": [(np.fft.fft2, Z), (lambda x: np.fft.fft2(x, (2, 5)), X)],
    "ifft2": [(np.fft.ifft2, Z), (lambda x: np.fft.ifft2(x, norm="ortho"), Z)],
    "rfft2": [(np.fft.rfft2, X), (lambda x: np.fft.rfft2(x, axes=(0, 1)), CUBE[0])],
    "irfft2": [(np.fft.irfft2, Z), (lambda x: np.fft.irfft2(x, (3, 4)), Z)],
    "cond": [(np.linalg.cond, X), (lambda x: np.linalg.cond(x, -2), X),
             (lambda x: np.linalg.cond(x, 1), SQUARE),
             (lambda x: np.linalg.cond(x, "fro"), SQUARE)],
    "tensorinv": [(np.linalg.tensorinv, SQUARE.reshape(2, 2, 4)),
                  (lambda x: np.linalg.tensorinv(x, ind=1), SQUARE.reshape(4, 2, 2))],
    "tensorsolve": [
        (np.linalg.tensorsolve, SQUARE.reshape(2, 2, 4), X[:2, :2]),
        (lambda a, b: np.linalg.tensorsolve(a, b, (0,)), SQUARE.reshape(4, 2, 2), X[:2, :2]),
    ],
    "select_first": [
        (lambda x: np.select([x > 1, x > 0], [x, x**2], -1.0), X),
        (lambda x: np.select([x > 9], [x * 2]), INTS),
    ],
    "piecewise": [
        (lambda x: np.piecewise(x, [x < 0, x >= 1], [lambda v: -v, lambda v: v**2]), X),
        (lambda x: np.piecewise(x, [x < 0], [2.0, np.exp]), X),
    ],
}  # fmt: skip
# No gradient flows, or it is that of a kink or of a NaN that the arrays hold.
FLAT = {"gcd", "lcm", "isposinf", "isneginf", "iscomplex", "isreal", "isclose", "allclose",
        "array_equal", "digitize", "heaviside", "nan_to_num"}  # fmt: skip
LISTED = [(name, i) for name, calls in CALLS.items() for i in range(len(calls))]


def parts(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def test_every_function_is_called():
    listed = {numpy_calls.ours(n) for n in numpy_calls.names() if numpy_calls.state(n) == "yes"}
    assert set(OURS) <= set(CALLS) | listed


@pytest.mark.parametrize(("name", "i"), LISTED)
def test_a_function_is_numpys(name, i):
    function, *arrays = CALLS[name][i]
    nodes = [
        sg.placeholder(f"x{k}", np.shape(a), np.asarray(a).dtype) for k, a in enumerate(arrays)
    ]
    with np.errstate(all="ignore"):
        expected, built = parts(function(*arrays)), parts(function(*nodes))
    assert len(built) == len(expected)
    assert all(isinstance(y, sg.Node) for y in built)
    feeds = dict(zip(nodes, arrays, strict=True))
    for y, wanted in zip(built, expected, strict=True):
        found = value(y, feeds)
        assert (y.shape, y.dtype) == (np.shape(wanted), np.asarray(wanted).dtype)
        np.testing.assert_allclose(found, wanted, 1e-13, 1e-14)


@pytest.mark.parametrize(("name", "i"), [c for c in LISTED if c[0] not in FLAT])
def test_gradients_are_differences(name, i):
    function, *arrays = CALLS[name][i]
    given = [np.asarray(a) for a in arrays]
    if any(a.dtype.kind in "iu" or not np.isfinite(a).all() for a in given):
        return

    def total(*xs):
        return sum(sg.sum(sg.real(y) * (1 + k)) for k, y in enumerate(parts(function(*xs))))

    sg.testing.check_grads(total, *(a if a.dtype.kind == "c" else a.astype(float) for a in given))


def test_gradients_where_they_are_0_or_pass():
    x = sg.placeholder("x", (5,))
    slope = sg.compile([x], sg.grad(sg.sum(sg.nan_to_num(x) * 3), x))
    same(slope(ODD), np.array([3.0, 0, 0, 0, 3]))
    y = sg.placeholder("y", (5,))
    steps = sg.compile([x, y], sg.grad(sg.sum(np.heaviside(x, y)), y))
    same(steps(np.array([-1.0, 0, 1, -0.0, np.nan]), np.ones(5)), np.array([0.0, 1, 0, 1, 0]))


def test_sizes_may_be_named():
    x, y = sg.placeholder("x", ("N", 4)), sg.placeholder("y", ("N",))
    for function in (
        lambda x, y: np.ravel(x),
        lambda x, y: np.dot(y, x),
        lambda x, y: np.cov(x.T),
        lambda x, y: np.average(x, axis=0, weights=y),
        lambda x, y: np.column_stack([x, y]),
        lambda x, y: np.gradient(x, axis=0),
        lambda x, y: np.trapezoid(x, y, axis=0),
        lambda x, y: np.interp(x, UP, UP**2),
        lambda x, y: np.convolve(y, V),
        lambda x, y: np.vstack([x, x])[::2],
        lambda x, y: np.split(x, [1], axis=0)[1],
    ):
        found = sg.compile([x, y], function(x, y))(X, X[:, 0] ** 2)
        np.testing.assert_allclose(found, function(X, X[:, 0] ** 2), 1e-13, 1e-14)


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (lambda x: np.split(x, 3, axis=1), "cannot be split into 3 equal parts"),
        (lambda x: np.split(sg.placeholder("n", ("N",)), 2), "not known while the graph is built"),
        (lambda x: np.rot90(x, axes=(0, 0)), "two axes"),
        (lambda x: np.delete(x, 7, axis=0), "out of bounds"),
        (lambda x: np.convolve(x, x), "vectors are taken"),
        (lambda x: np.convolve(x[0], x[1], mode="half"), "'full', 'same' or 'valid'"),
        (lambda x: np.average(x, weights=x[0]), "weights of the shape"),
        (lambda x: np.gradient(x, 1.0, 2.0, 3.0), "3 distances for 2 axes"),
        (lambda x: np.gradient(x[:1], axis=0), "slopes need 2 samples"),
        (lambda x: np.interp(x, [1.0, 2.0], [1.0]), "2 places and 1 values"),
        (lambda x: np.polyval(x, x), "coefficients are a vector"),
        (lambda x: np.select([x > 0], [x, x]), "1 conditions for 2 choices"),
        (lambda x: np.vsplit(x[0], 2), "two axes or more"),
    ],
)
def test_what_is_refused_says_why(attempt, words):
    with pytest.raises(sg.SymgradError, match=words):
        attempt(sg.placeholder("x", (3, 4)))


def test_the_public_names_are_numpys_but_for_one():
    for name, function in OURS.items():
        assert inspect.getdoc(function)
        spaces = {"fft": (sg.fft, np.fft), "linalg": (sg.linalg, np.linalg)}
        place = REGISTRY.qualified_name(name).split(".")[1]
        here, theirs = spaces.get(place, (sg, np))
        assert getattr(here, name) is function
        assert hasattr(theirs, name) or name == "select_first"

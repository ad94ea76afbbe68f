"""Every op by the back end of JAX: where it runs, and that it gives what NumPy gives."""

import itertools

import numpy as np
import pytest

pytest.importorskip("jax")

import symgrad as sg
from symgrad.backends.jax.loops import Loops
from symgrad.backends.jax.lowering import is_known
from symgrad.ir.op import REGISTRY
from tests.backends.ops import faults, ops
from tests.test_every_op import OPS, trials

# Special functions that JAX has not, laws that reject what they have drawn, matrices of which XLA
# knows no algorithm on every device, and what runs Python or has a size that only the data tell.
LEFT_TO_NUMPY = [
    "adjugate", "adjugate_slope", "airy", "beta_slope", "betaincc", "betainccinv", "betaincinv",
    "binet", "draw_gamma", "draw_integer_rows", "draw_integers", "draw_multinomial", "draw_order",
    "draw_poisson", "draw_rows", "draw_vonmises", "eig", "eigvals", "ellipe", "ellipk", "erfcinv",
    "erfcx", "erfcx_slope", "exp1", "expm", "gamma_slope", "gammainc", "gammaincc", "gammainccinv",
    "gammaincinv", "gegenbauer", "hyp2f1", "iv", "j0", "j1", "jv", "kv", "lambertw",
    "numpy_function", "numpy_function_out", "pinv", "sici", "sized", "sparse_matmul",
    "sparse_solve", "stdtr", "stdtrit", "yv", "zeta",
]  # fmt: skip
GROUPS = 8
BOTH = ("jax", "numpy")


def test_every_op_is_in_the_table_or_a_ufunc_or_left_to_numpy():
    import jax

    left = {op.name for op in OPS if not is_known(op)}
    assert left == {*LEFT_TO_NUMPY}, (
        "an op without a method in symgrad/backends/jax, and without a ufunc, is in LEFT_TO_NUMPY: "
        f"{sorted(left.symmetric_difference(LEFT_TO_NUMPY))}"
    )
    methods = {name for name in dir(Loops) if not name.startswith("_")}
    assert methods - {"failing", "inside", "in_turn"} <= set(REGISTRY.every())
    for op in OPS:
        if isinstance(op.kernel, np.ufunc) and op.name not in methods:
            assert hasattr(jax.numpy, op.kernel.__name__), op


@pytest.mark.parametrize("group", range(GROUPS))
def test_ops_give_what_numpy_gives(group):
    """A trial of each; `python -m tests.backends.ops` has them all."""
    found = []
    for i, op in enumerate(itertools.islice(ops(), group, None, GROUPS)):
        tried = list(trials(op))
        found += tried[(i * 7 + group) % max(len(tried), 1) :][:1]
    assert list(faults(found)) == []


def test_ends_and_small_values_are_as_by_numpy():
    """Places where JAX's functions of the name have others, or few digits."""
    ends = np.array([0.0, -0.0, 1, 5, 7, np.inf, -np.inf, np.nan])
    counts = np.array([3, 7, 255, 2, 1], "uint8"), np.array([100, 201, 3, 8, 255], "uint8")
    whole = np.array([[1j, 2j], [0, 1]])
    x, z = sg.placeholder("x", 8), sg.placeholder("z", (2, 2), "complex128")
    i, j = (sg.placeholder(n, 5, "uint8") for n in "ij")
    outputs = [sg.special.exp1(x), sg.special.expi(x), sg.special.log_ndtr(x)]
    outputs += [sg.special.polygamma(n, x) for n in range(3)]
    outputs += [sg.pow(i, j), sg.all(z, axis=1), sg.any(z, axis=0)]
    made, expected = (
        sg.compile([x, i, j, z], outputs, backend=b)(ends, *counts, whole) for b in ("jax", "numpy")
    )
    for y, wanted in zip(made, expected, strict=True):
        np.testing.assert_allclose(y, wanted, rtol=1e-12)


def test_branch_cuts_have_two_sides_and_logarithms_of_gamma_their_digits():
    """XLA drops the sign of 0, and its gammaln of float32 is away by 2e-6 near its zeros."""
    parts = np.array([0.0, -0.0, 0.5, -0.5, 2, -2])
    given = np.empty((6, 6), "complex128")
    given.real, given.imag = parts, parts[:, None]
    z, x = sg.placeholder("z", (6, 6), "complex128"), sg.placeholder("x", 400, "float32")
    cut = [sg.sqrt(z), sg.asin(z), sg.acos(z), sg.atan(z), sg.asinh(z), sg.acosh(z), sg.atanh(z)]
    special = [sg.special.gammaln(x), sg.special.betaln(x, 0.5), sg.special.digamma(x)]
    outputs = [*cut, sg.log(z), *special]
    near = np.linspace(0.7, 2.3, 400, dtype="f4")
    made, expected = (sg.compile([z, x], outputs, backend=b)(given, near) for b in ("jax", "numpy"))
    for y, wanted in zip(made, expected, strict=True):
        np.testing.assert_allclose(y, wanted, rtol=4 * np.finfo(y.dtype).eps)


def test_special_functions_have_their_digits_away_from_where_jax_has_them():
    """Its beta has six above 8, its log_ndtr ten below -20, its polygamma none below 0."""
    rng, functions = np.random.default_rng(0), sg.special
    a, b, x, part = [sg.placeholder(n, 200) for n in "abxp"]
    wide = [functions.beta(a, b), functions.betaln(a, b), functions.log_ndtr(-x)]
    wide += [functions.polygamma(n, -x) for n in (1, 2)]
    single = [sg.astype(y, "float32") for y in (a, b, part)]
    outputs = [*wide, functions.betainc(*single)]
    given = [rng.uniform(0.01, top, 200).astype("float32") for top in (60, 60, 59, 1)]
    made, expected = (sg.compile([a, b, x, part], outputs, backend=k)(*given) for k in BOTH)
    for y, wanted in zip(made, expected, strict=True):
        single, tiny = y.dtype == np.float32, np.finfo(y.dtype).tiny
        np.testing.assert_allclose(y, wanted, rtol=1e-6 if single else 1e-11, atol=tiny)


def test_ends_of_counts_powers_and_extrema_are_as_by_numpy():
    x, z = sg.placeholder("x", 3), sg.placeholder("z", 3, "complex128")
    outputs = [sg.grad(sg.sum(sg.remainder(np.inf, x)), x), z ** (1 + 1j), sg.max(z), sg.min(z)]
    given = np.array([2.0, -1, 0.0]), np.array([0, 1j, np.nan])
    made, expected = (sg.compile([x, z], outputs, backend=k)(*given) for k in BOTH)
    for y, wanted in zip(made, expected, strict=True):
        np.testing.assert_allclose(y, wanted, rtol=1e-12)


def test_bessel_functions_of_float32_are_finite_up_to_their_ends():
    x = sg.placeholder("x", 6, "float32")
    given = np.array([1, 80, 87, 90, -91, 100], "float32")
    outputs = [sg.special.i0(x), sg.special.i1(x)]
    made, expected = (sg.compile(x, outputs, backend=k)(given) for k in BOTH)
    np.testing.assert_allclose(made, expected, rtol=1e-5)
    assert np.isfinite(made)[:, :5].all()


def test_running_extrema_of_truth_values_are_such():
    x = sg.placeholder("x", ("N",), "bool")
    program = sg.compile(x, [sg.cummax(x), sg.cummin(x)], backend="jax")
    up, down = program(np.array([False, True, False]))
    assert (up.dtype, up.tolist(), down.tolist()) == (bool, [False, True, True], [False] * 3)


def test_beta_is_finite_where_two_poles_meet():
    parts = [-21, -12, -3, -2.5, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 12, 20.5]
    given = [g.ravel() for g in np.meshgrid([*parts, np.inf], [*parts, np.inf])]
    a, b = (sg.placeholder(n, 225) for n in "ab")
    outputs = [sg.special.betaln(a, b), sg.special.beta(a, b)]
    made, expected = (sg.compile([a, b], outputs, backend=k)(*given) for k in BOTH)
    for y, wanted in zip(made, expected, strict=True):
        np.testing.assert_allclose(y, wanted, rtol=1e-11, atol=1e-14)

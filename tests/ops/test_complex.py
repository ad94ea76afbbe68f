"""Complex numbers: the convention of their gradients, what is refused, and programs of them."""

import importlib.util
import itertools

import numpy as np
import pytest

import symgrad as sg
from symgrad.autodiff.reverse import is_differentiable
from symgrad.ir.errors import DtypeError, GradientError
from symgrad.testing import assert_equivalent, check_grads, random_feeds, random_graph
from symgrad.testing.graphs import COMPLEX, DTYPES
from tests.helpers import close, each, generator, same, sample, value

Z = sample(generator("z"), (3,), "complex128")
W = sample(generator("w"), (3,), "complex128")
A = sample(generator("a"), (3, 3), "complex128")
X = sample(generator("x"), (3,), "float64")


def gradient(function, at, **options):
    x = sg.placeholder("x", np.shape(at), np.asarray(at).dtype)
    loss = function(x)
    return sg.compile([x], sg.grad(loss, x, **options))(at)


# ---- the convention -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (lambda z: sg.sum(sg.abs(z) ** 2), 2 * Z),
        (lambda z: sg.sum(sg.real(z * sg.conj(z))), 2 * Z),
        (lambda z: sg.sum(sg.abs(z)), Z / np.abs(Z)),
        (lambda z: sg.sum(sg.real(z)), np.ones(3)),
        (lambda z: sg.sum(sg.imag(z)), np.full(3, 1j)),
        (lambda z: sg.sum(sg.real(z * W)), np.conj(W)),
        (lambda z: sg.sum(sg.imag(z * W)), 1j * np.conj(W)),
        (lambda z: sg.real(sg.vecdot(W, z)), W),
        (lambda z: sg.sum(sg.angle(z)), 1j * Z / np.abs(Z) ** 2),
        (lambda z: sg.sum(sg.real(sg.exp(z))), np.conj(np.exp(Z))),
        (lambda z: sg.linalg.vector_norm(z), Z / np.linalg.norm(Z)),
    ],
)
def test_the_gradient_is_that_by_the_real_part_and_i_times_that_by_the_imaginary_one(
    loss, expected
):
    """As PyTorch's: z - lr * gradient goes downhill."""
    close(gradient(loss, Z), expected, 1e-14)


@each(
    "function",
    [sg.acos, sg.asin, sg.atan, sg.acosh, sg.asinh, sg.atanh, sg.log, sg.log2, sg.log10, sg.log1p,
     sg.sqrt, lambda z: z**1.5, lambda z: z ** (0.3 + 1j), lambda z: (-2 + 1j) ** z],
)  # fmt: skip
def test_derivatives_agree_on_all_sides_of_branch_cuts(function):
    z, step = sg.placeholder("z", 24, "complex128"), 1e-6
    around = 2 * np.exp(2j * np.pi * (np.arange(24) + 0.5) / 24)
    program = sg.compile([z], [function(z), sg.jvp(function(z), z, np.ones(24, complex))])
    for at in (around, around / 4):
        slope = (program(at + step)[0] - program(at - step)[0]) / (2 * step)
        close(program(at)[1], slope, 1e-8)


@pytest.mark.parametrize("correction", [0, 1])
def test_spread_over_an_axis_of_named_size_is_real(correction):
    z = sg.placeholder("z", ("N", 3), "complex128")
    results = [f(z, axis=0, correction=correction) for f in (sg.var, sg.std)]
    found = sg.compile([z], results)(A)
    close(found[0], np.var(A, axis=0, ddof=correction), 1e-14)
    close(found[1], np.std(A, axis=0, ddof=correction), 1e-14)
    assert [y.dtype for y in found] == ["float64", "float64"]


def test_gradient_descent_solves_a_complex_system():
    z = sg.variable("z", np.zeros(3, complex))
    loss = sg.linalg.vector_norm(sg.constant(A) @ z - W) ** 2
    rate = 0.9 / np.linalg.norm(A, 2) ** 2
    step = sg.compile([], loss, updates={z: z - rate * sg.grad(loss, z)})
    for _ in range(20000):
        step()
    close(A @ z.value, W, 1e-4)


def test_by_what_is_real_the_gradient_is_real():
    found = gradient(lambda x: sg.sum(sg.abs(sg.exp(1j * x) + x) ** 2), X)
    assert found.dtype == np.float64
    close(found, 2 * X + 2 * np.cos(X) - 2 * X * np.sin(X), 1e-14)


def test_a_cotangent_pairs_by_the_real_inner_product():
    z = sg.placeholder("z", 3, "complex128")
    y = sg.exp(z)
    found = sg.compile([z], sg.vjp(y, z, W))(Z)
    close(found, W * np.conj(np.exp(Z)), 1e-14)
    close(sg.compile([z], sg.jvp(y, z, W))(Z), W * np.exp(Z), 1e-14)


def test_nothing_complex_is_put_into_real_gradients():
    x, w = sg.placeholder("x", (4, 3)), sg.placeholder("w", (3, 3))
    loss = sg.sum(sg.abs(x @ sg.linalg.inv(w)) ** 2) + sg.sum(sg.conj(x)) + sg.sum(sg.real(w))
    used = {n.op.name for n in sg.Graph(sg.grad(loss, [x, w]), [x, w]).nodes}
    assert used.isdisjoint({"conj", "real", "imag", "complex_sign"})


# ---- derivatives ----------------------------------------------------------------------------


class Magnitude(sg.Function):
    """The square of abs, with a backward of one's own."""

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return sg.real(z * sg.conj(z))

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return 2 * g * z


@each(
    "function",
    [
        lambda z: Magnitude.apply(sg.sin(z)),
        lambda z: sg.checkpoint(lambda a: sg.tanh(a) * sg.conj(a))(z),
        lambda z: sg.where(sg.real(z) > 0, z * z, sg.abs(z)),
        lambda z: sg.sqrt(z) * sg.log(z) + sg.sign(z),
        lambda z: z**3 + 2.0**z + z ** (1 - 2j) + z ** sg.real(z),
        lambda z: sg.angle(z) * sg.real(z) - sg.imag(z) / z,
        lambda z: sg.prod(z) + sg.sum(sg.cumulative_prod(z)) + sg.mean(z),
        lambda z: [sg.var(z), sg.std(z), sg.linalg.vector_norm(z, ord=3)],
        lambda z: sg.linalg.vector_norm(z, ord=1) + sg.linalg.vector_norm(z, ord=np.inf),
        lambda z: sg.astype(z, "complex128") + sg.astype(sg.real(z), "complex128"),
        lambda z: sg.stack([z, sg.conj(z)])[:, ::-1],
        lambda z: sg.einsum("i,j,ij->j", z, sg.conj(z), A),
        lambda z: sg.linalg.solve(A + sg.reshape(z, (3, 1)), z),
        lambda z: sg.linalg.inv(A * z) @ z,
        lambda z: sg.vecdot(z * z, z) * sg.vecdot(z, W),
        lambda z: sg.tensordot(A * z, sg.conj(z), axes=1),
        lambda z: sg.tanh(z) * sg.expm1(z) + sg.sign(z),
        lambda z: [sg.max(z) ** 2, sg.min(A * z, axis=1), sg.median(z), sg.max(A * z, axis=(0, 1))],
        lambda z: sg.sort(z) * W + sg.sort(A * z, axis=0, descending=True),
    ],
)
def test_derivatives(function):
    check_grads(function, Z)


def test_derivatives_by_real_and_complex_arguments():
    check_grads(lambda z, x: (sg.constant(A) @ z) * x + sg.abs(z) ** x, Z, np.abs(X) + 1)


def test_derivatives_of_many_arguments_along_random_directions():
    z = sample(generator("many"), (6, 7), "complex128")
    check_grads(lambda z: sg.abs(z @ sg.conj(sg.matrix_transpose(z))), z, order=1)


def test_a_wrong_complex_derivative_is_found():
    class Wrong(Magnitude):
        @staticmethod
        def backward(ctx, g):
            return 2 * g * sg.conj(ctx.saved_tensors[0])

    with pytest.raises(AssertionError, match="i times argument 0"):
        check_grads(Wrong.apply, Z)


@pytest.mark.parametrize("kinks", ["zero", "left", "right", "split", 0.3])
def test_at_zero_the_gradient_of_abs_lies_in_the_unit_disc(kinks):
    assert np.abs(gradient(sg.abs, 0j, kinks=kinks)) <= 1
    assert gradient(lambda z: sg.real(sg.sign(z)), 0j, kinks=kinks) == 0
    assert len(check_grads(sg.abs, 0j, kinks=kinks).kinks) == 2


def test_a_branch_that_is_not_taken_contributes_nothing():
    at = np.array([0, 1j])
    found = gradient(lambda z: sg.sum(sg.real(sg.where(z == 0, 0, sg.sqrt(z) + sg.log(z)))), at)
    close(found, [0, np.conj(0.5 / np.sqrt(1j) + 1 / 1j)], 1e-14)


def test_a_hessian_times_a_vector():
    z = sg.placeholder("z", 3, "complex128")
    found = sg.compile([z], sg.hvp(sg.sum(sg.abs(z) ** 4), z, W))(Z)
    close(found, 4 * np.abs(Z) ** 2 * W + 8 * Z * np.real(np.conj(Z) * W), 1e-13)


def test_a_function_mapped_over_a_batch():
    z = sg.placeholder("z", (2, 3), "complex128")
    rows = np.stack([Z, W])

    def one(a):
        return sg.grad(sg.sum(sg.abs(sg.constant(A) @ a) ** 2), a)

    found = sg.compile([z], sg.vmap(one)(z))(rows)
    close(found, 2 * (rows @ A.T) @ np.conj(A), 1e-13)


@pytest.mark.parametrize(
    ("output", "at", "expected"),
    [
        (lambda z: sg.exp(z) * z, Z, np.diag(np.exp(Z) * (1 + Z))),
        (lambda z: sg.constant(A) @ z, Z, A),
        (lambda x: sg.exp(1j * x), X, np.diag(1j * np.exp(1j * X))),
        (lambda z: sg.real(z * z), Z, np.diag(2 * np.conj(Z))),
        (lambda z: sg.abs(z), Z, np.diag(Z / np.abs(Z))),
    ],
)
def test_jacobians(output, at, expected):
    """Complex derivatives; of what is real, gradients."""
    x = sg.placeholder("x", 3, at.dtype)
    close(sg.compile([x], sg.jacobian(output(x), x))(at), expected, 1e-14)


# ---- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda z: sg.grad(sg.sum(z), z), "the loss must be real"),
        (lambda z: sg.jacobian(sg.conj(z) * z, z), "no complex derivative.*conj"),
        (lambda z: sg.hessian(sg.sum(sg.abs(z)), z), "no complex derivative"),
        (lambda z: sg.jacobian(sg.exp(z), z, mode="reverse"), "forward mode"),
        (lambda z: sg.jacobian(sg.abs(z), z, mode="forward"), "reverse mode"),
        (lambda z: sg.grad(sg.sum(sg.abs(sg.round(z))), z), "rint is piecewise constant"),
    ],
)
def test_derivatives_that_are_refused(build, words):
    with pytest.raises(GradientError, match=words):
        build(sg.placeholder("z", 3, "complex128"))


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "maximum"])
def test_complex_numbers_have_no_order(name):
    z = sg.placeholder("z", 3, "complex64")
    for operands in ((z, 0), (z, z), (sg.placeholder("x", 3), z)):
        with pytest.raises(DtypeError, match=r"no order; take real\(x\)"):
            getattr(sg, name)(*operands)


OF_ONE = ("floor", "ceil", "trunc", "relu", "softmax")
OF_TWO = ("atan2", "hypot", "remainder", "floor_divide", "bitwise_and", "minimum", "fmax", "fmin")


@each(("arity", "name"), [*((1, n) for n in OF_ONE), *((2, n) for n in OF_TWO)])
def test_what_is_for_real_numbers_refuses_complex_ones(arity, name):
    with pytest.raises(DtypeError, match="complex"):
        getattr(sg, name)(*[sg.placeholder("z", 3, "complex64")] * arity)


def test_the_imaginary_part_is_not_dropped():
    z = sg.placeholder("z", 3, "complex64")
    with pytest.raises(DtypeError, match=r"use real\(x\)"):
        sg.astype(z, "float32")
    for function in (sg.sum, sg.prod, sg.cumulative_sum):
        with pytest.raises(DtypeError, match=r"use real\(x\)"):
            function(z, dtype="float32")
    with pytest.raises(DtypeError, match="complex"):
        sg.clip_gradient(z, -1, 1)


# ---- values ---------------------------------------------------------------------------------

PARTS = (0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan)
GRID = np.array([complex(a, b) for a, b in itertools.product(PARTS, PARTS)])


@each("dtype", COMPLEX)
@each("name", ["abs", "angle", "real", "imag", "conj", "sqrt", "exp", "square", "round"])
def test_special_values_are_numpys(name, dtype):
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(GRID.astype(dtype))
    same(value(getattr(sg, name)(GRID.astype(dtype))), expected)
    same(value(getattr(np, name)(sg.constant(GRID.astype(dtype)))), expected)


ORDERED = np.array([[2 + 1j, 1 - 1j, 1 - 2j, 1 - 1j], [-1, np.inf, -np.inf + 1j, 0]])
UNKNOWN = np.array([[complex(1, np.nan), 0, 1j, 5], [2, 0, complex(np.nan, 1), np.nan]])


@pytest.mark.parametrize("exact", ["bits", "rounding"])
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize(
    "name",
    ["max", "min", "argmax", "argmin", "sort", "argsort", "median", "nanmax", "nanmin"],
)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_complex_numbers_are_in_numpys_order(name, axis, exact):
    """By their real parts, then by their imaginary parts; a NaN in either is last, or wins."""
    options = {"kind": "stable"} if name == "argsort" else {}
    for array in (ORDERED, UNKNOWN, ORDERED.astype("complex64")):
        expected = getattr(np, name)(array, axis=axis, **options)
        z = sg.placeholder("z", array.shape, array.dtype)
        same(value(getattr(sg, name)(sg.constant(array), axis=axis)), expected)
        same(sg.compile([z], getattr(sg, name)(z, axis=axis), exact=exact)(array), expected)


def test_complex_numbers_in_falling_order():
    same(value(sg.sort(ORDERED[0], descending=True)), np.sort(ORDERED[0])[::-1])
    same(value(sg.argsort(ORDERED[0], descending=True)), np.array([0, 1, 3, 2]))
    values, places = sg.top_k(sg.constant(ORDERED[0]), 2)
    same(value(values), ORDERED[0, :2])
    same(value(places), np.array([0, 1]))


def test_elements_that_tie_share_the_gradient_of_a_complex_extremum():
    z = np.array([1 + 2j, 3 + 1j, 3 + 1j, 3 - 4j])
    expected = np.array([0, 0.5 - 0.5j, 0.5 - 0.5j, 0])
    for largest in (lambda z: sg.max(z), lambda z: sg.sort(z)[2] + 0 * z[0]):
        same(gradient(lambda z, f=largest: sg.real(f(z) * (1 + 1j)), z), expected)


def test_parts_of_real_numbers():
    same(value(sg.real(X)), X)
    same(value(sg.conj(X)), X)
    same(value(sg.imag(X)), np.zeros(3))
    same(value(sg.angle(X)), np.angle(X))
    close(value(sg.angle(Z, deg=True)), np.angle(Z, deg=True), 1e-14)


def test_vecdot_conjugates_its_first_operand():
    close(value(sg.vecdot(Z, W)), np.vecdot(Z, W), 1e-14)


@pytest.mark.parametrize("name", ["var", "std", "mean", "sum", "prod"])
def test_reductions_are_numpys(name):
    found, expected = value(getattr(np, name)(sg.constant(A), axis=0)), getattr(np, name)(A, axis=0)
    assert found.dtype == expected.dtype
    close(found, expected, 1e-14)


# ---- programs -------------------------------------------------------------------------------


def complex_graph(seed):
    rng = np.random.default_rng(seed)
    inputs, outputs = random_graph(rng, int(rng.integers(5, 30)), (*DTYPES, *COMPLEX, *COMPLEX))
    wrt = [x for x in inputs if is_differentiable(x)]
    return rng, inputs, [*outputs, *sg.grad(outputs[0], wrt, disconnected="zero")]


@each("seed", range(24))
def test_optimised_is_raw_and_the_text_is_the_graph(seed):
    rng, inputs, outputs = complex_graph(seed)
    feeds = random_feeds(rng, inputs)
    for grade in ("bits", "values", "rounding", "reals"):
        assert_equivalent(inputs, outputs, feeds, exact=grade)
    graph = sg.Graph(outputs, inputs)
    assert sg.Graph.parse(graph.text(full=True)) == graph


def test_random_graphs_have_complex_parts():
    found = set()
    for seed in range(24):
        _, inputs, outputs = complex_graph(seed)
        nodes = sg.Graph(outputs, inputs).nodes
        found |= {n.op.name for n in nodes if not isinstance(n.type, tuple) and n.tensor.is_complex}
    assert len(found) > 30


@pytest.mark.parametrize("dtype", COMPLEX)
def test_a_program_in_tiles_and_in_a_file_of_its_own(tmp_path, dtype):
    rng = generator("program")
    z = sg.placeholder("z", ("N", 16), dtype)
    w = sg.variable("w", sample(rng, (16, 4), dtype))
    specials = np.array([1 + 2j, complex(np.nan, -0.0), complex(-0.0, np.inf), -1j], dtype)
    y = sg.tanh((z * (0.5 - 1j) + 1j * sg.conj(z)) @ w) * specials[0]
    loss = sg.sum(sg.abs(y * sg.exp(1j * sg.real(y))) ** 2) / z.shape[0]
    gz, gw = sg.grad(loss, [z, w])
    options = {"updates": {w: w - 0.01 * gw}}
    wanted = [loss, gz, sg.constant(specials) * loss]
    program = sg.compile([z], wanted, **options)
    raw = sg.compile([z], wanted, **options, passes=(), backend="reference")
    at, before = sample(rng, (3000, 16), dtype), w.value
    expected, after = raw(at), w.value
    w.value = before
    program.save_source(tmp_path / "step.py", N=3000)
    found = program(at)
    spec = importlib.util.spec_from_file_location("step", tmp_path / "step.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    alone = module.Program(before)
    for a, b, c in zip(found, alone(at), expected, strict=True):
        same(a, b)
        np.testing.assert_allclose(a, c, rtol=1e-4 if dtype == "complex64" else 1e-10)
    same(alone.w, w.value)
    close(w.value, after, 1e-5)
    assert f"np.{dtype}" not in program.source
    assert "0.5-1j" in program.source


def test_feeding():
    z, x = sg.placeholder("z", 3, "complex64"), sg.placeholder("x", 3, "float32")
    program = sg.compile([z, x], z * x)
    assert program(X.astype("float32"), X.astype("float32")).dtype == np.complex64
    with pytest.raises(sg.FeedError, match="cannot be cast to float32 without loss"):
        program(np.ones(3, "complex64"), np.ones(3, "complex64"))

"""float16: what is a mean, a loss or a norm is finite and right wherever its value fits."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ops.linalg.triangular import solve_definite
from symgrad.optim.clipping import clip_by_norm
from symgrad.testing.equality import Run
from tests.helpers import each

MANY = 100_000


def rows(x):
    return sg.reshape(x, (-1, 10))


def columns(x):
    return sg.reshape(x, (10, -1))


# What is computed of a vector, and in NumPy of float64.
STATISTICS = {
    "mean": (sg.mean, np.mean),
    "mean_of_columns": (lambda x: sg.mean(rows(x), axis=0), lambda a: a.reshape(-1, 10).mean(0)),
    "var": (sg.var, np.var),
    "corrected": (lambda x: sg.var(x, correction=1), lambda a: np.var(a, ddof=1)),
    "std": (sg.std, np.std),
    "median": (sg.median, np.median),
    "nanmean": (sg.nanmean, np.nanmean),
    "nanmean_of_columns": (
        lambda x: sg.nanmean(rows(x), axis=0),
        lambda a: a.reshape(-1, 10).mean(0),
    ),
    "nanvar": (sg.nanvar, np.nanvar),
    "nanstd": (sg.nanstd, np.nanstd),
    "nanmedian": (sg.nanmedian, np.nanmedian),
    "norm": (sg.linalg.vector_norm, np.linalg.norm),
    "norm_of_order_3": (
        lambda x: sg.linalg.vector_norm(x, ord=3),
        lambda a: np.linalg.norm(a, ord=3),
    ),
    "logsumexp": (sg.logsumexp, lambda a: np.log(np.exp(a - a.max()).sum()) + a.max()),
    "logsumexp_of_columns": (
        lambda x: sg.logsumexp(rows(x), axis=0),
        lambda a: np.logaddexp.reduce(a.reshape(-1, 10), 0),
    ),
    "log_softmax": (
        lambda x: sg.log_softmax(rows(x), axis=0),
        lambda a: a.reshape(-1, 10) - np.logaddexp.reduce(a.reshape(-1, 10), 0),
    ),
    "layer_norm": (
        lambda x: sg.nn.layer_norm(x),
        lambda a: (a - a.mean()) / np.sqrt(a.var() + 1e-5),
    ),
    "batch_norm": (
        lambda x: sg.nn.batch_norm(rows(x)),
        lambda a: (
            (a.reshape(-1, 10) - a.reshape(-1, 10).mean(0))
            / np.sqrt(a.reshape(-1, 10).var(0) + 1e-5)
        ),
    ),
    "mse_loss": (lambda x: sg.nn.mse_loss(x, sg.zeros_like(x)), lambda a: np.mean(a**2)),
    "huber": (
        lambda x: sg.nn.huber(x, sg.zeros_like(x)),
        lambda a: np.where(np.abs(a) < 1, a**2 / 2, np.abs(a) - 0.5).mean(),
    ),
    "bce": (
        lambda x: sg.nn.bce_with_logits(x, sg.zeros_like(x)),
        lambda a: np.logaddexp(0, a).mean(),
    ),
    "avg_pool": (
        lambda x: sg.nn.avg_pool(sg.reshape(x, (1, 1, -1)), 10),
        lambda a: a.reshape(1, 1, -1, 10).mean(-1),
    ),
    "vecdot": (lambda x: sg.vecdot(x, x * 0.001), lambda a: (a * (a * 0.001)).sum()),
}  # fmt: skip


def numbers(kind, size):
    rng = np.random.default_rng(size)
    found = rng.standard_normal(size)
    return {"tens": found + 10, "hundreds": 300 * found, "units": found}[kind].astype("float16")


@each("passes", [None, ()], ids=["optimised", "raw"])
@each("kind", ["units", "tens", "hundreds"])
@each("name", STATISTICS)
def test_statistics_are_those_of_float64_rounded(name, kind, passes):
    function, by_numpy = STATISTICS[name]
    for size in (10, MANY):
        a = numbers(kind, size)
        x = sg.placeholder("x", size, "float16")
        found = sg.compile(x, function(x), passes=passes)(a)
        with np.errstate(over="ignore"):
            expected = by_numpy(a.astype("float64")).astype("float16")
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, expected, rtol=4e-3, atol=4e-3)


@each("passes", [None, ()], ids=["optimised", "raw"])
@each("name", STATISTICS)
def test_their_gradients_are_those_of_float64_rounded(name, passes):
    function, _ = STATISTICS[name]
    a = numbers("tens", 10_000)
    found = []
    for dtype in ("float16", "float64"):
        x = sg.placeholder("x", a.size, dtype)
        y = function(x)
        weights = np.linspace(-1, 1, y.size).reshape(y.shape).astype(dtype) if y.ndim else 1
        loss = sg.sum(sg.astype(y, "float64") * weights)
        found.append(sg.compile(x, sg.grad(loss, x), passes=passes)(a.astype(dtype)))
    half, expected = found
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, expected, rtol=0, atol=4e-3 * np.abs(expected).max() + 6e-8)


def test_a_sum_is_numpys():
    a = numbers("hundreds", 10_000).reshape(100, 100)
    x = sg.placeholder("x", a.shape, "float16")
    for axis in (None, 0, 1):
        np.testing.assert_array_equal(sg.compile(x, sg.sum(x, axis=axis))(a), a.sum(axis=axis))
    with np.errstate(over="ignore"):
        tens = np.full((100, 100), 10, "float16")
        assert sg.compile(x, sg.sum(x))(tens) == tens.sum() == np.inf


def test_a_wider_operand_makes_a_wider_result():
    a, b = sg.placeholder("a", 3, "float16"), sg.placeholder("b", 3, "float32")
    assert sg.nn.mse_loss(a, a).dtype == np.float16
    assert sg.nn.mse_loss(a, b).dtype == np.float32
    assert sg.nn.mse_loss(a, np.zeros(3)).dtype == np.float64
    assert sg.mean(np.ones(3, "float16")).dtype == np.float16


def test_a_named_size_may_be_larger_than_float16_can_count():
    x = sg.placeholder("x", "N", "float16")
    outputs = [sg.mean(x), sg.var(x, correction=1), sg.std(x, correction=1), sg.grad(sg.mean(x), x)]
    mean, var, std, slope = sg.compile(x, outputs)(numbers("tens", MANY))
    np.testing.assert_allclose([mean, var, std], [10, 1, 1], rtol=1e-2)
    np.testing.assert_allclose(slope, 1e-5, rtol=2e-2)


def test_elements_that_tie_are_counted_beyond_2048():
    x = sg.placeholder("x", (5000, 2), "float16")
    slope = sg.compile(x, sg.grad(sg.sum(sg.max(x, axis=0)), x))(np.ones((5000, 2), "float16"))
    np.testing.assert_allclose(slope, 1 / 5000, rtol=1e-3)


def test_cotangents_are_summed_beyond_2048():
    """A bias is read once for each row; its cotangent is a sum over a leading axis."""
    x, b = sg.placeholder("x", (5000, 3), "float16"), sg.placeholder("b", 3, "float16")
    found = sg.compile([x, b], sg.grad(sg.sum(sg.astype(x + b, "float32")), b))
    np.testing.assert_array_equal(
        found(np.zeros((5000, 3), "float16"), np.zeros(3, "float16")), 5000
    )


def test_tangents_go_the_same_way():
    a = numbers("tens", MANY)
    x = sg.placeholder("x", MANY, "float16")
    for function in (sg.mean, sg.logsumexp, sg.linalg.vector_norm, sg.std):
        (along,) = sg.jvp([function(x)], [x], [sg.ones_like(x)])
        wide = sg.placeholder("w", MANY, "float64")
        (expected,) = sg.jvp([function(wide)], [wide], [sg.ones_like(wide)])
        found = sg.compile(x, along)(a)
        truth = sg.compile(wide, expected)(a.astype("float64"))
        np.testing.assert_allclose(found, truth, rtol=4e-3, atol=4e-3)


# ---- gradients that count and add up ---------------------------------------------------------


def single(x):
    return sg.sum(sg.astype(x, "float32"))


def zeros_of(n):
    return np.zeros(n, int)


# Of a vector of so many ones: where there are ties, and where one element is read many times.
TIED = {
    "cummax": lambda x: sg.cummax(x)[-1],
    "cummin": lambda x: sg.cummin(x)[-1],
    "sort": lambda x: sg.sort(x)[5],
    "descending": lambda x: sg.sort(x, descending=True)[5],
    "mean_of_sorted": lambda x: sg.mean(sg.sort(x)),
    "top_k": lambda x: sg.top_k(x, 3)[0][1],
    "quantile": lambda x: sg.quantile(x, 0.3),
    "nanquantile": lambda x: sg.nanquantile(x, 0.3),
    "max_at": lambda x: sg.zeros(2, dtype="float16").at[zeros_of(x.size)].max(x)[0],
    "min_at": lambda x: sg.full(2, 3, dtype="float16").at[zeros_of(x.size)].min(x)[0],
}
MANY_TERMS = {
    "take": lambda x: sg.sum(sg.take(x, zeros_of(x.size)) * 1e-3),
    "indexed": lambda x: sg.sum(x[zeros_of(x.size)] * 1e-3),
    "along_axis": lambda x: sg.sum(sg.take_along_axis(x, zeros_of(x.size)) * 1e-3),
    "wrapped": lambda x: single(sg.pad(x[:2], (6000, 6000), mode="wrap")),
    "running_sum": lambda x: single(sg.cumulative_sum(x)) * 1e-2,
    "running_product": lambda x: single(sg.cumulative_prod(x)) * 1e-2,
    "windows": lambda x: single(sg.sliding_window_view(sg.pad(x, 3000), 3000)),
    "pooled": lambda x: single(
        sg.nn.max_pool(sg.reshape(sg.pad(x[:1] * 2, 2999), (1, 1, -1)), 3000, stride=1)
    ),
    "weights": lambda x: single(sg.conv(sg.reshape(x, (1, 1, -1)), sg.reshape(x[:3], (1, 1, 3)))),
    "added_at": lambda x: sg.zeros(2, dtype=x.dtype).at[zeros_of(x.size)].add(x * 1e-3)[0],
    "bincount": lambda x: sg.bincount(zeros_of(x.size), x * 1e-3)[0],
    "columns": lambda x: sg.sum(x[:, None] * np.full(2, 1e-3, "float16"), axis=0)[0],
}


def both_modes(function, size, dtype, passes):
    """A gradient and a tangent at ones."""
    x = sg.placeholder("x", size, dtype)
    y = function(x)
    outputs = [sg.grad(y, x), *sg.jvp([y], [x], [sg.ones_like(x)])]
    return sg.compile(x, outputs, passes=passes)(np.ones(size, dtype))


@each("passes", [None, ()], ids=["optimised", "raw"])
@each("size", [3000, 70_000])
@each("name", TIED)
def test_elements_that_tie_share_one_gradient(name, size, passes):
    slope, along = both_modes(TIED[name], size, "float16", passes)
    assert slope.dtype == along.dtype == np.float16
    np.testing.assert_allclose(slope, 1 / size, rtol=2e-3)
    np.testing.assert_allclose(along, 1, rtol=2e-3)


@each("passes", [None, ()], ids=["optimised", "raw"])
@each("name", MANY_TERMS)
def test_terms_of_a_derivative_are_added_up_in_float32(name, passes):
    for size in (3000, 70_000) if name in ("take", "indexed", "added_at") else (3000,):
        slope, along = both_modes(MANY_TERMS[name], size, "float16", passes)
        expected, truth = both_modes(MANY_TERMS[name], size, "float64", passes)
        np.testing.assert_allclose(slope, expected, rtol=0, atol=2e-3 * expected.max())
        np.testing.assert_allclose(along, truth, rtol=2e-3)


@pytest.mark.parametrize("passes", [None, ()], ids=["optimised", "raw"])
def test_many_uses_of_one_node_are_added_up_in_float32(passes):
    x = sg.placeholder("x", (), "float16")
    y = x * 1e-3
    for _ in range(2999):
        y = y + x * 1e-3
    np.testing.assert_allclose(sg.compile(x, sg.grad(y, x), passes=passes)(1), 3, rtol=2e-3)


@pytest.mark.parametrize("passes", [None, ()], ids=["optimised", "raw"])
def test_second_derivatives_are_those_of_float64(passes):
    square = {
        "gathered": lambda x: single(x[zeros_of(3000)] ** 3),
        "running_max": lambda x: single(sg.cummax(x)[-1] ** 3),
        "sorted": lambda x: single(sg.sort(x)[1] ** 3),
        "running_sum": lambda x: single(sg.cumulative_sum(x) ** 2),
        "uses": lambda x: single(x**2 + x**3 + sg.exp(x) + sg.sin(x)),
    }
    for name, function in square.items():
        found = []
        for dtype in ("float16", "float64"):
            x = sg.placeholder("x", 4, dtype)
            found.append(
                sg.compile(x, sg.hessian(function(x), x), passes=passes)(np.ones(4, dtype))
            )
        np.testing.assert_allclose(
            found[0], found[1], rtol=0, atol=4e-3 * np.abs(found[1]).max(), err_msg=name
        )


@pytest.mark.parametrize("passes", [None, ()], ids=["optimised", "raw"])
def test_nothing_flows_to_what_was_not_taken(passes):
    """The slope of sqrt at 0, which was not taken, is infinite."""
    x = sg.placeholder("x", 2, "float16")
    for function in (
        lambda r: sg.sum(r[[1, 1]]), sg.max, lambda r: sg.cummax(r[::-1])[-1],
        lambda r: sg.sum(r[[1, 1]]) + sg.max(r) + sg.cummax(r[::-1])[-1] + sg.max(r * 2),
    ):  # fmt: skip
        slope = sg.compile(x, sg.grad(function(sg.sqrt(x)), x), passes=passes)
        found = slope(np.array([0, 1], "float16"))
        assert found[0] == 0
        assert np.isfinite(found[1])


def test_a_batch_norm_of_wide_numbers_trains():
    """Their variance does not fit into float16."""
    net = sg.nn.BatchNorm(3, dtype="float16")
    x = sg.placeholder("x", ("N", 3), "float16")
    found = sg.compile(x, net(x))(600 * numbers("units", 3000).reshape(-1, 3))
    np.testing.assert_allclose(found.std(axis=0, dtype="float64"), 1, rtol=1e-2)


def test_clipped_gradients_are_not_lost():
    g = sg.placeholder("g", 1000, "float16")
    a = np.full(1000, 1000, "float16")
    found = sg.compile(g, clip_by_norm([g], 1.0)[0])(a)
    np.testing.assert_allclose(found, 1 / np.sqrt(1000), rtol=2e-3)


def test_terms_that_cancel_do_not_overflow_where_numpy_adds_them_in_float32():
    half = np.full(6000, 60000, "float16")
    a = np.concatenate([half, -half])
    x, y = sg.placeholder("x", 12000, "float16"), sg.placeholder("y", 6000, "float16")
    ones = np.ones(12000, "float16")
    assert sg.compile(x, sg.sum(x))(a) == 0
    assert sg.compile(x, sg.sum(x * ones))(a) == 0
    assert sg.compile(y, sg.sum(sg.concat([y, -y])))(half) == 0


# ---- factors that were written against overflow ---------------------------------------------


def protected(x, y, s, tiny):
    """What is scaled down before it is added up or multiplied."""
    m, n = sg.reshape(x, (4, -1)), sg.reshape(y, (-1, 4))
    return [
        sg.sum(x * tiny), sg.sum(x * tiny, axis=0), sg.vecdot(x * tiny, x), sg.sum((x * tiny) * y),
        (m * tiny) @ n, m @ (n * tiny), (x * tiny) * y, (x * tiny) / s, x * (tiny / s),
        x * tiny + y * tiny, x * tiny - y * tiny, sg.linalg.vector_norm(x * tiny),
        sg.mean(x * tiny), sg.sum((m * tiny) @ n), sg.max(x * tiny), x * (y * tiny),
        sg.einsum("ij,jk->", m * tiny, n), sg.sum(sg.concat([x * tiny, y * tiny])),
        sg.full((1, 4), tiny, dtype=x.dtype) @ n[:4], (x * s) * tiny, (m * s[:, None][:1]) * tiny,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "tiny"),
    [
        ("float16", 1e-3),
        ("float32", 1e-3),
        ("float32", 1e-30),
        ("float64", 1e-3),
        ("float64", 1e-250),
    ],
)
def test_a_factor_that_prevents_overflow_stays_where_it_is(dtype, tiny):
    """Optimised, all is finite that was finite as written."""
    x, y, s = (sg.placeholder(n, 16, dtype) for n in "xys")
    outputs = protected(x, y, s, tiny)
    rng = np.random.default_rng(0)
    found = 0
    program = sg.compile([x, y, s], outputs)
    for low, high in ((0.5, 1), (0.01, 0.02), (1e-3, 2e-3)):
        big = np.finfo(dtype).max
        arrays = [np.asarray(rng.uniform(low, high, 16) * v, dtype) for v in (big, big * tiny, 1)]
        written = Run(outputs, dict(zip([x, y, s], arrays, strict=True))).results()
        for y0, a, b in zip(outputs, written, program(*arrays), strict=True):
            there = np.isfinite(a) & (np.abs(a) < big / 2)
            assert np.isfinite(b[there]).all(), f"{y0!r}: {b}, as written {a}\n{program.trace}"
            found += int(there.sum())
    assert found > 100


@pytest.mark.parametrize("size", [1e-30, 0.25, -0.499])
def test_a_factor_that_prevents_overflow_stays_in_a_system(size):
    a, b, v = sg.placeholder("a", (3, 3)), sg.placeholder("b", (3, 1)), sg.placeholder("v", 3)
    y = [solve_definite(a, b * size), solve_definite(a, sg.reshape(v * size, (3, 1)))]
    right = np.full((3, 1), 1e300)
    matrix = abs(size) * 1e-8 * np.eye(3)
    found = sg.compile([a, b, v], y)(matrix, right, right[:, 0])
    np.testing.assert_allclose(found, np.copysign(np.full((2, 3, 1), 1e308), size), rtol=1e-9)


SCALED = {
    "product": lambda x, w, s: x * (w * s),
    "quotient": lambda x, w, s: x * (w / (1 / s)),
    "negated": lambda x, w, s: -(x * -(w * s)),
    "twice": lambda x, w, s: x * ((w * s) * (s * 4)),
    "through a function": lambda x, w, s: x * sg.tanh(w * s),
    "through a kink": lambda x, w, s: x * sg.relu(w * s),
    "of rows": lambda x, w, s: sg.reshape(x, (-1, 4)) * (w * s),
    "by a constant": lambda x, w, s: x * (w * 2.0**-6),
    "chosen": lambda x, w, s: x * sg.where(w > 0, w * s, 0),
}


@each("mode", ["reverse", "forward"])
@each("passes", [None, ()], ids=["optimised", "raw"])
@each("name", SCALED)
def test_what_keeps_a_sum_from_overflow_keeps_its_derivative_from_it(name, passes, mode):
    """The cotangent that is summed may be too large for float16 until it meets the factor."""
    function = SCALED[name]
    programs = []
    for dtype in ("float16", "float64"):
        x, w, s = (sg.placeholder(n, k, dtype) for n, k in (("x", 64), ("w", 4), ("s", ())))
        y = sg.sum(function(x, w if name == "of rows" else w[0], s))
        programs.append(sg.compile([x, w, s], sg.jacobian(y, w, mode=mode), passes=passes))
    rng = np.random.default_rng(0)
    beyond = 0
    for size in np.geomspace(100, 60_000, 12):
        x0 = (rng.uniform(0.5, 1, 64) * size).astype("float16")
        arrays = [x0, np.full(4, 0.25, "float16"), np.float16(2.0**-6)]
        found, expected = programs[0](*arrays), programs[1](*[v.astype("float64") for v in arrays])
        fits = np.abs(expected) < 65_000
        np.testing.assert_allclose(found[fits], expected[fits], rtol=1e-2)
        beyond += fits.all() and x0.sum(dtype="float64") > 4 * 65_504
    assert beyond > 4

"""Stable forms: naive spellings become them, and are right where the naive ones are not."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

import symgrad as sg
from symgrad.ops.linalg.norms import norm2
from symgrad.ops.linalg.products import vdot_p
from symgrad.passes import DEFAULT
from symgrad.testing import check_rule
from tests.helpers import each
from tests.rules.becomes import becomes, named, ops, stays

SIMPLIFY = named("common_subexpressions", "simplify", "merge")
WIDE = np.finfo(np.longdouble).nmant > np.finfo(np.float64).nmant


def xt(shape=(5,), dtype="float64"):
    return [sg.placeholder("x", shape, dtype), sg.placeholder("t", shape, dtype)]


def softmax_by_hand(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def logsumexp_by_hand(x):
    return np.log(np.exp(x - x.max()).sum()) + x.max()


# ---- six spellings, far out -----------------------------------------------------------------

# What is written, what it becomes, and the truth: value, and gradient of the weighted sum.
SIX = {
    "log(sum(exp(x)))": (
        lambda x, t: sg.log(sg.sum(sg.exp(x))),
        lambda x, t: sg.logsumexp(x),
        lambda x, t: logsumexp_by_hand(x),
        lambda x, t, w: w * softmax_by_hand(x),
    ),
    "exp(x) / sum(exp(x))": (
        lambda x, t: sg.exp(x) / sg.sum(sg.exp(x)),
        lambda x, t: sg.softmax(x),
        lambda x, t: softmax_by_hand(x),
        lambda x, t, w: (p := softmax_by_hand(x)) * (w - (w * p).sum()),
    ),
    "log(exp(x) / sum(exp(x)))": (
        lambda x, t: sg.log(sg.exp(x) / sg.sum(sg.exp(x))),
        lambda x, t: sg.log_softmax(x),
        lambda x, t: x - logsumexp_by_hand(x),
        lambda x, t, w: w - softmax_by_hand(x) * w.sum(),
    ),
    "log(1 + exp(x))": (
        lambda x, t: sg.log(1 + sg.exp(x)),
        lambda x, t: sg.softplus(x),
        lambda x, t: np.logaddexp(x, 0),
        lambda x, t, w: w * np.exp(-np.logaddexp(-x, 0)),
    ),
    "-log(1 / (1 + exp(-x)))": (
        lambda x, t: -sg.log(1 / (1 + sg.exp(-x))),
        lambda x, t: sg.softplus(-x),
        lambda x, t: np.logaddexp(-x, 0),
        lambda x, t, w: -w * np.exp(-np.logaddexp(x, 0)),
    ),
    "-sum(t * log(softmax(x)))": (
        lambda x, t: -sg.sum(t * sg.log(sg.softmax(x))),
        lambda x, t: -vdot_p(t, sg.log_softmax(x)),
        lambda x, t: -(t * (x - logsumexp_by_hand(x))).sum(),
        lambda x, t, w: w * (softmax_by_hand(x) * t.sum() - t),
    ),
}


@pytest.mark.parametrize("spelling", SIX)
def test_a_naive_spelling_becomes_the_stable_form(spelling):
    written, stable, _, _ = SIX[spelling]
    inputs = xt()
    becomes(inputs, written(*inputs), stable(*inputs), SIMPLIFY)


@each("passes", [None, DEFAULT[:-1]], ids=["fused", "unfused"])
@each("at", [1000, -1000, 0])
@each("spelling", SIX)
def test_it_is_true_far_out_in_float32(spelling, at, passes):
    written, _, value, gradient = SIX[spelling]
    x, t = xt(dtype="float32")
    y = written(x, t)
    w = np.arange(1, 1 + y.size) if y.ndim else np.ones(())
    loss = sg.sum(y * w.astype("float32"))
    program = sg.compile([x, t], [y, sg.grad(loss, x)], passes=passes)
    xs = np.array([at, -at, at - 1, 0.5, -2], np.float32)
    ts = np.array([0.5, 0.125, 0.25, 0.125, 0], np.float32)
    found = program(xs, ts)
    wide = xs.astype("f8"), ts.astype("f8")
    for array, expected in zip(found, (value(*wide), gradient(*wide, w)), strict=True):
        assert array.dtype == np.float32
        assert np.isfinite(array).all()
        np.testing.assert_allclose(array, expected, rtol=1e-6, atol=1e-6)


# ---- other spellings ------------------------------------------------------------------------


ROUNDING = [
    (lambda x, t: sg.log1p(sg.exp(x)), lambda x, t: sg.softplus(x)),
    (lambda x, t: sg.logaddexp(0, x), lambda x, t: sg.softplus(x)),
    (lambda x, t: sg.relu(x) + sg.log1p(sg.exp(-abs(x))), lambda x, t: sg.softplus(x)),
    (lambda x, t: sg.relu(x) + sg.log(1 + sg.exp(-abs(x))), lambda x, t: sg.softplus(x)),
    (lambda x, t: 1 / (1 + sg.exp(-x)), lambda x, t: sg.sigmoid(x)),
    (lambda x, t: sg.reciprocal(1 + sg.exp(-x)), lambda x, t: sg.sigmoid(x)),
    (lambda x, t: (1 + sg.exp(-x)) ** -1, lambda x, t: sg.sigmoid(x)),
    (lambda x, t: 1 - sg.sigmoid(x), lambda x, t: sg.sigmoid(-x)),
    (lambda x, t: sg.log(sg.sigmoid(x)), lambda x, t: sg.log_sigmoid(x)),
    (lambda x, t: sg.log(1 - sg.sigmoid(x)), lambda x, t: -sg.softplus(x)),
    (lambda x, t: sg.log(1 + x), lambda x, t: sg.log1p(x)),
    (lambda x, t: sg.log(1 - x), lambda x, t: sg.log1p(-x)),
    (lambda x, t: sg.exp(x) - 1, lambda x, t: sg.expm1(x)),
    (lambda x, t: 1 - sg.exp(x), lambda x, t: -sg.expm1(x)),
    (lambda x, t: sg.log(1 - sg.exp(x)), lambda x, t: sg.log1mexp(x)),
    (lambda x, t: sg.log1p(-sg.exp(x)), lambda x, t: sg.log1mexp(x)),
    (lambda x, t: sg.log(sg.exp(x) + sg.exp(t)), lambda x, t: sg.logaddexp(x, t)),
    (lambda x, t: (sg.exp(x) - sg.exp(-x)) / 2, lambda x, t: sg.sinh(x)),
    (lambda x, t: (sg.exp(x) + sg.exp(-x)) / 2, lambda x, t: sg.cosh(x)),
    (lambda x, t: sg.sqrt(sg.sum(x * x)), lambda x, t: norm2(x)),
]
ROWS = [
    (lambda x: sg.log(sg.sum(sg.exp(x), axis=1)), lambda x: sg.logsumexp(x, axis=1)),
    (
        lambda x: sg.exp(x) / sg.sum(sg.exp(x), axis=1, keepdims=True),
        lambda x: sg.softmax(x, axis=1),
    ),
    (lambda x: sg.exp(x) / sg.sum(sg.exp(x), axis=1)[:, None], lambda x: sg.softmax(x, axis=1)),
    (
        lambda x: x - sg.log(sg.sum(sg.exp(x), axis=1, keepdims=True)),
        lambda x: sg.log_softmax(x, axis=1),
    ),
    (lambda x: x - sg.log(sg.sum(sg.exp(x), axis=1))[:, None], lambda x: sg.log_softmax(x, axis=1)),
    (lambda x: sg.sqrt(sg.sum(x**2, axis=1)), lambda x: norm2(x, axis=1)),
]
REALS = [
    (lambda x, t: sg.exp(x) / (1 + sg.exp(x)), lambda x, t: sg.sigmoid(x)),
    (
        lambda x, t: (sg.exp(x) - sg.exp(-x)) / (sg.exp(x) + sg.exp(-x)),
        lambda x, t: sg.tanh(x),
    ),
    (lambda x, t: (sg.exp(2 * x) - 1) / (sg.exp(2 * x) + 1), lambda x, t: sg.tanh(x)),
    (lambda x, t: (1 - sg.exp(-2 * x)) / (1 + sg.exp(-2 * x)), lambda x, t: sg.tanh(x)),
    (lambda x, t: 2 * sg.sigmoid(2 * x) - 1, lambda x, t: sg.tanh(x)),
    (lambda x, t: sg.log(sg.mean(sg.exp(x))), lambda x, t: sg.logsumexp(x) + np.log(0.2)),
    (lambda x, t: (e := sg.exp(x - sg.max(x))) / sg.sum(e), lambda x, t: sg.softmax(x)),
    (
        lambda x, t: sg.log(sg.sum(sg.exp(x - (m := sg.max(x, keepdims=True))), keepdims=True)) + m,
        lambda x, t: sg.logsumexp(x, keepdims=True),
    ),
]


@each(("written", "stable"), ROUNDING)
def test_forms_of_elements(written, stable):
    inputs = xt()
    y, expected = written(*inputs), stable(*inputs)
    becomes(inputs, y, expected, SIMPLIFY)
    kept = sg.compile(inputs, y, exact="values", passes=SIMPLIFY).graph
    assert ops(kept) != ops(sg.Graph(expected)), "it may differ by more than a sign of zero"


@pytest.mark.parametrize(("written", "stable"), ROWS)
def test_forms_of_rows(written, stable):
    x = sg.placeholder("x", (3, 4))
    becomes([x], written(x), stable(x), SIMPLIFY)


@pytest.mark.parametrize(("written", "stable"), REALS)
def test_what_is_another_number_at_infinities_or_no_nearer_needs_reals(written, stable):
    inputs = xt()
    y, expected = written(*inputs), stable(*inputs)
    becomes(inputs, y, expected, SIMPLIFY, "reals")
    kept = sg.compile(inputs, y, passes=SIMPLIFY).graph
    assert ops(kept) != ops(sg.Graph(expected))


def test_what_is_shifted_by_hand_is_stable_as_it_is():
    x, _ = xt((3, 4))
    z = x - sg.max(x, axis=1, keepdims=True)
    stays([x], sg.exp(z) / sg.sum(sg.exp(z), axis=1, keepdims=True), named("simplify"))
    stays([x], z - sg.log(sg.sum(sg.exp(z), axis=1, keepdims=True)), named("simplify"))
    quotient = sg.exp(z) / sg.sum(sg.exp(z), axis=1, keepdims=True)
    becomes([x], sg.log(quotient), sg.log_softmax(z, axis=1), SIMPLIFY)


def test_a_shift_over_other_axes_is_none():
    """Rows far below the largest of all would be 0 / 0."""
    x, _ = xt((3, 4))
    z = x - sg.max(x)
    written = sg.exp(z) / sg.sum(sg.exp(z), axis=1, keepdims=True)
    becomes([x], written, sg.softmax(z, axis=1), SIMPLIFY)


def test_cross_entropies_from_logits():
    x, t = xt((3, 4))
    naive = -sg.mean(sg.sum(t * sg.log(sg.softmax(x)), axis=1))
    stable = -sg.mean(sg.sum(t * sg.log_softmax(x), axis=1))
    assert ops(sg.compile([x, t], naive).graph) == ops(sg.compile([x, t], stable).graph)
    both = [naive, sg.grad(naive, x)]
    found = ops(sg.compile([x, t], both, passes=SIMPLIFY).graph)
    assert found.count("log_softmax") == found.count("softmax") == 1
    found = ops(sg.compile([x, t], both, passes=DEFAULT[:-1]).graph)
    assert found.count("exp") == 1
    assert not {"log_softmax", "softmax"} & {*found}
    for p in (sg.sigmoid(x), 1 / (1 + sg.exp(-x))):
        loss = t * sg.log(p) + (1 - t) * sg.log(1 - p)
        found = ops(sg.compile([x, t], loss, passes=SIMPLIFY).graph)
        assert found.count("softplus") == 2
        assert not {"log", "log1p", "exp", "sigmoid"} & {*found}


ROOTS = [
    lambda b, c, sqrt: sqrt(b * b - c) - b,
    lambda b, c, sqrt: sqrt(c + b * b) + b,
    lambda b, c, sqrt: b - sqrt(b * b + c),
    lambda b, c, sqrt: -b + sqrt(b * b - c),
    lambda b, c, sqrt: -b - sqrt(b * b - c),
]


@pytest.mark.parametrize("written", ROOTS)
def test_roots_do_not_cancel_in_the_reals(written):
    bs, cs = np.array([1e8, -1e8, 1e12, -1e12, 3, -0.5]), np.array([3, 1, 2, 0.5, -1, 0.25])
    b, c = xt((6,))
    program = sg.compile([b, c], written(b, c, sg.sqrt), exact="reals")
    with localcontext() as context:
        context.prec = 50
        truth = [
            float(written(*map(Decimal, pair), Decimal.sqrt)) for pair in zip(bs, cs, strict=True)
        ]
    np.testing.assert_allclose(program(bs, cs), truth, rtol=1e-14)


# ---- variances ------------------------------------------------------------------------------


@each("shape", [(3, 4), (3, 5), ("N", 4)])
@each("axis", [0, 1, None])
@each("keepdims", [False, True])
def test_a_variance_from_raw_moments_does_not_cancel(shape, axis, keepdims):
    x = sg.placeholder("x", shape, "float32")
    over = {"axis": axis, "keepdims": keepdims}
    written = sg.mean(x * x, **over) - sg.mean(x, **over) ** 2
    program = sg.compile([x], [written, sg.grad(sg.sum(written), x)])
    assert "moments_are_variance" in program.trace.rules()
    rng = np.random.default_rng(0)
    a = (1000 + rng.standard_normal((3, shape[1]))).astype("f4")
    variance, gradient = program(a)
    wide = a.astype("f8")
    np.testing.assert_allclose(variance, np.var(wide, **over), rtol=1e-4)
    count = wide.size / np.var(wide, axis=axis).size
    slope = 2 * (wide - wide.mean(axis=axis, keepdims=True)) / count
    np.testing.assert_allclose(gradient, slope, atol=1e-3)


def test_what_is_no_variance_stays():
    x, t = xt((3, 4))
    for written in (
        sg.mean(x * x) - sg.mean(t) ** 2,
        sg.mean(x * x, axis=0) - sg.mean(x) ** 2,
        sg.sum(x * x) / 7 - (sg.sum(x) / 7) ** 2,
        sg.mean(x * x) - (sg.sum(x) / 7) ** 2,
    ):
        assert "moments_are_variance" not in sg.compile([x, t], written).trace.rules()


# ---- roundings that were written stay -------------------------------------------------------


def log1p_by_hand(x):
    """Kahan's: the error of 1 + x in the logarithm is made up for by the quotient."""
    u = 1 + x
    return sg.where(u == 1, x, sg.log(u) * x / sg.where(u == 1, 1, u - 1))


def expm1_by_hand(x):
    """Kahan's, too."""
    u = sg.exp(x)
    return sg.where(u == 1, x, (u - 1) * x / sg.where(u == 1, 1, sg.log(u)))


@pytest.mark.parametrize("function", [log1p_by_hand, expm1_by_hand])
def test_what_makes_up_for_a_rounding_finds_it(function):
    x = sg.placeholder("x", 40)
    at = 10.0 ** -np.linspace(0.3, 17, 40)
    found = sg.compile([x], function(x))(at)
    np.testing.assert_array_equal(found, sg.compile([x], function(x), passes=())(at))
    np.testing.assert_allclose(found, getattr(np, function.__name__[:5])(at), rtol=1e-14)


def test_the_logarithm_of_an_exponential_stays():
    x, t = xt()
    for y in (sg.log(sg.exp(x)), (x + t) - t, (x * t) / t, sg.square(sg.sqrt(x))):
        stays([x, t], y, SIMPLIFY)


# ---- the check of stable rules --------------------------------------------------------------


@sg.rule(exact="rounding", kinds="f", stable=True)
def cosine_by_its_series(x: sg.Var) -> sg.Rewrite:
    """False: it is right for small x only."""
    return sg.Rewrite(before=1 - sg.cos(x), after=x * x * 0.5)


@sg.rule(exact="rounding", kinds="f", stable=True)
def softplus_by_its_limit(x: sg.Var) -> sg.Rewrite:
    """False: it is right far out only."""
    return sg.Rewrite(before=sg.log(1 + sg.exp(x)), after=sg.maximum(x, 0))


@sg.rule(exact="rounding", kinds="f", stable=True)
def log1p_made_worse(x: sg.Var) -> sg.Rewrite:
    """False: the error is larger than before."""
    return sg.Rewrite(before=sg.log1p(x), after=sg.log(1 + x))


@sg.rule(exact="rounding", kinds="f", stable=True)
def still_cancels(x: sg.Var) -> sg.Rewrite:
    """False: where no digit was right, none is now."""
    return sg.Rewrite(before=sg.exp(x) - 1, after=(sg.exp(x) - 2) + 1)


@sg.rule(exact="rounding", kinds="f", stable=True)
def sigmoid_of_infinity(x: sg.Var) -> sg.Rewrite:
    """False: inf / inf is NaN."""
    return sg.Rewrite(before=sg.exp(x) / (1 + sg.exp(x)), after=sg.sigmoid(x))


@sg.rule(exact="rounding", kinds="f", stable=True)
def infinity_for_nan(x: sg.Var, y: sg.Var) -> sg.Rewrite:
    """False: hypot(inf, nan) is inf."""
    return sg.Rewrite(before=sg.sqrt(sg.log(sg.exp(x * x)) + y * y), after=sg.hypot(x, y))


@sg.rule(exact="rounding", kinds="f", stable=True)
def without_slope(x: sg.Var) -> sg.Rewrite:
    """False: the same value, and no gradient."""
    return sg.Rewrite(before=sg.log(1 + x), after=lambda x: sg.log1p(sg.stop_gradient(x)))


@pytest.mark.skipif(not WIDE, reason="long double is no wider than float64 here")
@pytest.mark.parametrize(
    "rule",
    [
        cosine_by_its_series,
        softplus_by_its_limit,
        log1p_made_worse,
        still_cancels,
        sigmoid_of_infinity,
        infinity_for_nan,
        without_slope,
    ],
    ids=lambda rule: rule.name,
)
def test_a_false_stable_rule_is_caught_and_shown(rule):
    with pytest.raises(AssertionError, match="not near the true") as caught:
        check_rule(rule)
    message = str(caught.value)
    assert rule.name in message
    assert "x0 = " in message
    assert "truth:" in message


@sg.rule(exact="rounding", kinds="f", stable=True)
def sum_undone(x: sg.Var, y: sg.Var) -> sg.Rewrite:
    """Nearer to the truth, and yet not admissible."""
    return sg.Rewrite(before=(x + y) - y, after=x)


@sg.rule(exact="rounding", kinds="f", stable=True)
def exponential_undone(x: sg.Var) -> sg.Rewrite:
    """Nearer to the truth, and yet not admissible."""
    return sg.Rewrite(before=sg.log(sg.exp(x)), after=x)


@sg.rule(exact="rounding", kinds="f", stable=True)
def error_undone(x: sg.Var, y: sg.Var) -> sg.Rewrite:
    """Nearer to the truth, and yet not admissible."""
    return sg.Rewrite(before=((x + y) - y) * 2, after=x * 2)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (sum_undone, "gives back an operand"),
        (exponential_undone, "gives back an operand"),
        (error_undone, "rewrites arithmetic on elements"),
    ],
)
def test_a_rule_that_undoes_a_rounding_is_not_stable(rule, why):
    with pytest.raises(AssertionError, match=why):
        check_rule(rule)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_silu_has_a_gradient_where_the_exponential_overflows(dtype):
    x = sg.placeholder("x", 4, dtype)
    y = x / (1 + sg.exp(-x))
    program = sg.compile([x], [y, sg.grad(sg.sum(y), x)])
    values, slopes = program(np.array([-1000, -1, 1, 1000], dtype))
    sigmoid = 1 / (1 + np.exp(-np.array([-1.0, 1.0])))
    np.testing.assert_allclose(values, [0, -sigmoid[0], sigmoid[1], 1000], rtol=1e-6, atol=1e-30)
    inner = sigmoid * (1 + np.array([-1, 1]) * (1 - sigmoid))
    np.testing.assert_allclose(slopes, [0, *inner, 1], rtol=1e-6, atol=1e-30)

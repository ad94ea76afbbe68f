"""Every rule, held to its grade; and every rule acts in the compiler as it is shipped."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.passes import DEFAULT, RULES, masks, normal
from symgrad.rewrite.rule import rule_for
from symgrad.testing import check_rule, spellings

COMPILER = (*RULES, *masks.KERNELS)
GRADES = ("bits", "values", "rounding", "reals")


def by_name(rules):
    return pytest.mark.parametrize("rule", rules, ids=lambda rule: rule.name)


@by_name((*COMPILER, *normal.RULES))
def test_keeps_its_grade(rule):
    check_rule(rule)


@by_name(COMPILER)
def test_acts_in_the_compiler(rule):
    """Some spelling of it is met by it, and not always by another rule before."""
    admitting = [g for g in GRADES if sg.Exact.of(g) >= rule.exact]
    for y, inputs in spellings(rule):
        for grade in admitting:
            if rule.name in sg.compile(inputs, y, exact=grade).trace.rules():
                return
    pytest.fail(f"nothing that was spelled out lets {rule.name} act: other rules are faster")


@by_name(COMPILER)
def test_does_not_act_below_its_grade(rule):
    """The grade that a program asks for is the most that it gets."""
    for grade in GRADES:
        if sg.Exact.of(grade) >= rule.exact:
            return
        for y, inputs in [next(spellings(rule))]:
            trace = sg.compile(inputs, y, exact=grade).trace
            assert all(f.rule.exact <= sg.Exact.of(grade) for f in trace.fired)


def test_names_tell_rules_apart():
    names = [rule.name for rule in COMPILER]
    assert len(names) == len({*names})


# ---- the checker itself ---------------------------------------------------------------------


@sg.rule(exact="rounding", kinds="f")
def quotient_is_one(x: sg.Var) -> sg.Rewrite:
    """False: 0 / 0 is NaN."""
    return sg.Rewrite(before=x / x, after=lambda x: sg.ones_like(x))


@sg.rule(exact="rounding", kinds="f")
def sum_undone(x: sg.Var, y: sg.Var) -> sg.Rewrite:
    """False: it undoes a rounding."""
    return sg.Rewrite(before=(x + y) - y, after=x)


@sg.rule(exact="rounding", kinds="f")
def product_undone(x: sg.Var, y: sg.Var) -> sg.Rewrite:
    """False: it undoes a rounding, and 0 * 0 / 0 is NaN."""
    return sg.Rewrite(before=(x * y) / y, after=x)


@sg.rule(exact="values", kinds="f")
def differences_regrouped(x: sg.Var, y: sg.Var, z: sg.Var) -> sg.Rewrite:
    """False: the last digit changes."""
    return sg.Rewrite(before=(x - y) - z, after=x - (y + z))


@sg.rule(exact="bits", kinds="f")
def zero_added(x: sg.Var) -> sg.Rewrite:
    """False: -0 + 0 is 0."""
    return sg.Rewrite(before=x + 0, after=x)


@sg.rule(exact="rounding", kinds="f")
def product_with_zero(x: sg.Var) -> sg.Rewrite:
    """False: inf * 0 is NaN."""
    return sg.Rewrite(before=x * 0, after=lambda x: sg.zeros_like(x))


@sg.rule(exact="values", kinds="f")
def small_factor(x: sg.Var, c: sg.Const) -> sg.Rewrite:
    """False: for c = 3, and for bool it would be true."""
    return sg.Rewrite(before=sg.where(x > 0, x * c, x), after=lambda x, c: x * 1)


@sg.rule(exact="bits", kinds="i")
def halved_and_doubled(x: sg.Var) -> sg.Rewrite:
    """False: odd numbers lose their last bit."""
    return sg.Rewrite(before=(x // 2) * 2, after=x)


@sg.rule(exact="reals", kinds="f")
def root_of_square(x: sg.Var) -> sg.Rewrite:
    """False even for real numbers: the sign is lost."""
    return sg.Rewrite(before=sg.sqrt(x * x), after=x)


@sg.rule(exact="bits", kinds="f")
def magnitude_without_slope(x: sg.Var) -> sg.Rewrite:
    """False: the same value, and no gradient."""
    return sg.Rewrite(before=abs(abs(x)), after=lambda x: sg.stop_gradient(abs(x)))


@rule_for(lambda op: op.name == "exp", exact="rounding", tries=(lambda x: sg.exp(x),))
def exp_is_one(node):
    """False: a function of the node, for once."""
    return sg.ones_like(node)


FALSE = (
    quotient_is_one, sum_undone, product_undone, differences_regrouped, zero_added,
    product_with_zero, small_factor, halved_and_doubled, root_of_square, magnitude_without_slope,
    exp_is_one,
)  # fmt: skip


@by_name(FALSE)
def test_a_false_rule_is_caught_and_shown(rule):
    with pytest.raises(AssertionError) as caught:
        check_rule(rule)
    message = str(caught.value)
    assert rule.name in message
    assert "x0 = " in message
    assert "before:" in message


@sg.rule(exact="reals", kinds="f", when=lambda x: False)
def never(x: sg.Var) -> sg.Rewrite:
    """It has a guard that nothing passes."""
    return sg.Rewrite(before=x + 1, after=x)


def test_a_rule_that_never_acts_is_not_taken_for_right():
    with pytest.raises(AssertionError, match="lets never act"):
        check_rule(never)


# ---- roundings that were written stay -------------------------------------------------------


def kahan(terms):
    """Compensated summation, spelled out."""
    total, lost = terms[0], sg.zeros_like(terms[0])
    for x in terms[1:]:
        y = x - lost
        t = total + y
        lost = (t - total) - y
        total = t
    return total, lost


def two_sum(a, b):
    """The sum and its exact error (Knuth)."""
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


def split(a):
    """A float64 as two halves (Veltkamp)."""
    c = a * 134217729.0
    high = c - (c - a)
    return high, a - high


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compensated_summation_survives(dtype):
    rng = np.random.default_rng(3)
    xs = [sg.placeholder(f"x{i}", 50, dtype) for i in range(8)]
    arrays = [np.asarray(rng.standard_normal(50) * 10.0**k, dtype) for k in rng.integers(-6, 7, 8)]
    outputs = kahan(xs)
    found = sg.compile(xs, outputs)(*arrays)
    raw = sg.compile(xs, outputs, passes=())(*arrays)
    assert np.abs(raw[1]).max() > 0
    for a, b in zip(found, raw, strict=True):
        np.testing.assert_array_equal(a, b)


def test_error_free_transformations_survive():
    rng = np.random.default_rng(4)
    a, b = (sg.placeholder(n, 100) for n in "ab")
    arrays = rng.standard_normal(100), rng.standard_normal(100) * 1e-9
    outputs = [*two_sum(a, b), *split(a), sg.sqrt(abs(a)) ** 2, (a * b) / b, (a + 0.1) - 0.1]
    raw = sg.compile([a, b], outputs, passes=())(*arrays)
    assert all(np.abs(raw[1]) > 0)
    for found, expected in zip(sg.compile([a, b], outputs)(*arrays), raw, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("c", [3.0, 10.0, 49.0, 0.1])
def test_a_constant_multiplied_in_and_divided_out_stays(c):
    """The last digit may change, but the two roundings are not taken back."""
    x = sg.placeholder("x", 5)
    for y in ((x * c) / c, (x / c) * c, (x * c) * (1 / c)):
        graph = sg.compile([x], y, passes=DEFAULT[:-1]).graph
        assert sum(bool(n.inputs) for n in graph.nodes) == 2, graph


def test_the_order_of_passes_names_every_rule():
    """What the tests above look at is what runs."""
    x = sg.placeholder("x", 3)
    names = [stage.name for stage in sg.compile([x], x * 1).trace.stages]
    assert names == [step.name for step in DEFAULT]

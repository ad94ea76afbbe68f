"""Every rule, held to its grade; and every rule acts in the compiler as it is shipped."""

from itertools import islice

import numpy as np
import pytest

import symgrad as sg
from symgrad.autodiff import normal
from symgrad.autodiff.reverse import pull_back
from symgrad.ir.walk import topological
from symgrad.lowering.cost import cost
from symgrad.lowering.lower import lower
from symgrad.lowering.steps import Call
from symgrad.ops.linalg.products import matmul_p
from symgrad.ops.linalg.solve import diagonal_p, on_diagonal
from symgrad.ops.reduce import sum as total
from symgrad.passes import BY_RANGES, DEFAULT, HOIST, KERNELS, RULES, cse
from symgrad.rewrite.driver import rewrite
from symgrad.rewrite.rule import rule_for, rules_of
from symgrad.rewrite.trace import Trace
from symgrad.rules import constants, reductions, whole_graph
from symgrad.testing import check_rule, random_feeds, spellings
from symgrad.testing.equality import Run
from symgrad.testing.rules import applications, applied_once
from symgrad.testing.spellings import MANY
from tests.helpers import each

COMPILER = (*RULES, *KERNELS)
GRADES = ("bits", "values", "rounding", "reals")


def keeps_the_gradient_that_was_written(rule):
    """By the ops' own slopes: `grad` lets these rules act first, on what a check compares, too."""
    seen = 0
    for y, inputs, after in islice(applications(rule), 60):
        xs = [x for x in inputs if x.dtype == np.float64]
        order = topological([y, after])
        steps = any(n.inputs and (n.op.vjp is None or n.op.no_slope) for n in order)
        if not xs or steps or y.dtype != np.float64:
            continue
        seed, feeds = sg.ones_like(y), dict(zip(inputs, ordinary(inputs), strict=True))
        flows = [pull_back([z], [seed], xs) for z in (y, after)]
        pairs = [[flow.get(x, sg.zeros_like(x)) for x in xs] for flow in flows]
        for expected, found in zip(*(Run(pair, feeds).results() for pair in pairs), strict=True):
            found = np.where(np.isnan(expected), expected, found)  # outside of a domain
            note = f"{rule}\n{sg.Graph([y], inputs)}"
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=note)
            seen += np.isfinite(expected).sum()
    assert seen or y.dtype == bool


def ordinary(inputs):
    return random_feeds(np.random.default_rng(0), inputs)


def acts_in_the_compiler(rule):
    """Some spelling of it is met by it, and not always by another rule before."""
    admitting = [g for g in GRADES if sg.Exact.of(g) >= rule.exact]
    for y, inputs in spellings(rule):
        for grade in admitting:
            if rule.name in sg.compile(inputs, y, exact=grade).trace.rules():
                return
    pytest.fail(f"nothing that was spelled out lets {rule.name} act: other rules are faster")


def does_not_act_below_its_grade(rule):
    """The grade that a program asks for is the most that it gets."""
    for grade in GRADES:
        if sg.Exact.of(grade) >= rule.exact:
            return
        for y, inputs in [next(spellings(rule))]:
            trace = sg.compile(inputs, y, exact=grade).trace
            assert all(f.rule.exact <= sg.Exact.of(grade) for f in trace.fired)


CLEAN = (*rules_of(constants), reductions.reduction_over_one)


def work(y, inputs):
    """The operations of what computes and reads a node, and the bytes that they move."""
    graph = rewrite(sg.Graph([sg.not_equal(y, 0)], inputs), CLEAN)
    found = cost(lower(cse.common_subexpressions(graph, sg.Exact.BITS, Trace()), {}))
    called = [(s.step.op, s.flops or 0) for s in found.steps if isinstance(s.step, Call)]
    slow = sum(flops for op, flops in called if op.elementwise and op.expensive)
    return found.flops + 9 * slow, found.bytes_moved


MISCOUNTED = (
    "where_zero_first_is_select",  # to choose takes ten times as long as to select
    "concat_of_slices",  # two slices of one array are counted as one
    "sum_in_rows",  # BLAS multiplies by ones in less time than NumPy adds up
    "definite_inverse_by_factor",  # steps of one kernel, written out, so that they can be shared
    "definite_system_by_factor",
    "definite_determinant_by_factor",
)
SAVING = [r for r in COMPILER if r.exact < sg.Exact.REALS and not r.stable]


def makes_no_more_work(rule):
    """Whichever of its variables are wide or narrow: one of both may grow if the other shrinks."""
    for y, inputs, after in applications(rule):
        # Operations on integers are not counted; and scalars are no work.
        nodes = [n for n in (y, *y.inputs, *inputs) if not isinstance(n.type, tuple)]
        if "f" in rule.kinds and any(n.dtype.kind in "iu" for n in nodes):
            continue
        if y.size in (0, MANY) or all(x.size <= 1 for x in inputs):
            continue
        new, old = work(after, inputs), work(y, inputs)
        grown = [a - b for a, b in zip(new, old, strict=True)]
        assert max(grown) <= 0 or min(grown) < 0, (
            f"{rule}\noperations and bytes {new}, and {old} before\n"
            f"before:\n{sg.Graph([y], inputs)}\nafter:\n{sg.Graph([after], inputs)}"
        )


CHECKS = {
    check_rule: (*COMPILER, *BY_RANGES, *rules_of(whole_graph), *normal.RULES),
    keeps_the_gradient_that_was_written: normal.RULES,
    acts_in_the_compiler: COMPILER,
    does_not_act_below_its_grade: COMPILER,
    makes_no_more_work: [r for r in SAVING if r.name not in MISCOUNTED],
}


@pytest.mark.parametrize("rule", dict.fromkeys(CHECKS[check_rule]), ids=lambda rule: rule.name)
@each("check", CHECKS)
def test_a_rule(rule, check):
    """One after the other, so that the spellings of a rule are made once."""
    if any(rule is r for r in CHECKS[check]):
        check(rule)


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


@rule_for(lambda op: op.name == "exp", exact="rounding", examples=(lambda x: sg.exp(x),))
def exp_is_one(node):
    """False: a function of the node, for once."""
    return sg.ones_like(node)


@sg.rule(exact="rounding", kinds="f")
def slightly_more(x: sg.Var) -> sg.Rewrite:
    """False: and it fits what it makes."""
    return sg.Rewrite(before=sg.tanh(x), after=sg.tanh(x) * 1.000001)


@sg.rule(exact="values", kinds="f")
def sums_regrouped(x: sg.Var, y: sg.Var, z: sg.Var) -> sg.Rewrite:
    """False: the last digit changes; and it fits what it makes."""
    return sg.Rewrite(before=(x + y) + z, after=x + (y + z))


@sg.rule(exact="bits", kinds="f")
def square_without_slope(x: sg.Var) -> sg.Rewrite:
    """False: the same value, and no gradient; and it fits what it makes."""
    return sg.Rewrite(before=sg.square(x), after=lambda x: sg.stop_gradient(sg.square(x)))


@sg.rule(exact="rounding", kinds="f")
def floor_of_multiple(x: sg.Var, c: sg.Const) -> sg.Rewrite:
    """False: 49 * (1 / 49) is less than 1."""
    return sg.Rewrite(before=sg.floor(x / c), after=sg.floor(x * (1 / c)))


@sg.rule(exact="values", kinds="f", examples=({"x": (2, 3), "axis": (0,)},))
def sum_reversed(x: sg.Var, axis: sg.Attr) -> sg.Rewrite:
    """False: but for two terms, of which it does not matter which is the first."""
    return sg.Rewrite(
        before=total(-x, axis=axis, dtype=None, keepdims=False),
        after=lambda x, axis: total(-sg.flip(x, axis=0), axis=axis, dtype=None, keepdims=False),
    )


@sg.rule(exact="bits", examples=({"x": (3,), "shape": (3, 4), "k": 0},))
def found_on_the_diagonal(x: sg.Var, shape: sg.Attr, k: sg.Attr) -> sg.Rewrite:
    """False: side by side, where they were far apart."""
    return sg.Rewrite(before=diagonal_p(on_diagonal(x, shape=shape, offset=k), offset=k), after=x)


FALSE = (
    quotient_is_one, sum_undone, product_undone, differences_regrouped, zero_added,
    product_with_zero, small_factor, halved_and_doubled, root_of_square, magnitude_without_slope,
    exp_is_one, slightly_more, sums_regrouped, square_without_slope, floor_of_multiple,
    sum_reversed, found_on_the_diagonal,
)  # fmt: skip


@pytest.mark.parametrize("rule", FALSE, ids=lambda rule: rule.name)
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


@sg.rule(exact="values", kinds="f", examples=({"x": (2, 3), "axis": (0,)},))
def sum_of_negative(x: sg.Var, axis: sg.Attr) -> sg.Rewrite:
    """False where x is a view: a sum of a transposed array goes in another order."""
    return sg.Rewrite(
        before=total(-x, axis=axis, dtype=None, keepdims=False),
        after=-total(x, axis=axis, dtype=None, keepdims=False),
    )


@sg.rule(exact="bits", kinds="f", examples=({"a": (3, 2), "b": (2, 4)},))
def product_of_negatives(a: sg.Var, b: sg.Var) -> sg.Rewrite:
    """False where a is a view: a product with a transposed array goes in another order."""
    return sg.Rewrite(before=matmul_p(-a, -b), after=matmul_p(a, b))


@pytest.mark.parametrize("rule", [sum_of_negative, product_of_negatives])
def test_below_rounding_a_rule_is_applied_as_the_passes_do(rule):
    """Where it would put a view into a sum, it is not; what is left of it is right."""
    assert check_rule(rule)
    for y, inputs in spellings(rule, turned=True):
        views = [n for n in sg.Graph([y], inputs).nodes if n.op.view]
        assert not views or applied_once(rule, y, inputs) is None


def false_between(low, high, kind="f"):
    """A rule that is right at every number that is not between these."""

    @sg.rule(exact="rounding" if kind == "f" else "bits", kinds=kind)
    def mostly_right(x: sg.Var) -> sg.Rewrite:
        """False in some place."""
        return sg.Rewrite(
            before=sg.negative(-x),
            after=lambda x: sg.where((x > low) & (x < high), sg.zeros_like(x), x),
        )

    return mostly_right


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [
        (3, 4, "f"), (-4, -3, "f"), (10, 100, "f"), (100, 1e30, "f"), (1e-30, 1e-10, "f"),
        (3, 6, "i"), (10, 100, "i"), (200, 250, "i"), (3, 6, "u"), (200, 250, "u"),
        (10**4, 10**9, "i"),
    ],
)  # fmt: skip
def test_no_interval_of_numbers_is_overlooked(low, high, kind):
    with pytest.raises(AssertionError, match="not the same"):
        check_rule(false_between(low, high, kind))


def test_intervals_that_are_not_named_are_found_too():
    """By numbers of all sizes, not only by those that stand in the rule."""

    @sg.rule(exact="bits", kinds="f")
    def wrong_for_tens(x: sg.Var) -> sg.Rewrite:
        """False where the logarithm is about 3."""
        return sg.Rewrite(
            before=sg.negative(-x),
            after=lambda x: sg.where(sg.round(sg.log(x)) == 3, sg.zeros_like(x), x),
        )

    with pytest.raises(AssertionError, match="not the same"):
        check_rule(wrong_for_tens)


@pytest.mark.parametrize(
    "after", [lambda x: x + 0.0, lambda x: sg.maximum(x, x), lambda x: x * 1.0]
)
def test_a_stable_rule_may_not_have_the_value_of_an_operand(after):
    @sg.rule(exact="rounding", kinds="f", stable=True)
    def exponential_undone(x: sg.Var) -> sg.Rewrite:
        """Nearer to the truth, and yet not admissible."""
        return sg.Rewrite(before=sg.log(sg.exp(x)), after=lambda x: after(x))

    with pytest.raises(AssertionError, match=r"exponential_undone .*undoes a rounding"):
        check_rule(exponential_undone)


def test_a_stable_rule_may_not_have_the_value_of_an_inner_node():
    @sg.rule(exact="rounding", kinds="f", stable=True)
    def root_undone(x: sg.Var) -> sg.Rewrite:
        """Nearer to the truth, and yet not admissible."""
        return sg.Rewrite(before=sg.square(sg.sqrt(sg.exp(x))), after=sg.exp(x))

    with pytest.raises(AssertionError, match=r"root_undone .*undoes a rounding"):
        check_rule(root_undone)


def test_a_rule_that_raises_is_named_with_what_it_was_given():
    @sg.rule(exact="rounding", kinds="f")
    def fails_when_built(x: sg.Var, c: sg.Const) -> sg.Rewrite:
        """It divides by a constant, which may be 0."""
        return sg.Rewrite(
            before=x + c, after=lambda x, c: x + c if c.ndim or 1 / float(c) else None
        )

    with pytest.raises(AssertionError, match=r"(?s)fails_when_built.*ZeroDivisionError.*constant"):
        check_rule(fails_when_built)


def test_a_rule_whose_result_raises_is_named_with_the_feeds():
    @sg.rule(exact="bits", kinds="i")
    def fails_when_run(x: sg.Var) -> sg.Rewrite:
        """NumPy refuses integers to negative powers."""
        return sg.Rewrite(before=sg.negative(-x), after=lambda x: x * sg.pow(sg.ones_like(x), x))

    with pytest.raises(AssertionError, match=r"(?s)fails_when_run.*raised ValueError.*x0 = "):
        check_rule(fails_when_run)


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
    assert names == [step.name for step in DEFAULT if step is not HOIST]

"""Families: the facts by which one rule makes others, held to account; and the twins it makes."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.op import REGISTRY
from symgrad.ir.record import replace
from symgrad.passes import RULES
from symgrad.rewrite.family import COMPLEMENT, DE_MORGAN, DUAL, OR_EQUAL, instead
from symgrad.testing.graphs import cases_of, special_values

OPS = tuple(REGISTRY.every().values())


def having(fact):
    found = [op for op in OPS if getattr(op, fact)]
    assert found
    return pytest.mark.parametrize("op", found, ids=lambda op: op.name)


def named(op, fact):
    """The op that a fact of another names, whose own fact names that one."""
    found = REGISTRY.find(getattr(op, fact))
    assert getattr(found, fact) == op.name
    return found


def trials(op, kinds):
    """Operands of an op and its attributes: all pairs of special values if it works on pairs."""
    for dtype in (d for d in ("bool", "int32", "uint8", "float32", "float64") if d[0] in kinds):
        values = special_values(dtype)
        rng = np.random.default_rng(0)
        for shapes, given in cases_of(op):
            attrs = {"axis": None, "keepdims": False, **given} if op.combiner else given
            if op.elementwise and len(shapes) == 2:
                yield [a.ravel() for a in np.meshgrid(values, values)], attrs
            yield [rng.choice(values, s) for s in shapes], attrs


def holds(op, other, kinds, before, after=lambda y: y):
    """Assert that `other` of operands is what `op` gives of changed operands, changed."""
    count = 0
    for operands, attrs in trials(op, kinds):
        expected = other.kernel(*operands, **attrs)
        np.testing.assert_array_equal(after(op.kernel(*before(operands), **attrs)), expected)
        count += 1
    assert count


@having("converse")
def test_the_converse_is_of_operands_exchanged(op):
    """Of NaN too."""
    holds(op, named(op, "converse"), "biuf", lambda operands: operands[::-1])


@having("complement")
def test_the_complement_is_true_where_it_is_not(op):
    """Unless an operand is NaN: then both orderings are false, and one of the two equalities is."""
    other = named(op, "complement")
    for operands, attrs in trials(op, "biuf"):
        one, two = op.kernel(*operands, **attrs), other.kernel(*operands, **attrs)
        unordered = np.isnan(operands[0]) | np.isnan(operands[1])
        np.testing.assert_array_equal((one ^ two)[~unordered], True)
        np.testing.assert_array_equal((one ^ two)[unordered], not op.converse)


@having("dual")
def test_the_dual_is_of_numbers_of_the_other_sign(op):
    """Of NaN too; what gives a place gives the same one."""
    gives_place = op.piecewise_constant and not op.elementwise
    after = (lambda y: y) if gives_place else np.negative
    holds(op, named(op, "dual"), "f", lambda operands: [-x for x in operands], after)


@having("de_morgan")
def test_de_morgans_laws(op):
    of_bits = np.invert if "int" in op.trials.dtypes else np.logical_not
    kinds = "biu" if "int" in op.trials.dtypes else "b"
    holds(op, named(op, "de_morgan"), kinds, lambda xs: [of_bits(x) for x in xs], of_bits)


def test_a_false_fact_is_caught():
    less, maximum = REGISTRY.find("less"), REGISTRY.find("maximum")
    with pytest.raises(AssertionError):
        holds(replace(less, converse="greater_equal"), REGISTRY.find("greater_equal"), "f", list)
    with pytest.raises(AssertionError):
        holds(maximum, REGISTRY.find("fmin"), "f", lambda xs: [-x for x in xs], np.negative)
    with pytest.raises(AssertionError):
        named(replace(less, complement="greater"), "complement")


# ---- twins ----------------------------------------------------------------------------------


@sg.rule(exact="values", kinds="f", family=(OR_EQUAL, DUAL))
def choice_below_is_maximum(x: sg.Var, c: sg.Const) -> sg.Rewrite:
    """c where x is less, else x, is the larger one."""
    return sg.Rewrite(before=sg.where(sg.less(x, c), c, x), after=sg.maximum(x, c))


def told(rule):
    return rule.name, f"{rule.rewrite.before} -> {rule.rewrite.after}", rule.reason


def test_each_fact_doubles_a_family():
    assert [told(r) for r in choice_below_is_maximum.family] == [
        (
            "choice_below_is_maximum",
            "where(less(x, c), c, x) -> maximum(x, c)",
            "c where x is less, else x, is the larger one.",
        ),
        (
            "choice_up_to_is_maximum",
            "where(less_equal(x, c), c, x) -> maximum(x, c)",
            "c where x is less or equal, else x, is the larger one.",
        ),
        (
            "choice_above_is_minimum",
            "where(greater(x, c), c, x) -> minimum(x, c)",
            "c where x is greater, else x, is the smaller one.",
        ),
        (
            "choice_from_is_minimum",
            "where(greater_equal(x, c), c, x) -> minimum(x, c)",
            "c where x is greater or equal, else x, is the smaller one.",
        ),
    ]


def test_a_choice_by_the_complement_is_the_other_way_round():
    @sg.rule(exact="values", kinds="f", family=(COMPLEMENT,))
    def choice_by_greater_is_abs(x: sg.Var) -> sg.Rewrite:
        """x where it is positive, else -x, is the absolute value."""
        return sg.Rewrite(before=sg.where(sg.greater(x, 0), x, -x), after=sg.abs(x))

    assert [told(r) for r in choice_by_greater_is_abs.twins] == [
        (
            "choice_by_less_equal_is_abs",
            "where(less_equal(x, 0), negative(x), x) -> abs(x)",
            "x where it is positive, else -x, is the absolute value.",
        ),
    ]


def test_truth_is_negated_in_numbers_too_and_numbers_are_not():
    @sg.rule(exact="bits", family=(DE_MORGAN,))
    def and_false(x: sg.Var) -> sg.Rewrite:
        """A conjunction with False is False."""
        return sg.Rewrite(before=sg.logical_and(x, False), after=False)

    @sg.rule(exact="values", kinds="f", family=(DUAL,))
    def maximum_of_two(x: sg.Var) -> sg.Rewrite:
        """A lower bound of 2 and an upper bound of 0."""
        return sg.Rewrite(before=sg.maximum(sg.minimum(x, 0), 2), after=sg.maximum(x, 2))

    assert [told(r) for r in (*and_false.twins, *maximum_of_two.twins)] == [
        ("or_true", "logical_or(x, True) -> True", "A disjunction with True is True."),
        (
            "minimum_of_two",
            "minimum(maximum(x, 0), -2) -> minimum(x, -2)",
            "An upper bound of 2 and a lower bound of 0.",
        ),
    ]


def test_the_twins_of_a_rule_are_what_it_is():
    for rule in RULES:
        for twin in rule.twins:
            assert twin.definition is rule.definition
            assert (twin.exact, twin.kinds, twin.single_use) == (
                rule.exact,
                rule.kinds,
                rule.single_use,
            )


def test_what_a_function_makes_is_told_the_node():
    """A function serves the whole family: it is given the node that was matched."""
    x = sg.placeholder("x", (2, 3, 4))
    for f in (sg.max, sg.min):
        graph = sg.compile([x], f(f(x, axis=1), axis=0), exact="reals").graph
        assert [n.op.name for n in graph.nodes if n.inputs] == [f(x).op.name]


def test_a_name_that_tells_no_twin_is_refused():
    with pytest.raises(sg.RewriteError, match="name bound_repeated must tell it from its twin"):

        @sg.rule(exact="bits", family=(DUAL,))
        def bound_repeated(x: sg.Var) -> sg.Rewrite:
            """A bound once is enough."""
            return sg.Rewrite(before=sg.maximum(x, x), after=x)


def test_a_twin_has_a_reason_of_its_own_where_words_exchanged_make_no_sentence():
    @sg.rule(
        exact="bits",
        family=(DE_MORGAN,),
        reasons={"or_true": "Always is one of them true if one is."},
    )
    def and_false(x: sg.Var) -> sg.Rewrite:
        """Never are both true if one is false."""
        return sg.Rewrite(before=sg.logical_and(x, False), after=False)

    assert [rule.reason for rule in and_false.family] == [
        "Never are both true if one is false.",
        "Always is one of them true if one is.",
    ]


def test_a_reason_of_no_twin_is_refused():
    with pytest.raises(sg.RewriteError, match="the rule and_false has no twin or_false"):

        @sg.rule(exact="bits", family=(DE_MORGAN,), reasons={"or_false": "It is no twin."})
        def and_false(x: sg.Var) -> sg.Rewrite:
            """Never are both true if one is false."""
            return sg.Rewrite(before=sg.logical_and(x, False), after=False)


def test_a_rule_without_a_dual_is_refused():
    with pytest.raises(sg.RewriteError, match="abs_is_positive has no twin"):

        @sg.rule(exact="bits", family=(DUAL,))
        def abs_is_positive(x: sg.Var) -> sg.Rewrite:
            """Nothing here has a dual."""
            return sg.Rewrite(before=sg.abs(sg.abs(x)), after=sg.abs(x))


def test_ops_of_ones_own_choice_stand_instead_of_others():
    """What a twin does not change has no twin of that kind: alternatives do not multiply."""
    root = instead("exponentials/roots, exponential/root", (sg.exp.op, sg.sqrt.op))
    logarithm = instead("exponentials/logarithms, exponential/logarithm", (sg.exp.op, sg.log.op))

    @sg.rule(exact="bits", family=(root, logarithm))
    def exponentials_chosen(m: sg.Var, x: sg.Var, y: sg.Var) -> sg.Rewrite:
        """The exponential is taken once."""
        return sg.Rewrite(before=sg.where(m, sg.exp(x), sg.exp(y)), after=sg.exp(sg.where(m, x, y)))

    assert [told(r) for r in exponentials_chosen.twins] == [
        (
            "roots_chosen",
            "where(m, sqrt(x), sqrt(y)) -> sqrt(where(m, x, y))",
            "The root is taken once.",
        ),
        (
            "logarithms_chosen",
            "where(m, log(x), log(y)) -> log(where(m, x, y))",
            "The logarithm is taken once.",
        ),
    ]

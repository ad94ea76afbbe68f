"""The order of rules: which of several that fit acts is of no consequence within the grade."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.autodiff import normal
from symgrad.passes import BY_RANGES, DEFAULT, KERNELS, RULES, rules_pass
from symgrad.rewrite.driver import Index
from symgrad.testing import assert_equivalent, random_feeds, random_graph, spellings
from tests import test_kinks as kinks
from tests.golden.functions import FUNCTIONS
from tests.helpers import each, generator

GRADES = ("bits", "values", "rounding", "reals")
# Of a pass its rules, and those for graphs of which a range is declared.
OF_RULES = {"simplify": (RULES, RULES + BY_RANGES), "kernels": (KERNELS, ())}


def shuffled(rng):
    """The default passes, the rules of each in another order, those for ranges among them."""

    def step(found):
        if found.name not in OF_RULES:
            return found
        rules, given_ranges = (mixed(rng, [*part]) for part in OF_RULES[found.name])
        return rules_pass(found.name, found.reason, rules, given_ranges)

    return tuple(map(step, DEFAULT))


def mixed(rng, rules):
    return [rules[i] for i in rng.permutation(len(rules))]


@each("seed", range(40))
def test_random_graphs_compute_the_same_in_any_order_of_rules(seed):
    rng = np.random.default_rng(seed)
    inputs, outputs = random_graph(rng, int(rng.integers(5, 30)))
    for special in (False, True):
        feeds = random_feeds(rng, inputs, special=special)
        passes = shuffled(rng)
        assert_equivalent(inputs, outputs, feeds, exact=GRADES[seed % 4], passes=passes)


@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda f: f.__name__)
def test_programs_compute_the_same_in_any_order_of_rules(case):
    rng = np.random.default_rng(0)
    found = case()
    outputs = [found.loss, *sg.grad(found.loss, found.wanted)]
    for exact in GRADES:
        feeds = random_feeds(rng, found.inputs)
        assert_equivalent(found.inputs, outputs, feeds, exact=exact, passes=shuffled(rng))


@pytest.mark.parametrize("seed", range(4))
def test_graphs_with_ranges_compute_the_same_in_any_order_of_rules(seed):
    rng = np.random.default_rng(seed)
    x = sg.placeholder("x", 5, within=(0.1, 3))
    outputs = [abs(x) * sg.maximum(x, 0), sg.where(x < 0, x, -x), sg.minimum(x, 5) + abs(x)]
    program = sg.compile(x, outputs, passes=shuffled(rng))
    assert {rule.name for rule in BY_RANGES} <= {*program.trace.rules()}
    given = rng.uniform(0.2, 2.9, 5)
    for found, expected in zip(
        program(given), sg.compile(x, outputs, passes=())(given), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@each("rule", [*RULES, *KERNELS], ids=lambda rule: rule.name, parts=2)
def test_what_a_rule_fits_computes_the_same_in_any_order_of_rules(rule):
    """The first of its spellings, which other rules may fit as well, at its own grade."""
    rng = generator(rule.name)
    y, inputs = next(spellings(rule))
    feeds = random_feeds(rng, inputs)
    grade = rule.exact.name.lower()
    assert_equivalent(inputs, [y], feeds, exact=grade, passes=shuffled(rng))


@pytest.mark.parametrize("seed", range(3))
def test_one_function_has_one_gradient_in_any_order_of_rules(seed, monkeypatch):
    monkeypatch.setattr(normal, "INDEX", Index(mixed(np.random.default_rng(seed), normal.RULES)))
    for row, spelling in kinks.CASES:
        kinks.check_gradient(row, spelling, "reverse")

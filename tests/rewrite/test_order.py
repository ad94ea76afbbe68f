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
OF_RULES = {"simplify": RULES, "kernels": KERNELS}
RANGED = {"simplify": [*RULES, *BY_RANGES]}


def shuffled(rng):
    """The default passes, the rules of each in another order, those for ranges among them."""

    def step(found):
        rules, more = OF_RULES.get(found.name), RANGED.get(found.name, [])
        if rules is None:
            return found
        return rules_pass(found.name, found.reason, mixed(rng, rules), more and mixed(rng, more))

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


@each("rule", [*RULES, *KERNELS, *BY_RANGES], ids=lambda rule: rule.name, parts=2)
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

"""Rules that are loaded when a graph needs them: what it becomes does not depend on it."""

import subprocess
import sys
from importlib import import_module
from itertools import product
from pkgutil import walk_packages

import numpy as np

from symgrad import rules as home
from symgrad.autodiff import normal
from symgrad.ir.graph import Graph
from symgrad.ir.op import REGISTRY
from symgrad.passes import BY_RANGES, KERNELS, RULES
from symgrad.rewrite.driver import Index, rewrite
from symgrad.rewrite.late import Late, Rules
from symgrad.rewrite.pattern import applied_in
from symgrad.rewrite.rule import Exact, rules_of
from symgrad.rules import whole_graph
from symgrad.testing import random_graph
from tests.helpers import each

OPS = tuple(REGISTRY.every().values())
EVERY = (RULES, KERNELS, BY_RANGES, normal.RULES)


def needs(rule, ops):
    """Whether a rule fits in no graph without one of some ops, as its pattern or its facts tell."""
    if rule.rewrite is not None:
        return not ops.isdisjoint(p.op.name for p in applied_in(rule.rewrite.before))
    others = [op for op in OPS if op.name not in ops]
    return not any(map(rule.is_for, others)) or (
        rule.operands is not None
        and not any(rule.operands(pair) for pair in product(others, repeat=2))
    )


@each("file", home.OPS)
def test_no_rule_of_a_late_file_fits_in_a_graph_without_its_ops(file):
    part = home.late(file)
    rules = [*part.load()]
    assert rules
    assert min(r.exact for r in rules) >= part.exact
    assert part.ops <= {op.name for op in OPS}
    if part.ops:
        fits = [r.name for r in rules if not needs(r, part.ops)]
        assert fits == [], f"{file} needs more ops in OPS of symgrad/rules/__init__.py"


def test_a_late_file_is_told_by_its_rules():
    file = next(iter(home.OPS))
    (first, *_) = home.late(file).load()
    assert not needs(first, {"add"})
    assert [*home.late(file, first.name).load()] == [*first.family]


def test_every_rule_of_every_file_is_listed():
    """In the passes, or in the derivatives, which bring what is written into its normal form."""
    listed = {id(rule) for rules in EVERY for rule in rules} | {*map(id, rules_of(whole_graph))}
    names = (m.name for m in walk_packages(home.__path__, f"{home.__name__}."))
    forgotten = [
        f"{name}.{rule.name}: see DECLARED in symgrad/passes/pipeline.py"
        for name in names
        for rule in rules_of(import_module(name))
        if id(rule) not in listed
    ]
    assert forgotten == []


DECLARED_OPS = """
from importlib import import_module
from pkgutil import walk_packages
import symgrad
from symgrad.ir.op import REGISTRY
known = {*REGISTRY.every(), *REGISTRY.functions}
for module in walk_packages(symgrad.ops.__path__, "symgrad.ops."):
    import_module(module.name)
print({*REGISTRY.every(), *REGISTRY.functions} - known)
"""


def test_every_op_of_every_file_is_declared_by_the_families():
    done = subprocess.run([sys.executable, "-c", DECLARED_OPS], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", f"see symgrad/ops/families.py\n{done.stderr}"


def graphs():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        inputs, outputs = random_graph(rng, int(rng.integers(10, 40)))
        yield Graph(outputs, inputs)


def test_a_graph_becomes_the_same_whatever_was_loaded_before():
    for exact, rules in product((Exact.ROUNDING, Exact.REALS), (RULES, normal.RULES)):
        admitted = rules.admitted(exact)
        assert any(isinstance(p, Late) for p in admitted.parts)
        loaded = Index([*admitted])
        shared = Index(admitted)
        for graph in graphs():
            wanted = str(rewrite(graph, loaded))
            assert str(rewrite(graph, Index(admitted))) == wanted
            assert str(rewrite(graph, shared)) == wanted


def test_rules_are_a_sequence_of_all():
    found = RULES + KERNELS
    assert len(found) == len(RULES) + len(KERNELS) == len({*found})
    assert found[0] is next(iter(RULES))
    assert found[:2] == (*RULES,)[:2]
    assert Rules.of(found) is found
    assert {r.exact for r in found.admitted(Exact.VALUES)} == {Exact.BITS, Exact.VALUES}
    assert not any(r.last for r in RULES)
    assert all(r.last for r in KERNELS)

"""Pairs that are equal, and mutants of them, for `sg.same`: `python -m tests.proof.campaign`.

A seed takes a rule of the compiler and one of its spellings: what it matches and what it makes of
it must be proved to be equal at the rule's grade. Then a mutant of what it makes is compared: if
the values differ, it must be refuted, and if it is said to be equal, the values must agree.
"""

import itertools
import sys
from collections import Counter
from functools import cache

import numpy as np

import symgrad as sg
from symgrad.autodiff import normal
from symgrad.ir.evaluate import evaluate
from symgrad.ir.node import Node, apply
from symgrad.ir.op import REGISTRY
from symgrad.ir.walk import topological
from symgrad.passes.pipeline import DECLARED
from symgrad.rewrite.driver import Index, fitted, rebuild
from symgrad.testing import spellings
from symgrad.testing.graphs import random_feeds
from tests.helpers import campaign

POINTS = 100
REAL = ((-3.0, 3.0),)
TALLY = Counter()


@cache
def rules():
    return list(dict.fromkeys((*DECLARED, *normal.RULES)))


def rewritten(rule, most):
    """What a rule matches and what it makes of it, in so many spellings, with the placeholders."""
    index = Index([rule])
    for y, inputs in itertools.islice(spellings(rule), most):
        for _, forms in index.at(y):
            match = next(iter(rule.matches(y, lambda inner: True, forms)), None)
            made = match and match.build()
            if made is not None and made is not y:
                yield y, fitted(made, y, rule), inputs


def mutant(rng, y):
    """A node with something changed in it: an op, an order of operands, a number, a part left out.

    None if there is nothing to change.
    """
    order = [n for n in topological([y]) if n.inputs and n.dtype.kind in "fb"]
    if not order:
        return None
    place = order[rng.integers(len(order))]
    ways = [x for x in place.inputs if x.type == place.type]
    if place.dtype.kind == "f":
        ways += [-place, 2 * place, place + 1, sg.abs(place), sg.relu(place), place * 1.01]
        ways += [sg.broadcast_to(sg.mean(place), place.shape)] if place.size else []
    else:
        ways.append(~place)
    if place.op.elementwise and len(place.inputs) == 2:
        if not place.op.commutative:
            ways.append(place.inputs[::-1])
        same_kind = [
            op
            for op in REGISTRY.ops.values()
            if op.elementwise
            and op.operands == (2, 2)
            and op.trials.dtypes == place.op.trials.dtypes
        ]
        ways.append(same_kind[rng.integers(len(same_kind))])
    chosen = ways[rng.integers(len(ways))]
    try:
        if isinstance(chosen, tuple):
            chosen = apply(place.op, chosen, dict(place.attrs))
        elif not isinstance(chosen, Node):
            chosen = apply(chosen, place.inputs, {})
    except sg.SymgradError:
        return None
    if not isinstance(chosen, Node) or chosen.type != place.type:
        return None
    becomes = {place: chosen}
    for n in topological([y]):
        if n not in becomes:
            becomes[n] = rebuild(n, tuple(becomes[x] for x in n.inputs))
    return becomes[y]


def check(seed):
    """Compare the spellings of one rule, and a mutant of each."""
    rng = np.random.default_rng(seed)
    rule = rules()[seed % len(rules())]
    pairs = list(rewritten(rule, 1 + seed // len(rules())))
    if not pairs:
        return
    y, made, inputs = pairs[-1]
    assert (found := sg.same(y, made, exact=rule.exact)), f"{rule.name}: {found}"
    TALLY["equal pairs"] += 1
    other = mutant(rng, made)
    if other is None:
        return
    apart = differ(rng, made, other, inputs)
    found = sg.same(made, other)
    TALLY[f"mutants that {'differ' if apart else 'may be equal'}: {found.verdict}"] += 1
    assert found.verdict == "different" or not apart, f"{rule.name}, mutant {other}: {found}"


def differ(rng, f, g, inputs):
    """Whether two nodes differ at some point where all numbers are ordinary ones."""
    if any(n.dtype == np.float16 for n in topological([f, g])):
        return False  # which has too few digits to tell
    domains = ((-3.0, 3.0),), ((0.2, 3.0),), ((0.05, 0.95),)
    for _, domain in zip(range(POINTS), itertools.cycle(domains), strict=False):
        arrays = [
            random_feeds(rng, [x], domain=domain if x.dtype.kind == "f" else REAL)[0]
            for x in inputs
        ]
        fed = dict(zip(inputs, arrays, strict=True))
        try:
            a, b = map(np.asarray, evaluate([f, g], fed))
        except sg.SymgradError:
            continue
        if a.dtype.kind == "b":
            continue  # a comparison may turn out otherwise by rounding
        fine = np.isfinite(a) & np.isfinite(b) & (np.abs(a) < 1e4)
        if (np.abs(a[fine] - b[fine]) > 1e-2 * (1 + np.abs(a[fine]))).any():
            return True
    return False


if __name__ == "__main__":
    try:
        campaign("tests.proof.campaign", __doc__, check)
    finally:
        sys.stdout.writelines(f"{n} {what}\n" for what, n in sorted(TALLY.items()))

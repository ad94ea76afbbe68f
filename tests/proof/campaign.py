"""Pairs that are equal, and mutants of them, for `sg.same`: `python -m tests.proof.campaign`.

A seed takes a rule of the compiler and one of its spellings: what it matches and what it makes of
it must be proved to be equal at the rule's grade. Then a mutant of what it makes is compared. The
nodes of each pair are computed for as many random inputs as have 10^6 elements: none that is said
to be equal may differ at any, and none that differs may be undecided. Mutants that are said to be
different and are so at no random point are counted apart: they differ where numbers tie.
"""

import itertools
import sys
from collections import Counter
from functools import cache
from math import prod

import numpy as np

import symgrad as sg
from symgrad.autodiff import normal
from symgrad.autodiff.batching import batched
from symgrad.ir.dims import Dim, evaluate
from symgrad.ir.evaluate import evaluate as values_of
from symgrad.ir.graph import is_input
from symgrad.ir.node import Node, apply
from symgrad.ir.op import REGISTRY
from symgrad.ir.walk import topological
from symgrad.passes.pipeline import DECLARED
from symgrad.proof import counterexample
from symgrad.rewrite.driver import Index, fitted, rebuild
from symgrad.testing import spellings
from tests.helpers import campaign

POINTS = 10**6
LARGEST = 2**18  # elements that are computed at once
ROOM = 1e-7  # of the larger value, beyond which a point is looked at more closely
LOOKS = 8
SIZES = dict.fromkeys("NKMCT", 3)
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
    one = [n for n in topological([y]) if n.inputs and not isinstance(n.type, tuple)]
    order = [n for n in one if n.dtype.kind in "fb"]
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
            for op in REGISTRY.every().values()
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


def apart(f, g, grade, count=POINTS):
    """How far two nodes of one type are apart at random points: a point, or None.

    Where numbers differ by more than rounding seems to explain, `counterexample` decides, which
    computes in long double and moves every number by noise.
    """
    order = topological([f, g])
    inputs = [n for n in order if is_input(n)]
    shapes = {x: tuple(size_of(d) for d in x.shape) for x in inputs}
    nodes = [n for n in order if not isinstance(n.type, tuple)]
    largest = max(prod(map(size_of, n.shape)) for n in nodes)
    elements = max(map(prod, shapes.values()), default=1)
    rows = -(-count // max(elements, 1)) if inputs and elements else 1
    fair = -(-rows // len(counterexample.KINDS))
    at_once = min(fair, max(LARGEST // max(largest, 1), 1))
    many = {x: sg.placeholder(f"rows of {i}", (at_once, *x.shape), x.dtype)
            for i, x in enumerate(inputs)}  # fmt: skip
    both = batched([f, g], many, at_once)
    rng = np.random.default_rng(0)
    kinds = itertools.cycle(counterexample.KINDS)
    for _ in range(-(-rows // at_once)):
        kind = next(kinds)
        fed = {x: counterexample.drawn(rng, x, (at_once, *shapes[x]), kind) for x in inputs}
        try:
            a, b = map(np.asarray, values_of(both, {many[x]: v for x, v in fed.items()}))
        except sg.SymgradError:  # a matrix of a factorisation that is not definite
            continue
        for row in suspicious(a, b, at_once):
            point = {x: v[row] for x, v in fed.items()}
            if counterexample.differs(f, g, point, grade):
                return point
    return None


def suspicious(a, b, rows):
    """The rows in which two arrays differ most, if more than by rounding."""
    if a.dtype.kind not in "fc":
        wrong = (a != b).astype(float)
    else:
        with np.errstate(all="ignore"):
            eps = max(ROOM, 30 * np.finfo(a.dtype).eps)
            wrong = np.abs(a - b) / (np.maximum(np.abs(a), np.abs(b)) + np.finfo(a.dtype).tiny)
            wrong = np.where(np.isfinite(a) & np.isfinite(b) & (wrong > eps), wrong, 0)
    worst = wrong.reshape(rows, -1).max(axis=1, initial=0)
    return [i for i in np.argsort(-worst)[:LOOKS] if worst[i] > 0]


def size_of(d):
    return evaluate(d, SIZES) if isinstance(d, Dim) else d


def check(seed, count=POINTS):
    """Hold a spelling of a rule, and a mutant of what the rule makes of it, against points."""
    rng = np.random.default_rng(seed)
    rule = rules()[seed % len(rules())]
    pairs = list(rewritten(rule, 1 + seed // len(rules())))
    if not pairs:
        return
    y, made, _ = pairs[-1]
    found = sg.same(y, made, exact=rule.exact)
    assert found, f"{rule.name}: {found}"
    hold(rule.name, y, made, found, count)
    TALLY["equal pairs"] += 1
    other = mutant(rng, made)
    if other is not None:
        found = sg.same(made, other)
        TALLY[f"mutants: {found.verdict}"] += 1
        hold(f"{rule.name}, mutant {other}", made, other, found, count)


def hold(name, f, g, found, count=POINTS):
    """Assert that two nodes differ at points if they were found to, and at none else."""
    point = apart(f, g, sg.Exact.REALS if found.grade is None else found.grade, count)
    if found.verdict == "different":
        TALLY["different, but at no random point"] += point is None
        return
    fed = {} if point is None else {str(x.name): v for x, v in point.items()}
    assert point is None, f"{name}: {found}, and differs at {fed}"


if __name__ == "__main__":
    try:
        campaign("tests.proof.campaign", __doc__, check)
    finally:
        sys.stdout.writelines(f"{n} {what}\n" for what, n in sorted(TALLY.items()))

"""Whether two functions are equal: proved, refuted by a point, or undecided.

Three proofs are tried, each a normal form or a search for one: the rules of the compiler, from the
finest grade on; sums of products (`canonical.py`); and a search among the rules (`search.py`).
Before those that take long, points are tried at which the two may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from symgrad.autodiff import normal
from symgrad.ir.errors import ArgumentError, GraphError, counted
from symgrad.ir.graph import Graph, is_input
from symgrad.ir.node import Node, as_node, describe
from symgrad.ir.walk import topological
from symgrad.ops.ranges.inference import declared
from symgrad.passes.pipeline import DECLARED, SIMPLIFYING, run_passes
from symgrad.proof.canonical import are_equal
from symgrad.proof.counterexample import Counterexample, find
from symgrad.proof.search import meeting
from symgrad.proof.terms import TooLarge
from symgrad.rewrite.driver import Index, rebuild
from symgrad.rewrite.rule import Exact, Grade
from symgrad.rewrite.trace import Trace

PRODUCTS = "sums of products"
POINTS = 24
ROOM = 2**5  # units in the last place: numbers of one size that differ by less are the same


@dataclass(frozen=True)
class Equality:
    """The answer of `same`; true if the two are equal.

    `grade` and `rules` are those of the proof, `counterexample` is a point at which they differ,
    `tried` says what was done, line by line.
    """

    verdict: Literal["equal", "different", "undecided"]
    grade: Exact | None = None
    rules: tuple[str, ...] = ()
    counterexample: Counterexample | None = None
    tried: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.verdict == "equal"

    def __str__(self) -> str:
        if self.grade is not None:
            by = ", ".join(self.rules) or "they are the same graph"
            return f"equal at {self.grade.name.lower()!r}, by {by}"
        if self.counterexample is not None:
            return f"different, for example with\n{self.counterexample}"
        return "\n  ".join([f"{self.verdict}:", *self.tried])


def same(f: Any, g: Any, *, exact: Exact | Grade = "reals", effort: int = 300) -> Equality:
    """Whether two nodes are equal as functions of their placeholders and variables.

    They are given as nodes, numbers or arrays, or as sequences of them that are compared one by
    one. Placeholders and variables are the same if they are one node, or have one name: a variable
    stands for any value. `exact` says how equal: as functions of real numbers, where both have a
    value (`x / x` is 1), or by a finer grade, as in `compile`; `effort` is how many graphs the
    search among rules may look at.
    Equal means proved: the answer has the rules and the finest grade that was found. Different
    means that the answer has a point, as simple as could be found, at which rounding cannot explain
    the difference. Undecided is the rest: equal at all points that
    were tried, without a proof. Whether two expressions are equal cannot be decided in general
    (Richardson, Some undecidable problems involving elementary functions of a real variable, 1968).

    Raises `ArgumentError` if the two have different numbers of parts, `GraphError` if two
    placeholders of one name differ in type or in the range that they were declared with.

    >>> x = sg.placeholder("x", 3)
    >>> print(sg.same((x + 1) ** 2, x * x + 2 * x + 1))
    equal at 'reals', by sums of products
    >>> sg.same(sg.relu(x) + sg.relu(-x), x).counterexample.feeds
    {'x': array([-1., -1., -1.])}
    """
    grade = Exact.of(exact)
    pairs = _pairs(f, g)
    found = [_compared(a, b, grade, effort) for a, b in pairs]
    for verdict in ("different", "undecided"):
        for answer in found:
            if answer.verdict == verdict:
                return answer
    rules = dict.fromkeys(rule for answer in found for rule in answer.rules)
    grades = [answer.grade for answer in found if answer.grade is not None]
    return Equality("equal", max(grades, default=Exact.BITS), tuple(rules))


def _pairs(f: Any, g: Any) -> list[tuple[Node, Node]]:
    parts = [list(y) if isinstance(y, (list, tuple)) else [y] for y in (f, g)]
    if len(parts[0]) != len(parts[1]):
        raise ArgumentError(
            f"same() was given {len(parts[0])} and {counted(len(parts[1]), 'part')}; "
            "give as many of the one as of the other"
        )
    return [(as_node(a), as_node(b)) for a, b in zip(*parts, strict=True)]


def _compared(f: Node, g: Node, exact: Exact, effort: int) -> Equality:
    if f.type != g.type:
        return Equality("different", tried=(f"one is {f.type!r}, the other {g.type!r}",))
    f, g, inputs = _with_one_set_of_inputs(f, g)
    tried = []
    for grade in Exact:
        if grade <= exact:
            rules = _by_rules(f, g, inputs, grade)
            if rules is not None:
                return Equality("equal", grade, rules)
    tried.append("the rules of the compiler bring them to different graphs")
    point, agreed = find(f, g, inputs, exact, POINTS)
    if point is not None:
        return Equality("different", counterexample=point)
    tried.append(f"they agree at {counted(agreed, 'point')} of {POINTS}, the others tell nothing")
    if exact == Exact.REALS:
        simplified = [_simplified(y, inputs, exact, Trace()) for y in (f, g)]
        for a, b in ((f, g), simplified):
            try:
                if are_equal(a, b, _room(f)):
                    return Equality("equal", exact, (PRODUCTS,))
                tried.append("their normal forms as sums of products differ")
            except TooLarge:
                tried.append("their normal forms as sums of products are too large")
    way = meeting(f, g, inputs, _index(exact), effort)
    if way is not None:
        graded = max((rule.exact for rule in way), default=Exact.BITS)
        return Equality("equal", graded, tuple(dict.fromkeys(rule.name for rule in way)))
    tried.append(f"no way among {counted(effort, 'graph')} leads from one to the other")
    return Equality("undecided", tried=tuple(dict.fromkeys(tried)))


def _room(y: Node) -> float:
    return ROOM * float(np.finfo(y.dtype).eps) if y.dtype.kind in "fc" else 0.0


@lru_cache(maxsize=len(Exact))
def _index(exact: Exact) -> Index:
    """The rules of the compiler, and those that bring functions to normal form."""
    rules = dict.fromkeys((*DECLARED, *normal.RULES))
    return Index(rule for rule in rules if rule.exact <= exact)


def _by_rules(f: Node, g: Node, inputs: Sequence[Node], exact: Exact) -> tuple[str, ...] | None:
    """The rules that bring two nodes to one graph, each for itself or both together."""
    for together in (False, True):
        trace = Trace()
        if together:
            graph = Graph([f, g], inputs)
            a, b = run_passes(graph, SIMPLIFYING, exact, trace).outputs
        else:
            a, b = (_simplified(y, inputs, exact, trace) for y in (f, g))
        if a is b or Graph([a], inputs) == Graph([b], inputs):
            return tuple(trace.rules())
    return None


def _simplified(y: Node, inputs: Sequence[Node], exact: Exact, trace: Trace) -> Node:
    return run_passes(Graph([y], inputs), SIMPLIFYING, exact, trace).outputs[0]


def _with_one_set_of_inputs(f: Node, g: Node) -> tuple[Node, Node, list[Node]]:
    """The two nodes as functions of the same placeholders and variables."""
    order = topological([f, g])
    of_first = {n for n in topological([f]) if is_input(n)}
    named = {str(n.name): n for n in of_first}
    becomes: dict[Node, Node] = {}
    for node in order:
        if not is_input(node) or node in of_first:
            becomes[node] = rebuild(node, tuple([becomes[x] for x in node.inputs]))
            continue
        other = named.get(str(node.name), node)
        if other.type != node.type:
            raise GraphError(
                f"two inputs are called {str(node.name)!r}: {describe(other)} and "
                f"{describe(node)}; what is compared is a function of the same inputs: give both "
                "one type, or one of them another name"
            )
        if declared(other) != declared(node):
            raise GraphError(
                f"two inputs are called {str(node.name)!r}: {describe(other)} and "
                f"{describe(node)}; they are declared within different ranges: use one of the two"
            )
        becomes[node] = other
    f, g = becomes[f], becomes[g]
    return f, g, [n for n in topological([f, g]) if is_input(n)]

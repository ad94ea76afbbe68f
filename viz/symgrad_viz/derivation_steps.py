"""Lines of a derivation, and the names of values in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from symgrad.autodiff.jacobians import jacobian
from symgrad.ir.cached import cached_property
from symgrad.ir.formats.text import type_text
from symgrad.ir.graph import is_input
from symgrad.ir.node import Node, constant_value
from symgrad.ir.origin import Location
from symgrad.ir.walk import topological
from symgrad.ops.leaves import ones_like
from symgrad_viz.notation import is_renamed, term_of
from symgrad_viz.terms import (
    ADDED,
    Term,
    bound,
    name,
    plain,
)

DEFINITION, DERIVATIVE = "definition", "derivative"


@dataclass(frozen=True, eq=False)
class Step:
    """A line: two nodes that are equal, and why.

    `left` and `right` are its formulas, `rule` names what was done, `reason` says why it holds and
    `line` where the user wrote what it is about. `grade` is `"definition"`, `"derivative"` for the
    chain rule, or that of a rewrite, which says in what floats may differ.
    """

    left: Term
    right: Term
    rule: str
    reason: str
    grade: str
    line: Location | None
    make: Callable[[], Node] = field(repr=False)
    after: Node = field(repr=False)

    @cached_property
    def before(self) -> Node:
        """The node that is equal to `after`, computed another way: of a cotangent, forward mode."""
        return self.make()

    def __str__(self) -> str:
        place = "" if self.line is None else f"  {self.line}"
        return f"{plain(self.left)} = {plain(self.right)}    {self.rule} [{self.grade}]{place}"


@dataclass(frozen=True, eq=False)
class Section:
    """A part of a derivation: a heading, a sentence or two, and lines."""

    title: str
    text: str
    steps: tuple[Step, ...]


class Names:
    """Names of values: nodes that are the same op of the same values are one value, and what a
    rewrite equates is one value from then on.
    """

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.became: dict[int, int] = {}
        self.of: dict[Node, int] = {}
        self.terms: dict[int, Term] = {}

    def value(self, node: Node) -> int:
        """The number of the value of a node."""
        for n in topological([node], self.of):
            inside = tuple(self._now(self.of[x]) for x in n.inputs)
            key = id(n) if is_input(n) else (n.op, n.attrs, inside)
            new = inside[0] if is_renamed(n) else len(self.numbers)
            self.of[n] = self.numbers.setdefault(key, new)
        return self._now(self.of[node])

    def _now(self, number: int) -> int:
        while number in self.became:
            number = self.became[number]
        return number

    def equate(self, before: Node, after: Node) -> None:
        """Let both be one value: that of `before`, named as it was unless `after` is an input."""
        old, new = self.value(before), self.value(after)
        if is_input(after):
            self.terms[old] = name(str(after.name))
        elif new in self.terms and old not in self.terms:
            self.terms[old] = self.terms[new]
        if new != old:
            self.became[new] = old

    def give(self, node: Node, term: Term) -> None:
        """Name a value, unless it has a name, or is a number."""
        number = self.value(node)
        if number not in self.terms and constant_value(node) is None:
            self.terms[number] = term

    def named(self, node: Node) -> Term | None:
        return self.terms.get(self.value(node))

    def shown(self, node: Node) -> Term:
        """The name of a node, or else its formula."""
        return self.named(node) or term_of(node, self.named)

    def formula(self, node: Node) -> Term:
        """How a node is computed of what has names; what is only moved is that of its operand."""
        return term_of(node, self.named)


def step_of(
    left: Term,
    right: Term,
    rule: str,
    reason: str,
    grade: str,
    before: Node,
    after: Node,
    about: Node | None = None,
) -> Step:
    """A line of which both nodes are known; `about` is what the user's line is of."""
    place = (before if about is None else about).origin.nearest
    first, second = _one(before), _one(after)
    right = bound(right, ADDED)  # as a whole, if it is a comparison
    return Step(left, right, rule, reason, grade, place, lambda: first, second)


def _one(node: Node) -> Node:
    """A node, or the first result of an op that has several."""
    return node[0] if isinstance(node.type, tuple) else node


def by_forward_mode(y: Node, x: Node, wrt: Sequence[Node]) -> Callable[[], Node]:
    """The cotangent of x in forward mode, made when it is asked for.

    `wrt` are what y is derived by: those that tie with x share with it.
    """
    if x is y:
        return lambda: ones_like(y)
    others = [w for w in wrt if w is not x]
    return lambda: jacobian(y, [x, *others], mode="forward")[0]


def typed(node: Node) -> str:
    """The type of a node, as text."""
    return type_text(node.type)

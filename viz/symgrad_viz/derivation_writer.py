"""Writes the sections of a derivation: as written, chain rule, simplified, result, Newton's step.

The chain rule is that of `autodiff/reverse.py`, one cotangent a line; what follows are the rules
of the compiler that act on the gradient.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Literal, NamedTuple

from symgrad.autodiff.jacobians import hessian
from symgrad.autodiff.locking import lockings
from symgrad.autodiff.normal import INDEX, normal_form
from symgrad.autodiff.reverse import active_nodes, pull_back
from symgrad.autodiff.transforms import grad
from symgrad.ir.errors import UnsupportedError
from symgrad.ir.graph import Graph, is_input, is_leaf
from symgrad.ir.kinks import Kinks, Policy
from symgrad.ir.node import Node, as_node
from symgrad.ir.walk import topological
from symgrad.linalg import solve
from symgrad.ops.leaves import ones_like
from symgrad.passes.pipeline import SIMPLIFYING, run_passes
from symgrad.rewrite.driver import sweep_once
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import RewriteEvent, Trace, reason_text
from symgrad_viz.derivation_steps import (
    DEFINITION,
    DERIVATIVE,
    Names,
    Section,
    Step,
    by_forward_mode,
    step_of,
    typed,
)
from symgrad_viz.formulas import given_names
from symgrad_viz.notation import is_aside, is_renamed, term_of
from symgrad_viz.slopes import slope_of
from symgrad_viz.terms import (
    ADDED,
    LOOSE,
    MULTIPLIED,
    RAISED,
    Term,
    bound,
    called,
    letters,
    name,
    plain,
    row,
    word,
)

MOST_INLINE = 12  # names and signs of a part that is written where it is read
MOST_CLOSED = 50  # of a gradient that is written out in one line


class Style(NamedTuple):
    """How a derivative is written: the mark of its cotangents, the name of what is derived."""

    accent: Literal["bar", "hat"]
    symbol: str
    titles: tuple[str, str, str, str]
    written: str
    product: Term | None = None


FIRST = Style(
    "bar", "L",
    ("The function as it was written", "The chain rule", "Simplified", "The gradient"),
    "Each line is one operation, on what stands above it.",
)  # fmt: skip


def second(v: str) -> Style:
    """How a second derivative along a direction is written, by the name of the direction."""
    return Style(
        "hat", "φ",
        (f"The slope along {v}", "The chain rule again", "Simplified again",
         f"The Hessian times {v}"),
        f"How much the loss changes along {v} is φ, the gradient times {v}. What the gradient is "
        f"made of is a function as any other; its derivative is the Hessian H times {v}.",
        row(word("H"), " ", name(v), strength=MULTIPLIED),
    )  # fmt: skip


class Writer:
    """Writes the sections, over one set of names."""

    def __init__(self, exact: Exact, kinks: Kinks) -> None:
        self.names = Names()
        self.exact, self.kinks = exact, kinks
        self.sections: list[Section] = []
        self.taken: set[str] = set()

    def part(
        self, loss: Node, xs: list[Node], raw: Sequence[Node], part: Style
    ) -> tuple[Node, ...]:
        """The sections of one derivative; gives it, simplified. `raw` is it by another way."""
        self._written(loss, xs, part)
        flows = self._chain(loss, xs, part)
        ends = Graph([flows[x] for x in xs])
        simple = self._simplified(ends, part.titles[2])
        self._result(loss, xs, raw, simple, part)
        return simple

    # ---- the function as written --------------------------------------------------------------

    def _written(self, loss: Node, xs: list[Node], part: Style) -> None:
        order = topological([loss])
        active = active_nodes(order, xs)
        given = given_names(Graph([loss])) if part is FIRST else {}
        self.taken |= {str(n.name) for n in order if n.name is not None} | {*given.values()}
        steps = []
        for node in order:
            if is_leaf(node) or (is_aside(node) and node not in given and node is not loss):
                continue
            formula = self.names.formula(node)
            if self.names.named(node) is not None:
                continue
            if node is loss and node not in given:
                symbol = part.symbol
                term = name(symbol if symbol not in self.taken else f"{symbol}_loss")
            elif node in given:
                term = name(given[node])
            elif node in active or formula.size > MOST_INLINE or isinstance(node.type, tuple):
                term = self._letter()
            else:
                continue
            self.names.give(node, term)
            said = typed(node)
            steps.append(step_of(term, formula, node.op.name, said, DEFINITION, node, node))
        self.sections.append(Section(part.titles[0], part.written, tuple(steps)))

    def _letter(self) -> Term:
        """A name for what the user gave none."""
        found = next(iter(letters(self.taken)))
        self.taken.add(found)
        return name(found)

    # ---- the chain rule -----------------------------------------------------------------------

    def _chain(self, loss: Node, xs: list[Node], part: Style) -> dict[Node, Node]:
        """The cotangents, from the loss back; those of what it is derived by."""
        _, fired = sweep_once(Graph([loss]), INDEX, "normal form")
        steps = list(self._rewrites(fired, Graph([loss])))
        sides = lockings(normal_form([loss], xs), xs, self.kinks)
        if len(sides) > 1:
            raise UnsupportedError(
                "a derivation is on one side of each kink, and this is a mean of several; give "
                "kinks='left' or 'right'"
            )
        form = sides[0][1]
        (y,) = form.ys
        self.names.equate(loss, y)
        for x, inside in zip(xs, form.xs, strict=True):
            self.names.equate(x, inside)
        order = topological([y])
        depends = active_nodes(order, form.xs)
        asked = {*form.xs}
        along = [n for n in order if n in depends]
        flows = pull_back([y], [ones_like(y)], along)
        readers: dict[Node, list[Node]] = {n: [] for n in along}
        for node in along:
            for x in dict.fromkeys(node.inputs):
                if x in readers and node in flows:
                    readers[x].append(node)
        top = self.names.shown(y)
        ends = {g for n, g in flows.items() if not isinstance(n.type, tuple)}
        read = Counter(x for n in topological([*ends]) for x in dict.fromkeys(n.inputs))
        for node in reversed(along):
            if node not in flows or isinstance(node.type, tuple):
                continue
            wanted = node in asked
            named = self.names.named(node)
            if named is None and (is_leaf(node) and wanted):
                named = self.names.shown(node)
            if named is None or (is_aside(node) and not wanted):
                continue
            flow = flows[node]
            steps += self._parts(flow, ends, read)
            formula = self.names.named(flow) or self.names.formula(flow)
            term = Term(part.accent, (named,))
            self.names.give(flow, term)
            above = row("∂", top, strength=RAISED)
            left = row(term, "=", Term("frac", (above, row("∂", named, strength=RAISED))),
                       strength=LOOSE)  # fmt: skip
            rule, reason, source = self._carried(node, y, readers)
            steps.append(
                Step(left, formula, rule, reason, DERIVATIVE, source.origin.nearest,
                     by_forward_mode(y, node, form.xs), flow)
            )  # fmt: skip
        text = (
            "What stands for a derivative has a mark above it: how much the last line changes with "
            "each element. From the end back, each operation hands on what it was handed, times "
            "its own derivative; where several read a value, their parts add up. [c] is 1 where c "
            "holds and 0 elsewhere, ⊙ multiplies element by element."
        )
        self.sections.append(Section(part.titles[1], text, tuple(steps)))
        return {x: flows[inner] for x, inner in zip(xs, form.xs, strict=True)}

    def _parts(self, flow: Node, ends: Set[Node], read: Mapping[Node, int]) -> Iterator[Step]:
        """Lines for parts of a cotangent that are read again, or are long: such as masks."""
        for node in topological([flow]):
            if node in ends:
                continue
            if (formula := self._named_if_long(node, read)) is not None:
                term, said = self.names.shown(node), typed(node)
                yield step_of(term, formula, node.op.name, said, DEFINITION, node, node)

    def _named_if_long(self, node: Node, read: Mapping[Node, int]) -> Term | None:
        """The formula of a node that gets a letter, since it is long, or read again."""
        if is_leaf(node) or is_aside(node) or isinstance(node.type, tuple):
            return None
        if self.names.named(node) is not None:
            return None
        formula = self.names.formula(node)
        if formula.size <= (MOST_INLINE // 2 if read[node] > 1 else 2 * MOST_INLINE):
            return None
        self.names.give(node, self._letter())
        return formula

    def _carried(
        self, node: Node, y: Node, readers: dict[Node, list[Node]]
    ) -> tuple[str, str, Node]:
        """Which derivatives hand on the cotangent of a node, why, and the first of its readers."""
        if node is y:
            return "seed", "The derivative of a number by itself is 1.", node
        found: dict[Node, None] = {}
        stack = [*readers[node]]
        while stack:
            reader = stack.pop(0)
            unnamed = self.names.named(reader) is None
            through = is_renamed(reader) or (is_aside(reader) and unnamed)
            stack += readers[reader] if through else []
            found.update({} if through else {reader: None})
        ops = dict.fromkeys(r.op for r in found)
        rule = ", ".join(f"vjp({op.name})" for op in ops)
        said = [d for op in ops if (d := slope_of(op))]
        number = f"{len(found)} operations read it, whose parts add up." if len(found) > 1 else ""
        reason = " ".join(filter(None, (number, *said)))
        return rule or "vjp", reason or "The chain rule.", next(iter(found), node)

    # ---- rewrites -----------------------------------------------------------------------------

    def _simplified(self, graph: Graph, title: str) -> tuple[Node, ...]:
        trace = Trace()
        after = run_passes(graph, SIMPLIFYING, self.exact, trace)
        steps = tuple(self._rewrites(trace.fired, graph))
        for old, new in zip(graph.outputs, after.outputs, strict=True):
            self.names.equate(old, new)
        if steps:
            text = (
                "The compiler's rules, each with its grade: what floats may differ in. bits: in "
                "nothing; values: in the sign of a zero; rounding: in the last digits."
            )
            self.sections.append(Section(title, text, steps))
        return after.outputs

    def _rewrites(self, fired: Sequence[RewriteEvent], graph: Graph) -> Iterator[Step]:
        leaves = {n for n in graph.nodes if is_leaf(n)}
        told: set[tuple[str, str, str]] = set()
        for event in fired:
            if any(is_input(n) and n not in leaves for n in topological([event.before])):
                continue  # within the body of a loop
            old, new = self.names.formula(event.before), self.names.formula(event.after)
            known = self.names.named(event.before)
            self.names.equate(event.before, event.after)
            shown = (event.rule.name, plain(old), plain(new))
            if (
                is_renamed(event.before)
                or shown[1] == shown[2]
                or shown in told
                or "constant [" in plain(new)
            ):
                continue
            told.add(shown)
            old = bound(old, ADDED)
            left = old if known is None or known == old else row(known, "=", old, strength=LOOSE)
            yield step_of(
                left, new, event.rule.name, reason_text(event.rule),
                event.rule.exact.name.lower(), event.before, event.after,
            )  # fmt: skip

    # ---- the result ---------------------------------------------------------------------------

    def _result(
        self, loss: Node, xs: list[Node], raw: Sequence[Node], simple: Sequence[Node], part: Style
    ) -> None:
        """Every line that is needed, and the derivative in one if that is short."""
        top = row("∂", self.names.shown(loss), strength=RAISED)
        steps = []
        ends = {self.names.value(n) for n in simple}
        order = topological(simple)
        read = Counter(x for n in order for x in dict.fromkeys(n.inputs))
        for node in order:
            if self.names.value(node) not in ends:
                self._named_if_long(node, read)
            term = self.names.named(node)
            if is_leaf(node) or term is None or self.names.value(node) in ends:
                continue
            right = self.names.formula(node)
            if plain(right) != plain(term):
                steps.append(step_of(term, right, "result", typed(node), DEFINITION, node, node))
        for x, by, node in zip(xs, raw, simple, strict=True):
            below = row("∂", self.names.shown(x), strength=RAISED)
            left = Term("frac", (top, below))
            if part.product is not None:
                left = row(part.product, "=", left, strength=LOOSE)
            right = self.names.formula(node)
            steps.append(step_of(left, right, "result", typed(node), DEFINITION, by, node, x))
            closed = term_of(node, lambda n: None)
            if closed.size <= MOST_CLOSED and plain(closed) != plain(right):
                steps.append(
                    step_of(left, closed, "result", "All names put in.", DEFINITION, by, node, x)
                )
        text = "What is left to compute; the derivative stands at the end."
        self.sections.append(Section(part.titles[3], text, tuple(steps)))

    def newton(self, loss: Node, x: Node, kinks: Policy) -> None:
        """The equation of Newton's step, for a vector."""
        g, h = grad(loss, x, kinks=kinks), hessian(loss, x, kinks=kinks)
        step = solve(h, -g)
        s, w = name("s"), self.names.shown(x)
        gradient = row("∇", self.names.shown(loss), strength=MULTIPLIED)
        right = row("negative", gradient, strength=MULTIPLIED)
        left = row(word("H"), " ", s, strength=MULTIPLIED)
        moved = row(w, "+", s, strength=ADDED)
        solved = row(w, "−", called(word("solve"), word("H"), gradient), strength=ADDED)
        where = "The quadratic model of the loss, L + ∇L s + s H s / 2, is least at slope 0."
        follow = "Newton's method goes on from there; H is never inverted, an equation is solved."
        steps = (
            step_of(left, right, "newton", where, DEFINITION, h @ step, as_node(-g), x),
            step_of(moved, solved, "newton", follow, DEFINITION, x + step, x - solve(h, g), x),
        )
        text = "H is the matrix of whose products these are, and s the step."
        self.sections.append(Section("Newton's step", text, steps))

"""Normal forms: one function is differentiated as one function, however it is spelled.

These rules are not a pass of the compiler. Before a gradient is derived, the graph is brought to
normal form; the derivative is taken there, and then refers to the values that the graph as written
computes. So what the forward computes stays as written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.updates import update_call
from symgrad.ir.walk import topological
from symgrad.ops.identity import optimization_barrier
from symgrad.passes.cse import merge
from symgrad.rewrite.driver import Index, rebuild, sweep_once
from symgrad.rewrite.late import Rules
from symgrad.rewrite.rule import Exact, rules_of
from symgrad.rules import arithmetic, extrema, late, logic, masks, powers, selections, views
from symgrad.rules.normal import kinks, signs, smooth

RULES = Rules(
    (
        powers.power_one,
        powers.power_two,
        powers.power_minus_one,
        powers.product_with_itself,
        arithmetic.double_negative,
        arithmetic.times_minus_one,
        arithmetic.square_of_negative,
        arithmetic.zero_minus,
        arithmetic.abs_of_negative,
        *arithmetic.add_negative.family,
        arithmetic.negative_times_constant,
        views.broadcast_operand,
        late("systems", "diagonal_of_product", "diagonal_of_transposed"),
        late("comparisons", "less_from_constant", "comparison_of_negatives"),
        logic.invert_is_not,
        logic.not_not,
        *rules_of(kinks),
        extrema.maximum_is_relu,
        *extrema.select_positive_is_relu.family,
        extrema.maximum_is_leaky_relu,
        *extrema.choice_by_greater_is_leaky_relu.family,
        *extrema.choice_by_greater_is_abs.family,
        *rules_of(signs),
        late("reduced_extrema", "largest_of_relu"),
        masks.mask_multiply,
        selections.where_of_not,
        selections.where_zero_first_is_select,
        selections.where_zero_is_select,
        *rules_of(smooth),
        late("normal.cholesky"),
        *smooth.BORROWED,
    )
)
INDEX = Index(RULES)


class NormalForm(NamedTuple):
    """A graph in normal form: what stands for some outputs and for what they are derived by."""

    ys: list[Node]
    xs: list[Node]
    original: Mapping[Node, Node]

    def as_written(self, nodes: Sequence[Node]) -> list[Node]:
        """Nodes built on the normal form, referring to the graph as written wherever they can."""
        if not self.original:
            return list(nodes)
        becomes: dict[Node, Node] = {}
        for node in topological(nodes):
            if node in self.original:
                becomes[node] = self.original[node]
            else:
                becomes[node] = rebuild(node, tuple(map(becomes.__getitem__, node.inputs)))
        return [becomes[n] for n in nodes]


def normal_form(ys: Sequence[Node], xs: Sequence[Node]) -> NormalForm:
    """The outputs `ys` in normal form, and the nodes in it that stand for `xs`."""
    order = topological(ys)
    inside = {x for x in xs if x.inputs}
    apart = inside | {update_call(n) for n in order if n.op.update}
    merged = merge(order, Exact.BITS, lambda n: n if n in apart else n.origin.kinks)
    held = _with_barriers(order, merged, {merged.get(x, x) for x in inside})
    final, fired = sweep_once(Graph([held[y] for y in ys]), INDEX, "normal form")
    if not fired:
        return NormalForm(list(ys), list(xs), {})

    def image(node: Node) -> Node:
        there = held.get(node, node)
        return final.get(there, there)

    unstable = {final.get(f.after, f.after) for f in fired if f.rule in smooth.STABLE}
    unsafe: set[Node] = set()
    original: dict[Node, Node] = {}
    for node in order:
        there = image(node)
        if there in unstable or not unsafe.isdisjoint(node.inputs):
            unsafe.add(node)
        else:
            original.setdefault(there, node)
    return NormalForm([image(y) for y in ys], [image(x) for x in xs], original)


def _with_barriers(
    order: Sequence[Node], merged: Mapping[Node, Node], inside: set[Node]
) -> dict[Node, Node]:
    """The merged graph with the nodes `inside` it held fast, so that no rule takes them away."""
    if not inside:
        return dict(merged)
    becomes: dict[Node, Node] = {}
    for node in order:
        kept = merged[node]
        if kept not in becomes:
            there = rebuild(kept, tuple(becomes[x] for x in kept.inputs))
            becomes[kept] = optimization_barrier(there) if kept in inside else there
        becomes[node] = becomes[kept]
    return becomes

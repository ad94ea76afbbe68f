"""Why ops are one fused group, and why it is no larger, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from symgrad.ir.errors import counted
from symgrad.ir.node import Node
from symgrad.passes.fuse import Group, GroupLimit

MOST_OPS, MOST_BOUNDS = 8, 12  # that are told
MAY = "each makes a row of the same row of what it reads, or adds up the rows"


class Joined(NamedTuple):
    """Why some ops are one group: its node, its ops, and where it begins and ends, and why."""

    node: Node
    ops: tuple[str, ...]
    bounds: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """The reasons line by line."""
        yield f"one group of {counted(len(self.ops), 'op')}, as {MAY}: {_listed(self.ops)}"
        yield from (f"  {bound}" for bound in self.bounds[:MOST_BOUNDS])
        if len(self.bounds) > MOST_BOUNDS:
            yield f"  and {counted(len(self.bounds) - MOST_BOUNDS, 'end')} more"


def joined(node: Node, graph: Group, shown: Callable[[Node], str]) -> Joined:
    """The reasons of a group, with its nodes, and those beside it, as they are `shown`."""
    ops = tuple(shown(n) for n in graph.nodes if n.inputs and not n.op.view)
    return Joined(node, ops, tuple(_why_it_ends(bound, shown) for bound in graph.bounds()))


def _why_it_ends(bound: GroupLimit, shown: Callable[[Node], str]) -> str:
    at = "what it reads" if bound.at is None else shown(bound.at)
    before = f", before {_listed(tuple(map(shown, bound.others)))}" if bound.others else ""
    return f"{'begins after' if bound.reads else 'ends with'} {at}{before}: {bound.why.value}"


def _listed(texts: tuple[str, ...]) -> str:
    more = f" and {len(texts) - MOST_OPS} more" if len(texts) > MOST_OPS else ""
    return f"{', '.join(texts[:MOST_OPS])}{more}"

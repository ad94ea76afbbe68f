"""Whether a program can give a NaN or an inf, by the ranges of its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, describe
from symgrad.ir.ranges import Range
from symgrad.ops.ranges.inference import ranges_of


@dataclass(frozen=True)
class Finiteness:
    """The answer of `Program.finite`: true if it is proved that no output has a NaN or an inf.

    Else `node` is the first that can make one, of operands within `ranges`, that may reach an
    output; that it does is not said. It prints.
    """

    node: Node | None = None
    result: Range | None = None
    ranges: tuple[Range, ...] = ()

    def __bool__(self) -> bool:
        return self.node is None

    def __str__(self) -> str:
        if self.node is None or self.result is None:
            return "no NaN, no inf: proved, for inputs that are finite and within their ranges"
        infinite = isinf(self.result.low) or isinf(self.result.high)
        made = " and ".join(["a NaN"] * self.result.nan + ["an inf"] * infinite)
        lines = [f"{self.node.op.name} can make {made}"]
        lines += [f"  built at {p}: {p.text}" for p in self.node.origin.locations]
        pairs = zip(self.node.inputs, self.ranges, strict=True)
        lines += [f"  of {describe(x)}, which lies {r}" for x, r in pairs]
        mend = "declare what is fed, sg.placeholder(..., within=(low, high)), or write it otherwise"
        return "\n".join([*lines, mend])


def finiteness(graph: Graph) -> Finiteness:
    """Whether the outputs of a graph are proved to be finite; see `Program.finite`."""
    ranges = ranges_of(graph.outputs, finite=True)
    reaching = {y for y in graph.outputs if not ranges[y].finite}
    for node in reversed(graph.nodes):
        if node in reaching:
            reaching.update(x for x in node.inputs if not ranges[x].finite)
    for node in graph.nodes:
        if node in reaching and all(ranges[x].finite for x in node.inputs):
            return Finiteness(node, ranges[node], tuple(ranges[x] for x in node.inputs))
    return Finiteness()

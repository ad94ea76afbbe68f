"""Where values are drawn, in the whole graph and in the graphs inside its nodes; facts of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from symgrad.ir.node import Node
from symgrad.ir.walk import GraphLike
from symgrad_viz.residuals import Path
from symgrad_viz.scene import Region


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value is drawn."""

    box: str
    type: str


# A small constant is not drawn: it is written into the label of the op that takes it.
Operand: TypeAlias = "Source | str"


@dataclass(frozen=True, slots=True)
class Level:
    """A graph that is being drawn: the whole one, or one inside a fused node.

    `names` is what each node is called in the texts; `sources` says where each of its results is
    drawn. `path` is the fused nodes that it lies in, `regions` what lies around them.
    """

    graph: GraphLike
    names: dict[Node, str]
    sources: dict[Node, list[Operand]]
    path: Path = ()
    regions: tuple[Region, ...] = ()


@dataclass(frozen=True, slots=True)
class Numbered:
    """A graph with the numbers of its nodes.

    `names` is what its own nodes are called; `inside` gives the name of what is in groups and
    bodies, by the name of the outermost node and the way from there; `elements` are all of these.
    """

    names: Mapping[Node, str]
    inside: Mapping[str, str]
    elements: Mapping[int, Node]


class Within:
    """The names of what is inside of nodes, as `Numbered.inside` has them."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        self.ways: dict[str, str] = {}  # by the names

    def __call__(self, own: str, part: object) -> str:
        """The name of a part of what is called `own`."""
        way = f"{self.ways.get(own, own)}_{part}"
        name = self.names.get(way, way)
        self.ways[name] = way
        return name


def numbered_of(graph: GraphLike) -> Numbered:
    """A graph with the numbers that it prints with."""
    return Numbered(
        {n: f"n{i}" for i, n in enumerate(graph.nodes)}, {}, dict(enumerate(graph.nodes))
    )


class Details:
    """Facts about nodes beyond the graph: none, here."""

    sizes: Mapping[str, int] | None = None
    is_brief = False  # whether a tooltip is its first line and no more

    def lines(self, node: Node) -> list[str]:
        """More lines for its tooltip."""
        return []

    def figure(self, node: Node) -> float | None:
        """The number by which it is coloured, if it is."""
        return None

    def overwrites(self, node: Node, operand: Node) -> bool:
        """Whether its result takes the place of an operand in memory."""
        return False

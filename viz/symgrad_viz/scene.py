"""The scene of a picture, before anything has a place: boxes, edges and the regions around them.

Every engine draws the same scene. Values that are used far from where they are computed are drawn
again, as a small *stub* beside each use: that keeps pictures of gradients readable, and it spares
the layout the long edges that take it minutes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from symgrad.ir.dims import evaluate
from symgrad_viz.phases import PARTS, UPDATE
from symgrad_viz.words import bytes_text, counted, sizes_text

WRITTEN = 16  # letters of a formula in a stub
REACH = 10  # an edge over more ranks than this is drawn as a stub
LEAVES: Mapping[str, str] = {
    "placeholder": "input",
    "variable": "parameter",
    "constant": "constant",
}
STATE = "state array"  # of an optimiser
CARRY = "carry"  # the way of an edge from one step of a loop to the next, against the order

# Values that are kept for the backward part, each with its bytes.
Saved: TypeAlias = tuple[tuple[Hashable, Any], ...]
# Of named dimensions, each with its name.
Sizes: TypeAlias = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Region:
    """An area with a title: a part of the graph, a user's scope, the inside of a node.

    `layer` is what module a scope is of, and how many parameters it has.
    """

    id: str
    kind: str
    title: str
    tooltip: str = ""
    layer: str = ""

    @property
    def label(self) -> str:
        """The title as it is drawn: `layers.3 · Conv2d 6→16, 5×5 · 2,416 parameters`."""
        return f"{self.title} · {self.layer}" if self.layer else self.title


@dataclass(frozen=True, slots=True)
class Box:
    """One drawn node.

    `kind` names its look; `regions` are the areas that it lies in, outermost first. `figure`
    is the number by which it is coloured, if it is, and `heat` the step of the ramp for that.
    `what` is its op with the constants that it takes: all that like nodes have in common.
    """

    id: str
    kind: str
    lines: tuple[str, ...]
    tooltip: str
    regions: tuple[Region, ...] = ()
    is_output: bool = False
    figure: float | None = None
    heat: int | None = None
    what: str = ""

    @property
    def classes(self) -> str:
        output = " is-output" if self.is_output else ""
        return f"is-{self.kind}{output}{'' if self.heat is None else f' heat{self.heat}'}"


@dataclass(frozen=True, slots=True)
class Edge:
    """A value that flows from `tail` to `head`.

    `carries` is its type; `operand` its place among the operands, where that matters. `saved` is
    what of it forward ops computed and is kept for gradient ops: each such value with its bytes,
    which hold for these `sizes` of named dimensions. `way` is "view" if the head shows the tail and
    copies nothing, "in-place" if it overwrites it, "carry" from what a step of a loop hands on to
    where the next begins. `named` is what a stub calls the value, if not by its box.
    """

    tail: str
    head: str
    carries: str
    operand: str = ""
    is_stub: bool = False
    saved: Saved = field(default=(), compare=False)
    sizes: Sizes = ()
    way: str = ""
    named: str = field(default="", compare=False)

    @property
    def is_saved(self) -> bool:
        return bool(self.saved)

    @property
    def classes(self) -> str:
        ways = [f"is-{self.way}"] if self.way else []
        return " ".join(["is-stub"] * self.is_stub + ["is-saved"] * self.is_saved + ways)

    @property
    def tooltip(self) -> str:
        kept = ", kept for the backward part" if self.is_saved else ""
        kept += ", handed to the next step" if self.way == CARRY else ""
        return f"{self.tail.partition('_at_')[0]} → {self.head} : {self.carries}{kept}"


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a picture shows. `summary` says the same in words, for readers who cannot see it.

    `note` says in a line what was left out or drawn together; `kept` says how many bytes the
    forward part keeps for the backward part; `key` explains colours: a title, and
    for each step of the ramp the numbers that it stands for.
    """

    title: str
    summary: str
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    note: str = ""
    kept: str = ""
    key: tuple[str, tuple[str, ...]] = ("", ())


def with_stubs(
    boxes: tuple[Box, ...], edges: tuple[Edge, ...], columns: Mapping[str, int] | None = None
) -> tuple[tuple[Box, ...], tuple[Edge, ...]]:
    """The same scene with a stub beside each use that is far from its value.

    Far is: in another part of the graph or another of these columns, more than `REACH` ranks away,
    or after the use, where boxes feed each other.
    """
    by_id = {b.id: b for b in boxes}
    place = {b.id: i for i, b in enumerate(boxes)}
    area = {b.id: (part_of(b), (columns or {}).get(b.id)) for b in boxes}
    near = [area[e.tail] == area[e.head] and place[e.tail] < place[e.head] for e in edges]
    rank = ranks(boxes, [e for e, is_near in zip(edges, near, strict=True) if is_near])
    before: dict[str, dict[str, Box]] = {}
    result = []
    for edge, is_near in zip(edges, near, strict=True):
        if edge.way == CARRY or (is_near and rank[edge.head] - rank[edge.tail] <= REACH):
            result.append(edge)
            continue
        tail, head = by_id[edge.tail], by_id[edge.head]
        kept = [f"kept: {saved_text([edge])}"] if edge.saved else []
        lines = (
            edge.named or stub_title(tail),
            *([edge.carries] if edge.carries else tail.lines[1:2]),
            *kept,
        )
        id = f"{tail.id}_at_{head.id}"
        stub = Box(id, "stub", lines, tail.tooltip, head.regions)
        before.setdefault(head.id, {})[stub.id] = stub
        result.append(replace(edge, tail=stub.id, is_stub=True))
    drawn = [b for box in boxes for b in (*before.get(box.id, {}).values(), box)]
    return tuple(drawn), tuple(result)


def stub_title(box: Box) -> str:
    """The first line of a stub: the name of a value, and what it is if that is short."""
    name, _, written = box.lines[0].partition(" = ")
    return box.lines[0] if len(written) <= WRITTEN else f"{name} = {box.what}"


def saved_text(edges: Sequence[Edge]) -> str:
    """How many bytes are kept of what flows along these, each value once; empty for none.

    As a formula of the named dimensions and, where their sizes are known, as a number:
    `400*N B = 25 KiB (N = 64)`.
    """
    values = dict(value for e in edges for value in e.saved)
    if not values:
        return ""
    total, sizes = sum(values.values()), all_sizes(edges)
    number = known_bytes(total, sizes)
    if number is None:
        return bytes_text(total)
    told = "" if isinstance(total, int) else f"{bytes_text(total)} = "
    return f"{told}{bytes_text(number)}{sizes_text(sizes)}"


def known_bytes(size: Any, sizes: Sizes) -> int | None:
    """The number that an expression of named dimensions is; None if a size is not known."""
    if isinstance(size, int):
        return size
    known = dict(sizes)
    return evaluate(size, known) if size.names <= known.keys() else None


def all_sizes(edges: Iterable[Edge]) -> Sizes:
    """For which sizes of named dimensions the bytes of all these hold."""
    return tuple(sorted({size for e in edges for size in e.sizes}))


def contents_text(boxes: Sequence[Box]) -> str:
    """The contents of a box that stands for these: `3 ops, 2 parameters`.

    What an update keeps from call to call beside the parameters is its state.
    """
    leaves = {**LEAVES, "variable": STATE} if boxes and part_of(boxes[0]) == UPDATE else LEAVES
    told = Counter(leaves.get(b.kind, "op") for b in boxes)
    return ", ".join(filter(None, (counted(told[w], w) for w in ("op", *leaves.values()))))


def part_of(box: Box) -> str:
    """The part of the picture that a box lies in; empty where there is but one."""
    return next((r.kind for r in box.regions if r.kind in PARTS), "")


def ranks(boxes: Sequence[Box], edges: Sequence[Edge]) -> dict[str, int]:
    """How far each box lies below the top: below all that it uses, and not far above its uses.

    The boxes come in an order in which they can be computed.
    """
    into: dict[str, list[str]] = {}
    out: dict[str, list[str]] = {}
    for edge in edges:
        if edge.way == CARRY:
            continue
        into.setdefault(edge.head, []).append(edge.tail)
        out.setdefault(edge.tail, []).append(edge.head)
    rank: dict[str, int] = {}
    for box in boxes:
        rank[box.id] = max((rank[t] + 1 for t in into.get(box.id, ())), default=0)
    for box in reversed(boxes):
        above = into.get(box.id, ())
        # Moving such a box down makes no more edges longer than it makes shorter.
        movable = len(above) < 2 or all(len(out[t]) == 1 for t in above)
        if movable and box.id in out:
            rank[box.id] = min(rank[h] for h in out[box.id]) - 1
    return rank

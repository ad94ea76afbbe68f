"""Bundles: one box for the many leaves that a box reads, one stub for its many values from afar."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from symgrad_viz.scene import Box, Edge, all_sizes, part_of, saved_text
from symgrad_viz.words import counted, shortened

Drawing: TypeAlias = tuple[tuple[Box, ...], tuple[Edge, ...]]
MOST, SHOWN = 6, 3  # of what comes into a box, and of the names of a bundle


def with_few_leaves(boxes: tuple[Box, ...], edges: tuple[Edge, ...]) -> Drawing:
    """The same with one box for parameters that one box alone reads, where they are very many."""
    by_id = {b.id: b for b in boxes}
    bundled = {b.id: head for head, of in bundles(boxes, edges).items() for b in of}
    first: dict[str, str] = {}
    for id, head in bundled.items():
        first.setdefault(head, id)
    drawn = [e for e in edges if e.tail not in bundled]
    for head, id in first.items():
        names = [by_id[i].lines[0] for i, own in bundled.items() if own == head]
        lines = (counted(len(names), "parameter"), *_few(names))
        said = shortened(", ".join(names), 2000)
        by_id[id] = Box(id, "variable", lines, said, by_id[head].regions)
        drawn.append(Edge(id, head, lines[0]))
    kept = {*first.values(), *(by_id.keys() - bundled.keys())}
    return tuple(b for id, b in by_id.items() if id in kept), tuple(drawn)


def bundles(boxes: Iterable[Box], edges: Iterable[Edge]) -> dict[str, list[Box]]:
    """The parameters, where very many, that one box alone of their part reads, by that box."""
    by_id = {b.id: b for b in boxes}
    readers: dict[str, set[str]] = defaultdict(set)
    for edge in edges:
        if part_of(by_id[edge.head]) == part_of(by_id[edge.tail]):
            readers[edge.tail].add(edge.head)
    found: dict[str, list[Box]] = defaultdict(list)
    for box in by_id.values():
        if box.kind == "variable" and len(readers[box.id]) == 1 and not box.is_output:
            found[next(iter(readers[box.id]))].append(box)
    return {head: of for head, of in found.items() if len(of) > MOST}


def _few(names: Iterable[str]) -> Sequence[str]:
    """The first few of very many names."""
    listed = list(names)
    return (*listed[:SHOWN], f"and {len(listed) - SHOWN} more")


def with_few_stubs(boxes: tuple[Box, ...], edges: tuple[Edge, ...], most: int = MOST) -> Drawing:
    """The same with one stub where there were very many: it lists the first few of them."""
    by_id = {b.id: b for b in boxes}
    stubs: dict[str, list[Edge]] = {}
    for edge in {(e.tail, e.head): e for e in edges if e.is_stub}.values():
        stubs.setdefault(edge.head, []).append(edge)
    new: dict[str, Box] = {}
    gone: set[str] = set()
    drawn = [e for e in edges if len(stubs.get(e.head, ())) <= most or not e.is_stub]
    for head, into in stubs.items():
        if len(into) <= most:
            continue
        of = [by_id[e.tail] for e in into]
        names = [b.lines[0].partition(" = ")[0] for b in of]
        kept = [f"kept: {text}"] if (text := saved_text(into)) else []
        said = shortened(", ".join(names), 2000)
        id = f"many_at_{head}"
        new[of[0].id] = replace(of[0], id=id, lines=(*_few(names), *kept), tooltip=said)
        gone.update(b.id for b in of)
        saved = tuple(dict(value for e in into for value in e.saved).items())
        edge = Edge(f"many_at_{head}", head, f"{len(of)} values", "", True, saved, all_sizes(into))
        drawn.append(edge)
    left = [new.get(b.id, b) for b in boxes if b.id in new or b.id not in gone]
    return tuple(left), tuple(drawn)

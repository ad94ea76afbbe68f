"""Two programs in one page: before and after a change of yours, or two grades."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from symgrad.ir.collector import without_collection
from symgrad.ir.errors import RenderError
from symgrad.ir.formats.text import type_text
from symgrad.ir.graph import is_leaf
from symgrad.ir.node import Node
from symgrad.ir.walk import topological
from symgrad.runtime.program import Program
from symgrad_viz.elements import Elements
from symgrad_viz.explorer import checked, page
from symgrad_viz.explorer_data import Document
from symgrad_viz.explorer_tables import Table, named, numbers_text
from symgrad_viz.picture import write
from symgrad_viz.words import title_text

Json: TypeAlias = dict[str, Any]


@without_collection()
def compare(
    a: Program,
    b: Program,
    path: str | Path,
    *,
    names: tuple[str, str] = ("before", "after"),
    title: str | None = None,
    embed_source: bool = True,
) -> Path:
    """Write a page that shows two programs and how they differ. Gives back its path.

    It is the page of `explore` for each of them, between which one switches, and a view with their
    figures side by side, the rules that acted in each, and what differs in their sources. Nodes
    that only one of them computes are marked there. `names` is what the two are called.

    Raises `RenderError` if one is no program, or the folder is missing.

    >>> compare(exact, fast, "grades.html", names=("bits", "reals"))
    PosixPath('grades.html')
    """
    for program in (a, b):
        if not isinstance(program, Program):
            raise RenderError(f"Programs can be compared, not a {type(program).__name__}")
    found = checked(path)
    if len(names) != 2:
        raise RenderError(f"two programs have two names, not {names!r}")
    called = [title_text(str(name), "") for name in names]
    documents = [Document(program, embed_source, None) for program in (a, b)]
    shown = [d.to_json(title) for d in documents]
    keys = Table()
    own = [_keys(d.elements, keys) for d in documents]
    for told, mine, others in zip(shown, own, reversed(own), strict=True):
        there = set(others)
        told["only"] = numbers_text([i for i, key in enumerate(mine) if key not in there])
    comparison = {
        "figures": _figures(*(told["summary"] for told in shown)),
        "rules": _rules(a, b),
    }
    given = {"documents": shown, "names": called, "comparison": comparison}
    write(found, page({"title": shown[0]["title"], **given}).encode())
    return found


def _keys(elements: Elements, keys: Table) -> list[int]:
    """For each element a number that those of either program share which compute the same.

    The same is: an op of one kind on what is the same, from inputs of one name and type.
    """
    written_out = list(map(elements.lineage.written_out, elements.nodes))
    of: dict[Node, int] = {}
    for node in topological(written_out):
        operands = tuple(of[x] for x in node.inputs)
        own = node.name if is_leaf(node) and node.name is not None else repr(node.attrs)
        of[node] = keys[node.op.name, own, type_text(node.type), operands]
    return [of[node] for node in written_out]


def _figures(a: Sequence[Json], b: Sequence[Json]) -> list[Json]:
    """The figures of what runs, side by side."""
    found = {row["what"]: row for row in (*a, *b)}
    own = [{row["what"]: row["after"] for row in rows} for rows in (a, b)]
    rows = ((row["depth"], what, *(o.get(what, 0) for o in own)) for what, row in found.items())
    return named("depth what before after", rows)


def _rules(a: Program, b: Program) -> list[Json]:
    """How often each rule acted in each; those first that did not act as often in both."""
    counts = [Counter(f.rule.name for f in p.trace.fired) for p in (a, b)]
    listed = sorted({*counts[0], *counts[1]})
    listed.sort(key=lambda name: counts[0][name] == counts[1][name])
    return named("what before after", ((n, counts[0][n], counts[1][n]) for n in listed))

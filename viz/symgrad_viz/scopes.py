"""The looks of nodes, and the scopes that they lie in, also groups of what many scopes had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import TypeVar

from symgrad.ir.graph import is_leaf
from symgrad.ir.node import Node
from symgrad.ir.walk import GraphLike
from symgrad_viz.phases import BACKWARD, FORWARD, UPDATE
from symgrad_viz.words import name_text

T = TypeVar("T")


def scope_of(node: Node) -> Sequence[str]:
    """The scopes of a node; of one with ops inside those that more than half of them lie in."""
    inner = node.inner_graph
    if node.op.of_several and inner is None:
        return scope_of(node.inputs[0])
    if inner is None:
        return node.origin.scope
    paths = [n.origin.scope for n in inner.nodes if not is_leaf(n)]
    found: tuple[str, ...] = ()
    while deeper := Counter(p[: len(found) + 1] for p in paths if len(p) > len(found)):
        deepest, count = deeper.most_common(1)[0]
        if 2 * count <= len(paths):
            break
        found = deepest
    return found


def spanned(inner: GraphLike) -> list[str]:
    """The scopes that a fused node spans, each as far as it tells them apart."""
    paths = dict.fromkeys(n.origin.scope for n in inner.nodes if not is_leaf(n))
    common = len(shared(paths))
    return list(dict.fromkeys(name_text(path[common]) for path in paths if path[common:]))


def shared(paths: Iterable[Sequence[T]]) -> list[T]:
    """The longest common prefix."""
    levels = takewhile(lambda level: len(set(level)) == 1, zip(*paths, strict=False))
    return [level[0] for level in levels]


def kind_of(node: Node, part: str, inner: GraphLike | None) -> str:
    """The look of a node in a part of the graph."""
    if is_leaf(node):
        return node.op.name
    if inner is not None:
        return "fused"
    return {FORWARD: "op", BACKWARD: "backward", UPDATE: "update"}.get(part, "op")

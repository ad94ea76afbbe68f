"""The question that a call of `compile` puts: what it is given, checked, as a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from symgrad.ir.errors import GraphError, SymgradError
from symgrad.ir.forms import Form, Leaf, flatten
from symgrad.ir.graph import Graph, is_input
from symgrad.ir.node import Node, Variable, as_node, constant_node, describe
from symgrad.ir.record import Record
from symgrad.ir.types import in_order, names_in
from symgrad.ir.values import ArrayData
from symgrad.ir.walk import topological

Updates: TypeAlias = Mapping[Variable, Any] | Iterable[tuple[Variable, Any]]


class Question(Record, frozen=True):
    """The task of a program, checked: a graph, the variables it updates, how it is called.

    The outputs of the graph are those wanted, then the next values; `names` are theirs. `form` and
    `forms` are those of `Interface`.
    """

    graph: Graph
    fed: tuple[Node, ...]
    updated: tuple[Variable, ...]
    names: tuple[str, ...]
    form: Form
    forms: tuple[Any, ...] | None


def asked(inputs: Any, outputs: Any, updates: Updates | None) -> Question:
    """The question that arguments of `compile` put. Raises as that does."""
    alone = isinstance(inputs, Node) or not isinstance(inputs, Iterable)
    given = (
        (inputs,)
        if alone or isinstance(inputs, Mapping)
        else tuple(in_order(inputs, "inputs", GraphError))
    )
    places, _ = flatten(given, "input", "inputs")
    fed = tuple([_fed(leaf) for leaf in places])
    leaves, form = flatten(outputs, "output", "outputs")
    pairs = _check_updates(updates)
    nodes = [*map(_output, leaves), *(new for _, new in pairs)]
    updated = tuple([v for v, _ in pairs])
    graph = stateful(nodes, fed, updated)
    _check_sizes(graph)
    names = [leaf.name for leaf in leaves] + [f"{v.name} (next)" for v in updated]
    return Question(graph, fed, updated, tuple(names), form, _arguments(given))


def stateful(nodes: Sequence[Node], fed: Sequence[Node], updated: Sequence[Variable]) -> Graph:
    """The graph of a program that is fed some placeholders, and updates some variables."""
    state = [n for n in topological([*nodes, *updated]) if isinstance(n, Variable)]
    return Graph(nodes, [*fed, *state])


def _check_sizes(graph: Graph) -> None:
    """Refuse a named dimension whose size no input tells."""
    known = {name for x in graph.inputs for name in x.tensor.names}
    for node in graph.nodes:
        if unknown := names_in((node.type, *node.attrs)) - known:
            listed = ", ".join(sorted(unknown))
            raise GraphError(
                f"{describe(node)}: no input tells the size of {listed}; give the inputs a "
                f"placeholder that has {listed} in its shape, or write an int"
            )


def _fed(leaf: Leaf) -> Node:
    node = leaf.value
    if isinstance(node, Variable):
        raise GraphError(
            f"{leaf.path}: {describe(node)} is a variable, which is not fed; leave it out"
        )
    if not isinstance(node, Node) or not is_input(node):
        raise GraphError(
            f"{leaf.path}: an input is a placeholder, not {_said(node)}; "
            "make one: sg.placeholder(name, shape, dtype)"
        )
    return node


def _arguments(given: Sequence[Any]) -> tuple[Any, ...] | None:
    """The forms of the arguments by position; None if each is one array."""
    if all(isinstance(element, Node) for element in given):
        return None
    leaves, form = flatten(tuple(given), "")
    forms: tuple[Any, ...] = form(range(len(leaves)))
    return forms


def _output(leaf: Leaf) -> Node:
    try:
        node = as_node(in_order(leaf.value, leaf.path, GraphError))
        node.tensor  # noqa: B018  refuses a node with several results
    except SymgradError as error:
        raise type(error)(f"{leaf.path}: {error}") from None
    return node


def _check_updates(updates: Any) -> list[tuple[Variable, Node]]:
    if updates is not None and not isinstance(updates, Iterable):
        raise GraphError(
            "updates are a dict {variable: next value}, such as optimizer.updates(loss), not "
            f"{_said(updates)}"
        )
    pairs: list[Any] = list(updates.items() if isinstance(updates, Mapping) else updates or ())
    seen: set[Variable] = set()
    checked = []
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise GraphError(
                f"updates are a dict {{variable: next value}} or such pairs, not {pair!r}"
            )
        target, value = pair
        if not isinstance(target, Variable):
            raise GraphError(
                f"only a variable can be updated, not {_said(target)}; "
                "make it one: sg.variable(name, value)"
            )
        if target in seen:
            raise GraphError(f"{describe(target)} is updated twice; give it one next value")
        seen.add(target)
        checked.append((target, _next_value(target, value)))
    return checked


def _next_value(target: Variable, value: Any) -> Node:
    weak = isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)
    fits = weak and np.result_type(target.dtype, value) == target.dtype
    node = constant_node(ArrayData(value, target.dtype)) if fits else as_node(value)
    if node.type != target.type:
        raise GraphError(
            f"the next value of {describe(target)} must have its shape and dtype, "
            f"and {describe(node)} has not; convert it with astype, or mend its shape"
        )
    return node


def _said(value: Any) -> str:
    return describe(value) if isinstance(value, Node) else repr(value)[:80]

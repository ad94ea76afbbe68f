"""Functions of nested forms of nodes as functions of one vector, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.ir.dims import Size
from symgrad.ir.errors import DtypeError, GraphError, ShapeError
from symgrad.ir.forms import aligned
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, as_node, describe
from symgrad.ir.origin import inner_name, traced
from symgrad.ops.identity import stop_gradient
from symgrad.ops.leaves import placeholder
from symgrad.ops.loops.calls import calling, require_function
from symgrad.ops.loops.implicit import solution_of
from symgrad.ops.loops.loop import named_sizes, substituted
from symgrad.ops.loops.scan import closed, leaves
from symgrad.ops.shape import astype, concat, reshape


class Unknown:
    """The unknown of a solver: leaves of one real float dtype, one by one in a vector."""

    def __init__(self, x0: Any, name: str) -> None:
        self.name = name
        self.leaves, self.form = leaves(x0, "x0", name)
        starts = [as_node(leaf.value) for leaf in self.leaves]
        if not starts:
            raise GraphError(f"{name} has nothing to solve for: x0 is {x0!r:.60}")
        self.starts = [astype(x, "float64") if x.dtype.kind in "biu" else x for x in starts]
        self.dtype = self.starts[0].dtype
        for x, leaf in zip(self.starts, self.leaves, strict=True):
            if x.dtype.kind != "f" or x.dtype != self.dtype:
                raise DtypeError(
                    f"{name}: {leaf.path} is {describe(x)}, and what is solved for is of one real "
                    f"float dtype, as sg.astype(x, {self.dtype.name!r}){x.origin.place()}"
                )
        self.states = [
            placeholder(inner_name(f"x{i}"), x.shape, x.dtype) for i, x in enumerate(self.starts)
        ]

    def called(self, call: str, f: Callable[..., Any], *more: Node) -> Any:
        """The result of a function of the unknown, which is called so, and of more nodes."""
        require_function(self.name, f, call)
        with traced(self.name), calling(self.name, call, **{call[2]: self.states}):
            return f(self.form(self.states), *more)

    def parts(self, vector: Node, axes: tuple[Size, ...] = ()) -> list[Node]:
        """The leaves that lie in a vector, or in the last axis of an array with axes in front."""
        found, first = [], 0
        for x in self.states:
            end: Size = first + x.size
            part = vector if len(self.states) == 1 else vector[..., first:end]
            found.append(reshape(part, (*axes, *x.shape)))
            first = end  # type: ignore[assignment]
        return found

    def vector_of(self, parts: Sequence[Node]) -> Node:
        """The vector in which leaves lie."""
        flat = [reshape(x, (x.size,)) for x in parts]
        return flat[0] if len(flat) == 1 else concat(flat)

    def closed(self, outputs: Sequence[Node], *more: Node) -> Equations:
        """Equations made of the unknown, of `more` inputs, and of the nodes around them."""
        return Equations(self, outputs, more)

    def tolerance(self, tol: float | None) -> float:
        """The tolerance that was given, or the default for the dtype: eps to the 2/3."""
        return float(np.finfo(self.dtype).eps) ** (2 / 3) if tol is None else float(tol)


class Equations:
    """Nodes made of an unknown and of others, `outer`, which a solver takes as they are."""

    def __init__(self, unknown: Unknown, outputs: Sequence[Node], more: Sequence[Node]) -> None:
        self.unknown = unknown
        self.graph, self.outer = closed(unknown.name, outputs, [*unknown.states, *more])
        self.frozen = [stop_gradient(x) for x in self.outer]

    def at(self, vector: Node) -> list[Node]:
        """The nodes at a vector, through which no derivative flows to what is outside."""
        return self.at_values(vector, self.frozen)

    def at_values(self, vector: Node, outer: Sequence[Node]) -> list[Node]:
        """The nodes at a vector and at values of the more inputs and of what is outside."""
        given = (*self.unknown.parts(vector), *outer)
        return substituted(self.graph.outputs, dict(zip(self.graph.inputs, given, strict=True)))

    def solved(self, x: Node, residual: Callable[[Node, list[Node]], Node]) -> Any:
        """The solution x in its form, differentiated as a zero of a residual.

        That is made of a vector and of the nodes at it.
        """
        z = placeholder("z", x.shape, x.dtype)
        own = [placeholder(f"k{i}", k.shape, k.dtype) for i, k in enumerate(self.outer)]
        graph = Graph([residual(z, self.at_values(z, own))], [z, *own])
        found = solution_of(stop_gradient(x), graph, self.outer, named_sizes(graph.nodes))
        return self.unknown.form(self.unknown.parts(found))


def like(unknown: Unknown, found: Any) -> list[Node]:
    """The nodes that a function gave, which are as the unknown."""
    form = unknown.form(unknown.states)
    given = [leaf.value for leaf in aligned(found, form, "f(x)", GraphError)]
    made = []
    for value, x in zip(given, unknown.states, strict=True):
        if isinstance(value, (list, tuple, dict)):
            raise GraphError(f"{unknown.name}: one array of x becomes {value!r:.60}")
        y = as_node(value)
        y = astype(y, x.dtype) if not y.inputs and not y.ndim else y
        if y.type != x.type:
            raise ShapeError(
                f"{unknown.name}: x is {x.type!r}, and f(x) is {y.type!r}; it gives as many "
                f"numbers of the same dtype{y.origin.place()}"
            )
        made.append(y)
    return made

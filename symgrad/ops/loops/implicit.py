"""A solution of equations, by whatever means it was found: its derivatives are of the equations."""

from __future__ import annotations

from typing import Any, Literal

from symgrad.ir.dims import Dim
from symgrad.ir.errors import GraphError, ShapeError
from symgrad.ir.graph import Graph
from symgrad.ir.late import SLOTS
from symgrad.ir.node import Node
from symgrad.ir.types import TensorType
from symgrad.ops.declare import op
from symgrad.ops.loops.loop import Sizes, body_types

Levels = tuple[tuple[int | Dim, tuple[bool, ...]], ...]


def _infer(
    *types: TensorType,
    residual: Graph,
    levels: tuple[tuple[int | Dim, tuple[bool, ...]], ...],
    sizes: tuple[tuple[str, int | Dim], ...],
    method: Literal["", "cg", "bicgstab"] = "",
    tol: float = 0.0,
    most: int = 0,
) -> TensorType:
    given, made = body_types(residual, sizes)
    alike = 0 < len(made) <= (2 if method else 1) and all(given[:1] == [t] for t in made)
    if not alike or made[0].ndim != 1 or made[0].dtype.kind != "f":
        raise GraphError(f"the residual of a vector is a vector like it, not {made} of {given[:1]}")
    for size, flags in reversed(levels):
        if len(flags) != len(given) or not flags[0]:
            raise GraphError(f"a level tells of {len(given)} operands, the first one a batch")
        given = [
            t.with_shape((size, *t.shape)) if flag else t
            for t, flag in zip(given, flags, strict=True)
        ]
    if list(types) != given:
        raise ShapeError(f"the residual takes {given}, not {list(types)}")
    return types[0]


@op(
    infer=_infer,
    kernel=lambda x, *fixed, **attrs: x,
    vjp=lambda g, y, *inputs, active, **attrs: SLOTS.loops("implicit").vjp(g, y, active),
    jvp=lambda t, y, *inputs, active, **attrs: SLOTS.loops("implicit").jvp(t, y),
    locked=lambda lock, y, *inputs, **attrs: SLOTS.loops("implicit").locked(lock, y),
    batch=lambda inputs, flags, node, **attrs: SLOTS.loops("implicit").batch(inputs, flags, node),
    holomorphic=False,
    by_activity=True,
    identity=True,
    graphs=("residual",),
    public=False,
)
def implicit(
    x: Node,
    *fixed: Node,
    residual: Graph,
    levels: Levels,
    sizes: Sizes,
    method: Literal["", "cg", "bicgstab"] = "",
    tol: float = 0.0,
    most: int = 0,
) -> Node:
    """The vector x, a zero of the residual of it and of what is fixed, differentiated as that.

    The systems of its derivatives are solved by an iterative method, with its limits, or, if that
    has no name, by a factor of the Jacobian. A second output of the residual's graph is a
    preconditioner of x: a linear function of it, as is the Jacobian, that is about its inverse.

    On a batch, `levels` has for each of its axes, the outermost first, its size and which of the
    operands have it.
    """
    ...


def solution_of(
    x: Any, residual: Graph, fixed: list[Node], sizes: Sizes, how: Any = ("", 0.0, 0)
) -> Node:
    """A zero x of a residual, which is given what is fixed; no derivative goes through x itself."""
    method, tol, most = how
    attrs = {"method": method, "tol": tol, "most": most} if method else {}
    return implicit(x, *fixed, residual=residual, levels=(), sizes=sizes, **attrs)

"""Derivatives of the solution of a differential equation, by differential equations.

    dy/dt = f(y, t, k),    da/dt = -a df/dy,    dq/dt = -a df/dk

The cotangent a of y and the cotangent q of k are solved for back in time (Pontryagin 1962), the
tangent of y forward. They are solutions by the adjoint themselves, so that there are derivatives of
every order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symgrad.autodiff.custom.function import Function
from symgrad.autodiff.transforms import jvp, vjp, vmap
from symgrad.ir.dims import Size
from symgrad.ir.errors import DtypeError
from symgrad.ir.node import Node, describe
from symgrad.ops.leaves import zeros
from symgrad.ops.loops.scan import scan
from symgrad.ops.reduce import sum
from symgrad.ops.shape import astype, concat, reshape, stack
from symgrad.solve.dormand_prince import Field, solution


class Adjoint(Function):
    """The solution of a field's equation, differentiated as that, not as the steps to it."""

    @staticmethod
    def forward(ctx: Any, field: Field, first: Node, times: Node, *outer: Node) -> Node:
        """The values of y at all times."""
        for k in outer:
            if k.dtype.kind == "c":
                raise DtypeError(
                    f"the adjoint of odeint is of real numbers, and f reads {describe(k)}; take "
                    f"its real and its imaginary part, or gradient='steps'{k.origin.place()}"
                )
        ys = solution(field, first, times, *outer)
        ctx.field, ctx.outer = field, outer
        ctx.save_for_backward(times, ys)
        return ys

    @staticmethod
    def backward(ctx: Any, g: Node) -> tuple[Node | None, ...]:
        """The cotangents of y0, of the times and of what f reads, from those of the values."""
        field, outer = ctx.field, ctx.outer
        times, ys = ctx.saved_tensors
        learned = [k for k in outer if k.dtype.kind == "f"]
        size = ys.shape[1]

        def slope(z: Node, t: Node, outer: Sequence[Node]) -> Node:
            y, a = z[:size], z[size : 2 * size]
            wrt = [y, *(k for k in outer if k.dtype.kind == "f")]
            dy = field.slope(y, t, outer)
            back = vjp([dy], wrt, [-a], disconnected="zero")
            return concat([dy, *(_flat(b, z) for b in back)])

        whole = zeros(2 * size + added(learned), dtype=ys.dtype)
        derived = field.derived(slope, whole, *outer)

        def interval(carry: Any, part: Any) -> Any:
            a, q = carry
            y, flow, last, before = part
            begin = concat([y, a + flow, q])
            end = Adjoint.apply(derived, begin, stack([last, before]), *outer)[1]
            slopes = field.slope(y, last, outer)
            return (end[size : 2 * size], end[2 * size :]), sum(flow * slopes)

        begin = whole[size : 2 * size], whole[2 * size :]
        parts = ys[1:], g[1:], times[1:], times[:-1]
        (a, q), moved = scan(interval, begin, parts, reverse=True)
        start = -sum(a * field.slope(ys[0], times[0], outer))
        found, at = [], 0
        for k in learned:
            found.append(astype(reshape(q[at : at + k.size], k.shape), k.dtype))
            at = at + k.size
        grads = iter(found)
        by_outer = [next(grads) if k.dtype.kind == "f" else None for k in outer]
        return (None, a + g[0], concat([start[None], moved]), *by_outer)

    @staticmethod
    def jvp(ctx: Any, _: None, first: Node, times: Node, *outer: Node | None) -> Node:
        """The tangent of the values, solved for together with them."""
        field, knots = ctx.field, ctx.saved_tensors[0]
        ys = ctx.saved_tensors[1]
        size, count = ys.shape[1], len(ctx.outer)
        pairs = [(i, t) for i, t in enumerate(outer) if t is not None]

        def slope(z: Node, t: Node, given: Sequence[Node]) -> Node:
            own = given[:count]
            y, s = z[:size], z[size:]
            dy = field.slope(y, t, own)
            wrt = [y, *(own[i] for i, _ in pairs)]
            (moved,) = jvp([dy], wrt, [s, *given[count:]], disconnected="zero")
            return concat([dy, moved])

        moved = first - field.slope(ys[0], knots[0], ctx.outer) * times[0]
        begin, given = concat([ys[0], moved]), (*ctx.outer, *(t for _, t in pairs))
        whole = Adjoint.apply(field.derived(slope, begin, *given), begin, knots, *given)
        slopes: Node = vmap(lambda y, t: field.slope(y, t, ctx.outer))(ys, knots)
        found: Node = whole[:, size:] + slopes * times[:, None]
        return found


def added(nodes: Sequence[Node]) -> Size:
    """How many numbers there are in nodes."""
    total: Size = 0
    for k in nodes:
        total = total + k.size
    return total


def _flat(x: Node, like: Node) -> Node:
    return astype(reshape(x, (x.size,)), like.dtype)

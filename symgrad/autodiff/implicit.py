"""The implicit function theorem: derivatives of a solution x of f(x, k) = 0 by k.

    dx = -(df/dx)^-1 (df/dk) dk

The right side is made of the solution itself, so that it can be derived again, to every order.
On a batch it is done row by row, for all rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symgrad.autodiff.batching import batched
from symgrad.autodiff.jacobians import jacobian
from symgrad.autodiff.krylov import solved
from symgrad.autodiff.locking import Lock, refuse_kinks
from symgrad.autodiff.reverse import is_differentiable
from symgrad.autodiff.transforms import jvp as pushed
from symgrad.autodiff.transforms import vjp as pulled
from symgrad.ir.node import Node
from symgrad.ir.op import Cotangent
from symgrad.ops.batch import batch_size
from symgrad.ops.elementwise import negative
from symgrad.ops.leaves import placeholder
from symgrad.ops.linalg.systems import solve
from symgrad.ops.loops.implicit import implicit
from symgrad.ops.loops.krylov import Iteration
from symgrad.ops.loops.loop import substituted
from symgrad.ops.reduce import sum
from symgrad.ops.shape import broadcast_to, matrix_transpose

_Rule = Callable[[Node, Sequence[Cotangent]], list[Cotangent]]


def vjp(flow: Node, y: Node, active: Sequence[bool]) -> tuple[Cotangent, ...]:
    """A cotangent for each operand of a solution, from that of the solution."""

    def rule(one: Node, flows: Sequence[Cotangent]) -> list[Cotangent]:
        (x, *fixed), (f, *_) = one.attr("residual").inputs, one.attr("residual").outputs
        g = placeholder("g", x.shape, x.dtype)
        wrt = [k for k, on in zip(fixed, active[1:], strict=True) if on and is_differentiable(k)]
        back = negative(_system(one, g, transposed=True))
        found = pulled([f], wrt, [back], disconnected="zero")
        made = dict(zip(wrt, _at(one, found, {g: flows[0]}), strict=True))
        return [None, *(made.get(k) for k in fixed)]

    return tuple(_by_rows(y, [flow], rule, of_operands=False))


def jvp(tangents: Sequence[Cotangent], y: Node) -> Cotangent:
    """The tangent of a solution, from those of its operands."""

    def rule(one: Node, flows: Sequence[Cotangent]) -> list[Cotangent]:
        fixed, f = one.attr("residual").inputs[1:], one.attr("residual").outputs[0]
        given = {k: t for k, t in zip(fixed, flows[1:], strict=True) if t is not None}
        seeds = {k: placeholder("t", k.shape, k.dtype) for k in given}
        tangents = [*seeds.values()]
        (moved,) = pushed([f], [*given], tangents, disconnected="zero")
        made = [negative(_system(one, moved, transposed=False))]
        return [*_at(one, made, {seeds[k]: t for k, t in given.items()})]

    if all(t is None for t in tangents[1:]):
        return None
    return _by_rows(y, tangents, rule, of_operands=True)[0]


def _system(one: Node, right: Node, transposed: bool) -> Node:
    """The solution of a system of the Jacobian of the residual, or of its transpose."""
    (x, *_), (f, *rest) = one.attr("residual").inputs, one.attr("residual").outputs
    if one.attr("method"):
        how = Iteration(one.attr("method"), one.attr("tol"), one.attr("most"))
        by = pulled if transposed else pushed

        def slope(f: Node) -> Callable[[Node], Node]:
            return lambda v: by([f], [x], [v], disconnected="zero")[0]

        return solved(slope(f), right, how, *map(slope, rest))
    slopes = jacobian(f, x, disconnected="zero")
    return solve(matrix_transpose(slopes) if transposed else slopes, right)


def locked(lock: Lock, y: Node) -> list[Node]:
    """Refused: on a side, the solution of equations with kinks solves other equations."""
    refuse_kinks(y, "the equations of a solution (root, fixed_point, minimizer)")


def _at(one: Node, made: Sequence[Node], flows: dict[Node, Cotangent]) -> list[Node]:
    """Nodes made of the residual's inputs, at a solution and its operands."""
    actual = dict(zip(one.attr("residual").inputs, (one, *one.inputs[1:]), strict=True))
    return substituted(made, {**actual, **{s: f for s, f in flows.items() if f is not None}})


def _by_rows(
    y: Node, flows: Sequence[Cotangent], rule: _Rule, of_operands: bool
) -> list[Cotangent]:
    """The results of a rule for one row, for all; flows are of the operands, or of the solution."""
    levels = y.attr("levels")
    if not levels:
        return rule(y, flows)
    (size, flags), *rest = levels
    alone = [
        placeholder(f"x{i}", x.shape[1:] if flag else x.shape, x.dtype)
        for i, (x, flag) in enumerate(zip(y.inputs, flags, strict=True))
    ]
    attrs = {**dict(y.attrs), "levels": tuple(rest)}
    one = implicit(*alone, **attrs)
    seeds = [
        None if f is None else placeholder(f"f{i}", f.shape[1:] if flag else f.shape, f.dtype)
        for i, (f, flag) in enumerate(zip(flows, flags if of_operands else [True], strict=True))
    ]
    found = _by_rows(one, seeds, rule, of_operands)
    pairs = [*zip(alone, y.inputs, flags, strict=True), (one, y, True)]
    pairs += [
        (s, f, flag)
        for s, f, flag in zip(seeds, flows, flags if of_operands else [True], strict=True)
        if s is not None and f is not None
    ]
    made = [n for n in found if n is not None]
    if not made:
        return found
    plain = substituted(made, {s: x for s, x, flag in pairs if not flag})
    rows = iter(batched(plain, {s: x for s, x, flag in pairs if flag}, size))
    whole = [None if n is None else next(rows) for n in found]
    if of_operands:
        return whole
    return [
        n if n is None or flag else sum(n, axis=0) for n, flag in zip(whole, flags, strict=True)
    ]


def batch(inputs: Sequence[Node], flags: Sequence[bool], y: Node) -> Node:
    """The solutions of a whole batch."""
    size = batch_size(inputs, flags)
    x = inputs[0] if flags[0] else broadcast_to(inputs[0], (size, *inputs[0].shape))
    levels = ((size, (True, *flags[1:])), *y.attr("levels"))
    return implicit(x, *inputs[1:], **{**dict(y.attrs), "levels": levels})

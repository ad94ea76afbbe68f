"""Ops whose result is their operand: what they change is how gradients flow, or when it is made.

Nothing of them is left when a program runs. `custom` is what a user's own differentiable function
leaves in a graph: its results, with a rule that says how they are differentiated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from symgrad.ir.errors import GradientError, GraphError, ShapeError
from symgrad.ir.late import SLOTS
from symgrad.ir.node import Node, apply, constant_value, describe
from symgrad.ir.op import Cotangent, case
from symgrad.ir.operators import call
from symgrad.ir.origin import current_origin
from symgrad.ir.types import TensorType, Type, broadcast_shapes
from symgrad.ops.batch import aligned, in_front, of_all, repeated
from symgrad.ops.declare import NodeLike, composite, op, require


def _same_type(t: TensorType) -> TensorType:
    return t


def _itself(x: Any) -> Any:
    return x


@op(
    infer=_same_type,
    kernel=_itself,
    pullback=lambda g, y, x: g,
    pushforward=lambda t, y, x: t,
    batch=in_front,
    identity=True,
    cases=(case((3, 4)), case(())),
    public=False,
)
def optimization_barrier(x: NodeLike, /) -> Node:
    """x itself, seen by no rule as what x was made by: so that x stays in the graph."""
    ...


@op(
    infer=_same_type,
    kernel=_itself,
    batch=in_front,
    identity=True,
    piecewise_constant=True,
    preserves_zero=True,
    idempotent=True,
    cases=(case((3, 4)), case(())),
)
def stop_gradient(x: NodeLike, /) -> Node:
    """x, through which no gradient flows: its derivative is taken to be 0."""
    ...


# ---- scaling and clipping what flows --------------------------------------------------------


def _first_of(t: TensorType, *others: TensorType) -> TensorType:
    if broadcast_shapes(t.shape, *(o.shape for o in others)) != t.shape:
        shapes = " and ".join(str(o.shape) for o in others)
        raise ShapeError(f"{shapes} must broadcast to the shape of what flows, {t.shape}")
    return t


def _batch_first(inputs: Sequence[Node], flags: Sequence[bool], node: Node) -> Node:
    many = of_all(inputs, flags)
    return apply(node.op, aligned(node.inputs, many, (True,) * len(many)))


@op(
    infer=_first_of,
    kernel=lambda x, factor: x,
    pullback=lambda g, y, x, factor: g * factor,
    pushforward=lambda t, y, x, factor: t * factor,
    batch=_batch_first,
    identity=True,
    cases=(case((3, 4), ()), case((2, 3), (3,))),
)
def scale_gradient(x: NodeLike, factor: NodeLike, /) -> Node:
    """x, whose gradient is multiplied by `factor`; -1 reverses it.

    >>> x = placeholder("x", 3)
    >>> grad(sum(scale_gradient(x, 0.5)), x).type
    float64[3]

    `factor` is a number or a node that broadcasts to the shape of x, else `ShapeError`.
    """
    ...


def _clip_infer(t: TensorType, low: TensorType, high: TensorType) -> TensorType:
    require("biuf", t, low, high)
    return _first_of(t, low, high)


def _clip_pullback(g: Node, y: Node, x: Node, low: Node, high: Node) -> Node:
    return call("clip", g, *(None if _is_infinite(b) else b for b in (low, high)))


def _is_infinite(bound: Node) -> bool:
    value = constant_value(bound)
    return value is not None and bool(np.isinf(value).all())


def _clip_jvp(t: tuple[Cotangent, ...], y: Node, *inputs: Node) -> Cotangent:
    raise GradientError(
        f"clip_gradient clips what flows back, and has no forward mode: {describe(y)}; "
        "use grad or vjp, or leave it out of what jvp, hvp or hessian is taken of"
    )


@op(
    infer=_clip_infer,
    kernel=lambda x, low, high: x,
    pullback=_clip_pullback,
    jvp=_clip_jvp,
    batch=_batch_first,
    identity=True,
    cases=(case((3, 4), (), ()), case((2, 3), (3,), (3,))),
)
def clip_gradient_p(x: NodeLike, low: NodeLike, high: NodeLike, /) -> Node:
    """x, whose gradient is kept between two bounds."""
    ...


@composite()
def clip_gradient(x: NodeLike, /, low: NodeLike = None, high: NodeLike = None) -> Node:
    """x, whose gradient is at least `low` and at most `high`, element by element; None is no bound.

    The bounds are numbers or nodes that broadcast to the shape of x, else `ShapeError`. Forward
    mode is refused with a `GradientError`.

    >>> x = placeholder("x", 3)
    >>> grad(sum(clip_gradient(x, -1, 1)), x).type
    float64[3]
    """
    bounds = (-np.inf if low is None else low, np.inf if high is None else high)
    numbers = [b for b in bounds if isinstance(b, (int, float))]
    if len(numbers) == 2 and not numbers[0] <= numbers[1]:
        raise GradientError(f"low is at most high, and {low} is more than {high}")
    return clip_gradient_p(x, *(float(b) if isinstance(b, (int, float)) else b for b in bounds))


# ---- updates --------------------------------------------------------------------------------


def _update_infer(
    t: TensorType,
    variable: TensorType,
    following: TensorType,
    *others: TensorType,
    call: int,
    batch: int,
) -> TensorType:
    if call < 0 or batch < 0:
        raise GraphError(f"calls and axes are counted from 0, not {min(call, batch)}")
    shape = (*following.shape[:batch], *variable.shape)
    if following != variable.with_shape(shape) or len(shape) != batch + len(variable.shape):
        raise ShapeError(f"the next value of a variable {variable!r} is no {following!r}")
    return t


def _batch_update(
    inputs: Sequence[Node], flags: Sequence[bool], node: Node, call: int, batch: int
) -> Node:
    value = of_all(inputs, flags)[0]
    return apply(node.op, (value, *inputs[1:]), {"call": call, "batch": batch + flags[2]})


@op(
    infer=_update_infer,
    kernel=lambda x, *others, **attrs: x,
    pullback=lambda g, y, x, *others, **attrs: g,
    pushforward=lambda t, y, x, *others, **attrs: t,
    batch=_batch_update,
    identity=True,
    update=True,
    public=False,
)
def with_update(
    x: Node, variable: Node, following: Node, /, *others: Node, call: int, batch: int = 0
) -> Node:
    """x, which carries the next value of a variable: programs that compute x can update it.

    `variable` is a barrier that reads it for one call; what carries that of the same barrier is of
    the same call. `following` is made of it, of x, and of the others. Of several calls in one graph
    one starts from what that with the `call` number before it gives. Within `vmap` each element of
    a batch has its own: then the next value has `batch` axes more than the variable.
    """
    ...


# ---- a user's own functions -----------------------------------------------------------------


@runtime_checkable
class CustomRule(Protocol):
    """How the results of a custom function are differentiated, and work on a batch.

    `y` is the custom node: its inputs are the results, then what the rule wants to be given.
    """

    def vjp(self, flows: tuple[Cotangent, ...], y: Node) -> Sequence[Cotangent]:
        """A cotangent for each input of `y` behind the results, from those of the results."""
        ...

    def jvp(self, tangents: tuple[Cotangent, ...], y: Node) -> Sequence[Cotangent]:
        """A tangent for each result, from those of all the inputs of `y`."""
        ...

    def batch(self, inputs: Sequence[Node], flags: Sequence[bool], y: Node) -> Node:
        """The custom node for operands of which those flagged have a leading batch axis."""
        ...


def _first(types: Sequence[TensorType], count: int) -> Type:
    """The types of the first operands, which are the results."""
    if not 1 <= count <= len(types):
        raise GraphError(f"{len(types)} operands have no {count} results among them")
    return tuple(types[:count]) if count > 1 else types[0]


def _custom_infer(*types: TensorType, rule: CustomRule, count: int) -> Type:
    return _first(types, count)


def _custom_kernel(*arrays: Any, count: int, rule: CustomRule | None = None) -> Any:
    return arrays[:count] if count > 1 else arrays[0]


def _custom_vjp(
    g: Any, y: Node, *inputs: Node, rule: CustomRule, count: int
) -> tuple[Cotangent, ...]:
    flows = g if count > 1 else (g,)
    return *(None,) * count, *rule.vjp(flows, y)


def _custom_jvp(
    t: tuple[Cotangent, ...], y: Node, *inputs: Node, rule: CustomRule, count: int
) -> Any:
    found = tuple(rule.jvp(t, y))
    return found if count > 1 else found[0]


@op(
    infer=_custom_infer,
    kernel=_custom_kernel,
    vjp=_custom_vjp,
    jvp=_custom_jvp,
    batch=lambda inputs, flags, node, rule, count: rule.batch(inputs, flags, node),
    identity=True,
    holomorphic=False,
)
def custom_p(*operands: Node, rule: CustomRule, count: int) -> Node:
    """The first `count` operands, differentiated by a rule of a user's own."""
    ...


def custom(results: Sequence[Node], inputs: Sequence[Node], rule: CustomRule) -> Node:
    """A custom node of these results; `inputs` are what its rule is given with them."""
    operands = (*results, *inputs)
    attrs = (("count", len(results)), ("rule", rule))
    type_ = _custom_infer(*(x.tensor for x in operands), rule=rule, count=len(results))
    return Node(custom_p.op, operands, attrs, type_, current_origin())


def results_of(node: Node) -> list[Node]:
    """A node itself, or the results of one that has several."""
    return list(node) if isinstance(node.type, tuple) else [node]


# ---- what is computed again for the backward ---------------------------------------------------


def _checkpointed_infer(*types: TensorType, count: int) -> Type:
    return _first(types, count)


def _checkpointed_vjp(
    g: Any, y: Node, *inputs: Node, count: int, active: tuple[bool, ...]
) -> tuple[Cotangent, ...]:
    flows = g if count > 1 else (g,)
    return *(None,) * count, *SLOTS.loops("custom.checkpoint").vjp(flows, y, active)


def _checkpointed_jvp(
    t: tuple[Cotangent, ...], y: Node, *inputs: Node, count: int, active: tuple[bool, ...]
) -> Any:
    found = tuple(SLOTS.loops("custom.checkpoint").jvp(t, y))
    return found if count > 1 else found[0]


@op(
    infer=_checkpointed_infer,
    kernel=_custom_kernel,
    vjp=_checkpointed_vjp,
    jvp=_checkpointed_jvp,
    batch=lambda inputs, flags, node, count: SLOTS.loops("custom.checkpoint").batch(
        inputs, flags, node
    ),
    identity=True,
    holomorphic=False,
    by_activity=True,
    public=False,
)
def checkpointed(*operands: Node, count: int) -> Node:
    """The first `count` operands; what they are made of, from the others on, is computed again."""
    ...


def checkpointed_of(results: Sequence[Node], inputs: Sequence[Node]) -> list[Node]:
    """The results of such a node, which are made of the inputs."""
    return results_of(checkpointed(*results, *inputs, count=len(results)))


@op(
    infer=lambda t, *after: t,
    kernel=lambda x, *after: x,
    pullback=lambda g, y, x, *after: g,
    pushforward=lambda t, y, x, *after: t,
    batch=repeated,
    identity=True,
    barrier=True,
    cases=(case((3, 4), ()),),
    public=False,
)
def barrier(x: Node, /, *after: Node) -> Node:
    """The first operand, which is to be had once all the others have been computed.

    What is computed of it is computed late, and not found to be the same as what was computed of
    the operand itself.
    """
    ...

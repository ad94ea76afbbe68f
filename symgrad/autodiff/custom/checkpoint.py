"""Checkpoints: computing again in the backward what the forward need not keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

from symgrad.autodiff.custom.traced import replaced
from symgrad.autodiff.forward import push_forward
from symgrad.autodiff.reverse import pull_back
from symgrad.ir.errors import UnsupportedError
from symgrad.ir.node import Node, as_node, constant_value
from symgrad.ir.op import Cotangent
from symgrad.ir.origin import Maker
from symgrad.ir.walk import topological
from symgrad.ops.batch import batch_size
from symgrad.ops.identity import barrier, checkpointed, checkpointed_of, optimization_barrier
from symgrad.ops.shape import broadcast_to


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of nodes, of which the backward keeps nothing but what goes in.

    What lies between is computed again when its gradient is: a second forward for less memory. The
    arguments that are nodes, and whatever else the function reaches, are what goes in. It returns
    a node, or a tuple or list of nodes. Raises `UnsupportedError` if no argument is a node.

    >>> x = placeholder("x", 3)
    >>> grad(sum(checkpoint(lambda a: tanh(tanh(a)))(x)), x).type
    float64[3]
    """

    @wraps(function)
    def checkpointed(*args: Any, **options: Any) -> Any:
        inner: dict[Node, Node] = {}

        def held(value: Any) -> Any:
            return (
                inner.setdefault(value, optimization_barrier(value))
                if isinstance(value, Node)
                else value
            )

        found = function(*map(held, args), **{k: held(v) for k, v in options.items()})
        if not inner:
            raise UnsupportedError(
                "a checkpoint needs to know where its function begins: give the nodes that it "
                "works on as arguments, checkpoint(f)(x)"
            )
        several = isinstance(found, (tuple, list))
        results = [as_node(y) for y in (found if several else [found])]
        around = _around(results, inner.values())
        # What went in stays as it is: what it was made of may read what is captured, too.
        becomes = {held: held for held in inner.values()} | around
        inputs = [*inner.values(), *around.values()]
        made = checkpointed_of(replaced(results, becomes), inputs)
        return type(found)(made) if several else made[0]

    return checkpointed


def _around(results: Sequence[Node], begins: Iterable[Node]) -> dict[Node, Node]:
    """The captured nodes that the results are made of besides, each with its barrier."""
    inside = set(begins)
    order = topological(results, known=set(inside))
    for node in order:
        if any(x in inside for x in node.inputs):
            inside.add(node)
    # What an update that is inside makes of the present value is of this call, and inside too.
    of_present = {n.inputs[1] for n in order if n in inside and n.op.update}
    for node in order:
        if any(x in of_present for x in node.inputs):
            of_present.add(node)
            inside.add(node)
    captured = [y for y in results if y not in inside]
    captured += [x for n in order if n in inside for x in n.inputs if x not in inside]
    return {
        x: optimization_barrier(x) for x in dict.fromkeys(captured) if constant_value(x) is None
    }


def _is_computed(held: Node) -> bool:
    """Whether what is held was computed, so that a cotangent flows on from it."""
    return any(x.inputs for x in held.inputs)


# ---- the op of its results -------------------------------------------------------------------
#
# Its inputs are held, so that no rule sees past them: what is between them and the results is what
# was written in between.


def vjp(flows: tuple[Cotangent, ...], y: Node, active: Sequence[bool]) -> Sequence[Cotangent]:
    """Reverse mode through a copy, which waits for the cotangents."""
    count = y.attr("count")
    inputs = y.inputs[count:]
    pairs = [(r, f) for r, f in zip(y.inputs[:count], flows, strict=True) if f is not None]
    seeds = [f for _, f in pairs]
    again = [barrier(x, *seeds) for x in inputs]
    becomes = dict(zip(inputs, again, strict=True))
    results = replaced([r for r, _ in pairs], becomes, maker=Maker("vjp", "checkpoint"))
    wanted = [a for a, active in zip(again, active[count:], strict=True) if active]
    found = pull_back(results, seeds, wanted)
    # What flows on waits for what ends here, such as gradients of weights, so that the copy is done
    # with before the next one is begun.
    return [
        barrier(flow, *(f for f in found.values() if f is not flow))
        if (flow := found.get(a)) is not None and _is_computed(x)
        else flow
        for a, x in zip(again, inputs, strict=True)
    ]


def jvp(tangents: tuple[Cotangent, ...], y: Node) -> Sequence[Cotangent]:
    """Forward mode keeps nothing, and needs no copy."""
    count = y.attr("count")
    results, inputs = y.inputs[:count], y.inputs[count:]
    found = push_forward(results, inputs, tangents[count:])
    return [found.get(r) for r in results]


def batch(inputs: Sequence[Node], flags: Sequence[bool], y: Node) -> Node:
    """The results on a batch, which are made of the inputs on one."""
    count, size = y.attr("count"), batch_size(inputs, flags)
    results = [
        r if flag else broadcast_to(r, (size, *r.shape))
        for r, flag in zip(inputs[:count], flags, strict=False)
    ]
    return checkpointed(*results, *inputs[count:], count=count)

"""Reverse mode: a walk over the reversed order that builds nodes and evaluates nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

from symgrad.ir.errors import GradientError
from symgrad.ir.node import Node, as_node, describe
from symgrad.ir.origin import built_as
from symgrad.ir.walk import topological
from symgrad.ops.leaves import ones_like, zeros_like
from symgrad.ops.shape import astype, sum_to

Disconnected = Literal["raise", "zero"]


@overload
def grad(loss: Node, wrt: Node, *, disconnected: Disconnected = ...) -> Node: ...
@overload
def grad(
    loss: Node, wrt: Sequence[Node], *, disconnected: Disconnected = ...
) -> tuple[Node, ...]: ...
def grad(
    loss: Node, wrt: Node | Sequence[Node], *, disconnected: Disconnected = "raise"
) -> Node | tuple[Node, ...]:
    """The gradient of a scalar loss with respect to one node or several, as nodes.

    Each has the shape and dtype of its `wrt`, and can be differentiated again. Raises
    `GradientError` for a loss that is no scalar or no float, and for a `wrt` that is no float or
    on which the loss does not depend; `disconnected="zero"` gives zeros for the latter.

    >>> x = placeholder("x", 3)
    >>> grad(sum(x * x), x).type
    float64[3]
    """
    _check_loss(loss)
    return vjp(loss, wrt, ones_like(loss), disconnected=disconnected)


@overload
def value_and_grad(
    loss: Node, wrt: Node, *, disconnected: Disconnected = ...
) -> tuple[Node, Node]: ...
@overload
def value_and_grad(
    loss: Node, wrt: Sequence[Node], *, disconnected: Disconnected = ...
) -> tuple[Node, tuple[Node, ...]]: ...
def value_and_grad(
    loss: Node, wrt: Node | Sequence[Node], *, disconnected: Disconnected = "raise"
) -> tuple[Node, Any]:
    """The loss itself and its gradient; see `grad`."""
    return loss, grad(loss, wrt, disconnected=disconnected)


@overload
def vjp(
    outputs: Node | Sequence[Node], wrt: Node, cotangents: Any, *, disconnected: Disconnected = ...
) -> Node: ...
@overload
def vjp(
    outputs: Node | Sequence[Node], wrt: Sequence[Node], cotangents: Any,
    *, disconnected: Disconnected = ...,
) -> tuple[Node, ...]: ...
def vjp(
    outputs: Node | Sequence[Node],
    wrt: Node | Sequence[Node],
    cotangents: Any,
    *,
    disconnected: Disconnected = "raise",
) -> Node | tuple[Node, ...]:
    """Cotangents of the outputs pulled back to `wrt`: the transposed Jacobian times a vector.

    `cotangents` has the form of `outputs`, and each the shape of its output. Raises as `grad` does.

    >>> x = placeholder("x", 3)
    >>> vjp(x * x, x, ones_like(x)).type
    float64[3]
    """
    if disconnected not in ("raise", "zero"):
        raise GradientError(f"disconnected is 'raise' or 'zero', not {disconnected!r}")
    ys = [outputs] if isinstance(outputs, Node) else list(outputs)
    seeds = [cotangents] if isinstance(outputs, Node) else list(cotangents)
    xs = [wrt] if isinstance(wrt, Node) else list(wrt)
    _check_wrt(xs)
    found = pull_back(ys, [_seed(y, g) for y, g in _pairs(ys, seeds)], xs)
    missing = [x for x in xs if x not in found]
    if missing and disconnected == "raise":
        raise GradientError(_disconnected(ys, missing[0]))
    flows = [found[x] if x in found else zeros_like(x) for x in xs]
    return flows[0] if isinstance(wrt, Node) else tuple(flows)


def pull_back(ys: Sequence[Node], seeds: Sequence[Node], xs: Sequence[Node]) -> dict[Node, Node]:
    """The cotangents of those of `xs` that cotangents of `ys` reach."""
    order = topological(ys)
    depends = _dependents(order, xs)
    flows: dict[Node, Any] = {}
    for y, seed in zip(ys, seeds, strict=True):
        _accumulate(flows, y, seed)
    wanted = set(xs)
    for node in reversed(order):
        if node not in flows or node not in depends or (node in wanted and not node.inputs):
            continue
        if node in wanted and not any(x in depends for x in node.inputs):
            continue
        _step(node, flows, depends)
    return {x: flows[x] for x in xs if x in flows}


def _step(node: Node, flows: dict[Node, Any], depends: set[Node]) -> None:
    """Pass the cotangent of a node on to its inputs."""
    flow = flows[node]
    with built_as(node.origin.then(f"vjp({node.op.name})")):
        if node.op.name == "item":
            _accumulate_item(flows, node, flow)
            return
        if node.op.vjp is None:
            raise GradientError(
                f"{node.op.name} has no gradient: {describe(node)}; "
                "take stop_gradient(...) of it if none is meant to flow"
            )
        found = node.op.vjp(flow, node, *node.inputs, **dict(node.attrs))
        for x, g in zip(node.inputs, found, strict=True):
            if g is not None and x in depends and carries(x):
                _accumulate(flows, x, _fitted(g, x))


def _fitted(g: Node, x: Node) -> Node:
    """A cotangent brought to the type of what it belongs to: summed over what was broadcast."""
    if isinstance(x.type, tuple) or g.type == x.type:
        return g
    return astype(sum_to(g, x.shape), x.dtype)


def _accumulate(flows: dict[Node, Any], x: Node, g: Any) -> None:
    flows[x] = flows[x] + g if x in flows else g


def _accumulate_item(flows: dict[Node, Any], node: Node, flow: Node) -> None:
    """The cotangent of an op with several results is a tuple, None where nothing flows."""
    source = node.inputs[0]
    assert isinstance(source.type, tuple)
    parts = list(flows.get(source, (None,) * len(source.type)))
    index = dict(node.attrs)["index"]
    parts[index] = flow if parts[index] is None else parts[index] + flow
    flows[source] = tuple(parts)


def carries(x: Node) -> bool:
    """Whether a gradient can flow through values of this type: floats only."""
    types = x.type if isinstance(x.type, tuple) else (x.type,)
    return any(t.is_float for t in types)


def _dependents(order: Iterable[Node], xs: Sequence[Node]) -> set[Node]:
    """The nodes that a change of `xs` can reach through floats."""
    depends = set(xs)
    for node in order:
        if node not in depends and carries(node) and any(x in depends for x in node.inputs):
            depends.add(node)
    return depends


def _pairs(ys: list[Any], seeds: list[Any]) -> Iterable[tuple[Node, Any]]:
    if len(ys) != len(seeds):
        raise GradientError(f"{len(ys)} outputs need as many cotangents, not {len(seeds)}")
    for y in ys:
        if not isinstance(y, Node):
            raise GradientError(f"an output is a node, not {type(y).__name__}")
        if not carries(y):
            raise GradientError(f"{describe(y)} is no float, so that nothing flows back from it")
    return zip(ys, seeds, strict=True)


def _seed(y: Node, cotangent: Any) -> Node:
    g = as_node(cotangent)
    if g.shape != y.shape:
        raise GradientError(
            f"the cotangent of {describe(y)} has its shape, {y.shape}, not {g.shape}"
        )
    return astype(g, y.dtype)


def _check_loss(loss: Any) -> None:
    if not isinstance(loss, Node):
        raise GradientError(f"the loss is a node, not {type(loss).__name__}")
    if loss.shape != ():
        raise GradientError(
            f"the loss must be a scalar, and {describe(loss)} is not; write grad(sum(loss), …), "
            "or vjp(loss, …, cotangent) with a cotangent of its shape"
        )
    if not loss.tensor.is_float:
        raise GradientError(
            f"the loss must be a real float, and {describe(loss)} is not; "
            "convert it where it is computed: astype(x, 'float64')"
        )


def _check_wrt(xs: Sequence[Any]) -> None:
    for x in xs:
        if not isinstance(x, Node):
            raise GradientError(
                f"a gradient is taken with respect to nodes, not {type(x).__name__}; "
                "make an array a placeholder or a variable"
            )
        if not carries(x):
            raise GradientError(
                f"{describe(x)} is no real float, and has no gradient; "
                "declare it with dtype 'float32' or 'float64'"
            )


def _disconnected(ys: Sequence[Node], x: Node) -> str:
    """Why no gradient reaches x: the node that cuts the path, or that there is no path."""
    reached = {x}
    cut: Node | None = None
    for node in topological(ys):
        if any(n in reached for n in node.inputs):
            reached.add(node)
            if cut is None and (not carries(node) or node.op.piecewise_constant):
                cut = node
    losses = ", ".join(map(describe, ys))
    mend = "If that is meant, pass disconnected='zero'."
    if not any(y in reached for y in ys):
        return f"the gradient of {losses}: it does not depend on {describe(x)}. {mend}"
    where = f"; {describe(cut)} cuts the path" if cut is not None else ""
    return f"the gradient of {losses}: none flows to {describe(x)}{where}. {mend}"

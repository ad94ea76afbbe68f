"""Derivatives. Nodes in, nodes out; nothing is evaluated.

Before a derivative is taken, the graph is brought to a normal form (`normal.py`), so that one
function has one derivative however it is spelled. The result refers to the values of the graph as
it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, TypeAlias, TypedDict, Unpack, overload

from symgrad.autodiff.batching import batched
from symgrad.autodiff.checks import (
    Disconnected,
    Several,
    check_connected,
    check_loss,
    check_outputs,
    check_wrt,
    seeds_of,
    several,
)
from symgrad.autodiff.forward import push_forward
from symgrad.autodiff.locking import is_sided, lockings, on_each_side, weighted
from symgrad.autodiff.normal import NormalForm, normal_form
from symgrad.autodiff.reverse import pull_back
from symgrad.ir.collector import without_collection
from symgrad.ir.errors import GradientError
from symgrad.ir.kinks import Kinks, Policy
from symgrad.ir.node import Node, as_node
from symgrad.ir.origin import Maker, built_as, current_origin
from symgrad.ops.declare import explaining
from symgrad.ops.leaves import ones_like, placeholder, zeros_like

Nodes: TypeAlias = Any  # a node, or lists, tuples and dicts of nodes


class Options(TypedDict, total=False):
    """The options that all derivatives take; see `grad`."""

    kinks: Policy
    disconnected: Disconnected


@overload
def grad(loss: Node, wrt: Node, **options: Unpack[Options]) -> Node: ...
@overload
def grad(loss: Node, wrt: Nodes, **options: Unpack[Options]) -> Any: ...
@explaining
def grad(
    loss: Node, wrt: Nodes, *, kinks: Policy = None, disconnected: Disconnected = "raise"
) -> Any:
    """The gradient of a scalar loss with respect to one node or several, as nodes.

    `wrt` is a node, or lists, tuples and dicts of nodes, nested as you like, and the answer has the
    same form. Each has the shape and dtype of its `wrt`, and can be differentiated again.

    `kinks` chooses the subgradient where there is no derivative. `"zero"`, the default, takes for
    each op the slope nearest to 0. The others are chosen for the function, however it is spelled:
    `"right"` is the side to which every element of every `wrt` grows, `"left"` to which it
    decreases, `"split"` their mean, a number from 0 (left) to 1 (right) one between. A dict of
    nodes of `wrt` is any direction: each with an array of its shape; a tuple has several, each for
    what those before it leave tied. Along the direction d of a side g · d is the one-sided
    derivative of the loss (`symgrad/autodiff/KINKS.md`). Taken twice, it is the derivative of the
    branches that were taken first.

    By a complex z = a + ib the gradient is dL/da + i dL/db, so that z - lr * g descends. Raises
    `GradientError` for a loss that is no scalar or no real float, and for a `wrt` that is neither
    float nor complex, or on which the loss does not depend; `disconnected="zero"` gives zeros then.

    >>> x = placeholder("x", 3)
    >>> grad(sum(x * x), x).type, grad(sum(x * x), {"x": x})["x"].type
    (float64[3], float64[3])
    """
    check_loss(loss)
    with built_as(current_origin().then(Maker("vjp", "loss"))):
        seed = ones_like(loss)
    return _flows([loss], several(wrt, "wrt"), [seed], kinks, disconnected, sparse=False)


@overload
def value_and_grad(loss: Node, wrt: Node, **options: Unpack[Options]) -> tuple[Node, Node]: ...
@overload
def value_and_grad(loss: Node, wrt: Nodes, **options: Unpack[Options]) -> tuple[Node, Any]: ...
@explaining
def value_and_grad(
    loss: Node, wrt: Nodes, *, kinks: Policy = None, disconnected: Disconnected = "raise"
) -> tuple[Node, Any]:
    """A scalar loss and its gradient, as a pair; arguments and errors are those of `grad`.

    >>> x = placeholder("x", 3)
    >>> loss, gradient = value_and_grad(sum(x * x), x)
    >>> loss.type, gradient.type
    (float64[()], float64[3])
    """
    return loss, grad(loss, wrt, kinks=kinks, disconnected=disconnected)


@overload
def vjp(outputs: Nodes, wrt: Node, cotangents: Any, **options: Unpack[Options]) -> Node: ...
@overload
def vjp(outputs: Nodes, wrt: Nodes, cotangents: Any, **options: Unpack[Options]) -> Any: ...
@explaining
def vjp(
    outputs: Nodes,
    wrt: Nodes,
    cotangents: Any,
    *,
    kinks: Policy = None,
    disconnected: Disconnected = "raise",
) -> Any:
    """Cotangents of the outputs pulled back to `wrt`: the transposed Jacobian times a vector.

    `cotangents` has the form of `outputs`, and each the shape of its output. Complex numbers pair
    by Re(sum(conj(g) * t)). Arguments and errors are those of `grad`.

    >>> x = placeholder("x", 3)
    >>> vjp(x * x, x, ones_like(x)).type
    float64[3]
    """
    ys = several(outputs, "outputs")
    check_outputs(ys.nodes)
    seeds = seeds_of(ys, cotangents, "cotangent")
    return _flows(ys.nodes, several(wrt, "wrt"), seeds, kinks, disconnected, sparse=True)


def _flows(ys: list[Node], xs: Several, *args: Any, **options: Any) -> Any:
    check_wrt(xs.nodes, xs.paths)
    return xs.form(_pulled(ys, xs.nodes, *args, **options))


def _pulled(
    ys: list[Node],
    xs: list[Node],
    seeds: list[Node],
    kinks: Policy,
    disconnected: Disconnected,
    *,
    sparse: bool,
) -> list[Node]:
    policy = Kinks.of(kinks)
    reached: dict[Node, Node] = {}
    with without_collection():
        # What lies inside the graph is held fast in the normal form; the leaves need no such thing.
        # A side is one for all of them.
        groups = [[x for x in xs if not x.inputs], [x for x in xs if x.inputs]]
        if all(groups) and is_sided(ys, policy):
            groups = [xs]
        for group in filter(None, groups):
            parts = [
                (weight, _pulled_once(form, group, seeds, sparse=sparse))
                for weight, form in lockings(normal_form(ys, group), group, policy)
            ]
            for x in group:
                flow = weighted([(weight, found.get(x)) for weight, found in parts])
                if flow is not None:
                    reached[x] = flow
    check_connected([reached.get(x) for x in xs], disconnected, ys, xs)
    return [reached[x] if x in reached else zeros_like(x) for x in xs]


def _pulled_once(
    form: NormalForm, xs: Sequence[Node], seeds: Sequence[Node], *, sparse: bool
) -> dict[Node, Node]:
    flows = pull_back(form.ys, seeds, form.xs, sparse=sparse)
    there = [(x, flows[z]) for x, z in zip(xs, form.xs, strict=True) if z in flows]
    written = form.as_written([g for _, g in there])
    return dict(zip([x for x, _ in there], written, strict=True))


@overload
def jvp(outputs: Node, wrt: Nodes, tangents: Any, **options: Unpack[Options]) -> Node: ...
@overload
def jvp(outputs: Nodes, wrt: Nodes, tangents: Any, **options: Unpack[Options]) -> Any: ...
@explaining
def jvp(
    outputs: Nodes,
    wrt: Nodes,
    tangents: Any,
    *,
    kinks: Policy = None,
    disconnected: Disconnected = "raise",
) -> Any:
    """Tangents of `wrt` pushed forward to the outputs: the Jacobian times a vector.

    `tangents` has the form of `wrt`, and each the shape of its node. Arguments and errors are
    those of `grad`.

    >>> x = placeholder("x", 3)
    >>> jvp(sum(x * x), x, ones_like(x)).type
    float64[()]
    """
    ys, xs = several(outputs, "outputs"), several(wrt, "wrt")
    check_wrt(xs.nodes, xs.paths)
    check_outputs(ys.nodes)
    given = seeds_of(xs, tangents, "tangent")
    return ys.form(pushed_forward(ys.nodes, xs.nodes, given, kinks, disconnected))


def pushed_forward(
    ys: list[Node],
    xs: list[Node],
    tangents: Sequence[Node | None],
    kinks: Policy,
    disconnected: Disconnected,
) -> list[Node]:
    """The tangents of `ys` from those of `xs`, of which None is 0: `jvp`, of lists."""
    policy = Kinks.of(kinks)
    with without_collection():
        parts = []
        for weight, form in lockings(normal_form(ys, xs), xs, policy):
            found = push_forward(form.ys, form.xs, tangents)
            ends = [i for i, y in enumerate(form.ys) if y in found]
            written = form.as_written([found[form.ys[i]] for i in ends])
            parts.append((weight, dict(zip(ends, written, strict=True))))
        flows = [weighted([(w, of.get(i)) for w, of in parts]) for i in range(len(ys))]
        given = [x for x, t in zip(xs, tangents, strict=True) if t is not None]
        for y, flow in zip(ys, flows, strict=True):
            check_connected([flow] * len(given), disconnected, [y], given)
        return [zeros_like(y) if f is None else f for f, y in zip(flows, ys, strict=True)]


@overload
def hvp(loss: Node, wrt: Node, vectors: Any, **options: Unpack[Options]) -> Node: ...
@overload
def hvp(loss: Node, wrt: Nodes, vectors: Any, **options: Unpack[Options]) -> Any: ...
@explaining
def hvp(
    loss: Node,
    wrt: Nodes,
    vectors: Any,
    *,
    kinks: Policy = None,
    disconnected: Disconnected = "raise",
) -> Any:
    """The Hessian of a scalar loss times vectors of the shapes of `wrt`: forward over reverse.

    It is 0 where the gradient is constant; `disconnected` is asked where there is no gradient.

    >>> x = placeholder("x", 3)
    >>> hvp(sum(x * x), x, ones_like(x)).type
    float64[3]
    """
    wrt = several(wrt, "wrt").given

    def on_side(kinks: Kinks) -> Any:
        first = grad(loss, wrt, kinks=kinks, disconnected=disconnected)
        return jvp(first, wrt, vectors, kinks=kinks, disconnected="zero")

    return on_each_side(kinks, on_side)


_depth: ContextVar[int] = ContextVar("depth of vmap", default=0)


def vmap(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of nodes for a batch: every argument and every result has one more leading axis.

    The body is built once, for one element, and then given a batch axis: no loop.

    >>> x = placeholder("x", ("N", 3))
    >>> vmap(lambda row: grad(sum(row * row), row))(x).type
    float64[N, 3]
    """

    def mapped(*args: Any) -> Any:
        many = [as_node(a) for a in args]
        if not many or any(a.ndim == 0 for a in many):
            raise GradientError("vmap maps over the first axis of its arguments; one has none")
        if len({a.shape[0] for a in many}) > 1:
            sizes = ", ".join(str(a.shape[0]) for a in many)
            raise GradientError(f"the first axes of the arguments of vmap differ: {sizes}")
        depth = _depth.get()
        stem = f"element of {depth + 1}" if depth else "element"  # maps within maps
        single = [placeholder(f"{stem} {i}", a.shape[1:], a.dtype) for i, a in enumerate(many)]
        within = _depth.set(depth + 1)
        try:
            found = function(*single)
        finally:
            _depth.reset(within)
        ys = [as_node(y) for y in (found if isinstance(found, (tuple, list)) else [found])]
        rows = batched(ys, dict(zip(single, many, strict=True)), many[0].shape[0])
        return tuple(rows) if isinstance(found, (tuple, list)) else rows[0]

    return mapped

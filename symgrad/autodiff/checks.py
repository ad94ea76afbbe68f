"""Checks of what is differentiated and by what: the errors that say so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from symgrad.autodiff.explain import disconnected as why_disconnected
from symgrad.autodiff.reverse import is_differentiable
from symgrad.ir.errors import GradientError
from symgrad.ir.forms import Form, aligned, flatten
from symgrad.ir.node import Node, as_node, describe
from symgrad.ir.types import in_order
from symgrad.ops.shape import astype

Disconnected = Literal["raise", "zero"]


class Several(NamedTuple):
    """Nodes in a form, and where in it they are."""

    given: Any
    nodes: list[Node]
    paths: list[str]
    form: Form


def several(given: Any, name: str) -> Several:
    """The nodes in lists, tuples and dicts; of another iterable as of a tuple."""
    plain = isinstance(given, (Node, np.ndarray, str, Mapping, list, tuple))
    if not plain and isinstance(given, Iterable):
        given = tuple(in_order(given, "the nodes of a derivative", GradientError))
    leaves, form = flatten(given, name)
    return Several(given, [x.value for x in leaves], [x.path for x in leaves], form)


def check_outputs(ys: Sequence[Any]) -> None:
    """Refuse outputs that are neither floats nor complex numbers."""
    if not ys:
        raise GradientError("there is nothing to differentiate: the outputs are empty")
    for y in ys:
        if not isinstance(y, Node):
            raise GradientError(f"an output is a node, not {type(y).__name__}")
        if not is_differentiable(y):
            raise GradientError(f"{describe(y)} is no float, so that it has no derivative")


def check_loss(loss: Any) -> None:
    """Refuse a loss that is no real scalar."""
    if not isinstance(loss, Node):
        call = "; call it: grad(f(x), x)" if callable(loss) else ""
        raise GradientError(f"the loss is a node, not {type(loss).__name__}{call}")
    if loss.shape != ():
        raise GradientError(
            f"the loss must be a scalar, and {describe(loss)} is not; write grad(sum(loss), …), "
            "or vjp(loss, …, cotangent) with a cotangent of its shape"
        )
    if loss.tensor.is_complex:
        raise GradientError(
            f"the loss must be real, and {describe(loss)} is complex; take real(loss), "
            "imag(loss) or abs(loss), or write vjp(loss, …, cotangent)"
        )
    if not loss.tensor.is_float:
        raise GradientError(
            f"the loss must be a real float, and {describe(loss)} is not; "
            "convert it where it is computed: astype(x, 'float64')"
        )


def check_wrt(xs: Sequence[Any], paths: Sequence[str] = ()) -> None:
    """Refuse to differentiate by what is neither floats nor complex numbers; paths say where."""
    if not xs:
        raise GradientError(
            "there is nothing to differentiate by: wrt is empty. Give the node, or a list of those "
            "that are wanted; a module without parameters has nothing to train"
        )
    for i, x in enumerate(xs):
        if not isinstance(x, Node):
            where = f"{paths[i]}: " if paths else ""
            mend = (
                "give its parameters: module.parameters()"
                if hasattr(type(x), "parameters")
                else "make an array a placeholder or a variable"
            )
            raise GradientError(
                f"{where}a gradient is taken with respect to nodes, not {type(x).__name__}; {mend}"
            )
        if isinstance(x.type, tuple):
            raise GradientError(
                f"{describe(x)}: {x.op.name} has {len(x.type)} results; take one of them: node[0]"
            )
        if not is_differentiable(x):
            raise GradientError(
                f"{describe(x)} is no float, and has no gradient; "
                "declare it with dtype 'float32' or 'float64'"
            )


def seeds_of(of: Several, given: Any, what: str) -> list[Node]:
    """A vector for each node, of its shape and dtype."""
    leaves = aligned(given, of.given, f"{what}s", GradientError)
    seeds = []
    for node, leaf in zip(of.nodes, leaves, strict=True):
        vector = as_node(leaf.value)
        if vector.shape != node.shape:
            raise GradientError(
                f"the {what} of {describe(node)} has its shape, {node.shape}, not {vector.shape}"
            )
        seeds.append(astype(vector, node.dtype))
    return seeds


def check_connected(
    flows: Sequence[Node | None], disconnected: Disconnected, ys: list[Node], xs: list[Node]
) -> None:
    """Refuse a flow that is missing, unless zeros are asked for."""
    if disconnected not in ("raise", "zero"):
        raise GradientError(f"disconnected is 'raise' or 'zero', not {disconnected!r}")
    if disconnected == "raise":
        for flow, x in zip(flows, xs, strict=True):
            if flow is None:
                raise GradientError(why_disconnected(ys, x))

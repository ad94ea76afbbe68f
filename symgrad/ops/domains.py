"""Values that must lie in a domain: checked when the graph is built if they are known then, and
when a program runs if not."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from symgrad.ir.along import Along, Cuts, Piecewise
from symgrad.ir.node import Node
from symgrad.ir.op import Former, case
from symgrad.ir.types import TensorType
from symgrad.ops import batch
from symgrad.ops import domain_kernels as kernels
from symgrad.ops.declare import NodeLike, op, require
from symgrad.ops.index.indexing import known
from symgrad.ops.linalg.solve import square_infer

Domain: TypeAlias = Literal[
    "positive", "nonnegative", "count", "probability", "law", "symmetric", "true"
]


def _within_infer(x: TensorType, *, domain: Domain, name: str) -> TensorType:
    require("f", x)
    return square_infer(x) if domain == "symmetric" else x


def _along(types: tuple[TensorType, ...], cuts: Cuts, domain: Domain, name: str) -> Along:
    """Every element by itself, but for laws, which are rows."""
    in_row = domain == "law" and any(c.axis == types[0].ndim - 1 for c in cuts if c is not None)
    return None if in_row else Piecewise.KEPT


def _of_probabilities(operands: list[Node], attrs: dict[str, Any]) -> Former:
    """The check of a law, or of one probability, that was an op of its own, `probabilities`."""
    if attrs.keys() != {"whole"} or not isinstance(attrs["whole"], bool):
        return operands, attrs
    return operands, {"domain": "law" if attrs["whole"] else "probability", "name": "p"}


@op(
    infer=_within_infer,
    kernel=kernels.within,
    former=_of_probabilities,
    ill_conditioned=True,
    pullback=lambda g, y, x, domain, name: g,
    pushforward=lambda t, y, x, domain, name: t,
    batch=batch.in_front,
    along=_along,
    out=True,
    in_place=(0,),
    domain=((0.1, 0.9),),
    cases=(
        case((3, 4), domain="probability", name="p"),
        case((), domain="positive", name="x"),
        case((2,), domain="nonnegative", name="x"),
        case((0, 3), domain="law", name="p"),
        case((2, 0), domain="count", name="n"),
        case((0, 0), domain="symmetric", name="c"),
        case((), domain="true", name="n is n"),
    ),
    public=False,
)
def within(x: NodeLike, /, domain: str, name: str) -> Node:
    """x, refused unless it lies in a domain; `name` is that of x in the message.

    A "count" is an integer from 0 on, a "law" has rows of probabilities of the sum 1, matrices are
    "symmetric" but for rounding, and what is "true" is not 0.
    """
    ...


def required(x: Node, domain: Domain, name: str) -> Node:
    """x, if it is known to lie in a domain; else x with a check when the program runs.

    Raises `KernelError` if it is known not to.
    """
    checked = within(x, domain=domain, name=name)
    return checked if known(checked) is None else x

"""Opaque functions: bodies over real arrays that run as they are, in their place in a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Protocol, TypeAlias, runtime_checkable

import numpy as np

from symgrad.ir.dims import Shape
from symgrad.ir.errors import GraphError
from symgrad.ir.node import Node
from symgrad.ir.op import Cotangent
from symgrad.ir.origin import current_origin
from symgrad.ir.types import TensorType, Type, as_dtype
from symgrad.ops.batch import batch_size, of_all
from symgrad.ops.declare import op

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@runtime_checkable
class Body(Protocol):
    """The body that an opaque node runs."""

    def run(self, arrays: Sequence[Array], types: Sequence[TensorType], outs: Any) -> list[Array]:
        """The results, of these types. What is computed in place lies in `outs`, if given."""
        ...

    def batched(self) -> Body:
        """The body for operands that all have a leading batch axis."""
        ...

    def no_derivative(self) -> NoReturn:
        """Raise `GradientError`. A custom node that stands for the results may know more."""
        ...


def _infer(
    *types: TensorType, body: Body, shapes: tuple[Shape, ...], dtypes: tuple[str, ...]
) -> Type:
    if len(shapes) != len(dtypes) or not shapes:
        raise GraphError(f"{len(shapes)} shapes and {len(dtypes)} dtypes are no results")
    found = tuple(TensorType(s, as_dtype(d)) for s, d in zip(shapes, dtypes, strict=True))
    return found if len(found) > 1 else found[0]


def _kernel(*arrays: Any, body: Body, shapes: Any, dtypes: tuple[str, ...], out: Any = None) -> Any:
    types = [TensorType(s, np.dtype(d)) for s, d in zip(shapes, dtypes, strict=True)]
    outs = None if out is None else list(out) if isinstance(out, tuple) else [out]
    found = body.run([_read_only(a) for a in arrays], types, outs)
    for target, value in zip(outs or (), found, strict=False):
        if value is not target:
            np.copyto(target, value)
    results = tuple(a[()] for a in found)
    return results if len(results) > 1 else results[0]


def _read_only(value: Any) -> Array:
    seen = np.asarray(value).view()
    seen.flags.writeable = False
    return seen


def _vjp(g: Any, y: Node, *inputs: Node, body: Body, **types: Any) -> tuple[Cotangent, ...]:
    body.no_derivative()


def _jvp(t: Any, y: Node, *inputs: Node, body: Body, **types: Any) -> Cotangent:
    body.no_derivative()


def _batch(
    inputs: Sequence[Node],
    flags: Sequence[bool],
    node: Node,
    body: Body,
    shapes: tuple[Shape, ...],
    dtypes: tuple[str, ...],
) -> Node:
    size = batch_size(inputs, flags)
    types = [TensorType((size, *s), np.dtype(d)) for s, d in zip(shapes, dtypes, strict=True)]
    return opaque(of_all(inputs, flags), body.batched(), types, in_place=node.op.storage.out)


@op(infer=_infer, kernel=_kernel, vjp=_vjp, jvp=_jvp, batch=_batch, opaque=True, public=False)
def numpy_function(
    *operands: Node, body: Body, shapes: tuple[Shape, ...], dtypes: tuple[str, ...]
) -> Node:
    """The results of a body over real arrays."""
    ...


@op(
    infer=_infer,
    kernel=_kernel,
    vjp=_vjp,
    jvp=_jvp,
    batch=_batch,
    out=True,
    opaque=True,
    public=False,
)
def numpy_function_out(
    *operands: Node, body: Body, shapes: tuple[Shape, ...], dtypes: tuple[str, ...]
) -> Node:
    """The results of a body over real arrays, written where they belong."""
    ...


def opaque(
    operands: Sequence[Node], body: Body, types: Sequence[TensorType], *, in_place: bool = False
) -> Node:
    """A node that runs a body; `in_place` if it can be handed the arrays for its results."""
    attrs = (
        ("body", body),
        ("dtypes", tuple(t.dtype.name for t in types)),
        ("shapes", tuple(t.shape for t in types)),
    )
    found = tuple(types) if len(types) > 1 else types[0]
    builder = numpy_function_out if in_place else numpy_function
    return Node(builder.op, tuple(operands), attrs, found, current_origin())

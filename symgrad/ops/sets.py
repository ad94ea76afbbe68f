"""Sets of elements, and where elements are: what has as many results as the data says.

Of a value that is known when the graph is built the results are known too. Of one that only a run
will tell, `size=` says how many there are at most: fewer are filled up, and more are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir.dims import Size
from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, apply, as_node
from symgrad.ir.op import case
from symgrad.ir.types import TensorType, as_shape
from symgrad.ops.along import of_only
from symgrad.ops.cumulative import changes, cumulative_sum
from symgrad.ops.declare import NodeLike, composite, op, require
from symgrad.ops.index.indexing import INDEX, known
from symgrad.ops.index.scatter import add_at, min_at, set_at
from symgrad.ops.leaves import arange, full, zeros_like
from symgrad.ops.logic import isnan
from symgrad.ops.order import argsort, sort
from symgrad.ops.reduce import any
from symgrad.ops.select import minimum, where
from symgrad.ops.shape import astype, expand_dims, reshape

# ---- isin -----------------------------------------------------------------------------------


def _isin_infer(a: TensorType, b: TensorType, *, invert: bool) -> TensorType:
    require("biufc", a, b)
    return a.with_dtype(np.dtype(np.bool_))


def _isin_batch(inputs: Sequence[Node], flags: Sequence[bool], node: Node, invert: bool) -> Node:
    a, b = inputs
    if not flags[1]:
        return apply(node.op, inputs, {"invert": invert})
    among = reshape(b, (b.shape[0], *(1,) * node.ndim, -1))
    found = any(expand_dims(a, axis=a.ndim) == among, axis=-1)
    return ~found if invert else found


@op(
    infer=_isin_infer,
    kernel=np.isin,
    batch=_isin_batch,
    along=of_only(0),
    compares=True,
    piecewise_constant=True,
    expensive=True,
    cases=(
        case((3, 4), (5,), invert=False),
        case((), (2, 2), invert=True),
        case((3,), (0,), invert=False),
    ),
)
def isin_p(x1: NodeLike, x2: NodeLike, /, invert: bool) -> Node:
    """Whether each element of x1 is one of x2."""
    ...


@composite(numpy=(np.isin,))
def isin(x1: NodeLike, x2: NodeLike, /, *, invert: bool = False) -> Node:
    """Whether each element of x1 is one of x2, or with `invert` whether it is none; a NaN is none.

    >>> np.asarray(isin(np.array([1, 2, 3]), [3, 1]))
    array([ True, False,  True])
    """
    return isin_p(x1, x2, invert=bool(invert))


# ---- nonzero --------------------------------------------------------------------------------


def _bound(size: Any, name: str, x: Node) -> Size:
    """How many results there are at most."""
    if size is None:
        raise ShapeError(
            f"how many elements {name} gives of {x.type!r} is known only when the program runs; "
            f"say how many there are at most: {name}(x, size=...)"
        )
    (found,) = as_shape(size)
    return found


def _numbered(is_new: Node) -> Node:
    """For each element how many are new up to it, less 1."""
    return cumulative_sum(astype(is_new, INDEX)) - 1


def _filled(size: Size, number: Node, values: Node, fill_value: Any) -> Node:
    """The values by their numbers; what has a number beyond the size is left out."""
    room = full(size + 1, fill_value, dtype=values.dtype)
    return set_at(room, minimum(number, size), values)[:size]


@composite(numpy=(np.nonzero,))
def nonzero(x: NodeLike, /, *, size: Any = None, fill_value: int = 0) -> tuple[Node, ...]:
    """The indices of the elements that are not 0, an array for each axis, in order.

    If only a run tells how many there are, `size` says how many at most: fewer are filled up with
    `fill_value`, more are left out. Raises `ShapeError` for a scalar, and if `size` is missing.

    >>> nonzero(np.array([0, 5, 6]))[0].type
    int64[2]
    >>> nonzero(placeholder("x", "N"), size=4)[0].type
    int64[4]
    """
    node = as_node(x)
    if not node.ndim:
        raise ShapeError("a scalar has no axes to tell indices of; reshape it: reshape(x, (1,))")
    value = known(node)
    if value is not None and size is None:
        return tuple(as_node(i) for i in np.nonzero(value))
    found = _bound(size, "nonzero", node)
    flat = astype(reshape(node, (-1,)), "bool")
    number = where(flat, _numbered(flat), found)
    places: Any = arange(node.size)
    indices = []
    for length in reversed(node.shape):
        indices.append(_filled(found, number, places % length, fill_value))
        places = places // length
    return tuple(reversed(indices))


# ---- unique ---------------------------------------------------------------------------------


class UniqueAll(NamedTuple):
    """The results of `unique_all`."""

    values: Node
    indices: Node
    inverse_indices: Node
    counts: Node


class UniqueCounts(NamedTuple):
    """The results of `unique_counts`."""

    values: Node
    counts: Node


class UniqueInverse(NamedTuple):
    """The results of `unique_inverse`."""

    values: Node
    inverse_indices: Node


def _unique(x: NodeLike, size: Any, fill_value: Any, name: str, equal_nan: bool) -> UniqueAll:
    node = as_node(x)
    value = known(node)
    if value is not None and size is None:
        found = np.unique(
            value,
            return_index=True,
            return_inverse=True,
            return_counts=True,
            equal_nan=equal_nan,
        )
        return UniqueAll(*map(as_node, found))
    bound = _bound(size, name, node)
    flat = reshape(node, (-1,))
    order, values = argsort(flat), sort(flat)
    is_new = changes(values, 0)
    if equal_nan and node.tensor.is_float:
        is_new = is_new & (~isnan(values) | changes(isnan(values), 0))
    number = _numbered(is_new)
    kept = minimum(number, bound)
    none, beyond = full(bound + 1, 0, dtype=INDEX), as_node(flat.size)
    indices = min_at(none + beyond, kept, order)[:bound]
    return UniqueAll(
        _filled(bound, number, values, fill_value),
        where(indices == beyond, 0, indices),
        reshape(set_at(zeros_like(order), order, number), node.shape),
        add_at(none, kept, 1)[:bound],
    )


@composite()
def unique_all(x: NodeLike, /, *, size: Any = None, fill_value: Any = 0) -> UniqueAll:
    """The different elements of x in order, and where in x they are.

    `values` are the elements; `indices` says where in x flattened each is first; `inverse_indices`
    which of the values each element of x is, in the shape of x; `counts` how often each is there.

    Each NaN is different from all others. If only a run tells how many values there are, `size`
    says how many at most: fewer are filled up, with `fill_value` and counts of 0, more are left
    out. Raises `ShapeError` if `size` is missing. Equal elements share the gradient of the values.

    >>> [np.asarray(y).tolist() for y in unique_all(np.array([5, 3, 5]))]
    [[3, 5], [1, 0], [1, 0, 1], [1, 2]]
    """
    return _unique(x, size, fill_value, "unique_all", False)


@composite()
def unique_counts(x: NodeLike, /, *, size: Any = None, fill_value: Any = 0) -> UniqueCounts:
    """The different elements of x in order, and how often each is there; see `unique_all`."""
    found = _unique(x, size, fill_value, "unique_counts", False)
    return UniqueCounts(found.values, found.counts)


@composite()
def unique_inverse(x: NodeLike, /, *, size: Any = None, fill_value: Any = 0) -> UniqueInverse:
    """The different elements of x in order, and which of them each element is; see `unique_all`."""
    found = _unique(x, size, fill_value, "unique_inverse", False)
    return UniqueInverse(found.values, found.inverse_indices)


@composite()
def unique_values(x: NodeLike, /, *, size: Any = None, fill_value: Any = 0) -> Node:
    """The different elements of x in order; see `unique_all`."""
    return _unique(x, size, fill_value, "unique_values", False).values


@composite(numpy=(np.unique,))
def unique(
    x: NodeLike,
    /,
    *,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    equal_nan: bool = True,
    size: Any = None,
    fill_value: Any = 0,
) -> Node | tuple[Node, ...]:
    """NumPy's function: the different elements, NaNs being one, and what else is asked for.

    See `unique_all`.
    """
    values, *rest = _unique(x, size, fill_value, "unique", equal_nan)
    asked = (return_index, return_inverse, return_counts)
    extra = tuple(y for y, wanted in zip(rest, asked, strict=True) if wanted)
    return (values, *extra) if extra else values

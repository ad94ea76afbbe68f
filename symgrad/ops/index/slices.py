"""Indexing: slices, and what is put in their place; arrays of indices are gathered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from symgrad.ir.along import Along, Cut, Cuts, Piecewise
from symgrad.ir.dims import Dim, Shape, Size, quotient
from symgrad.ir.errors import BoundsError, ShapeError, SymgradError
from symgrad.ir.evaluate import resolve
from symgrad.ir.node import Node, as_node
from symgrad.ir.op import Cotangent, case
from symgrad.ir.operators import call
from symgrad.ir.types import TensorType, names_in, possible
from symgrad.ops import batch, kernels
from symgrad.ops.along import is_whole_slice
from symgrad.ops.declare import NodeLike, composite, linear, op, require
from symgrad.ops.index import kernels as index_kernels
from symgrad.ops.index.indexing import read
from symgrad.ops.leaves import full, zeros_like

SliceBound: TypeAlias = Size | None
Index: TypeAlias = tuple[
    tuple[SliceBound, SliceBound, int], ...
]  # a start, a stop and a step for each axis


def slice_length(size: Size, start: Any, stop: Any, step: int) -> Size:
    """How many elements a slice takes of an axis; along a named one bounds are to lie within it."""
    if step == 0:
        raise ShapeError("the step of a slice cannot be 0")
    if isinstance(size, int) and not isinstance(start, Dim) and not isinstance(stop, Dim):
        return len(range(*slice(start, stop, step).indices(size)))
    first = slice_bound(start, size, 0 if step > 0 else size - 1)
    last = slice_bound(stop, size, size if step > 0 else -1)
    length = last - first if step > 0 else first - last
    steps = quotient(length + abs(step) - 1, abs(step))
    return 0 if isinstance(steps, int) and steps < 0 else steps


def slice_bound(value: Any, size: Size, default: Size) -> Size:
    """A bound of a slice, counted from the front; None is the default."""
    if value is None:
        return default
    if not isinstance(value, (int, Dim)):
        raise ShapeError(f"a slice bound is an int, not {value!r}")
    return size + value if isinstance(value, int) and value < 0 else value


def _slice_infer(t: TensorType, *, index: Index) -> TensorType:
    if len(index) != t.ndim:
        raise ShapeError(f"{len(index)} slices do not index {t!r}")
    shape = tuple(slice_length(s, *i) for s, i in zip(t.shape, index, strict=True))
    if any(isinstance(s, int) and s < 0 for s in shape):
        raise ShapeError(f"a slice of {t!r} ends before it begins")
    return t.with_shape(shape)


def too_short(shape: Shape, index: Index, sizes: Mapping[str, int]) -> SymgradError | None:
    """The error to raise if slices take fewer elements than inferred, with these sizes, or None."""
    for axis, (size, triple) in enumerate(zip(shape, index, strict=True)):
        wanted, here = slice_length(size, *triple), resolve((size, triple), sizes)
        if here[0] < 0:
            return ShapeError(f"axis {axis} has {here[0]} elements, {size}; feed more elements")
        if resolve(wanted, sizes) == slice_length(here[0], *here[1]):
            continue
        fault = f"for axis {axis} of size {here[0]}, which is {size}; feed more elements"
        if mend := _of_any_length(size, *triple):
            fault += f", or slice what there is: x[{':, ' * axis}{mend}]"
        if wanted == 1:
            return BoundsError(f"index {triple[0] or 0} is out of range {fault}")
        return ShapeError(f"a slice takes more than there is {fault}")
    return None


def margins(shape: Shape, index: Index) -> list[Size]:
    """Sizes that are all 0 or more only where slices take as many elements as inferred."""
    found: list[Size] = []
    for size, (start, stop, step) in zip(shape, index, strict=True):
        found += [b for b in (start, stop) if isinstance(b, Dim)]  # -1 would count from the end
        if slice_length(size, start, stop, step) != 0:
            first = slice_bound(start, size, 0 if step > 0 else size - 1)
            last = slice_bound(stop, size, size if step > 0 else -1)
            low, high = (first, last) if step > 0 else (last + 1, first + 1)
            found += [low, high - low, size - high]
    return found


def _of_any_length(size: Size, start: SliceBound, stop: SliceBound, step: int) -> str:
    """A slice as a person writes it whose bounds are within any size; "" if it goes backwards."""
    if step < 0:
        return ""
    first, last = _within(size, start), _within(size, stop)
    if first and last and not _is_within_order(start, stop):
        last = f"max({first}, {last})"
    bounds = [b and f'sg.dim("{b}")' for b in (first, last)]
    return ":".join([*bounds, *[str(step)] * (step > 1)])


def _is_within_order(start: SliceBound, stop: SliceBound) -> bool:
    """Whether two bounds counted from the same end are in order, so that they stay so."""
    if not isinstance(start, int) or not isinstance(stop, int):
        return False
    return (start < 0) == (stop < 0) and start <= stop


def _within(size: Size, bound: SliceBound) -> str:
    """A bound as an expression that is never below 0 nor above the size; "" if there is none."""
    if not isinstance(bound, int):
        return "" if bound is None else str(bound)
    return f"min({size}, {bound})" if bound >= 0 else f"max({size} - {-bound}, 0)"


def _through(shape: Shape, index: Index, cut: Cut | None) -> Along:
    """Slices that take all along the axis that is cut, and elsewhere whatever it is."""
    if cut is None or not is_whole_slice(index[cut.axis], shape[cut.axis]):
        return None
    others = (*index[: cut.axis], *index[cut.axis + 1 :])
    return None if cut.over in names_in(others) else Piecewise.KEPT


def _slice_along(types: tuple[TensorType, ...], cuts: Cuts, index: Index) -> Along:
    return _through(types[0].shape, index, cuts[0])


def _slice_kernel(x: Any, index: Index) -> Any:
    return x[tuple(slice(*i) for i in index)]


@linear(
    infer=_slice_infer,
    kernel=_slice_kernel,
    index_map=True,
    view=True,
    transpose=lambda g, x, index: call("place", g, shape=x.shape, index=index),
    too_small=lambda t, sizes, index: too_short(t.shape, index, sizes),
    margins=lambda t, index: margins(t.shape, index),
    cases=(case((5, 4), index=((1, 4, 2), (None, None, -1))), case((6,), index=((0, 0, 1),))),
    batch=batch.sliced,
    along=_slice_along,
    data_movement=True,
)
def slice_p(x: NodeLike, /, index: Index) -> Node:
    """x[start:stop:step, …], one triple an axis."""
    ...


def _place_infer(t: TensorType, *, shape: Shape, index: Index) -> TensorType:
    whole = TensorType(shape, t.dtype)
    possible(whole)
    if t != _slice_infer(whole, index=index):
        raise ShapeError(f"{t!r} does not fill {_slice_infer(whole, index=index)!r}")
    return whole


def _place_along(types: tuple[TensorType, ...], cuts: Cuts, shape: Shape, index: Index) -> Along:
    same = cuts[0] is not None and shape[cuts[0].axis] == types[0].shape[cuts[0].axis]
    return _through(shape, index, cuts[0]) if same else None


@linear(
    infer=_place_infer,
    kernel=kernels.place,
    source=lambda here, shape, index: "{out}.fill(0)\n{out}[{index}] = {0}",
    out=True,
    index_map=True,
    transpose=lambda g, x, shape, index: slice_p(g, index=index),
    too_small=lambda t, sizes, shape, index: too_short(shape, index, sizes),
    margins=lambda t, shape, index: margins(shape, index),
    cases=(case((2, 4), shape=(5, 4), index=((1, 4, 2), (None, None, -1))),),
    batch=batch.placed,
    along=_place_along,
    data_movement=True,
    zero_filled=True,
    public=False,
)
def place(x: NodeLike, /, shape: Shape, index: Index) -> Node:
    """Zeros of a shape, with x where the index points: a slice, transposed."""
    ...


def _canonical(size: Size, index: Any) -> tuple[Any, Any, int]:
    """A slice as a triple that says the same with the fewest words."""
    try:
        step = 1 if index.step is None else int(index.step.__index__())
        start, stop = (
            v if v is None or isinstance(v, Dim) else v.__index__()
            for v in (index.start, index.stop)
        )
    except AttributeError:
        raise ShapeError(f"a slice is made of ints: {index}") from None
    if step == 0:
        raise ShapeError("the step of a slice cannot be 0")
    if isinstance(size, int) and not isinstance(start, Dim) and not isinstance(stop, Dim):
        first, last, step = slice(start, stop, step).indices(size)
        if len(range(first, last, step)) == 0:
            return (0, 0, 1)
        return (first, None if last < 0 else last, step)
    return (None if start == 0 else start, None if stop == size else stop, step)


Mode: TypeAlias = Literal["set", "add"]


def _put_infer(t: TensorType, u: TensorType, *, index: Index, mode: Mode) -> TensorType:
    if mode == "add":
        require("iufc", t)
    if u.shape != _slice_infer(t, index=index).shape:
        raise ShapeError(f"{u!r} does not fill {_slice_infer(t, index=index)!r}")
    return t


def _put_vjp(g: Node, y: Node, x: Node, u: Node, index: Index, mode: str) -> tuple[Cotangent, ...]:
    of_u = slice_p(g, index=index)
    if mode == "add":
        return g, of_u
    return put(g, full(u.shape, 0, dtype=g.dtype), index=index, mode="set"), of_u


def _put_jvp(t: tuple[Cotangent, ...], y: Node, x: Node, u: Node, **attrs: Any) -> Cotangent:
    if t[0] is None and t[1] is None:
        return None
    by_x, by_u = (zeros_like(x) if d is None else d for d, x in zip(t, (x, u), strict=True))
    return put(by_x, by_u, **attrs)


def _put_batch(
    inputs: Sequence[Node], flags: Sequence[bool], node: Node, index: Index, mode: str
) -> Node:
    x, u = batch.of_all(inputs, flags)
    whole = (0, x.shape[0], 1) if isinstance(x.shape[0], int) else (None, None, 1)
    return put(x, u, index=(whole, *index), mode=mode)


def _put_along(types: tuple[TensorType, ...], cuts: Cuts, index: Index, mode: str) -> Along:
    alike = all(c is not None and c.axis == cuts[0].axis for c in cuts if cuts[0] is not None)
    return _through(types[0].shape, index, cuts[0]) if alike else None


def _put_source(here: bool, index: Index, mode: str) -> str:
    filled = "" if here else "np.copyto({out}, {0})\n"
    if mode == "set":
        return filled + "{out}[{index}] = {1}"
    return filled + "np.add({out}[{index}], {1}, {out}[{index}])"


@op(
    infer=_put_infer,
    kernel=index_kernels.put,
    source=_put_source,
    promote=lambda t, u: (None, t.dtype),
    vjp=_put_vjp,
    jvp=_put_jvp,
    batch=_put_batch,
    along=_put_along,
    flops=lambda t, u, index, mode: 0 if mode == "set" else u.size,
    index_map=True,
    out=True,
    in_place=(0,),
    preserves_zero=True,
    zero_filled=True,
    too_small=lambda t, u, sizes, index, mode: too_short(t.shape, index, sizes),
    margins=lambda t, u, index, mode: margins(t.shape, index),
    cases=tuple(
        case((5, 4), (2, 4), index=((1, 4, 2), (3, None, -1)), mode=mode) for mode in ("set", "add")
    ),
    public=False,
)
def put(x: NodeLike, u: NodeLike, /, index: Index, mode: str) -> Node:
    """x with u set in place of a slice of it, or added to it."""
    ...


@composite()
def getitem(x: NodeLike, index: Any, /) -> Node:
    """x[index], by NumPy's rules: ints, slices, None, an ellipsis, arrays of ints or booleans.

    An array of ints may be a node; one out of bounds is a `BoundsError`, when the graph is built
    if it is known then, else when the program runs. A boolean mask must be known when the graph is
    built, else `ShapeError`: it says how many elements there are. The gradient of what is taken
    twice is the sum.

    Along a named dimension N a bound is an int or an expression of dimensions. It says how many
    elements there are, so that `x[:3]` has 3, and broadcasts as 3: N must be so large when arrays
    are fed, else `ShapeError`, before anything runs. To take as many as there are, at most 3, write
    `x[: sg.dim("min(N, 3)")]`, and `x[sg.dim("min(N, 1)") :]` to leave out the first if there is
    one. In steps of 2 there are `(N + 1)//2`.

    >>> x = placeholder("x", ("N", 4))
    >>> x[:, [0, -1]].type, x[1:, ::-1, None].type, x[::2].type
    (float64[N, 2], float64[N - 1, 4, 1], float64[(N + 1)//2, 4])
    """
    node = as_node(x)
    place = read(node, index)
    return place.get(node) if place.indices else _sliced(node, place.slices)


def _sliced(node: Node, items: Sequence[Any]) -> Node:
    triples, shape = _triples(node, items)
    picked = node if _is_whole(node, triples) else slice_p(node, index=triples)
    return picked if picked.shape == shape else call("reshape", picked, shape)


def _triples(node: Node, items: Sequence[Any]) -> tuple[Index, Shape]:
    """Slices, ints and None as one triple an axis, and the shape of what they take."""
    triples: list[tuple[Any, Any, int]] = []
    shape: list[Size] = []
    for item in items:
        if item is None:
            shape.append(1)
            continue
        size = node.shape[len(triples)]
        if isinstance(item, slice):
            triple = _canonical(size, item)
            shape.append(slice_length(size, *triple))
        else:
            triple = _single(item, size)
        triples.append(triple)
    return tuple(triples), tuple(shape)


def _is_whole(node: Node, triples: Index) -> bool:
    return triples == tuple(
        (0, s, 1) if isinstance(s, int) else (None, None, 1) for s in node.shape
    )


def put_slice(x: Node, items: Sequence[Any], u: Node, mode: str) -> Node:
    """x with u, of the shape of what slices and ints take of it, set there or added to it."""
    triples, _ = _triples(x, items)
    if _is_whole(x, triples):
        u = call("reshape", u, x.shape) if u.shape != x.shape else u
        return u if mode == "set" else x + u
    window = tuple(slice_length(s, *t) for s, t in zip(x.shape, triples, strict=True))
    u = u if u.shape == window else call("reshape", u, window)
    return put(x, u, index=triples, mode=mode)


def _single(i: int, size: Size) -> tuple[Any, Any, int]:
    if isinstance(size, int):
        if not -size <= i < size:
            raise BoundsError(f"index {i} is out of range for an axis of size {size}")
        i %= size
    return (i, None if i == -1 else i + 1, 1)


def part_along(x: Node, axis: int, start: Any, stop: Any) -> Node:
    """x[start:stop] along an axis."""
    return getitem(x, (*(slice(None),) * axis, slice(start, stop)))

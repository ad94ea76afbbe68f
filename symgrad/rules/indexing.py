"""Indexing: slices, what is put in place, and joins, composed or left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from symgrad.ir.dims import Dim, Shape, Size
from symgrad.ir.node import Node, apply
from symgrad.ops.elementwise import negative
from symgrad.ops.index.slices import Index, place, put, slice_bound, slice_p
from symgrad.ops.shape import broadcast_to, concat_p, permute_dims
from symgrad.rewrite.pattern import Attr, Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule, rule_for
from symgrad.rules.masks import is_finite

Triple = tuple[Any, Any, int]

T = TypeVar("T")


def _bounds(size: Size, triple: Triple) -> tuple[Size, Size]:
    """Where a slice with a step of 1 begins and ends."""
    start, stop, _ = triple
    return slice_bound(start, size, 0), slice_bound(stop, size, size)


def _is_whole(size: Size, triple: Triple) -> bool:
    return triple[2] == 1 and _bounds(size, triple) == (0, size)


def _is_identity(x: Node, index: Index) -> bool:
    return all(map(_is_whole, x.shape, index))


def _from_range(taken: range) -> Triple:
    if not taken:
        return (0, 0, 1)
    return (taken.start, None if taken.stop < 0 else taken.stop, taken.step)


def _composed(shape: Shape, outer: Sequence[Triple], inner: Sequence[Triple]) -> Index | None:
    """The slices that are `inner` of `outer` of a shape; None if a size or bound is symbolic."""
    found: list[Triple] = []
    for size, one, other in zip(shape, outer, inner, strict=True):
        if isinstance(size, int) and not any(isinstance(v, Dim) for v in (*one, *other)):
            taken = range(size)[slice(*one)][slice(*other)]
            found.append(_from_range(taken))
        elif one == (None, None, 1):
            found.append(other)
        elif other == (None, None, 1):
            found.append(one)
        else:
            return None
    return tuple(found)


# ---- slices ---------------------------------------------------------------------------------


@rule(
    exact=Exact.BITS,
    when=_is_identity,
    examples=({"x": (2, 3), "index": ((0, 2, 1), (0, 3, 1))},),
)
def slice_of_all(x: Var, index: Attr) -> Rewrite:
    """A slice that takes everything is left out."""
    return Rewrite(before=slice_p(x, index=index), after=x)


def _sliced(x: Node, index: Index | None) -> Node | None:
    return None if index is None else slice_p(x, index=index)


@rule(
    exact=Exact.BITS,
    examples=(
        {"x": (5, 4), "i": ((1, 5, 2), (3, None, -1)), "j": ((1, 2, 1), (0, 4, 3))},
        {"x": (5, 4), "i": ((4, None, -1), (0, 4, 1)), "j": ((4, None, -1), (0, 4, 1))},
        {"x": (5, 4), "i": ((1, 3, 1), (0, 4, 1)), "j": ((0, 0, 1), (0, 4, 1))},
    ),
)
def slice_of_slice(x: Var, i: Attr, j: Attr) -> Rewrite:
    """A slice of a slice is one; so what was flipped twice is as it was."""
    return Rewrite(
        before=slice_p(slice_p(x, index=i), index=j),
        after=lambda x, i, j: _sliced(x, _composed(x.shape, i, j)),
    )


def _slice_of_source(x: Node, p: Shape, i: Index) -> Node:
    lead = len(p) - x.ndim
    own = zip(x.shape, p[lead:], i[lead:], strict=True)
    index = tuple(t if s == wide else (0, s, 1) for s, wide, t in own)
    return x if _is_identity(x, index) else slice_p(x, index=index)


@rule(
    exact=Exact.BITS,
    examples=(
        {"x": (3, 1), "p": (2, 3, 4), "i": ((0, 1, 1), (2, None, -2), (1, 3, 1))},
        {"x": (), "p": (3,), "i": ((0, 0, 1),)},
    ),
)
def slice_of_broadcast(x: Var, p: Attr, i: Attr) -> Rewrite:
    """A part of what was repeated is a part of what was there, repeated less often."""
    return Rewrite(before=slice_p(broadcast_to(x, shape=p), index=i), after=_slice_of_source)


def _before(each: tuple[T, ...], axes: tuple[int, ...]) -> tuple[T, ...]:
    """A value for each of permuted axes, in the order that the axes had before."""
    return tuple(each[axes.index(a)] for a in range(len(axes)))


@rule(
    exact=Exact.ROUNDING,
    examples=({"x": (3, 4), "axes": (1, 0), "i": ((0, 4, 2), (1, 3, 1))},),
)
def slice_of_permuted(x: Var, axes: Attr, i: Attr) -> Rewrite:
    """A slice of permuted axes is taken before: so that what it meets is in the order of memory."""
    return Rewrite(
        before=slice_p(permute_dims(x, axes=axes), index=i),
        after=lambda x, axes, i: permute_dims(slice_p(x, index=_before(i, axes)), axes),
    )


@rule(
    exact=Exact.ROUNDING,
    examples=({"x": (3, 2), "axes": (1, 0), "s": (5, 6), "i": ((0, 4, 2), (1, 4, 1))},),
)
def place_of_permuted(x: Var, axes: Attr, s: Attr, i: Attr) -> Rewrite:
    """What is put in place with its axes permuted is put there before: in the order of memory."""
    return Rewrite(
        before=place(permute_dims(x, axes=axes), shape=s, index=i),
        after=lambda x, axes, s, i: permute_dims(
            place(x, shape=_before(s, axes), index=_before(i, axes)), axes
        ),
    )


@rule_for(
    lambda op: op is slice_p.op,
    exact=Exact.ROUNDING,
    operands=lambda operands: operands[0] is concat_p.op,
    examples=(lambda x, y: slice_p(concat_p(x, y, axis=0), index=((4, 6, 1), (1, 3, 1))),),
)
def slice_of_concat(node: Node) -> Node | None:
    """What is taken of one part of a join is taken of that part.

    Its elements may then lie at other distances, so that sums of it may round differently.
    """
    joined = node.inputs[0]
    index, axis = node.attr("index"), joined.attr("axis")
    if index[axis][2] != 1:
        return None
    start, stop = _bounds(joined.shape[axis], index[axis])
    offset: Size = 0
    for piece in joined.inputs:
        end = offset + piece.shape[axis]
        if (start, stop) == (offset, end) or _lies_within(start, stop, offset, end):
            moved = (start - offset, stop - offset, 1)
            return slice_p(piece, index=(*index[:axis], moved, *index[axis + 1 :]))
        offset = end
    return None


def _lies_within(start: Size, stop: Size, low: Size, high: Size) -> bool:
    return (
        isinstance(start, int)
        and isinstance(stop, int)
        and isinstance(low, int)
        and isinstance(high, int)
        and low <= start < stop <= high
    )


@rule(exact=Exact.ROUNDING)
def slice_of_place(x: Var, s: Attr, i: Attr) -> Rewrite:
    """What was put in place is taken from there."""
    return Rewrite(before=slice_p(place(x, shape=s, index=i), index=i), after=x)


# ---- what is put in place -------------------------------------------------------------------


@rule(
    exact=Exact.BITS,
    when=lambda x, s, i: x.shape == s and _is_identity(x, i),
    examples=({"x": (2, 3), "s": (2, 3), "i": ((0, 2, 1), (0, 3, 1))},),
)
def place_of_all(x: Var, s: Attr, i: Attr) -> Rewrite:
    """What fills the whole place is all there is."""
    return Rewrite(before=place(x, shape=s, index=i), after=x)


def _placed(x: Node, shape: Shape, index: Index | None) -> Node | None:
    return None if index is None else place(x, shape=shape, index=index)


@rule(
    exact=Exact.BITS,
    examples=(
        {
            "x": (2, 3),
            "s": (4, 3),
            "i": ((1, 4, 2), (2, None, -1)),
            "t": (5, 3),
            "j": ((0, 4, 1), (2, None, -1)),
        },
    ),
)
def place_of_place(x: Var, s: Attr, i: Attr, t: Attr, j: Attr) -> Rewrite:
    """Zeros around zeros are put there at once."""
    return Rewrite(
        before=place(place(x, shape=s, index=i), shape=t, index=j),
        after=lambda x, i, t, j: _placed(x, t, _composed(t, j, i)),
    )


@rule(exact=Exact.VALUES, kinds="f", single_use=True, when=lambda c: is_finite(c) and c.ndim == 0)
def scalar_into_place(x: Var, c: Const, s: Attr, i: Attr) -> Rewrite:
    """A scalar factor need not be multiplied to the zeros around."""
    return Rewrite(before=place(x, shape=s, index=i) * c, after=place(x * c, shape=s, index=i))


@rule(exact=Exact.VALUES, single_use=True)
def sign_into_place(x: Var, s: Attr, i: Attr) -> Rewrite:
    """The sign of the zeros around need not change."""
    return Rewrite(
        before=negative(place(x, shape=s, index=i)), after=place(negative(x), shape=s, index=i)
    )


def _side_by_side(x: Node, y: Node, s: Shape, i: Index, j: Index) -> Node | None:
    differ = [a for a in range(len(s)) if i[a] != j[a]]
    if len(differ) != 1 or i[differ[0]][2] != 1 or j[differ[0]][2] != 1:
        return None
    axis = differ[0]
    one, other = _bounds(s[axis], i[axis]), _bounds(s[axis], j[axis])
    if other[1] == one[0]:
        x, y, one, other = y, x, other, one
    if one[1] != other[0]:
        return None
    index = (*i[:axis], (one[0], other[1], 1), *i[axis + 1 :])
    return place(concat_p(x, y, axis=axis), shape=s, index=index)


@rule(
    exact=Exact.VALUES,
    examples=(
        {
            "x": (2, 3),
            "y": (1, 3),
            "s": (4, 3),
            "i": ((0, 2, 1), (0, 3, 1)),
            "j": ((2, 3, 1), (0, 3, 1)),
        },
        {
            "x": (2, 3),
            "y": (2, 1),
            "s": (2, 4),
            "i": ((0, 2, 1), (1, 4, 1)),
            "j": ((0, 2, 1), (0, 1, 1)),
        },
    ),
)
def places_join(x: Var, y: Var, s: Attr, i: Attr, j: Attr) -> Rewrite:
    """Of what is put side by side, each meets but zeros: it is joined, not added.

    So does the gradient of an array that was split come about.
    """
    return Rewrite(
        before=place(x, shape=s, index=i) + place(y, shape=s, index=j), after=_side_by_side
    )


# ---- joins ----------------------------------------------------------------------------------

# A join of so many is left whole, so that a chain of joins takes time in proportion to its length.
MOST_PARTS = 64


@rule(exact=Exact.BITS)
def concat_of_one(x: Var, a: Attr) -> Rewrite:
    """One array joins with nothing."""
    return Rewrite(before=concat_p(x, axis=a), after=x)


@rule_for(
    lambda op: op is concat_p.op,
    exact=Exact.BITS,
    operands=lambda operands: concat_p.op in operands,
    examples=(lambda x, y: concat_p(concat_p(x, y, axis=0), y, axis=0),),
)
def concat_of_concat(node: Node) -> Node | None:
    """What is joined to what was joined is all joined at once, and copied once."""
    parts: list[Node] = []
    for x in node.inputs:
        opened = x.op is concat_p.op and x.attrs == node.attrs and len(x.inputs) < MOST_PARTS
        parts += x.inputs if opened else (x,)
    return apply(node.op, parts, dict(node.attrs)) if len(parts) > len(node.inputs) else None


def _two_slices(operands: Sequence[Any]) -> bool:
    return operands.count(slice_p.op) > 1


@rule_for(
    lambda op: op is concat_p.op,
    exact=Exact.ROUNDING,
    operands=_two_slices,
    examples=(
        lambda x: concat_p(x[:1], x[1:], axis=0),
        lambda x, y: concat_p(y[:, 1:], x[:, :1], x[:, 1:3], y, axis=1),
    ),
)
def concat_of_slices(node: Node) -> Node | None:
    """Neighbours that were cut apart are not joined, but taken in one piece.

    That is no copy any more, so that sums of it may go in another order.
    """
    axis = node.attr("axis")
    parts = [node.inputs[0]]
    for x in node.inputs[1:]:
        whole = _in_one_piece(parts[-1], x, axis)
        if whole is None:
            parts.append(x)
        else:
            parts[-1] = whole
    if len(parts) == 1:
        return parts[0]
    return apply(node.op, parts, {"axis": axis}) if len(parts) < len(node.inputs) else None


def _in_one_piece(a: Node, b: Node, axis: int) -> Node | None:
    if not (a.op is b.op is slice_p.op and a.inputs[0] is b.inputs[0]):
        return None
    source, i, j = a.inputs[0], a.attr("index"), b.attr("index")
    (start, middle), (begin, stop) = (_bounds(source.shape[axis], t[axis]) for t in (i, j))
    along = i[axis][2] == j[axis][2] == 1 and middle == begin
    if not along or (*i[:axis], *i[axis + 1 :]) != (*j[:axis], *j[axis + 1 :]):
        return None
    return slice_p(source, index=(*i[:axis], (start, stop, 1), *i[axis + 1 :]))


@rule(
    exact=Exact.VALUES,
    kinds="f",
    single_use=True,
    when=lambda x, shape: x.shape == shape,
    last=True,
)
def sum_with_placed(x: Var, u: Var, shape: Attr, index: Attr) -> Rewrite:
    """What is added in one place is added there: elsewhere there is nothing to do."""
    return Rewrite(
        before=x + place(u, shape=shape, index=index), after=put(x, u, index=index, mode="add")
    )

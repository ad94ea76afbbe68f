"""Matrix products: scalars, signs and transposes moved through them, and what repeats in them."""

from __future__ import annotations

from symgrad.ir.dims import Shape, guess, product
from symgrad.ir.node import Node
from symgrad.ops.elementwise import negative
from symgrad.ops.leaves import eye_p, zeros
from symgrad.ops.linalg.products import is_thin, matmul_p, matmul_tn
from symgrad.ops.reduce import sum
from symgrad.ops.shape import broadcast_to, matrix_transpose, moveaxis, permute_dims, reshape
from symgrad.rewrite.pattern import Attr, Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule
from symgrad.rules.masks import is_scalar, may_enter, may_leave, product_is_largest, product_size

# ---- scalars --------------------------------------------------------------------------------


def _is_smaller(a: Node, b: Node) -> bool:
    return guess(a.size) <= guess(b.size)


def _into_left(a: Node, b: Node, c: Node) -> bool:
    return is_scalar(c) and _is_smaller(a, b) and may_enter(c) and product_is_largest(a, b)


def _into_right(a: Node, b: Node, c: Node) -> bool:
    return is_scalar(c) and not _is_smaller(a, b) and may_enter(c) and product_is_largest(a, b)


MATRICES = ({"a": (4, 2), "b": (2, 5), "c": -0.3}, {"a": (5, 2), "b": (2, 4), "c": 0.5})


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=_into_left, examples=MATRICES)
def scalar_through_matmul(a: Var, b: Var, c: Const) -> Rewrite:
    """A scalar factor of a matrix product moves to the smaller operand: fewer multiplications."""
    return Rewrite(before=matmul_p(a, b) * c, after=matmul_p(a * c, b))


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=_into_right, examples=MATRICES)
def scalar_through_matmul_right(a: Var, b: Var, c: Const) -> Rewrite:
    """A scalar factor of a matrix product moves to the smaller operand: fewer multiplications."""
    return Rewrite(before=matmul_p(a, b) * c, after=matmul_p(a, b * c))


def _shrinks(x: Node, other: Node, c: Node, rows: Node, columns: Node) -> bool:
    result = product_size(rows, columns)
    return is_scalar(c) and may_leave(c) and result < guess(x.size) and result <= guess(other.size)


WIDE = ({"a": (2, 5), "b": (5, 3), "c": 3.0},)


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    single_use=True,
    examples=WIDE,
    when=lambda a, b, c: _shrinks(a, b, c, a, b),
)
def scalar_out_of_left(a: Var, b: Var, c: Const) -> Rewrite:
    """A scalar factor moves out of an operand that is larger than the product."""
    return Rewrite(before=matmul_p(a * c, b), after=matmul_p(a, b) * c)


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    single_use=True,
    examples=WIDE,
    when=lambda a, b, c: _shrinks(b, a, c, a, b),
)
def scalar_out_of_right(a: Var, b: Var, c: Const) -> Rewrite:
    """A scalar factor moves out of an operand that is larger than the product."""
    return Rewrite(before=matmul_p(a, b * c), after=matmul_p(a, b) * c)


# ---- signs ----------------------------------------------------------------------------------


@rule(exact=Exact.BITS, kinds="iuf")
def product_of_negatives(a: Var, b: Var) -> Rewrite:
    """The signs of two factors cancel."""
    return Rewrite(before=matmul_p(negative(a), negative(b)), after=matmul_p(a, b))


def _is_small(a: Node, b: Node, x: Node) -> bool:
    batch = guess(product(x.shape[:-2]))
    return guess(a.shape[-2]) * guess(b.shape[-1]) * batch <= guess(x.size)


@rule(
    exact=Exact.VALUES,
    kinds="f",
    single_use=True,
    when=lambda a, b: a.ndim >= b.ndim and _is_small(a, b, a),
)
def sign_out_of_left(a: Var, b: Var) -> Rewrite:
    """A change of sign moves out of an operand that is no smaller, to where it may be absorbed."""
    return Rewrite(before=matmul_p(negative(a), b), after=negative(matmul_p(a, b)))


@rule(
    exact=Exact.VALUES,
    kinds="f",
    single_use=True,
    when=lambda a, b: b.ndim >= a.ndim and _is_small(a, b, b),
)
def sign_out_of_right(a: Var, b: Var) -> Rewrite:
    """A change of sign moves out of an operand that is no smaller, to where it may be absorbed."""
    return Rewrite(before=matmul_p(a, negative(b)), after=negative(matmul_p(a, b)))


# ---- transposes -----------------------------------------------------------------------------


def is_transposed(axes: tuple[int, ...]) -> bool:
    """Whether a permutation swaps the last two axes and nothing else."""
    n = len(axes)
    return n >= 2 and axes == (*range(n - 2), n - 1, n - 2)


def is_identity(e: Node) -> bool:
    """Whether a matrix is seen to be the identity."""
    return e.op is eye_p.op and e.shape[0] == e.shape[1] and e.attr("k") == 0


def _are_transposed(p: tuple[int, ...], q: tuple[int, ...]) -> bool:
    return is_transposed(p) and is_transposed(q)


@rule(
    exact=Exact.ROUNDING,
    single_use=True,
    when=_are_transposed,
    examples=({"a": (4, 3), "b": (4, 2), "p": (1, 0), "q": (1, 0)},),
)
def transpose_of_product_left(a: Var, b: Var, p: Attr, q: Attr) -> Rewrite:
    """A product transposed is that of the transposes the other way round: two of three cancel."""
    return Rewrite(
        before=permute_dims(matmul_p(permute_dims(a, axes=p), b), axes=q),
        after=lambda a, b: matmul_p(matrix_transpose(b), a),
    )


@rule(
    exact=Exact.ROUNDING,
    single_use=True,
    when=_are_transposed,
    examples=({"a": (2, 3, 4), "b": (2, 5, 4), "p": (0, 2, 1), "q": (0, 2, 1)},),
)
def transpose_of_product_right(a: Var, b: Var, p: Attr, q: Attr) -> Rewrite:
    """A product transposed is that of the transposes the other way round: two of three cancel."""
    return Rewrite(
        before=permute_dims(matmul_p(a, permute_dims(b, axes=p)), axes=q),
        after=lambda a, b: matmul_p(b, matrix_transpose(a)),
    )


# ---- thin products --------------------------------------------------------------------------


@rule(
    exact=Exact.VALUES,
    kinds="iuf",
    when=lambda a: a.shape[-1] == 1,
    examples=({"a": (3, 1), "b": (1, 4)}, {"a": (2, 3, 1), "b": (1, 4)}),
)
def outer_product(a: Var, b: Var) -> Rewrite:
    """A column times a row is a product that broadcasts: nothing is summed."""
    return Rewrite(before=matmul_p(a, b), after=a * b)


@rule(
    exact=Exact.ROUNDING,
    when=lambda a: a.shape[-1] == 0,
    examples=({"a": (3, 0), "b": (0, 4)},),
)
def product_over_nothing(a: Var, b: Var) -> Rewrite:
    """A sum of no products is 0."""
    return Rewrite(
        before=matmul_p(a, b),
        after=lambda a, b: zeros((a.shape[-2], b.shape[-1]), dtype=a.dtype),
    )


# ---- what was repeated ----------------------------------------------------------------------


def _is_repeated(x: Node, p: Shape, axis: int) -> bool:
    """Whether a matrix is the same all along an axis."""
    return len(p) >= 2 and p[axis] != 1 and (x.ndim < -axis or x.shape[axis] == 1)


@rule(
    exact=Exact.ROUNDING,
    kinds="iuf",
    when=lambda a, p: _is_repeated(a, p, -2),
    examples=({"a": (1, 3), "p": (4, 3), "b": (3, 2)}, {"a": (), "p": (2, 3), "b": (3, 2)}),
)
def repeated_rows(a: Var, b: Var, p: Attr) -> Rewrite:
    """Of rows that are all the same, one is multiplied, and the product repeated."""
    return Rewrite(
        before=matmul_p(broadcast_to(a, shape=p), b),
        after=lambda a, b, p: matmul_p(broadcast_to(a, (*p[:-2], 1, p[-1])), b),
    )


@rule(
    exact=Exact.ROUNDING,
    kinds="iuf",
    when=lambda b, p: _is_repeated(b, p, -1),
    examples=({"a": (4, 3), "b": (3, 1), "p": (3, 2)}, {"a": (4, 3), "b": (), "p": (3, 2)}),
)
def repeated_columns(a: Var, b: Var, p: Attr) -> Rewrite:
    """Of columns that are all the same, one is multiplied, and the product repeated."""
    return Rewrite(
        before=matmul_p(a, broadcast_to(b, shape=p)),
        after=lambda a, b, p: matmul_p(a, broadcast_to(b, (*p[:-1], 1))),
    )


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    when=lambda c, p: may_leave(c) and p[-2] == 1,
    examples=({"c": 3.0, "p": (1, 4), "b": (4, 2)},),
)
def row_of_constants(b: Var, c: Const, p: Attr) -> Rewrite:
    """A product with a row of one number is a sum, scaled."""
    return Rewrite(
        before=matmul_p(broadcast_to(c, shape=p), b),
        after=lambda b, c: sum(b, axis=-2, keepdims=True) * reshape(c, ()),
    )


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    when=lambda c, p: may_leave(c) and p[-1] == 1,
    examples=({"a": (3, 4), "c": 3.0, "p": (4, 1)},),
)
def column_of_constants(a: Var, c: Const, p: Attr) -> Rewrite:
    """A product with a column of one number is a sum, scaled."""
    return Rewrite(
        before=matmul_p(a, broadcast_to(c, shape=p)),
        after=lambda a, c: sum(a, axis=-1, keepdims=True) * reshape(c, ()),
    )


def _is_batch(x: Node, p: Shape) -> bool:
    return x.ndim >= 2 and x.shape[-2:] == p[-2:]


@rule(
    exact=Exact.ROUNDING,
    when=lambda a, p: _is_batch(a, p),
    examples=(
        {"a": (4, 3), "p": (5, 4, 3), "b": (3, 2)},
        {"a": (4, 3), "p": (2, 4, 3), "b": (2, 3, 4)},
    ),
)
def batch_repeated_left(a: Var, b: Var, p: Attr) -> Rewrite:
    """One matrix that stands for many is multiplied once where it can, and broadcast elsewhere."""
    return Rewrite(before=matmul_p(broadcast_to(a, shape=p), b), after=lambda a, b: matmul_p(a, b))


@rule(
    exact=Exact.ROUNDING,
    when=lambda b, p: _is_batch(b, p),
    examples=(
        {"a": (4, 3), "b": (3, 2), "p": (5, 3, 2)},
        {"a": (2, 4, 3), "b": (3, 2), "p": (2, 3, 2)},
    ),
)
def batch_repeated_right(a: Var, b: Var, p: Attr) -> Rewrite:
    """One matrix that stands for many is multiplied once where it can, and broadcast elsewhere."""
    return Rewrite(before=matmul_p(a, broadcast_to(b, shape=p)), after=lambda a, b: matmul_p(a, b))


def _batch_is_inner(a: Node, b: Node, axis: tuple[int, ...]) -> bool:
    """Whether a sum is over the batch, and the batch can be part of what a product sums over."""
    lead = a.ndim - 2
    if not 0 < lead == b.ndim - 2 or axis != tuple(range(lead)) or a.shape[:-2] != b.shape[:-2]:
        return False
    is_view = a.op is permute_dims.op and is_transposed(a.attr("axes"))
    return is_view or guess(a.shape[-1]) <= guess(b.shape[-1])


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    single_use=True,
    when=_batch_is_inner,
    examples=({"a": (5, 2, 3), "b": (5, 3, 4), "axis": (0,)},),
)
def sum_over_batch(a: Var, b: Var, axis: Attr) -> Rewrite:
    """A sum of matrix products is one product, of the matrices side by side."""

    def after(a: Node, b: Node) -> Node:
        inner = product((*a.shape[:-2], a.shape[-1]))
        rows = reshape(moveaxis(a, -2, 0), (a.shape[-2], inner))
        return matmul_p(rows, reshape(b, (inner, b.shape[-1])))

    return Rewrite(before=sum(matmul_p(a, b), axis=axis, dtype=None, keepdims=False), after=after)


@rule(
    exact=Exact.BITS,
    when=lambda x, g: x.ndim == g.ndim == 2 and is_thin(*g.shape),
    examples=({"x": (300, 3), "g": (300, 1)},),
    last=True,
)
def product_over_rows(x: Var, g: Var) -> Rewrite:
    """A sum over rows of outer products can share one pass over the rows with what made them."""
    return Rewrite(before=matmul_p(permute_dims(x, axes=(1, 0)), g), after=matmul_tn(x, g))

"""Contractions: sums over products as products, products of all elements, the order of products.

A matrix product with inf in it may be NaN where the same in another order is not. So what regroups
factors holds for real numbers only.
"""

from __future__ import annotations

from symgrad.ir.dims import guess
from symgrad.ir.node import Node
from symgrad.ops.elementwise import negative
from symgrad.ops.leaves import constant
from symgrad.ops.linalg.einsum import Term, multiplied
from symgrad.ops.linalg.products import matmul_p, vdot_p
from symgrad.ops.reduce import reduced_shape, sum
from symgrad.ops.shape import broadcast_to, permute_dims, reshape, reshaped
from symgrad.rewrite.family import DIFFERENCE
from symgrad.rewrite.pattern import Attr, Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule
from symgrad.rules.masks import is_positive, is_scalar, may_leave

# ---- sums over products ---------------------------------------------------------------------


def _contracts(x: Node, y: Node, axis: tuple[int, ...]) -> bool:
    """Whether a sum of products, of what broadcasts, is a matrix product and no array is copied.

    What is summed over must be in both factors. Of batches of vectors NumPy makes no fast products.
    """
    n = max(x.ndim, y.ndim)
    one, other = ({i for i in range(n) if i >= n - z.ndim and z.shape[i - n] != 1} for z in (x, y))
    summed = {*axis} & (one | other)
    alone = one ^ other
    batch = (one & other) - summed
    if not summed or not alone or summed & alone:
        return False
    return not batch or (bool(one - other) and bool(other - one) and _leads(batch, one | other))


def _leads(batch: set[int], every: set[int]) -> bool:
    return sorted(every)[: len(batch)] == sorted(batch)


def _contraction(x: Node, y: Node, axis: tuple[int, ...], keepdims: bool) -> Node:
    n = max(x.ndim, y.ndim)
    terms = []
    for z in (x, y):
        sizes = {str(i): z.shape[i - n] for i in range(n - z.ndim, n) if z.shape[i - n] != 1}
        terms.append(Term(reshaped(z, tuple(sizes.values())), tuple(sizes)))
    kept = [str(i) for i in range(n) if i not in axis]
    first = next((s for s in kept if (s in terms[0].labels) != (s in terms[1].labels)), None)
    left, right = terms if first in terms[0].labels else terms[::-1]
    product = multiplied(left, right, kept)
    whole = product.ordered([s for s in kept if s in product.labels])
    return reshaped(whole, reduced_shape((x * y).tensor, axis, keepdims))


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    single_use=True,
    when=_contracts,
    examples=(
        {"x": (3, 4, 1), "y": (1, 4, 5), "axis": (1,), "keepdims": False},
        {"x": (4,), "y": (3, 4), "axis": (1,), "keepdims": True},
        {"x": (2, 3, 1, 4), "y": (2, 1, 5, 4), "axis": (3,), "keepdims": False},
        {"x": (3, 4, 1, 2), "y": (4, 5, 2), "axis": (1, 3), "keepdims": False},
    ),
)
def sum_of_outer_products(x: Var, y: Var, axis: Attr, keepdims: Attr) -> Rewrite:
    """A sum over products of what broadcasts is a matrix product: no array of products is made."""
    return Rewrite(before=sum(x * y, axis=axis, dtype=None, keepdims=keepdims), after=_contraction)


# ---- products of all elements ---------------------------------------------------------------


@rule(exact=Exact.VALUES, kinds="f", single_use=True)
def dot_of_negative(x: Var, y: Var) -> Rewrite:
    """The sign changes once, after the sum, instead of at every element."""
    return Rewrite(before=vdot_p(negative(x), y), after=negative(vdot_p(x, y)))


@rule(exact=Exact.VALUES, kinds="f", single_use=True)
def dot_with_negative(x: Var, y: Var) -> Rewrite:
    """The sign changes once, after the sum, instead of at every element."""
    return Rewrite(before=vdot_p(x, negative(y)), after=negative(vdot_p(x, y)))


def _may_leave(c: Node) -> bool:
    return is_scalar(c) and may_leave(c)


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=_may_leave)
def dot_of_scaled(x: Var, y: Var, c: Const) -> Rewrite:
    """A scalar factor is multiplied once, after the sum, instead of at every element."""
    return Rewrite(before=vdot_p(x * c, y), after=vdot_p(x, y) * c)


@rule(exact=Exact.ROUNDING, kinds="f", single_use=True, when=_may_leave)
def dot_with_scaled(x: Var, y: Var, c: Const) -> Rewrite:
    """A scalar factor is multiplied once, after the sum, instead of at every element."""
    return Rewrite(before=vdot_p(x, y * c), after=vdot_p(x, y) * c)


@rule(exact=Exact.ROUNDING, kinds="f", when=may_leave)
def dot_with_constant(x: Var, c: Const, p: Attr) -> Rewrite:
    """A sum of products with one number is a sum, scaled."""
    return Rewrite(
        before=vdot_p(x, broadcast_to(c, shape=p)), after=lambda x, c: sum(x) * reshape(c, ())
    )


@rule(exact=Exact.ROUNDING, kinds="f")
def dot_of_permuted(x: Var, y: Var, p: Attr) -> Rewrite:
    """A sum over all elements does not see in which order the axes are."""
    return Rewrite(
        before=vdot_p(permute_dims(x, axes=p), permute_dims(y, axes=p)), after=vdot_p(x, y)
    )


@rule(exact=Exact.ROUNDING, kinds="f", when=lambda x, y: x.shape == y.shape and x.ndim > 0)
def dot_of_reshaped(x: Var, y: Var, p: Attr) -> Rewrite:
    """A sum over all elements does not see in which shape they are."""
    return Rewrite(before=vdot_p(reshape(x, shape=p), reshape(y, shape=p)), after=vdot_p(x, y))


# ---- the order of products ------------------------------------------------------------------


def _steps(*nodes: Node) -> int:
    """The multiplications in a product of three matrices, the first two multiplied first."""
    a, b, c = nodes
    rows, inner, columns = guess(a.shape[-2]), guess(b.shape[-2]), guess(b.shape[-1])
    return rows * columns * (inner + guess(c.shape[-1]))


def _steps_from_right(a: Node, b: Node, c: Node) -> int:
    rows, columns = guess(a.shape[-2]), guess(c.shape[-1])
    return guess(b.shape[-2]) * columns * (guess(b.shape[-1]) + rows)


def _are_matrices(*nodes: Node) -> bool:
    return all(x.ndim == 2 for x in nodes)


@rule(
    exact=Exact.REALS,
    kinds="f",
    single_use=True,
    when=lambda a, b, c: _are_matrices(a, b, c) and _steps_from_right(a, b, c) < _steps(a, b, c),
    examples=({"a": (4, 5), "b": (5, 4), "c": (4, 1)},),
)
def chain_from_right(a: Var, b: Var, c: Var) -> Rewrite:
    """Of three matrices the last two are multiplied first, where that takes fewer operations."""
    return Rewrite(before=matmul_p(matmul_p(a, b), c), after=matmul_p(a, matmul_p(b, c)))


@rule(
    exact=Exact.REALS,
    kinds="f",
    single_use=True,
    when=lambda a, b, c: _are_matrices(a, b, c) and _steps(a, b, c) < _steps_from_right(a, b, c),
    examples=({"a": (1, 5), "b": (5, 4), "c": (4, 3)},),
)
def chain_from_left(a: Var, b: Var, c: Var) -> Rewrite:
    """Of three matrices the first two are multiplied first, where that takes fewer operations."""
    return Rewrite(before=matmul_p(a, matmul_p(b, c)), after=matmul_p(matmul_p(a, b), c))


def _are_column_and_row(x: Node, y: Node) -> bool:
    is_row = y.ndim > 0 and y.shape[-1] != 1 and (y.ndim < 2 or y.shape[-2] == 1)
    return x.ndim >= 2 and x.shape[-1] == 1 and is_row


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    when=lambda x, c: _are_column_and_row(x, c) and is_positive(c) and may_leave(c),
    examples=(lambda x: matmul_p(x, x.T[:, :1] * constant([3, 5, 1], x.dtype)),),
)
def times_column_and_constants(a: Var, x: Var, c: Var) -> Rewrite:
    """A row of modest constants, 1 or more, leaves a product with a column: that of a vector."""
    return Rewrite(before=matmul_p(a, x * c), after=matmul_p(a, x) * c)


@rule(
    exact=Exact.REALS,
    kinds="f",
    single_use=True,
    when=_are_column_and_row,
    examples=({"a": (3, 4), "x": (4, 1), "y": (1, 5)},),
)
def times_outer_product(a: Var, x: Var, y: Var) -> Rewrite:
    """Of a column times a row, the column is multiplied first: a vector, not a matrix."""
    return Rewrite(before=matmul_p(a, x * y), after=matmul_p(a, x) * y)


@rule(
    exact=Exact.REALS,
    kinds="f",
    single_use=True,
    when=_are_column_and_row,
    examples=({"x": (3, 1), "y": (1, 4), "a": (4, 5)},),
)
def outer_product_times(x: Var, y: Var, a: Var) -> Rewrite:
    """Of a column times a row, the row is multiplied first: a vector, not a matrix."""
    return Rewrite(
        before=matmul_p(x * y, a),
        after=lambda x, y, a: x * matmul_p(reshaped(y, (*y.shape[:-2], 1, y.shape[-1])), a),
    )


# ---- one product instead of two, or of a smaller one ----------------------------------------


def _alike(a: Node, b: Node) -> bool:
    return a.shape == b.shape


@rule(exact=Exact.REALS, kinds="f", single_use=True, when=_alike, family=(DIFFERENCE,))
def common_right_factor_of_sum(a: Var, b: Var, c: Var) -> Rewrite:
    """Two products with one factor are one product of the sum."""
    return Rewrite(before=matmul_p(a, c) + matmul_p(b, c), after=matmul_p(a + b, c))


@rule(exact=Exact.REALS, kinds="f", single_use=True, when=_alike, family=(DIFFERENCE,))
def common_left_factor_of_sum(a: Var, b: Var, c: Var) -> Rewrite:
    """Two products with one factor are one product of the sum."""
    return Rewrite(before=matmul_p(c, a) + matmul_p(c, b), after=matmul_p(c, a + b))


def _over_matrix(a: Node, b: Node, axis: tuple[int, ...]) -> bool:
    n = max(a.ndim, b.ndim)
    return bool(axis) and axis[0] >= n - 2


@rule(
    exact=Exact.REALS,
    kinds="f",
    single_use=True,
    when=_over_matrix,
    examples=(
        {"a": (3, 4), "b": (4, 5), "axis": (0,), "keepdims": False},
        {"a": (2, 3, 4), "b": (4, 5), "axis": (1, 2), "keepdims": True},
    ),
)
def sum_of_matrix_product(a: Var, b: Var, axis: Attr, keepdims: Attr) -> Rewrite:
    """A sum over rows or columns of a product is a product of their sums: vectors, not matrices."""

    def after(a: Node, b: Node, axis: tuple[int, ...], keepdims: bool) -> Node:
        n = max(a.ndim, b.ndim)
        rows = sum(a, axis=-2, keepdims=True) if n - 2 in axis else a
        columns = sum(b, axis=-1, keepdims=True) if n - 1 in axis else b
        y = matmul_p(rows, columns)
        return reshaped(y, tuple(s for i, s in enumerate(y.shape) if keepdims or i not in axis))

    return Rewrite(
        before=sum(matmul_p(a, b), axis=axis, dtype=None, keepdims=keepdims), after=after
    )

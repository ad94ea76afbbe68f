"""Systems of equations, and diagonal matrices: what need not be computed, or not in full.

What leaves zeros out, or solves instead of inverting, treats inf and NaN otherwise, and so holds
for real numbers only.
"""

from __future__ import annotations

from symgrad.ir.node import Node
from symgrad.ops.elementwise import multiply
from symgrad.ops.leaves import eye, ones
from symgrad.ops.linalg.assume import assume, assume_p
from symgrad.ops.linalg.products import matmul_p
from symgrad.ops.linalg.solve import diagonal_p, inv_p, on_diagonal, solve_p
from symgrad.ops.linalg.triangular import (
    cho_solve,
    cholesky_p,
    inv_definite,
    inv_triangular,
    log_diagonal,
    logdet_definite,
    solve_definite,
    solve_triangular_p,
)
from symgrad.ops.reduce import sum
from symgrad.ops.shape import (
    expand_dims,
    matrix_transpose,
    permute_dims,
    reshape,
    reshape_p,
)
from symgrad.ops.trigonometry import tanh
from symgrad.rewrite.pattern import Attr, Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule, rule_for
from symgrad.rules.masks import may_leave_right_side
from symgrad.rules.matmul import is_identity, is_transposed
from symgrad.rules.normal.cholesky import definite

# ---- diagonals ------------------------------------------------------------------------------


@rule(
    exact=Exact.ROUNDING, kinds="f", single_use=True, when=lambda a, b: a.shape[-2] == b.shape[-1]
)
def diagonal_of_product(a: Var, b: Var) -> Rewrite:
    """Of a product of which only the diagonal is read, only the diagonal is computed."""
    return Rewrite(
        before=diagonal_p(matmul_p(a, b), offset=0),
        after=lambda a, b: sum(a * matrix_transpose(b), axis=-1),
    )


@rule(
    exact=Exact.BITS,
    when=is_transposed,
    examples=({"x": (3, 4), "axes": (1, 0), "k": 1},),
)
def diagonal_of_transposed(x: Var, axes: Attr, k: Attr) -> Rewrite:
    """A transposed matrix has the same diagonals, those above below."""
    return Rewrite(
        before=diagonal_p(permute_dims(x, axes=axes), offset=k),
        after=lambda x, k: diagonal_p(x, offset=-k),
    )


@rule(exact=Exact.ROUNDING)
def diagonal_of_placed(x: Var, shape: Attr, k: Attr) -> Rewrite:
    """What was put on a diagonal is found there, but side by side: dot products may differ."""
    return Rewrite(before=diagonal_p(on_diagonal(x, shape=shape, offset=k), offset=k), after=x)


SQUARE = ({"x": (3,), "shape": (3, 3), "a": (3, 3)},)


def _is_square(shape: tuple[int, ...]) -> bool:
    return shape[0] == shape[1]


@rule(exact=Exact.REALS, kinds="f", when=_is_square, examples=SQUARE)
def diagonal_matrix_times(x: Var, a: Var, shape: Attr) -> Rewrite:
    """A diagonal matrix scales rows; the zeros beside the diagonal need no product."""
    return Rewrite(
        before=matmul_p(on_diagonal(x, shape=shape, offset=0), a),
        after=lambda x, a: expand_dims(x, axis=-1) * a,
    )


@rule(exact=Exact.REALS, kinds="f", when=_is_square, examples=SQUARE)
def times_diagonal_matrix(x: Var, a: Var, shape: Attr) -> Rewrite:
    """A diagonal matrix scales columns; the zeros beside the diagonal need no product."""
    return Rewrite(
        before=matmul_p(a, on_diagonal(x, shape=shape, offset=0)),
        after=lambda x, a: a * expand_dims(x, axis=-2),
    )


# ---- systems of equations -------------------------------------------------------------------


def _regular(x: Node) -> Node:
    """A matrix whose diagonal outweighs the rest, for the tests: it has an inverse, whatever x."""
    made: Node = tanh(x[:, :3]) + 4 * eye(3, dtype=x.dtype)
    return made


@rule(
    exact=Exact.REALS,
    kinds="f",
    single_use=True,
    examples=(lambda a, b: matmul_p(inv_p(_regular(a)), b),),
)
def inverse_times(a: Var, b: Var) -> Rewrite:
    """A product with an inverse solves a system: a third of the work, and more exact."""
    return Rewrite(before=matmul_p(inv_p(a), b), after=solve_p(a, b))


@rule(
    exact=Exact.REALS,
    kinds="f",
    single_use=True,
    examples=(lambda a, b: matmul_p(b.T, inv_p(_regular(a))),),
)
def times_inverse_matrix(a: Var, b: Var) -> Rewrite:
    """A product with an inverse solves a system: a third of the work, and more exact."""
    return Rewrite(
        before=matmul_p(b, inv_p(a)),
        after=lambda a, b: matrix_transpose(solve_p(matrix_transpose(a), matrix_transpose(b))),
    )


@rule(exact=Exact.REALS, kinds="f", examples=(lambda a: inv_p(inv_p(_regular(a))),))
def inverse_of_inverse(a: Var) -> Rewrite:
    """The inverse of an inverse is the matrix, but for rounding, and unless it is singular."""
    return Rewrite(before=inv_p(inv_p(a)), after=a)


@rule(
    exact=Exact.REALS,
    kinds="f",
    single_use=True,
    examples=(lambda a, b: solve_p(inv_p(_regular(a)), b),),
)
def solve_with_inverse(a: Var, b: Var) -> Rewrite:
    """A system of an inverse is solved by a product, but for rounding, and if it is regular."""
    return Rewrite(before=solve_p(inv_p(a), b), after=matmul_p(a, b))


def _product_and_factor(x: Node, b: Node) -> Node:
    a = _regular(x)
    return solve_p(a, matmul_p(a, b))


@rule(exact=Exact.REALS, kinds="f", examples=(_product_and_factor,))
def solve_of_product(a: Var, b: Var) -> Rewrite:
    """Solving undoes a product, but for rounding, and unless the matrix is singular."""
    return Rewrite(before=solve_p(a, matmul_p(a, b)), after=b)


def _factor_and_solution(x: Node, b: Node) -> Node:
    a = _regular(x)
    return matmul_p(a, solve_p(a, b))


@rule(exact=Exact.REALS, kinds="f", examples=(_factor_and_solution,))
def product_of_solution(a: Var, b: Var) -> Rewrite:
    """A product undoes solving, but for rounding, and unless the matrix is singular."""
    return Rewrite(before=matmul_p(a, solve_p(a, b)), after=b)


@rule(
    exact=Exact.REALS,
    kinds="f",
    when=is_transposed,
    examples=({"a": (3, 3), "axes": (1, 0)},),
)
def inverse_of_transposed(a: Var, axes: Attr) -> Rewrite:
    """The inverse of a transpose is that of the matrix, transposed: it may be there already."""
    return Rewrite(
        before=inv_p(permute_dims(a, axes=axes)), after=lambda a: matrix_transpose(inv_p(a))
    )


@rule(
    exact=Exact.BITS,
    kinds="f",
    when=is_identity,
    examples=(lambda a: solve_p(_regular(a), eye(3)),),
)
def solve_of_identity(a: Var, e: Var) -> Rewrite:
    """What gives the identity is the inverse."""
    return Rewrite(before=solve_p(a, e), after=inv_p(a))


# ---- Cholesky factors -----------------------------------------------------------------------


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    when=is_identity,
    examples=(
        {"a": (3, 3), "e": (3, 3), "lower": True},
        lambda a: solve_triangular_p(_regular(a), eye(3, dtype=a.dtype), lower=True),
    ),
)
def triangular_system_of_identity(a: Var, e: Var, lower: Attr) -> Rewrite:
    """What gives the identity is the inverse: a third of the work, since it is triangular."""
    return Rewrite(
        before=solve_triangular_p(a, e, lower=lower),
        after=lambda a, lower: inv_triangular(a, lower=lower),
    )


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    when=is_identity,
    examples=(lambda a: solve_definite(definite(a), eye(3, dtype=a.dtype)),),
)
def definite_system_of_identity(a: Var, e: Var) -> Rewrite:
    """What gives the identity is the inverse."""
    return Rewrite(before=solve_definite(a, e), after=inv_definite(a))


@rule(exact=Exact.ROUNDING, kinds="f", examples=(lambda a: inv_definite(definite(a)),))
def definite_inverse_by_factor(a: Var) -> Rewrite:
    """An inverse is W.T @ W, for W the inverse of the Cholesky factor, which may be there."""

    def inverse(a: Node) -> Node:
        half = inv_triangular(cholesky_p(a), lower=True)
        return matmul_p(matrix_transpose(half), half)

    return Rewrite(before=inv_definite(a), after=inverse)


def _system_of_definite_inverse(a: Node, b: Node) -> Node:
    half = inv_triangular(cholesky_p(definite(a)), lower=True)
    return solve_p(matmul_p(half.T, half), b[:3])


@rule(
    exact=Exact.REALS,
    kinds="f",
    when=is_transposed,
    examples=(_system_of_definite_inverse,),
)
def solve_with_definite_inverse(a: Var, b: Var, axes: Attr) -> Rewrite:
    """A system of an inverse is solved by a product, but for rounding."""
    half = inv_triangular(cholesky_p(a), lower=True)
    return Rewrite(
        before=solve_p(matmul_p(permute_dims(half, axes=axes), half), b), after=matmul_p(a, b)
    )


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    when=may_leave_right_side,
    examples=(lambda a, b: solve_definite(definite(a), b[:3] * 3),),
)
def definite_system_of_scaled(a: Var, b: Var, c: Const) -> Rewrite:
    """A factor comes last: the system without it may be solved already."""
    return Rewrite(before=solve_definite(a, b * c), after=solve_definite(a, b) * c)


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    when=may_leave_right_side,
    examples=(
        {"a": (3, 3), "b": (3,), "c": 3.0, "p": (3, 1)},
        lambda a, b: solve_definite(definite(a), reshape(b[:3, 0] * 3, (3, 1))),
    ),
)
def definite_system_of_scaled_vector(a: Var, b: Var, c: Const, p: Attr) -> Rewrite:
    """A factor comes last: the system without it may be solved already."""
    return Rewrite(
        before=solve_definite(a, reshape(b * c, shape=p)),
        after=lambda a, b, c, p: solve_definite(a, reshape(b, p)) * reshape(c, ()),
    )


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    examples=(lambda a, b: solve_definite(definite(a), b[:3]),),
)
def definite_system_by_factor(a: Var, b: Var) -> Rewrite:
    """A positive definite system is two of the Cholesky factor, which may be there."""
    return Rewrite(
        before=solve_definite(a, b),
        after=lambda a, b: cho_solve(cholesky_p(a), b),
    )


@rule(exact=Exact.ROUNDING, kinds="f", examples=(lambda a: logdet_definite(definite(a)),))
def definite_determinant_by_factor(a: Var) -> Rewrite:
    """The logarithm of a determinant is that of the Cholesky factor's, which may be there."""
    return Rewrite(before=logdet_definite(a), after=lambda a: 2 * log_diagonal(cholesky_p(a)))


def _scale(row: Node, half: Node) -> Node | None:
    """The c with which a row is c times the right side of half a definite system, transposed."""
    if half.op is not solve_triangular_p.op or row.op is not reshape_p.op or row.shape[0] != 1:
        return None
    column, source = half.inputs[1], row.inputs[0]
    if column.op is not reshape_p.op or column.ndim != 2 or column.shape[1] != 1:
        return None
    if source is column.inputs[0]:
        return ones((), dtype=row.dtype)
    if source.op is multiply.op and source.inputs[0] is column.inputs[0]:
        return source.inputs[1] if source.inputs[1].ndim == 0 else None
    return None


def _is_form(row: Node, a: Node, half: Node, axes: tuple[int, ...]) -> bool:
    return is_transposed(axes) and _scale(row, half) is not None and half.inputs[0] is a


def _quadratic_form(a: Node, b: Node, c: float = 1) -> Node:
    right = tanh(b[:3, 0])
    row = reshape(right * c if c != 1 else right, (1, 3))
    return matmul_p(row, cho_solve(cholesky_p(definite(a)), reshape(right, (3, 1))))


@rule(
    exact=Exact.ROUNDING,
    kinds="f",
    single_use=True,
    when=_is_form,
    examples=(_quadratic_form, lambda a, b: _quadratic_form(a, b, 0.5)),
)
def quadratic_form_by_factor(row: Var, a: Var, half: Var, axes: Attr) -> Rewrite:
    """A quadratic form of an inverse is a sum of squares, after one of its two systems."""

    def squares(row: Node, half: Node) -> Node:
        found = matmul_p(matrix_transpose(half), half)
        scale = _scale(row, half)
        return found if scale is None else found * scale

    return Rewrite(
        before=matmul_p(row, solve_triangular_p(permute_dims(a, axes=axes), half, lower=False)),
        after=squares,
    )


# ---- what was declared ----------------------------------------------------------------------


@rule_for(
    lambda op: op is assume_p.op,
    exact=Exact.BITS,
    last=True,
    examples=(lambda x: assume(definite(x), "symmetric"),),
)
def assumption_of_operand(node: Node) -> Node | None:
    """When the rules that read it are done, a declared fact makes way for the matrix itself."""
    return node.inputs[0]

"""Normal forms of what is computed by a Cholesky factor and is a function of the matrix.

See `autodiff/normal.py`. The derivative by the matrix itself takes one inverse, and no derivative
of the factor: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section 5.4.1.
"""

from __future__ import annotations

from symgrad.ir.node import Node
from symgrad.ops.elementwise import log, square
from symgrad.ops.leaves import eye
from symgrad.ops.linalg.solve import diagonal_p
from symgrad.ops.linalg.triangular import (
    cho_solve,
    cholesky_p,
    logdet_definite,
    solve_definite,
    solve_triangular_p,
)
from symgrad.ops.linalg.triangular import solve_triangular as triangular_system
from symgrad.ops.reduce import sum
from symgrad.ops.shape import permute_dims, reshape
from symgrad.ops.trigonometry import tanh
from symgrad.rewrite.pattern import Attr, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule
from symgrad.rules.matmul import is_transposed


def definite(x: Node) -> Node:
    """A symmetric matrix whose diagonal outweighs the rest, for the tests."""
    half = tanh(x[:, :3])
    made: Node = half + half.T + 8 * eye(3, dtype=x.dtype)
    return made


def _by_factor(a: Node, b: Node) -> Node:
    return cho_solve(cholesky_p(definite(a)), b)


@rule(exact=Exact.REALS, kinds="f", when=is_transposed, examples=(_by_factor,))
def solved_by_factor(a: Var, b: Var, axes: Attr) -> Rewrite:
    """Two systems of a Cholesky factor and its transpose are one of the matrix."""
    factor = cholesky_p(a)
    return Rewrite(
        before=solve_triangular_p(
            permute_dims(factor, axes=axes), solve_triangular_p(factor, b, lower=True), lower=False
        ),
        after=solve_definite(a, b),
    )


def _vector_by_factor(a: Node, b: Node) -> Node:
    factor = cholesky_p(definite(a))
    half = triangular_system(factor, b[:, 0], lower=True)
    return triangular_system(factor, half, lower=True, trans=1)


@rule(
    exact=Exact.REALS,
    kinds="f",
    when=lambda b, axes, q: is_transposed(axes) and q == b.shape,
    examples=(_vector_by_factor,),
)
def vector_solved_by_factor(a: Var, b: Var, axes: Attr, p: Attr, q: Attr) -> Rewrite:
    """Two systems of a Cholesky factor and its transpose are one of the matrix."""
    factor = cholesky_p(a)
    half = solve_triangular_p(factor, b, lower=True)
    return Rewrite(
        before=solve_triangular_p(
            permute_dims(factor, axes=axes), reshape(reshape(half, shape=p), shape=q), lower=False
        ),
        after=solve_definite(a, b),
    )


@rule(
    exact=Exact.REALS,
    kinds="f",
    when=lambda b, axis: b.ndim - 2 in axis,
    examples=(
        lambda a, b: sum(square(triangular_system(cholesky_p(definite(a)), b[:3], lower=True))),
    ),
)
def squares_by_factor(a: Var, b: Var, axis: Attr, k: Attr) -> Rewrite:
    """The squares of a system of a Cholesky factor sum to b.T @ inv(a) @ b."""
    half = solve_triangular_p(cholesky_p(a), b, lower=True)
    return Rewrite(
        before=sum(square(half), axis=axis, dtype=None, keepdims=k),
        after=lambda a, b, axis, k: sum(b * solve_definite(a, b), axis=axis, keepdims=k),
    )


@rule(
    exact=Exact.REALS,
    kinds="f",
    when=lambda b, p: b.shape == (*p, 1),
    examples=(
        lambda a, b: sum(
            square(reshape(solve_triangular_p(cholesky_p(definite(a)), b[:, :1], lower=True), (3,)))
        ),
    ),
)
def squares_of_vector_by_factor(a: Var, b: Var, p: Attr, axis: Attr, k: Attr) -> Rewrite:
    """The squares of a system of a Cholesky factor sum to b @ inv(a) @ b."""
    half = solve_triangular_p(cholesky_p(a), b, lower=True)
    return Rewrite(
        before=sum(square(reshape(half, shape=p)), axis=axis, dtype=None, keepdims=k),
        after=lambda a, b, p, axis, k: sum(
            reshape(b * solve_definite(a, b), p), axis=axis, keepdims=k
        ),
    )


def _whole_logarithm(a: Node, axis: tuple[int, ...]) -> Node:
    halves: Node = logdet_definite(a) / 2
    return sum(halves, axis=axis[:-1]) if axis[:-1] else halves


@rule(
    exact=Exact.REALS,
    kinds="f",
    when=lambda a, axis: axis[-1:] == (a.ndim - 2,),
    examples=(lambda a: sum(log(diagonal_p(cholesky_p(definite(a)), offset=0))),),
)
def logarithms_of_factor(a: Var, axis: Attr) -> Rewrite:
    """The logarithms on a Cholesky factor's diagonal sum to half of that of the determinant."""
    return Rewrite(
        before=sum(log(diagonal_p(cholesky_p(a), offset=0)), axis=axis, dtype=None, keepdims=False),
        after=_whole_logarithm,
    )

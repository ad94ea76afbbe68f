"""Rules for what is known of matrices: systems, inverses and determinants by the factor that suits.

What a matrix is made of tells its facts (`symgrad.ops.linalg.facts`). They are of real numbers, and
so are these rules. What a user declared by `assume` is taken as it is built, by `linalg.solve`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from symgrad.ir.node import Node
from symgrad.ir.op import Op
from symgrad.ops.creation import tril
from symgrad.ops.elementwise import sqrt
from symgrad.ops.leaves import eye
from symgrad.ops.linalg.assume import Facts
from symgrad.ops.linalg.determinants import det_p, slogdet_p
from symgrad.ops.linalg.facts import facts_of, is_transpose
from symgrad.ops.linalg.products import matmul_p
from symgrad.ops.linalg.solve import inv_p, on_diagonal, solve_p
from symgrad.ops.linalg.systems import determinant, diagonal_of, inverse, logarithm, system
from symgrad.ops.linalg.triangular import (
    cholesky_p,
)
from symgrad.ops.reduce import sum
from symgrad.ops.shape import item, matrix_transpose, permute_dims, reshaped
from symgrad.ops.trigonometry import tanh
from symgrad.rewrite.pattern import Var
from symgrad.rewrite.rule import Exact, Rewrite, rule, rule_for
from symgrad.rules.matmul import is_identity, is_transposed
from symgrad.rules.normal.cholesky import definite

# ---- matrices for the tests -----------------------------------------------------------------


def _lower(x: Node) -> Node:
    return tril(definite(x))


def _numbers(x: Node) -> Node:
    """Three numbers from 1 to 3."""
    made: Node = tanh(x[:, 0]) + 2
    return made


def _diagonal(x: Node) -> Node:
    return on_diagonal(_numbers(x), shape=(3, 3), offset=0)


def _gram(x: Node) -> Node:
    made: Node = _with_transpose(tanh(x)) + eye(3, dtype=x.dtype)
    return made


def _with_transpose(x: Node) -> Node:
    return matmul_p(x, x.T)


MADE = (_lower, lambda x: _lower(x).T, _diagonal, _gram)


# ---- by facts -------------------------------------------------------------------------------


def _factored(a: Node, facts: Facts) -> Node | None:
    diagonal = Facts.DIAGONAL in facts
    made = on_diagonal(sqrt(diagonal_of(a)), shape=a.shape[-2:], offset=0) if diagonal else None
    return made


def _result(node: Node) -> Node | None:
    source, index = node.inputs[0], node.attr("index")
    if source.op is not slogdet_p.op:
        return None
    return logarithm(source.inputs[0], facts_of(source.inputs[0]), index)


def _transposed(node: Node) -> Node | None:
    (a,) = node.inputs
    return a if is_transposed(node.attr("axes")) and Facts.SYMMETRIC in facts_of(a) else None


WAYS: Mapping[Op, Callable[[Node], Node | None]] = MappingProxyType(
    {
        solve_p.op: lambda node: system(node.inputs[0], node.inputs[1], facts_of(node.inputs[0])),
        inv_p.op: lambda node: inverse(node.inputs[0], facts_of(node.inputs[0])),
        det_p.op: lambda node: determinant(node.inputs[0], facts_of(node.inputs[0])),
        cholesky_p.op: lambda node: _factored(node.inputs[0], facts_of(node.inputs[0])),
        item.op: _result,
        permute_dims.op: _transposed,
    }
)


def _solutions(matrix: Callable[[Node], Node]) -> tuple[Callable[[Node], Node], ...]:
    """A system, an inverse and a determinant of a matrix, for the tests of a rule."""
    return (
        lambda x: solve_p(matrix(x), tanh(x[:, :2])),
        lambda x: inv_p(matrix(x)),
        lambda x: slogdet_p(matrix(x))[1],
    )


@rule_for(
    WAYS.__contains__,
    exact=Exact.REALS,
    examples=(
        *(made for matrix in MADE for made in _solutions(matrix)),
        lambda x: slogdet_p(_lower(x))[0],
        lambda x: slogdet_p(_gram(x))[0],
        lambda x: det_p(_lower(x)),
        lambda x: det_p(_gram(x)),
        lambda x: cholesky_p(_diagonal(x)),
        lambda x: matrix_transpose(_gram(x)),
        lambda x: matrix_transpose(definite(x)),
    ),
)
def factorisation_by_facts(node: Node) -> Node | None:
    """A diagonal matrix takes quotients, a triangular one a substitution, an orthogonal one its
    transpose, and a positive definite one a Cholesky factor, half the work of any other. One that
    is symmetric is its own transpose."""
    return WAYS[node.op](node)


@rule_for(
    lambda op: op is cholesky_p.op,
    exact=Exact.REALS,
    operands=lambda ops: ops[0] is matmul_p.op,
    examples=(lambda x: cholesky_p(_with_transpose(cholesky_p(definite(x)))),),
)
def factor_of_its_product(node: Node) -> Node | None:
    """The Cholesky factor of L @ L.T is L, where L is one, of real numbers."""
    a, b = node.inputs[0].inputs
    if node.tensor.is_complex or a.op is not cholesky_p.op or b.op is not permute_dims.op:
        return None
    return a if is_transpose(a, b) else None


# ---- the identity ----------------------------------------------------------------------------


def _scales(e: Node, x: Node) -> bool:
    """Whether the first of two factors is the identity, and the other scales rows or columns."""
    return is_identity(e) and x.ndim in (1, 2) and x.size == e.shape[0]


@rule(
    exact=Exact.REALS,
    kinds="f",
    when=_scales,
    examples=(lambda x, a: matmul_p(eye(3) * sum(x, axis=1), a),),
)
def scaled_identity_times(e: Var, x: Var, a: Var) -> Rewrite:
    """The identity, scaled, scales rows; the zeros beside the diagonal need no product."""
    return Rewrite(before=matmul_p(e * x, a), after=lambda x, a: reshaped(x, (a.shape[-2], 1)) * a)


@rule(
    exact=Exact.REALS,
    kinds="f",
    when=_scales,
    examples=(lambda x, a: matmul_p(a, eye(4) * sum(x, axis=0)),),
)
def times_scaled_identity(e: Var, x: Var, a: Var) -> Rewrite:
    """The identity, scaled, scales columns; the zeros beside the diagonal need no product."""
    return Rewrite(before=matmul_p(a, e * x), after=lambda x, a: a * reshaped(x, (a.shape[-1],)))


@rule(exact=Exact.REALS, kinds="f", when=is_identity, examples=(lambda a: matmul_p(eye(3), a),))
def identity_times(e: Var, a: Var) -> Rewrite:
    """The identity is neutral in a product of matrices."""
    return Rewrite(before=matmul_p(e, a), after=a)


@rule(exact=Exact.REALS, kinds="f", when=is_identity, examples=(lambda a: matmul_p(a, eye(4)),))
def times_identity(e: Var, a: Var) -> Rewrite:
    """The identity is neutral in a product of matrices."""
    return Rewrite(before=matmul_p(a, e), after=a)

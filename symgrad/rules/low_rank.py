"""Rules for matrices made of small ones: Kronecker products, and low rank beside a diagonal."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from symgrad.ir.node import Node
from symgrad.ops.creation import tril
from symgrad.ops.elementwise import abs, add, log, multiply, sign
from symgrad.ops.leaves import eye, ones
from symgrad.ops.linalg.assume import Facts
from symgrad.ops.linalg.determinants import slogdet_p
from symgrad.ops.linalg.facts import facts_of
from symgrad.ops.linalg.matrices import kron
from symgrad.ops.linalg.products import matmul_p
from symgrad.ops.linalg.solve import inv_p, on_diagonal, solve_p
from symgrad.ops.linalg.systems import diagonal_of
from symgrad.ops.reduce import prod, sum
from symgrad.ops.shape import expand_dims, item, reshape, reshape_p
from symgrad.ops.trigonometry import tanh
from symgrad.rewrite.rule import Exact, rule_for
from symgrad.rules.normal.cholesky import definite

# ---- Kronecker products ---------------------------------------------------------------------


Pair: TypeAlias = tuple[Node, Node]


def _factors_of(x: Node) -> Pair | None:
    """The square factors, if a matrix is seen to be a Kronecker product."""
    product = x.inputs[0] if x.op is reshape_p.op else x
    if product.op is not multiply.op or product.ndim != 4 or x.ndim != 2:
        return None
    if x.shape[0] != x.shape[1]:
        return None  # the same elements, in rows of another length
    for outer, inner in (product.inputs, product.inputs[::-1]):
        if outer.ndim == inner.ndim == 4:
            m, p = outer.shape[0], inner.shape[1]
            if outer.shape == (m, 1, m, 1) and inner.shape == (1, p, 1, p):
                return reshape(outer, (m, m)), reshape(inner, (p, p))
    return None


def _by_factors(pair: Pair, y: Node, one: Callable[[Node, Node], Node]) -> Node:
    """kron(a, b) acting on the columns of y, where `one` is how a factor acts."""
    a, b = pair
    m, p, k = a.shape[0], b.shape[0], y.shape[-1]
    inner = one(b, reshape(y, (m, p, k)))
    return reshape(one(a, reshape(inner, (m, p * k))), (m * p, k))


def _pair(x: Node) -> Node:
    return kron(definite(x), 2 * tril(definite(x))[:2, :2])


def _right(x: Node) -> Node:
    return reshape(tanh(x[:, :2]), (6, 1))


@rule_for(
    lambda op: op in (solve_p.op, matmul_p.op),
    exact=Exact.REALS,
    operands=lambda ops: ops[0] is reshape_p.op,
    examples=(
        lambda x: solve_p(_pair(x), _right(x)),
        lambda x: matmul_p(_pair(x), _right(x)),
    ),
)
def kronecker_by_factors(node: Node) -> Node | None:
    """kron(a, b) @ vec(y) is vec(a @ y @ b.T), so that systems and products are of the factors.

    C. F. Van Loan, The ubiquitous Kronecker product, 2000.
    """
    x, y = node.inputs
    pair = _factors_of(x)
    if pair is None or y.ndim != 2:
        return None
    return _by_factors(pair, y, solve_p if node.op is solve_p.op else matmul_p)


@rule_for(
    lambda op: op is inv_p.op,
    exact=Exact.REALS,
    operands=lambda ops: ops[0] is reshape_p.op,
    examples=(lambda x: inv_p(_pair(x)),),
)
def inverse_of_kronecker(node: Node) -> Node | None:
    """The inverse of a Kronecker product is that of the inverses."""
    pair = _factors_of(node.inputs[0])
    return None if pair is None else kron(*map(inv_p, pair))


@rule_for(
    lambda op: op is item.op,
    exact=Exact.REALS,
    operands=lambda ops: ops[0] is slogdet_p.op,
    examples=(lambda x: slogdet_p(_pair(x))[1], lambda x: slogdet_p(_pair(x))[0]),
)
def determinant_of_kronecker(node: Node) -> Node | None:
    """The determinant of a Kronecker product is a product of powers of theirs."""
    pair = _factors_of(node.inputs[0].inputs[0])
    if pair is None:
        return None
    a, b = pair
    m, p = a.shape[0], b.shape[0]
    first, second = (slogdet_p(f)[node.attr("index")] for f in pair)
    if node.attr("index"):
        return first * p + second * m
    return first**p * second**m


# ---- low rank -------------------------------------------------------------------------------


POSITIVE_DIAGONAL = Facts.DIAGONAL | Facts.DEFINITE


class LowRank(NamedTuple):
    """A diagonal matrix, by its diagonal, and a product of a tall and a wide one."""

    diagonal: Node
    tall: Node
    wide: Node

    def inner(self) -> Node:
        """The small matrix 1 + wide @ (tall / diagonal)."""
        scaled = self.tall / expand_dims(self.diagonal, axis=-1)
        return eye(self.tall.shape[1], dtype=self.tall.dtype) + matmul_p(self.wide, scaled)


def _low_rank(x: Node) -> LowRank | None:
    """A matrix as low rank beside a diagonal, if it is seen to be that: at most half the rank.

    The diagonal is positive: the whole may be regular where there is a 0 on it, which has no
    reciprocal.
    """
    if x.op is not add.op or x.ndim != 2:
        return None
    for product, other in (x.inputs, x.inputs[::-1]):
        if product.op is matmul_p.op and other.shape == x.shape:
            n, k = product.inputs[0].shape
            small = isinstance(n, int) and isinstance(k, int) and 2 * k <= n
            if small and POSITIVE_DIAGONAL in facts_of(other):
                return LowRank(diagonal_of(other), *product.inputs)
    return None


def _tall(x: Node) -> Node:
    return reshape(tanh(x), (6, 2))


def _beside(x: Node) -> Node:
    numbers = reshape(tanh(x[:, 2:]) + ones((3, 2), dtype=x.dtype) * 2, (6,))
    made: Node = on_diagonal(numbers, shape=(6, 6), offset=0) + matmul_p(_tall(x), _tall(x).T)
    return made


@rule_for(
    lambda op: op is solve_p.op,
    exact=Exact.REALS,
    operands=lambda ops: ops[0] is add.op,
    examples=(lambda x: solve_p(_beside(x), _right(x)),),
)
def system_of_low_rank(node: Node) -> Node | None:
    """Woodbury: low rank beside a diagonal takes a system of the rank's size.

    M. A. Woodbury, Inverting modified matrices, 1950.
    """
    found = _low_rank(node.inputs[0])
    if found is None:
        return None
    diagonal = expand_dims(found.diagonal, axis=-1)
    first = node.inputs[1] / diagonal
    small = solve_p(found.inner(), matmul_p(found.wide, first))
    return first - matmul_p(found.tall / diagonal, small)


@rule_for(
    lambda op: op is item.op,
    exact=Exact.REALS,
    operands=lambda ops: ops[0] is slogdet_p.op,
    examples=(lambda x: slogdet_p(_beside(x))[1], lambda x: slogdet_p(_beside(x))[0]),
)
def determinant_of_low_rank(node: Node) -> Node | None:
    """The determinant lemma: low rank beside a diagonal has the determinants of both parts."""
    found = _low_rank(node.inputs[0].inputs[0])
    if found is None:
        return None
    inner = slogdet_p(found.inner())[node.attr("index")]
    if node.attr("index"):
        return sum(log(abs(found.diagonal))) + inner
    return prod(sign(found.diagonal)) * inner

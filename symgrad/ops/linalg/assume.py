"""Facts of matrices that a user declares."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag
from types import MappingProxyType

from symgrad.ir.errors import ArgumentError, DtypeError
from symgrad.ir.node import Node
from symgrad.ir.op import case
from symgrad.ir.types import TensorType
from symgrad.ops.batch import in_front
from symgrad.ops.declare import NodeLike, composite, op
from symgrad.ops.linalg.solve import require_square


class Facts(Flag):
    """Properties of a square matrix, of which some follow from others."""

    NONE = 0
    SYMMETRIC = 1
    LOWER = 2
    UPPER = 4
    SEMIDEFINITE = 8 | SYMMETRIC
    DEFINITE = 16 | SEMIDEFINITE
    ORTHOGONAL = 32
    SKEW = 64  # its transpose is its negative
    DIAGONAL = LOWER | UPPER | SYMMETRIC

    def closed(self) -> Facts:
        """With what follows: a symmetric triangular matrix is diagonal."""
        found = self
        halves = Facts.LOWER | Facts.UPPER
        if halves in found or (Facts.SYMMETRIC in found and found & halves):
            found |= Facts.DIAGONAL
        return found

    def transposed(self) -> Facts:
        """Those of the transpose."""
        halves = self & (Facts.LOWER | Facts.UPPER)
        exchanged = {Facts.LOWER: Facts.UPPER, Facts.UPPER: Facts.LOWER}.get(halves, halves)
        return self & ~halves | exchanged


NAMES: Mapping[str, Facts] = MappingProxyType(
    {
        "symmetric": Facts.SYMMETRIC,
        "positive_definite": Facts.DEFINITE,
        "positive_semidefinite": Facts.SEMIDEFINITE,
        "lower": Facts.LOWER,
        "upper": Facts.UPPER,
        "diagonal": Facts.DIAGONAL,
        "orthogonal": Facts.ORTHOGONAL,
    }
)


def _assume_infer(t: TensorType, *, facts: tuple[str, ...]) -> TensorType:
    require_square(t)
    unknown = [f for f in facts if f not in NAMES]
    if unknown or not facts:
        listed = ", ".join(map(repr, NAMES))
        asked = f"{unknown[0]!r} is no fact of a matrix" if unknown else "name what is known of x"
        raise ArgumentError(f"{asked}; there are {listed}")
    if t.dtype.kind != "f":
        raise DtypeError(f"facts are of matrices of real floats, not of {t.dtype}")
    return t


@op(
    infer=_assume_infer,
    kernel=lambda x, facts: x,
    pullback=lambda g, y, x, facts: g,
    pushforward=lambda t, y, x, facts: t,
    batch=in_front,
    view=True,
    cases=(case((3, 3), facts=("symmetric",)), case((2, 0, 0), facts=("lower",))),
)
def assume_p(x: NodeLike, /, facts: tuple[str, ...]) -> Node:
    """x, of which facts are declared."""
    ...


@composite()
def assume(x: NodeLike, /, *facts: str) -> Node:
    """The matrix x, of which it is declared that it is `"symmetric"`, `"positive_definite"`,
    `"positive_semidefinite"`, `"lower"` or `"upper"` triangular, `"diagonal"` or `"orthogonal"`.

    Systems, inverses and determinants of it take the factorisation that suits it, at every grade
    from `"rounding"` on. A program trusts what is declared: if it does not hold, results are wrong;
    `program.check` finds that. Derivatives hold along matrices that keep what is declared: those by
    the other half of a triangular one, say, are 0. Facts that follow from how a matrix is made, as
    of `a @ a.T` or `tril(a)`, need not be declared; they are used at `exact="reals"`, and so are
    the factors of `kron(a, b)`. A matrix of few diagonals is better a sparse one: `sg.sparse.solve`
    takes a band in time that grows with its entries. Raises `ShapeError` for what is not square,
    `DtypeError` for what is no real float, and `ArgumentError` for another fact.

    >>> a = assume(placeholder("a", (3, 3)), "positive_definite")
    >>> linalg.solve(a, placeholder("b", 3)).type
    float64[3]
    """
    return assume_p(x, facts=tuple(sorted(set(facts))))


def declared_facts(node: Node) -> Facts:
    """Those that a user declared of a node."""
    found = Facts.NONE
    for name in node.attr("facts") if node.op is assume_p.op else ():
        found |= NAMES[name]
    return found.closed()

"""Facts of matrices: what is known of how one was made, or was declared by `assume`.

They are of real square matrices over the last two axes, and hold for real numbers: rounding may
break a symmetry in the last digit. A fact is inferred op by op, from few nodes; what is not found
is not known, and not false. (R. A. Horn and C. R. Johnson, Matrix Analysis, 2013, chapters 0.9, 4,
7.1 and 7.5 have the closure properties.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from symgrad.ir.dims import Shape
from symgrad.ir.node import Node, constant_value
from symgrad.ir.op import Op
from symgrad.ir.types import TensorType
from symgrad.ops.activations import sigmoid, softplus
from symgrad.ops.elementwise import abs, add, divide, exp, multiply, negative, square, subtract
from symgrad.ops.leaves import arange_p, eye_p
from symgrad.ops.linalg.assume import Facts, assume_p, declared_facts
from symgrad.ops.linalg.decompositions import qr_p
from symgrad.ops.linalg.eigenvalues import eigh_p
from symgrad.ops.linalg.matrices import expm_p
from symgrad.ops.linalg.products import matmul_p, matmul_tn
from symgrad.ops.linalg.solve import inv_p, on_diagonal
from symgrad.ops.linalg.triangular import cholesky_p, inv_definite, inv_triangular
from symgrad.ops.logic import greater, greater_equal, less, less_equal
from symgrad.ops.ranges.inference import ranges_of
from symgrad.ops.select import select
from symgrad.ops.shape import broadcast_to, item, permute_dims, reshape_p
from symgrad.ops.trigonometry import cos, cosh

MOST_NODES = 40


def facts_of(node: Node, most: int = MOST_NODES) -> Facts:
    """The facts of a matrix, from the nearest of the nodes that it is made of."""
    return _Inference(most).of(node)


class _Inference:
    def __init__(self, most: int) -> None:
        self.left = most
        self.known: dict[Node, Facts] = {}

    def of(self, node: Node) -> Facts:
        if node not in self.known:
            self.known[node] = Facts.NONE
            if self.left > 0 and _may_have_facts(node):
                self.left -= 1
                self.known[node] = self._found(node).closed()
        return self.known[node]

    def _found(self, node: Node) -> Facts:
        rule = RULES.get(node.op)
        found = declared_facts(node) if rule is None else rule(self, node)
        if node.op.elementwise and rule is None:
            found |= self._elementwise(node)
        return found

    def _elementwise(self, node: Node) -> Facts:
        """Of symmetric matrices and numbers alike, symmetric; of zeros where f(0) = 0, zeros."""
        matrices = [x for x in node.inputs if not _is_number(x)]
        alike = [self.of(x) for x in matrices]
        found = Facts.NONE
        if matrices and all(Facts.SYMMETRIC in f for f in alike):
            found |= Facts.SYMMETRIC
        if node.op.commutative and len(matrices) == 2 and is_transpose(*matrices):
            found |= Facts.SYMMETRIC
        if node.op in EVEN and all(Facts.SKEW in f for f in alike):
            found |= Facts.SYMMETRIC
        if node.op.preserves_zero and len(matrices) == len(node.inputs):
            for half in (Facts.LOWER, Facts.UPPER):
                if all(half in f for f in alike):
                    found |= half
        return found

    # ---- rules of ops -----------------------------------------------------------------------

    def assumed(self, node: Node) -> Facts:
        return declared_facts(node) | self.of(node.inputs[0])

    def eye(self, node: Node) -> Facts:
        diagonal = node.attr("k") == 0
        return Facts.DIAGONAL | Facts.DEFINITE | Facts.ORTHOGONAL if diagonal else Facts.NONE

    def placed_on_diagonal(self, node: Node) -> Facts:
        if node.attr("offset"):
            return Facts.NONE
        return Facts.DIAGONAL | _definite_if(node.inputs[0])

    def transposed(self, node: Node) -> Facts:
        n = node.ndim
        if node.attr("axes")[-2:] == (n - 2, n - 1):
            return self.of(node.inputs[0])
        if node.attr("axes")[-2:] != (n - 1, n - 2):
            return Facts.NONE
        return self.of(node.inputs[0]).transposed()

    def product(self, node: Node) -> Facts:
        a, b = node.inputs
        if node.op is matmul_tn.op:
            return Facts.SEMIDEFINITE if a is b else Facts.NONE
        found = self.of(a) & self.of(b) & (Facts.LOWER | Facts.UPPER | Facts.ORTHOGONAL)
        if is_transpose(a, b):
            regular = a.op is cholesky_p.op or b.op is cholesky_p.op
            found |= Facts.DEFINITE if regular else Facts.SEMIDEFINITE
        for outer, inner, other in ((a, b, 0), (b, a, 1)):  # a @ (s @ a.T), or (a @ s) @ a.T
            if inner.op is matmul_p.op and is_transpose(outer, inner.inputs[1 - other]):
                middle = self.of(inner.inputs[other])
                found |= middle & Facts.SYMMETRIC
                found |= Facts.SEMIDEFINITE if Facts.SEMIDEFINITE in middle else Facts.NONE
        return found

    def total(self, node: Node) -> Facts:
        a, b = node.inputs
        if _is_number(a) or _is_number(b):
            return self.of(a if _is_number(b) else b) & Facts.SYMMETRIC
        f, g = self.of(a), self.of(b)
        found = f & g & (Facts.SYMMETRIC | Facts.LOWER | Facts.UPPER | Facts.SKEW)
        if Facts.SEMIDEFINITE in f and Facts.SEMIDEFINITE in g:
            found |= Facts.SEMIDEFINITE | (f | g) & Facts.DEFINITE
        return found | (Facts.SYMMETRIC if is_transpose(a, b) else Facts.NONE)

    def difference(self, node: Node) -> Facts:
        a, b = node.inputs
        kept = Facts.SYMMETRIC | Facts.LOWER | Facts.UPPER | Facts.SKEW
        if _is_number(a) or _is_number(b):
            return self.of(a if _is_number(b) else b) & Facts.SYMMETRIC
        found = self.of(a) & self.of(b) & kept
        return found | (Facts.SKEW if is_transpose(a, b) else Facts.NONE)

    def scaled(self, node: Node) -> Facts:
        a, b = node.inputs
        if node.op is multiply.op and _is_number(a):
            a, b = b, a
        if not _is_number(b):
            return Facts.NONE if node.op is divide.op else self.elementwise_product(a, b)
        found = self.of(a)
        kept = found & (Facts.SYMMETRIC | Facts.LOWER | Facts.UPPER | Facts.SKEW)
        if Facts.SEMIDEFINITE in found:
            sign = _definite_if(b)
            kept |= found & sign if Facts.SEMIDEFINITE in sign else Facts.NONE
        return kept

    def elementwise_product(self, a: Node, b: Node) -> Facts:
        """Schur: the product of (semi)definite matrices is (semi)definite."""
        f, g = self.of(a), self.of(b)
        found = f & g & (Facts.SYMMETRIC | Facts.SKEW)
        if Facts.SKEW in found:
            found = found ^ Facts.SKEW | Facts.SYMMETRIC
        for grade in (Facts.SEMIDEFINITE, Facts.DEFINITE):
            found |= grade if grade in f & g else Facts.NONE
        if is_transpose(a, b):
            # An outer product x x.T where they are a column and a row.
            found |= Facts.SEMIDEFINITE if 1 in a.shape[-2:] else Facts.SYMMETRIC
        return found | (f | g) & (Facts.LOWER | Facts.UPPER)

    def negated(self, node: Node) -> Facts:
        kept = Facts.SYMMETRIC | Facts.LOWER | Facts.UPPER | Facts.SKEW | Facts.ORTHOGONAL
        return self.of(node.inputs[0]) & kept

    def selected(self, node: Node) -> Facts:
        mask, x = node.inputs
        found = self.of(x) & (Facts.LOWER | Facts.UPPER)
        # A mask that is repeated, as a row for all rows, stands at other places too.
        whole = mask.shape[-2:] == x.shape[-2:] == node.shape[-2:]
        return found | (halves_of(mask) if whole else Facts.NONE)

    def factor(self, node: Node) -> Facts:
        diagonal = Facts.DIAGONAL in self.of(node.inputs[0])
        return Facts.DIAGONAL | Facts.DEFINITE if diagonal else Facts.LOWER

    def inverse(self, node: Node) -> Facts:
        found = self.of(node.inputs[0])
        return Facts.DEFINITE | found if Facts.SEMIDEFINITE in found else found

    def triangular_inverse(self, node: Node) -> Facts:
        return Facts.LOWER if node.attr("lower") else Facts.UPPER

    def exponential(self, node: Node) -> Facts:
        found = self.of(node.inputs[0])
        kept = found & Facts.DIAGONAL
        kept |= Facts.DEFINITE if Facts.SYMMETRIC in found else Facts.NONE
        return kept | (Facts.ORTHOGONAL if Facts.SKEW in found else Facts.NONE)

    def result(self, node: Node) -> Facts:
        of, index = node.inputs[0].op, node.attr("index")
        square = node.shape[-1] == node.shape[-2]
        if of is eigh_p.op and index == 1:
            return Facts.ORTHOGONAL
        if of is qr_p.op and square:
            return Facts.ORTHOGONAL if index == 0 else Facts.UPPER
        if of.name == "svd" and index != 1 and square:
            return Facts.ORTHOGONAL
        return Facts.NONE

    def repeated(self, node: Node) -> Facts:
        """One number everywhere is symmetric; a batch of one matrix is it."""
        x = node.inputs[0]
        if _is_number(x):
            return Facts.SYMMETRIC
        return self.of(x) if x.shape[-2:] == node.shape[-2:] else Facts.NONE


RULES: Mapping[Op, Callable[[_Inference, Node], Facts]] = MappingProxyType(
    {
        assume_p.op: _Inference.assumed,
        eye_p.op: _Inference.eye,
        on_diagonal.op: _Inference.placed_on_diagonal,
        permute_dims.op: _Inference.transposed,
        matmul_p.op: _Inference.product,
        matmul_tn.op: _Inference.product,
        add.op: _Inference.total,
        subtract.op: _Inference.difference,
        multiply.op: _Inference.scaled,
        divide.op: _Inference.scaled,
        negative.op: _Inference.negated,
        select.op: _Inference.selected,
        cholesky_p.op: _Inference.factor,
        inv_p.op: _Inference.inverse,
        inv_definite.op: lambda self, node: Facts.DEFINITE,
        inv_triangular.op: _Inference.triangular_inverse,
        expm_p.op: _Inference.exponential,
        item.op: _Inference.result,
        broadcast_to.op: _Inference.repeated,
    }
)
POSITIVE = frozenset(f.op for f in (exp, cosh, sigmoid, softplus))
EVEN = frozenset(f.op for f in (abs, square, cos, cosh))


def _may_have_facts(node: Node) -> bool:
    t = node.type
    if not isinstance(t, TensorType):
        return False
    matrix = len(t.shape) >= 2 and t.shape[-1] == t.shape[-2]
    return matrix and t.dtype.kind == "f"


def _is_number(x: Node) -> bool:
    """Whether it is one number, or one for each matrix."""
    return (x.ndim < 2 and x.size == 1) or (x.ndim >= 2 and x.shape[-2:] == (1, 1))


def _definite_if(x: Node) -> Facts:
    """The facts of diagonal matrices of these numbers, which their multiples keep."""
    if _is_positive(x):
        return Facts.DEFINITE
    return Facts.SEMIDEFINITE if _low(x) >= 0 else Facts.NONE


def _low(x: Node) -> float:
    return ranges_of([x], most=MOST_NODES)[x].low


def _is_positive(x: Node) -> bool:
    """Whether it is above 0 as a real number: exp(x) is, though it may be rounded to 0."""
    if x.op in POSITIVE or _low(x) > 0:
        return True
    if x.op in (multiply.op, divide.op):
        return all(map(_is_positive, x.inputs))
    if x.op is add.op:
        return any(map(_is_positive, x.inputs)) and all(_low(y) >= 0 for y in x.inputs)
    return (x.op.view or x.op is broadcast_to.op) and _is_positive(x.inputs[0])


def is_transpose(a: Node, b: Node) -> bool:
    """Whether one is seen to be the other with its last two axes exchanged."""
    return any(
        x.op is permute_dims.op and x.inputs[0] is y and _exchanges(x.attr("axes"))
        for x, y in ((a, b), (b, a))
    ) or _are_column_and_row(a, b)


def _exchanges(axes: Sequence[int]) -> bool:
    n = len(axes)
    return n >= 2 and tuple(axes) == (*range(n - 2), n - 1, n - 2)


def _are_column_and_row(a: Node, b: Node) -> bool:
    sources = [x.inputs[0] if x.op is reshape_p.op else x for x in (a, b)]
    return sources[0] is sources[1] and sorted([_line(a.shape), _line(b.shape)]) == [1, 2]


def _line(shape: Shape) -> int:
    """1 for a row, 2 for a column, 0 for neither."""
    if len(shape) == 1:
        return 1
    if len(shape) != 2 or shape == (1, 1):
        return 0
    return 1 if shape[0] == 1 else 2 if shape[1] == 1 else 0


def halves_of(mask: Node) -> Facts:
    """Whether a mask leaves nothing above the diagonal, or nothing below."""
    value = constant_value(mask)
    if value is not None:
        lower = Facts.NONE if np.triu(value, 1).any() else Facts.LOWER
        return lower | (Facts.NONE if np.tril(value, -1).any() else Facts.UPPER)
    if mask.op not in COMPARISONS:
        return Facts.NONE
    places = [_place(x) for x in mask.inputs]
    if None in places or {p[0] for p in places if p} != {"row", "column"}:
        return Facts.NONE
    (first, a), (_, b) = (p for p in places if p)
    # column - row is compared with what the one starts after the other.
    low, strict = COMPARISONS[mask.op]
    if first == "row":
        low, a, b = not low, b, a
    if low:  # column + a <= row + b
        return Facts.LOWER if b - a - strict <= 0 else Facts.NONE
    return Facts.UPPER if b - a + strict >= 0 else Facts.NONE


COMPARISONS: Mapping[Op, tuple[bool, int]] = MappingProxyType(
    {
        less.op: (True, 1),
        less_equal.op: (True, 0),
        greater.op: (False, 1),
        greater_equal.op: (False, 0),
    }
)


def _place(x: Node) -> tuple[str, int] | None:
    """Whether it counts rows or columns, and from which number on."""
    kind, later = {1: "column", 2: "row"}.get(_line(x.shape)), 0
    while x.op in (reshape_p.op, add.op):
        if x.op is add.op:
            number = constant_value(x.inputs[1])
            if number is None or number.size != 1:
                return None
            later += int(number.item())
        x = x.inputs[0]
    first = _first_of_count(x)
    return None if kind is None or first is None else (kind, first + later)


def _first_of_count(x: Node) -> int | None:
    """The first of numbers that count up by one."""
    if x.op is arange_p.op:
        return int(x.attr("start")) if x.attr("step") == 1 else None
    value = constant_value(x)
    if value is None or value.dtype.kind not in "iu" or not value.size:
        return None
    first = int(value.flat[0])
    return first if np.array_equal(value.ravel(), first + np.arange(value.size)) else None

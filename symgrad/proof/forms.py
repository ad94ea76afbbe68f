"""The table of ops in sums of products: what each makes of the normal forms of its operands.

Each method is called as its op, takes the normal forms of its operands and the node, and gives that
of the result, whose label k is axis k; an axis of size 1 has no label. Operands of elementwise ops
come with the labels of the result, to which they broadcast. An op without a method here is not
taken apart.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from fractions import Fraction
from math import log

from symgrad.ir.node import Node
from symgrad.proof.functions import Functions, meant
from symgrad.proof.terms import ONE, ZERO, Atom, Terms

HALF = Fraction(1, 2)
BITS = 50  # of the numbers that formulas name, such as log(2)


class Forms:
    """Ops as sums of products."""

    def __init__(self, most: int) -> None:
        self.ring = Functions(most)

    def whole(self, node: Node, of: object) -> Terms:
        """The result of a node as one atom."""
        axes = tuple(k for k, size in enumerate(node.shape) if size != 1)
        return self.ring.one(Atom("leaf", of, tuple(node.shape[k] for k in axes)), axes)

    def shifted(self, a: Terms, by: int) -> Terms:
        """A sum with more axes in front."""
        return self.ring.relabel(a, {k: k + by for k in a.labels}) if by else a

    # ---- arithmetic -------------------------------------------------------------------------

    def add(self, a, b, node):
        return self.ring.add(a, b)

    def subtract(self, a, b, node):
        return self.ring.subtract(a, b)

    def multiply(self, a, b, node):
        return self.ring.multiply(a, b)

    def negative(self, a, node):
        return self.ring.scale(a, -1)

    def positive(self, a, node):
        return a

    def astype(self, a, node):
        if node.dtype.kind == "b" and node.inputs[0].dtype.kind != "b":
            return self._nonzero(a)
        return a

    def square(self, a, node):
        return self.ring.multiply(a, a)

    def reciprocal(self, a, node):
        return self.ring.power(a, Fraction(-1))

    def divide(self, a, b, node):
        return self.ring.multiply(a, self.ring.power(b, Fraction(-1)))

    def sqrt(self, a, node):
        return self.ring.power(a, HALF)

    def hypot(self, a, b, node):
        return self.ring.power(self.ring.add(self.square(a, node), self.square(b, node)), HALF)

    def pow(self, a, b, node):
        exponent = b.number
        if exponent is None:
            return self.ring.exp(self.ring.multiply(b, self.ring.log(a)))
        return self.ring.power(a, exponent)

    def deg2rad(self, a, node):
        return self.ring.scale(a, meant(0.017453292519943295, BITS))

    def rad2deg(self, a, node):
        return self.ring.scale(a, 1 / meant(0.017453292519943295, BITS))

    # ---- exponentials -----------------------------------------------------------------------

    def exp(self, a, node):
        return self.ring.exp(a)

    def exp2(self, a, node):
        return self.ring.exp(self.ring.scale(a, meant(log(2), BITS)))

    def expm1(self, a, node):
        return self.ring.subtract(self.ring.exp(a), ONE)

    def log(self, a, node):
        return self.ring.log(a)

    def log1p(self, a, node):
        return self.ring.log(self.ring.add(ONE, a))

    def log2(self, a, node):
        return self.ring.scale(self.ring.log(a), 1 / meant(log(2), BITS))

    def log10(self, a, node):
        return self.ring.scale(self.ring.log(a), 1 / meant(log(10), BITS))

    def logaddexp(self, a, b, node):
        return self.ring.log(self.ring.add(self.ring.exp(a), self.ring.exp(b)))

    def log1mexp(self, a, node):
        return self.ring.log(self.ring.subtract(ONE, self.ring.exp(a)))

    def logit(self, a, node):
        return self.ring.subtract(self.ring.log(a), self.ring.log(self.ring.subtract(ONE, a)))

    def sigmoid(self, a, node):
        e = self.ring.exp(a)
        return self.ring.multiply(e, self.ring.power(self.ring.add(ONE, e), Fraction(-1)))

    def softplus(self, a, node):
        return self.ring.log(self.ring.add(ONE, self.ring.exp(a)))

    def tanh(self, a, node):
        e = self.ring.exp(self.ring.scale(a, 2))
        below = self.ring.power(self.ring.add(e, ONE), Fraction(-1))
        return self.ring.multiply(self.ring.subtract(e, ONE), below)

    def sinh(self, a, node):
        return self._mean_of_exps(a, -1)

    def cosh(self, a, node):
        return self._mean_of_exps(a, 1)

    def _mean_of_exps(self, a, sign):
        mirrored = self.ring.exp(self.ring.scale(a, -1))
        return self.ring.scale(
            self.ring.add(self.ring.exp(a), self.ring.scale(mirrored, sign)), HALF
        )

    def xlogy(self, a, b, node):
        return self.ring.multiply(a, self.ring.log(b))

    def xlog1py(self, a, b, node):
        return self.ring.multiply(a, self.ring.log(self.ring.add(ONE, b)))

    # ---- trigonometry -----------------------------------------------------------------------

    def sin(self, a, node):
        return self.ring.sin(a)

    def cos(self, a, node):
        return self.ring.cos(a)

    def tan(self, a, node):
        return self.divide(self.ring.sin(a), self.ring.cos(a), node)

    def erf(self, a, node):
        return self.ring.erf(a)

    def erfc(self, a, node):
        return self.ring.subtract(ONE, self.ring.erf(a))

    # ---- choices ----------------------------------------------------------------------------

    def abs(self, a, node):
        return self.ring.multiply(a, self.ring.sign(a))

    def sign(self, a, node):
        return self.ring.sign(a)

    def relu(self, a, node):
        return self.ring.multiply(a, self.ring.positive(a))

    def leaky_relu(self, a, node):
        slope = meant(node.attr("slope"), BITS)
        scaled = self.ring.scale(a, slope)
        return self.ring.choice(self.ring.positive(a), a, scaled)

    def maximum(self, a, b, node):
        mask, a, b = self._ordered(a, b, node)
        return self.ring.choice(mask, a, b)

    def minimum(self, a, b, node):
        mask, a, b = self._ordered(a, b, node)
        return self.ring.choice(mask, b, a)

    def _ordered(self, a, b, node):
        """Two operands, and the mask of where the first is above the second."""
        if node.dtype.kind not in "iu":
            return self.greater(a, b, node), a, b
        # Differences of integers wrap: the mask is of both, put beside each other.
        a, b = sorted((a, b))
        sides = (self.ring.one(Atom("leaf", ("operand", k))) for k in range(2))
        parts = map(self.ring.multiply, sides, (a, b))
        return self.ring.function("positive", self.ring.add(*parts)), a, b

    def where(self, mask, a, b, node):
        return self.ring.choice(mask, a, b)

    def select(self, mask, a, node):
        return self.ring.multiply(mask, a)

    def keep_where_positive(self, a, b, node):
        return self.ring.multiply(self.ring.positive(a), b)

    def greater(self, a, b, node):
        return self.ring.positive(self.ring.subtract(a, b))

    def less(self, a, b, node):
        return self.ring.negative(self.ring.subtract(a, b))

    def greater_equal(self, a, b, node):
        return self.ring.opposite(self.less(a, b, node))

    def less_equal(self, a, b, node):
        return self.ring.opposite(self.greater(a, b, node))

    def not_equal(self, a, b, node):
        return self._nonzero(self.ring.subtract(a, b))

    def _nonzero(self, a):
        return self.ring.add(self.ring.positive(a), self.ring.negative(a))

    def equal(self, a, b, node):
        return self.ring.opposite(self.not_equal(a, b, node))

    def logical_not(self, a, node):
        return self.ring.opposite(a)

    def logical_and(self, a, b, node):
        return self.ring.multiply(a, b)

    def logical_or(self, a, b, node):
        return self.ring.choice(a, ONE, b)

    def logical_xor(self, a, b, node):
        return self.ring.choice(a, self.ring.opposite(b), b)

    # ---- axes -------------------------------------------------------------------------------

    def sum(self, a, node):
        return self._summed(a, node.inputs[0], node.attr("axis"), node.attr("keepdims"))

    def _summed(self, a, x, axes, keepdims=True):
        found = self.ring.sum_over(a, {k: x.shape[k] for k in axes if x.shape[k] != 1})
        if keepdims:
            return found
        kept = [k for k in range(x.ndim) if k not in axes]
        return self.ring.relabel(found, {k: i for i, k in enumerate(kept)})

    def broadcast_to(self, a, node):
        return self.shifted(a, node.ndim - node.inputs[0].ndim)

    def permute_dims(self, a, node):
        return self.ring.relabel(a, {k: i for i, k in enumerate(node.attr("axes"))})

    def reshape(self, a, node):
        old = [k for k, size in enumerate(node.inputs[0].shape) if size != 1]
        new = [k for k, size in enumerate(node.shape) if size != 1]
        if [node.inputs[0].shape[k] for k in old] == [node.shape[k] for k in new]:
            return self.ring.relabel(a, dict(zip(old, new, strict=True)))
        return self.linear(node, a)

    def diagonal(self, a, node):
        x = node.inputs[0]
        if node.attr("offset") == 0 and x.shape[-1] == x.shape[-2]:
            return self.ring.relabel(a, {x.ndim - 1: x.ndim - 2})
        return self.linear(node, a)

    def on_diagonal(self, a, node):
        rows, columns = node.attr("shape")
        if node.attr("offset") == 0 and rows == columns != 1:
            return self.ring.multiply(a, self._delta(node))
        return self.linear(node, a)

    def eye(self, node):
        if node.attr("k") == 0 and node.shape[0] == node.shape[1] != 1:
            return self._delta(node)
        return self.whole(node, (node.op, node.attrs))

    def _delta(self, node):
        size = node.shape[-1]
        return self.ring.one(Atom("delta", None, (size, size)), (node.ndim - 2, node.ndim - 1))

    def size_of(self, node):
        return self.ring.size(node.attr("dim"))

    def matmul(self, a, b, node):
        x, y = node.inputs
        rows, columns = int(x.ndim > 1), int(y.ndim > 1)
        n = node.ndim
        a_names = {k: k + n - columns - x.ndim + 1 for k in range(x.ndim - 1 - rows)}
        a_names |= {x.ndim - 2: n - 1 - columns} if rows else {}
        b_names = {k: k + n - rows - y.ndim + 1 for k in range(y.ndim - 1 - columns)}
        b_names |= {y.ndim - 1: n - 1} if columns else {}
        return self._contracted(a, b, a_names, b_names, x.ndim - 1, y.ndim - 1 - columns, x)

    def _contracted(self, a, b, a_names, b_names, a_axis, b_axis, x):
        """The sum over one axis of both operands of the products, whose axes are renamed."""
        last = 10**5  # beyond all axes
        left = self.ring.relabel(a, a_names | {a_axis: last})
        right = self.ring.relabel(b, b_names | {b_axis: last})
        size = x.shape[a_axis]
        found = self.ring.multiply(left, right)
        return self.ring.sum_over(found, {last: size}) if size != 1 else found

    def matmul_tn(self, a, b, node):
        return self._contracted(a, b, {1: 0}, {1: 1}, 0, 0, node.inputs[0])

    def vecdot(self, a, b, node):
        x, y = node.inputs
        most = max(x.ndim, y.ndim)
        first, second = (self.shifted(t, most - n.ndim) for t, n in ((a, x), (b, y)))
        products = self.ring.multiply(first, second)
        wider = x if x.ndim == most else y
        return self._summed(products, wider, (most - 1,), node.attr("keepdims"))

    def vdot(self, a, b, node):
        x = node.inputs[0]
        return self._summed(self.ring.multiply(a, b), x, tuple(range(x.ndim)), False)

    def row_sums(self, a, node):
        x = node.inputs[0]
        return self._summed(a, x, (x.ndim - 1,), node.attr("keepdims"))

    def norm2(self, a, node):
        x = node.inputs[0]
        squares = self.ring.multiply(a, a)
        total = self._summed(squares, x, node.attr("axis"), node.attr("keepdims"))
        return self.ring.power(total, HALF)

    def logsumexp(self, a, node):
        x = node.inputs[0]
        total = self._summed(self.ring.exp(a), x, node.attr("axis"), node.attr("keepdims"))
        return self.ring.log(total)

    def softmax(self, a, node):
        e = self.ring.exp(a)
        return self.divide(e, self._summed(e, node.inputs[0], node.attr("axis")), node)

    def log_softmax(self, a, node):
        e = self.ring.exp(a)
        total = self._summed(e, node.inputs[0], node.attr("axis"))
        return self.ring.subtract(a, self.ring.log(total))

    def det(self, a, node):
        x = node.inputs[0]
        if x.ndim > 2:
            transposed = self.ring.relabel(a, {x.ndim - 1: x.ndim - 2, x.ndim - 2: x.ndim - 1})
            return self.whole(node, (node.op, min(a, transposed), x.type))
        return self._determinant(a, node) if x.shape[0] != 1 else a

    def _determinant(self, a, node):
        """The determinant of a matrix with the labels 0 and 1: that of a product by its factors."""
        ring, size, found = self.ring, node.inputs[0].shape[0], ONE
        if isinstance(size, int) and len(a.items) == 1:
            ((term, c),) = a.items
            outer = tuple(f for f in term if not f.labels)
            found = ring.power(ring.normal([(outer, c)]), Fraction(size))
            rows = [f for f in term if 0 in f.labels]
            others = tuple(f for f in term if f.labels and 0 not in f.labels)
            a = ring.normal([((*rows, *others), Fraction(1))])
            inner = [k for f in rows for k in f.labels if k != 0]
            if len(rows) == len(inner) == 1 and self._size(rows[0], inner[0]) == size:
                (k,) = inner
                parts = (((tuple(rows), {k: 1})), (others, {k: 0})) if k < 0 else ()
                for part, names in parts:
                    one = ring.relabel(Terms(((part, Fraction(1)),)), names)
                    found = ring.multiply(found, self._determinant(one, node))
                kind, of, _ = ring.atoms[rows[0].atom]
                inverse = kind == "leaf" and getattr(of[0], "name", "") == "inv"
                if not parts and inverse and rows[0].power == 1:
                    below = self._determinant(of[-1][0][0], node)
                    return ring.multiply(found, ring.power(below, Fraction(-1)))
                if parts:
                    return found
        least = min(a, ring.relabel(a, {0: 1, 1: 0}))
        return ring.multiply(found, ring.one(Atom("leaf", (node.op, least, node.dtype, size))))

    def _size(self, f, label):
        return dict(zip(f.labels, self.ring.atoms[f.atom].shape, strict=True))[label]

    def linear(self, node: Node, operand: Terms) -> Terms:
        """A linear op, of each term: numbers and factors without axes go through it."""
        ring, found = self.ring, ZERO
        for term, c in operand.items:
            outer = tuple(f for f in term if not f.labels)
            inner = Terms(((tuple(f for f in term if f.labels), Fraction(1)),))
            one = self.whole(node, (node.op, node.attrs, inner, node.inputs[0].type))
            found = ring.add(found, ring.multiply(ring.normal([(outer, c)]), one))
        return found

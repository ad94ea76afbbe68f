"""Normal forms of nodes, as sums of products: `forms.py` has what each op makes of its operands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import isfinite

import numpy as np

from symgrad.ir.graph import is_input
from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ir.node import Node, constant_value
from symgrad.ir.types import TensorType
from symgrad.ir.walk import topological
from symgrad.proof.forms import Forms
from symgrad.proof.functions import meant
from symgrad.proof.terms import MOST_STEPS, Atom, Terms

RING = frozenset("bf")  # kinds of dtypes whose numbers are taken for real ones; masks are 0 and 1
# Ops that are polynomials, of which those with equal coefficients are equal where integers wrap.
POLYNOMIALS = frozenset(
    {
        "add", "subtract", "multiply", "negative", "positive", "square", "sum", "broadcast_to",
        "permute_dims", "reshape", "diagonal", "on_diagonal", "matmul", "matmul_tn", "vecdot",
        "vdot", "row_sums", "where", "select", "maximum", "minimum",
    }
)  # fmt: skip


def are_equal(f: Node, g: Node, room: float, most: int = MOST_STEPS) -> bool:
    """Whether two nodes of one type have one normal form, but for a part `room` of coefficients.

    Raises `TooLarge` if that takes more than `most` steps.
    """
    walk = Walk(most)
    a, b = walk.forms([f, g])
    return a == b or walk.ring.agree(a, b, Fraction(room))


class Walk(Forms):
    """Normal forms, of the operands before their readers."""

    def forms(self, outputs: Iterable[Node]) -> list[Terms]:
        wanted = list(outputs)
        known: dict[Node, Terms] = {}
        for node in topological(wanted):
            if isinstance(node.type, TensorType):
                known[node] = self._form(node, known)
        return [known[y] for y in wanted]

    def _form(self, node: Node, known: Mapping[Node, Terms]) -> Terms:
        op = node.op
        if is_input(node):
            return self.whole(node, ("input", node))
        if op is CONSTANT:
            return self._constant(node)
        if op.of_several:
            source = node.inputs[0]
            if source.op.identity:
                return known[source.inputs[node.attr("index")]]
            return self._opaque(node, source, [known[x] for x in source.inputs])
        operands = [known[x] for x in node.inputs]
        if op.identity:
            return operands[0]
        kinds = {node.dtype.kind, *(x.dtype.kind for x in node.inputs)}
        known_op = kinds <= RING or (op.name in POLYNOMIALS and _is_of_one_integer_dtype(node))
        method = getattr(self, op.name, None) if known_op else None
        if method is None:
            linear = op.linear and kinds == {"f"}
            return self.linear(node, operands[0]) if linear else self._opaque(node, node, operands)
        if op.elementwise:
            pairs = zip(node.inputs, operands, strict=True)
            operands = [self.shifted(a, node.ndim - x.ndim) for x, a in pairs]
        found: Terms = method(*operands, node)
        return found

    def _constant(self, node: Node) -> Terms:
        value = constant_value(node)
        assert value is not None
        if value.dtype.kind != "c" and value.size and (value == value.flat[0]).all():
            if value.dtype.kind in "iu":
                return self.ring.constant(int(value.flat[0]))
            number = float(value.flat[0])
            if isfinite(number):
                bits = 50 if value.dtype.kind == "b" else np.finfo(value.dtype).nmant - 2
                return self.ring.constant(meant(number, bits))
        return self.whole(node, ("constant", node.attr("value")))

    def _opaque(self, node: Node, source: Node, operands: Sequence[Terms]) -> Terms:
        """The result of an op that is not taken apart: an atom."""
        if source.op.opaque:
            return self.whole(node, ("code", node))
        if source.op.elementwise and len(operands) == 1 and source is node:
            of, labels = self.ring.closed(operands[0])
            sizes = self.ring.sizes(of)
            shape = tuple(sizes[k] for k in range(len(labels)))
            return self.ring.one(Atom("op", (node.op, node.attrs, of, node.dtype), shape), labels)
        types = tuple(x.type for x in source.inputs)
        pairs = list(zip(operands, types, strict=True))
        if source.op.commutative:
            pairs.sort(key=lambda pair: pair[0])
        return self.whole(node, (source.op, source.attrs, node.attrs, tuple(pairs)))


def _is_of_one_integer_dtype(node: Node) -> bool:
    """Whether all are integers that wrap alike, or masks."""
    dtypes = {node.dtype, *(x.dtype for x in node.inputs if x.dtype.kind != "b")}
    return len(dtypes) == 1 and node.dtype.kind in "iu"

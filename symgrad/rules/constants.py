"""Constant folding: what depends on nothing is computed once, when the program is compiled."""

from __future__ import annotations

from collections.abc import Sequence

from symgrad.ir.dims import Dim
from symgrad.ir.errors import KernelError, SymbolicError
from symgrad.ir.evaluate import evaluate
from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ir.node import Node, constant_node
from symgrad.ir.op import Op
from symgrad.ir.values import ArrayData
from symgrad.rewrite.rule import Exact, rule_for

MOST_ELEMENTS = 4096


def _all_constant(operands: Sequence[Op]) -> bool:
    return bool(operands) and all(op is CONSTANT for op in operands)


@rule_for(lambda op: not op.view, exact=Exact.BITS, operands=_all_constant)
def constant_folding(node: Node) -> Node | None:
    """All operands are constants, so that the value is known, and it is small enough to keep."""
    if isinstance(node.type, tuple) or _is_large(node):
        return None
    return _folded(node)


@rule_for(lambda op: op.view, exact=Exact.ROUNDING, operands=_all_constant)
def constant_view_folding(node: Node) -> Node | None:
    """A view of a constant is a constant, unless it repeats elements.

    It then lies in another order, so that sums of it may round differently.
    """
    return None if _is_large(node) or node.size != node.inputs[0].size else _folded(node)


def _folded(node: Node) -> Node | None:
    try:
        return constant_node(ArrayData(evaluate([node])[0], node.dtype))
    except KernelError:  # the program raises it, and says where
        return None
    except SymbolicError:  # the size of a named dimension has a part in it
        return None


def _is_large(node: Node) -> bool:
    size = node.size
    return isinstance(size, Dim) or size > MOST_ELEMENTS

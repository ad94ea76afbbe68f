"""The ops of leaves, which have no operands: placeholders, variables and constants."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from symgrad.ir.errors import GraphError
from symgrad.ir.op import REGISTRY, Op
from symgrad.ir.types import TensorType
from symgrad.ir.values import ArrayData, Cell

ANY = (-inf, inf)


def _placeholder_infer(*, name: str, within: tuple[float, float] = ANY) -> TensorType:
    raise GraphError("the type of a placeholder is declared, not inferred")


def _variable_infer(*, name: str, cell: Cell) -> TensorType:
    raise GraphError("the type of a variable is declared, not inferred")


def _constant_infer(*, value: ArrayData) -> TensorType:
    return value.type


def _no_kernel(**attrs: Any) -> Any:
    raise GraphError("a placeholder and a variable have no kernel; their value is given")


def _leaf_op(
    name: str, infer: Callable[..., TensorType], doc: str, kernel: Callable[..., Any] = _no_kernel
) -> Op:
    return REGISTRY.add_op(Op(name=name, infer=infer, kernel=kernel, doc=doc, operands=(0, 0)))


PLACEHOLDER = _leaf_op(
    "placeholder",
    _placeholder_infer,
    "An input, fed when a program is called; `within` two numbers, if that is declared.",
)
VARIABLE = _leaf_op("variable", _variable_infer, "State with a name, kept between calls.")
CONSTANT = _leaf_op(
    "constant", _constant_infer, "A value that never changes.", lambda value: value.array[()]
)
INPUTS = (PLACEHOLDER, VARIABLE)  # whose values are given when a program is called
LEAVES = (*INPUTS, CONSTANT)  # whose types are declared, not inferred

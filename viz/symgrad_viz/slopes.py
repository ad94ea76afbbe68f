"""The derivative of an op in a sentence, as a textbook has it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from symgrad.ir.op import Op
from symgrad.ops.elementwise import (
    abs,
    add,
    divide,
    exp,
    log,
    multiply,
    negative,
    pow,
    sqrt,
    square,
    subtract,
)
from symgrad.ops.linalg.products import matmul_p
from symgrad.ops.reduce import sum
from symgrad.ops.select import maximum, relu, select, where

SLOPES: Mapping[Op, str] = MappingProxyType(
    {
        add.op: "d(x + y) = dx + dy: each term is handed what the sum was.",
        subtract.op: "d(x − y) = dx − dy.",
        negative.op: "d(−x) = −dx.",
        multiply.op: "d(x y) = y dx + x dy: each factor is handed it times the other.",
        divide.op: "d(x / y) = dx / y − x / y² dy.",
        square.op: "d(x²) = 2 x dx.",
        pow.op: "d(xᵃ) = a xᵃ⁻¹ dx.",
        sqrt.op: "d√x = dx / (2 √x).",
        exp.op: "d exp(x) = exp(x) dx.",
        log.op: "d log(x) = dx / x.",
        abs.op: "d|x| = sign(x) dx.",
        relu.op: "The slope is 1 where the result is positive, and 0 elsewhere.",
        matmul_p.op: "d(A B) = dA B + A dB: handed G, A gets G Bᵀ and B gets Aᵀ G.",
        sum.op: "Every element of a sum counts as it is: it is handed what the sum was.",
        select.op: "Nothing flows where the condition does not hold.",
        where.op: "Each branch is handed what belongs to its elements.",
        maximum.op: "The larger is handed it; where both are as large, they share it.",
    }
)


def slope_of(op: Op) -> str:
    """How an op is differentiated; empty if neither this table nor its description says so."""
    return SLOPES.get(op) or _from_docstring(op.doc)


def _from_docstring(doc: str) -> str:
    """The sentence of a description that tells the derivative, such as `d tanh(x) = …`."""
    plain = " ".join(doc.partition(">>>")[0].split())
    sentences = plain.replace(". ", ".\n").split("\n")
    return next((s for s in sentences if s.startswith(("d ", "d ="))), "")

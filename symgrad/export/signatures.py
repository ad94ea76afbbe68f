"""The dtypes that nodes of ONNX take: those of its schema for which onnxruntime has a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

Dtype: TypeAlias = np.dtype[Any]

# Dtypes of the schema for which onnxruntime, 1.22 to 1.32, has no kernel on processors.
NO_KERNEL: Mapping[str, str] = {
    "Acos": "float64", "Acosh": "float64", "ArgMax": "int16 uint16 uint32 uint64",
    "ArgMin": "int16 uint16 uint32 uint64", "Asin": "float64", "Asinh": "float64",
    "Atan": "float64", "Atanh": "float64", "Conv": "float64",
    "ConvTranspose": "float64", "Cosh": "float64", "CumSum": "uint32 uint64",
    "Det": "float64", "Erf": "float64", "LeakyRelu": "float64",
    "Max": "int16 uint16", "Min": "int16 uint16", "Pad": "int16 uint16",
    "ReduceL2": "uint32 uint64", "ReduceLogSumExp": "uint32 uint64", "ReduceMax": "uint32 uint64",
    "ReduceMin": "uint32 uint64", "ReduceProd": "uint32 uint64", "ReduceSum": "uint32 uint64",
    "Relu": "int16 int64", "Sinh": "float64", "Softplus": "float64", "Tan": "float64",
    "TopK": "uint16 uint32 uint64", "Where": "bool int16 uint16 uint64",
}  # fmt: skip
# Of integers these give the lowest bits of the right result, whatever becomes of the others.
MODULAR = frozenset(
    ("Add", "CumSum", "MatMul", "Mul", "Neg", "Pad", "ReduceProd", "ReduceSum", "Sub", "Where")
)
WHOLE = np.dtype("int32"), np.dtype("int64")
NAMES: Mapping[str, str] = {"float": "float32", "double": "float64"}
KINDS = frozenset(np.dtype(c) for c in "?bBhHiIqQefd")


class Signature:
    """Dtypes that an op of ONNX takes and gives, by its schema's variables, each of one dtype."""

    def __init__(self, schema: Any) -> None:
        self.op = schema.name
        self.inputs = [x.type_str for x in schema.inputs]
        self.outputs = [y.type_str for y in schema.outputs]
        found = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
        found |= {t: [t] for t in (*self.inputs, *self.outputs) if t not in found}
        lacking = {np.dtype(d) for d in NO_KERNEL.get(self.op, "").split()}
        main = self.outputs[0] if self.outputs[0] in self.inputs else self.inputs[0]
        self.taken = {variable: _known(types) for variable, types in found.items()}
        self.taken[main] -= lacking

    def variable(self, place: int) -> str:
        """The variable of the operand at a place; the last one may be there several times."""
        return str(self.inputs[min(place, len(self.inputs) - 1)])

    def stand_in(self, variable: str, dtype: Dtype) -> Dtype | None:
        """The dtype to which an operand is converted so that results, converted back, are right."""
        taken = self.taken[variable]
        if dtype in taken:
            return dtype
        if taken == {np.dtype(bool)}:
            return np.dtype(bool)
        if dtype.kind not in "biu":
            return None
        wider = [d for d in WHOLE if d in taken and np.can_cast(dtype, d)]
        if not wider and self.op in MODULAR and WHOLE[-1] in taken:
            return WHOLE[-1]
        return wider[0] if wider else None


def _known(types: Any) -> frozenset[Dtype]:
    names = (t.removeprefix("tensor(").removesuffix(")") for t in types)
    return frozenset(d for n in names if (d := _dtype(NAMES.get(n, n))) in KINDS)


def _dtype(name: str) -> Dtype | None:
    try:
        return np.dtype(name)
    except TypeError:  # such as bfloat16, which NumPy has not
        return None

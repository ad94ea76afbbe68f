"""The table of ops in ONNX's words, element by element. See `ops.py`."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ops.special import kernels


class Elementwise:
    """Ops of one element of each operand, and what the table needs of the writer."""

    def emit(self, op: str, *names: str, outputs: int = 1, output: int = 0, **attrs: object) -> str:
        """The name of a result of a node of ONNX, of which `output` says which of its `outputs`."""
        raise NotImplementedError

    def array(self, value: object) -> str:
        """The name of a constant array."""
        raise NotImplementedError

    def sizes(self, shape: Sequence[object]) -> str:
        """The name of sizes, of which some may be dimensions with a name, as an array of int64."""
        raise NotImplementedError

    def refused(self, why: str) -> Exception:
        """The error for what has no form in ONNX."""
        raise NotImplementedError

    def _ints(self, *values):
        return self.array(np.array(values, np.int64))

    def _number(self, node, value):
        return self.array(np.asarray(value, node.inputs[0].dtype))

    def assume(self, x, *, node, facts):
        return x

    def square(self, x, *, node):
        return self.emit("Mul", x, x)

    def not_equal(self, x, y, *, node):
        return self.emit("Not", self.emit("Equal", x, y))

    def isnan(self, x, *, node):
        return self.emit("Not", self.emit("Equal", x, x))

    def isinf(self, x, *, node):
        return (
            self.emit("IsInf", x) if node.inputs[0].dtype.kind == "f" else self.isnan(x, node=node)
        )

    def isfinite(self, x, *, node):
        return self.emit("Not", self.emit("Or", self.isnan(x, node=node), self.isinf(x, node=node)))

    def ceil(self, x, *, node):
        return self._rounded("Ceil", x, node)

    def floor(self, x, *, node):
        return self._rounded("Floor", x, node)

    def rint(self, x, *, node):
        return self._rounded("Round", x, node)

    def _rounded(self, op, x, node):
        return self.emit(op, x) if node.dtype.kind == "f" else x

    def pow(self, x, y, *, node):
        """The power; of integers by squares, since onnxruntime takes it in float64."""
        if node.dtype.kind == "f":
            return self.emit("Pow", x, y)
        count = node.inputs[1]
        if count.op is not CONSTANT or count.ndim or count.attr("value").array < 0:
            raise self.refused("onnxruntime takes powers of integers in float64, and rounds them")
        made = self._number(node, 1)
        for bit in f"{int(count.attr('value').array):b}":
            made = self.emit("Mul", made, made)
            made = self.emit("Mul", made, x) if bit == "1" else made
        return self.emit("Expand", made, self.sizes(node.shape))

    def log1p(self, x, *, node):
        """log(u) * (x / (u - 1)) with u = 1 + x: what u has lost near 0, its logarithm has, too."""
        one = self._number(node, 1)
        return self._log1p(x, one, self._number(node, 0.5))

    def _log1p(self, x, one, half):
        u = self.emit("Add", x, one)
        log = self.emit("Log", u)
        near = self.emit("Mul", log, self.emit("Div", x, self.emit("Sub", u, one)))
        near = self.emit("Where", self.emit("Equal", u, one), x, near)
        return self.emit("Where", self.emit("Less", self.emit("Abs", x), half), near, log)

    def expm1(self, x, *, node):
        """tanh(x / 2) * (exp(x) + 1), which loses no digits near 0."""
        half = self.emit("Tanh", self.emit("Mul", x, self._number(node, 0.5)))
        return self.emit("Mul", half, self.emit("Add", self.emit("Exp", x), self._number(node, 1)))

    def exp2(self, x, *, node):
        return self.emit("Pow", self._number(node, 2), x)

    def log2(self, x, *, node):
        return self.emit("Div", self.emit("Log", x), self._number(node, np.log(2)))

    def log10(self, x, *, node):
        return self.emit("Div", self.emit("Log", x), self._number(node, np.log(10)))

    def _tail(self, x, node, unit, scale):
        """exp(scale * x**2) * exp(z**2) * erfc(z) with z = abs(x) * unit, as of the kernels."""
        number, emit = partial(self._number, node), self.emit
        a = emit("Min", emit("Abs", x), number(40))
        exact = emit("Mul", emit("Round", emit("Mul", a, number(64))), number(1 / 64))
        rest = emit("Mul", emit("Add", a, exact), emit("Sub", a, exact))
        bell = [
            emit("Exp", emit("Mul", b, number(scale))) for b in (emit("Mul", exact, exact), rest)
        ]
        u = emit("Reciprocal", emit("Add", emit("Mul", a, number(unit)), number(2)))
        z = emit("Sub", number(1), emit("Mul", u, number(4)))
        y, *others = map(number, kernels.tail_coefficients(node.dtype))
        for c in others:
            y = emit("Add", emit("Mul", y, z), c)
        return emit("Mul", emit("Mul", y, u), emit("Mul", *bell))

    def ndtr(self, x, *, node):
        tail = self.emit("Mul", self._tail(x, node, 0.5**0.5, -0.5), self._number(node, 0.5))
        below = self.emit("Less", x, self._number(node, 0))
        return self.emit("Where", below, tail, self.emit("Sub", self._number(node, 1), tail))

    def erfc(self, x, *, node):
        tail = self._tail(x, node, 1, -1)
        below = self.emit("Less", x, self._number(node, 0))
        return self.emit("Where", below, self.emit("Sub", self._number(node, 2), tail), tail)

    def relu(self, x, *, node):
        if node.dtype.kind in "bu":
            return x
        return (
            self.emit("Relu", x)
            if node.dtype.kind == "f"
            else self.emit("Max", x, self._number(node, 0))
        )

    def softplus(self, x, *, node):
        if node.dtype != np.float64:
            return self.emit("Softplus", x)
        zero, half, one = (self._number(node, a) for a in (0, 0.5, 1))
        power = self.emit("Exp", self.emit("Neg", self.emit("Abs", x)))
        return self.emit("Add", self.emit("Max", x, zero), self._log1p(power, one, half))

    def logaddexp(self, x, y, *, node):
        away = self.emit("Neg", self.emit("Abs", self.emit("Sub", x, y)))
        away = self.emit("Where", self.emit("Equal", x, y), self._number(node, 0), away)
        return self.emit("Add", self.emit("Max", x, y), self.softplus(away, node=node))

    def leaky_relu(self, x, *, node, slope):
        if node.dtype != np.float64:
            return self.emit("LeakyRelu", x, alpha=float(slope))
        below = self.emit("Less", x, self._number(node, 0))
        return self.emit("Where", below, self.emit("Mul", x, self._number(node, slope)), x)

    def select(self, mask, x, *, node):
        return self.emit("Where", mask, x, self.array(np.zeros((), node.dtype)))

    def _signs(self, x, y, node):
        """The remainder by division towards 0, and whether that rounded down has another sign."""
        rest, zero = self.emit("Mod", x, y, fmod=1), self._number(node, 0)
        signs = (self.emit("Less", a, zero) for a in (rest, y))
        other, exact = self.emit("Xor", *signs), self.emit("Equal", rest, zero)
        return rest, self.emit("And", other, self.emit("Not", exact))

    def floor_divide(self, x, y, *, node):
        """As NumPy has it: a quotient that rounding lifts to a whole number is rounded down."""
        if node.dtype.kind != "f":
            raise self.refused("ONNX rounds quotients of integers towards 0")
        rest, other = self._signs(x, y, node)
        whole = self.emit("Div", self.emit("Sub", x, rest), y)
        below = self.emit("Sub", whole, self._number(node, 1))
        found = self.emit("Round", self.emit("Where", other, below, whole))
        # By 0 there is no remainder; by infinities as of them the quotient is what it tends to.
        known = self.emit("And", self.emit("Equal", found, found), self.isfinite(y, node=node))
        return self.emit("Where", known, found, self.emit("Div", x, y))

    def remainder(self, x, y, *, node):
        if node.dtype.kind != "f":
            return self.emit("Mod", x, self._divisor(y, node))
        rest, other = self._signs(x, y, node)
        return self.emit("Where", other, self.emit("Add", rest, y), rest)

    def _divisor(self, y, node):
        """By 0 and -1, at which processors stop, the remainder is 0, as by 1."""
        stops = self.emit("Equal", y, self._number(node, 0))
        if node.dtype.kind == "i":
            stops = self.emit("Or", stops, self.emit("Equal", y, self._number(node, -1)))
        return self.emit("Where", stops, self._number(node, 1), y)

    def astype(self, x, *, node, dtype):
        return self.emit("Cast", x, to=dtype)

    def in_range(self, x, *, node, size):
        return x

    def within(self, x, *, node, domain, name):
        return x

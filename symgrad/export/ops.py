"""The table of ops in ONNX's words.

Each method is called as its op, takes the names of its operands' values, the node and the op's
attributes, and adds nodes of ONNX; it gives the name of the result.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from symgrad.ir.dims import Dim
from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ops.special import kernels

# Ops that ONNX has under another name, and with no more to be said.
SAME: Mapping[str, str] = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "add": "Add", "asin": "Asin",
    "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh", "cos": "Cos", "cosh": "Cosh",
    "det": "Det", "divide": "Div", "equal": "Equal", "erf": "Erf", "exp": "Exp",
    "greater": "Greater", "greater_equal": "GreaterOrEqual", "less": "Less",
    "less_equal": "LessOrEqual", "log": "Log", "logical_and": "And", "logical_not": "Not",
    "logical_or": "Or", "logical_xor": "Xor", "matmul": "MatMul", "maximum": "Max",
    "minimum": "Min", "multiply": "Mul", "negative": "Neg", "positive": "Identity",
    "reciprocal": "Reciprocal", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin",
    "sinh": "Sinh", "sqrt": "Sqrt", "subtract": "Sub", "tan": "Tan", "tanh": "Tanh",
    "where": "Where",
}  # fmt: skip
ENDS = 2**62  # beyond the end of any axis


class Ops:
    """Ops as nodes of ONNX; `writer.py` emits them."""

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

    # ---- element by element -----------------------------------------------------------------

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

    def floor_divide(self, x, y, *, node):
        if node.dtype.kind != "f":
            raise self.refused("ONNX rounds quotients of integers towards 0")
        return self.emit("Floor", self.emit("Div", x, y))

    def remainder(self, x, y, *, node):
        if node.dtype.kind != "f":
            return self.emit("Mod", x, self._divisor(y, node))
        return self.emit("Sub", x, self.emit("Mul", self.floor_divide(x, y, node=node), y))

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

    # ---- shapes -----------------------------------------------------------------------------

    def reshape(self, x, *, node, shape):
        return self.emit("Reshape", x, self.sizes(shape), allowzero=1)

    def permute_dims(self, x, *, node, axes):
        return self.emit("Transpose", x, perm=list(axes))

    def broadcast_to(self, x, *, node, shape):
        return self.emit("Expand", x, self.sizes(shape))

    def concat(self, *arrays, node, axis):
        return self.emit("Concat", *arrays, axis=axis)

    def size_of(self, *, node, dim, dtype):
        size = self.emit("Squeeze", self.sizes([dim]), self._ints(0))
        return self.emit("Cast", size, to=dtype)

    def arange(self, *, node, start, step, count, dtype):
        if isinstance(count, Dim):
            raise self.refused("it is as long as a named dimension")
        return self.array((start + np.arange(count) * step).astype(dtype))

    def eye(self, *, node, n_rows, n_cols, k, dtype):
        if isinstance(n_rows, Dim) or isinstance(n_cols, Dim):
            raise self.refused("it is as large as a named dimension")
        return self.array(np.eye(n_rows, n_cols, k, dtype=dtype))

    def slice(self, x, *, node, index):
        first = [self._bound(a, 0 if c > 0 else ENDS) for a, _, c in index]
        last = [self._bound(b, ENDS if c > 0 else -ENDS) for _, b, c in index]
        steps = [c for *_, c in index]
        axes = self._ints(*range(len(index)))
        return self.emit("Slice", x, self.sizes(first), self.sizes(last), axes, self._ints(*steps))

    def _bound(self, bound, default):
        return default if bound is None else bound

    def place(self, x, *, node, shape, index):
        ends = [
            (a or 0, s if b is None else b, c) for s, (a, b, c) in zip(shape, index, strict=True)
        ]
        if any(c != 1 for *_, c in ends):
            raise self.refused("it is placed in steps")
        pads = [a for a, *_ in ends] + [s - b for s, (_, b, _) in zip(shape, ends, strict=True)]
        return self.emit("Pad", x, self.sizes(pads), mode="constant")

    # ---- reductions -------------------------------------------------------------------------

    def _reduced(self, op, x, axis, keepdims):
        if not len(axis):
            return self.emit("Identity", x)
        return self.emit(op, x, self._ints(*axis), keepdims=int(keepdims))

    def sum(self, x, *, node, axis, keepdims, dtype=None):
        if node.inputs[0].dtype != node.dtype:
            x = self.emit("Cast", x, to=node.dtype)
        return self._reduced("ReduceSum", x, axis, keepdims)

    def prod(self, x, *, node, axis, keepdims, dtype=None):
        if node.inputs[0].dtype != node.dtype:
            x = self.emit("Cast", x, to=node.dtype)
        return self._reduced("ReduceProd", x, axis, keepdims)

    def max(self, x, *, node, axis, keepdims):
        return self._reduced("ReduceMax", x, axis, keepdims)

    def min(self, x, *, node, axis, keepdims):
        return self._reduced("ReduceMin", x, axis, keepdims)

    def _flags(self, op, x, axis, keepdims):
        found = self.emit("Cast", self.emit("Cast", x, to=np.dtype(bool)), to=np.dtype(np.int32))
        return self.emit("Cast", self._reduced(op, found, axis, keepdims), to=np.dtype(bool))

    def all(self, x, *, node, axis, keepdims):
        return self._flags("ReduceMin", x, axis, keepdims)

    def any(self, x, *, node, axis, keepdims):
        return self._flags("ReduceMax", x, axis, keepdims)

    def argmax(self, x, *, node, axis):
        return self.emit("ArgMax", x, axis=axis, keepdims=0)

    def argmin(self, x, *, node, axis):
        return self.emit("ArgMin", x, axis=axis, keepdims=0)

    def row_sums(self, x, *, node, keepdims):
        return self._reduced("ReduceSum", x, (-1,), keepdims)

    def vdot(self, a, b, *, node):
        axes = range(node.inputs[0].ndim)
        return self._reduced("ReduceSum", self.emit("Mul", a, b), tuple(axes), False)

    def vecdot(self, a, b, *, node, keepdims):
        return self._reduced("ReduceSum", self.emit("Mul", a, b), (-1,), keepdims)

    def logsumexp(self, x, *, node, axis, keepdims):
        return self._reduced("ReduceLogSumExp", x, axis, keepdims)

    def norm2(self, x, *, node, axis, keepdims):
        return self._reduced("ReduceL2", x, axis, keepdims)

    def softmax(self, x, *, node, axis):
        if len(axis) == 1:
            return self.emit("Softmax", x, axis=axis[0])
        powers = self.emit("Exp", self.emit("Sub", x, self._reduced("ReduceMax", x, axis, True)))
        return self.emit("Div", powers, self._reduced("ReduceSum", powers, axis, True))

    def log_softmax(self, x, *, node, axis):
        if len(axis) == 1:
            return self.emit("LogSoftmax", x, axis=axis[0])
        return self.emit("Sub", x, self._reduced("ReduceLogSumExp", x, axis, True))

    def running_sum(self, x, *, node, axis, reverse):
        axes = self.array(np.array(axis, np.int64))
        return self.emit("CumSum", x, axes, reverse=int(reverse))

    # ---- indices and order ------------------------------------------------------------------

    def gather(self, x, *indices, node, axis):
        if len(indices) > 1:
            raise self.refused("it takes indices along several axes at once")
        return self.emit("Gather", x, indices[0], axis=axis)

    def _topmost(self, x, node, axis, descending, output):
        size = self.sizes([node.inputs[0].shape[axis]])
        return self.emit(
            "TopK", x, size, axis=axis, largest=int(descending), sorted=1, outputs=2, output=output
        )

    def sort(self, x, *, node, axis, descending):
        return self._topmost(x, node, axis, descending, 0)

    def argsort(self, x, *, node, axis, descending):
        return self._topmost(x, node, axis, descending, 1)

    # ---- windows ----------------------------------------------------------------------------

    def _taps(self, x, node, axis, size, stride, dilation):
        """For each place in a window, the elements that stand there, of all windows."""
        count = node.shape[axis]
        for i in range(size):
            start = i * dilation
            ends = [start + (count - 1) * stride + 1]
            bounds = self._ints(start), self.sizes(ends), self._ints(axis), self._ints(stride)
            yield self.emit("Slice", x, *bounds)

    def _joined(self, op, x, node, **window):
        first, *rest = self._taps(x, node, **window)
        for tap in rest:
            first = self.emit(op, first, tap)
        return first

    def window_max(self, x, *, node, **window):
        return self._joined("Max", x, node, **window)

    def window_sum(self, x, *, node, **window):
        return self._joined("Add", x, node, **window)

    def windows(self, x, *, node, **window):
        last = self._ints(-1)
        taps = [self.emit("Unsqueeze", tap, last) for tap in self._taps(x, node, **window)]
        return self.emit("Concat", *taps, axis=-1)

    def convolve(self, x, w, *, node, stride, dilation):
        """x and w lie as in `ops/conv/kernels.py`; ONNX has the batch first."""
        a, b = node.inputs
        others = range(3, a.ndim - 1)
        groups, filters, *kernel, channels = b.shape
        x = self.emit("Transpose", x, perm=[a.ndim - 1, 0, 2, 1, *others])
        x = self._grouped(x, [a.shape[-1], groups * channels, a.shape[1], *a.shape[3:-1]])
        w = self.emit("Transpose", w, perm=[0, 1, b.ndim - 1, *range(2, b.ndim - 1)])
        w = self._grouped(w, [groups * filters, channels, *kernel])
        y = self.emit(
            "Conv", x, w, group=groups, strides=list(stride), dilations=list(dilation),
            kernel_shape=list(kernel),
        )  # fmt: skip
        places = [node.shape[1], *node.shape[3:-1]]
        y = self._grouped(y, [a.shape[-1], groups, filters, *places])
        return self.emit("Transpose", y, perm=[1, 3, 2, *range(4, 3 + len(places)), 0])

    def _grouped(self, x, shape):
        return self.emit("Reshape", x, self.sizes(shape), allowzero=1)

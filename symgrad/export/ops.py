"""The table of ops in ONNX's words.

Each method is called as its op, takes the names of its operands' values, the node and the op's
attributes, and adds nodes of ONNX; it gives the name of the result.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symgrad.export.elementwise import Elementwise
from symgrad.ir.dims import Dim

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


class Ops(Elementwise):
    """Ops as nodes of ONNX; `writer.py` emits them."""

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

    def _counts(self, count):
        """The name of 0, 1, 2 … below a size, as int64."""
        if not isinstance(count, Dim):
            return self.array(np.arange(count))
        size = self.emit("Squeeze", self.sizes([count]), self._ints(0))
        return self.emit("Range", self.array(np.int64(0)), size, self.array(np.int64(1)))

    def arange(self, *, node, start, step, count, dtype):
        if not isinstance(count, Dim):
            return self.array((start + np.arange(count) * step).astype(dtype))
        numbers = self.emit("Mul", self._counts(count), self._ints(step))
        return self.emit("Cast", self.emit("Add", numbers, self._ints(start)), to=dtype)

    def eye(self, *, node, n_rows, n_cols, k, dtype):
        """Where a column has the number of its row, and k more."""
        rows, columns = map(self._counts, (n_rows, n_cols))
        rows = self.emit("Unsqueeze", self.emit("Add", rows, self._ints(k)), self._ints(1))
        return self.emit("Cast", self.emit("Equal", rows, columns), to=dtype)

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
        """Of numbers divided by the largest one, so that no square overflows or vanishes."""
        if not len(axis):
            return self.emit("Abs", x)
        one = self._number(node, 1)
        largest = self._reduced("ReduceMax", self.emit("Abs", x), axis, True)
        usual = self.emit("Greater", largest, self._number(node, 0))
        usual = self.emit("And", usual, self.emit("Less", largest, self._number(node, np.inf)))
        unit = self.emit("Where", usual, largest, one)
        y = self._reduced("ReduceL2", self.emit("Div", x, unit), axis, True)
        return self.emit("Reshape", self.emit("Mul", y, unit), self.sizes(node.shape), allowzero=1)

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
        """Of indices along several axes there is a row for each place, after axes before theirs."""
        if len(indices) == 1:
            return self.emit("Gather", x, indices[0], axis=axis)
        rank, count = node.inputs[0].ndim, len(indices)
        width = node.ndim - (rank - count)
        shape, last = self.sizes(node.shape[axis : axis + width]), self._ints(-1)
        whole = (self.emit("Cast", i, to=np.dtype("int64")) for i in indices)
        rows = [self.emit("Unsqueeze", self.emit("Expand", i, shape), last) for i in whole]
        there = self.emit("Concat", *rows, axis=-1)
        if not axis:
            return self.emit("GatherND", x, there)
        moved = [*range(axis, axis + count), *range(axis), *range(axis + count, rank)]
        found = self.emit("GatherND", self.emit("Transpose", x, perm=moved), there)
        back = [*range(width, width + axis), *range(width), *range(width + axis, node.ndim)]
        return self.emit("Transpose", found, perm=back)

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
        y = self._convolved("Conv", x, w, node, node.inputs[0], stride, dilation)
        return self._inward(y, node)

    def convolve_inputs(self, y, w, *, node, sizes, stride, dilation):
        """Zeros for what a convolution in strides has not read of x are `output_padding`."""
        images, weights = node.inputs
        kernel = weights.shape[2:-1]
        more = [
            s - ((n - 1) * step + by * (k - 1) + 1)
            for s, n, step, by, k in zip(
                sizes, (images.shape[1], *images.shape[3:-1]), stride, dilation, kernel, strict=True
            )
        ]
        if not all(isinstance(m, int) for m in more):
            raise self.refused("it adds so many zeros as a named size says")
        x = self._convolved(
            "ConvTranspose", y, w, node, images, stride, dilation, output_padding=more
        )
        return self._inward(x, node)

    def _convolved(self, op, x, w, node, images, stride, dilation, **attrs):
        """Images and weights lie as in `ops/conv/kernels.py`; ONNX has the batch first."""
        groups, filters, *kernel, channels = node.inputs[1].shape
        others = range(3, images.ndim - 1)
        x = self.emit("Transpose", x, perm=[images.ndim - 1, 0, 2, 1, *others])
        shape = images.shape
        x = self._grouped(x, [shape[-1], groups * shape[2], shape[1], *shape[3:-1]])
        w = self.emit("Transpose", w, perm=[0, 1, len(kernel) + 2, *range(2, len(kernel) + 2)])
        w = self._grouped(w, [groups * filters, channels, *kernel])
        return self.emit(
            op, x, w, group=groups, strides=list(stride), dilations=list(dilation),
            kernel_shape=list(kernel), **attrs,
        )  # fmt: skip

    def _inward(self, y, node):
        """The result as a node has it: groups, rows, channels, other places, the batch."""
        groups, rows, channels, *others, batch = node.shape
        y = self._grouped(y, [batch, groups, channels, rows, *others])
        return self.emit("Transpose", y, perm=[1, 3, 2, *range(4, node.ndim), 0])

    def _grouped(self, x, shape):
        return self.emit("Reshape", x, self.sizes(shape), allowzero=1)

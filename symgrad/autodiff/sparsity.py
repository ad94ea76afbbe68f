"""Which elements of one node each element of another is made of: the pattern of a Jacobian.

A walk over the graph, forward, with a boolean matrix for each node: an entry (i, j) where element i
may depend, through floats, on element j of what is differentiated by. What moves elements is run
on their numbers; of an op that works along some axes the others are kept apart; what nothing is
known of mixes all. See Griewank and Walther, Evaluating Derivatives, 2008, chapter 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from symgrad.autodiff.reverse import active_nodes
from symgrad.ir.errors import GradientError, SymgradError
from symgrad.ir.evaluate import value_of
from symgrad.ir.leaf_ops import INPUTS
from symgrad.ir.node import Node, describe
from symgrad.ir.types import TensorType, names_in
from symgrad.ir.walk import topological
from symgrad.ops import batch
from symgrad.ops.conv.convolve import convolve_inputs, convolve_p
from symgrad.ops.conv.windows import overlapped, windows
from symgrad.ops.index.gather import gather, scatter
from symgrad.ops.linalg.products import matmul_p
from symgrad.ops.sparse.kernels import sparse_module
from symgrad.ops.sparse.products import rows_of, sparse_matmul_p

Pattern: TypeAlias = Any  # a csr_array of booleans: a row for each element
Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

# A pattern of more entries than this is no longer sparse in memory: hundreds of megabytes.
MOST = 2**26
# Of a convolution with more weights than this the elements are taken for mixed.
MOST_WEIGHTS = 256


def sparsity(y: Node, x: Node) -> Pattern:
    """The pattern of the Jacobian of y by x, with a row for each element of y.

    Raises `GradientError` for a size that is not known now, and for a pattern that is too large;
    it names the node that made it so.
    """
    order = topological([y])
    for node in order:
        if names := names_in((node.type, node.attrs)):
            raise GradientError(
                f"{describe(node)}: the size of {', '.join(sorted(names))} is not known yet, and a "
                "sparse derivative wants all sizes; write ints in the shapes of the placeholders"
            )
    return _Walk(order, x).of(y)


class _Walk:
    """The patterns of the nodes by x; `fixed` are those that nothing can change."""

    def __init__(self, order: Sequence[Node], x: Node) -> None:
        self.sparse = sparse_module()
        self.width = int(x.size)
        live = active_nodes(order, [x], through_steps=False)
        self.fixed: set[Node] = set()
        self.patterns: dict[Node, Pattern] = {
            x: self.sparse.eye_array(self.width, dtype=bool, format="csr")
        }
        for node in order:
            free = node.op in INPUTS or node.op.opaque
            if not free and all(n in self.fixed for n in node.inputs):
                self.fixed.add(node)
            if node is not x and node in live and isinstance(node.type, TensorType):
                self.patterns[node] = self._found(node)

    def of(self, node: Node) -> Pattern:
        """The pattern of a node, which may be empty."""
        if node in self.patterns:
            return self.patterns[node]
        return self.sparse.csr_array((int(node.size), self.width), dtype=bool)

    def _found(self, node: Node) -> Pattern:
        source = node.inputs[0] if node.op.of_several else node
        found = self.sparse.csr_array((int(node.size), self.width), dtype=bool)
        for i, x in enumerate(source.inputs):
            if x in self.patterns:
                pattern = self._through(node, source, i, self.patterns[x])
                found = pattern if found.nnz == 0 else found + pattern
        return found

    def _through(self, node: Node, source: Node, i: int, pattern: Pattern) -> Pattern:
        """The pattern of a node by its i-th operand, which has this one."""
        op, x = source.op, source.inputs[i]
        if op.elementwise:
            at = _spread(_numbers(x.shape), node)
            for j in op.annihilators:
                other = source.inputs[j]
                if j != i and other in self.fixed:
                    zero = np.asarray(value_of(other)) == 0
                    at = np.where(_spread(zero, node), -1, at)
            return self._rows(node, pattern, at)
        if op.identity and (op.barrier or op.update):
            same = i == (node.attr("index") if node is not source else 0)
            return pattern if same else self._rows(node, pattern, np.full(int(node.size), -1))
        if op.index_map and all(n in self.fixed for n in source.inputs[op.indices :] if op.indices):
            return self._rows(node, pattern, self._moved(source, i))
        reach = self._reach(source, i)
        if reach is not None:
            return self._product(node, reach, pattern)
        labels, order = _kept_apart(node, source, i)
        groups = int(max(labels.max(initial=-1), order.max(initial=-1))) + 1
        return self._rows(node, self._joined(node, pattern, labels, groups), order)

    def _moved(self, node: Node, i: int) -> Numbers:
        """For each element of the result the number of the element of an operand that it is."""
        values: list[Any] = []
        for j, x in enumerate(node.inputs):
            if node.op.indices and j >= node.op.indices:
                values.append(value_of(x))
            else:
                values.append(_numbers(x.shape) + 1 if j == i else np.zeros(x.shape, np.int64))
        return np.asarray(node.op.kernel(*values, **dict(node.attrs))).ravel() - 1

    def _reach(self, node: Node, i: int) -> Any:
        """Which elements of an operand each element of the result takes in; None if not known."""
        x, sparse = node.inputs[i], self.sparse
        if node.op is sparse_matmul_p.op:
            return self._of_sparse_product(node, i)
        if node.op is matmul_p.op and len(node.inputs) == 2:
            return self._of_product(node, i)
        if node.op in (convolve_p.op, convolve_inputs.op) and i == 0:
            return self._of_convolution(node)
        if node.op is scatter.op and all(n in self.fixed for n in node.inputs[2:]):
            size = int(node.size)
            if i == 0:
                return sparse.eye_array(size, dtype=bool, format="csr")
            places = [value_of(n) for n in node.inputs[2:]]
            to = gather.op.kernel(_numbers(node.shape), *places, axis=node.attr("axis"))
            return _entries(sparse, np.ravel(to), np.arange(int(x.size)), (size, int(x.size)))
        if node.op is overlapped.op:
            attrs = {k: v for k, v in node.attrs if k != "length"}
            to = np.ravel(windows.op.kernel(_numbers(node.shape), **attrs))
            return _entries(sparse, to, np.arange(int(x.size)), (int(node.size), int(x.size)))
        return None

    def _of_product(self, node: Node, i: int) -> Any:
        """Of a product of matrices by one that is known: its zeros take nothing in."""
        other = node.inputs[1 - i]
        if other not in self.fixed or node.inputs[0].ndim > 2 or node.inputs[1].ndim > 2:
            return None
        known = self.sparse.csr_array(np.asarray(value_of(other)) != 0)
        if i == 0:  # x @ known, row by row
            eye = self.sparse.eye_array(int(node.shape[0]), dtype=bool)
            return self.sparse.kron(eye, known.T, format="csr")
        eye = self.sparse.eye_array(int(node.shape[1]), dtype=bool)
        return self.sparse.kron(known, eye, format="csr")

    def _of_convolution(self, node: Node) -> Any:
        """Of a convolution by its first operand: each weight alone only moves elements."""
        x, w = node.inputs
        known = np.asarray(value_of(w)) != 0 if w in self.fixed else np.ones(w.tensor.shape, bool)
        weights = np.flatnonzero(known)
        if len(weights) > MOST_WEIGHTS:
            return None
        numbers = (_numbers(x.shape) + 1).astype(np.float64)
        rows, columns = [], []
        for number in weights:
            unit = np.zeros(known.shape)
            unit.flat[number] = 1
            at = np.rint(node.op.kernel(numbers, unit, **dict(node.attrs))).astype(np.int64).ravel()
            rows.append(np.flatnonzero(at))
            columns.append(at[rows[-1]] - 1)
        if not rows:
            return self.sparse.csr_array((int(node.size), int(x.size)), dtype=bool)
        shape = (int(node.size), int(x.size))
        return _entries(self.sparse, np.concatenate(rows), np.concatenate(columns), shape)

    def _of_sparse_product(self, node: Node, i: int) -> Any:
        """Of a sparse product: each row takes in its values, and the rows that they stand for."""
        indices, indptr = node.attr("indices"), node.attr("indptr")
        rows, columns = rows_of(indptr), indices.array
        if node.attr("transposed"):
            rows, columns = columns, rows
        values, x = node.inputs
        if values.ndim != 2 or x.ndim != 2:
            return None
        width, height = int(x.shape[1]), int(node.shape[0])
        if i == 0:
            entries = _entries(self.sparse, rows, np.arange(len(rows)), (height, len(rows)))
            return self.sparse.kron(entries, np.ones((width, 1), bool), format="csr")
        entries = _entries(self.sparse, rows, columns, (height, int(x.shape[0])))
        return self.sparse.kron(entries, self.sparse.eye_array(width, dtype=bool), format="csr")

    # ---- patterns -------------------------------------------------------------------------------

    def _rows(self, node: Node, pattern: Pattern, at: Numbers) -> Pattern:
        """Rows of a pattern by number; -1 is an empty one."""
        if len(at) == pattern.shape[0] and (at == np.arange(len(at))).all():
            return pattern
        counts = np.append(np.diff(pattern.indptr), 0)
        self._check(node, counts[at].sum())
        if (at < 0).any():
            more = (pattern.shape[0] + 1, self.width)
            pattern = self.sparse.csr_array(
                (pattern.data, pattern.indices, np.append(pattern.indptr, pattern.nnz)), shape=more
            )
        return pattern[at]

    def _product(self, node: Node, reach: Any, pattern: Pattern) -> Pattern:
        self._check(node, np.diff(pattern.indptr)[reach.indices].sum())
        return (reach.astype(bool) @ pattern).astype(bool)

    def _joined(self, node: Node, pattern: Pattern, labels: Numbers, groups: int) -> Pattern:
        """The rows that have one label as one row."""
        shape = (groups, len(labels))
        return self._product(
            node, _entries(self.sparse, labels, np.arange(len(labels)), shape), pattern
        )

    def _check(self, node: Node, entries: int) -> None:
        if entries > MOST:
            raise GradientError(
                f"the pattern of {describe(node)} has up to {entries} entries, so that little is "
                "sparse here: each element depends on very many; leave out sparse=True"
            )


def _numbers(shape: Any) -> Numbers:
    """The number of each element."""
    return np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)


def _spread(numbers: Any, like: Node) -> Any:
    """An array broadcast to the shape of a node, flat."""
    shape: Any = like.shape
    return np.broadcast_to(numbers, shape).ravel()


def _entries(sparse: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    ones = np.ones(len(rows), bool)
    return sparse.coo_array((ones, (rows, columns)), shape=shape).tocsr()


def _kept_apart(node: Node, source: Node, i: int) -> tuple[Numbers, Numbers]:
    """A label for each element of an operand, and for each of the result the label of its own.

    Elements of one label are mixed. Axes that an op keeps apart are those in front of the last
    ones, or all but those along which it works; of any other op all elements have one label.
    """
    x, y = source.inputs[i], node
    axes = _mixed_axes(node, source, i)
    rest = [k for k in range(x.ndim) if k not in axes]
    sizes = tuple(x.shape[k] for k in rest)
    labels = _numbers(sizes)
    kept = labels.reshape([1 if k in axes else n for k, n in enumerate(x.shape)])
    of_x = _spread(kept, x)
    if y.ndim == x.ndim and all(y.shape[k] == x.shape[k] for k in rest):
        return of_x, _spread(kept, y)
    if y.shape == sizes:
        return of_x, labels.ravel()
    front = x.ndim - len(axes)
    if rest == list(range(front)) and y.ndim >= front and y.shape[:front] == sizes:
        spread = labels.reshape(*sizes, *(1,) * (y.ndim - front))
        return of_x, _spread(spread, y)
    return np.zeros(int(x.size), np.int64), np.zeros(int(y.size), np.int64)


def _mixed_axes(node: Node, source: Node, i: int) -> set[int]:
    """The axes of an operand along which an op mixes its elements."""
    x = source.inputs[i]
    every = set(range(x.ndim))
    if source.op is matmul_p.op:
        return {x.ndim - 1 - i}
    if source.op.batch in (batch.over_axes, batch.together) and node is source:
        axis = source.attr("axis")
        return {*axis} if isinstance(axis, tuple) else {axis}
    if source.op.batch not in (batch.in_front, batch.repeated):
        return every
    # As many axes in front as the op can do without, and all operands have.
    types = [n.tensor for n in source.inputs]
    front = 0
    for k in range(1, min(t.ndim for t in types) + 1):
        if len({t.shape[:k] for t in types}) > 1:
            break
        less = [t.with_shape(t.shape[k:]) for t in types]
        try:
            result = source.op.infer(*less, **dict(source.attrs))
        except SymgradError:
            break
        found = result if isinstance(result, tuple) else (result,)
        whole = source.type if isinstance(source.type, tuple) else (source.type,)
        if any(t.shape[k:] != f.shape or t.ndim < k for t, f in zip(whole, found, strict=True)):
            break
        front = k
    return every - set(range(front))

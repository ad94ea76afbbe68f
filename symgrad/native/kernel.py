"""Kernels: a group in machine code, ready to be called, with what it takes to call it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from symgrad.ir.evaluate import resolve
from symgrad.ir.op import REGISTRY
from symgrad.ir.types import TensorType
from symgrad.ir.walk import GraphLike
from symgrad.native.builtin import builtin, write_wrapper
from symgrad.native.engine import Engine, host
from symgrad.native.groups import Group
from symgrad.native.loops import KERNEL, write_group
from symgrad.native.operations import kind_of

Array = np.ndarray[Any, np.dtype[Any]]


def known(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """A shape of which every size is a number."""
    return shape


class Kernel:
    """The code of an inner graph for given sizes of its named dimensions.

    `call(*operands, *results, first, end)` computes the rows from one to another, of which there
    are `rows`, and the first is a multiple of `block`. In place of a result that is a reduction
    over the rows it takes the array of its parts, one for each block; `join` joins them.

    `exact` refuses what does not give NumPy's bits. Raises `NotNative` for a graph that has no
    native form, and `Unavailable` where there is no machine code.
    """

    def __init__(
        self,
        graph: GraphLike,
        sizes: Mapping[str, int],
        *,
        exact: bool = False,
        engine: Engine | None = None,
    ) -> None:
        self.group = Group(graph, sizes, exact=exact)
        self._engine = host() if engine is None else engine
        self._module = write_group(self.group)
        types = self.group.argument_types()
        count = len(graph.inputs)
        kinds = [None if p.ndim else kind_of(p.tensor.dtype) for p in graph.inputs]
        kinds += [None] * (len(types) - count)
        write_wrapper(self._module, KERNEL, kinds, 2, long=self.group.is_long())
        self.ir = str(self._module)
        self.rows, self.block = self.group.rows, self.group.block
        self.results = tuple(
            y.tensor.with_shape(resolve(y.tensor.shape, sizes)) for y in graph.outputs
        )
        dtypes = [None if k else t for k, (_, t) in zip(kinds, types, strict=True)]
        self.call: Callable[..., None] = builtin(
            self._engine, self._module, dtypes, len(graph.outputs)
        )

    @cached_property
    def assembly(self) -> str:
        """What a person reads of the machine code."""
        return self._engine.assembly(self.ir)

    @cached_property
    def parts(self) -> tuple[TensorType | None, ...]:
        """Of each result the type of the array of its parts; None for one that has no parts."""
        own = self.group.argument_types()[-len(self.results) :]
        return tuple(None if s is None else TensorType(s, dtype) for s, dtype in own)

    @cached_property
    def joins(self) -> tuple[Any, ...]:
        """Of each result the ufunc that joins its parts, or None."""
        ends = (self.group.ends.get(y) for y in self.group.graph.outputs)
        return tuple(None if e is None else REGISTRY.ops[e.join].kernel for e in ends)

    def spans(self, threads: int) -> Iterator[tuple[int, int]]:
        """The rows in pieces for some threads, a few for each; always whole blocks."""
        blocks = -(-self.rows // self.block)
        size = max(1, -(-blocks // (4 * threads))) * self.block if threads > 1 else self.rows
        for first in range(0, self.rows, max(size, 1)):
            yield first, min(first + size, self.rows)

    def run(self, operands: Sequence[Any]) -> list[Array]:
        """The results for these operands, in arrays of their own."""
        arrays = [
            np.empty(known((t if p is None else p).shape), t.dtype)
            for t, p in zip(self.results, self.parts, strict=True)
        ]
        for first, end in self.spans(1):
            self.call(*operands, *arrays, first, end)
        return [
            x if ufunc is None else self.joined(ufunc, x, t)
            for x, ufunc, t in zip(arrays, self.joins, self.results, strict=True)
        ]

    def joined(self, ufunc: Any, parts: Array, type_: TensorType) -> Array:
        """A reduction over the rows, from its parts."""
        found = ufunc.reduce(parts, axis=0, dtype=type_.dtype)
        return np.reshape(found, known(type_.shape))

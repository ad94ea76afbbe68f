"""Kernels: a group in machine code, ready to be called, with what it takes to call it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.ir.cached import cached_property
from symgrad.ir.evaluate import resolve
from symgrad.ir.types import TensorType
from symgrad.ir.walk import GraphLike
from symgrad.native.builtin import Strides, builtin, write_wrapper
from symgrad.native.engine import Engine, host
from symgrad.native.groups import Group
from symgrad.native.loops import KERNEL, write_group
from symgrad.native.operations import kind_of
from symgrad.native.short import widened
from symgrad.native.space import NotNative
from symgrad.native.streams import streamed
from symgrad.native.team import has_team

# Nanoseconds, of which another thread can save half: a team that waits begins within one µs.
LEAST_SHARED = 5_000

Array = np.ndarray[Any, np.dtype[Any]]


def known(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """A shape of which every size is a number."""
    return shape


UFUNCS: Mapping[str, np.ufunc] = {
    "add": np.add,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


class Kernel:
    """The code of an inner graph for given sizes of its named dimensions.

    `call(*operands, *results, first, end)` computes the rows from one to another, of which there
    are `rows`, and the first is a multiple of `grain`. If it `shares`, two more numbers may follow:
    of how many rows the pieces are that the team computes, and on how many threads. Operands are
    given in the shapes of `wide`, by their numbers, where that has one. In place of a result that
    is a reduction over the rows it takes the array of its parts, one for each block; `join` joins
    them.

    Raises `Unavailable` where there is no machine code, and `NotNative` for rows that are too long.
    """

    def __init__(
        self,
        group: Group,
        sizes: Mapping[str, int],
        engine: Engine,
        strides: Sequence[Strides | None] | None = None,
    ) -> None:
        self.group, self._engine = group, engine
        self.strides = (None,) * len(group.graph.inputs) if strides is None else tuple(strides)
        graph = group.graph
        self.wide: Mapping[int, tuple[int, ...]] = {}
        self._module = write_group(self.group, engine.has_masks)
        arrays = (*graph.inputs, *graph.outputs)
        kinds = [None if p.ndim else kind_of(p.tensor.dtype) for p in graph.inputs]
        kinds += [None] * len(graph.outputs)
        strided = {k: s for k, s in enumerate(self.strides) if s is not None}
        self.shares = self.group.nanoseconds >= LEAST_SHARED and has_team()
        long = self.shares or self.group.is_long()
        write_wrapper(
            self._module, KERNEL, kinds, 2, long=long, shared=self.shares, strided=strided
        )
        self.rows, self.block, self.grain = self.group.rows, self.group.block, self.group.grain
        self.in_place, self.streamed = self.group.in_place, streamed(self.group)
        self.results = tuple(
            y.tensor.with_shape(resolve(y.tensor.shape, sizes)) for y in graph.outputs
        )
        dtypes = [None if k else x.tensor.dtype for k, x in zip(kinds, arrays, strict=True)]
        self.call: Callable[..., None] = builtin(
            self._engine, self._module, dtypes, len(graph.outputs), strided
        )

    @property
    def nanoseconds(self) -> float:
        """About how long all rows take on one thread."""
        return self.group.nanoseconds

    @property
    def ir(self) -> str:
        """The text of the module that was compiled."""
        return str(self._module)

    @cached_property
    def assembly(self) -> str:
        """The text of the machine code, for people."""
        return self._engine.assembly(self.ir)

    @cached_property
    def parts(self) -> tuple[TensorType | None, ...]:
        """Of each result the type of the array of its parts; None for one that has no parts."""
        blocks = -(-self.rows // self.block)
        outputs = zip(self.group.graph.outputs, self.results, strict=True)
        return tuple(
            t.with_shape((blocks, *t.shape)) if y in self.group.ends else None for y, t in outputs
        )

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
        shapes = (self.wide.get(k) for k in range(len(operands)))
        wide = [
            x if s is None else np.broadcast_to(x, s)
            for x, s in zip(operands, shapes, strict=False)
        ]
        for first, end in self.spans(1):
            self.call(*wide, *arrays, first, end)
        outputs = self.group.graph.outputs
        ends = (self.group.ends.get(y) for y in outputs)
        return [
            x if end is None else UFUNCS[end.join].reduce(x, 0, x.dtype)
            for x, end in zip(arrays, ends, strict=True)
        ]


def pays(graph: GraphLike, sizes: Mapping[str, int], *, exact: bool, shared: bool = False) -> bool:
    """Whether an inner graph has a native form that takes less time than NumPy's functions.

    If it is `shared`, several threads compute it.
    """
    try:
        return Group(widened(graph, sizes)[0], sizes, exact=exact).pays(shared)
    except NotNative:
        return False


def compiled(
    graph: GraphLike,
    sizes: Mapping[str, int],
    *,
    exact: bool = False,
    if_it_pays: bool = False,
    shared: bool = False,
    engine: Engine | None = None,
    strides: Sequence[Strides | None] | None = None,
) -> Kernel:
    """The code of an inner graph for these sizes of its named dimensions.

    `exact` refuses what does not give NumPy's bits. Operands are plain, but for those that have
    `strides`. Raises `NotNative` for a graph that has no native form, or that takes no less time
    so, if it is to pay, also where it is `shared` by threads, and `Unavailable` where there is no
    machine code.
    """
    strided, (graph, wide) = {}, widened(graph, sizes)
    strides = [
        None if k in wide else s for k, s in enumerate(strides or [None] * len(graph.inputs))
    ]
    for x, found in zip(graph.inputs, strides, strict=True):
        if found is not None:
            strided[x] = tuple((s or 0) // x.tensor.dtype.itemsize for s in found)
    group = Group(graph, sizes, exact=exact, strided=strided)
    if if_it_pays and not group.pays(shared):
        raise NotNative("NumPy's functions are as fast")
    made = Kernel(group, sizes, host() if engine is None else engine, strides)
    made.wide = wide
    return made

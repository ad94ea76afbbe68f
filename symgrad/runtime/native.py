"""Which groups run as machine code: where it is there, and where it pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from symgrad.ir.dims import Shape, product
from symgrad.ir.errors import UnsupportedError
from symgrad.ir.evaluate import resolve
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.types import types_of
from symgrad.ir.walk import GraphLike
from symgrad.lowering.native import NativeCode, Strides, WholeCode
from symgrad.lowering.schedule import schedule
from symgrad.lowering.steps import MatmulCode
from symgrad.native import MOST_ELEMENTS
from symgrad.passes.cse import common_subexpressions
from symgrad.passes.cut_operands import cut_operands, sliced
from symgrad.passes.fuse import (
    PLACING,
    group_of_one,
    taken_apart,
    with_groups,
    with_groups_of_one,
)
from symgrad.rewrite.driver import rewrite
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import Trace
from symgrad.rules.whole_graph import softmax_in_parts

if TYPE_CHECKING:
    from symgrad.native.kernel import Kernel

# A thousand calls make up for the time that it takes to compile a group that makes so many bytes,
# and to start what compiles: 0.05 s once in a process, 0.01 to 0.1 s for the group.
LEAST_BYTES = 2**18
# They make up for a single op that takes NumPy 30 µs longer, in hundredths of a nanosecond; a cheap
# one takes it about so much longer for an element.
LEAST_SAVED, CHEAP = 3_000_000, 10
# A small program is one function if it has so many ops, and is compiled in a moment.
LEAST_OPS, MOST_NODES = 4, 400


class Natives:
    """Gives the machine code of groups, and None for those that are left to NumPy: see `lower`.

    `exact` if no bit may differ from NumPy's. If it is to `insist`, every group that has a native
    form gets it, and a machine without machine code is an `UnsupportedError`. So many `threads`
    share what they compute. `reasons` tells why groups were left to NumPy, in the order in which
    they were asked about.
    """

    def __init__(self, *, exact: bool, insist: bool, threads: int = 1) -> None:
        self.exact, self.insist, self.threads = exact, insist, threads
        self.reasons: dict[str, None] = {}
        self.times = 1

    def repeated(self, times: int) -> Natives:
        """A copy for groups that run so many times in a call, and so pay sooner."""
        found = Natives(exact=self.exact, insist=self.insist, threads=self.threads)
        found.reasons, found.times = self.reasons, self.times * times
        return found

    def parts(self, graph: Graph, sizes: Mapping[str, int]) -> Graph:
        """A graph in which what is to run as machine code is fused; as it is if nothing is."""
        if self._is_small(graph, sizes):
            return graph
        from symgrad.native.groups import is_admitted

        grade = Exact.BITS if self.exact else Exact.ROUNDING
        admits = partial(is_admitted, exact=self.exact)
        # A group that holds what has no native form may have parts that have one.
        apart = taken_apart(graph, lambda inner: not all(map(admits, inner.nodes)))
        fused = with_groups(self._in_parts(apart), grade, admits)
        wanted = any(self._is_worth(n.inner_graph, sizes) for n in fused.nodes)
        return fused if wanted and self._has_host() else graph

    def _has_host(self) -> bool:
        """Whether there is machine code here; if not it is noted why, or an error."""
        from symgrad.native.engine import Unavailable, host

        try:
            host()
        except Unavailable as error:
            self._refuse(error)
            return False
        return True

    def regrouped(self, graph: Graph, sizes: Mapping[str, int]) -> Graph:
        """A graph with other groups, of which each is one loop: the same, if there are no such.

        Of what is cut into slices operands are, and what is placed in arrays is made in the group
        that reads them.
        """
        return self._alone(self._placed(self._cut(graph, sizes), sizes), sizes)

    def _alone(self, graph: Graph, sizes: Mapping[str, int]) -> Graph:
        """A graph in which some ops that are in no group are groups of their own.

        They are large ones, for threads, and those that take NumPy much longer.
        """
        found = {}
        for node in graph.nodes:
            if not node.op.elementwise or isinstance(node.type, tuple):
                continue
            is_large = _bytes_of(node, sizes) * self.times >= LEAST_BYTES
            if is_large and self._shares(group := group_of_one(node)):
                if self._is_worth(group, sizes):
                    found[node] = group
            elif (is_large or self.insist) and self._pays_alone(node, sizes):
                if self._fit([group := group_of_one(node)], sizes):
                    found[node] = group
        return with_groups_of_one(graph, found) if found and self._has_host() else graph

    def _pays_alone(self, node: Node, sizes: Mapping[str, int]) -> bool:
        """Whether an op for which NumPy has no loop is worth compiling alone, or is to be."""
        if isinstance(node.op.kernel, np.ufunc) or node.op.cast:
            return False
        count = _size(node.shape, sizes) * self.times
        if not (node.op.expensive or self.insist) and count * CHEAP < LEAST_SAVED:
            return False  # which needs no table of costs
        from symgrad.native.operations import operation

        found = operation(node.op)
        if found is None or self.insist:
            return found is not None
        return (found.numpy - found.cost) * count >= LEAST_SAVED

    def _shares(self, graph: GraphLike) -> bool:
        """Whether several threads compute a group, and that gives no other bits than one thread."""
        if self.threads < 2:
            return False
        from symgrad.native.groups import is_admitted

        return all(is_admitted(n, exact=True) for n in graph.nodes if n.inputs)

    def _cut(self, graph: Graph, sizes: Mapping[str, int]) -> Graph:
        """A graph in which operands are cut in place of what is computed of them."""
        if not any(n.inner_graph and sliced(n.inner_graph) for n in graph.nodes):
            return graph
        if self._is_small(graph, sizes):
            return graph
        from symgrad.native.groups import is_admitted

        grade = Exact.BITS if self.exact else Exact.ROUNDING
        apart = taken_apart(graph, lambda inner: bool(sliced(inner)))
        changed = cut_operands(apart, grade, Trace())
        found = with_groups(changed, grade, partial(is_admitted, exact=self.exact))
        known = {n.inner_graph for n in graph.nodes}
        made = [n.inner_graph for n in found.nodes if n.inner_graph and n.inner_graph not in known]
        return found if made and self._all_fit(made, sizes) else graph

    def _all_fit(self, groups: Sequence[GraphLike], sizes: Mapping[str, int]) -> bool:
        """Whether all groups can be machine code, and are to be, and there is machine code here."""
        from symgrad.native.engine import Unavailable, host

        try:
            return self._fit(groups, sizes) and bool(host())
        except Unavailable:
            return False

    def _fit(self, groups: Sequence[GraphLike], sizes: Mapping[str, int]) -> bool:
        """Whether all groups can be machine code, and are to be; to ask does not start LLVM."""
        from symgrad.native.groups import Group
        from symgrad.native.space import NotNative

        try:
            fit = [Group(g, sizes, exact=self.exact) for g in groups]
        except NotNative:
            return False
        return bool(fit) and all(self._is_worth(g, sizes) for g in groups)

    def _placed(self, graph: Graph, sizes: Mapping[str, int]) -> Graph:
        """A graph in which what is placed in arrays is fused with what reads them.

        The same graph, if there is none such, or if a group of it has no native form or is small.
        """
        inner = [n.inner_graph for n in graph.nodes if n.inner_graph is not None]
        done = any(n.op in PLACING for g in inner for n in g.nodes)
        if done or not any(n.op in PLACING for n in graph.nodes) or self._is_small(graph, sizes):
            return graph
        from symgrad.native.engine import host
        from symgrad.native.groups import is_admitted

        grade = Exact.BITS if self.exact else Exact.ROUNDING
        admits = partial(is_admitted, exact=self.exact)
        apart = taken_apart(graph, lambda inner: all(map(admits, inner.nodes)))
        found = with_groups(apart, grade, admits, placing=True)
        inner = [n.inner_graph for n in found.nodes if n.inner_graph is not None]
        placing = [g for g in inner if any(n.op in PLACING for n in g.nodes)]
        return found if self._all_fit(placing, sizes) and host().has_masks else graph

    def _is_worth(self, graph: GraphLike | None, sizes: Mapping[str, int]) -> bool:
        """Whether a group, if it is one, is to run as machine code; to ask does not start LLVM."""
        if graph is None or self.insist:
            return graph is not None
        if self._is_small(graph, sizes):
            return False
        from symgrad.native.kernel import pays

        return pays(graph, sizes, exact=self.exact, shared=self._shares(graph))

    def _is_small(self, graph: GraphLike, sizes: Mapping[str, int]) -> bool:
        return not self.insist and _bytes_made(graph, sizes) * self.times < LEAST_BYTES

    def _in_parts(self, graph: Graph) -> Graph:
        """The graph with softmax and its like taken apart, whose parts are loops of the same."""
        if self.exact or not any(map(softmax_in_parts.fits, graph.nodes)):
            return graph
        changed = rewrite(graph, [softmax_in_parts], Trace(), "native")
        return common_subexpressions(changed, Exact.ROUNDING, Trace())

    def whole(self, graph: Graph, sizes: Mapping[str, int], nexts: int) -> WholeCode | None:
        """The code of a whole program, if that is small and may be machine code."""
        if not (self.insist or len(graph) <= MOST_NODES):
            return None
        if any(_size(n.shape, sizes) > MOST_ELEMENTS for n in graph.inputs):
            return None
        if not self.insist and sum(map(_computes, graph.nodes)) < LEAST_OPS:
            return None
        from symgrad.native.engine import Unavailable
        from symgrad.native.small import SmallProgram
        from symgrad.native.space import NotNative

        tasks, outputs = schedule(self._in_parts(graph), sizes)
        number = {t.node: i for i, t in enumerate(tasks)}
        inputs = [number[x] for x in graph.inputs]
        try:
            return SmallProgram(tasks, inputs, outputs, nexts, exact=self.exact)
        except NotNative:
            return None
        except Unavailable as error:
            self._refuse(error)
            return None

    def product(self, threads: int, kind: str) -> MatmulCode | None:
        """The code of products of a kind on so many threads; None if there is none.

        There is none where every bit is to be NumPy's, nor on one thread where BLAS takes less time
        than machine code.
        """
        if self.exact:
            return None
        from symgrad.native.engine import Unavailable, host
        from symgrad.native.gemm import is_fast
        from symgrad.native.products import product

        try:
            return product(threads, kind) if threads > 1 or is_fast(host()) else None
        except Unavailable as error:
            self.reasons[str(error)] = None
            return None

    def __call__(
        self, graph: Graph, sizes: Mapping[str, int], strides: Sequence[Strides | None]
    ) -> NativeCode | None:
        if self._is_small(graph, sizes):
            return None
        from symgrad.native.engine import Unavailable
        from symgrad.native.space import NotNative

        try:
            return self._compiled(graph, sizes, strides)
        except NotNative as error:
            self.reasons[str(error)] = None
        except Unavailable as error:
            self._refuse(error)
        return None

    def _refuse(self, error: Exception) -> None:
        """Note why there is no machine code here, which is an error for whoever insists."""
        if self.insist:
            hint = ", or install it: pip install 'symgrad[native]'" * ("llvmlite" in str(error))
            raise UnsupportedError(f"{error}; leave backend='native' out{hint}") from None
        self.reasons[str(error)] = None

    def _compiled(
        self, graph: Graph, sizes: Mapping[str, int], strides: Sequence[Strides | None]
    ) -> Kernel:
        from symgrad.native.kernel import compiled
        from symgrad.native.space import NotNative

        graph = self._in_parts(graph)
        make = partial(
            compiled, graph, sizes, exact=self.exact, if_it_pays=not self.insist,
            shared=self._shares(graph),
        )  # fmt: skip
        if not any(strides):
            return make()
        try:
            return make(strides=strides)
        except NotNative:
            return make()


def _computes(node: Node) -> bool:
    return bool(node.inputs) and not node.op.view and not node.op.of_several


def _bytes_made(graph: GraphLike, sizes: Mapping[str, int]) -> int:
    return sum(_bytes_of(n, sizes) for n in filter(_computes, graph.nodes))


def _bytes_of(node: Node, sizes: Mapping[str, int]) -> int:
    return sum(_size(t.shape, sizes) * t.dtype.itemsize for t in types_of(node.type))


def _size(shape: Shape, sizes: Mapping[str, int]) -> int:
    count = product(resolve(shape, sizes))
    assert isinstance(count, int)
    return count

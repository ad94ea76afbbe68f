"""Which groups run as machine code: where it is there, and where it pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from symgrad.ir.dims import Shape, product
from symgrad.ir.errors import UnsupportedError
from symgrad.ir.evaluate import resolve
from symgrad.ir.graph import Graph
from symgrad.ir.types import types_of
from symgrad.lowering.native import NativeCode, Strides, WholeCode
from symgrad.lowering.schedule import schedule
from symgrad.passes.cse import common_subexpressions
from symgrad.passes.fuse import taken_apart, with_groups
from symgrad.rewrite.driver import rewrite
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import Trace
from symgrad.rules.whole_graph import softmax_in_parts

if TYPE_CHECKING:
    from symgrad.native.kernel import Kernel

# What a group makes of smaller arrays takes less time than 20 calls of it take to compile.
LEAST_BYTES = 2**18


class Natives:
    """Gives the machine code of groups, and None for those that are left to NumPy: see `lower`.

    `exact` if no bit may differ from NumPy's. If it is to `insist`, every group that has a native
    form gets it, and a machine without machine code is an `UnsupportedError`. `reasons` tells why
    groups were left to NumPy, in the order in which they were asked about.
    """

    def __init__(self, *, exact: bool, insist: bool) -> None:
        self.exact, self.insist = exact, insist
        self.reasons: dict[str, None] = {}
        self.times = 1

    def repeated(self, times: int) -> Natives:
        """The same for what a call runs so many times, and so pays sooner."""
        found = Natives(exact=self.exact, insist=self.insist)
        found.reasons, found.times = self.reasons, self.times * times
        return found

    def parts(self, graph: Graph, sizes: Mapping[str, int]) -> Graph:
        """A graph in which what can run as machine code is fused; a small one as it is."""
        if self._is_small(graph, sizes):
            return graph
        from symgrad.native.engine import Unavailable, host
        from symgrad.native.groups import is_admitted

        try:
            host()
        except Unavailable as error:
            self.reasons[str(error)] = None
            return graph
        grade = Exact.BITS if self.exact else Exact.ROUNDING
        admits = partial(is_admitted, exact=self.exact)
        # A group that holds what has no native form may have parts that have one.
        graph = taken_apart(graph, lambda inner: not all(map(admits, inner.nodes)))
        return with_groups(self._in_parts(graph), grade, admits)

    def _is_small(self, graph: Graph, sizes: Mapping[str, int]) -> bool:
        return not self.insist and _bytes_made(graph, sizes) * self.times < LEAST_BYTES

    def _in_parts(self, graph: Graph) -> Graph:
        """The graph with softmax and its like taken apart, whose parts are loops of the same."""
        if self.exact or not any(map(softmax_in_parts.fits, graph.nodes)):
            return graph
        changed = rewrite(graph, [softmax_in_parts], Trace(), "native")
        return common_subexpressions(changed, Exact.ROUNDING, Trace())

    def whole(self, graph: Graph, sizes: Mapping[str, int], nexts: int) -> WholeCode | None:
        """The code of a whole program, if that is small and may be machine code."""
        if not self.insist:
            return None
        from symgrad.native.engine import Unavailable
        from symgrad.native.small import MOST_ELEMENTS, SmallProgram
        from symgrad.native.space import NotNative

        if any(_size(n.shape, sizes) > MOST_ELEMENTS for n in graph.inputs):
            return None
        tasks, outputs = schedule(self._in_parts(graph), sizes)
        number = {t.node: i for i, t in enumerate(tasks)}
        inputs = [number[x] for x in graph.inputs]
        try:
            return SmallProgram(tasks, inputs, outputs, nexts, exact=self.exact)
        except NotNative:
            return None
        except Unavailable as error:
            raise _unsupported(error) from None

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
            if self.insist:
                raise _unsupported(error) from None
            self.reasons[str(error)] = None
        return None

    def _compiled(
        self, graph: Graph, sizes: Mapping[str, int], strides: Sequence[Strides | None]
    ) -> Kernel:
        from symgrad.native.kernel import compiled
        from symgrad.native.space import NotNative

        graph = self._in_parts(graph)
        make = partial(compiled, graph, sizes, exact=self.exact, if_it_pays=not self.insist)
        if not any(strides):
            return make()
        try:
            return make(strides=strides)
        except NotNative:
            return make()


def _unsupported(error: Exception) -> UnsupportedError:
    hint = ", or install it: pip install symgrad[native]" * ("llvmlite" in str(error))
    return UnsupportedError(f"{error}; leave backend='native' out{hint}")


def _bytes_made(graph: Graph, sizes: Mapping[str, int]) -> int:
    made = (n for n in graph.nodes if n.inputs and not n.op.view and not n.op.of_several)
    types = (t for n in made for t in types_of(n.type))
    return sum(_size(t.shape, sizes) * t.dtype.itemsize for t in types)


def _size(shape: Shape, sizes: Mapping[str, int]) -> int:
    count = product(resolve(shape, sizes))
    assert isinstance(count, int)
    return count

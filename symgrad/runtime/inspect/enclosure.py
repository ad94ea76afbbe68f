"""A graph run on intervals: ends between which exact results lie, from exact inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from symgrad.ir.evaluate import resolve, sizes_of
from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ir.long_double import WIDE
from symgrad.ir.node import Node
from symgrad.ir.types import TensorType
from symgrad.ir.walk import topological
from symgrad.ops.ranges.facts import CONVOLUTIONS, MOVES, WINDOW_SUMS, WITH_ZEROS
from symgrad.ops.ranges.intervals import Interval, Table, UnboundedError

# Ops whose results grow with their operands, and round nothing.
GROWING = MOVES | WITH_ZEROS | {"all", "any"}


class Enclosure:
    """The interval of every node; `unbounded` has those for which none is known, and why."""

    def __init__(self, outputs: Iterable[Node], feeds: Mapping[Node, Any]) -> None:
        self.intervals: dict[Node, Interval] = {x: Interval.point(v) for x, v in feeds.items()}
        self.unbounded: dict[Node, str] = {}
        self.table = Table()
        sizes = sizes_of(dict(feeds))
        with np.errstate(all="ignore"):
            for node in topological(list(outputs), known=self.intervals.keys()):
                why = next((self.unbounded[x] for x in node.inputs if x in self.unbounded), None)
                if why is not None:
                    self.unbounded[node] = why
                    continue
                operands = [self.intervals[x] for x in node.inputs]
                try:
                    found = self._interval(node, operands, resolve(dict(node.attrs), sizes))
                except UnboundedError as error:
                    self.unbounded[node] = f"{error}  {node.origin}"
                except Exception:  # such as a kernel that takes no long doubles
                    self.unbounded[node] = f"no bound is known for {node.op.name}  {node.origin}"
                else:
                    self.intervals[node] = found

    def _interval(self, node: Node, operands: list[Interval], attrs: dict[str, Any]) -> Interval:
        op = node.op
        if not isinstance(node.type, TensorType):
            raise UnboundedError(f"no bound is known for {op.name}")
        if op is CONSTANT or not operands:
            return Interval.point(op.kernel(**attrs))
        if op.identity:
            return operands[0]
        kinds = {x.low.dtype.kind for x in operands}
        if "c" in kinds or node.tensor.is_complex:
            raise UnboundedError("no bound is known for complex numbers")
        if kinds <= {*"iub"} and all(x.is_point for x in operands) and not op.cast:
            return self._of_points(node, operands, attrs)
        if op.indices and not all(x.is_point for x in operands[op.indices :]):
            raise UnboundedError("rounding decides which element it is")
        if op.view or op.name in GROWING:
            low, high = (op.kernel(*ends, **attrs) for ends in zip(*operands, strict=True))
            return Interval(np.asarray(low), np.asarray(high))
        kernel = partial(op.kernel, **attrs)
        if op.name in CONVOLUTIONS:  # of each operand an element is in at most one product
            a, b = operands
            return self.table.product(a, b, kernel, min(a.low.size, b.low.size))
        if op.name in WINDOW_SUMS:
            return self.table.added(operands[0], kernel, attrs["size"])
        return self.table.lookup(node)(*operands, node)

    @staticmethod
    def _of_points(node: Node, operands: list[Interval], attrs: dict[str, Any]) -> Interval:
        value = np.asarray(node.op.kernel(*(x.low for x in operands), **attrs))
        if value.dtype.kind == "f" and node.op.elementwise:
            wide = (x.low.astype(WIDE) for x in operands)
            value = np.asarray(node.op.kernel(*wide, **attrs))
        return Interval.point(value)

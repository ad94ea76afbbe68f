"""The schedule: the ops in the order they run, fused groups written out, all sizes known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from symgrad.analysis import memory_order
from symgrad.ir.dims import Dim, evaluate
from symgrad.ir.errors import AllocationError, ShapeError, SymgradError
from symgrad.ir.evaluate import resolve
from symgrad.ir.graph import Graph, is_leaf
from symgrad.ir.node import Node, describe
from symgrad.ir.op import inferred
from symgrad.ir.types import TensorType, Type, possible
from symgrad.ir.walk import GraphLike
from symgrad.lowering.native import NativeCode
from symgrad.lowering.steps import Attrs
from symgrad.lowering.tiling import Tiling

Loop: TypeAlias = "Tiling | NativeCode | Graph | None"
Looped: TypeAlias = "Callable[[GraphLike, list[int], list[Task]], Loop]"


class Task(NamedTuple):
    """One op to be run: its operands by the number of the task that makes them.

    `loop` is that of a node whose inner graph runs in tiles, or as machine code.
    """

    node: Node
    inputs: tuple[int, ...]
    attrs: Attrs
    type: Type
    group: int | None
    loop: Tiling | NativeCode | None = None


def schedule(
    graph: Graph,
    sizes: Mapping[str, Any],
    looped: Looped = lambda graph, inputs, tasks: None,
) -> tuple[list[Task], list[int]]:
    """The graph as tasks, with sizes for named dimensions, and which of them make its outputs.

    `looped` gives the loop over an inner graph, of which the operands are tasks among those there
    are so far; None to write it out, or another graph of the same to be written out.

    Raises `ShapeError` if a size makes an op impossible, such as `x[5:]` of 3 elements.
    """
    writer = _Writer(sizes, looped)
    outputs = writer.write(graph, [], None)
    return writer.tasks, outputs


class _Writer:
    def __init__(self, sizes: Mapping[str, Any], looped: Looped) -> None:
        self.sizes = sizes
        # Whether there is a dimension that stays a name.
        self.is_open = any(isinstance(size, Dim) for size in sizes.values())
        self.looped = looped
        self.tasks: list[Task] = []
        self.groups = 0

    def write(self, graph: GraphLike, operands: list[int], group: int | None) -> list[int]:
        """Append a graph's nodes, its inputs being the tasks `operands` if it is an inner one."""
        number = dict(zip(graph.inputs, operands, strict=False)) if group is not None else {}
        several: dict[Node, list[int]] = {}
        self._check_sizes(graph)
        for node in memory_order(graph) if group is None else graph.nodes:
            if node in number:
                continue
            if node.inputs and node.inputs[0] in several:
                number[node] = several[node.inputs[0]][node.attr("index")]
                continue
            inputs = list(map(number.__getitem__, node.inputs))
            inner = node.inner_graph if node.op.inner_graph else None
            loop = None if inner is None else self.looped(inner, inputs, self.tasks)
            if isinstance(loop, Graph):
                inner = loop
            elif loop is not None:
                task = Task(node, tuple(inputs), (), _concrete(node, self.sizes), group, loop)
                number[node] = self._add(task)
                continue
            if inner is not None:
                self.groups += 1
                results = self.write(inner, inputs, self.groups - 1)
                if isinstance(node.type, tuple):
                    several[node] = results
                else:
                    number[node] = results[0]
            else:
                number[node] = self._op(node, tuple(inputs), group)
        return [number[y] for y in graph.outputs]

    def _check_sizes(self, graph: GraphLike) -> None:
        """Refuse sizes that are too small, in the words of the ops that can say which and why."""
        for node in graph.nodes if self.sizes and not self.is_open else ():
            if is_leaf(node):
                _concrete(node, self.sizes)
            if node.op.too_small is None:
                continue
            types = [x.type for x in node.inputs]
            error = node.op.too_small(*types, sizes=self.sizes, **dict(node.attrs))
            if error is not None:
                built = node.origin.description
                raise type(error)(f"{describe(node)} with {_listed(self.sizes)}: {error}{built}")

    def _op(self, node: Node, inputs: tuple[int, ...], group: int | None) -> int:
        if not self.sizes:
            return self._add(Task(node, inputs, node.attrs, node.type, group))
        attrs = tuple([(k, resolve(v, self.sizes)) for k, v in node.attrs])
        type_ = _concrete(node, self.sizes)
        if not is_leaf(node) and not self.is_open:
            types = tuple([self.tasks[i].type for i in inputs])
            found = self._inferred(node, types, attrs)
            if found != type_:
                raise ShapeError(
                    f"{describe(node)} is {found!r} with {_listed(self.sizes)}, and {type_!r} was "
                    "inferred for larger sizes; feed more elements"
                )
        return self._add(Task(node, inputs, attrs, type_, group))

    def _add(self, task: Task) -> int:
        self.tasks.append(task)
        return len(self.tasks) - 1

    def _inferred(self, node: Node, types: tuple[Type, ...], attrs: Attrs) -> Type:
        """The type of a node's result with these sizes."""
        try:
            return inferred(node.op, types, attrs)
        except SymgradError as error:
            listed, built = ", ".join(map(repr, types)), node.origin.description
            raise type(error)(
                f"{node.op.name}({listed}) with {_listed(self.sizes)}: {error}{built}"
            ) from None


def _concrete(node: Node, sizes: Mapping[str, int]) -> Type:
    if isinstance(node.type, tuple):
        return tuple(_with_sizes(t, node, sizes) for t in node.type)
    return _with_sizes(node.type, node, sizes)


def _with_sizes(t: TensorType, node: Node, sizes: Mapping[str, int]) -> TensorType:
    if not any(isinstance(s, Dim) for s in t.shape):
        return t
    shape: tuple[Any, ...] = tuple(evaluate(s, sizes) for s in t.shape)
    if any(isinstance(s, int) and s < 0 for s in shape):
        raise ShapeError(
            f"{describe(node)} would have the shape {shape} with {_listed(sizes)}; "
            "feed more elements"
        )
    try:
        possible(found := t.with_shape(shape))
    except AllocationError as error:
        raise AllocationError(
            f"{describe(node)} with {_listed(sizes)}: {error}{node.origin.description}"
        ) from None
    return found


def _listed(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{k} = {v}" for k, v in sizes.items())

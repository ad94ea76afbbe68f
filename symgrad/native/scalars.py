"""Programs of single numbers: all their ops as one function, called once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from symgrad.ir.node import Node
from symgrad.ir.walk import GraphLike
from symgrad.native.builtin import builtin, write_wrapper
from symgrad.native.engine import Engine, host
from symgrad.native.groups import MOST_OPS, admit
from symgrad.native.loops import KERNEL, constant, written
from symgrad.native.operations import kind_of
from symgrad.native.space import NotNative
from symgrad.native.vectors import Code, Module, Value


class ScalarKernel:
    """The code of a graph in which every value is one number.

    `call(*operands, results)` writes all results into one array, of `dtype`, in the order of the
    graph's outputs. Raises `NotNative` and `Unavailable`, as `Kernel` does.
    """

    def __init__(
        self, graph: GraphLike, *, exact: bool = False, engine: Engine | None = None
    ) -> None:
        self.graph = graph
        self._engine = host() if engine is None else engine
        if len(graph.nodes) > MOST_OPS:
            raise NotNative(f"a program of {len(graph.nodes)} ops takes too long to compile")
        for node in graph.nodes:
            admit(node, exact)
            if node.ndim:
                raise NotNative(f"{node.op.name} gives an array")
        if len({y.dtype for y in graph.outputs}) != 1:
            raise NotNative("the results are not of one dtype")
        self.dtype: np.dtype[Any] = graph.outputs[0].tensor.dtype
        module = Module()
        kinds = [kind_of(x.tensor.dtype) for x in graph.inputs]
        _write(graph, module)
        write_wrapper(module, KERNEL, [*kinds, None], 0, long=False)
        self.ir = str(module)
        self.call: Callable[..., None] = builtin(
            self._engine, module, [*[None] * len(kinds), self.dtype], 1
        )

    @cached_property
    def assembly(self) -> str:
        """The text of the machine code, for people."""
        return self._engine.assembly(self.ir)

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """The results, as NumPy's scalars."""
        results = np.empty(len(self.graph.outputs), self.dtype)
        self.call(*operands, results)
        return list(results)


def _write(graph: GraphLike, module: Module) -> None:
    code = Code(module, 1)
    code.label("entry")
    pointers = []
    for i in range(len(graph.inputs) + 1):
        at = code.scalar(f"getelementptr ptr, ptr %table, i64 {i}")
        pointers.append(code.scalar(f"load ptr, ptr {at}"))
    values: dict[Node, Value] = {}
    for x, pointer in zip(graph.inputs, pointers, strict=False):
        values[x] = code.load(kind_of(x.tensor.dtype) or "", pointer)
    for node in graph.nodes:
        if node in values:
            continue
        if not node.inputs:
            values[node] = constant(code, node)
        else:
            values[node] = written(node, [values[x] for x in node.inputs])
    for i, y in enumerate(graph.outputs):
        offset = i * y.tensor.dtype.itemsize
        place = code.scalar(f"getelementptr i8, ptr {pointers[-1]}, i64 {offset}")
        code.store(values[y], place)
    code.do("ret void")
    head = f"define internal void @{KERNEL}(ptr %table) #0 {{"
    module.definitions[f"@{KERNEL}"] = "\n".join((head, *code.lines.text, "}"))

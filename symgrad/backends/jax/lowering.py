"""A graph for known sizes as functions over `jax.numpy`, and what runs between them in NumPy.

An op is lowered by the table's method of its name, else, if its kernel is a ufunc, by the function
of that name in `jax.numpy`. The rest are left to NumPy: their kernels run on the host, between the
functions of what comes before and after them, so that a graph without such ops is one function.
A loop with such an op in its body is one itself. (A callback from within would run in a thread of
XLA's own, in which numbers of 64 bits lose half of them.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from operator import itemgetter
from threading import RLock
from typing import Any

import numpy as np

from symgrad.backends.jax.device import as_numpy
from symgrad.backends.jax.loops import Loops
from symgrad.ir.dims import Dim
from symgrad.ir.errors import KernelError, SymgradError, UnsupportedError
from symgrad.ir.evaluate import computed, kernel_error, resolve
from symgrad.ir.graph import Graph
from symgrad.ir.leaf_ops import CONSTANT, INPUTS
from symgrad.ir.node import Node, describe
from symgrad.ir.op import Op
from symgrad.ir.types import Type, types_of
from symgrad.lowering.schedule import Task, schedule
from symgrad.ops.order import argmax_p, argmin_p
from symgrad.ops.random.draws import draw

# A constant of more elements is given to the function; others are written into it.
LARGEST_WRITTEN = 1024


def is_left_to_numpy(node: Node) -> bool:
    """Whether the kernel of a node runs in NumPy, on the host."""
    if node.bodies and hasattr(Loops, node.op.name):
        return any(is_left_to_numpy(n) for body in node.bodies for n in body.nodes)
    if node.op is draw.op:
        return bool(node.attr("law") != "random")
    if node.op in (argmax_p.op, argmin_p.op) and node.inputs[0].tensor.is_complex:
        return True
    return not is_known(node.op)


def is_known(op: Op) -> bool:
    """Whether an op has a form in JAX: it is nothing to compute, in the table, or a ufunc."""
    free = op.identity or op.of_several or op.inner_graph or op in INPUTS or op is CONSTANT
    return bool(free or hasattr(Loops, op.name) or isinstance(op.kernel, np.ufunc))


@dataclass
class Stage:
    """A function, and what runs in NumPy after it.

    Of the tasks by number: it `takes` the values of some, computes `tasks` and gives those of
    `gives`, and after them a flag for each of `checked`, whether it failed. Those of `host` follow.
    If it is `wide`, it takes numbers of 64 bits.
    """

    tasks: list[int] = field(default_factory=list)
    host: list[int] = field(default_factory=list)
    takes: tuple[int, ...] = ()
    gives: tuple[int, ...] = ()
    checked: tuple[int, ...] = ()
    wide: bool = False
    function: Any = None


def picker(places: Sequence[int]) -> Callable[[Any], Sequence[Any]]:
    """A function that picks what lies at these places, in one call in C."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: [values[i] for i in places]


class Lowering(Loops):
    """The tasks of a graph in stages, each with its function.

    `written` are the constants that are written into functions, `given` the leaves whose values are
    given to them: inputs and larger constants. With `symbols`, sizes of JAX's that are not known
    by the names of dimensions, functions are for any of them; with `in_turn`, for devices that
    write elements one after the other.
    """

    def __init__(
        self,
        graph: Graph,
        sizes: Mapping[str, int],
        jax: Any,
        in_turn: bool = True,
        symbols: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(jax)
        self.in_turn, self.symbols = in_turn, symbols
        self.tasks, self.outputs = self._scheduled(graph, sizes)
        leaves = {i: t.node for i, t in enumerate(self.tasks) if t.node.op in (*INPUTS, CONSTANT)}
        self.written = {i: _array(n) for i, n in leaves.items() if _is_written(n)}
        self.given = {i: n for i, n in leaves.items() if i not in self.written}
        for task in self.tasks:
            _require_dtypes(task.node)
        self.stages = self._stages()
        self.noted: list[Any] = []
        self.tracing = RLock()

    def _stages(self) -> list[Stage]:
        """Each task as early as it can be: one that reads what NumPy made is in the next stage."""
        host: list[bool] = []
        number: list[int] = []
        for task in self.tasks:
            is_part = bool(task.node.op.of_several)
            on_host = host[task.inputs[0]] if is_part else is_left_to_numpy(task.node)
            after = (number[i] + (host[i] and not on_host) for i in task.inputs)
            number.append(max(after, default=0))
            host.append(on_host)
        stages = [Stage() for _ in range(max(number, default=0) + 1)]
        for i, on_host in enumerate(host):
            if i not in self.given and i not in self.written:
                stage = stages[number[i]]
                (stage.host if on_host else stage.tasks).append(i)
        wanted = set(self.outputs)
        for stage in reversed(stages):
            own = set(stage.tasks)
            wanted.update(x for i in stage.host for x in self.tasks[i].inputs)
            read = {x for i in stage.tasks for x in self.tasks[i].inputs}
            stage.gives = tuple(sorted(wanted & own))
            stage.takes = tuple(sorted(read - own - self.written.keys()))
            taken = (t.dtype for i in stage.takes for t in types_of(self.tasks[i].type))
            stage.wide = any(np.empty(0, t).real.itemsize == 8 for t in taken)
            wanted.update(stage.takes)
        return stages

    def function(self, stage: Stage, gives: Sequence[int]) -> Callable[..., Any]:
        """The function of a stage, to be compiled: from what it takes to what is to be given.

        It gives flags, too, that tell which of the tasks that can fail have failed: one array, if
        there are such.
        """

        def run(*arrays: Any) -> Any:
            told = self.jax.config.jax_default_matmul_precision is not None
            precise = nullcontext() if told else self.jax.default_matmul_precision("float32")
            # It runs when JAX traces it, for the first call: of two threads one after the other.
            with self.tracing, precise:
                values = self.written | dict(zip(stage.takes, arrays, strict=True))
                flags = self._run(self.tasks, stage.tasks, values)
            stage.checked = tuple(flags)
            # What is only passed on would be the memory of what was given.
            passed = set(map(id, arrays))
            made = [self.jnp.copy(y) if id(y := values[i]) in passed else y for i in gives]
            return made, (self.jnp.stack(list(flags.values())),) if flags else ()

        return run

    def inside(
        self, graph: Graph, arrays: Sequence[Any], sizes: Any
    ) -> tuple[tuple[Any, ...], Any]:
        """The results of a graph for arrays, and whether something failed."""
        tasks, outputs = self._scheduled(graph, dict(sizes))
        given = dict(zip(graph.inputs, arrays, strict=True))
        values = {i: given[t.node] for i, t in enumerate(tasks) if t.node in given}
        values |= {i: _array(t.node) for i, t in enumerate(tasks) if t.node.op is CONSTANT}
        flags = self._run(tasks, [i for i in range(len(tasks)) if i not in values], values)
        bad = self.jnp.any(self.jnp.stack(list(flags.values()))) if flags else False
        found = (self._typed(values[i], tasks[i].type) for i in outputs)
        return tuple(found), self.jnp.asarray(bad)

    def _scheduled(self, graph: Graph, sizes: Mapping[str, Any]) -> tuple[list[Task], list[int]]:
        if self.symbols is not None:
            known = {name: s for name, s in sizes.items() if isinstance(s, int)}
            sizes = {name: Dim.of(name) for name in self.symbols} | known
        return schedule(graph, sizes)

    def _run(
        self, tasks: Sequence[Task], numbers: Sequence[int], values: dict[int, Any]
    ) -> dict[int, Any]:
        """Compute tasks into `values`; a flag for each that can fail."""
        flags = {}
        for i in numbers:
            task = tasks[i]
            outer, self.noted = self.noted, []
            try:
                values[i] = self._value(task, [values[x] for x in task.inputs])
                if self.noted:
                    flags[i] = self.jnp.any(self.jnp.stack(self.noted))
            except (SymgradError, self.jax.errors.JaxRuntimeError):  # which the device tells of
                raise
            except Exception as error:
                raise kernel_error(error, task.node, task.node.op.name) from error
            finally:
                self.noted = outer
        return flags

    def _value(self, task: Task, operands: Sequence[Any]) -> Any:
        """The result of a task, of its dtype; several are a tuple."""
        op, attrs = task.node.op, dict(task.attrs)
        if self.symbols is not None:
            attrs = resolve(attrs, self.symbols)
        if op.of_several:
            return operands[0][attrs["index"]]
        if op.identity:
            several = isinstance(task.type, tuple)
            return self._typed(
                operands[: len(types_of(task.type))] if several else operands[0], task.type
            )
        form = getattr(self, op.name, None) or getattr(self.jnp, op.kernel.__name__)
        return self._typed(form(*map(self.jnp.asarray, operands), **attrs), task.type)

    def _typed(self, made: Any, type_: Type) -> Any:
        if isinstance(type_, tuple):
            return tuple(self._typed(y, t) for y, t in zip(made, type_, strict=True))
        return self.lax.convert_element_type(made, type_.dtype)

    def failing(self, bad: Any) -> None:
        """Note that the op fails if any element of this is true."""
        self.noted.append(self.jnp.any(bad))

    # ---- on the host ------------------------------------------------------------------------

    def on_host(self, number: int, values: Mapping[int, Any]) -> Any:
        """The result of a task that is left to NumPy; several are a tuple."""
        task = self.tasks[number]
        if task.node.op.of_several:
            return values[task.inputs[0]][task.node.attr("index")]
        with np.errstate(all="ignore"):
            operands = [as_numpy(values[x]) for x in task.inputs]
            return computed(task.node, operands, dict(task.attrs))

    def failure(self, stage: Stage, flags: Any, arrays: Sequence[Any]) -> KernelError:
        """The error of the first task that failed: its kernel raises it for the same operands."""
        number = stage.checked[int(np.argmax(flags))]
        task = self.tasks[number]
        own = [i for i in task.inputs if i in set(stage.tasks)]
        made, _ = self.jax.jit(self.function(stage, own))(*arrays)
        values = self.written | dict(zip(stage.takes, arrays, strict=True))
        try:
            self.on_host(number, values | dict(zip(own, made, strict=True)))
        except KernelError as error:
            return error
        fault = ArithmeticError("XLA refuses these operands, though NumPy does not")
        return kernel_error(fault, task.node, task.node.op.name)


def _array(node: Node) -> Any:
    return node.attr("value").array


def _is_written(node: Node) -> bool:
    return node.op is CONSTANT and _array(node).size <= LARGEST_WRITTEN


def _require_dtypes(node: Node) -> None:
    """Refuse numbers of more bits than XLA has."""
    for t in types_of(node.type):
        if t.dtype.itemsize > (16 if t.dtype.kind == "c" else 8):
            raise UnsupportedError(
                f"{describe(node)}: JAX has no {t.dtype.name}; convert it, "
                f"astype(x, 'float64'){node.origin.place()}"
            )

"""Small programs: all ops on numbers and arrays of a few dozen elements as one function.

An array is one vector, a lane an element. What only moves elements about (a view, a slice put in
place, a concatenation) is one shuffle: its order is what the op's own kernel makes of the numbers
of the elements. A reduction joins as many shuffles as it has terms, halves with each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from symgrad.ir.cached import cached_property
from symgrad.ir.evaluate import computed
from symgrad.ir.node import Node
from symgrad.ir.types import TensorType
from symgrad.native import MOST_ELEMENTS
from symgrad.native.direct import Result, direct
from symgrad.native.engine import Engine, host
from symgrad.native.groups import MOST_OPS, admit
from symgrad.native.loops import KERNEL
from symgrad.native.operations import JOINS, kind_of, operation
from symgrad.native.space import REDUCTIONS, ROW_REDUCTIONS, NotNative
from symgrad.native.vectors import Code, Module, Value
from symgrad.ops import kernels
from symgrad.ops.index.kernels import put, roll
from symgrad.ops.linalg.products import matmul_p, vdot_p, vecdot_p

LANES = 16  # as many elements count as one op
# What moves the elements of its operands about, or puts zeros between them.
MOVES = (kernels.place, kernels.concat, kernels.diagonal, kernels.on_diagonal, roll)
Order = np.ndarray[Any, np.dtype[np.int64]]


class Task(Protocol):
    """One op of a program, with all sizes known, as `symgrad.lowering.schedule` has it.

    `inputs` are the numbers of the tasks that make its operands.
    """

    @property
    def node(self) -> Node: ...
    @property
    def inputs(self) -> tuple[int, ...]: ...
    @property
    def attrs(self) -> tuple[tuple[str, Any], ...]: ...
    @property
    def type(self) -> Any: ...


class SmallProgram:
    """The code of a whole program, given as tasks, of which some are inputs and some are results.

    `call(*inputs, *arrays)` gives the results in a tuple: numbers as NumPy's scalars, arrays made
    anew; the last `given` of the results are not among them, but written into these arrays, but for
    those that are numbers. `direct` is the same, and gives None for arguments that are not what the
    program takes, where `call` makes them so.

    Raises `NotNative` for what is too large or has no native form, for an `exact` one also for what
    rounds otherwise than NumPy, and `Unavailable` where there is no machine code.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        inputs: Sequence[int],
        results: Sequence[int],
        given: int = 0,
        *,
        exact: bool = False,
        engine: Engine | None = None,
    ) -> None:
        self.tasks = tuple(tasks)
        self._admit(exact)
        self._engine = host() if engine is None else engine
        module = Module()
        _Writer(self.tasks, module).write(inputs, results)
        types = [tasks[i].type for i in inputs]
        made = len(results) - given
        wanted = [Result(tasks[i].type, k < made) for k, i in enumerate(results)]
        self.call, self.direct = direct(self._engine, module, KERNEL, types, wanted)
        self.ir = str(module)

    def _admit(self, exact: bool) -> None:
        count = 0
        for task in self.tasks:
            t = task.type
            if not isinstance(t, TensorType):
                raise NotNative(f"{task.node.op.name} has several results")
            size = _size(t)
            if not 0 < size <= MOST_ELEMENTS:
                raise NotNative(f"{task.node.op.name} gives {size} elements: no small program")
            terms = _terms(task, self.tasks)
            count += -(-size // LANES) * terms
            if kind_of(t.dtype) in (None, "f2"):
                raise NotNative(f"there are no vectors of {t.dtype}")
            if task.node.op.body or (not task.inputs and task.node.op.opaque):
                raise NotNative(f"{task.node.op.name} has no native form")
            if task.inputs and not _moves(task):
                if terms > 1 and exact:
                    raise NotNative(f"{task.node.op.name} rounds in another order")
                if not _joins(task.node) and task.node.op.kernel is not kernels.running_sum:
                    admit(task.node, exact)
        if count > MOST_OPS:
            raise NotNative(f"a program of {count} ops takes too long to compile")

    @cached_property
    def assembly(self) -> str:
        """The text of the machine code, for people."""
        return self._engine.assembly(self.ir)


def _size(t: TensorType) -> int:
    shape: Any = t.shape
    return math.prod(shape)


def _joins(node: Node) -> bool:
    """Whether an op sums up, or joins in another way, elements of its operands."""
    return node.op in ROW_REDUCTIONS or node.op in REDUCTIONS or node.op is matmul_p.op


def _terms(task: Task, tasks: Sequence[Task]) -> int:
    """How many terms an element of a task's result has."""
    if task.node.op.kernel is kernels.running_sum:
        return int(task.type.shape[dict(task.attrs)["axis"]])
    if not _joins(task.node):
        return 1
    shape: tuple[int, ...] = tasks[task.inputs[0]].type.shape
    if task.node.op is matmul_p.op:
        return shape[-1]
    return max(1, math.prod(shape) // _size(task.type))


def _moves(task: Task) -> bool:
    op = task.node.op
    return op.view or op.identity or op.kernel in MOVES or op.kernel is put


class _Writer:
    """Writes the kernel: `kernel(table of pointers)`, to the inputs, then to the results."""

    def __init__(self, tasks: Sequence[Task], module: Module) -> None:
        self.tasks = tasks
        self.code = Code(module, 1)
        self.values: list[Value] = []

    def write(self, inputs: Sequence[int], results: Sequence[int]) -> None:
        code = self.code
        code.label("entry")
        pointers = []
        for i in range(len(inputs) + len(results)):
            at = code.scalar(f"getelementptr ptr, ptr %table, i64 {i}")
            pointers.append(code.scalar(f"load ptr, ptr {at}"))
        given = dict(zip(inputs, pointers, strict=False))
        order = (i for i, t in enumerate(self.tasks) if t.inputs and not t.node.op.view)
        ops = {i: k for k, i in enumerate(order)}
        for i, task in enumerate(self.tasks):
            # Which op the next lines compute, by its number and not by a name.
            code.do(f"; op {ops.get(i, '-')}")
            lanes = code.of_lanes(_size(task.type))
            kind = kind_of(task.type.dtype) or ""
            if i in given:
                self.values.append(lanes.load(kind, given[i]))
            elif not task.inputs:
                numbers = np.asarray(computed(task.node, [], dict(task.attrs)))
                self.values.append(lanes.constants(kind, numbers.ravel().tolist()))
            else:
                self.values.append(_hidden(self._written(task, lanes)))
        code.do("; op -")
        for i, pointer in zip(results, pointers[len(inputs) :], strict=True):
            value = self.values[i]
            value.code.store(value, pointer)
        code.do("ret void")
        head = f"define internal void @{KERNEL}(ptr %table) #0 {{"
        code.module.definitions[f"@{KERNEL}"] = "\n".join((head, *code.lines.text, "}"))

    def _written(self, task: Task, code: Code) -> Value:
        op, attrs = task.node.op, dict(task.attrs)
        values = [self.values[i] for i in task.inputs]
        types = [self.tasks[i].type for i in task.inputs]
        if op.identity:
            return values[0]
        if op.kernel is put:
            return _put(values, _numbered(types), **attrs)
        if _moves(task):
            return code.gathered(values, op.kernel(*_numbered(types), **attrs).ravel().tolist())
        if op is matmul_p.op:
            a, b = _each_numbered(types)
            terms = (
                code.gathered(values[:1], _spread(a[..., :, k, None], task.type.shape))
                * code.gathered(values[1:], _spread(b[..., k, None, :], task.type.shape))
                for k in range(a.shape[-1])
            )
            return _joined(terms, JOINS["add"])
        if op.kernel is kernels.running_sum:
            return _running_sum(code, values[0], _numbered(types)[0], **attrs)
        if _joins(task.node):
            return self._reduced(task, code, values, types)
        written = operation(op)
        assert written is not None
        spread = [
            code.gathered([v], _spread(n, task.type.shape))
            for v, n in zip(values, _each_numbered(types), strict=True)
        ]
        return written.write(*spread, **attrs)

    def _reduced(
        self, task: Task, code: Code, values: Sequence[Value], types: Sequence[TensorType]
    ) -> Value:
        op, attrs = task.node.op, dict(task.attrs)
        kind = kind_of(task.type.dtype) or ""
        shapes: list[Any] = [t.shape for t in types]
        shape = np.broadcast_shapes(*shapes)
        axes = attrs.get("axis", range(len(shape)))
        if op in ROW_REDUCTIONS:
            axes = (len(shape) - 1,)
        whole = code.of_lanes(math.prod(shape))
        factors = [
            whole.gathered([v], _spread(n, shape))
            for v, n in zip(values, _each_numbered(types), strict=True)
        ]
        x = factors[0].converted(kind)
        if op in (vdot_p.op, vecdot_p.op):
            x = x * factors[1].converted(kind)
        numbers = np.arange(1, whole.lanes + 1).reshape(shape)
        terms = np.moveaxis(numbers, tuple(axes), range(len(axes))).reshape(-1, code.lanes)
        join = JOINS[op.combiner or "add"]
        return _joined((code.gathered([x], row.tolist()) for row in terms), join)


def _hidden(x: Value) -> Value:
    """The same lanes, of which LLVM is told nothing if they are bytes.

    Of bytes that are a mask it takes the shuffled ones for those in place where the mask selects
    from them: the X86 backend of LLVM 20 does so for more than 16 lanes.
    """
    if x.kind not in ("i1", "u1") or x.code.lanes == 1:
        return x
    code, t = x.code, x.code.type(x.kind)
    place = code.new()
    code.lines.text.insert(1, f"  {place} = alloca {t}, align 64")  # in the entry block
    code.do(f"store volatile {t} {x.text}, ptr {place}, align 1")
    return code.line(x.kind, f"load volatile {t}, ptr {place}, align 1")


def _numbered(types: Sequence[TensorType]) -> list[Order]:
    """The elements of some arrays by numbers from 1 on; 0 is that of a zero."""
    first, found = 1, []
    for t in types:
        shape: Any = t.shape
        found.append(np.arange(first, first + _size(t)).reshape(shape))
        first += _size(t)
    return found


def _each_numbered(types: Sequence[TensorType]) -> list[Order]:
    """The elements of each array by numbers from 1 on."""
    return [_numbered([t])[0] for t in types]


def _spread(numbers: Order, shape: tuple[int, ...]) -> list[int]:
    """The order in which elements that broadcast stand in an array of a shape."""
    found: list[int] = np.broadcast_to(numbers, shape).ravel().tolist()
    return found


def _joined(terms: Iterator[Value], join: Callable[[Value, Value], Value]) -> Value:
    """The terms joined, halves with each other."""
    left = list(terms)
    while len(left) > 1:
        half = -(-len(left) // 2)
        left = [
            join(left[i], left[i + half]) if i + half < len(left) else left[i] for i in range(half)
        ]
    return left[0]


def _running_sum(code: Code, x: Value, numbers: Order, axis: int, reverse: bool) -> Value:
    """The sums of all elements up to each, along an axis."""
    rows = np.moveaxis(numbers, axis, 0)
    step = -1 if reverse else 1
    part = code.of_lanes(rows[0].size)
    sums = [part.gathered([x], row.ravel().tolist()) for row in rows[::step]]
    for i in range(1, len(sums)):
        sums[i] = sums[i - 1] + sums[i]
    order = np.moveaxis(np.arange(1, rows.size + 1).reshape(rows.shape)[::step], 0, axis)
    return code.gathered(sums, order.ravel().tolist())


def _put(values: Sequence[Value], numbers: Sequence[Order], index: Any, mode: str) -> Value:
    """A value with another one in place of a slice of it, or added to it."""
    code, (x, u) = values[0].code, numbers
    kernel: Callable[..., Order] = kernels.place
    places = kernel(u, x.shape, index).ravel()
    if mode == "set":
        return code.gathered(values, np.where(places, places, x.ravel()).tolist())
    more = code.gathered(values, places.tolist())
    return code.select(code.constants("b1", (places > 0).tolist()), values[0] + more, values[0])

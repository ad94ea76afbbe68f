"""The code generator: writes a plan as a Python function of NumPy calls, one line a step."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Sequence
from itertools import count
from textwrap import wrap
from typing import Any

import numpy as np

from symgrad.ir.errors import GraphError
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.op import Op
from symgrad.ir.origin import printable
from symgrad.ir.schema import schema_of
from symgrad.ir.values import ArrayData
from symgrad.lowering.names import RESERVED
from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import NATIVE_MATMUL, Call, Copy, Product, Ref, Step, View
from symgrad.lowering.tiling import TileLoop, combiner
from symgrad.ops.copied import is_own, own_functions
from symgrad.ops.index.slices import slice_p
from symgrad.ops.shape import broadcast_to, permute_dims, reshape_p
from symgrad.runtime.literals import (
    FLOATS,
    SIGNS,
    constant_text,
    index_text,
    inside,
    is_numpy,
    is_short,
    literal_text,
    name_text,
    plain_text,
    shape_text,
    tuple_text,
    without_np,
)
from symgrad.runtime.machine_code import MachineCode
from symgrad.runtime.source import Module, Source, arena_lines
from symgrad.runtime.workspace import MOST_KEPT, Pages

COMMENT_COLUMN, LONGEST_LINE = 48, 100
# NumPy 2.4 deprecates a positional `out` for these two.
NAMED_OUT = (np.maximum, np.minimum)
# These read a Python integer as a C long, whatever is beside it.
NOT_WEAK = (np.logical_and, np.logical_or, np.logical_xor)


def generate(plan: Plan, threads: bool = False) -> Source:
    """A plan as source. Its function takes the inputs, the variables, the spare arrays of those
    updated, then the workspace, and returns the outputs and the next values of 0-d variables.

    With `threads` it shares out tiles among as many as the plan says.
    """
    taken = {*RESERVED, *(s.name for s in plan.slots)}
    return _Generator(plan, Module(taken, threads)).source()


class _Generator(MachineCode):
    """Writes the function of a plan; `suffix` tells its constants from those of other functions."""

    def __init__(self, plan: Plan, module: Module, suffix: str = "") -> None:
        self.plan, self.module, self.suffix = plan, module, suffix

    def source(self) -> Source:
        body, steps = self.function("step")
        module, names = self.module, ", ".join(sorted(self.module.numpy_names))
        head = ["import numpy as np"] + ([f"from numpy import {names}"] if names else [])
        head += [f"import {name}" for name in sorted(module.imports)]
        products = [name for name in module.scope if name.startswith(NATIVE_MATMUL)]
        if products:
            head += [
                "",
                f"# {', '.join(products)}: matmul, by machine code or on its threads",
            ]
        for name, value in module.constants.items():
            comment = f"# {name}: {value.dtype.name}{list(value.shape)}, a constant"
            head.append(f"{name} = {constant_text(value)}" if is_short(value) else comment)
        for text in module.copied():
            head += ["", "", *text.rstrip().split("\n")]
        found = {}
        for lines, own in (*module.functions.values(), (body, steps)):
            head += ["", ""]
            found.update({i + len(head) + 1: s for i, s in own.items()})
            head += lines
        return Source("\n".join(head) + "\n", found, module, body)

    # ---- the function -----------------------------------------------------------------------

    def function(self, name: str) -> tuple[list[str], dict[int, Step]]:
        """The lines of the function, and the steps of those that have one."""
        plan = self.plan
        for slot in plan.slots:
            name_text(slot.name), inside(slot.shape)
        names = [plan.slots[i].name for i in (*plan.inputs, *plan.variables)]
        names += [plan.slots[i].name for i in plan.nexts if i >= 0]
        arena = plan.arrays_in_arena()
        lines = _head(name, [*names, *(s.name for s in arena)])
        lines += [f"    # {line}" for line in arena_lines(arena)]
        steps: dict[int, Step] = {}
        paged = plan.paged
        kept = sum(plan.slots[i].nbytes for i in paged)
        pages = Pages(len(paged) if kept <= MOST_KEPT else 0)
        for i in plan.allocated:
            slot, made = plan.slots[i], "paged" if i in paged else "empty"
            if i in paged:
                self.module.scope["paged"] = pages.paged
            else:
                self.module.numpy_names.add("empty")
            lines.append(f"    {slot.name} = {made}({shape_text(slot.shape)}, {slot.dtype.name!r})")
        for inner, ref in plan.inside.items():
            host = plan.slots[ref.slot].name
            text = f"    {inner} = {self._viewed(host, ref.views)}"
            lines.append(f"{text:<{COMMENT_COLUMN - 2}}  # until {host} is written")
        for step in plan.steps:
            note = printable(self.module.note(step))
            for text in self.visit(step):
                code = f"    {text}"
                if text.startswith("#"):
                    lines.append(code)
                    continue
                steps[len(lines)] = step
                lines.append(f"{code:<{COMMENT_COLUMN - 2}}  # {note}" if note else code)
                note = ""
        results = list(map(self._result, plan.returned))
        lines.append(f"    return {', '.join(results)}" if results else "    return None")
        return lines, steps

    def _result(self, ref: Ref) -> str:
        text = self.expression(ref)
        return f"{text}[()]" if ref.views else text

    # ---- a method for each kind of step, which gives its lines ------------------------------

    def call(self, step: Call) -> list[str]:
        return self._statement(step).split("\n")

    def _statement(self, step: Call) -> str:
        targets = [self.expression(r) for r in step.results]
        if step.takes_out(self.plan):
            return self._kernel(step, targets)
        text = self._kernel(step, None)
        scalars = list(map(self.plan.is_scalar, step.results))
        if scalars == [False]:
            return self.copied(targets[0], text)
        written = (t if s else f"{t}[...]" for t, s in zip(targets, scalars, strict=True))
        return f"{', '.join(written)} = {text}"

    def copy(self, step: Copy) -> list[str]:
        return [self.copied(self.expression(step.results[0]), self.expression(step.operands[0]))]

    def copied(self, target: str, value: str) -> str:
        self.module.numpy_names.add("copyto")
        return f"copyto({target}, {value})"

    def tile_loop(self, step: TileLoop) -> Iterator[str]:
        tiling = step.tiling
        scratch = [self.plan.slots[r.slot].name for r in step.scratch]
        threads, remainder, parts = tiling.shared_out(scratch)
        start, size = self.module.new("start"), tiling.size
        self.module.taken.remove(start)
        whole = tiling.count - tiling.count % size
        rows, number = f"{start}:{start} + {size}", f"{start} // {size}"
        line = self._tile(step, tiling.plan, rows, number, threads[0], parts)
        starts = f"range(0, {whole}, {size})"
        if self.module.threads and len(threads) > 1:
            work = self.module.new("rows")
            self.module.scope["share"] = self.sharing()
            yield f"def {work}({', '.join([start, *threads[0]])}):"
            yield f"    {line}"
            yield f"share({work}, {starts}, [{', '.join(tuple_text([*t, '']) for t in threads)}])"
        else:
            yield f"for {start} in {starts}:"
            yield f"    {line}"
        if tiling.remainder is not None:
            rows, number = f"{whole}:{tiling.count}", str(tiling.number - 1)
            yield self._tile(step, tiling.remainder, rows, number, remainder, parts)
        for ref, axis, part, y in tiling.ends(step.results, parts):
            if axis is None:
                yield self.joined(ref, part, y)

    def joined(self, ref: Ref, parts: str, y: Node) -> str:
        ufunc, options = combiner(y)
        name = self._plain(f"np.{ufunc.__name__}.reduce")
        target = self.expression(ref)
        keywords = "".join(f", {k}={v.name!r}" for k, v in options.items())
        if self.plan.is_scalar(ref):
            return f"{target} = {name}({parts}{keywords})"
        return f"{name}({parts}, 0, out={target}{keywords})"

    def _tile(
        self,
        step: TileLoop,
        plan: Plan,
        rows: str,
        number: str,
        workspace: Sequence[str],
        parts: Sequence[str],
    ) -> str:
        """The call of the function for a tile."""

        def cut(ref: Ref, axis: int | None) -> str:
            text = self.expression(ref)
            return text if axis is None else f"{text}[{':, ' * axis}{rows}]"

        arguments = list(map(cut, step.operands, step.tiling.operands))
        results: list[str] = []
        for ref, axis, part, y in step.tiling.ends(step.results, parts):
            if axis is not None:
                arguments.append(cut(ref, axis))
            else:
                (arguments if y.ndim else results).append(f"{part}[{number}]")
        text = f"{self.function_of(plan)}({', '.join([*arguments, *workspace])})"
        return f"{', '.join(results)} = {text}" if results else text

    def function_of(self, plan: Plan) -> str:
        """The name of the function of a plan, which is written unless one like it has been."""
        functions, own = self.module.functions, {s.name for s in plan.slots}
        self.module.taken |= own
        suffix = f"_{next(self.module.numbers)}"
        while any(name.endswith(suffix) for name in own):
            suffix += "_"
        inner = _Generator(plan, self.module, suffix)
        lines, steps = inner.function("")
        for name, (found, _) in functions.items():
            if found[1:] == lines[1:] and found[0] == lines[0].replace("(", f"{name}(", 1):
                return name
        name = self.module.new("fused")
        functions[name] = [lines[0].replace("(", f"{name}(", 1), *lines[1:]], steps
        return name

    def _kernel(self, step: Call, targets: list[str] | None) -> str:
        """The kernel called with its operands, and with `targets` to write to."""
        op, operands, attrs = step.op, self._operands(step), _declared(step)
        if self._is_of_numbers(step):
            return SIGNS[op.kernel].format(*operands)
        written = op.storage.source
        if callable(written):
            written = written(targets[0] == operands[0], **attrs) if targets else ""
        if "{" in written:
            text = written if targets else written.replace(", out={out}", "")
            texts = {
                k: index_text(v) if k == "index" else self._value(op, k, v)
                for k, v in attrs.items()
                if f"{{{k}}}" in text
            }
            return self._plain(text).format(*operands, out=targets and targets[0], **texts)
        if isinstance(step, Product):
            name = self.native_product(step)
        elif written or is_numpy(op.kernel):
            name = self._plain(written or f"np.{op.kernel.__name__}")
            attrs = {k: v for k, v in attrs.items() if v is not None and v is not False}
        else:
            name = self._helper(op)
        argument = self._value if op in self.module.opaque else self._argument
        named = [f"{k}={argument(op, k, v)}" for k, v in attrs.items()]
        scratch = [self.plan.slots[r.slot].name for r in step.scratch]
        positional = isinstance(op.kernel, np.ufunc) and op.kernel not in NAMED_OUT
        own_in_place = is_own(op.kernel) and not named and len(step.results) == 1
        if targets and (positional or own_in_place):
            return f"{name}({', '.join([*operands, *targets, *scratch, *named])})"
        if targets:
            named.append(f"out={targets[0] if len(targets) == 1 else tuple_text(targets)}")
            named += [f"scratch={s}" for s in scratch]
        return f"{name}({', '.join([*operands, *named])})"

    def _is_of_numbers(self, step: Call) -> bool:
        """Whether a step is arithmetic of NumPy's scalars, which know their own signs."""
        if step.op.kernel not in SIGNS or any(r.views for r in step.operands):
            return False
        slots = [self.plan.slots[r.slot] for r in step.operands]
        scalar = all(map(self.plan.is_scalar, step.results))
        return scalar and all(not s.shape and s.dtype in FLOATS for s in slots)

    def _plain(self, text: str) -> str:
        """`np.maximum(` as `maximum(`, with the imports that this and SciPy's names need."""
        plain, names, modules = without_np(text)
        self.module.imports |= modules
        self.module.numpy_names |= names
        return plain

    def _helper(self, op: Op) -> str:
        """The name of a kernel that NumPy does not have."""
        if is_own(op.kernel):
            for function in own_functions(op.kernel):
                self.module.kernels.setdefault(function.__name__, function)
            name: str = op.kernel.__name__
            return name
        return self._object(op, "kernel", op.kernel)

    def _argument(self, op: Op, name: str, value: Any) -> str:
        """An attribute as a person would write it for NumPy: `axis=0`, not `axis=(0,)`."""
        if isinstance(value, np.dtype):
            return repr(value.name)
        alone = name == "axis" and type(value) is tuple and len(value) == 1
        return self._value(op, name, value[0] if alone else value)

    def _value(self, op: Op, name: str, value: Any) -> str:
        """An attribute as it is. Raises `GraphError` for what nobody knows how to write."""
        text = plain_text(value)
        if text is not None:
            return text
        if op.opaque or isinstance(value, (np.dtype, Graph)):
            return self._object(op, name, value)
        if isinstance(value, ArrayData):
            text = self._as_object(name, value)
            self.module.constants[text] = value.array
            return text
        raise GraphError(
            f"{op.name}: {name}={reprlib.repr(value)} is no plain value, and is not written into a "
            "program"
        )

    def _object(self, op: Op, stem: str, value: Any) -> str:
        """A name for what cannot be spelled out; `stem` is a name of a parameter."""
        self.module.opaque[op] = None
        return self._as_object(stem, value)

    def _as_object(self, stem: str, value: Any) -> str:
        names = (f"{stem}{i}" for i in count())
        taken, scope = self.module.taken, self.module.scope
        name = next(n for n in names if n not in taken and scope.get(n, value) is value)
        self.module.scope[name] = value
        return name

    # ---- operands ---------------------------------------------------------------------------

    def _operands(self, step: Call) -> list[str]:
        """The operands as text; a scalar constant as a literal where NumPy reads it as the same."""
        slots = [self.plan.slots[r.slot] for r in step.operands]
        plain = isinstance(step.op.kernel, np.ufunc) and step.op.kernel not in NOT_WEAK
        firm = {s.dtype for s in slots if s.kind != "constant" or s.shape}
        return [
            self.expression(r, literal=plain and not r.views and s.dtype in firm)
            for r, s in zip(step.operands, slots, strict=True)
        ]

    def expression(self, ref: Ref, literal: bool = False) -> str:
        slot = self.plan.slots[ref.slot]
        text, views = self.plan.named(ref)
        if slot.kind == "constant":
            written = literal_text(slot.value) if literal else None
            if written is not None:
                return written
            text = f"{text}{self.suffix}"
            self.module.constants[text] = slot.value
        return self._viewed(text, views)

    def _viewed(self, text: str, views: Sequence[View]) -> str:
        for view in views:
            text = self._seen(text, view)
        return text

    def _seen(self, text: str, view: View) -> str:
        attrs = _declared(view)
        if view.op is permute_dims.op:
            axes = attrs["axes"]
            return f"{text}.T" if axes == (1, 0) else f"{text}.transpose({inside(axes)})"
        if view.op is reshape_p.op:
            return f"{text}.reshape({inside(attrs['shape']) or '()'})"
        if view.op is slice_p.op:
            return f"{text}[{index_text(attrs['index'])}]"
        if view.op is broadcast_to.op:
            self.module.numpy_names.add("broadcast_to")
            return f"broadcast_to({text}, {shape_text(attrs['shape'])})"
        name = self._helper(view.op)
        given = [f"{k}={self._value(view.op, k, v)}" for k, v in attrs.items()]
        return f"{name}({', '.join([text, *given])})"


def _head(name: str, parameters: list[str]) -> list[str]:
    """The line that begins a function, or several if it is long."""
    line = f"def {name}({', '.join(parameters)}):"
    if len(line) <= LONGEST_LINE:
        return [line]
    inside = wrap(f"{', '.join(parameters)},", LONGEST_LINE - 8, break_long_words=False)
    return [f"def {name}(", *(f"        {row}" for row in inside), "):"]


def _declared(step: Call | View) -> dict[str, Any]:
    """The attributes of a step, by names that its op declares; raises `GraphError` for others."""
    if not step.attrs:
        return {}
    attrs = dict(step.attrs)
    more = attrs.keys() - schema_of(step.op.infer).checks.keys()
    if more:
        names = ", ".join(map(reprlib.repr, more))
        raise GraphError(f"{step.op.name} declares no {names}: not written into a program")
    return attrs

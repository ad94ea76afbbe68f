"""The code generator: writes a plan as a Python function of NumPy calls, one line a step."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symgrad.lowering.plan import Plan, Ref, Slot, Step, View
from symgrad.ops import kernels

COMMENT_COLUMN = 48
LONGEST_TEXT = 48


@dataclass
class Source:
    """A generated function.

    `text` is the module that defines `step`; `scope` holds what the text does not spell out:
    constants that are too large to read, and kernels of a user's own. `lines` gives the step of a
    line of the text, counted from 1.
    """

    text: str
    scope: dict[str, Any]
    lines: dict[int, Step]
    numpy_names: set[str] = field(default_factory=set)
    helpers: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)

    def compile(self, filename: str) -> Callable[..., Any]:
        """The function itself; `filename` is what tracebacks call it."""
        scope = dict(self.scope)
        exec(compile(self.text, filename, "exec"), scope)
        function: Callable[..., Any] = scope["step"]
        return function


def generate(plan: Plan) -> Source:
    """A plan as source. Its function takes the inputs, the variables, the spare arrays of those
    updated, then the workspace, and returns the outputs and the next values of 0-d variables.
    """
    return _Generator(plan).source()


class _Generator:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.numpy_names: set[str] = set()
        self.helpers: dict[str, str] = {}
        self.scope: dict[str, Any] = {}
        self.constants: dict[str, Any] = {}
        self.places: dict[tuple[int, int], str] = {}

    def source(self) -> Source:
        body, steps = self._body()
        imports = ", ".join(sorted(self.numpy_names))
        head = ["import numpy as np"] + ([f"from numpy import {imports}"] if imports else [])
        for name, value in self.constants.items():
            head.append(f"{name} = {constant_text(value)}" if is_short(value)
                        else f"# {name}: {value.dtype.name}{list(value.shape)}, a constant")
        for text in self.helpers.values():
            head += ["", "", *text.rstrip().split("\n")]
        lines = [*head, "", "", *body]
        offset = len(head) + 2
        scope = {**self.scope, **{k: v for k, v in self.constants.items() if not is_short(v)}}
        return Source(
            "\n".join(lines) + "\n", scope, {i + offset + 1: s for i, s in steps.items()},
            self.numpy_names, list(self.helpers.values()), body, self.constants,
        )

    # ---- the function -----------------------------------------------------------------------

    def _body(self) -> tuple[list[str], dict[int, Step]]:
        plan = self.plan
        names = [plan.slots[i].name for i in (*plan.inputs, *plan.variables)]
        names += [plan.slots[i].name for i in plan.nexts if i >= 0]
        arena = plan.arrays_in_arena()
        lines = [f"def step({', '.join([*names, *(s.name for s in arena)])}):"]
        lines += [f"    # {line}" for line in _arena_lines(arena)]
        steps: dict[int, Step] = {}
        for slot in plan.slots:
            if slot.kind == "output":
                self.numpy_names |= {"empty"}
                lines.append(f"    {slot.name} = empty({slot.shape}, {slot.dtype.name!r})")
        for step in plan.steps:
            steps[len(lines)] = step
            code = f"    {self._statement(step)}"
            note = self._note(step)
            lines.append(f"{code:<{COMMENT_COLUMN}}# {note}" if note else code)
        results = [self._result(r) for r in plan.outputs]
        results += [self._result(r) for r, n in zip(plan.updates, plan.nexts, strict=True) if n < 0]
        lines.append(f"    return {', '.join(results)}" if results else "    return None")
        return lines, steps

    def _result(self, ref: Ref) -> str:
        slot = self.plan.slots[ref.slot]
        if ref.views:
            return f"{self._expression(ref, literal=False)}[()]"
        return self._expression(Ref(ref.slot), literal=False) if slot.kind == "constant" else slot.name

    def _statement(self, step: Step) -> str:
        operands = self._operands(step)
        attrs = dict(step.attrs)
        first = self.plan.slots[step.results[0].slot]
        if first.kind == "scalar":
            names = ", ".join(self.plan.slots[r.slot].name for r in step.results)
            return f"{names} = {self._call(step, operands, attrs, None)}"
        targets = [self._expression(r) for r in step.results]
        if step.op.out:
            return self._call(step, operands, attrs, targets)
        self.numpy_names |= {"copyto"}
        return f"copyto({targets[0]}, {self._call(step, operands, attrs, None)})"

    def _call(
        self, step: Step, operands: list[str], attrs: dict[str, Any], targets: list[str] | None
    ) -> str:
        op = step.op
        if "{" in op.source:
            text = op.source if targets else op.source.replace(", {out}", "")
            return self._plain(text).format(*operands, out=targets and targets[0], **attrs)
        if op.source or isinstance(op.kernel, np.ufunc) or _is_numpy(op.kernel):
            name = self._plain(op.source or f"np.{op.kernel.__name__}")
        else:
            name = self._helper(op.kernel)
        scratch = [self.plan.slots[r.slot].name for r in step.scratch]
        named = [f"{k}={_argument(v)}" for k, v in attrs.items() if v is not None and v is not False]
        if targets and (named or op.source):
            named.append(f"out={targets[0]}")
            named += [f"bits={s}" for s in scratch]
            return f"{name}({', '.join([*operands, *named])})"
        return f"{name}({', '.join([*operands, *(targets or []), *(scratch if targets else []), *named])})"

    def _plain(self, text: str) -> str:
        """`np.maximum(` as `maximum(`, with the import that this needs."""
        self.numpy_names |= set(re.findall(r"\bnp\.(\w+)", text))
        return re.sub(r"\bnp\.", "", text)

    def _helper(self, kernel: Callable[..., Any]) -> str:
        name = kernel.__name__
        if getattr(kernels, name, None) is kernel:
            self.helpers.setdefault(name, inspect.getsource(kernel))
            return name
        name = next(n for i in range(len(self.scope) + 1)
                    if self.scope.get(n := f"kernel{i}", kernel) is kernel)
        self.scope[name] = kernel
        return name

    def _note(self, step: Step) -> str:
        """Where a step comes from: the user's line and expression, and what made the node."""
        origin = step.node.origin
        place = ""
        for code, offset in origin.frames[:1]:
            key = (id(code), offset)
            if key not in self.places:
                found = origin.locations[0]
                self.places[key] = " ".join(f"{found}  {found.text[:LONGEST_TEXT]}".split())
            place = self.places[key]
        made = ", ".join(dict.fromkeys(m for m in origin.made_by if m != "fusion"))
        return f"{place}  {made}" if made else place

    # ---- operands ---------------------------------------------------------------------------

    def _operands(self, step: Step) -> list[str]:
        """The operands as text; a scalar constant as a literal where NumPy reads it as the same."""
        slots = [self.plan.slots[r.slot] for r in step.operands]
        plain = isinstance(step.op.kernel, np.ufunc)
        firm = {s.dtype for s in slots if s.kind != "constant" or s.shape}
        return [
            self._expression(r, literal=plain and not r.views and s.dtype in firm)
            for r, s in zip(step.operands, slots, strict=True)
        ]

    def _expression(self, ref: Ref, literal: bool = False) -> str:
        slot = self.plan.slots[ref.slot]
        text = slot.name
        if slot.kind == "constant":
            written = literal_text(slot.value) if literal else None
            if written is not None:
                return written
            self.constants[slot.name] = slot.value
            if slot.value.ndim == 0:
                self.numpy_names |= {slot.dtype.name}
        for view in ref.views:
            text = self._seen(text, view)
        return text

    def _seen(self, text: str, view: View) -> str:
        attrs = dict(view.attrs)
        match view.op.name:
            case "permute_dims":
                axes = attrs["axes"]
                return f"{text}.T" if axes == (1, 0) else f"{text}.transpose({_inside(axes)})"
            case "reshape":
                return f"{text}.reshape({_inside(attrs['shape']) or '()'})"
            case "slice":
                return f"{text}[{', '.join(map(_slice, attrs['index']))}]"
            case "broadcast_to":
                self.numpy_names |= {"broadcast_to"}
                return f"broadcast_to({text}, {attrs['shape']})"
        given = ", ".join(f"{k}={_argument(v)}" for k, v in attrs.items())
        return f"{self._helper(view.op.kernel)}({text}, {given})"


def _is_numpy(kernel: Any) -> bool:
    return getattr(np, getattr(kernel, "__name__", ""), None) is kernel


def _inside(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values))


def _slice(index: tuple[Any, Any, int]) -> str:
    start, stop, step = index
    text = f"{start or ''}:{'' if stop is None else stop}"
    return text if step == 1 else f"{text}:{step}"


def _argument(value: Any) -> str:
    """An attribute as a person would write it: `axis=0`, not `axis=(0,)`."""
    if isinstance(value, tuple) and len(value) == 1 and isinstance(value[0], int):
        return str(value[0])
    return repr(value.name if isinstance(value, np.dtype) else value)


def _arena_lines(arena: list[Slot]) -> Iterator[str]:
    """The workspace, a few arrays a line."""
    for i in range(0, min(len(arena), 40), 4):
        yield "  ".join(f"{s.name}: {s.type!r}" for s in arena[i : i + 4])
    if len(arena) > 40:
        yield f"… and {len(arena) - 40} more"


def literal_text(value: Any) -> str | None:
    """A NumPy scalar as a Python literal that NumPy turns back into the same, or None."""
    if np.ndim(value) or value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
        return None
    if value.dtype.kind == "f" and not np.isfinite(value):
        return None
    text = str(value)
    back = value.dtype.type(float(text) if value.dtype.kind == "f" else value.item())
    return text if back.tobytes() == value.tobytes() else None


def is_short(value: Any) -> bool:
    """Whether a constant can be spelled out for a reader."""
    return bool(np.ndim(value) == 0)


def constant_text(value: Any) -> str:
    """An expression for a constant, exact to the bit, that needs NumPy only."""
    array = np.asarray(value)
    if array.ndim == 0:
        literal = literal_text(array[()])
        if literal is not None:
            return f"{array.dtype.name}({literal})"
    ending = "[()]" if array.ndim == 0 else ""
    return (
        f"np.frombuffer(bytes.fromhex({array.tobytes().hex()!r}), "
        f"np.{array.dtype.name}).reshape({array.shape}){ending}"
    )

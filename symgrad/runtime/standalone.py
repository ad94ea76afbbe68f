"""Stand-alone programs: one file that imports NumPy and nothing else."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from symgrad.ir.errors import GraphError
from symgrad.lowering.plan import ALIGNMENT, Plan
from symgrad.runtime.codegen import Source, constant_text

CHECK = '''
def fitted(value, name, shape, dtype):
    """An argument as the program wants it: a C-contiguous array; refused if it does not fit."""
    array = np.asarray(value)
    if array.shape != shape or not np.can_cast(array.dtype, dtype, "safe"):
        raise ValueError(f"{name} must be {dtype}{list(shape)}, not {array.dtype}{list(array.shape)}")
    return np.asarray(array, dtype=dtype, order="C")[()]
'''


def write_standalone(plan: Plan, source: Source, updated: Sequence[str], path: Path) -> Path:
    """Write a plan as a file; see `Program.save_source`.

    Raises `GraphError` if the program has a kernel that is not NumPy's nor symgrad's own.
    """
    kernels = [k for k, v in source.scope.items() if callable(v)]
    if kernels:
        raise GraphError(
            "a program with kernels of your own cannot be written as a file that needs NumPy only"
        )
    write_whole(path, standalone_text(plan, source, updated))
    return path


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def standalone_text(plan: Plan, source: Source, updated: Sequence[str]) -> str:
    """The text of a stand-alone program."""
    inputs = [plan.slots[i] for i in plan.inputs]
    variables = [plan.slots[i] for i in plan.variables]
    sizes = ", ".join(f"{k} = {v}" for k, v in plan.sizes.items())
    given = ", ".join(s.name for s in variables)
    fed = ", ".join(s.name for s in inputs)
    lines = [
        '"""A program written by symgrad. It needs NumPy and nothing else.',
        "",
        f"    program = Program({given})",
        f"    results = program({fed})",
        "",
        f"It is planned for {sizes or 'fixed sizes'}. The results are new arrays; variables are "
        "copied when the",
        'program is made, and all of them are updated together at the end of a call."""',
        "",
        "import numpy as np",
    ]
    if source.numpy_names:
        lines.append(f"from numpy import {', '.join(sorted(source.numpy_names))}")
    lines += ["", *(f"{k} = {constant_text(v)}" for k, v in source.constants.items())]
    for helper in source.helpers:
        lines += ["", *helper.rstrip().split("\n"), ""]
    lines += ["", *source.body, "", CHECK, "", *_workspace(plan), "", "", *_class(plan, updated)]
    return "\n".join(lines) + "\n"


def _workspace(plan: Plan) -> list[str]:
    lines = [
        "def workspace():",
        f'    """The arrays that step works in: {plan.arena_bytes} bytes."""',
        f"    memory = np.empty({plan.arena_bytes + ALIGNMENT}, np.uint8)",
        f"    arena = memory[-memory.ctypes.data % {ALIGNMENT} :]",
        "    return (",
    ]
    for s in plan.arrays_in_arena():
        lines.append(
            f"        arena[{s.offset}:{s.offset + s.nbytes}].view({s.dtype.name!r})"
            f".reshape({s.shape}),  # {s.name}"
        )
    return [*lines, "    )"]


def _class(plan: Plan, updated: Sequence[str]) -> list[str]:
    inputs = [plan.slots[i] for i in plan.inputs]
    variables = [plan.slots[i] for i in plan.variables]
    by_name = {n.name: plan.slots[i].name for n, i in zip(
        (n for n in plan.graph.inputs if n.op.name == "variable"), plan.variables, strict=True)}
    targets = [by_name[name] for name in updated]
    spares = [t for t, n in zip(targets, plan.nexts, strict=True) if n >= 0]
    scalars = [t for t, n in zip(targets, plan.nexts, strict=True) if n < 0]
    lines = [
        "class Program:",
        '    """The program with its variables; call it with the inputs."""',
        "",
        f"    def __init__({', '.join(['self', *(s.name for s in variables)])}):",
    ]
    for s in variables:
        fit = f"fitted({s.name}, {s.name!r}, {s.shape}, {s.dtype.name!r})"
        lines.append(f"        self.{s.name} = {fit}.copy()")
    lines += [f"        self.next_{t} = np.empty_like(self.{t})" for t in spares]
    lines += [
        "        self.workspace = workspace()",
        "",
        f"    def __call__({', '.join(['self', *(s.name for s in inputs)])}):",
    ]
    arguments = [f"fitted({s.name}, {s.name!r}, {s.shape}, {s.dtype.name!r})" for s in inputs]
    arguments += [f"self.{s.name}" for s in variables] + [f"self.next_{t}" for t in spares]
    lines += ['        with np.errstate(all="ignore"):', "            found = step("]
    lines += [f"                {a}," for a in arguments]
    lines += ["                *self.workspace,", "            )"]
    lines += _commit(len(plan.outputs), scalars, spares)
    return lines


def _commit(count: int, scalars: list[str], spares: list[str]) -> list[str]:
    """The last lines of a call: all variables change in one statement."""
    left = [f"self.{t}" for t in scalars]
    right = [f"found[{count + i}]" if count + len(scalars) > 1 else "found"
             for i in range(len(scalars))]
    for t in spares:
        left += [f"self.{t}", f"self.next_{t}"]
        right += [f"self.next_{t}", f"self.{t}"]
    lines = [f"        {', '.join(left)} = {', '.join(right)}"] if left else []
    if not scalars:
        return [*lines, "        return found"]
    if count == 0:
        return [*lines, "        return None"]
    return [*lines, f"        return found[{0 if count == 1 else f':{count}'}]"]

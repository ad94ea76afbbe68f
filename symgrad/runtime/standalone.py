"""Stand-alone programs: one file that imports NumPy, SciPy if it has to, and nothing else."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.ir.errors import GraphError
from symgrad.ir.formats.writing import write_whole
from symgrad.ir.leaf_ops import PLACEHOLDER, VARIABLE
from symgrad.ir.node import Node
from symgrad.ir.ranges import Range
from symgrad.lowering.plan import ALIGNMENT, Plan
from symgrad.lowering.steps import Slot
from symgrad.ops.ranges.inference import declared
from symgrad.runtime.literals import constant_text, is_short
from symgrad.runtime.source import Source

if TYPE_CHECKING:
    from pathlib import Path

LONGEST_LINE = 80
LONGEST_FORM = 500  # of the arguments, as they are shown

FITTED = '''
def fitted(value, name, shape, dtype, within=None):
    """An argument as step takes it: a C-contiguous array of this shape and dtype."""
    if np.ma.isMaskedArray(value):
        raise ValueError(f"{name!r} is a masked array; fill it first: a.filled(0)")
    array = np.asarray(value)
    casting = "safe" if isinstance(value, (np.ndarray, np.generic)) else "same_kind"
    if array.shape != shape or not np.can_cast(array.dtype, dtype, casting):
        found = f"{array.dtype}{list(array.shape)}"
        raise ValueError(f"{name!r} must be {dtype}{list(shape)}, not {found}")
    with np.errstate(all="ignore"):
        made = np.require(array, dtype, ["C", "A"])
        ints = array.dtype.kind in "iu"
        back = made.real.astype(array.dtype) if ints else made
    lost = back != array if ints else np.isfinite(made) != np.isfinite(array)
    if lost.any():
        raise ValueError(f"{name!r} holds {array[lost].flat[0]}, which {dtype} cannot")
    if within is not None and not ((made >= within[0]) & (made <= within[1])).all():
        raise ValueError(f"{name!r} must lie within {within}")
    return made[()]
'''

PARTS = '''
def parts(value, like, path):
    """The values of an argument that stand where `like`, the form that is wanted, has an int."""
    if isinstance(like, dict):
        if not isinstance(value, dict) or value.keys() != like.keys():
            raise ValueError(f"{path} must be a dict with the keys {list(like)}")
        return [p for k in like for p in parts(value[k], like[k], f"{path}[{k!r}]")]
    if not isinstance(like, list):
        return [value]
    if isinstance(value, (str, dict, set)) or not hasattr(value, "__len__"):
        raise ValueError(f"{path} must be a sequence of {len(like)}")
    if len(value) != len(like):
        raise ValueError(f"{path} must be a sequence of {len(like)}, not of {len(value)}")
    return [p for i, v in enumerate(value) for p in parts(v, like[i], f"{path}[{i}]")]
'''


@dataclass(eq=False)
class Standalone:
    """A plan as a file; see `Program.save_source`.

    `form` makes of the outputs what a call returns, `forms` are those of the arguments by position,
    if not each of them is one array, and `keeps` if the program itself keeps some of it from call
    to call, as the file does not.

    Raises `GraphError` if the program has a kernel that is not NumPy's nor symgrad's own, and for a
    form that cannot be written: a dict with keys that are no text and no numbers.
    """

    plan: Plan
    source: Source
    updated: Sequence[Node]
    outputs: Sequence[str]
    form: Callable[[Sequence[Any]], Any] = tuple
    forms: tuple[Any, ...] | None = None
    keeps: bool = False

    def __post_init__(self) -> None:
        plan, self.module = self.plan, self.source.module
        if self.module.opaque:
            names = ", ".join(op.name for op in self.module.opaque)
            raise GraphError(
                f"a program with kernels of your own ({names}) "
                "cannot be written as a file that needs NumPy only"
            )
        self.inputs = [plan.slots[i] for i in plan.inputs]
        self.variables = [plan.slots[i] for i in plan.variables]
        # The user's names, by the slots' names; of variables that share one, these.
        self.given: dict[str, str] = {}
        slot_of: dict[Node, str] = {}
        for op, slots in ((PLACEHOLDER, self.inputs), (VARIABLE, self.variables)):
            nodes = (n for n in plan.graph.inputs if n.op is op)
            slot_of.update((n, s.name) for s, n in zip(slots, nodes, strict=True))
        ranges = {slot: declared(node) for node, slot in slot_of.items()}
        self.ranges = {slot: found for slot, found in ranges.items() if found is not None}
        shared = Counter(n.name for n in slot_of)
        for node, slot_name in slot_of.items():
            self.given[slot_name] = str(node.name) if shared[node.name] == 1 else slot_name
        self.targets = [slot_of[v] for v in self.updated]
        count = len(plan.outputs)
        several = len(plan.returned) > 1
        found = [_Found(f"found[{i}]" if several else "found") for i in range(count)]
        self.results = _Form(self.form(found), found)

    def save(self, path: str | Path) -> Path:
        """Write the file, whole or not at all."""
        return write_whole(path, "\n".join(self.lines()) + "\n")

    def lines(self) -> Iterator[str]:
        """The text, line by line."""
        yield from self._docstring()
        yield from ("", "import numpy as np")
        if self.module.numpy_names:
            yield f"from numpy import {', '.join(sorted(self.module.numpy_names))}"
        if self.results.classes:
            yield "from collections import namedtuple"
        yield from (f"import {name}" for name in sorted(self.module.imports))
        constants = self.module.constants.items()
        short = [f"{k} = {constant_text(v)}" for k, v in constants if is_short(v)]
        if short:
            yield from ("", *short)
        formed = [PARTS] * (self.forms is not None)
        functions = ("\n".join(lines) for lines, _ in self.module.functions.values())
        body = "\n".join(self.source.body)
        for text in (*self.module.copied(), *functions, body, FITTED, *formed):
            yield from ("", "", *text.strip().split("\n"))
        yield from ("", "", *self._workspace())
        if self.results.classes:
            made = ", ".join(f"namedtuple({c[0]!r}, {c[1:]!r})" for c in self.results.classes)
            yield from ("", "", f"forms = ({made},)")
        yield from ("", "", *self._class())
        for name, value in constants:
            if not is_short(value):
                yield from ("", "", f"# {value.dtype.name}{list(value.shape)}, its bytes in hex")
                yield f"{name} = {constant_text(value)}"

    def _docstring(self) -> Iterator[str]:
        results = "results = " if self.outputs else ""
        sizes = ", ".join(f"{in_docstring(k)} = {v}" for k, v in self.plan.sizes.items())
        needs = "NumPy and SciPy" if self.module.imports else "NumPy"
        yield f'"""A program written by symgrad. It needs {needs} and nothing else.'
        yield ""
        yield f"    program = Program({', '.join(s.name for s in self.variables)})"
        names = [s.name for s in self.inputs]
        taken = ", ".join(names)
        if self.forms is not None:
            forms = ", ".join(_like(f, names) for f in self.forms)
            taken = in_docstring(forms, LONGEST_FORM)
        yield f"    {results}program({taken})"
        if sizes:
            yield from ("", f"It is planned for {sizes}.")
        if self.variables:
            yield from ("", "Variables, which are copied when the program is made:")
            yield from map(self._declared, self.variables)
        if self.targets:
            yield f"A call updates {', '.join(self.targets)}, together, at its end."
        if self.keeps:
            yield from ("", "What symgrad keeps from call to call is computed in each call here.")
        if self.inputs:
            yield from ("", "Inputs, which are never written:")
            yield from map(self._declared, self.inputs)
        if self.outputs:
            yield from ("", "Results, which are the caller's:")
            types = [y.type for y in self.plan.graph.outputs]
            for name, type_ in zip(self.outputs, types, strict=False):
                yield f"    {in_docstring(repr(type_))}  {in_docstring(name)}"
        yield '"""'

    def _declared(self, slot: Slot) -> str:
        given = self.given[slot.name]
        alias = "" if given == slot.name else f"  called {in_docstring(given)}"
        return f"    {slot.name}: {slot.type!r}{alias}"

    def _workspace(self) -> Iterator[str]:
        size = self.plan.arena_bytes
        yield "def workspace():"
        if not size:
            yield '    """Step needs no memory to work in."""'
            yield "    return ()"
            return
        yield f'    """The arrays that step works in: {size} bytes."""'
        yield f"    memory = np.empty({size + ALIGNMENT}, np.uint8)"
        yield f"    arena = memory[-memory.ctypes.data % {ALIGNMENT} :]"
        yield "    return ("
        for s in self.plan.arrays_in_arena():
            piece = f"arena[{s.offset}:{s.offset + s.nbytes}]"
            yield f"        {piece}.view({s.dtype.name!r}).reshape({s.shape}),  # {s.name}"
        yield "    )"

    def _class(self) -> Iterator[str]:
        pairs = list(zip(self.targets, self.plan.nexts, strict=True))
        spares = [(t, self.plan.slots[n].name) for t, n in pairs if n >= 0]
        scalars = [t for t, n in pairs if n < 0]
        yield "class Program:"
        yield '    """The program with its variables; call it with the inputs."""'
        yield ""
        yield f"    def __init__({', '.join(['self', *(s.name for s in self.variables)])}):"
        for s in self.variables:
            yield f"        self.{s.name} = {self._fitted(s)}.copy()"
        for target, spare in spares:
            yield f"        self.{spare} = np.empty_like(self.{target})"
        yield "        self.workspace = workspace()"
        yield ""
        name = "__call__"
        if self.forms is not None:
            name = "call"
            like = _like(self.forms, [str(i) for i in range(len(self.inputs))])
            yield "    def __call__(self, *argument, **named):"
            yield "        if argument:"
            yield f"            argument = parts(argument, {like}, 'argument')"
            yield "        return self.call(*argument, **named)"
            yield ""
        yield f"    def {name}({', '.join(['self', *(s.name for s in self.inputs)])}):"
        for s in self.inputs:
            yield f"        {s.name} = {self._fitted(s)}"
        arguments = [s.name for s in self.inputs]
        arguments += [f"self.{s.name}" for s in self.variables]
        arguments += [f"self.{spare}" for _, spare in spares]
        yield '        with np.errstate(all="ignore"):'
        yield f"            found = step({', '.join([*arguments, '*self.workspace'])})"
        yield from self._commit(spares, scalars)

    def _fitted(self, slot: Slot) -> str:
        name = self.given[slot.name][:60]
        ends = self.ranges.get(slot.name)
        within = "" if ends is None else f", {_ends(ends)}"
        return f"fitted({slot.name}, {name!a}, {slot.shape}, {slot.dtype.name!r}{within})"

    def _commit(self, spares: list[tuple[str, str]], scalars: list[str]) -> Iterator[str]:
        """The last lines of a call: all variables change in one statement."""
        count = len(self.plan.outputs)
        several = count + len(scalars) > 1
        left = [f"self.{t}" for t in scalars]
        right = [f"found[{count + i}]" if several else "found" for i in range(len(scalars))]
        for target, spare in spares:
            left += [f"self.{target}", f"self.{spare}"]
            right += [f"self.{spare}", f"self.{target}"]
        if left:
            yield f"        {', '.join(left)} = {', '.join(right)}"
        if self.results.plain and count > 1:
            yield f"        return found[:{count}]" if scalars else "        return found"
        else:
            yield f"        return {self.results.text}"


def _like(form: Any, leaves: Sequence[str]) -> str:
    """A form of arguments as an expression with lists for sequences, and these texts for arrays."""
    if isinstance(form, dict):
        return f"{{{', '.join(f'{_key(k)}: {_like(v, leaves)}' for k, v in form.items())}}}"
    if isinstance(form, (list, tuple)):
        return f"[{', '.join(_like(v, leaves) for v in form)}]"
    return str(leaves[form])


def _ends(found: Range) -> str:
    """The ends of a range as source: inf has no literal."""
    ends = (f"float({str(v)!r})" if math.isinf(v) else repr(v) for v in found[:2])
    return f"({', '.join(ends)})"


class _Found(str):
    """The text for a result, where a form puts it."""


class _Form:
    """The return value of a call, as an expression over its results."""

    def __init__(self, returned: Any, found: list[_Found]) -> None:
        # Of each named tuple its name and its fields.
        self.classes: list[tuple[str, ...]] = []
        self.plain = type(returned) is tuple and len(returned) == len(found)
        self.plain &= all(isinstance(part, _Found) for part in (returned if self.plain else ()))
        self.text = self._written(returned, 1)

    def _written(self, part: Any, depth: int) -> str:
        if isinstance(part, _Found):
            return str(part)
        if isinstance(part, dict):
            pairs = [f"{_key(k)}: {self._written(v, depth + 1)}" for k, v in part.items()]
            return _enclosed("{", pairs, "}", depth)
        parts = [self._written(v, depth + 1) for v in part]
        if isinstance(part, list):
            return _enclosed("[", parts, "]", depth)
        if not hasattr(part, "_fields"):
            return _enclosed("(", parts, ",)" if len(parts) == 1 else ")", depth)
        made = (type(part).__name__, *part._fields)
        if made not in self.classes:
            self.classes.append(made)
        return _enclosed(f"forms[{self.classes.index(made)}](", parts, ")", depth)


def _enclosed(left: str, parts: list[str], right: str, depth: int) -> str:
    """Parts in brackets, in one line if that is short."""
    line = f"{left}{', '.join(parts)}{right}"
    if len(line) <= LONGEST_LINE:
        return line
    inner, outer = "    " * (depth + 2), "    " * (depth + 1)
    return f"{left}\n{inner}" + f",\n{inner}".join(parts) + f",\n{outer}{right.lstrip(',')}"


def _key(key: Any) -> str:
    """A key of a dict, as a literal. Raises `GraphError` for what has none."""
    if type(key) is tuple:
        return _enclosed("(", [_key(k) for k in key], ",)" if len(key) == 1 else ")", 0)
    if isinstance(key, np.generic):
        key = key.item()
    if (
        key is None
        or type(key) in (str, bytes, bool, int)
        or (type(key) is float and math.isfinite(key))
    ):
        return ascii(key)
    raise GraphError(
        f"results or inputs by the key {key!r:.80} cannot be written into a file; compile it with "
        "texts for keys: {'loss': loss}"
    )


def in_docstring(name: str, most: int = 60) -> str:
    """A user's name that can do no harm within triple quotes."""
    plain = "".join(c if c.isprintable() and c not in '\\"' else "?" for c in name)
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"

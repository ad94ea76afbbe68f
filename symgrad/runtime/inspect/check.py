"""Where a NaN, an inf or a loss of precision comes from: a program run op by op, and looked at.

What runs is the optimised graph, each kernel on whole arrays, fused groups op by op too. Nothing is
updated or kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir.errors import GraphError, KernelError
from symgrad.ir.evaluate import kernel_error, resolve
from symgrad.ir.graph import Graph, is_input
from symgrad.ir.late import Displayed
from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ir.node import Node, describe
from symgrad.ir.types import types_of
from symgrad.ir.walk import GraphLike
from symgrad.runtime.inspect.assumptions import broken
from symgrad.runtime.inspect.steps import began_in
from symgrad.runtime.runner import Runner

MOST_LISTED = 8
WIDE: Mapping[str, str] = {"float16": "float64", "float32": "float64", "complex64": "complex128"}


class Range(NamedTuple):
    """A summary of an array: the range of its finite elements, and how many are not finite.

    Of complex numbers `low` and `high` are absolute values; both are NaN if none is finite.
    """

    name: str
    low: float
    high: float
    nans: int
    infs: int
    size: int

    @staticmethod
    def of(name: str, value: Any) -> Range:
        """The range of an array."""
        array = np.asarray(value)
        finite = array[np.isfinite(array)]
        if finite.dtype.kind == "c":
            finite = abs(finite)
        ends = (float(finite.min()), float(finite.max())) if finite.size else (np.nan, np.nan)
        nans = int(np.isnan(array).sum())
        return Range(name, *ends, nans, array.size - finite.size - nans, array.size)

    @property
    def kinds(self) -> frozenset[str]:
        """Which of "nan" and "inf" it holds."""
        return frozenset(["nan"] * bool(self.nans) + ["inf"] * bool(self.infs))

    def __str__(self) -> str:
        parts = [] if np.isnan(self.low) else [f"from {self.low:.6g} to {self.high:.6g}"]
        parts += [f"{n} {kind}" for n, kind in ((self.nans, "nan"), (self.infs, "inf")) if n]
        return f"{self.name}: {', '.join(parts) or 'empty'}"


class Finding(NamedTuple):
    """A node that made what none of its inputs has: a NaN, an inf, too large a relative error.

    `made` says it in words; `error` is the relative error, if float64 was compared with. `result`
    and `inputs` are the ranges of arrays, `node.origin` knows the line.
    """

    node: Node
    made: str
    result: Range
    inputs: tuple[Range, ...]
    error: float | None = None

    def __str__(self) -> str:
        lines = [f"{self.node.op.name} {self.made}"]
        lines += [f"  built at {p}: {p.text}" for p in self.node.origin.locations]
        if self.node.origin.made_by:
            lines.append(f"  made by {self.node.origin.makers}")
        lines += [f"  input {i}, {r}" for i, r in enumerate(self.inputs)]
        return "\n".join([*lines, f"  result, {self.result}"])


@dataclass(frozen=True)
class Check(Displayed):
    """The findings of a check, in the order of the program; true if nothing reaches an output.

    `findings[0]` is where to look first. `harmless` are those of which no output has anything, such
    as what was made in a branch of a `where` that was not taken. `count` nodes were looked at;
    `largest` is the largest relative error of a node, if float64 was compared with. It prints.
    """

    findings: tuple[Finding, ...]
    count: int
    largest: float | None = None
    harmless: tuple[Finding, ...] = ()

    def __bool__(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        first, rest = self.findings[:1], self.findings[1:]
        lines = [str(found) for found in first]
        if rest:
            lines += [f"and after it {len(rest)} more:", *map(_line, rest[:MOST_LISTED])]
        if not first and self.largest is not None:
            lines = [f"the largest relative error of {self.count} nodes is {self.largest:.2g}"]
        elif not first:
            reaches = " reaches an output" * bool(self.harmless)
            lines = [f"no nan and no inf{reaches} in {self.count} nodes"]
        if self.harmless:
            lines += ["harmless, of which no output has anything:"]
            lines += map(_line, self.harmless[:MOST_LISTED])
        return "\n".join(lines)


def _line(found: Finding) -> str:
    return f"  {found.node.op.name} {found.made}  {found.node.origin}"


def checked(
    graph: Graph,
    written: Graph,
    runner: Runner,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    against: str | None,
    rtol: float,
) -> Check:
    """See `Program.check`; `graph` is what `runner` runs, made of the one `written`."""
    feeder, store = runner.feeder, runner.store
    feeder.check_names("check", len(args), ("against", "rtol"))
    if against not in (None, "float64"):
        raise GraphError(f"against is None or 'float64', not {against!r}")
    fed, sizes = feeder.feed(args, kwargs)
    wide = against is not None
    given = dict(zip((*feeder.inputs, *store.variables), (*fed, *store.read()), strict=True))
    if assumed := broken(written, given):  # then the program need not even run
        ranges = [Range.of(describe(node), matrix) for node, matrix, _ in assumed]
        pairs = zip(assumed, ranges, strict=True)
        return Check(tuple(Finding(n, words, r, ()) for (n, _, words), r in pairs), len(assumed))
    values = {n: _lanes(a if n.ndim else a[()], wide) for n, a in given.items()}
    if wide and all(t.dtype.name not in WIDE for n in graph.nodes for t in types_of(n.type)):
        raise GraphError("the program has nothing that float64 holds better: no narrower float")
    findings: list[Finding] = []
    # What is wrong, and of what that is wrong it was made.
    wrong: dict[Node, list[Node]] = {}
    largest, count = 0.0, 0
    with np.errstate(all="ignore"):
        for step in _steps(graph, values, sizes, wide, {}):
            error = step.error() if wide else None
            before = [x for x in step.before() if x in wrong]
            if error is None:
                made, is_wrong = step.made(sizes), bool(_kinds(step.results[0]))
            else:
                largest, is_wrong = max(largest, error), error > rtol
                made = f"has a relative error of {error:.2g}" * (is_wrong and not before)
            if is_wrong:
                wrong.setdefault(step.node, []).extend(before)
            if step.node.inner_graph is None:  # of which the parts have been looked at
                findings += [step.finding(made, error)] * bool(made)
                count += 1
    reaching = _made_of(wrong, graph.outputs)
    found, harmless = (
        tuple(f for f in findings if (f.node in reaching) is reaches) for reaches in (True, False)
    )
    return Check(found, count, largest if wide else None, harmless)


def _made_of(wrong: Mapping[Node, Sequence[Node]], outputs: Sequence[Node]) -> set[Node]:
    """The nodes from which what is wrong with the outputs came, each made of the next."""
    found: set[Node] = set()
    stack = [y for y in outputs if y in wrong]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += wrong[node]
    return found


class _Step(NamedTuple):
    """A node that has been computed: as the program does, and in float64 if that is asked for."""

    node: Node
    inputs: tuple[Node, ...]
    operands: Sequence[tuple[Any, ...]]
    results: tuple[Any, ...]

    def before(self) -> Iterator[Node]:
        """The nodes that it is computed from, those for which they stand, and those inside."""
        inner = self.node.inner_graph
        inside = () if inner is None else inner.outputs
        return chain(self.node.inputs, self.inputs, inside)

    def made(self, sizes: Mapping[str, int]) -> str:
        """The fault that the node introduced, such as NaN; "" for none."""
        before = frozenset[str]().union(*(_kinds(x[0]) for x in self.operands))
        new = sorted(_kinds(self.results[0]) - before)
        if not new or self.node.op is CONSTANT:
            return ""
        array = np.asarray(next(v for v in _parts(self.results[0]) if _kinds(v)))
        bad = np.argwhere(~np.isfinite(array))
        where = f", first at {tuple(bad[0].tolist())}" if array.ndim else ""
        verb = "was given" if is_input(self.node) else "made"
        found = f"{verb} {' and '.join(new)}: {len(bad)} of {array.size}{where}"
        if self.node.bodies:
            found += began_in(self.node, [x[0] for x in self.operands], sizes, _kinds)
        return found

    def error(self) -> float:
        """The largest error of its results, relative to their largest element.

        A result of zeros alone has no relative error; its size is then that of the operands.
        """
        size = max((_largest(v) for x in self.operands for v in _parts(x[1])), default=0.0)
        pairs = zip(*map(_parts, self.results), strict=True)
        return max(_relative(plain, wide, size) for plain, wide in pairs)

    def finding(self, made: str, error: float | None = None) -> Finding:
        """The finding in words."""
        values = zip(self.inputs, self.operands, strict=True)
        inputs = tuple(Range.of(describe(x), _joined(v[0])) for x, v in values)
        result = Range.of(describe(self.node), _joined(self.results[0]))
        return Finding(self.node, made, result, inputs, error)


def _steps(
    graph: GraphLike,
    values: dict[Node, tuple[Any, ...]],
    sizes: Mapping[str, int],
    wide: bool,
    outside: Mapping[Node, Node],
) -> Iterator[_Step]:
    """Each node of a graph, in order. Values are let go of when they have been read.

    `outside` are the nodes for which the inputs of a graph inside a fused node stand.
    """
    readers = Counter(x for n in graph.nodes for x in n.inputs) + Counter(graph.outputs)
    for node in graph.nodes:
        operands = [values[x] for x in node.inputs]
        inputs = tuple(outside.get(x, x) for x in node.inputs)
        if (inner := node.inner_graph) is not None:
            inside = dict(zip(inner.inputs, operands, strict=True))
            stand = dict(zip(inner.inputs, inputs, strict=True))
            yield from _steps(inner, inside, sizes, wide, stand)
            found = [inside[y] for y in inner.outputs]
            values[node] = found[0] if len(found) == 1 else tuple(zip(*found, strict=True))
        elif node not in values:
            values[node] = _computed(node, operands, sizes, wide)
        if node not in outside:
            yield _Step(node, inputs, operands, values[node])
        for x in node.inputs:
            readers[x] -= 1
            if not readers[x]:
                del values[x]


def _computed(
    node: Node, operands: Sequence[tuple[Any, ...]], sizes: Mapping[str, int], wide: bool
) -> tuple[Any, ...]:
    attrs, kernel = resolve(dict(node.attrs), sizes), node.op.kernel
    try:
        plain = kernel(*(x[0] for x in operands), **attrs)
        if not wide:
            return (plain,)
        others = [x[1] for x in operands]
        if not _is_given(node):
            return plain, kernel(*others, **{k: _wide_attr(v) for k, v in attrs.items()})
        narrowed = zip(others, (x.dtype for x in node.inputs), strict=True)
        return plain, _widened(kernel(*(np.asarray(v, d)[()] for v, d in narrowed), **attrs))
    except KernelError:
        raise
    except Exception as error:
        raise kernel_error(error, node, node.op.name) from error


def _is_given(node: Node) -> bool:
    """Whether what a node gives is taken as it is: constants, random numbers, the user's code."""
    if any(isinstance(x.type, tuple) for x in node.inputs):
        return False  # it picks one of several results
    floats = any(x.tensor.is_inexact for x in node.inputs)
    return node.op.opaque or (node.op.vjp is None if floats else not node.op.elementwise)


def _parts(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _joined(value: Any) -> Any:
    """All elements of the results of an op."""
    return np.concatenate([np.ravel(v) for v in _parts(value)])


def _lanes(value: Any, wide: bool) -> tuple[Any, ...]:
    return (value, _widened(value)) if wide else (value,)


def _widened(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_widened, value))
    dtype = np.asarray(value).dtype
    return np.asarray(value, WIDE.get(dtype.name, dtype))[()]


def _wide_attr(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_wide_attr, value))
    return np.dtype(WIDE.get(value.name, value)) if isinstance(value, np.dtype) else value


def _kinds(value: Any) -> frozenset[str]:
    arrays = [np.asarray(v) for v in _parts(value)]
    found = [a for a in arrays if not np.isfinite(a).all()]
    tests = (("nan", np.isnan), ("inf", np.isinf))
    return frozenset(kind for kind, test in tests if any(test(a).any() for a in found))


def _largest(value: Any) -> float:
    array = np.asarray(value)
    return float(np.max(abs(array), initial=0.0, where=np.isfinite(array)))


def _relative(plain: Any, wide: Any, size: float) -> float:
    a, b = np.asarray(plain), np.asarray(wide)
    if b.dtype.kind not in "fc" or not b.size:
        return 0.0
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    if not (same | finite).all():
        return np.inf
    error = _largest((a - b)[finite])
    return error and error / (_largest(b) or size or error)

"""The rounding error of a program's results: an estimate, a bound, and the lines that cause it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np

from symgrad.autodiff.reverse import is_differentiable
from symgrad.autodiff.transforms import vjp
from symgrad.ir.errors import SymgradError
from symgrad.ir.evaluate import evaluate, sizes_of
from symgrad.ir.graph import Graph, is_leaf
from symgrad.ir.long_double import SPREAD, WIDE, Run
from symgrad.ir.node import Node
from symgrad.ir.types import TensorType, types_of
from symgrad.ops.leaves import constant
from symgrad.rewrite.trace import Trace
from symgrad.runtime.inspect.enclosure import Enclosure
from symgrad.runtime.runner import Runner

MOST_CAUSES = 5
NOISES = 4
SINGLE = 4  # bytes: what is narrower than double is known better in double
MOST_NODES = 3000  # of which the causes are sought


class Cause(NamedTuple):
    """A node whose own rounding moves an output, and by how much (to first order)."""

    node: Node
    moves: float

    def __str__(self) -> str:
        return f"{self.moves:+.2g}  {self.node.op.name}  {self.node.origin}"


class OutputError(NamedTuple):
    """The error of one output, in its element `place`, where it is largest.

    `estimate` is its distance from what long double gives, `bound` a number that it does not
    exceed, or None if none was asked for; `inf` if none is known, for the reason `why`. `relative`
    is the estimate over the magnitude of that element, `largest` the magnitude of the largest one;
    `causes` are the nodes that cause it.
    """

    name: str
    estimate: float
    relative: float
    largest: float
    bound: float | None
    place: tuple[int, ...]
    causes: tuple[Cause, ...]
    why: str = ""

    def __str__(self) -> str:
        at = f" at {list(self.place)}" if self.place else ""
        lines = [f"{self.name}: {self.estimate:.2g} ({self.relative:.2g} of its magnitude){at}"]
        if self.bound is not None:
            known = f", since {self.why}" if self.why else ""
            lines.append(f"  at most {self.bound:.2g}{known}")
        return "\n".join([*lines, *(f"  {cause}" for cause in self.causes)])


@dataclass(frozen=True)
class RoundingError:
    """The errors of all outputs that are floats, in their order; it prints."""

    outputs: tuple[OutputError, ...]

    @property
    def estimate(self) -> float:
        """The largest estimate."""
        return max((y.estimate for y in self.outputs), default=0.0)

    @property
    def bound(self) -> float | None:
        """The largest bound; None if none was asked for."""
        bounds = [y.bound for y in self.outputs]
        return None if None in bounds else max((b for b in bounds if b is not None), default=0.0)

    def __str__(self) -> str:
        return "\n".join(map(str, self.outputs)) or "no output is of floats"


def of_program(
    runner: Runner,
    graph: Graph,
    trace: Trace,
    names: Sequence[str],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    bound: bool,
) -> RoundingError:
    """The errors of what a program gives, `graph` being what was written; see `Program.error`.

    Causes are sought after the rules, in the graph of the `trace` before kernels are made.
    """
    runner.feeder.check_names("error", len(args), ("bound",))
    fed, _ = runner.feeder.feed(args, kwargs)
    given = (*runner.feeder.inputs, *runner.store.variables)
    feeds = dict(zip(given, (*fed, *runner.store.read()), strict=True))
    rehearsal = Runner(runner.feeder, runner.executables, runner.store.rehearsal(), tuple)
    results = rehearsal(*args, **kwargs)
    wanted = [y for y in graph.outputs[: len(results)] if y.tensor.dtype.kind == "f"]
    exact = _Exact(wanted, feeds)
    enclosure = Enclosure(wanted, feeds) if bound else None
    simplified = [stage.after for stage in trace.stages if stage.name == "merge"]
    ran = simplified[-1] if simplified else graph
    found = []
    for y, z, name, result in zip(graph.outputs, ran.outputs, names, results, strict=False):
        if y.tensor.dtype.kind != "f":
            continue
        value = np.asarray(result, WIDE)
        apart = exact.apart(y, value)
        place = _largest(apart)
        largest = float(apart[place]) if apart.size else 0.0
        size = float(np.abs(exact.values[y][place])) if apart.size else 0.0
        limit, why = (None, "") if enclosure is None else _bound(enclosure, y, value)
        causes = _causes(z, place, feeds) if 0 < largest < inf else ()
        relative = largest / size if size else (inf if largest else 0.0)
        most = float(np.max(np.abs(exact.values[y]), initial=0))
        found.append(OutputError(name, largest, relative, most, limit, place, causes, why))
    return RoundingError(tuple(found))


class _Exact:
    """Values of nodes in long double, and how far they are from the truth where that is in doubt.

    Where a kernel takes doubles only, and gives doubles, its error is taken to be that of operands
    which are off by a unit in the last place, as of a backward stable algorithm.
    """

    def __init__(self, wanted: Sequence[Node], feeds: Mapping[Node, Any]) -> None:
        run = Run(wanted, feeds, fallback=True, rounding=False)
        self.values = run.values
        self.doubtful = {n for n in run.fallen_back if types_of(n.type)[0].dtype.itemsize > SINGLE}
        self.noisy: list[Mapping[Node, Any]] = []
        shaken = frozenset(self.doubtful)
        for node in Graph(wanted).nodes if shaken else ():
            if any(x in self.doubtful for x in node.inputs):
                self.doubtful.add(node)
        for seed in range(NOISES if shaken else 0):
            noise = np.random.default_rng(seed)
            run = Run(wanted, feeds, wide=False, noise=noise, shaken=shaken)
            self.noisy.append(run.values)

    def apart(self, y: Node, value: Any) -> Any:
        """How far an output is from the truth, element by element."""
        with np.errstate(all="ignore"):
            found = np.where(value == self.values[y], 0, np.abs(value - self.values[y]))
            for other in self.noisy if y in self.doubtful else ():
                found = np.fmax(found, np.abs(other[y] - value) / SPREAD)
        return found


def _largest(apart: Any) -> tuple[int, ...]:
    if not apart.size:
        return ()
    worst = np.argmax(np.where(np.isnan(apart), np.inf, apart))
    return tuple(int(i) for i in np.unravel_index(int(worst), apart.shape))


def _bound(enclosure: Enclosure, y: Node, value: Any) -> tuple[float, str]:
    if y in enclosure.unbounded:
        return inf, enclosure.unbounded[y]
    low, high = enclosure.intervals[y]
    with np.errstate(all="ignore"):
        apart = np.fmax(high - value, value - low)
    apart = np.where(np.isfinite(value), apart, np.inf)
    widest = float(np.max(apart, initial=0))
    why = "some operand may be where its function is not bounded" if widest == inf else ""
    return float(np.nextafter(widest, inf)), why


def _causes(y: Node, place: tuple[int, ...], feeds: Mapping[Node, Any]) -> tuple[Cause, ...]:
    """The nodes whose own rounding moves an element of an output most, by its gradient."""
    order = [n for n in Graph([y]).nodes if not is_leaf(n) and isinstance(n.type, TensorType)]
    inner = [n for n in order if n.dtype.kind == "f" and is_differentiable(n)]
    if not inner or len(order) > MOST_NODES:
        return ()
    plain = Run([y], feeds, wide=False).values
    one = np.zeros(np.shape(plain[y]), y.dtype)
    one[place] = 1
    try:
        flows = vjp(y, inner, constant(one), disconnected="zero")
        slopes = evaluate(flows, {n: v for n, v in plain.items() if not isinstance(v, tuple)})
    except (SymgradError, ValueError):  # an op has no derivative there
        return ()
    sizes, found = sizes_of(dict(feeds)), []
    for node, slope in zip(inner, slopes, strict=True):
        exact = _of_rounded(node, plain, sizes)
        if exact is not None:
            with np.errstate(all="ignore"):
                moves = float(np.sum(slope * (plain[node] - exact)))
            if moves and np.isfinite(moves):
                found.append(Cause(node, moves))
    return tuple(sorted(found, key=lambda cause: -abs(cause.moves))[:MOST_CAUSES])


def _of_rounded(node: Node, plain: Mapping[Node, Any], sizes: Mapping[str, int]) -> Any:
    """The value of a node in long double, of operands as they were rounded; None if unknown."""
    operands = {x: plain[x] for x in node.inputs}
    if any(isinstance(v, tuple) for v in operands.values()):
        return None
    try:
        return Run([node], operands, sizes=sizes, rounding=False).values[node]
    except Exception:  # no kernel of LAPACK's takes long doubles
        return None

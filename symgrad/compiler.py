"""Floor 10: `compile`, from nodes to a program."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from symgrad.ir.collector import without_collection
from symgrad.ir.dims import GUESS
from symgrad.ir.errors import GraphError, RewriteError
from symgrad.ir.graph import Graph
from symgrad.ir.messages import telling
from symgrad.ir.node import Variable
from symgrad.ir.telling import timed
from symgrad.ir.types import whole
from symgrad.lowering.lower import lower
from symgrad.passes import (
    DEFAULT,
    PORTABLE,
    RECOMPUTED_BEFORE,
    Pass,
    PassLike,
    in_stretches,
    recomputation,
    run_passes,
    run_split,
)
from symgrad.passes.erase_identities import erase_updates
from symgrad.passes.recompute import most_alive
from symgrad.rewrite.rule import Exact, Grade, Rule
from symgrad.rewrite.trace import Stage, Trace
from symgrad.runtime.executable import Backend
from symgrad.runtime.partial import PartialProgram
from symgrad.runtime.program import Interface, Program
from symgrad.runtime.question import Updates, asked, stateful
from symgrad.runtime.threads import MOST_THREADS, available


@telling
def compile(
    inputs: Any,
    outputs: Any,
    updates: Updates | None = None,
    *,
    exact: Exact | Grade = "rounding",
    passes: Iterable[PassLike] | None = None,
    backend: Backend = "numpy",
    device: str | None = None,
    shard: Mapping[str, int] | None = None,
    memory_budget: int | None = None,
    threads: int | None = None,
    partial: bool = False,
    error: float | None = None,
    flush_subnormals: bool = False,
) -> Program:
    """A program that computes `outputs` from arrays for `inputs`.

    `inputs` are placeholders, in the order in which the program takes them; variables are found.
    One of them may be a dict, list or tuple, nested as you like: then the program takes an argument
    of the same form in its place, and `compile({"x": x, "y": y}, …)` one dict. By name it is given
    placeholders in any case.
    `outputs` is one node, or lists, tuples and dicts of nodes, nested as you like; a call returns
    the same form.
    `updates` gives variables their next values, of the same shape and dtype, all computed from
    the present ones. `exact` is the grade up to which rules may act (`bits`, `values`, `rounding`,
    `reals`); which of them did is told by `program.trace`, and by `program.trace.grades()`.
    `passes` is what runs in place of `passes.DEFAULT`, `()` for the raw graph. What nodes carry of
    updates (`Module.updates`) is erased before, and costs nothing unless it is in `updates`.
    `backend` is `numpy` for generated source, or `reference` to walk the plan kernel by kernel.
    With the extra `native`, `native` runs every group that it can as machine code, and None those
    for which it pays; the rest is generated source. A program of numbers and arrays of up to 64
    elements is one function. `program.native` shows it. None is for what is called about a thousand
    times or more: LLVM takes 0.05 s to start in a process, and 0.01 to 0.1 s for a group.

    With the extra `jax`, `jax` gives the graph to XLA, by JAX, for a `device`: `"gpu"`, `"gpu:1"`,
    `"cpu"`, None for JAX's own choice. Variables then stay on the device from call to call, and
    whoever reads them fetches them; results are NumPy arrays, or JAX's from `program.on_device(…)`.
    Their memory is not donated, since a step that fails could not leave them as they were: of a
    variable of 128 KiB or more on a processor, that of the value before the present one is.
    Each combination of sizes is compiled again. `shard={"N": 4}` gives each of four devices of that
    kind an even part of the inputs that have the dimension N. What fails (an index, a matrix, a
    probability) is told as by NumPy, and changes nothing. A few ops, such as the normal law and
    rare special functions, run in NumPy between what XLA runs. Products of float32 are as precise
    as NumPy's, unless JAX's own `jax.default_matmul_precision` says otherwise in the first call.
    Unlike NumPy, XLA takes denormal numbers for 0, and a float beyond the range of integers becomes
    the nearest.

    `memory_budget` is the most that a call may need, in bytes, besides inputs, variables and
    constants (`program.plan.peak_bytes`, which leaves out what a kernel such as a sort takes for
    itself while it runs): what the forward would keep for the backward is then computed again,
    until it fits. A named dimension counts as 64. `threads` is how many share the blocks of large
    fused groups, None for as many as there are processors. A group gives the same bits with any
    number of them. Beside machine code they share large products of float32 and float64, too, no
    more of them than BLAS may take, which is held to one thread meanwhile, in the whole process. As
    with BLAS's own threads last digits then depend on their number, so that `bits` and `values`
    leave products to BLAS, as do programs with convolutions and factorisations. Without machine
    code, what BLAS does with threads of its own is left alone: on two cores that had other work to
    do, two of OpenBLAS's were measured 10 to 20 times slower than one, so that
    `OPENBLAS_NUM_THREADS=1` in the environment is worth a try.

    What depends only on variables that are not updated is computed once and kept until one of them
    changes, where that saves work: `program.kept`. Nothing is kept with `memory_budget`, nor
    with `passes` in which `passes.HOIST` is missing or comes before one of your own.

    The first call of a `partial` program gives all inputs, and each other one those that change:
    `logp(a=new)`. It holds copies of the others, and the values that depend on some inputs only, or
    on some variables, where that saves work; those are computed again whose inputs are given, or
    whose variables have changed. Results are as if all were given. `program.plan` tells what is
    held, and `program.held` has the programs that compute it, by what they depend on. Calls from
    several threads take turns; one that fails leaves what is held as it was. A copy or a pickle
    holds nothing, so that its first call gives all.

    With `error`, say 1e-6, no output is off by more than this part of its largest element at 64
    points of what placeholders are declared to lie `within`: as a bound, where one is known (see
    `Program.error`); beside a pole it may be off by more between them. Rules of finer grades are
    tried, then float64 for what rounding harms.

    With `flush_subnormals` arithmetic takes floats nearer to 0 than 1.2e-38 in float32, and than
    2.2e-308 in float64, for 0, as XLA always does. Intel's processors compute with them up to a
    hundred times slower, as where gradients vanish. What follows may be far off, since the log of
    such a number is -inf then. What only moves numbers, or changes their signs, leaves them as they
    are, as do threads of BLAS's own, and the source that `save_source` writes. It takes the extra
    `native`, with any `backend`.

    Raises `GraphError` for an `error` that no program keeps to, with the line, and beside
    `memory_budget`, `jax` or `flush_subnormals`; for inputs that are no placeholders, share a name
    or are missing, for updates of what is no variable, of another type, or given twice, and if no
    program is found that needs at most `memory_budget`; the least that it tells is one that is
    enough; for a device that is not there; for `exact="bits"` or `"values"`, `memory_budget`,
    `threads` or `partial` with `jax`, and `partial` with `memory_budget`; for `flush_subnormals`
    with `exact="bits"` or `"values"`.
    Raises `UnsupportedError` if JAX is not installed, or llvmlite where it is needed.

    >>> x = placeholder("x", 3)
    >>> compile([x], sum(x * x))([1.0, 2.0, 3.0])
    14.0
    """
    if threads is not None and whole(threads, "threads", 1, GraphError) > MOST_THREADS:
        raise GraphError(f"threads is a number from 1 to {MOST_THREADS}, or None, not {threads!r}")
    if backend not in (None, "numpy", "native", "reference", "jax"):
        raise GraphError(
            f"backend is 'numpy', 'native', 'jax', 'reference' or None, not {backend!r}"
        )
    grade = Exact.of(exact)
    if isinstance(passes, (Rule, Pass)):
        raise RewriteError(
            f"passes are several: with the usual ones, passes=({passes.name}, *sg.passes.DEFAULT)"
        )
    if flush_subnormals and grade < Exact.ROUNDING:
        raise GraphError(
            f"flush_subnormals is not for exact={grade.name.lower()!r}: 0 in place of a subnormal "
            "number is another value; leave it out, or use exact='rounding'"
        )
    if error is not None:
        from symgrad.runtime.inspect.precision import precise

        if memory_budget is not None or backend == "jax" or flush_subnormals:
            raise GraphError(
                "error is not for memory_budget, backend='jax' or flush_subnormals; leave one out"
            )
        again = functools.partial(
            compile, inputs, outputs, updates, backend=backend, threads=threads, partial=partial
        )
        steps = DEFAULT if passes is None else tuple(passes)
        return precise(again, steps, asked(inputs, outputs, updates).graph, grade, error)
    kind: type[Program] = PartialProgram if partial else Program
    if partial and (backend == "jax" or memory_budget is not None):
        raise GraphError(
            "partial=True is not for backend='jax', where XLA runs the graph as one function, nor "
            "for memory_budget, with which nothing is kept; leave one of them out"
        )
    if backend == "jax":
        _check_jax(grade, memory_budget, threads)
        kind, passes = _jax_program(), PORTABLE if passes is None else passes
    elif device is not None or shard is not None:
        raise GraphError("device and shard are for backend='jax'; NumPy has no devices")
    question = asked(inputs, outputs, updates)
    raw = start = question.graph
    updated = list(question.updated)
    count = available() if threads is None else threads
    with without_collection(), timed(lambda: f"compiling {len(raw)} nodes to {len(graph)}"):
        split = None
        trace = Trace()
        if any(n.op.update for n in raw.nodes):
            begun = perf_counter()
            start = stateful(erase_updates(raw, trace), question.fed, updated)
            trace.stages.append(Stage("erase_updates", raw, start, perf_counter() - begun))
        if memory_budget is None:
            steps = DEFAULT if passes is None else tuple(passes)
            graph, split = run_split(start, steps, updated, grade, trace, partial)
        else:
            if isinstance(memory_budget, bool) or not isinstance(memory_budget, (int, np.integer)):
                raise GraphError(
                    "memory_budget is a number of bytes, such as 10**9 for a gigabyte, "
                    f"not {memory_budget!r}"
                )
            if passes is not None:
                raise GraphError(
                    "give memory_budget or passes; passes.within(bytes) are those that keep to it"
                )
            graph, trace, count = _within(memory_budget, start, grade, trace, updated, count)
        exactly = grade < Exact.ROUNDING
        interface = Interface(
            question.form,
            question.names,
            question.updated,
            question.forms,
            backend,
            count,
            exactly,
            device, shard, flush_subnormals,
        )  # fmt: skip
        return kind(graph, raw, trace, interface, split)


def _check_jax(grade: Exact, memory_budget: Any, threads: Any) -> None:
    """Refuse what XLA decides by itself."""
    if grade < Exact.ROUNDING:
        raise GraphError(
            f"exact={grade.name.lower()!r} is not for backend='jax': XLA rounds as it likes; use "
            "exact='rounding' there, or backend='numpy'"
        )
    if memory_budget is not None:
        raise GraphError(
            "memory_budget is not for backend='jax': XLA plans its memory by itself; to need less "
            "of it, use checkpoint, or a smaller batch"
        )
    if threads is not None:
        raise GraphError("threads is not for backend='jax': XLA shares work among its own")


def _jax_program() -> type[Program]:
    from symgrad.backends.jax.program import JaxProgram

    return JaxProgram


def _within(
    memory: int, start: Graph, grade: Exact, trace: Trace, updated: Sequence[Variable], threads: int
) -> tuple[Graph, Trace, int]:
    """The optimised graph whose plan fits into so many bytes, the way to it, and the threads.

    What is tried does not depend on the budget, but for the order. So a larger budget allows what a
    smaller one does, and the least that is found is enough as a budget. Each thread has a workspace
    of its own: if they do not fit, one has to do.
    """
    sizes = {name: GUESS for x in start.inputs for name in x.tensor.names}
    least, larger, part = sys.maxsize, [], 1.0
    parts = ""

    def tried(graph: Graph, trace: Trace) -> tuple[Graph, Trace, int] | None:
        nonlocal least, parts
        graph = run_passes(graph, DEFAULT[RECOMPUTED_BEFORE:], grade, trace)
        for count in dict.fromkeys((threads, 1)):
            plan = lower(graph, sizes, updated, threads=count)
            if plan.peak_bytes <= memory:
                return graph, trace, count
            if plan.peak_bytes < least:
                least = plan.peak_bytes
                parts = (
                    f"{plan.output_bytes} for outputs, {plan.next_bytes} for next values of "
                    f"variables, {plan.arena_bytes} to work in"
                )
        return None

    for i, (graph, way, most) in enumerate(_less_and_less(start, grade, trace)):
        # The pass counts what is alive; a plan may need more, for gaps and scratch, or less.
        if i and most * part > memory:
            larger.append((graph, way))
        elif found := tried(graph, way):
            return found
        if not i:
            part = least / max(most, 1)
    for graph, way in larger:
        if found := tried(graph, way):
            return found
    raise GraphError(
        f"no program was found that needs at most memory_budget={memory} bytes; "
        f"the least that was found is {least}: {parts}"
    )


def _less_and_less(start: Graph, grade: Exact, trace: Trace) -> Iterator[tuple[Graph, Trace, int]]:
    """Graphs that keep less and less and compute it again, with traces, and the bytes alive.

    The first keeps everything. Loops then keep their steps in more and more stretches. Where an aim
    is missed, a much lower one may do better, since more is given up at once.
    """

    def simplified(passes: Sequence[PassLike]) -> tuple[Graph, Trace, int]:
        way = Trace([*trace.stages], [*trace.fired])
        graph = run_passes(start, passes[:RECOMPUTED_BEFORE], grade, way)
        return graph, way, most_alive(graph)

    fullest = simplified(DEFAULT)
    yield fullest
    from symgrad.passes.stretches import worth_trying

    for number, deep in worth_trying(start):
        tight = simplified(in_stretches(number, deep))
        yield tight
        fullest = min(fullest, tight, key=lambda found: found[2])
    whole, before, most = fullest
    aim, end = most, most // 64
    while aim > end:
        aim = aim * 15 // 16 if most <= aim else aim // 4
        way = Trace([*before.stages], [*before.fired])
        graph = run_passes(whole, [recomputation(aim)], grade, way)
        most = most_alive(graph)
        yield graph, way, most

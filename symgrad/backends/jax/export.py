"""Programs as StableHLO, in the form that `jax.export` writes and reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from symgrad.backends.jax.device import as_needed, imported
from symgrad.backends.jax.lowering import Lowering, Stage, is_left_to_numpy
from symgrad.ir.dims import Dim
from symgrad.ir.errors import GraphError, KernelError, SymgradError, UnsupportedError
from symgrad.ir.evaluate import kernel_error, resolve
from symgrad.ir.formats.reading import checked_path
from symgrad.ir.formats.writing import whole_file
from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ir.node import Node, Variable, describe
from symgrad.ir.types import TensorType
from symgrad.passes import PORTABLE, run_passes
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import Trace
from symgrad.runtime.program import Program

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
SIZE_WANTED = "a size must be known to export it; give the placeholder an int for it"


def _symbols(jax: Any, names: Sequence[str], nodes: Iterable[Node]) -> dict[str, Any]:
    """JAX's sizes for named dimensions, no smaller than the nodes want them: for `x[:3]`, N >= 3.

    Called with less, what was exported refuses it as a program does.
    """
    exporting = jax.export
    free = exporting.SymbolicScope()
    known = {n: exporting.symbolic_shape(n, scope=free)[0] for n in names}
    bounds: set[str] = set()
    for node in _each(nodes):
        if node.op.margins is not None:
            sizes = node.op.margins(*(x.type for x in node.inputs), **dict(node.attrs))
            try:
                bounds.update(f"{resolve(s, known)} >= 0" for s in sizes if isinstance(s, Dim))
            except jax.errors.InconclusiveDimensionOperation as error:  # of minima
                raise UnsupportedError(
                    f"{SIZE_WANTED}. JAX does not tell whether {describe(node)} is large enough"
                    f"{node.origin.description}"
                ) from error
    scope = exporting.SymbolicScope(sorted(bounds))
    return {n: exporting.symbolic_shape(n, scope=scope)[0] for n in names}


def _each(nodes: Iterable[Node]) -> Iterator[Node]:
    """Nodes, and those of the graphs within them."""
    for node in nodes:
        yield node
        for inner in filter(None, (node.inner_graph, *node.bodies)):
            yield from _each(inner.nodes)


def export(program: Program, path: str | Path, platforms: Any, checked: bool) -> Path:
    """Write a program as StableHLO for some platforms: see `Program.export`."""
    target, jax = checked_path(path), imported()
    exporting = jax.export
    listed = isinstance(platforms, Iterable) and not isinstance(platforms, str)
    wanted = tuple(platforms) if listed else ()
    if not wanted or not all(isinstance(p, str) and p in PLATFORMS for p in wanted):
        raise GraphError(f"platforms are some of {', '.join(PLATFORMS)}, not {platforms!r:.80}")
    graph = run_passes(program.outputs_as_written, PORTABLE, Exact.ROUNDING, Trace())
    names = sorted({name for x in graph.inputs for name in x.tensor.names})
    try:
        symbols = _symbols(jax, names, graph.nodes)
    except ValueError as error:  # of words that JAX has in expressions, such as max and mod
        raise UnsupportedError(
            f"JAX takes some of these for no name of a dimension: {', '.join(names)}; {error}"
        ) from error
    lowering = Lowering(graph, {}, jax, in_turn={*wanted} == {"cpu"}, symbols=symbols)
    for task in lowering.tasks:
        if is_left_to_numpy(task.node):
            raise UnsupportedError(
                f"{describe(task.node)} runs in NumPy, and cannot be exported"
                f"{task.node.origin.description}"
            )
    (stage,) = lowering.stages
    number = {x: i for i, x in lowering.given.items()}
    fed = [x for x in graph.inputs if not isinstance(x, Variable)]
    held = {i: x.attr("value").array for i, x in lowering.given.items() if x.op is CONSTANT}
    held |= {i: x.cell.array for i, x in lowering.given.items() if isinstance(x, Variable)}

    def run(*arrays: Any) -> Any:
        values = lowering.written | held | {number[x]: a for x, a in zip(fed, arrays, strict=True)}
        made, flags = lowering.function(stage, stage.gives)(*[values[i] for i in stage.takes])
        values |= dict(zip(stage.gives, made, strict=True))
        results = [jax.numpy.asarray(values[i]) for i in lowering.outputs]
        return [*results, jax.numpy.any(jax.numpy.asarray(flags))] if checked else results

    types = [jax.ShapeDtypeStruct(resolve(x.shape, symbols), x.dtype) for x in fed]
    try:
        with as_needed(jax):
            data = exporting.export(jax.jit(run), platforms=wanted)(*types).serialize()
    except KernelError as error:
        raise _refusal(error, lowering) from error
    except SymgradError:
        raise
    except ImportError as error:
        raise UnsupportedError(f"{error}; pip install 'symgrad[jax]'") from None
    except Exception as error:
        found = _refused_alone(lowering, wanted)
        if found is None:
            raise UnsupportedError(f"it cannot be exported: {str(error)[:300]}") from error
        raise _refusal(found, lowering) from error
    with whole_file(target) as file:
        file.write(data)
    return target


def _refusal(error: KernelError, lowering: Lowering) -> UnsupportedError:
    """That JAX refuses a node, with where it was built."""
    first, *rest = str(error).splitlines()
    why = SIZE_WANTED if lowering.symbols else "it cannot be exported"
    place = (f"\n{line}" for line in rest if line.startswith("  built at"))
    return UnsupportedError(f"{why}. {first}{''.join(place)}")


def _refused_alone(lowering: Lowering, platforms: Sequence[str]) -> KernelError | None:
    """The error of the first node that JAX refuses to export by itself.

    It tells of no node if it refuses one after it has traced the function.
    """
    jax, symbols = lowering.jax, lowering.symbols or {}
    for i in lowering.stages[0].tasks:
        task = lowering.tasks[i]
        taken = [k for k in dict.fromkeys(task.inputs) if k not in lowering.written]
        types = [t for k in taken if isinstance(t := lowering.tasks[k].type, TensorType)]
        # It picks one of several results; or there is no array that would tell JAX of sizes.
        if len(types) < len(taken) or not taken:
            continue
        stage = Stage(tasks=[i], takes=tuple(taken), gives=(i,))
        alone = jax.jit(lowering.function(stage, stage.gives))
        given = [jax.ShapeDtypeStruct(resolve(t.shape, symbols), t.dtype) for t in types]
        try:
            with as_needed(jax):
                jax.export.export(alone, platforms=platforms)(*given)
        except Exception as error:
            return kernel_error(error, task.node, task.node.op.name)
    return None

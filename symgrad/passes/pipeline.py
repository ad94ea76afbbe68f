"""The passes and the order in which they run, with the reason for each place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from inspect import getdoc
from time import perf_counter
from typing import TypeAlias

from symgrad.ir.errors import RewriteError
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, Variable, describe
from symgrad.ir.record import Record, replace
from symgrad.ir.telling import tell
from symgrad.ops.ranges.inference import declared
from symgrad.passes import (
    cse,
    dead,
    erase_identities,
    expand_softmax,
    fuse,
    join_slices,
    recompute,
    share_masks,
    short_axes,
)
from symgrad.passes.hoist import Split, hoist_invariants, joined
from symgrad.rewrite.driver import Index, rewrite
from symgrad.rewrite.late import Rules
from symgrad.rewrite.rule import Exact, Rule, rules_of
from symgrad.rewrite.trace import RewriteEvent, Stage, Trace
from symgrad.rules import (
    arithmetic,
    constants,
    contractions,
    extrema,
    factors,
    late,
    logic,
    masks,
    matmul,
    powers,
    reductions,
    row_sums,
    scaled_reductions,
    selections,
    softmax,
    stable,
    views,
)
from symgrad.rules.whole_graph import loop_result


class Pass(Record, frozen=True):
    """A named step of the compiler: a function of the graph, the grade and the trace.

    `by_part` says that it may run on the parts of a graph that has been split.
    """

    name: str
    reason: str
    run: Callable[[Graph, Exact, Trace], Graph]
    by_part: bool = False


PassLike: TypeAlias = "Pass | Rule"


def graph_pass(function: Callable[[Graph], Graph]) -> Pass:
    """Declare a pass of your own: a function from a graph to a graph that computes the same.

    >>> @graph_pass
    ... def nothing(graph: Graph) -> Graph:
    ...     '''Leaves the graph as it is.'''
    ...     return graph
    """
    reason = getdoc(function) or ""
    return Pass(function.__name__, reason, lambda graph, exact, trace: function(graph))


def rules_pass(
    name: str, reason: str, rules: Iterable[Rule], given_ranges: Iterable[Rule] = ()
) -> Pass:
    """A pass that applies rules, of those that the grade admits, until none fits.

    In a graph with a placeholder of which a range is declared they are those `given_ranges`.
    """
    listed, more = Rules.of(rules), Rules.of(given_ranges)

    @cache
    def admitted(exact: Exact, ranged: bool) -> Index:
        return Index((more if ranged else listed).admitted(exact))

    def run(graph: Graph, exact: Exact, trace: Trace) -> Graph:
        keep_layout = exact < Exact.ROUNDING
        ranged = bool(more.parts) and any(declared(x) for x in graph.inputs)
        return rewrite(graph, admitted(exact, ranged), trace, name, keep_layout=keep_layout)

    return Pass(name, reason, run)


BY_RANGES = Rules([late("ranges")])
DECLARED = Rules(
    (
        *rules_of(constants, masks, stable, softmax, logic),
        late("comparisons"),
        late("bounds"),
        *rules_of(selections, extrema, views),
        late("indexing"),
        late("scatter"),
        late("reduced_extrema"),
        *rules_of(scaled_reductions, reductions, matmul, contractions),
        late("low_rank"),
        late("structure"),
        late("systems"),
        *rules_of(arithmetic, factors, powers, row_sums),
        late("in_rows"),
    )
)
RULES = DECLARED.where(lambda rule: not rule.last)
KERNELS = DECLARED.where(lambda rule: rule.last)


def _improved_loops(
    graph: Graph,
    exact: Exact,
    trace: Trace,
    stretches: int = 1,
    last: Callable[[], Sequence[PassLike]] = lambda: DEFAULT,
) -> Graph:
    """Loops merged and made smaller, in stretches, and their bodies compiled by the last passes."""

    if not any(n.op.runs_graphs for n in graph.nodes):
        return graph
    from symgrad.passes import bodies, loops
    from symgrad.passes.last_rows import last_rows
    from symgrad.passes.stretches import stretched

    def compiled(passes: Sequence[PassLike]) -> Callable[[Graph], Graph]:
        def run(body: Graph) -> Graph:
            inner = Trace()
            found = run_passes(body, passes, exact, inner)
            trace.fired += (fired._replace(stage="loops") for fired in inner.fired)
            return found

        return run

    parts = exact >= Exact.ROUNDING
    compiler = loops.Compiler(compiled(SIMPLIFYING), compiled(last()), parts)
    looped, results = graph, dict[Node, Node]()
    if any(n.op.body for n in graph.nodes):
        looped, results = loops.merged(graph)
        results = {n: m for n, m in results.items() if n.op.of_several and n.inputs[0].op.body}
        made: list[Callable[[Graph], tuple[Graph, Mapping[Node, Node]]]] = [last_rows]
        made += [partial(stretched, number=stretches)] * (stretches > 1)
        made += [partial(loops.improved, compiler=compiler)]
        for improve in made:
            looped, becomes = improve(looped)
            results = {n: becomes[m] for n, m in results.items() if m in becomes}
        if parts:
            looped = run_passes(looped, SIMPLIFYING, exact, trace)
    after, chosen = bodies.improved(looped, compiler.finish)
    for old, new in (*results.items(), *chosen.items()):
        if new is not old:
            trace.fired.append(RewriteEvent("loops", loop_result, old, new))
    return after


HOIST = Pass(
    "hoist_invariants",
    "before fusion, which would join what is computed once with what is computed in every call",
    # The whole stays as it is: `run_split` knows what to do with the parts.
    lambda graph, exact, trace: graph,
)

_SIMPLIFY = rules_pass(
    "simplify",
    "folding, masks, movement and algebra together, because each makes work for the others",
    RULES,
    given_ranges=RULES + BY_RANGES,
)
DEFAULT: tuple[Pass, ...] = (
    Pass(
        "erase_identities",
        "first, so that no other pass is hindered by what only differentiation sees",
        erase_identities.erase_identities,
    ),
    Pass(
        "dead_results",
        "early, so that no other pass works on what nobody reads",
        dead.dead_results,
    ),
    Pass(
        "common_subexpressions",
        "before the rules: a rule that wants a node with one reader must not be fooled by a twin",
        cse.common_subexpressions,
    ),
    _SIMPLIFY,
    Pass(
        "join_slices",
        "after simplify, which brings slices together; before kernels, which add them one by one",
        join_slices.join_slices,
    ),
    Pass(
        "merge",
        "again, for what the rules have made equal",
        cse.common_subexpressions,
    ),
    Pass(
        "loops",
        "when what loops are given is merged, so that those that begin alike are seen to be alike",
        _improved_loops,
    ),
    Pass(
        "expand_softmax",
        "when all that is equal has been merged; the parts become kernels of their own",
        expand_softmax.expand_softmax,
    ),
    Pass(
        "short_axes",
        "before kernels, which sum up rows; after all that merges what is read in several places",
        short_axes.short_axes,
    ),
    rules_pass(
        "kernels",
        "after simplify, because what is made inside a kernel is seen by no other rule",
        KERNELS,
    ),
    Pass(
        "shared_masks",
        "after kernels: a selection that makes its own mask needs none that is shared",
        share_masks.shared_masks,
    ),
    HOIST,
    Pass(
        "fusion",
        "last: no rule looks into a fused node",
        fuse.fusion,
        by_part=True,
    ),
)


# Those that come before the loops, of which the bodies have some of their own.
SIMPLIFYING = DEFAULT[: next(i for i, p in enumerate(DEFAULT) if p.name == "loops")]
# Rules that save multiplications, which compilers that join loops do for nothing.
SAVED_BY_LOOPS = matmul.scalar_through_matmul, matmul.scalar_through_matmul_right
# Those without kernels made for NumPy and without fusion, for compilers that have their own.
PORTABLE: tuple[Pass, ...] = (
    *(
        rules_pass(p.name, p.reason, RULES.where(lambda r: r not in SAVED_BY_LOOPS))
        if p.name == "simplify"
        else p
        for p in SIMPLIFYING
    ),
    Pass(
        "loops",
        "when what loops are given is merged; their bodies are improved in the same way",
        partial(_improved_loops, last=lambda: PORTABLE),
    ),
    *(p for p in DEFAULT if p.name == "expand_softmax"),
    rules_pass(
        "products",
        "after expand_softmax, whose parts meet what scales them; XLA would copy a transpose, and "
        "send indices of rows from device to device",
        Rules((softmax.softmax_meets_factor, matmul.product_over_rows, late("in_rows"))),
    ),
)
RECOMPUTED_BEFORE = next(i for i, p in enumerate(DEFAULT) if p.name == "kernels")


def recomputation(memory: int) -> Pass:
    """The pass that computes values again so that about so many bytes are alive at once."""
    return Pass(
        "recomputation",
        "when nothing is merged any more, since it makes copies; before fusion, which joins them "
        "with their readers",
        lambda graph, exact, trace: recompute.recomputed(graph, memory),
    )


def in_stretches(number: int, deep: bool = False) -> tuple[Pass, ...]:
    """The default passes where loops keep their steps for others in about so many stretches.

    If they go `deep`, a stretch does so in turn: all together keep the logarithm of their steps.
    """

    def last() -> tuple[Pass, ...]:
        return found if deep else DEFAULT

    improve = partial(_improved_loops, stretches=number, last=last)
    found = tuple(replace(p, run=improve) if p.name == "loops" else p for p in DEFAULT)
    return found


def within(memory: int) -> tuple[Pass, ...]:
    """The default passes, and one that computes again what need not be kept, to use less memory.

    `memory` is what may be alive at once, in bytes, inputs, variables and constants not counted.
    """
    return (*DEFAULT[:RECOMPUTED_BEFORE], recomputation(memory), *DEFAULT[RECOMPUTED_BEFORE:])


def run_passes(graph: Graph, passes: Iterable[PassLike], exact: Exact, trace: Trace) -> Graph:
    """The graph after the passes, in their order, each noted in the trace.

    A `Rule` among the passes is a pass of its own; `HOIST` leaves the whole as it is, and is not
    noted. Raises `RewriteError` for anything else, and for a pass that changes the inputs or the
    types of the outputs.
    """
    for step in passes:
        if step is HOIST:
            continue
        if isinstance(step, Rule):
            late = f", not below {step.exact.name.lower()}" if step.exact > exact else ""
            step = rules_pass(step.name + late, step.reason, [step])
        if not isinstance(step, Pass):
            raise RewriteError(f"a pass is made with graph_pass or rule, and {step!r} is neither")
        start = perf_counter()
        after = step.run(graph, exact, trace)
        if not isinstance(after, Graph):
            raise RewriteError(f"the pass {step.name} returned {type(after).__name__}, not a graph")
        if after is not graph:
            _check_interface(step.name, graph, after)
        seconds = perf_counter() - start
        trace.stages.append(Stage(step.name, graph, after, seconds))
        tell(f"pass {step.name}, {len(graph)} to {len(after)} nodes", seconds)
        graph = after
    return graph


def run_split(
    graph: Graph,
    passes: Sequence[PassLike],
    updates: Collection[Variable],
    exact: Exact,
    trace: Trace,
    partial: bool = False,
) -> tuple[Graph, Split | None]:
    """The graph after the passes, and its parts if `HOIST` is among them and splits it.

    It does so if all that comes after it may run on the parts; those of a `partial` program keep
    what depends on some of its inputs. Raises as `run_passes` does.
    """
    at = next((i for i, step in enumerate(passes) if step is HOIST), len(passes))
    first, last = passes[:at], passes[at + 1 :]
    if at == len(passes) or not all(isinstance(step, Pass) and step.by_part for step in last):
        return run_passes(graph, passes, exact, trace), None
    graph = run_passes(graph, first, exact, trace)
    split = hoist_invariants(graph, updates, partial)
    if split is None:
        return run_passes(graph, last, exact, trace), None
    for step in last:
        before, scratch = split, Trace()
        bodies = [run_passes(p.body, [step], exact, scratch) for p in (*split.kept, split)]
        parts = [(p.names, body, p.trace) for p, body in zip(split.kept, bodies, strict=False)]
        split = joined(parts, bodies[-1], graph.inputs)
        seconds = [stage.seconds for stage in scratch.stages]
        for old, new, spent in zip(before.kept, split.kept, seconds, strict=False):
            new.trace.stages.append(Stage(step.name, old.graph, new.graph, spent))
        trace.stages.append(Stage(step.name, before.graph, split.graph, sum(seconds)))
    return split.graph, split


def _check_interface(name: str, before: Graph, after: Graph) -> None:
    """Refuse a graph that does not stand for another: its inputs and what it gives are the same."""
    if list(map(id, after.inputs)) != list(map(id, before.inputs)):
        raise RewriteError(
            f"the pass {name} changed the inputs from {_listed(before.inputs)} to "
            f"{_listed(after.inputs)}; keep them: sg.Graph(outputs, graph.inputs)"
        )
    if len(after.outputs) != len(before.outputs):
        raise RewriteError(
            f"the pass {name} returned {len(after.outputs)} outputs for {len(before.outputs)}"
        )
    for i, (old, new) in enumerate(zip(before.outputs, after.outputs, strict=True)):
        if old.type != new.type:
            raise RewriteError(
                f"the pass {name} changed output {i} from {describe(old)} to {describe(new)}; "
                "its type must stay the same"
            )


def _listed(inputs: tuple[Node, ...]) -> str:
    return f"({', '.join(repr(x.name) for x in inputs)})"

"""What holds of every graph, shown on random ones; and the memory of a program, byte by byte.

To look for more, run `check(seed)` over other seeds: a failure names its seed.
"""

import tracemalloc
from functools import cache

import numpy as np
import pytest

import symgrad as sg
from symgrad.autodiff.reverse import is_differentiable
from symgrad.ir.evaluate import evaluate
from symgrad.ir.node import apply
from symgrad.ir.record import replace
from symgrad.lowering.lower import lower
from symgrad.lowering.plan import ALIGNMENT
from symgrad.lowering.steps import Call
from symgrad.ops.select import select
from symgrad.passes import DEFAULT, graph_pass
from symgrad.runtime.workspace import allocate
from symgrad.testing import assert_equivalent, random_feeds, random_graph
from symgrad.testing.equality import Run, assert_computes
from symgrad.testing.spellings import edges_of

SEEDS = range(60)
GRADES = ("bits", "values", "rounding", "reals")
# At `reals` a NaN may become a number, so that special values say little there.
TRIALS = [*((grade, False) for grade in GRADES), *((grade, True) for grade in GRADES[:3])]


@cache
def graph_of(seed):
    """Placeholders, outputs with their gradients, and ordinary and special arrays."""
    rng = np.random.default_rng(seed)
    inputs, outputs = random_graph(rng, int(rng.integers(5, 61)))
    wrt = [x for x in inputs if is_differentiable(x)]
    outputs = [*outputs, *sg.grad(outputs[0], wrt, disconnected="zero")]
    return inputs, outputs, [random_feeds(rng, inputs), random_feeds(rng, inputs, special=True)]


@cache
def program_of(seed, grade):
    """The program of such a graph."""
    inputs, outputs, _ = graph_of(seed)
    return sg.compile(inputs, outputs, exact=grade)


def graphs():
    """Each random graph, the seed being told if the body of the loop fails."""
    for seed in SEEDS:
        try:
            yield graph_of(seed)
        except Exception as error:
            error.add_note(f"random graph of seed {seed}")
            raise


def check(seed, grade, special):
    """Whether a graph and its gradients could be compared with what they are compiled to."""
    feeds = graph_of(seed)[2]
    try:
        return assert_computes(program_of(seed, grade), feeds[special], sg.Exact.of(grade))
    except Exception as error:
        error.add_note(f"random graph of seed {seed} at {grade}, special values: {special}")
        raise


@pytest.mark.parametrize(("grade", "special"), TRIALS)
def test_optimised_is_raw(grade, special):
    """Values and gradients, by the README's table of grades; the two backends to the bit."""
    said = sum(check(seed, grade, special) for seed in SEEDS)
    assert said >= 0.85 * len(SEEDS), f"only {said} of {len(SEEDS)} graphs say anything"


def test_what_is_finite_stays_finite():
    """At the ends of the range, too: with inputs near the largest and the smallest numbers."""
    said = points = 0
    for seed, (inputs, _, _) in zip(SEEDS, graphs(), strict=True):
        for arrays in edges_of(inputs)[::7]:
            points += 1
            said += assert_computes(program_of(seed, "rounding"), arrays, sg.Exact.ROUNDING)
    assert said >= 0.85 * points


def test_products_that_underflow_within_blas_are_noticed():
    """No flag tells of them: at such numbers a graph says nothing of digits."""
    x, y = sg.placeholder("x", (3,)), sg.placeholder("y", (3,))
    for a, b, told in (
        ([1e-200, 0, 0], [1e-200, 1, 1], True),
        ([0.0, 1, 0], [1.0, 0, 1], False),
        ([1.0, 1, 0], [1.0, -1, 1], False),
        ([1e-310, 0, 0], [1.0, 0, 0], True),
    ):
        assert Run([x @ y], {x: np.array(a), y: np.array(b)}).extreme is told


def test_random_graphs_are_worth_the_trouble():
    """Nearly every op and every rule occurs in them, every dtype, and both long and short."""
    ops, rules, dtypes, lengths = set(), set(), set(), []
    for seed, (inputs, outputs, _) in zip(SEEDS, graphs(), strict=True):
        nodes = sg.Graph(outputs, inputs).nodes
        ops |= {n.op.name for n in nodes}
        dtypes |= {n.dtype.name for n in nodes if not isinstance(n.type, tuple)}
        lengths.append(len(nodes))
        rules |= {*program_of(seed, "reals").trace.rules()}
    assert len(ops) > 70
    assert len(rules) > 45
    assert {"bool", "int32", "int64", "float32", "float64"} <= dtypes
    assert min(lengths) < 50
    assert max(lengths) > 150


def test_a_seed_gives_the_same_graph():
    one, other = (random_graph(np.random.default_rng(5), 30) for _ in range(2))
    assert sg.Graph(one[1], one[0]) == sg.Graph(other[1], other[0])


def test_printed_then_parsed_is_the_same():
    for seed, (inputs, outputs, _) in zip(SEEDS, graphs(), strict=True):
        for graph in (sg.Graph(outputs, inputs), program_of(seed, "rounding").graph):
            parsed = sg.Graph.parse(graph.text(full=True))
            assert parsed == graph
            assert parsed.text(origins=False) == graph.text(origins=False)


def test_every_pass_leaves_a_sound_graph():
    for seed, (inputs, outputs, _) in zip(SEEDS, graphs(), strict=True):
        program = program_of(seed, "reals")
        assert len(program.trace.stages) == len(DEFAULT) - 1, "hoisting leaves the whole as it is"
        for stage in program.trace.stages:
            stage.after.verify()
            assert stage.after.inputs == tuple(inputs)
            assert [y.type for y in stage.after.outputs] == [y.type for y in outputs]


def test_what_was_simplified_is_simple():
    """A second time changes only what merging left: two operands that are one. A third, nothing."""
    simplify = DEFAULT[: [p.name for p in DEFAULT].index("merge") + 1]
    second = third = 0
    for seed, (inputs, _, _) in zip(SEEDS, graphs(), strict=True):
        stages = program_of(seed, "rounding").trace.stages
        runs = [next(stage.after for stage in stages if stage.name == "merge")]
        for _ in range(2):
            outputs = list(runs[-1].outputs)
            runs.append(sg.compile(inputs, outputs, passes=simplify).graph)
        second += runs[0] != runs[1]
        third += runs[1] != runs[2]
    assert second <= len(SEEDS) / 4
    assert third <= len(SEEDS) / 30


def test_compiling_is_deterministic():
    for seed, (inputs, outputs, _) in zip(SEEDS, graphs(), strict=True):
        one, other = program_of(seed, "rounding"), sg.compile(inputs, outputs)
        assert one.graph == other.graph
        assert one.source == other.source


# ---- the plan -------------------------------------------------------------------------------


def check_plan(plan):
    """Run a plan with marks in place of numbers: on every byte, which slot wrote it last."""
    owner = np.full(plan.arena_bytes, -1)
    slots = plan.slots
    given = {i for i, s in enumerate(slots) if s.kind in ("input", "variable", "constant")}
    written = set(given)

    def memory(ref):
        slot = slots[ref.slot]
        return slice(slot.offset, slot.offset + slot.nbytes)

    def check_read(ref, step):
        slot = slots[ref.slot]
        assert ref.slot in written, f"step {step} reads {slot.name} before it is written"
        if slot.kind == "arena":
            mine = owner[memory(ref)] == ref.slot
            assert mine.all(), f"step {step} reads {slot.name}, which was written over"
            assert slot.first <= step <= slot.last

    def elements(ref):
        found = np.arange(slots[ref.slot].type.size).reshape(slots[ref.slot].type.shape)
        for view in ref.views:
            found = view.op.kernel(found, **dict(view.attrs))
        return found

    def overlap(a, b):
        if a.slot == b.slot:
            if a.views and b.views:  # two parts of what was joined may be equal: one is copied
                return np.intersect1d(elements(a), elements(b)).size > 0
        if slots[a.slot].kind == slots[b.slot].kind == "arena":
            one, other = memory(a), memory(b)
            return one.start < other.stop and other.start < one.stop
        return a.slot == b.slot and slots[a.slot].kind != "scalar"

    for i, step in enumerate(plan.steps):
        for ref in step.operands:
            check_read(ref, i)
        for ref in step.scratch:
            assert slots[ref.slot].kind == "arena"
            assert not any(overlap(ref, r) for r in (*step.operands, *step.results)), f"step {i}"
        for ref in step.results:
            assert ref.slot not in given, f"step {i} writes {slots[ref.slot].name}"
            assert slots[ref.slot].kind != "arena" or slots[ref.slot].offset % ALIGNMENT == 0
            over = [k for k, x in enumerate(step.operands) if overlap(ref, x)]
            for k in over:
                x = step.operands[k]
                assert (x.slot, x.views) == (ref.slot, ref.views), f"step {i}"
                assert isinstance(step, Call), f"step {i}"
                assert isinstance(step.op.kernel, np.ufunc) or over == [k], f"step {i}"
                assert {*over} & {*step.op.storage.in_place}, f"step {i}: {step.name} in place"
            others = [r for r in step.results if r is not ref]
            assert not any(overlap(ref, r) for r in others), f"step {i}"
        for ref in (*step.scratch, *step.results):
            if slots[ref.slot].kind == "arena":
                owner[memory(ref)] = ref.slot
        written |= {r.slot for r in step.results}
    for ref in (*plan.outputs, *plan.updates):
        check_read(ref, len(plan.steps))
        shape = slots[ref.slot].shape
        if shape and not ref.views:
            assert slots[ref.slot].kind in ("output", "next"), "a result lies in borrowed memory"


def test_plans_are_sound():
    in_place = 0
    for seed, (inputs, outputs, _) in zip(SEEDS, graphs(), strict=True):
        for program in (program_of(seed, "rounding"), sg.compile(inputs, outputs, passes=())):
            plan = program.plan
            check_plan(plan)
            in_place += sum(
                r.slot in [x.slot for x in s.operands] for s in plan.steps for r in s.results
            )
    assert in_place > 100


def broken(plan, change):
    """A plan with its second arena slot changed."""
    slots = list(plan.slots)
    arena = [i for i, s in enumerate(slots) if s.kind == "arena"]
    slots[arena[1]] = slots[arena[1]]._replace(**change(slots[arena[0]]))
    return replace(plan, slots=tuple(slots))


def test_the_checker_of_plans_sees_an_overlap():
    x = sg.placeholder("x", (8, 8))
    a = sg.exp(x)
    plan = sg.compile([x], sg.tanh(a @ a.T) @ a, passes=()).plan
    check_plan(plan)
    with pytest.raises(AssertionError, match=r"written over|step"):
        check_plan(broken(plan, lambda first: {"offset": first.offset}))


def test_results_are_the_callers():
    """They share no memory with inputs, with each other, or with what the next call writes."""
    for seed, (_, _, (first, second)) in zip(SEEDS, graphs(), strict=True):
        program = program_of(seed, "rounding")
        kept = [a.copy() for a in first]
        try:
            results = program(*first)
            copies = [np.copy(r) for r in results]
            program(*second)
        except sg.KernelError as error:
            if isinstance(error.__cause__, np.linalg.LinAlgError):
                continue  # a singular matrix
            raise
        for i, (result, copy) in enumerate(zip(results, copies, strict=True)):
            assert np.asarray(result).tobytes() == copy.tobytes()
            for other in (*first, *results[:i]):
                assert not np.may_share_memory(result, other)
        for a, b in zip(first, kept, strict=True):
            assert a.tobytes() == b.tobytes()


def net(n):
    """A two-layer net's training step, on `n` rows."""
    rng = np.random.default_rng(0)
    x, y = sg.placeholder("x", ("N", 60)), sg.placeholder("y", ("N", 30))
    w1 = sg.variable("w1", rng.standard_normal((60, 50)))
    w2 = sg.variable("w2", rng.standard_normal((50, 30)))
    loss = sg.sum((sg.relu(x @ w1) @ w2 - y) ** 2)
    d1, d2 = sg.grad(loss, [w1, w2])
    updates = {w1: w1 - 1e-6 * d1, w2: w2 - 1e-6 * d2}
    step = sg.compile([x, y], [loss, sg.tanh(x @ w1)], updates=updates)
    return step, (rng.standard_normal((n, 60)), rng.standard_normal((n, 30)))


def test_the_arena_is_as_large_as_predicted():
    for seed in SEEDS:
        plan = program_of(seed, "rounding").plan
        arrays = allocate(plan)
        if arrays:
            base = arrays[0]
            while base.base is not None:
                base = base.base
            assert base.nbytes == plan.arena_bytes + ALIGNMENT
        ends = [s.offset + max(s.nbytes, 1) for s in plan.arrays_in_arena()]
        assert max(ends, default=0) <= plan.arena_bytes < max(ends, default=0) + ALIGNMENT


@pytest.mark.parametrize("n", [100, 1000])
def test_the_peak_is_as_predicted(n):
    step, arrays = net(n)
    step(*arrays)  # allocates the arena and the first spare arrays
    plan = step.plan
    tracemalloc.start()
    try:
        results = step(*arrays)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert results[1].nbytes == plan.output_bytes
    # NumPy widens the bytes of a mask in a buffer of its own, of a fixed number of elements.
    most = plan.output_bytes + plan.next_bytes + np.getbufsize() * 8 + 20_000
    assert plan.output_bytes <= peak <= most
    assert peak < plan.output_bytes + plan.next_bytes + plan.arena_bytes // 8 or n < 1000
    assert plan.peak_bytes == plan.arena_bytes + plan.output_bytes + plan.next_bytes


def test_an_arena_is_much_smaller_than_all_values():
    x = sg.placeholder("x", (100, 100))
    y = x
    for _ in range(30):
        y = sg.tanh(y @ x)
    plan = sg.compile([x], y).plan
    assert plan.arena_bytes <= 2 * 100 * 100 * 8


def test_sizes_known_only_in_a_call_are_planned_alike():
    """A graph with a named dimension plans as one with the number."""
    found = []
    for n in ("N", 7):
        x = sg.placeholder("x", (n, 4))
        loss = sg.sum(sg.relu(x @ x.T - 1.0) ** 2)
        graph = sg.compile([x], [loss, sg.grad(loss, x)]).graph
        plan = lower(graph, {"N": 7} if n == "N" else {})
        check_plan(plan)
        found.append([(s.kind, s.type, s.offset) for s in plan.slots])
    assert found[0] == found[1]


def test_evaluation_and_program_agree_on_a_net():
    """The reference of all of this is `evaluate`; here it is held to NumPy written by hand."""
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((5, 4)), rng.standard_normal((4, 3))
    xs, ws = sg.placeholder("x", x.shape), sg.placeholder("w", w.shape)
    loss = sg.sum(sg.relu(xs @ ws) ** 2)
    found = evaluate([loss, sg.grad(loss, ws)], {xs: x, ws: w})
    h = np.maximum(x @ w, 0)
    np.testing.assert_allclose(found[0], (h**2).sum())
    np.testing.assert_allclose(found[1], x.T @ (2 * h))


def test_a_pass_that_changes_a_value_is_caught():
    """`assert_equivalent` fails for a wrong pass, and shows both graphs."""

    @graph_pass
    def doubles(graph):
        """Wrong."""
        return sg.Graph([y * 2 for y in graph.outputs], graph.inputs)

    x = sg.placeholder("x", 3)
    with pytest.raises(AssertionError) as caught:
        assert_equivalent([x], [sg.exp(x)], [np.ones(3)], passes=[doubles])
    assert "raw:" in str(caught.value)
    assert "multiply" in str(caught.value)


# ---- what random graphs have found in the rest of the house ---------------------------------


def test_a_selection_by_a_smaller_mask_is_moved_whole():
    """The cotangent of a selection is moved as mask and value, both of its full shape."""
    mask, x = sg.placeholder("mask", (), "bool"), sg.placeholder("x", (3, 4))
    loss = sg.sum(sg.sum(select(mask, sg.reshape(x, (4, 3))), axis=0) ** 2)
    a = np.random.default_rng(0).standard_normal((3, 4))
    found = sg.compile([mask, x], sg.grad(loss, x))(True, a)
    columns = a.reshape(4, 3).sum(axis=0)
    np.testing.assert_allclose(found, np.tile(2 * columns, 4).reshape(3, 4))


def test_what_is_sorted_along_with_another_is_a_float():
    """Of elements that tie it is the mean, which an integer cannot hold."""
    order = sg.sort(sg.placeholder("x", 3))
    back = sg.Graph(sg.grad(sg.sum(order**2), order.inputs[0])).nodes
    (op,) = {n.op for n in back if n.op.name == "in_order"}
    whole = sg.placeholder("i", 3, "int64")
    with pytest.raises(sg.DtypeError, match="floats"):
        apply(op, [whole, whole], {"axis": 0, "descending": False, "back": True})

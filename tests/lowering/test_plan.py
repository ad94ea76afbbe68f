"""Plans: what lives where, what is written in place, what is predicted and what is used."""

import tracemalloc

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import SymgradError
from symgrad.lowering.lower import lower
from symgrad.lowering.names import identifier
from symgrad.lowering.schedule import schedule
from symgrad.ops.select import select
from symgrad.runtime.workspace import allocate
from tests.helpers import each, generator, sample


def net(layers=3):
    x = sg.placeholder("x", ("N", 8), "float32")
    ws = [sg.variable(f"w{i}", np.ones((8, 8), "float32") * 0.1) for i in range(layers)]
    h = x
    for w in ws:
        h = sg.relu(h @ w + 1)
    loss = sg.sum(h * h)
    return x, ws, loss


def corpus():
    x = sg.placeholder("x", (6, 4), "float32")
    y = sg.exp(x)
    q, r = divmod(x, 2)
    yield [sg.sum(sg.tanh(y * y) + y.T.T)]
    yield [y, y.T, y[1:], sg.reshape(y.T, 24)]
    yield [sg.where(x > 0, y, x) * y, select(y > 1, x)]
    yield [q * r, q + y, sg.concat([q, r])]
    yield [sg.reshape(sg.exp(y.T), (2, 12)) + 1, y - y, y @ y.T]
    yield [sg.grad(sg.sum(sg.relu(x[::2] * 3) ** 2), x)]
    yield [sg.sum(y, axis=0) * y, sg.max(y, axis=1, keepdims=True) - y]
    _, ws, loss = net()
    yield [loss, *sg.grad(loss, ws)]


GRAPHS = list(corpus())


@each("i", range(len(GRAPHS)))
@each("passes", [None, ()], ids=["optimised", "raw"])
def test_nothing_that_will_be_read_is_written_over(i, passes):
    """Run a plan with a memory of who wrote each byte: every step reads what was meant for it."""
    graph = sg.Graph(GRAPHS[i])
    fed = [n for n in graph.inputs if not isinstance(n, sg.Variable)]
    plan = sg.compile(fed, list(graph.outputs), passes=passes).graph
    plan = lower(plan, {"N": 5} if any(n.tensor.names for n in fed) else {})
    owner = np.full(plan.arena_bytes, -1)
    written = {}

    def places(ref):
        slot = plan.slots[ref.slot]
        return slice(slot.offset, slot.offset + slot.nbytes) if slot.kind == "arena" else None

    for number, step in enumerate(plan.steps):
        for ref in step.operands:
            where = places(ref)
            if where is not None and owner[where].size:
                assert set(owner[where]) == {written[ref.slot]}, (number, plan)
        for ref in (*step.scratch, *step.results):
            where = places(ref)
            if where is not None:
                owner[where] = number
                written[ref.slot] = number
    for ref in plan.outputs:
        assert plan.slots[ref.slot].kind != "arena", "outputs are the caller's"


@pytest.mark.parametrize("i", range(len(GRAPHS)))
def test_results_do_not_depend_on_what_memory_held(i):
    """A workspace full of NaN and one full of ones give the same."""
    graph = sg.Graph(GRAPHS[i])
    fed = [n for n in graph.inputs if not isinstance(n, sg.Variable)]
    program = sg.compile(fed, list(graph.outputs))
    shapes = [tuple(5 if not isinstance(s, int) else s for s in n.shape) for n in fed]
    arrays = [sample(generator("memory"), s, n.dtype) for s, n in zip(shapes, fed, strict=True)]
    expected = program(*arrays)
    (ready,) = program.executables.used
    for byte in (0, 0xFF, 0x3F):
        for array in ready.free[0]:
            array.view(np.uint8).fill(byte)
        for a, b in zip(program(*arrays), expected, strict=True):
            assert a.tobytes() == b.tobytes()


def test_elementwise_chains_run_in_place():
    x = sg.placeholder("x", (100, 100))
    y = sg.tanh(sg.exp(sg.sin(x)) + 1)
    plan = lower(sg.Graph([sg.sum(y * y)]), {})
    assert plan.arena_bytes == 80_000
    assert len(plan.arrays_in_arena()) == 1


def test_what_is_read_through_a_view_is_not_written_over():
    """NumPy would see the overlap and copy the operand first."""
    y = sg.exp(sg.placeholder("x", (30, 30)))
    plan = lower(sg.Graph([sg.sum(sg.tanh(y.T))]), {})
    assert len(plan.arrays_in_arena()) == 2


def test_an_operand_read_twice_or_through_a_view_is_not_written_over():
    x = sg.placeholder("x", (3, 3))
    y = sg.exp(x)
    program = sg.compile(x, [sg.sum(sg.tanh(y + y.T)), sg.sum(sg.where(y > 1, y, y.T))], passes=())
    a = np.arange(9.0).reshape(3, 3) / 9
    e = np.exp(a)
    found = program(a)
    np.testing.assert_allclose(found, [np.tanh(e + e.T).sum(), np.where(e > 1, e, e.T).sum()])


def test_the_peak_is_what_is_allocated():
    """What a plan predicts, a call takes, but for the small change of Python."""
    x = sg.placeholder("x", ("N", 512))
    w = sg.variable("w", np.ones((512, 512)))
    y = sg.tanh(x @ w)
    program = sg.compile(x, [y, sg.sum(y.T @ sg.exp(y), axis=0)], updates={w: w * 0.5})
    fed = np.ones((300, 512))
    program.save_source  # noqa: B018
    program.executables.of({"N": 300}).function  # noqa: B018
    tracemalloc.start()
    try:
        program(fed)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    expected = program.plan.peak_bytes
    assert expected <= peak <= expected + 50_000
    workspace = allocate(program.plan)
    assert all(a.ctypes.data % 64 == 0 for a in workspace)


def test_a_plan_explains_itself():
    x, ws, loss = net(1)
    program = sg.compile(x, loss, updates={ws[0]: ws[0] - sg.grad(loss, ws[0])})
    program(np.ones((4, 8), "float32"))
    text = str(program.plan)
    assert text.startswith(f"plan for N = 4: {len(program.plan.steps)} steps\narena ")
    assert "test_plan.py:" in text
    assert "matmul" in text
    assert f"peak {program.plan.peak_bytes}" in text
    assert repr(program.plan).startswith("<Plan of ")


def test_a_schedule_knows_all_sizes():
    x = sg.placeholder("x", ("N", "2*N + 1"))
    tasks, _ = schedule(sg.Graph([sg.sum(x[1:], axis=0)]), {"N": 3})
    assert [t.type.shape for t in tasks] == [(3, 7), (2, 7), (7,)]
    with pytest.raises(sg.ShapeError, match=r"slice .*test_plan\.py.* with N = 0"):
        schedule(sg.Graph([x[1:]]), {"N": 0})


@each(
    ("name", "expected"),
    [("x", "x"), ("", "_unnamed"), ("1", "_1"), ("a b", "a_b"), ("λ", "_unnamed"), ("__x", "_x"),
     ("class", "class_"), ("np", "np_"), ("self", "self_"), ("step", "step_"), ("match", "match_"),
     ("print", "print_"), ("x" * 100, "x" * 80), ("select", "select_"), ("__debug__", "_debug__")],
)  # fmt: skip
def test_identifiers(name, expected):
    assert identifier(name) == expected


def test_names_that_become_alike_are_told_apart():
    xs = [sg.placeholder(n, 2) for n in ("a b", "a-b", "a_b", "a_b1", "λ", "μ", "w_next")]
    w = sg.variable("w", np.zeros(2))
    plan = sg.compile(xs, sum(xs, w), updates={w: w + 1}).plan
    names = [plan.slots[i].name for i in (*plan.inputs, *plan.variables, *plan.nexts)]
    assert len(set(names)) == len(names) == 9
    assert all(n.isidentifier() for n in names)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "make", [sg.relu, lambda x: sg.maximum(x, -1.5), lambda x: sg.minimum(2, x)]
)
def test_a_large_extremum_reads_a_row_of_its_constant(make, dtype):
    x = sg.placeholder("x", (400, 100), dtype)
    program = sg.compile(x, make(x), exact="bits")
    (step,) = program.plan.steps
    assert {program.plan.slots[r.slot].shape for r in step.operands} == {(400, 100), (100,)}
    hostile = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, -1.5, 2, 1e-310], dtype)
    array = np.random.default_rng(0).choice(hostile, x.shape)
    raw = sg.compile(x, make(x), passes=())
    for got in (program(array), sg.compile(x, make(x), backend="reference")(array)):
        assert got.tobytes() == make(sg.constant(array)).__array__().tobytes()
    assert raw(array).tobytes() == program(array).tobytes()


@pytest.mark.parametrize("passes", [(), None])
def test_a_dimension_that_no_input_has_is_refused(passes):
    nodes = [sg.zeros(("M",)), sg.placeholder("x", 3) + sg.Graph.parse(SIZE).outputs[0]]
    for node in nodes:
        inputs = list(sg.Graph([node]).inputs)
        with pytest.raises(SymgradError, match="size of M"):
            sg.compile(inputs, node, passes=passes)


SIZE = "n0: float64[()] = size_of(dim=M, dtype=float64)\nreturn n0"


def test_a_plan_keeps_no_rows_of_one_number_that_are_long():
    for size in (2**34, 2**58):
        x = sg.placeholder("x", (1, size))
        for node in (sg.sum(x, axis=1), sg.maximum(x, 0.5), sg.relu(x)):
            plan = sg.compile(x, node).plan
            assert all(np.size(s.value) < 2**25 for s in plan.slots if s.kind == "constant")

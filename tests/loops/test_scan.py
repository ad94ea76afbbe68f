"""Every loop against the same graph unrolled: values, derivatives, batches, programs, files."""

import pickle
import tracemalloc

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.evaluate import evaluate
from symgrad.testing import check_grads

LENGTHS = (0, 1, 2, 7)
DTYPES = ("float32", "float64", "complex128")


def draw(rng, shape, dtype):
    found = rng.uniform(-1, 1, shape)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * rng.uniform(-1, 1, shape)
    return found.astype(dtype)


class Case:
    """A recurrence with all that a loop has, written as a loop and unrolled."""

    def __init__(self, length, dtype="float64", reverse=False, named=False):
        rng = np.random.default_rng(length)
        self.length, self.reverse = length, reverse
        size = "T" if named else length
        self.x = sg.placeholder("x", (size, 2, 3), dtype)
        self.w = sg.placeholder("w", (3, 3), dtype)
        self.h = sg.placeholder("h", (2, 3), dtype)
        self.c = sg.placeholder("c", (), dtype)
        self.inputs = [self.x, self.w, self.h, self.c]
        self.arrays = [draw(rng, (length, 2, 3), dtype), draw(rng, (3, 3), dtype)]
        self.arrays += [draw(rng, (2, 3), dtype), draw(rng, (), dtype)]
        self.feeds = dict(zip(self.inputs, self.arrays, strict=True))

    def step(self, carry, x):
        h, c = carry["h"], carry["c"]
        z = sg.tanh(h @ self.w + x * 0.5)
        c = c * 0.5 + sg.sum(z * x)
        return {"h": z * 0.5 + h * c * 0.1, "c": c}, (z * self.w[0], c)

    def looped(self):
        carry, (a, b) = sg.scan(self.step, {"h": self.h, "c": self.c}, self.x, reverse=self.reverse)
        return [carry["h"], carry["c"], a, b]

    def unrolled(self):
        carry, rows = {"h": self.h, "c": self.c}, {}
        order = range(self.length)
        for t in reversed(order) if self.reverse else order:
            carry, rows[t] = self.step(carry, self.x[t])
        a, b = (
            sg.stack([rows[t][i] for t in order])
            if self.length
            else sg.zeros((0, *shape), dtype=self.h.dtype)
            for i, shape in enumerate(((2, 3), ()))
        )
        return [carry["h"], carry["c"], a, b]

    def loss(self, ys):
        return sum(sg.sum(sg.real(sg.square(y) * (i + 1))) for i, y in enumerate(ys))

    def same(self, found, expected, scale=100):
        pairs = zip(evaluate(found, self.feeds), evaluate(expected, self.feeds), found, strict=True)
        for a, b, node in pairs:
            assert np.shape(a) == np.shape(b)
            assert a.dtype == b.dtype == node.dtype
            eps = np.finfo(a.dtype).eps * scale
            np.testing.assert_allclose(a, b, rtol=eps, atol=eps * max(1, np.abs(b).max(initial=0)))


@pytest.fixture(params=[(t, d) for t in LENGTHS for d in DTYPES], ids=str)
def case(request):
    return Case(*request.param)


def test_values(case):
    case.same(case.looped(), case.unrolled())


@pytest.mark.parametrize("length", LENGTHS)
def test_in_reverse(length):
    case = Case(length, reverse=True)
    found, expected = case.looped(), case.unrolled()
    case.same(found, expected)
    derived = [sg.grad(case.loss(ys), case.inputs, disconnected="zero") for ys in (found, expected)]
    case.same(*map(list, derived))


def test_gradients_to_third_order(case):
    losses = [case.loss(case.looped()), case.loss(case.unrolled())]
    for order in (1, 2, 3):
        grads = [sg.grad(y, case.inputs, disconnected="zero") for y in losses]
        case.same(*map(list, grads), scale=10_000**order)
        losses = [sum(sg.sum(sg.real(g * sg.conj(g))) for g in found) for found in grads]


@pytest.mark.parametrize("length", [1, 2, 7])
def test_gradients_to_third_order_are_right_to_the_last_digits(length):
    case = Case(length)
    losses = [case.loss(case.looped()), case.loss(case.unrolled())]
    for _ in range(3):
        grads = [sg.grad(y, case.inputs) for y in losses]
        for g in grads:
            assert max(np.abs(v).max() for v in evaluate(g, case.feeds)) > 0.1
        found, expected = (evaluate(g, case.feeds) for g in grads)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11 * np.abs(b).max())
        losses = [sum(sg.sum(g * g) for g in found) for found in grads]


@pytest.mark.parametrize("wrt", range(4))
def test_forward_mode(case, wrt):
    x = case.inputs[wrt]
    derived = []
    for ys in (case.looped(), case.unrolled()):
        derived.append(sg.jvp(ys, [x], [x * 0.5], disconnected="zero"))
    case.same(*map(list, derived))


def test_second_order_by_both_modes():
    case = Case(3)
    losses = [case.loss(case.looped()), case.loss(case.unrolled())]
    over = [sg.hvp(y, case.inputs, case.inputs) for y in losses]
    case.same(*map(list, over), scale=1000)
    case.same(*([sg.hessian(y, case.h)] for y in losses), scale=1000)
    ys = [case.looped()[2], case.unrolled()[2]]
    for x in (case.w, case.c, case.x):
        case.same(*([sg.jacobian(y, x)] for y in ys), scale=1000)


def test_forward_over_forward_and_reverse_over_forward():
    case = Case(3)
    found = []
    for y in (case.loss(case.looped()), case.loss(case.unrolled())):
        first = sg.jvp([y], [case.w], [case.w])[0]
        found.append([*sg.jvp([first], [case.h], [case.h]), *sg.grad(first, case.inputs)])
    case.same(*found, scale=1000)


def test_the_last_of_a_stack():
    case = Case(4)
    losses = [sg.sum(ys[2][-1] ** 2) + ys[3][0] for ys in (case.looped(), case.unrolled())]
    case.same(*(list(sg.grad(y, case.inputs)) for y in losses))


def test_against_differences():
    case = Case(3)

    def function(*xs):
        case.x, case.w, case.h, case.c = xs
        return case.loss(case.looped())

    check_grads(function, *case.arrays)


@pytest.mark.parametrize("batched", [(0,), (1,), (2,), (3,), (0, 2), (0, 1, 2, 3)], ids=str)
def test_vmap(batched):
    case, size = Case(3), 4
    rng = np.random.default_rng(1)
    many = [sg.placeholder(f"many{i}", (size, *case.inputs[i].shape)) for i in batched]
    arrays = [rng.uniform(-1, 1, m.shape) for m in many]
    names = ["x", "w", "h", "c"]

    def function(*rows):
        mine = Case(3)
        vars(mine).update({n: getattr(case, n) for n in names})
        vars(mine).update({names[i]: row for i, row in zip(batched, rows, strict=True)})
        ys = mine.looped()
        grads = sg.grad(mine.loss(ys), [mine.h, mine.w, mine.x, mine.c])
        return tuple(ys) + tuple(grads)

    found = evaluate(sg.vmap(function)(*many), case.feeds | dict(zip(many, arrays, strict=True)))
    single = [case.inputs[i] for i in batched]
    outputs = function(*single)
    for k in range(size):
        feeds = case.feeds | dict(zip(single, (a[k] for a in arrays), strict=True))
        for a, b in zip(found, evaluate(outputs, feeds), strict=True):
            np.testing.assert_allclose(a[k], b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("passes", [{"passes": ()}, {}], ids=["raw", "optimised"])
@pytest.mark.parametrize("backend", ["reference", "numpy"])
@pytest.mark.parametrize("named", [False, True])
def test_programs(case, passes, backend, named):
    dtype = str(case.h.dtype)
    mine = Case(case.length, dtype, named=named)
    ys = mine.looped()
    grads = sg.grad(mine.loss(ys), mine.inputs)
    program = sg.compile(mine.inputs, [*ys, *grads], backend=backend, **passes)
    expected = case.unrolled()
    expected += sg.grad(case.loss(expected), case.inputs, disconnected="zero")
    eps = np.finfo(dtype).eps * 1000
    for _ in range(2):
        found = program(*mine.arrays)
        for a, b in zip(found, evaluate(expected, case.feeds), strict=True):
            assert a.shape == b.shape
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=eps, atol=eps * max(1, np.abs(b).max(initial=0)))


def test_one_program_for_every_named_length():
    case = Case(2, named=True)
    ys = case.looped()
    program = sg.compile(case.inputs, [*ys, *sg.grad(case.loss(ys), case.inputs)])
    assert len(program.graph.nodes) < 60
    for length in (0, 1, 2, 3, 50):
        other = Case(length)
        expected = other.unrolled()
        expected += sg.grad(other.loss(expected), other.inputs, disconnected="zero")
        for a, b in zip(program(*other.arrays), evaluate(expected, other.feeds), strict=True):
            np.testing.assert_allclose(
                a, b, rtol=1e-11, atol=1e-11 * max(1, np.abs(b).max(initial=0))
            )


def test_a_loop_is_a_for_in_the_source_whatever_its_length():
    short, long = (Case(t) for t in (10, 1000))
    lines = []
    for case in (short, long):
        ys = case.looped()
        program = sg.compile(case.inputs, [*ys, *sg.grad(case.loss(ys), case.inputs)])
        # Comments say which arrays share a place, and that depends on their sizes.
        lines.append(sum(not line.lstrip().startswith("#") for line in program.source.split("\n")))
        assert f"in range({case.length}):" in program.source
        assert f"in range({case.length - 1}, -1, -1):" in program.source
    assert lines[0] == lines[1]


def test_texts_files_and_pickles(tmp_path):
    case = Case(3, named=True)
    ys = case.looped()
    graph = sg.Graph([*ys, *sg.grad(case.loss(ys), case.inputs)], case.inputs)
    graph.verify()
    assert sg.Graph.parse(graph.text(full=True)) == graph
    assert sg.Graph.load(graph.save(tmp_path / "graph.json")) == graph
    assert pickle.loads(pickle.dumps(graph)) == graph
    program = sg.compile(case.inputs, graph.outputs)
    expected = program(*case.arrays)
    program.save_source(tmp_path / "alone.py", T=3)
    scope = {"__name__": "alone"}
    exec((tmp_path / "alone.py").read_text(), scope)
    for again in (pickle.loads(pickle.dumps(program)), scope["Program"]()):
        for a, b in zip(again(*case.arrays), expected, strict=True):
            assert np.array_equal(a, b)


def test_the_plan_tells_the_memory():
    n = 100
    x, w, h = (
        sg.placeholder("x", (9, n, n)),
        sg.placeholder("w", (n, n)),
        sg.placeholder("h", (n, n)),
    )

    def step(h, x):
        h = sg.tanh(h @ w + x)
        return h, h

    _, ys = sg.scan(step, h, x)
    program = sg.compile([x, w, h], sg.grad(sg.sum(ys**2), [w, h]))
    arrays = [np.ones((9, n, n)), np.ones((n, n)), np.ones((n, n))]
    plan = program.plan
    (backward,) = [s for s in plan.steps if s.inner and s.turns.reverse]
    assert sum(t.size * 8 for t in backward.turns.scratch) >= 2 * 8 * n * n
    program(*arrays)
    tracemalloc.start()
    result = program(*arrays)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The arena was there; a step that made an array of its own would show.
    assert sum(r.nbytes for r in result) == plan.output_bytes
    assert plan.output_bytes <= peak < plan.output_bytes + 8 * n * n


def test_cost_and_profile_and_check():
    case = Case(6)
    ys = case.looped()
    program = sg.compile(case.inputs, [*ys, *sg.grad(case.loss(ys), case.inputs)])
    unrolled = sg.compile(case.inputs, case.unrolled())
    only = sg.compile(case.inputs, case.looped())
    assert only.cost().after.flops == pytest.approx(unrolled.cost().after.flops, rel=0.2)
    found = program.profile(*case.arrays, runs=3)
    loops = [s for s in found.steps if s.step.name == "loop"]
    assert loops
    assert all(len(s.inner) == len(s.step.inner.steps) for s in loops)
    assert "loop" in str(found)
    assert program.check(*case.arrays)


def test_profile_of_no_steps():
    case = Case(0, named=True)
    program = sg.compile(case.inputs, case.looped())
    assert "loop" in str(program.profile(*case.arrays, runs=2))

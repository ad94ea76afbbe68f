"""What is computed once and kept: the same numbers, never old ones, and no more than is worth."""

import threading

import numpy as np
import pytest

import symgrad as sg
from symgrad.autodiff.reverse import is_differentiable
from symgrad.ir.graph import Graph
from symgrad.ir.walk import topological
from symgrad.passes import DEFAULT, HOIST, graph_pass, hoist
from symgrad.rewrite.driver import rebuild
from symgrad.testing import random_feeds, random_graph
from symgrad.testing.equality import assert_same
from tests.runtime.test_standalone import alone

SEEDS = range(24)
GRADES = ("bits", "values", "rounding", "reals")
ROWS = np.random.default_rng(0).standard_normal((256, 32)).astype("float32")


@graph_pass
def nothing(graph):
    """Leaves the graph as it is. A program keeps nothing if a pass of one's own comes last."""
    return graph


class Fit:
    """Training on all of the data, which is normalised."""

    def __init__(self, **options):
        self.data = sg.variable("data", ROWS)
        self.w = sg.variable("w", np.zeros(32, "float32"))
        y = sg.placeholder("y", 256, "float32")
        self.mean = sg.mean(self.data, axis=0)
        self.x = (self.data - self.mean) / sg.std(self.data, axis=0)
        self.product = self.x @ self.w
        self.loss = sg.mean((self.product - y) ** 2)
        dw = sg.grad(self.loss, self.w)
        self.program = sg.compile([y], self.loss, updates={self.w: self.w - 0.1 * dw}, **options)

    def losses(self, steps=3):
        return [self.program(ROWS[:, 0]) for _ in range(steps)]


def ops(program):
    return [step.name for step in program.plan.steps]


def runs(program):
    """How often the kept part runs from now on: a list that grows."""
    found = []
    executable = program.kept.executables.fixed
    inner = executable.run
    executable.run = lambda *args: found.append(1) or inner(*args)
    return found


# ---- what is kept ---------------------------------------------------------------------------


def test_normalised_data_is_kept():
    fit = Fit()
    assert "divide" not in ops(fit.program)
    assert ops(fit.program.kept)[-2:] == ["subtract", "divide"]
    assert fit.program.kept.plan.output_bytes == ROWS.nbytes
    np.testing.assert_array_equal(fit.program.kept()[0], np.asarray(fit.x))


def test_it_is_computed_once():
    fit = Fit()
    found = runs(fit.program)
    fit.losses(5)
    assert len(found) == 1


def test_results_are_the_same_bytes():
    one, other = Fit(), Fit(passes=(*DEFAULT, nothing))
    assert other.program.kept is None
    assert np.array(one.losses()).tobytes() == np.array(other.losses()).tobytes()
    one.data.value = other.data.value = ROWS[::-1] * 2 + 1
    assert np.array(one.losses()).tobytes() == np.array(other.losses()).tobytes()
    assert one.w.value.tobytes() == other.w.value.tobytes()


def test_views_are_not_kept_but_what_they_show():
    data, x = sg.variable("data", ROWS), sg.placeholder("x", 256, "float32")
    program = sg.compile([x], sg.tanh(data).T @ x)
    assert program.kept.graph.outputs[0].op.name == "tanh"
    assert "kept.T" in program.source


@pytest.mark.parametrize(
    "value",
    [
        lambda v, n: sg.tanh(v[:10, 0]),  # little work
        lambda v, n: v.T,
        lambda v, n: v[:, 0, None] * v[:, 1],  # more than it is made of
        lambda v, n: v * n,
    ],
)
def test_not_worth_keeping(value):
    data, x = sg.variable("data", ROWS), sg.placeholder("x", (), "float32")
    program = sg.compile([x], sg.cos(value(data, x) + x))
    assert program.kept is None
    np.testing.assert_allclose(program(2), np.cos(np.asarray(value(data, 2)) + 2), rtol=1e-5)


def test_what_is_too_large_is_made_of_what_is_kept():
    data, x = sg.variable("data", ROWS), sg.placeholder("x", (), "float32")
    sums = sg.sum(sg.tanh(data), axis=1)
    program = sg.compile([x], sums[:, None] * sums * x, backend="numpy")
    assert program.kept.plan.output_bytes == 256 * 4
    assert ops(program)[:2] == ["multiply", "multiply"]


def test_a_large_variable_makes_no_room_for_products_of_small_ones():
    x, data = sg.placeholder("x", (), "float32"), sg.variable("data", ROWS)
    small = sg.variable("small", ROWS[:100, 0])
    program = sg.compile([x], [sg.sum(data + x), sg.exp(small[:, None] * small + x)])
    assert program.kept is None


def test_not_everything_is_kept():
    data, x = sg.variable("data", ROWS), sg.placeholder("x", (), "float32")
    made = (sg.exp, sg.tanh, sg.sin, sg.cos, sg.atan, sg.expm1)
    program = sg.compile([x], sum(sg.sum(f(data) / (data + x)) for f in made))
    assert program.kept.plan.output_bytes == hoist.MOST_OF_ALL * ROWS.nbytes


def test_what_an_update_changes_is_not_kept():
    data = sg.variable("data", ROWS)
    program = sg.compile([], sg.sum(sg.exp(data)), updates={data: data * 0.5})
    assert program.kept is None


def test_a_size_that_calls_choose_is_not_kept():
    data, x = sg.variable("data", ROWS), sg.placeholder("x", "N", "float32")
    scaled = sg.exp(data) * sg.sum(sg.ones_like(x))
    program = sg.compile([x], sg.sum(scaled) + sg.sum(x))
    one, three = program(np.zeros(1, "float32")), program(np.zeros(3, "float32"))
    np.testing.assert_allclose(three, 3 * one, rtol=1e-5)


def test_users_code_is_not_kept():
    calls = []

    class Noted(sg.NumpyFunction):
        @staticmethod
        def forward(ctx, x):
            calls.append(1)
            return np.tanh(x)

        @staticmethod
        def backward(ctx, g):
            return g

    program = sg.compile([], sg.sum(Noted.apply(sg.variable("data", ROWS))))
    calls.clear()
    program(), program()
    assert len(calls) == 2
    assert program.kept is None


@pytest.mark.parametrize("options", [{"passes": ()}, {"memory_budget": 10**9}])
def test_kept_by_default_only(options):
    assert Fit(**options).program.kept is None


def test_a_pass_of_your_own_does_not_hinder():
    assert Fit(passes=(nothing, *DEFAULT)).program.kept is not None


def test_after_hoisting_come_passes_that_may_run_on_the_parts():
    assert Fit(passes=(*DEFAULT, nothing)).program.kept is None
    assert Fit(passes=(*DEFAULT[:-1], nothing, DEFAULT[-1])).program.kept is None
    assert Fit(passes=[p for p in DEFAULT if p is not HOIST]).program.kept is None
    unfused = Fit(passes=DEFAULT[:-1]).program
    assert "subtract" in ops(unfused.kept)
    assert [s.name for s in unfused.trace.stages][-1] == "shared_masks"


def test_results_that_are_kept_are_the_callers():
    data = sg.variable("data", ROWS)
    program = sg.compile([], [sg.exp(data), sg.sum(sg.exp(data))])
    first, total = program()
    first[:] = 0
    second, again = program()
    np.testing.assert_allclose(second, np.exp(ROWS), rtol=1e-6)
    assert total == again
    assert isinstance(again, np.float32)


# ---- when it is computed again --------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_a_value_that_is_set_is_seen(backend):
    data = sg.variable("data", ROWS)
    program = sg.compile([], sg.sum(sg.exp(data)), backend=backend)
    found = runs(program)
    for factor in (1, 2, 2, 1):
        data.value = factor * ROWS
        np.testing.assert_allclose(program(), np.exp(factor * ROWS).sum(), rtol=1e-5)
        program()
    assert len(found) == 4


@pytest.mark.parametrize("times", [1, 2, 3])
def test_an_update_by_another_program_is_seen(times):
    """Its spare arrays come back: after two updates, where the first value lay, lies the third."""
    data = sg.variable("data", ROWS)
    total = sg.compile([], sg.sum(data * data))
    grow = sg.compile([], [], updates={data: data + 1})
    expected = ROWS
    for _ in range(4):
        np.testing.assert_allclose(total(), (expected**2).sum(dtype="f8"), rtol=1e-5)
        for _ in range(times):
            grow()
            expected = expected + np.float32(1)
    assert total.kept is not None


def test_scalars_are_sources_too():
    data, rate = sg.variable("data", ROWS), sg.variable("rate", np.float32(2))
    program = sg.compile([], sg.sum(sg.tanh(data * rate)))
    for value in (2.0, 3.0):
        rate.value = np.float32(value)
        np.testing.assert_allclose(program(), np.tanh(ROWS * value).sum(), rtol=1e-3)
    assert [v.name for v in program.kept.graph.inputs] == ["data", "rate"]


def test_a_variable_without_a_value_is_named():
    graph = Graph([sg.sum(sg.exp(sg.variable("data", ROWS)))])
    parsed = Graph.parse(graph.text(full=True))
    program = sg.compile([], list(parsed.outputs))
    with pytest.raises(sg.SymbolicError, match="'data' was read from text and has no value"):
        program()
    parsed.inputs[0].value = ROWS
    np.testing.assert_allclose(program()[0], np.exp(ROWS).sum(), rtol=1e-5)


def test_a_variable_set_while_it_is_read_makes_no_mixture():
    data, x = sg.variable("data", ROWS), sg.placeholder("x", (), "float32")
    program = sg.compile([x], sg.max(sg.abs(sg.exp(data) - sg.exp(data + x))))
    executable = program.kept.executables.fixed
    inner = executable.function

    def set_in_between(*arrays):
        data.value = data.value + 1
        return inner(*arrays)

    executable.function = set_in_between
    assert program(0) == 0
    executable.function = inner
    assert program(0) == 0


def test_threads_see_kept_values_and_variables_of_one_moment():
    data, x = sg.variable("data", np.ones((64, 64))), sg.placeholder("x", ())
    # 0 if both are made of the same array.
    program = sg.compile([x], sg.max(sg.abs(sg.sqrt(data) - sg.sqrt(data + x))))
    assert program.kept is not None
    wrong, done = [], threading.Event()

    def look():
        while not done.is_set():
            wrong.extend(filter(None, [program(0.0)]))

    threads = [threading.Thread(target=look) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        for i in range(300):
            data.value = np.full((64, 64), i + 1.0)
    finally:
        done.set()
    for t in threads:
        t.join()
    assert not wrong


# ---- what it says of itself -----------------------------------------------------------------


def test_an_error_is_explained():
    data, b = sg.variable("data", np.zeros((32, 32))), sg.placeholder("b", 32)
    program = sg.compile([b], sg.linalg.inv(data) * b)
    assert program.kept is not None
    for _ in range(2):
        with pytest.raises(sg.KernelError, match=r"(?s)inv\(float64\[32, 32\]\) failed.*test_kept"):
            program(np.ones(32))
    data.value = np.eye(32)
    np.testing.assert_array_equal(program(np.ones(32)), np.eye(32))


def test_the_source_says_what_is_kept():
    fit = Fit()
    first, second, *_ = fit.program.source.splitlines()
    assert first == "# Computed once, and again when data changes, by program.kept.source:"
    assert second.startswith("#   kept: float32[256, 32]  test_kept.py:")
    for number, step in fit.program.executables.shown().source.lines.items():
        assert (
            fit.program.source.splitlines()[number - 1]
            .strip()
            .startswith(("matmul", "subtract", "s", "multiply", "vdot"))
        ), step


def test_why_tells_what_is_kept():
    fit = Fit()
    (story,) = fit.program.why(fit.x).stories
    assert story.verdict.endswith("of program.kept: once, and again when data changes")
    assert [text for _, text in story.code] == ["divide(out, d, out)"]
    (number,) = [n for n, _ in story.code]
    assert "divide(out, d, out)" in fit.program.kept.source.splitlines()[number - 1]
    assert all(s.steps for s in fit.program.why(fit.mean).stories)
    (product,) = fit.program.why(fit.product.inputs[0]).stories
    assert product.verdict == "computed as written, by step 0"
    assert [text for _, text in product.code] == ["matmul(kept, w.reshape(32, 1), a)"]
    line = fit.program.why(story.node.origin.locations[0].line)
    assert "of program.kept" in str(line)
    line = next(s for s in fit.program.source.splitlines() if s.strip().startswith("matmul(kept"))
    assert "built (data - A) / (B / C)" in str(fit.program.why(line))


def test_cost_and_plan_are_of_what_each_call_does():
    fit, other = Fit(), Fit(passes=(*DEFAULT, nothing))
    whole, each = other.program.cost().after, fit.program.cost().after
    assert each.flops + fit.program.kept.cost().after.flops == whole.flops
    assert fit.program.plan.peak_bytes < other.program.plan.peak_bytes


def test_alone_it_is_the_same_to_the_bit(tmp_path):
    fit = Fit()
    text = alone(tmp_path, fit.program, [ROWS[:, 0]], steps=3)
    assert "What symgrad keeps from call to call is computed in each call here." in text


# ---- random graphs --------------------------------------------------------------------------


def with_variables(seed):
    """A random graph whose inputs are half variables, its gradients, an update, and arrays."""
    rng = np.random.default_rng(seed)
    inputs, outputs = random_graph(rng, int(rng.integers(5, 40)))
    arrays = random_feeds(rng, inputs)
    others = random_feeds(rng, inputs)
    becomes = {x: sg.variable(x.name, a) for x, a in zip(inputs[::2], arrays[::2], strict=True)} | {
        x: x for x in inputs[1::2]
    }
    for node in topological(outputs, becomes):
        becomes[node] = rebuild(node, tuple(becomes[n] for n in node.inputs))
    outputs = [becomes[y] for y in outputs]
    variables = [becomes[x] for x in inputs[::2]]
    wrt = [v for v in variables if is_differentiable(v)]
    grads = sg.grad(outputs[0], wrt, disconnected="zero")
    updates = {wrt[-1]: wrt[-1] - 0.01 * grads[-1]} if len(wrt) > 1 else {}
    return inputs[1::2], [*outputs, *grads], updates, variables, arrays, others


def called(program, arrays):
    try:
        return program(*arrays)
    except sg.KernelError as error:  # a singular matrix, here as there
        return str(error).splitlines()[0]


@pytest.mark.parametrize("grade", GRADES)  # arrays are too small for blocks: bytes at each of them
def test_kept_or_not_is_the_same_to_the_bit(grade, monkeypatch):
    monkeypatch.setattr(hoist, "LEAST_WORK", 1)
    seen = 0
    for seed in SEEDS:
        fed, outputs, updates, variables, arrays, others = with_variables(seed)
        one = sg.compile(fed, outputs, updates, exact=grade)
        other = sg.compile(fed, outputs, updates, exact=grade, passes=(*DEFAULT, nothing))
        seen += one.kept is not None
        found = []
        for program in (one, other):
            for v, a in zip(variables, arrays[::2], strict=True):
                v.value = a
            results = [called(program, arrays[1::2]) for _ in range(2)]
            for v, a in zip(variables, others[::2], strict=True):
                v.value = a
                results.append(called(program, others[1::2]))
            found.append(results)
        for a, b in zip(*found, strict=True):
            assert isinstance(a, str) == isinstance(b, str)
            if not isinstance(a, str):
                for x, y in zip(a, b, strict=True):
                    assert_same(x, y, "bits", note=f"seed {seed} at {grade}")
    assert seen > len(SEEDS) // 2

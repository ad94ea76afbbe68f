"""profile: the steps of the plan with their times, and nothing changed by it."""

import json

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import FeedError, KernelError
from symgrad.lowering import tiling
from symgrad.lowering.cost import cost
from symgrad.lowering.tiling import TileLoop
from symgrad.runtime.inspect import machine as rates
from symgrad.runtime.inspect import profile
from symgrad.runtime.inspect.machine import Machine, measured

HERE = "test_profile.py"
MACHINE = Machine({100: 1.0, 200: 3.0}, {"float32": 10.0, "float64": 5.0}, 3e-8)


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """A machine that need not be measured."""
    monkeypatch.setattr(profile, "measured", lambda: MACHINE)


@pytest.fixture
def tiny(monkeypatch):
    """Tiles of a row or two, even of small arrays."""
    monkeypatch.setattr(tiling, "LEAST_BYTES", 0)
    monkeypatch.setattr(tiling, "TILE_BYTES", 300)


class Net:
    """A training step, and arrays for it."""

    def __init__(self, **options):
        rng = np.random.default_rng(0)
        x, y = sg.placeholder("x", ("N", 7)), sg.placeholder("y", ("N", 2))
        self.w = sg.variable("w", rng.standard_normal((7, 2)))
        self.scale = sg.variable("scale", 0.5)
        loss = sg.sum((sg.tanh(x @ self.w) * self.scale - y) ** 2)
        dw, ds = sg.grad(loss, [self.w, self.scale])
        updates = {self.w: self.w - 0.1 * dw, self.scale: self.scale - 0.1 * ds}
        self.program = sg.compile([x, y], loss, updates=updates, **options)
        self.feeds = rng.standard_normal((5, 7)), rng.standard_normal((5, 2))

    def state(self):
        return [a.tobytes() for a in (self.w.value, self.scale.value, *self.feeds)]


def assert_of_the_plan(found, program):
    """The profile has the steps of the plan, with figures that belong together."""
    plan, lines = program.plan, program.source.splitlines()
    assert [s.step for s in found.steps] == list(plan.steps)
    assert sum(s.share for s in found.steps) == pytest.approx(1)
    for step, of in zip(found.steps, cost(plan).steps, strict=True):
        assert step.seconds >= profile.NANOSECOND
        assert lines[step.line - 1].strip().startswith(step.code)
        assert (step.bytes_read, step.bytes_written) == (of.bytes_read, of.bytes_written)
        assert step.gbytes == pytest.approx(step.bytes_moved / step.seconds / 1e9)
        if not isinstance(step.step, TileLoop):
            assert step.flops == of.flops
            assert step.inner == ()


# ---- what is found --------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_steps_are_those_of_the_plan(backend):
    net = Net(backend=backend)
    found = net.program.profile(*net.feeds, runs=3)
    assert_of_the_plan(found, net.program)
    assert (found.runs, found.sizes, found.machine) == (3, {"N": 5}, MACHINE)
    assert found.seconds > 0
    assert found.step_seconds == pytest.approx(sum(s.seconds for s in found.steps))
    product = next(s for s in found.steps if s.step.name == "matmul")
    assert product.code == "matmul(x, w, a)"
    assert product.location.text == "x @ self.w"
    assert product.flops == 2 * 5 * 7 * 2


def test_it_is_of_the_sizes_given():
    net = Net()
    net.program(*net.feeds)
    found = net.program.profile(y=np.ones((9, 2)), x=np.ones((9, 7)), runs=1)
    assert found.sizes == {"N": 9}
    assert_of_the_plan(found, net.program)
    assert net.program.plan.sizes == {"N": 9}


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_nothing_changes(backend):
    net, other = Net(backend=backend), Net(backend=backend)
    before = net.state()
    net.program.profile(*net.feeds, runs=2)
    assert net.state() == before
    for _ in range(3):
        assert net.program(*net.feeds) == other.program(*other.feeds)
        net.program.profile(*net.feeds, runs=1)
    assert net.state() == other.state()


def test_0_d_steps():
    x, y = sg.placeholder("x", ()), sg.placeholder("y", ())
    program = sg.compile([x, y], sg.exp(x * y) + sg.sin(x))
    found = program.profile(0.5, 2, runs=2)
    assert_of_the_plan(found, program)
    assert len(found.steps) == 4
    assert {s.bytes_moved for s in found.steps} == {0}
    assert {s.flops for s in found.steps} == {1}


def test_a_program_without_steps():
    found = sg.compile([], sg.constant(2.0)).profile()
    assert found.steps == found.heaviest == ()
    assert found.step_seconds == 0
    assert "steps 0.0 µs" in str(found)


def test_names_of_the_users_do_not_clash():
    x, y = sg.placeholder("clock", 3), sg.placeholder("clock1_record", 3)
    program = sg.compile([x, y], sg.exp(x) * y)
    found = program.profile(np.ones(3), np.ones(3), runs=1)
    assert [s.code for s in found.steps] == ["exp(clock, out)", "multiply(out, clock1_record, out)"]


def test_kernels_that_are_written_out_are_not_steps():
    x = sg.placeholder("x", (4, 5))
    program = sg.compile(x, sg.grad(sg.sum(sg.relu(x) ** 2 * sg.log_softmax(x)), x))
    assert "\ndef " in program.source.partition("def step")[0]
    assert_of_the_plan(program.profile(np.ones((4, 5)), runs=1), program)


def test_what_is_kept_is_a_program_of_its_own():
    data = sg.variable("data", np.random.default_rng(0).standard_normal((256, 32)))
    w = sg.placeholder("w", 32)
    x = (data - sg.mean(data, axis=0)) / sg.std(data, axis=0)
    program = sg.compile(w, sg.sum(x @ w))
    found = program.profile(np.ones(32), runs=2)
    assert_of_the_plan(found, program)
    assert "matmul(kept, " in " ".join(s.code for s in found.steps)
    kept = program.kept.profile(runs=2)
    assert_of_the_plan(kept, program.kept)
    assert "divide" in {s.step.name for s in kept.steps}


# ---- tiles ----------------------------------------------------------------------------------


def rowwise(rows, threads):
    x, b = sg.placeholder("x", (rows, 8)), sg.placeholder("b", 8)
    e = sg.exp(x * x + b)
    outputs = [e / sg.sum(e, axis=1, keepdims=True), sg.sum(e * x)]
    return sg.compile([x, b], outputs, threads=threads), (np.ones((rows, 8)), np.ones(8))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [12, 13])
def test_steps_within_tiles(tiny, rows, threads):
    program, feeds = rowwise(rows, threads)
    found = program.profile(*feeds, runs=2)
    assert_of_the_plan(found, program)
    (step,) = (s for s in found.steps if isinstance(s.step, TileLoop))
    inner = step.step.inner.steps
    assert [s.step for s in step.inner] == list(inner)
    assert sum(s.seconds for s in step.inner) == pytest.approx(step.seconds)
    assert sum(s.share for s in step.inner) == pytest.approx(step.share)
    assert step.flops == sum(s.flops for s in step.inner)
    lines = program.source.splitlines()
    for part in step.inner:
        assert lines[part.line - 1].strip().startswith(part.code)
    product = next(s for s in step.inner if s.step.name == "exp")
    assert (product.flops, product.bytes_written) == (rows * 8, rows * 8 * 8)


def test_two_groups_that_share_a_function(tiny):
    x, y = sg.placeholder("x", (12, 8)), sg.placeholder("y", (12, 8))
    program = sg.compile([x, y], [sg.sum(sg.exp(x) * x), sg.sum(sg.exp(y) * y)], passes=None)
    found = program.profile(np.ones((12, 8)), np.ones((12, 8)), runs=2)
    groups = [s for s in found.steps if isinstance(s.step, TileLoop)]
    assert all(len(s.inner) == len(s.step.inner.steps) for s in groups)
    assert_of_the_plan(found, program)


# ---- against the machine --------------------------------------------------------------------


def test_what_the_machine_would_need():
    assert MACHINE.seconds(0, 0, "float32") == 0
    assert MACHINE.seconds(0, 50, "float32") == 1.0  # a call
    assert MACHINE.seconds(0, 150, "float32") == 2.0
    assert MACHINE.seconds(0, 600, "float32") == 9.0
    assert MACHINE.seconds(100, 150, "float32") == 10.0
    assert MACHINE.seconds(100, 150, "float64") == 20.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_step_is_compared_with_a_copy_or_a_product(dtype):
    x, y = sg.placeholder("x", (30, 30), dtype), sg.placeholder("y", (30, 30), dtype)
    program = sg.compile([x, y], x @ y)
    (step,) = program.profile(np.ones((30, 30), dtype), np.ones((30, 30), dtype), runs=1).steps
    assert step.reach == pytest.approx(2 * 30**3 / MACHINE.products[dtype] / step.seconds)
    assert step.gflops == pytest.approx(2 * 30**3 / step.seconds / 1e9)


def test_the_machine_is_measured(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(rates, "CALIBRATION", 0)
    monkeypatch.setattr(rates, "COPIES", (64, 2**12))
    monkeypatch.setattr(rates, "MATRIX", 8)
    found = measured()
    assert set(found.copies) == {64, 2**12}
    assert set(found.products) == {"float32", "float64"}
    assert all(x > 0 for x in (*found.copies.values(), *found.products.values(), found.clock))


# ---- shown and saved ------------------------------------------------------------------------


def test_it_prints_as_a_table(tiny):
    program, feeds = rowwise(12, 1)
    found = program.profile(*feeds, runs=2)
    text = str(found)
    assert "µs (medians of 2 runs)" in text.splitlines()[0]
    assert f"{HERE}:" in text
    (heaviest, *_) = found.heaviest
    (row,) = (r for r in text.splitlines() if r.startswith(f"{heaviest:>4} "))
    assert "% * " in row
    assert f"{heaviest:>4}.0" in text


def test_the_heaviest_take_more_than_half():
    net = Net()
    found = net.program.profile(*net.feeds, runs=2)
    shares = [found.steps[i].share for i in found.heaviest]
    assert sum(shares) > 0.5
    assert sum(shares[:-1]) <= 0.5
    assert shares == sorted(shares, reverse=True)


def test_saved_as_json(tiny, tmp_path):
    program, feeds = rowwise(12, 1)
    found = program.profile(*feeds, runs=2)
    path = found.save(tmp_path / "profile.json")
    read = json.loads(path.read_text(encoding="utf-8"))
    assert (read["format"], read["version"]) == ("symgrad-profile", 1)
    assert (read["seconds"], read["runs"], read["sizes"]) == (found.seconds, 2, {})
    assert read["machine"]["copies"] == {"100": 1.0, "200": 3.0}
    assert len(read["steps"]) == len(found.steps)
    for saved, step in zip(read["steps"], found.steps, strict=True):
        for name in (*profile.FIGURES, "inner"):
            expected = getattr(step, name)
            assert len(saved[name]) == len(expected) if name == "inner" else saved[name] == expected
        assert saved["kernel"] == step.step.name
        assert saved["location"]["file"].endswith(HERE)
        assert saved["location"]["line"] == step.location.line


def test_saved_whole_or_not_at_all(tmp_path):
    net = Net()
    found = net.program.profile(*net.feeds, runs=1)
    with pytest.raises(FileNotFoundError, match="make it first"):
        found.save(tmp_path / "nowhere" / "profile.json")
    assert list(tmp_path.iterdir()) == []


# ---- what is refused ------------------------------------------------------------------------


def test_feeding_is_checked_as_in_a_call():
    net = Net()
    with pytest.raises(FeedError, match="missing: 'y'"):
        net.program.profile(net.feeds[0])
    with pytest.raises(FeedError, match=r"axis 0 is 4, not 5"):
        net.program.profile(net.feeds[0], np.ones((4, 2)))
    with pytest.raises(FeedError, match="runs is a whole number from 1 on, not 0"):
        net.program.profile(*net.feeds, runs=0)


class OnesThenZeros(sg.NumpyFunction):
    """Ones on the diagonal in the first call of a program, and zeros from then on."""

    def __init__(self):
        self.diagonals = iter([1.0, 1.0])  # the first one is for the trial of its types

    def forward(self, x):
        return np.eye(len(x)) * next(self.diagonals, 0.0)

    def backward(self, g):
        return g


def test_what_a_kernel_of_the_users_costs_is_not_known():
    x = sg.placeholder("x", (3, 3))
    found = sg.compile(x, sg.exp(OnesThenZeros()(x))).profile(np.ones((3, 3)), runs=1)
    assert found.steps[0].flops is found.steps[0].gflops is None
    assert " ? " in str(found)


def test_errors_are_explained_as_in_a_call():
    x = sg.placeholder("x", (3, 3))
    program = sg.compile(x, sg.linalg.inv(x))
    for call in (program, program.profile):
        with pytest.raises(KernelError, match=f"Singular matrix\n  built at {HERE}"):
            call(np.zeros((3, 3)))
    # The second call of a profile is the first one with a clock.
    program = sg.compile(x, sg.linalg.inv(OnesThenZeros()(x)))
    with pytest.raises(KernelError, match=f"Singular matrix\n  built at {HERE}"):
        program.profile(np.zeros((3, 3)))

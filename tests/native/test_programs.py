"""Programs whose groups run as machine code: the same results, and the same promises."""

import pickle
import tracemalloc

import numpy as np
import pytest

import symgrad as sg
from symgrad.lowering.native import NativeLoop
from symgrad.lowering.steps import Copy
from symgrad.lowering.tiling import TileLoop
from symgrad.native import kernel
from symgrad.runtime.executor import execute
from tests.native.checks import assert_same_bits

pytest.importorskip("llvmlite")

RNG = np.random.default_rng(0)
N, C = 4001, 37
X, Y = (RNG.standard_normal((N, C)).astype(np.float32) for _ in range(2))
x, y = (sg.placeholder(name, ("N", C), "float32") for name in "xy")
b = sg.variable("b", RNG.standard_normal(C).astype(np.float32))


def kinked():
    loss = sg.sum(sg.relu(x * b - y) + sg.abs(x - y) * sg.maximum(x, b))
    return [loss, *sg.grad(loss, [x, b])]


def softmax():
    loss = -sg.sum(sg.nn.log_softmax(x) * y)
    return [loss, sg.grad(loss, x)]


def normed():
    loss = sg.sum(sg.nn.gelu(sg.nn.layer_norm(x, b, b)) * y)
    return [loss, *sg.grad(loss, [x, b])]


def softmax_alone():
    return [sg.nn.softmax(x * 2) * y, sg.logsumexp(x, axis=-1) * 2]


def transposed():
    return [sg.exp(x.T) * y.T + x.T, sg.tanh(x)[1:] * y[1:] * 3]


def parts_of_rows():
    z = sg.roll(x, 1, axis=-1)
    halves = sg.tanh(x[:, :18] * y[:, 36:18:-1]) + z[:, 1:36:2]
    return [halves * 2, sg.abs(z[::-1] - sg.flip(y, axis=1)) * x]


def gates():
    """Slices of a sum that is computed for all gates, as in recurrent cells."""
    z = sg.sigmoid(x * y + b)
    loss = sg.sum(sg.tanh(z[:, :12] * z[:, 12:24]) * y[:, :12] + z[:, 24:36])
    return [loss, sg.grad(loss, x)]


BACKENDS = ("native", "numpy")
PROGRAMS = [kinked, softmax, normed, softmax_alone, transposed, parts_of_rows, gates]


def native_steps(program):
    return [s for s in program.plan.steps if isinstance(s, NativeLoop)]


def assert_near(found, expected):
    for a, e in zip(found, expected, strict=True):
        assert a.dtype == e.dtype
        assert np.shape(a) == np.shape(e)
        scale = np.max(np.abs(e)) + np.sqrt(np.size(a))
        assert np.max(np.abs(np.float64(a) - np.float64(e))) <= 1e-5 * scale


@pytest.mark.parametrize("build", PROGRAMS)
def test_results_are_those_of_numpy_within_rounding(build):
    outputs = build()
    program = sg.compile([x, y], outputs, backend="native")
    found = program(X, Y)
    assert native_steps(program)
    assert_near(found, sg.compile([x, y], outputs, backend="numpy")(X, Y))
    assert_near(found, sg.compile([x, y], outputs, backend="reference", passes=())(X, Y))
    # The rest of the rows is another number, with another tail.
    assert_near(program(X[:100], Y[:100]), sg.compile([x, y], outputs, passes=())(X[:100], Y[:100]))


@pytest.mark.parametrize("build", PROGRAMS)
def test_threads_layouts_and_the_executor_change_no_bit(build):
    outputs = build()
    one, four = (sg.compile([x, y], outputs, backend="native", threads=n) for n in (1, 4))
    expected = one(X, Y)
    four(X, Y)
    shared = [s for s in native_steps(four) if s.piece < s.code.rows]
    assert shared
    assert all(f", {s.piece}, 4)" in four.source for s in shared)
    unaligned = np.frombuffer(b"?" + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(X.shape)
    for program, a in ((four, X), (one, np.asfortranarray(X)), (one, unaligned)):
        for found, e in zip(program(a, Y), expected, strict=True):
            assert_same_bits(np.asarray(found), np.asarray(e))
    shown = four.executables.shown()
    walked = execute(
        shown.plan, [X, Y], [b.value] * len(shown.plan.variables), [], shown.workspace()
    )
    for found, e in zip(walked, expected, strict=True):
        assert_same_bits(np.asarray(found), np.asarray(e))


def test_without_posix_threads_those_of_python_share_rows(monkeypatch):
    monkeypatch.setattr(kernel, "has_team", lambda: False)
    outputs = kinked()
    program = sg.compile([x, y], outputs, backend="native", threads=3)
    found = program(X, Y)
    assert "share(" in program.source
    for a, e in zip(found, sg.compile([x, y], outputs, backend="native")(X, Y), strict=True):
        assert_same_bits(np.asarray(a), np.asarray(e))


def test_at_bits_machine_code_gives_the_bits_of_numpy():
    z = sg.relu(x * b - y) + sg.abs(x - y) * sg.maximum(x, b)
    outputs = [z, sg.where(z > 0, x / b, sg.sqrt(sg.abs(y)))]
    programs = [
        sg.compile([x, y], outputs, exact="bits", backend=backend)
        for backend in ("native", "numpy")
    ]
    given = X.copy()
    given.flat[::7] = RNG.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42], len(given.flat[::7]))
    found, expected = (p(given, Y) for p in programs)
    assert native_steps(programs[0])
    for a, e in zip(found, expected, strict=True):
        assert_same_bits(a, e)
    rounding = sg.compile([x, y], [sg.exp(x) * y + x], exact="bits", backend="native")
    assert_same_bits(rounding(X, Y)[0], np.exp(X) * Y + X)
    (step,) = native_steps(rounding)
    assert {n.op.name for n in step.computes} == {"multiply", "add"}, "exp is left to NumPy"
    assert list(rounding.natives.reasons) == ["exp rounds otherwise than NumPy's"]


def test_threads_share_a_large_op_alone_with_the_bits_of_numpy():
    w, g = (sg.placeholder(n, (300, 400), "float32") for n in "wg")
    arrays = [RNG.standard_normal((300, 400)).astype("f4") for _ in range(2)]
    alone = [w - g, sg.relu(w), w * 3, w / g]
    for y in alone:
        two, one, plain = (
            sg.compile([w, g], y, backend=backend, threads=threads)
            for backend, threads in ((None, 2), (None, 1), ("numpy", 2))
        )
        assert_same_bits(two(*arrays), plain(*arrays))
        assert len(native_steps(two)) == 1, y
        assert not native_steps(one), y
        assert ", 2)" in two.source
    assert not native_steps(sg.compile([w, g], w[:50] - g[:50], backend=None, threads=2))
    # Functions round otherwise than NumPy's, and the number of threads is to change no bit.
    assert not native_steps(sg.compile([w, g], sg.exp(w), backend=None, threads=2))


def test_an_op_alone_for_which_numpy_has_no_loop_is_native_where_it_pays():
    for y in (sg.special.erf(x), sg.sigmoid(x), sg.nn.softplus(x)):
        one, two, insisting, plain = (
            sg.compile(x, y, backend=backend, threads=threads)
            for backend, threads in ((None, 1), (None, 2), ("native", 1), ("numpy", 1))
        )
        np.testing.assert_allclose(one(X), plain(X), rtol=4e-7)
        assert len(native_steps(one)) == 1, y
        for other in (two, insisting):
            assert_same_bits(other(X), one(X))
        assert_same_bits(sg.compile(x, y, backend=None, exact="bits")(X), plain(X))
        one(X[:20])
        assert not native_steps(one), y
    relu = sg.compile(x, sg.relu(x), backend=None, threads=1)
    assert_same_bits(relu(X), np.maximum(X, 0))
    assert not native_steps(relu), "what it saves is too little here"
    insisting = sg.compile(x, sg.relu(x), backend="native")
    assert_same_bits(insisting(X), np.maximum(X, 0))
    assert native_steps(insisting)
    # Complex numbers have no native form, and NumPy has a loop for a cast.
    for z in (sg.where(x > 0, x + 0j, 1j), x.astype("float64")):
        program = sg.compile(x, z, backend="native", threads=1)
        assert_same_bits(program(X), sg.compile(x, z)(X))
        assert not native_steps(program)


@pytest.mark.parametrize("threads", [1, 2])
def test_why_tells_of_an_op_alone_and_of_what_reads_it(threads):
    w = sg.placeholder("w", (C, C), "float32")
    y = sg.special.erf(x @ w)
    z = y @ w
    program = sg.compile([x, w], z, backend=None, threads=threads)
    program(X, X[:C])
    assert native_steps(program)
    for node, number in ((y, 1), (z, 2)):
        assert f"computed as written, by step {number}" in str(program.why(node))


def test_large_groups_are_native_where_it_pays():
    outputs = kinked()
    program = sg.compile([x, y], outputs, backend=None)
    program(X[:20], Y[:20])
    assert not program.native
    program(X, Y)
    code, *_ = program.native
    assert "fmul <16 x float>" in code.ir
    assert code.assembly.count("\n") > 50
    assert "# machine code for" in program.source
    assert "multiply" in program.source
    assert not sg.compile([x, y], outputs).native


def attention(shape):
    q, k, v = (sg.placeholder(name, shape, "float32") for name in "qkv")
    p = sg.nn.softmax(q @ k.mT * 0.125)
    loss = sg.sum((p @ v) ** 2)
    return [q, k, v], [p @ v, *sg.grad(loss, [q, k, v])]


def test_within_tiles_what_lies_between_products_is_native():
    shape = (30, 128, 64)
    inputs, outputs = attention(shape)
    arrays = [RNG.standard_normal(shape).astype(np.float32) for _ in inputs]
    programs = [sg.compile(inputs, outputs, backend=b) for b in BACKENDS]
    found, expected = (p(*arrays) for p in programs)
    assert_near(found, expected)
    assert any(isinstance(s, TileLoop) for s in programs[0].plan.steps)
    assert len(programs[0].native) >= 2
    assert not programs[1].native
    shown = programs[0].executables.shown()
    for a, e in zip(execute(shown.plan, arrays, [], [], shown.workspace()), found, strict=True):
        assert_same_bits(a, e)
    assert "native" in str(programs[0].profile(*arrays, runs=2))


def adam_step():
    w, m = sg.variable("w", X[:60]), sg.variable("m", Y[:60])
    g = sg.grad(sg.sum(sg.relu(x @ w.T) @ w - y), w)
    moment = m * 0.9 + g * 0.1
    return [x, y], {m: moment, w: w - moment / (sg.sqrt(sg.abs(moment)) + 1)}


@pytest.mark.parametrize("which", ["attention", "adam", "rows"])
def test_machine_code_takes_no_more_memory_than_numpy_and_as_much_as_is_planned(which):
    inputs, outputs, updates, arrays = [x, y], [], None, [X, Y]
    if which == "attention":
        inputs, outputs = attention((30, 128, 64))
        arrays = [RNG.standard_normal((30, 128, 64)).astype(np.float32) for _ in inputs]
    elif which == "adam":
        inputs, updates = adam_step()
    else:
        z = sg.roll(x, 1, axis=0)
        outputs = [sg.nn.softmax(z * y), sg.abs(z) - y]
    planned = {}
    for backend in BACKENDS:
        program = sg.compile(inputs, outputs, updates, backend=backend, threads=1)
        tracemalloc.start()
        first = program(*arrays)
        program.executables.shown().free.clear()
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        kept = program(*arrays)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        plan = program.plan
        planned[backend] = plan.peak_bytes
        own = plan.peak_bytes - plan.next_bytes  # the spares are there from the call before
        # NumPy's loops take 64 KiB where they copy what they read; large results begin a page.
        most = 2**16 if backend == "numpy" else 2**12 * len(kept)
        assert abs(peak - before - own) < 20_000 + most, len(first)
    assert planned["native"] <= planned["numpy"]


def test_views_are_read_where_they_lie():
    program = sg.compile([x, y], parts_of_rows(), backend="native")
    program(X, Y)
    assert len(native_steps(program)) == 2
    assert not any(isinstance(s, Copy) for s in program.plan.steps)


def test_the_body_of_a_loop_is_native():
    xs, w = sg.placeholder("xs", (5, 90, 70), "float32"), sg.placeholder("w", (90, 70), "float32")

    def body(carry, row):
        y = sg.tanh(carry * 0.5 + row) * w + sg.exp(-row * row)
        return y, sg.sum(y * y)

    last, sums = sg.scan(body, w, xs)
    loss = sg.sum(last) + sg.sum(sums)
    outputs = [last, sums, *sg.grad(loss, [xs, w])]
    arrays = [RNG.standard_normal(x.shape).astype(np.float32) for x in (xs, w)]
    programs = [sg.compile([xs, w], outputs, backend=b) for b in BACKENDS]
    found, expected = (p(*arrays) for p in programs)
    assert_near(found, expected)
    assert programs[0].native
    assert not programs[1].native


def test_why_tells_of_machine_code_and_of_what_was_left_to_numpy():
    t = sg.tanh(x * 2)
    program = sg.compile([x], [sg.exp(t) + t], backend="native", threads=1)
    program(X)
    text = str(program.why(t))
    assert "by step 0" in text
    assert "native(x" in text
    assert "left to NumPy" not in text
    u = sg.sort(x * 2, axis=1)
    other = sg.compile([x], [sg.exp(u) * u], backend="native")
    other(X)
    assert "left to NumPy, not machine code: sort has no native form" in str(other.why(u))


def test_updates_and_what_is_kept():
    w = sg.variable("w", X)
    fixed = sg.variable("fixed", Y * np.float32(0.1))
    loss = sg.sum(sg.tanh(w * sg.exp(fixed)) ** 2)
    step = w - 0.1 * sg.grad(loss, w)
    programs = []
    for backend in BACKENDS:
        w.value = X
        program = sg.compile([], loss, updates={w: step}, backend=backend)
        programs.append(([program() for _ in range(3)], w.value))
        assert bool(program.native) is (backend == "native")
    (losses, value), (expected_losses, expected) = programs
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)


def test_a_saved_source_imports_numpy_only(tmp_path):
    program = sg.compile([x, y], kinked(), backend="native")
    program(X, Y)
    path = program.save_source(tmp_path / "saved.py")
    text = path.read_text()
    assert "machine code" not in text
    assert "native" not in text
    scope = {}
    exec(compile(text, "saved", "exec"), scope)
    assert "step" in scope


def test_a_pickled_program_is_native_again():
    program = sg.compile([x, y], softmax(), backend="native")
    again = pickle.loads(pickle.dumps(program))
    for a, e in zip(again(X, Y), program(X, Y), strict=True):
        assert_same_bits(np.asarray(a), np.asarray(e))
    assert again.native


def test_profile_cost_and_check_know_native_steps():
    program = sg.compile([x, y], kinked(), backend="native")
    program(X, Y)
    assert "native" in str(program.profile(X, Y, runs=3))
    assert program.cost().after.flops > 0
    assert program.check(X, Y)
    assert "native" in str(program.plan)

"""Programs that JAX runs beside the same that NumPy runs: results, variables, errors, refusals."""

import copy
import gc
import pickle
import re
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import symgrad as sg
from symgrad.backends.jax.device import Device
from tests.helpers import each

jax = pytest.importorskip("jax")

X = sg.placeholder("x", ("N", 4), "float32")
A = sg.placeholder("a", (3, 3))
BOTH = "jax", "numpy"
INDEX = sg.placeholder("i", 2, "int64")


def net(backend):
    """Two layers that are trained, the data, and the variables."""
    rng = np.random.default_rng(0)
    x, y = sg.placeholder("x", ("N", 7), "float32"), sg.placeholder("y", ("N", 2), "float32")
    draws = (rng.standard_normal(s, dtype="float32") for s in ((7, 5), (5, 2)))
    w, v = (sg.variable(n, a) for n, a in zip("wv", draws, strict=True))
    steps = sg.variable("steps", 0)
    loss = sg.mean((sg.relu(x @ w) @ v - y) ** 2)
    updates = sg.optim.Adam([w, v], lr=1e-2).updates(loss) | {steps: steps + 1}
    data = (
        rng.standard_normal((9, 7), dtype="float32"),
        rng.standard_normal((9, 2), dtype="float32"),
    )
    return sg.compile([x, y], loss, updates=updates, backend=backend), data, [w, v, steps]


def test_a_net_is_trained_as_by_numpy():
    (one, data, variables), (other, _, others) = net("numpy"), net("jax")
    for rows in (9, 9, 4):  # another N compiles again
        given = [a[:rows] for a in data]
        loss, expected = other(*given), one(*given)
        assert type(loss) is np.float32
        np.testing.assert_allclose(loss, expected, rtol=1e-5)
    for v, w in zip(variables, others, strict=True):
        assert isinstance(w.cell.content, jax.Array)
        assert (w.value.dtype, w.value.shape) == (v.dtype, v.shape)
        np.testing.assert_allclose(w.value, v.value, rtol=1e-5, atol=1e-7)
    assert others[2].value == 3
    assert other.feeder.names == one.feeder.names
    assert [e.sizes["N"] for e in other.executables.used] == [9, 4]


def test_numbers_of_64_bits_stay_so_and_results_are_the_callers():
    x = sg.placeholder("x", ("N",))
    program = sg.compile({"x": x}, [x, sg.exp(x), sg.sum(x)], backend="jax")
    given = np.linspace(0, 1, 5)
    same, powers, total = program({"x": given})
    np.testing.assert_allclose(powers, np.exp(given), rtol=1e-15)
    assert type(total) is np.float64
    assert powers.dtype == np.float64
    powers[:] = same[:] = 0
    assert given[4] == 1
    assert jax.numpy.ones(2).dtype == np.float32  # the state of JAX is as it was
    program(x=given)
    assert "function" not in vars(program.executables.used[0])  # the NumPy program is not run
    kept = program.on_device(x=given)
    assert [type(y) for y in kept] == [type(jax.numpy.ones(2))] * 3
    assert kept[1].dtype == np.float64
    assert program(x=kept[1])[0].dtype == np.float64
    assert program.plan.sizes == {"N": 5}
    assert "exp(" in program.source


def test_what_is_kept_was_not_the_memory_of_an_input():
    x, w = sg.placeholder("x", 100), sg.variable("w", np.zeros(100))
    program = sg.compile(x, [], updates={w: x}, backend="jax")
    given = np.ones(100)
    program(given)
    given[:] = 7
    assert w.value.max() == 1
    buffer = np.frombuffer(bytearray(800 + 64), np.uint8)
    start = -buffer.ctypes.data % 64
    aligned = buffer[start : start + 800].view(np.float64)
    aligned[:] = 3
    program(aligned)
    aligned[:] = 7
    assert w.value.max() == 3


def at(offset, size):
    """Numbers in memory that begins so many bytes after a multiple of 64."""
    memory = np.zeros(8 * size + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return memory[start : start + 8 * size].view(float)


def test_large_arrays_are_read_where_they_lie_or_copied_into_memory_that_is_taken_again():
    x, w = sg.placeholder("x", (2**15, 3)), sg.variable("w", np.zeros(2**15))
    program = sg.compile(x, [x, x[:, 0] * 2], updates={w: w + x[:, 1]}, backend="jax")
    size = 8 * 2**15 * 3
    # What XLA reads begins at a multiple of 64 bytes: these rows do not, and the one row does.
    rows = at(8, size).reshape(8, 2**15, 3)
    rows[:] = np.random.default_rng(0).standard_normal(rows.shape)
    aligned = at(0, size // 8).reshape(2**15, 3)
    for hold in (False, True):  # results that are held are not written into
        w.value, total, found = np.zeros(2**15), np.zeros(2**15), []
        for given in rows:
            total += given[:, 1]
            for fed in (given, aligned):
                np.copyto(fed, given)
                found.append(program.on_device(fed))
            w.value = total
            aligned[:] = np.nan
            if not hold:
                found.clear()
        for (same, twice), given in zip(found, rows.repeat(2, axis=0), strict=False):
            np.testing.assert_array_equal(same, given)
            np.testing.assert_array_equal(twice, given[:, 0] * 2)
        np.testing.assert_array_equal(w.value, total)
    # What a thread of XLA's has read, it lets go of when JAX is next given something.
    kept = program.executables.used[0]._pages.kept
    until = time.monotonic() + 20
    while not kept and time.monotonic() < until:
        jax.device_put(rows[0][0]).block_until_ready()
        time.sleep(0.01)
    assert 1 <= len(kept) <= 2
    assert program(x=rows[0].astype("float32"))[0].dtype == np.float64


def test_what_is_kept_outlives_arrays_of_jax_that_the_caller_deletes():
    x, w, v = sg.placeholder("x", 3), sg.variable("w", np.zeros(3)), sg.variable("v", np.zeros(3))
    program = sg.compile(x, [v + x, w], updates={w: x, v: v + x}, backend="jax")
    with jax.enable_x64(True):
        given = jax.numpy.ones(3)
    for array in (*program.on_device(given), given):
        array.delete()
    assert w.value.tolist() == v.value.tolist() == [1, 1, 1]


def test_two_programs_of_numpy_and_of_jax_share_a_variable():
    w = sg.variable("w", np.arange(4.0))
    n = sg.variable("n", 1.0)
    up = sg.compile([], sg.sum(w), updates={w: w + 1, n: n * 2}, backend="jax")
    down = sg.compile([], sg.sum(w * n), updates={w: w - 2, n: n + 1})
    values, number = np.arange(4.0), 1.0
    for _ in range(4):
        assert up() == values.sum()
        values, number = values + 1, number * 2
        assert down() == (values * number).sum()
        values, number = values - 2, number + 1
    np.testing.assert_array_equal(w.value, values)
    w.value = np.zeros(4)
    assert up() == 0
    assert float(np.asarray(sg.sum(w))) == 4


def test_copies_pickles_and_checkpoints(tmp_path):
    program, data, variables = net("jax")
    program(*data)
    path = sg.save_state(tmp_path / "state.npz", variables)
    before = [v.value for v in variables]
    mine, others = copy.deepcopy((program, variables))
    again = pickle.loads(pickle.dumps(program))
    expected = program(*data)
    assert mine(*data) == again(*data) == expected
    assert copy.copy(mine).store is mine.store
    np.testing.assert_allclose(mine.store.updated[0].value, others[0].value)
    sg.load_state(path, variables)
    assert all(np.array_equal(v.value, b) for v, b in zip(variables, before, strict=True))
    assert program(*data) == expected
    assert type(again).__name__ == "JaxProgram"


# ---- failures -------------------------------------------------------------------------------


@each(
    ("build", "array"),
    [
        (lambda: sg.take(np.arange(3.0), INDEX), [0, 9]),
        (lambda: sg.take(np.arange(3.0), INDEX), [-4, 0]),
        (lambda: sg.constant(np.zeros(3)).at[INDEX].add(1.0), [0, 3]),
        (lambda: sg.nn.cross_entropy(np.zeros((2, 3)), INDEX), [0, 3]),
        (lambda: sg.stats.Bernoulli(sg.asarray(INDEX, dtype="float64")).log_prob(1), [0, 2]),
        (lambda: sg.asarray(2) ** INDEX, [0, -1]),
        (lambda: sg.linalg.cholesky(A), -np.eye(3)),
        (lambda: sg.linalg.inv(A), np.zeros((3, 3))),
        (lambda: sg.linalg.svdvals(A), np.full((3, 3), np.nan)),
        (lambda: sg.linalg.svd(A)[0], np.diag([np.inf, 1, 2])),  # of which LAPACK's never ends
        (lambda: sg.linalg.eigh(A)[1], np.full((3, 3), np.nan)),
        (lambda: sg.linalg.solve(A, np.ones(3)), np.ones((3, 3))),
        (
            lambda: sg.while_loop(lambda k: k < 9, lambda k: k + A[0, 0], 0.0, max_steps=3),
            np.eye(3),
        ),
        (lambda: sg.fori(3, lambda k, y: y + sg.take(np.arange(3.0), INDEX[0] + k), 0.0), [1, 0]),
    ],
)
def test_a_step_that_fails_changes_nothing_and_says_what_numpys_says(build, array):
    y, w = build(), sg.variable("w", np.zeros(2))
    (x,) = sg.Graph([y]).inputs
    texts = []
    for backend in ("numpy", "jax"):
        program = sg.compile(
            x, [], updates={w: w + sg.where(sg.sum(y) == 0.75, 2, 1)}, backend=backend
        )
        with pytest.raises(sg.KernelError) as caught:
            program(array)
        assert w.value.tolist() == [0, 0]
        assert re.search(r"\n  built at test_jax_programs\.py:\d+: ", str(caught.value))
        texts.append((type(caught.value), str(caught.value)))
    assert texts[0] == texts[1]
    program([0, 1] if x is INDEX else 2 * np.eye(3) * (4 if "while" in texts[0][1] else 1))
    assert w.value.tolist() == [1, 1]


def test_a_matrix_with_nan_has_a_factor_with_nan():
    program = sg.compile(A, sg.linalg.cholesky(A), backend="jax")
    found = program(np.full((3, 3), np.nan))
    np.testing.assert_array_equal(found, np.where(np.tri(3), np.nan, 0))


@pytest.mark.parametrize("function", [sg.nn.softmax, sg.nn.log_softmax])
def test_rows_with_inf_and_nan_are_as_by_numpy(function):
    rows = [[1, 2, 3], [np.inf, 1, 2], [np.inf, np.inf, 1], [-np.inf, 1, 2], [-np.inf] * 3,
            [np.nan, 1, 2], [np.nan, np.inf, 2], [np.inf, -np.inf, np.nan]]  # fmt: skip
    y = function(A, axis=-1)
    one, other = (sg.compile(A, y, backend=b) for b in ("numpy", "jax"))
    for i in range(6):
        given = np.array(rows[i : i + 3])
        np.testing.assert_allclose(other(given), one(given), rtol=1e-12)


def test_a_next_value_takes_the_memory_of_the_one_before_the_present(monkeypatch):
    """Unless somebody reads that one; what fails leaves the present value, and so does a copy."""
    monkeypatch.setattr("symgrad.backends.jax.program.LEAST_PASSED", 1)
    w, v, u = (sg.variable(n, np.zeros(64)) for n in "wvu")
    one = sg.linalg.cholesky(A)[0, 0]
    steps = {w: w + one, v: v + w, u: w + one}
    program = sg.compile(A, [w, sg.sum(v)], updates=steps, backend="jax")
    place = lambda: w.cell.content.unsafe_buffer_pointer()  # noqa: E731
    places, results, read = [], [], []
    for i in range(8):
        with pytest.raises(sg.KernelError, match="not positive definite"):
            program(np.zeros((3, 3)))
        assert w.value.tolist() == u.value.tolist() == [i] * 64
        results.append(program.on_device(np.eye(3))[0])
        places.append(place())
        if i == 3:
            copy.deepcopy(program)(np.eye(3))
            assert program.check(np.eye(3))
        read.append((w.cell.array, *[w.cell.content, u.cell.content][: i if i < 3 else 0]))
    assert [{*np.concatenate(r).tolist()} for r in read] == [{i + 1} for i in range(8)]
    assert [float(y[0]) for y in results] == [*range(8)]
    assert v.value.tolist() == [28] * 64
    for _ in range(3):
        program(np.eye(3))
        places.append(place())
    assert len({*places[-3:]}) == 2  # two places in turn


def test_values_that_take_memory_in_turn_are_shared_with_numpy_and_with_threads(monkeypatch):
    monkeypatch.setattr("symgrad.backends.jax.program.LEAST_PASSED", 1)
    w = sg.variable("w", np.zeros(512))
    up = sg.compile([], [], updates={w: w + 1}, backend="jax")
    total = [sg.compile([], sg.sum(w), backend=b) for b in BOTH]
    other = sg.compile([], sg.sum(w), updates={w: w + 1})
    with ThreadPoolExecutor(4) as pool:
        work = [pool.submit(p) for _ in range(40) for p in (up, *total, up, other)]
        assert all(float(f.result() or 0) % 512 == 0 for f in work)
    assert w.value.tolist() == [120] * 512


@pytest.mark.parametrize("size", [4, 2**14, 2**18])  # the memory of large ones is passed on
def test_an_interrupt_leaves_all_or_nothing(size):
    variables = [sg.variable(n, np.zeros(size, "float32")) for n in "abc"]
    program = sg.compile(
        [], sg.sum(variables[0]), updates={v: v + 1 for v in variables}, backend="jax"
    )
    program()
    rng, interrupts = np.random.default_rng(0), 0
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        while interrupts < 50:
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 1e-3))
                while True:
                    program()
            except KeyboardInterrupt:
                interrupts += 1
            assert len({float(x) for v in variables for x in v.value[:: size // 4]}) == 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert jax.numpy.ones(2).dtype == np.float32


def test_an_interrupt_leaves_the_options_of_jax():
    """At whatever instruction it comes, of those that set them and set them back."""
    device = Device(None)

    def options():
        config = jax.config
        wide, ranks = config.jax_enable_x64, config.jax_numpy_rank_promotion
        traced = jax.make_jaxpr(lambda: jax.numpy.sin(1.0))()  # without any, constants are folded
        return wide, ranks, config.jax_default_device, str(traced)

    def interrupted(at):
        """Whether so many instructions were run before the end."""
        count = 0

        def trace(frame, event, _):
            nonlocal count
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            count += event == "opcode"
            if count == at:
                sys.settrace(None)
                raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        gc.disable()  # what it calls is none of this
        sys.settrace(trace)
        try:
            with device.here():
                pass
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
            gc.enable()
        return False

    before = options()
    with device.here():
        assert options() != before
    at = 1
    while interrupted(at):
        assert options() == before, f"at instruction {at}"
        at += 1
    assert at > 100


# ---- refusals -------------------------------------------------------------------------------


def test_what_is_fed_lies_within_its_range_in_every_call():
    x = sg.placeholder("x", ("N",), within=(0, 1))
    program = sg.compile(x, sg.sum(x), backend="jax")
    for array in (np.full(3, 0.5), jax.numpy.full(3, 0.5)):
        for _ in range(2):
            assert program(array) == 1.5
            with pytest.raises(sg.FeedError, match="declared within"):
                program(array + 5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"exact": "bits"}, "exact='bits' is not for backend='jax'"),
        ({"exact": "values"}, "exact='values' is not for"),
        ({"memory_budget": 10**9}, "memory_budget is not for backend='jax'"),
        ({"threads": 2}, "threads is not for backend='jax'"),
        ({"device": "abacus"}, "there is no device 'abacus'; JAX has 'cpu:0'"),
        ({"device": "cpu:7"}, "there is no device 'cpu:7'"),
        ({"device": "cpu:-1"}, "there is no device 'cpu:-1'"),
        ({"device": "cpu:"}, "there is no device 'cpu:'"),
        ({"device": ""}, "there is no device ''"),
        ({"device": "cpu:0", "shard": {"N": 1}}, "not 'cpu:0': write device='cpu'"),
    ],
)
def test_what_is_refused(options, words):
    with pytest.raises(sg.GraphError, match=re.escape(words)):
        sg.compile(X, X + 1, backend="jax", **options)


def test_a_device_is_for_jax_alone_and_jax_is_to_be_installed(monkeypatch):
    with pytest.raises(sg.GraphError, match="are for backend='jax'"):
        sg.compile(X, X + 1, device="cpu")
    assert sg.compile(X, X + 1, backend="jax", device="cpu:0")(np.zeros((1, 4), "f4")).sum() == 4
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(sg.UnsupportedError, match=r"pip install 'symgrad\[jax\]'"):
        sg.compile(X, X + 1, backend="jax")


def test_numbers_of_more_than_64_bits_are_refused_by_node():
    x = sg.placeholder("x", 3, np.longdouble)
    if x.dtype.itemsize > 8:
        with pytest.raises(sg.UnsupportedError, match=r"JAX has no .*\n  built at test_jax"):
            sg.compile(x, x + 1, backend="jax")


def test_steps_are_not_timed_and_nodes_are_checked():
    program = sg.compile(X, sg.sum(sg.log(X)), backend="jax")
    with pytest.raises(sg.UnsupportedError, match=r"jax\.profiler"):
        program.profile(np.ones((1, 4), "f4"))
    found = program.check(np.zeros((1, 4), "f4"))
    assert not found
    assert "log made inf" in str(found)
    assert program.check(jax.numpy.ones((2, 4)))


def test_calls_from_several_threads_take_turns():
    table = np.arange(4096.0)  # too large to be written into the program
    total, x = sg.variable("total", 0.0), sg.placeholder("x", 2)
    y = sg.sum(x * sg.take(sg.constant(table), sg.astype(x * 0 + [0, 1], "int64")))
    program = sg.compile(x, y, updates={total: total + sg.sum(x)}, backend="jax")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: float(program(np.full(2, k))), np.arange(40.0)))
    assert found == np.arange(40.0).tolist()
    assert total.value == 2 * np.arange(40).sum()
    assert jax.numpy.ones(2).dtype == np.float32


def test_a_loss_and_its_gradient_take_exponentials_once():
    """XLA takes nothing apart that softmax and log_softmax have in common."""
    loss = -sg.mean(sg.sum(sg.stop_gradient(sg.exp2(X)) * sg.log_softmax(X, axis=1), axis=1))
    program = sg.compile(X, sg.value_and_grad(loss, X), backend="jax")
    made = [n.op.name for n in program.graph.nodes]
    assert made.count("exp") == 1
    assert not {"softmax", "log_softmax"} & {*made}
    given = np.array([[0, 1, np.inf, 2], [-np.inf, 0, 1e30, 3], [1, 2, 3, 4]], "f4")
    for mine, theirs in zip(
        program(given), sg.compile(X, sg.value_and_grad(loss, X))(given), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_errors_of_jax_are_told_in_words_of_this_program():
    """With options of JAX's that a program cannot follow, and arrays that JAX has deleted."""
    total = sg.variable("total", 0.0)
    program = sg.compile(X, sg.log(X), updates={total: total + 1}, backend="jax")
    good = np.ones((2, 4), "f4")
    program(good)
    with (
        jax.disable_jit(),
        pytest.raises(sg.UnsupportedError, match=r"jax\.disable_jit\(\) forbids"),
    ):
        program(good)
    with jax.debug_nans(True), pytest.raises(sg.KernelError, match=r"nan was computed.*check\("):
        program(-good)
    with jax.debug_infs(True), pytest.raises(sg.KernelError, match="inf was computed"):
        program.on_device(0 * good)
    gone = jax.numpy.ones((2, 4))
    gone.delete()
    with pytest.raises(sg.FeedError, match="is there no more: Array has been deleted"):
        program(gone)
    with (
        jax.transfer_guard("disallow"),
        pytest.raises(sg.UnsupportedError, match=r"jax\.transfer_guard forbids .*host-to-device"),
    ):
        program(good)
    assert total.value == 1
    fresh = sg.compile(X, total, updates={total: total + 1}, backend="jax")
    with jax.transfer_guard("disallow"):
        assert fresh(good) == 1


def test_options_of_jax_that_a_program_need_not_follow_are_for_the_caller_alone(tmp_path):
    y = sg.mean(sg.exp(X) + sg.sum(X, axis=0))
    with jax.numpy_rank_promotion("raise"):
        program = sg.compile(X, y, backend="jax")
        assert program(np.zeros((2, 4), "f4")) == 1
        assert jax.config.jax_numpy_rank_promotion == "raise"
        assert program.export(tmp_path / "m").exists()
    # Within a function that JAX traces it runs once, and leaves numbers.
    for traced, given in ((jax.jit, 1.0), (jax.grad, 1.0), (jax.vmap, np.ones(2))):
        w = sg.variable("w", 2.0)
        step = sg.compile(X, y * w, updates={w: w + 1}, backend="jax")
        for _ in range(2):
            traced(lambda a, step=step: a * float(step(np.zeros((2, 4), "f4"))))(given)
        assert w.value == 4


def test_a_sum_over_rows_copies_no_transpose():
    """XLA would make one of all data for the gradient of a product with a vector."""
    w = sg.placeholder("w", 4, "float32")
    slope = sg.grad(sg.sum(sg.softplus(X @ w)), w)
    program = sg.compile([X, w], slope, backend="jax")
    given = np.arange(12, dtype="f4").reshape(3, 4), np.ones(4, "f4") / 9
    np.testing.assert_allclose(program(*given), sg.compile([X, w], slope)(*given), rtol=1e-6)
    (stage,) = program.executables.of({"N": 3}).lowering.stages
    assert " transpose(" not in stage.function.as_text()


def test_what_is_given_on_the_device_is_the_callers_to_delete():
    """Copies of variables, constants and inputs, and of what is asked for twice."""
    x, w = sg.placeholder("x", 4, "float32"), sg.variable("w", np.zeros(4, "f4"))
    table = sg.constant(np.arange(40_000.0))
    train = sg.compile(x, [], updates={w: w + x}, backend="jax")
    look = sg.compile(x, [w, table, x, x + 1, x + 1], backend="jax")
    given = jax.numpy.ones(4)
    for turn in range(3):  # first as an array of NumPy's
        found = look.on_device(given)
        np.testing.assert_array_equal(found[0], np.full(4, turn))
        for array in found:
            array.delete()
        train(given)
    assert w.value.tolist() == [3] * 4


def test_memory_that_was_deleted_is_not_passed_for_next_values():
    w = sg.variable("w", np.zeros(2**16, "f4"))
    program = sg.compile([], [], updates={w: w + 1}, backend="jax")
    for _ in range(2):
        program()
    before = w.cell.content
    program()
    before.delete()
    del before
    program()
    assert w.value[0] == 4


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8"])
def test_common_divisors_of_the_least_integers_are_found(dtype):
    ends = np.iinfo(dtype)
    some = np.array([ends.min, ends.max, 0, 6], dtype)
    a, b = (v.ravel() for v in np.meshgrid(some, some))
    xs = [sg.placeholder(n, a.shape, dtype) for n in "ab"]
    for f in (sg.gcd, sg.lcm):
        one, other = (sg.compile(xs, f(*xs), backend=b) for b in BOTH)
        np.testing.assert_array_equal(one(a, b), other(a, b))


def test_a_matrix_is_refused_by_the_rows_before_nan():
    a, w = sg.placeholder("a", (3, 3)), sg.variable("w", 0.0)
    program = sg.compile(a, sg.linalg.cholesky(a), updates={w: w + 1}, backend="jax")
    for refused in (
        [[-1, 0, 0], [np.nan, 1, 0], [0, 0, 1]],
        [[1, 0, 0], [0, -1, 0], [np.nan, 0, 1]],
    ):
        with pytest.raises(sg.KernelError, match="positive definite"):
            program(np.array(refused))
    assert w.value == 0
    found = program(np.array([[4, 0, 0], [2, 5, 0], [np.nan, 1, 3]]))
    np.testing.assert_array_equal(found[:2], [[2, 0, 0], [1, 2, 0]])
    assert np.isnan(found[2]).all()


def test_an_entropy_beside_a_far_larger_number_is_finite():
    a, b = sg.placeholder("a", ()), sg.placeholder("b", ())
    for f in (sg.special.rel_entr, sg.special.kl_div):
        one, other = (sg.compile([a, b], f(a, b), backend=k)(1.0, 1e308) for k in BOTH)
        np.testing.assert_allclose(one, other, rtol=1e-12)

"""Several threads, and Ctrl-C: an update is seen whole or not at all."""

import signal
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import symgrad as sg
from symgrad.runtime import threads
from symgrad.runtime.executable import MOST_PLANS
from symgrad.runtime.threads import share

THREADS = 8


@pytest.fixture(autouse=True)
def fast_switching():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*tasks):
    """Run tasks at the same time and return what they return."""
    gate = threading.Barrier(len(tasks))

    def run(task):
        gate.wait()
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        futures = [pool.submit(run, t) for t in tasks]
        return [f.result() for f in futures]


def test_many_threads_call_one_program():
    x = sg.placeholder("x", ("N", 20))
    w = sg.variable("w", np.random.default_rng(0).standard_normal((20, 5)))
    y = sg.tanh(x @ w)
    program = sg.compile(x, [sg.sum(y * y), y, sg.grad(sg.sum(y * y), w)])
    inputs = [np.random.default_rng(i).standard_normal((n, 20)) for i in range(4) for n in (3, 7)]
    serial = [[r.tobytes() for r in program(a)] for a in inputs]

    def task(k):
        def calls():
            order = [(i + k) % len(inputs) for i in range(200)]
            return all([r.tobytes() for r in program(inputs[i])] == serial[i] for i in order)

        return calls

    assert all(together(*(task(k) for k in range(THREADS))))
    assert sum(len(r.free) for r in program.executables.used) <= 2 * THREADS


def test_updates_from_many_threads_take_turns():
    w = sg.variable("w", np.zeros(50))
    n = sg.variable("n", np.int64(0))
    count = sg.compile([], n, updates={w: w + 1, n: n + 1})

    def task():
        return [int(count()) for _ in range(200)]

    seen = together(*[task] * THREADS)
    assert sorted(i for found in seen for i in found) == list(range(200 * THREADS))
    assert set(w.value.tolist()) == {200.0 * THREADS}


def test_two_programs_that_update_the_same_variables_in_another_order():
    a, b = sg.variable("a", np.zeros(3)), sg.variable("b", np.zeros(3))
    one = sg.compile([], [], updates=[(a, a + 1), (b, b + 1)])
    two = sg.compile([], [], updates=[(b, b + 1), (a, a + 1)])

    def calls(program):
        return lambda: [program() for _ in range(300)]

    together(*(calls(p) for p in (one, two) * 3))
    assert set(a.value.tolist()) == set(b.value.tolist()) == {1800.0}


def test_programs_do_not_wait_for_each_other():
    """Each of two programs needs both locks, while a third party holds one of them."""
    a, b = sg.variable("a", np.zeros(3)), sg.variable("b", np.zeros(3))
    programs = [sg.compile([], [], updates=[(p, p + 1), (q, q + 1)]) for p, q in ((a, b), (b, a))]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(20):
            with a.cell.lock:
                futures = [pool.submit(p) for p in programs]
                time.sleep(0.005)
            assert [f.result(timeout=20) for f in futures] == [[], []]
    assert set(a.value.tolist()) == set(b.value.tolist()) == {40.0}


def between_bytecodes(call, other):
    """Call something again and again; each time `other` runs one bytecode later within it.

    Another thread can come in at these points and at no others.
    """
    count = 1
    while count:
        left = count

        def trace(frame, event, _):
            nonlocal left
            if "symgrad" not in frame.f_code.co_filename:
                return None
            frame.f_trace_opcodes = True
            left -= event == "opcode"
            if event == "opcode" and left == 0:
                other()
            return trace

        sys.settrace(trace)
        try:
            result = call()
        finally:
            sys.settrace(None)
        yield result
        count = 0 if left > 0 else count + 1


def test_nothing_comes_in_between_reading_or_writing_all_variables():
    state = [sg.variable(f"v{i}", np.float64(0) if i % 2 else np.zeros(2)) for i in range(6)]
    train = sg.compile([], [], updates={v: v + 1 for v in state})
    look = sg.compile([], [sg.max(v) for v in state])
    look()
    train()
    seen = []
    points = 0
    for result in between_bytecodes(look, train):
        seen.append(result)
        points += 1
    for _ in between_bytecodes(train, lambda: seen.append(look())):
        points += 1
    assert points > 200
    assert len(seen) > 200
    assert all(len(set(map(float, values))) == 1 for values in seen)


def test_readers_see_one_state_while_another_program_trains():
    size = 3000
    a = sg.variable("a", np.zeros(size))
    b = sg.variable("b", np.zeros(size))
    n = sg.variable("n", np.float64(0))
    train = sg.compile([], [], updates={a: a + 1, b: b + 1, n: n + 1})
    look = sg.compile([], [sg.min(a), sg.max(a), sg.min(b), sg.max(b), n, a, sg.exp(b - b) * b])
    done = threading.Event()

    def trainer():
        try:
            for _ in range(1500):
                train()
        finally:
            done.set()

    def reader():
        last, looks = -1.0, 0
        while not done.is_set():
            *numbers, copied, computed = look()
            assert len({float(v) for v in numbers}) == 1, numbers
            assert set(copied.tolist()) == set(computed.tolist()) == {float(numbers[0])}
            assert numbers[0] >= last
            last, looks = numbers[0], looks + 1
        return looks

    looks = together(trainer, reader, reader, reader)[1:]
    assert all(looks)


def test_setting_a_value_while_a_program_trains():
    a, b = sg.variable("a", np.zeros(500)), sg.variable("b", np.zeros(500))
    train = sg.compile([], [sg.min(a), sg.max(a)], updates={a: a + 1, b: b + 1})
    done = threading.Event()

    def trainer():
        try:
            return [tuple(map(float, train())) for _ in range(1000)]
        finally:
            done.set()

    def setter():
        while not done.is_set():
            a.value = np.zeros(500)

    found, _ = together(trainer, setter)
    assert all(low == high for low, high in found)


def test_many_sizes_at_once_keep_the_plans_bounded():
    x = sg.placeholder("x", "N")
    program = sg.compile(x, sg.sum(x * x))

    def task(k):
        def calls():
            sizes = [(i * (k + 1)) % (3 * MOST_PLANS) for i in range(120)]
            return all(program(np.ones(n)) == n for n in sizes)

        return calls

    assert all(together(*(task(k) for k in range(THREADS))))
    assert len(program.executables.used) == MOST_PLANS


# ---- failures in the middle -----------------------------------------------------------------


class Fault:
    """A program that updates three variables to equal values; any step can be made to fail."""

    def __init__(self, backend="numpy"):
        from symgrad.ir.node import apply
        from symgrad.ir.op import Op

        def kernel(x, out=None):
            self.calls += 1
            if self.calls == self.fails_at:
                raise self.error
            if out is None:
                return x
            np.copyto(out, x)
            return out

        self.calls, self.fails_at, self.error = 0, 0, None
        watched = Op.of(name="watched", infer=lambda t: t, kernel=kernel, out=True)
        self.variables = [sg.variable(n, np.zeros(4)) for n in "ab"] + [sg.variable("c", 0.0)]
        self.program = sg.compile(
            [],
            [sg.sum(self.variables[0])],
            updates={v: apply(watched, [v + 1]) for v in self.variables},
            backend=backend,
        )

    def state(self):
        """The value that all variables have. Fails if they differ."""
        (value,) = {float(x) for v in self.variables for x in np.ravel(v.value)}
        return value

    def locks_are_free(self):
        def other():
            return all(
                v.cell.lock.acquire(blocking=False) and v.cell.lock.release() is None
                for v in self.variables
            )

        return together(other)[0]


@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize("error", [ValueError("no"), MemoryError(), KeyboardInterrupt()])
def test_a_failing_step_changes_nothing(backend, error):
    fault = Fault(backend)
    fault.program()
    expected = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else Exception
    fault.error = error
    for i in (1, 2, 3):
        fault.fails_at = fault.calls + i
        with pytest.raises(expected):
            fault.program()
        assert fault.state() == 1
        assert fault.locks_are_free()
    fault.fails_at = 0
    assert fault.program() == [4]
    assert fault.state() == 2


def test_an_interrupt_at_any_line_leaves_all_or_nothing():
    """Raise at every line of what computes and of what commits, in turn.

    Not where locks are held: a tracer raises between a `with` and its end, where no signal comes.
    """
    watched = {"__call__", "_run", "_commit", "_spare", "_readers", "step", "feed"}
    fault = Fault()
    fault.program()

    def lines(raise_at):
        count = 0

        def trace(frame, event, _):
            nonlocal count
            name = frame.f_code.co_filename
            if frame.f_code.co_name not in watched or "symgrad" not in name:
                return None
            if event == "line":
                count += 1
                if count == raise_at:
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            fault.program()
        finally:
            sys.settrace(None)
        return count

    total = lines(0)
    assert total > 20
    for k in range(1, total + 1):
        before = fault.state()
        with pytest.raises(KeyboardInterrupt):
            lines(k)
        assert fault.state() in (before, before + 1)
        middle = fault.state()
        assert fault.program() == [4 * middle]
        assert fault.state() == middle + 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_a_signal_at_any_time_leaves_all_or_nothing():
    """Ctrl-C as it really comes: between two bytecodes, at a time nobody chose."""
    fault = Fault()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    rng = np.random.default_rng(0)
    calls, interrupts = 0, 0
    try:
        while interrupts < 300:
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 3e-4))
                while True:
                    fault.program()
                    calls += 1
            except KeyboardInterrupt:
                interrupts += 1
            state = fault.state()
            assert state in (calls, calls + 1)
            calls = state
            if interrupts % 20 == 0:
                assert fault.locks_are_free()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    fault.program()
    assert fault.state() == calls + 1


def test_an_exception_stops_the_others_with_the_block_they_are_at():
    done, failed = [], threading.Event()

    def work(start):
        if threading.current_thread() is threading.main_thread():
            failed.set()
            raise KeyboardInterrupt
        failed.wait()
        time.sleep(0.01)  # as a kernel of NumPy's does, it gives up the GIL, which the caller needs
        done.append(start)

    with pytest.raises(KeyboardInterrupt):
        share(work, range(1000), [(), (), ()])
    assert len(done) < 500  # 2 where the caller goes on at once


def test_an_index_error_of_a_block_is_told():
    def work(start):
        if start == 5:
            raise IndexError("of the kernel")

    with pytest.raises(IndexError, match="of the kernel"):
        share(work, range(10), [(), ()])


def test_what_was_interrupted_is_not_worked_in_again():
    x = sg.placeholder("x", (4,))
    v = sg.variable("v", np.zeros(4))
    program = sg.compile(x, sg.exp(x) + sg.sum(sg.exp(x) * 2), updates={v: v + x})
    program(np.ones(4))
    ready, (spare,) = program.executables.shown(), program.store.spares

    def interrupted(*args):
        raise KeyboardInterrupt

    function, ready.function = ready.function, interrupted
    with pytest.raises(KeyboardInterrupt):
        program(np.ones(4))
    ready.function = function
    assert not ready.free
    program(np.ones(4))
    assert all(v.cell.array is not spare and s is not spare for s in program.store.spares)
    np.testing.assert_array_equal(v.value, np.full(4, 2.0))


def test_where_no_thread_can_be_had_the_caller_does_all(monkeypatch):
    def refused(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_helpers", lambda process: threads._Pool())
    monkeypatch.setattr(threading.Thread, "start", refused)
    done = []
    share(lambda start, who: done.append((start, who)), range(5), ["a", "b", "c"])
    assert done == [(i, "a") for i in range(5)]


def test_helpers_serve_again_and_hold_nothing_of_what_they_did():
    pool = threads._Pool()
    for failing in (True, False, True):
        given = np.ones(3)
        held = weakref.ref(given)

        def work(array=given, failing=failing):
            if failing:
                raise ValueError(array.sum())

        job = pool.submit(work)
        while not job.begun.locked():
            time.sleep(0.001)
        error = job.end()
        assert (type(error) is ValueError) is failing
        while not pool.idle:
            time.sleep(0.001)
        del given, work, error, job
        assert held() is None
    assert pool.count == 1

"""The team: every part is done once, whoever does it, and no call waits for nobody."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from symgrad.native.engine import host
from symgrad.native.team import SHARE_ROWS, SPIN, team

PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
ROWS = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 4)
# Adds 1 to the number of each part, and of each row, in an array.
COUNT = """
define void @part(ptr %x, i64 %i) {
  %at = getelementptr i64, ptr %x, i64 %i
  %r = atomicrmw add ptr %at, i64 1 seq_cst
  ret void
}
define void @rows(ptr %x, i64 %first, i64 %end) {
  br label %look
look:
  %i = phi i64 [ %first, %0 ], [ %next, %do ]
  %left = icmp slt i64 %i, %end
  br i1 %left, label %do, label %ready
do:
  call void @part(ptr %x, i64 %i)
  %next = add i64 %i, 1
  br label %look
ready:
  ret void
}
"""


@pytest.fixture(scope="module")
def counting():
    """What counts in an array: how often each part is done, and each row."""
    library = host().loaded(COUNT, ("part", "rows"), {})
    run, rows = RUN(team().parts), ROWS(team().rows)

    def parts(count, threads):
        made = np.zeros(count, np.int64)
        run(library["part"], made.ctypes.data, count, threads)
        return made

    def by_rows(count, first, end, piece, threads):
        made = np.zeros(count, np.int64)
        rows(library["rows"], made.ctypes.data, first, end, piece, threads)
        return made

    return parts, by_rows


def test_each_part_is_done_once(counting):
    parts, _ = counting
    for threads in (1, 2, 3, 8):
        for count in (0, 1, 2, 7, 1000):
            assert (parts(count, threads) == 1).all(), (threads, count)


def test_one_short_job_after_the_other(counting):
    parts, _ = counting
    for i in range(3000):
        assert (parts(5, 2 + i % 3) == 1).all()


def test_rows_are_done_once_in_pieces_of_any_size(counting):
    _, by_rows = counting
    for first, end, piece in ((0, 10, 3), (4, 10, 100), (0, 100, 1), (3, 3, 5), (0, 6, 0)):
        expected = np.zeros(100, np.int64)
        expected[first:end] = 1
        assert (by_rows(100, first, end, piece, 3) == expected).all(), (first, end, piece)


def test_threads_that_sleep_are_woken(counting):
    parts, _ = counting
    for _ in range(3):
        time.sleep(5 * SPIN / 1e9)
        assert (parts(100, 4) == 1).all()
        team().rest()
        time.sleep(SPIN / 1e9)
        assert (parts(100, 4) == 1).all()


def test_several_threads_do_the_parts():
    seen = set()

    @PART
    def part(x, i):
        seen.add(threading.get_native_id())
        time.sleep(0.02)

    run = RUN(team().parts)
    for _ in range(20):  # a machine may be so busy that nobody else gets a turn
        run(ctypes.cast(part, ctypes.c_void_p), None, 6, 3)
        if len(seen) > 1:
            return
    pytest.fail("one thread did it all")


def test_who_finds_it_busy_works_alone(counting):
    parts, _ = counting
    made, ids = [], set()

    @PART
    def outer(x, i):
        made.append(parts(50, 4))
        ids.add(i)

    RUN(team().parts)(ctypes.cast(outer, ctypes.c_void_p), None, 6, 3)
    assert ids == set(range(6))
    assert len(made) == 6
    assert all((m == 1).all() for m in made)


def test_many_threads_of_pythons_ask_at_once(counting):
    parts, wrong = counting[0], []

    def ask():
        for _ in range(300):
            if not (parts(20, 3) == 1).all():
                wrong.append(1)

    asking = [threading.Thread(target=ask) for _ in range(8)]
    for t in asking:
        t.start()
    for t in asking:
        t.join()
    assert not wrong


def test_who_begins_it_once_more_changes_nothing(counting):
    parts, _ = counting
    for _ in range(20):
        team.cache_clear()
        assert (parts(50, 3) == 1).all()
        team()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_process_that_was_forked_has_a_team_of_its_own(counting):
    parts, _ = counting
    assert (parts(100, 3) == 1).all()
    child = os.fork()
    if child == 0:
        right = all((parts(100, 3) == 1).all() for _ in range(50))
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (parts(100, 3) == 1).all()


def test_a_process_ends_while_its_team_waits():
    code = (
        "import numpy as np, symgrad as sg\n"
        "x = sg.placeholder('x', (1000, 1000), 'float32')\n"
        "f = sg.compile([x], sg.tanh(x) * sg.exp(x), backend='native', threads=3)\n"
        "assert f(np.ones((1000, 1000), 'f4')).shape == (1000, 1000)\n"
        "assert ', 3)' in f.source\n"
    )
    for _ in range(3):
        subprocess.run([sys.executable, "-c", code], check=True)


SIGNALS = """
import os, signal, time
import numpy as np, symgrad as sg
x = sg.placeholder("x", (1000, 1000), "float32")
f = sg.compile([x], sg.tanh(x) * sg.exp(x), backend="native", threads=3)
f(np.ones((1000, 1000), "f4"))
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
os.kill(os.getpid(), signal.SIGUSR1)
time.sleep(0.1)
assert signal.sigtimedwait({signal.SIGUSR1}, 1)
"""


@pytest.mark.skipif(not hasattr(signal, "sigtimedwait"), reason="no signals that are waited for")
def test_signals_are_for_the_threads_that_know_of_them():
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # BLAS's own threads take them
    subprocess.run([sys.executable, "-c", SIGNALS], check=True, env=environment)


@pytest.mark.parametrize(("rows", "shares"), [(1000, True), (2, False)])
def test_a_module_shares_its_rows_if_there_is_time_to(rows, shares):
    import symgrad as sg

    x = sg.placeholder("x", (rows, 1000), "float32")
    (code,) = sg.compile([x], sg.tanh(x) * sg.exp(x), backend="native").native
    assert code.shares == shares == (f"@{SHARE_ROWS}" in code.ir)

"""Subnormal numbers count as 0 in programs that ask for it, on every thread, and nowhere else."""

import copy
import os
import pickle
import signal
import threading

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import symgrad as sg
from symgrad.native.mode import mode
from symgrad.runtime.subnormals import flushed
from symgrad.runtime.threads import share
from tests.helpers import each

SMALL = {"float32": 3e-39, "float64": 3e-309}


def is_flushed(*_):
    return bool(np.asarray(SMALL["float64"]) * np.asarray(1.0) == 0)


def halves(dtype="float64", shape=("N",), **options):
    x = sg.placeholder("x", shape, dtype)
    return sg.compile(x, [x * 0.5 + x * 0.25, sg.sum(abs(x))], **options)


@each("dtype", SMALL)
def test_in_arithmetic_they_are_zeros_of_their_sign(dtype):
    small, least = np.full(9, -SMALL[dtype], dtype), np.full(9, np.finfo(dtype).tiny)
    half = np.asarray(-0.5, dtype)

    def both():
        return small * np.asarray(2, dtype), least * half

    for found in flushed(both):
        assert not found.any()
        assert np.signbit(found).all()
    assert np.all([np.all(found) for found in both()])


@each("backend", ["numpy", "native", "reference", None])
@each("threads", [1, 2])
@each("dtype", SMALL)
def test_every_thread_of_a_program_does_so(backend, threads, dtype):
    flushing = halves(dtype, backend=backend, threads=threads, flush_subnormals=True)
    keeping = halves(dtype, backend=backend, threads=threads)
    fed = np.full(2**21, SMALL[dtype], dtype)
    for _ in range(3):
        mixed, total = flushing(fed)
        assert not mixed.any()
        assert total == 0
        mixed, total = keeping(fed)
        assert mixed.all()
        assert total != 0


@each("backend", ["numpy", "native"])
def test_so_do_small_programs_products_and_loops(backend):
    small = np.full((40, 40), 1e-200)
    small_program = halves(shape=(3,), backend=backend, flush_subnormals=True)
    assert [small_program(np.full(3, 3e-309))[1], small_program(np.full(3, 1.0))[1]] == [0, 3]

    a = sg.placeholder("a", (40, 40))
    product = sg.compile(a, a @ (a * 1e-110), backend=backend, threads=2, flush_subnormals=True)
    assert not product(small).any()

    last, _ = sg.scan(lambda h, row: (h * row, h), sg.ones(40), a)
    loop = sg.compile(a, last * 1e300, backend=backend, flush_subnormals=True)
    steps = np.ones((40, 40))
    steps[5], steps[9] = 1e-160, 1e-160
    assert not loop(steps).any()


def test_what_is_kept_is_computed_so_and_what_is_folded_is_not():
    x = sg.placeholder("x", 50)
    k = sg.variable("k", np.full((50, 50), 1e-200))
    kept = sg.sum(sg.sin(k * 1e-110) @ sg.exp(k), axis=0) * 1e300
    folded = sg.constant(np.array([1e-200])) * 1e-110 * 1e300
    program = sg.compile(x, [x + kept, x + folded], flush_subnormals=True)
    assert program.kept is not None
    with_kept, with_folded = program(np.zeros(50))
    assert not with_kept.any()
    assert with_folded.all()


def test_copies_pickles_profiles_and_partial_programs_do_so():
    program = halves(backend="numpy", flush_subnormals=True)
    fed = np.full(8, 3e-309)
    for same in (copy.copy(program), copy.deepcopy(program), pickle.loads(pickle.dumps(program))):
        assert same(fed)[1] == 0
    program.profile(fed, runs=1)
    assert mode().get() & mode().flush == 0
    assert halves(partial=True, flush_subnormals=True)(fed)[1] == 0


def test_the_mode_ends_with_the_call_also_by_an_error():
    def refuses(x):
        assert is_flushed()
        raise KeyError

    before = mode().get()
    with pytest.raises(KeyError):
        flushed(refuses, 1)
    assert mode().get() == before


def test_how_numbers_are_rounded_stays():
    towards_zero, here = 0xC00, mode()
    before = here.get()
    try:
        here.set(before | towards_zero)
        assert flushed(here.get) == before | towards_zero | here.flush
        assert here.get() == before | towards_zero
    finally:
        here.set(before)


def test_threads_that_are_made_within_do_not_keep_the_mode():
    many = 9  # more helpers than there are
    halves(flush_subnormals=True)

    def all_at_once():
        found, meeting = [], threading.Barrier(many)

        def work(start):
            meeting.wait(timeout=30)
            found.append(is_flushed())

        share(work, range(many), [()] * many)
        return found

    assert flushed(all_at_once) == [True] * many
    assert all_at_once() == [False] * many


def test_another_thread_is_left_alone():
    within, found = threading.Event(), []
    other = threading.Thread(target=lambda: (within.wait(30), found.append(is_flushed())))
    other.start()

    def meanwhile():
        within.set()
        other.join()

    flushed(meanwhile)
    assert found == [False]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no such timers")
def test_ctrl_c_does_not_leave_it_on():
    """As often as it comes; `flushed` restores the mode in one call."""

    def interrupt(*_):
        raise KeyboardInterrupt

    before, old, interrupted = mode().get(), signal.signal(signal.SIGALRM, interrupt), 0
    try:
        for _ in range(400):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0002)
                while True:
                    flushed(is_flushed)
            except KeyboardInterrupt:
                interrupted += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert mode().get() == before
    finally:
        signal.signal(signal.SIGALRM, old)
    assert interrupted == 400


def test_where_every_bit_counts_it_is_refused():
    for exact in ("bits", "values"):
        with pytest.raises(sg.GraphError, match=f"flush_subnormals is not for exact='{exact}'"):
            halves(exact=exact, flush_subnormals=True)
    with pytest.raises(sg.GraphError, match=r"error is not for .* flush_subnormals"):
        halves(error=1e-6, flush_subnormals=True)
    with pytest.raises(AttributeError, match=r"flush_subnormals=True"):
        _ = sg.set_flush_denormal


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
def test_a_forked_process_runs_it():
    program, fed = halves(backend="native", threads=2, flush_subnormals=True), np.full(9, 3e-309)
    program(fed)
    child = os.fork()
    if not child:
        os._exit(int(program(fed)[1] != 0 or is_flushed()))
    assert os.waitpid(child, 0)[1] == 0

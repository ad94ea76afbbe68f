"""Subnormal numbers count as 0 where that is asked for, on every thread, and nowhere else."""

import threading

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import symgrad as sg
from symgrad.native.mode import mode
from symgrad.runtime.threads import share
from tests.helpers import each

SMALL = {"float32": 3e-39, "float64": 3e-309}


def is_flushed(dtype="float64"):
    return bool(np.asarray(SMALL[dtype], dtype) * np.asarray(1, dtype) == 0)


@each("dtype", SMALL)
def test_they_are_zeros_of_their_sign_within_and_themselves_after(dtype):
    small = np.full(9, -SMALL[dtype], dtype)
    least = np.full(9, np.finfo(dtype).tiny)
    with sg.flush_subnormals():
        operands, results = small * np.asarray(2, dtype), least * np.asarray(-0.5, dtype)
    for found in (operands, results):
        assert not found.any()
        assert np.signbit(found).all()
    assert (small * np.asarray(2, dtype) != 0).all()


@each("backend", ["numpy", "native"])
@each("threads", [1, 2])
@each("dtype", SMALL)
def test_a_program_computes_as_its_caller_does(backend, threads, dtype):
    x = sg.placeholder("x", ("N",), dtype)
    outputs = [x * 0.5 + x * 0.25, sg.sum(abs(x))]
    program = sg.compile(x, outputs, backend=backend, threads=threads)
    fed = np.full(2**22, SMALL[dtype], dtype)
    for _ in range(3):
        with sg.flush_subnormals():
            mixed, total = program(fed)
        assert not mixed.any()
        assert total == 0
        mixed, total = program(fed)
        assert mixed.all()
        assert total != 0


def test_threads_that_are_made_within_do_not_keep_the_mode():
    many = 9  # more helpers than there are

    def all_at_once():
        found, meeting = [], threading.Barrier(many)

        def work(start):
            meeting.wait(timeout=30)
            found.append(is_flushed())

        share(work, range(many), [()] * many)
        return found

    with sg.flush_subnormals():
        assert all_at_once() == [True] * many
    assert all_at_once() == [False] * many


def test_it_ends_with_an_error_and_nests_and_decorates():
    before = mode().get()
    with pytest.raises(KeyError), sg.flush_subnormals():
        raise KeyError
    assert mode().get() == before
    with sg.flush_subnormals():
        with sg.flush_subnormals():
            pass
        assert is_flushed()
    assert mode().get() == before
    assert sg.flush_subnormals()(is_flushed)()
    assert not is_flushed()


def test_another_thread_of_the_user_is_left_alone():
    within, found = threading.Event(), []
    other = threading.Thread(target=lambda: (within.wait(30), found.append(is_flushed())))
    other.start()
    with sg.flush_subnormals():
        within.set()
        other.join()
    assert found == [False]

"""Tiles on several threads: the same bits, whatever happens at the same time."""

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import symgrad as sg
from symgrad.lowering import tiling
from symgrad.runtime.threads import share
from tests.lowering.test_tiling import rowwise, tilings


@pytest.fixture
def small(monkeypatch):
    """Tiles of a few rows."""
    monkeypatch.setattr(tiling, "LEAST_BYTES", 0)
    monkeypatch.setattr(tiling, "TILE_BYTES", 2000)


def arrays_for(inputs, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(x.shape).astype(x.dtype) for x in inputs]


@pytest.mark.parametrize("rows", [64, 67])
def test_the_same_bits_at_any_number_of_threads(small, rows):
    inputs, outputs = rowwise(rows)
    arrays = arrays_for(inputs)
    programs = [sg.compile(inputs, outputs, threads=n) for n in (1, 2, 8)]
    expected = programs[0](*arrays)
    assert "share(" not in programs[0].source
    assert "share(" in programs[1].source
    assert max(b.threads for b in tilings(programs[2])) > 2
    for program in (*programs, sg.compile(inputs, outputs, backend="reference", threads=2)):
        for _ in range(3):
            for a, b in zip(program(*arrays), expected, strict=True):
                np.testing.assert_array_equal(a, b)


def test_fifty_calls_at_once(small):
    inputs, outputs = rowwise(64)
    program = sg.compile(inputs, outputs, threads=4)
    alone = sg.compile(inputs, outputs, threads=1)
    feeds = [arrays_for(inputs, seed) for seed in range(50)]
    with ThreadPoolExecutor(50) as pool:
        found = list(pool.map(lambda f: program(*f), feeds))
    for results, f in zip(found, feeds, strict=True):
        for a, b in zip(results, alone(*f), strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_stand_alone_file_needs_no_threads(small, tmp_path):
    inputs, outputs = rowwise(64)
    text = sg.compile(inputs, outputs, threads=4).save_source(tmp_path / "p.py").read_text()
    assert "share(" not in text
    assert "for start in range" in text


def test_what_fails_on_another_thread_is_explained(small):
    x, n = sg.placeholder("x", (64, 8), "int64"), sg.placeholder("n", (64, 8), "int64")
    program = sg.compile([x, n], (x + 1) ** n * 2, threads=4)
    powers = np.ones((64, 8), int)
    powers[50:] = -1
    with pytest.raises(sg.KernelError, match=r"pow\(.*negative integer powers"):
        program(np.ones((64, 8), int), powers)
    np.testing.assert_array_equal(program(np.ones((64, 8), int), np.ones((64, 8), int)), 4)


def test_all_threads_stop_before_an_error_is_raised():
    begun, done = [], []

    def work(start, name):
        begun.append(start)
        threading.Event().wait(0.01)
        done.append(start)
        if start == 3:
            raise ValueError("three")

    with pytest.raises(ValueError, match="three"):
        share(work, range(20), [("a",), ("b",), ("c",)])
    assert sorted(begun) == sorted(done)


def test_within_each_other():
    """More work than threads, from within the threads: nobody waits for what has not begun."""
    found = []
    lock = threading.Lock()

    def inner(start, *workspace):
        with lock:
            found.append(start)

    def outer(start, *workspace):
        share(inner, range(4), [()] * 8)

    share(outer, range(40), [()] * 64)
    assert len(found) == 160


def _in_a_child(queue):
    inputs, outputs = rowwise(64)
    queue.put(
        [float(np.sum(y)) for y in sg.compile(inputs, outputs, threads=2)(*arrays_for(inputs))]
    )


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(small):
    inputs, outputs = rowwise(64)
    found = sg.compile(inputs, outputs, threads=2)(*arrays_for(inputs))
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_in_a_child, args=(queue,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert queue.get() == [float(np.sum(y)) for y in found]


@pytest.mark.parametrize("threads", [0, -1, 1000])
def test_a_number_of_threads_that_makes_no_sense(threads):
    x = sg.placeholder("x", 3)
    with pytest.raises(sg.GraphError, match=r"threads is a .*number from 1 (to|on)"):
        sg.compile([x], x, threads=threads)

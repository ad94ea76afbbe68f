"""Results that are written past the caches: the same bits, wherever they lie."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import symgrad as sg
from symgrad.runtime.workspace import PAGE, Pages, paged

pytest.importorskip("llvmlite")

from symgrad.native import streams
from symgrad.native.kernel import compiled


def kernel(shape, dtype):
    """One result of the dtype, one of booleans, one in place if it is wanted, and a sum."""
    x, y = sg.placeholder("x", shape, dtype), sg.placeholder("y", shape, dtype)
    z = x * y + 1
    less = y if len(shape) == 1 else sg.max(y, axis=1, keepdims=True)
    return compiled(sg.Graph([z, z > x, x - less, sg.sum(z)], [x, y]), {})


def at(shape, dtype, offset):
    """An array that begins so many bytes after a page."""
    memory = paged((int(np.prod(shape)) * 8 + PAGE,), np.uint8)
    return np.ndarray(shape, dtype, memory, offset)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@pytest.mark.parametrize("shape", [(8192 + 16,), (20_011,), (5, 64), (5, 67)])
def test_streamed_results_are_the_same_bits(shape, dtype, monkeypatch):
    plain = kernel(shape, dtype)
    monkeypatch.setattr(streams, "LEAST_BYTES", 0)
    streamed = kernel(shape, dtype)
    may = len(shape) == 1 or shape[1] == 64
    assert plain.streamed == (False,) * 4
    assert streamed.streamed == (*[may] * 3, False)
    assert ("nontemporal" in streamed.ir) == may
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-9, 9, shape).astype(dtype) for _ in "xy")
    expected = plain.run([x, y])
    for from_page, to_page, in_place in (
        (0, 0, False), (16, 0, False), (16, 64, False), (0, 512, False), (0, 8, False),
        (0, 0, True), (64, 64, True),
    ):  # fmt: skip
        operands = [at(shape, dtype, from_page), at(shape, dtype, from_page)]
        operands[0][...], operands[1][...] = x, y
        made = [at(shape, t.dtype, to_page) for t in streamed.results[:3]]
        if in_place:
            made[2] = operands[0]
        parts = np.empty(streamed.parts[3].shape, streamed.parts[3].dtype)
        streamed.call(*operands, *made, parts, 0, streamed.rows)
        for found, wanted in zip([*made, parts.sum(dtype=parts.dtype)], expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_large_results_begin_a_page_and_old_values_stay_while_they_are_read(monkeypatch):
    monkeypatch.setattr(streams, "LEAST_BYTES", 2**18)
    n = 2**17
    x, w = sg.placeholder("x", n, "float32"), sg.variable("w", np.zeros(n, "float32"))
    v = sg.variable("v", np.ones(n, "float32"))
    step = sg.compile(
        [x],
        [w * 2 + x, sg.sum(w)],
        updates={w: w + x * x, v: v * x * x},
        backend="native",
        threads=1,
    )
    assert sum(code.streamed.count(True) for code in step.native) == 3
    ones, held = np.ones(n, "float32"), []
    for t in range(4):
        y, total = step(ones)
        assert y.ctypes.data % PAGE == 0
        assert (y[0], y[-1], total) == (2 * t + 1, 2 * t + 1, t * n)
        held.append(np.asarray(w.value)[5:9])
        assert [a[0] for a in held] == [1, 2, 3, 4][: t + 1]


def test_a_page_is_held_by_what_is_seen_of_it():
    whole = paged((10, 3), "float32")
    assert whole.ctypes.data % PAGE == 0
    assert whole[2:].base is whole
    assert whole.flags.c_contiguous


def test_memory_that_nobody_holds_is_taken_again():
    """And only then, whoever holds a part of it; no more is kept than a call gives."""
    pages, shape = Pages(2), (3, PAGE)
    arrays = [pages.paged(shape, "float32") for _ in range(4)]
    places = [a.ctypes.data for a in arrays]
    assert len(set(places)) == 4
    row = arrays[0][1:2].T
    arrays[0] = pages.paged(shape, "float32")
    assert arrays[0].ctypes.data not in places
    assert not any(np.may_share_memory(row, a) for a in arrays)
    del arrays[1]
    other = pages.paged((3 * PAGE,), "float64")
    assert other.ctypes.data not in places
    assert len(pages.kept) == 1
    again = pages.paged(shape, "float32")
    assert again.ctypes.data == places[1]
    assert not pages.kept
    del row, other, again
    arrays.clear()
    assert len(pages.kept) == 2
    last = pages.kept[-1].ctypes.data
    assert 0 <= pages.paged(shape, "float32").ctypes.data - last < PAGE  # the last to be let go of
    assert all(PAGE > -a.ctypes.data % PAGE >= 0 for a in pages.kept)


def test_results_stay_while_they_are_held(monkeypatch):
    """By views too, and where several threads call."""
    x = sg.placeholder("x", (512, 300))
    program = sg.compile(x, [x * x + 1, x - 3], backend="native")

    def called(seed):
        held = []
        for k in range(30):
            value = float(100 * seed + k)
            y, z = program(np.full((512, 300), value))
            held = [*held[-2:], (value, y[::7], z if k % 3 else None)]
            for v, one, other in held:
                assert (one == v * v + 1).all()
                assert other is None or (other == v - 3).all()
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(called, range(4)))

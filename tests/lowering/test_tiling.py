"""Groups that run in tiles of rows: the same numbers, less memory."""

import runpy

import numpy as np
import pytest

import symgrad as sg
from symgrad.autodiff.reverse import is_differentiable
from symgrad.lowering import tiling
from symgrad.lowering.tiling import TileLoop
from symgrad.testing import assert_equivalent, random_feeds, random_graph
from symgrad.testing.equality import assert_computes


@pytest.fixture
def tiny(monkeypatch):
    """Tiles of a row or two, even of small arrays."""
    monkeypatch.setattr(tiling, "LEAST_BYTES", 0)
    monkeypatch.setattr(tiling, "TILE_BYTES", 100)
    monkeypatch.setattr(tiling, "LEAST_TILES", 4)


def in_numpy(inputs, outputs):
    """The program whose groups run in tiles, though machine code may be there."""
    return sg.compile(inputs, outputs, backend="numpy")


def tilings(program):
    """How the groups of a program run that run in tiles."""
    return [s.tiling for s in program.plan.steps if isinstance(s, TileLoop)]


def rowwise(rows, dtype="float32"):
    x, y = (sg.placeholder(n, (rows, 8), dtype) for n in "xy")
    b = sg.placeholder("b", (8,), dtype)
    e = sg.exp(x * y + b)
    outputs = [e / sg.sum(e, axis=1, keepdims=True), sg.sum(e * x, axis=0), sg.sum(e * y), e + 1]
    return [x, y, b], outputs


@pytest.mark.parametrize("exact", ["bits", "values", "rounding", "reals"])
@pytest.mark.parametrize("seed", range(24))
def test_random_graphs_in_tiles(tiny, seed, exact):
    rng = np.random.default_rng(seed)
    inputs, outputs = random_graph(rng, int(rng.integers(5, 40)))
    wrt = [x for x in inputs if is_differentiable(x)]
    outputs = [*outputs, *sg.grad(outputs[0], wrt, disconnected="zero")]
    program = sg.compile(inputs, outputs, exact=exact)
    for special in (False, True) if exact != "reals" else (False,):
        assert_computes(program, random_feeds(rng, inputs, special), sg.Exact.of(exact))


def test_random_graphs_do_run_in_tiles(tiny):
    found, shown = [], False
    for seed in range(400):
        rng = np.random.default_rng(seed)
        inputs, outputs = random_graph(rng, int(rng.integers(5, 40)))
        found += tilings(in_numpy(inputs, outputs))
        kinds = any(b.remainder is not None for b in found), any(b.parts for b in found)
        if shown := len(found) > 100 and all(kinds):
            break
    assert shown, (len(found), kinds)


@pytest.mark.parametrize("exact", ["bits", "rounding"])
@pytest.mark.parametrize("shape", [(32, 32), ("N", "N"), (32, 1), (1, 32, 32)])
def test_one_row_of_as_many_as_there_are_columns(tiny, shape, exact):
    """It lies along another axis than the rows that it is one of, though they are as many."""
    x = sg.placeholder("x", shape)
    h, first = sg.tanh(x), (slice(0, 1),) * (len(shape) - 1)
    outputs = [sg.sum(h[first] ** 2) + sg.sum(h * h * h), sg.tanh(h[first] * 2), h + 1]
    outputs.append(sg.grad(outputs[0], x))
    array = np.random.default_rng(0).standard_normal([32 if s == "N" else s for s in shape])
    assert_equivalent([x], outputs, [array], exact=exact)


@pytest.mark.parametrize("exact", ["bits", "values"])
def test_a_single_row_left_over_is_summed_as_the_others(tiny, exact):
    x = sg.placeholder("x", (10, 641))
    outputs = [sg.tanh(x.T) * sg.sum(x.T, axis=1, keepdims=True), sg.softmax(x.T)]
    array = np.random.default_rng(0).standard_normal((10, 641))
    assert_equivalent([x], outputs, [array], exact=exact)


@pytest.mark.parametrize("rows", [2, 7, 16, 33])
def test_rows_and_reductions(tiny, rows):
    inputs, outputs = rowwise(rows)
    program = in_numpy(inputs, outputs)
    assert tilings(program)
    rng = np.random.default_rng(0)
    assert assert_equivalent(inputs, outputs, random_feeds(rng, inputs))
    sg.compile(inputs, outputs, backend="reference")(*random_feeds(rng, inputs))


def test_the_stand_alone_file_has_the_same_bits(tiny, tmp_path):
    inputs, outputs = rowwise(33)
    program = in_numpy(inputs, outputs)
    arrays = random_feeds(np.random.default_rng(0), inputs)
    program.save_source(tmp_path / "p.py")
    alone = runpy.run_path(str(tmp_path / "p.py"))["Program"]()
    for a, b in zip(alone(*arrays), program(*arrays), strict=True):
        np.testing.assert_array_equal(a, b)


def test_named_dimensions(tiny):
    x = sg.placeholder("x", ("N", 8), "float32")
    e = sg.exp(x)
    program = in_numpy([x], [e / sg.sum(e, axis=1, keepdims=True), sg.sum(sg.tanh(x) * x)])
    for n in (40, 1, 0, 3):
        a = np.random.default_rng(n).standard_normal((n, 8)).astype("float32")
        found = program(a)
        np.testing.assert_allclose(found[0], np.exp(a) / np.exp(a).sum(1, keepdims=True), 1e-5)
        np.testing.assert_allclose(found[1], (np.tanh(a) * a).sum(), 1e-5, 1e-6)


def test_large_arrays_are_not_held_whole():
    x = sg.placeholder("x", (4096, 512), "float32")
    e = sg.exp(x * 2.0 + 1.0)
    y = sg.tanh(e * x) / (1 + sg.sum(e, axis=1, keepdims=True))
    program = in_numpy([x], sg.sum(y))
    (found,) = tilings(program)
    assert found.number > 4
    assert program.plan.arena_bytes < 2 * tiling.TILE_BYTES
    a = np.random.default_rng(0).standard_normal((4096, 512)).astype("float32")
    e = np.exp(a * 2 + 1)
    expected = (np.tanh(e * a) / (1 + e.sum(1, keepdims=True))).sum()
    np.testing.assert_allclose(program(a), expected, rtol=1e-4)


def test_small_arrays_run_as_they_are():
    inputs, outputs = rowwise(64)
    assert not tilings(in_numpy(inputs, outputs))


def test_one_function_for_groups_that_are_alike(tiny):
    """Two layers, one text."""
    x, w = sg.placeholder("x", (16, 16)), sg.variable("w", np.eye(16))
    h = x
    for _ in range(3):
        h = sg.tanh(h @ w + 0.5) * 2.0
    source = in_numpy([x], h).source
    assert source.count("fused(") == 4
    assert "fused1" not in source


def test_what_fails_in_a_block_is_explained(tiny):
    x, n = sg.placeholder("x", (8, 4), "int64"), sg.placeholder("n", (8, 4), "int64")
    y = (x + 1) ** n
    for backend in ("numpy", "reference"):
        program = sg.compile([x, n], y * 2, backend=backend)
        assert tilings(program)
        with pytest.raises(sg.KernelError, match=r"negative integer powers") as caught:
            program(np.ones((8, 4), int), np.full((8, 4), -1))
        assert "test_tiling.py" in str(caught.value)
        assert "pow(" in str(caught.value)


def test_the_work_is_shown(tiny):
    inputs, outputs = rowwise(16)
    program = in_numpy(inputs, outputs)
    why = program.why(outputs[3])
    assert "step 0" in str(why)
    ((line, text),) = why.stories[0].code
    assert text.startswith("add(")
    assert text in program.source.splitlines()[line - 1]
    assert program.why(text).stories[0].node is outputs[3]
    cost = program.cost()
    assert cost.after.bytes_fused < cost.after.bytes_moved
    assert "tiled" in str(program.plan)


@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
def test_integers_wrap_as_they_do_without_tiles(tiny, dtype, backend):
    """NumPy's reductions of small integers give larger ones, unless a dtype is asked for."""
    x = sg.placeholder("x", (64, 8), dtype)
    y = x + x
    outputs = [f(y, dtype=dtype, **o) for f in (sg.sum, sg.prod) for o in ({}, {"axis": 0})]
    program = sg.compile([x], outputs, backend=backend)
    assert tilings(program)
    array = np.arange(512).reshape(64, 8).astype(dtype)
    for found, y in zip(program(array), sg.compile([x], outputs, passes=())(array), strict=True):
        assert found.dtype == y.dtype
        np.testing.assert_array_equal(found, y)

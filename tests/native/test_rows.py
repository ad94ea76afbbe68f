"""Ops along rows in machine code: scans, places of extrema, one element of each row."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.graph import Graph
from symgrad.native.kernel import compiled
from symgrad.native.space import NotNative
from symgrad.ops.cumulative import products_before, running_extremum, running_sum, scan
from symgrad.ops.index.in_rows import add_in_rows, pick_in_rows
from symgrad.testing import assert_equivalent
from tests.helpers import each
from tests.native.campaign import everything
from tests.native.checks import assert_same_bits, reference, values

pytest.importorskip("llvmlite")

SHAPES = [(3, 2), (5, 33), (4, 64), (2, 9_001)]


def along_rows(x, i):
    """Everything that is exact, and everything that rounds in an order of its own."""
    wide = x + x
    exact = [
        sg.argmax(wide, axis=1),
        sg.argmin(x, axis=1, keepdims=True),
        pick_in_rows(wide * wide, i),
        add_in_rows(wide, pick_in_rows(x, i), i),
        *(running_extremum(x, axis=1, largest=largest) for largest in (True, False)),
        *(products_before(x, axis=1, reverse=reverse) for reverse in (True, False)),
        *(scan(x, wide, axis=1, reverse=reverse) for reverse in (True, False)),
    ]
    sums = [running_sum(y, axis=1, reverse=r) for y in (x, wide) for r in (True, False)]
    return (exact + sums, []) if x.dtype.kind in "iu" else (exact, sums)


@each("dtype", ["float32", "float64", "int32", "int64", "uint8"])
@each("shape", SHAPES)
def test_along_rows(shape, dtype):
    rng = np.random.default_rng([shape[1], np.dtype(dtype).itemsize])
    x, i = sg.placeholder("x", shape, dtype), sg.placeholder("i", (shape[0], 1), "int64")
    exact, sums = along_rows(x, i)
    graph = Graph([*exact, *sums], [x, i])
    kernel = compiled(graph, {})
    for special in (False, True):
        a = values(rng, shape, dtype) if special else rng.integers(0, 3, shape).astype(dtype)
        at = rng.integers(0, shape[1], (shape[0], 1))
        found, expected = kernel.run([a, at]), reference(graph, [a, at])
        for y, z in zip(found[: len(exact)], expected, strict=False):
            assert_same_bits(y + np.zeros((), y.dtype), z + np.zeros((), z.dtype))
        for y, z in zip(found[len(exact) :], expected[len(exact) :], strict=True):
            np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32"])
def test_scans_of_zeros_and_ones(dtype):
    """Which LLVM knows to be such, and so makes selections of products."""
    x = sg.placeholder("x", (9, 40), dtype)
    for bits in (sg.minimum(x, 1), sg.astype(x > 0, dtype)):
        scans = [f(bits, axis=1, reverse=r) for f in (products_before, running_sum) for r in (0, 1)]
        scans += [running_extremum(bits, axis=1, largest=largest) for largest in (True, False)]
        scans += [scan(bits, bits, axis=1, reverse=r) for r in (False, True)]
        graph = Graph(scans, [x])
        a = np.random.default_rng(6).integers(0, 9, (9, 40)).astype(dtype)
        for y, z in zip(compiled(graph, {}).run([a]), reference(graph, [a]), strict=True):
            np.testing.assert_array_equal(y, z)


def test_running_sums_are_as_good_as_numpys():
    rng = np.random.default_rng(2)
    x = sg.placeholder("x", (2, 100_000), "float32")
    graph = Graph([running_sum(x, axis=1, reverse=False)], [x])
    a = rng.random((2, 100_000), np.float32)
    exact = np.cumsum(a.astype(np.float64), axis=1)
    ours = compiled(graph, {}).run([a])[0] - exact
    assert np.abs(ours).max() <= np.abs(np.cumsum(a, axis=1) - exact).max()


@pytest.mark.parametrize("find", [sg.argmax, sg.argmin])
def test_the_first_of_those_that_tie_and_the_first_nan(find):
    rows = np.full((6, 70), 0.0, np.float32)
    rows[1, [40, 3]] = rows[2, [66, 67]] = np.nan
    rows[3] = -np.inf if find is sg.argmax else np.inf
    rows[4, 50:] = -0.0
    rows[5, 64:] = 1 if find is sg.argmax else -1
    x = sg.placeholder("x", rows.shape, "float32")
    found = compiled(Graph([find(x, axis=1)], [x]), {}).run([rows])[0]
    np.testing.assert_array_equal(found, [0, 3, 66, 0, 0, 64])


def test_an_index_beyond_its_row_reads_and_writes_nothing_else():
    x, i = sg.placeholder("x", (4, 5), "float64"), sg.placeholder("i", (4, 1), "int64")
    graph = Graph([pick_in_rows(x * 1, i), add_in_rows(x, pick_in_rows(x, i), i)], [x, i])
    a = np.arange(20.0).reshape(4, 5)
    for at in ([[-1], [5], [2**40], [-(2**62)]], [[4], [0], [-7], [1]]):
        found = compiled(graph, {}).run([a, np.array(at)])
        for y, z in zip(found, reference(graph, [a, np.array(at)]), strict=True):
            assert_same_bits(y, z)


def test_scans_either_way_that_later_passes_read():
    x = sg.placeholder("x", (7, 45), "float64")
    there = running_sum(x, axis=1, reverse=False)
    back = running_sum(there * x, axis=1, reverse=True)
    total = sg.sum(there, axis=1, keepdims=True)
    ends = [there / total - back, sg.max(there - back, axis=0), sg.sum(back / total)]
    graph = Graph(ends, [x])
    a = np.random.default_rng(3).random((7, 45))
    for y, z in zip(compiled(graph, {}).run([a]), reference(graph, [a]), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-12)


def test_the_second_factor_of_a_sum_of_products_may_be_made_in_a_later_pass():
    x = sg.placeholder("x", (3, 8), "float32")
    there, back = (products_before(x, axis=1, reverse=reverse) for reverse in (False, True))
    total = sg.sum(there * back)
    a = np.random.default_rng(3).random((3, 8), dtype="float32") + 0.5
    assert_equivalent([x], [total], [a], backend="native")


@pytest.mark.parametrize(
    "make",
    [
        lambda x: running_sum(x, axis=0, reverse=False) + 1,
        lambda x: running_sum(x, axis=1, reverse=False) / sg.sum(x, axis=1, keepdims=True),
        lambda x: pick_in_rows(running_sum(x, axis=1, reverse=False), sg.argmax(x, 1)[:, None]) + 1,
        lambda x: sg.max(x, axis=1, keepdims=True) + sg.cumulative_sum(x[:, 0] + 1)[:, None],
    ],
)
def test_what_does_not_fit_into_rows_is_left_alone(make):
    x = sg.placeholder("x", (3, 20_000), "float64")
    graph = Graph([make(x)], [x])
    with pytest.raises(NotNative):
        compiled(graph, {})


@pytest.mark.parametrize("columns", [10, 129])
@pytest.mark.parametrize("named", [False, True])
def test_a_loss_of_labels_and_its_gradient_are_one_group_and_the_accuracy_another(named, columns):
    rng = np.random.default_rng(4)
    rows = "N" if named else 40
    x, y = sg.placeholder("x", (rows, columns), "float32"), sg.placeholder("y", rows, "int32")
    loss = sg.nn.losses.cross_entropy(x * 2, y, label_smoothing=0.1)
    right = sg.mean(sg.astype(sg.argmax(x, axis=1) == y, "float32"))
    outputs = [loss, sg.grad(loss, x), right]
    arrays = [rng.standard_normal((40, columns), np.float32), rng.integers(0, columns, 40, "int32")]
    with everything():
        program = sg.compile([x, y], outputs, backend="native")
        found = program(*arrays)
        assert [len(k.group.graph.outputs) for k in program.native] == [2, 1]
        assert_equivalent([x, y], outputs, arrays, backend="native")
        for wrong in (-1, columns):
            arrays[1][7] = wrong
            with pytest.raises(sg.BoundsError, match="out of range"):
                program(*arrays)
    assert found[2].dtype == np.float32


def test_indices_from_the_end_and_those_out_of_bounds():
    x, y = sg.placeholder("x", (6, 9)), sg.placeholder("y", 6, "int64")
    outputs = [x[sg.arange(6), y] * 2, sg.grad(sg.sum(x[sg.arange(6), y] ** 2), x)]
    program = sg.compile([x, y], outputs, backend="native")
    assert "gather_in_rows" in program.trace.rules()
    a = np.random.default_rng(5).random((6, 9))
    assert_equivalent([x, y], outputs, [a, np.array([-1, -9, 0, 8, 3, 3])], backend="native")
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 1 with size 9"):
        program(a, np.array([0, 0, 9, 0, 0, 0]))


def test_what_is_reduced_is_read_before_a_result_is_written_over_it():
    x, y = (sg.placeholder(name, (4, 169), "int32") for name in "xy")
    c = sg.placeholder("c", (4, 1), "int32")
    first = x - c
    code = compiled(Graph([first, first + sg.max(y, axis=1, keepdims=True)], [x, c, y]), {})
    assert code.in_place[0] == (2,)
    rng = np.random.default_rng(0)
    a, b, d = (rng.integers(-9, 9, s).astype("int32") for s in ((4, 169), (4, 1), (4, 169)))
    found, largest = np.empty_like(a), d.max(axis=1, keepdims=True)
    code.call(a, b, d, d, found, 0, 4)
    np.testing.assert_array_equal(d, a - b)
    np.testing.assert_array_equal(found, a - b + largest)

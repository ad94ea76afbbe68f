"""Gather, scatter and what is made of them: take, repeat, one_hot, segment_sum; their batches."""

import itertools
import runpy

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import BoundsError, DtypeError, ShapeError
from symgrad.ir.node import apply
from symgrad.ir.op import REGISTRY
from tests.helpers import check_second_derivatives, close, each, generator, same, sample, value

RNG = generator("gather")
OPS = ["gather", "scatter", "put", "running_extremum", "searchsorted", "isin"]


def trials():
    for name in OPS:
        op = REGISTRY.ops[name]
        for case in op.trials.cases:
            yield op, case


@each(("op", "case"), trials())
def test_a_batch_is_as_one_after_the_other(op, case):
    """Whichever operands have a batch axis."""
    indices = range(op.indices or 9, len(case.shapes))
    dtypes = ["int64" if i in indices else "float64" for i in range(len(case.shapes))]
    for flags in itertools.product((True, False), repeat=len(case.shapes)):
        if not any(flags):
            continue
        arrays = [
            sample(RNG, (3, *s) if f else s, d, (-2, 1) if d == "int64" else (-3, 3))
            for s, d, f in zip(case.shapes, dtypes, flags, strict=True)
        ]
        if op.name == "searchsorted":
            arrays[0].sort()
        fixed = [None if f else sg.constant(a) for a, f in zip(arrays, flags, strict=True)]

        def one(*batched, fixed=fixed):
            left = iter(batched)
            return apply(op, [next(left) if x is None else x for x in fixed], case.attrs)

        many = [a for a, f in zip(arrays, flags, strict=True) if f]
        rows = [value(one(*map(sg.constant, row))) for row in zip(*many, strict=True)]
        same(value(sg.vmap(one)(*many)), np.stack(rows))


def scattered(x, u, axis, at, ufunc):
    y = np.moveaxis(x.copy(), axis, 0)
    for k, i in enumerate(at):
        y[i] = ufunc(y[i], np.moveaxis(u, axis, 0)[k])
    return np.moveaxis(y, 0, axis)


@each("dtype", ["float32", "int32", "complex64", "bool"])
@each("axis", [0, 1, 2])
def test_scatter_is_a_loop_over_the_indices(dtype, axis):
    x = sample(RNG, (3, 4, 5), dtype)
    u = sample(RNG, tuple(9 if i == axis else s for i, s in enumerate(x.shape)), dtype)
    at = RNG.integers(-3, 3, 9)
    ufuncs = {"set": lambda a, b: b, "add": np.add, "max": np.maximum, "min": np.minimum}
    for mode, ufunc in ufuncs.items():
        if (mode == "add" and dtype == "bool") or (mode in ("max", "min") and dtype == "complex64"):
            with pytest.raises(DtypeError):
                apply(REGISTRY.ops["scatter"], [x, u, at], {"axis": axis, "mode": mode})
            continue
        found = apply(REGISTRY.ops["scatter"], [x, u, at], {"axis": axis, "mode": mode})
        close(value(found), scattered(x, u, axis, at, ufunc), 1e-6)


def test_a_written_program_gathers_and_scatters_alone(tmp_path):
    x, i = sg.placeholder("x", ("N", 4), "float32"), sg.placeholder("i", 3, "int32")
    y = sg.cummax(sg.exp(x).at[i].add(x[i]).at[1:3].set(0.5), axis=0)
    outputs = [y, sg.grad(sg.sum(y**2), x), sg.searchsorted(x[0], x[1]), sg.isin(x, [1.0, 2.0])]
    program = sg.compile([x, i], outputs)
    fed = np.arange(20, dtype=np.float32).reshape(5, 4) / 7, np.array([4, 0, -1], np.int32)
    written = runpy.run_path(str(program.save_source(tmp_path / "written.py", N=5)))
    for mine, expected in zip(written["Program"]()(*fed), program(*fed), strict=True):
        same(mine, expected)


# ---- take -----------------------------------------------------------------------------------


@each("axis", [None, 0, 1, -1])
@each("at", [[1, 0, -1], [[0, 1], [2, 2]], 1, []])
def test_take_is_numpys(axis, at):
    x = RNG.standard_normal((3, 4, 3))
    same(value(sg.take(x, at, axis=axis)), np.take(x, np.array(at, int), axis=axis))
    same(value(np.take(sg.constant(x), np.array(at, int), axis)), x.take(np.array(at, int), axis))


@pytest.mark.parametrize(
    ("shape", "at", "axis"),
    [
        ((3, 4), (3, 2), 1),
        ((3, 4), (3, 2), -1),
        ((1, 4), (3, 2), 1),
        ((3, 4), (5, 1), 0),
        ((6,), (2,), 0),
    ],
)
def test_take_along_axis(shape, at, axis):
    x, i = RNG.standard_normal(shape), RNG.integers(-3, 3, at)
    found = sg.take_along_axis(x, i, axis=axis)
    same(value(found), np.take_along_axis(x, i, axis))
    same(value(np.take_along_axis(sg.constant(x), i, axis)), np.take_along_axis(x, i, axis))
    node, index = sg.placeholder("x", shape), sg.placeholder("i", at, int)
    y = sg.take_along_axis(node, index, axis=axis) ** 3
    check_second_derivatives([y], [node, index], [x, i], RNG)


def test_what_argsort_gives_is_taken_along_an_axis():
    x = sg.placeholder("x", ("N", "M"))
    program = sg.compile(x, sg.take_along_axis(x, sg.argsort(x, axis=0), axis=0))
    array = RNG.standard_normal((4, 3))
    same(program(array), np.sort(array, 0))


def test_an_embedding():
    table, words = sg.placeholder("table", ("V", 3)), sg.placeholder("words", ("N", 2), "int32")
    g = sg.grad(sg.sum(sg.take(table, words, axis=0) ** 2), table)
    rows, at = RNG.standard_normal((4, 3)), np.array([[0, 3], [3, 3], [1, 0]], np.int32)
    close(sg.compile([table, words], g)(rows, at), 2 * rows * [[2], [1], [0], [3]])


def test_what_take_refuses():
    x = sg.placeholder("x", (3, 4))
    with pytest.raises(BoundsError, match="index 3 is out of range for axis 0 of size 3"):
        sg.take(x, [3], axis=0)
    with pytest.raises(BoundsError, match="index -5 is out of range for axis 1 of size 4"):
        sg.take_along_axis(x, [[-5]], axis=1)
    with pytest.raises(DtypeError, match="takes integers, not float64"):
        sg.take(x, [0.0], axis=0)
    with pytest.raises(DtypeError, match="not bool"):
        sg.take(x, [True, False, True], axis=0)
    with pytest.raises(ShapeError, match="axis 2 is out of range"):
        sg.take(x, [0], axis=2)
    with pytest.raises(ShapeError, match="must have as many dimensions"):
        sg.take_along_axis(x, [0], axis=0)


# ---- repeat ---------------------------------------------------------------------------------


@each("axis", [None, 0, -1])
@each("repeats", [0, 2, [3], np.array(1)])
def test_repeat_is_numpys(axis, repeats):
    x = RNG.standard_normal((3, 4))
    same(value(sg.repeat(x, repeats, axis=axis)), np.repeat(x, repeats, axis))
    same(value(np.repeat(sg.constant(x), repeats, axis)), np.repeat(x, repeats, axis))


def test_repeat_by_counts():
    x, counts = RNG.standard_normal((3, 2)), [2, 0, 3]
    same(value(sg.repeat(x, sg.constant(counts) + 0, axis=0)), np.repeat(x, counts, 0))
    node = sg.placeholder("x", (3, 2))
    g = sg.grad(sg.sum(sg.repeat(node, counts, axis=0)), node)
    same(value(g, {node: x}), np.repeat([[2.0], [0], [3]], 2, 1))
    same(value(sg.repeat(np.ones((0, 2)), [], axis=0)), np.ones((0, 2)))
    named = sg.repeat(sg.placeholder("y", ("N", 2)), 3, axis=0)
    assert str(named.shape[0]) == "3*N"


@pytest.mark.parametrize(
    ("repeats", "words"),
    [
        (-1, "counts are numbers from 0 on"),
        ([[1, 2, 3]], "counts are numbers from 0 on"),
        ([1, 2], "2 counts do not fit the axis of size 3"),
        (sg.placeholder("n", 3, int), "how many elements there are is known only when the program"),
    ],
)
def test_what_repeat_refuses(repeats, words):
    with pytest.raises(ShapeError, match=words):
        sg.repeat(sg.placeholder("x", 3), repeats)


# ---- one_hot and segment_sum ----------------------------------------------------------------


def test_one_hot():
    x = np.array([[0, 2], [1, 7], [-1, 0]])
    expected = (x[..., None] == np.arange(3)).astype(float)
    same(value(sg.one_hot(x, 3)), expected)
    same(value(sg.one_hot(x, 3, axis=0, dtype="bool")), np.moveaxis(expected, -1, 0) > 0)
    same(value(sg.one_hot(np.uint8(1), 3)), np.array([0.0, 1, 0]))
    labels, like = sg.placeholder("labels", "N", "int8"), sg.placeholder("like", ("N", "C"))
    program = sg.compile([labels, like], sg.one_hot(labels, like.shape[1]) * like)
    same(program(np.array([1, 0], np.int8), np.ones((2, 3))), np.eye(3)[[1, 0]])
    with pytest.raises(DtypeError, match="takes integers, not float64"):
        sg.one_hot(np.ones(2), 3)


def test_segment_sum():
    x, ids = sg.placeholder("x", ("N", 2)), sg.placeholder("ids", "N", int)
    y = sg.segment_sum(x, ids, 3)
    program = sg.compile([x, ids], [y, sg.grad(sg.sum(y * y), x)])
    rows, at = RNG.standard_normal((4, 2)), np.array([2, 0, 2, 2])
    sums = np.stack([rows[at == k].sum(0) for k in range(3)])
    for mine, expected in zip(program(rows, at), [sums, 2 * sums[at]], strict=True):
        close(mine, expected, 1e-15)
    same(program(np.zeros((0, 2)), np.zeros(0, int))[0], np.zeros((3, 2)))
    with pytest.raises(BoundsError, match="index 3 is out of bounds"):
        program(rows, at + 1)
    with pytest.raises(BoundsError, match="index 3 is out of bounds"):
        program(rows, at - 1)
    many = sg.segment_sum(np.ones(2), np.array([1, 127], np.int8), 300)
    same(value(many), np.bincount([1, 127], minlength=300) + 0.0)
    with pytest.raises(ShapeError, match="are not one for each row"):
        sg.segment_sum(np.ones((2, 3)), [0, 1, 1], 2)
    with pytest.raises(DtypeError, match="takes integers"):
        sg.segment_sum(np.ones(2), [0.0, 1], 2)

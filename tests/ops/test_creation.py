"""Arrays from shapes and ends, and what views and joins are made into: gradients, named sizes."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import DtypeError, ShapeError, UnsupportedError
from tests.helpers import (
    check_derivatives,
    check_second_derivatives,
    close,
    each,
    generator,
    same,
    value,
)

x = sg.placeholder("x", ("N", 4))
X = generator("creation").standard_normal((3, 4))

# Each of a matrix of named size, as NumPy has it.
CALLS = [
    (lambda a: sg.roll(a, 1), lambda a: np.roll(a, 1)),
    (lambda a: sg.roll(a, -2, axis=0), lambda a: np.roll(a, -2, 0)),
    (lambda a: sg.roll(a, (1, 6), axis=(0, 1)), lambda a: np.roll(a, (1, 6), (0, 1))),
    (lambda a: sg.roll(a, (1, 1), axis=0), lambda a: np.roll(a, (1, 1), 0)),
    (lambda a: sg.roll(a, 1, axis=(0, -1)), lambda a: np.roll(a, 1, (0, -1))),
    (lambda a: sg.tile(a, 2), lambda a: np.tile(a, 2)),
    (lambda a: sg.tile(a, (3, 2, 1)), lambda a: np.tile(a, (3, 2, 1))),
    (lambda a: sg.tile(a, ()), lambda a: np.tile(a, ())),
    (lambda a: sg.tile(a, (2, 0)), lambda a: np.tile(a, (2, 0))),
    (lambda a: sg.unstack(a, axis=1)[2], lambda a: a[:, 2]),
    (lambda a: sg.unstack(a, axis=-1)[0] * a[:, 3], lambda a: a[:, 0] * a[:, 3]),
    (lambda a: sg.diff(a), lambda a: np.diff(a)),
    (lambda a: sg.diff(a, axis=0, n=2), lambda a: np.diff(a, 2, 0)),
    (lambda a: sg.diff(a, n=0), lambda a: a),
    (lambda a: sg.diff(a, n=9), lambda a: np.diff(a, 9)),
    (
        lambda a: sg.diff(a, prepend=1.0, append=a),
        lambda a: np.diff(a, prepend=1.0, append=a),
    ),
    (lambda a: sg.diff(a, axis=0, append=a[:2]), lambda a: np.diff(a, axis=0, append=a[:2])),
    (lambda a: sg.tril(a), np.tril),
    (lambda a: sg.tril(a, k=-1), lambda a: np.tril(a, -1)),
    (lambda a: sg.triu(a[None], k=2), lambda a: np.triu(a[None], 2)),
    (lambda a: sg.triu(a, k=-5), lambda a: np.triu(a, -5)),
    (lambda a: sg.broadcast_arrays(a, a[0], 1.0)[1], lambda a: np.broadcast_arrays(a, a[0])[1]),
    (lambda a: sg.meshgrid(a[:, 0], a[0])[0], lambda a: np.meshgrid(a[:, 0], a[0])[0]),
    (
        lambda a: sg.meshgrid(a[:, 0], a[0], a[1], indexing="ij")[1],
        lambda a: np.meshgrid(a[:, 0], a[0], a[1], indexing="ij")[1],
    ),
    (lambda a: sg.linspace(a, 2.0, 4), lambda a: np.linspace(a, 2.0, 4)),
    (
        lambda a: sg.linspace(a[0], a, 5, endpoint=False),
        lambda a: np.linspace(a[0], a, 5, endpoint=False),
    ),
    (lambda a: sg.linspace(1, a[0], 1), lambda a: np.linspace(1, a[0], 1)),
]


@each(("ours", "numpys"), CALLS)
def test_it_is_numpys_and_has_derivatives_of_both_orders(ours, numpys):
    fixed = sg.placeholder("fixed", X.shape)
    y = ours(fixed)
    close(value(y, {fixed: X}), numpys(X), 1e-14)
    close(sg.compile([x], ours(x))(X), numpys(X), 1e-14)
    if y.size:
        check_derivatives([y], [fixed], [X], generator("d"))
        check_second_derivatives([y], [fixed], [X], generator("e"))
    slope, named = (sg.grad(sg.sum(sg.square(ours(v))), v, disconnected="zero") for v in (fixed, x))
    close(sg.compile([x], named)(X), value(slope, {fixed: X}), 1e-14)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex64"])
def test_dtypes_stay(dtype):
    a = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    same(value(sg.roll(a, 1)), np.roll(a, 1))
    same(value(sg.tile(a, (2, 1))), np.tile(a, (2, 1)))
    same(value(sg.diff(a)), np.diff(a))
    same(value(sg.tril(a)), np.tril(a))
    same(value(sg.count_nonzero(a, axis=0)), np.count_nonzero(a, axis=0))


def test_what_is_left_out_of_a_triangle_may_be_anything():
    a = np.full((2, 2), np.nan)
    a[0, 0] = 1
    same(value(sg.tril(sg.triu(a))), np.array([[1, 0], [0, np.nan]]))


def test_a_roll_that_goes_around_is_no_node():
    fixed = sg.placeholder("y", (3, 4))
    assert sg.roll(fixed, 3, axis=0) is fixed
    assert sg.roll(fixed, 0).shape == (3, 4)
    assert sg.tile(fixed, (1, 1)) is fixed
    assert sg.broadcast_arrays(fixed, 1.0)[0] is fixed


def test_a_named_size_may_be_shorter_than_the_shift():
    program = sg.compile([x], sg.roll(x, 3, axis=0))
    for rows in (X, X[:2], X[:1], X[:0]):
        same(program(rows), np.roll(rows, 3, 0))


def test_counts_and_questions_of_named_shapes():
    assert sg.count_nonzero(x).type == sg.TensorType((), "int64")
    assert sg.count_nonzero(x, axis=1, keepdims=True).shape == (x.shape[0], 1)
    assert int(value(sg.count_nonzero(x), {x: np.array([[0, -0.0, np.nan, 2]])})) == 2
    assert sg.broadcast_shapes((x.shape[0], 1), (), 3) == (x.shape[0], 3)
    assert sg.broadcast_shapes() == ()


def test_asarray_takes_what_numpy_takes_and_nodes():
    assert sg.asarray(x) is x
    assert sg.asarray(x, dtype="float32").dtype == sg.float32
    assert sg.asarray([x[0], x[1]]).shape == (2, 4)
    assert sg.asarray([x[0, 0], 2], dtype="float32").type == sg.TensorType(2, "float32")
    same(value(sg.asarray([[1, 2]], dtype=sg.float32)), np.array([[1, 2]], "float32"))
    same(value(sg.asarray(range(3))), np.arange(3))
    for number, dtype in ((True, "bool"), (1, "int64"), (1.0, "float64"), (1j, "complex128")):
        assert sg.asarray(number).dtype == np.dtype(dtype)


def test_empty_is_the_same_whenever_it_runs():
    same(value(sg.empty((2, 3), dtype="int8")), np.zeros((2, 3), "int8"))
    same(value(sg.empty_like(x), {x: X}, {"N": 3}), np.zeros((3, 4)))


@each(
    ("build", "error", "words"),
    [
        (lambda: sg.roll(x, 1, axis=2), ShapeError, "out of range"),
        (lambda: sg.roll(x, (1, 2), axis=(0, 1, 1)), ShapeError, "2 shifts do not fit 3 axes"),
        (lambda: sg.tile(x, -1), ShapeError, "-1"),
        (lambda: sg.unstack(x), ShapeError, "N parts are not known in number"),
        (lambda: sg.unstack(1.0), ShapeError, "out of range"),
        (lambda: sg.diff(x, n=-1), ShapeError, "-1 is negative"),
        (lambda: sg.diff(1.0), ShapeError, "out of range"),
        (lambda: sg.diff(x, prepend=np.ones(3)), ShapeError, "out of range for 1"),
        (lambda: sg.tril(1.0), ShapeError, "two axes or more"),
        (lambda: sg.broadcast_shapes((2,), (3,)), ShapeError, "2 and 3 do not match"),
        (lambda: sg.broadcast_arrays(x, np.ones(3)), ShapeError, "4 and 3 do not match"),
        (lambda: sg.meshgrid([1], indexing="yx"), UnsupportedError, "'xy' or 'ij'"),
        (lambda: sg.linspace(0, 1, -1), ShapeError, "number of elements, not -1"),
        (lambda: sg.linspace(0, 1, 2.5), ShapeError, "number of elements, not 2.5"),
        (lambda: sg.linspace(x, 1, True), ShapeError, "not True"),
        (lambda: sg.asarray("a"), DtypeError, "no array of numbers"),
        (lambda: sg.asarray([1, 2], dtype="O"), DtypeError, "not a dtype of symgrad"),
        (lambda: sg.asarray(300, dtype="int8"), DtypeError, "300 out of bounds for int8"),
        (lambda: sg.asarray([1, -1], dtype="uint8"), DtypeError, "-1 out of bounds for uint8"),
        (lambda: sg.arange(3, dtype="bool"), DtypeError, "counts in numbers, not in bool"),
        (lambda: sg.count_nonzero(x, axis=(0, 0)), ShapeError, "twice"),
    ],
)
def test_what_does_not_fit_is_refused(build, error, words):
    with pytest.raises(error, match=words):
        build()


@pytest.mark.parametrize("k", [2**63, -(2**63) - 1, 10**30, -(10**30)])
def test_a_diagonal_beyond_every_matrix_is_empty(k):
    same(value(sg.eye(3, k=k)), np.zeros((3, 3)))

"""x[index] and x.at[index] by NumPy's rules: what they take, give, change and refuse."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import BoundsError, DtypeError, KernelError, ShapeError
from tests.helpers import (
    check_derivatives,
    check_second_derivatives,
    close,
    each,
    generator,
    same,
    value,
)

RNG = generator("index")
X = RNG.standard_normal((4, 5, 3))
AT, J, K = RNG.integers(-4, 4, (2, 3)), RNG.integers(-5, 5, 3), RNG.integers(0, 3, (2, 1))
MASK, ROWS = RNG.random((4, 5)) < 0.5, np.array([True, False, True, True])
ALL = slice(None)
INDICES = [
    AT, (AT, J), (ALL, J), (slice(1, 3), J), (AT, ALL, K), (0, ALL, K), (0, J), (..., K),
    (None, J % 4), (AT, None, J), (AT, ..., K), (AT[..., None], J, 0), [1, 2], [[1, 2], [0, -1]],
    [], np.uint8(2), (np.array(1), J), np.array([1, 2], np.uint64),
    (ALL, slice(None, None, -2), [0, 0, 2]), MASK, (MASK, 1), ROWS, (ALL, slice(1, 4), K),
    (ROWS, 0), (ROWS, ALL, [0]), ([True, False] * 2,), True, False, np.bool_(True), (ALL, True),
    np.zeros((4, 5, 3), bool), (np.array([], int), ALL, 1), 2, (ALL, -1), (..., 1),
    (slice(1, 3), None, slice(None, None, -1)), (),
]  # fmt: skip
FUNCTIONS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "min": np.minimum,
    "max": np.maximum,
}
every_index = each("index", INDICES, ids=lambda i: repr(i).replace("\n", ""))


def as_placeholders(index):
    """The index with placeholders for its arrays of ints, and what feeds them."""
    items = index if isinstance(index, tuple) else (index,)
    feeds, made = {}, []
    for i in items:
        if isinstance(i, np.ndarray) and i.dtype.kind in "iu":
            node = sg.placeholder(f"i{len(feeds)}", i.shape, i.dtype)
            feeds[node] = i
            made.append(node)
        else:
            made.append(i)
    return tuple(made), feeds


@every_index
def test_reading_is_numpys(index):
    expected = X[index]
    same(value(sg.constant(X)[index]), expected)
    x = sg.placeholder("x", X.shape)
    symbolic, feeds = as_placeholders(index)
    y = x[symbolic]
    assert y.shape == expected.shape
    same(value(y, {x: X, **feeds}), expected)
    same(value(x.at[symbolic].get(), {x: X, **feeds}), expected)


@every_index
def test_writing_is_numpys(index):
    new = generator("new").standard_normal(X[index].shape)
    written = X.copy()
    written[index] = new
    x = sg.placeholder("x", X.shape)
    symbolic, feeds = as_placeholders(index)
    feeds[x] = X
    same(value(x.at[symbolic].set(new), feeds), written)
    for name, ufunc in FUNCTIONS.items():
        written = X.copy()
        ufunc.at(written, index, new)
        for at in (index, symbolic):
            close(value(getattr(x.at[at], name)(new), feeds), written, 1e-14)


@every_index
@each("name", ["set", "add", "multiply", "divide", "max"])
def test_derivatives(index, name):
    x, u = sg.placeholder("x", X.shape), sg.placeholder("u", X[index].shape)
    symbolic, feeds = as_placeholders(index)
    y = getattr(x.at[symbolic], name)(u)
    new = generator(name).uniform(0.5, 2, u.shape)
    nodes, arrays = [x, u, *feeds], [X, new, *feeds.values()]
    check_derivatives([y, x[symbolic]], nodes, arrays, generator(name))


@pytest.mark.parametrize("name", ["set", "add", "multiply", "divide", "max", "min"])
def test_second_derivatives_where_places_are_named_twice(name):
    x, u, i = sg.placeholder("x", 3), sg.placeholder("u", (4, 2)), sg.placeholder("i", (4, 2), int)
    y = getattr(x.at[i], name)(u) ** 3 + sg.sum(x[i] ** 2)
    arrays = [np.array([1.0, 2, 3]), RNG.uniform(0.5, 4, (4, 2)), RNG.integers(-3, 3, (4, 2))]
    check_second_derivatives([y], [x, u, i], arrays, generator(name))


def test_of_what_is_set_twice_the_last_stays_and_has_the_gradient():
    x, u = sg.placeholder("x", 3), sg.placeholder("u", 4)
    y = x.at[[1, 0, -2, 1]].set(u)
    feeds = {x: np.zeros(3), u: np.array([1.0, 2, 3, 4])}
    same(value(y, feeds), np.array([2.0, 4, 0]))
    by_x, by_u = sg.grad(sg.sum(y * np.array([1.0, 10, 100])), [x, u])
    same(value(by_x, feeds), np.array([0.0, 0, 100]))
    same(value(by_u, feeds), np.array([0.0, 1, 0, 10]))


def test_zeros_among_factors_of_one_place():
    x, u = sg.placeholder("x", 2), sg.placeholder("u", 3)
    y = x.at[[0, 1, 0]].multiply(u)
    feeds = {x: np.array([2.0, 3]), u: np.array([0.0, 0, 5])}
    by_x, by_u = (value(g, feeds) for g in sg.grad(sg.sum(y), [x, u]))
    same(by_x, np.array([0.0, 0]))
    same(by_u, np.array([10.0, 3, 0]))


@pytest.mark.parametrize(
    ("u", "by_x", "by_u"),
    [([2, 2, 1], 0, [0.5, 0.5, 0]), ([1, 1, 1], 0.5, [1 / 6] * 3), ([0, 0, 0], 1, [0, 0, 0])],
)
def test_extrema_that_tie_share_one_unit(u, by_x, by_u):
    for sign, name in ((1, "max"), (-1, "min")):
        x, v = sg.placeholder("x", 2), sg.placeholder("v", 3)
        y = getattr(x.at[[1, 1, 1]], name)(v)
        feeds = {x: np.array([0.0, sign]), v: sign * np.array(u, float)}
        found = [value(g, feeds) for g in sg.grad(y[1], [x, v])]
        close(found[0], [0, by_x], 1e-15)
        close(found[1], by_u, 1e-15)


def test_a_maximum_with_a_number_is_relu_at_its_kink():
    x = sg.placeholder("x", 3)
    for index in (slice(0, 2), [0, 1], [0, 0]):
        g = sg.grad(sg.sum(x.at[index].max(0.0)), x)
        same(value(g, {x: np.zeros(3)})[0], np.float64(0))


def test_masks_that_only_a_run_tells():
    x, m = sg.placeholder("x", ("N", 2)), sg.placeholder("m", "N", "bool")
    rows = np.arange(6.0).reshape(3, 2)
    feeds = {x: rows, m: np.array([True, False, True])}
    for name, ufunc in FUNCTIONS.items():
        expected = rows.copy()
        ufunc.at(expected, feeds[m], [7, 9])
        same(value(getattr(x.at[m], name)([7.0, 9.0]), feeds), expected)
    same(value(x.at[x > 2].set(0), feeds), np.where(rows > 2, 0, rows))
    same(value(sg.grad(sg.sum(x.at[m].set(5) ** 2), x), feeds), 2 * rows * [[0], [1], [0]])
    with pytest.raises(ShapeError, match="how many elements a boolean mask takes is known only"):
        x[m]
    with pytest.raises(ShapeError, match="write one value to all of them"):
        x.at[m].set(np.ones((2, 2)))
    with pytest.raises(ShapeError, match="axis 0 of the mask is N, and of the array 3"):
        sg.constant(rows).at[m].set(0)


def test_named_dimensions():
    x, i = sg.placeholder("x", ("N", 4)), sg.placeholder("i", "M", "int32")
    outputs = [x[i], x[i, 1:], x[:, i], x.at[i].add(x[i]), sg.grad(sg.sum(x[i] ** 2), x)]
    assert [y.shape[0] for y in outputs] == [i.shape[0], i.shape[0], *(x.shape[0],) * 3]
    program = sg.compile([x, i], outputs)
    for rows, at in ((3, [0, 2, 2, -1]), (2, []), (4, [3])):
        array, at = RNG.standard_normal((rows, 4)), np.array(at, np.int32)
        added, gradient = array.copy(), np.zeros((rows, 4))
        np.add.at(added, at, array[at])
        np.add.at(gradient, at, 2 * array[at])
        expected = [array[at], array[at, 1:], array[:, at], added, gradient]
        for mine, numpys in zip(program(array, at), expected, strict=True):
            close(mine, numpys, 1e-15)


def test_a_write_to_what_nobody_reads_any_more_is_done_in_place():
    x, i = sg.placeholder("x", 1000), sg.placeholder("i", 3, int)
    y = sg.exp(x).at[i].set(1.0).at[2:5].add(2.0).at[i].add(1.0)
    program = sg.compile([x, i], sg.tanh(y))
    program(np.zeros(1000), np.arange(3))
    assert program.plan.peak_bytes < 2 * 8000


@pytest.mark.parametrize(
    ("shape", "index"), [((0, 4, 5), (ALL, [1, 2], [0, 3])), ((0, 3), ([], [])), ((2, 0), (1, []))]
)
def test_of_no_elements(shape, index):
    x = sg.placeholder("x", shape)
    feeds = {x: np.zeros(shape)}
    same(value(x[index], feeds), feeds[x][index])
    same(value(x.at[index].add(x[index]), feeds), feeds[x])
    same(value(sg.grad(sg.sum(x[index]), x), feeds), feeds[x])


def test_what_is_written_keeps_the_dtype():
    x = sg.constant(np.zeros(3, np.float32))
    for written in (x.at[0].set(1.5), x.at[[0, 1]].add(np.float64(2)), x.at[1:].multiply(3)):
        assert written.dtype == np.float32
    same(value(sg.constant(np.zeros(2, int)).at[1].set(True)), np.array([0, 1]))
    with pytest.raises(DtypeError, match="float64 cannot be written into int64; convert one"):
        sg.constant(np.zeros(3, int)).at[0].set(0.5)
    with pytest.raises(DtypeError, match="out of bounds for uint8"):
        sg.constant(np.zeros(3, np.uint8)).at[0].set(300)
    with pytest.raises(DtypeError, match="complex128 cannot be written into float64"):
        sg.constant(np.zeros(3)).at[0].set(1j)
    with pytest.raises(DtypeError, match="not bool"):
        sg.constant(np.zeros(3, bool)).at[[0]].add(True)


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (4, "index 4 is out of range for an axis of size 4"),
        ([0, 4], "index 4 is out of range for axis 0 of size 4"),
        ((0, [-6, 1]), "index -6 is out of range for axis 1 of size 5"),
        ((ALL, np.array([9, -9])), "index -9 is out of range for axis 1 of size 5"),
    ],
)
def test_out_of_bounds_when_it_is_built(index, words):
    for use in (lambda i: sg.placeholder("x", (4, 5))[i], lambda i: sg.zeros((4, 5)).at[i].set(0)):
        with pytest.raises(BoundsError, match=words):
            use(index)
    with pytest.raises(IndexError):
        np.zeros((4, 5))[index]


@pytest.mark.parametrize(
    "build", [lambda x, i: x[i], lambda x, i: x.at[i].add(1), lambda x, i: x[1:, i]]
)
@pytest.mark.parametrize("bad", [5, -6])
def test_out_of_bounds_when_it_runs(build, bad):
    x, i = sg.placeholder("x", ("N", 5)), sg.placeholder("i", 2, int)
    program = sg.compile([x, i], build(x, i))
    for kind in (BoundsError, KernelError, IndexError):
        with pytest.raises(kind, match=rf"index {bad} is out of bounds for axis [01] with size 5"):
            program(np.zeros((5, 5)), np.array([0, bad]))


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (1.0, "made of ints, slices, None and ..., of arrays of ints or booleans, not of float"),
        (np.ones(2), "not of float64s"),
        ("a", "not of str"),
        ((0, 0, 0), "3 indices for the 2 dimensions"),
        ((..., ...), "at most one ellipsis"),
        (([0, 1], [0, 1, 2]), "2 and 3 do not match"),
        (np.ones((3, 3), bool), r"a mask of shape \(3, 3\) for axes of shape \(4, 5\)"),
        (np.ones((4, 5, 1), bool), "3 indices for the 2 dimensions"),
        (slice(0, 2, 0), "step of a slice cannot be 0"),
    ],
)
def test_what_is_no_index(index, words):
    with pytest.raises(ShapeError, match=words):
        sg.placeholder("x", (4, 5))[index]


def test_values_that_do_not_fit_the_place():
    with pytest.raises(ShapeError, match="3 and 5 do not match"):
        sg.zeros((4, 5)).at[[0, 1]].set(np.ones(3))
    with pytest.raises(
        ShapeError, match=r"does not broadcast to the place, which is float64\[2, 5"
    ):
        sg.zeros((4, 5)).at[[0, 1]].set(np.ones((3, 2, 5)))
    with pytest.raises(ShapeError, match="do not match"):
        sg.zeros((4, 5)).at[1:3].add(np.ones((3, 1)))


def test_a_node_is_still_not_written_into():
    with pytest.raises(TypeError, match=r"x\.at\[index\]\.set\(value\)"):
        sg.zeros(3)[0] = 1


def test_jacobians_and_batches():
    x, i = sg.placeholder("x", (3, 4)), sg.placeholder("i", 2, int)
    arrays = {x: RNG.standard_normal((3, 4)), i: np.array([2, 0])}
    for y in (x[i] ** 2, x[:, i] ** 2, x.at[:, i].multiply(x[0, 1]), x.at[i, 1:3].add(x[0, 0])):
        found = value(sg.jacobian(sg.reshape(y, -1), x), arrays)
        for seed, row in zip(np.eye(len(found)), found, strict=True):
            close(row, value(sg.vjp(sg.reshape(y, -1), x, seed), arrays))
        forward = value(sg.jacobian(sg.reshape(y, -1), x, mode="forward"), arrays)
        close(forward, found)


# ---- nothing is taken -----------------------------------------------------------------------


@pytest.mark.parametrize("index", [[[]], [[], []], (ALL, [[]]), ([], [])], ids=repr)
def test_lists_without_a_number_take_nothing(index):
    x = sg.placeholder("x", X.shape)
    same(sg.compile(x, x[index])(X), X[index])
    same(sg.compile(x, x.at[index].set(7.0))(X), X)
    check_derivatives([x[index] * 3], [x], [X], RNG)


@pytest.mark.parametrize(("shape", "data"), [((0, 3), (0, 3)), (("N", 0), (4, 0))])
def test_a_mask_without_elements_takes_nothing_though_its_value_is_not_known(shape, data):
    x, zeros = sg.placeholder("x", shape), np.zeros(data)
    found = x[x > 0]
    assert found.shape == (0,)
    same(sg.compile(x, found)(zeros), zeros[zeros > 0])
    same(sg.compile(x, sg.grad(sg.sum(found), x))(zeros), zeros)
    same(sg.compile(x, x.at[x > 0].set(1.0))(zeros), zeros)


def test_a_row_mask_without_elements_takes_no_row():
    x = sg.placeholder("x", (0, 3))
    assert x[x[:, 0] > 0].shape == (0, 3)


def test_a_mask_without_elements_must_fit_all_the_same():
    with pytest.raises(ShapeError, match=r"shape \(0,\) for axes of shape \(4,\)"):
        sg.placeholder("x", (4, 3))[np.zeros(0, bool)]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: sg.take(x, [[]], axis=0),
        lambda x: sg.one_hot([], 3),
        lambda x: sg.bincount([]),
        lambda x: sg.bincount([], length=3),
        lambda x: sg.segment_sum(x[:0], [], 3),
        lambda x: sg.repeat(x[:0], [], axis=0),
    ],
)
def test_an_empty_list_is_one_of_integers_where_integers_are_wanted(make):
    y = make(sg.placeholder("x", (4, 3)))
    assert y.size in (0, 3, 9)

"""The function that a person called is named, with the line, whatever within it refuses."""

import math

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import each
from tests.test_bad_input import divmod_node, refused


@each(
    ("call", "error", "parts"),
    [
        (lambda a, b: sg.stack([a, b]), sg.ShapeError, ["stack([float64[2, 3], float64[4"]),
        (lambda a, b: sg.linalg.trace(sg.sum(a)), sg.ShapeError, ["trace(float64[()]): "]),
        (lambda a, b: sg.tril(sg.sum(a)), sg.ShapeError, ["tril(float64[()]): "]),
        (lambda a, b: sg.tensordot(a, b), sg.ShapeError, ["tensordot(float64[2, 3], flo"]),
        (lambda a, b: sg.vecdot(a, b), sg.ShapeError, ["vecdot(float64[2, 3], float64[4, 5]): "]),
        (lambda a, b: sg.std(a, axis=2), IndexError, ["std(float64[2, 3]): axis 2 is out of"]),
        (lambda a, b: sg.nn.mse_loss(a, b), sg.ShapeError, ["mse_loss(float64[2, 3], float64[4"]),
        (lambda a, b: sg.nn.Linear(4, 2, key=sg.random.key(0), dtype="float64")(a), sg.ShapeError,
         ["Linear(float64[2, 3]): ", "in matmul("]),
        (lambda a, b: sg.random.normal(a, (2,)), sg.DtypeError, ["normal(", "sg.random.key(0)"]),
        (lambda a, b: sg.reshape(a, None), sg.ArgumentError, ["reshape(float64[2, 3]", "it is"]),
        (lambda a, b: sg.grad(sg.sum(a), None), sg.GradientError, ["grad(float64[()], None)"]),
        (lambda a, b: sg.jacobian(a, 3), sg.GradientError, ["jacobian(float64[2, 3], 3): ", "int"]),
        (lambda a, b: sg.vjp(None, a, 1), sg.GradientError, ["vjp(None", "an output is a node"]),
        (lambda a, b: sg.zeros((2**40, 2**40)), MemoryError, ["zeros((10995", "no memory holds"]),
        (lambda a, b: sg.tile(a, (2**40, 2**40)), MemoryError, ["tile(float64[2, 3]"]),
        (lambda a, b: sg.arange(2**50), sg.AllocationError, ["arange(1125899906842624): "]),
        (lambda a, b: sg.linspace(0, 1, 2**50), sg.AllocationError, ["linspace(0, 1): "]),
    ],
)  # fmt: skip
def test_the_function_that_was_called_is_named(call, error, parts):
    a, b = sg.placeholder("a", (2, 3)), sg.placeholder("b", (4, 5))
    with refused(error, *parts, "built at test_refused_calls.py:") as caught:
        call(a, b)
    assert isinstance(caught.value, sg.SymgradError)
    assert str(caught.value).startswith(parts[0])


def test_what_a_users_function_raises_is_left_as_it_is():
    class Mine:
        def __index__(self):
            raise ZeroDivisionError("of mine")

    x = sg.placeholder("x", 3)
    with pytest.raises(ZeroDivisionError, match="of mine") as caught:
        sg.sum(x, axis=Mine())
    assert caught.value.__cause__ is None


def test_axes_and_indices_out_of_range_are_index_errors():
    x = sg.placeholder("x", (2, 3))
    for call in (
        lambda: sg.sum(x, axis=2), lambda: np.sum(x, axis=-3), lambda: np.size(x, 2),
        lambda: sg.concat([x, x], axis=5), lambda: sg.expand_dims(x, axis=4), lambda: x[2],
        lambda: x[0, 0, 0], lambda: divmod_node(x)[2], lambda: sg.fft.fft(x, axis=2),
        lambda: sg.moveaxis(x, 0, 2), lambda: sg.permute_dims(x, (0, 2)),
    ):  # fmt: skip
        for error in (IndexError, ValueError, sg.ShapeError):
            with pytest.raises(error):
                call()


def test_sizes_are_learnt_in_any_order():
    wide, n = sg.placeholder("wide", ("N*M",)), sg.placeholder("n", ("N",))
    deep = sg.placeholder("deep", ("N*M*K",))
    program = sg.compile([deep, wide, n], sg.sum(deep) + sg.sum(wide) + sg.sum(n))
    assert program(np.ones(24), np.ones(6), np.ones(3)) == 33
    with refused(sg.FeedError, "'wide'", "no M is found for which M*N is 7"):
        sg.compile([wide, n], sg.sum(wide) + sg.sum(n))(np.ones(7), np.ones(3))


@pytest.mark.parametrize(
    "build",
    [
        sg.zeros_like, lambda x: sg.zeros(x.shape), lambda x: sg.eye(x.shape[0]),
        lambda x: sg.arange(x.shape[0]), lambda x: sg.constant(1.0) * x.shape[0],
        lambda x: sg.random.normal(sg.random.key(0), x.shape),
    ],
)  # fmt: skip
def test_a_name_that_no_input_tells(build):
    y = build(sg.placeholder("x", ("N", 3)))
    with refused(sg.GraphError, "no input tells the size of N", "test_refused_calls.py:"):
        sg.compile([], y)
    assert np.shape(sg.compile(sg.placeholder("n", "N"), y)(np.ones(2))) == tuple(
        2 if s == "N" else s for s in (str(s) if not isinstance(s, int) else s for s in y.shape)
    )


def test_powers_with_a_modulus():
    with refused(sg.UnsupportedError, "pow", "% modulus"):
        pow(sg.placeholder("x", 3), 2, 3)


@pytest.mark.parametrize("budget", ["1GB", "1e9", 1.5, True, np.True_])
def test_budgets_that_are_no_bytes(budget):
    x = sg.placeholder("x", 3)
    with refused(sg.GraphError, "memory_budget", repr(budget)):
        sg.compile(x, x + 1, memory_budget=budget)


# ---- other libraries' arrays ----------------------------------------------------------------


class Tensor:
    """As PyTorch's that requires grad."""

    def detach(self):
        return np.ones(3)

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


def test_a_tensor_that_requires_grad():
    x = sg.placeholder("x", 3)
    for call in (
        lambda: x + Tensor(), lambda: Tensor() + x, lambda: sg.constant(Tensor()),
        lambda: sg.variable("w", Tensor()), lambda: sg.stack([x, Tensor()]),
        lambda: sg.compile(x, x + 1)(Tensor()), lambda: sg.asarray(Tensor()),
    ):  # fmt: skip
        with refused(sg.SymgradError, "requires grad", "tensor.detach()"):
            call()


def test_nodes_where_numpy_wants_values():
    x, i = sg.placeholder("x", (3, 3)), sg.placeholder("i", (), "int64")
    for call in (
        lambda: np.ones(5)[i], lambda: np.array([i, i]), lambda: np.asarray([x]),
        lambda: np.array([x, x], dtype=float),
    ):  # fmt: skip
        with refused(sg.SymbolicError, "sg.constant(array)[node]", "sg.stack(nodes)"):
            call()
    with refused(sg.SymbolicError, "sg.constant(array)[node]"):
        [1, 2, 3][i]
    assert np.array([sg.constant([1.0]), sg.constant([2.0])]).tolist() == [[1.0], [2.0]]


def test_sparse_matrices():
    sparse = pytest.importorskip("scipy.sparse")
    solver = pytest.importorskip("scipy.sparse.linalg")
    x = sg.placeholder("x", (3, 3))
    for matrix in (sparse.eye(3).tocsr(), sparse.eye_array(3)):
        for call in (lambda m: m + x, lambda m: x * m, sg.constant):
            with refused(sg.SymgradError, "matrix.toarray()"):
                call(matrix)
        with refused(sg.SymbolicError, "sg.sparse.matrix(A)"):
            matrix.multiply(x)
    with refused(sg.SymbolicError, "sg.sparse.solve(A, b)"):
        solver.spsolve(sparse.eye_array(3).tocsr(), x)
    with refused(sg.DtypeError, "matrix.todense()"):
        x * sg.sparse.matrix(sparse.eye_array(3))


# ---- indices --------------------------------------------------------------------------------


def test_indices_that_no_array_takes_are_index_errors():
    x, real = sg.placeholder("x", (3, 4)), sg.placeholder("real", ())
    for index in (1.5, "a", real, [1.5], (..., ...), np.ones((2, 4), bool), ([0, 1], [0, 1, 2])):
        with refused(IndexError, "getitem(", "test_refused_calls.py") as caught:
            x[index]
        assert isinstance(caught.value, sg.IndexingError)
        assert isinstance(caught.value, sg.ShapeError)
        with pytest.raises(IndexError):
            np.ones((3, 4))[np.float64(1.5) if index is real else index]


@pytest.mark.parametrize(
    "make",
    [lambda x: x[7], lambda x: x[-8], lambda x: sg.grad(sg.sum(x[7]), x), lambda x: x.at[7].add(1),
     lambda x: sg.exp(x)[7] * 2],
)  # fmt: skip
def test_an_index_beyond_a_named_size_is_an_index_error_before_anything_runs(make):
    x = sg.placeholder("x", ("N",))
    program = sg.compile(x, make(x))
    assert np.isfinite(program(np.ones(8))).all()
    with refused(IndexError, "index", "axis 0 of size 3, which is N", "test_refused_calls.py"):
        program(np.ones(3))


SLICES = [
    "1:", ":3", "-3:", ":-1", "2:5", "3::2", ":5:2", "-4:-1", "2:-1", "-3:4", "1:-2:3", "0:1",
]  # fmt: skip


@each("written", SLICES)
def test_a_slice_that_is_refused_suggests_one_for_every_size(written):
    x = sg.placeholder("x", ("N",))
    with pytest.raises(sg.ShapeError, match="or slice what there is: x") as caught:
        sg.compile(x, eval(f"x[{written}]"))(np.ones(0))
    suggested = str(caught.value).partition("what there is: ")[2].splitlines()[0]
    program = sg.compile(x, eval(suggested))
    for n in range(9):
        array = np.arange(float(n))
        assert program(array).tolist() == eval(f"array[{written}]").tolist(), (suggested, n)


@pytest.mark.parametrize("offset", [1, 3, -1, -3])
def test_a_diagonal_that_is_refused_suggests_one_for_every_size(offset):
    x = sg.placeholder("x", ("N", "N"))
    with pytest.raises(sg.ShapeError, match="main diagonal of x") as caught:
        sg.compile(x, sg.linalg.diagonal(x, offset=offset))(np.ones((0, 0)))
    suggested = eval(str(caught.value).partition("main diagonal of ")[2].splitlines()[0])
    program = sg.compile(x, sg.linalg.diagonal(suggested))
    for n in range(6):
        array = np.arange(float(n * n)).reshape(n, n)
        assert program(array).tolist() == np.diagonal(array, offset).tolist()


def test_differences_of_what_has_no_elements_say_what_to_write():
    x = sg.placeholder("x", ("N",))
    with refused(sg.ShapeError, 'x[sg.dim("min(N, 1)"):]', "sg.diff(x)"):
        sg.compile(x, sg.diff(x))(np.ones(0))


# ---- values that are not there yet ----------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "mend"),
    [
        (bool, "sg.where(condition, a, b)"), (math.sin, "sg.sin(x)"), (float, "sg.sin(x)"),
        ("{:.3f}".format, "f'{x}'"),
    ],
)  # fmt: skip
def test_a_value_that_is_asked_for_too_early_names_one_remedy(ask, mend):
    with refused(sg.SymbolicError, mend, "sg.compile") as caught:
        ask(sg.placeholder("x", ()))
    for other in ("sg.stack", "toarray", "sg.constant"):
        assert other not in str(caught.value)


def test_pythons_round():
    x = sg.placeholder("x", 4)
    for y in (round(x), round(x, 0), round(x, None)):
        assert sg.compile(x, y)([0.5, 1.5, -2.5, 0.2]).tolist() == [0, 2, -2, 0]
    with refused(sg.UnsupportedError, "sg.round(x * 10.0**2) / 10.0**2"):
        round(x, 2)


# ---- what is meant --------------------------------------------------------------------------


def test_names_and_mends():
    x = sg.placeholder("x", (3, 4))
    with refused(sg.ShapeError, "stack([]): there is no array to join") as caught:
        sg.stack([])
    assert "concat" not in str(caught.value)
    with refused(sg.AxisError, "np.size(float64[3, 4], 3)", "built at test_refused_calls.py"):
        np.size(x, 3)


@pytest.mark.parametrize(("dtype", "value"), [("uint8", -1), ("int8", 200)])
def test_numbers_that_a_dtype_cannot_hold_are_not_to_be_cast(dtype, value):
    x = sg.placeholder("x", 2, dtype)
    for fed in ([value, 2], np.array([value, 2])):
        with refused(sg.FeedError, f"{value} at (0,) becomes", "a dtype that holds it") as caught:
            sg.compile(x, x + 0)(fed)
        assert "astype" not in str(caught.value)
    with refused(sg.FeedError, f"array.astype('{dtype}')"):
        sg.compile(x, x + 0)(np.array([1, 2]))


def test_modules_where_variables_are_meant(tmp_path):
    net = sg.nn.Linear(3, 2, key=sg.random.key(0))
    x = sg.placeholder("x", ("N", 3))
    with refused(sg.GradientError, "not Linear", "module.parameters()"):
        sg.grad(sg.sum(net(x)), net)
    optimizer = sg.optim.Adam(net)
    for given in ({"L1": net}, {"opt": optimizer}):
        with pytest.raises(sg.StateError, match="; write ") as caught:
            sg.save_state(tmp_path / "w.npz", given)
        meant = eval(str(caught.value).partition("; write ")[2])
        sg.save_state(tmp_path / "w.npz", meant)
        sg.load_state(tmp_path / "w.npz", meant)

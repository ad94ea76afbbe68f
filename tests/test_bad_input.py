"""What a person gets wrong is refused with what it is, the line it stands on, and the mend."""

import re
import runpy
import sys

import numpy as np
import pytest

import symgrad as sg


def here():
    """The caller's line as messages print it."""
    return f"test_bad_input.py:{sys._getframe(1).f_lineno}"


def refused(error, *parts):
    """Expect an error whose message holds all of the parts."""
    pattern = "".join(f"(?=.*{re.escape(p)})" for p in parts)
    return pytest.raises(error, match=f"(?s)^{pattern}")


@pytest.fixture
def net():
    x, at = sg.placeholder("x", ("N", 3), "float32"), here()
    target = sg.placeholder("target", ("N", 2), "float32")
    w = sg.variable("w", np.ones((3, 2), "float32"))
    return sg.compile([x, target], sg.sum((x @ w - target) ** 2)), at


X = np.ones((4, 3), "float32")
T = np.ones((4, 2), "float32")


# ---- feeding: shapes and dtypes -------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "parts"),
    [
        (np.ones(3, "f4"), ["'x' float32[N, 3]", "has 2 dimensions", "shape (3,)"]),
        (np.float32(1), ["'x'", "has 2 dimensions", "shape ()"]),
        (np.ones((4, 5), "f4"), ["'x'", "shape (4, 5)", "axis 1 is 5, not 3"]),
        (X.astype("f8"), ["'x'", "fed float64", "array.astype('float32')"]),
        (X.astype("c8"), ["'x'", "fed complex64", "array.astype('float32')"]),
        (X.astype("i8"), ["'x'", "fed int64", "array.astype('float32')"]),
        (X.astype(object), ["'x'", "an array of object", "np.asarray(value, dtype='float32')"]),
        (X.astype("S3"), ["'x'", "an array of |S3", "not of numbers"]),
        (X.astype("M8[s]"), ["'x'", "an array of datetime64[s]", "not of numbers"]),
        ("three", ["'x'", "an array of <U5", "not of numbers"]),
        (None, ["'x'", "an array of object", "not of numbers"]),
        ([[1.0, 2.0], [3.0]], ["'x'", "fed what is no array", "inhomogeneous"]),
        (np.ma.masked_array(X, X > 0), ["'x'", "a masked array", "a.filled(0)"]),
        ([[1j] * 3] * 4, ["'x'", "fed complex128", "without loss"]),
    ],
)
def test_arrays_that_do_not_fit(net, x, parts):
    program, at = net
    with refused(sg.FeedError, at, *parts):
        program(x, T)


def test_a_node_is_no_array(net):
    program, at = net
    other, there = sg.placeholder("other", (4, 3), "float32"), here()
    with refused(sg.FeedError, at, "was fed the node 'other'", there, "feed arrays"):
        program(other, T)


def test_one_name_is_one_size(net):
    program, _ = net
    with refused(sg.FeedError, "'target'", "axis 0 is 5, not 4", "N is 4 by 'x'"):
        program(X, np.ones((5, 2), "float32"))
    assert program(X, T) == 32


def test_one_name_twice_in_one_shape():
    x, at = sg.placeholder("x", ("N", "N")), here()
    program = sg.compile(x, sg.sum(x))
    with refused(sg.FeedError, at, "axis 1 is 3, not 2", "N is 2 by another axis"):
        program(np.ones((2, 3)))


def test_numpy_scalars_are_not_weak():
    x = sg.placeholder("x", (), "float32")
    program = sg.compile(x, x * 2)
    assert program(0.1) == np.float32(0.1) * 2
    with refused(sg.FeedError, "fed float64"):
        program(np.float64(0.1))


def test_integers_that_a_dtype_cannot_hold():
    x = sg.placeholder("x", 2, "uint8")
    program = sg.compile(x, x + 0)
    assert program([1, 255]).tolist() == [1, 255]
    for value in ([1, 256], [-1, 0], [1.5, 2.0]):
        with refused(sg.FeedError, "uint8", "without loss"):
            program(value)


# ---- feeding: names -------------------------------------------------------------------------


def test_all_faults_are_told_at_once(net):
    program, _ = net
    with refused(
        sg.FeedError,
        "'x' is given twice, by position and by name",
        "there is no placeholder 'targt'; did you mean 'target'?",
        "there is no placeholder 'zzz'.",
        "in order: 'x', 'target'",
    ) as caught:
        program(X, x=X, targt=T, target=T, zzz=T)
    assert "missing" not in str(caught.value)
    with refused(sg.FeedError, "no placeholder 'X'", "missing: 'x', 'target'"):
        program(X=X)
    with refused(sg.FeedError, "missing: 'x', 'target'"):
        program()
    with refused(sg.FeedError, "3 arrays were given for 2 placeholders"):
        program(X, T, T)


def test_two_placeholders_of_one_name():
    a, first = sg.placeholder("x", 3), here()
    b, second = sg.placeholder("x", 3), here()
    with refused(sg.GraphError, "two inputs are called 'x'", first, second, "its own name"):
        sg.compile([a, b], a + b)


def test_inputs_that_are_not_listed_or_no_inputs():
    x, at = sg.placeholder("x", 3), here()
    w, there = sg.variable("w", np.ones(3)), here()
    with refused(sg.GraphError, "the outputs need 'x'", at, "add it"):
        sg.compile([], x + w)
    with refused(sg.GraphError, "'w'", there, "is a variable, which is not fed; leave it out"):
        sg.compile([x, w], x + w)
    y, where = x + 1, here()
    with refused(sg.GraphError, "an input is a placeholder, not add", where, "sg.placeholder("):
        sg.compile(y, y * 2)
    with refused(sg.GraphError, "an input is a placeholder, not 'x'"):
        sg.compile("x", x)
    with refused(sg.GraphError, "an input is a placeholder, not 3; make one"):
        sg.compile(3, x)
    with refused(sg.GraphError, "backend is 'numpy', 'native', 'jax', 'reference' or None, not"):
        sg.compile(x, x, backend="cupy")


# ---- building -------------------------------------------------------------------------------


def test_shapes_are_checked_where_the_graph_is_built():
    x, at = sg.placeholder("x", ("N", 1000), "float32"), here()
    w, there = sg.variable("w", np.ones((100, 10), "float32")), here()
    with refused(
        sg.ShapeError, "matmul(float32[N, 1000], float32[100, 10])", at, there, "x @ w", "built at"
    ):
        x @ w
    with refused(sg.ShapeError, "add(float32[N, 1000], float32[100, 10])", "give dimensions"):
        x + w


def test_a_node_is_no_truth():
    x, at = sg.placeholder("x", 3), here()
    with refused(sg.SymbolicError, "no value before", "'x'", "sg.where", "sg.compile") as caught:
        if sg.any(x > 0):
            pass
    assert "any" in str(caught.value)
    with refused(sg.SymbolicError, "'x'", at):
        bool(x)


def test_updates_that_are_none():
    x, at = sg.placeholder("x", 3, "float32"), here()
    w, there = sg.variable("w", np.ones(3, "float32")), here()
    n = sg.variable("n", np.int64(0))
    with refused(sg.GraphError, "only a variable can be updated, not 'x'", at, "sg.variable("):
        sg.compile(x, x, updates={x: x})
    with refused(sg.GraphError, "only a variable can be updated, not 'w'; make it"):
        sg.compile(x, x, updates={"w": x})
    with refused(sg.GraphError, "next value of 'w' float32[3]", there, "float32[2]", "shape"):
        sg.compile(x, x, updates={w: x[1:]})
    with refused(sg.GraphError, "next value of 'w'", "float64[3]", "astype"):
        sg.compile(x, x, updates={w: sg.astype(x, "float64")})
    with refused(sg.GraphError, "'w'", there, "is updated twice; give it one next value"):
        sg.compile(x, x, updates=[(w, w + 1), (w, w + 2)])
    with refused(sg.GraphError, "updates are a dict {variable: next value} or such pairs"):
        sg.compile(x, x, updates=[w])
    with refused(sg.GraphError, "next value of 'n' int64[()]", "float64[()]", "astype"):
        sg.compile([], [], updates={n: 1.5})


def test_outputs_with_several_results():
    x = sg.placeholder("x", 3)
    with refused(sg.ShapeError, "divmod has 2 results", "node[0]"):
        sg.compile(x, divmod_node(x))


def divmod_node(x):
    """The op divmod, which has no public function of its own."""
    q, _ = divmod(x, 2)
    return q.inputs[0]


# ---- gradients ------------------------------------------------------------------------------


def test_gradients_that_do_not_exist():
    x, at = sg.placeholder("x", 3), here()
    i, there = sg.placeholder("i", 3, "int32"), here()
    loss = sg.sum(x * x)
    y, where = x * 2, here()
    with refused(sg.GradientError, "must be a scalar", "multiply", where, "grad(sum(loss)"):
        sg.grad(y, x)
    with refused(sg.GradientError, "the loss must be a real float", "int64[()]", "astype"):
        sg.grad(sg.sum(i), x)
    with refused(sg.GradientError, "'i' int32[3]", there, "no float", "'float32'"):
        sg.grad(loss, i)
    with refused(sg.GradientError, "does not depend on 'z'", "disconnected='zero'"):
        sg.grad(loss, [x, sg.placeholder("z", 2)])
    cut, where = sg.round(x), here()
    with refused(sg.GradientError, "none flows to 'x'", at, "rint", where, "cuts the path"):
        sg.grad(sg.sum(cut), x)
    with refused(sg.GradientError, "the loss is a node, not float"):
        sg.grad(3.0, x)
    with refused(sg.GradientError, "with respect to nodes, not ndarray", "a variable"):
        sg.grad(loss, [np.ones(3)])
    with refused(sg.GradientError, "disconnected is 'raise' or 'zero', not 'none'"):
        sg.grad(loss, x, disconnected="none")
    with refused(sg.GradientError, "the cotangent of multiply", "(3,)", "(2,)"):
        sg.vjp(x * 2, x, np.ones(2))
    with refused(sg.GradientError, "cotangents: a sequence of 1 is wanted, not of 2"):
        sg.vjp([x * 2], x, [1, 2])
    with refused(sg.GradientError, "divmod has 2 results", "take one of them"):
        sg.grad(loss, divmod_node(x))


def test_an_op_without_a_gradient():
    from symgrad.ir.node import apply
    from symgrad.ir.op import Op

    x = sg.placeholder("x", 3)
    opaque = Op(name="opaque", infer=lambda t: t, kernel=np.cbrt)
    y, at = apply(opaque, [x]), here()
    with refused(sg.GradientError, "opaque has no gradient", at, "stop_gradient"):
        sg.grad(sg.sum(y), x)


# ---- sizes ----------------------------------------------------------------------------------


def test_sizes_for_which_an_op_is_impossible():
    x = sg.placeholder("x", "N")
    y, at = x[5:], here()
    program = sg.compile(x, y * 2)
    assert program(np.ones(7)).tolist() == [2, 2]
    assert program(np.ones(5)).shape == (0,)
    with refused(
        sg.ShapeError, "slice", at, "with N = 3", "of size 3, which is N", "feed more elements"
    ):
        program(np.ones(3))


def test_sizes_given_by_an_expression():
    x, at = sg.placeholder("x", ("2*N",)), here()
    program = sg.compile(x, sg.sum(sg.reshape(x, (2, -1)), axis=1))
    assert program(np.ones(6)).tolist() == [3, 3]
    with refused(sg.FeedError, "'x'", at, "shape (5,)", "no N is found for which 2*N is 5"):
        program(np.ones(5))
    less = sg.placeholder("less", ("N", "N - 5"))
    narrow = sg.compile(less, less + 0)
    assert narrow(np.ones((7, 2))).shape == (7, 2)
    with refused(sg.FeedError, "'less'", "axis 1 is 0, not -1"):
        narrow(np.ones((4, 0)))
    both, there = sg.placeholder("both", ("N*M",)), here()
    with refused(sg.FeedError, "'both'", there, "no M, N is found", "a size of its own"):
        sg.compile(both, both + 0)(np.ones(6))


def test_sizes_for_source_are_known_and_whole(net, tmp_path):
    program, _ = net
    path = tmp_path / "p.py"
    with refused(sg.FeedError, "save_source(path, N=…)"):
        program.save_source(path)
    with refused(sg.FeedError, "sizes are wanted for N; K is missing or unknown"):
        program.save_source(path, N=3, K=4)
    with refused(sg.FeedError, "whole numbers"):
        program.save_source(path, N=3.5)
    with refused(sg.FeedError, "negative", "N = -1"):
        program.save_source(path, N=-1)
    assert list(tmp_path.iterdir()) == []
    program.save_source(path, N=np.int64(4))
    assert "empty" not in path.read_text().split("def step")[0]
    assert "int64" not in path.read_text()


def test_a_variable_without_a_value():
    x = sg.placeholder("x", 3)
    graph = sg.Graph([x * sg.variable("w", np.ones(3))])
    back = sg.Graph.parse(graph.text(full=True))
    program = sg.compile(back.inputs[0], back.outputs[0])
    with refused(sg.SymbolicError, "the variable 'w'", "variable.value = array"):
        program(np.ones(3))
    back.inputs[1].value = np.full(3, 2.0)
    assert program(np.ones(3)).tolist() == [2, 2, 2]


# ---- counts, and what has an order -----------------------------------------------------------


@pytest.mark.parametrize("value", [True, 2.0, 0, -1, "2", np.array([1, 2]), np.True_])
def test_counts_are_whole_numbers(value):
    x, w = sg.placeholder("x", (4, 3)), sg.variable("w", np.ones(3))
    program = sg.compile(x, sg.sum(x))
    counts = [
        ("threads", lambda: sg.compile(x, x, threads=value)),
        ("runs", lambda: program.profile(np.ones((4, 3)), runs=value)),
        ("size of a batch", lambda: sg.batches(np.ones(4), size=value)),
        ("patience", lambda: sg.early_stopping(patience=value)),
        ("history", lambda: sg.optim.LBFGS([w], history=value)),
        ("order", lambda: sg.testing.check_grads(lambda a: a, np.ones(2), order=value)),
    ]
    for name, call in counts:
        with refused(sg.SymgradError, name, "is a whole number from 1 on, not", repr(value)[:20]):
            call()


def test_a_bool_is_no_axis_and_no_size():
    x = sg.placeholder("x", (4, 3))
    for call in (
        lambda: sg.sum(x, axis=True),
        lambda: sg.concat([x, x], axis=False),
        lambda: np.sum(x, axis=(True,)),
        lambda: sg.zeros((True, 3)),
        lambda: sg.reshape(x, (True, -1)),
        lambda: sg.placeholder("y", True),
    ):
        with refused(sg.ShapeError, "is an int"):
            call()


def test_a_set_is_no_order():
    x, y = sg.placeholder("x", (3, 3)), sg.placeholder("y", (3, 3))
    v, w = sg.variable("v", np.ones((3, 3))), sg.variable("w", np.ones((3, 3)))
    loss = sg.sum(x @ w @ v)
    for call in (
        lambda: sg.compile({x, y}, x + y),
        lambda: sg.compile([x, y], {x, y}),
        lambda: sg.compile([x, y], {"both": frozenset([x, y])}),
        lambda: sg.Graph({x, y}),
        lambda: sg.grad(loss, {v, w}),
        lambda: sg.value_and_grad(loss, {v, w}),
        lambda: sg.vjp({x @ w}, w, [x]),
        lambda: sg.vjp([x @ w], w, {x}),
        lambda: sg.jvp(x @ w, [w], {w}),
        lambda: sg.hvp(loss, {v, w}, [v, w]),
        lambda: sg.jacobian(x @ w, {w}),
        lambda: sg.hessian(loss, {v, w}),
        lambda: sg.concat({x, y}),
        lambda: sg.stack({x, y}),
        lambda: sg.linalg.multi_dot({x, y}),
        lambda: sg.permute_dims(x, {1, 0}),
        lambda: sg.placeholder("z", {2, 3}),
        lambda: sg.optim.SGD({v, w}, 0.1),
    ):
        with refused(sg.SymgradError, "have an order, and a set has none; write a list"):
            call()


def test_nothing_to_differentiate_by():
    x = sg.placeholder("x", 3)
    loss = sg.sum(x * x)
    for empty in ([], (), {}):
        for f in (sg.grad, sg.value_and_grad, sg.jacobian, sg.hessian):
            with refused(sg.GradientError, "wrt is empty", "a list of those that are wanted"):
                f(loss, empty)
        for call in (lambda wrt: sg.jvp(loss, wrt, []), lambda wrt: sg.vjp(loss, wrt, 1.0)):
            with refused(sg.GradientError, "wrt is empty"):
                call(empty)
    with refused(sg.GradientError, "the outputs are empty"):
        sg.vjp([], x, [])


# ---- numbers that a dtype does not hold -------------------------------------------------------

# A value, a dtype, the first number that is lost, and its place.
LOST = [
    (1e300, "float32", "1e+300", ""),
    ([1.0, -1e300], "float32", "-1e+300", "(1,)"),
    ([[1.0, 70000.0]], "float16", "70000.0", "(0, 1)"),
    ([1, 70000], "float16", "70000", "(1,)"),
    ([1e300 + 1j], "complex64", "(1e+300+1j)", "(0,)"),
    (np.array([1, 2**53 + 1]), "float64", "9007199254740993", "(1,)"),
    (np.array([-(2**53) - 1]), "complex128", "-9007199254740993", "(0,)"),
    (np.array([2**63 - 1]), "float64", "9223372036854775807", "(0,)"),
    (np.array([2**64 - 1], "uint64"), "float64", "18446744073709551615", "(0,)"),
    (2**53 + 1, "float64", "9007199254740993", ""),
    ([2**24, 2**24 + 1], "float32", "16777217", "(1,)"),
]
KEPT = [
    ([np.inf, -np.inf, np.nan, 1e-300, 0.1], "float32"),
    (np.array([2**53, -(2**62), 2**53 + 2]), "float64"),
    (np.array([2**31 - 1, -(2**31)], "int32"), "float64"),
    (np.array([2**63], "uint64"), "float64"),
    ([], "float32"),
    ([True, False], "float32"),
    (2**24, "float32"),
]


@pytest.mark.parametrize(("value", "dtype", "number", "place"), LOST)
def test_numbers_that_do_not_survive_are_not_fed(value, dtype, number, place, tmp_path):
    x, at = sg.placeholder("x", np.shape(value), dtype), here()
    program = sg.compile(x, x + 0)
    where = f" at {place}" if place else ""
    with refused(sg.FeedError, "'x'", at, f"{number}{where} becomes", ".astype("):
        program(value)
    alone = runpy.run_path(str(program.save_source(tmp_path / "p.py")))["Program"]()
    with pytest.raises(ValueError, match="'x' "):
        alone(value)


@pytest.mark.parametrize(("value", "dtype"), KEPT)
def test_numbers_that_survive_are_fed(value, dtype, tmp_path):
    x = sg.placeholder("x", np.shape(value), dtype)
    program = sg.compile(x, sg.concat([x]) if x.ndim else x + 0)
    expected = np.asarray(value, dtype)
    np.testing.assert_array_equal(program(value), expected, strict=True)
    alone = runpy.run_path(str(program.save_source(tmp_path / "p.py")))["Program"]()
    np.testing.assert_array_equal(alone(value), expected, strict=True)


def test_an_unsigned_list_does_not_turn_negative():
    x = sg.placeholder("x", 1, "int64")
    with refused(sg.FeedError, "uint64", "int64", "without loss"):
        sg.compile(x, x + 0)([2**63])


def test_numbers_that_do_not_fit_beside_a_dtype():
    x, h = sg.placeholder("x", 2, "float32"), sg.placeholder("h", 2, "float16")
    for call in (
        lambda: x * 1e300,
        lambda: x * 2**200,
        lambda: x > 1e300,
        lambda: sg.clip(x, None, 1e300),
        lambda: x.at[0].set(1e300),
        lambda: sg.where(h > 0, h, -1e9),
        lambda: x * (1e300 + 1j),
        lambda: sg.constant(1e300, "float32"),
        lambda: sg.constant([1.0, 1e300], "float32"),
        lambda: sg.constant(np.array([300]), "uint8"),
        lambda: sg.constant(np.array([1e20]), "int64"),
        lambda: sg.constant(np.array([2.0**63]), "int64"),
        lambda: sg.full(3, 70000, dtype="float16"),
        lambda: sg.asarray(1e300, dtype="float32"),
    ):
        with refused(sg.DtypeError, "does not fit into", "becomes"):
            call()
    assert np.asarray(sg.constant([np.inf, 0.1], "float32")).tolist()[0] == np.inf
    assert np.asarray(sg.constant([1.5, -0.5], "int64")).tolist() == [1, 0]
    assert np.isinf(np.asarray(sg.astype(sg.constant(1e300), "float32"))), "asked for"
    w, v = sg.variable("w", np.ones(1)), sg.variable("v", np.float32(1))
    with refused(sg.DtypeError, "'w'", "9007199254740993 at (0,) becomes"):
        w.value = np.array([2**53 + 1])
    with refused(sg.DtypeError, "1e+300 becomes inf"):
        v.value = 1e300
    with refused(sg.DtypeError, "1e+300 becomes inf"):
        sg.compile([], [], updates={v: 1e300})
    assert (w.value, v.value) == (1, 1)

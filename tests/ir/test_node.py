import copy
import operator
import re

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import DtypeError, ShapeError, SymbolicError, SymgradError
from symgrad.ir.node import Variable, apply, describe
from symgrad.ir.op import REGISTRY
from symgrad.ops.declare import composite
from tests.helpers import each, same, value

x = sg.placeholder("x", ("N", 3), "float32")
ARITHMETIC = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"),
    *("lt", "le", "gt", "ge", "eq", "ne"),
)
BITS = ("and_", "or_", "xor", "lshift", "rshift")


def pair(dtype):
    rng = np.random.default_rng(0)
    return rng.integers(1, 5, (2, 3)).astype(dtype), rng.integers(1, 5, 3).astype(dtype)


@each("dtype", ["float32", "float64", "int32", "uint8"])
@each("name", ARITHMETIC)
def test_arithmetic_operators(name, dtype):
    check_binary(getattr(operator, name), *pair(dtype))


@each("dtype", ["int32", "uint8", "bool"])
@each("name", BITS)
def test_bit_operators(name, dtype):
    check_binary(getattr(operator, name), *pair(dtype))


def check_binary(function, a, b):
    """Node and node, node and array, array and node, node and number, number and node."""
    p, q = sg.placeholder("p", a.shape, a.dtype), sg.placeholder("q", b.shape, b.dtype)
    feeds = {p: a, q: b}
    number = 1 if a.dtype.kind == "b" else 2
    for left, right, m, n in [
        (p, q, a, b), (p, b, a, b), (a, q, a, b), (p, number, a, number), (number, q, number, b),
    ]:  # fmt: skip
        found = function(left, right)
        expected = function(m, n)
        assert isinstance(found, sg.Node if hasattr(sg, "Node") else type(p))
        assert found.dtype == expected.dtype
        same(value(found, feeds), expected)


@pytest.mark.parametrize("name", ["neg", "pos", "abs", "invert"])
def test_unary_operators(name):
    function = getattr(operator, name)
    for dtype in ("int32", "bool") if name == "invert" else ("float32", "int32"):
        a = np.array([1, 0, 3]).astype(dtype)
        same(value(function(sg.constant(a))), function(a))


def test_matmul_divmod_and_the_reflected_ones():
    a, b = np.arange(6.0).reshape(2, 3) + 1, np.arange(12.0).reshape(3, 4) + 1
    p = sg.constant(a)
    same(value(p @ b), a @ b)
    same(value(a @ sg.constant(b)), a @ b)
    for found, expected in zip(divmod(p, 2), divmod(a, 2), strict=True):
        same(value(found), expected)
    for found, expected in zip(divmod(20, p), divmod(20, a), strict=True):
        same(value(found), expected)


def test_in_place_operators_bind_a_new_node():
    y = before = sg.placeholder("y", 3)
    y += 1
    assert y is not before
    assert before.op.name == "placeholder"


def test_a_node_is_frozen():
    for name in ("op", "inputs", "type", "other"):
        with pytest.raises(AttributeError, match="frozen"):
            setattr(x, name, None)


def test_a_node_hashes_by_identity_and_compares_elementwise():
    y = sg.placeholder("x", ("N", 3), "float32")
    assert len({x, y, x}) == 2
    assert {x: 1}[x] == 1
    assert x in [x, y]
    assert (x == y).op.name == "equal"
    assert (x != y).dtype == bool
    assert hash(x) != hash(y)


def test_copies_are_the_node_itself():
    assert copy.copy(x) is x
    assert copy.deepcopy([x])[0] is x


@pytest.mark.parametrize(
    ("ask", "mend"),
    [
        *((ask, "sg.sin(x)") for ask in (float, int, complex)),
        *((ask, "sg.stack(nodes)") for ask in (np.asarray, np.array)),
        *((ask, "sg.where(condition, a, b)") for ask in (bool, lambda n: n in [1.0, 2.0])),
        (lambda n: operator.index(sg.astype(n, int)), "range takes an int"),
        (lambda n: range(sg.astype(n, int)), "range takes an int"),
        (lambda n: [1, 2][sg.astype(n, int)], "sg.constant(array)[node]"),
        (lambda n: np.random.default_rng(0).normal(n), "write"),
    ],
)
def test_a_value_before_it_is_fed_is_refused_and_says_what_to_feed(ask, mend):
    a, b = sg.placeholder("alpha", ()), sg.placeholder("beta", ())
    with pytest.raises(SymbolicError) as caught:
        ask(a * b)
    text = str(caught.value)
    assert "'alpha', 'beta'" in text
    assert "sg.compile(" in text
    assert mend in text


def test_a_graph_without_placeholders_is_a_value():
    c = sg.constant([1.0, 4.0])
    w = sg.variable("w", 3.0)
    same(np.asarray(sg.sqrt(c)), np.array([1.0, 2.0]))
    assert float(sg.sum(c) * w) == 15.0
    assert int(w) == 3
    assert complex(w) == 3 + 0j
    assert bool(w > 2)
    assert not (w > 3)
    assert list(range(sg.constant(3))) == [0, 1, 2]
    assert [5, 6, 7][sg.constant(1)] == 6
    same(np.asarray(c, dtype="float32"), np.array([1, 4], "float32"))
    with pytest.raises(ValueError, match="copy"):
        np.asarray(c, copy=False)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(c > 2)
    with pytest.raises(SymbolicError, match="no integer"):
        operator.index(w)


def test_the_value_of_a_node_is_not_the_memory_of_a_constant_or_variable():
    for leaf in (sg.constant([1.0, 2.0]), sg.variable("w", [1.0, 2.0])):
        found = np.asarray(leaf)
        found[:] = 7
        same(np.asarray(leaf), np.array([1.0, 2.0]))


def test_length_and_iteration():
    y = sg.placeholder("y", (2, 3))
    assert len(y) == 2
    assert [row.shape for row in y] == [(3,), (3,)]
    for bad, words in [(x, "length N"), (sg.placeholder("s", ()), "scalar")]:
        with pytest.raises(SymbolicError, match=words):
            len(bad)
        with pytest.raises(TypeError):
            list(bad)


def test_what_a_node_knows_of_itself():
    assert (x.shape, x.dtype, x.ndim, repr(x.size)) == (x.type.shape, np.float32, 2, "3*N")
    assert (x.name, (x + 1).name) == ("x", None)
    assert x.T.shape == x.mT.shape == x.shape[::-1]
    vector = sg.placeholder("v", 3)
    assert vector.T is vector
    assert sg.placeholder("c", (2, 3, 4)).T.shape == (4, 3, 2)
    assert sg.placeholder("c", (2, 3, 4)).mT.shape == (2, 4, 3)
    assert repr(x).startswith("<'x' float32[N, 3] (test_node.py:")
    assert describe(x + 1).startswith("add float32[N, 3] (test_node.py:")
    assert x.__array_namespace__() is sg
    assert x.__array_namespace__(api_version="2024.12") is sg


def test_a_missing_method_names_the_function():
    with pytest.raises(AttributeError, match=r"'tanh'; write sg\.tanh\(x\)"):
        x.tanh()
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        _ = x.nonsense
    assert not hasattr(x, "__symgrad_apply__")


def test_lists_that_hold_nodes_are_stacked():
    a, b = sg.placeholder("a", ()), sg.placeholder("b", ())
    found = sg.sum([[a, 1.0], [b, a]], axis=0)
    same(value(found, {a: 2.0, b: 3.0}), np.array([5.0, 3.0]))
    same(value(sg.matmul([[a, b]], np.eye(2)), {a: 2.0, b: 3.0}), np.array([[2.0, 3.0]]))


def test_an_op_with_several_results_is_no_operand():
    both = divmod(x, 2)
    for use in (lambda: both + 1, lambda: sg.concat([both]), lambda: both.shape):
        with pytest.raises(ShapeError, match=r"divmod has 2 results; take one of them: node\[0\]"):
            use()
    with pytest.raises(ShapeError):
        both[2]
    assert both[-1].type == x.type


def test_a_pattern_variable_takes_over():
    class Var:
        def __symgrad_apply__(self, op, operands, attrs):
            return op.name, operands, dict(attrs)

    v = Var()
    assert sg.multiply(2, v) == ("multiply", (2, v), {})
    assert sg.add(x, v) == ("add", (x, v), {})
    assert sg.sum(v)[0] == "sum"


def test_variables():
    w = sg.variable("w", np.array([1, 2], "float32"))
    assert isinstance(w, Variable)
    kept = w.value
    with pytest.raises(ValueError, match="read-only"):
        kept[:] = 9
    same(w.value, np.array([1, 2], "float32"))
    w.value = np.array([3, 4], "float16")
    same(w.value, np.array([3, 4], "float32"))
    given = np.array([5, 6], "float32")
    w.value = given
    given[:] = 0
    same(w.value, np.array([5, 6], "float32"))
    with pytest.raises(DtypeError, match=r"float64.*astype\('float32'\)"):
        w.value = np.array([1.0, 2.0])
    with pytest.raises(ShapeError, match=r"'w' is float32\[2\].*float32\[3\]"):
        w.value = np.zeros(3, "float32")
    with pytest.raises(AttributeError, match="frozen"):
        w.op = None
    s = sg.variable("s", np.float32(1))
    s.value = 2.5
    same(s.value, np.array(2.5, "float32"))
    n = sg.variable("n", 1)
    with pytest.raises(DtypeError):
        n.value = 1.5
    assert int(n) == 1


@pytest.mark.parametrize("make", [sg.placeholder, sg.variable])
def test_a_name_is_a_string(make):
    with pytest.raises(SymgradError, match="string"):
        make(3, ())


def test_an_error_tells_the_op_the_types_and_the_users_lines():
    w2 = sg.variable("w2", np.zeros((100, 10), "float32"))
    data = sg.placeholder("x", ("N", 1000), "float32")
    with pytest.raises(ShapeError) as caught:
        pred = data @ w2  # noqa: F841
    lines = str(caught.value).split("\n")
    here = "test_node.py:"
    assert lines[0] == "matmul(float32[N, 1000], float32[100, 10]): 1000 and 100 do not match"
    assert lines[1].startswith(f"  built at {here}")
    assert lines[1].endswith(": data @ w2")
    assert lines[2].startswith(f"  operands: 'x' float32[N, 1000] ({here}")
    assert f", 'w2' float32[100, 10] ({here}" in lines[2]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: sg.vecdot(x, np.ones(4)), "vecdot(float32[N, 3], float64[4]): 3 and 4 do"),
        (lambda: sg.tensordot(x, x, axes=1), "tensordot(float32[N, 3], float32[N, 3]): 3 and N"),
        (lambda: x[0, 0, 0], "getitem(float32[N, 3], (0, 0, 0)): 3 indices for the 2 dimensions"),
        (lambda: x + np.ones(4, "f4"), "add(float32[N, 3], float32[4]): 3 and 4 do not match"),
        (lambda: sg.reshape(x, (4, -1)), "reshape(float32[N, 3]): 3*N elements cannot"),
        (lambda: x & 1, "bitwise_and(float32[N, 3], float32[()]): np.bitwise_and does not take"),
        (lambda: sg.concat([x, np.ones(3)]), "concat([float32[N, 3], float64[3]]): arrays of 2 an"),
    ],
)  # fmt: skip
def test_what_a_composite_refuses_is_told_like_what_an_op_refuses(build, words):
    with pytest.raises(SymgradError) as caught:
        build()
    text = str(caught.value)
    assert text.startswith(words)
    assert "\n  built at test_node.py:" in text
    assert text.count("built at") == 1


def test_a_refusal_has_one_head_and_every_operand():
    for build, head, operands in (
        (lambda: x.T @ 5, "matmul(float32[3, N], int64[()]): a scalar", r"permute_dims .*, 5"),
        (lambda: 5 @ x, "matmul(int64[()], float32[N, 3]): a scalar", r"5, 'x' float32"),
    ):
        with pytest.raises(ShapeError) as caught:
            build()
        text = str(caught.value)
        assert text.startswith(head)
        assert text.count("matmul(") == 1
        assert re.search(f"operands: {operands}", text)


def test_an_error_is_explained_once_however_many_lines_it_has():
    @composite()
    def refuses(x, /):
        raise ShapeError("one line\nand another")

    @composite()
    def encloses(x, /):
        return refuses(x)

    try:
        for build in (refuses, encloses):
            with pytest.raises(ShapeError) as caught:
                build(x)
            text = str(caught.value)
            assert text.startswith("refuses(float32[N, 3]): one line\nand another\n  built at")
            assert text.count("built at") == 1
    finally:
        del REGISTRY.functions["refuses"], REGISTRY.functions["encloses"]


def test_a_masked_array_is_refused():
    masked = np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0])
    for build in (lambda: sg.constant(masked), lambda: sg.add(x, masked), lambda: x + masked):
        with pytest.raises(SymbolicError, match="filled"):
            build()


def test_attributes_are_sorted_whatever_their_order():
    op = REGISTRY.ops["sum"]
    one = apply(op, [x], {"axis": -1, "keepdims": True})
    other = apply(op, [x], {"keepdims": 1, "axis": (1,)})
    assert one.attrs == other.attrs
    assert [k for k, _ in one.attrs] == sorted(k for k, _ in one.attrs)


def test_an_attribute_is_read_by_its_name():
    node = sg.sum(x, axis=-1, keepdims=True)
    assert node.attr("axis") == (1,)
    assert node.attr("keepdims") is True
    with pytest.raises(KeyError, match="sum has no attribute 'index'"):
        node.attr("index")


def test_the_inner_graph_of_a_fused_node():
    (fused,) = sg.compile([x], sg.tanh(sg.exp(x) + 1)).graph.outputs
    assert fused.op.name == "fused"
    assert [n.op.name for n in fused.inner_graph.nodes if n.inputs] == ["exp", "add", "tanh"]
    assert x.inner_graph is None
    assert (x + 1).inner_graph is None

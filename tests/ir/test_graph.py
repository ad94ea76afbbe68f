import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import GraphError
from symgrad.ir.graph import Graph, is_input, is_leaf
from symgrad.ir.node import Node, leaf
from symgrad.ir.op import REGISTRY, Op
from symgrad.ir.types import TensorType
from symgrad.ir.walk import topological
from tests.helpers import same, value

DEPTH = 30_000


def placeholders(*names):
    return [sg.placeholder(name, 3) for name in names]


def test_inputs_are_found_in_the_order_of_use():
    a, b = placeholders("a", "b")
    w = sg.variable("w", np.ones(3))
    graph = Graph([b + 1, w * a])
    assert graph.inputs == (b, w, a)
    assert graph.nodes[:3] == graph.inputs
    assert len(graph) == len(graph.nodes) == 6
    assert repr(graph) == "<Graph of 6 nodes, 2 outputs>"
    graph.verify()


def test_inputs_may_be_given_in_any_order_with_some_unused():
    a, b, c = placeholders("a", "b", "c")
    graph = Graph([a + b], [c, b, a])
    assert graph.inputs == (c, b, a)
    assert graph.nodes[:3] == (c, b, a)
    graph.verify()


def test_one_node_may_stand_for_a_list_of_outputs():
    (a,) = placeholders("a")
    assert Graph(a + 1).outputs[0].op.name == "add"
    assert Graph([a, a, 2.0]).outputs[:2] == (a, a)
    assert len(Graph([])) == 0


def test_missing_inputs_are_all_named():
    a, b, c = placeholders("a", "b", "c")
    with pytest.raises(GraphError, match=r"need 'a' float64\[3\] \(test_graph.py:\d+\), 'c'"):
        Graph([a + b + c], [b])


def test_two_inputs_of_one_name_are_refused():
    a, other = placeholders("a", "a")
    with pytest.raises(GraphError, match=r"two inputs are called 'a'"):
        Graph([a + other])
    with pytest.raises(GraphError, match=r"list each once"):
        Graph([a], [a, a])


def test_variables_of_one_name_are_two():
    a, b = sg.variable("w", np.ones(3)), sg.variable("w", np.ones(3))
    graph = Graph([a - b])
    assert graph != Graph([a - a])
    assert hash(graph) == hash(Graph([b - a]))
    for again in (
        Graph.parse(graph.text(full=True)),
        pickle.loads(pickle.dumps(graph)),
        copy.deepcopy(graph),
    ):
        assert again == graph
        assert len(again.inputs) == 2
    with pytest.raises(GraphError, match="list each once"):
        Graph([a - b], [a, b, a])
    with pytest.raises(GraphError, match="two inputs are called 'w'"):
        Graph([a * sg.placeholder("w", 3)])


@pytest.mark.parametrize("bad", ["a", 3, None, sg.constant(1.0), sg.placeholder("a", 3) + 1])
def test_an_input_is_a_placeholder_or_a_variable(bad):
    with pytest.raises(GraphError, match=r"sg.placeholder\(name, shape, dtype\)"):
        Graph([sg.placeholder("x", 3)], [bad])


def test_a_graph_is_frozen():
    graph = Graph(placeholders("a"))
    with pytest.raises(AttributeError, match="frozen"):
        graph.outputs = ()


def test_equality_is_of_structure():
    def build(name="a", dtype="float64", op=sg.tanh, number=2.0, axis=0):
        a = sg.placeholder(name, ("N", 3), dtype)
        y = op(a) * number
        return Graph([sg.sum(y, axis=axis), y])

    one = build()
    assert one == build()
    assert hash(one) == hash(build())
    for other in (
        build(name="b"), build(dtype="float32"), build(op=sg.sin), build(number=3.0),
        build(axis=1), build(number=-0.0), Graph(one.outputs[::-1]), Graph(one.outputs[:1]),
        Graph(one.outputs, [*one.inputs, sg.placeholder("z", ())]), "graph",
    ):  # fmt: skip
        assert one != other
    a, b = placeholders("a", "b")
    assert Graph([a - b]) == Graph([a - b])
    assert Graph([a - b]) != Graph([b - a], [a, b])
    shared = a + b
    assert Graph([shared * shared]) != Graph([(a + b) * (a + b)])


def test_variables_are_equal_by_name_and_type():
    one, other = (Graph([sg.variable("w", np.full(2, v)) + 1]) for v in (1.0, 2.0))
    assert one == other
    assert one != Graph([sg.variable("v", np.ones(2)) + 1])


# ---- verify ------------------------------------------------------------------------------------


def forged(node, *, op=None, inputs=None, attrs=None, type=None):
    """A node that did not come through the door."""
    return Node(
        op or node.op,
        node.inputs if inputs is None else inputs,
        node.attrs if attrs is None else attrs,
        node.type if type is None else type,
        node.origin,
    )


def test_verify_catches_what_did_not_come_through_the_door():
    a = sg.placeholder("a", (2, 3), "float32")
    b = sg.placeholder("b", 3)
    total, cast = sg.sum(a, axis=0), sg.astype(a, "float64") + b
    unknown = Op(name="tanh", infer=lambda t: t, kernel=np.tanh, doc="Another tanh.")
    broadcast = sg.broadcast_to(b, (2, 3))
    for bad, words in [
        (forged(total, type=TensorType((2,), "float32")), r"its rule gives float32\[3\]"),
        (forged(total, type=TensorType((3,), "float64")), r"its rule gives float32\[3\]"),
        (forged(cast, inputs=(a, b)), "should be cast to float64"),
        (forged(cast, inputs=(sg.astype(a, "float64"), a)), "should be cast"),
        (forged(sg.tanh(a), op=unknown), "'tanh' is not registered"),
        (forged(total, attrs=(("axis", (7,)), ("dtype", None), ("keepdims", False))), "out of"),
        (forged(total, attrs=(("axis", (-1,)), ("dtype", None), ("keepdims", False))), "should be"),
        (forged(total, attrs=(("axis", (0,)), ("dtype", None), ("keepdims", 0))), "must be bool"),
        (
            forged(broadcast, attrs=(("shape", (7,)),), type=TensorType((7,), "float64")),
            "3 and 7 do not match",
        ),
        (forged(sg.constant(1.0), inputs=(b,)), "takes 0 operands"),
    ]:
        graph = Graph([bad])
        with pytest.raises(GraphError, match=words):
            graph.verify()
    Graph([total, cast, broadcast]).verify()


def test_the_registrys_ops_and_leaves():
    for name, is_one in [("placeholder", True), ("variable", True), ("constant", False)]:
        node = leaf(REGISTRY.ops[name], TensorType((), "f4"))
        assert is_leaf(node)
        assert is_input(node) == is_one
    assert not is_leaf(sg.arange(sg.placeholder("x", "N").shape[0]))


# ---- order and depth ---------------------------------------------------------------------------


def test_the_order_puts_inputs_first_from_left_to_right():
    a, b = placeholders("a", "b")
    left, right = sg.sin(b), sg.cos(a)
    y = left + right
    assert topological([y]) == [b, left, a, right, y]
    assert topological([a, y, a]) == [a, b, left, right, y]
    assert topological([y], known={left}) == [a, right, y]
    assert topological([y], known={y}) == []


def test_shared_nodes_are_visited_once():
    y = sg.placeholder("a", ())
    for _ in range(60):
        y = y + y
    assert len(topological([y])) == 61


@pytest.fixture(scope="module")
def deep():
    (a,) = placeholders("a")
    y = a
    for _ in range(DEPTH):
        y = sg.negative(y)
    return a, Graph([y])


def test_a_deep_chain_is_hashed_compared_verified_and_evaluated(deep):
    a, graph = deep
    assert len(graph) == DEPTH + 1
    other = Graph(graph.outputs)
    assert hash(graph) == hash(other)
    assert graph == other
    graph.verify()
    same(value(graph.outputs[0], {a: np.ones(3)}), np.ones(3))


def test_a_deep_chain_is_printed_and_read_back(deep):
    a, _ = deep
    y = a
    for _ in range(DEPTH // 5):
        y = sg.negative(y)
    graph = Graph([y])
    text = graph.text()
    assert text.count("\n") == DEPTH // 5 + 2
    assert Graph.parse(text, most_bytes=2**33) == graph


def test_a_deep_chain_has_a_gradient(deep):
    a, graph = deep
    g = sg.grad(sg.sum(graph.outputs[0]), a)
    same(value(g, {a: np.ones(3)}), np.ones(3))


def test_a_deep_chain_is_freed_without_recursion():
    (a,) = placeholders("a")
    seen = weakref.ref(a)
    y = a
    for _ in range(DEPTH):
        y = y + y
    del a, y
    gc.collect()
    assert seen() is None

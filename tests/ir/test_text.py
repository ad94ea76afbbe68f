import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, scalar_dtypes

import symgrad as sg
from symgrad.ir.errors import GraphError, ParseError, SymgradError
from symgrad.ir.formats.text import type_text
from symgrad.ir.graph import Graph
from symgrad.ir.node import apply
from symgrad.ir.op import REGISTRY, Op
from symgrad.ir.origin import Location, Maker, Origin, built_as
from tests.helpers import each, value

numeric = scalar_dtypes().filter(lambda d: d.kind in "biufc")
x = sg.placeholder("x", ("N", 3), "float32")
w = sg.variable("w", np.ones(3, "float32"))
CORPUS = {
    "the docstring": [sg.tanh(x)],
    "attributes": [sg.sum(x, axis=(0, 1), keepdims=True), sg.sum(x, dtype="float64")],
    "shapes of names": [sg.reshape(x, -1), sg.concat([x, x, np.ones((2, 3), "f4")]), x[1:, ::-1]],
    "sizes as numbers": [sg.mean(x), sg.arange(x.shape[0]), sg.eye("N", "2*N", k=1, dtype="f4")],
    "several results": [*divmod(x, 2)],
    "constants": [sg.add(x, [1.0, np.nan, -np.inf]), w * 3],
    "a gradient": [sg.grad(sg.sum(sg.relu(x @ w)), w)],
    "second": [sg.grad(sg.sum(sg.grad(sg.sum(sg.prod(x * w, axis=1)), w)), w)],
    "nothing but outputs": [w, x, w],
    "no inputs": [sg.constant(1.0) + 2],
    "no outputs": [],
}


@pytest.mark.parametrize(
    ("types", "text"),
    [
        ((x.type,), "(float32[N, 3],)"),
        ((x.type, w.type), "(float32[N, 3], float32[3])"),
        (w.type, "float32[3]"),
    ],
)
def test_types_of_several_results_are_written_like_tuples(types, text):
    assert type_text(types) == text


def round_trip(graph):
    text = graph.text(full=True)
    found = Graph.parse(text)
    assert found == graph
    assert hash(found) == hash(graph)
    assert found.text(full=True, origins=False) == graph.text(full=True, origins=False)
    found.verify()
    return found


@pytest.mark.parametrize("outputs", CORPUS.values(), ids=CORPUS)
def test_what_is_printed_is_read_back(outputs):
    round_trip(Graph(outputs))


def test_the_text_is_what_the_docstring_says():
    lines = str(Graph([sg.tanh(x)])).splitlines()
    assert re.sub(r":\d+", ":8", "\n".join(lines)) == (
        "n0: float32[N, 3] = placeholder(name='x')  # test_text.py:8\n"
        "n1: float32[N, 3] = tanh(n0)  # test_text.py:8\n"
        "return n1"
    )
    assert "#" not in Graph([sg.tanh(x)]).text(origins=False)


@given(arrays(numeric, array_shapes(min_dims=0, min_side=0, max_side=5)))
@example(np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324]))
@example(np.array([0x7FF8000000000001, 0xFFF8000000000000], "u8").view("f8"))
@example(np.array([complex(-0.0, -0.0), complex(np.nan, np.inf), 1 - 2j, -1 + 0j]))
@example(np.array(np.pi, "longdouble"))
@example(np.array([2**63], "u8"))
@example(np.float16(0.1))
@example(np.empty((0, 3), "?"))
@example(np.empty((2, 0), ">c8"))
@example(np.arange(20.0).reshape(4, 5).T)
@example(np.arange(17, dtype=">i2"))
def test_constants_are_read_back_to_the_bit(array):
    c = sg.constant(array)
    found = round_trip(Graph([c])).outputs[0]
    assert np.asarray(found).tobytes() == np.asarray(c).tobytes()


def test_small_constants_are_decimals_and_large_ones_are_left_out_unless_asked_for():
    small, large = sg.constant([1.0, 2.5]), sg.constant(np.arange(100.0))
    assert "array([1.0, 2.5], float64)" in str(Graph([small]))
    text = str(Graph([large]))
    assert len(text) < 150
    with pytest.raises(ParseError, match=r"line 1: .*text\(full=True\)"):
        Graph.parse(text)
    assert str(Graph([sg.constant(np.arange(100.0) + 1)])) != text
    big = Graph([sg.constant(np.random.default_rng(0).random((1000, 100)))])
    round_trip(big)


HOSTILE = [
    "</svg><script>alert(1)</script>", '"];', "λ", "", "x" * 10_000, "a\nb", "\r\n", "#", "'",
    '"""', "\\", "\0", "\u2028", "\ud800", "{0}", "%s", "return", "n0", "\x1b[31m",
    "n1: f = g()\nreturn n1", "🎈", "\ufeff", " ",
]  # fmt: skip


@each("name", HOSTILE, ids=ascii)
def test_names_may_be_any_text(name):
    graph = Graph([sg.placeholder(name, ("N",)) * sg.variable(name + "'", 1.0)])
    found = round_trip(graph)
    assert [n.name for n in found.inputs] == [name, name + "'"]
    assert len(graph.text().splitlines()) == 4 or name == "\u2028"


@given(st.text(max_size=20))
def test_any_name_is_read_back(name):
    assert round_trip(Graph([sg.placeholder(name, ())])).inputs[0].name == name


def test_a_variable_that_was_read_has_no_value_until_it_is_given_one():
    found = Graph.parse(Graph([w]).text()).inputs[0]
    with pytest.raises(SymgradError, match="was read from"):
        float(sg.sum(found))
    found.value = np.ones(3, "float32")
    assert float(sg.sum(found)) == 3


# ---- random graphs -----------------------------------------------------------------------------

UNARY = [sg.tanh, sg.relu, sg.negative, sg.isnan, lambda n: sg.sum(n, axis=0, keepdims=True),
         lambda n: sg.reshape(n, (2, -1)), lambda n: n[::-1], lambda n: n.T, sg.mean,
         lambda n: sg.astype(n, "float32"), lambda n: sg.concat([n, n], axis=None),
         lambda n: divmod(n, 2)[1]]  # fmt: skip
BINARY = [sg.add, sg.multiply, sg.maximum, sg.less, lambda a, b: sg.where(sg.isnan(a), a, b)]


@st.composite
def graphs(draw):
    nodes = [
        sg.placeholder("x", ("2*N", 2)), sg.placeholder("y", (2, 2)), sg.variable("w", np.ones(2)),
        sg.constant(draw(st.floats())),
    ]  # fmt: skip
    for _ in range(draw(st.integers(0, 8))):
        function = draw(st.sampled_from([*UNARY, *BINARY]))
        picked = [draw(st.sampled_from(nodes)) for _ in range(1 + (function in BINARY))]
        try:
            nodes.append(function(*picked))
        except SymgradError:
            continue
    return Graph(draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=3)))


@given(graphs())
def test_random_graphs_are_read_back_and_compute_the_same(graph):
    found = round_trip(graph)
    arrays = {"x": np.arange(8.0).reshape(4, 2), "y": np.eye(2), "w": np.array([2.0, -1.0])}
    for one, other in zip(graph.outputs, found.outputs, strict=True):
        values = [
            value(node, {n: arrays[n.name] for n in g.inputs}, {"N": 2})
            for g, node in ((graph, one), (found, other))
        ]
        np.testing.assert_array_equal(*values)


# ---- graphs inside attributes ------------------------------------------------------------------


@pytest.fixture
def nested():
    """An op whose attribute is a graph, for as long as a test lasts."""
    op = Op(
        name="nested_probe", infer=lambda *types, body: body.outputs[0].type, kernel=lambda: None
    )
    REGISTRY.add_op(op)
    yield op
    del REGISTRY.ops[op.name]


def test_a_graph_in_an_attribute_is_written_before_its_use(nested):
    a = sg.placeholder("a", ("N",))
    inner = Graph([sg.tanh(a)])
    middle = Graph([apply(nested, [a], {"body": inner})])
    y = apply(nested, [a], {"body": middle}) + apply(nested, [a], {"body": inner})
    graph = Graph([y + apply(nested, [a], {"body": Graph([sg.tanh(a)])})])
    text = graph.text(origins=False)
    assert text.count("def graph") == 2
    assert re.search(r"^        n1: float64\[N\] = tanh\(n0\)$", text, re.M)
    round_trip(graph)


# ---- bad text ----------------------------------------------------------------------------------

GOOD = "n0: float32[3] = placeholder(name='x')\nn1: float32[3] = tanh(n0)\nreturn n1\n"
BAD = [
    ("", 1), ("\n\n", 1), ("return", 1), ("return n0", 1), ("n0 = 3", 1), ("import os", 1),
    ("n0: float32[3] = placeholder(name='x')", 1),
    ("n0: float32[3] = placeholder(name='x')\nreturn n1", 2),
    ("n0: float32[3] = placeholder(name=3)\nreturn n0", 1),
    ("n0: float32[3] = placeholder()\nreturn n0", 1),
    ("n0: float32[3] = placeholder(name='x', cell=3)\nreturn n0", 1),
    ("n0: float32[3] = variable(name='x', cell=3)\nreturn n0", 1),
    ("n0: float32[-3] = placeholder(name='x')\nreturn n0", 1),
    ("n0: object[3] = placeholder(name='x')\nreturn n0", 1),
    ("n0: float32 = placeholder(name='x')\nreturn n0", 1),
    ("n0: float32[3] = placeholder(name='x')\nn0: float32[3] = tanh(n0)\nreturn n0", 2),
    (GOOD + "n2: float32[3] = tanh(n1)", 4),
    (GOOD.replace("tanh(n0)", "nonsense(n0)"), 2),
    (GOOD.replace("tanh(n0)", "tanh(n0, n0)"), 2),
    (GOOD.replace("tanh(n0)", "tanh()"), 2),
    (GOOD.replace("tanh(n0)", "tanh(3)"), 2),
    (GOOD.replace("tanh(n0)", "tanh(*n0)"), 2),
    (GOOD.replace("tanh(n0)", "tanh(n0, k=1)"), 2),
    (GOOD.replace("tanh(n0)", "tanh(n0, **n0)"), 2),
    (GOOD.replace("tanh(n0)", "tanh(n1)"), 2),
    (GOOD.replace("tanh(n0)", "add(n0, n0)(n0)"), 2),
    (GOOD.replace("tanh(n0)", "permute_dims(n0, axes=(7,))"), 2),
    (GOOD.replace("tanh(n0)", "permute_dims(n0, axes=3)"), 2),
    (GOOD.replace("tanh(n0)", "slice(n0, index=3)"), 2),
    (GOOD.replace("tanh(n0)", "slice(n0, index=((0, 9), 3))"), 2),
    (GOOD.replace("tanh(n0)", "astype(n0, dtype='no')"), 2),
    (GOOD.replace("tanh(n0)", "astype(n0, dtype=float64)"), 2),
    (GOOD.replace("n1: float32[3] = tanh(n0)", "n1: float32[7] = broadcast_to(n0, shape=(7,))"), 2),
    (GOOD.replace("tanh(n0)", "item(n0, index=0)"), 2),
    (GOOD.replace("n1: float32[3]", "n1: float64[3]"), 2),
    (GOOD.replace("n1: float32[3]", "n1: (float32[3],)"), 2),
    (GOOD.replace("tanh(n0)", "tanh(n0"), 2),
    (GOOD.replace("return n1", "return f(n1)"), 3),
    (GOOD.replace("return n1", "return n1 + n1"), 3),
    ("def graph0():\n    return n0\nreturn n0", 2),
    ("def graph0():\n    x = 3\nreturn n0", 2),
    ("def other():\n    return ()\nreturn ()", 1),
    ("n0: float64[()] = constant()\nreturn n0", 1),
    ("n0: float64[()] = constant(value=1.0)\nreturn n0", 1),
    ("n0: float64[()] = constant(value=array(1.0))\nreturn n0", 1),
    ("n0: float64[()] = constant(value=array(1.0, 3))\nreturn n0", 1),
    ("n0: float64[()] = constant(value=array(1.0, object))\nreturn n0", 1),
    ("n0: float64[()] = constant(value=array(x, float64))\nreturn n0", 1),
    ("n0: float64[2] = constant(value=array([1.0, [2.0]], float64))\nreturn n0", 1),
    ("n0: float64[2] = constant(value=array('====', float64, (2,)))\nreturn n0", 1),
    ("n0: float64[2] = constant(value=array('AAAA', float64, (2,)))\nreturn n0", 1),
    ("n0: float64[2] = constant(value=array([1.0], float64, x))\nreturn n0", 1),
    ("n0: uint8[()] = constant(value=array(300, uint8))\nreturn n0", 1),
    ("n0: int8[()] = constant(value=array(nan, int8))\nreturn n0", 1),
    ("n0: float64[((((9**16)**16)**16)**16)**16] = placeholder(name='x')\nreturn n0", 1),
    ("n0: float64[" + "-" * 2000 + "3] = placeholder(name='x')\nreturn n0", 1),
    ("n0: float64[()] = constant(value=array(" + "-" * 2000 + "1.0, float64))\nreturn n0", 1),
    ("n0: float64[()] = eye(n_rows=" + "1 + " * 2000 + "1)\nreturn n0", 1),
    ("n0: float64[()] = f(a=" + "(" * 300 + ")" * 300 + ")\nreturn n0", 1),
    ("n0: float64[()] = f(a=" + "9" * 5000 + ")\nreturn n0", 1),
    ("n0: float32[3] = placeholder(name='x', name='y')\nreturn n0", 1),
    *((f"n0: {kind}[()] = constant(value=array({value}, {kind}))\nreturn n0", 1)
      for value, kind in [
        ("1.5", "int32"), ("1.0", "int32"), ("True", "int32"), ("1", "bool"), ("-True", "int8"),
        ("9007199254740993", "float64"), ("16777217", "float32"), ("1e300", "float32"),
        ("1j+(2+3j)", "complex64"), ("1j+2", "complex64"), ("2j", "float64"), ("True", "float64"),
        ("True+1j", "complex64"), (str(10**30), "float64"),
        ("\N{FULLWIDTH LATIN CAPITAL LETTER T}rue", "bool"),
    ]),
    *((f"n0: float64[3] = constant(value=array([1.0, 2.0, 3.0], float64, {shape}))\nreturn n0", 1)
      for shape in ("[3]", "3", "(-1,)", "(True, 3)", "None", "(3.0,)", "x")),
    *((f"{head}\n    return ()\nreturn ()", line) for head, line in [
        ("def graph0(a):", 1), ("def graph0(*a):", 1), ("def graph0(a=3):", 1),
        ("def graph0() -> int:", 1), ("@f\ndef graph0():", 2), ("def graph0(*, k): ", 1),
        ("def graph0():\n    return ()\ndef graph0():", 3),
    ]),
    ("n0: float32[3] = placeholder(name=" + "[1, 2]" * 999 + ")\nreturn n0", 1),
    ("\0", 1), ("\n\t return x", 2), ("return n0\n  return n0", 2), ("λ: ", 1), ("\ud800", 1),
    ("if x:\n    return y", 1), ("n0: float32[3]\nreturn n0", 1), ("return ()\nreturn ()", 2),
]  # fmt: skip


@each(("text", "line"), BAD, ids=range(len(BAD)))
def test_bad_text_names_its_line(text, line):
    with pytest.raises(ParseError, match=f"^line {line}: ") as caught:
        Graph.parse(text)
    assert isinstance(caught.value, GraphError)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("source", [None, b"return ()", 3, GOOD.encode(), ["return ()"]])
def test_what_is_no_text_is_refused(source):
    with pytest.raises(sg.ArgumentError, match="from text, a str"):
        Graph.parse(source)


def test_a_text_that_takes_much_memory_is_refused_before_it_is_read():
    long = f"n0: float32[{'1<' * 10**6}1] = placeholder(name='x')\nreturn n0\n"
    with pytest.raises(ParseError, match=r"^line 1: .* bytes of memory.*most_bytes=\d+$"):
        Graph.parse(long)
    with pytest.raises(ParseError, match=r"more than 1000;"):
        Graph.parse(GOOD, most_bytes=1000)
    # The bytes of a constant take little, if they are those of a constant.
    large = Graph([sg.constant(np.random.default_rng(0).random(10**6))])
    text = large.text(full=True)
    assert Graph.parse(text, most_bytes=2**26) == large
    head = text.partition("array('")[0] + "array('"
    for hidden in (f"'\\\n{head}", f"f('{head}"):
        with pytest.raises(ParseError, match="bytes of memory"):
            Graph.parse(f"{hidden}{'1+' * 10**6}1', float64, (3,)))", most_bytes=2**26)


def test_graphs_with_a_nan_as_an_attribute_are_equal():
    made = [Graph([apply(REGISTRY.find("zeta"), [x], {"s": s})]) for s in (np.nan, 2.0, 3.0)]
    for graph in made:
        assert round_trip(graph).key == graph.key
    assert len(set(made)) == 3


PIECES = st.sampled_from(
    ["n0", "n1", "n9", ": ", " = ", "(", ")", "[", "]", ", ", "float32", "int64", "tanh", "add",
     "sum", "slice", "reshape", "permute_dims", "where", "divmod", "item", "constant",
     "placeholder", "name='x'", "axis=", "index=", "shape=", "value=array(", "axes=", "dtype=",
     "keepdims=True", "None", "-1", "0", "3", "N", "'AAAA'", "1j", "nan", "return ", "\n", "def "],
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=12), st.integers(0, 200), st.integers(0, 30), st.data())
def test_no_text_raises_anything_but_a_parse_error(pieces, start, length, data):
    base = data.draw(st.sampled_from(SEEDS))
    start %= len(base) + 1
    text = base[:start] + "".join(pieces) + base[start + length :]
    try:
        graph = Graph.parse(text)
    except ParseError as error:
        assert re.match(r"line \d+: ", str(error))  # noqa: PT017
    else:
        graph.verify()


SEEDS = [GOOD, "", *(Graph(outputs).text(full=True, origins=False) for outputs in CORPUS.values())]


@settings(max_examples=100)
@given(st.text(max_size=50))
def test_any_text_at_all(text):
    with pytest.raises(ParseError, match=r"^line \d+: "):
        Graph.parse(text)


@each("name", HOSTILE, ids=ascii)
def test_what_an_origin_says_stays_within_its_comment(name):
    with sg.scope(name):
        node = sg.tanh(x)
    origin = Origin((), (name,), (Maker.parse(name),))
    line = Location(f"/a/{name}.py", 3, name)
    frames = Origin(((line, 0),), (name,), (Maker("vjp", name), Maker("rewrite", name)))
    for told in (origin, frames):
        with built_as(told):
            graph = Graph([sg.tanh(node)])
        round_trip(graph)
        assert graph.text().isascii() or graph.text().replace("\n", "").isprintable()
        assert len(graph.text().splitlines()) == 4

"""What an op takes is declared, and nothing else is taken: by calls, by files, by `verify`."""

import inspect
import json
import tracemalloc
from typing import Any, Literal, Protocol, get_args, get_origin, get_type_hints, runtime_checkable

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.dims import Dim, Shape, Size
from symgrad.ir.errors import GraphError, ParseError, ShapeError, SymgradError, UnsupportedError
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, apply
from symgrad.ir.op import REGISTRY
from symgrad.ir.schema import schema_of
from symgrad.ir.types import MOST_AXES, DType, TensorType
from tests.helpers import each

N = Dim.of("N")
F8 = np.dtype("float64")
# No op has an attribute that may be anything. One that may would be named here, with the reason.
HOLES: dict[str, str] = {}


@runtime_checkable
class Body(Protocol):
    def run(self) -> int: ...


class Runs:
    def run(self) -> int:
        return 1


def schema(hint):
    def infer(x: TensorType, *, a) -> TensorType:
        return x

    infer.__annotations__["a"] = hint
    return schema_of(infer)


@each(
    ("hint", "good", "bad"),
    [
        (int, [0, -1, 2**63, -(2**63)], [True, 1.0, "1", None, np.int64(1), 2**65, (1,), N]),
        (bool, [True, False], [0, 1, None, "True", np.True_]),
        (float, [1.0, float("nan")], [1, True, np.float64(1), None, "1.0"]),
        (str, ["", "a"], [1, None, b"a"]),
        (DType, [F8], ["float64", np.float64, np.dtype("O"), np.dtype(">f8"), None]),
        (DType | None, [F8, None], ["float64", False]),
        (Size, [3, N], [True, 3.0, "N", None]),
        (Shape, [(), (3, N)], [[3], (3.0,), ("N",), 3, ((3,),)]),
        (Literal["set", "add"], ["set"], ["Set", "", None, 0]),
        (tuple[int, int], [(1, 2)], [(1,), (1, 2, 3), (1, 2.0), [1, 2]]),
        (tuple[tuple[int | None, int], ...], [(), ((None, 1),)], [((1, None),), (None, 1)]),
        (Body, [Runs()], ["Runs()", 1, None, ()]),
    ],
    ids=range(12),
)
def test_a_check_is_strict(hint, good, bad):
    found = schema(hint)
    for value in good:
        found.require({"a": value})
    for value in bad:
        with pytest.raises(SymgradError, match=r"^a must be |is a function in Python"):
            found.require({"a": value})


def test_a_check_of_a_value_is_no_check_of_one_like_it():
    """True, 1 and 1.0 are equal and hash alike, so that a cache takes one for the other."""
    op, t = REGISTRY.find("row_sums"), TensorType((2, 3), F8)
    x = sg.placeholder("x", (2, 3))
    assert apply(op, (x,), {"keepdims": True}).shape == (2, 1)
    for like in (1, 1.0):
        with pytest.raises(UnsupportedError, match="keepdims must be bool"):
            op.check((t,), {"keepdims": like})
        with pytest.raises(UnsupportedError, match="keepdims must be bool"):
            apply(op, (x,), {"keepdims": like})


@pytest.mark.parametrize("attrs", [{}, {"a": 1, "b": 1}, {"a=0, b": 1}, {"b": 1}])
def test_the_names_are_those_of_the_rule(attrs):
    with pytest.raises(GraphError, match=r"it has no attribute|it wants"):
        schema(int).require(attrs)


def test_a_rule_that_takes_anything_is_no_schema():
    with pytest.raises(GraphError, match="takes any attribute"):
        schema_of(lambda t, **attrs: t)


def holes(hint: Any) -> bool:
    parts = getattr(hint, "__args__", ())
    if getattr(hint, "__origin__", None) in (Literal, np.dtype):
        return False
    return hint in (Any, object, tuple, list, dict) or any(map(holes, parts))


def operand_hint(infer):
    """The annotation of the first operand."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = [p.name for p in inspect.signature(infer).parameters.values() if p.kind is kind]
    return get_type_hints(infer).get(names[0]) if names else None


@each("name", sorted(REGISTRY.every()))
def test_every_op_says_what_it_takes(name):
    op = REGISTRY.find(name)
    found = schema_of(op.infer)
    loose = [k for k, hint in found.hints.items() if holes(hint)]
    assert not loose or name in HOLES, f"{loose}: annotate them in {op.infer.__qualname__}"
    least, most = op.operands
    kinds = [p.kind for p in inspect.signature(op.infer).parameters.values()]
    fixed = kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        assert (least, most) == (fixed, fixed)
    else:
        assert least >= fixed
    holds = [k for k, hint in found.hints.items() if Graph in (hint, *get_args(hint))]
    assert holds == list(filter(None, (op.inner_graph, op.body, *op.graphs)))
    assert op.of_several == (get_origin(operand_hint(op.infer)) is tuple)
    for tried in op.trials.cases:
        assert found.hints.keys() == tried.attrs.keys() or op.normalize is not None


@pytest.mark.parametrize("name", ["tanh", "add", "where", "matmul", "sum", "item"])
def test_an_op_takes_as_many_operands_as_it_has(name):
    op, t = REGISTRY.find(name), TensorType((3, 3), F8)
    for count in (0, op.operands[1] + 1, 3000):
        with pytest.raises(GraphError, match=f"operands, not {count}"):
            op.check((t,) * count, {})
    with pytest.raises(GraphError):
        REGISTRY.find("concat").check((), {"axis": 0})


# ---- calls of users' ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda x: sg.eye(3, k=1.5),
        lambda x: sg.eye(3, k="1"),
        lambda x: sg.eye(3, k=True),
        lambda x: sg.special.polygamma(10**10, x),
        lambda x: sg.special.polygamma(10**400, x),
        lambda x: sg.linalg.qr(x, mode="full"),
    ],
)
def test_a_call_with_another_type_is_told_which_one(call):
    x = sg.placeholder("x", (3, 3))
    with pytest.raises(SymgradError) as caught:
        call(x)
    assert len(str(caught.value)) < 600


def test_numbers_of_numpys_are_numbers():
    assert dict(sg.eye(3, k=np.int8(1)).attrs)["k"].__class__ is int
    x = sg.placeholder("x", (3, 3))
    assert sg.sum(x, axis=np.int64(1), keepdims=np.True_).shape == (3, 1)
    assert sg.diagonal(x, offset=np.int32(-1)).shape == (2,)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sg.zeros((2**40, 2**40)),
        lambda: sg.placeholder("x", (2**40, 2**40)),
        lambda: sg.placeholder("x", ("N", 2**62)),
        lambda: sg.zeros((1,) * (MOST_AXES + 1)),
        lambda: sg.expand_dims(sg.placeholder("x", (1,) * MOST_AXES), axis=0),
        lambda: sg.eye(2**31, 2**31),
    ],
)
def test_what_no_memory_holds_is_refused(make):
    with pytest.raises(ShapeError, match=r"no memory holds|at most 64 dimensions"):
        make()


# ---- files -------------------------------------------------------------------------------------

EVIL = "open({!r}, 'w') and None"


def both_forms(graph, tmp_path):
    """The text of a graph, and its saved form, as text to change and as what reads it."""
    path = graph.save(tmp_path / "graph.json")
    yield graph.text(full=True, origins=False), Graph.parse

    def load(text):
        path.write_text(text)
        return Graph.load(path)

    yield path.read_text(), load


def refused(read, text):
    with pytest.raises(ParseError):
        read(text)


def test_no_code_in_the_value_of_an_attribute_is_read(tmp_path):
    x = sg.placeholder("x", 1)
    graph = Graph([x.at[0:1].set(0.0), x + 1])
    canary = tmp_path / "canary"
    y = Graph([apply(REGISTRY.find("place"), (x,), {"shape": (4,), "index": ((1, 2, 1),)})])
    for found in (graph, y):
        for text, read in both_forms(found, tmp_path):
            for old in ("1, 2, 1", "0, 1, 1"):
                for part in (repr(EVIL.format(str(canary))), "1.5", "True", "'1'", "()"):
                    new = f"{part}, None, 1"
                    given = json.dumps(new)[1:-1] if text.startswith("{") else new
                    if old in text:
                        refused(read, text.replace(old, given))
    assert not canary.exists()


@pytest.mark.parametrize("name", ["expm", "inv_triangular", "cholesky", "adjugate", "tanh"])
def test_no_code_in_the_name_of_an_attribute_is_read(name, tmp_path):
    x = sg.placeholder("x", (2, 2))
    attrs = {"lower": True} if name == "inv_triangular" else {}
    graph = Graph([apply(REGISTRY.find(name), (x,), attrs)])
    canary = tmp_path / "canary"
    path = graph.save(tmp_path / "graph.json")
    document = json.loads(path.read_text())
    node = document["graphs"][0]["nodes"][1]
    node["attrs"] = {**node["attrs"], f"a=open({str(canary)!r},'w'), b": "1"}
    refused(Graph.load, path.write_text(json.dumps(document)) and path)
    refused(Graph.parse, graph.text(origins=False).replace(f"{name}(n0", f"{name}(n0, a=1"))
    assert not canary.exists()


LINE = "n0: float64[3, 3] = placeholder(name='x')\nn1: {} = {}\nreturn n1\n"


@each(
    ("type", "call"),
    [
        ("float64[3]", "arange(count=3, dtype=float64, start='0', step=1)"),
        ("float64[3]", "arange(count=3, dtype=float64, start=0, step=(1,))"),
        ("bool[3]", "arange(count=3, dtype=bool, start=0, step=1)"),
        ("float64[3, 3]", "eye(dtype=float64, k='0', n_cols=3, n_rows=3)"),
        ("float64[3, 3]", "eye(dtype=float64, k=0.0, n_cols=3, n_rows=3)"),
        ("int64[()]", "size_of(dim='N', dtype=int64)"),
        ("float64[3, 1]", "row_sums(n0, keepdims=999999999999)"),
        ("float64[3, 1]", "row_sums(n0, keepdims=1)"),
        ("float64[3]", "diagonal(n0, offset='0')"),
        ("float64[3]", "diagonal(n0, offset=0.0)"),
        ("float64[9]", "place(n0, shape=(9,), index=((0, 9, 1),))"),
        ("float64[3, 3]", "place(n0, shape='33', index=((0, 3, 1), (0, 3, 1)))"),
        ("float64[3, 3]", "polygamma(n0, order=9999999999)"),
        ("float64[3, 3]", "gamma_slope(n0, n0, order=9999999999)"),
        ("float64[3, 3]", "gamma_slope(n0, n0, order=0)"),
        ("float64[3, 3]", "beta_slope(n0, n0, n0, order=(9, 9))"),
        ("float64[3, 3]", "sinc(n0, order=9999999999)"),
        ("float64[3, 3]", "sum(n0, axis=(), dtype=None, keepdims=999999999999)"),
        ("float64[3, 3]", f"tanh({', '.join(['n0'] * 3000)})"),
        ("float64[3, 3]", f"add({', '.join(['n0'] * 3000)})"),
        ("float64[" + "3, 3" + ", 1" * 98 + "]", f"reshape(n0, shape=(3, 3{', 1' * 98}))"),
        ("float64[4611686018427387904, 3, 3]",
         "broadcast_to(n0, shape=(4611686018427387904, 3, 3))"),
        ("float64[4611686018427387904, 8]", "placeholder(name='y')"),
        ("float64[()]", "variable(name='y', cell=3)"),
        ("float64[()]", "placeholder(name=3)"),
        ("float64[3, 3]", "custom(n0, count=1, rule='f')"),
        ("float64[3, 3]", "numpy_function(n0, body='f', dtypes=('float64',), shapes=((3, 3),))"),
        ("float64[3, 3]", "leaky_relu(n0, slope=nan)"),
        ("float64[3, 3]", "leaky_relu(n0, slope=1)"),
        ("float64[3, 3]", "slice(n0, index=((0, 3, 0), (0, 3, 1)))"),
        ("float64[3]", "item(n0, index=0)"),
    ],
)  # fmt: skip
def test_a_file_with_another_attribute_is_refused(type, call):
    with pytest.raises(ParseError, match=r"^line 2: ") as caught:
        Graph.parse(LINE.format(type, call))
    assert isinstance(caught.value.__cause__, SymgradError | None)
    assert "no node can be made" not in str(caught.value), "a raw error is no refusal"


@pytest.mark.parametrize("name", ["draw_key", "draw", "draw_integers", "draw_order"])
def test_draws_are_declared_too(name):
    op, key = REGISTRY.find(name), TensorType((2,), np.dtype("uint64"))
    good = op.trials.cases[0].attrs
    op.check((key,), dict(good))
    for changed in (
        {"count": "3"}, {"count": 3.0}, {"count": -1}, {"count": 2**63},
        {"law": "bytes"}, {"law": "__class__"}, {"dtype": np.dtype("int8")}, {"dtype": F8},
        {"low": 2**40}, {"high": -(2**40)}, {"shape": (2**62, 2)}, {"shape": "34"},
    ):  # fmt: skip
        if changed.keys() <= good.keys() and not (name == "draw" and changed == {"dtype": F8}):
            if name == "draw_integers" and changed == {"dtype": np.dtype("int8")}:
                continue
            with pytest.raises(SymgradError):
                op.check((key,), {**good, **changed})


# ---- graphs inside -----------------------------------------------------------------------------


def fused(graph, *operands):
    types = tuple(y.tensor for y in graph.outputs)
    origin = operands[0].origin
    return Node(REGISTRY.find("fused"), operands, (("graph", graph),), types[0], origin)


def test_a_graph_inside_a_graph_has_none_inside():
    """Each of 60 graphs would run the one before it twice."""
    x = sg.placeholder("x", 3)
    graph = Graph([sg.tanh(x) + x])
    once = Graph([fused(graph, x)])
    once.verify()
    assert Graph.parse(once.text(full=True)) == once
    for _ in range(60):
        graph = Graph([fused(graph, x) + fused(graph, x)])
    for found in (graph, Graph([fused(once, x)])):
        with pytest.raises(GraphError, match="holds no graphs of its own"):
            found.verify()
    with pytest.raises(ParseError, match="holds no graphs of its own"):
        Graph.parse(Graph([fused(once, x)]).text(full=True))


def test_the_graph_inside_is_verified_too():
    x = sg.placeholder("x", 3)
    bad = Node(REGISTRY.find("tanh"), (x,), (("a", 1),), x.type, x.origin)
    with pytest.raises(GraphError, match="no attribute 'a'"):
        Graph([fused(Graph([bad]), x)]).verify()
    w = sg.variable("w", np.ones(3))
    for inside in (Graph([w + 1]), Graph([], [x])):
        with pytest.raises(GraphError, match="placeholders for inputs"):
            REGISTRY.find("fused").check((x.type,), {"graph": inside})


# ---- every op, with anything -------------------------------------------------------------------

ANY = (
    None, True, 0, 1, -1, 3, 64, 2**31, 2**63 - 1, -(2**63), 2**63, 2**70, 0.0, 1.5, float("inf"),
    float("nan"), 1j, "", "set", "nan", "left", (), (0,), (-1,), (0, 0), (2**62, 4), (1,) * 70,
    ((0, 1, 1),), ((0, 0, 0),), ((None, None, -1),), ((N, None, 1),), N, N * 2**62, F8,
    np.dtype("bool"), np.dtype("longdouble"), Graph([sg.placeholder("p", 3) + 1]),
)  # fmt: skip
SHAPES = (
    (), (0,), (3,), (3, 3), (2, 3), (N,), (N, 3), (2, 3, 4), (0, 3), (2, 2, 2, 2, 2), (2**40,),
    (1,) * MOST_AXES, (2**31, 2**31),
)  # fmt: skip
DTYPES = ("bool", "uint8", "int64", "float16", "longdouble", "complex64")


def mutants(op, rng):
    """The operands and attributes with which an op is tried, changed in a place or two."""
    for _ in range(150):
        tried = op.trials.cases[rng.integers(len(op.trials.cases))] if op.trials.cases else None
        kind = np.dtype(op.trials.dtypes.split()[0] if op.trials.dtypes else "float32")
        shapes = tried.shapes if tried else ((3,),) * int(rng.integers(3))
        kinds = ["int64" if op.indices and i >= op.indices else kind for i in range(len(shapes))]
        types = [TensorType(*pair) for pair in zip(shapes, kinds, strict=True)]
        attrs = dict(tried.attrs) if tried else dict.fromkeys(schema_of(op.infer).checks, 1)
        for _ in range(int(rng.integers(1, 3))):
            place = rng.random()
            if attrs and place < 0.6:
                key = sorted(attrs)[rng.integers(len(attrs))]
                old, new = attrs[key], ANY[rng.integers(len(ANY))]
                inside = isinstance(old, tuple) and old and rng.random() < 0.5
                attrs[key] = (new, *old[1:]) if inside else new
            elif types and place < 0.8:
                i = int(rng.integers(len(types)))
                types[i] = TensorType(SHAPES[rng.integers(len(SHAPES))], types[i].dtype)
            elif types and place < 0.9:
                i = int(rng.integers(len(types)))
                types[i] = TensorType(types[i].shape, DTYPES[rng.integers(len(DTYPES))])
            else:
                types = types[1:] if place < 0.95 else [*types, TensorType((3, 3), F8)]
        yield tuple(types), attrs


@each("name", sorted(REGISTRY.every()))
def test_what_is_refused_is_refused_with_an_error_of_ours(name):
    op, rng = REGISTRY.find(name), np.random.default_rng(0)
    for types, attrs in mutants(op, rng):
        try:
            found = op.check(types, attrs)
        except SymgradError:
            continue
        assert found == op.check(types, attrs)


# ---- bounded work ------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_a_graph_of_large_arrays_is_compiled_in_little_memory(backend):
    """16 GiB that depend on nothing are made when the program runs, if it does, not before."""
    size = 2**31
    text = (
        f"n0: float64[{size}] = arange(count={size}, dtype=float64, start=0, step=1)\n"
        "n1: float64[46341, 46341] = eye(dtype=float64, k=0, n_cols=46341, n_rows=46341)\n"
        "n2: float64[()] = sum(n0, axis=(0,), dtype=None, keepdims=False)\n"
        "n3: float64[()] = sum(n1, axis=(0, 1), dtype=None, keepdims=False)\nreturn n2, n3\n"
    )
    tracemalloc.start()
    try:
        program = sg.compile([], list(Graph.parse(text).outputs), backend=backend)
        assert program.plan.arena_bytes >= 2**34
        assert "arange_from" in program.source
        assert tracemalloc.get_traced_memory()[1] < 2**28
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [3, 5000])
def test_what_is_made_from_a_shape_is_the_same_with_the_plan_and_in_it(size, monkeypatch):
    outputs = [sg.eye(size // 100 + 3, k=1, dtype="float32"), sg.arange(Dim.of("M")) * 2]
    x = sg.placeholder("x", "M")
    first = sg.compile([x], [*outputs, x], backend="numpy")(np.ones(size))
    monkeypatch.setattr("symgrad.lowering.lower.MOST_KEPT", 0)
    for backend in ("numpy", "reference"):
        again = sg.compile([x], [*outputs, x], backend=backend)(np.ones(size))
        for a, b in zip(first, again, strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype

"""The generator writes names that it chose and values that it knows, whoever built the nodes."""

import ast

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import GraphError, SymgradError
from symgrad.ir.node import Node, apply
from symgrad.ir.op import REGISTRY
from symgrad.ir.record import replace
from symgrad.lowering.lower import lower
from symgrad.runtime.codegen import generate
from symgrad.runtime.literals import index_text, int_text, name_text, plain_text, shape_text
from tests.helpers import each

EVIL = "open({!r}, 'w') and None"
X = sg.placeholder("x", (4, 4))


class Sly(int):
    """An int that says something else of itself."""

    def __repr__(self):
        return "open('F', 'w')"

    __str__ = __format__ = lambda self, *_: "open('F', 'w')"


class SlyText(str):
    __repr__ = __str__ = lambda self: "open('F', 'w')"


class SlyTuple(tuple):
    __repr__ = __str__ = lambda self: "open('F', 'w')"


SLY = (Sly(1), SlyText("a"), SlyTuple((1,)), (1, (Sly(2),)), object(), [1], {}, b"a", 1j, 2**70)


@pytest.mark.parametrize("value", SLY, ids=range(len(SLY)))
def test_a_value_that_is_not_plain_is_spelled_by_nobody(value):
    assert plain_text(value) is None
    for write in (int_text, lambda v: shape_text((v,)), lambda v: index_text(((v, None, 1),))):
        with pytest.raises(GraphError, match="not written into a program"):
            write(value)


@each(
    "value",
    [None, True, 0, -3, 2**63, 1.5, -0.0, float("inf"), float("-inf"), "a'\"\n{0}", (), (1,),
     ((1, None, -1), (0, "x", True)), "open('F', 'w')"],
)  # fmt: skip
def test_a_plain_value_is_a_literal_of_itself(value):
    found = eval(plain_text(value), {"__builtins__": {"float": float}})
    assert found == value
    assert repr(found) == repr(value)
    assert np.isnan(eval(plain_text(float("nan")), {"__builtins__": {"float": float}}))


@pytest.mark.parametrize("name", ["", "a b", "1a", "a=open()", "if", "ä", "a\n", SlyText("a"), 3])
def test_a_name_is_an_identifier(name):
    with pytest.raises(GraphError, match="is no name"):
        name_text(name)


def forged(name, inputs, attrs, type_=None):
    """A node that nobody has checked."""
    found = type_ or inputs[0].type
    return Node(REGISTRY.find(name), tuple(inputs), tuple(attrs.items()), found, X.origin)


def written(node, *xs):
    return generate(lower(sg.Graph([node], xs or None), {}, [])).text


def attributes():
    """Every attribute of every op that a program can be made of, with something evil in it."""
    for name, op in sorted(REGISTRY.every().items()):
        for tried in op.trials.cases[:1]:
            for key in tried.attrs:
                yield pytest.param(name, tried, key, id=f"{name}.{key}")


def operands(op, tried):
    kind = op.trials.dtypes.split()[0] if op.trials.dtypes else "float32"
    return [
        sg.placeholder(f"x{i}", s, "int64" if op.indices and i >= op.indices else kind)
        for i, s in enumerate(tried.shapes)
    ]


@pytest.mark.parametrize(("name", "tried", "key"), list(attributes()))
def test_no_evil_value_is_written(name, tried, key, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    op = REGISTRY.find(name)
    xs = operands(op, tried)
    try:
        good = apply(op, xs, tried.attrs)
    except SymgradError:  # operands of other dtypes are wanted
        pytest.skip("not to be built of these operands")
    evil = EVIL.format("F")
    value = dict(good.attrs)[key]
    for bad in (evil, Sly(1), SlyText(evil), (evil,), ((evil, None, 1),) * 2, SlyTuple((1,))):
        forged_attrs = {**dict(good.attrs), key: bad}
        if isinstance(value, tuple) and value and isinstance(bad, tuple):
            forged_attrs[key] = (bad[0], *value[1:])
        node = forged(name, xs, forged_attrs, good.type)
        try:
            text = written(node, *xs)
        # What no check let through may also stop what runs before the generator.
        except (SymgradError, TypeError, ValueError, IndexError):
            continue
        for part in ast.walk(ast.parse(text)):
            called = isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
            assert not (called and part.func.id == "open"), text
    assert not (tmp_path / "F").exists()


@pytest.mark.parametrize("name", ["expm", "cholesky", "adjugate", "inv_triangular", "tanh", "sum"])
def test_no_name_but_a_declared_one_is_written(name):
    attrs = dict(apply(REGISTRY.find(name), [X], {"lower": True} if "inv_" in name else {
        "axis": None} if name == "sum" else {}).attrs)  # fmt: skip
    for key in ("a=open('F','w'), b", "out", "a", "where", "dtype)#"):
        node = forged(name, [X], {**attrs, key: 1})
        with pytest.raises(GraphError, match="declares no"):
            written(node)


def test_the_exploit_of_place_is_refused_by_the_generator(tmp_path):
    canary = tmp_path / "canary"
    index = ((EVIL.format(str(canary)), None, 1), (0, 4, 1))
    node = forged("place", [X], {"shape": (8, 4), "index": index}, sg.placeholder("y", (8, 4)).type)
    with pytest.raises(SymgradError, match="not written into a program"):
        written(node)
    with pytest.raises(SymgradError, match="not written into a program"):
        sg.compile(X, node, passes=())(np.ones((4, 4)))
    with pytest.raises(SymgradError, match="not written into a program"):
        written(forged("put", [X, X], {"index": index, "mode": "set"}))
    assert not canary.exists()


def test_values_that_differ_by_their_type_are_not_one_source():
    """True and 1 are equal, and a cache of what was written must not take one for the other."""
    texts = []
    for keepdims in (True, 1):
        attrs = {"axis": (0,), "dtype": None, "keepdims": keepdims}
        node = forged("sum", [X], attrs, sg.placeholder("y", (1, 4)).type)
        texts.append(written(node))
    assert "keepdims=True" in texts[0]
    assert "keepdims=1" in texts[1]


def test_a_slot_is_named_by_the_generators_rules():
    plan = lower(sg.Graph([sg.tanh(X)], [X]), {}, [])
    bad = plan.slots[0]._replace(name="x, y=open('F')")
    with pytest.raises(GraphError, match="is no name"):
        generate(replace(plan, slots=(bad, *plan.slots[1:])))


def test_numbers_that_are_not_finite_are_spelled_out():
    pytest.importorskip("scipy")
    q = sg.placeholder("q", 3)
    node = apply(REGISTRY.find("zeta"), [q], {"s": float("inf")})
    program = sg.compile(q, node)
    assert program(np.array([2.0, 3.0, 4.0])).shape == (3,)
    assert "float('inf')" in program.source

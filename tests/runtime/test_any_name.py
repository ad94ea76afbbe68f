"""Names: an input, a variable and a dimension may be called as anything in generated source is."""

import importlib.util
import inspect
import io
import keyword
import re
import tokenize

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import FeedError, ShapeError
from symgrad.runtime.program import Program

ODD = [
    "",
    "1x",
    "a b",
    "λ",
    "__class__",
    "__init__",
    "_0",
    "k_0",
    "one_0",
    "zero_1",
    "share",
    "rows",
]
N = 1000
W = np.linspace(-1, 1, 48, dtype="float32")
INPUTS = 6


def build(names, threads=None):
    """A program with constants, copied kernels, blocks on threads, scratch and an update."""
    *inputs, name = names
    xs = [sg.placeholder(n, ("N", 48), "float32") for n in inputs]
    w = sg.variable(name, W)
    h = sg.tanh(xs[0] * w + np.arange(48, dtype="float32")) * 1.5 + sg.erf(xs[1]) * 0.3
    h = sg.relu(h * xs[2]) * sg.softplus(xs[3] + 2.0) - sg.abs(xs[4] * W)
    loss = sg.sum(sg.sum(h * h, axis=0)) + sg.median(xs[5])
    updates = {w: w - 1e-6 * sg.grad(loss, w)}
    return sg.compile(xs, (loss, h), updates, threads=threads), w


def words(text):
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {t.string for t in tokens if t.type == tokenize.NAME}


def alone(program, path):
    program.save_source(path, N=N)
    spec = importlib.util.spec_from_file_location("alone", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Program(W)


def test_inputs_and_variables_may_be_called_like_anything_in_the_source(tmp_path):
    plain = [f"x{i}" for i in range(INPUTS)] + ["w"]
    path = tmp_path / "alone.py"
    feeds = np.random.default_rng(0).standard_normal((INPUTS, N, 48)).astype("f4")
    programs = {threads: build(plain, threads) for threads in (None, 2)}
    expected = {}
    found = {*ODD, *keyword.kwlist}
    for threads, (program, w) in programs.items():
        loss, h = program(*feeds)
        expected[threads] = [loss, h, w.value]
        found |= words(program.source)
    other = alone(programs[None][0], path)
    expected["alone"] = [*other(*feeds)]
    found |= words(path.read_text())
    assert {"step", "np", "fitted", "workspace", "share", "tanh", "erf", "self", "a"} <= found
    names = sorted(found - set(plain))
    names += plain[: -len(names) % len(plain)]
    for at in range(0, len(names), len(plain)):
        several = names[at : at + len(plain)]
        for threads in (2, None):
            program, w = build(several, threads)
            for a, b in zip([*program(*feeds), w.value], expected[threads], strict=True):
                np.testing.assert_array_equal(a, b)
        w.value = W
        named = dict(zip(several, feeds, strict=False))
        np.testing.assert_array_equal(program(**named)[1], expected[None][1])
        for a, b in zip(alone(program, path)(*feeds), expected["alone"], strict=True):
            np.testing.assert_array_equal(a, b)


def parameters():
    """The names of what the methods of a program take."""
    methods = [m for m in vars(Program).values() if inspect.isfunction(m)]
    return sorted({p for m in methods for p in inspect.signature(m).parameters})


@pytest.mark.parametrize("name", [*parameters(), "__class__", "_", "match", "type", "print", "np"])
def test_a_dimension_may_be_called_like_a_parameter(name, tmp_path):
    program = sg.compile(x := sg.placeholder("x", (name, 3)), sg.sum(x * x))
    assert program.cost(**{name: 7}).after.flops > 0
    path = program.save_source(tmp_path / "p.py", **{name: 7})
    assert f"{name} = 7" in path.read_text()
    assert program(np.ones((7, 3))) == 21
    assert program.cost(**{name: 7}).after.flops == program.cost().after.flops


@pytest.mark.parametrize("name", ["class", "None", "inf", "float32", "graph0", "array", "a b", "1"])
def test_a_dimension_that_python_would_read_otherwise_is_refused_where_it_is_declared(name):
    if name == "1":
        assert sg.placeholder("x", name).shape == (1,)
        return
    with pytest.raises(ShapeError, match=r"must be an identifier|not a dimension"):
        sg.placeholder("x", (name,))


def test_an_input_with_the_name_of_an_option_is_given_by_position():
    for name, ask in (
        ("runs", lambda p, *a, **k: p.profile(*a, **k)),
        ("rtol", lambda p, *a, **k: p.check(*a, **k)),
        ("against", lambda p, *a, **k: p.check(*a, **k)),
    ):
        xs = [sg.placeholder("x", 3), sg.placeholder(name, 3)]
        program = sg.compile(xs, xs[0] + xs[1])
        one = np.ones(3)
        assert program(x=one, **{name: one}).tolist() == [2, 2, 2]
        ask(program, one, one)
        for arguments in ({"x": one, name: one}, {"x": one}):
            with pytest.raises(FeedError, match=rf"{name}=…\) is an option.*order x, {name}"):
                ask(program, **arguments)


@pytest.mark.parametrize("name", ["k_0", "k_0_", "one_0", "k", "fused", "fused1", "rows", "share"])
def test_an_input_of_a_fused_group_in_a_file_may_be_called_like_anything_in_the_source(name):
    x = sg.placeholder("x", ("N", 48), "float32")
    row = sg.constant(np.linspace(-1, 1, 48, dtype="float32"))
    graph = sg.compile(x, sg.tanh(x * row + row) * sg.exp(x) + 1.5).graph
    text = graph.text(full=True, origins=False)
    (row,) = re.findall(r"constant\(value=array\('.*\)\)", text)
    scalar = "n7: float32[()] = constant(value=array(1.5, float32))"
    assert scalar in text
    text = text.replace(scalar, f"n7: float32[48] = {row}")
    array = np.random.default_rng(0).standard_normal((N, 48)).astype("f4")
    assert "name='p0'" in text, "there is a fused group"
    found = []
    for written in (text, text.replace("name='p0'", f"name={name!r}")):
        again = sg.Graph.parse(written)
        for threads in (1, 2):
            program = sg.compile(list(again.inputs), again.outputs[0], passes=(), threads=threads)
            found.append(program(array))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])

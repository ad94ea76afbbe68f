"""Programs written as files: whole or not at all, without symgrad, the same to the bit."""

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.formats.writing import write_whole
from symgrad.ir.node import apply
from symgrad.ir.op import Op
from symgrad.ops.select import select

NUMPY = Path(np.__file__).parent.parent

# Runs a written program in a process of its own, in which symgrad cannot be imported: `-I -S`
# leaves out the working directory, PYTHONPATH and site-packages, and only NumPy is linked in.
DRIVER = """
import importlib.util, sys
sys.path.insert(0, sys.argv[1])
assert importlib.util.find_spec("symgrad") is None
import numpy as np
spec = importlib.util.spec_from_file_location("written", sys.argv[2])
written = importlib.util.module_from_spec(spec)
spec.loader.exec_module(written)
data = dict(np.load(sys.argv[3]))
state = [data[k] for k in data if k.startswith("state")]
fed = [data[k] for k in data if k.startswith("fed")]
program = written.Program(*state)
found = []
for _ in range(int(data["steps"])):
    result = program(*fed)
    found += result if isinstance(result, (list, tuple)) else [result]
assert not any(name.split(".")[0] == "symgrad" for name in sys.modules)
parameters = written.Program.__init__.__code__.co_varnames[1 : 1 + len(state)]
left = {f"left{i}": getattr(program, n) for i, n in enumerate(parameters)}
np.savez(sys.argv[4], **{f"found{i}": r for i, r in enumerate(found)}, **left)
"""


def alone(tmp_path, program, fed, steps=1, **sizes):
    """Run a program as a file of its own, then here, and assert the same bits."""
    links = tmp_path / "links"
    links.mkdir(exist_ok=True)
    for name in ("numpy", "numpy.libs"):
        if (NUMPY / name).exists() and not (links / name).exists():
            (links / name).symlink_to(NUMPY / name)
    written, data, out = tmp_path / "written.py", tmp_path / "data.npz", tmp_path / "out.npz"
    variables = [n for n in program.graph.inputs if isinstance(n, sg.Variable)]
    states = {f"state{i}": v.value for i, v in enumerate(variables)}
    feeds = {f"fed{i}": a for i, a in enumerate(fed)}
    expected = []
    for _ in range(steps):
        result = program(*fed)
        expected += result if isinstance(result, (list, tuple)) else [result]
    assert program.save_source(written, **sizes) == written
    np.savez(data, steps=steps, **states, **feeds)
    command = [sys.executable, "-I", "-S", "-c", DRIVER, links, written, data, out]
    ran = subprocess.run(
        list(map(str, command)),
        capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    with np.load(out) as found:
        for i, value in enumerate(expected):
            same_bits(found[f"found{i}"], value)
        for i, v in enumerate(variables):
            same_bits(found[f"left{i}"], v.value)
    return written.read_text()


def same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def test_five_hundred_steps_of_a_net(tmp_path):
    rng = np.random.default_rng(0)
    x = sg.placeholder("x", ("N", 1000), "float32")
    y = sg.placeholder("y", ("N", 10), "float32")
    w1 = sg.variable("w1", rng.standard_normal((1000, 100), dtype="float32"))
    w2 = sg.variable("w2", rng.standard_normal((100, 10), dtype="float32"))
    loss = sg.sum((sg.relu(x @ w1) @ w2 - y) ** 2)
    dw1, dw2 = sg.grad(loss, [w1, w2])
    step = sg.compile([x, y], loss, updates={w1: w1 - 1e-6 * dw1, w2: w2 - 1e-6 * dw2})
    fed = [rng.standard_normal((64, n), dtype="float32") for n in (1000, 10)]
    text = alone(tmp_path, step, fed, steps=500)
    assert "symgrad" not in text.split('"""', 2)[2], "only the docstring says who wrote it"
    assert "It is planned for N = 64." in text


def test_variables_of_no_dimensions_and_none(tmp_path):
    x = sg.placeholder("x", (3,), "float32")
    n, m = sg.variable("n", np.int64(0)), sg.variable("m", np.zeros(3, "float32"))
    scale = sg.variable("scale", np.float32(0.5))
    updates = {n: n + 1, m: m + x * scale, scale: scale * np.float32(0.75)}
    fed = [np.ones(3, "float32")]
    alone(tmp_path, sg.compile(x, [sg.sum(m), n], updates=updates), fed, steps=4)
    alone(tmp_path, sg.compile(x, [], updates={n: n + 1}), fed, steps=3)
    alone(tmp_path, sg.compile(x, [], updates={n: n + 1, scale: scale * 2}), fed, steps=3)
    alone(tmp_path, sg.compile(x, n, updates={n: n + 1}), fed, steps=3)
    alone(tmp_path, sg.compile(x, [x, m], updates={m: m + 1}), fed, steps=3)
    alone(tmp_path, sg.compile(x, []), fed)
    alone(tmp_path, sg.compile([], [sg.constant(3.0), n]), [])


def test_kernels_views_and_constants(tmp_path):
    x = sg.placeholder("x", ("N", 4), "float32")
    y = sg.exp(x)
    table = sg.constant(np.random.default_rng(1).standard_normal((4, 500)).astype("float32"))
    outputs = [
        sg.where(x > 0, y, -y), select(x > 0, y), sg.concat([x, y[:1]]), y[::-1].T,
        sg.sum(y @ table), sg.grad(sg.sum(sg.relu(x) ** 2), x), sg.grad(sg.sum(y[1:] ** 3), x),
        sg.reshape(y.T, -1), x > 0, sg.astype(x, "int32"), x * np.float32(np.inf),
        sg.constant(np.array([np.nan, -0.0])), sg.concat([x, sg.zeros((2, 4), dtype="float32")]),
    ]  # fmt: skip
    program = sg.compile(x, outputs)
    text = alone(tmp_path, program, [np.random.default_rng(2).standard_normal((3, 4), "float32")])
    assert max(map(len, text.split("\n"))) < 240, "large constants are wrapped"


HOSTILE = [
    "</svg><script>alert(1)</script>", '"];', "λ", "", "x" * 10_000, "self", "step", "np",
    "matmul", "lambda", "None", "__init__", "__debug__", "_", "a b", "a_b", "a-b", '"""', "\\",
    "\n", "\x00", "\u2028", "\ud800", "workspace", "found", "fitted", "Program", "w_next", "bits",
    "k", "s", "out", "a", "kernel0", "value0", "select", "print", "{0}", "%s", "1x", "match", "e",
    "'", "#", "args", "kwargs", "keep_where_positive",
]  # fmt: skip


def hostile_program():
    """Placeholders and variables of every hostile name, in one program."""
    fed = [sg.placeholder(name, 2, "float32") for name in HOSTILE]
    state = [
        sg.variable(f"{name}!" if i % 2 else f"{name}?", np.full(2, i, "float32"))
        for i, name in enumerate(HOSTILE)
    ]
    both = list(zip(fed, state, strict=True))
    total = sg.constant(np.zeros(2, "float32"))
    for a, b in both:
        total = total + select(a > 0, a * b)
    outputs = {name: sg.exp(a * 0.1) for name, a in zip(HOSTILE, fed, strict=True)}
    updates = {b: b + a * total for a, b in both}
    return sg.compile(fed, outputs, updates=updates), fed, state


def test_hostile_names(tmp_path):
    program, fed, _ = hostile_program()
    arrays = [np.full(2, i + 1, "float32") for i in range(len(fed))]
    by_name = program(**dict(zip(HOSTILE, arrays, strict=True)))
    assert list(by_name) == HOSTILE
    assert [r[0] for r in by_name.values()] == [np.exp(np.float32(0.1) * a[0]) for a in arrays]
    with pytest.raises(sg.FeedError) as caught:
        program(**{**dict(zip(HOSTILE[1:], arrays[1:], strict=True)), "x" * 9_999: arrays[0]})
    message = str(caught.value)
    assert repr(HOSTILE[0]) in message
    assert len(message) < 4000
    assert "\n" not in message
    flat = sg.compile(fed, list(map(sg.exp, fed)))
    alone(tmp_path, flat, arrays)
    assert isinstance(repr(program), str)


def test_hostile_names_of_variables_and_results(tmp_path):
    program, fed, state = hostile_program()
    arrays = [np.full(2, 0.01 * i, "float32") for i in range(len(fed))]
    plain = sg.compile(fed, [sg.sum(v) for v in state], updates={v: v * 0.5 for v in state})
    alone(tmp_path, plain, arrays, steps=3)
    program(*arrays)
    program.save_source(tmp_path / "named.py")
    text = (tmp_path / "named.py").read_text()
    compile(text, "named.py", "exec")
    assert "<script>" in text.split('"""')[1]
    assert "x" * 81 not in text.rpartition("return {")[0]


def test_a_written_program_refuses_what_does_not_fit(tmp_path):
    x = sg.placeholder('it\'s "x"\n', (2, "N"), "float32")
    w = sg.variable("w", np.ones(2, "float32"))
    program = sg.compile(x, x + 1, updates={w: w + 1})
    program.save_source(tmp_path / "p.py", N=3)
    scope = {"__name__": "written"}
    exec((tmp_path / "p.py").read_text(), scope)
    with pytest.raises(ValueError, match=r"'w' must be float32\[2\], not float32\[3\]"):
        scope["Program"](np.ones(3, "float32"))
    values = np.ones(2, "float32")
    written = scope["Program"](values)
    with pytest.raises(ValueError, match=r"must be float32\[2, 3\], not float64\[2, 3\]"):
        written(np.ones((2, 3)))
    assert written([[1, 2, 3], [4, 5, 6.0]]).tolist() == [[2, 3, 4], [5, 6, 7]]
    assert written(np.ones((3, 2), "float32").T).tolist() == [[2] * 3] * 2
    assert values.tolist() == [1, 1], "its variables are its own"
    assert written.w.tolist() == [3, 3]


# ---- files ----------------------------------------------------------------------------------


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "p.py"
    write_whole(path, "old")

    def fails(*args):
        raise OSError("the disk is full")

    for what in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os if what == "fsync" else Path, what, fails)
            with pytest.raises(OSError, match="disk is full"):
                write_whole(path, "new")
        assert [p.name for p in tmp_path.iterdir()] == ["p.py"]
        assert path.read_text() == "old"
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "begins well, then \ud800")
    assert [p.name for p in tmp_path.iterdir()] == ["p.py"]
    assert path.read_text() == "old"
    write_whole(path, "new")
    assert path.read_text() == "new"


def test_a_folder_that_is_not_there(tmp_path):
    program = sg.compile([], [sg.constant(1.0)])
    path = tmp_path / "no" / "p.py"
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*no; make it first"):
        program.save_source(path)
    assert list(tmp_path.iterdir()) == []


def test_kernels_of_ones_own_are_not_written(tmp_path):
    own = Op(name="mine", infer=lambda t: t, kernel=lambda x: x + 1)
    x = sg.placeholder("x", 3)
    program = sg.compile(x, apply(own, [x]))
    with pytest.raises(sg.GraphError, match=r"kernels of your own \(mine\)"):
        program.save_source(tmp_path / "p.py")
    assert list(tmp_path.iterdir()) == []


class Both(NamedTuple):
    """A form of results with names."""

    loss: Any
    grads: Any


def shown(result):
    """A result and its form as text: of arrays their bytes."""
    if isinstance(result, dict):
        return "{" + ", ".join(f"{k!r}: {shown(v)}" for k, v in result.items()) + "}"
    if isinstance(result, (list, tuple)):
        name = type(result).__name__
        fields = getattr(result, "_fields", "")
        return f"{name}{fields}({', '.join(map(shown, result))})"
    return f"{result.dtype}{result.shape}{result.tobytes()!r}"


FORMS = [
    lambda y, dx: y,
    lambda y, dx: [],
    lambda y, dx: (),
    lambda y, dx: {},
    lambda y, dx: [y],
    lambda y, dx: (y,),
    lambda y, dx: {"y": y},
    lambda y, dx: (y, dx),
    lambda y, dx: [y, dx],
    lambda y, dx: ((y, dx),),
    lambda y, dx: {"loss": y, "grads": [dx, {"again": (dx,)}], "none": []},
    lambda y, dx: {0: y, ("a", 1.5): dx, None: y, b"": y, True: y, 2**70: y},
    lambda y, dx: {'"]); print("hostile\n': y, "\ud800\u2028'\\{0}": dx},
    Both,
    lambda y, dx: Both([y], {"dx": Both(dx, y)}),
    lambda y, dx: {f"result {i}": (y, dx) for i in range(20)},
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("updates", [False, True])
def test_results_have_the_form_of_the_program(tmp_path, form, updates, capsys):
    x, n = sg.placeholder("forms", 3), sg.variable("namedtuple", 0.0)
    y = sg.sum(x * x) + n
    program = sg.compile(x, form(y, sg.grad(y, x)), updates={n: n + 1} if updates else None)
    path = program.save_source(tmp_path / "p.py")
    state = [v.value for v in program.graph.inputs if isinstance(v, sg.Variable)]
    written = runpy.run_path(str(path))["Program"](*state)
    for _ in range(2):
        assert shown(written(np.arange(3.0))) == shown(program(np.arange(3.0)))
    assert capsys.readouterr().out == ""


def test_a_form_that_no_text_can_say_is_refused(tmp_path):
    x, w = sg.placeholder("x", 3), sg.variable("w", np.ones(3))
    for key in (w, frozenset("a"), float("nan"), type):
        program = sg.compile(x, {key: x * w})
        with pytest.raises(sg.GraphError, match="compile it with texts"):
            program.save_source(tmp_path / "p.py")
    assert list(tmp_path.iterdir()) == []


def test_variables_of_one_name_are_told_apart(tmp_path):
    x = sg.placeholder("x", 3)
    first, second = sg.variable("w", np.full(3, 2.0)), sg.variable("w", np.full(3, 5.0))
    updates = {second: second + 1, first: first * 10}
    program = sg.compile(x, x * first + second, updates)
    module = runpy.run_path(str(program.save_source(tmp_path / "two.py")))
    alone = module["Program"](np.full(3, 2.0), np.full(3, 5.0))
    for _ in range(3):
        np.testing.assert_array_equal(alone(np.ones(3)), program(np.ones(3)))
    np.testing.assert_array_equal(first.value, np.full(3, 2000.0))
    np.testing.assert_array_equal(second.value, np.full(3, 8.0))
    with pytest.raises(ValueError, match="'w1' must be"):
        module["Program"](np.ones(3), np.ones(2))


ARGUMENTS = [
    (lambda x, y: {"x": x, "y": y}, lambda a, b: ({"y": b, "x": a},)),
    (lambda x, y: [[x], y], lambda a, b: ((a,), b)),
    (lambda x, y: [{"in": [x, {0: y}]}], lambda a, b: ({"in": (a, {0: b})},)),
    (lambda x, y: [{'"]); print("hostile\n': x, ("a", 1): [y]}],
     lambda a, b: ({'"]); print("hostile\n': a, ("a", 1): [b]},)),
    (lambda x, y: Both(x, [y]), lambda a, b: (a, [b])),
]  # fmt: skip


@pytest.mark.parametrize(("inputs", "given"), ARGUMENTS)
def test_arguments_have_the_form_of_the_program(tmp_path, inputs, given, capsys):
    x, y = sg.placeholder("call", 3), sg.placeholder("parts", 3)
    program = sg.compile(inputs(x, y), x - 2 * y)
    written = runpy.run_path(str(program.save_source(tmp_path / "p.py")))["Program"]()
    a, b = np.arange(3.0), np.ones(3)
    wanted = program(*given(a, b))
    np.testing.assert_array_equal(written(*given(a, b)), wanted)
    np.testing.assert_array_equal(program(call=a, parts=b), wanted)
    np.testing.assert_array_equal(written(call_=a, parts_=b), wanted)
    assert capsys.readouterr().out == ""


def test_arguments_of_another_form_are_refused_by_the_file(tmp_path):
    x, y = sg.placeholder("x", 3), sg.placeholder("y", 3)
    program = sg.compile([{"x": x, "rest": [y]}], x - y)
    path = program.save_source(tmp_path / "p.py")
    assert "program({'x': x, 'rest': [y]})" in path.read_text(encoding="utf-8")
    written = runpy.run_path(str(path))["Program"]()
    a = np.ones(3)
    for given, words in [
        ((a, a), "argument must be a sequence of 1, not of 2"),
        (([a, a],), r"argument\[0\] must be a dict with the keys \['x', 'rest'\]"),
        (({"x": a},), r"argument\[0\] must be a dict"),
        (({"x": a, "rest": {"y": a}},), r"argument\[0\]\['rest'\] must be a sequence of 1"),
        (({"x": a, "rest": [a, a]},), "must be a sequence of 1, not of 2"),
        (({"x": a, "rest": 1.0},), "must be a sequence of 1"),
    ]:
        with pytest.raises(ValueError, match=words):
            written(*given)
    with pytest.raises(sg.GraphError, match="with texts for keys"):
        sg.compile([{frozenset("a"): x}], x).save_source(tmp_path / "q.py")

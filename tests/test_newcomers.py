"""Where newcomers stumbled: what they write is done, or answered with what to write instead."""

import copy
import logging
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.telling import tell
from tests.helpers import each

ROOT = Path(__file__).parent.parent
KEY = sg.random.key(0)


def matrix():
    return sg.placeholder("x", ("N", 3), "float32")


def test_the_value_of_a_variable_cannot_be_written_into():
    w = sg.variable("w", np.ones(3))
    with pytest.raises(ValueError, match="read-only"):
        w.value[:] = 0
    w.value = w.value * 0
    assert w.value.tolist() == [0, 0, 0]


def test_a_named_size_is_a_size_beside_integers_and_no_number():
    x = matrix()
    n = x.shape[0]
    remainders = [str(size) for size in (n**2, n % 2, +n, *divmod(n, 3), (4 * n) % n)]
    assert remainders == ["N**2", "N - 2*(N//2)", "N", "N//3", "N - 3*(N//3)", "0"]
    refused = [
        lambda: 1.0 / n, lambda: n / 2, lambda: n / n, lambda: 0.5 * n, lambda: n + 1.5,
        lambda: 2**n, lambda: 7 // n, lambda: n**0.5, lambda: n**-1, lambda: range(n),
        lambda: float(n), lambda: int(n), lambda: round(n), lambda: [0] * n,
        lambda: np.float32(2) * n,
    ]  # fmt: skip
    for write in refused:
        with pytest.raises(sg.SymbolicError, match=r"N is a named .*sg\.asarray.*sg\.fori"):
            write()
    weighed = sg.sum(x) * (1.0 / sg.asarray(n, dtype=x.dtype))
    found = sg.compile(x, [weighed, sg.sum(x) / n, n / x, x * n])(np.ones((4, 3), "float32"))
    assert [np.ravel(y)[0] for y in found] == [3, 3, 4, 4]
    assert {y.dtype for y in found} == {np.dtype("float32")}


OTHER_NAMES = {
    "concatenate": "write sg.concat", "transpose": "write sg.permute_dims", "mod": "sg.remainder",
    "cumsum": "sg.cumulative_sum", "arctan2": "sg.atan2", "svd": "write sg.linalg.svd",
    "Linear": "sg.nn.Linear", "Adam": "sg.optim.Adam", "gelu": "sg.nn.gelu", "i0": "sg.special.i0",
    "argwhere": "sg.nonzero(x, size", "array": "sg.constant", "jit": "sg.compile", "cat": "concat",
    "Tensor": "sg.constant(value)", "shape": "np.shape", "placehodler": "there is sg.placeholder",
    "gradients": "write sg.grad(", "reduce_mean": "write sg.mean", "shared": "write sg.variable(",
    "layers": "there is", "GradientTape": "sg.grad(loss, wrt)", "functional": "sg.nn.relu(x)",
}  # fmt: skip


@pytest.mark.parametrize(
    ("space", "name", "ours"),
    [
        ("nn", "ReLU", "there is sg.nn.relu"), ("nn", "CrossEntropyLoss", "sg.nn.cross_entropy"),
        ("nn", "Parameter", "sg.nn.parameter(value)"), ("optim", "adam", "there is sg.optim.Adam"),
        ("random", "randn", "write sg.random.normal(key, shape)"),
    ],
)  # fmt: skip
def test_names_within_a_namespace(space, name, ours):
    with pytest.raises(AttributeError, match=re.escape(ours)):
        getattr(getattr(sg, space), name)
    assert name not in dir(getattr(sg, space))


@each("name", OTHER_NAMES)
def test_names_of_others_are_answered_with_ours(name):
    with pytest.raises(AttributeError, match=re.escape(OTHER_NAMES[name])):
        getattr(sg, name)
    assert not hasattr(sg, "_repr_html_")
    with pytest.raises(AttributeError, match=r"has no attribute 'qqqq'$"):
        getattr(sg.nn, "qqqq")  # noqa: B009
    for method in ("backward", "numpy"):
        with pytest.raises(AttributeError, match=r"write|sg\.grad"):
            getattr(matrix(), method)


def test_what_is_written_in_place_of_others_names_is_there():
    from symgrad.ir.elsewhere import OTHERS

    for said in OTHERS.values():
        for name in re.findall(r"sg((?:\.\w+)+)", said):
            found = sg
            for part in name.split(".")[1:]:
                found = getattr(found, part)


def test_arguments_by_place_that_go_by_name_are_told_how():
    h = sg.placeholder("h", ("N", 5, 8))
    key = r"given by name: key=uint64\[2\]; it is "
    calls = {
        r"Linear: too many.*" + key: lambda: sg.nn.Linear(3, 4, KEY),
        r"Conv2d: .*" + key: lambda: sg.nn.Conv2d(3, 4, 3, KEY),
        r"BatchNorm: .*dtype='float32'": lambda: sg.nn.BatchNorm(3, "float32"),
        r"normal: .*given by name: dtype='float32'": lambda: sg.random.normal(KEY, 3, "float32"),
        r"unexpected .*sizes.*it is Linear": lambda: sg.nn.Linear(3, 4, sizes=2),
        r"mask is true where.*attention\(x, context\)": lambda: sg.nn.MultiHeadAttention(
            8, 2, key=KEY
        )(h, h, h),
    }
    for message, call in calls.items():
        with pytest.raises(TypeError, match=f"(?s){message}"):
            call()


def test_a_part_written_anew_is_told_from_the_one_that_the_loss_is_made_of():
    x = matrix()
    for part, name in ((lambda: x[0], "'x'"), (lambda: x.T, "'x'"), (lambda: 2 * x, "'x'")):
        with pytest.raises(sg.GradientError, match=f"new node each time.*gradient by {name}"):
            sg.grad(sg.sum(x * x), part())
    with pytest.raises(sg.GradientError) as caught:
        sg.grad(sg.sum(x * x), sg.placeholder("y", 3))
    assert "new node" not in str(caught.value)


def test_what_is_often_written_is_answered_with_what_was_meant():
    x, mask = matrix(), sg.placeholder("mask", 3, "bool")
    power = sg.rule(exact="reals", kinds="f")(_power)
    calls = {
        r"does not take float32, float64; a power is x \*\* y": lambda: x ^ np.float64(2),
        r"in brackets: \(a > 0\) & \(b > 0\)": lambda: x & x,
        r"in brackets: ~\(a > 0\)": lambda: ~x,
        r"where booleans differ, a \^ b": lambda: mask - mask,
        r"the opposite of a boolean is ~x": lambda: -mask,
        r"a derivative is sg\.grad\(y, x\)": lambda: sg.diff(sg.sum(x), x),
        r"call it: grad\(f\(x\), x\)": lambda: sg.grad(lambda x: sg.sum(x), x),
        r"length N of .* is not known.*sg\.scan or sg\.map": lambda: list(x),
        r"passes=\(_power, \*sg\.passes\.DEFAULT\)": lambda: sg.compile(x, x, passes=power),
        r"what @sg\.rule\(exact=…\) has made": lambda: sg.testing.check_rule(_power),
        r"sg\.reshape\(x, shape\)": lambda: x.view(3, 1),
        r"w\.value = array": lambda: x.assign(3),
        r"left open, a name such as 'N', not None": lambda: sg.placeholder("x", (None, 3)),
        r"'x' float32\[N, 3\] .*no function.*sg\.compile\(inputs, node\)\(array\)": lambda: x(1),
        r"'Adam\.step' .* is a node.*updates=optimizer\.updates\(loss\)": lambda: sg.optim.Adam(
            [sg.variable("w", 1.0)]
        ).step(),
        r"with a small v: sg\.variable\('w', value\)": lambda: sg.Variable("w", 1.0),
        r"by its name and its first value": lambda: sg.Variable(initial_value=1.0),
        r"function .* is no array.*; call it, on nodes: f\(x\)": lambda: sg.compile(x, lambda x: x),
        r"a scalar has no samples.*sg\.grad\(loss, wrt\)": lambda: sg.gradient(sg.sum(x), x),
    }
    for message, call in calls.items():
        with pytest.raises(sg.SymgradError, match=message):
            call()


def test_what_optimisers_of_others_have_is_told():
    adam = sg.optim.Adam([sg.variable("w", 1.0)])
    said = {
        "zero_grad": "gradients are nodes", "minimize": "optimizer.updates", "nothing": "'$",
        "init": "there from the start",
    }  # fmt: skip
    for name, told in said.items():
        with pytest.raises(AttributeError, match=f"Adam has no attribute '{name}.*{told}"):
            getattr(adam, name)
    with pytest.raises(AttributeError, match=r"SGD has no attribute 'step'.*updates\(loss\)"):
        sg.optim.SGD(adam.parameters, 0.1).step()
    assert copy.deepcopy(adam).variables[0].name == "w.Adam.mean"


def test_what_modules_of_others_have_is_told_and_errors_of_properties_are_their_own():
    net = sg.nn.Linear(3, 4, key=KEY)
    said = {
        "state_dict": r"sg\.save_state", "to": "device='gpu'", "weights": r"net\.parameters\(\)",
        "fit": r"sg\.fit\(step, …\)", "nothing": "'$",
    }  # fmt: skip
    for name, told in said.items():
        with pytest.raises(
            AttributeError, match=f"'Linear' object has no attribute '{name}.*{told}"
        ):
            getattr(net, name)

    class Own(sg.nn.Module):
        @property
        def weights(self):
            return self.missing

        def fit(self):
            return 3

    assert Own().fit() == 3
    with pytest.raises(AttributeError, match="'Own' object has no attribute 'missing'"):
        Own().weights  # noqa: B018


def test_arguments_that_do_not_fit_are_answered_with_what_does():
    x = matrix()
    y, f = sg.sum(x), lambda x: sg.sum(x * x)
    calls = {
        r"^compile: missing .*'outputs'.*compile\(\[x\], y\)\(array\).* it is comp": lambda: (
            sg.compile(x)
        ),
        r"^compile: .*unexpected .*'mode'; it is": lambda: sg.compile(x, y, mode="fast"),
        r"^grad: missing .*call the function: grad\(f\(x\), x\)": lambda: sg.grad(f)(x),
        r"^grad: missing a required argument: 'wrt'; it is": lambda: sg.grad(y),
        r"^value_and_grad: .*value_and_grad\(f\(x\), x\)": lambda: sg.value_and_grad(f),
        r"^cond: too many.*lambda: f\(x\)": lambda: sg.cond(y > 0, f, f, x),
        r"^fori: too many.* it is fori\(n, body, init\)": lambda: sg.fori(0, 3, f, x),
        r"^SGD: missing a required argument: 'lr'; it is SGD\(parameters, lr": lambda: sg.optim.SGD(
            [sg.variable("w", 1.0)]
        ),
        r"^Adam: missing .*'parameters'; it is Adam": lambda: sg.optim.Adam(params=[]),
        r"^scan: missing .*'init'": lambda: sg.scan(f),
        r"^while_loop: missing": lambda: sg.while_loop(f),
        r"^sum: .*'dim'; NumPy's word for it is axis; it is sum": lambda: sg.sum(x, dim=0),
        r"^x\.sum: .*NumPy's word for it is keepdims; it is x\.sum\(axis": lambda: x.sum(
            keepdim=True
        ),
        r"^softmax: .*word for it is axis": lambda: sg.softmax(x, dim=1),
    }
    for message, call in calls.items():
        with pytest.raises(TypeError, match=message):
            call()
    with pytest.raises(sg.ShapeError, match=r"after it; .*; it calls body\(i, carry\)"):
        sg.fori(3, lambda carry, i: carry * 2, x)
    with pytest.raises(TypeError, match=r"^own fault"):
        sg.fori(3, _at_fault, x)
    assert float(sg.fori(3, lambda i, c: c + i, sg.constant(0.0))) == 3


def _at_fault(i, carry):
    raise TypeError("own fault")


def _power(x: sg.Var) -> sg.Rewrite:
    """False."""
    return sg.Rewrite(before=x * x * x, after=x * x)


def test_the_worst_element_of_a_counterexample_is_named():
    with pytest.raises(
        AssertionError, match=r"\nat \[\d, \d\] they are [\d.]+ apart, where .* is all"
    ):
        sg.testing.check_rule(sg.rule(exact="reals", kinds="f")(_power))


def test_item_is_told_to_compile():
    with pytest.raises(sg.SymbolicError, match=r"no value before.*Compile it"):
        matrix().item()
    assert sg.sum(sg.variable("w", np.ones(3))).item() == 3


def test_two_layers_of_one_kind_are_told_apart_by_naming_them(tmp_path):
    first, second = (sg.nn.Linear(3, 3, key=k) for k in sg.random.split(KEY))
    with pytest.raises(sg.StateError, match=r"called 'weight'.*layer\.named\('first'\)"):
        sg.save_state(tmp_path / "w.npz", [*first.parameters(), *second.parameters()])
    x = sg.placeholder("x", ("N", 3))
    program = sg.compile(x, second.named("second")(first.named("first")(x)))
    assert "first_weight" in program.source
    assert "second_weight" in program.source


def test_the_line_of_a_step_with_many_names_is_wrapped_and_names_are_whole():
    stem = "encoder.blocks.11.attention.projection.of_the_"
    given = [sg.variable(f"{stem}{i}", np.full(70, i)) for i in range(9)]
    x = sg.placeholder("x", 70)
    program = sg.compile(x, sum(given[1:], given[0]) + x, updates={g: g + 1 for g in given})
    lines = program.source.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("def step("))
    assert max(map(len, lines[first : lines.index("):", first)])) <= 100
    assert all(f"{stem.replace('.', '_')}{i}" in program.source for i in range(9))
    assert program(np.zeros(70))[0] == 36
    assert f"{stem}8" in repr(program)


def test_what_takes_long_is_logged(caplog):
    x = matrix()
    with caplog.at_level(logging.DEBUG, "symgrad"):
        sg.compile(x, sg.sum(sg.exp(x)))(np.ones((4, 3), "float32"))
    said = caplog.text
    for part in ("compiling 3 nodes to", "pass fusion", "planning for N=4", "source"):
        assert part in said
    assert {r.levelname for r in caplog.records} == {"DEBUG"}, "INFO is for what takes long"


def test_a_logger_is_looked_up_once(monkeypatch):
    """Who is interrupted while it is leaves the lock of all loggers locked."""
    tell("this", 0)
    with monkeypatch.context() as patch:
        patch.setattr(logging, "getLogger", None)
        tell("that", 0)


def test_head_ends_an_example_quietly(tmp_path):
    run = f"{sys.executable} examples/01_two_layer_net.py {tmp_path} | head -1"
    found = subprocess.run(["bash", "-c", run], cwd=ROOT, capture_output=True, text=True)
    assert found.stdout.startswith("step   0")
    assert found.stderr == ""

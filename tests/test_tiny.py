"""symgrad in 400 lines gives what the package gives: values and gradients of random graphs."""

import ast
import runpy
from pathlib import Path

import numpy as np
import pytest

import symgrad as sg

PATH = Path(__file__).parents[1] / "docs" / "understand" / "tiny.py"
TINY = runpy.run_path(str(PATH))
SIZES = {"x": (3, 4), "w": (4, 4), "b": (4,), "s": ()}


def library(is_tiny):
    """The same few functions, of the file and of the package."""
    if is_tiny:
        names = ("placeholder", "exp", "reciprocal", "relu", "sum_to", "broadcast", "transpose")
        return {name: TINY[name] for name in names} | {
            "positive": TINY["positive"],
            "select": TINY["select"],
        }
    return {
        "placeholder": lambda name, *shape: sg.placeholder(name, shape),
        "exp": sg.exp,
        "reciprocal": sg.reciprocal,
        "relu": sg.relu,
        "positive": lambda x: (x > 0) * 1.0,
        "select": lambda x, g: sg.where(x > 0, g, 0.0),
        "sum_to": sg.sum,
        "broadcast": sg.broadcast_to,
        "transpose": lambda x: x.T,
    }


def build(f, seed):
    """A random graph of all ops, its inputs, and the gradients of its sum."""
    rng = np.random.default_rng(seed)
    inputs = [f["placeholder"](name, *shape) for name, shape in SIZES.items()]
    x, w, b, s = inputs
    wide, square = [x, f["broadcast"](b, (3, 4)), x @ w], [w, f["transpose"](w)]
    for _ in range(rng.integers(4, 12)):
        a, c = (wide[i] for i in rng.integers(len(wide), size=2))
        m = square[rng.integers(len(square))]
        made = [
            lambda a, c, m: a + c,
            lambda a, c, m: a - c * 0.5,
            lambda a, c, m: 0.3 * (a * c),
            lambda a, c, m: f["relu"](a),
            lambda a, c, m: f["relu"](f["relu"](a) - s),
            lambda a, c, m: a * f["positive"](c),
            lambda a, c, m: f["select"](a, c),
            lambda a, c, m: f["exp"](f["relu"](a) * -0.5),
            lambda a, c, m: f["reciprocal"](a * a + 1.0),
            lambda a, c, m: (a + b) * s,
            lambda a, c, m: a @ (m * 0.5),
            lambda a, c, m: a * (0.1 * f["sum_to"](c)),
            lambda a, c, m: a + 0.0 * c + 1.0 * c,
        ]
        wide.append(made[rng.integers(len(made))](a, c, m))
        square.append(f["transpose"](wide[-1]) @ wide[-2] * 0.1)
    return inputs, f["sum_to"](wide[-1] * wide[-2]) + f["sum_to"](square[-1] * 0.1)


def of_tiny(seed, arrays):
    inputs, loss = build(library(True), seed)
    return TINY["Program"](inputs, [loss, *TINY["grad"](loss, inputs)])(*arrays)


def of_package(seed, arrays):
    """Kernel by kernel, without a pass: what each op and each vjp gives."""
    inputs, loss = build(library(False), seed)
    gradients = sg.grad(loss, inputs, disconnected="zero")
    outputs = [loss, *gradients]
    return sg.compile(inputs, outputs, passes=(), backend="reference")(*arrays)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_values_and_gradients_are_those_of_the_package(first):
    for seed in range(first, first + 50):
        rng = np.random.default_rng(1000 + seed)
        arrays = [rng.standard_normal(shape) for shape in SIZES.values()]
        for found, wanted in zip(of_tiny(seed, arrays), of_package(seed, arrays), strict=True):
            scale = max(1.0, float(np.abs(wanted).max()))
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * scale, err_msg=str(seed))


def test_it_is_short_and_needs_numpy_only():
    text = PATH.read_text("utf-8")
    assert text.count("\n") <= 400
    imports = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(n) for n in imports] == ["import numpy as np"]


def test_it_trains_a_net_as_a_script(capsys):
    runpy.run_path(str(PATH), run_name="__main__")
    said = capsys.readouterr().out
    assert "np.where(" in said
    assert "mask_multiply: Multiply(MatMul, Positive) became Select(MatMul, MatMul)" in said
    losses = [float(line.split()[1]) for line in said.splitlines()[-6:]]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] / 100


def test_a_mask_that_is_multiplied_by_infinity_gives_no_nan():
    x, y = TINY["placeholder"]("x", 2), TINY["placeholder"]("y", 2)
    step = TINY["Program"]([x, y], [y * TINY["positive"](x)])
    assert step(np.array([1.0, -1.0]), np.array([2.0, np.inf]))[0].tolist() == [2.0, 0.0]

"""Each example runs as a script would, and what it says is so."""

import runpy
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import each

EXAMPLES = Path(__file__).parent.parent / "examples"


def load(name):
    return runpy.run_path(str(EXAMPLES / name))


def net_by_hand(steps):
    """The losses of the first example, with nothing but NumPy."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 1000), dtype="float32")
    y = rng.standard_normal((64, 10), dtype="float32")
    w1 = rng.standard_normal((1000, 100), dtype="float32")
    w2 = rng.standard_normal((100, 10), dtype="float32")
    losses = []
    for _ in range(steps):
        h = np.maximum(x @ w1, 0)
        e = h @ w2 - y
        losses.append(float((e * e).sum()))
        g = 2 * e
        d1, d2 = x.T @ (g @ w2.T * (h > 0)), h.T @ g
        w1, w2 = w1 - np.float32(1e-6) * d1, w2 - np.float32(1e-6) * d2
    return losses


def test_two_layer_net(tmp_path, capsys):
    losses = load("01_two_layer_net.py")["main"](tmp_path)
    expected = net_by_hand(500)
    np.testing.assert_allclose(losses[:100], expected[:100], rtol=1e-4)
    assert losses[-1] < 1e-3 < 1e6 < losses[0]
    for name in ("01_forward.svg", "01_gradient.svg", "01_what_runs.svg"):
        assert ET.parse(tmp_path / name).getroot().tag.endswith("svg")
    printed = capsys.readouterr().out
    assert "step   0  loss" in printed
    assert "def step(x, y, w1, w2" in printed
    program = runpy.run_path(str(tmp_path / "two_layer_net_step.py"))["Program"]
    rng = np.random.default_rng(0)
    shapes = (64, 1000), (64, 10), (1000, 100), (100, 10)
    X, Y, W1, W2 = (rng.standard_normal(s, dtype="float32") for s in shapes)
    kept = program(W1, W2)
    assert [float(kept(X, Y)) for _ in range(500)] == losses, "bit for bit"


def test_relu_gradient(capsys):
    gradient = load("02_relu_gradient.py")["main"]()
    np.testing.assert_array_equal(gradient, [0, 0, 0, 3, 3])
    printed = capsys.readouterr().out
    for part in ("= greater(", "= select(", "keep_where_positive", "mask_multiply"):
        assert part in printed


def test_your_own_relu(capsys):
    load("03_your_own_relu.py")["main"]()
    assert "steps" in capsys.readouterr().out


def test_kinks(capsys):
    load("04_kinks.py")["main"]()
    printed = capsys.readouterr().out
    assert printed.count("[0. 0. 0. 1. 1.]") == 12, "zero and left, six spellings each"
    assert "a kink; left 0, right" in printed
    assert "wrong derivatives at order 1" in printed


def test_newton(capsys):
    minimum, _ = load("05_newton.py")["main"]()
    np.testing.assert_allclose(minimum, 1, atol=1e-8)
    assert "Logistic regression" in capsys.readouterr().out


def losses_by_hand(x, y, w1, w2, steps):
    """The loss of two layers before each of so many steps down its slope, and after the last."""
    losses = []
    for _ in range(steps + 1):
        h = np.maximum(x @ w1, 0)
        e = h @ w2 - y
        losses.append(np.sum(e * e))
        g = 2 * e
        w1, w2 = w1 - 1e-6 * (x.T @ (g @ w2.T * (h > 0))), w2 - 1e-6 * (h.T @ g)
    return losses


def test_two_layer_net_custom_relu(tmp_path, capsys):
    found = load("06_two_layer_net_custom_relu.py")["main"](tmp_path, steps=30)
    rng = np.random.default_rng(0)
    shapes = (64, 1000), (64, 10), (1000, 100), (100, 10)
    expected = losses_by_hand(*map(rng.standard_normal, shapes), 29)
    assert list(found) == ["MyReLU.apply", "ReLU()"]
    for losses in found.values():
        np.testing.assert_allclose(losses, expected, rtol=1e-9)
    assert ET.parse(tmp_path / "06_what_runs.svg").getroot().tag.endswith("svg")
    assert "the end" in capsys.readouterr().out


def test_two_layer_net_batch_100(tmp_path):
    losses = load("07_two_layer_net_batch_100.py")["main"](tmp_path)
    rng = np.random.default_rng(0)
    shapes = (100, 1000), (100, 10), (1000, 100), (100, 10)
    expected = losses_by_hand(*map(rng.standard_normal, shapes), 50)
    np.testing.assert_allclose(losses, expected, rtol=1e-9)
    assert ET.parse(tmp_path / "07_what_runs.svg").getroot().tag.endswith("svg")


def test_module_with_own_backward(tmp_path, capsys):
    example = load("08_module_with_own_backward.py")
    losses = example["main"](tmp_path)
    net = example["TwoLayerNet"](1000, 100, 10, key=sg.random.key(0))
    rng = np.random.default_rng(0)
    data = map(rng.standard_normal, ((100, 1000), (100, 10)))
    expected = losses_by_hand(*data, net.w1.value, net.w2.value, 29)
    np.testing.assert_allclose(losses, expected, rtol=1e-9)
    assert "wrong derivatives at order 1" in capsys.readouterr().out
    assert ET.parse(tmp_path / "08_what_runs.svg").getroot().tag.endswith("svg")


def test_functions_and_modules(tmp_path):
    losses, accuracy = load("09_functions_and_modules.py")["main"](tmp_path)
    assert losses[-1] < 0.05 < losses[0]
    assert accuracy > 0.95
    text = (tmp_path / "09_net.svg").read_text(encoding="utf-8")
    assert all(name in text for name in ("Net", "conv1", "conv2", "fc"))


def test_digits(tmp_path, capsys):
    histories = load("10_digits.py")["main"](tmp_path, epochs=20)
    for name, history in histories.items():
        assert history["test accuracy"][-1] > 0.97
        assert history["loss"][-1] < 0.05 < history["loss"][0]
        assert (tmp_path / f"10_{name}.npz").exists()
        for picture in (f"10_{name}.svg", f"10_{name}_losses.svg"):
            assert ET.parse(tmp_path / picture).getroot().tag.endswith("svg")
    assert "conv_net: test accuracy 0.9" in capsys.readouterr().out


def test_gaussian_process(capsys):
    losses, (length, height, noise) = load("11_gaussian_process.py")["main"]()
    assert losses[-1] < -8 < 40 < losses[0]
    assert 0.5 < length < 1.5
    assert 0.5 < height < 2
    assert 0.05 < noise < 0.2
    assert "needs no symgrad" in capsys.readouterr().out


def test_gaussian_mixture(capsys):
    example = load("12_gaussian_mixture.py")
    losses, means = example["main"]()
    assert losses[-1] < 2.7 < 3 < losses[0]
    gaps = np.linalg.norm(means[:, None] - example["CENTRES"], axis=-1)
    assert (gaps.min(0) < 0.15).all()
    assert "as a law of sg.stats" in capsys.readouterr().out


def test_orbits(capsys):
    example = load("13_orbits.py")
    speed, gap = example["main"]()
    np.testing.assert_allclose(speed, [0.46620368, 0.43236573], atol=2e-5)
    assert gap < 1e-4
    after, _ = example["simulate"](*example["start"](speed), 40)
    assert np.linalg.norm(after) > 1
    assert "step  4" in capsys.readouterr().out


def test_char_lstm(capsys):
    losses, said = load("14_char_lstm.py")["main"](60)
    assert losses[-1] < 0.9 < 3.5 < losses[0]
    assert said.startswith("The ")
    assert len(said) == 164
    assert sum(word in said for word in ("is", "better", "than", "idea", "explain")) >= 1
    assert "bits a letter" in capsys.readouterr().out


def test_sequences():
    example = load("15_sequences.py")
    start, moves, dice = (sg.placeholder(n, s) for n, s in
                          (("start", (2,)), ("moves", (2, 2)), ("dice", (2, 6))))  # fmt: skip
    rolls = sg.placeholder("rolls", ("T",), "int64")
    total = example["likelihood"](rolls, start, moves, dice)
    outputs = [total, *sg.grad(total, [start, moves, dice])]
    program = sg.compile([rolls, start, moves, dice], outputs)
    rng = np.random.default_rng(0)
    seen, *logits = (
        rng.integers(6, size=7),
        *(rng.normal(size=n.shape) for n in (start, moves, dice)),
    )

    def by_paths(start, moves, dice):
        """The sum over all paths of hidden states."""
        p, a, b = (np.exp(z) / np.exp(z).sum(-1, keepdims=True) for z in (start, moves, dice))
        found = 0.0
        for way in np.ndindex(*[2] * len(seen)):
            chain = p[way[0]] * np.prod([a[i, j] for i, j in pairwise(way)])
            found += chain * np.prod([b[i, r] for i, r in zip(way, seen, strict=True)])
        return np.log(found)

    value, *grads = program(seen, *logits)
    np.testing.assert_allclose(value, by_paths(*logits), rtol=1e-12)
    for k, (x, grad) in enumerate(zip(logits, grads, strict=True)):
        for at in np.ndindex(x.shape):
            ends = []
            for h in (1e-5, -1e-5):
                moved = [z.copy() for z in logits]
                moved[k][at] += h
                ends.append(by_paths(*moved))
            np.testing.assert_allclose(grad[at], (ends[0] - ends[1]) / 2e-5, atol=1e-8)
    losses, sixes = example["casino"]()
    assert losses[-1] < 1.74 < losses[0]
    assert sixes[1] > 0.4
    path, rates = example["lynxes"]()
    _, slopes = path(rates)
    for i in range(4):
        h = np.zeros(4)
        h[i] = 1e-6
        np.testing.assert_allclose(
            slopes[:, i], (path(rates + h)[0] - path(rates - h)[0]) / 2e-6, rtol=1e-6
        )


def test_on_a_gpu(tmp_path, capsys, monkeypatch):
    example = load("16_on_a_gpu.py")["main"]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "jax", None)
        assert example(tmp_path) == {}
    assert "pip install 'symgrad[jax]'" in capsys.readouterr().out
    pytest.importorskip("jax")
    found = example(tmp_path)
    np.testing.assert_allclose(found["jax"], found["numpy"], rtol=1e-4)
    printed = capsys.readouterr().out
    assert "no GPU here" in printed or "JAX on 'gpu'" in printed
    assert "9 is out of range" in printed
    assert (tmp_path / "guess.stablehlo").exists()


@each("path", sorted(EXAMPLES.glob("[0-9]*.py")), ids=lambda p: p.stem)
def test_each_example_is_a_script_with_a_purpose(path):
    text = path.read_text()
    assert text.startswith('"""')
    assert f"python examples/{path.name}" in text
    assert len(text.splitlines()) <= 90


def test_an_example_runs_from_another_folder(tmp_path):
    paths = [str(EXAMPLES.parent), str(EXAMPLES.parent / "viz")]
    script = str(EXAMPLES / "02_relu_gradient.py")
    code = (
        f"import runpy, sys; sys.path[:0] = {paths!r}; runpy.run_path({script!r}, None, '__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "What runs" in done.stdout

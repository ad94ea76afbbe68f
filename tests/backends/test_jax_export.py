"""Programs as StableHLO, read again by `jax.export`, which knows nothing of symgrad."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import Doubled

jax = pytest.importorskip("jax")
exporting = pytest.importorskip("jax.export")

X = sg.placeholder("x", ("N", 3))
KEY = sg.random.fold_in(sg.random.key(0), sg.astype(X[0, 0], "int64"))


def read(path):
    return exporting.deserialize(bytearray(path.read_bytes()))


def test_a_net_is_read_again_for_any_number_of_rows(tmp_path):
    x, y = sg.placeholder("x", ("N", 7), "float32"), sg.placeholder("y", ("N", 3), "float32")
    layers = [
        sg.nn.Linear(7, 16, key=sg.random.key(0), dtype="float32"),
        sg.nn.LayerNorm(16, dtype="float32"),
        sg.nn.gelu,
        sg.nn.Linear(16, 3, key=sg.random.key(1), dtype="float32"),
    ]
    net = sg.nn.Sequential(*layers)
    weights = [*net.parameters()]
    answer, loss = sg.nn.softmax(net(x), axis=-1), sg.mean((net(x) - y) ** 2)
    updates = sg.optim.SGD(weights, lr=0.1).updates(loss)
    program = sg.compile([x, y], [answer, loss], updates=updates)
    rng = np.random.default_rng(0)
    draw = lambda n: [rng.standard_normal((n, k), dtype="float32") for k in (7, 3)]  # noqa: E731
    program(*draw(4))
    found = read(program.export(tmp_path / "net.stablehlo"))
    assert found.platforms == ("cpu", "cuda", "tpu")
    assert "float32[N,7]" in str(found.in_avals[0])
    for n in (1, 5):
        given = draw(n)
        made = found.call(*given)
        kept = [w.value for w in weights]
        for mine, theirs in zip(program(*given), made, strict=True):
            np.testing.assert_allclose(theirs, mine, rtol=1e-5, atol=1e-6)
        for w, before in zip(weights, kept, strict=True):
            w.value = before


@pytest.mark.parametrize(
    "build",
    [
        lambda: sg.mean(sg.sort(X, axis=0)[::2], axis=0),
        lambda: sg.linalg.solve(X.T @ X + sg.eye(3), sg.sum(X, axis=0)),
        lambda: sg.scan(lambda c, a: (c + a, c), sg.zeros(X.shape[:1]), X.T)[1],
        lambda: (
            sg.random.uniform(sg.random.key(0), (4,)) + sg.take(X, sg.asarray([0, 2]), axis=1)[0, 0]
        ),
    ],
)
def test_ops_are_exported_for_one_platform(tmp_path, build):
    program = sg.compile(X, build())
    found = read(program.export(tmp_path / "m.stablehlo", platforms=["cpu"]))
    given = np.random.default_rng(0).standard_normal((6, 3))
    with jax.enable_x64(True):
        np.testing.assert_allclose(found.call(given)[0], program(given), rtol=1e-12)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Doubled()(X), "runs in NumPy, and cannot be exported"),
        (lambda: sg.random.normal(KEY, (3,)) + X[0], "draw"),
        (
            lambda: sg.scan(lambda c, a: (c + a, None), sg.zeros(3), X)[0],
            "give the placeholder an int",
        ),
    ],
)
def test_what_has_no_form_is_refused_by_node_and_line(tmp_path, build, words):
    program = sg.compile(X, build())
    pattern = rf"{re.escape(words)}[\s\S]*built at test_jax_export\.py:\d+"
    with pytest.raises(sg.UnsupportedError, match=pattern):
        program.export(tmp_path / "m.stablehlo")
    assert not (tmp_path / "m.stablehlo").exists()


def test_platforms_and_outputs_are_checked(tmp_path):
    program = sg.compile(X, X + 1)
    for platforms in ("cpu", [], ["abacus"], 5, [["cpu"]], [5]):
        with pytest.raises(sg.GraphError, match="platforms are some of cpu, cuda, rocm, tpu"):
            program.export(tmp_path / "m", platforms=platforms)
    w = sg.variable("w", 1.0)
    with pytest.raises(sg.GraphError, match="no outputs"):
        sg.compile([], [], updates={w: w + 1}).export(tmp_path / "m")


def test_the_extra_brings_what_files_need():
    """Runtimes of ONNX bring flatbuffers, too, so that a test beside them would not miss it."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    extra = project["project"]["optional-dependencies"]["jax"]
    assert any(name.startswith("flatbuffers") for name in extra)

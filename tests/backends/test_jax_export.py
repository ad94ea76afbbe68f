"""Programs as StableHLO, read again by `jax.export`, which knows nothing of symgrad."""

import re
import tomllib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import Doubled, each

jax = pytest.importorskip("jax")
exporting = pytest.importorskip("jax.export")
MLIRError = pytest.importorskip("jaxlib.mlir.ir").MLIRError

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
        lambda: sg.grad(sg.sum(sg.scan(lambda c, a: (sg.sin(c + a), c), sg.zeros(3), X)[1]), X),
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
            lambda: sg.fori(X.shape[0], lambda i, y: sg.sin(y), 1.0) * X,
            "give the placeholder an int",
        ),
        # JAX refuses these when it has traced the function, and does not say for which op.
        (lambda: sg.fft.fft(sg.sin(X), axis=0), "give the placeholder an int for it. fourier("),
        (lambda: sg.fft.fft(X + sg.eye(sg.dim("N"), 3), axis=0), "for it. fourier("),
        (lambda: sg.linalg.svdvals(X)[:2], "is large enough"),
        (lambda: sg.linalg.svdvals(X + 1), "give the placeholder an int for it. svdvals("),
    ],
)
def test_what_has_no_form_is_refused_by_node_and_line(tmp_path, build, words):
    program = sg.compile(X, build())
    pattern = rf"{re.escape(words)}[\s\S]*built at test_jax_export\.py:\d+"
    with pytest.raises(sg.UnsupportedError, match=pattern):
        program.export(tmp_path / "m.stablehlo")
    assert not (tmp_path / "m.stablehlo").exists()


@each(
    ("build", "good", "bad"),
    [
        (lambda x: sg.take(x, sg.astype(x[0], "int64"), axis=0), np.ones((2, 2)), 3 * np.eye(2)),
        (lambda x: sg.nn.cross_entropy(x, sg.astype(x[:, 0], "int8")), np.eye(2), -np.eye(2)),
        (lambda x: sg.linalg.cholesky(x.T @ x - 1), 3 * np.eye(2), np.eye(2)),
        (lambda x: sg.linalg.svd(x[:2])[0], np.eye(2), np.diag([np.inf, 1])),
        (lambda x: sg.stats.Bernoulli(x).log_prob(1), np.eye(2), 2 * np.eye(2)),
        (lambda x: sg.while_loop(lambda y: y < 9, lambda y: y + x[0, 0], 0.0, max_steps=9),
         np.eye(2), np.zeros((2, 2))),
        (lambda x: x + 1, np.eye(2), None),
    ],
)  # fmt: skip
def test_a_last_output_tells_whether_the_program_would_have_raised(tmp_path, build, good, bad):
    x = sg.placeholder("x", ("N", 2))
    program = sg.compile(x, build(x))
    found = read(program.export(tmp_path / "m.stablehlo", platforms=["cpu"], checked=True))
    with jax.enable_x64(True):
        made, failed = found.call(good)
        np.testing.assert_allclose(made, program(good), rtol=1e-12)
        assert (failed.shape, failed.dtype, bool(failed)) == ((), bool, False)
        if bad is not None:
            with pytest.raises(sg.SymgradError):
                program(bad)
            assert bool(found.call(bad)[1])


def test_a_slice_that_a_named_size_must_be_long_enough_for_is_of_a_known_length(tmp_path):
    """As by a program: with too few rows nothing runs."""
    x, labels = sg.placeholder("x", ("N", 4)), sg.placeholder("labels", ("N",), "int64")
    loss = sg.nn.cross_entropy(x[:3], labels[:3])
    outputs = [loss, sg.grad(loss, x), sg.sum(x[1:][-2:], axis=0), x[1:, ::-1]]
    program = sg.compile([x, labels], outputs)
    found = read(program.export(tmp_path / "m.stablehlo", platforms=["cpu"]))
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        for n in (3, 5):
            given = rng.standard_normal((n, 4)), rng.integers(0, 4, n)
            for mine, theirs in zip(program(*given), found.call(*given), strict=True):
                np.testing.assert_allclose(theirs, mine, rtol=1e-12)
        short = rng.standard_normal((2, 4)), rng.integers(0, 4, 2)
        with pytest.raises(ValueError, match="shapes"):
            found.call(*short)
    with pytest.raises(sg.ShapeError):
        program(*short)


@each(
    "build",
    [
        lambda x: x[1:-1:2],
        lambda x: x[::2][::2],
        lambda x: x[: sg.dim("N//2") : 2],
        lambda x: sg.conv1d(x.T[:, None], np.ones((2, 1, 3)), stride=2, padding=1),
        lambda x: sg.grad(sg.sum(sg.max_pool(x.T[:, None], 3, stride=2, padding=1) ** 2), x),
        lambda x: sg.avg_pool(x.T[:, None], 3, stride=2, padding=1),
    ],
)
def test_sizes_that_jax_writes_in_other_words_are_the_same(tmp_path, build):
    x = sg.placeholder("x", ("N", 2))
    program = sg.compile(x, build(x))
    found = read(program.export(tmp_path / "m.stablehlo", platforms=["cpu"]))
    for n in (3, 8):
        given = np.arange(2.0 * n).reshape(n, 2)
        with jax.enable_x64(True):
            np.testing.assert_allclose(found.call(given)[0], program(given), rtol=1e-12)


@each(
    "build",
    [
        lambda x: x[1:-1],
        lambda x: x[2:-2] * 2,
        lambda x: x[3:0:-1],
        lambda x: x[-1:-4:-1],
        lambda x: x[1::2][:2],
        lambda x: sg.concat([x, x])[5:],
        lambda x: sg.grad(sg.sum(x[1:-1] ** 2), x),
        lambda x: sg.set_at(x, 3, 7.0),
        lambda x: sg.add_at(x, slice(1, 3), 5.0),
        lambda x: sg.grad(sg.sum(sg.checkpoint(lambda x: sg.sin(x[2:4]))(x)), x),
        lambda x: sg.cond(sg.sum(x) > 0, lambda: x[:4], lambda: x[:4] * 2),
        lambda x: sg.map(lambda row: row * x[2, 0], x),
        lambda x: sg.conv1d(x.T[:, None], np.ones((2, 1, 3)), stride=2)[:, 1],
        lambda x: sg.grad(sg.sum(sg.conv1d(x.T[:, None], np.ones((2, 1, 2)))) ** 2, x),
        lambda x: sg.max_pool(x.T[:, None], 3, stride=2),
        lambda x: sg.grad(sg.sum(sg.max_pool(x.T[:, None], 3, stride=1) ** 2), x),
        lambda x: sg.avg_pool(x.T[:, None], 4),
        lambda x: sg.sliding_window_view(x, 3, axis=0),
    ],
)
def test_what_a_program_refuses_for_want_of_rows_is_refused(tmp_path, build):
    x = sg.placeholder("x", ("N", 2))
    program = sg.compile(x, build(x))
    found = read(program.export(tmp_path / "m.stablehlo", platforms=["cpu"]))
    given = [np.arange(2.0 * n).reshape(n, 2) for n in range(1, 8)]
    few, enough = next((a, b) for a, b in pairwise(given) if runs(program, b))
    assert not runs(program, few)
    with jax.enable_x64(True):
        np.testing.assert_allclose(found.call(enough)[0], program(enough), rtol=1e-12)
        # Of results with less than no rows, in words of the compiler.
        with pytest.raises((ValueError, MLIRError), match=r"shapes|tensor dimension"):
            found.call(few)


def runs(program, array):
    try:
        program(array)
    except sg.SymgradError:
        return False
    return True


def test_of_a_matrix_with_inf_there_are_no_vectors(tmp_path):
    x = sg.placeholder("x", (2, 3, 2))
    found = read(sg.compile(x, sg.linalg.svd(x)).export(tmp_path / "m.stablehlo", ["cpu"]))
    with jax.enable_x64(True):
        made = found.call(np.array([np.ones((3, 2)), np.diag([np.inf, 1, 2])[:, :2]]))
    assert [np.isnan(y).all((-2, -1)).tolist() for y in (made[0], made[2])] == [[False, True]] * 2
    assert np.isnan(made[1]).tolist() == [[False] * 2, [True] * 2]


def test_names_of_dimensions_that_jax_has_as_words_are_refused(tmp_path):
    x = sg.placeholder("x", ("max", 2))
    for y in (x + 1, x[:3]):
        with pytest.raises(
            sg.UnsupportedError, match=r"no name of a dimension: max; .*syntax error"
        ):
            sg.compile(x, y).export(tmp_path / "m.stablehlo")


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

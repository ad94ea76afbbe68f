"""Programs as ONNX, run by onnxruntime, which knows nothing of symgrad."""

import re
from contextlib import suppress

import numpy as np
import pytest

import symgrad as sg
from symgrad.export.ops import SAME, Ops
from symgrad.ir.op import REGISTRY
from tests.helpers import Doubled, differences
from tests.test_every_op import OPS, cases_of, operand_dtypes, trial

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

KEY = sg.random.key(0)
SINGLE = {"key": KEY, "dtype": "float32"}


def run(path, *arrays):
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [x.name for x in session.get_inputs()]
    return session.run(None, dict(zip(names, arrays, strict=True)))


def draw(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype="float32")


def mlp():
    layers = (sg.nn.Linear(7, 16, **SINGLE), sg.nn.gelu, sg.nn.LayerNorm(16, dtype="float32"))
    return sg.nn.Sequential(*layers, sg.nn.Linear(16, 3, **SINGLE)), ("N", 7)


def digits():
    """The convolutional net for digits, with batch norm."""
    return sg.nn.Sequential(
        sg.nn.Conv2d(1, 8, 3, padding=1, **SINGLE),
        sg.nn.BatchNorm(8, axis=1, dtype="float32"),
        sg.nn.relu,
        sg.nn.MaxPool(2),
        sg.nn.Conv2d(8, 16, 3, stride=2, groups=2, **SINGLE),
        sg.nn.silu,
        sg.nn.AvgPool(1),
        sg.nn.Flatten(),
        sg.nn.Linear(16, 10, **SINGLE),
    ), ("N", 1, 8, 8)


def attention():
    attend = sg.nn.MultiHeadAttention(8, 2, **SINGLE)
    return lambda x: attend(x), ("N", 6, 8)


@pytest.mark.parametrize("build", [mlp, digits, attention])
def test_nets_give_the_same_in_onnxruntime(tmp_path, build):
    net, shape = build()
    x = sg.placeholder("x", shape, "float32")
    y = net(x)
    program = sg.compile(x, {"answer": y, "best": sg.argmax(y, axis=-1)})
    path = sg.export.onnx(program, tmp_path / "net.onnx")
    for n in (1, 5):
        given = draw(n, *shape[1:])
        expected = program(given)
        answer, best = run(path, given)
        np.testing.assert_allclose(answer, expected["answer"], atol=1e-6, rtol=1e-6)
        np.testing.assert_array_equal(best, expected["best"])


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (3, {}),
        (3, {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}),
        ((2, 3), {"stride": (3, 1), "dilation": (1, 2)}),
        (2, {"stride": 3, "padding": "same"}),
    ],
)
def test_transposed_convolutions_and_gradients_of_convolutions(tmp_path, kernel, options):
    x = sg.placeholder("x", ("N", 4, 5, 6), "float32")
    spread = sg.nn.ConvTranspose2d(4, 6, kernel, **options, **SINGLE)
    plain = {k: v for k, v in options.items() if k != "output_padding"}
    plain["padding"] = 0 if plain.get("padding") == "same" else plain.get("padding", 0)
    y = sg.nn.Conv2d(4, 6, kernel, **plain, **SINGLE)(x)
    line = sg.conv_transpose(x[:, :, 0], sg.constant(draw(4, 2, 3)), stride=2)
    program = sg.compile(x, [spread(x), line, sg.grad(sg.sum(y * y), x)])
    path = sg.export.onnx(program, tmp_path / "m.onnx")
    for n in (1, 3):
        given = draw(n, 4, 5, 6)
        for mine, theirs in zip(program(given), run(path, given), strict=True):
            np.testing.assert_allclose(theirs, mine, rtol=1e-5, atol=1e-5)


def test_a_transposed_convolution_of_images_of_named_sizes(tmp_path):
    x = sg.placeholder("x", ("N", 2, "H", "W"), "float32")
    y = sg.nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, **SINGLE)(x)
    path = sg.export.onnx(program := sg.compile(x, y), tmp_path / "m.onnx")
    for given in (draw(1, 2, 4, 5), draw(2, 2, 3, 3)):
        np.testing.assert_allclose(run(path, given)[0], program(given), rtol=1e-5, atol=1e-5)
    z = sg.nn.Conv2d(2, 3, 3, stride=2, **SINGLE)(x)
    with pytest.raises(sg.UnsupportedError, match=r"ONNX: it adds so many zeros as a named size"):
        sg.export.onnx(sg.compile(x, sg.grad(sg.sum(z), x)), tmp_path / "m.onnx")


X = sg.placeholder("x", ("N", 4), "float32")
FORMS = [
    lambda x: [sg.logsumexp(x, axis=1), sg.linalg.vector_norm(x), sg.softmax(x, axis=(0, 1))],
    lambda x: [sg.log1p(sg.exp(9 * x)), sg.expm1(x / 1000), sg.where(x > 0, x, -1), x**2],
    lambda x: [sg.mean(x), sg.var(x, axis=0), sg.prod(x, axis=1), sg.any(x > 1, axis=0), sg.min(x)],
    lambda x: [x[::2, 1:-1], x[1:], x[:, ::-1], sg.concat([x, x[:1]]), sg.pad(x, ((0, 0), (1, 2)))],
    lambda x: [sg.reshape(x, (-1,)), sg.reshape(x, (2, "N", 2)), x.T, x[:, None] * x, x @ x.T],
    lambda x: [sg.sort(x, axis=1), sg.argsort(-x, axis=1), sg.take(x, sg.asarray([3, 0]), axis=1)],
    lambda x: [sg.cumulative_sum(x, axis=0), sg.floor(x) // 2, sg.remainder(x, 0.7), abs(x) % 2],
    lambda x: [sg.arange(x.shape[0]), sg.eye(x.shape[0]) @ x],
    lambda x: [sg.eye(4, x.shape[0], k=-1), sg.tril(x, k=1),
               sg.take_along_axis(x, sg.argsort(x, axis=1), axis=1)],
    lambda x: [x[[[0], [-1]], [2, 3]], (x[:, None, :, None] * x[0])[:, 0, [[3, 1]], [[0], [2]]]],
    lambda x: [sg.nn.cross_entropy(x, sg.argmin(x, axis=1)), sg.linspace(0, 1, 5) * x[:, :1]],
    lambda x: [sg.einsum("ij,kj->ik", x, x), sg.logaddexp(x, 0.5), sg.nn.softplus(x), sg.nn.elu(x)],
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_ops_give_the_same(tmp_path, form):
    program = sg.compile(X, form(X), passes=())
    path = sg.export.onnx(program, tmp_path / "ops.onnx")
    for n in (2, 5):
        given = draw(n, 4)
        for mine, theirs in zip(program(given), run(path, given), strict=True):
            assert (theirs.shape, theirs.dtype) == (mine.shape, mine.dtype)
            np.testing.assert_allclose(theirs, mine, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Doubled()(X),
        lambda: sg.random.uniform(KEY, (3,)),
        lambda: sg.fft.fft(sg.astype(X, "complex64")),
        lambda: sg.scan(lambda c, a: (c + a, None), sg.zeros(4, dtype="float32"), X)[0],
        lambda: sg.linalg.cholesky(X.T @ X),
    ],
)
def test_what_has_no_form_is_refused_by_node_and_line(tmp_path, build):
    program = sg.compile(X, build(), passes=())
    words = r"cannot be written as ONNX: [\s\S]*built at test_onnx\.py:\d+: "
    with pytest.raises(sg.UnsupportedError, match=words):
        sg.export.onnx(program, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


DTYPES = ("bool", "int8", "uint8", "int32", "int64", "uint32", "float32", "float64")
ULPS = 16


def trials_by_dtype(op):
    """A trial for each dtype that an op takes, of the first cases that hold elements."""
    cases = [c for c in cases_of(op) if all(0 not in shape for shape in c.shapes)]
    for number, dtype in enumerate(DTYPES):
        for tried in cases[number % max(len(cases), 1) :][:1]:
            dtypes = operand_dtypes(op, dtype, len(tried.shapes))
            with suppress(sg.DtypeError, ValueError):  # no dtype of its, no number in its domain
                yield trial(op, tried.shapes, dtypes, tried.attrs)


def differing(t, path):
    """How onnxruntime differs from a trial, or None for one that is refused by its node."""
    try:
        sg.export.onnx(sg.compile(t.xs, t.results, passes=()), path)
    except sg.UnsupportedError as error:
        named = re.search(r"cannot be written as ONNX: [\s\S]*built at test_every_op", str(error))
        return None if named else [str(error)]
    made = run(path, *t.arrays)
    room = ULPS * max(np.finfo(y.dtype).eps if y.dtype.kind == "f" else 0 for y in made)
    with np.errstate(all="ignore"):
        pairs = zip(made, t.values(), strict=True)
        return [words for y, expected in pairs for words in differences(y, expected, room)]


def test_each_op_of_each_dtype_gives_the_same_or_is_refused_by_node(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _: None)  # several hundred files
    written, faults = 0, []
    for op in OPS:
        if hasattr(Ops, op.name) or op.name in SAME:
            for t in trials_by_dtype(op):
                if (found := differing(t, tmp_path / "m.onnx")) is not None:
                    written += 1
                    faults += [f"{t.node.type} {op.name} {t.attrs}: {words}" for words in found]
    assert faults == []
    assert written > 450


def test_tails_and_ends_are_kept(tmp_path):
    for dtype in ("float32", "float64"):
        x = sg.placeholder("x", "N", dtype)
        results = [sg.special.erfc(x), sg.special.ndtr(x), sg.log1p(x), sg.nn.softplus(x)]
        results += [sg.isnan(x), sg.isinf(x), sg.isfinite(x), sg.nn.gelu(x), sg.logaddexp(x, x)]
        given = np.append(np.linspace(-9, 9, 999), [np.inf, -np.inf, np.nan, 1e-30, 3e9, -1])
        program = sg.compile(x, results, passes=())
        path = sg.export.onnx(program, tmp_path / "tails.onnx")
        for mine, theirs in zip(
            program(given.astype(dtype)), run(path, given.astype(dtype)), strict=True
        ):
            if mine.dtype == bool:
                np.testing.assert_array_equal(theirs, mine)
            else:
                limits = np.finfo(dtype)
                np.testing.assert_allclose(theirs, mine, 8 * limits.eps, 8 * limits.tiny)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_norms_of_large_and_small_numbers_are_kept(tmp_path, dtype):
    x = sg.placeholder("x", ("N", 3), dtype)
    norms = [sg.linalg.vector_norm(x, axis=a) for a in (0, 1, None)]
    program = sg.compile(x, [*norms, sg.std(x, axis=1), sg.linalg.vector_norm(x, keepdims=True)])
    path, top = sg.export.onnx(program, tmp_path / "m.onnx"), np.finfo(dtype).max / 4
    rows = [[top, 0.5 * top, 0], [0, 1 / top, 2 / top], [0, 0, 0], [1, 2, 3]]
    rows += [[np.inf, 1, -np.inf], [np.nan, np.inf, 0]]
    for part in (slice(None), slice(4), slice(1, 3)):
        given = np.array(rows[part], dtype)
        for mine, theirs in zip(program(given), run(path, given), strict=True):
            assert theirs.shape == mine.shape
            np.testing.assert_allclose(theirs, mine, rtol=1e-6)
    number = sg.compile(x, sg.linalg.vector_norm(sg.sum(x)))
    (found,) = run(sg.export.onnx(number, tmp_path / "n.onnx"), -np.ones((2, 3), dtype))
    assert found == 6


def test_quotients_and_remainders_are_rounded_as_by_numpy(tmp_path):
    """1 // 0.1 is 9, though 1 / 0.1 is rounded to 10; so 1 % 0.1 is nearly 0.1."""
    ends = np.array([0, 1, -1, 0.1, 0.7, 5, -100, 1e30, 3, np.inf, -np.inf, np.nan])
    for dtype in ("float32", "float64"):
        x, y = (sg.placeholder(name, "N", dtype) for name in "xy")
        program = sg.compile([x, y], [x // y, x % y], passes=())
        path = sg.export.onnx(program, tmp_path / "rest.onnx")
        given = [a.ravel().astype(dtype) for a in np.meshgrid(ends, ends)]
        for mine, theirs in zip(program(*given), run(path, *given), strict=True):
            np.testing.assert_array_equal(theirs, mine)


def test_integers_wrap_and_stop_nowhere(tmp_path):
    """Processors stop at a remainder by 0, and at one by -1 of the least number."""
    i, j = (sg.placeholder(name, 5, "int32") for name in "ij")
    u = sg.astype(i, "uint8")
    results = [i % j, u % sg.astype(j, "uint8"), i**3, u**5, -u, u * u, sg.logical_not(i)]
    program = sg.compile([i, j], [*results, sg.isnan(i), sg.relu(i), sg.max(u > 3)], passes=())
    path = sg.export.onnx(program, tmp_path / "whole.onnx")
    given = np.array([-(2**31), 7, 200, 0, -9], "int32"), np.array([-1, 0, -7, 0, 4], "int32")
    for mine, theirs in zip(program(*given), run(path, *given), strict=True):
        assert theirs.dtype == mine.dtype
        np.testing.assert_array_equal(theirs, mine)
    with pytest.raises(sg.UnsupportedError, match="powers of integers in float64, and rounds"):
        sg.export.onnx(sg.compile([i, j], i**j), path)


def test_weights_are_as_they_are_and_updates_left_out(tmp_path):
    w = sg.variable("w", np.ones(4, "float32"))
    program = sg.compile(X, X * w, updates={w: w + 1})
    program(draw(1, 4))
    path = sg.export.onnx(program, tmp_path / "w.onnx")
    np.testing.assert_array_equal(run(path, np.ones((2, 4), "float32")), [2 * np.ones((2, 4))])
    with pytest.raises(sg.GraphError, match=re.escape("updates are not exported")):
        sg.export.onnx(sg.compile([], [], updates={w: w + 1}), path)


def test_onnx_is_to_be_installed(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(sg.UnsupportedError, match=r"pip install 'symgrad\[onnx\]'"):
        sg.export.onnx(sg.compile(X, X), tmp_path / "m.onnx")


def test_what_onnx_finds_fault_with_is_told(tmp_path):
    x = sg.placeholder("", 3, "float32")
    with pytest.raises(sg.UnsupportedError, match=r"ONNX does not take it: .*name"):
        sg.export.onnx(sg.compile(x, x + 1), tmp_path / "m.onnx")


def test_what_is_no_program_and_what_is_no_path_is_refused(tmp_path):
    for program in (3, X, sg.map_reduce([X], sg.sum(X), over="N")):
        with pytest.raises(sg.ArgumentError, match="programs of compile are written as ONNX, not"):
            sg.export.onnx(program, tmp_path / "m.onnx")
    for path in (3, b"m", None):
        with pytest.raises(sg.ArgumentError, match="a path is a str or a Path, not"):
            sg.export.onnx(sg.compile(X, X), path)


def test_the_table_is_of_ops():
    helpers = {"array", "emit", "refused", "sizes"}
    methods = {name for name in dir(Ops) if not name.startswith("_")} - helpers
    assert methods | SAME.keys() <= REGISTRY.every().keys()
    assert not methods & SAME.keys()
    assert not helpers & REGISTRY.every().keys()

"""The layers that are modules: beside PyTorch's (see make_reference.py), and what they refuse."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import BoundsError, DtypeError, ShapeError, UnsupportedError
from tests.helpers import close, each, generator, same, value

nn, KEY = sg.nn, sg.random.key(0)
REFERENCE = json.loads(Path(__file__).with_name("reference.json").read_text(encoding="utf-8"))


def reference(name):
    """The figures of a layer, as arrays; those of different shapes as lists."""
    found = REFERENCE[name]
    return {n: [np.array(p) for p in v] if n in ("state", "next") else np.array(v)
            for n, v in found.items()}  # fmt: skip


# ---- beside PyTorch -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["RNNCell", "GRUCell", "LSTMCell"])
def test_cells(name):
    r = reference(name)
    cell = getattr(nn, name)(3, 4, key=KEY)
    bias, hidden = r["bias_ih"], r["bias_hh"]
    state = {"weight": r["weight_ih"].T, "weight_state": r["weight_hh"].T, "bias": bias + hidden}
    if name == "GRUCell":
        state |= {"bias": bias + hidden * (np.arange(12) < 8), "bias_state": hidden[8:]}
    cell.load(state)
    start = r["state"][0] if len(r["state"]) == 1 else tuple(r["state"])
    found = cell(r["x"], start)
    for part, expected in zip(found if name == "LSTMCell" else [found], r["next"], strict=True):
        close(value(part), expected, 1e-14)
    outputs, last = cell.unroll(np.stack([r["x"]] * 2, 1), start)
    again = cell(r["x"], found)
    same(value(outputs[:, 1]), value(again[0] if name == "LSTMCell" else again))
    same(value(last[0]), value(again[0]))
    cell.check_grads(r["x"], order=1)


def test_attention():
    r = reference("attention")
    layer = nn.MultiHeadAttention(8, 2, key=KEY)
    names = ("query", "key", "value")
    weights = dict(zip(names, r["in_proj_weight"].reshape(3, 8, 8), strict=True))
    biases = dict(zip(names, r["in_proj_bias"].reshape(3, 8), strict=True))
    weights["out"], biases["out"] = r["out_proj.weight"], r["out_proj.bias"]
    layer.load({f"{n}.weight": w.T for n, w in weights.items()}
               | {f"{n}.bias": b for n, b in biases.items()})  # fmt: skip
    close(value(layer(r["x"], r["context"])), r["y"], 1e-14)
    close(value(layer(r["x"], causal=True)), r["causal"], 1e-14)
    close(value(layer(r["x"], mask=np.tri(3, dtype=bool))), r["causal"], 1e-14)
    x = sg.placeholder("x", ("N", 3, 8))
    close(sg.compile([x], layer(x, causal=True))(r["x"]), r["causal"], 1e-14)


def test_batch_norm_keeps_running_statistics():
    r = reference("norm")
    norm = nn.BatchNorm(3)
    ones = np.ones(3)
    norm.load({"scale": r["weight"], "offset": r["bias"], "mean": 0 * ones, "variance": ones})
    x = sg.placeholder("x", ("N", 3, 2, 2))
    y = norm(x)
    step = sg.compile([x], y, updates=norm.updates(y))
    for batch, expected in zip(r["x"], r["y"], strict=True):
        close(step(batch), expected, 1e-12)
    close(norm.mean.value, r["running_mean"], 1e-14)
    close(norm.variance.value, r["running_var"], 1e-14)
    use = norm.eval()(x)
    assert norm.updates(use) == {}
    close(sg.compile([x], use)(r["x"][0]), r["eval"], 1e-12)


def test_transposed_convolution():
    r = reference("transposed")
    layer = nn.ConvTranspose2d(4, 6, 3, key=KEY, stride=2, padding=1, groups=2)
    layer.load({"weight": r["weight"], "bias": r["bias"]})
    close(value(layer(r["x"])), r["y"], 1e-14)


# ---- the functions that they are ------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_layers_are_their_functions(dtype):
    rng = generator("modules")
    image = rng.normal(size=(2, 3, 8, 8)).astype(dtype)
    conv = nn.Conv2d(3, 4, 3, key=KEY, padding="same", stride=2, dtype=dtype)
    expected = nn.conv2d(image, conv.weight, conv.bias, padding="same", stride=2)
    same(value(conv(image)), value(expected))
    line = nn.Conv1d(3, 4, (3,), key=KEY, bias=False, dtype=dtype)
    same(value(line(image[:, :, 0])), value(nn.conv1d(image[:, :, 0], line.weight)))
    same(value(nn.MaxPool(2, stride=1)(image)), value(nn.max_pool(image, 2, stride=1)))
    same(value(nn.AvgPool((2, 4))(image)), value(nn.avg_pool(image, (2, 4))))
    norm = nn.LayerNorm((8, 8), dtype=dtype)
    same(value(norm(image)), value(nn.layer_norm(image, axis=(2, 3))))
    linear = nn.Linear(8, 5, key=KEY, dtype=dtype)
    linear.bias.value = rng.normal(size=5).astype(dtype)
    same(value(linear(image)), image @ linear.weight.value + linear.bias.value)
    both = nn.Sequential(linear, nn.Residual(nn.Linear(5, 5, key=KEY, dtype=dtype)), sg.tanh)
    found = both(sg.placeholder("x", ("N", 8), dtype))
    assert (repr(found.type), found.op.name) == (f"{dtype}[N, 5]", "tanh")


def test_layers_take_integers_and_refuse_other_floats():
    linear = nn.Linear(3, 2, key=KEY, dtype="float32")
    assert linear(np.ones((1, 3), "uint8")).dtype == "float32"
    with pytest.raises(DtypeError, match=r"weights of float32, 'weight' .* dtype='float64'"):
        linear(np.ones((1, 3)))
    with pytest.raises(ShapeError):
        linear(np.ones((1, 4), "float32"))
    with pytest.raises(ShapeError, match="2 groups do not divide 3 and 4"):
        nn.Conv2d(3, 4, 3, key=KEY, groups=2)
    with pytest.raises(ShapeError, match="heads do not divide"):
        nn.MultiHeadAttention(8, 3, key=KEY)
    with pytest.raises(ShapeError, match="sequences are of the shape"):
        nn.RNNCell(3, 2, key=KEY).unroll(sg.placeholder("x", ("N", 3)))
    with pytest.raises(ShapeError, match="give mask"):
        nn.MultiHeadAttention(2, 1, key=KEY)(sg.placeholder("x", ("N", "T", 2)), causal=True)
    with pytest.raises(ShapeError, match="they are added"):
        nn.Residual(nn.Linear(3, 1, key=KEY))(np.ones((2, 3)))
    with pytest.raises(UnsupportedError, match="a module or a function"):
        nn.Sequential(linear, 3)


def test_a_sequence_has_the_manners_of_one():
    first, last = nn.Linear(3, 4, key=KEY), nn.Linear(4, 2, key=KEY)
    net = nn.Sequential(first, sg.relu, last)
    assert (len(net), net[0], net[-1], [*net]) == (3, first, last, [first, sg.relu, last])
    x = np.ones((2, 3))
    same(value(net[1:](net[:1](x))), value(net(x)))
    assert net[::2].parameters() == net.parameters()
    with pytest.raises(IndexError):
        net[3]


def test_flatten():
    flat = pickle.loads(pickle.dumps(nn.Flatten()))
    x = np.arange(24.0).reshape(2, 3, 2, 2)
    same(value(flat(x)), x.reshape(2, 12))
    assert flat(sg.placeholder("x", ("N", 3, 2, 2))).shape == (
        sg.placeholder("y", "N").shape[0],
        12,
    )
    assert [flat(sg.placeholder("x", s)).shape for s in ((0, 3), (2, 0, 3), 5)] == [
        (0, 3), (2, 0), (5, 1)
    ]  # fmt: skip
    for shape in ((), ("N", 3, "M")):
        with pytest.raises(ShapeError, match=r"made flat is of the shape \(N, …\)"):
            flat(sg.placeholder("x", shape))


@pytest.mark.parametrize("bad", [-1, 5])
def test_embedding(bad):
    layer = nn.Embedding(5, 3, key=KEY)
    numbers = sg.placeholder("numbers", ("N",), "int32")
    rows = layer(numbers)
    program = sg.compile([numbers], [rows, sg.grad(sg.sum(rows), layer.weight)])
    found, slope = program(np.array([4, 0, 4], "int32"))
    same(found, layer.weight.value[[4, 0, 4]])
    same(slope, np.array([1.0, 0, 0, 0, 2])[:, None] * np.ones(3))
    with pytest.raises(BoundsError, match=rf"{bad} is out of range: .* from 0 to 4"):
        program(np.array([0, bad], "int32"))


# ---- dropout --------------------------------------------------------------------------------


def test_dropout_draws_anew_at_each_step_and_in_each_place():
    drop = nn.Dropout(0.5, key=KEY)
    x = np.ones(64)
    y = drop(x), drop(x)
    step = sg.compile([], y, updates=drop.updates(*y))
    masks = [m for _ in range(3) for m in step()]
    assert len({m.tobytes() for m in masks}) == 6
    same(np.unique(masks), [0.0, 2.0])
    same(value(drop.eval()(x)), x)


def test_training_with_dropout_goes_on_from_its_state():
    def made(calls=0):
        first, second = sg.random.split(KEY)
        net = nn.Sequential(nn.Linear(3, 8, key=first), nn.Dropout(0.5, key=second))
        for _ in range(calls):
            net(np.eye(3))
        loss = sg.mean(net(np.eye(3)) ** 2)
        return net, sg.compile([], loss, updates=sg.optim.SGD(net, lr=0.1).updates(loss))

    net, step = made()
    for _ in range(3):
        step()
    other, goes_on = made(calls=3)
    other.load(net.state())
    assert [float(step()) for _ in range(3)] == [float(goes_on()) for _ in range(3)]


# ---- first values ---------------------------------------------------------------------------

DEVIATIONS = {
    "kaiming_uniform": 2 / 300, "kaiming_normal": 2 / 300, "lecun_uniform": 1 / 300,
    "lecun_normal": 1 / 300, "xavier_uniform": 2 / 500, "xavier_normal": 2 / 500, "normal": 1.0,
    "zeros": 0.0,
}  # fmt: skip


@each("init", DEVIATIONS)
@each("dtype", ["float32", "float64"])
def test_initialisers_have_their_variance(init, dtype):
    found = nn.initial(init, KEY, (300, 200), (300, 200), dtype)
    assert (found.dtype, found.shape) == (dtype, (300, 200))
    close(found.var(), DEVIATIONS[init], 0.02 * DEVIATIONS[init])
    close(found.mean(), 0, 0.02 * max(found.std(), 1e-9))
    if "uniform" in init:
        assert np.abs(found).max() <= np.sqrt(3 * DEVIATIONS[init])


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 2, 3)])
def test_orthogonal_matrices(shape):
    matrix = nn.initial("orthogonal", KEY, shape, (1, 1)).reshape(-1, shape[-1])
    short = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    close(short @ short.T, np.eye(len(short)), 1e-14)


def test_other_first_values():
    layer = nn.Linear(2, 3, key=KEY, init=lambda key, shape, dtype: np.full(shape, 7, dtype))
    same(layer.weight.value, np.full((2, 3), 7.0))
    assert not np.array_equal(*(nn.Linear(2, 3, key=k).weight.value for k in sg.random.split(KEY)))
    with pytest.raises(UnsupportedError, match="no initialiser 'he'; there are zeros"):
        nn.Linear(2, 3, key=KEY, init="he")
    with pytest.raises(ShapeError, match=r"\(3, 2\), not \(2, 3\)"):
        nn.Linear(2, 3, key=KEY, init=lambda key, shape, dtype: np.ones((3, 2)))
    with pytest.raises(DtypeError, match="floats"):
        nn.Linear(2, 3, key=KEY, dtype="int64")

"""What layers are told wrong is refused where it is told, in words."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import DtypeError, ShapeError, SymgradError, UnsupportedError
from tests.helpers import each

nn, KEY, NAN = sg.nn, sg.random.key(0), float("nan")
X = sg.placeholder("x", ("N", 3))
DRAWN = {
    "Linear": (3, 2), "Conv1d": (3, 2, 1), "Conv2d": (3, 2, 1), "ConvTranspose2d": (3, 2, 1),
    "Embedding": (3, 2), "RNNCell": (3, 2), "GRUCell": (3, 2), "LSTMCell": (3, 2),
    "MultiHeadAttention": (4, 2),
}  # fmt: skip
SIZES = [(name, given, {"key": KEY}) for name, given in DRAWN.items()]
SIZES += [("BatchNorm", (3,), {}), ("LayerNorm", (3,), {})]


@each(("name", "given", "options"), SIZES)
@each("bad", [0, -1, 2.0, "3", None])
def test_sizes(name, given, options, bad):
    getattr(nn, name)(*given, **options)
    for i in range(len(given)):
        with pytest.raises(ShapeError, match=r"is 1 or more|is made of ints"):
            getattr(nn, name)(*given[:i], bad, *given[i + 1 :], **options)


@pytest.mark.parametrize("name", [*DRAWN, "Dropout"])
def test_keys_and_dtypes(name):
    made, given = getattr(nn, name), DRAWN.get(name, (0.5,))
    with pytest.raises(UnsupportedError, match=r"give it key=sg.random.key\(0\)"):
        made(*given)
    for key in (0, np.zeros(2), sg.random.split(KEY)):
        with pytest.raises(SymgradError, match=r"a key is uint64|one key is taken"):
            made(*given, key=key)
    with pytest.raises(TypeError, match="unexpected keyword argument 'pading'"):
        made(*given, key=KEY, pading=1)
    if name != "Dropout":
        with pytest.raises(DtypeError, match="weights are floats, not int64"):
            made(*given, key=KEY, dtype="int64")


@each(
    ("made", "words"),
    [
        (lambda: nn.Conv2d(4, 4, 3, key=KEY, groups=0), "groups is 1 or more, not 0"),
        (lambda: nn.MaxPool(0)(np.ones((1, 1, 2, 2))), "size is 1 or more, not 0"),
        (lambda: nn.LayerNorm(()), "a shape has one axis or more"),
        (lambda: nn.LayerNorm((2, 0)), "a shape is 1 or more"),
        (lambda: nn.LayerNorm(3, dtype="int64"), "weights are floats"),
        (lambda: nn.BatchNorm(3, dtype="int64"), "weights are floats"),
        (lambda: nn.MultiHeadAttention(3, 1, key=KEY)(X), r"\(N, length, 3\), not float64\[N, 3\]"),
        (lambda: nn.LSTMCell(3, 2, key=KEY)(X, np.zeros((1, 2))), "the state is a pair"),
        (lambda: nn.GRUCell(3, 2, key=KEY)(X, np.zeros((1, 2), "f4")), "with 'float64'"),
        (lambda: nn.Sequential([sg.tanh]), r"unpack it: Sequential\(\*layers\)"),
        (lambda: nn.Sequential(nn.MaxPool), "not <class"),
        (lambda: nn.Residual(3), "the body is a module or a function, not 3"),
        (lambda: nn.Linear(3, 2, key=KEY, init=3), "no initialiser 3; there are zeros, ones,"),
    ],
)
def test_other_faults(made, words):
    with pytest.raises(SymgradError, match=words):
        made()


def test_numbers_of_numpy_keep_float32():
    x = sg.placeholder("x", ("N", 3), "float32")
    norm = nn.BatchNorm(3, momentum=np.float64(0.5), eps=np.float64(1e-5), dtype="float32")
    y = nn.dropout(norm(x), KEY, rate=np.float64(0.5))
    found = [y, *norm.updates(y).values(), nn.layer_norm(x, eps=np.float64(1e-5))]
    found.append(nn.cross_entropy(x, x, label_smoothing=np.float64(0.1)))
    assert {node.dtype.name for node in found} == {"float32"}


@pytest.mark.parametrize("rate", [-0.1, 1.1, NAN, "0.5", True, None])
def test_rates_and_small_numbers(rate):
    for made in (
        lambda r: nn.Dropout(r, key=KEY),
        lambda r: nn.BatchNorm(3, momentum=r),
        lambda r: nn.cross_entropy(np.ones((1, 2)), [1], label_smoothing=r),
    ):
        with pytest.raises(UnsupportedError, match=r"is a number from 0 to 1, not"):
            made(rate)
    if rate != 1.1:
        for made in (
            lambda e: nn.BatchNorm(3, eps=e),
            lambda e: nn.LayerNorm(3, eps=e),
            lambda e: nn.layer_norm(np.ones(3), eps=e),
            lambda e: nn.batch_norm(np.ones((2, 3)), eps=e),
        ):
            with pytest.raises(UnsupportedError, match="eps is a number from 0 on, not"):
                made(rate)

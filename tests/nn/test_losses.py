"""Losses, against their formulas, and what they refuse."""

import numpy as np
import pytest
from scipy.special import log_softmax, rel_entr

import symgrad as sg
from symgrad.ir.errors import BoundsError, DtypeError, ShapeError, UnsupportedError
from tests.helpers import check_derivatives, close, each, generator, value

nn = sg.nn
RNG = generator("losses")
X, CLASSES = RNG.normal(0, 3, (4, 5)), np.array([0, 4, 2, 2])
WEIGHT, P = RNG.uniform(0.5, 2, 5), RNG.dirichlet(np.ones(5), 4)


def gradient(loss, *at):
    """The value and the gradients of a loss by its float operands."""
    xs = [sg.placeholder(f"x{i}", a.shape, a.dtype) for i, a in enumerate(at)]
    y = loss(*xs)
    return sg.compile(xs, [y, *sg.grad(y, [x for x in xs if x.dtype.kind == "f"])])(*at)


def checked(loss, *at):
    """The derivatives of a loss against differences."""
    xs = [sg.placeholder(f"x{i}", a.shape) for i, a in enumerate(at)]
    check_derivatives([loss(*xs)], xs, list(at), generator("checked"))


# ---- cross entropy --------------------------------------------------------------------------


@each("smoothing", [0.0, 0.2])
@each("weight", [None, WEIGHT])
@each("axis", [-1, 1, 0])
def test_cross_entropy_of_classes(smoothing, weight, axis):
    x = X if axis else X.T
    each = -log_softmax(X, -1) * (1 if weight is None else weight)
    own = np.take_along_axis(each, CLASSES[:, None], 1)[:, 0]
    losses = (1 - smoothing) * own + smoothing * each.mean(1)
    total = 4 if weight is None else weight[CLASSES].sum()
    options = {"axis": axis, "weight": weight, "label_smoothing": smoothing}
    for reduction, expected in (
        ("none", losses), ("sum", losses.sum()), ("mean", losses.sum() / total)
    ):  # fmt: skip
        found = nn.cross_entropy(x, CLASSES, reduction=reduction, **options)
        close(value(found), expected, 1e-12)
    checked(lambda x: nn.cross_entropy(x, CLASSES, **options), x)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy_of_probabilities(smoothing):
    target = (1 - smoothing) * P + smoothing / 5
    expected = -(target * log_softmax(X, -1)).sum(1).mean()
    close(float(nn.cross_entropy(X, P, label_smoothing=smoothing)), expected, 1e-12)
    checked(lambda x, p: nn.cross_entropy(x, p, label_smoothing=smoothing), X, P)


def test_cross_entropy_over_named_dimensions():
    x, t = sg.placeholder("x", ("N", "C"), "float32"), sg.placeholder("t", ("N",), "int8")
    loss = nn.cross_entropy(x, t, label_smoothing=0.1)
    assert loss.dtype == "float32"
    found = sg.compile([x, t], [loss, sg.grad(loss, x)])(X.astype("f4"), CLASSES.astype("i1"))
    close(found[0], float(nn.cross_entropy(X, CLASSES, label_smoothing=0.1)), 1e-5)


def test_cross_entropy_of_large_logits_and_masked_classes():
    loss, dx = gradient(lambda x: nn.cross_entropy(x, [0]), np.array([[-1e4, 1e4]]))
    close(loss, 2e4)
    close(dx, [[-1.0, 1.0]])
    masked = np.array([[0.0, -np.inf, 0.0]])
    loss, dx = gradient(lambda x: nn.cross_entropy(x, [[0.5, 0.0, 0.5]]), masked)
    close(loss, np.log(2))
    close(dx, np.zeros((1, 3)))


@pytest.mark.parametrize("bad", [-1, 5])
def test_a_class_out_of_range_is_an_error_of_the_run(bad):
    x, t = sg.placeholder("x", (4, 5)), sg.placeholder("t", (4,), "int64")
    program = sg.compile([x, t], nn.cross_entropy(x, t))
    words = rf"{bad} is out of range: the numbers are from 0 to 4"
    wrong = np.where(np.arange(4) == 2, bad, CLASSES)
    with pytest.raises(BoundsError, match=words):
        program(X, wrong)
    with pytest.raises(BoundsError, match=words):
        nn.cross_entropy(X, wrong)


@pytest.mark.parametrize(
    ("error", "options", "target"),
    [
        (ShapeError, {}, CLASSES[:3]),
        (ShapeError, {}, P[:, :4]),
        (ShapeError, {"weight": WEIGHT[:4]}, CLASSES),
        (ShapeError, {"axis": 2}, CLASSES),
        (DtypeError, {}, CLASSES > 1),
        (UnsupportedError, {"reduction": "average"}, CLASSES),
        (UnsupportedError, {"label_smoothing": 1.5}, CLASSES),
        (UnsupportedError, {"label_smoothing": float("nan")}, CLASSES),
        (UnsupportedError, {"label_smoothing": "0.1"}, CLASSES),
    ],
)
def test_what_cross_entropy_refuses(error, options, target):
    with pytest.raises(error):
        nn.cross_entropy(X, target, **options)


# ---- the others -----------------------------------------------------------------------------


def test_mse_loss_and_huber():
    y = X + np.linspace(-3, 3, 20).reshape(4, 5)
    away = np.abs(X - y)
    close(float(nn.mse_loss(X, y)), (away**2).mean(), 1e-12)
    for delta in (0.5, 1.0):
        expected = np.where(away <= delta, away**2 / 2, delta * (away - delta / 2))
        close(value(nn.huber(X, y, delta=delta, reduction="none")), expected, 1e-12)
    checked(nn.huber, X, y)
    assert nn.mse is nn.mse_loss
    for delta in (-1.0, 0.0, float("nan"), np.array([1.0, -1.0, 1.0, 1.0, 1.0])):
        with pytest.raises(UnsupportedError, match="delta is above 0"):
            nn.huber(X, y, delta=delta)
    with pytest.raises(ShapeError, match="broadcast"):
        nn.mse_loss(X, y[:, :1])


def test_huber_is_smooth_where_its_pieces_meet():
    _, dx = gradient(lambda x: nn.huber(x, np.zeros(3), reduction="sum"), np.array([-1.0, 0, 1]))
    close(dx, [-1.0, 0.0, 1.0])


def test_bce_with_logits():
    t = P
    p = 1 / (1 + np.exp(-X))
    for weight in (None, 3.0):
        expected = -(t * (weight or 1) * np.log(p) + (1 - t) * np.log1p(-p)).mean()
        close(float(nn.bce_with_logits(X, t, pos_weight=weight)), expected, 1e-10)
    checked(nn.bce_with_logits, X, t)
    x = np.array([800.0, -800.0, 40.0])
    loss, dx = gradient(
        lambda x: nn.bce_with_logits(x, np.array([1.0, 0.0, 1.0]), reduction="sum"), x
    )
    np.testing.assert_allclose(loss, np.exp(-40), 1e-12)
    np.testing.assert_allclose(dx, [0, 0, -np.exp(-40)], 1e-12)


@each("loss", [nn.mse_loss, nn.huber, nn.bce_with_logits])
@each("weight", [RNG.uniform(0, 2, (4, 5)), WEIGHT, WEIGHT[:4, None], [0, 1, 2, 3, 4], 2])
def test_weights_of_elements(loss, weight):
    expected = value(loss(X, P, reduction="none")) * weight
    for reduction, of in (("none", np.array), ("sum", np.sum), ("mean", np.mean)):
        close(value(loss(X, P, weight=weight, reduction=reduction)), of(expected), 1e-12)
    assert loss(X.astype("f4"), P.astype("f4"), weight=weight).dtype == "float32"
    checked(lambda x, t: loss(x, t, weight=weight), X, P)


def test_weights_may_be_fed_and_have_a_gradient():
    x, w = sg.placeholder("x", ("N", 5), "float32"), sg.placeholder("w", ("N",))
    loss = nn.bce_with_logits(x, sg.ones_like(x), weight=w[:, None], pos_weight=WEIGHT)
    assert loss.dtype == "float32"
    each = np.log1p(np.exp(-X)) * WEIGHT
    found = sg.compile([x, w], [loss, sg.grad(loss, w)])(X.astype("f4"), WEIGHT[:4])
    close(found[0], (each * WEIGHT[:4, None]).mean(), 1e-6)
    close(found[1], each.sum(1) / 20, 1e-6)


@pytest.mark.parametrize("weight", [np.ones(4), np.ones((1, 4, 5)), np.ones((4, 2))])
def test_weights_that_fit_no_loss(weight):
    words = r"broadcasts to the losses, of the shape \(4, 5\).* weight\[:, np.newaxis\]"
    for loss in (nn.mse_loss, nn.huber, nn.bce_with_logits):
        with pytest.raises(ShapeError, match=words):
            loss(X, P, weight=weight)
    with pytest.raises(ShapeError, match=words):
        nn.bce_with_logits(X, P, pos_weight=weight)


def test_kl_div():
    q = np.roll(P, 1, 0)
    expected = rel_entr(P, q).sum(1)
    close(value(nn.kl_div(np.log(q), P, reduction="none")), expected, 1e-12)
    close(value(nn.kl_div(np.log(q), np.log(P), log_target=True)), expected.mean(), 1e-12)
    checked(nn.kl_div, np.log(q), P)
    assert float(nn.kl_div([0.0, -np.inf], [1.0, 0.0])) == 0

"""check_grads is right about what is right, finds what is wrong, and is fair at kinks."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.testing import check_grads


class Wrong(sg.Function):
    """A tanh whose derivative lacks a factor."""

    @staticmethod
    def forward(ctx, x):
        y = sg.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - y)


class OutsideAtKink(sg.Function):
    """A relu whose derivative at 0 is 2: right everywhere else."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sg.relu(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * sg.where(x == 0, 2.0, sg.astype(x > 0, x.dtype))


class Clamped(sg.Function):
    """The classic mistake: the gradient is clamped, not masked by the input."""

    @staticmethod
    def forward(ctx, x):
        return sg.relu(x)

    @staticmethod
    def backward(ctx, g):
        return sg.clip(g, 0, None)


def net(relu):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((4, 5)), rng.standard_normal((4, 2))
    return lambda w1, w2: sg.sum((relu(x @ w1) @ w2 - y) ** 2)


WEIGHTS = tuple(np.random.default_rng(1).standard_normal(s) for s in ((5, 3), (3, 2)))


@pytest.mark.parametrize(
    "function",
    [
        sg.tanh,
        lambda x: sg.exp(sg.sin(x)) / (1 + x * x),
        lambda x: sg.log(sg.sum(sg.exp(x))),
        lambda x: (x[1:], sg.sum(x)),
        lambda x: sg.abs(x) * x,
        sg.std,
    ],
)
def test_what_is_right_passes(function):
    report = check_grads(function, np.array([0.3, -1.2, 2.0]))
    assert report.verdicts
    assert not report.kinks


def test_empty_and_many():
    assert check_grads(lambda x: sg.sum(x), np.empty((0, 3))).verdicts == ()
    assert len(check_grads(lambda x: sg.sum(sg.tanh(x)), np.ones((20, 10)) / 9).verdicts) == 64


def test_a_missing_factor_is_found():
    with pytest.raises(AssertionError, match=r"order 1:\n  argument 0: by differences"):
        check_grads(Wrong.apply, 0.5)


def test_a_wrong_second_derivative_is_found():
    class WrongTwice(sg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * sg.stop_gradient(x) * x

    with pytest.raises(AssertionError, match="order 2"):
        check_grads(WrongTwice.apply, 0.5)
    check_grads(WrongTwice.apply, 0.5, order=1)


def test_the_verdict_at_a_kink():
    for kinks, ours in (("zero", 0), ("right", 1), ("split", 0.5)):
        (verdict,) = check_grads(sg.relu, 0.0, kinks=kinks).kinks
        assert verdict.reverse == verdict.forward == ours
        np.testing.assert_allclose([verdict.left, verdict.right], [0, 1], atol=1e-9)
        assert "which lies between" in str(verdict)


def test_a_derivative_outside_the_subdifferential_is_found():
    check_grads(OutsideAtKink.apply, 0.1)
    with pytest.raises(AssertionError, match="a kink; left 0, right 1, ours 2, which does not lie"):
        check_grads(OutsideAtKink.apply, 0.0)


def test_a_clamped_gradient_is_found():
    check_grads(net(sg.relu), *WEIGHTS)
    with pytest.raises(AssertionError, match="wrong derivatives at order 1"):
        check_grads(net(Clamped.apply), *WEIGHTS)


def test_analytic_functions_are_checked_to_the_last_digits():
    (verdict,) = check_grads(lambda x: sg.exp(sg.tanh(x)) * x, 0.7).verdicts
    assert verdict.tolerance < 1e-8
    assert abs(verdict.left - verdict.reverse) < 1e-14
    assert check_grads(sg.logaddexp, 0.5, 0.25).verdicts[0].tolerance > 1e-9


def test_integer_results_are_refused():
    with pytest.raises(sg.GradientError, match="float results"):
        check_grads(lambda x: sg.astype(x, "int64"), 1.0)

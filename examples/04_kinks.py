"""Kinks: one function has one gradient, however it is spelled, and where it has none you choose.

Run it with `python examples/04_kinks.py`.
"""

import numpy as np

import symgrad as sg

SPELLINGS = {
    "relu(x)": sg.relu,
    "maximum(0, x)": lambda x: sg.maximum(0, x),
    "where(x > 0, x, 0)": lambda x: sg.where(x > 0, x, 0),
    "clip(x, 0, None)": lambda x: sg.clip(x, 0, None),
    "x * (x > 0)": lambda x: x * (x > 0),
    "(x + abs(x)) / 2": lambda x: (x + abs(x)) / 2,
}
POLICIES = ("zero", "left", "right", "split")
POINTS = np.array([-3, -1.5, 0, 1.5, 3])


def gradients(policy):
    """The gradient of the sum of each spelling at the points."""
    x = sg.placeholder("x", POINTS.shape)
    found = {
        name: sg.grad(sg.sum(function(x)), x, kinks=policy) for name, function in SPELLINGS.items()
    }
    return sg.compile([x], found)(POINTS)


def two_layer_loss(relu):
    """The loss of a small two-layer net, as a function of its weights."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((4, 5)), rng.standard_normal((4, 2))
    return lambda w1, w2: sg.sum((relu(X @ w1) @ w2 - Y) ** 2)


class ClampedReLU(sg.Function):
    """The classic mistake: the gradient is clamped, where it should be masked by the input."""

    @staticmethod
    def forward(ctx, x):
        return sg.relu(x)

    @staticmethod
    def backward(ctx, grad_output):
        return sg.clip(grad_output, 0, None)


def main():
    for policy in POLICIES:
        found = gradients(policy)
        print(f"kinks={policy!r}: the gradient of the sum at {POINTS}")
        for name, gradient in found.items():
            print(f"  {name:<20} {gradient}")
            np.testing.assert_array_equal(gradient, found["relu(x)"])

    print("\nWhat check_grads says of relu at its kink:")
    print(sg.testing.check_grads(sg.relu, 0.0))

    rng = np.random.default_rng(1)
    weights = rng.standard_normal((5, 3)), rng.standard_normal((3, 2))
    sg.testing.check_grads(two_layer_loss(sg.relu), *weights)
    print("\nA two-layer net with the built-in relu passes. With a backward that clamps:")
    try:
        sg.testing.check_grads(two_layer_loss(ClampedReLU.apply), *weights)
    except AssertionError as error:
        print("\n".join(str(error).splitlines()[:4]))
    else:
        raise SystemExit("the mistake was not caught")


if __name__ == "__main__":
    main()

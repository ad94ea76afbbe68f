"""A module with a forward and a backward of its own, trained for 30 epochs; and a wrong backward.

Run it with `python examples/08_module_with_own_backward.py [folder]`. It prints the losses, and
writes into the folder (`out` by default) a picture of what runs. `check_grads` compares the
backward with differences: the classic mistake, to clamp the gradient where it should be masked by
the input, trains too, and is caught.
"""

import sys
from pathlib import Path

import numpy as np

import symgrad as sg

BATCH, D_IN, H, D_OUT = 100, 1000, 100, 10


class TwoLayerNet(sg.nn.Module):
    """relu(x @ w1) @ w2, and how a gradient flows back through it."""

    def __init__(self, d_in, h, d_out, *, key):
        key1, key2 = sg.random.split(key)
        self.w1 = sg.nn.parameter(sg.random.normal(key1, (d_in, h)))
        self.w2 = sg.nn.parameter(sg.random.normal(key2, (h, d_out)))

    def forward(self, x):
        h_relu = sg.relu(x @ self.w1)
        self.save_for_backward(x, h_relu)
        return h_relu @ self.w2

    def backward(self, grad_output):
        """The gradients by the argument of forward, and then by each parameter."""
        x, h_relu = self.saved_tensors
        grad_w2 = h_relu.T @ grad_output
        grad_h = self.relu_backward(grad_output @ self.w2.T, h_relu)
        return grad_h @ self.w1.T, x.T @ grad_h, grad_w2

    def relu_backward(self, grad, h_relu):
        return grad * (h_relu > 0)


class Clamped(TwoLayerNet):
    """The mistake: negative gradients are dropped, not those of negative inputs."""

    def relu_backward(self, grad, h_relu):
        return sg.clip(grad, 0, None)


def train(net, epochs):
    """The losses of training, and the program that did it."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((BATCH, D_IN)), rng.standard_normal((BATCH, D_OUT))
    x, y = sg.placeholder("x", ("N", D_IN)), sg.placeholder("y", ("N", D_OUT))
    loss = sg.nn.mse_loss(net(x), y, reduction="sum")
    step = sg.compile([x, y], loss, updates=sg.optim.SGD(net, lr=1e-6).updates(loss))
    return [float(step(X, Y)) for _ in range(epochs)], step


def main(folder: Path, epochs: int = 30) -> list[float]:
    folder.mkdir(parents=True, exist_ok=True)
    losses, step = train(TwoLayerNet(D_IN, H, D_OUT, key=sg.random.key(0)), epochs)
    for epoch, loss in enumerate(losses):
        print(f"epoch {epoch:2d}  loss {loss:.6g}")
    step.render(folder / "08_what_runs.svg")
    print(f"wrote {folder / '08_what_runs.svg'}")

    X = np.random.default_rng(1).standard_normal((4, 6))
    report = TwoLayerNet(6, 5, 2, key=sg.random.key(0)).check_grads(X)
    print(f"\nThe backward is right along {len(report.verdicts)} directions. When it clamps:")
    wrong, _ = train(Clamped(D_IN, H, D_OUT, key=sg.random.key(0)), epochs)
    print(f"  the loss goes from {wrong[0]:.6g} to {wrong[-1]:.6g}, not to {losses[-1]:.6g}")
    try:
        Clamped(6, 5, 2, key=sg.random.key(0)).check_grads(X)
    except AssertionError as error:
        print("  " + "\n  ".join(str(error).splitlines()[:3]))
    else:
        raise SystemExit("the mistake was not caught")
    return losses


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out"))

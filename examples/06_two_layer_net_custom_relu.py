"""A two-layer net with a ReLU of your own, in both spellings, trained for 500 steps.

Run it with `python examples/06_two_layer_net_custom_relu.py [folder]`. It prints the losses of
both, and writes into the folder (`out` by default) a picture of what runs. There is nothing to
zero and nothing to detach: the gradients are nodes, and the program updates the weights.
"""

import sys
from pathlib import Path

import numpy as np

import symgrad as sg

N, D_IN, H, D_OUT = 64, 1000, 100, 10


class MyReLU(sg.Function):
    """Static methods with a context, called by `MyReLU.apply(x)`."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sg.clip(x, 0, None)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return sg.where(x < 0, 0, grad_output)


class ReLU(sg.Function):
    """Methods of an instance, called like a function: `relu = ReLU()`, `relu(x)`."""

    def forward(self, x):
        self.save_for_backward(x)
        return sg.clip(x, 0, None)

    def backward(self, grad_output):
        (x,) = self.saved_tensors
        return sg.where(x < 0, 0, grad_output)


def train(relu, steps=500):
    """The losses of training, and the program that did it."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((N, D_IN)), rng.standard_normal((N, D_OUT))
    x, y = sg.placeholder("x", ("N", D_IN)), sg.placeholder("y", ("N", D_OUT))
    w1 = sg.variable("w1", rng.standard_normal((D_IN, H)))
    w2 = sg.variable("w2", rng.standard_normal((H, D_OUT)))

    y_pred = relu(x @ w1) @ w2
    loss = sg.sum((y_pred - y) ** 2)
    step = sg.compile([x, y], loss, updates=sg.optim.SGD([w1, w2], lr=1e-6).updates(loss))
    return [float(step(X, Y)) for _ in range(steps)], step


def main(folder: Path, steps: int = 500) -> dict[str, list[float]]:
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, relu in {"MyReLU.apply": MyReLU.apply, "ReLU()": ReLU()}.items():
        found[name], step = train(relu, steps)
        for t in range(0, steps, 100):
            print(f"{name:12}  step {t:3d}  loss {found[name][t]:.6g}")
        print(f"{name:12}  the end   loss {found[name][-1]:.6g}")
    path = folder / "06_what_runs.svg"
    step.render(path)
    print(f"wrote {path}")
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out"))

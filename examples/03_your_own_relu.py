"""Your own ReLU: a two-layer net, trained with the built-in one and with two of your own.

Run it with `python examples/03_your_own_relu.py`. A `Function` has a forward and a backward, made
of symgrad's functions. The compiler sees through both: the three programs have the same steps.
"""

import numpy as np

import symgrad as sg


class MyReLU(sg.Function):
    """With static methods and a context, called by `MyReLU.apply(x)`."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sg.maximum(x, 0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x > 0)


class ReLU(sg.Function):
    """With methods of an instance, called like a function: `relu = ReLU()`, `relu(x)`."""

    def forward(self, x):
        y = sg.maximum(x, 0)
        self.save_for_backward(y)
        return y

    def backward(self, grad_output):
        (y,) = self.saved_tensors
        return grad_output * (y > 0)


def train(relu, steps: int = 500) -> tuple[np.ndarray, sg.Program]:
    """The losses of training, and the program that did it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((64, 1000), dtype="float32")
    Y = rng.standard_normal((64, 10), dtype="float32")

    x = sg.placeholder("x", (64, 1000), "float32")
    y = sg.placeholder("y", (64, 10), "float32")
    w1 = sg.variable("w1", rng.standard_normal((1000, 100), dtype="float32"))
    w2 = sg.variable("w2", rng.standard_normal((100, 10), dtype="float32"))

    loss = sg.sum((relu(x @ w1) @ w2 - y) ** 2)
    dw1, dw2 = sg.grad(loss, [w1, w2])
    step = sg.compile([x, y], loss, updates={w1: w1 - 1e-6 * dw1, w2: w2 - 1e-6 * dw2})
    return np.array([step(X, Y) for _ in range(steps)]), step


def main() -> dict[str, np.ndarray]:
    losses, program = train(sg.relu)
    found = {"sg.relu": losses}
    print(f"sg.relu       {len(program.plan.steps)} steps, last loss {losses[-1]:.6g}")
    for name, relu in {"MyReLU.apply": MyReLU.apply, "ReLU()": ReLU()}.items():
        found[name], step = train(relu)
        apart = np.max(np.abs(found[name] / losses - 1))
        print(f"{name:12}  {len(step.plan.steps)} steps, last loss {found[name][-1]:.6g},", end=" ")
        print(f"losses apart by {apart:.1g} at most")
        if apart > 1e-6 or len(step.plan.steps) != len(program.plan.steps):
            raise SystemExit(f"{name} does not do what sg.relu does")
    print(f"\nWhat runs with ReLU():\n\n{step.source}")
    return found


if __name__ == "__main__":
    main()

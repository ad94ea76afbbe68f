"""A two-layer net at batch 100, trained for 50 epochs: forward, gradients and updates in a program.

Run it with `python examples/07_two_layer_net_batch_100.py [folder]`. It prints the losses, and
writes into the folder (`out` by default) a picture of what runs. The weights are variables: their
next values are part of the graph, so that nobody reaches into `.data`.
"""

import sys
from pathlib import Path

import numpy as np

import symgrad as sg

BATCH, D_IN, H, D_OUT = 100, 1000, 100, 10
LEARNING_RATE = 1e-6


def main(folder: Path, epochs: int = 50) -> list[float]:
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((BATCH, D_IN)), rng.standard_normal((BATCH, D_OUT))

    x, y = sg.placeholder("x", (BATCH, D_IN)), sg.placeholder("y", (BATCH, D_OUT))
    w1 = sg.variable("w1", rng.standard_normal((D_IN, H)))
    w2 = sg.variable("w2", rng.standard_normal((H, D_OUT)))

    with sg.scope("net"):
        y_pred = sg.relu(x @ w1) @ w2
    with sg.scope("loss"):
        loss = sg.sum((y_pred - y) ** 2)
    grad1, grad2 = sg.grad(loss, [w1, w2])
    updates = {w1: w1 - LEARNING_RATE * grad1, w2: w2 - LEARNING_RATE * grad2}
    train = sg.compile([x, y], loss, updates=updates)
    predict = sg.compile(x, y_pred)  # another program with the same weights

    losses = []
    for epoch in range(epochs):
        losses.append(float(train(X, Y)))
        print(f"epoch {epoch:2d}  loss {losses[-1]:.6g}")
    left = float(np.sum((predict(X) - Y) ** 2))
    print(f"the loss of what it predicts now is {left:.6g}")
    train.render(folder / "07_what_runs.svg")
    print(f"wrote {folder / '07_what_runs.svg'}")
    return [*losses, left]


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out"))

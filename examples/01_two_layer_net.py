"""A two-layer net, trained by gradient descent: build, differentiate, compile, run, draw.

Run it with `python examples/01_two_layer_net.py [folder]`. It prints the losses, and writes into
the folder (`out` by default) the pictures of the forward graph, of the raw gradient and of what
runs, and the program as a file that needs NumPy only.
"""

import signal
import sys
from pathlib import Path

import numpy as np

import symgrad as sg


def build(rng: np.random.Generator) -> tuple[sg.Graph, sg.Program]:
    """The net as it is written, its gradient with it; and one step of gradient descent."""
    x = sg.placeholder("x", ("N", 1000), "float32")
    y = sg.placeholder("y", ("N", 10), "float32")
    w1 = sg.variable("w1", rng.standard_normal((1000, 100), dtype="float32"))
    w2 = sg.variable("w2", rng.standard_normal((100, 10), dtype="float32"))

    loss = sg.sum((sg.relu(x @ w1) @ w2 - y) ** 2)
    dw1, dw2 = sg.grad(loss, [w1, w2])
    step = sg.compile([x, y], loss, updates={w1: w1 - 1e-6 * dw1, w2: w2 - 1e-6 * dw2})
    return sg.Graph([loss, dw1, dw2]), step


def main(folder: Path) -> list[float]:
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((64, 1000), dtype="float32")
    Y = rng.standard_normal((64, 10), dtype="float32")
    gradient, step = build(rng)

    losses = []
    for t in range(500):
        losses.append(float(step(X, Y)))
        if t % 20 == 0:
            print(f"step {t:3d}  loss {losses[-1]:.6g}")

    print(f"\nWhat ran:\n\n{step.source}")
    sg.render(sg.Graph([gradient.outputs[0]]), folder / "01_forward.svg")
    sg.render(gradient, folder / "01_gradient.svg")
    step.render(folder / "01_what_runs.svg")
    step.save_source(folder / "two_layer_net_step.py")
    for path in sorted(folder.glob("01_*.svg")):
        print(f"wrote {path}")
    print(f"wrote {folder / 'two_layer_net_step.py'}")
    return losses


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it quietly
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out"))

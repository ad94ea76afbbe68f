"""Handwritten digits, 8 x 8 pixels each: an MLP and a small convolutional net.

The data are the 1,797 images that scikit-learn ships with (pip install scikit-learn). Run it with
`python examples/10_digits.py [folder] [epochs]`. It prints the progress and the accuracy on images
that were not trained on, and writes into the folder (`out` by default) a checkpoint of each net
and a picture of what runs, and of the losses if matplotlib is installed.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import symgrad as sg
from symgrad import nn


def data() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Images (N, 1, 8, 8) from 0 to 1 and their labels: a fifth of them to test."""
    digits = load_digits()
    images = (digits.images[:, None] / 16).astype("float32")
    order = np.random.default_rng(0).permutation(len(images))
    test, train = order[: len(order) // 5], order[len(order) // 5 :]
    return (images[train], digits.target[train]), (images[test], digits.target[test])


def mlp(key: sg.Node) -> nn.Module:
    first, second = sg.random.split(key)
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 128, key=first, dtype="float32"),
        sg.relu,
        nn.Linear(128, 10, key=second, dtype="float32"),
    )


def conv_net(key: sg.Node) -> nn.Module:
    first, second, third = sg.random.split(key, 3)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, key=first, dtype="float32"),
        sg.relu,
        nn.MaxPool(2),
        nn.Conv2d(16, 32, 3, padding=1, key=second, dtype="float32"),
        sg.relu,
        nn.MaxPool(2),
        nn.Flatten(),
        nn.Linear(32 * 2 * 2, 10, key=third, dtype="float32"),
    )


def train(name: str, net: nn.Module, folder: Path, epochs: int) -> sg.History:
    (x_train, y_train), (x_test, y_test) = data()
    x = sg.placeholder("x", ("N", 1, 8, 8), "float32")
    y = sg.placeholder("y", "N", "int64")
    logits = net(x)
    loss = nn.cross_entropy(logits, y)
    right = sg.mean(sg.astype(sg.argmax(logits, axis=1) == y, "float32"))
    optimizer = sg.optim.Adam(net, lr=5e-3)
    step = sg.compile([x, y], loss, updates=optimizer.updates(loss))
    measure = sg.compile([x, y], {"loss": loss, "accuracy": right})

    print(f"\n{name}: {sum(p.size for p in net.parameters())} parameters", flush=True)
    history = sg.fit(
        step,
        sg.batches(x_train, y_train, size=64, key=1),
        epochs=epochs,
        test=(measure, sg.batches(x_test, y_test, size=256)),
        progress=sys.stdout,
    )
    state = [*net.named_variables(), *optimizer.variables]
    sg.save_state(folder / f"10_{name}.npz", state)
    step.render(folder / f"10_{name}.svg")
    try:
        history.plot(folder / f"10_{name}_losses.svg")
    except sg.UnsupportedError as error:
        print(error)
    print(f"{name}: test accuracy {history['test accuracy'][-1]:.4f}")
    return history


def main(folder: Path, epochs: int = 30) -> dict[str, sg.History]:
    folder.mkdir(parents=True, exist_ok=True)
    nets = {"mlp": mlp(sg.random.key(0)), "conv_net": conv_net(sg.random.key(1))}
    return {name: train(name, net, folder, epochs) for name, net in nets.items()}


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out"), *map(int, sys.argv[2:]))

"""Activations, pooling, linear and convolutional layers: as functions, as modules, and both.

Run it with `python examples/09_functions_and_modules.py [folder]`. It trains a small convolutional
net to tell horizontal from vertical stripes, and writes into the folder (`out` by default)
a picture of its graph, in which each module is a box.
"""

import sys
from pathlib import Path

import numpy as np

import symgrad as sg
from symgrad import nn


class Net(nn.Module):
    """Modules where there are weights, functions where there are none."""

    def __init__(self, *, key):
        key1, key2, key3 = sg.random.split(key, 3)
        self.conv1 = nn.Conv2d(1, 4, 3, key=key1, padding="same")
        self.conv2 = nn.Conv2d(4, 8, 3, key=key2, padding="same")
        self.fc = nn.Linear(8 * 2 * 2, 2, key=key3)

    def forward(self, x):
        x = nn.max_pool(nn.relu(self.conv1(x)), 2)
        x = nn.avg_pool(nn.gelu(self.conv2(x)), 2)
        return self.fc(sg.reshape(x, (-1, 8 * 2 * 2)))


def in_sequence(*, key):
    """The same net, as a list of modules and functions."""
    key1, key2, key3 = sg.random.split(key, 3)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, key=key1, padding="same"), nn.relu, nn.MaxPool(2),
        nn.Conv2d(4, 8, 3, key=key2, padding="same"), nn.gelu, nn.AvgPool(2),
        nn.Flatten(), nn.Linear(8 * 2 * 2, 2, key=key3),
    )  # fmt: skip


def stripes(count):
    """Noisy images of 8 x 8 with stripes across (0) or down (1)."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, count)
    waves = np.sin(np.arange(8) * 2 + rng.uniform(0, 6, (count, 1)))
    across = np.broadcast_to(waves[:, :, None], (count, 8, 8))
    images = np.where(labels[:, None, None] == 0, across, across.transpose(0, 2, 1))
    return (images + rng.normal(0, 0.5, images.shape))[:, None], labels


def main(folder: Path, steps: int = 40) -> tuple[list[float], float]:
    folder.mkdir(parents=True, exist_ok=True)
    z = np.linspace(-2, 2, 5)
    for f in (nn.relu, nn.leaky_relu, nn.sigmoid, sg.tanh, nn.softplus, nn.elu, nn.gelu, nn.silu):
        print(f"{f.__name__:10} of {z}: {np.asarray(f(z)).round(3)}")

    images, labels = stripes(300)
    x, t = sg.placeholder("x", ("N", 1, 8, 8)), sg.placeholder("t", ("N",), "int64")
    losses = {}
    for make in (Net, in_sequence):
        net = make(key=sg.random.key(0))
        y = net(x)
        loss = nn.cross_entropy(y, t)
        step = sg.compile([x, t], loss, updates=sg.optim.Adam(net, lr=0.01).updates(loss))
        losses[make] = [float(step(images[:200], labels[:200])) for _ in range(steps)]
        first, last = losses[make][0], losses[make][-1]
        print(f"{make.__name__:12} the loss goes from {first:.4f} to {last:.4f}")
        if make is Net:
            sg.render(sg.Graph([y]), folder / "09_net.svg")
    predict = sg.compile(x, sg.argmax(y, axis=1))
    accuracy = float(np.mean(predict(images[200:]) == labels[200:]))
    print(f"of 100 other images {accuracy:.0%} are told right\nwrote {folder / '09_net.svg'}")
    np.testing.assert_allclose(losses[Net], losses[in_sequence], rtol=1e-9)
    return losses[Net], accuracy


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out"))

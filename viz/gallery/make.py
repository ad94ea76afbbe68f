"""The pictures of the gallery and of the README: `python viz/gallery/make.py` makes them anew.

Each ends with a digest of what it shows, of its DOT and not of its coordinates, so that a test can
tell whether it is still what the compiler makes.
"""

from __future__ import annotations

import hashlib
import re
import runpy
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

import symgrad as sg
from symgrad import nn
from symgrad.ir.formats.writing import write_whole
from symgrad_viz import render, to_dot
from symgrad_viz.story import story_svg

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"
STAMP = "<!-- made of {} by: python viz/gallery/make.py -->\n"


def two_layer_net() -> tuple[sg.Graph, sg.Program]:
    """The gradient and the training step of the first example."""
    build = runpy.run_path(str(EXAMPLES / "01_two_layer_net.py"))["build"]
    return build(np.random.default_rng(0))


def relu() -> sg.Program:
    """The second example, with its loss."""
    x, loss, dx = runpy.run_path(str(EXAMPLES / "02_relu_gradient.py"))["build"]()
    return sg.compile([x], {"loss": loss, "dx": dx})


def mlp(layers: int = 6) -> sg.Program:
    """A step of gradient descent for a net of some like layers, each in a scope of its own."""
    x, y = (sg.placeholder(name, ("N", 64), "float32") for name in "xy")
    weights, h = [], x
    for i in range(1, layers + 1):
        with sg.scope(f"layer{i}"):
            w = sg.variable(f"w{i}", np.zeros((64, 64), "float32"))
            b = sg.variable(f"b{i}", np.zeros(64, "float32"))
            h = sg.relu(h @ w + b)
        weights += [w, b]
    loss = sg.sum((h - y) ** 2)
    steps = zip(weights, sg.grad(loss, weights), strict=True)
    updates = {w: w - 1e-3 * g for w, g in steps}
    return sg.compile([x, y], {"loss": loss}, updates=updates, threads=1)


def attention() -> sg.Program:
    """One head of attention, and the gradients of its weights."""
    x = sg.placeholder("x", ("T", 64), "float32")
    weights = [sg.variable(name, np.zeros((64, 64), "float32")) for name in ("wq", "wk", "wv")]
    with sg.scope("queries, keys, values"):
        q, k, v = (x @ w for w in weights)
    with sg.scope("attention"):
        mixed = sg.nn.softmax(q @ k.T * 0.125, axis=-1) @ v
    loss = sg.sum(mixed**2)
    gradients = dict(zip(("d wq", "d wk", "d wv"), sg.grad(loss, weights), strict=True))
    return sg.compile([x], {"loss": loss, **gradients}, threads=1)


def loop() -> sg.Program:
    """A recurrent net by hand, over sequences of any length, and the gradients of its weights."""
    x = sg.placeholder("x", ("T", 8, 16), "float32")
    w = sg.variable("w", np.zeros((16, 32), "float32"))
    u = sg.variable("u", np.zeros((32, 32), "float32"))

    def step(h: sg.Node, row: sg.Node) -> tuple[sg.Node, None]:
        return sg.tanh(row @ w + h @ u), None

    last, _ = sg.scan(step, sg.zeros((8, 32), dtype="float32"), x)
    loss = sg.sum(last**2)
    gradients = dict(zip(("d w", "d u"), sg.grad(loss, [w, u]), strict=True))
    return sg.compile([x], {"loss": loss, **gradients}, threads=1)


def lenet() -> sg.Program:
    """A step of Adam for LeNet-5: LeCun et al., Proceedings of the IEEE 86 (1998)."""
    keys = sg.random.split(sg.random.key(0), 5)
    net = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2, key=keys[0], dtype="float32"), sg.tanh, nn.AvgPool(2),
        nn.Conv2d(6, 16, 5, key=keys[1], dtype="float32"), sg.tanh, nn.AvgPool(2), nn.Flatten(),
        nn.Linear(400, 120, key=keys[2], dtype="float32"), sg.tanh,
        nn.Linear(120, 84, key=keys[3], dtype="float32"), sg.tanh,
        nn.Linear(84, 10, key=keys[4], dtype="float32"),
    )  # fmt: skip
    x = sg.placeholder("x", ("N", 1, 28, 28), "float32")
    wanted = sg.placeholder("wanted", ("N",), "int64")
    loss = nn.cross_entropy(net(x), wanted)
    return sg.compile([x, wanted], loss, updates=sg.optim.Adam(net).updates(loss), threads=1)


class Block(nn.Module):
    """Attention, and two layers for each letter, each beside what it is given."""

    def __init__(self, size: int, key: sg.Node) -> None:
        first, second, third = sg.random.split(key, 3)
        self.norm1, self.norm2 = (nn.LayerNorm(size, dtype="float32") for _ in range(2))
        self.attention = nn.MultiHeadAttention(size, 4, key=first, dtype="float32")
        self.up = nn.Linear(size, 4 * size, key=second, dtype="float32")
        self.down = nn.Linear(4 * size, size, key=third, dtype="float32")

    def forward(self, x: sg.Node) -> sg.Node:
        x = x + self.attention(self.norm1(x), causal=True)
        return x + self.down(nn.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """Logits of the letter that follows each of a text, of 65 letters, by some blocks."""

    def __init__(self, blocks: int, length: int = 16, size: int = 32) -> None:
        first, second, third, *rest = sg.random.split(sg.random.key(0), blocks + 3)
        self.tokens = nn.Embedding(65, size, key=first, dtype="float32")
        self.places = nn.Embedding(length, size, key=second, dtype="float32")
        self.blocks = [Block(size, key) for key in rest]
        self.norm = nn.LayerNorm(size, dtype="float32")
        self.head = nn.Linear(size, 65, key=third, dtype="float32")
        self.length = length

    def forward(self, text: sg.Node) -> sg.Node:
        h = self.tokens(text) + self.places(np.arange(self.length))
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


def transformer(blocks: int = 12) -> sg.Program:
    """A step of Adam for a transformer, as it is written."""
    net = Transformer(blocks)
    text, wanted = (sg.placeholder(name, ("N", 16), "int64") for name in ("text", "wanted"))
    loss = nn.cross_entropy(net(text), wanted)
    return sg.compile([text, wanted], loss, updates=sg.optim.Adam(net).updates(loss), passes=())


class Reader(nn.Module):
    """Logits of 65 letters after each of a sequence, by an LSTM."""

    def __init__(self) -> None:
        first, second = sg.random.split(sg.random.key(0))
        self.cell = nn.LSTMCell(32, 96, key=first, dtype="float32")
        self.read = nn.Linear(96, 65, key=second, dtype="float32")

    def forward(self, x: sg.Node) -> sg.Node:
        return self.read(self.cell.unroll(x)[0])


def lstm(steps: int = 200) -> sg.Program:
    """A step of Adam for an LSTM."""
    net = Reader()
    x = sg.placeholder("x", ("N", steps, 32), "float32")
    wanted = sg.placeholder("wanted", ("N", steps), "int64")
    loss = nn.cross_entropy(net(x), wanted)
    return sg.compile([x, wanted], loss, updates=sg.optim.Adam(net).updates(loss), threads=1)


def chain(rounds: int = 433) -> sg.Program:
    """A loop of Python's: 1,300 nodes, one after the other."""
    x = sg.placeholder("x", ("N",), "float32")
    h, w = x, sg.variable("w", np.float32(0.5))
    for _ in range(rounds):
        h = sg.tanh(h * w + x)
    return sg.compile([x], {"h": h}, passes=())


def rounds() -> sg.Graph:
    """A step of descent on standardised rows, cut along them: three rounds of pieces."""
    x, y = sg.placeholder("x", ("N", 8), "float32"), sg.placeholder("y", ("N",), "float32")
    w = sg.variable("w", np.zeros(8, "float32"))
    z = (x - sg.mean(x, axis=0)) / sg.std(x, axis=0)
    loss = sg.mean((z @ w - y) ** 2)
    return sg.map_reduce([x, y], loss, updates={w: w - 0.1 * sg.grad(loss, w)}, over="N").graph


def pictures() -> Mapping[str, tuple[Callable[[], str], Callable[[], str]]]:
    """For each file how it is drawn, and what it shows as a text without coordinates."""
    gradient, step = two_layer_net()
    stories = {
        "two_layer_net_story": (step, "A two-layer net: from what is written to what runs"),
        "relu_story": (relu(), "The gradient of relu: from a mask to a selection"),
        "lstm_story": (lstm(), "An LSTM over 200 letters: from what is written to what runs"),
    }
    graphs = {
        "two_layer_net_gradient": (gradient, {"title": "A two-layer net and its gradient"}),
        "two_layer_net": (step, {"title": "A two-layer net: one step of training, as it runs"}),
        "two_layer_net_cost": (
            step,
            {"title": "What a step costs", "color_by": "cost"},
        ),
        "mlp": (mlp(), {"title": "Six layers, each drawn once", "collapse": True, "expand": True}),
        "attention": (attention(), {"title": "Attention and its gradient, as they run"}),
        "lenet": (lenet(), {"title": "LeNet: a step of Adam, as it runs"}),
        "transformer": (
            transformer(),
            {"title": "A transformer of 12 blocks, as it is written"},
        ),
        "lstm": (lstm(), {"title": "A step of an LSTM over 200 letters, as it runs"}),
        "chain": (chain(), {"title": "433 rounds of a loop of Python's"}),
        "rounds": (rounds(), {"title": "A step over rows that are in pieces, in three rounds"}),
        "loop": (loop(), {"title": "A recurrent net: a loop, and the one that goes back over it"}),
    }
    found = {}
    for name, (program, title) in stories.items():
        draw = _story(program, title)
        found[name] = draw, _words(draw)
    for name, (thing, options) in graphs.items():
        found[name] = _render(thing, options), _dot(thing, options)
    return found


def _story(program: sg.Program, title: str) -> Callable[[], str]:
    return lambda: story_svg(program, title=title)


def _words(draw: Callable[[], str]) -> Callable[[], str]:
    return lambda: "\n".join(re.findall(r"<(?:text|title)\b[^>]*>([^<]*)", draw()))


def _render(thing: object, options: Mapping[str, object]) -> Callable[[], str]:
    return lambda: str(render(thing, **options))


def _dot(thing: object, options: Mapping[str, object]) -> Callable[[], str]:
    return lambda: to_dot(thing, **options)


def stamp(shown: str) -> str:
    """The last line of a picture that shows this."""
    return STAMP.format(hashlib.sha256(shown.encode()).hexdigest())


def main() -> None:
    """Write all pictures."""
    for name, (draw, shown) in pictures().items():
        path = HERE / f"{name}.svg"
        write_whole(path, draw() + stamp(shown()))
        sys.stdout.write(f"wrote {path.relative_to(HERE.parent.parent)}\n")


if __name__ == "__main__":
    main()

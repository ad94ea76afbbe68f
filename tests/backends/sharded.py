"""Trains nets on four devices and on one, and writes what came of it as JSON: see its test."""

import json
import sys

import jax
import numpy as np

import symgrad as sg

SINGLE = {"key": sg.random.key(0), "dtype": "float32"}


def mlp():
    return sg.nn.Sequential(sg.nn.Linear(6, 8, **SINGLE), sg.nn.relu, sg.nn.Linear(8, 2, **SINGLE))


def normalised():
    norm = sg.nn.BatchNorm(8, dtype="float32")
    layers = sg.nn.Linear(6, 8, **SINGLE), norm, sg.nn.relu, sg.nn.Linear(8, 2, **SINGLE)
    return sg.nn.Sequential(*layers)


class Attention(sg.nn.Module):
    """Attention over the six numbers of a row, each as two."""

    def __init__(self):
        self.attend = sg.nn.MultiHeadAttention(2, 1, **SINGLE)

    def forward(self, x):
        return sg.sum(self.attend(x[..., None] * np.array([1, 2], "float32")), axis=1)


class Convolution(sg.nn.Module):
    """A row as an image."""

    def __init__(self):
        self.conv = sg.nn.Conv2d(1, 2, (1, 2), **SINGLE)

    def forward(self, x):
        return sg.mean(self.conv(sg.reshape(x, ("N", 1, 2, 3))), axis=(2, 3))


def trained(make, shard, optimizer):
    x, y = sg.placeholder("x", ("N", 6), "float32"), sg.placeholder("y", ("N", 2), "float32")
    net, rng = make(), np.random.default_rng(0)
    loss = sg.mean((net(x) - y) ** 2)
    updates = optimizer(net, lr=0.01).updates(loss)
    program = sg.compile([x, y], loss, updates=updates, backend="jax", shard=shard)
    data = [rng.standard_normal((12, k), dtype="float32") for k in (6, 2)]
    return program, data, [float(program(*data)) for _ in range(3)]


def labelled(shard):
    """Losses of labels, and the program: what is picked in a row is sent nowhere."""
    x, y = sg.placeholder("x", ("N", 6), "float32"), sg.placeholder("y", "N", "int64")
    loss = sg.nn.cross_entropy((net := mlp())(x), y)
    updates = sg.optim.SGD(net, lr=0.1).updates(loss)
    program = sg.compile([x, y], loss, updates=updates, backend="jax", shard=shard)
    given = np.random.default_rng(0).standard_normal((12, 6), "float32"), np.arange(12) % 2
    return program, [float(program(*given)) for _ in range(3)]


def exchanges(program):
    """How often devices send each other something in a step: sums, or what others have."""
    (executable,) = program.executables.used
    (stage,) = executable.lowering.stages
    words = ("all-reduce", "all-gather", "all-to-all", "reduce-scatter", "collective-permute")
    return sum(stage.function.as_text().count(f" {word}(") for word in words)


def elsewhere():
    """Losses and the variable of programs on three kinds of places, fed from yet another one.

    Between them, where the variable lies.
    """
    x, w = sg.placeholder("x", ("N",), "float32"), sg.variable("w", np.float32(0))
    places = {"device": "cpu:1"}, {"device": "cpu:2"}, {"shard": {"N": 4}}
    programs = [
        sg.compile(x, sg.sum(x * w), updates={w: w + sg.sum(x) / 4}, backend="jax", **place)
        for place in places
    ]
    given = jax.device_put(np.ones(4, "float32"), jax.devices()[3])
    losses, places = [], []
    for p in (*programs, *programs):
        losses.append(float(p(given)))
        places.append(sorted(d.id for d in w.cell.content.devices()))
    return losses, places, float(w.value)


def within_a_mesh():
    """Losses of programs whose first call is made where the caller has set a mesh of his own."""
    x, w = sg.placeholder("x", ("N", 3), "float32"), np.ones(3, "float32")
    losses = []
    with jax.set_mesh(jax.make_mesh((2, 2), ("N", "M"))):
        for place in ({}, {"device": "cpu:1"}, {"shard": {"N": 4}}):
            program = sg.compile(x, sg.sum(sg.exp(x) @ w), backend="jax", **place)
            losses += [float(program(np.zeros((4, 3), "float32"))) for _ in range(2)]
        assert jax.sharding.get_mesh().axis_names == ("N", "M")
        program = sg.compile(x, sg.sum(x), backend="jax")
        within = jax.jit(lambda a: a * float(program(np.ones((4, 3), "float32"))))
        losses.append(float(within(1.0)))
    return losses


def main():
    found = {"elsewhere": elsewhere(), "within a mesh": within_a_mesh()}
    for make, optimizer in ((mlp, sg.optim.Adam), (normalised, sg.optim.SGD),
                            (Attention, sg.optim.SGD), (Convolution, sg.optim.SGD)):  # fmt: skip
        *_, one = trained(make, None, optimizer)
        program, data, four = trained(make, {"N": 4}, optimizer)
        found[make.__name__] = one, four, exchanges(program)
    (_, one), (several, four) = labelled(None), labelled({"N": 4})
    found["labelled"] = one, four, exchanges(several)
    try:
        program(*(a[:10] for a in data))
    except sg.FeedError as error:
        found["uneven"] = str(error)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()

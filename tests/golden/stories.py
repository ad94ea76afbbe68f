"""What is kept as text: the graph at every stage of a few programs, and the source they become.

A story is a function that gives the arguments of `compile`. Add one, then run
`python -m tests.golden.update` and review what it wrote.
"""

import re

import numpy as np

import symgrad as sg
from symgrad.lowering.lower import lower
from symgrad.runtime.codegen import generate

SIZE = 64


def two_layer_net():
    """The training step of the README."""
    x = sg.placeholder("x", ("N", 1000), "float32")
    y = sg.placeholder("y", ("N", 10), "float32")
    w1 = sg.variable("w1", np.ones((1000, 100), "float32"))
    w2 = sg.variable("w2", np.ones((100, 10), "float32"))
    loss = sg.sum((sg.relu(x @ w1) @ w2 - y) ** 2)
    dw1, dw2 = sg.grad(loss, [w1, w2])
    return [x, y], loss, {w1: w1 - 1e-6 * dw1, w2: w2 - 1e-6 * dw2}


def relu():
    """A mask multiplied in, by what a derivative means: a selection, by bits, from the output."""
    x = sg.placeholder("x", ("N",), "float32")
    loss = sg.sum(sg.relu(x) * 3.0)
    return [x], [loss, sg.grad(loss, x)], {}


def softmax_cross_entropy():
    """A classifier with one hidden layer, its loss in a form that does not overflow."""
    x = sg.placeholder("x", ("N", 8))
    labels = sg.placeholder("labels", ("N", 3))
    w = sg.variable("w", np.ones((8, 16)))
    v = sg.variable("v", np.ones((16, 3)))
    logits = sg.tanh(x @ w) @ v
    shifted = logits - sg.stop_gradient(sg.max(logits, axis=1, keepdims=True))
    log_sum = sg.log(sg.sum(sg.exp(shifted), axis=1, keepdims=True))
    loss = -sg.mean(sg.sum(labels * (shifted - log_sum), axis=1))
    return [x, labels], [loss, *sg.grad(loss, [w, v])], {}


def views_and_masks():
    """Broadcasts, permutations, casts and merged selections: what `simplify` is for."""
    x = sg.placeholder("x", (4, 6))
    b = sg.placeholder("b", (6,))
    y = sg.where(x > 0, sg.where(x < 1, x.T.T * 2.0, 0.0), 0.0)
    loss = sg.sum((y + sg.broadcast_to(b, (4, 6))) / 4.0) + sg.sum(-b * 3.0)
    return [x, b], [loss, *sg.grad(loss, [x, b])], {}


STORIES = (two_layer_net, relu, softmax_cross_entropy, views_and_masks)


def texts():
    """The name of every file and what it should say."""
    found = {}
    for story in STORIES:
        inputs, outputs, updates = story()
        program = sg.compile(inputs, outputs, updates)
        parts = [f"# {story.__doc__}", "# as it was written", program.raw.text(origins=False)]
        for stage in program.trace.stages:
            if stage.after != stage.before:
                fired = [str(f.rule.name) for f in program.trace.fired if f.stage == stage.name]
                rules = "".join(f"\n#   {r} x {fired.count(r)}" for r in dict.fromkeys(fired))
                parts += [f"# after {stage.name}{rules}", stage.after.text(origins=False)]
        found[f"{story.__name__}.txt"] = "\n".join(parts)
        found[f"{story.__name__}_source.txt"] = without_lines(program, updates)
    return found


def without_lines(program, updates):
    """The source for `SIZE` rows, without the places it came from: they move with this file."""
    names = {n for x in program.graph.inputs for n in x.tensor.names}
    plan = lower(program.graph, dict.fromkeys(names, SIZE), list(updates))
    lines = generate(plan).text.splitlines()
    return "\n".join(re.sub(r"\s*# \w+\.py:\d+ .*", "", line) for line in lines) + "\n"

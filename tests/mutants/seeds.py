"""Graphs to mutate: of every op with its own cases, and of what ops are not alone in."""

import ast
import json

import numpy as np

import symgrad as sg
from symgrad.ir.errors import DtypeError, GraphError
from symgrad.ir.formats import saved
from symgrad.ops.select import keep_by_bits
from symgrad.testing import random_graph
from tests.test_every_op import OPS, cases_of, operand_dtypes, trial

MOST_CASES = 3
RANDOM = 25
LINES = 4  # of each document


def documents():
    """The saved form of each graph as JSON has it, by a name that is the same in every run."""
    for name, graph in graphs():
        try:
            parts = json.loads(saved.write(graph))["graphs"]
        except GraphError:  # it runs code in Python, which no file holds
            continue
        for node in (n for part in parts for n in part["nodes"]):
            node["lines"] = [i % LINES for i in node.get("lines", [])]
        yield name, parts


def graphs():
    """Each graph with its name."""
    for op in sorted(OPS, key=lambda op: op.name):
        own = op.trials.dtypes.split() or ["complex64"]
        for i, tried in enumerate(cases_of(op)[:MOST_CASES]):
            for dtype in dict.fromkeys([own[0], own[-1]]):
                dtypes = operand_dtypes(op, dtype, len(tried.shapes))
                try:
                    made = trial(op, tried.shapes, dtypes, tried.attrs)
                except DtypeError:
                    continue
                yield f"{op.name} {i} {dtype}", sg.Graph(made.results, made.xs)
    yield from compositions()
    for seed in range(RANDOM):
        inputs, outputs = random_graph(np.random.default_rng(seed), 8)
        yield f"random {seed}", sg.Graph(outputs, inputs)
        yield f"random {seed}, compiled", sg.compile(inputs, outputs).graph


def compositions():
    """Fused groups, several results, constants, names, dimensions, draws, checkpoints, scopes."""
    x = sg.placeholder("x", ("N", 4), "float32")
    w = sg.variable("w", np.ones((4, 3), "float32"))
    with sg.scope("layer"), sg.kinks("left"):
        h = sg.relu(x @ w)
    loss = sg.sum(sg.tanh(h * 2) * h)
    yield "step", sg.Graph([loss, sg.grad(loss, w)], [x, w])
    yield "step, compiled", sg.compile([x], [loss, sg.grad(loss, w)]).graph
    large = sg.constant(np.arange(40, dtype="float32").reshape(10, 4))
    yield "constants", sg.Graph([x + large[0], sg.concat([x, large]), x * np.float32(0.5)])
    yield "names", sg.Graph([sg.reshape(x, -1), sg.arange(x.shape[0]), sg.eye("N", "2*N", k=1)])
    yield "results", sg.Graph([*divmod(x, 2), *sg.linalg.qr(w.T @ w)])
    key = sg.random.key(0)
    noise = sg.nn.Dropout(key=key)
    yield "updates", sg.Graph([sg.vmap(noise)(sg.nn.BatchNorm(4, dtype="float32")(noise(x)))])
    yield "draws", sg.Graph([sg.random.normal(key, (3, 2)) + sg.random.uniform(key, (3, 2))])
    kept = sg.checkpoint(lambda v: (sg.sin(v) * v, v + 1))(x)
    checked = sg.grad(sg.sum(kept[0] * kept[1]), x)
    yield "checkpoint", sg.Graph([*kept, checked])
    yield "checkpoint, compiled", sg.compile([x], checked).graph
    mask = sg.grad(sg.sum(sg.where(x > 1, x * x, 0)), x)
    yield "mask, compiled", sg.compile([x], [mask, sg.where(x > 2, x, 0)]).graph
    yield "bits", sg.Graph([keep_by_bits(x > 0, x)])
    spectrum = sg.fft.irfft(sg.fft.rfft(x) * 2)
    yield "spectrum", sg.Graph([spectrum])
    last, rows = sg.scan(lambda c, row: (sg.tanh(c * row + loss), c[0]), w[:, 0], x)
    looped = [last, rows, *sg.grad(sg.sum(rows) + sg.sum(last), [x, w])]
    yield "loops", sg.Graph(looped)
    yield "loops, compiled", sg.compile([x], looped).graph
    chosen = sg.cond(loss > 0, lambda: sg.exp(x) * loss, lambda: x * 2)
    yield "choices", sg.Graph([chosen, *sg.grad(sg.sum(chosen), [x, w])])
    doubled = sg.while_loop(lambda c: c[0] < 9, lambda c: (c[0] * 2, c[1] * 2 + loss), (loss, x[0]))
    ended = doubled[1]
    yield "while", sg.Graph([ended, *sg.grad(sg.sum(ended), [x, w])])
    solved = sg.root(lambda v: v * v - w[0], w[1])
    yield "roots", sg.Graph([solved, sg.grad(sg.sum(solved), w)])
    image = sg.placeholder("image", (1, 2, 6, 6), "float32")
    kernel = sg.variable("kernel", np.ones((3, 2, 3, 3), "float32"))
    layer = sg.nn.max_pool(sg.relu(sg.nn.conv(image, kernel)), 2)
    yield "image, compiled", sg.compile([image], [layer, sg.grad(sg.sum(layer), kernel)]).graph


def as_text(parts):
    """The text form of the graphs of a document."""
    lines = []
    for number, graph in enumerate(parts):
        is_last = number == len(parts) - 1
        indent = "" if is_last else "    "
        if not is_last:
            lines.append(f"def graph{number}():")
        for i, node in enumerate(graph["nodes"]):
            given = [f"n{k}" for k in node["inputs"]]
            given += [f"{k}={v}" for k, v in node["attrs"].items()]
            place = " ".join(map(str, node.get("scope", [])))
            call = f"{node['op']}({', '.join(given)})"
            lines.append(f"{indent}n{i}: {node['type']} = {call}  # {place}")
        wanted = ", ".join(f"n{k}" for k in graph["outputs"]) or "()"
        lines.append(f"{indent}return {wanted}")
    return "\n".join(lines) + "\n"


def is_expression(text):
    """Whether a text can be the value of an attribute."""
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True

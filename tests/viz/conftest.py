"""Graphs to draw."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.op import Op
from symgrad.ir.origin import scope

HOSTILE = [
    "</svg><script>alert(1)</script>",
    '"];',
    "λ",
    "",
    "x" * 10_000,
    "two\nlines\r\n",
    "\u202egnp.exe",
    "\x00\x01\x1f\x7f",
    "\ud800",
    "\\N\\G\\",
    "<b>bold</b>",
    "&lt;&amp;&#60;",
    "]]>",
    "漢字",
    "\ufffe",
    "--",
    "javascript:alert(1)",
]


def build_net(layers: int = 2, *, update: bool = True) -> Graph:
    x = sg.placeholder("x", ("N", 8), "float32")
    y = sg.placeholder("y", ("N", 8), "float32")
    weights, h = [], x
    for i in range(layers):
        weights.append(sg.variable(f"w{i}", np.zeros((8, 8), "float32")))
        h = sg.relu(h @ weights[-1])
    loss = sg.sum((h - y) ** 2)
    grads = sg.grad(loss, weights)
    if update:
        grads = [w - 0.01 * g for w, g in zip(weights, grads, strict=True)]
    return sg.Graph([loss, *grads])


def fused(outputs: list[Node], params: list[Node], operands: list[Node]) -> Node:
    inner = Graph(outputs, params)
    types = tuple(y.tensor for y in outputs)
    op = Op(
        name="fused",
        infer=lambda *t, graph: None,
        kernel=lambda *a, graph: None,
        inner_graph="graph",
    )
    kind = types[0] if len(types) == 1 else types
    return Node(op, tuple(operands), (("graph", inner),), kind, operands[0].origin)


@pytest.fixture
def net() -> Callable[..., Graph]:
    """A net of `layers` layers with its gradients, and with `update` a step of descent."""
    return build_net


@pytest.fixture
def fused_graph() -> Graph:
    """tanh, then a fused multiply + add + tanh with a constant inside, then two results at once."""
    x = sg.placeholder("x", (4,), "float32")
    b = sg.variable("b", np.zeros(4, "float32"))
    p, q, r = (sg.placeholder(f"p{i}", (4,), "float32") for i in (0, 1, 0))
    one = fused([sg.tanh(p * 2.0 + q)], [p, q], [sg.tanh(x), b])
    two = fused([sg.exp(r), r * 3.0], [r], [one])
    return Graph([two[0] - two[1]])


@pytest.fixture
def hostile_graph() -> Graph:
    """Placeholders and scopes with names that no user should choose."""
    total = None
    for name in HOSTILE:
        with scope(name):
            x = sg.placeholder(name, (2,), "float32")
            total = x if total is None else sg.tanh(total) + x
    return Graph([total])


@pytest.fixture
def hostile_program(hostile_graph: Graph) -> SimpleNamespace:
    """Something with a `.graph`, and with output names of the same sort."""
    names = tuple(itertools.islice(HOSTILE, len(hostile_graph.outputs)))
    return SimpleNamespace(graph=hostile_graph, output_names=names)


@pytest.fixture
def hostile_names() -> list[str]:
    return HOSTILE

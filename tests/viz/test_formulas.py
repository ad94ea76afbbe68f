"""Formulas are as a person writes them, and names are those that the user's lines assign to."""

import numpy as np

import symgrad as sg
from symgrad.ir.node import Node
from symgrad.ir.op import REGISTRY
from symgrad_viz.formulas import formula, given_names
from tests.helpers import each

A, B = (sg.placeholder(name, ("N", 4), "float32") for name in "ab")
C, W = sg.placeholder("c", (2, 3, 4), "float32"), sg.variable("w", np.ones((4, 4), "float32"))
INDEX = sg.placeholder("i", ("K",), "int64")
KEEP = REGISTRY.builders["keep_where_positive"]
SELECT = REGISTRY.builders["select"]
WRITTEN = {
    "a @ w": A @ W,
    "a @ w.T": A @ W.T,
    "c.mT": C.mT,
    "c.transpose(1, 0, 2)": sg.permute_dims(C, (1, 0, 2)),
    "a where b > 0, else 0": SELECT(B > 0, A),
    "b where a > 0, else 0": KEEP(A, B),
    "a + b where a > 0, else b": sg.where(A > 0, A + B, B),
    "(a where b > 0, else 0) * b": SELECT(B > 0, A) * B,
    "(a - b)**2": (A - B) ** 2,
    "-a**2": -sg.square(A),
    "2 * a": 2.0 * A,
    "1e-06 * a": 1e-6 * A,
    "sum(a)": sg.sum(A),
    "sum(a, axis=1, keepdims=True)": sg.sum(A, axis=1, keepdims=True),
    "max(c, axis=(0, 2))": sg.max(C, axis=(0, 2)),
    "c[:, 1:2]": C[:, 1:2],
    "c[::-1]": C[::-1],
    "a[i]": A[INDEX],
    "c.reshape(6, 4)": sg.reshape(C, (6, 4)),
    "a as float64": sg.astype(A, "float64"),
    "w for each of (3, 4, 4)": sg.broadcast_to(W, (3, 4, 4)),
    "~isnan(a)": ~sg.isnan(A),
}


def _named(of: Node) -> str | None:
    return of.name


@each("text", WRITTEN)
def test_formula(text: str) -> None:
    assert formula(WRITTEN[text], _named) == text


def test_names_are_those_of_assignments_and_operands() -> None:
    net = sg.relu(A @ W)
    loss = sg.sum(net**2)
    dw = sg.grad(loss, [W])[0]
    kept = []
    for _ in range(2):
        same = loss * 3.0  # a name of two nodes is of none
        kept.append(same)
    step = W - 0.1 * dw
    names = given_names(sg.Graph([step, *kept]))
    assert names == {net: "net", loss: "loss", dw: "dw", step: "step"}


def test_formula_of_what_runs_writes_groups_out() -> None:
    loss = sg.sum(sg.relu(A - B) ** 2)
    program = sg.compile([A, B], [loss, sg.grad(loss, [A])[0]])
    (group,) = (n for n in program.graph.nodes if n.inner_graph is not None)
    assert formula(group, _named).startswith("sum(relu(a - b)**2); ")
    assert len(formula(group, _named, 20)) == 20

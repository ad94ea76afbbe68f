"""Writes what is made of structured matrices into `symgrad/rules/STRUCTURE.md`.

Run it after a rule or a fact has changed: python -m tools.structure_table. Each expression is
compiled as it is written and by all rules; the tests compare the numbers.
"""

from __future__ import annotations

import json

import numpy as np

import symgrad as sg
from tools.rules_table import ROOT, row, updated, write
from tools.structure_peers import RECORDED

PAGE = ROOT / "symgrad" / "rules" / "STRUCTURE.md"
BEGIN, END = "<!-- structure: begin -->", "<!-- structure: end -->"
SIZE, RANK = 60, 4
# What is written in the table, in the names of `values`.
EXPRESSIONS = (
    "solve(x @ x.T + eye, b)",
    "solve(x.T @ x + 2.0 * eye, b)",
    "solve(x @ x.T + diag(d), b)",
    "solve(x @ x.T + exp(s) * eye, b)",
    "solve(x @ diag(d) @ x.T + eye, b)",
    "solve((x @ x.T) * (a @ a.T) + eye, b)",
    "solve(spd, b)",
    "solve(spd.T, b)",
    "solve(inv(spd), b)",
    "inv(spd) @ b",
    "inv(x @ x.T + eye)",
    "logdet(x @ x.T + eye)",
    "det(spd)",
    "b @ solve(spd, b) + logdet(spd)",
    "grad(b @ solve(spd, b) + logdet(spd), a)",
    "solve(expm((x + x.T) / 60), b)",
    "cholesky(cholesky(spd) @ cholesky(spd).T)",
    "solve(cholesky(spd), b)",
    "solve(cholesky(spd).T, b)",
    "inv(cholesky(spd))",
    "logdet(cholesky(spd))",
    "solve(tril(a), b)",
    "solve(triu(a), b)",
    "solve(tril(a).T, b)",
    "solve(tril(a) @ tril(a), b)",
    "inv(tril(a))",
    "det(tril(a))",
    "logdet(triu(a))",
    "solve(diag(d), b)",
    "inv(diag(d))",
    "diag(d) @ a",
    "a @ diag(d)",
    "cholesky(diag(d))",
    "logdet(diag(d))",
    "solve(qr(a)[0], b)",
    "inv(eigh(spd)[1])",
    "solve(kron(k, l), v)",
    "inv(kron(k, l))",
    "logdet(kron(k, l))",
    "kron(k, l) @ v",
    "solve(diag(exp(d)) + u @ u.T, b)",
    "solve(3.0 * eye + u @ w.T, b)",
    "logdet(diag(exp(d)) + u @ u.T)",
    "inv(inv(a))",
    "trace(a @ x)",
    "solve(assume(x, 'orthogonal'), b)",
)


def values():
    """Arrays for the names of the expressions."""
    rng = np.random.default_rng(0)
    a, x = rng.standard_normal((2, SIZE, SIZE)) / np.sqrt(SIZE)
    eye = np.eye(SIZE)
    return {
        "a": a + 2 * eye,
        "x": x,
        "b": rng.standard_normal(SIZE),
        "d": rng.random(SIZE) + 0.5,
        "s": np.array(0.3),
        "u": rng.standard_normal((SIZE, RANK)),
        "w": rng.standard_normal((SIZE, RANK)) / SIZE,
        "k": rng.standard_normal((6, 6)) + 4 * np.eye(6),
        "l": rng.standard_normal((10, 10)) + 6 * np.eye(10),
        "v": rng.standard_normal((60, 1)),
    }


SOLVERS = {
    "solve": "LU",
    "inv": "LU inverse",
    "slogdet": "LU",
    "det": "LU",
    "cholesky": "Cholesky",
    "solve_triangular": "substitution",
    "inv_triangular": "triangular inverse",
    "eigh": "eigenvectors",
    "qr": "QR",
    "expm": "expm",
    "matmul": "products",
}


def built(text):
    """The placeholders of an expression and its node."""
    inputs = {name: sg.placeholder(name, v.shape) for name, v in values().items()}
    functions = {f: getattr(sg.linalg, f) for f in LINALG.split()}
    functions |= {f: getattr(sg, f) for f in MAIN.split()}
    a = inputs["a"]
    made = {"eye": sg.eye(SIZE), "spd": sg.assume(a @ a.T, "positive_definite")}
    return list(inputs.values()), eval(text, {**inputs, **functions, **made})


LINALG = "solve inv logdet det cholesky expm qr eigh kron trace"
MAIN = "exp tril triu diag assume grad"


def compiled(text):
    """An expression as it is written and as all rules have it, both as programs."""
    inputs, node = built(text)
    options = {"exact": "reals", "backend": "numpy", "threads": 1}
    return sg.compile(inputs, node, passes=(), **options), sg.compile(inputs, node, **options)


def parts(graph):
    """The factorisations and products of a graph, each with how often it is done."""
    return counted([SOLVERS[n.op.name] for n in graph.nodes if n.op.name in SOLVERS])


def counted(names):
    """Names in words, each with how often it is there."""
    listed = [f"{names.count(n)} × {n}" if names.count(n) > 1 else n for n in dict.fromkeys(names)]
    return ", ".join(listed) or "none"


def listed():
    """A row for each expression."""
    peer = json.loads(RECORDED.read_text(encoding="utf-8"))
    heads = "expression", "what runs", "flops as written", "flops", f"PyTensor {peer['version']}"
    lines = [row(*heads), "|---|---|--:|--:|---|"]
    for text in EXPRESSIONS:
        _, best = compiled(text)
        cost = best.cost()
        flops = (f"{c.flops:,}" for c in (cost.before, cost.after))
        lines.append(row(f"`{text}`", parts(best.graph), *flops, peer["runs"][text]))
    return lines


def texts():
    """The page with the table as it should be, by its path."""
    return {PAGE: updated(PAGE.read_text(encoding="utf-8"), listed(), BEGIN, END)}


if __name__ == "__main__":
    write(texts())

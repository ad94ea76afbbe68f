"""Laws against the figures of `torch.distributions`, in float64: values, gradients, divergences.

They were computed once, with the version that the file names.
"""

import json
import math
from inspect import ismethod
from pathlib import Path

import numpy as np

import symgrad as sg
from tests.helpers import each

L = sg.stats
REFERENCE = json.loads((Path(__file__).parent / "torch_laws.json").read_text())
# Where torch has no more digits: of its Bessel functions, and of polygamma in gradients.
ROUGH = {("VonMises", "log_prob"), ("VonMises", "variance")} | {
    (name, "entropy") for name in ("Beta", "Dirichlet", "StudentT")
}


def made(name, parameters):
    """Our law of these parameters, in the order of the file."""
    if name == "Binomial":
        return L.Binomial(9, *parameters)
    if name == "MultivariateNormal":
        return L.MultivariateNormal(parameters[0], scale_tril=parameters[1])
    return getattr(L, name)(*parameters)


def nodes_of(parameters, name):
    return [sg.placeholder(f"{name}{i}", np.shape(p)) for i, p in enumerate(parameters)]


def compared(outputs, nodes, at, expected, tolerance):
    """Outputs at parameters, in the order of what is expected; None is not compared."""
    found = sg.compile(nodes, outputs)(*map(np.asarray, at))
    for mine, theirs in zip(found, expected, strict=True):
        if theirs is not None:
            np.testing.assert_allclose(mine, theirs, tolerance, 1e-12)


PARTS = [(n, part) for n, row in REFERENCE["laws"].items() for part in row if part != "parameters"]


@each(("name", "part"), PARTS, ids=lambda v: v)
def test_a_law_is_torchs(name, part):
    parameters, row = REFERENCE["laws"][name]["parameters"], REFERENCE["laws"][name][part]
    # torch counts from 0 the failures before the first success, and we the trials.
    shift = int(name == "Geometric")
    nodes = nodes_of(parameters, "p")
    found = getattr(made(name, nodes), part)
    at = list(parameters)
    if row["at"] is not None:
        x = sg.placeholder("x", np.shape(row["at"]))
        nodes, at = [*nodes, x], [*at, row["at"]]
        found = found(x + shift)
    else:
        found = found() if ismethod(found) else found - shift * (part in ("mean", "mode"))
    wrt = nodes[: len(row["slopes"])]
    slopes = sg.grad(sg.sum(found), wrt, disconnected="zero")
    if name == "Categorical":  # torch normalises the probabilities, and the gradients thereby
        slopes = [s - sg.sum(s * wrt[0]) for s in slopes]
    tolerance = 1e-6 if (name, part) in ROUGH else 1e-9
    compared([found, *slopes], nodes, at, [row["value"], *row["slopes"]], tolerance)


@each("pair", REFERENCE["kl"])
def test_a_divergence_is_torchs(pair):
    row = REFERENCE["kl"][pair]
    first, second = pair.split()
    ps, qs = nodes_of(row["p"], "p"), nodes_of(row["q"], "q")
    found = L.kl(made(first, ps), made(second, qs))
    nodes, at = [*ps, *qs], [*row["p"], *row["q"]]
    if row["value"] == "inf":
        assert sg.compile(nodes, found)(*map(np.asarray, at)) == math.inf
        return
    slopes = sg.grad(found, nodes, disconnected="zero")
    if first == "Categorical":
        slopes = [s - sg.sum(s * p) for s, p in zip(slopes, nodes, strict=True)]
    compared([found, *slopes], nodes, at, [row["value"], *row["slopes"]], 1e-9)


def test_a_mixture_is_torchs():
    row = REFERENCE["mixture"]
    nodes = nodes_of(row["parameters"], "p")
    x = sg.placeholder("x", np.shape(row["at"]))
    law = L.Mixture(L.Categorical(logits=nodes[0]), L.Normal(*nodes[1:]))
    for part in ("log_prob", "cdf"):
        y = getattr(law, part)(x)
        slopes = sg.grad(sg.sum(y), [*nodes, x])
        expected = [row[part]["value"], *row[part]["slopes"]]
        compared([y, *slopes], [*nodes, x], [*row["parameters"], row["at"]], expected, 1e-10)
    moments = [row["mean"], row["variance"]]
    compared([law.mean, law.variance], nodes, row["parameters"], moments, 1e-12)

"""Type checkers know the public names: mypy reads this file with the sources, and it runs, too.

A misspelt name that was taken would make its `type: ignore` one too many, which mypy reports. To
pyright the right uses and the wrong ones are given in a file.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pytest

import symgrad as sg

x = sg.placeholder("x", ("N", 3))


def test_functions_and_methods_give_nodes() -> None:
    assert_type(x, sg.Node)
    assert_type(sg.sum(x, axis=0), sg.Node)
    assert_type(sg.relu(x), sg.Node)
    assert_type(sg.cov(x), sg.Node)  # of a family that is declared when it is used
    assert_type(sg.linalg.det(sg.diag(x[0])), sg.Node)
    assert_type(sg.fft.rfft(x), sg.Node)
    assert_type(x.sum(axis=0), sg.Node)
    assert_type(x.T, sg.Node)
    assert_type(x + 1, sg.Node)
    assert_type(2 @ x[0] if x.ndim > 2 else x[0] < 1, sg.Node)


def test_programs_variables_dtypes_and_errors_have_their_types() -> None:
    w = sg.variable("w", [1.0, 2.0, 3.0])
    program = sg.compile([x], sg.sum(x * w), updates={w: w + 1})
    assert_type(w, sg.Variable)
    assert_type(program, sg.Program)
    assert_type(sg.float32, np.dtype[Any])
    assert_type(sg.ShapeError("no"), sg.ShapeError)
    assert_type(sg.nn.Linear(3, 2, key=sg.random.key(0)), sg.nn.Linear)


def test_laws_and_special_functions_have_their_types() -> None:
    law = sg.stats.Gamma(2.0, scale=3.0)
    assert_type(law, sg.stats.Gamma)
    assert_type(law.mean, sg.Node)
    assert_type(law.sample(sg.random.key(0), (3,)), sg.Node)
    assert_type(sg.stats.Normal(0.0, 1.0).log_prob(x), sg.Node)
    assert_type(sg.stats.kl(law, sg.stats.Exponential()), sg.Node)
    assert_type(sg.stats.Mixture([0.5, 0.5], [law, law]).cdf(x), sg.Node)
    assert_type(sg.special.gammaln(x), sg.Node)
    assert_type(sg.special.jv(0.5, x), sg.Node)


def test_a_law_of_other_parameters_is_refused() -> None:
    with pytest.raises(TypeError):
        sg.stats.Normal(0.0, sigma=1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        sg.stats.Gamma()  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        sg.stats.Normall()  # type: ignore[attr-defined]


def test_a_misspelt_name_is_refused() -> None:
    with pytest.raises(AttributeError):
        sg.tahn(x)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        x.summ()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        sg.linalg.dett(x)  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        sg.sum(x, axes=0)  # type: ignore[call-arg]


RIGHT = [
    "x.sum(axis=0)", "x.mean(0, keepdims=True)", "x.reshape(3, -1)", "x.reshape((3, -1))",
    "x.T @ x", "x.transpose(1, 0)", "x.astype('float32').clip(0, 1)", "1 - x**2 / 3",
    "x.real", "x[0] < 1", "x.argmax()", "x.cumsum(0)", "x.at[0].set(1)", "sg.sum(x, axis=0)",
    "sg.relu(x)", "sg.quantile(x, 0.5, weights=[1.0])", "sg.linalg.det(x)",
    "sg.einsum('ij->j', x)",
    "sg.fft.rfft(x)", "sg.special.gammaln(x)", "sg.stats.Normal(0.0, 1.0).log_prob(x)",
    "sg.stats.Mixture([1.0], [sg.stats.Beta(1.0, 2.0)]).icdf(0.5)",
]  # fmt: skip
WRONG = [
    "x.summ()", "x.reshape(3, ordr='C')", "x.mean(keepdim=True)", "x.swapaxes(0)", "sg.tahn(x)",
    "x.var(1, 2, 3, 4, 5, 6)", "sg.sum(x, axes=0)", "sg.linalg.dett(x)", "sg.special.gamaln(x)",
    "sg.stats.Normall()", "sg.stats.Normal(0.0, sigma=1.0)", "sg.stats.Normal().log_probb(x)",
]  # fmt: skip


def test_pyright_knows_methods_and_names(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    root = Path(__file__).parents[1]
    paths = {"extraPaths": [str(root), str(root / "viz")], "include": ["uses.py"]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(paths), "utf-8")
    begin = ["from typing import assert_type", "import symgrad as sg", "x = sg.placeholder('x', 3)"]
    uses = [*begin, *(f"assert_type({use}, sg.Node)" for use in RIGHT), *WRONG]
    (tmp_path / "uses.py").write_text("\n".join(uses), "utf-8")
    command = [sys.executable, "-m", "pyright", "-p", str(tmp_path), "--outputjson"]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=300)
    told = json.loads(asked.stdout)["generalDiagnostics"]
    wrong = {uses[part["range"]["start"]["line"]] for part in told if part["severity"] == "error"}
    assert wrong == {*WRONG}

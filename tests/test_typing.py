"""Type checkers know the public names: mypy reads this file with the sources, and it runs, too.

A misspelt name that was taken would make its `type: ignore` one too many, which mypy reports. Right
uses and wrong ones are given to both checkers in files, with the README's programs and examples.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pytest

import symgrad as sg

ROOT = Path(__file__).parents[1]
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
    "x @ w", "net(x)", "sg.grad(loss, w)", "sg.grad(loss, w, kinks='left')",
    "sg.hessian(loss, w, disconnected='zero')", "sg.hvp(loss, w, w)", "sg.placeholder('y', 3)",
    "sg.nn.cross_entropy(x, x, reduction='sum')", "sg.nn.BatchNorm(3)(x)",
]  # fmt: skip
OTHER = {
    "sg.compile(x, loss, exact='bits', partial=True)": "sg.Program",
    "sg.value_and_grad(loss, w)": "tuple[sg.Node, sg.Node]",
    "sg.compile(x, loss).render('x.svg', color_by='cost')": "Path",
    "several[0](x)": "Any",
    "own(x, x)": "tuple[sg.Node, int]",
}
# By what is wrong: a name, an option, a grade or another choice, what a call gives or takes.
WRONG = [
    "x.summ()", "sg.tahn(x)", "sg.linalg.dett(x)", "sg.special.gamaln(x)", "sg.stats.Normall()",
    "sg.stats.Normal().log_probb(x)", "sg.placehoder('x', 3)", "sg.nn.Liner(3, 2)", "sg.float23",
    "net.paramters()", "sg.compile(x, loss).plna", "(x @ w).tarnspose()",
    "x.reshape(3, ordr='C')", "x.mean(keepdim=True)", "sg.sum(x, axes=0)",
    "sg.stats.Normal(0.0, sigma=1.0)", "sg.nn.Linear(3, 2, kye=1)", "sg.batches(x, siz=3)",
    "sg.placeholder('x', 3, dtpye='float32')", "sg.grad(loss, w, disconected='zero')",
    "sg.optim.Adam(net, learning_rate=1.0)", "sg.optim.SGD(net, lr=0.1, clip_nrom=1.0)",
    "sg.fit(sg.compile(x, loss), epoch=3)", "sg.compile(x, loss, exat='bits')",
    "sg.compile(x, loss).render('x.svg', colour_by='cost')", "sg.vmap(sg.sum, in_axis=0)",
    "sg.compile(x, loss).explore('p.html', embed_sorce=False)", "sg.render(x, 'x.svg', titel='')",
    "sg.compile(x, loss, exact='bit')", "sg.rule(exact='roundng')",
    "sg.compile(x, loss, backend='cuda')", "sg.grad(loss, w, disconnected='zeros')",
    "sg.grad(loss, w, kinks='lft')", "sg.nn.cross_entropy(x, x, reduction='avg')",
    "sg.compile(x, loss).render('x.svg', color_by='costs')",
    "x.swapaxes(0)", "x.var(1, 2, 3, 4, 5, 6)", "sg.placeholder('x')", "sg.hessian(loss)",
    "sg.hessian(loss, w).sumn()", "net(x).sumn()", "net(x, x)", "own(x)", "own(x, x)[2]",
    "sg.derivation(loss, w, ordr=2)", "sg.derivation(loss, w, exact='bit')",
    "sg.derivation(3.0, w)", "sg.optim.Adm(net)", "sg.random.norml(1)",
]  # fmt: skip
BEGIN = """from pathlib import Path
from typing import Any, assert_type
import numpy as np
import symgrad as sg

class Own(sg.nn.Module):
    def forward(self, x: sg.Node, y: sg.Node) -> tuple[sg.Node, int]:
        return x + y, 2

x = sg.placeholder("x", ("N", 3))
w = sg.variable("w", np.ones((3, 2)))
loss = sg.sum(x @ w)
net = sg.nn.Linear(3, 2, key=sg.random.key(0))
own = Own()
several: list[sg.nn.Module] = [own]
"""
# The loss of the last step of a loop is read behind it.
QUIET = {
    "reportPossiblyUnboundVariable": False,
    "reportPossiblyUnbound": False,
    "reportMissingModuleSource": False,
}
EXAMPLES = ("01", "02", "03", "05", "06", "07", "08", "09", "14", "15")
UNTYPED = (
    "# mypy: allow-untyped-defs, allow-untyped-calls, allow-any-generics, no-warn-return-any\n"
    '# mypy: disable-error-code="no-untyped-def"\n'
)


def programs(folder: Path) -> list[str]:
    """Files of uses, right and wrong, of programs of pages, and of examples; the first's lines.

    Those of a script need no types of their own.
    """
    right = [f"assert_type({use}, sg.Node)" for use in RIGHT]
    right += [f"assert_type({use}, {kind})" for use, kind in OTHER.items()]
    uses = [*BEGIN.splitlines(), *right, *WRONG]
    (folder / "uses.py").write_text("\n".join(uses), "utf-8")
    pages = [ROOT / "README.md", *sorted((ROOT / "docs" / "learn").glob("own-*.md"))]
    block = re.compile(r"```(?:python|{code-cell})\n(import .*?)```", re.DOTALL)
    blocks = [b for page in pages for b in block.findall(page.read_text("utf-8"))]
    assert len(blocks) > 1
    for i, block in enumerate(blocks):
        (folder / f"readme_{i}.py").write_text(block, "utf-8")
    for path in (ROOT / "examples").glob("*.py"):
        if path.name.startswith(EXAMPLES):
            (folder / f"example_{path.name}").write_text(UNTYPED + path.read_text("utf-8"), "utf-8")
    return uses


def assert_only_the_wrong_ones(told: list[tuple[str, int, str]], uses: list[str]) -> None:
    """Of all faults, in a file at a line, there is one for each wrong use, and no other."""
    others = [fault for fault in told if fault[0] != "uses.py"]
    assert not others, "\n".join(map(str, others))
    found = {uses[line - 1] for _, line, _ in told}
    assert found == {*WRONG}, "these too, or not: " + "; ".join(found ^ {*WRONG})


def test_pyright_passes_what_is_right_and_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    uses = programs(tmp_path)
    paths = {"extraPaths": [str(ROOT), str(ROOT / "viz")], "include": ["."], **QUIET}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(paths), "utf-8")
    command = [sys.executable, "-m", "pyright", "-p", str(tmp_path), "--outputjson"]
    command += ["--pythonpath", sys.executable]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=300)
    told = [
        (Path(part["file"]).name, part["range"]["start"]["line"] + 1, part["message"])
        for part in json.loads(asked.stdout)["generalDiagnostics"]
        if part["severity"] == "error"
    ]
    assert_only_the_wrong_ones(told, uses)


def test_mypy_passes_what_is_right_and_nothing_else(tmp_path: Path) -> None:
    """The bodies of the sources are not looked into: they are checked when they are linted."""
    pytest.importorskip("mypy")
    uses = programs(tmp_path)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml"]
    command += ["--follow-imports", "silent", "--cache-dir", os.devnull]
    command += map(str, sorted(tmp_path.glob("*.py")))
    asked = subprocess.run(
        command, capture_output=True, text=True, timeout=600, cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT / "viz")},
    )  # fmt: skip
    found = re.findall(r"([^/\s]+\.py):(\d+): error: (.*)", asked.stdout)
    assert asked.stderr == ""
    assert_only_the_wrong_ones([(file, int(line), text) for file, line, text in found], uses)

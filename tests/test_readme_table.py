"""The right column of the table for those who come from PyTorch runs, row after row."""

import re
from pathlib import Path

import numpy as np
import pytest

import symgrad as sg

PAGE = Path(__file__).parent.parent / "docs" / "learn" / "from-pytorch.md"
TABLE = PAGE.read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")]
    for line in TABLE.splitlines()
    if line.startswith("| ") and "`" in line
]


def code(cell):
    """The lines of a cell."""
    return "\n".join(line for line in re.findall(r"`([^`]*)`", cell) if line != "…")


@pytest.fixture
def names(tmp_path):
    """What the rows take as given."""
    rng = np.random.default_rng(0)
    return {
        "sg": sg, "images": rng.standard_normal((96, 64)), "labels": np.arange(96) % 10,
        "w": sg.variable("w", np.ones((64, 2))), "y": sg.placeholder("y", ("N", 2)),
        "Y": np.zeros((5, 2)), "path": tmp_path / "net.npz",
    }  # fmt: skip


def test_the_seven_things_run(names, capsys):
    assert len(ROWS) == 7
    for does, _, symgrad in ROWS:
        X = names["X"] = names["images"][:5]
        if does.startswith("update"):
            names["kept"] = names["loss"], names["x"]
            names["loss"] = sg.sum((names["x"] @ names["w"] - names["y"]) ** 2)
        exec(code(symgrad), names)
        if does.startswith("update"):
            names["loss"], names["x"] = names["kept"]
        names["X"] = X
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert names["labels"].shape == (5,)


@pytest.mark.parametrize("page", ["from-jax", "from-graphs"])
def test_what_to_write_runs(page, capsys):
    """The last column of the tables for those who come from elsewhere, row after row."""
    table = (PAGE.parent / f"{page}.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").rpartition(" | ")[2] for line in table.splitlines() if "| `" in line]
    names = {"sg": sg, "np": np, "f": lambda x: sg.sum(sg.sin(x) * x)}
    for row in rows:
        exec(code(row), names)
    assert len(rows) > 11
    assert capsys.readouterr().out.startswith("n0: ")

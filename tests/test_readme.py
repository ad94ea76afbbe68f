"""The README shows what its own first example prints."""

import difflib
import linecache
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import symgrad as sg
from tools import rules_table

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLE, LISTING = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)[:2]


@pytest.fixture
def source(tmp_path, monkeypatch):
    """The program that the first block of code makes, as text."""
    assert EXAMPLE.count("range(500)") == 1
    script = tmp_path / "train.py"
    script.write_text(EXAMPLE.replace("range(500)", "range(2)"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    linecache.checkcache("train.py")  # of which another test may have read one of its own
    return runpy.run_path("train.py")["step"].source


def test_the_listing_is_what_the_example_prints(source):
    """With its comments: relu's backward is told as vjp(relu), of relu's line."""
    assert LISTING.startswith("def step(")
    assert source.endswith(LISTING)
    (backward,) = (line for line in LISTING.splitlines() if "keep_where_positive(" in line)
    assert "# train.py:10 sg.relu(x @ w1)  vjp(relu), " in backward


@pytest.fixture(scope="module")
def tables():
    return rules_table.texts()


@pytest.mark.parametrize("path", [rules_table.SHORT, rules_table.WHOLE], ids=["short", "whole"])
def test_the_table_of_rules_is_that_of_the_rules(path, tables):
    kept = path.read_text(encoding="utf-8").splitlines()
    wanted = tables[path].splitlines()
    stale = [*difflib.unified_diff(kept, wanted, "as it is", "as the rules are", n=0, lineterm="")]
    assert not stale, "\n".join([*stale[:20], "run: python -m tools.rules_table"])


def test_every_rule_is_in_the_table_and_twins_with_what_they_are_made_of():
    whole = rules_table.WHOLE.read_text(encoding="utf-8")
    assert all(f"| `{rule.name}` |" in whole for rule in rules_table.RULES)
    (line,) = (line for line in whole.splitlines() if "| `minimum_of_same` |" in line)
    assert "Twin of `maximum_of_same`." in line


def test_the_figures_are_those_of_a_run_and_the_page_is_short():
    text = README.read_text(encoding="utf-8")
    date = re.search(r"benchmarks/results/(\d{4}-\d\d-\d\d)\.md", text)[1]
    run = (ROOT / "benchmarks" / "results" / f"{date}.md").read_text(encoding="utf-8")
    rows = [line for line in text.partition("<!-- benchmarks -->")[2].splitlines() if "|" in line]
    assert len(rows) > 5
    assert all(row in run.splitlines() for row in rows)
    assert len(text.splitlines()) <= 150


def test_what_there_is_to_build_with_is_listed():
    table = (ROOT / "docs" / "lookup" / "layers.md").read_text(encoding="utf-8")
    listed = {*re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", table)))}
    others = {"mse", "initial", "Optimizer", "clip_by_norm", "clip_by_value"}
    assert not {*sg.nn.__all__, *sg.optim.__all__} - others - listed


# ---- CONTRIBUTING ---------------------------------------------------------------------------


def test_the_rule_that_is_shown_is_a_rule():
    shown = next(t for t in re.findall(r"```python\n(.*?)```", CONTRIBUTING, re.S) if "@rule" in t)
    assert shown in (ROOT / "symgrad" / "rules" / "arithmetic.py").read_text(encoding="utf-8")


def test_a_false_rule_of_ones_own_fails_as_is_shown(tmp_path):
    """In a process of its own: nothing else has loaded the ops."""
    script, message = re.search(
        r"```python\n(import symgrad.*?)```.*?```\n(.*?)```", CONTRIBUTING, re.S
    ).groups()
    path = tmp_path / "own.py"
    path.write_text(script, encoding="utf-8")
    ran = subprocess.run([sys.executable, path], cwd=ROOT, capture_output=True, text=True,
                         env={"PYTHONPATH": str(ROOT)})  # fmt: skip
    assert message in ran.stderr
    path.write_text(script.replace('"rounding"', '"reals"'), encoding="utf-8")
    subprocess.run([sys.executable, path], cwd=ROOT, check=True, env={"PYTHONPATH": str(ROOT)})

"""The site's pages: their code runs when it is built, and what they are made of is sound."""

import ast
import re
import sys
from pathlib import Path

import nbformat
import pytest

import symgrad as sg
from docs.site.notebooks import notebook

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    p for p in DOCS.rglob("*.md") if not {"_build", "runs"} & {*p.relative_to(DOCS).parts}
)
TUTORIALS = [p for p in PAGES if p.parent.name == "learn" and "{code-cell}" in p.read_text("utf-8")]
# Code that a page shows and does not run is another library's, or a command; it says so.
SHOWN = {"{code-block} py", "{code-block} sh", "sh", "text"}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(DOCS)))
def test_code_of_a_page_runs_and_its_links_lead_somewhere(page):
    text = page.read_text("utf-8")
    fences = {f.strip() for f in re.findall(r"^```(.+)$", text, re.MULTILINE)}
    assert fences <= SHOWN | {"{code-cell}", "{toctree}", "{literalinclude} tiny.py"}
    assert "://" not in re.sub(r"https://(arxiv|doi|en\.wikipedia)\.org", "", text)
    text = re.sub(r"^```\{code-cell\}.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "/api/" not in target and not target.startswith(("api/", "runs/", "https:")):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda p: p.stem)
def test_a_tutorial_is_a_notebook(page):
    text = page.read_text("utf-8")
    made = nbformat.reads(notebook(text), as_version=4)
    nbformat.validate(made)
    code = [c.source for c in made.cells if c.cell_type == "code"]
    fail = [c for c in made.cells if "raises-exception" in c.metadata.get("tags", ())]
    assert len(fail) == text.count("\n:raises:")
    cells = [cell.partition("\n```\n")[0] for cell in text.split("```{code-cell}\n")[1:]]
    assert code == [re.sub(r"\A(:.*\n)*", "", cell).strip("\n") for cell in cells]
    assert not any(c.source.startswith((":", "```{")) or ".md)" in c.source for c in made.cells)


def test_each_page_is_listed():
    listed = set()
    for page in PAGES:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            names = [n for n in tree.splitlines() if n and not n.startswith(":")]
            listed |= {(page.parent / f"{n}.md").resolve() for n in names}
    assert {*PAGES} - listed == {DOCS / "index.md"}


def test_notebooks_need_what_their_index_installs():
    """They run in an empty folder: nothing of a checkout is imported."""
    (command,) = re.findall("pip install -q (.*)", (DOCS / "learn/index.md").read_text("utf-8"))
    names = {"scikit-learn": "sklearn"}
    there = {"symgrad", "numpy", *(names.get(n, n) for n in command.split())}
    for page in TUTORIALS:
        cells = nbformat.reads(notebook(page.read_text("utf-8")), as_version=4).cells
        code = "\n".join(c.source for c in cells if c.cell_type == "code")
        for found in ast.walk(ast.parse(code)):
            named = [a.name for a in found.names] if isinstance(found, ast.Import) else []
            named += [found.module] if isinstance(found, ast.ImportFrom) else []
            used = {n.partition(".")[0] for n in named}
            assert used <= there | sys.stdlib_module_names, page


def test_each_error_has_its_case_and_its_mend():
    page = (DOCS / "lookup/errors.md").read_text("utf-8")
    told = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE))
    errors = {n for n in dir(sg) if n.endswith("Error")} - {"SymgradError"}
    assert errors == set(told)
    for name in sorted(errors):
        assert f":raises: {name}\n" in told[name], name
        assert "**Mend**: " in told[name], name

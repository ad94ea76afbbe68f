"""The site's pages: their code runs when it is built, and what they are made of is sound."""

import re
from pathlib import Path

import nbformat
import pytest

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
        if "/api/" not in target and not target.startswith(("api/", "https:")):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda p: p.stem)
def test_a_tutorial_is_a_notebook(page):
    text = page.read_text("utf-8")
    made = nbformat.reads(notebook(text), as_version=4)
    nbformat.validate(made)
    code = [c.source for c in made.cells if c.cell_type == "code"]
    fail = [c for c in made.cells if "raises-exception" in c.metadata.get("tags", ())]
    assert len(fail) == text.count("\n:raises:")
    assert len(code) == text.count("```{code-cell}")
    assert not any(c.source.startswith((":", "```{")) or ".md)" in c.source for c in made.cells)


def test_each_page_is_listed():
    listed = set()
    for page in PAGES:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            names = [n for n in tree.splitlines() if n and not n.startswith(":")]
            listed |= {(page.parent / f"{n}.md").resolve() for n in names}
    assert {*PAGES} - listed == {DOCS / "index.md"}

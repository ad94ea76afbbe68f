"""The files and names of which the documents speak exist."""

import re
from importlib import import_module
from pathlib import Path

import symgrad as sg
from tests.helpers import each

ROOT = Path(sg.__file__).parent.parent
FOLDERS = ("symgrad", "viz", "tools", "tests", "benchmarks", "examples", "docs")
MADE = {"results", "runs", "_build"}
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted(p for f in FOLDERS for p in (ROOT / f).rglob("*.md") if not MADE & {*p.parts}),
]
BASES = (ROOT, ROOT / "symgrad", *(f for f in (ROOT / "symgrad").iterdir() if f.is_dir()))
# Names that are gone, of which the changelog says so, and files that examples write.
GONE = {"CHANGELOG.md": {"sg.select", "sg.keep_where_positive", "sg.size_of"}}
WRITTEN = {"out/", "docs/_build/html", "FILE.py", "train.py", "step.py", "net.py", "measure.py"}
WRITTEN |= {"t.json", "p.py", "g.json"}
WRITTEN |= {"api/index.rst", "api/stats.rst", "runs/programs.md"}  # made with the site


def paths(text):
    """What looks like a path in `code` or is the target of a link; blocks that run are run."""
    text = re.sub(r"^```\{code-cell\}.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    for code in re.findall(r"`([^`\n]+)`", text):
        yield from re.findall(r"[\w./-]*\w\.(?:pyi?|md|json|toml|yml)\b|[\w./-]+/(?!\w)", code)
    yield from (p for p in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in p)


def missing_paths(text, home):
    """The paths that are neither in the document's folder, nor in the root, nor on a floor."""
    bases = (home, *BASES)
    names = {p.name for f in FOLDERS for p in (ROOT / f).rglob("*.py")}
    return {p for p in paths(text) if p not in names and not any((b / p).exists() for b in bases)}


def missing_names(text):
    """The dotted names of symgrad that cannot be looked up."""
    return {n for n in re.findall(r"\b(?:sg|symgrad)(?:\.[A-Za-z_]\w*)+", text) if not exists(n)}


def exists(name):
    found = sg
    for part in name.split(".")[1:]:
        try:
            found = getattr(found, part, None) or import_module(f"{found.__name__}.{part}")
        except (ImportError, AttributeError):
            return False
    return True


@each("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_files_and_names_of_a_document_exist(document):
    text, name = document.read_text(encoding="utf-8"), str(document.relative_to(ROOT))
    assert missing_paths(text, document.parent) <= WRITTEN
    assert missing_names(text) == GONE.get(name, set())


def test_a_path_and_a_name_that_are_gone_are_found():
    text = "`runtime/kept.py`, `ir/`, [a](gone.md), `sg.select`, `symgrad.ir.node`, `sg.nn.nothing`"
    assert missing_paths(text, ROOT) == {"runtime/kept.py", "gone.md"}
    assert missing_names(text) == {"sg.select", "sg.nn.nothing"}

"""Pages that are made: the functions and classes, what the package's own pages say, notebooks."""

import ast
import json
import re
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx

import symgrad as sg
from benchmarks import tables
from docs.site.notebooks import notebook
from symgrad.ir.errors import SymgradError
from symgrad.ir.op import REGISTRY
from tools import kinks_table

ROOT = Path(__file__).parents[2]
# Pages of the package that stand on the site, by their path.
INCLUDED = {
    "symgrad/ops/README.md": "lookup/functions",
    "symgrad/ops/NUMPY.md": "lookup/numpy",
    "symgrad/rules/README.md": "lookup/rules",
    "symgrad/rules/STRUCTURE.md": "lookup/structure",
    "symgrad/stats/README.md": "lookup/laws",
    "symgrad/autodiff/KINKS.md": "understand/kinks",
    "symgrad/README.md": "understand/house",
    "benchmarks/README.md": "lookup/how-it-is-measured",
    "viz/gallery/README.md": "lookup/gallery",
    "CHANGELOG.md": "lookup/changes",
}
SPACES = [
    "nn",
    "optim",
    "stats",
    "linalg",
    "sparse",
    "fft",
    "random",
    "special",
    "testing",
    "export",
]


def _include(app: Sphinx, docname: str, content: list[str]) -> None:
    """Put the text of a file in the place of `<!-- include: path -->`; offer tutorials to keep."""
    content[0] = re.sub(
        r"^<!-- include: (\S+) -->$", lambda m: _text(docname, m[1]), content[0], flags=re.MULTILINE
    )
    for mark, made in {"<!-- ratios -->": _ratios, "<!-- slopes -->": _slopes}.items():
        if mark in content[0]:
            content[0] = content[0].replace(mark, made())
    if docname.startswith("learn/") and "{code-cell}" in content[0]:
        path = ROOT / "docs" / "_build" / "notebooks" / f"{docname.rpartition('/')[2]}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(notebook(content[0]), encoding="utf-8")
        title, _, rest = content[0].partition("\n")
        keep = f"{{download}}`Keep this page as a notebook </_build/notebooks/{path.name}>`"
        content[0] = f"{title}\n\n{keep}\n{rest}"


def _text(docname: str, name: str) -> str:
    """A file without its title, with links to pages of the site where there are such.

    Pictures stay where they are, and are reached from the page.
    """
    text = re.sub(r"\A# .*\n", "", (ROOT / name).read_text(encoding="utf-8"))
    up = "../" * docname.count("/")

    def link(found: re.Match[str]) -> str:
        label, target = found.groups()
        if "://" in target:
            return found[0]
        path, _, anchor = target.partition("#")
        there = (ROOT / name).parent.joinpath(path).resolve()
        page = INCLUDED.get(str(there.relative_to(ROOT))) if path else None
        if page:
            return f"[{label}]({up}{page}.md)"
        if there.is_relative_to(ROOT / "docs") and there.suffix == ".md":
            there_too = f"#{anchor}" if anchor else ""
            return f"[{label}]({up}{there.relative_to(ROOT / 'docs')}{there_too})"
        return label

    text = re.sub(r"(?<!!)\[([^]]*)\]\(([^)\s]*)\)", link, text)
    folder = f"{up}../{Path(name).parent}"
    return re.sub(r"!\[([^]]*)\]\((?!\w+:)([^)\s]*)\)", rf"![\1]({folder}/\2)", text)


def _slopes() -> str:
    """The slopes at kinks of symgrad's default and of other systems, those that are wrong bold."""
    return "\n".join(kinks_table.listed(("zero",)))


# ---- benchmarks -----------------------------------------------------------------------------


def _benchmarks(app: Sphinx) -> None:
    """Write a page for each run, and one with the programs, and how each system runs them."""
    folder = _emptied(Path(app.srcdir, "lookup", "runs"), "*.md")
    for path in (ROOT / "benchmarks" / "results").glob("*.md"):
        (folder / path.name).write_text(_plain(path.read_text(encoding="utf-8")), encoding="utf-8")
    parts = ["# The programs that are measured\n"]
    workloads = sorted((ROOT / "benchmarks" / "workloads").glob("[a-z]*.py"))
    for path in [ROOT / "benchmarks" / "peers.py", *workloads]:
        title, place = ast.get_docstring(ast.parse(path.read_text("utf-8"))), path.relative_to(ROOT)
        shown = f"```{{literalinclude}} /../{place}\n:language: python\n```"
        parts += [f"## {(title or path.stem).splitlines()[0]}\n", f"`{place}`\n", shown, ""]
    (folder / "programs.md").write_text("\n".join(parts), encoding="utf-8")


def _plain(text: str) -> str:
    """Text in which a star is a star, as in the title of a workload."""
    return text.replace("*", r"\*")


def _ratios() -> str:
    """Of the last whole run: where symgrad is behind, then all workloads."""
    runs = [json.loads(p.read_text("utf-8")) for p in (ROOT / "benchmarks/results").glob("*.json")]
    result = max(runs, key=lambda r: (len(r["runs"]), r["date"]))

    def slowness(contest: dict[str, Any]) -> float:
        """The time of symgrad by that of the fastest peer."""
        found = [
            1 / figures["time ratio to symgrad"]
            for name, figures in contest["contestants"].items()
            if name not in tables.NOT_PEERS and "time ratio to symgrad" in figures
        ]
        return max(found, default=0.0)

    def of(chosen: list[dict[str, Any]]) -> str:
        return _plain(tables.overview(result | {"runs": chosen}))

    order = sorted(result["runs"], key=slowness, reverse=True)
    behind = [r for r in order if slowness(r) > 1]
    rest = [r for r in order if slowness(r) <= 1]
    others = of(rest).partition("\n\n")[2]
    head = f"## Where symgrad is behind\n\n{len(behind)} of {len(order)} workloads."
    return f"{head}\n\n{of(behind)}\n\n## Where it is not\n\n{others}\n"


# ---- the reference --------------------------------------------------------------------------


def _reference(app: Sphinx) -> None:
    """Write a page for each family of functions, for each space of names, and for the rest."""
    folder = _emptied(Path(app.srcdir, "lookup", "api"), "*.rst")
    REGISTRY.every()
    families: dict[str, list[str]] = defaultdict(list)
    rest, errors = [], []
    for name in dir(sg):
        found = getattr(sg, name)
        home = getattr(found, "__module__", "")
        if name.startswith("_") or isinstance(found, ModuleType):
            continue
        if callable(found) and home.startswith("symgrad.ops."):
            families[home].append(name)
        elif isinstance(found, type) and issubclass(found, SymgradError):
            errors.append(name)
        elif callable(found) and home.startswith("symgrad.") and name != "bool":
            rest.append(name)
    for home, names in families.items():
        page = "functions-" + home.removeprefix("symgrad.ops.").replace(".", "-")
        _write(folder / f"{page}.rst", _title(import_module(home)), "symgrad", names)
    _write(folder / "core.rst", "Graphs, derivatives, programs", "symgrad", rest)
    _write(folder / "errors.rst", "Classes of errors", "symgrad", errors)
    for space in SPACES:
        module = import_module(f"symgrad.{space}")
        names = [n for n in getattr(module, "__all__", dir(module)) if not n.startswith("_")]
        names = [n for n in names if callable(getattr(module, n))]
        _write(folder / f"{space}.rst", _title(module), module.__name__, names)
    pages = ["core", "errors", *SPACES, *sorted(p.stem for p in folder.glob("functions-*.rst"))]
    tree = "".join(f"   {page}\n" for page in pages)
    text = f"Reference\n=========\n\n.. toctree::\n   :maxdepth: 1\n\n{tree}"
    (folder / "index.rst").write_text(text, encoding="utf-8")


def _emptied(folder: Path, pattern: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(pattern):
        old.unlink()
    return folder


def _title(module: ModuleType) -> str:
    """The first sentence of a module's docstring, as the title of its page."""
    first = (module.__doc__ or module.__name__).strip().splitlines()[0]
    title = re.sub(r"^Floor \d+: ", "", first).rstrip(".").replace("`", "").replace("*", r"\*")
    return title if title.startswith("sg.") else title[0].upper() + title[1:]


def _write(path: Path, title: str, module: str, names: list[str]) -> None:
    """A page of entries, in the order of their names."""
    parts = [title, "=" * len(title), "", f".. py:currentmodule:: {module}", ""]
    space = import_module(module)
    for name in sorted(names, key=str.lower):
        found = getattr(space, name)
        if isinstance(found, type) and issubclass(found, SymgradError):
            mends = f"What to do about it <../errors.html#{name.lower()}>"
            parts += [f".. autoexception:: {name}", "", f"   `{mends}`__", ""]
        elif isinstance(found, type):
            parts += [f".. autoclass:: {name}", "   :members:", ""]
        else:
            parts += [f".. autofunction:: {name}", ""]
    path.write_text("\n".join(parts), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", _reference)
    app.connect("builder-inited", _benchmarks)
    app.connect("source-read", _include)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Code that runs while the site is built: the directive `code-cell`, as in notebooks.

All cells of a page share one namespace and one empty folder, from which they can import. What a
cell prints stands below it, and so does the value of its last line: as text, or, with `:alt:`, as a
picture, which is described by this text. `:from: def step` leaves out what is printed before these
words. With `:raises: ShapeError` the cell must fail so, and the message is what is shown. Whatever
else fails, warnings too, fails the build.
"""

import ast
import contextlib
import io
import linecache
import os
import re
import shutil
import sys
import traceback
import warnings
from pathlib import Path
from time import process_time
from typing import Any, ClassVar

import numpy as np
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

PICTURES = "_build/pictures"


class Page:
    """The cells of a page so far: their namespace, their folder, and their text as one script."""

    def __init__(self, docname: str, build: Path) -> None:
        self.name = docname.rpartition("/")[2]
        self.folder = build / "cells" / docname
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.text = ""
        self.pictures = 0
        self.seconds = 0.0

    def run(self, code: str) -> tuple[str, Any]:
        """What some more lines print, and the value of the last if it is an expression."""
        path, before = f"{self.name}.py", self.text.count("\n")
        self.text += code + "\n\n"
        linecache.cache[path] = (len(self.text), None, self.text.splitlines(True), path)
        tree = ast.parse("\n" * before + code, path)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        printed, value, start = io.StringIO(), None, process_time()
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(printed),
            warnings.catch_warnings(),
            np.printoptions(),
        ):
            warnings.simplefilter("error")
            sys.path.insert(0, str(self.folder))
            try:
                exec(compile(tree, path, "exec"), self.names)
                if last is not None:
                    value = eval(compile(last, path, "eval"), self.names)
            finally:
                sys.path.remove(str(self.folder))
        self.seconds += process_time() - start
        return printed.getvalue(), value


class CodeCell(SphinxDirective):
    """Runs what stands in it, and shows it with what comes of it."""

    has_content = True
    optional_arguments = 1
    option_spec: ClassVar = {
        "alt": directives.unchanged_required,
        "raises": directives.unchanged_required,
        "lang": directives.unchanged_required,
        "from": directives.unchanged_required,
        "html": directives.flag,
        "hide": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        code = "\n".join(self.content)
        name = self.env.docname
        pages: dict[str, Page] = self.env.temp_data.setdefault("cells", {})
        if name not in pages:
            pages[name] = Page(name, Path(self.env.srcdir, "_build"))
        page = pages[name]
        shown: list[nodes.Node] = []
        if "hide" not in self.options:
            shown.append(_block(code, "python", "cell-input"))
        printed, value = self._outcome(page, code)
        self.env.metadata[name]["seconds"] = str(page.seconds)
        if begin := self.options.get("from"):
            printed = f"# … imports and helpers\n\n{printed[printed.index(begin) :]}"
        if printed.strip():
            kind = "cell-message" if "raises" in self.options else "cell-output"
            shown.append(_block(printed.rstrip(), self.options.get("lang", "text"), kind))
        if value is not None:
            shown.append(self._value(page, value))
        return shown

    def _outcome(self, page: Page, code: str) -> tuple[str, Any]:
        wanted = self.options.get("raises")
        try:
            printed, value = page.run(code)
        except Exception as error:
            if type(error).__name__ == wanted:
                told = "".join(traceback.format_exception_only(error))
                return re.sub(r"^[\w.]*\.(?=\w+: )", "", told), None
            told = "".join(traceback.format_exception(error))
            raise ExtensionError(f"{page.name}, line {self.lineno}: {told}") from error
        if wanted is not None:
            raise ExtensionError(f"{page.name}, line {self.lineno}: no {wanted} was raised")
        return printed, value

    def _value(self, page: Page, value: Any) -> nodes.Node:
        """The value of the last line as notebooks show it."""
        bundle = value._repr_mimebundle_() if hasattr(value, "_repr_mimebundle_") else {}
        if isinstance(bundle, tuple):
            bundle = bundle[0]
        if "html" in self.options:
            html = bundle.get("text/html") or value._repr_html_()
            return nodes.raw("", f'<div class="cell-html">{html}</div>', format="html")
        if "alt" in self.options:
            svg = bundle.get("image/svg+xml") or getattr(value, "_repr_svg_", lambda: None)()
            kinds = ["picture", "graph"] if svg else ["picture"]
            return self._picture(page, svg or _plotted(value), kinds)
        return _block(bundle.get("text/plain") or repr(value), "text", "cell-output")

    def _picture(self, page: Page, svg: str, kinds: list[str]) -> nodes.Node:
        page.pictures += 1
        name = f"{PICTURES}/{self.env.docname.replace('/', '-')}-{page.pictures}.svg"
        path = Path(self.env.srcdir, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(svg, encoding="utf-8")
        image = nodes.image(uri=f"/{name}", alt=self.options["alt"], candidates={"*": name})
        return nodes.container("", image, classes=kinds)


def _plotted(value: Any) -> str:
    """A figure of matplotlib's, or of axes in one, as SVG."""
    import matplotlib as mpl

    figure = getattr(value, "figure", value)
    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "symgrad"}):
        figure.savefig(text, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return text.getvalue()


def _block(text: str, language: str, kind: str) -> nodes.Node:
    block = nodes.literal_block(text, text, language=language)
    return nodes.container("", block, classes=[kind], is_div=True)


def _report(app: Sphinx, error: Exception | None) -> None:
    """The pages that take longest, so that the build stays short."""
    found = {d: float(m["seconds"]) for d, m in app.env.metadata.items() if "seconds" in m}
    slow = sorted(found, key=found.__getitem__, reverse=True)[:5]
    told = ", ".join(f"{d} {found[d]:.1f}" for d in slow)
    sys.stdout.write(f"cells took {sum(found.values()):.0f} s of CPU; {told}\n")


def setup(app: Sphinx) -> dict[str, Any]:
    os.environ.setdefault("MPLBACKEND", "svg")
    app.add_directive("code-cell", CodeCell)
    app.connect("build-finished", _report)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

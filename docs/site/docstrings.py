"""Docstrings for autodoc: they are written as plain text, with `code`, and are made RST."""

import re
from typing import Any

from sphinx.application import Sphinx

SPECIAL = re.compile(r"(?<!\\)([*_|\\])")


def as_rst(lines: list[str]) -> list[str]:
    """A docstring as RST: code stays code, examples stay examples, text is not marked up."""
    found: list[str] = []
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines).strip("\n"))
    for paragraph in paragraphs:
        rows = [row.rstrip() for row in paragraph.splitlines()]
        if rows and rows[0].lstrip().startswith(">>>"):
            found += ["::", "", *(f"    {row.strip()}" for row in rows), ""]
        elif rows and all(row.startswith(" ") for row in rows):
            found += ["::", "", *(f"  {row}" for row in rows), ""]
        else:
            found += [_text(" ".join(row.strip() for row in rows)), ""]
    return found


def _text(paragraph: str) -> str:
    """A paragraph in which only `code` is marked up."""
    parts = re.split(r"``?([^`]+)``?", paragraph)
    for at, part in enumerate(parts):
        parts[at] = f"\\ ``{part.strip()}``\\ " if at % 2 else SPECIAL.sub(r"\\\1", part)
    text = "".join(parts).strip()
    return re.sub(r"^([-+]|\d+\.|[a-z]\)) ", r"\\\1 ", text.removeprefix("\\ ").removesuffix("\\"))


def _convert(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = as_rst(lines)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", _convert)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

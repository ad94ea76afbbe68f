"""Pages as notebooks: the text between cells as Markdown, the cells as code."""

import json
import re

CELL = re.compile(r"^```\{code-cell\}[^\n]*\n((?::[^\n]*\n)*)(.*?)^```$", re.DOTALL | re.MULTILINE)


def notebook(text: str) -> str:
    """A page of the site as a notebook of Jupyter's, version 4.5 of the format."""
    parts = CELL.split(text)
    cells = [_markdown(parts[0])]
    for options, code, after in zip(*[iter(parts[1:])] * 3, strict=True):
        cells += [_code(code, ":raises:" in options), _markdown(after)]
    kept = [cell | {"id": f"cell-{at}"} for at, cell in enumerate(c for c in cells if c["source"])]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": kept, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _markdown(text: str) -> dict[str, object]:
    """Text, without what only the site knows: links to its pages, and its boxes."""
    text = re.sub(r"(?<!!)\[([^]]*)\]\((?!https?:)[^)]*\)", r"\1", text)
    text = re.sub(r"^:::.*\n?", "", text, flags=re.MULTILINE)
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(text)}


def _code(text: str, fails: bool) -> dict[str, object]:
    """A cell of code; where it is to fail, those after it run all the same."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {"tags": ["raises-exception"]} if fails else {},
        "outputs": [],
        "source": _lines(text),
    }


def _lines(text: str) -> list[str]:
    return text.strip("\n").splitlines(keepends=True)

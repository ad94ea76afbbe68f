"""Derivations as a page of HTML, whose formulas are MathML, and as a document for LaTeX."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING

from symgrad_viz import terms
from symgrad_viz.derivation_steps import Step
from symgrad_viz.terms import LOOSE, latex_text, row
from symgrad_viz.words import printable, shortened

if TYPE_CHECKING:
    from symgrad_viz.derivation import Derivation

STYLE = """
.symgrad-derivation { color-scheme: light dark; --ink: light-dark(#1a1a1a, #ececec);
  --soft: light-dark(#55595e, #b4b9be); --line: light-dark(#d9dde1, #3a3f45);
  --ground: light-dark(#ffffff, #16181b); --mark: light-dark(#0b5cad, #8cc4ff);
  background: var(--ground); color: var(--ink); max-width: 60rem; padding: 1rem 1.5rem;
  font: 1rem/1.5 system-ui, sans-serif; }
.symgrad-derivation h1 { font-size: 1.5rem; margin: 0 0 .5rem; }
.symgrad-derivation h2 { font-size: 1.15rem; margin: 1.8rem 0 .3rem; }
.symgrad-derivation p { margin: .2rem 0 .6rem; color: var(--soft); max-width: 46rem; }
.symgrad-derivation ol { list-style: none; margin: 0; padding: 0; }
.symgrad-derivation li { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr);
  gap: .3rem 1.5rem; padding: .55rem 0; border-top: 1px solid var(--line); align-items: center; }
.symgrad-derivation li > div:first-child { overflow-x: auto; }
.symgrad-derivation math { font-size: 1.2rem; }
.symgrad-derivation li.wide { grid-template-columns: minmax(0, 1fr); }
.symgrad-derivation .why { font-size: .85rem; color: var(--soft); overflow-wrap: anywhere; }
.symgrad-derivation .rule { color: var(--mark); font-weight: 600; }
.symgrad-derivation .grade { border: 1px solid var(--line); border-radius: .6rem;
  padding: 0 .45rem; font-size: .75rem; white-space: nowrap; }
.symgrad-derivation code { font-size: .8rem; }
@media (max-width: 40rem) { .symgrad-derivation li { grid-template-columns: minmax(0, 1fr); } }
"""
MOST_BESIDE = 26  # signs of a formula that stands beside its reason, and not above it
MOST_OF_LINE = 90  # letters of a line of the user's, in LaTeX
PAGE = "body { margin: 0; background: light-dark(#ffffff, #16181b); color-scheme: light dark; }"


def page(derivation: Derivation) -> str:
    """A page of its own."""
    title = html.escape(printable(derivation.title))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{title}</title>\n<style>{PAGE}</style>\n</head>\n<body>\n"
        f"<main>{article(derivation)}</main>\n</body>\n</html>\n"
    )


def article(derivation: Derivation) -> str:
    """A part of a page, as a notebook shows it."""
    parts = [f"<style>{STYLE}</style>", f"<h1>{_said(derivation.title)}</h1>"]
    for section in derivation.sections:
        lines = "\n".join(map(_item, section.steps))
        parts.append(
            f"<section><h2>{_said(section.title)}</h2><p>{_said(section.text)}</p>"
            f"<ol>{lines}</ol></section>"
        )
    return f'<article class="symgrad-derivation">{"".join(parts)}</article>'


def _item(step: Step) -> str:
    line = row(step.left, "=", step.right, strength=LOOSE)
    formula = terms.mathml(line)
    wide = ' class="wide"' if line.size > MOST_BESIDE else ""
    place = ""
    if step.line is not None:
        place = f"<br/><code>{_said(f'{step.line}  {step.line.text}')}</code>"
    rule = f'<span class="rule">{_said(step.rule)}</span>'
    grade = f'<span class="grade">{_said(step.grade)}</span>'
    why = f'<div class="why">{rule} {grade} {_said(step.reason)}{place}</div>'
    return f'<li{wide}><div tabindex="0">{formula}</div>{why}</li>'


def _said(text: str) -> str:
    return html.escape(printable(text))


# ---- LaTeX ----------------------------------------------------------------------------------

HEAD = r"""\documentclass{article}
\usepackage{amsmath}
\usepackage[margin=2.5cm]{geometry}
\setlength{\parindent}{0pt}
\begin{document}
"""


def latex(derivation: Derivation, *, document: bool) -> str:
    """A document, or what stands between its beginning and its end."""
    body = "\n".join(_latex_lines(derivation))
    return f"{HEAD}{body}\n\\end{{document}}\n" if document else f"{body}\n"


def _latex_lines(derivation: Derivation) -> Iterator[str]:
    yield rf"\section*{{{latex_text(derivation.title)}}}"
    for section in derivation.sections:
        yield rf"\subsection*{{{latex_text(section.title)}}}"
        yield latex_text(section.text)
        for step in section.steps:
            left, right = terms.latex(step.left), terms.latex(step.right)
            place = ""
            if step.line is not None:
                line = shortened(f"{step.line} {step.line.text}", MOST_OF_LINE)
                place = rf" \texttt{{{latex_text(line)}}}"
            yield rf"\begin{{equation*}} {left} = {right} \end{{equation*}}"
            said = rf"\textbf{{{latex_text(step.rule)}}} ({latex_text(step.grade)})"
            yield rf"{{\small\raggedright {said} {latex_text(step.reason)}{place}\par}}"

"""Pictures, pages and tables as HTML within a notebook."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from symgrad.ir.digest import sha256
from symgrad_viz.theme import DARK
from symgrad_viz.words import printable

HIGH = 760  # pixels, of a page within a page
BAR = "rgb(86 180 233 / 40%)"  # is seen on light and on dark


def inline(svg: str) -> str:
    """An SVG as a part of a page: never wider than the page, on a ground of its own.

    As an image it would have no tooltips. Its texts are as they were escaped when it was drawn;
    its ids are made different from those of the pictures beside it.
    """
    number = sha256(svg.encode())[:4].hex()
    head, bracket, rest = svg[svg.index("<svg") :].partition(">")
    style = "max-width: 100%; height: auto"
    rest = re.sub(r'(<[^<>]* )id="([^"]*)"', rf'\1id="s{number}-\2"', rest)
    ground = f"background: light-dark(#ffffff, {DARK.page}); color-scheme: light dark"
    return f'<div style="{ground}; overflow: auto">{head} style="{style}"{bracket}{rest}</div>'


@dataclass(frozen=True, slots=True)
class Page:
    """A page of HTML, which a notebook shows in a frame that nothing leaves."""

    text: str = field(repr=False)

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {HIGH}px; border: 1px solid #8884"
        # Its scripts run, and have nothing of the notebook.
        return (
            f'<iframe sandbox="allow-scripts" style="{style}" '
            f'srcdoc="{html.escape(self.text)}"></iframe>'
        )


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    caption: str = "",
    words: frozenset[int] = frozenset(),
    bars: Sequence[float] = (),
    bar: int = 0,
) -> str:
    """A table: numbers to the right, the columns `words` to the left; everything escaped.

    `bars` are parts of 1, one a row, which are drawn behind the column `bar`.
    """
    sides = ["left" if i in words else "right" for i in range(len(head))]
    top = "".join(
        f'<th style="text-align: {side}">{_said(name)}</th>'
        for name, side in zip(head, sides, strict=True)
    )
    body = []
    for k, row in enumerate(rows):
        cells = []
        for i, (cell, side) in enumerate(zip(row, sides, strict=True)):
            style = f"text-align: {side}"
            if bars and i == bar:
                end = f"{100 * min(max(bars[k], 0.0), 1.0):.1f}%"
                style += f"; background: linear-gradient(to right, {BAR} {end}, transparent {end})"
            cells.append(f'<td style="{style}">{_said(cell)}</td>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    title = f'<caption style="text-align: left">{_said(caption)}</caption>' if caption else ""
    return f"<table>{title}<thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _said(value: object) -> str:
    return html.escape(printable(str(value)))

"""One file of all that the page shows, which runs nothing: text, picture, gradient, program."""

from __future__ import annotations

import base64
import html
from importlib.resources import files

from symgrad.play.worker import Json
from symgrad_viz.explorer import in_script as in_parts

__all__ = ["in_parts", "shared", "style"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def style() -> str:
    """The page's style sheet, with the colours of the explorer."""
    colours, _, _ = (
        files("symgrad_viz").joinpath("explorer.css").read_text("utf-8").partition("* {")
    )
    return colours + files("symgrad.play").joinpath("page.css").read_text("utf-8")


def shared(request: Json, answer: Json, name: str) -> str:
    """A page that shows a text and what was made of it; it has no script, and asks for nothing."""
    choices = [f"kinks: {request['kinks']}", f"exact: {request['exact']}"]
    choices += [f"without {', '.join(request['off'])}"] if request["off"] else []
    parts = [_part(f"{name} ({'; '.join(choices)})", _text(request["text"]))]
    if answer["error"]:
        error = answer["error"]
        where = f"line {error['line']}: " if error["line"] else ""
        parts.append(_part("Error", _text(f"{where}{error['kind']}: {error['text']}")))
    if answer["printed"]:
        parts.append(_part("Printed", _text(answer["printed"])))
    if "program" in answer:
        program = "\n".join(text for text, _ in answer["program"])
        rules = (f"{r[0]} ×{r[1]} [{r[2]}]: {r[3]}" for r in answer["rules"])
        parts.append(_part("Program", _text(program)))
        if answer["gradient"]:
            parts.append(_part("Gradient", answer["gradient"]))
        parts.append(_part("Rules that acted", _text("\n".join(rules) or "none")))
        if answer["picture"]:
            data = base64.b64encode(answer["picture"].encode()).decode()
            picture = f'<img alt="the graph" src="data:image/svg+xml;base64,{data}">'
            parts.append(_part("Graph", f'<div class="picture">{picture}</div>'))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{html.escape(name)}</title><style>{style()}</style></head>"
        f'<body class="kept"><header><h1>symgrad play: {html.escape(name)}</h1></header>'
        f"<main>{''.join(parts)}</main></body></html>\n"
    )


def _part(title: str, body: str) -> str:
    return f"<section><h2>{html.escape(title)}</h2>{body}</section>"


def _text(text: str) -> str:
    return f'<pre tabindex="0">{html.escape(text)}</pre>'

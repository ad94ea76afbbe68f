"""The explorer: a program, every stage of its making, and its source in one HTML file.

The page holds everything, asks the network for nothing, and runs no script but its own: its
Content-Security-Policy names that one by its digest.
"""

from __future__ import annotations

import base64
import html
import json
import re
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from symgrad.ir.collector import without_collection
from symgrad.ir.digest import sha256
from symgrad.ir.errors import RenderError
from symgrad.runtime.inspect.profile import Profile
from symgrad.runtime.program import Program
from symgrad_viz.explorer_data import document
from symgrad_viz.inline import Page
from symgrad_viz.phases import PARTS
from symgrad_viz.picture import write
from symgrad_viz.theme import DARK, HEAT, LIGHT, ON_HEAT, Paint

MOST_FAR = 28  # the largest letters of a name that is seen from afar, as in explorer_layout.js
# The last one begins.
SCRIPTS = (
    "explorer_layout.js",
    "explorer_data.js",
    "explorer_levels.js",
    "explorer_groups.js",
    "explorer_graph.js",
    "explorer_views.js",
    "explorer_panes.js",
    "explorer.js",
)
# Lines that only who reads the package needs.
COMMENT = re.compile(r"^ *(?://.*|/\*\*.*\*/)\n", re.MULTILINE)


@without_collection()
def explore(
    program: Program,
    path: str | Path | None = None,
    *,
    title: str | None = None,
    embed_source: bool = True,
    profile: Profile | None = None,
) -> Path | Page:
    """Write a page that shows a program: each pass, each node, each line. Gives back its path.

    It is one file that any browser opens, without a network. It shows the graph after every pass,
    with what the pass has changed, and of a large program first an overview, in which scopes and
    lines of yours are one box each; for each node your line, the rules that made it with their
    reasons, the line of NumPy that computes it, its cost and its memory. With `profile`, what
    `program.profile` gave, it shows the times. The parts of your source around the lines that
    built something are in the file, unless `embed_source=False`. Without a path it gives a `Page`,
    which a notebook shows.

    Raises `RenderError` if it is no program, the folder is missing, or the profile is of another
    program.

    >>> explore(program, "program.html")
    PosixPath('program.html')
    """
    if not isinstance(program, Program):
        raise RenderError(f"a Program can be explored, not a {type(program).__name__}")
    found = None if path is None else checked(path)
    shown = page(document(program, title=title, embed_source=embed_source, profile=profile))
    if found is None:
        return Page(shown)
    write(found, shown.encode())
    return found


def checked(path: str | Path) -> Path:
    """The path of a page. Raises `RenderError` where there can be none."""
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise RenderError(f"{path.name!r} is to be a page; name it with .html at its end")
    if not path.parent.is_dir():
        raise RenderError(f"there is no folder {str(path.parent)!r}; make it first")
    return path


def page(shown: dict[str, Any]) -> str:
    """The page that shows a document."""
    script = COMMENT.sub("", "\n".join(map(_asset, SCRIPTS)))
    style = _asset("explorer.css") + _theme()
    return Template(_asset("explorer.html")).substitute(
        title=html.escape(shown["title"]),
        data=in_script(shown),
        script=script,
        style=style,
        script_hash=_digest(script),
        style_hash=_digest(style),
    )


def in_script(shown: Any) -> str:
    r"""JSON that may stand inside a script element: nothing in it can end the element.

    >>> in_script("</script>")
    '"\\u003c/script\\u003e"'
    """
    text = json.dumps(shown, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files("symgrad_viz").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(sha256(text.encode())).decode()}"


def _theme() -> str:
    """The colours of the pictures, each for a light and for a dark screen."""
    edge, label = _pair(LIGHT.edge, DARK.edge), _pair(LIGHT.edge_text, DARK.edge_text)
    rules = [f":root {{ --edge: {edge}; --edge-text: {label}; {_ground('fused')} }}"]
    rules.append(f".is-loop {{ {_ground('carry')} }}")
    for kind, paint in LIGHT.nodes.items():
        rules += _painted(f".node.is-{kind}", paint, DARK.nodes[kind])
    for kind in PARTS:
        paint, dark = LIGHT.regions[kind], DARK.regions[kind]
        text, ground = _pair(paint.text, dark.text), _pair(paint.fill, dark.fill)
        rules += _painted(f".frame.is-{kind}", paint, dark)
        rules += [f"#captions .is-{kind} text {{ fill: {text}; }}"]
        rules += [f"#captions .is-{kind} rect {{ fill: {ground}; }}"]
    carry = _pair(LIGHT.ways["carry"], DARK.ways["carry"])
    rules.append(f"#view .edge.is-carry {{ stroke: {carry}; stroke-width: 2; }}")
    stub = _pair(LIGHT.nodes["stub"].text, DARK.nodes["stub"].text)
    rules.append(f".stub text {{ fill: {stub}; }}")
    for far in range(11, MOST_FAR + 2):
        small = ", ".join(f".f{size}" for size in range(far))
        rules.append(f'#graph[data-far="{far}"] :is({small}) {{ display: none !important; }}')
    for i, colour in enumerate(HEAT):
        hot = f'#view [data-heat="{i}"]:not(.is-constant)'
        rules += [
            f"{hot} .shape:not(.lid) {{ fill: {colour}; }}",
            f"{hot} text {{ fill: {ON_HEAT}; }}",
            f".swatch.heat{i} {{ background: {colour}; }}",
        ]
    return "\n".join([*rules, ""])


def _ground(kind: str) -> str:
    """The colours of the ground on which a group stands: those of a kind of box."""
    light, dark = LIGHT.nodes[kind], DARK.nodes[kind]
    parts = zip(("--hull", "--hull-line", "--on-hull"), ("fill", "stroke", "text"), strict=True)
    return " ".join(f"{n}: {_pair(getattr(light, a), getattr(dark, a))};" for n, a in parts)


def _painted(chosen: str, light: Paint, dark: Paint) -> list[str]:
    found = [f"{chosen} text {{ fill: {_pair(light.text, dark.text)}; }}"]
    if light.stroke != "none":
        shape = f"stroke: {_pair(light.stroke, dark.stroke)}; fill: {_pair(light.fill, dark.fill)};"
        found.append(f"{chosen} .shape {{ {shape} }}")
    return [*found, f"{chosen} .lid {{ fill: none; }}"]


def _pair(light: str, dark: str) -> str:
    return f"light-dark({light}, {dark})"

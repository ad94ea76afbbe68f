"""From a graph to a picture: choose an engine, run it, fall back, write the file."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from symgrad.ir.errors import RenderError
from symgrad.ir.formats.writing import whole_file
from symgrad.ir.late import Drawing
from symgrad.runtime.inspect.profile import Profile
from symgrad_viz import layers, svg
from symgrad_viz.dot import dot_of
from symgrad_viz.engines import ENGINES, EngineError, EngineTimeoutError
from symgrad_viz.figures import HEATS
from symgrad_viz.inline import inline
from symgrad_viz.legend import add_legend
from symgrad_viz.scene import Scene
from symgrad_viz.theme import THEMES
from symgrad_viz.view import view_of
from symgrad_viz.words import printable

FORMATS = ("svg", "png", "dot")
BUILT_IN = "layers"
TIMEOUT = 20.0
MOST_NODES = 1500  # above this Graphviz is not tried unless it is asked for by name
NOT_INSTALLED = "is not installed."
LARGEST = 6000  # pixels: three screens; what is wider or higher is closed further
MOSTS = (150, 60, 25, 8)  # boxes, of which that is tried
WIDENED = 3  # times that frames are made wider, whose titles edges would cross
POINT = 4 / 3  # pixels
_LENGTH = re.compile(r'"([\d.]+)(pt)?"')
_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, and how it came about.

    `data` is text for SVG and DOT and bytes for PNG; `engine` is what laid it out, empty for DOT;
    `notes` say, a sentence each, what did not go as it first should.
    """

    data: str | bytes = field(repr=False)
    format: str
    engine: str
    notes: tuple[str, ...] = ()

    def _repr_html_(self) -> str | None:
        return inline(self.data) if self.format == "svg" and isinstance(self.data, str) else None

    def _repr_svg_(self) -> str | None:
        return self.data if self.format == "svg" and isinstance(self.data, str) else None

    def _repr_png_(self) -> bytes | None:
        return self.data if isinstance(self.data, bytes) else None


def render(thing: Any, *, format: str = "svg", **options: Unpack[Drawing]) -> str | bytes:
    """A graph or program as a picture: text for "svg" and "dot", bytes for "png".

    The options are those of `draw`. Raises `RenderError` if it cannot be drawn.
    """
    return draw(thing, format=format, **options).data


def save(thing: Any, path: str | Path, **options: Unpack[Drawing]) -> Path:
    """Draw a graph or program into a file, and give back its path.

    The suffix (.svg, .png or .dot) says how; the options are those of `draw`. The file is written
    whole or not at all. Raises `RenderError` if the suffix is another, the folder is missing, or
    the picture cannot be drawn.

    >>> save(graph, "step.svg", title="one step")
    PosixPath('step.svg')
    """
    path = Path(path)
    format = path.suffix.lower().removeprefix(".")
    if format not in FORMATS:
        raise RenderError(
            f"{path.name!r} does not say which kind of picture it is to be; "
            "name it with .svg, .png or .dot at its end"
        )
    if not path.parent.is_dir():
        raise RenderError(f"there is no folder {str(path.parent)!r}; make it first")
    data = draw(thing, format=format, **options).data
    write(path, data.encode() if isinstance(data, str) else data)
    return path


def to_dot(
    thing: Any,
    *,
    title: str | None = None,
    theme: str = "auto",
    **shown: Any,
) -> str:
    """A graph or program as DOT text, for Graphviz and what reads its language.

    The same graph gives the same text. The options are those of `draw`.
    """
    check_choice("theme", theme, THEMES)
    return dot_of(view_of(thing, title=title, **shown), theme=theme)


def draw(
    thing: Any,
    *,
    format: str = "svg",
    title: str | None = None,
    engine: str | None = None,
    timeout: float = TIMEOUT,
    theme: str = "auto",
    stubs: bool = True,
    expand: bool | None = None,
    color_by: str | None = None,
    profile: Profile | None = None,
    collapse: bool | None = None,
    legend: bool = True,
) -> Picture:
    """A graph, or whatever has one as its `.graph`, as a `Picture`.

    `engine` is "dot" (the program), "pygraphviz" (its wheel) or "layers" (built in, SVG only);
    None takes the first of these that gives a picture, and says so in the picture's notes and its
    description. An engine is stopped after `timeout` seconds. `theme` is "light", "dark" or
    "auto", which follows the reader's screen. `stubs=False` draws long edges in full, which can
    take minutes. `expand` says whether fused nodes show what is inside; None is: if the graph is
    small. `collapse` draws once what repeats: like scopes `×6`, the updates of parameters; None is:
    if the graph is large, and then scopes are closed until the picture fits three screens.

    `color_by` is "cost" (floating-point operations), "memory" (the bytes allocated for results:
    none for views and in place), both counted for the sizes of a program's last call, or "time",
    which needs the `profile` that `program.profile(…)` gave. A profile also puts the times into
    the tooltips. A `legend` stands below an SVG and in a PNG, unless it is not wanted. Raises
    `RenderError`.
    """
    check_choice("format", format, FORMATS)
    check_choice("theme", theme, THEMES)
    if engine is not None:
        check_choice("engine", engine, (*ENGINES, BUILT_IN))
    seconds: object = timeout
    if not (isinstance(seconds, int | float) and seconds > 0):
        raise RenderError(f"timeout is a number of seconds above 0, not {timeout!r}")
    if color_by is not None:
        check_choice("color_by", color_by, HEATS)
    view = partial(
        view_of, thing, title=title, color_by=color_by, profile=profile, collapse=collapse
    )
    if format == "dot":
        return Picture(dot_of(view(stubs=stubs, expand=expand), theme=theme), "dot", "")
    for most in MOSTS:
        drawn = partial(view, most=most)
        picture = _laid_out(drawn, stubs, expand, format, engine, timeout, theme, legend)
        if collapse is not None or max(_size(picture)) <= LARGEST:
            break
    return picture


def _laid_out(
    view: Callable[..., Scene],
    stubs: bool,
    expand: bool | None,
    format: str,
    engine: str | None,
    timeout: float,
    theme: str,
    legend: bool,
) -> Picture:
    """The picture of a scene, by the first engine that gives one."""
    scene = view(stubs=stubs, expand=expand)
    wanted, notes = _engines(engine, format, len(scene.boxes))
    for name in wanted:
        try:
            drawn = _run(name, scene, format, theme, timeout, notes, legend)
        except EngineTimeoutError:
            # The other Graphviz would take as long.
            break
        except EngineError as error:
            notes.append(f"{printable(str(error))}.")
        else:
            return _picture(drawn, scene, theme, name, notes, legend)
    if engine in ENGINES or format != "svg":
        raise RenderError(_no_picture(format, notes))
    scene = view(expand=False)
    if any(r.kind == "scope" for b in scene.boxes for r in b.regions):
        notes.append("This layout has no frames around scopes.")
    return _picture(layers.layout(scene, theme), scene, theme, BUILT_IN, notes, legend)


def _size(picture: Picture) -> tuple[float, float]:
    """How wide and high a picture is, in pixels."""
    if isinstance(picture.data, bytes):
        # The header of a PNG begins with both.
        return int.from_bytes(picture.data[16:20]), int.from_bytes(picture.data[20:24])
    return size_of_svg(picture.data)


def size_of_svg(text: str) -> tuple[float, float]:
    """How wide and high an SVG says that it is, in pixels."""
    opening = text[: text.index(">")]
    width, height = (_LENGTH.search(opening, opening.index(f" {n}=")) for n in ("width", "height"))
    return _pixels(width), _pixels(height)


def _pixels(length: re.Match[str] | None) -> float:
    if length is None:
        return 0.0
    return float(length[1]) * (POINT if length[2] else 1.0)


def check_choice(what: str, given: str, choices: Iterable[str]) -> None:
    """Raise `RenderError` if that is none of the choices."""
    if given not in tuple(choices):
        listed = ", ".join(map(repr, choices))
        raise RenderError(f"{what} is one of {listed}, not {given!r}")


def _engines(engine: str | None, format: str, nodes: int) -> tuple[Sequence[str], list[str]]:
    """The engines to try, in order, and why some are left out."""
    if engine == BUILT_IN:
        if format != "svg":
            raise RenderError(f"the engine {BUILT_IN!r} draws SVG only, not {format}")
        return (), []
    if engine is not None:
        return (engine,), []
    if format == "svg" and nodes > MOST_NODES:
        return (), [f"Above {MOST_NODES} nodes the built-in layout draws."]
    return tuple(ENGINES), []


def _run(
    name: str,
    scene: Scene,
    format: str,
    theme: str,
    timeout: float,
    notes: list[str],
    legend: bool,
) -> bytes | ET.Element:
    """One engine's picture; a second, hurried try if the first took too long."""
    bitmap = format == "png"
    tries = WIDENED * (len(scene.boxes) <= MOSTS[0])
    written = partial(dot_of, scene, theme=theme, opaque=bitmap, legend=legend and bitmap)
    try:
        data = ENGINES[name].run(written(), format, timeout)
    except EngineTimeoutError as error:
        notes.append(f"{error}.")
        try:
            data = ENGINES[name].run(written(hurried=True), format, timeout)
        except EngineTimeoutError:
            notes.append("It did so again when told to hurry.")
            raise
        notes.append("Told to hurry, it drew straight lines.")
        tries = 0
    if format == "png":
        if not data.startswith(_PNG):
            raise EngineError(f"{name} gave no PNG")
        return data
    try:
        drawn, crowded = svg.from_graphviz(data, scene)
    except ET.ParseError as error:
        raise EngineError(f"{name} gave no SVG: {error}") from None
    # Frames grow until no edge runs behind a title; where that cannot be had, the best of some.
    fewest, widened = len(crowded), dict(crowded)
    with suppress(EngineError, ET.ParseError):
        while crowded and tries:
            data = ENGINES[name].run(written(widened=widened), format, timeout)
            again, crowded = svg.from_graphviz(data, scene)
            if len(crowded) < fewest:
                drawn, fewest = again, len(crowded)
            widened |= crowded
            tries -= 1
    return drawn


def _picture(
    drawn: bytes | ET.Element, scene: Scene, theme: str, name: str, notes: list[str], legend: bool
) -> Picture:
    if isinstance(drawn, bytes):
        return Picture(drawn, "png", name, tuple(notes))
    said = (*notes, f"Laid out by {name}.")
    if legend:
        done = " ".join(n for n in notes if not n.endswith(NOT_INSTALLED))
        noted = replace(scene, note=f"{scene.note} {done}".strip())
        add_legend(drawn, noted, THEMES[theme])
    return Picture(svg.finished(drawn, scene, theme, said), "svg", name, tuple(notes))


def _no_picture(format: str, notes: list[str]) -> str:
    return (
        f"no {format.upper()} could be drawn: {' '.join(notes)} "
        "Graphviz draws it: pip install 'symgrad[render]', or install the program dot"
    )


def write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all. Raises `RenderError`."""
    try:
        with whole_file(path) as file:
            file.write(data)
    except OSError as error:
        said = error.strerror or error
        raise RenderError(f"{str(path)!r} could not be written: {said}") from error

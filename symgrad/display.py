"""The viewer: pictures, and what a notebook shows. `symgrad_viz` is loaded on first use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from symgrad.ir.kinks import Policy
from symgrad.ir.late import Drawing, Exploring, Telling
from symgrad.ir.node import Node
from symgrad.ir.walk import topological
from symgrad.rewrite.rule import Exact, Grade

if TYPE_CHECKING:
    from symgrad_viz.derivation import Derivation

MOST_NODES_INLINE = 150


def render(thing: Any, path: str | Path | None = None, **options: Unpack[Drawing]) -> Any:
    """Draw a graph or program into a file; its suffix (.svg, .png, .dot) says how.

    The result is the path; without one it is the picture, which a notebook shows. Raises
    `RenderError` for another suffix, and where the picture cannot be drawn or written.
    """
    return _drawn("save", "draw", thing, path, options)


def explore(program: Any, path: str | Path | None = None, **options: Unpack[Exploring]) -> Any:
    """Write a page that shows a program, stage by stage; without a path, a notebook shows it."""
    return _drawn("explore", "explore", program, path, options)


def story(program: Any, path: str | Path | None = None, **options: Unpack[Telling]) -> Any:
    """Draw all stages of a program's making into one SVG; without a path, a notebook shows it."""
    return _drawn("story", "story", program, path, options)


class Deriving(TypedDict, total=False):
    """The options of a derivation; see `symgrad_viz.derivation.derivation`."""

    order: Literal[1, 2]
    kinks: Policy
    exact: Exact | Grade


def derivation(loss: Node, wrt: Node | Sequence[Node], **options: Unpack[Deriving]) -> Derivation:
    """The way from a loss to its gradient as a page of mathematics, line by line.

    The function with your names, the chain rule op by op, the rules that simplify what comes of it,
    and the result; with `order=2` the same for the Hessian times a vector. It prints, a notebook
    shows it, `save("d.html")` and `save("d.tex")` write it, `errors(x=X)` evaluates each line
    against the one before. See `symgrad_viz.derivation.derivation`.
    """
    found: Derivation = import_module("symgrad_viz.derivation").derivation(loss, wrt, **options)
    return found


def _drawn(written: str, shown: str, thing: Any, path: str | Path | None, options: Any) -> Any:
    """The path of what the viewer has written, or what it shows if there is none."""
    viewer = import_module("symgrad_viz")
    if path is None:
        return getattr(viewer, shown)(thing, **options)
    return getattr(viewer, written)(thing, path, **options)


def engines() -> dict[str, str | None]:
    """Layout engines and the path of each, or None; in the order in which they are tried."""
    found: dict[str, str | None] = import_module("symgrad_viz.engines").installed()
    return found


def mimebundle(thing: Any, include: Any = None, exclude: Any = None) -> dict[str, str]:
    """The text of a thing, and its picture or table, for a notebook. Never raises.

    Pictures are there as HTML, in which tooltips are alive, and for front ends without it as they
    are. Of more than 150 nodes there is a summary, which says how to see more.
    """
    found = {"text/plain": _text(thing)}
    if _count(thing) <= MOST_NODES_INLINE:
        # Without a picture the text is what there is to show.
        with suppress(Exception):
            found |= import_module("symgrad_viz.notebook").pictures(thing)
    wanted = found.keys() if include is None else set(include)
    return {k: v for k, v in found.items() if k in wanted and k not in (exclude or ())}


def _count(thing: Any) -> int:
    """How large a thing is: in nodes, or in the steps or passes that a plan or a trace lists."""
    try:
        if isinstance(thing, Node):
            return len(topological([thing]))
        graph = getattr(thing, "graph", thing)
        return len(getattr(graph, "nodes", ()) or getattr(thing, "stages", ()))
    except Exception:
        return 0


def _text(thing: Any) -> str:
    try:
        small = isinstance(thing, Node) or _count(thing) <= MOST_NODES_INLINE
        text = _whole(thing) if small else _summary(thing)
    except Exception:
        text = f"<{type(thing).__name__}>"
    # Half of a surrogate pair, which a user's name may hold, could not be sent.
    return text.encode("utf-8", "backslashreplace").decode()


def _whole(thing: Any) -> str:
    return f"{thing!r}\n\n{thing.source}" if hasattr(thing, "source") else str(thing)


def _summary(thing: Any) -> str:
    graph = getattr(thing, "graph", thing)
    counts = Counter(str(n.op.name) for n in graph.nodes)
    most = ", ".join(f"{name} ×{n}" for name, n in counts.most_common(12))
    inputs = ", ".join(str(n.name)[:40] for n in graph.inputs[:12])
    more = "" if len(graph.inputs) <= 12 else f" and {len(graph.inputs) - 12} more"
    how = "print(it) for the text, sg.render(it, 'it.svg') for a picture"
    if hasattr(thing, "source"):
        how = (
            "it.explore('it.html') for a page to look around in, it.render('it.svg') for a picture"
        )
    return f"{thing!r}\ninputs: {inputs}{more}\nops: {most}\nTo see more: {how}"

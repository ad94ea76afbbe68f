"""Pictures for notebooks, besides text."""

from __future__ import annotations

import html
import xml.etree.ElementTree as ET
from collections import Counter
from math import ceil
from typing import Any

from symgrad.ir.graph import Graph
from symgrad.lowering.plan import Plan
from symgrad.rewrite.trace import Trace
from symgrad.runtime.program import Program
from symgrad_viz.lifetimes import draw_lifetimes, lifetimes_size
from symgrad_viz.picture import render
from symgrad_viz.scene import Scene
from symgrad_viz.svg import element, finished
from symgrad_viz.theme import THEMES
from symgrad_viz.words import printable

TIMEOUT = 5.0
WIDTH = 900


def pictures(thing: Any) -> dict[str, str]:
    """The picture of a graph, a program or a plan, the table of a trace; by its MIME type."""
    if isinstance(thing, Graph | Program):
        return {"image/svg+xml": str(render(thing, timeout=TIMEOUT))}
    if isinstance(thing, Plan):
        return {"image/svg+xml": plan_svg(thing)}
    if isinstance(thing, Trace):
        return {"text/html": trace_html(thing)}
    return {}


def plan_svg(plan: Plan) -> str:
    """The buffers of a plan over its steps."""
    least, high = lifetimes_size(plan)
    width = max(WIDTH, ceil(least))
    size = f"{width + 16}", f"{high + 16:.0f}"
    root = ET.Element("svg", dict(zip(("width", "height"), size, strict=True)))
    root.set("viewBox", f"0 0 {' '.join(size)}")
    canvas = element(root, "g", transform="translate(8 8)")
    draw_lifetimes(canvas, plan, width, THEMES["auto"])
    title = f"memory of {len(plan.steps)} steps"
    return finished(root, Scene(title, f"{title}: {plan!r}", (), ()), "auto", ())


def trace_html(trace: Trace) -> str:
    """The passes that changed something, and the rules that acted in them."""
    rows = []
    for stage in trace.stages:
        rules = Counter(f.rule.name for f in trace.fired if f.stage == stage.name)
        if stage.after is stage.before and not rules:
            continue
        listed = ", ".join(f"{name}{f' ×{n}' if n > 1 else ''}" for name, n in rules.most_common())
        cells = (
            stage.name,
            f"{len(stage.before)} → {len(stage.after)}",
            f"{1e3 * stage.seconds:.1f} ms",
            listed,
        )
        rows.append("".join(f"<td>{html.escape(printable(c))}</td>" for c in cells))
    head = "".join(f"<th>{name}</th>" for name in ("pass", "nodes", "time", "rules"))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

"""Pictures and tables for notebooks, besides text."""

from __future__ import annotations

import html
import xml.etree.ElementTree as ET
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator
from math import ceil
from typing import Any

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, describe
from symgrad.lowering.cost import Cost
from symgrad.lowering.plan import Plan
from symgrad.rewrite.trace import Trace
from symgrad.runtime.inspect.check import Check
from symgrad.runtime.inspect.profile import Profile, StepTime
from symgrad.runtime.program import Program
from symgrad.train.history import History, png
from symgrad_viz.inline import inline, table
from symgrad_viz.lifetimes import draw_lifetimes, lifetimes_size
from symgrad_viz.picture import render
from symgrad_viz.scene import Scene
from symgrad_viz.svg import element, finished
from symgrad_viz.theme import THEMES
from symgrad_viz.words import printable

TIMEOUT = 5.0
WIDTH = 900
MOST_ROWS = 20
HTML = "text/html"


def pictures(thing: Any) -> dict[str, str]:
    """The picture or table of a thing, besides its text, by its MIME type."""
    match thing:
        case Node():
            return _drawn(str(render(Graph([thing]), title=describe(thing), timeout=TIMEOUT)))
        case Graph() | Program():
            return _drawn(str(render(thing, timeout=TIMEOUT)))
        case Plan():
            return _drawn(plan_svg(thing))
        case Trace():
            return {HTML: trace_html(thing)}
        case Profile():
            return {HTML: profile_html(thing)}
        case Cost():
            return {HTML: cost_html(thing)}
        case Check():
            return {HTML: check_html(thing)}
        case History(losses=[_, *_]):
            return {"image/png": b64encode(png(thing.plot())).decode()}
    return {}


def _drawn(svg: str) -> dict[str, str]:
    return {HTML: inline(svg), "image/svg+xml": svg}


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
        named = ", ".join(f"{name}{f' ×{n}' if n > 1 else ''}" for name, n in rules.most_common())
        nodes = f"{len(stage.before)} → {len(stage.after)}"
        rows.append((stage.name, nodes, f"{1e3 * stage.seconds:.1f} ms", named))
    return table(("pass", "nodes", "time", "rules"), rows, words=frozenset({0, 3}))


def profile_html(profile: Profile) -> str:
    """The steps with a bar for the part of the time that each takes."""
    head = "step", "line", "kernel", "µs", "share", "GB/s", "GFLOP/s", "reach", "of your line"
    times = list(_timed("", profile.steps))
    rows = [
        (
            number, s.line, s.step.name, f"{s.seconds * 1e6:,.2f}", f"{s.share:.1%}",
            f"{s.gbytes:.2f}", "?" if s.gflops is None else f"{s.gflops:.2f}", f"{s.reach:.0%}",
            _place(s.step.node),
        )
        for number, s in times
    ]  # fmt: skip
    first = str(profile).split("\n", 2)
    bars = [s.share for _, s in times]
    return table(
        head, rows, caption=" ".join(first[:2]), words=frozenset({0, 2, 8}), bars=bars, bar=4
    )


def _timed(outer: str, steps: Iterable[StepTime]) -> Iterator[tuple[str, StepTime]]:
    for i, step in enumerate(steps):
        yield f"{outer}{i}", step
        yield from _timed(f"{outer}{i}.", step.inner)


def cost_html(cost: Cost) -> str:
    """The cost of each step, and of all of them beside what was written."""
    head = "step", "kernel", "flops", "bytes read", "bytes written", "of your line"
    rows = [
        (
            i, s.step.name, "?" if s.flops is None else f"{s.flops:,}", f"{s.bytes_read:,}",
            f"{s.bytes_written:,}", _place(s.step.node),
        )
        for i, s in enumerate(cost.after.steps)
    ]  # fmt: skip
    totals = [(name, f"{before:,}", f"{after:,}") for name, before, after in cost.totals()]
    words = frozenset({0})
    return table(head, rows, caption=str(cost).split("\n", 1)[0], words=frozenset({1, 5})) + table(
        ("in all", "as written", "optimised"), totals, words=words
    )


def check_html(check: Check) -> str:
    """The findings, the first of them with the ranges of what it was made of."""
    first, *_ = str(check).split("\n", 1)
    head = "", "node", "made", "result", "of your line"
    kinds = (("reaches an output", check.findings), ("harmless", check.harmless))
    rows = [
        (kind, f.node.op.name, f.made, str(f.result), _place(f.node))
        for kind, found in kinds
        for f in found[:MOST_ROWS]
    ]
    if not rows:
        return f"<p>{html.escape(printable(first))}</p>"
    return table(head, rows, caption=first, words=frozenset(range(5)))


def _place(node: Node) -> str:
    line = node.origin.nearest
    return "" if line is None else f"{line}  {line.text}"

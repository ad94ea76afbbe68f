"""A scene as DOT, the language of Graphviz. The same graph gives the same text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import Any

from symgrad_viz.columns import stacked
from symgrad_viz.legend import notes, ramp, samples
from symgrad_viz.phases import BACKWARD, UPDATE
from symgrad_viz.scene import CARRY, Box, Edge, Region, Scene, part_of, ranks
from symgrad_viz.shapes import paint_of
from symgrad_viz.theme import (
    ADVANCE,
    LAYOUT_FONT,
    LOOKS,
    NODE_SIZE,
    REGION_STYLES,
    SMALL_SIZE,
    THEMES,
    Palette,
)

LETTERS = 44  # in a line of the legend
# What Graphviz is told when it took too long: stop improving early, draw straight lines.
HURRIED: Mapping[str, str] = {"nslimit": "2", "nslimit1": "2", "mclimit": "0.2", "splines": "line"}


def dot_of(
    scene: Scene,
    *,
    theme: str = "auto",
    opaque: bool = False,
    legend: bool = False,
    hurried: bool = False,
    widened: Mapping[str, float] = MappingProxyType({}),
) -> str:
    """The DOT text of a scene.

    `opaque` gives it a background, which pictures without a style sheet need, `legend` a legend,
    which is drawn below an SVG otherwise; `hurried` trades beauty for time. `widened` frames, by
    their ids, are so wide at least, so that their titles can stand beside edges.
    """
    palette = THEMES[theme]
    digraph = import_module("graphviz").Digraph(
        "symgrad",
        graph_attr={
            "bgcolor": palette.page if opaque else "transparent",
            "fontcolor": palette.text,
            "fontname": LAYOUT_FONT,
            "fontsize": _number(NODE_SIZE + 1),
            "label": _text([scene.title]),
            "labelloc": "t",
            "nodesep": "0.25",
            "ranksep": "0.4",
            "tooltip": _text([scene.title]),
            **(HURRIED if hurried else {}),
        },
        node_attr={
            "fontname": LAYOUT_FONT,
            "fontsize": _number(NODE_SIZE),
            "height": "0.3",
            "margin": "0.1,0.05",
        },
        edge_attr={
            "arrowsize": "0.6",
            "color": palette.edge,
            "fontcolor": palette.edge_text,
            "fontname": LAYOUT_FONT,
            "fontsize": _number(SMALL_SIZE),
        },
    )
    _write_boxes(digraph, [(b, b.regions) for b in scene.boxes], palette, widened)
    for edge in scene.edges:
        ends = (edge.tail, edge.head)[:: -1 if edge.way == CARRY else 1]
        digraph.edge(*ends, **_edge_attrs(edge, palette))
    for tail, head in (*_below(scene), *stacked(scene)):
        digraph.edge(tail, head, style="invis", weight="0")
    if legend:
        _write_legend(digraph, scene, palette)
    return str(digraph.source)


def _write_legend(digraph: Any, scene: Scene, palette: Palette) -> None:
    """The legend as a graph of its own, which Graphviz puts beside the other: two boxes a row."""
    boxes = (*samples(scene), *ramp(scene))
    lines = tuple(notes(scene, LETTERS))
    boxes += (Box("", "stub", lines, ""),) if lines else ()
    with digraph.subgraph(name="cluster_legend") as cluster:
        cluster.attr(color=palette.edge, fontcolor=palette.text, label="legend", style="rounded")
        for i, box in enumerate(boxes):
            cluster.node(f"legend{i}", **_node_attrs(replace(box, id=f"legend{i}"), palette))
            if i > 1:
                cluster.edge(f"legend{i - 2}", f"legend{i}", style="invis")


def _below(scene: Scene) -> Iterator[tuple[str, str]]:
    """Edges that nobody sees: they put the update below the backward part, not far to the right."""
    rank = ranks(scene.boxes, scene.edges)
    backward = [b.id for b in scene.boxes if part_of(b) == BACKWARD]
    if backward:
        lowest = max(backward, key=rank.__getitem__)
        heads = {e.head for e in scene.edges}
        for box in scene.boxes:
            if part_of(box) == UPDATE and box.id not in heads:
                yield lowest, box.id


def _write_boxes(
    into: Any,
    boxes: Iterable[tuple[Box, tuple[Region, ...]]],
    palette: Palette,
    widened: Mapping[str, float],
) -> None:
    """Boxes, and the clusters around them; each comes with the regions that are not written yet."""
    inside: dict[Region, list[tuple[Box, tuple[Region, ...]]]] = {}
    for box, regions in boxes:
        if regions:
            inside.setdefault(regions[0], []).append((box, regions[1:]))
        else:
            into.node(box.id, **_node_attrs(box, palette))
    for region, members in inside.items():
        with into.subgraph(name=f"cluster_{region.id}") as cluster:
            cluster.attr(**_region_attrs(region, palette, widened.get(region.id, 0)))
            _write_boxes(cluster, members, palette, widened)


def _node_attrs(box: Box, palette: Palette) -> Mapping[str, str]:
    look, paint = LOOKS[box.kind], paint_of(box, palette)
    attrs = {
        "class": box.classes,
        "fontcolor": paint.text,
        "id": box.id,
        "label": _text(box.lines),
        "shape": look.shape,
        "style": look.style,
        "tooltip": _text(box.tooltip.split("\n")),
    }
    if paint.stroke != "none":
        attrs |= {"color": paint.stroke, "fillcolor": paint.fill}
        attrs["peripheries"] = "2" if box.is_output else "1"
    if box.kind == "placeholder":
        attrs["margin"] = "0.02,0.02"
    if box.kind in ("many", "fused"):
        attrs["margin"] = "0.15,0.12"
    if box.kind == "stub":
        attrs |= {"fontsize": _number(SMALL_SIZE), "height": "0.2", "margin": "0.03,0.02"}
    return attrs


def _region_attrs(region: Region, palette: Palette, width: float) -> Mapping[str, str]:
    paint = palette.regions[region.kind]
    label = region.label.ljust(int(width / (NODE_SIZE * ADVANCE)))
    return {
        "class": f"is-{region.kind}",
        "color": paint.stroke,
        "fillcolor": paint.fill,
        "fontcolor": paint.text,
        "fontsize": _number(NODE_SIZE + (region.kind in ("forward", "backward"))),
        "id": region.id,
        "label": _text([label]),
        "labeljust": "l",
        "style": REGION_STYLES[region.kind],
        "tooltip": _text((region.tooltip or region.title).split("\n")),
    }


def _edge_attrs(edge: Edge, palette: Palette) -> Mapping[str, str]:
    attrs = {"tooltip": _text([edge.tooltip])}
    if edge.way:
        attrs |= {"class": edge.classes, "color": palette.ways[edge.way]}
    if edge.way == CARRY:
        attrs |= {"dir": "back", "penwidth": "1.6"}
    if edge.operand:
        attrs |= {"headlabel": edge.operand, "labeldistance": "1.6", "labelangle": "24"}
    if edge.is_stub:
        attrs |= {"class": edge.classes, "style": "dashed", "arrowhead": "open"}
    return attrs


def _text(lines: Iterable[str]) -> Any:
    r"""Lines as a DOT string of which Graphviz shows every character as it stands.

    Backslashes begin an escape and ampersands an entity; a text within angle brackets would be
    taken for HTML.
    """
    escaped = [line.replace("&", "&amp;").replace("\\", "\\\\") for line in lines]
    return import_module("graphviz").nohtml("\\n".join(escaped))


def _number(size: float) -> str:
    return f"{size:g}"

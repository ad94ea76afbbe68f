"""Every SVG, whichever engine drew it: its title, description, style sheet and tooltips."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence

from symgrad_viz.captions import Area, drawn_by, placed, tab
from symgrad_viz.scene import CARRY, Edge, Region, Scene
from symgrad_viz.theme import NODE_SIZE, Paint, style_sheet

NAMESPACE = "http://www.w3.org/2000/svg"
_IN_SVG = f"{{{NAMESPACE}}}"
_LINK = "{http://www.w3.org/1999/xlink}"


def element(parent: ET.Element, tag: str, text: str = "", /, **attrs: str | float) -> ET.Element:
    """A new child; `class_` is the attribute `class`, and underscores are hyphens."""
    child = ET.SubElement(parent, tag)
    for name, value in attrs.items():
        written = f"{value:.2f}" if isinstance(value, float) else str(value)
        child.set(name.rstrip("_").replace("_", "-"), written)
    child.text = text or None
    return child


def from_graphviz(drawn: bytes, scene: Scene) -> tuple[ET.Element, dict[str, float]]:
    """The drawing of Graphviz, with plain names and with the scene's own texts.

    Beside it stand the frames in which the title has no room beside the edges, by their ids, each
    with how wide it has to be at least.

    Graphviz wraps what has a tooltip into a link, and reads entities in labels; here every
    tooltip becomes a `<title>`, and every label says exactly what the scene says. Raises
    `ParseError` of `xml.etree` if it is no XML.
    """
    root = ET.fromstring(drawn)
    boxes = {b.id: b for b in scene.boxes}
    regions = {r.id: r for b in scene.boxes for r in b.regions}
    edges = {_drawn_as(e): e for e in scene.edges}
    for node in root.iter():
        node.tag = node.tag.removeprefix(_IN_SVG)
        for name in ("stroke", "fill"):
            if node.get(name) == "transparent":
                node.set(name, "none")
        for name in [n for n in node.attrib if n.startswith(_LINK) or n == "font-family"]:
            del node.attrib[name]
    for parent in list(root.iter("g")):
        _unwrap_links(parent)
    canvas = root.find("g")
    if canvas is not None:
        _drop_page(canvas)
    groups = list(root.iter("g"))
    edges_drawn = list(drawn_by(g for g in groups if g.get("class", "").startswith("edge")))
    captions: list[ET.Element] = []
    crowded: dict[str, float] = {}
    for group in groups:
        title = group.find("title")
        match group.get("class", "").split():
            case ["node", *_] if (box := boxes.get(group.get("id", ""))) is not None:
                _say(group, title, box.tooltip, box.lines)
            case ["cluster", *_] if (region := regions.get(group.get("id", ""))) is not None:
                _say(group, title, region.tooltip or region.title, (region.label,))
                caption, wanted = _caption(group, region, edges_drawn)
                captions.append(caption)
                if wanted:
                    crowded[region.id] = wanted
            case ["edge", *ways] if title is not None and (
                edge := edges.get((title.text or "", CARRY if f"is-{CARRY}" in ways else ""))
            ):
                _say(group, title, edge.tooltip, ())
            case ["graph", *_]:
                _say(group, title, scene.title, (scene.title,))
    if canvas is not None:
        canvas.extend(captions)
    return root, crowded


def _drawn_as(edge: Edge) -> tuple[str, str]:
    """The title that Graphviz gives an edge; that of a carry is drawn from its head to its tail."""
    if edge.way == CARRY:
        return f"{edge.head}->{edge.tail}", CARRY
    return f"{edge.tail}->{edge.head}", ""


def _caption(group: ET.Element, region: Region, drawn: Sequence[Area]) -> tuple[ET.Element, float]:
    """The title of a frame, taken out of it, as it is drawn over the edges; what width it wants."""
    frame = next(x for x in group if x.get("fill") is not None and x.tag != "text")
    size, colour = NODE_SIZE, ""
    for text in group.findall("text"):
        group.remove(text)
        size, colour = float(text.get("font-size", size)), text.get("fill", colour)
    paint = Paint(frame.get("stroke", "none"), frame.get("fill", "none"), colour)
    corner, title, wanted = placed(frame, region.label, size, drawn)
    return tab(region.kind, title, corner, paint, size, region.label), wanted


def _unwrap_links(parent: ET.Element) -> None:
    """Replace `<g><a>…</a></g>`, which Graphviz makes for a tooltip, by what is inside."""
    for wrapper in [g for g in parent if g.tag == "g" and g.find("a") is not None]:
        place = list(parent).index(wrapper)
        parent.remove(wrapper)
        inside = [x for link in wrapper for x in (list(link) if link.tag == "a" else [link])]
        for offset, child in enumerate(inside):
            parent.insert(place + offset, child)


def _drop_page(canvas: ET.Element) -> None:
    """Take away the rectangle that Graphviz draws as a background even when it has no colour."""
    page = canvas.find("polygon")
    if page is not None and page.get("fill") == "none":
        canvas.remove(page)


def _say(group: ET.Element, title: ET.Element | None, tooltip: str, lines: Iterable[str]) -> None:
    if title is not None:
        title.text = tooltip
    texts, wanted = group.findall("text"), tuple(lines)
    if len(texts) == len(wanted):
        for text, line in zip(texts, wanted, strict=True):
            text.text = line


def finished(root: ET.Element, scene: Scene, theme: str, notes: Iterable[str]) -> str:
    """The text of a picture, with what makes it accessible and lets it follow a dark screen."""
    root.set("xmlns", NAMESPACE)
    root.set("role", "img")
    root.set("class", f"symgrad-{theme}")
    head = ET.Element("head")
    element(head, "title", scene.title)
    element(head, "desc", " ".join(filter(None, (scene.summary, scene.note, *notes))))
    heated = any(b.heat is not None for b in scene.boxes)
    element(head, "style", style_sheet(theme, heated=heated))
    for place, child in enumerate(head):
        root.insert(place, child)
    return ET.tostring(root, encoding="unicode") + "\n"

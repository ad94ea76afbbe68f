"""Colours, shapes and the style sheet of the pictures.

Shape and line style carry the meaning; colour repeats it, so that a grey print and a colour-blind
reader lose nothing. Strokes are the Okabe-Ito palette, fills pale (or deep, in the dark), and
every text has a contrast of at least 4.5 to what lies behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FONT = "DejaVu Sans Mono, Menlo, Consolas, Courier New, monospace"
# Every fixed-width font is close to 0.6 em wide, so text stays in its box whatever font is there.
LAYOUT_FONT = "Courier"
ADVANCE = 0.6
NODE_SIZE = 11.0
SMALL_SIZE = 10.0


@dataclass(frozen=True, slots=True)
class Paint:
    """How one kind of thing is coloured: its line, what fills it, its text."""

    stroke: str
    fill: str
    text: str


@dataclass(frozen=True, slots=True)
class Look:
    """How one kind of node or cluster is drawn: a Graphviz `shape` and `style`."""

    shape: str
    style: str = "filled"


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours for one background.

    `nodes` and `regions` map a kind to its paint, `ways` the way of an edge to its colour; `page`
    is what a picture that cannot be transparent lies on.
    """

    page: str
    text: str
    edge: str
    edge_text: str
    ways: Mapping[str, str]
    nodes: Mapping[str, Paint]
    regions: Mapping[str, Paint]


LOOKS: Mapping[str, Look] = {
    "placeholder": Look("ellipse"),
    "variable": Look("cylinder"),
    "constant": Look("plaintext", "solid"),
    "op": Look("box", "rounded,filled"),
    "backward": Look("box"),
    "update": Look("box", "rounded,filled,bold"),
    "fused": Look("box3d"),
    "frame": Look("box", "rounded,filled,bold"),
    "many": Look("box3d", "filled,bold"),
    "stub": Look("plaintext", "dashed"),
    "carry": Look("box", "rounded,filled,bold"),
    "slice": Look("box", "rounded,filled,dashed"),
    "test": Look("hexagon"),
    "gone": Look("box", "dotted"),
    "new": Look("box", "rounded,filled"),
}

REGION_STYLES: Mapping[str, str] = {
    "forward": "filled,rounded",
    "backward": "filled,rounded,dashed",
    "update": "filled,rounded,dotted",
    "scope": "filled,rounded",
    "fused": "filled,rounded,bold",
    "loop": "filled,rounded,bold",
    "mirror": "filled,rounded,bold,dashed",
    "branch": "filled,rounded",
}

LIGHT = Palette(
    page="#ffffff",
    text="#1a1a1a",
    edge="#6b6b6b",
    edge_text="#4d4d4d",
    ways={"view": "#1f5fd0", "carry": "#4a4fb5", "in-place": "#c62828"},
    nodes={
        "placeholder": Paint("#0072b2", "#dceefb", "#0b2f47"),
        "variable": Paint("#e69f00", "#fdf0d3", "#4a3300"),
        "constant": Paint("none", "none", "#333333"),
        "op": Paint("#7a7a7a", "#ffffff", "#1a1a1a"),
        "backward": Paint("#cc79a7", "#fbe9f2", "#4d1936"),
        "update": Paint("#d55e00", "#fde8da", "#4f2300"),
        "fused": Paint("#009e73", "#d9f2e9", "#003d2c"),
        "frame": Paint("#009e73", "#eaf8f3", "#00563f"),
        "many": Paint("#4d4d4d", "#e6e8ea", "#1a1a1a"),
        "stub": Paint("none", "none", "#4d4d4d"),
        "carry": Paint("#4a4fb5", "#e3e5fb", "#23276b"),
        "slice": Paint("#4a4fb5", "#ffffff", "#23276b"),
        "test": Paint("#4a4fb5", "#ffffff", "#23276b"),
        "gone": Paint("#8c8c8c", "none", "#595959"),
        "new": Paint("#7a5c00", "#ffe066", "#5c4500"),
    },
    regions={
        "forward": Paint("#8c8c8c", "#f6f7f8", "#333333"),
        "backward": Paint("#cc79a7", "#fdf5f9", "#8f3a6c"),
        "update": Paint("#d55e00", "#fef6f0", "#a33f00"),
        "scope": Paint("#b0b0b0", "#eef0f2", "#4d4d4d"),
        "fused": Paint("#009e73", "#eaf8f3", "#00563f"),
        "loop": Paint("#4a4fb5", "#f2f3fd", "#3a3f9e"),
        "mirror": Paint("#b0508a", "#fbeef6", "#8f3a6c"),
        "branch": Paint("#8a8ecf", "#fafaff", "#3a3f9e"),
    },
)

DARK = Palette(
    page="#16181b",
    text="#ececec",
    edge="#a0a4a8",
    edge_text="#c4c8cc",
    ways={"view": "#7fb2ff", "carry": "#9da2f2", "in-place": "#ff8a80"},
    nodes={
        "placeholder": Paint("#56b4e9", "#0d3047", "#dff1fc"),
        "variable": Paint("#e69f00", "#43310a", "#fdefcf"),
        "constant": Paint("none", "none", "#dddddd"),
        "op": Paint("#9a9ea3", "#2b2f34", "#f0f0f0"),
        "backward": Paint("#cc79a7", "#43223a", "#fbe4f1"),
        "update": Paint("#e8772e", "#47260f", "#fde6d6"),
        "fused": Paint("#1fc196", "#0b3a2d", "#d8f5ec"),
        "frame": Paint("#1fc196", "#12291f", "#8fe3cb"),
        "many": Paint("#c4c8cc", "#3a3f45", "#f0f0f0"),
        "stub": Paint("none", "none", "#c4c8cc"),
        "carry": Paint("#9da2f2", "#2c2f5e", "#e6e8ff"),
        "slice": Paint("#9da2f2", "#1c1e36", "#e6e8ff"),
        "test": Paint("#9da2f2", "#1c1e36", "#e6e8ff"),
        "gone": Paint("#7d8186", "none", "#a9aeb3"),
        "new": Paint("#ffd84d", "#4f4000", "#ffd84d"),
    },
    regions={
        "forward": Paint("#7d8186", "#1d2024", "#dddddd"),
        "backward": Paint("#cc79a7", "#271a23", "#eeb5d5"),
        "update": Paint("#e8772e", "#261b14", "#f5b58a"),
        "scope": Paint("#5d6166", "#24282d", "#c4c8cc"),
        "fused": Paint("#1fc196", "#12291f", "#8fe3cb"),
        "loop": Paint("#9da2f2", "#1a1b2e", "#c5c8ff"),
        "mirror": Paint("#cc79a7", "#2c1b27", "#eeb5d5"),
        "branch": Paint("#6a6ec0", "#212338", "#c5c8ff"),
    },
)

# Figures from few to many, and the text on them; they are the same on every screen.
HEAT = ("#fff7ec", "#fee8c8", "#fdd49e", "#fdbb84", "#fc8d59")
ON_HEAT = "#111111"

# "auto" is drawn light, and the style sheet turns it dark where the reader's screen is.
THEMES: Mapping[str, Palette] = {"auto": LIGHT, "light": LIGHT, "dark": DARK}


def style_sheet(theme: str, *, heated: bool = False) -> str:
    """The CSS of a picture; with `theme="auto"` it follows the reader's light or dark screen.

    `heated` is one whose nodes are coloured by their figures.

    Every rule begins with a class of the picture's own, because the style of a picture within a
    page applies to the whole page.
    """
    root = f".symgrad-{theme}"
    rules = [
        f"{root} text {{ font-family: {FONT}; }}",
        f"{root} .node text:first-of-type, {root} .caption > text {{ font-weight: bold; }}",
        f"{root} .is-stub text:first-of-type {{ font-weight: normal; font-style: italic; }}",
        f"{root} .is-gone text:first-of-type {{ text-decoration: line-through; }}",
    ]
    if theme == "auto":
        # A page around it may be light all the same, so that a dark picture has its own ground.
        ground = f"{root} {{ background: {DARK.page}; }}"
        rules += ["@media (prefers-color-scheme: dark) {", ground, *_recolour(root, DARK), "}"]
    if heated:
        for i, colour in enumerate(HEAT):
            hot = f"{root} :is(.node, .key).heat{i} >"
            rules += [
                f'{hot} {OUTLINE}:not([fill="none"]) {{ fill: {colour}; }}',
                f"{hot} text {{ fill: {ON_HEAT}; }}",
            ]
    return "\n".join(rules)


OUTLINE = ":is(path, polygon, ellipse, polyline, rect)"


def _recolour(root: str, palette: Palette) -> list[str]:
    """Rules that paint a drawn picture anew: CSS wins over the attributes of the elements."""
    rules = [
        f"{root} > g > text, {root} .title {{ fill: {palette.text}; }}",
        f"{root} .note > text {{ fill: {palette.edge_text}; }}",
        f"{root} .edge text {{ fill: {palette.edge_text}; }}",
        f"{root} .edge path {{ stroke: {palette.edge}; }}",
        f"{root} .edge polygon {{ stroke: {palette.edge}; fill: {palette.edge}; }}",
    ]
    for way, colour in palette.ways.items():
        rules += [
            f"{root} .edge.is-{way} path {{ stroke: {colour}; }}",
            f"{root} .edge.is-{way} polygon {{ stroke: {colour}; fill: {colour}; }}",
        ]
    for group, paints in ((":is(.node, .key)", palette.nodes), (".cluster", palette.regions)):
        for kind, paint in paints.items():
            # Doubled borders and the lid of a cylinder are drawn with no fill, and stay so.
            chosen = f"{root} {group}.is-{kind} >"
            rules += [
                f"{chosen} {OUTLINE} {{ stroke: {paint.stroke}; }}",
                f'{chosen} {OUTLINE}:not([fill="none"]) {{ fill: {paint.fill}; }}',
                f"{chosen} text {{ fill: {paint.text}; }}",
            ]
    for kind, paint in palette.regions.items():
        rules += [
            f"{root} .caption.is-{kind} > rect {{ stroke: {paint.stroke}; fill: {paint.fill}; }}",
            f"{root} .caption.is-{kind} > text {{ fill: {paint.text}; }}",
        ]
    return rules

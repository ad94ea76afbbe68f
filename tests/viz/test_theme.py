"""Colours that can be read, and a style sheet that stays within its picture."""

from __future__ import annotations

import re

import pytest

from symgrad_viz.theme import (
    DARK,
    HEAT,
    LIGHT,
    LOOKS,
    ON_HEAT,
    REGION_STYLES,
    THEMES,
    style_sheet,
)
from tests.viz.contrast import contrast

READABLE = 4.5
PALETTES = pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert contrast("#123456", "#123456") == 1


@PALETTES
def test_text_of_nodes_can_be_read(palette):
    grounds = [palette.page, *(r.fill for r in palette.regions.values())]
    for kind, paint in palette.nodes.items():
        for ground in grounds if paint.fill == "none" else [paint.fill]:
            assert contrast(paint.text, ground) >= READABLE, (kind, ground)


@PALETTES
def test_titles_and_edges_can_be_read(palette):
    assert contrast(palette.text, palette.page) >= READABLE
    for kind, paint in palette.regions.items():
        assert contrast(paint.text, paint.fill) >= READABLE, kind
        assert contrast(palette.edge_text, paint.fill) >= READABLE, kind
        for colour in (palette.edge, *palette.ways.values()):
            assert contrast(colour, paint.fill) >= 3, kind
    assert contrast(palette.edge_text, palette.page) >= READABLE


@PALETTES
def test_every_kind_has_its_colours(palette):
    assert set(palette.nodes) == set(LOOKS)
    assert set(palette.regions) == set(REGION_STYLES)


@PALETTES
def test_figures_and_marks_can_be_read(palette):
    assert all(contrast(ON_HEAT, colour) >= READABLE for colour in HEAT)
    for ground in (palette.page, *(r.fill for r in palette.regions.values())):
        assert contrast(palette.nodes["new"].text, ground) >= READABLE
        assert contrast(palette.nodes["new"].stroke, ground) >= 3
    assert contrast(palette.edge_text, palette.nodes["new"].fill) >= READABLE
    assert contrast(palette.edge, palette.nodes["new"].fill) >= 3


def test_the_ramp_grows_darker():
    steps = [contrast("#000000", colour) for colour in HEAT]
    assert steps == sorted(steps, reverse=True)


def test_parts_differ_in_more_than_colour():
    assert len({REGION_STYLES[p] for p in ("forward", "backward", "update")}) == 3
    assert len({LOOKS[k].style for k in ("op", "backward", "update")}) == 3
    shapes = [LOOKS[k].shape for k in ("placeholder", "variable", "constant", "op", "fused")]
    assert len(set(shapes)) == 5


def test_only_auto_follows_the_screen():
    assert "prefers-color-scheme: dark" in style_sheet("auto")
    assert "@media" not in style_sheet("light")
    assert "@media" not in style_sheet("dark")


def test_the_dark_sheet_repaints_every_kind():
    sheet = style_sheet("auto")
    for kind, paint in DARK.nodes.items():
        assert f":is(.node, .key).is-{kind} > text {{ fill: {paint.text}; }}" in sheet
    for kind, paint in DARK.regions.items():
        assert f".cluster.is-{kind} > text {{ fill: {paint.text}; }}" in sheet


@pytest.mark.parametrize("theme", THEMES)
def test_rules_reach_no_other_part_of_the_page(theme):
    rules = re.findall(r"^([^@}\n][^{]*)\{", style_sheet(theme), re.MULTILINE)
    assert rules
    for rule in rules:
        # Commas within parentheses belong to one selector.
        for selector in re.split(r",(?![^()]*\))", rule):
            assert f"{selector.strip()} ".startswith(f".symgrad-{theme} ")

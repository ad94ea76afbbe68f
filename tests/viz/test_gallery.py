"""The pictures of the gallery are current, by what they show and not by where it lies."""

from __future__ import annotations

import functools
import re
import runpy
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.helpers import each

GALLERY = Path(__file__).parent.parent.parent / "viz" / "gallery"
NAMES = sorted(path.stem for path in GALLERY.glob("*.svg"))


@functools.cache
def make():
    """The script, and its pictures."""
    found = runpy.run_path(str(GALLERY / "make.py"))
    return found, found["pictures"]()


@pytest.mark.parametrize("name", NAMES)
def test_it_is_what_the_compiler_makes(name):
    script, pictures = make()
    _, shown = pictures[name]
    kept = (GALLERY / f"{name}.svg").read_text(encoding="utf-8")
    assert kept.endswith(script["stamp"](shown())), "run: python viz/gallery/make.py"


@each("name", NAMES)
def test_it_is_small_and_tells_nothing_of_this_machine(name):
    text = (GALLERY / f"{name}.svg").read_text(encoding="utf-8")
    assert len(text) < 300_000
    assert str(GALLERY.parent.parent) not in text
    assert ET.fromstring(text).get("role") == "img"


def test_there_are_no_others():
    assert set(NAMES) == set(make()[1])


def test_the_gallery_shows_all_of_them():
    text = (GALLERY / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"!\[[^\]]+\]\((\w+)\.svg\)", text)) == set(NAMES)


def test_the_readme_shows_pictures_that_there_are():
    readme = (GALLERY.parent.parent / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[[^\]]+\]\((viz/gallery/[^)]+)\)", readme)
    assert shown
    assert all((GALLERY.parent.parent / path).is_file() for path in shown)

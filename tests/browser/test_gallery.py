"""The pictures of the gallery as a browser draws them: nothing overlaps, all can be read."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import symgrad as sg
from symgrad_viz import save
from tests.browser.test_explorer_page import assert_accessible, assert_accessible_in_both

GALLERY = Path(__file__).parent.parent.parent / "viz" / "gallery"
MEASURE = """() => {
  const drawn = document.documentElement;
  const box = g => g.getBoundingClientRect();
  const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
  const nodes = [...drawn.querySelectorAll('.node')];
  const boxes = nodes.map(box), captions = [...drawn.querySelectorAll('.caption')].map(box);
  const beyond = nodes.filter(g => {
    const shape = g.querySelector('path, polygon, ellipse, rect');
    return shape && [...g.querySelectorAll('text')].some(
      t => box(t).left < box(shape).left - 1 || box(t).right > box(shape).right + 1);
  });
  const scale = parseFloat(getComputedStyle(drawn).width) / drawn.viewBox.baseVal.width;
  const fonts = [...drawn.querySelectorAll('text')].map(
    t => parseFloat(getComputedStyle(t).fontSize) * scale);
  // An edge that runs behind a title, or through a box that is not its own.
  const within = (p, r, by) => p.x > r.left + by && p.x < r.right - by
    && p.y > r.top + by && p.y < r.bottom - by;
  const along = path => {
    const [length, at] = [path.getTotalLength(), path.getScreenCTM()];
    const n = Math.ceil(length / 4);
    return Array.from({length: n}, (_, i) =>
      path.getPointAtLength(length * i / n).matrixTransform(at));
  };
  const ways = [...drawn.querySelectorAll('.edge path, path.edge')].map(along);
  return {
    crossed: captions.filter(c => ways.some(w => w.some(p => within(p, c, 1)))).length,
    through: boxes.filter(b => ways.some(w => w.slice(4, -4).some(p => within(p, b, 5)))).length,
    overlaps: boxes.filter((a, i) => boxes.some((b, j) => j < i && meet(a, b))).length,
    covered: captions.filter(c => boxes.some(b => meet(b, c))).length,
    beyond: beyond.length,
    largest: Math.max(...['width', 'height'].map(n => parseFloat(getComputedStyle(drawn)[n]))),
    smallest: Math.min(...fonts),
  };
}"""


def test_every_picture_can_be_read(opened):
    pictures = sorted(GALLERY.glob("*.svg"))
    large = {"lenet", "transformer", "lstm", "lstm_story", "chain"}  # of 279 to 11,165 nodes
    assert large < {path.stem for path in pictures}
    page = None
    for i, path in enumerate(pictures):
        page = opened(path, scheme=("light", "dark")[i % 2], page=page)
        found = page.evaluate(MEASURE)
        bad = {
            what: found[what] for what in ("overlaps", "covered", "beyond", "crossed", "through")
        }
        assert not any(bad.values()), (path.name, bad)
        assert found["smallest"] >= 10, path.name
        assert 100 < found["largest"] <= 6000, path.name


@pytest.mark.parametrize("name", ["attention", "rounds"])
def test_the_built_in_layout_runs_no_edge_behind_a_box(opened, tmp_path, name):
    program = runpy.run_path(str(GALLERY / "make.py"))[name]()
    found = opened(save(program, tmp_path / "p.svg", engine="layers")).evaluate(MEASURE)
    assert [found[what] for what in ("through", "overlaps", "crossed", "covered")] == [0] * 4


def test_axe_finds_nothing_in_a_story(opened):
    page = opened(GALLERY / "relu_story.svg")
    assert_accessible_in_both(page)
    page.set_viewport_size({"width": 390, "height": 844})
    assert_accessible_in_both(page)


def test_axe_finds_nothing_in_a_derivation(opened, tmp_path):
    # Names so long that a formula is wider than a telephone in any font.
    x = sg.placeholder("features_of_all_flowers", ("N", 5))
    w = sg.variable("weights_of_the_first_layer", np.zeros((5, 3)))
    loss = sg.mean(sg.nn.softmax(sg.relu(x @ w) + sg.exp(x @ w), axis=1) ** 2)
    page = opened(sg.derivation(loss, w).save(tmp_path / "derivation.html"))
    page.set_viewport_size({"width": 390, "height": 844})
    assert_accessible(page)
    # What is wider than the page is reached and moved by the keyboard.
    formulas = page.locator("li > div:first-child")
    assert formulas.evaluate_all("all => all.some(d => d.scrollWidth > d.clientWidth)")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.matches('li > div:first-child')")

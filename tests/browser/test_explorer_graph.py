"""The explorer's graph in a real browser: how it opens, zoom and pan, the map, what changes."""

from __future__ import annotations

import re
import runpy
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import symgrad as sg
from tests.browser.test_explorer_page import choose, nodes, state


def test_a_large_program_opens_as_an_overview(opened, deep_page):
    page = opened(deep_page)
    overview = page.locator("#boxes .node").count()
    assert page.locator("#worlds [aria-pressed=true]").text_content() == "overview"
    groups = page.locator("#boxes .is-group", has_text="layer")
    assert groups.count() >= 6  # of the forward and of the backward part
    page.locator("#worlds [data-world=full]").click()
    full = page.evaluate("now().boxes.length")
    assert overview <= 40 < full
    page.keyboard.press("c")
    assert page.locator("#boxes .node").count() == overview


def test_a_closed_box_tells_inputs_from_parameters(opened, tmp_path):
    h, given = sg.zeros(3), []
    for i in range(20):
        with sg.scope(f"step{i}"):
            given.append(sg.placeholder(f"x{i}", (3,)))
            h = sg.tanh(h * sg.variable(f"w{i}", np.ones(3)) + given[-1])
    page = opened(sg.compile(given, h, passes=()).explore(tmp_path / "steps.html"))
    assert "1 input, 1 parameter" in page.locator("#boxes").text_content()


TOP = """(e) => { const [x, y] = topOf(e); return [x * view.k + view.x, y * view.k + view.y]; }"""
OVERLAPS = """() => {
  const at = now().boxes.map((b) => [...laid.spots.get(world.boxes[b].spot), world.boxes[b]]);
  const apart = ([x, y, a], [u, v, b]) =>
    2 * Math.abs(x - u) >= a.width + b.width - 4 || 2 * Math.abs(y - v) >= a.height + b.height - 4;
  return at.flatMap((a, i) => at.slice(i + 1).filter((b) => !apart(a, b))).length;
}"""


def test_a_scope_opens_in_its_place_level_by_level(opened, deep_page, big_page):
    page = opened(deep_page)
    before = nodes(page)
    scope = page.evaluate("[...levelsOf(whole)].find((l) => l.title === 'layer3').element")
    page.evaluate(f"change({{ node: {scope} }})")
    stood = page.evaluate(TOP, scope)
    page.keyboard.press("Enter")
    assert page.evaluate(TOP, scope) == pytest.approx(stood, abs=1)
    assert before - nodes(page) == {f"n{scope}"}
    frame = page.evaluate(f"laid.frames.find((f) => f.level.element === {scope})")
    inside = page.evaluate(
        f"elements[{scope}].level.spots.map((s) => laid.spots.get(s)).filter((p) => p)"
    )
    assert inside
    for x, y in inside:
        assert frame["x"] < x < frame["x"] + frame["width"]
        assert frame["y"] < y < frame["y"] + frame["height"]
    # What is open says where it is, and closes; the address keeps it.
    page.evaluate(f"change({{ node: {scope} }})")
    assert page.locator("#crumbs button").all_text_contents()[-1].startswith("layer3")
    again = opened(deep_page, page.evaluate("location.hash"))
    assert nodes(again) == nodes(page)
    page.locator(f'#frames .title[data-node="n{scope}"]').dblclick()
    assert nodes(page) == before
    # Of a hundred layers there is every level, none with more than can be taken in.
    page = opened(big_page)
    for _ in range(3):
        assert page.locator("#boxes .node").count() <= 60
        assert page.evaluate(OVERLAPS) == 0
        page.evaluate("turnLevels([[...now().members.keys()].find((l) => l.inside.length)"
                      " ?? [...now().members.keys()][0]], true)")  # fmt: skip
    levels = page.evaluate("[...levelsOf(whole)].map((l) => l.inside.length + l.spots.length)")
    assert max(levels) <= 110


def test_what_is_gone_can_be_hidden(opened, net_page):
    page = opened(net_page, "#world=full")
    choose(page, "simplify")
    sheet = page.evaluate("laid.sheet")
    assert page.locator("#ghosts .node").count()
    page.locator("#gone").click()
    assert page.locator("#ghosts .node").count() == 0
    assert page.evaluate("laid.sheet[0] * laid.sheet[1]") < sheet[0] * sheet[1]
    assert page.evaluate(OVERLAPS) == 0
    page.locator("#gone").click()
    assert page.evaluate("laid.sheet") == sheet


def scale(page):
    return page.evaluate("view.k")


def in_window(page, node):
    box = page.locator(f'#view [data-node="{node}"] .shape').first.bounding_box()
    stage = page.locator("#stage").bounding_box()
    return all(
        stage[at] <= box[at] and box[at] + box[side] <= stage[at] + stage[side]
        for at, side in (("x", "width"), ("y", "height"))
    )


@pytest.mark.parametrize("world", ["closed", "full"])
def test_it_opens_where_text_can_be_read(opened, big_page, world):
    page = opened(big_page, f"#world={world}")
    assert scale(page) >= 10 / 11.5
    first = page.locator("#boxes .is-placeholder").first.get_attribute("data-node")
    assert in_window(page, first)
    page.keyboard.press("f")
    if world == "full":
        assert page.locator("#map").is_hidden()
        assert scale(page) < 0.2
        page.keyboard.press("n")  # as near as to read it
        assert scale(page) >= 0.7
        assert in_window(page, state(page)["node"])


def test_the_map_leads_to_what_is_pointed_at(opened, big_page):
    page = opened(big_page, "#world=full")
    box = page.locator("#map").bounding_box()
    before = page.evaluate("[view.x, view.y]")
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.evaluate("[view.x, view.y]") != before
    middle = page.evaluate("(size.width / 2 - view.x) / view.k / laid.sheet[0]")
    assert middle == pytest.approx(0.5, abs=0.02)


def test_the_changes_of_a_pass_are_shown_one_by_one(opened, net_page):
    page = opened(net_page, "#world=full")
    choose(page, "simplify")
    changed = nodes(page, "#boxes .is-added") | nodes(page, "#ghosts .node")
    assert page.locator("#changes").text_content().startswith(f"{len(changed)} changes here: ")
    seen = set()
    for _ in changed:
        page.keyboard.press("n")
        seen.add(state(page)["node"])
    assert seen == changed
    choose(page, "as written")
    assert page.locator("#changes").is_hidden()


def test_the_parts_are_named_wherever_one_looks(opened, big_page):
    page = opened(big_page, "#world=full")
    assert page.locator("#captions text").all_text_contents() == ["forward", "backward", "update"]
    stage = page.locator("#stage").bounding_box()
    frame = page.locator("#captions .is-forward").bounding_box()
    assert stage["x"] <= frame["x"] <= stage["x"] + stage["width"]
    assert stage["y"] <= frame["y"] + 20 <= stage["y"] + stage["height"]


def test_zoom_pan_and_fit(opened, net_page):
    page = opened(net_page)
    view = page.locator("#view")
    page.keyboard.press("f")
    fitted = view.get_attribute("transform")
    page.mouse.move(600, 500)
    page.mouse.wheel(0, -400)
    page.wait_for_function(
        f"document.querySelector('#view').getAttribute('transform') !== '{fitted}'"
    )
    near = view.get_attribute("transform")
    page.mouse.move(600, 700)
    page.mouse.down()
    page.mouse.move(660, 720)
    page.mouse.up()
    assert view.get_attribute("transform") != near
    page.keyboard.press("f")
    assert view.get_attribute("transform") == fitted


# What a frame costs is what is touched in it; no time is asserted, for machines differ.
TOUCHED = """async (action) => {
  const records = [];
  const watch = new MutationObserver((found) => records.push(...found));
  const all = { attributes: true, childList: true, subtree: true };
  watch.observe(document.getElementById("view"), all);
  const pan = () => { view.x += 9; place(); };
  ({ pan, zoom: () => zoom(1.01, 500, 300), step: () => step(-1) })[action]();
  records.push(...watch.takeRecords());
  watch.disconnect();
  const moved = records.flatMap((r) => [...r.addedNodes, ...r.removedNodes]);
  return [records.length, moved.filter((n) => n.matches?.(".node")).length];
}"""


def test_of_two_thousand_nodes_only_what_changes_is_touched(opened, big_page):
    page = opened(big_page)
    page.keyboard.press("c")  # out of the overview
    boxes = page.evaluate("now().boxes.length")
    assert page.locator("#boxes .node").count() < 100 < 900 < boxes  # what is far is left out
    assert page.evaluate(TOUCHED, "pan") == [1, 0]
    page.keyboard.press("f")
    assert page.locator("#boxes .node").count() == boxes
    assert page.evaluate(TOUCHED, "pan") == [1, 0]
    assert page.evaluate(TOUCHED, "zoom") == [1, 0]
    choose(page, "simplify")
    changed = page.evaluate("[now().added.length, now().left]")
    _, moved = page.evaluate(TOUCHED, "step")
    assert 0 < moved < 4 * sum(changed) < boxes


def test_an_edge_beside_a_tall_frame_runs_around_it(opened, tmp_path):
    make = runpy.run_path(str(Path(__file__).parents[2] / "viz" / "gallery" / "make.py"))
    page = opened(make["lstm"](20).explore(tmp_path / "lstm.html"))
    beside, behind = page.evaluate(
        """() => {
          const within = ({x, y, width, height}, p) =>
            p.x > x + 3 && p.x < x + width - 3 && p.y > y + 3 && p.y < y + height - 3;
          const ways = [...document.querySelectorAll("#edges .edge")].map((way) => {
            const long = way.getTotalLength();
            return Array.from({ length: 41 }, (_, i) => way.getPointAtLength((long * i) / 40));
          });
          const pairs = laid.frames.flatMap((f) => ways.map((w) => [f, w]));
          const others = pairs.filter(([f, w]) => !within(f, w[0]) && !within(f, w.at(-1)));
          const is = ([f, w]) => w.some((p) => p.y > f.y + 9 && p.y < f.y + f.height - 9);
          const beside = others.filter(is);
          return [beside.length, beside.filter(([f, w]) => w.some((p) => within(f, p))).length];
        }"""
    )
    assert beside > 3
    assert behind == 0


def test_rounds_of_a_loop_of_pythons_are_levels(opened, tmp_path):
    x = h = sg.placeholder("x", ("N",), "float32")
    for _ in range(60):
        h = sg.tanh(h * 0.5 + x)
    page = opened(sg.compile([x], {"h": h}, passes=()).explore(tmp_path / "rounds.html"))
    # There is but one stage: nothing is gone in any.
    assert page.locator("#gone").is_hidden()
    titles = page.locator("#frames .title").all_text_contents()
    assert any("sg.tanh(h * 0.5 + x) ×60" in title for title in titles)
    boxes = page.locator("#boxes .is-group text:first-of-type").all_text_contents()
    rounds = [tuple(map(int, re.fullmatch(r"rounds (\d+) … (\d+)", t).groups())) for t in boxes]
    assert rounds[0][0] == 1
    assert rounds[-1][1] == 60
    assert all(b[0] == a[1] + 1 for a, b in pairwise(rounds))

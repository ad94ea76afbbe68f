"""Loops in the explorer, in a real browser: a box that opens in place, and what is carried."""

from __future__ import annotations

import pytest

import symgrad as sg

NAME = '</script><b>"x'


@pytest.fixture(scope="module")
def page_of_loops(tmp_path_factory):
    x, w = sg.placeholder(NAME, ("T", 4)), sg.placeholder("w", (4, 4))
    last, _ = sg.scan(lambda h, row: (sg.tanh(row + h @ w), None), sg.zeros(4), x)
    end = sg.while_loop(lambda c: sg.sum(c) < 9, lambda c: c * 2 + 1, last)
    y = sg.cond(sg.sum(last) > 0, lambda: sg.sum(end), lambda: sg.sum(sg.exp(end)))
    program = sg.compile([x, w], [y, sg.grad(y, w)])
    return program.explore(tmp_path_factory.mktemp("loops") / "loops.html")


def test_a_loop_opens_in_place(opened, page_of_loops):
    page = opened(page_of_loops, "#world=full", "dark")
    boxes = page.locator("#boxes .node")
    closed = boxes.count()
    loop = page.locator("#boxes .node", has_text="loop ×T").first
    assert "matmul" in loop.text_content()
    number = loop.get_attribute("data-node")
    loop.locator(".shape").first.click(force=True)
    page.locator("#graph").focus()
    page.keyboard.press("Enter")
    assert boxes.count() > closed
    assert page.locator("#boxes .is-carry", has_text="carry0").count() >= 3
    assert page.locator("#boxes .is-slice", has_text=f"{NAME}[t]").count() == 1
    assert page.locator("#boxes .is-test", has_text="while sum(carry0").count() == 1
    assert page.locator("#boxes .is-test", has_text="chosen").count() >= 1
    assert page.locator(f'.hull.is-loop[data-node="{number}"]').count() >= 3
    assert "a loop or a choice" in page.locator("#legend").text_content()
    # What is carried goes back up, beside the rest.
    ways = page.locator("#edges .is-carry")
    assert ways.count() >= 3
    assert page.evaluate(
        """() => world.edges.filter((e) => e.carried).every(
          (e) => world.spots[e.tail][1] >= world.spots[e.head][1] && e.way.length === 4)"""
    )
    # The line of a step, and what computes it, are told of what is inside.
    page.locator("#boxes .node", has_text="= tanh").first.locator(".shape").first.click(force=True)
    told = page.locator("#pane").text_content()
    assert "test_explorer_loops.py" in told
    assert "once in each of" in told
    page.keyboard.press("g")
    assert boxes.count() == closed


def test_no_text_is_small_and_no_boxes_overlap(opened, page_of_loops):
    page = opened(page_of_loops, "#world=open")
    overlapping, smallest = page.evaluate(
        """() => {
          const boxes = [...document.querySelectorAll("#boxes .node:not(.ghost)")];
          const areas = boxes.map((b) => b.querySelector(".shape")?.getBBox() && [
            ...world.spots[world.boxes[b.dataset.box].spot], b.querySelector(".shape").getBBox()]);
          const apart = ([x, y, a], [u, v, b]) =>
            2 * Math.abs(x - u) >= a.width + b.width || 2 * Math.abs(y - v) >= a.height + b.height;
          const there = areas.filter(Boolean);
          const over = there.flatMap((a, i) => there.slice(i + 1).filter((b) => !apart(a, b)));
          view.k = 1.2; place();
          const texts = [...document.querySelectorAll("#boxes .is-carry text:not(.far-name)")];
          const sizes = texts.map((t) => parseFloat(getComputedStyle(t).fontSize) * view.k);
          return [over.length, Math.min(...sizes)];
        }"""
    )
    assert overlapping == 0
    assert smallest >= 10

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
    assert page.locator(f'.hull.is-loop[data-node="{number}"]').count() == 1
    # No box of another lies in a frame, and no edge crosses its title.
    assert (
        page.evaluate(
            """() => hullsOf(now()).flatMap(({ boxes, rect, at }) => {
          const own = new Set(boxes.map((b) => world.boxes[b].spot));
          const inside = now().boxes.filter((b) => !boxes.includes(b)
            && sides(b).every((x, i) => (i < 2 ? x < rect[i + 2] : x > rect[i - 2])));
          const crossed = [...own].flatMap(entering).filter((way) => !own.has(way.begin?.spot))
            .map((way) => between(way, rect[1], rect[1] + 14)).filter((found) => found
              && found[0] < at + 70 && found[1] > at);
          return [...inside, ...crossed];
        })"""
        )
        == []
    )
    assert "a loop or a choice" in page.locator("#legend").text_content()
    # What is carried goes back up, beside the rest.
    ways = page.locator("#edges .is-carry")
    assert ways.count() >= 3
    assert page.evaluate(
        """() => world.edges.filter((e) => e.carried).every(
          (e) => laid.spots.get(e.tail)[1] >= laid.spots.get(e.head)[1]
            && laid.ways.get(e.key).way.length === 4)"""
    )
    # The line of a step, and what computes it, are told of what is inside.
    page.keyboard.press("f")
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
          const at = (b) => laid.spots.get(world.boxes[b.dataset.box].spot);
          const areas = boxes.map((b) => b.querySelector(".shape")?.getBBox() && [
            ...at(b), b.querySelector(".shape").getBBox()]);
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_static_picture_can_be_read(opened, tmp_path, scheme):
    """No text below 10 pixels, no box on another, and what is carried in a colour of its own."""
    a, b = sg.placeholder("a", ()), sg.placeholder("b", ())
    halved = (lambda p: ((p[0] + p[1]) / 2, sg.sqrt(p[0] * p[1])), (a, b))
    mean, _ = sg.while_loop(lambda p: abs(p[0] - p[1]) > 1e-9, *halved)
    program = sg.compile([a, b], [mean, sg.grad(mean, a)])
    page = opened(program.render(tmp_path / "loops.svg"), scheme=scheme)
    smallest, over, carried = page.evaluate(
        """() => {
          const all = (chosen) => [...document.querySelectorAll(chosen)];
          const drawn = all(".node").map((n) => n.getBoundingClientRect());
          const texts = all("text").map((t) => t.getBoundingClientRect());
          const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
            && a.top < b.bottom - 1 && b.top < a.bottom - 1;
          const over = drawn.flatMap((a, i) => drawn.slice(i + 1).filter((b) => meet(a, b)));
          const colours = all(".edge.is-carry path").map((w) => getComputedStyle(w).stroke);
          return [Math.min(...texts.map((t) => t.height)), over.length, colours];
        }"""
    )
    assert smallest >= 10
    assert over == 0
    assert carried == 6 * ["rgb(74, 79, 181)" if scheme == "light" else "rgb(157, 162, 242)"]

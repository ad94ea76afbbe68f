"""The page as one reads it who has not seen it before: what it says by itself, and where."""

from __future__ import annotations

import numpy as np
import pytest

import symgrad as sg
from tests.browser.test_explorer_page import choose, click_node, node_of, nodes, state


def test_a_gradient_rule_comes_with_its_line_and_its_derivative(opened, net_page):
    page = opened(net_page)
    page.locator("#graph").focus()
    click_node(page, node_of(page, "keep_where_positive"))
    first = page.locator("#story > li").first.text_content()
    assert "sg.relu(x @ w1)by the gradient rule vjp(relu): The slope is 1 where" in first
    factor = node_of(page, "* 2e-06")
    click_node(page, factor)
    told = page.locator("#story").text_content()
    assert "** 2by the gradient rule vjp(square): d(x²) = 2 x dx." in told
    assert "vjp(matmul)" not in told
    page.locator("#find").fill("d(x²)")
    assert factor in nodes(page, "#boxes .is-found")


def test_it_says_how_it_is_read_and_by_which_keys(opened, net_page):
    page = opened(net_page)
    assert page.locator("#pane").is_hidden()
    page.locator("#graph").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")  # so that the focus came of a key
    assert "choose a node" in page.locator("#hover").text_content()
    page.locator("#help").click()
    pane = page.locator("#pane")
    assert "How to read it" in pane.text_content()
    assert "rounding last digits" in page.locator("#grades").text_content()
    assert page.evaluate("document.activeElement.id") == "pane"
    page.keyboard.press("Escape")
    page.locator("#find").fill("kept for the backward")
    assert nodes(page, "#boxes .is-found") == {node_of(page, "= relu")}


def test_nothing_moves_while_one_searches(opened, net_page):
    page = opened(net_page)
    header = page.locator("header").bounding_box()
    for text in ("relu", "nothing of the sort", "n0"):
        page.locator("#find").fill(text)
        assert page.locator("header").bounding_box() == header
    page.locator("#find").fill("relu")
    page.keyboard.press("Enter")
    assert page.locator("header").bounding_box() == header


def test_from_afar_every_box_has_a_name_within_it(opened, net_page):
    page = opened(net_page)
    page.keyboard.press("n")
    page.keyboard.press("f")
    names = page.locator("#boxes .far-name").all_text_contents()
    assert {"w2.T", "x.T", "matmul", "keep_where_positive"} <= set(names)
    assert "permute_dims" not in names
    outside = page.evaluate(
        """() => [...document.querySelectorAll('#boxes .node')].filter(node => {
            const box = e => e.getBoundingClientRect();
            const [name, shape] = ['.far-name', '.shape'].map(c => box(node.querySelector(c)));
            const line = node.querySelector('.line-of');
            const from = line ? box(line).right : shape.left;
            return !name.width || name.left < from - 1 || name.right > shape.right + 1;
        }).map(node => node.textContent)"""
    )
    assert outside == []


@pytest.fixture(scope="module")
def rounds_page(tmp_path_factory):
    """The page of 433 rounds of a loop of Python's, which has an overview and a small map."""
    h = x = sg.placeholder("x", ("N",), "float32")
    w = sg.variable("w", np.float32(0.5))
    for _ in range(433):
        h = sg.tanh(h * w + x)
    path = tmp_path_factory.mktemp("rounds") / "rounds.html"
    return sg.compile([x], {"h": h}, passes=()).explore(path)


def test_from_afar_rounds_are_told_by_their_numbers(opened, rounds_page):
    page = opened(rounds_page)
    page.keyboard.press("f")
    names = page.locator("#boxes .far-name:visible").all_text_contents()
    assert len(names) == page.locator("#boxes .node").count() > 20
    assert {"1 … 22", "89 … 110"} <= set(names)


def test_the_map_covers_no_pass_and_the_bar_breaks_on_a_phone(opened, net_page, deep_page):
    page = opened(net_page, "#all=1")
    page.set_viewport_size({"width": 1400, "height": 480})
    page.wait_for_function("document.getElementById('list').scrollTop > 0")  # the last is shown
    choose(page, "simplify")  # which has its rules below it
    small = page.locator("#map").bounding_box()
    rows = page.locator("#list")
    box = rows.bounding_box()
    assert rows.evaluate("list => list.scrollHeight > list.clientHeight + 50")
    assert box["y"] + box["height"] <= small["y"]
    choose(page, "fusion")
    shown = page.locator("#list [aria-current]").bounding_box()
    assert box["y"] - 1 <= shown["y"]
    assert shown["y"] + shown["height"] <= box["y"] + box["height"] + 1
    page.set_viewport_size({"width": 390, "height": 844})
    page = opened(deep_page, page=page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_strings_of_several_lines_have_one_colour(opened, net_page):
    page = opened(net_page, "#tab=numpy")
    inside = page.locator("#panel-numpy .row", has_text="So small that BLAS").first
    assert inside.locator(".quote").text_content().strip().startswith("So small that BLAS")
    assert inside.locator(".word").count() == 0
    code = page.locator("#panel-numpy .row", has_text="x, y = a.reshape(-1)").first
    assert code.locator(".quote").count() == 0


def test_on_a_phone_what_is_told_is_seen_beside_what_was_tapped(opened, net_page):
    page = opened(net_page)
    page.set_viewport_size({"width": 390, "height": 844})
    opened(net_page, "#tab=graph", page=page)
    page.reload()  # for an address that differs in its end is no other page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    node = node_of(page, "= relu")
    click_node(page, node)
    assert state(page)["node"] == node
    pane = page.locator("#pane").bounding_box()
    box = page.locator(f'#boxes [data-node="{node}"] .shape').first.bounding_box()
    assert 300 < pane["y"] < 844
    assert pane["y"] + pane["height"] <= 845
    assert box["y"] > 0
    assert box["y"] + box["height"] < pane["y"]
    assert "relu" in page.locator("#pane h2").text_content()
    page.keyboard.press("Escape")
    assert page.locator("#pane").bounding_box()["y"] > 844

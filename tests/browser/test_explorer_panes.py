"""The explorer's panes in a real browser: linked lines, single rewrites, comparisons."""

from __future__ import annotations

import numpy as np
import pytest

import symgrad as sg
import symgrad_viz
from symgrad_viz.sketches import sketches
from tests.browser.conftest import SIZE
from tests.browser.test_explorer_page import (
    HOSTILE,
    address,
    assert_accessible,
    assert_accessible_in_both,
    choose,
    node_of,
    nodes,
    state,
)

HUE = "row => getComputedStyle(row).getPropertyValue('--hue')"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_nodes_and_the_program_are_linked_both_ways(opened, net_page, scheme):
    page = opened(net_page, scheme=scheme)
    page.keyboard.press("s")
    source, program = page.locator("#side-code"), page.locator("#side-numpy")
    assert source.is_visible()
    assert program.is_visible()
    assert page.locator("#pane").is_hidden()
    # From a line of the program to its node and the line that wrote it, by hovering.
    line = program.locator(".row", has_text="maximum(").last
    line.hover()
    relu = node_of(page, "relu")
    assert nodes(page, "#boxes .hinted") == {relu}
    hinted = source.locator(".row.hinted")
    assert "sg.relu(x @ w1)" in hinted.text_content()
    # One line has one colour everywhere.
    colours = {row.evaluate(HUE) for row in (line, hinted)}
    own = page.locator(f'#boxes [data-node="{relu}"] .line-of')
    assert {*colours, own.evaluate(HUE)} == colours
    assert len(colours) == 1
    # And from the line to all that came of it, from the node to both.
    hinted.hover()
    assert relu in nodes(page, "#boxes .hinted")
    assert program.locator(".row.hinted", has_text="maximum(").count() == 1
    assert program.locator(".row.hinted").count() > 3
    page.locator(f'#boxes [data-node="{relu}"] .shape').first.hover(force=True)
    assert "maximum(" in program.locator(".row.hinted").text_content()
    page.locator(f'#boxes [data-node="{relu}"] .shape').first.click(force=True)
    assert "maximum(" in program.locator(".row.marked").text_content()
    assert "sg.relu(" in source.locator(".row.marked").text_content()
    assert program.locator(".call", has_text="maximum").count() >= 1  # the colours of syntax
    assert_accessible(page)
    again = opened(net_page, address(page))
    assert again.locator("#side-code").is_visible()
    page.keyboard.press("s")
    assert source.is_hidden()
    assert page.locator("#pane").is_visible()


def test_machine_code_is_linked_with_nodes_and_lines_both_ways(opened, tmp_path):
    pytest.importorskip("llvmlite")
    x = sg.placeholder("x", ("N", 40))
    squares = x * x  # the line that the products come from
    roots = sg.sqrt(squares + 1.0)
    path = sg.compile(x, {"y": roots}, backend="native").explore(tmp_path / "native.html")
    page = opened(path)
    page.keyboard.press("s")
    page.get_by_label("which program").select_option(label="Machine code 1: LLVM's IR")
    program, source = page.locator("#side-numpy"), page.locator("#side-code")
    # From a line of the code to its node, and to the line that wrote it.
    line = program.locator("[data-element]", has_text="@llvm.sqrt").first
    line.hover()
    root = node_of(page, "sqrt")
    assert nodes(page, "#boxes .hinted") == {root}
    hinted = source.locator(".row.hinted")
    assert "sg.sqrt(squares" in hinted.text_content()
    assert line.evaluate(HUE) == hinted.evaluate(HUE)
    line.click()
    assert state(page)["node"] == root
    # And from either to all that computes it.
    source.locator(".row", has_text="squares = x * x").hover()
    assert "fmul" in "".join(program.locator(".row.hinted").all_text_contents())
    page.locator(f'#boxes [data-node="{root}"] .shape').first.click(force=True)
    marked = "".join(program.locator(".row.marked").all_text_contents())
    assert "sqrt" in marked
    assert f"; {root}" in marked
    assert "fmul" not in marked


def test_details_wait_where_the_graph_has_no_room_beside_them(opened, net_page):
    page = opened(net_page)
    assert page.locator("#pane").is_hidden()
    page.keyboard.press("n")
    assert page.locator("#pane").is_visible()
    assert "panes" not in state(page)
    # Who folds them is not contradicted.
    page.locator('[data-pane="d"]').click()
    page.keyboard.press("n")
    assert page.locator("#pane").is_hidden()
    small = opened(net_page, "#node=n5")
    assert small.locator("#pane").is_visible()


def test_panels_fold(opened, net_page):
    page = opened(net_page, "#panes=ptd")
    wide = page.locator("#stage").bounding_box()
    for id, of in (("p", "#passes"), ("t", "#legend"), ("d", "#pane")):
        page.locator(f'[data-pane="{id}"]').click()
        assert page.locator(of).is_hidden()
    box = page.locator("#stage").bounding_box()
    assert box["width"] > 1.5 * wide["width"]
    assert box["height"] > wide["height"]
    assert state(page)["panes"] == ""


def test_a_single_rewrite_is_a_step(opened, net_page, net):
    page = opened(net_page, "#world=full")
    choose(page, "simplify")
    fired = [f for f in net.trace.fired if f.stage == "simplify"]
    for i, entry in enumerate(fired[:3], 1):
        page.keyboard.press("]")
        told = page.locator("#pane").text_content()
        assert f"Rewrite {i} of {len(fired)} in simplify" in told
        assert entry.rule.name in told
        before, after = entry.change().split("  ->  ")
        assert page.locator("#diff .was code").text_content() == before
        assert page.locator("#diff .is code").text_content() == after
        assert page.locator("#boxes .is-found").count() >= 1
        # Each side is a small graph, too, in which what the other has not is marked.
        sides = [page.locator(f"#diff .{side} .sketch") for side in ("was", "is")]
        ops = [side.locator(".op").count() for side in sides]
        assert ops == [sum(bool(reads) for _, reads in s) for s in sketches(entry.change())]
        assert all(side.locator(".differs").count() for side in sides)
        assert sides[0].get_attribute("aria-label") == before
    assert_accessible(page)
    again = opened(net_page, address(page))
    assert again.locator("#pane").text_content() == told
    for _ in fired:  # and on into the next pass that has any
        page.keyboard.press("]")
    assert "in kernels" in page.locator("#pane h2").text_content()
    page.keyboard.press("[")
    assert page.locator("[aria-current] .name").text_content() in ("simplify", "kernels")
    page.keyboard.press("Escape")
    assert page.locator("#diff").count() == 0


def test_the_page_alone_says_what_is_kept_and_what_was_fused(opened, net_page, net):
    page = opened(net_page)
    page.locator('[data-pane="d"]').click()
    kept = page.locator("#kept-all")
    assert f"{64 * 100 * 4:,} bytes" in kept.text_content()  # relu's result, of float32[64, 100]
    kept.locator("[data-to]").first.click()
    told = page.locator("#pane").text_content()
    assert "the gradient reads this value" in page.locator("#kept").text_content()
    assert "relu" in told
    # Every name in a label is one that the page knows.
    labels = " ".join(page.locator("#boxes .node text:first-of-type").all_text_contents())
    assert "_" not in labels.replace("(next)", "")
    group = page.locator("#hulls g").first.get_attribute("data-node")
    page.evaluate(f"change({{ node: {group[1:]} }})")
    told = page.locator("#pane").text_content()
    assert "one group of" in told
    assert "Computes neighbouring operations together" in told
    # Why these and no others: what bounds the group, and how it runs.
    bounds = " ".join(page.locator("#ends li").all_text_contents())
    assert "It begins after n6 matmul: a product is one call of a library" in bounds
    assert "vdot: a reduction over the rows is complete only when the last row is done" in bounds
    assert "n33 multiply, before n34 matmul, n39 matmul: a product" in bounds
    assert f"{64 * 10 * 4:,} bytes" in told  # of the difference, which is read inside alone
    assert "the cache holds that" in page.locator("#runs").text_content()


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A net with two activations, both with hostile names."""
    programs = []
    for name in ("relu", "tanh"):
        x = sg.placeholder(HOSTILE[0], ("N", 8), "float32")
        with sg.scope(HOSTILE[1]):
            w = sg.variable(HOSTILE[5], np.ones((8, 8), "float32"))
            y = sg.sum(getattr(sg, name)(x @ w) ** 2)
        programs.append(sg.compile(x, {HOSTILE[2]: y, "dw": sg.grad(y, w)}))
    path = tmp_path_factory.mktemp("compare") / "two.html"
    return symgrad_viz.compare(*programs, path, names=(HOSTILE[0], "after")), programs


def test_programs_of_which_no_rule_acted_as_often_are_compared(opened, tmp_path):
    x = sg.placeholder("x", (3,))
    written, compiled = (sg.compile(x, sg.sum(x**2), **given) for given in ({"passes": ()}, {}))
    page = opened(symgrad_viz.compare(written, compiled, tmp_path / "two.html"), "#tab=compare")
    panel = page.locator("#panel-compare")
    assert "sum_of_squares" in panel.text_content()
    assert panel.evaluate("p => [...p.childNodes].every(n => n.nodeType === 1 || !n.data)")


def test_two_programs_are_compared(opened, two):
    path, (a, b) = two
    page = opened(path, "#tab=compare")
    panel = page.locator("#panel-compare")
    told = panel.text_content()
    assert HOSTILE[0] in told
    rows = page.locator("#figures tbody tr").evaluate_all(
        "all => Object.fromEntries(all.map(r => [...r.children].map(c => c.textContent))"
        ".map(([k, ...v]) => [k, v]))"
    )
    assert rows["nodes"] == [str(len(p.graph)) for p in (a, b)]
    for sign, name in (("was", "maximum("), ("is", "tanh(")):
        assert panel.locator(f".diff-{sign}", has_text=name).count() >= 1
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    assert_accessible_in_both(page)
    page.set_viewport_size(SIZE)
    assert_accessible_in_both(page)
    page.locator("button", has_text="mark what only").click()
    only = page.locator("#boxes .is-found")
    assert only.count() >= 1
    assert node_of(page, "relu") in nodes(page, "#boxes .is-found")
    other = opened(path, "#program=1&colour=only")
    assert node_of(other, "tanh") in nodes(other, "#boxes .is-found")
    # What users call their things is text, in every pane.
    other.keyboard.press("s")
    assert other.locator("img, b").count() == 0
    assert HOSTILE[0] in other.locator("#boxes .is-placeholder").text_content()

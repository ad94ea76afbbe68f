"""The explorer in a real browser: what a search finds, how marks differ, narrow screens."""

from __future__ import annotations

import pytest

from tests.browser.test_explorer_page import assert_accessible_in_both, choose, nodes, state


def search(page, text):
    page.locator("#find").fill(text)
    return page.locator("#found").text_content()


# Search


@pytest.mark.parametrize("text", ["w3", "layer4", "tanh", "product_with_itself", "matmul float32"])
def test_a_search_looks_into_closed_boxes(opened, deep_page, text):
    page = opened(deep_page)
    told = search(page, text)
    many = int(told.removesuffix(" found"))
    assert many >= 1
    lit = page.locator("#boxes .is-found")
    counts = lit.evaluate_all(
        "all => all.map(n => parseInt(n.querySelector('.count').textContent) || 1)"
    )
    assert sum(counts) == many
    assert page.locator("#map .found").get_attribute("d").count("M") == lit.count()
    seen = set()
    for i in range(min(many, 5)):
        page.locator("#find").press("Enter")
        assert page.locator("#found").text_content() == f"{i + 1} of {many} found"
        assert page.locator("#boxes .is-picked.is-found").count() == 1
        seen.add(state(page)["node"])
    assert len(seen) == min(many, 5)
    page.locator("#worlds [data-world=full]").click()
    assert page.locator("#found").text_content().endswith(f"{many} found")


@pytest.mark.parametrize("world", ["full", "open"])
def test_a_group_is_found_by_its_number(opened, net_page, world):
    page = opened(net_page, f"#world={world}")
    fused = page.evaluate("data.worlds.open.stages[state.pass].groups.values().next().value")
    assert search(page, f"n{fused}") == "1 found"
    assert nodes(page, "#view .is-found") == {f"n{fused}"}
    of_new = page.locator("#view .is-found.is-added").first.locator("rect:visible")
    strokes = of_new.evaluate_all("all => all.map(r => getComputedStyle(r).stroke)")
    marks = page.evaluate("""["found", "new"].map(mark => {
        const probe = document.body.appendChild(html("i"));
        probe.style.color = `var(--${mark})`;
        return getComputedStyle(probe).color;
    })""")
    assert set(marks) <= set(strokes)


def test_a_rule_is_found_by_what_came_of_it(opened, net_page):
    page = opened(net_page)
    assert search(page, "power_two") == "1 found"
    assert page.locator("#boxes .is-found").count() == 1


@pytest.mark.parametrize("text", ["vjp(relu)", "mask is made where"])
def test_makers_and_reasons_are_found(opened, net_page, text):
    page = opened(net_page)
    search(page, text)
    (backward,) = page.evaluate(
        "state.pass in data.stages && data.worlds.full.stages[state.pass].boxes"
        ".map(b => data.worlds.full.boxes[b].element)"
        ".filter(e => elements[e].op === 'keep_where_positive')"
    )
    assert f"n{backward}" in nodes(page, "#boxes .is-found")


def test_what_is_in_another_pass_is_found_there(opened, net_page):
    page = opened(net_page)
    (gone,) = page.evaluate(
        "data.worlds.full.stages[0].boxes.map(b => data.worlds.full.boxes[b].element)"
        ".filter(e => elements[e].op === 'sum')"
    )
    assert search(page, f"n{gone}") == "0 found here"
    assert page.locator("#other").text_content() == "1 node in common subexpressions"
    page.locator("#other").click()
    assert page.locator("#what").text_content().startswith("common subexpressions:")
    assert page.locator("#found").text_content() == "1 found"
    assert nodes(page, "#boxes .is-found") == {f"n{gone}"}


def test_a_rule_that_left_no_node_is_found_where_it_acted(opened, net_page):
    page = opened(net_page)
    assert search(page, "times_one") == "0 found here"
    assert page.locator("#other").text_content() == "a rule of simplify"
    page.locator("#find").press("Enter")
    assert page.locator('[data-rule="times_one"]').get_attribute("aria-pressed") == "true"
    assert "times_one" in page.locator("#pane h2").text_content()


@pytest.mark.parametrize("by", ["a rule", "a line"])
def test_rules_and_lines_light_closed_boxes_too(opened, deep_page, by):
    page = opened(deep_page)
    if by == "a rule":
        choose(page, "simplify")
        page.locator("[data-rule]").first.click()
    else:
        page.keyboard.press("3")
        page.locator("#panel-code .row", has_text="sg.tanh(").click()
    assert not page.locator("#why").text_content().startswith("0 ")
    assert page.locator("#boxes .is-group.is-found").count() >= 1


def test_axe_finds_nothing_in_what_is_found(opened, deep_page, net_page):
    page = opened(deep_page, "#find=tanh")
    page.locator("#find").press("Enter")
    assert_accessible_in_both(page)
    page = opened(net_page, "#find=times_one&colour=bytes")
    assert page.locator("#other").is_visible()
    assert_accessible_in_both(page)


# Marks


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_found_still_shows_that_it_is_new(opened, net_page, scheme):
    page = opened(net_page, "#world=full", scheme)
    choose(page, "simplify")
    search(page, "multiply")
    both = page.locator("#boxes .is-found.is-added").first
    told, new = both.locator(".halo").all()
    outer, inner = (float(h.get_attribute("width")) for h in (told, new))
    assert outer >= inner + 8  # so that there is a gap between the two
    colours = [h.evaluate("h => getComputedStyle(h).stroke") for h in (told, new)]
    assert len(set(colours)) == 2
    assert both.locator(".badge").is_visible()


def test_new_groups_are_marked_where_their_insides_are_shown(opened, net_page):
    page = opened(net_page)
    assert page.locator("#worlds [aria-pressed=true]").text_content() == "inside groups"
    (fused,) = nodes(page, "#hulls .is-added")
    assert page.locator("#hulls g:not(.is-added)").count() == 0
    assert page.locator("#tags .badge").first.is_visible()
    assert page.locator("#changes").text_content() == "1 change here: show the next (n)"
    page.keyboard.press("n")
    assert state(page)["node"] == fused
    choose(page, "kernels")
    assert page.locator("#hulls .is-added").count() == 0


def test_the_list_says_what_a_pass_did(opened, net_page):
    page = opened(net_page)
    facts = dict(
        zip(
            page.locator("#list .name").all_text_contents(),
            page.locator("#list .facts").all_text_contents(),
            strict=True,
        )
    )
    assert "31 → 29" in facts["common subexpressions"]
    assert "2 equal constants merged" in facts["common subexpressions"]
    assert "29 → 24+9 −14" in facts["simplify"]
    assert "fused" in page.locator("#what").text_content()


def test_the_filter_says_why_a_pass_is_listed(opened, net_page):
    page = opened(net_page)
    choose(page, "simplify")
    page.locator("#filter").fill("fus")
    listed = page.locator("#list .pass").all_text_contents()
    assert ["shown now" in text for text in listed] == [True, False]


@pytest.mark.parametrize("colour", ["flops", "bytes", "time"])
def test_the_scale_of_colours_has_figures(opened, net_page, colour):
    page = opened(net_page, f"#colour={colour}")
    scale = page.locator("#legend li", has=page.locator(".swatch"))
    assert scale.locator(".swatch").count() == 5
    figures = page.evaluate("[1, 5].map(i => heatText(hottest() * i * i / 25))")
    assert all(figure in scale.text_content() for figure in figures)


# The window


def overlap(a, b):
    return all(
        a[at] < b[at] + b[side] and b[at] < a[at] + a[side]
        for at, side in (("x", "width"), ("y", "height"))
    )


# Of all letters that are seen in the graph, the smallest, in pixels; the drawings of names from
# afar are hidden where they would be smaller.
SMALLEST = """() => Math.min(...[...document.querySelectorAll("#graph text")]
  .filter((t) => t.checkVisibility() && t.textContent)
  .map((t) => parseFloat(getComputedStyle(t).fontSize) * (t.closest("#view") ? view.k : 1)))"""


def test_no_letter_is_below_ten_pixels_and_none_lies_on_a_title(opened, net_page):
    page = opened(net_page)
    assert page.evaluate(SMALLEST) >= 10
    for key in ("f", "-", "-"):
        page.keyboard.press(key)
        assert page.evaluate(SMALLEST) >= 10
    page.keyboard.press("f")
    assert page.locator("#map").is_hidden()
    boxes = [b.bounding_box() for b in page.locator("#boxes .node .shape").all()]
    for title in page.locator("#captions g").all():
        own = title.bounding_box()
        assert not any(overlap(own, box) for box in boxes)


def test_where_frames_are_small_their_titles_stand_above_them(opened, net_page):
    page = opened(net_page)
    page.set_viewport_size({"width": 1400, "height": 640})
    page.keyboard.press("f")
    frames, titles = (page.locator(f"#{id} > g").all() for id in ("frames", "captions"))
    for frame, title in zip(frames, titles, strict=True):
        own = title.bounding_box()
        assert own["y"] + own["height"] <= frame.bounding_box()["y"] + 2


def test_a_title_in_sight_of_its_frame_alone_has_a_strip_of_its_own(opened, net_page):
    page = opened(net_page)
    page.evaluate("zoom(2, 0, 0); pan(-50, -300)")
    frame, stage = page.locator("#frames g").first, page.locator("#stage").bounding_box()
    strip = page.locator("#captions rect").first
    assert strip.evaluate("r => getComputedStyle(r).fillOpacity") == "1"
    right = frame.bounding_box()["x"] + frame.bounding_box()["width"]
    seen = min(right, stage["x"] + stage["width"]) - max(frame.bounding_box()["x"], stage["x"])
    assert strip.bounding_box()["width"] == pytest.approx(seen, abs=3)
    assert strip.bounding_box()["y"] == pytest.approx(stage["y"], abs=1)


@pytest.mark.parametrize("width", [800, 700, 390])
def test_on_a_narrow_screen_the_graph_is_seen(opened, net_page, width):
    page = opened(net_page)
    page.set_viewport_size({"width": width, "height": 844})
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    stage = page.locator("#stage").bounding_box()
    assert stage["width"] >= 0.95 * width
    assert stage["height"] >= 250
    page.keyboard.press("ArrowLeft")
    listed = page.locator("#list [aria-current]").bounding_box()
    assert 0 <= listed["x"] <= width - 100
    assert_accessible_in_both(page)


# Keys


def test_enter_opens_the_chosen_box_and_closes_it_again(opened, deep_page):
    page = opened(deep_page)
    page.locator("#graph").focus()
    page.keyboard.press("ArrowDown")
    while not page.locator("#boxes .is-picked.is-group").count():
        page.keyboard.press("ArrowDown")
    focused = page.evaluate("document.activeElement.dataset.node")
    assert {focused} == nodes(page, "#boxes .is-picked")  # so that it is read out
    before = nodes(page)
    page.keyboard.press("Enter")
    assert state(page)["node"] == focused
    assert page.locator(f'#frames .title[data-node="{focused}"]').count() == 1
    page.keyboard.press("Enter")
    assert nodes(page) == before


def test_enter_opens_a_fused_node_and_presses_buttons(opened, net_page):
    page = opened(net_page, "#world=full")
    (fused,) = nodes(page, "#boxes .is-fused")
    page.locator("#boxes .is-fused").focus()
    page.evaluate(f"change({{ node: {fused[1:]} }})")
    page.locator("#fit").focus()
    page.keyboard.press("Enter")
    assert state(page)["world"] == "full"
    page.locator("#graph").focus()
    page.keyboard.press("Enter")
    assert "world" not in state(page)  # as it begins: inside groups
    assert nodes(page, "#hulls .is-picked") == {fused}

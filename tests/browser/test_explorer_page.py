"""The explorer in a real browser: passes, nodes, lines, search, keys, address, hostile names."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

import symgrad as sg

HOSTILE = ["</script><img src=x onerror=alert(1)>", '"]; evil [', "x" * 10_000, "שלום עולם", "🙂",
           "<b>bold</b>", "\u202egnp.exe", "javascript:alert(1)"]  # fmt: skip


def nodes(page, selector="#boxes .node"):
    """The nodes that a selector finds, by their ids."""
    return set(page.eval_on_selector_all(selector, "all => all.map(n => n.dataset.node)"))


def choose(page, name):
    page.locator("#list .pass", has_text=name).click()


def click_node(page, node):
    """Click a node in its middle, as a hand would."""
    page.locator(f'#boxes [data-node="{node}"] .shape').first.click(force=True)


def node_of(page, op):
    """The id of the first node of this op."""
    texts = page.locator("#boxes .node", has_text=op)
    return texts.first.get_attribute("data-node")


def address(page):
    """What follows the `#`; the page is asked, for `page.url` may lag behind."""
    return page.evaluate("location.hash")


def state(page):
    return dict(pair.split("=") for pair in address(page)[1:].split("&"))


# Passes


def test_it_opens_with_what_runs_and_steps_through_the_passes(opened, net_page, net):
    page = opened(net_page)
    passes = page.locator("#list .name").all_text_contents()
    changed = [s.name.replace("_", " ") for s in net.trace.stages if s.after is not s.before]
    assert passes == ["as written", *changed]
    assert page.locator("[aria-current] .name").text_content() == changed[-1]
    for name in reversed(passes[:-1]):
        page.keyboard.press("ArrowLeft")
        assert page.locator("[aria-current] .name").text_content() == name
        assert page.locator("#what").text_content().startswith(f"{name}:")
    page.keyboard.press("ArrowLeft")
    assert page.locator("[aria-current] .name").text_content() == "as written"
    page.keyboard.press("ArrowRight")
    assert page.locator("[aria-current] .name").text_content() == passes[1]


def test_a_pass_shows_what_it_made_and_what_went(opened, net_page):
    page = opened(net_page, "#world=full")
    choose(page, "kernels")
    before = nodes(page)
    choose(page, "fusion")
    after = nodes(page)
    fused = nodes(page, "#boxes .is-fused")
    assert fused
    assert after - before == fused == nodes(page, "#boxes .node.is-added")
    assert nodes(page, "#ghosts .node") <= before - after
    assert nodes(page, "#ghosts .node")
    assert "new in this pass" in page.locator("#legend").text_content()


def test_nodes_keep_their_places(opened, net_page):
    page = opened(net_page)
    where = "all => Object.fromEntries(all.map(n => [n.dataset.node, n.getAttribute('transform')]))"
    last = page.eval_on_selector_all("#boxes .node", where)
    choose(page, "as written")
    first = page.eval_on_selector_all("#boxes .node", where)
    both = first.keys() & last.keys()
    assert len(both) > 8
    assert {n: first[n] for n in both} == {n: last[n] for n in both}


def test_passes_that_change_nothing_are_hidden_until_asked_for(opened, net_page, net):
    page = opened(net_page)
    shown = page.locator("#list .pass").count()
    page.locator("#all").check()
    assert page.locator("#list .pass").count() == len(net.trace.stages) + 1 > shown
    assert "no change" in page.locator("#list .pass.same").first.text_content()
    assert state(page)["all"] == "1"
    page.locator("#list .pass.same").first.click()
    page.locator("#all").uncheck()
    assert page.locator("#list .pass.same[aria-current]").count() == 1  # for it is shown


def test_the_filter_finds_passes_and_rules(opened, net_page):
    page = opened(net_page)
    page.locator("#filter").fill("sum_of")
    names = page.locator("#list .name").all_text_contents()
    assert names == ["simplify", "fusion"]  # the one that has the rule, and the one that is shown
    assert page.locator("[data-rule]").all_text_contents() == ["sum_of_squares"]
    page.locator("[data-rule=sum_of_squares]").click()
    assert "The sum of all squares is a dot product" in page.locator("#why").text_content()
    assert "def sum_of_squares" in page.locator("#pane details").text_content()
    assert nodes(page, "#boxes .node.is-found") == {node_of(page, "vdot")}


# Nodes and lines


def test_hovering_shows_the_user_s_line(opened, net_page):
    page = opened(net_page)
    page.locator("#boxes .node", has_text="relu").first.locator(".shape").first.hover(force=True)
    told = page.locator("#hover").text_content()
    assert re.search(r"n\d+ = relu\(n\d+\) : float32\[N, 100\]", told)
    assert re.search(r"conftest\.py:\d+  sg\.relu\(x @ w1\)", told)


def test_clicking_a_node_tells_its_story(opened, net_page):
    page = opened(net_page)
    click_node(page, node_of(page, "keep_where_positive"))
    pane = page.locator("#pane")
    assert page.locator("#type").text_content() == "float32[N, 100] in c"
    story = page.locator("#story").text_content()
    for told in ("conftest.py:", "gradient rule vjp(", "positive_select", "bits", "in kernels"):
        assert told in story
    assert "def positive_select" in story
    assert "sg.relu(x @ w1)" in page.locator("#own .marked").all_text_contents()[0]
    assert "keep_where_positive(" in page.locator("#runs0 .marked").text_content()
    assert "computed by step" in page.locator("#verdict").text_content()
    assert "bytes read" in page.locator("#cost").text_content()
    assert "of the arena, steps" in page.locator(".buffer").text_content()
    assert "float32[N, 100]" in pane.text_content()


def test_from_a_line_of_numpy_to_its_node_and_back(opened, net_page, net):
    page = opened(net_page)
    lines = net.source.splitlines()
    line = next(i for i, t in enumerate(lines, 1) if "keep_where_positive(a" in t)
    page.keyboard.press("2")
    page.locator(f'#panel-numpy [data-line="0:{line}"]').click()
    assert "keep_where_positive(" in page.locator("#pane h2").text_content()
    (marked,) = page.locator("#panel-numpy .marked").all_text_contents()
    assert marked.endswith(lines[line - 1])
    page.keyboard.press("1")
    assert nodes(page, ".is-picked") == {state(page)["node"]}
    # And the other way: the node's line, from the pane.
    click_node(page, node_of(page, "relu"))
    page.keyboard.press("2")
    assert "maximum(" in page.locator("#panel-numpy .marked").text_content()


def test_a_line_of_numpy_finds_its_node_in_every_stage(opened, net_page, net):
    page = opened(net_page, "#pass=0&tab=numpy")
    line = next(i for i, t in enumerate(net.source.splitlines(), 1) if "= vdot(" in t)
    page.locator(f'#panel-numpy [data-line="0:{line}"]').click()
    assert " = sum(" in page.locator("#pane h2").text_content()


def test_in_the_overview_a_line_of_numpy_leads_to_its_node_and_its_box(opened, deep_page):
    page = opened(deep_page, "#tab=numpy")
    page.locator("#panel-numpy button.row", has_text="matmul(").first.click()
    assert " = matmul" in page.locator("#pane h2").text_content()
    node = state(page)["node"]
    assert "In the overview part of forward: layer" in page.locator("#pane").text_content()
    page.keyboard.press("1")
    assert page.locator(".is-picked .shape").count() >= 1
    assert "layer" in page.locator(".is-picked").text_content()
    page.keyboard.press("c")
    assert nodes(page, ".is-picked") == {node} == {state(page)["node"]}


def test_from_a_line_of_the_user_s_to_its_nodes(opened, net_page):
    page = opened(net_page)
    page.keyboard.press("3")
    page.locator("#panel-code .row", has_text="loss = sg.sum(").click()
    assert "of this stage come of it" in page.locator("#pane").text_content()
    page.keyboard.press("1")
    found = nodes(page, "#boxes .is-found")
    assert {node_of(page, "relu"), node_of(page, "vdot")} <= found
    page.locator("#pane [data-to]").first.click()
    assert page.locator("#story [data-place]").count() >= 1


def test_groups_open_and_close(opened, net_page):
    page = opened(net_page)
    (fused,) = nodes(page, "#hulls g")
    frames = page.locator("#hulls g").count()
    assert frames == 2  # one in the forward part, one in the backward part
    page.locator("#hulls g rect").first.click(force=True, position={"x": 30, "y": 4})
    assert page.locator("#hulls .is-picked").count() == frames
    inside = page.locator("#pane p", has_text="inside:").locator("[data-to]")
    assert inside.count() == 3
    inside.first.click()
    assert "inside the group" in page.locator("#pane").text_content()
    page.keyboard.press("g")
    assert nodes(page, "#boxes .is-fused") == nodes(page, ".is-picked") == {fused}
    assert page.locator("#hulls g").count() == 0
    page.locator("#worlds [data-world=open]").click()
    assert page.locator("#hulls g").count() == frames


def test_a_fused_node_leads_to_its_parts_and_they_back(opened, net_page):
    page = opened(net_page, "#world=full")
    (fused,) = nodes(page, "#boxes .is-fused")
    click_node(page, fused)
    page.locator("#pane p", has_text="inside:").locator("[data-to]").first.click()
    assert "Not in this stage" in page.locator("#pane").text_content()
    page.locator("#pane p", has_text="Not in this stage").locator("[data-to]").click()
    assert nodes(page, ".is-picked") == {fused}


def test_a_chosen_node_is_followed_through_the_passes(opened, net_page):
    page = opened(net_page, "#pass=0&world=full")
    click_node(page, node_of(page, "sum"))
    choose(page, "simplify")
    assert "vdot" in page.locator("#pane h2").text_content()
    choose(page, "fusion")
    assert "fused" in page.locator("#pane h2").text_content()


def test_memory_shows_the_arena_and_leads_to_nodes(opened, net_page, net):
    page = opened(net_page)
    page.locator("#tab-memory").click()
    arena = [s for s in net.plan.slots if s.kind == "arena"]
    assert page.locator(".chart .slot").count() == len(arena) + len(net.plan.inside)
    assert page.locator(".chart").count() == 2  # one is of what lies in the array of a next value
    page.locator('[data-slot="a"]').click()
    assert "matmul(" in page.locator("#pane h2").text_content()
    assert page.locator(".chart .slot.marked").get_attribute("data-slot") == "a"
    assert "in the array of w1_next until that is written" in page.locator(".buffer").text_content()
    assert page.locator(".slots .marked").text_content().startswith("ain w1_next25,6000")


def test_the_profile_has_every_step_and_colours_by_time(opened, net_page, net):
    page = opened(net_page)
    page.locator("#tab-profile").click()
    assert page.locator("#panel-profile tbody tr").count() == len(net.plan.steps)
    page.locator("#panel-profile tbody .link").first.click()
    assert page.locator("#panel-profile .marked").count() == 1
    page.locator("#tab-graph").click()
    page.locator("#colour").select_option("time")
    assert page.locator('#boxes [data-heat="4"]').count() >= 1
    assert "measured" in page.locator("#legend").text_content()


def test_the_figures_say_for_which_sizes_and_of_what(opened, net_page, net):
    page = opened(net_page)
    sums = page.locator("#sums")
    assert sums.locator("caption").text_content() == "for N = 64"
    rows = {
        r[0]: r[1:]
        for r in sums.locator("tbody tr").evaluate_all(
            "all => all.map(r => [...r.children].map(c => c.textContent))"
        )
    }
    figure = {k: int(v[1].replace(",", "")) for k, v in rows.items() if k != "fullest in"}
    assert figure["bytes of memory"] == net.plan.peak_bytes
    assert figure["next values"] + figure["arena"] == figure["bytes of memory"]
    assert rows["fullest in"][1] == "keep_where_positive"
    assert figure["scratch there"] == 64 * 100  # the mask, a byte for each element
    was, now = (int(n.replace(",", "")) for n in rows["bytes of memory"])
    assert ("memory_budget" in page.locator("#pane").text_content()) == (now > was)


# Search, keys, the address


def test_search_counts_marks_and_steps(opened, net_page):
    page = opened(net_page)
    page.keyboard.press("/")
    page.keyboard.type("matmul float32[N, 100]")
    found = nodes(page, "#boxes .is-found")
    assert len(found) >= 2
    assert page.locator("#found").text_content() == f"{len(found)} found"
    page.keyboard.press("Enter")
    assert page.locator("#found").text_content() == f"1 of {len(found)} found"
    first = state(page)["node"]
    page.locator("#find").press("Enter")
    assert state(page)["node"] in found - {first}
    page.locator("#find").fill("nothing of the sort")
    assert page.locator("#found").text_content() == "0 found"


def test_arrows_go_along_the_edges(opened, net_page):
    page = opened(net_page)
    relu = node_of(page, "relu")
    click_node(page, relu)
    page.keyboard.press("ArrowUp")
    assert "matmul(" in page.locator("#pane h2").text_content()
    page.keyboard.press("ArrowDown")
    assert state(page)["node"] == relu
    page.keyboard.press("Escape")
    assert "node" not in state(page)
    assert "What it came to" in page.locator("#pane").text_content()


def test_everything_is_reached_by_keys(opened, net_page):
    page = opened(net_page)
    page.locator("#list .pass").nth(2).focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.matches('[aria-current]')")
    page.locator("#tab-graph").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-numpy"
    row = page.locator("#panel-numpy button.row").nth(3)
    row.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.matches('#panel-numpy .marked')")
    page.locator("#story [data-place]").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "pane"


def test_the_address_brings_back_the_view(opened, net_page):
    page = opened(net_page)
    choose(page, "simplify")
    page.locator("#find").fill("multiply")
    click_node(page, node_of(page, "vdot"))
    page.locator("#theme").select_option("dark")
    page.keyboard.press("Escape")  # lets go of the search, too
    page.locator("#find").fill("multiply")
    page.locator("#tab-numpy").click()
    again = opened(net_page, address(page))
    for selector in ("#what", "#found", "#pane", "#panel-numpy", "#list"):
        assert again.locator(selector).text_content() == page.locator(selector).text_content()
    assert address(again) == address(page)
    assert again.locator("html").get_attribute("class") == "dark"


@pytest.mark.parametrize(
    "state", ["#pass=99&node=n99999", "#pass=-1&tab=evil&line=9:x", "#%%%", "#node=</script>"]
)
def test_a_bad_address_does_no_harm(opened, net_page, state):
    page = opened(net_page, state)
    assert page.locator("#what").text_content().startswith("fusion:")


# Everybody, everywhere


@pytest.mark.parametrize("tab", ["graph", "numpy", "code", "memory", "profile"])
def test_axe_finds_nothing(opened, net_page, tab):
    page = opened(net_page, f"#tab={tab}&node=n5")
    assert_accessible_in_both(page)


def test_axe_finds_nothing_in_the_overview(opened, big_page, deep_page):
    assert_accessible_in_both(opened(big_page))
    page = opened(deep_page)
    page.locator("#changes").click()
    assert_accessible_in_both(page)


def assert_accessible(page, rules=("wcag2a", "wcag2aa", "wcag21aa")):
    # The tool itself is not the page's script, so it is put in from outside.
    # What it finds no fault with it need not list: that took longer than to look.
    found = Axe().run(page, options={"runOnly": [*rules], "resultTypes": ["violations"]})
    assert found.violations_count == 0, found.generate_report()


def assert_accessible_in_both(page):
    """In both schemes, which differ in colours only: in the dark one axe looks at nothing else."""
    page.emulate_media(color_scheme="light")
    assert_accessible(page)
    page.emulate_media(color_scheme="dark")
    assert_accessible(page, ["color-contrast", "link-in-text-block"])


def test_hostile_names_are_shown_as_text(opened, tmp_path):
    total = None
    for name in HOSTILE:
        with sg.scope(name):
            x = sg.placeholder(name, (2,))
            total = x if total is None else sg.tanh(total) + x
    program = sg.compile(list(sg.Graph([total]).inputs), {HOSTILE[0]: total}, passes=())
    page = opened(program.explore(tmp_path / "p.html", title=HOSTILE[0]))
    assert page.title() == HOSTILE[0]
    drawn = "\n".join(page.locator("#boxes .node").all_text_contents())
    for shown in (*HOSTILE[:2], *HOSTILE[3:6], r"\u202egnp.exe", "x" * 39 + "…"):
        assert shown in drawn
    for node in nodes(page):
        page.evaluate("node => { location.hash = `node=${node}` }", node)
        page.wait_for_function("node => location.hash.includes(`node=${node}`)", arg=node)
        assert page.locator("#pane img, #pane b, #pane script").count() == 0
    assert page.locator("img, b").count() == 0
    assert HOSTILE[0] in page.locator("#title").text_content()


def test_without_source_there_is_none(opened, net, tmp_path):
    page = opened(net.explore(tmp_path / "p.html", embed_source=False))
    assert page.locator("#tab-code").count() == 0
    click_node(page, node_of(page, "relu"))
    assert "conftest.py:" in page.locator("#story").text_content()
    assert "sg.relu" not in page.content()

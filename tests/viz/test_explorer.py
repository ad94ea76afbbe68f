"""The explorer's page and its data; `tests/browser` has what only a browser can tell."""

from __future__ import annotations

import base64
import colorsys
import hashlib
import json
import re
import xml.etree.ElementTree as ET
from importlib.resources import files
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import RenderError
from symgrad.ir.formats.text import type_text
from symgrad_viz import explore
from symgrad_viz.explorer import SCRIPTS, in_script
from symgrad_viz.explorer_data import document
from symgrad_viz.explorer_tables import numbers_text
from symgrad_viz.sketches import sketches
from symgrad_viz.story import story_svg
from symgrad_viz.theme import DARK, LIGHT
from tests.viz.contrast import contrast
from tests.viz.page_data import column, rows, unpacked


def build_net(layers=2, **options):
    x = sg.placeholder("x", ("N", 8), "float32")
    y = sg.placeholder("y", ("N", 8), "float32")
    h, weights = x, []
    for i in range(layers):
        with sg.scope(f"layer{i}"):
            weights.append(sg.variable(f"w{i}", np.full((8, 8), 0.1, "float32")))
            h = sg.relu(h @ weights[-1])
    loss = sg.sum((h - y) ** 2)  # the line of the loss, by which the tests find it
    grads = sg.grad(loss, weights)
    updates = {w: w - 0.01 * g for w, g in zip(weights, grads, strict=True)}
    return sg.compile([x, y], {"loss": loss}, updates=updates, **options)


def read(program, **options):
    """The document of a program with everything in its place, as the page has it."""
    given = {"title": None, "embed_source": True, "profile": None}
    shown = json.loads(in_script(document(program, **given | options)))
    texts, shared = shown["texts"], rows(shown["boxes"])

    def filled(pieces):
        first, *rest = texts[pieces[0]].split("\0")
        return first + "".join(f"{n}{t}" for n, t in zip(pieces[1:], rest, strict=True))

    def own(element, text):
        return (f"n{element} =" if text[0] == "=" else "") + text[1:]

    shown["elements"] = [{k: v for k, v in e.items() if v is not None}
                         for e in rows(shown["elements"])]  # fmt: skip
    shown |= {table: rows(shown[table]) for table in ("places", "rewrites")}
    for section in shown["sections"]:
        section["lines"] = list(map(filled, column(section["lines"])))
        section["computes"] = dict(zip(*map(unpacked, section["computes"]), strict=True))
        section |= {table: rows(section[table]) for table in ("steps", "slots")}
    for element in shown["elements"]:
        if "verdict" in element:
            element["verdict"] = filled(element["verdict"])
    for box in shared:
        more = (texts[t] for t in box["lines"])
        box["lines"] = [own(box["element"], filled(box["first"])), *more]
        box["call"] = own(box["element"], filled(box["call"]))
    for world in shown["worlds"].values():
        world["boxes"] = [
            SimpleNamespace(**shared[p.pop("box")], **p) for p in rows(world["boxes"])
        ]
        boxes = []
        for stage in world["stages"]:
            gone = unpacked(stage["boxes"]["gone"])
            boxes = [b for b in boxes if b not in gone] + unpacked(stage["boxes"]["new"])
            stage["boxes"] = boxes
            stage |= {what: unpacked(stage[what]) for what in ("ghosts", "added")}
    return shown


@pytest.fixture(scope="module")
def net():
    return build_net()


@pytest.fixture(scope="module")
def shown(net):
    return read(net)


def stage_of(shown, name, world="full"):
    names = [s["name"] for s in shown["stages"]]
    return shown["worlds"][world]["stages"][names.index(name)]


def boxes_of(shown, stage, what="boxes", world="full"):
    """The boxes of a stage by the number of their element."""
    table = shown["worlds"][world]["boxes"]
    return {table[b].element: table[b] for b in stage[what]}


@pytest.mark.parametrize(
    "numbers",
    [
        [],
        [0],
        [-1, 2**40, -(2**52)],
        list(range(3, 900)),
        [31, 32, -16] * 40,
        [5] * 99,
        [0, 9, 1, 9],
    ],
)
def test_numbers_are_kept_in_few_letters(numbers):
    text = numbers_text(numbers)
    assert unpacked(text) == numbers
    assert len(text) <= 1 + len(str(numbers))


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        ("2.0 * x.T  ->  x.T * 2.0", [("2.0", ()), ("x", ()), (".T", (1,)), ("*", (0, 2))], None),
        ("A @ A  ->  -A", [("A", ()), ("@", (0, 0))], [("A", ()), ("-", (0,))]),
        (
            "astype(permute_dims(A, (1, 0)), float32) > -1.0  ->  A",
            [("A", ()), ("permute_dims (1, …", (0,)), ("astype float32", (1,)),
             ("-1.0", ()), (">", (2, 3))],
            [("A", ())],
        ),
    ],
)  # fmt: skip
def test_a_rewrite_has_two_sketches(change, before, after):
    was, now = sketches(change)
    assert was == before
    assert after in (None, now)


def test_what_is_long_or_no_expression_has_no_sketch():
    assert sketches("  ->  ") == sketches("a b  ->  a") == sketches("<b>  ->  x") == ()
    assert sketches(" + ".join(f"x{i}" for i in range(9)) + "  ->  x0") == ()


# The stages


def test_the_first_stage_is_the_graph_as_it_prints(net, shown):
    first = boxes_of(shown, shown["worlds"]["full"]["stages"][0])
    printed = str(net.raw).splitlines()
    for number, box in first.items():
        assert printed[number].startswith(f"n{number}: ")
        assert f" = {shown['elements'][number]['op']}(" in printed[number]
        assert box.call.startswith(f"n{number} = ")
    # What is not drawn are small constants, which stand in the labels.
    hidden = [p for i, p in enumerate(printed[:-1]) if i not in first]
    assert hidden
    assert all("[()] = constant(" in p for p in hidden)


def test_every_pass_is_there_with_its_counts_and_rules(net, shown):
    stages = shown["stages"]
    assert [s["name"] for s in stages] == ["as written", *(s.name for s in net.trace.stages)]
    assert [s["nodes"] for s in stages] == [len(net.raw), *(len(s.after) for s in net.trace.stages)]
    for told, done in zip(stages[1:], net.trace.stages, strict=True):
        assert told["same"] == (done.before is done.after)
        assert told["ms"] >= 0
        # One plain sentence.
        assert re.fullmatch(r"[A-Z][^.:;]*\.", told["reason"])
    for before, after in pairwise(stages):
        assert before["nodes"] + after["new"] - sum(after["gone"].values()) == after["nodes"]
    counted = {shown["rules"][r["rule"]]["name"]: r["times"] for s in stages for r in s["rules"]}
    assert counted == net.trace.rules()


def test_nodes_that_a_pass_leaves_alone_keep_their_places(shown):
    world = shown["worlds"]["full"]
    spots = {}
    for stage in filter(None, world["stages"]):
        here = boxes_of(shown, stage)
        assert len({b.spot for b in here.values()}) == len(here)
        for number, box in here.items():
            key = number, box.kind == "backward"
            assert spots.setdefault(key, box.spot) == box.spot or box.kind == "update"


def test_what_is_new_and_what_is_gone(shown):
    stages = [s for s in shown["worlds"]["full"]["stages"] if s]
    for before, after in pairwise(stages):
        old, new = boxes_of(shown, before), boxes_of(shown, after)
        ghosts = boxes_of(shown, after, "ghosts")
        assert set(after["added"]) == new.keys() - old.keys()
        assert after["left"] == len(old.keys() - new.keys())
        assert ghosts.keys() <= old.keys() - new.keys()
        assert not {b.spot for b in ghosts.values()} & {b.spot for b in new.values()}


def test_where_to_went_what_is_gone(shown):
    told = {s["name"]: s for s in shown["stages"]}
    merging = told["common_subexpressions"]
    assert merging["new"] == 0
    assert merging["gone"] == {"merged": merging["constants"]}
    fused = told["fusion"]["gone"]["fused"]
    groups = stage_of(shown, "fusion")["added"]
    assert fused == len({i for g in groups for i in shown["elements"][g]["inside"]})


@pytest.mark.parametrize("layers", [2, 6])
def test_the_story_counts_as_the_explorer_does(layers):
    program = build_net(layers)
    told = " ".join(ET.fromstring(story_svg(program)).itertext())
    stages = read(program)["stages"]
    words = {"dropped": "gone", "replaced": "replaced", "merged": "merged with an equal",
             "fused": "fused"}  # fmt: skip
    at = [s["name"] for s in stages].index("simplify")
    changed = [(a, b) for a, b in pairwise(stages[at:]) if not b["same"]]
    assert {"replaced", "fused"} <= {way for _, stage in changed for way in stage["gone"]}
    for before, after in changed:
        went = ((after["gone"].get(way), text) for way, text in words.items())
        counts = [(after["new"], "new"), *went]
        parts = ", ".join(f"{n} {text}" for n, text in counts if n)
        assert f"{before['nodes']} → {after['nodes']} nodes: {parts}" in " ".join(told.split())


def test_fusion_makes_the_fused_nodes_and_nothing_else(shown):
    stage = stage_of(shown, "fusion")
    boxes = boxes_of(shown, stage)
    fused = {n for n, b in boxes.items() if b.kind == "fused"}
    assert fused
    assert set(stage["added"]) == fused
    for number in fused:
        inside = shown["elements"][number]["inside"]
        ops = " + ".join(dict.fromkeys(shown["elements"][i]["op"] for i in inside))
        assert ops.startswith(boxes[number].lines[2].rstrip("…"))


def test_a_rewritten_node_stands_where_the_old_one_stood():
    x = sg.placeholder("x", (4,))
    shown = read(sg.compile(x, sg.exp(x**2.0)))
    first, last = (boxes_of(shown, stage_of(shown, n)) for n in ("as written", "simplify"))
    power = next(b for b in first.values() if b.lines[0].endswith("x**2"))
    square = next(b for b in last.values() if b.lines[0].endswith("x**2"))
    assert square.spot == power.spot


def test_open_groups_show_what_is_inside_where_it_stood_before(shown):
    world = shown["worlds"]["open"]
    names = [s["name"] for s in shown["stages"]]
    at = names.index("fusion")
    before = next(s for s in reversed(world["stages"][:at]) if s)
    spots = {world["boxes"][b].element: world["boxes"][b].spot for b in before["boxes"]}
    groups = {}
    for b in world["stages"][at]["boxes"]:
        box = world["boxes"][b]
        assert spots[box.element] == box.spot
        if box.group is not None:
            groups.setdefault(box.group, set()).add(box.element)
    assert groups
    assert groups == {g: set(shown["elements"][g]["inside"]) for g in groups}
    assert world["stages"][at]["added"] == world["stages"][at]["ghosts"] == []


# Nodes, lines and rules


def element_of_line(shown, text, op):
    """The elements that a line of this file built, by the text of the line."""
    for element in shown["elements"]:
        for place in element.get("places", ()):
            if text in shown["places"][place]["text"] and element["op"] == op:
                return element
    raise AssertionError(f"no {op} comes from {text}")


def test_a_node_knows_its_line_its_rules_and_what_runs(net, shown):
    power = element_of_line(shown, "(h - y) ** 2", "pow")
    assert "rewrites" not in power
    assert power["verdict"].startswith("folded into step")
    vdot = next(e for e in shown["elements"] if e["op"] == "vdot")
    rules = [shown["rules"][shown["rewrites"][r]["rule"]]["name"] for r in vdot["rewrites"]]
    assert rules[-1] == "sum_of_squares"
    line = vdot["lines"][0]
    code = shown["sections"][vdot.get("section", 0)]["lines"][line - 1]
    assert "vdot" in code
    assert code == net.source.splitlines()[line - 1]
    assert vdot["flops"] == 2 * 64 * 8 - 1
    assert (vdot["read"], vdot["written"]) == (64 * 8 * 4, 0)


def test_gradient_rules_are_told_apart_from_rewrites(shown):
    selects = [e for e in shown["elements"] if e["op"] == "select"]
    assert any({"name": "vjp(relu)", "sort": "gradient"} in e["makers"] for e in selects)
    fused = [e for e in shown["elements"] if e.get("inside") and not e.get("group")]
    assert all({"name": "fusion", "sort": "pass"} in e["makers"] for e in fused)
    # A reader of the page alone is told why.
    assert fused
    assert all(e["verdict"].endswith("Computes neighbouring operations together, in pieces that "
                                     "stay in the cache.") for e in fused)  # fmt: skip


def test_the_line_that_wrote_a_node_stands_before_what_its_rewrites_took_in():
    """relu's backward is relu's, though the factor of the update has moved into it."""
    x, w = sg.placeholder("x", ("N", 1000)), sg.variable("w", np.ones((1000, 100)))
    v = sg.variable("v", np.ones((100, 10)))
    loss = sg.sum((sg.relu(x @ w) @ v) ** 2)
    dw, dv = sg.grad(loss, [w, v])
    own = read(sg.compile(x, loss, updates={w: w - 1e-6 * dw, v: v - 1e-6 * dv}))
    found = [e for e in own["elements"] if e["op"] == "keep_where_positive"]
    lines = [[own["places"][p]["text"] for p in e["places"]] for e in found]
    assert any(len(told) > 1 for told in lines), lines
    assert all(told[0].startswith("sg.relu(") for told in lines)


def test_a_factor_that_was_combined_names_both_lines_and_the_derivative_it_comes_of():
    """The 2 of the square's derivative times the rate, which has gone through a product."""
    x, w = sg.placeholder("x", ("N", 1000)), sg.variable("w", np.ones((1000, 100)))
    y = sg.placeholder("y", ("N", 100))
    loss = sg.sum((sg.relu(x @ w) - y) ** 2)
    dw = sg.grad(loss, w)
    own = read(sg.compile([x, y], loss, updates={w: w - 1e-6 * dw}))
    factors = [e for e in own["elements"] if e["op"] == "multiply" and "slopes" in e]
    stories = [
        [
            (own["places"][place]["text"], [rule["name"] for rule in own["slopes"][at]] * (at >= 0))
            for place, at in zip(e["places"], e["slopes"], strict=True)
        ]
        for e in factors
    ]
    wanted = [("1e-6 * dw", []), ("(sg.relu(x @ w) - y) ** 2", ["vjp(square)"])]
    assert any(story[:2] == wanted for story in stories), stories
    reasons = {rule["name"]: rule["reason"] for rules in own["slopes"] for rule in rules}
    assert reasons["vjp(square)"] == "d(x²) = 2 x dx."
    assert all(reasons.values())
    # Of a group, each member has its own.
    groups = [e for e in own["elements"] if e["op"] == "fused"]
    assert groups
    for e in groups:
        assert not e.get("slopes")
        assert [m["sort"] for m in e["makers"]] == ["pass"]


def test_of_a_function_of_ones_own_no_derivative_of_an_op_is_told():
    class relu(sg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return sg.maximum(x, 0)

        @staticmethod
        def backward(ctx, flow):
            return flow * (ctx.saved_tensors[0] >= 0)

    x = sg.placeholder("x", (3,))
    y = relu.apply(x)
    own = read(sg.compile(x, {"y": y, "d": sg.grad(sg.sum(y**2), x)}))
    reasons = {rule["name"]: rule["reason"] for rules in own["slopes"] for rule in rules}
    assert reasons["vjp(relu)"] == "the backward that you wrote."
    assert reasons["vjp(square)"] == "d(x²) = 2 x dx."


def test_every_line_that_computes_has_a_node_and_back(net, shown):
    (section,) = shown["sections"]
    computes = {int(line): number for line, number in section["computes"].items()}
    assert set(computes) == set(net.executables.shown().source.lines)
    for line, number in computes.items():
        holders = [
            number,
            *(i for i, e in enumerate(shown["elements"]) if number in e.get("inside", ())),
        ]
        told = [shown["elements"][i] for i in holders]
        assert any(e.get("section", 0) == 0 and line in e.get("lines", ()) for e in told)


def test_buffers_are_those_of_the_plan(net, shown):
    (section,) = shown["sections"]
    plan = net.plan
    assert section["arena"] == plan.arena_bytes
    for slot, told in zip(plan.slots, section["slots"], strict=False):
        assert told == {
            "name": slot.name, "kind": slot.kind, "first": slot.first, "last": slot.last,
            "offset": slot.offset, "bytes": slot.nbytes, "type": type_text(slot.type), "host": -1,
        }  # fmt: skip
    assert len(section["slots"]) == len(plan.slots)
    buffers = (b for e in shown["elements"] for b in e.get("buffers", ()))
    owned = set(map(tuple, buffers))
    results = {(0, r.slot) for s in plan.steps for r in s.results}
    assert results <= owned


def test_temporaries_in_the_array_of_a_next_value_have_places_of_their_own():
    x, y = sg.placeholder("x", ("N", 1000), "float32"), sg.placeholder("y", ("N", 100), "float32")
    w = sg.variable("w", np.ones((1000, 100), "float32"))
    loss = sg.sum((sg.relu(x @ w) - y) ** 2)
    program = sg.compile([x, y], loss, updates={w: w - 1e-6 * sg.grad(loss, w)})
    own = read(program)
    (section,) = own["sections"]
    plan, slots = program.plan, section["slots"]
    assert {s["name"] for s in slots if s["host"] >= 0} == {*plan.inside} != set()
    steps = range(len(plan.steps))
    for slot in (s for s in slots if s["host"] >= 0):
        host = slots[slot["host"]]
        assert host["kind"] == "next"
        assert slot["offset"] + slot["bytes"] <= host["bytes"]
        uses = [
            i for i in steps
            if any(plan.named(r)[0] == slot["name"]
                   for r in (*plan.steps[i].operands, *plan.steps[i].results))
        ]  # fmt: skip
        assert (slot["first"], slot["last"]) == (uses[0], uses[-1])
        assert slot["last"] < host["first"]
    # What lies at one place does not live at once.
    for a in slots:
        for b in slots:
            if a is not b and a["host"] == b["host"] >= 0:
                apart = a["offset"] + a["bytes"] <= b["offset"] or a["last"] <= b["first"]
                assert apart or b["offset"] + b["bytes"] <= a["offset"] or b["last"] <= a["first"]
    # A node leads to its own place, not to the parameter's.
    relu = next(e for e in own["elements"] if e["op"] == "relu")
    assert [slots[slot]["name"] for _, slot in relu["buffers"]] == ["a"]


def test_rules_come_with_their_reason_and_their_source(shown):
    rule = next(r for r in shown["rules"] if r["name"] == "sum_of_squares")
    assert rule["grade"] == "rounding"
    assert rule["reason"].endswith(".")
    assert any("def sum_of_squares" in line for line in rule["source"])
    assert rule["where"].startswith("symgrad.rules.")


def test_the_user_s_source_is_there_around_the_lines(shown):
    (file,) = shown["files"]
    assert file["name"] == "test_explorer.py"
    numbers = [n for n, _ in file["lines"]]
    assert numbers == sorted(numbers)
    assert any("the line of the loss" in text for _, text in file["lines"])


def test_what_is_kept_is_a_section_of_its_own():
    x = sg.placeholder("x", ("N", 64))
    a, b = (sg.variable(n, np.full((64, 64), 0.1)) for n in "ab")
    program = sg.compile(x, x @ (a @ b))
    assert program.kept is not None
    shown = read(program)
    assert [s["title"] for s in shown["sections"]] == ["every call", "once, and kept"]
    for section in shown["sections"]:
        (number,) = section["computes"].values()
        assert shown["elements"][number]["op"] == "matmul"
    kept = shown["sections"][1]["computes"]
    ((line, number),) = kept.items()
    assert shown["elements"][number]["section"] == 1
    assert int(line) in shown["elements"][number]["lines"]


@pytest.mark.parametrize(
    ("backend", "threads", "length", "told"),
    [
        ("numpy", 1, 4, "op after op, as it is no larger than"),
        ("numpy", 1, 60_000, "tiles of"),
        ("native", 1, 60_000, "machine code: what lies between"),
        ("native", 2, 60_000, "machine code, in 8 pieces on 2 threads"),
    ],
)
def test_a_group_tells_how_it_runs(backend, threads, length, told):
    if backend == "native":
        pytest.importorskip("llvmlite")
    x, w = sg.placeholder("x", ("N", 40)), sg.variable("w", np.ones((40, 40)))
    program = sg.compile(x, sg.sum(sg.tanh(x @ w) * 2 + 1), backend=backend, threads=threads)
    program(np.ones((length, 40)))
    shown = read(program)
    (group,) = (e for e in shown["elements"] if e.get("runs"))
    text, *numbers = group["runs"]
    assert told in shown["texts"][text].replace("\0", "{}").format(*numbers)
    # What lies between need not be written: all but the sum.
    assert len(group["written"]) == 1
    assert group["between"] == 3 * length * 40 * 8


def test_machine_code_is_shown_as_text():
    pytest.importorskip("llvmlite")
    x = sg.placeholder("</script>&<b>", 40)
    program = sg.compile(x, sg.sum(x * 2), backend="native")
    document = read(program)
    elements, shown = document["elements"], document["native"]
    assert [code["title"] for code in shown] == [
        "Machine code 1: LLVM's IR", "Machine code 1: assembly"
    ]  # fmt: skip
    assert any("define" in line for line in shown[0]["lines"])
    computes = unpacked(shown[0]["elements"])
    assert len(computes) == len(shown[0]["lines"])
    ops = {"multiply": "fmul", "sum": "fadd"}
    for element in set(computes) - {-1}:
        own = [t for t, e in zip(shown[0]["lines"], computes, strict=True) if e == element]
        assert own[0] == f"  ; n{element}"
        sign = ops.pop(elements[element]["op"])
        assert any(sign in line for line in own)
    assert ops == {}
    assert not any("script" in line or "<b>" in line for code in shown for line in code["lines"])
    assert read(sg.compile(x, sg.sum(x * 2)))["native"] == []


def test_a_profile_is_shown_and_must_be_this_program_s(net):
    x = np.ones((4, 8), "float32")
    profile = net.profile(x, x, runs=1)
    shown = read(net, profile=profile)
    assert shown["sizes"] == {"N": 4}
    assert len(shown["profile"]["steps"]) == len(net.plan.steps)
    with pytest.raises(RenderError, match="of another program"):
        read(build_net(3), profile=profile)


@pytest.mark.parametrize("what", ["no pass", "an input", "a constant", "nothing fused"])
def test_programs_with_hardly_anything_in_them(what, tmp_path):
    x = sg.placeholder("x", (3,))
    program = {
        "no pass": lambda: sg.compile(x, x + 1.0, passes=()),
        "an input": lambda: sg.compile(x, x),
        "a constant": lambda: sg.compile([], sg.constant(2.0) + 1.0),
        "nothing fused": lambda: sg.compile(x, sg.sum(x)),
    }[what]()
    assert explore(program, tmp_path / "p.html").exists()


def test_the_same_program_gives_the_same_data():
    documents = []
    for _ in range(2):
        shown = document(build_net(3), title=None, embed_source=True, profile=None)
        for stage in shown["stages"]:
            stage.pop("ms", None)
        documents.append(json.dumps(shown))
    assert documents[0] == documents[1]


# The page


@pytest.fixture(scope="module")
def page(net, tmp_path_factory):
    path = net.explore(tmp_path_factory.mktemp("page") / "net.html", title="two layers")
    return path.read_text(encoding="utf-8")


def test_the_page_asks_for_nothing_and_runs_only_its_own_script(page):
    assert not re.search(r"(?:src|href)\s*=\s*[\"'](?!data:,)", page)
    assert "@import" not in page
    assert "url(" not in page
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "\n// " not in page  # comments are for who reads the package
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert "innerHTML" not in page
    assert "eval(" not in page
    assert not re.search(r"\sstyle=", page)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_marks_differ_from_each_other_and_from_every_ground(palette):
    style = files("symgrad_viz").joinpath("explorer.css").read_text(encoding="utf-8")
    at = [LIGHT, DARK].index(palette)
    pairs = re.findall(r"--(new|found|pick): light-dark\((#\w+), (#\w+)\)", style)
    marks = {name: colours[at] for name, *colours in pairs}
    hues = [colorsys.rgb_to_hsv(*bytes.fromhex(c[1:]))[0] for c in marks.values()]
    for i, hue in enumerate(hues):
        assert all(min(abs(hue - h), 1 - abs(hue - h)) > 0.15 for h in hues[:i])
    paints = [*palette.nodes.values(), *palette.regions.values()]
    for ground in {palette.page, *(p.fill for p in paints)} - {"none"}:
        assert all(contrast(colour, ground) >= 3 for colour in marks.values()), ground


def test_the_page_of_a_net_is_small(page):
    assert len(page.encode()) < 200_000
    assert "<title>two layers</title>" in page


HOSTILE = [
    "</script><img src=x onerror=alert(1)>", '"]; evil [', "x" * 10_000, "שלום", "🙂", "<!--",
    "\u202egnp", "\ud800", "$data ${x}",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_ends_the_data(name, tmp_path):
    with sg.scope(name):
        x = sg.placeholder(name, (2,))
        program = sg.compile(x, {name: sg.tanh(x)})
    text = program.explore(tmp_path / "p.html", title=name).read_text(encoding="utf-8")
    assert text.count("</script") == 2
    assert "<img" not in text
    inside = re.search(r'type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1]
    assert not set("<>&") & set(inside)
    assert json.loads(inside)["format"] == "symgrad-explorer"


def test_in_script_reads_back():
    thing = {"a": ["</script>", "<!--", "&amp;", "\u2028", 1.5, None]}
    assert json.loads(in_script(thing)) == thing
    assert in_script(thing).isascii()


def test_without_the_user_s_source_none_of_it_is_in_the_page(tmp_path):
    @sg.rule(exact="bits")
    def secret_rule(x: sg.Var) -> sg.Rewrite:
        """Two negations cancel."""
        return sg.Rewrite(before=sg.negative(-x), after=x)

    x = sg.placeholder("x", ("N", 64))
    secret_name = sg.variable("w", np.full((64, 64), 0.1))
    y = x @ (secret_name @ secret_name)
    program = sg.compile(x, sg.negative(-y), passes=(secret_rule, *sg.passes.DEFAULT))
    assert program.kept is not None
    with_source = explore(program, tmp_path / "a.html").read_text(encoding="utf-8")
    without = explore(program, tmp_path / "b.html", embed_source=False).read_text(encoding="utf-8")
    assert "secret_name" in with_source
    assert "def secret_rule" in with_source
    assert "secret_name" not in without
    assert "def secret_rule" not in without
    assert "test_explorer.py" in without  # the places stay
    assert "Two negations cancel" in without  # and so do the reasons


def test_no_path_of_the_machine_is_in_the_page(page, tmp_path):
    assert str(tmp_path.parent) not in page
    assert str(files("symgrad_viz")) not in page


@pytest.mark.parametrize(
    ("name", "message"), [("p.svg", "name it with .html"), ("no/p.html", "make it first")]
)
def test_bad_paths_are_refused(net, tmp_path, name, message):
    with pytest.raises(RenderError, match=message):
        net.explore(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_only_programs_are_explored(net, tmp_path):
    with pytest.raises(RenderError, match="not a Graph"):
        explore(net.graph, tmp_path / "p.html")


def test_the_assets_are_part_of_the_package():
    for name in ("explorer.html", "explorer.css", *SCRIPTS):
        assert files("symgrad_viz").joinpath(name).is_file()

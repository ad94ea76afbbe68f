"""The trace: it prints as a log that can be read, and is saved as a file that can be followed."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.formats.infix import attr_text, expression, expressions
from symgrad.passes import RULES
from symgrad.rewrite.trace import MOST_TOLD, Trace


def net():
    x, y = sg.placeholder("x", ("N", 8)), sg.placeholder("y", ("N", 3))
    w1, w2 = sg.variable("w1", np.ones((8, 5))), sg.variable("w2", np.ones((5, 3)))
    loss = sg.sum((sg.relu(x @ w1) @ w2 - y) ** 2)
    dw1, dw2 = sg.grad(loss, [w1, w2])
    return sg.compile([x, y], loss, updates={w1: w1 - 0.1 * dw1, w2: w2 - 0.1 * dw2})


def saved(trace, path):
    return json.loads(trace.save(path / "trace.json").read_text(encoding="utf-8"))


# ---- expressions ----------------------------------------------------------------------------


def test_nodes_are_written_as_in_python():
    x, y = sg.placeholder("x", (3, 4)), sg.placeholder("y", (3, 4))
    k = sg.placeholder("k", 3, "int32")
    for node, text in (
        ((x + y) * 2.0 - y, "(x + y) * 2.0 - y"),
        (x - (y - x), "x - (y - x)"),
        (-(x**2.0), "-x ** 2.0"),
        ((-x) ** 2.0, "(-x) ** 2.0"),
        (-(x + y), "-(x + y)"),
        ((x**y) ** 2.0, "(x ** y) ** 2.0"),
        (x ** (y**2.0), "x ** y ** 2.0"),
        (x.T @ y, "x.T @ y"),
        ((x + y).T, "(x + y).T"),
        (sg.sum(x * -1.0, axis=1, keepdims=True), "sum(x * -1.0, axis=1, keepdims=True)"),
        (sg.where(x > y, x, 0.0), "where(x > y, x, 0.0)"),
        (sg.astype(~k | k, "float32"), "astype(~k | k, float32)"),
        (x + np.arange(4.0), "x + constant[4]"),
    ):
        assert expression(node) == text


def test_what_lies_deep_is_a_letter_the_same_for_the_same_node():
    x = sg.placeholder("A", 3)
    deep = x
    for _ in range(20):
        deep = sg.tanh(deep * x)
    texts = expressions([sg.exp(deep) + deep, deep * deep], [deep])
    assert texts == ["exp(B) + B", "B * B"]
    assert len(expression(deep)) < 80


def test_attributes_are_short_texts():
    assert attr_text(sg.constant(np.float32(1e-6)).attrs[0][1]) == "1e-06"
    assert attr_text((1,)) == "(1,)"
    big = attr_text(sg.constant(np.ones(1000)).attrs[0][1])
    assert big.startswith("float64[1000] digest ")


# ---- the log --------------------------------------------------------------------------------


def test_the_log_tells_pass_rule_line_change_and_reason():
    program = net()
    lines = str(program.trace).splitlines()
    assert str(program.trace) == str(program.trace)
    at = next(i for i, line in enumerate(lines) if "sum_of_squares [" in line)
    assert lines[at + 1].strip().startswith("because: The sum of all squares is a dot product")
    assert lines[at + 2].split("  ")[2].startswith("test_trace.py:")
    assert "sg.sum((sg.relu(x @ w1) @ w2 - y) ** 2)" in lines[at + 2]
    assert lines[at + 3].strip() == "sum(square(A), axis=(0, 1))  ->  vdot(A, A)    float64[()]"
    for stage in program.trace.stages:
        (head,) = [line for line in lines if line.startswith(f"{stage.name} ")]
        assert f"{len(stage.after)} nodes" in head
        assert ("unchanged" in head) == (stage.after is stage.before)


def test_what_was_done_often_is_told_once():
    x = sg.placeholder("x", 3)
    y = x
    for _ in range(MOST_TOLD + 20):
        y = sg.tanh(y) * 1
    text = str(sg.compile([x], y).trace)
    assert f"times_one [bits]  ×{MOST_TOLD + 20}" in text
    assert "tanh(x) * 1.0  ->  tanh(x)    float64[3]" in text
    assert re.search(r"\n      A \* 1\.0  ->  A  ×9\d    float64\[3\]\n", text)
    assert "… and 20 times more" in text
    assert text.count("1 is neutral in a product") == 1


def test_an_empty_trace_prints_and_is_saved(tmp_path):
    assert str(Trace()) == ""
    assert saved(Trace(), tmp_path)["nodes"] == []
    x = sg.placeholder("x", 3)
    assert str(sg.compile([x], x, passes=()).trace) == ""


def test_every_rule_that_fired_is_found_under_its_grade():
    trace = net().trace
    grades = trace.grades()
    assert list(grades) == [g for g in ("bits", "values", "rounding", "reals") if g in grades]
    together = {name: n for rules in grades.values() for name, n in rules.items()}
    assert together == trace.rules()
    of = {r.name: r.exact.name.lower() for r in RULES}
    assert all(name in rules for name, n in of.items() if name in together for rules in [grades[n]])


# ---- the file -------------------------------------------------------------------------------


def test_a_trace_can_be_followed_from_its_file(tmp_path):
    program = net()
    found = saved(program.trace, tmp_path)
    assert (found["format"], found["version"]) == ("symgrad-trace", 1)
    nodes = found["nodes"]
    assert [n["id"] for n in nodes] == list(range(len(nodes)))
    assert all(x < n["id"] for n in nodes for x in n["inputs"])
    assert [p["name"] for p in found["passes"]] == [s.name for s in program.trace.stages]
    for one, next_ in zip(found["passes"], found["passes"][1:], strict=False):
        assert one["after"] == next_["before"]
    raw = found["graphs"][found["passes"][0]["before"]]
    assert [nodes[i]["op"] for i in raw["nodes"]] == [n.op.name for n in program.raw.nodes]
    assert [nodes[i]["attrs"]["name"] for i in raw["inputs"]] == ["x", "y", "w1", "w2"]
    last = found["graphs"][found["passes"][-1]["after"]]
    assert last["inputs"] == raw["inputs"]
    assert [nodes[i]["type"] for i in last["outputs"]] == [
        "float64[()]", "float64[8, 5]", "float64[5, 3]"
    ]  # fmt: skip


def test_the_rewrites_of_the_file_are_those_of_the_trace(tmp_path):
    program = net()
    found = saved(program.trace, tmp_path)
    nodes = found["nodes"]
    assert len(found["rewrites"]) == len(program.trace.fired)
    for entry, fired in zip(found["rewrites"], program.trace.fired, strict=True):
        assert (entry["pass"], entry["rule"]) == (fired.stage, fired.rule.name)
        assert entry["grade"] == fired.rule.exact.name.lower()
        assert entry["reason"] == fired.rule.reason
        assert nodes[entry["before"]]["op"] == fired.before.op.name
        assert nodes[entry["after"]]["type"] == repr(fired.after.type)
    squares = next(e for e in found["rewrites"] if e["rule"] == "sum_of_squares")
    (number,) = nodes[squares["before"]]["lines"]
    line = found["lines"][number]
    assert Path(line["file"]).name == "test_trace.py"
    assert line["text"] == "sg.sum((sg.relu(x @ w1) @ w2 - y) ** 2)"
    assert nodes[squares["after"]]["made_by"] == ["sum_of_squares"]


def test_the_graph_inside_a_fused_node_is_in_the_file(tmp_path):
    x = sg.placeholder("x", 300)
    found = saved(sg.compile([x], sg.tanh(sg.exp(x) + 1)).trace, tmp_path)
    (fused,) = (n for n in found["nodes"] if n["op"] == "fused")
    inner = found["graphs"][fused["graph"]]
    assert [found["nodes"][i]["op"] for i in inner["nodes"]][-1] == "tanh"
    assert "graph" not in fused["attrs"]


def test_the_file_is_the_same_for_the_same_trace(tmp_path):
    trace = net().trace
    first = trace.save(tmp_path / "a.json").read_bytes()
    assert trace.save(tmp_path / "b.json").read_bytes() == first


def test_names_of_all_kinds_are_saved(tmp_path):
    names = ["größe", "x\ud800", 'quote"\n', "\x00"]
    xs = [sg.placeholder(n, 3) for n in names]
    found = saved(sg.compile(xs, sum(xs) * np.nan).trace, tmp_path)
    raw = found["graphs"][0]
    assert [found["nodes"][i]["attrs"]["name"] for i in raw["inputs"]] == names


def test_a_deep_graph_is_saved_and_printed(tmp_path):
    y = x = sg.placeholder("x", ())
    for _ in range(2000):
        y = sg.tanh(y) * 1
    trace = sg.compile([x], y).trace
    assert len(saved(trace, tmp_path)["rewrites"]) == 2000
    assert len(str(trace).splitlines()) < 50


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    trace = net().trace

    def fails(*args):
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fails)
        with pytest.raises(OSError, match="disk is full"):
            trace.save(tmp_path / "t.json")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError, match="make it first"):
        trace.save(tmp_path / "no" / "t.json")

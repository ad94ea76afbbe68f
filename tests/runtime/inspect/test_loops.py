"""What `why`, `check`, `cost`, `profile` and `explain_grad` say of what is inside loops."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import symgrad as sg
from symgrad.lowering.cost import cost
from symgrad_viz import render

x = sg.placeholder("x", ("T", 3))
w = sg.placeholder("w", (3,))
inside: dict[str, sg.Node] = {}


def step(h, row):
    inside["new"] = sg.tanh(h * w + row)
    return inside["new"], sg.sum(sg.log(row))


last, ys = sg.scan(step, sg.zeros(3), x)
total = sg.sum(last) + sg.sum(ys)
program = sg.compile([x, w], [total, sg.grad(total, w)])
X = np.linspace(1, 2, 15).reshape(5, 3)
TANH = inspect.getsourcelines(step)[1] + 1


def mean():
    a, b = sg.placeholder("a", ()), sg.placeholder("b", ())

    def halve(pair):
        return (pair[0] + pair[1]) / 2, sg.sqrt(pair[0] * pair[1])

    found, _ = sg.while_loop(lambda p: abs(p[0] - p[1]) > 1e-12, halve, (a, b))
    return sg.compile([a, b], [found, sg.grad(found, a)])


def test_why_of_a_node_that_a_step_gave():
    program(X, np.ones(3))
    (story, *_) = program.why(inside["new"]).stories
    assert story.verdict == "computed as written, by step 0, once in each of 5 steps"
    ((_, code),) = story.code
    assert code.startswith("tanh(")
    # What needs no loop is computed for all steps before it.
    early = str(program.why(f"test_loops.py:{TANH + 1}"))
    assert "outside its loop" in early
    assert str(TANH) in str(program.why(TANH))
    line = next(text for text in program.source.splitlines() if " tanh(" in text)
    told = str(program.why(line))
    assert f"test_loops.py:{TANH}" in told
    (code,) = (text for text in told.splitlines() if text.startswith("    line "))
    assert "tanh(" in code


def test_why_within_while_and_cond():
    (story, *_) = mean().why(inspect.getsourcelines(mean)[1] + 4).stories
    assert "once in each step" in story.verdict
    v = sg.placeholder("v", (4,))
    taken = []
    y = sg.cond(sg.sum(v) > 0, lambda: taken.append(sg.exp(v)) or taken[0], lambda: v)
    (story,) = sg.compile(v, y).why(taken[0]).stories
    assert story.verdict == "computed as written, by step 2, if it is chosen"
    assert story.code[0][1].startswith("exp(")


def test_check_tells_the_step_and_the_line_in_every_kind_of_body():
    found = str(mean().check(-1.0, 2.0))
    assert "it began in step 0, with sqrt" in found
    v = sg.placeholder("v", (4,))
    y = sg.cond(sg.sum(v) > 0, lambda: sg.sum(v), lambda: sg.sum(sg.log(v)))
    assert "it began in the branch for false, with log" in str(sg.compile(v, y).check(-np.ones(4)))
    # A loop within a loop: the steps of both.
    rows = sg.placeholder("rows", ("N", 4))
    inner = sg.map(lambda r: sg.scan(lambda c, e: (c + sg.sqrt(e), None), 0.0, r)[0], rows)
    given = np.ones((3, 4))
    given[1, 2] = -1
    told = str(sg.compile(rows, inner, passes=()).check(given))
    assert "it began in step 1, in step 2, with sqrt" in told
    assert "test_loops.py" in told


def test_cost_tells_what_a_step_costs_and_multiplies_it():
    after = program.cost(T=5).after
    loop = next(s for s in after.steps if s.step.name == "loop")
    (plan,) = loop.step.plans
    text = str(after)
    assert "once in each of 5 steps:" in text
    assert " 0.0 " in text
    assert loop.flops == 5 * cost(plan).flops
    # Of a loop whose steps only the data tell: those of one.
    text = str(mean().cost().after)
    assert "?" in text
    assert "once in each step:" in text
    assert "1.0.0" in text
    assert "FLOP" in render(mean(), color_by="cost", engine="layers")


def test_profile_tells_how_often_a_loop_ran_and_its_steps():
    found = program.profile(X, np.ones(3), runs=2)
    loops = [s for s in found.steps if s.step.name == "loop"]
    assert [s.ran for s in loops] == [5, 5]
    for s in loops:
        assert sum(i.seconds for i in s.inner) == pytest.approx(s.seconds)
    assert "loop ×5" in str(found)
    assert "µs each" in str(found)
    found = mean().profile(1.0, 2.0, runs=2)
    first, derived = found.steps
    assert first.ran == 4
    assert {s.step.name for s in first.inner} >= {"abs", "sqrt"}
    assert [s.ran for s in derived.inner if s.step.name == "loop"] == [4, 4]
    v = sg.placeholder("v", (4,))
    y = sg.cond(sg.sum(v) > 0, lambda: sg.exp(v), lambda: sg.sin(v))
    for sign, name in ((1, "exp"), (-1, "sin")):
        (chosen,) = (
            s for s in sg.compile(v, y).profile(sign * np.ones(4), runs=1).steps if s.inner
        )
        assert [s.step.name for s in chosen.inner] == [name]


def test_explain_grad_goes_through_the_body_carry_by_carry():
    v = sg.placeholder("v", (3,))

    def cut(carry, row):
        h, k = carry
        kept = sg.stop_gradient(h) * v
        return (sg.tanh(h * w + row), k + kept), sg.sum(kept)

    (h, k), out = sg.scan(cut, (sg.zeros(3), sg.zeros(3)), x)
    first = sg.explain_grad(sg.sum(h), w)
    assert first.flows
    assert not first.stops
    text = str(first)
    assert "in each step, carry 0:" in text
    assert "carry 1" not in text
    assert "→ carry 0" in text
    assert text.count("→ 'w'") == 2
    second = sg.explain_grad(sg.sum(k), w)
    assert not second.flows
    assert [n.op.name for n, _ in second.stops] == ["stop_gradient"]
    assert "in each step, carry 1:" in str(second)
    assert sg.explain_grad(sg.sum(out), v).flows
    with pytest.raises(sg.GradientError, match="stop_gradient says so"):
        sg.grad(sg.sum(k), w)
    # What a while loop carries on for two steps.
    end = sg.while_loop(
        lambda c: sg.sum(c[2]) < 9, lambda c: (c[1], c[2], c[2] + sg.floor(c[0])), (v, w, w)
    )
    assert not sg.explain_grad(sg.sum(end[2]), v).flows
    assert sg.explain_grad(sg.sum(end[0]), v).flows
    y = sg.cond(sg.sum(v) > 0, lambda: sg.sum(sg.stop_gradient(v) * w), lambda: sg.sum(w))
    assert not sg.explain_grad(y, v).flows
    assert "if true, result 0:" in str(sg.explain_grad(y, v))
    assert "if false, result 0:" in str(sg.explain_grad(y, w))

"""why: from a line or a node through the rewrites to the step that runs."""

import gc
import linecache

import numpy as np
import pytest

import symgrad as sg
from symgrad.rewrite.lineage import Lineage

HERE = "test_why.py"


def line_of(node):
    return node.origin.locations[0].line


def codes(story):
    return [text for _, text in story.code]


class Net:
    """The training step of the README, and the nodes that its author has."""

    def __init__(self):
        x, y = (
            sg.placeholder("x", ("N", 1000), "float32"),
            sg.placeholder("y", ("N", 10), "float32"),
        )
        w1 = sg.variable("w1", np.ones((1000, 100), "float32"))
        w2 = sg.variable("w2", np.ones((100, 10), "float32"))
        self.x, self.w1, self.hidden = x, w1, sg.relu(x @ w1)
        self.loss = sg.sum((self.hidden @ w2 - y) ** 2)
        self.dw1, dw2 = sg.grad(self.loss, [w1, w2])
        self.scaled = 1e-6 * self.dw1
        self.program = sg.compile(
            [x, y], self.loss, updates={w1: w1 - self.scaled, w2: w2 - 1e-6 * dw2}
        )


@pytest.fixture(scope="module")
def net():
    return Net()


# ---- nodes ----------------------------------------------------------------------------------


def test_what_runs_as_it_was_written(net):
    (story,) = net.program.why(net.hidden).stories
    assert story.node is net.hidden
    assert story.rewrites == ()
    assert story.verdict.startswith("computed as written, by step")
    assert codes(story) == ["maximum(a, 0, out=a)"]
    (number,) = [n for n, _ in story.code]
    assert "maximum(a, 0, out=a)" in net.program.source.splitlines()[number - 1]
    assert net.program.plan.steps[story.steps[0]].name == "relu"


def test_the_loss_goes_through_its_rewrites_in_order(net):
    answer = net.program.why(net.loss)
    (story,) = answer.stories
    assert [f.rule.name for f in story.rewrites] == ["power_two", "sum_of_squares"]
    assert codes(story) == ["s = vdot(b, b)"]
    text = str(answer)
    assert text.startswith("why sum float32[()] (test_why.py:")
    for part in (
        f"{HERE}:{line_of(net.loss)}  sg.sum((self.hidden @ w2 - y) ** 2)",
        "sum_of_squares [rounding] in simplify: The sum of all squares is a dot product",
        "sum(square(A), axis=(0, 1))  ->  vdot(A, A)",
        "now computed by step 4",
        "s = vdot(b, b)",
    ):
        assert part in text


def test_a_scaled_gradient_is_found_where_the_scalar_went(net):
    (story,) = net.program.why(net.scaled).stories
    names = [f.rule.name for f in story.rewrites]
    way = ["scalar_through_matmul_right", "scalar_through_select", "scalar_through_matmul",
           "factors_combine", "positive_select"]  # fmt: skip
    assert [n for n in names if n in way] == way
    assert "matmul(x.T, c, w1_next)" in codes(story)
    assert "multiply(b, 2e-06, b)" in codes(story)


def test_the_gradient_rule_is_named(net):
    (story,) = net.program.why(net.dw1).stories
    assert "by vjp(matmul)" in str(story)
    assert story.verdict.startswith("folded into step")


def test_inputs_constants_and_views_have_no_step(net):
    assert "the input, read by steps 0" in str(net.program.why(net.x))
    assert "the variable, read by step" in str(net.program.why(net.w1))
    x, y = sg.placeholder("x", (3, 4)), sg.placeholder("y", (4, 3))
    turned, two = x.T, sg.constant(2.5)
    program = sg.compile([x, y], (turned + y) * two)
    assert "a view, which costs nothing, read by step 0" in str(program.why(turned))
    assert "a constant of the program, read by step 1" in str(program.why(two))
    assert program.why(turned).stories[0].steps == ()


def test_equals_are_merged(net):
    x = sg.placeholder("x", 3)
    one, other = sg.exp(x), sg.exp(x)
    program = sg.compile([x], [one + 1, other * 2])
    for node, twin in ((one, other), (other, one)):
        (story,) = program.why(node).stories
        assert story.others == (twin,)
        assert story.verdict.startswith("merged with its 1 equal; computed as written, by step 0")


def test_what_nobody_reads_any_more():
    x = sg.placeholder("x", 3)
    y = sg.tanh(x)
    program = sg.compile([x], y * 0 + x, exact="reals")
    (story,) = program.why(y).stories
    assert story.steps == ()
    assert "times_zero" in [f.rule.name for f in story.rewrites]
    assert story.verdict == "nobody reads it any more, so that it is not computed"


def test_a_constant_is_followed_into_what_it_became():
    x = sg.placeholder("x", 3)
    two = sg.constant(2.0)
    program = sg.compile([x], x * (two * 3.0))
    (story,) = program.why(two).stories
    assert [f.rule.name for f in story.rewrites] == ["constant_folding"]
    assert "a constant of the program" in story.verdict


def test_the_raw_graph_runs_as_written():
    x = sg.placeholder("x", 3)
    y = sg.exp(x) * 1
    (story,) = sg.compile([x], y, passes=()).why(y).stories
    assert story.rewrites == ()
    assert len(story.steps) == 1


def test_parts_of_a_fused_group_are_found():
    x = sg.placeholder("x", (50, 4))
    inner = sg.exp(x)
    program = sg.compile([x], [sg.tanh(inner + 1.0), sg.sum(inner)])
    assert any(s.group is not None for s in program.plan.steps)
    (story,) = program.why(inner).stories
    assert [program.plan.steps[i].name for i in story.steps] == ["exp"]


def test_it_says_why_ops_are_one_group_and_why_that_is_no_larger(net):
    source = net.program.source.splitlines()
    code = "matmul(a, w2", "subtract(b, y", "s = vdot", "multiply(b", "matmul(b", "matmul(a.T"
    matmul, subtract, vdot, multiply, *others = (
        next(i for i, text in enumerate(source, 1) if text.strip().startswith(c)) for c in code
    )
    may = "each makes a row of the same row of what it reads, or adds up the rows"
    ops = f"subtract (line {subtract}), vdot (line {vdot}), multiply (line {multiply})"
    before = ", ".join(f"matmul (line {n})" for n in others)
    library = "a product is one call of a library, which needs all rows"
    complete = "a reduction over the rows is complete only when the last row is done"
    told = [
        f"one group of 3 ops, as {may}: {ops}",
        f"  begins after matmul (line {matmul}): {library}",
        f"  ends with vdot (line {vdot}): {complete}",
        f"  ends with multiply (line {multiply}), before {before}: {library}",
    ]
    (group,) = (n for n in net.program.graph.nodes if n.inner_graph is not None)
    for asked in (net.loss, "subtract(b, y, b)", group):
        answer = net.program.why(asked)
        assert [line for g in answer.groups for line in g.lines()] == told
        assert all(line in str(answer) for line in told)
    assert net.program.why(net.hidden).groups == ()
    assert [s.steps for s in net.program.why(group).stories] == [(3,), (4,), (5,)]
    (kept,) = (n for n in net.program.graph.nodes if n.op.name == "keep_where_positive")
    assert "positive_select" in str(net.program.why(kept))


def test_every_node_and_every_line_of_source_has_an_answer(net):
    program = net.program
    for node in program.raw.nodes:
        (story,) = program.why(node).stories
        assert story.steps or "step" in story.verdict or "nobody" in story.verdict
        assert str(story)
    for number in range(1, len(program.plan.steps)):
        line = program.source.splitlines()[-1 - number]
        (story,) = program.why(line).stories
        assert story.code[0][1] == line.split("  # ")[0].strip()
        assert str(story).count("\n") > 1


# ---- lines ----------------------------------------------------------------------------------


def test_a_line_of_the_users_tells_of_all_that_it_built(net):
    number = line_of(net.loss)
    answer = net.program.why(number)
    assert str(answer) == str(net.program.why(f"{HERE}:{number}"))
    assert net.loss in {s.node for s in answer.stories}
    assert all(line_of(s.node) == number for s in answer.stories)
    assert {s.node.op.name for s in answer.stories} >= {"matmul", "subtract", "pow", "sum"}
    assert "constant" not in {s.node.op.name for s in answer.stories}
    # A rewrite is told in full the first time.
    assert str(answer).count("x**2 is a square") == 1
    assert "as above: power_two" in str(answer)


def test_a_line_of_the_source_tells_what_led_to_it(net):
    answer = net.program.why("s = vdot(b, b)")
    (story,) = answer.stories
    assert [f.rule.name for f in story.rewrites] == ["power_two", "sum_of_squares"]
    assert net.loss in {story.node, *story.others}
    whole = next(t for t in net.program.source.splitlines() if "vdot(b, b)" in t)
    assert str(net.program.why(whole)) == str(answer)
    (story,) = net.program.why("keep_where_positive(a, c, c, bits)").stories
    assert "positive_select" in [f.rule.name for f in story.rewrites]
    # It comes first as what the source tells it to be.
    assert next(story.lines()).endswith("sg.relu(x @ w1)  by vjp(relu)")
    assert {net.scaled, net.dw1} <= {*story.others}


# ---- errors ---------------------------------------------------------------------------------


def test_a_node_of_another_program(net):
    with pytest.raises(sg.GraphError, match=r"tanh .* is no part of this program") as error:
        net.program.why(sg.tanh(net.loss))
    assert f"{HERE}:{line_of(net.scaled)}" in str(error.value)


def test_a_line_at_which_nothing_was_built_shows_the_nearest(net):
    number = line_of(net.loss)
    for asked in (number + 500, f"{HERE}:{number + 500}"):
        with pytest.raises(sg.GraphError, match="nothing of this program was built") as error:
            net.program.why(asked)
        assert f"{HERE}:{line_of(net.scaled)}" in str(error.value)
    with pytest.raises(sg.GraphError, match=r"built at other\.py:3"):
        net.program.why("other.py:3")


def test_what_is_no_line_at_all(net):
    with pytest.raises(sg.GraphError, match=r"'train\.py:12'"):
        net.program.why("matmul of something")
    with pytest.raises(sg.GraphError, match="computes nothing"):
        net.program.why("    return s")


def test_a_line_number_in_two_files(tmp_path):
    x = sg.placeholder("x", 3)
    y = x
    for name in ("one.py", "two.py"):
        scope = {"sg": sg, "y": y}
        path = str(tmp_path / name)
        exec(compile("\n\ny = sg.exp(y)\n", path, "exec"), scope)
        y = scope["y"]
    program = sg.compile([x], y)
    with pytest.raises(sg.GraphError, match=r"several files.*one\.py:3.*two\.py:3"):
        program.why(3)
    (story,) = program.why("one.py:3").stories
    assert story.node is y.inputs[0]
    linecache.clearcache()


# ---- scale ----------------------------------------------------------------------------------


def test_a_deep_program_is_told_without_recursion():
    y = x = sg.placeholder("x", ())
    for _ in range(1500):
        y = sg.tanh(y * 1 + y * 1)
    program = sg.compile([x], y)
    (story,) = program.why(y).stories
    assert len(story.steps) == 1


def test_the_lineage_tells_equals_apart_from_others():
    x = sg.placeholder("x", 3)
    a, b, c = sg.exp(x) * 1, sg.exp(x), sg.exp(x + 0.5)
    program = sg.compile([x], [a, b, c])
    lineage = Lineage(program.raw, program.graph, program.trace)
    assert lineage.onward(lineage.form(a)).ends == (lineage.form(b),)
    assert lineage.form(b) != lineage.form(c)
    assert lineage.form(sg.exp(x)) is None
    gc.collect()

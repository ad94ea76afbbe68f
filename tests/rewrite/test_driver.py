"""The driver: order, origins, the trace, rules that go wrong, graphs that are deep."""

import inspect

import numpy as np
import pytest

import symgrad as sg
from symgrad import Const, Graph, Rewrite, Var
from symgrad.ir.errors import RewriteError
from symgrad.passes import DEFAULT, HOIST, RULES
from symgrad.rewrite.driver import Index, rewrite
from symgrad.rewrite.rule import rule_for
from symgrad.rewrite.trace import Trace
from symgrad.rules.arithmetic import double_negative, times_one
from symgrad.rules.factors import factors_combine
from symgrad.rules.matmul import scalar_through_matmul
from symgrad.rules.reductions import sum_of_products
from symgrad.rules.views import op_of_permuted
from symgrad.testing import random_graph
from tests.helpers import each


@sg.rule(exact="reals")
def there(x: Var) -> Rewrite:
    """Away from sinh."""
    return Rewrite(before=sg.sinh(x), after=sg.cosh(x))


@sg.rule(exact="reals")
def and_back(x: Var) -> Rewrite:
    """Back to sinh."""
    return Rewrite(before=sg.cosh(x), after=sg.sinh(x))


@sg.rule(exact="reals", kinds="f")
def growing(x: Var) -> Rewrite:
    """It makes what it looks for."""
    return Rewrite(before=sg.exp(x), after=lambda x: sg.exp(x) * 1.0)


@sg.rule(exact="reals", kinds="f")
def other_dtype(x: Var) -> Rewrite:
    """Wrong: a cast."""
    return Rewrite(before=sg.exp(x), after=lambda x: sg.astype(sg.tanh(x), "float32"))


@sg.rule(exact="reals", kinds="f")
def other_shape(x: Var) -> Rewrite:
    """A sum is repeated to fit; its mean would be right."""
    return Rewrite(before=sg.exp(x), after=lambda x: sg.sum(x, axis=0))


@sg.rule(exact="reals", kinds="f")
def larger_shape(x: Var) -> Rewrite:
    """Wrong: it does not fit."""
    return Rewrite(before=sg.exp(x), after=lambda x: sg.stack([x, x]))


@sg.rule(exact="reals", kinds="f")
def a_sum(x: Var) -> Rewrite:
    """Wrong: one number for many."""
    return Rewrite(before=sg.sin(x), after=sg.sum(x))


@sg.rule(exact="reals", kinds="f")
def a_sum_within(x: Var) -> Rewrite:
    """Wrong: one number for many."""
    return Rewrite(before=sg.sin(x), after=sg.exp(sg.sum(x)))


def ops(graph):
    return [n.op.name for n in graph.nodes if n.inputs]


def line():
    """The line of the caller."""
    return inspect.currentframe().f_back.f_lineno


def test_a_cycle_is_reported_with_the_rules_that_made_it():
    x = sg.placeholder("x", 3)
    with pytest.raises(RewriteError) as caught:
        rewrite(Graph(sg.sinh(x)), [there, and_back])
    assert "without end" in str(caught.value)
    assert "there -> and_back -> there" in str(caught.value)


def test_a_rule_that_makes_what_it_looks_for_is_a_cycle():
    x = sg.placeholder("x", 3)
    with pytest.raises(RewriteError, match="growing -> growing"):
        rewrite(Graph(sg.exp(x)), [growing])


@pytest.mark.parametrize("wrong", [other_dtype, larger_shape], ids=lambda r: r.name)
def test_a_rule_that_changes_a_type_is_refused_by_name(wrong):
    x = sg.placeholder("x", (2, 3))
    with pytest.raises(RewriteError) as caught:
        rewrite(Graph(sg.exp(x)), [wrong])
    assert wrong.name in str(caught.value)
    assert "float64[2, 3]" in str(caught.value)


def test_a_smaller_shape_is_repeated():
    x = sg.placeholder("x", (2, 3))
    graph = rewrite(Graph(sg.exp(x)), [other_shape])
    graph.verify()
    assert graph.outputs[0].shape == (2, 3)
    assert ops(graph) == ["sum", "broadcast_to"]


@pytest.mark.parametrize("wrong", [a_sum, a_sum_within], ids=lambda r: r.name)
def test_a_pattern_that_makes_less_is_refused_by_name(wrong):
    x = sg.placeholder("x", (2, 3))
    with pytest.raises(RewriteError, match=rf"the rule {wrong.name} makes float64\[\(\)\]"):
        rewrite(Graph(sg.sin(x)), [wrong])
    s = sg.placeholder("s", ())
    assert "sum" in ops(rewrite(Graph(sg.sin(s)), [wrong]))


def test_what_works_element_by_element_is_repeated():
    @sg.rule(exact="reals", ordered=True)
    def cancelled(x: Var, y: Var, z: Var) -> Rewrite:
        """x goes."""
        return Rewrite(before=((x + y) * z) - x * z, after=y * z)

    x, y, z = sg.placeholder("x", (2, 3)), sg.placeholder("y", 3), sg.placeholder("z", ())
    graph = rewrite(Graph((x + y) * z - x * z), [cancelled])
    graph.verify()
    assert graph.outputs[0].shape == (2, 3)
    assert ops(graph) == ["multiply", "broadcast_to"]


def test_rewriting_goes_on_until_nothing_fits():
    x = sg.placeholder("x", 3)
    y = x
    for _ in range(4):
        y = sg.negative(y * 1)
    assert rewrite(Graph(y), [double_negative, times_one]).outputs == (x,)
    graph = rewrite(Graph(((x * 2.0) * 3.0) * 5.0), [factors_combine])
    assert ops(graph) == ["multiply", "multiply", "multiply"]  # folding is another rule


def test_nothing_that_fits_leaves_the_very_graph():
    x = sg.placeholder("x", 3)
    graph = Graph(sg.exp(x))
    assert rewrite(graph, [double_negative]) is graph


@each("seed", range(12))
def test_an_index_has_all_rules_that_match_in_their_order(seed):
    inputs, outputs = random_graph(np.random.default_rng(seed), 25)
    index = Index(RULES)
    for node in Graph(outputs, inputs).nodes:
        worth = [rule for rule, _ in index.at(node)]
        assert worth == sorted(worth, key=RULES.index)
        for rule in RULES:
            if rule.is_for(node.op) and rule.function is None and rule not in worth:
                assert not rule.matches(node, lambda nodes: True, None)


def test_shared_nodes_stay_shared():
    x = sg.placeholder("x", 3)
    shared = sg.exp(x * 1)
    graph = rewrite(Graph([shared + shared, sg.tanh(shared)]), [times_one])
    assert ops(graph) == ["exp", "add", "tanh"]


def test_results_of_an_op_with_several_are_rewired():
    x = sg.placeholder("x", 3)
    quotient, rest = divmod(x * 1, 2.0)
    graph = rewrite(Graph([quotient, rest]), [times_one])
    graph.verify()
    assert ops(graph) == ["divmod", "item", "item"]


def test_new_nodes_know_the_line_and_the_rule():
    x, y = sg.placeholder("x", (2, 3)), sg.placeholder("y", (2, 3))
    total = sg.sum(x * y)
    here = line() - 1
    graph = rewrite(Graph(total), [sum_of_products])
    made = graph.outputs[0]
    assert made.op.name == "vdot"
    assert made.origin.makers == "sum_of_products"
    assert [p.line for p in made.origin.locations] == [here] * len(made.origin.locations)
    assert made.origin.locations


def test_new_nodes_have_the_lines_of_all_that_they_replace():
    x, y = sg.placeholder("x", (2, 3)), sg.placeholder("y", (2, 3))
    products = x * y
    total = sg.sum(products)
    made = rewrite(Graph(total), [sum_of_products]).outputs[0]
    texts = [p.text for p in made.origin.locations]
    assert any("sg.sum(products)" in t for t in texts)
    assert any("x * y" in t for t in texts)


def test_what_moves_is_still_told_as_itself():
    """The product is of its own line, also where a factor or a view has moved through it."""
    a, b = sg.placeholder("a", (4, 2)), sg.placeholder("b", (2, 5))
    with sg.scope("layer"):
        product = a @ b
    scaled = product * 0.5
    made = rewrite(Graph(scaled), [scalar_through_matmul]).outputs[0]
    assert made.op.name == "matmul"
    assert [p.text for p in made.origin.locations] == ["a @ b", "product * 0.5"]
    assert made.origin.scope == ("layer",)
    assert made.inputs[0].op.name == "multiply"
    assert made.inputs[0].origin.nearest.text == "product * 0.5"
    turned = a.T
    absolute = sg.abs(turned)
    made = rewrite(Graph(absolute), [op_of_permuted]).outputs[0]
    assert [made.op.name, made.inputs[0].op.name] == ["permute_dims", "abs"]
    assert made.origin.nearest.text == "a.T"
    assert made.inputs[0].origin.nearest.text == "sg.abs(turned)"
    assert made.origin.makers == made.inputs[0].origin.makers == "op_of_permuted"


def test_rules_are_listed_in_the_order_in_which_they_acted():
    x = sg.placeholder("x", 3)
    made = rewrite(Graph((x * 2.0) * 3.0), [factors_combine]).outputs[0]
    assert made.origin.makers == "factors_combine"
    w = sg.placeholder("w", (3, 3))
    loss = sg.sum((w * 2.0) * 3.0)
    grad = sg.compile([w], sg.grad(loss, w)).graph.outputs[0]
    assert grad.origin.made_by[0].kind == "vjp"


def test_the_trace_holds_before_and_after():
    x = sg.placeholder("x", 3)
    y = sg.exp(x) * 1
    trace = Trace()
    graph = rewrite(Graph(sg.tanh(y)), [times_one], trace, "here")
    (fired,) = trace.fired
    assert (fired.stage, fired.rule) == ("here", times_one)
    assert fired.before is y
    assert fired.after is graph.outputs[0].inputs[0]
    assert trace.rules() == {"times_one": 1}
    assert "times_one" in str(fired)


def test_the_trace_of_a_program_tells_every_pass_and_reason():
    x = sg.placeholder("x", 3)
    program = sg.compile([x], sg.sum(sg.relu(x) * 1))
    assert [s.name for s in program.trace.stages] == [p.name for p in DEFAULT if p is not HOIST]
    assert program.trace.stages[0].before is program.raw
    assert program.trace.stages[-1].after is program.graph
    for one, next_ in zip(program.trace.stages, program.trace.stages[1:], strict=False):
        assert one.after is next_.before
    text = str(program.trace)
    assert "times_one" in text
    assert "because: 1 is neutral in a product." in text


# ---- once ------------------------------------------------------------------------------------


def test_once_holds_a_rule_back_where_work_would_be_done_twice():
    a, b = sg.placeholder("a", (4, 2)), sg.placeholder("b", (2, 5))
    shared = a @ b
    graph = rewrite(Graph([shared * 0.3, sg.exp(shared)]), [scalar_through_matmul])
    assert ops(graph).count("matmul") == 1
    alone = rewrite(Graph([(a @ b) * 0.3]), [scalar_through_matmul])
    assert ops(alone) == ["multiply", "matmul"]


def test_a_second_walk_tries_again_what_was_held_back_and_nothing_else():
    tried = []

    @rule_for(lambda op: op.name == "exp", exact="reals")
    def watched(node):
        """It leaves things as they are."""
        tried.append(node)

    @sg.rule(exact="reals")
    def forgotten(x: Var) -> Rewrite:
        """The product has a reader less."""
        return Rewrite(before=sg.sinh(x), after=lambda x: sg.zeros_like(x))

    a, b = sg.placeholder("a", (4, 2)), sg.placeholder("b", (2, 5))
    product = a @ b
    graph = Graph([product * 0.3, sg.exp(a), sg.sinh(product)])
    graph = rewrite(graph, [scalar_through_matmul, watched, forgotten])
    assert graph.outputs[0].op.name == "matmul"
    assert len(tried) == 1


def test_an_output_is_a_reader():
    a, b = sg.placeholder("a", (4, 2)), sg.placeholder("b", (2, 5))
    product = a @ b
    graph = rewrite(Graph([product * 0.3, product]), [scalar_through_matmul])
    assert ops(graph) == ["matmul", "multiply"]


def test_a_rule_held_back_acts_when_the_other_reader_has_gone():
    a, b = sg.placeholder("a", (4, 2)), sg.placeholder("b", (2, 5))
    product = a @ b
    trace = Trace()
    y = (product * 0.3) + sg.exp(product * 0.3) * 0.0

    @rule_for(lambda op: op.name == "exp", exact="reals")
    def forget(node):
        """The other reader goes."""
        return sg.zeros_like(node)

    graph = rewrite(Graph(y), [scalar_through_matmul, forget], trace)
    assert trace.rules()["scalar_through_matmul"] == 1
    assert ops(graph).count("matmul") == 1


# ---- size ------------------------------------------------------------------------------------


def test_a_chain_of_100_000_nodes_needs_no_recursion():
    x = sg.placeholder("x", 3)
    y = x * 1
    for _ in range(99_000):
        y = sg.tanh(y)
    y = sg.negative(sg.negative(y)) * 1
    graph = rewrite(Graph(y), [times_one, double_negative])
    assert len(graph) == 99_001
    assert {*ops(graph)} == {"tanh"}


def test_a_chain_of_what_a_rule_makes_is_walked_to_its_end():
    """One rewrite makes the next possible, 1,000 times at one node."""
    x = sg.placeholder("x", 3)
    y = x
    for _ in range(1_000):
        y = y * 2.0
    calls = 0

    @sg.rule(exact="rounding", kinds="f")
    def counted(x: Var, c: Const, d: Const) -> Rewrite:
        """Two factors are one."""

        def joined(x, c, d):
            nonlocal calls
            calls += 1
            return x * 2.0

        return Rewrite(before=(x * c) * d, after=joined)

    graph = rewrite(Graph(y), [counted])
    assert ops(graph) == ["multiply"]
    assert calls == 999


def test_numbers_are_the_same_after_all_that():
    x = sg.placeholder("x", (3, 3))
    y = sg.sum(sg.negative(-(x @ x * 2.0)) * 3.0)
    a = np.arange(9.0).reshape(3, 3)
    np.testing.assert_allclose(sg.compile([x], y)(a), (a @ a * 6).sum())


def test_a_rule_that_keeps_what_it_replaces_is_named():
    @rule_for(lambda op: op.name == "exp", exact="reals")
    def scaled_exp(node):
        """It never ends: the result contains what it replaces."""
        return node * 1.0001

    x = sg.placeholder("x", 3)
    with pytest.raises(sg.RewriteError, match=r"scaled_exp makes .* of itself"):
        sg.compile([x], sg.exp(x), exact="reals", passes=[scaled_exp])


@pytest.mark.parametrize("exact", ["bits", "values"])
def test_below_rounding_a_sum_is_taken_in_the_order_in_which_it_was_written(exact):
    x = sg.placeholder("x", (69, 53), "float32")
    mask = sg.placeholder("mask", (53, 1), "bool")
    moved = sg.permute_dims(x, (1, 0))
    outputs = [sg.sum(-moved), sg.sum(sg.where(mask, moved, 0), axis=1)]
    program = sg.compile([x, mask], outputs, exact=exact)
    rng = np.random.default_rng(0)
    for _ in range(10):
        X, M = rng.standard_normal((69, 53), dtype="f4"), rng.random((53, 1)) < 0.5
        total, rows = program(X, M)
        assert total == np.sum(np.ascontiguousarray(-X.T))
        assert np.array_equal(rows, np.sum(np.ascontiguousarray(np.where(M, X.T, 0)), axis=1))

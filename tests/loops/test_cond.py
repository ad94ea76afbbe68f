"""`cond`: one of two functions runs; only it contributes, in every mode and order."""

import runpy

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.evaluate import evaluate
from symgrad.testing import random_graph
from tests.helpers import each

x = sg.placeholder("x", ())
v = sg.placeholder("v", (3,))
V = np.array([0.5, -1.0, 2.0])


def both(outputs, *inputs):
    """A function of the inputs: the values by the program, which the reference must give, too."""
    program = sg.compile(inputs, outputs)
    others = [
        sg.compile(inputs, outputs, passes=p, backend="reference") for p in ((), sg.passes.DEFAULT)
    ]

    def call(*arrays):
        found = program(*arrays)
        for other in others:
            for a, b in zip(found, other(*arrays), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
        return found

    return call


def test_one_branch_runs():
    ran = []

    class Told(sg.NumpyFunction):
        def forward(ctx, a, name):
            ran.append(name)
            return a * 2

        def backward(ctx, g):
            return g * 2, None

    y = sg.cond(x > 0, lambda: Told.apply(x, "first"), lambda: Told.apply(x, "second"))
    program = sg.compile([x], y)
    ran.clear()  # they were run once, for the types of their results
    assert (program(3.0), program(-3.0)) == (6, -6)
    assert ran == ["first", "second"]


def test_what_was_built_before_is_given_to_it():
    inside = sg.exp(x)
    y = sg.cond(x > 0, lambda: inside * 2, lambda: sg.cos(x))
    (choice,) = y.inputs
    assert any(n is inside for n in choice.inputs)
    assert {n.op.name for n in choice.attr("false").nodes if n.inputs} == {"cos"}
    assert evaluate([sg.grad(y, inside)], {x: 1.0}) == [2]
    assert evaluate([sg.grad(y, inside)], {x: -1.0}) == [0]


def test_derivatives_of_every_order_in_both_modes():
    y = sg.cond(sg.sum(v) > x, lambda: sg.sum(sg.sin(v * x)), lambda: sg.sum(v**3) * x**4)

    def plain(first):
        return sg.sum(sg.sin(v * x)) if first else sg.sum(v**3) * x**4

    for at, first in ((1.0, True), (2.0, False)):
        ours, theirs = y, plain(first)
        for _ in range(3):
            tangent = [sg.jvp([z], [x], [sg.ones(())])[0] for z in (ours, theirs)]
            reverse = [sg.grad(z, x) for z in (ours, theirs)]
            a, b, c, d = evaluate([*tangent, *reverse], {x: at, v: V})
            np.testing.assert_allclose([a, c], [b, d], rtol=1e-12)
            np.testing.assert_allclose(a, c, rtol=1e-12)
            ours, theirs = reverse
        pair = [sg.hessian(z, v) for z in (y, plain(first))]
        np.testing.assert_allclose(*evaluate(pair, {x: at, v: V}), rtol=1e-12)
        call = both([*sg.grad(y, [x, v]), sg.hvp(y, v, v)], x, v)
        np.testing.assert_allclose(
            call(at, V)[1], evaluate([sg.grad(plain(first), v)], {x: at, v: V})[0], rtol=1e-12
        )


def test_the_branch_that_did_not_run_does_not_poison():
    inside = sg.sqrt(x)
    for y in (
        sg.cond(x > 0, lambda: sg.sqrt(x), lambda: 0.0),
        sg.cond(x > 0, lambda: inside, lambda: 0.0),
        sg.where(x > 0, sg.cond(x > 0, lambda: sg.log(x), lambda: x / 0), 0.0),
    ):
        assert both([sg.grad(y, x)], x)(0.0) == [0]
        assert evaluate(sg.jvp([y], [x], [sg.ones(())]), {x: 0.0}) == [0]


def test_no_steps_do_not_poison_what_they_would_read():
    n = sg.placeholder("n", ("T",))
    inside = sg.sqrt(x)
    y = sg.scan(lambda c, row: (c + inside * row, None), x, n)[0]
    assert both([sg.grad(y, x)], x, n)(0.0, np.empty(0)) == [1]


@pytest.mark.parametrize("total", [True, False])
def test_vmap_selects_without_poisoning(total):
    def slow(a):  # something that may fail, so that rows run one by one
        return a if total else sg.sum(sg.linalg.cholesky(sg.reshape(a, (1, 1)))) ** 2

    def f(a):
        return sg.cond(a > 0, lambda: sg.sqrt(slow(a)) * x, lambda: a * a)

    at = np.array([4.0, -2.0, 0.0])
    one = sg.placeholder("one", ())
    rows = sg.vmap(f)(v)
    per_row = sg.vmap(lambda a: sg.grad(f(a), a))(v)
    of_sum, of_x = sg.grad(sg.sum(rows), [v, x])
    found = both([rows, per_row, of_sum, of_x, sg.jacobian(rows, v)], v, x)(at, 3.0)
    np.testing.assert_allclose(found[0], [6, 4, 0])
    for g in (found[1], found[2], np.diag(found[4])):
        np.testing.assert_allclose(g, [0.75, -4, 0])
    assert found[3] == 2
    second = sg.vmap(lambda a: sg.grad(sg.grad(f(a), a), a))(v)
    single = [evaluate([sg.grad(sg.grad(f(one), one), one)], {one: a, x: 3.0})[0] for a in at]
    np.testing.assert_allclose(evaluate([second], {v: at, x: 3.0})[0], single)


def test_vmap_of_a_shared_predicate_runs_one():
    rows = sg.vmap(lambda a: sg.cond(x > 0, lambda: sg.exp(a) * x, lambda: a))(v)
    assert any(n.op.name == "branch" for n in sg.Graph(rows).nodes)
    call = both([rows, sg.grad(sg.sum(rows), v), sg.grad(sg.sum(rows), x)], v, x)
    np.testing.assert_allclose(call(V, 2.0)[0], np.exp(V) * 2)
    np.testing.assert_allclose(call(V, -2.0)[1], np.ones(3))


def test_vmap_of_branches_that_would_not_end():
    def f(a):  # as jax#2947: the loop ends only where its branch is taken
        return sg.cond(a > 1, lambda: sg.fori(3, lambda i, c: c / 2, a), lambda: a)

    np.testing.assert_array_equal(both([sg.vmap(f)(v)], v)(V)[0], [0.5, -1, 0.25])


def test_forms_names_and_dtypes():
    n = sg.placeholder("n", ("N", 2), "complex64")
    found = sg.cond(
        sg.any(sg.real(n) > 0),
        lambda: {"a": n * 2, "b": (1, [n[0]])},
        lambda: {"a": n, "b": (2.5, [n[1]])},
    )  # fmt: skip
    assert found["a"].type == n.type
    outputs = [found["a"], found["b"][0], found["b"][1][0]]
    program = sg.compile([n], outputs)
    for size in (2, 5):
        at = np.full((size, 2), 1 + 2j, "complex64")
        np.testing.assert_array_equal(program(at)[0], at * 2)
        assert program(-at)[1] == 2.5
    grads = sg.grad(sg.sum(sg.abs(found["a"])), n)
    assert evaluate([grads], {n: at})[0].dtype == np.complex64
    y = sg.cond(x > 0, lambda: 0, lambda: sg.constant(1, "float32"))
    assert y.dtype == np.float32


def test_kinks_reach_the_branches():
    y = sg.cond(x >= -1, lambda: sg.relu(x), lambda: x)
    for policy, slope in (("zero", 0), ("right", 1), ("left", 0), (0.5, 0.5)):
        assert evaluate([sg.grad(y, x, kinks=policy)], {x: 0.0}) == [slope]
        assert evaluate(sg.jvp([y], [x], [sg.ones(())], kinks=policy), {x: 0.0}) == [slope]


def test_choices_in_loops_and_loops_in_choices():
    def step(c, row):
        inner = sg.cond(
            sg.sum(row) > 0, lambda: c * row[0], lambda: sg.fori(2, lambda i, d: d + c, c)
        )
        return inner, inner

    rows = sg.placeholder("rows", (4, 3))
    last, ys = sg.scan(step, x, rows)
    c, plain = x, []
    for t in range(4):
        c = sg.where(sg.sum(rows[t]) > 0, c * rows[t, 0], 3 * c)
        plain.append(c)
    at = np.random.default_rng(0).uniform(-1, 1, (4, 3))
    ours, theirs = last + sg.sum(ys), c + sg.sum(sg.stack(plain))
    for _ in range(3):
        np.testing.assert_allclose(*evaluate([ours, theirs], {x: 1.5, rows: at}), rtol=1e-12)
        both([ours], x, rows)(1.5, at)
        ours, theirs = sg.grad(ours, x) * x, sg.grad(theirs, x) * x


def test_in_the_body_of_a_backward():
    class Clipped(sg.Function):
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * 2

        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return sg.cond(a > 0, lambda: g / sg.sqrt(a), lambda: g)

    (grad,) = [sg.grad(Clipped.apply(x), x)]
    found = [both([grad], x)(at)[0] for at in (4.0, -4.0)]
    assert found == [0.5, 1]


def test_saved_and_read_and_printed(tmp_path):
    y = sg.cond(x > 0, lambda: sg.exp(x), lambda: x)
    graph = sg.Graph([y, sg.grad(y, x)])
    assert sg.Graph.parse(graph.text(full=True)) == graph
    graph.save(tmp_path / "graph.json")
    again = sg.Graph.load(tmp_path / "graph.json")
    assert again == graph
    program = sg.compile(again.inputs, again.outputs)
    assert list(program(-2.0)) == [-2, 1]
    program.save_source(tmp_path / "alone.py")
    assert "import symgrad" not in (tmp_path / "alone.py").read_text()
    assert list(runpy.run_path(str(tmp_path / "alone.py"))["step"](-2.0)) == [-2, 1]
    assert "if s:" in program.source
    assert program.profile(2.0, runs=2)
    assert program.cost()
    assert program.check(2.0)


@each("seed", range(40))
def test_random_branches(seed):
    rng = np.random.default_rng(seed)
    inputs, outputs = random_graph(rng, 8)
    outputs = [y for y in outputs if not isinstance(y.type, tuple)]
    p = sg.placeholder("p", (), "bool")
    feeds = {n: rng.uniform(1, 6, n.shape).astype(n.dtype) for n in inputs}

    found = sg.cond(p, lambda: [y * 3 for y in outputs], lambda: [y * 2 for y in outputs])
    for flag in (True, False):
        plain = [y * 3 for y in outputs] if flag else [y * 2 for y in outputs]
        wrt = [n for n in inputs if n.dtype.kind in "fc"]
        pairs = []
        for ys in (found, plain):
            real = [sg.astype(sg.sum(sg.abs(y)), "float64") for y in ys if y.dtype.kind in "fc"]
            loss = sum(real, sg.constant(0.0))
            pairs.append([*ys, *sg.grad(loss, wrt, disconnected="zero")])
        given = feeds | {p: np.bool_(flag)}
        ours = sg.compile([*inputs, p], pairs[0], exact="bits")(*feeds.values(), np.bool_(flag))
        for a, b, c in zip(evaluate(pairs[0], given), evaluate(pairs[1], given), ours, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(c, b, rtol=1e-5, atol=1e-6)


# ---- what is refused ------------------------------------------------------------------------


def refused(error, *parts):
    return pytest.raises(error, match="(?s)" + ".*".join(parts))


def test_the_predicate_is_a_boolean_scalar():
    with refused(sg.ShapeError, "one boolean", r"bool\[3\]", "sg.any", "test_cond.py"):
        sg.cond(v > 0, lambda: v, lambda: v)
    with refused(sg.DtypeError, "boolean", r"float64\[\(\)\]", "x != 0", "test_cond.py"):
        sg.cond(x * 2, lambda: v, lambda: v)


def test_both_give_the_same():
    with refused(
        sg.ShapeError, r"result is float64\[3\] of the first", r"float64\[\(\)\] of", "test_cond"
    ):
        sg.cond(x > 0, lambda: v * 2, lambda: x * 2)
    with refused(sg.DtypeError, "float64", "float32", "astype"):
        sg.cond(x > 0, lambda: v, lambda: sg.astype(v, "float32"))
    with refused(sg.GraphError, "result", "sequence of 2"):
        sg.cond(x > 0, lambda: (v, v), lambda: (v,))
    with refused(sg.GraphError, "result is None"):
        sg.cond(x > 0, lambda: None, lambda: None)
    with refused(sg.GraphError, "nothing to compute"):
        sg.cond(x > 0, lambda: (), lambda: ())
    with refused(sg.SymgradError, "cond: a body returns nodes, not str"):
        sg.cond(x > 0, lambda: "text", lambda: "text")


def test_side_effects_are_noticed():
    w = sg.variable("w", 1.0)

    def sets(*_):
        w.value = 2.0
        return x

    for build in (
        lambda: sg.cond(x > 0, sets, lambda: x),
        lambda: sg.fori(3, sets, x),
        lambda: sg.scan(lambda c, row: (sets(), None), x, v),
        lambda: sg.map(sets, v),
    ):
        with refused(
            sg.UnsupportedError, "no side effects, and the variable 'w' is set", "test_cond"
        ):
            build()
    assert w.value == 1
    w.value = 3.0
    norm = sg.nn.BatchNorm(3)
    with refused(sg.UnsupportedError, "side effects", "state"):
        sg.cond(x > 0, lambda: norm(v[None]), lambda: v[None])


def test_what_a_file_may_not_say():
    (choice,) = sg.cond(x > 0, lambda: sg.exp(x) + v, lambda: v).inputs
    attrs, types = dict(choice.attrs), tuple(n.type for n in choice.inputs)
    choice.op.check(types, attrs)
    smaller = sg.Graph(attrs["true"].outputs[0][:2], attrs["true"].inputs)
    loose = sg.Graph([sg.variable("u", V) * 2])
    for wrong in (
        {"true": smaller},
        {"false": loose},
        {"true": "x"},
        {"sizes": (("N", sg.dim("T")),)},
    ):
        with pytest.raises(sg.SymgradError):
            choice.op.check(types, attrs | wrong)
    for other in (types[:1], types[1:], (), (*types, types[0]), types[::-1]):
        with pytest.raises(sg.SymgradError):
            choice.op.check(other, attrs)

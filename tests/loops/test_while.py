"""`while_loop`: as many steps as the data ask for, with gradients of every order in both modes."""

import runpy
import signal
import threading

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.evaluate import evaluate
from symgrad.ops.loops.loop import substituted
from symgrad.testing import random_graph
from tests.helpers import each

a = sg.placeholder("a", ())
b = sg.placeholder("b", ())
v = sg.placeholder("v", (4,))


def mean_step(pair):
    return (pair[0] + pair[1]) / 2, sg.sqrt(pair[0] * pair[1])


def agm(first, second=b):
    """The arithmetic-geometric mean of Gauss."""
    return sg.while_loop(lambda pair: abs(pair[0] - pair[1]) > 1e-10, mean_step, (first, second))[0]


def programs(inputs, outputs):
    """One call runs the program, the same without passes, and the reference, and compares."""
    made = [
        sg.compile(inputs, outputs),
        sg.compile(inputs, outputs, passes=()),
        sg.compile(inputs, outputs, backend="reference"),
    ]

    def call(*arrays):
        first, *others = (p(*arrays) for p in made)
        third = evaluate(outputs, dict(zip(inputs, arrays, strict=True)))
        for other in (*others, third):
            for x, y in zip(first, other, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12)
        return first

    return call


def test_the_mean_of_gauss_to_third_order():
    ours, theirs = agm(a), (a, b)
    for _ in range(4):
        theirs = mean_step(theirs)
    theirs, pairs = theirs[0], []
    for _ in range(4):
        pairs.append((ours, theirs))
        (forward,) = sg.jvp([ours], [a], [sg.ones(())])
        ours, theirs = sg.grad(ours, a), sg.grad(theirs, a)
        pairs.append((forward, theirs))
    found = programs([a, b], [x for pair in pairs for x in pair])(1.0, 5.0)
    np.testing.assert_allclose(found[::2], found[1::2], rtol=1e-12)
    # Lagrange: the mean of 1 and sqrt(2) is Gauss's constant turned over.
    np.testing.assert_allclose(evaluate([agm(a)], {a: 1.0, b: 2**0.5}), [1 / 0.8346268416740732])


def test_differences_and_every_mixture_of_modes():
    def f(x, y):
        return agm(x * x + 1, y)

    sg.testing.check_grads(f, np.float64(0.7), np.float64(3.0), order=2)
    y = f(a, b)
    call = programs([a, b], [*sg.hvp(y, [a, b], [a, b]), *sg.jvp(sg.grad(y, [a, b]), [a], [a])])
    found = call(0.7, 3.0)
    assert all(np.isfinite(found))


def test_arrays_and_what_a_body_reaches():
    w = sg.variable("w", np.random.default_rng(0).uniform(0, 1, (3, 3)))
    x = sg.placeholder("x", (3,))
    y = sg.while_loop(lambda c: sg.sum(c * c) < 100, lambda c: sg.tanh(w @ c) * 1.5 + c, x)
    plain, steps = x, 0
    at = np.array([0.5, 0.2, 0.1])
    while evaluate([sg.sum(plain * plain)], {x: at})[0] < 100:
        plain, steps = sg.tanh(w @ plain) * 1.5 + plain, steps + 1
    assert steps > 4
    outputs = []
    for z in (y, plain):
        loss = sg.sum(z * z)
        g, gw = sg.grad(loss, [x, w])
        outputs += [z, g, gw, sg.jacobian(z, x), sg.hessian(loss, x), sg.grad(sg.sum(gw * gw), w)]
    found = programs([x], outputs)(at)
    for ours, theirs in zip(found[:6], found[6:], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 8])
def test_it_is_the_unrolled_loop(steps):
    n = sg.placeholder("n", (), "int64")
    x = sg.placeholder("x", ("N", 2))

    def step(c):
        i, y, z = c
        return i + 1, z * sg.sin(y) + a, y

    def holds(c):
        return c[0] < n

    ours = sg.while_loop(holds, step, (0, x, x * 2))
    theirs = (sg.constant(0), x, x * 2)
    for _ in range(steps):
        theirs = step(theirs)
    at = np.random.default_rng(steps).uniform(-1, 1, (3, 2))
    losses = [sg.sum(y * y) + sg.sum(z) for _, y, z in (ours, theirs)]
    outputs = [*ours, *theirs]
    for _ in range(3):
        grads = [sg.grad(loss, [x, a], disconnected="zero") for loss in losses]
        outputs += [g for pair in grads for g in pair]
        losses = [sg.sum(g * g) + h for g, h in grads]
    found = programs([x, a, n], outputs)(at, 0.3, np.int64(steps))
    for ours, theirs in zip(found[:3], found[3:6], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    for i in range(6, len(found), 4):
        for ours, theirs in zip(found[i : i + 2], found[i + 2 : i + 4], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_other_dtypes(dtype):
    z = sg.placeholder("z", (2,), dtype)
    y = sg.while_loop(lambda c: sg.max(sg.abs(c)) < 50, lambda c: c * c + z, z)
    plain = z
    at = (np.array([1.1, 0.4]) + (1j * np.array([0.2, 0.3]) if dtype[0] == "c" else 0)).astype(
        dtype
    )
    while np.abs(evaluate([plain], {z: at})[0]).max() < 50:
        plain = plain * plain + z
    pair = [sg.grad(sg.sum(sg.abs(w) ** 2), z) for w in (y, plain)]
    found = sg.compile([z], [y, plain, *pair])(at)
    assert found[0].dtype == found[2].dtype == dtype
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)
    np.testing.assert_allclose(found[2], found[3], rtol=1e-4)


def test_thousands_of_steps_by_the_data():
    def halved(x):  # how far a ball falls, step by step
        def step(c):
            t, y, speed = c
            return t + 1e-3, y + 1e-3 * speed, speed - 1e-2

        return sg.while_loop(lambda c: c[1] > 0, step, (0.0, x, x / 7))[2]

    program = sg.compile([a], [halved(a), sg.grad(halved(a), a)])
    lines = program.source.count("\n")
    for at in (1.0, 40.0):
        value, slope = program(at)
        assert value < -1
        np.testing.assert_allclose(slope, 1 / 7)
    assert program.source.count("\n") == lines


# ---- on a batch -----------------------------------------------------------------------------


def test_rows_end_when_they_do():
    at = np.array([1.0, 2.0, 30.0, 5.0])
    y = sg.vmap(agm)(v)
    outputs = [
        y,
        sg.grad(sg.sum(y), v),
        sg.vmap(lambda x: sg.grad(agm(x), x))(v),
        sg.vmap(lambda x: sg.grad(sg.grad(agm(x), x), x))(v),
        sg.hessian(sg.sum(y), v),
        sg.jacobian(y, v),
        sg.grad(sg.sum(y), b),
    ]
    found = programs([v, b], outputs)(at, 5.0)
    single = [agm(a), sg.grad(agm(a), a), sg.grad(sg.grad(agm(a), a), a), sg.grad(agm(a), b)]
    rows = np.array([evaluate(single, {a: x, b: 5.0}) for x in at])
    np.testing.assert_allclose(found[0], rows[:, 0])
    np.testing.assert_allclose(found[1], rows[:, 1])
    np.testing.assert_allclose(found[2], rows[:, 1])
    np.testing.assert_allclose(found[3], rows[:, 2], atol=1e-12)
    np.testing.assert_allclose(found[4], np.diag(rows[:, 2]), atol=1e-12)
    np.testing.assert_allclose(found[5], np.diag(rows[:, 1]), atol=1e-12)
    np.testing.assert_allclose(found[6], rows[:, 3].sum())


def test_a_row_that_has_ended_is_left_alone():
    def f(x):  # beyond its last step the square root is of what is negative
        return sg.while_loop(lambda c: c > 1, lambda c: sg.sqrt(c - 1), x)

    at = np.array([0.5, 5.0, 1.0, 30.0])
    y = sg.vmap(f)(v)
    value, slope = programs([v], [y, sg.grad(sg.sum(y), v)])(at)
    rows = [evaluate([f(a), sg.grad(f(a), a)], {a: x}) for x in at]
    np.testing.assert_allclose(value, [r[0] for r in rows])
    np.testing.assert_allclose(slope, [r[1] for r in rows])
    assert np.isfinite(slope).all()


def test_a_body_that_would_not_end_for_it_does_not_run_for_it():
    def f(x):  # the inner loop ends only while the outer one goes on
        inner = lambda c: sg.while_loop(lambda d: d != c - 1, lambda d: d - 0.5, c)  # noqa: E731
        return sg.while_loop(lambda c: c > 1, inner, x)

    at = np.array([0.25, 3.0, 2.0, -7.0])
    y = sg.vmap(f)(v)
    np.testing.assert_allclose(programs([v], [y])(at)[0], [0.25, 1, 1, -7])
    assert evaluate([sg.grad(sg.sum(y), v)], {v: at})[0].tolist() == [1, 1, 1, 1]


def test_what_is_not_batched_stays_so():
    def f(x):
        c, y = sg.while_loop(lambda c: c[0] < b, lambda c: (c[0] * 2, c[1] * x), (a, x))
        return c + y

    y = sg.vmap(f)(v)
    at = np.array([1.0, 2.0, 3.0, -1.0])
    outputs = [y, sg.grad(sg.sum(y), v), sg.vmap(lambda x: sg.grad(f(x), x))(v)]
    value, one, other = programs([v, a, b], outputs)(at, 1.0, 7.0)
    np.testing.assert_allclose(value, 8 + at**4)
    np.testing.assert_allclose(one, 4 * at**3)
    np.testing.assert_allclose(other, 4 * at**3)


# ---- in loops, in choices -------------------------------------------------------------------


def test_within_other_loops():
    def step(c, row):
        inner = sg.while_loop(lambda d: d < 4, lambda d: d * (1 + row**2), c)
        return inner / 4, sg.cond(row > 0, lambda: agm(inner, c), lambda: inner)

    last, ys = sg.scan(step, a, v)
    at = np.array([1.0, -0.5, 2.0, 0.7])
    c, rows = sg.constant(0.3) * a / 0.3, []
    outputs = [last, ys, *sg.grad(last + sg.sum(ys), [a, v]), sg.hessian(sg.sum(ys), v)]
    found = programs([a, v], outputs)(0.3, at)
    for t, row in enumerate(at):
        inner, steps = c, 0
        while evaluate([inner], {a: 0.3, v: at})[0] < 4:
            inner, steps = inner * (1 + v[t] ** 2), steps + 1
        p = (inner, c)
        for _ in range(8 if row > 0 else 0):
            p = mean_step(p)
        rows.append(p[0])
        c = inner / 4
    plain = sg.stack(rows)
    wanted = [c, plain, *sg.grad(c + sg.sum(plain), [a, v]), sg.hessian(sg.sum(plain), v)]
    for x, y in zip(found, evaluate(wanted, {a: 0.3, v: at}), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-8)


def test_kinks_reach_the_body():
    y = sg.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + sg.relu(a)), (0, 0.0))[1]
    for policy, slope in (("zero", 0), ("right", 3), ("left", 0), (0.5, 1.5)):
        assert evaluate([sg.grad(y, a, kinks=policy)], {a: 0.0}) == [slope]
        assert evaluate(sg.jvp([y], [a], [sg.ones(())], kinks=policy), {a: 0.0}) == [slope]


@each("seed", range(24))
def test_random_bodies(seed):
    rng = np.random.default_rng(seed)
    inputs, outputs = random_graph(rng, 6)
    floats = [x for x in inputs if x.dtype.kind == "f"]
    made = [y for y in outputs if not isinstance(y.type, tuple) and y.dtype.kind == "f"]
    if not floats or not made:
        return
    x, n = floats[0], sg.placeholder("count", (), "int64")
    steps = int(rng.choice([0, 1, 3]))

    def step(c):
        total = sum(sg.astype(sg.sum(sg.tanh(y)), x.dtype) for y in substituted(made, {x: c[1]}))
        return c[0] + 1, sg.tanh(c[1] * total + c[1])

    ours = sg.while_loop(lambda c: c[0] < n, step, (0, x))[1]
    theirs = (0, x)
    for _ in range(steps):
        theirs = step(theirs)
    feeds = {z: rng.uniform(1, 2, z.shape).astype(z.dtype) for z in inputs} | {n: np.int64(steps)}
    pair = [sg.grad(sg.sum(y), floats, disconnected="zero") for y in (ours, theirs[1])]
    found = evaluate([*pair[0], *pair[1]], feeds)
    program = sg.compile([*feeds], pair[0], exact="bits")
    third = program(*feeds.values())
    for p, q, r in zip(found[: len(floats)], found[len(floats) :], third, strict=True):
        np.testing.assert_allclose(p, q, rtol=2e-4, atol=1e-5)
        np.testing.assert_allclose(r, q, rtol=2e-4, atol=1e-5)


# ---- programs -------------------------------------------------------------------------------


def test_the_source_is_a_while_and_stands_alone(tmp_path):
    program = sg.compile([a, b], [agm(a), sg.grad(agm(a), a)])
    assert "    while fused(" in program.source
    program.save_source(tmp_path / "alone.py")
    text = (tmp_path / "alone.py").read_text()
    assert "import symgrad" not in text
    again = runpy.run_path(str(tmp_path / "alone.py"))["step"]
    for pair in ((1.0, 5.0), (3.0, 2.0)):
        np.testing.assert_array_equal(again(*pair), program(*pair))
    assert program.profile(1.0, 5.0, runs=2)
    assert program.check(1.0, 5.0)
    assert str(program.cost())
    assert program.plan


def test_saved_and_read_and_printed(tmp_path):
    y = agm(a)
    graph = sg.Graph([y, sg.grad(y, a), sg.grad(sg.grad(y, a), a)])
    assert sg.Graph.parse(graph.text(full=True)) == graph
    graph.save(tmp_path / "graph.json")
    again = sg.Graph.load(tmp_path / "graph.json")
    assert again == graph
    program = sg.compile(again.inputs, again.outputs)
    wanted = evaluate(graph.outputs, {a: 1.0, b: 5.0})
    np.testing.assert_allclose(program(1.0, 5.0), wanted)


def test_more_steps_than_are_allowed():
    y = sg.while_loop(lambda c: c < 100, lambda c: c + 1, a, max_steps=10)
    for program in (sg.compile([a], y), sg.compile([a], y, backend="reference")):
        assert program(90.0) == 100
        with pytest.raises(sg.KernelError, match=r"(?s)while.*more than 10 steps.*test_while.py"):
            program(89.0)
    with pytest.raises(sg.KernelError, match="more than 10 steps"):
        evaluate([y], {a: 0.0})


def test_a_loop_that_does_not_end_is_interrupted():
    w = sg.variable("w", 1.0)
    y = sg.while_loop(lambda c: c > 0, lambda c: c * 1.0 + a, a)
    program = sg.compile([a], y, updates={w: w + y})
    # Whoever starts the tests in the background may have had the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            program(1.0)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert w.value == 1
    assert program(-1.0) == -1
    assert w.value == 0


def test_what_nobody_reads_is_not_computed():
    def step(c):
        return c[0] * 2, sg.exp(c[1]), c[2]

    _, _, still = sg.while_loop(lambda c: c[0] < 9, step, (a, b, v))
    first = sg.while_loop(lambda c: c[0] < 9, step, (a, b, v))[0]
    program = sg.compile([a, b, v], [first, still])
    (loop,) = (n for n in program.graph.nodes if n.op.name == "while_loop")
    assert len(loop.attr("step").outputs) == 1
    assert "exp" not in program.source
    at = np.arange(4.0)
    assert program(1.0, 1.0, at)[0] == 16
    np.testing.assert_array_equal(program(1.0, 1.0, at)[1], at)


# ---- what is refused ------------------------------------------------------------------------


def refused(error, *parts):
    return pytest.raises(error, match="(?s)" + ".*".join(parts))


def test_carries_keep_their_types():
    with refused(sg.ShapeError, r"while_loop: carry is float64\[\(\)\] before", "test_while"):
        sg.while_loop(lambda c: True, lambda c: c * v, a)
    with refused(sg.DtypeError, r"float64\[4\] after", "astype", "test_while"):
        sg.while_loop(lambda c: c[0] < 1, lambda c: c * v, sg.zeros(4, dtype="float32"))
    with refused(sg.GraphError, "carry", "sequence of 2"):
        sg.while_loop(lambda c: c[0] < 1, lambda c: (c[0],), (a, b))
    with refused(sg.GraphError, "nothing to compute"):
        sg.while_loop(lambda c: True, lambda c: c, ())
    with refused(sg.SymgradError, "while_loop: a body returns nodes, not str"):
        sg.while_loop(lambda c: c < 1, lambda c: "text", a)


def test_the_test_is_one_boolean():
    with refused(sg.ShapeError, "while_loop asks for one boolean", "sg.any", "test_while"):
        sg.while_loop(lambda c: c < 1, lambda c: c, v)
    with refused(sg.DtypeError, "asks for a boolean", "x != 0", "test_while"):
        sg.while_loop(lambda c: c * 1, lambda c: c, a)
    for wrong in (-1, 2.5, True, "many"):
        with refused(sg.GraphError, "max_steps"):
            sg.while_loop(lambda c: c < 1, lambda c: c, a, max_steps=wrong)


def test_side_effects_are_noticed():
    w = sg.variable("w", 1.0)

    def sets(c):
        w.value = 2.0
        return c

    with refused(sg.UnsupportedError, "while_loop", "no side effects", "'w'", "test_while"):
        sg.while_loop(lambda c: c < 1, sets, a)
    with refused(sg.UnsupportedError, "while_loop", "no side effects", "'w'", "test_while"):
        sg.while_loop(lambda c: sets(c) < 1, lambda c: c, a)


def test_what_a_file_may_not_say():
    y = agm(a)
    (loop,) = y.inputs
    attrs, types = dict(loop.attrs), tuple(n.type for n in loop.inputs)
    loop.op.check(types, attrs)
    step = attrs["step"]
    for wrong in (
        {"test": step}, {"step": attrs["test"]}, {"most": -1}, {"most": 1.0}, {"test": 3},
        {"step": sg.Graph([*step.outputs, step.outputs[0]], step.inputs)},
        {"sizes": (("N", sg.dim("T")),)},
    ):  # fmt: skip
        with pytest.raises(sg.SymgradError):
            loop.op.check(types, attrs | wrong)
    with pytest.raises(sg.SymgradError):
        loop.op.check(types[:1], attrs)
    (sized,) = sg.grad(y, a).inputs
    attrs, types = dict(sized.attrs), tuple(n.type for n in sized.inputs)
    sized.op.check(types, attrs)
    graph, name = attrs["graph"], attrs["name"]
    for wrong in (
        {"name": "N"}, {"name": "os"}, {"name": "steps99999"}, {"name": graph.inputs[0].name},
        {"sizes": ((name, 3),)}, {"name": "steps7"},
        {"graph": sg.Graph([sg.zeros((sg.dim(name),))], [])},
    ):  # fmt: skip
        with pytest.raises(sg.SymgradError):
            sized.op.check(types, attrs | wrong)
    for other in (types[1:], (), types[:1]):
        with pytest.raises(sg.SymgradError):
            sized.op.check(other, attrs)

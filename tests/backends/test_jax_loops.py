"""Loops, choices and draws by the back end of JAX: `scan`, `while_loop`, `cond`, and Philox."""

import numpy as np
import pytest

import symgrad as sg

pytest.importorskip("jax")

X, Z = sg.placeholder("x", ("T", 3)), sg.placeholder("z", ())
KEY = sg.random.fold_in(sg.random.key(7), sg.astype(Z, "int64"))


def recurrence(reverse):
    """The last state, all of them, and the gradient by the weights."""
    w = sg.variable("w", np.eye(3) / 2 + 0.1)

    def step(c, a):
        c = sg.tanh(c @ w + a)
        return c, c * 2

    last, rows = sg.scan(step, sg.zeros(3), X, reverse=reverse)
    return [last, rows, sg.grad(sg.sum(rows**2), w)]


def compared(inputs, outputs, given, hosts=0, **options):
    """The same by both, with so many ops in NumPy; the results."""
    program = sg.compile(inputs, outputs, backend="jax", **options)
    expected = sg.compile(inputs, outputs, **options)(given)
    found = program(given)
    for mine, theirs in zip(expected, found, strict=True):
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(theirs, mine, rtol=1e-12, atol=1e-14)
    lowering = program.executables.used[-1].lowering
    ops = [lowering.tasks[i].node.op for s in lowering.stages for i in s.host]
    assert sum(not op.of_several for op in ops) == hosts
    return found


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_and_its_gradient(reverse):
    given = np.random.default_rng(0).standard_normal((6, 3))
    compared(X, recurrence(reverse), given)
    if not reverse:
        compared(X, recurrence(reverse), given[:0])
        compared(X, recurrence(reverse), given, passes=())


def test_while_loops_choices_and_solutions():
    grown = sg.while_loop(lambda k: k < 100, lambda k: k * Z, Z)
    chosen = sg.cond(Z > 0, lambda: sg.sqrt(abs(Z)), lambda: -Z)
    solved = sg.root(lambda u: u**3 - Z, sg.asarray(1.0))
    for value in (3.0, 8.0):
        found = compared(Z, [grown, chosen, sg.grad(chosen, Z), solved, sg.grad(solved, Z)], value)
        assert found[0] >= 100
    # How long the way back is, only the data tell: that is left to NumPy.
    compared(Z, [sg.grad(grown, Z)], 3.0, hosts=1)


def test_draws_are_numpys_bit_for_bit():
    laws = [
        sg.random.uniform(KEY, (5, 3), dtype="float32"),
        sg.random.uniform(KEY, (7,)),
        sg.random.bernoulli(KEY, 0.3, (9,)),
        sg.random.split(KEY, 3),
        sg.vmap(lambda k: sg.random.uniform(k, (4,)))(sg.random.split(KEY, 3)),
    ]
    program = sg.compile(Z, laws, backend="jax")
    for mine, theirs in zip(sg.compile(Z, laws)(-1.0), program(-1.0), strict=True):
        np.testing.assert_array_equal(theirs, mine)
    assert not any(s.host for s in program.executables.fixed.lowering.stages)


def test_laws_that_reject_are_drawn_in_numpy_also_in_a_loop():
    compared(
        Z, [sg.random.normal(KEY, (3,)) * Z, sg.random.randint(KEY, (4,), high=7)], 2.0, hosts=2
    )

    def step(c, k):
        return c + sg.random.normal(sg.random.fold_in(KEY, k), ()), c

    last, rows = sg.scan(step, Z, sg.arange(5))
    compared(Z, [last, rows, sg.exp(last)], 2.0, hosts=1)


def test_of_elements_set_at_one_place_the_last_stays_on_any_device():
    from symgrad.backends.jax.device import imported
    from symgrad.backends.jax.lowering import Lowering

    i, u = sg.placeholder("i", (6,), "int64"), sg.placeholder("u", (6, 2))
    y = sg.constant(np.zeros((4, 2))).at[i].set(u)
    given = np.array([1, 3, 1, -1, 0, 1]), np.arange(12.0).reshape(6, 2)
    lowering = Lowering(sg.Graph([y], [i, u]), {}, imported(), in_turn=False)
    (stage,) = lowering.stages
    feeds = dict(zip((i, u), given, strict=True))
    with imported().enable_x64(True):
        arrays = [feeds[lowering.given[k]] for k in stage.takes]
        (made,), _ = lowering.function(stage, lowering.outputs)(*arrays)
    np.testing.assert_array_equal(made, sg.compile([i, u], y)(*given))

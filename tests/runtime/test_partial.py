"""Calls that give only what changes: the bits of full calls, whatever is held and in what order."""

import copy
import pickle
import threading

import numpy as np
import pytest

import symgrad as sg
from symgrad.passes import DEFAULT, hoist
from symgrad.testing.equality import assert_same
from tests.runtime.test_kept import GRADES, nothing, with_variables

RNG = np.random.default_rng(3)
DATA = RNG.standard_normal((3000, 20))
Y = RNG.standard_normal(3000)


@pytest.fixture
def everything(monkeypatch):
    """Every value that could be held is held, be it worth it or not."""
    monkeypatch.setattr(hoist, "LEAST_WORK", 1)
    monkeypatch.setattr(hoist, "LEAST_OF_ONE", 0)


def model():
    """A density with two blocks, a scale and a variable: its parameters, and itself."""
    a, b = sg.placeholder("a", 20), sg.placeholder("b", 20)
    scale, rows = sg.placeholder("scale", ()), sg.variable("rows", DATA)
    error = sg.constant(Y) - sg.tanh(rows @ a) - sg.sin(rows @ b)
    return (a, b, scale), rows, -sg.sum(error**2) / scale**2 - 3000 * sg.log(scale)


def ran(program):
    """What ran of a program's parts from now on, by what they depend on: a list that grows."""
    found = []
    for depends, part in program.held.items():
        executable = part.executables.fixed

        def run(*args, inner=executable.run, depends=depends):
            found.append(depends)
            return inner(*args)

        executable.run = run
    return found


def same(found, expected, note=""):
    flat = found if isinstance(found, (list, tuple)) else [found]
    wanted = expected if isinstance(expected, (list, tuple)) else [expected]
    for x, y in zip(flat, wanted, strict=True):
        assert_same(x, y, "bits", note=note)


# ---- what is computed again -----------------------------------------------------------------


def test_only_what_depends_on_a_change_is_computed_again():
    inputs, rows, logp = model()
    program = sg.compile(inputs, logp, partial=True)
    full = sg.compile(inputs, logp)
    assert list(program.held) == ["a, rows", "b, rows", "a, b, rows"]
    a, b = DATA[0], DATA[1]
    found = ran(program)
    same(program(a, b, 1.0), full(a, b, 1.0))
    assert found == list(program.held)
    for given, again in [
        ({"scale": 2.0}, []),
        ({"scale": 2.0}, []),
        ({"b": a}, ["b, rows", "a, b, rows"]),
        ({}, []),
        ({"a": b, "scale": 1.5}, ["a, rows", "a, b, rows"]),
    ]:
        found.clear()
        scale = program(**given)
        assert found == again
    same(scale, full(b, a, 1.5))
    found.clear()
    rows.value = DATA[::-1]
    same(program(), full(b, a, 1.5))
    assert found == list(program.held)


def test_plan_source_why_and_cost_tell_it():
    inputs, _, logp = model()
    program = sg.compile(inputs, logp, partial=True)
    said = "Computed once, and again when a, b or rows changes, by program.held['a, b, rows']"
    assert said in str(program.plan)
    assert f"# {said}" in program.source
    (story,) = program.why(logp.inputs[0].inputs[0].inputs[0].inputs[0]).stories
    assert "of program.held['a, b, rows']: once, and again when" in story.verdict
    part = program.held["a, rows"]
    assert "matmul" in part.source
    assert part.cost().after.flops >= 2 * 3000 * 20
    assert program.cost().after.flops < 20
    np.testing.assert_allclose(part(DATA[0])[0], Y - np.tanh(DATA @ DATA[0]))
    inner = program.held["a, b, rows"]
    assert set(inner.held) <= {"a, rows", "b, rows"}
    assert inner(DATA[0], DATA[1])[0].shape == ()


def test_what_is_cheap_is_not_held():
    a, b, x = (sg.placeholder(n, 3000) for n in "abx")
    program = sg.compile([a, b, x], sg.sum((a + 1) * (b + 2) * x), partial=True)
    assert program.held == {}
    same(program(Y, Y, Y), sg.compile([a, b, x], sg.sum((a + 1) * (b + 2) * x))(Y, Y, Y))


# ---- the bits of full calls -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("backend", "seeds"), [("numpy", range(20)), ("reference", range(20, 24)), (None, range(3))]
)
def test_any_order_of_changes_gives_the_bits_of_full_calls(backend, seeds, everything):
    held = failed = 0
    for seed in seeds:
        rng, options = np.random.default_rng(seed), {"exact": GRADES[seed % 4], "backend": backend}
        fed, outputs, updates, variables, arrays, others = with_variables(seed)
        program = sg.compile(fed, outputs, updates, partial=True, **options)
        held += len(program.held)
        twin, wrote, changed, cells, *_ = with_variables(seed)
        passes = DEFAULT if backend is None else (*DEFAULT, nothing)
        full = sg.compile(twin, wrote, changed, passes=passes, partial=backend is None, **options)
        names, values = [x.name for x in fed], list(arrays[1::2])
        for call in range(6):
            some = {i for i in range(len(fed)) if rng.random() < 0.5 or not call}
            now = [others[1::2][i] if i in some and call else v for i, v in enumerate(values)]
            for v, w, new, old in zip(variables, cells, others[::2], arrays[::2], strict=True):
                if rng.random() < 0.3:
                    v.value = w.value = new if rng.random() < 0.5 else old
            if call:
                with pytest.raises(sg.FeedError):
                    program(**{names[0]: np.zeros((9, 9, 9, 9))})
            results = []
            for run, given in ((program, {names[i]: now[i].copy() for i in some}), (full, None)):
                try:
                    results.append(run(*now) if given is None else run(**given))
                except sg.KernelError:
                    results.append(None)
            assert (results[0] is None) == (results[1] is None)
            if results[0] is None:
                failed += 1
                if not call:
                    break
                continue
            values = now
            same(*results, note=f"seed {seed}, call {call}")
            for v, w in zip(variables, cells, strict=True):
                assert v.value.tobytes() == w.value.tobytes()
    assert held > len(seeds)


@pytest.mark.parametrize("backend", ["numpy", "reference", None])
def test_shapes_that_change_and_loops(backend, everything):
    x, y = sg.placeholder("x", ("N", 3)), sg.placeholder("y", "N")
    w, z, i = sg.placeholder("w", 3), sg.placeholder("z", "M"), sg.placeholder("i", (), "int64")
    walk, _ = sg.scan(lambda c, t: (sg.tanh(c + t), c), sg.constant(0.5), z)
    outputs = [sg.sum(sg.exp(x @ w) * y) + walk, sg.ones_like(z) * x.shape[0], sg.sin(z)[i]]
    program = sg.compile([x, y, w, z, i], outputs, partial=True, backend=backend)
    full = sg.compile([x, y, w, z, i], outputs, backend=backend, exact="bits")
    program = sg.compile([x, y, w, z, i], outputs, partial=True, backend=backend, exact="bits")
    assert {"z", "x, w"} <= set(program.held)
    state = {"x": DATA[:5, :3], "y": Y[:5], "w": Y[:3], "z": Y[:4], "i": 1}
    program(**state)
    for new in [
        {"z": Y[:7]},
        {"x": DATA[:2, :3], "y": Y[:2]},
        {"w": -Y[:3], "i": 6},
        {"z": Y[:7] + 1, "w": Y[:3]},
        {"x": DATA[:5, :3], "y": Y[3:8]},
    ]:
        state |= new
        same(program(**new), full(**state))
    with pytest.raises(sg.FeedError, match=r"(?s)is 5 by 'x'.*held from calls before: 'x'"):
        program(y=Y[:2])
    with pytest.raises(sg.KernelError):
        program(z=Y[:2])  # too short for the index that is held
    with pytest.raises(sg.KernelError):
        program(i=100, w=Y[3:6])
    same(program(i=2), full(**(state | {"i": 2})))


def test_a_size_may_change_for_an_array_that_is_held(everything):
    y = sg.placeholder("y", "M")
    x = sg.placeholder("x", (sg.dim("N") * sg.dim("M"),))
    outputs = sg.sum(sg.sin(sg.reshape(x, (sg.dim("N"), sg.dim("M")))), axis=1)[0] + y[0]
    program = sg.compile([x, y], outputs, partial=True)
    full = sg.compile([x, y], outputs)
    assert "x" in program.held
    program(Y[:12], Y[:4])
    for count in (3, 2, 4, 12):
        same(program(y=Y[:count]), full(Y[:12], Y[:count]))


def test_held_copies_are_nobody_elses(everything):
    a, b = sg.placeholder("a", 3000), sg.placeholder("b", ())
    program = sg.compile([a, b], [a, sg.sum(sg.exp(a)[::2]) * b, sg.exp(a)], partial=True)
    assert program.held
    given = Y.copy()
    first = program(given, 1.0)
    kept = [r.tobytes() for r in first]
    given[:] = 7
    for r in (first[0], first[2]):
        r[:] = -1
    assert [r.tobytes() for r in program()] == kept


def test_what_updates_do_not_change_is_held_while_they_do():
    x, w = sg.placeholder("x", (3000, 20)), sg.variable("w", np.zeros(20))
    loss = sg.mean((sg.tanh(x) @ w - Y) ** 2)
    step = sg.compile(x, loss, {w: w - 0.1 * sg.grad(loss, w)}, partial=True)
    assert list(step.held) == ["x"]
    found = ran(step)
    losses = [step(DATA), step(), step(), step(DATA[::-1])]
    assert found == ["x", "x"]
    full, w.value = sg.compile(x, loss, {w: w - 0.1 * sg.grad(loss, w)}), np.zeros(20)
    same(losses, [full(DATA), full(DATA), full(DATA), full(DATA[::-1])])


# ---- what a first call gives, and what is refused -------------------------------------------


def test_the_first_call_gives_all_and_faults_are_named():
    inputs, _, logp = model()
    program = sg.compile(inputs, logp, partial=True)
    with pytest.raises(sg.FeedError, match=r"missing: 'b', 'scale'.*the first call gives all"):
        program(a=Y[:20])
    value = program(Y[:20], Y[20:40], 1.0)
    for wrong in ({"c": 1.0}, {"a": Y[:3]}, {"scale": "one"}, {"a": Y[:20].astype(complex)}):
        with pytest.raises(sg.FeedError, match="held from calls before"):
            program(**wrong)
    same(program(), value)
    for options in ({"backend": "jax"}, {"memory_budget": 10**9}):
        with pytest.raises(sg.GraphError, match="partial=True is not for backend='jax'"):
            sg.compile(inputs, logp, partial=True, **options)


def test_arguments_by_position_and_in_dicts():
    (a, b, scale), _, logp = model()
    program = sg.compile([{"a": a, "b": b}, scale], logp, partial=True)
    full = sg.compile([a, b, scale], logp)
    program({"a": Y[:20], "b": Y[20:40]}, 1.0)
    same(program({"a": DATA[0], "b": DATA[1]}), full(DATA[0], DATA[1], 1.0))
    same(program(b=Y[:20]), full(DATA[0], Y[:20], 1.0))


def test_without_hoisting_inputs_are_held_all_the_same():
    inputs, _, logp = model()
    program = sg.compile(inputs, logp, partial=True, passes=())
    assert program.held == {}
    program(Y[:20], Y[20:40], 1.0)
    same(program(scale=2.0), sg.compile(inputs, logp, passes=())(Y[:20], Y[20:40], 2.0))


# ---- checks, profiles, copies, threads ------------------------------------------------------


def test_checks_and_profiles_take_the_rest_from_what_is_held():
    inputs, _, logp = model()
    program = sg.compile(inputs, logp, partial=True)
    value = program(DATA[0], DATA[1], 1.0)
    with np.errstate(all="ignore"):
        check = program.check(scale=0.0)
    assert not check
    assert "log made inf" in str(check) or "divide made" in str(check)
    assert program.check()
    assert program.profile(b=DATA[2], runs=2).seconds > 0
    same(program(), value)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_a_copy_holds_nothing_and_has_the_same_parts(again):
    inputs, _, logp = model()
    program = sg.compile(inputs, logp, partial=True)
    value = program(DATA[0], DATA[1], 1.0)
    made = again(program)
    with pytest.raises(sg.FeedError, match="the first call gives all"):
        made(a=DATA[0])
    assert list(made.held) == list(program.held)
    same(made(DATA[0], DATA[1], 1.0), value)
    same(made(a=DATA[3]), program(a=DATA[3]))


def test_threads_take_turns():
    inputs, _, logp = model()
    program, full = sg.compile(inputs, logp, partial=True), sg.compile(inputs, logp)
    program(DATA[0], DATA[0], 1.0)
    seen = []

    def change(name):
        for i in range(40):
            seen.append((name, i, program(**{name: DATA[i]})))

    threads = [threading.Thread(target=change, args=(n,)) for n in "ab"]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    values = {name: {full(*((DATA[i], DATA[j]) if name == "a" else (DATA[j], DATA[i])), 1.0)
              for j in range(40)} for name, i in [("a", 5), ("b", 5)]}  # fmt: skip
    assert all(v in values[n] for n, i, v in seen if i == 5)
    same(program(), full(DATA[39], DATA[39], 1.0))

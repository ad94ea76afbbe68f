"""The variables of a program: read and changed together, and rehearsals that change none."""

import numpy as np

import symgrad as sg
from symgrad.runtime.runner import Runner


def updating():
    a, n = sg.variable("a", np.zeros(3)), sg.variable("n", np.int64(0))
    x = sg.placeholder("x", (3,))
    return sg.compile(x, sg.sum(a), updates={a: a + x, n: n + 1}), a, n


def test_a_rehearsal_reads_the_variables_and_changes_nothing():
    program, a, n = updating()
    program(np.ones(3))
    before, spares = (a.cell.array, n.cell.array), list(program.store.spares)
    store = program.store.rehearsal()
    rehearsed = Runner(program.feeder, program.executables, store, program.form)
    assert [rehearsed(np.ones(3)) for _ in range(2)] == [3, 3]
    assert (a.cell.array, n.cell.array) == before
    assert all(mine is own for mine, own in zip(program.store.spares, spares, strict=True))
    assert not any(np.shares_memory(s, t) for s in spares for t in store.spares)
    assert program(np.ones(3)) == 3
    assert (a.value.tolist(), n.value) == ([2.0, 2.0, 2.0], 2)


def test_what_is_read_are_the_arrays_of_all_variables_in_order():
    program, a, n = updating()
    assert program.store.variables == tuple(program.graph.inputs[1:])
    assert program.store.updated == (a, n)
    found = program.store.read()
    assert all(r is v.cell.array for r, v in zip(found, program.store.variables, strict=True))


def test_one_executable_in_place_of_those_that_are_held():
    x = sg.placeholder("x", ("N",))
    program = sg.compile(x, sg.exp(x))
    for size in (2, 3):
        program(np.ones(size))
    held = program.executables.used
    assert [e.plan.sizes for e in held] == [{"N": 2}, {"N": 3}]
    only = program.executables.only(held[0])
    assert only.of({"N": 2}) is held[0]
    assert only.of({"N": 4}) is only.used[-1]
    assert program.executables.used == held

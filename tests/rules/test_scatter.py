"""What is added at indices, as it meets in programs. Each rule alone: `test_every_rule`."""

import numpy as np

import symgrad as sg
from tests.helpers import close, generator
from tests.rules.becomes import becomes, named, ops, stays

KERNELS = named("simplify", "merge", "kernels")


def test_what_is_added_at_indices_is_added_there():
    x, u, i = sg.placeholder("x", (6, 5)), sg.placeholder("u", (2, 5)), sg.constant([4, 1])
    scattered = sg.zeros((6, 5)).at[i].add(u)
    becomes([x, u], x + scattered, x.at[i].add(u), KERNELS)
    becomes([x, u], scattered + x, x.at[i].add(u), KERNELS)
    becomes([x, u], x - scattered, x.at[i].add(-u), KERNELS)
    becomes([u], scattered * 0.3, sg.zeros((6, 5)).at[i].add(u * 0.3), KERNELS)


def test_where_it_is_no_less_work_it_stays():
    x, u, i = sg.placeholder("x", (6, 5)), sg.placeholder("u", (9, 5)), sg.constant([0] * 9)
    scattered = sg.zeros((6, 5)).at[i].add(u)
    stays([u], scattered * 0.3, KERNELS)
    stays([x, u], [x + scattered, scattered], KERNELS)
    row = sg.placeholder("row", 5)
    stays([row, u], row + scattered, KERNELS)


def test_a_step_on_a_table_of_which_few_rows_were_read():
    rng = generator("table")
    start = rng.standard_normal((50, 3))
    table, words = sg.variable("table", start), sg.placeholder("words", "N", int)
    loss = sg.sum(table[words] ** 2)
    step = sg.compile(words, loss, updates={table: table - 0.1 * sg.grad(loss, table)})
    assert ops(step.graph).count("scatter") == 1
    assert not any(n.op.elementwise and n.shape == (50, 3) for n in step.graph.nodes if n.inputs)
    at = np.array([7, 7, 3])
    close(step(at), np.sum(start[at] ** 2))
    np.subtract.at(start, at, 0.2 * start[at])
    close(table.value, start)


def test_the_gradient_of_two_reads_is_gathered_in_one_table():
    x = sg.placeholder("x", ("N", 3))
    i, j = (sg.placeholder(n, n.upper(), int) for n in "ij")
    gradient = sg.compile([x, i, j], sg.grad(sg.sum(x[i] ** 2) + sg.sum(x[j] ** 3), x))
    assert ops(gradient.graph).count("scatter") == 2
    assert "add" not in ops(gradient.graph)
    array = generator("two").standard_normal((4, 3))
    expected = np.zeros((4, 3))
    np.add.at(expected, [0, 0, 2], 2 * array[[0, 0, 2]])
    np.add.at(expected, [3, 2], 3 * array[[3, 2]] ** 2)
    close(gradient(array, np.array([0, 0, 2]), np.array([3, 2])), expected, 1e-15)

"""Dead results: of several results, only those that are read are computed."""

import symgrad as sg
from tests.rules.becomes import becomes, named, stays

DEAD = named("dead_results")


def xy():
    return [sg.placeholder("x", 4), sg.placeholder("y", 4)]


def test_one_result_that_is_read():
    x, y = xy()
    becomes([x, y], divmod(x, y)[0], x // y, DEAD, "bits")
    becomes([x, y], divmod(x, y)[1], x % y, DEAD, "bits")


def test_both_results_that_are_read():
    x, y = xy()
    stays([x, y], list(divmod(x, y)), DEAD, "bits")


def test_one_result_read_twice():
    x, y = xy()
    rest = divmod(x, y)[1]
    found = x % y
    becomes([x, y], [sg.exp(rest), -rest], [sg.exp(found), -found], DEAD, "bits")


def test_gradients_leave_the_other_result_dead():
    x, y = xy()
    grad = sg.grad(sg.sum(divmod(x, y)[1] ** 2), x)
    program = sg.compile([x, y], grad, passes=DEAD)
    assert "divmod" not in [n.op.name for n in program.graph.nodes], program.graph

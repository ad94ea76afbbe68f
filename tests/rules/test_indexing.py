"""Indexing, as it meets in programs. Each rule alone: `test_every_rule`."""

import numpy as np

import symgrad as sg
from symgrad.ops.index.slices import place
from tests.rules.becomes import becomes, named, ops, stays

SIMPLIFY = named("simplify", "merge")


def test_slices_of_slices():
    x = sg.placeholder("x", (6, 5))
    becomes([x], x[1:][:3], x[1:4], SIMPLIFY, "bits")
    becomes([x], x[::2][1:, 1:], x[2::2, 1:], SIMPLIFY, "bits")
    becomes([x], sg.flip(sg.flip(x)), x, SIMPLIFY, "bits")
    becomes([x], x[::-1][:2], x[:-3:-1], SIMPLIFY, "bits")


def same(inputs, y, expected, exact="rounding"):
    """Assert the graph alone, which has named dimensions."""
    program = sg.compile(inputs, y, exact=exact, passes=SIMPLIFY)
    assert program.graph == sg.Graph([expected], inputs), program.graph


def test_slices_of_a_named_dimension():
    x = sg.placeholder("x", ("N", 5))
    same([x], x[:, 1:][:, :2], x[:, 1:3], "bits")
    same([x], x[::-1][:, 1:], x[::-1, 1:], "bits")
    same([x], x[1:][1:], x[1:][1:])
    a = np.arange(15.0).reshape(3, 5)
    np.testing.assert_array_equal(sg.compile([x], x[::-1][:, 1:][:, :2])(a), a[::-1, 1:3])


def test_a_slice_of_what_was_repeated():
    x = sg.placeholder("x", (5,))
    becomes(
        [x], sg.broadcast_to(x, (4, 5))[1:3, :2], sg.broadcast_to(x[:2], (2, 2)), SIMPLIFY, "bits"
    )
    becomes([x], sg.broadcast_to(x, (4, 5))[0], x, SIMPLIFY)


def test_a_slice_of_what_was_joined():
    x, y = sg.placeholder("x", (2, 3)), sg.placeholder("y", (4, 3))
    joined = sg.concat([x, y])
    becomes([x, y], joined[:2], x, SIMPLIFY)
    becomes([x, y], joined[3:5, 1:], y[1:3, 1:], SIMPLIFY)
    stays([x, y], joined[1:3], SIMPLIFY)
    stays([x, y], joined[:2], SIMPLIFY, "values")


def test_a_slice_of_a_join_of_named_dimensions():
    x, y = sg.placeholder("x", ("N", 3)), sg.placeholder("y", (4, 3))
    same([x, y], sg.concat([x, y])[-4:], y)
    same([x, y], sg.concat([x, y])[: x.shape[0]], x)
    loss = sg.sum(sg.exp(sg.concat([x, y])))
    found = sg.compile([x, y], sg.grad(loss, [x, y]))(np.zeros((2, 3)), np.ones((4, 3)))
    np.testing.assert_array_equal(found[0], np.ones((2, 3)))
    np.testing.assert_allclose(found[1], np.e * np.ones((4, 3)))


def test_joins_of_joins_and_of_what_was_cut_apart():
    x, y, z = (sg.placeholder(n, (2, 3)) for n in "xyz")
    becomes([x, y, z], sg.concat([sg.concat([x, y]), z]), sg.concat([x, y, z]), SIMPLIFY, "bits")
    becomes([x], sg.concat([x[:1], x[1:]]), x, SIMPLIFY)
    becomes(
        [x, y],
        sg.concat([y, x[:, :1], x[:, 1:2]], axis=1),
        sg.concat([y, x[:, :2]], axis=1),
        SIMPLIFY,
    )
    becomes([x], sg.concat([x]), x, SIMPLIFY, "bits")
    stays([x], sg.concat([x[1:], x[:1]]), SIMPLIFY)
    stays([x, y, z], sg.concat([sg.concat([x, y], axis=1), sg.concat([z, z], axis=1)]), SIMPLIFY)


def test_long_joins_are_left_whole():
    xs = [sg.placeholder(f"x{i}", 1) for i in range(300)]
    chain = xs[0]
    for x in xs[1:]:
        chain = sg.concat([chain, x])
    program = sg.compile(xs, chain)
    assert ops(program.graph).count("concat") == 5, program.graph
    np.testing.assert_array_equal(program(*(np.ones(1) * i for i in range(300))), np.arange(300))


def test_the_gradient_of_what_was_split_is_joined():
    """No array of zeros is made, and none is added."""
    x = sg.placeholder("x", (4, 3))
    a, b, c = x[:1], x[1:3], x[3:]
    dx = sg.grad(sg.sum(sg.exp(a)) + sg.sum(sg.sin(b)) + sg.sum(sg.sinh(c)), x)
    becomes([x], dx, sg.concat([sg.exp(a), sg.cos(b), sg.cosh(c)]), SIMPLIFY, "values")
    one_row = sg.grad(sg.sum(sg.exp(x[0]) + sg.sin(x[1])), x)
    assert "add" not in ops(sg.compile([x], one_row, passes=SIMPLIFY).graph)


def test_zeros_are_not_scaled():
    x = sg.placeholder("x", (2, 3))
    placed = {"shape": (4, 3), "index": ((1, 3, 1), (0, 3, 1))}
    becomes([x], place(x, **placed) * 3.0, place(x * 3.0, **placed), SIMPLIFY, "values")
    becomes([x], -place(x, **placed), place(-x, **placed), SIMPLIFY, "values")
    becomes([x], place(x, **placed)[1:3], x, SIMPLIFY)
    becomes([x], sg.sum(place(x, **placed)), sg.sum(x), SIMPLIFY)
    outer = place(place(x, **placed), shape=(6, 3), index=((0, 4, 1), (0, 3, 1)))
    becomes([x], outer, place(x, shape=(6, 3), index=placed["index"]), SIMPLIFY, "bits")

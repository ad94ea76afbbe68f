"""Derivatives as graphs: both modes, products with the Hessian, Jacobians, batches."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import GradientError
from tests.helpers import each


def run(outputs, feeds):
    return sg.compile(list(feeds), outputs)(*feeds.values())


@pytest.fixture
def net():
    """A function of a vector and a matrix to a matrix, with a point."""
    rng = np.random.default_rng(0)
    x, w = sg.placeholder("x", (4, 3)), sg.placeholder("w", (3, 2))
    y = sg.tanh(x @ w) * sg.exp(-sg.sum(x * x, axis=1, keepdims=True))
    return x, w, y, {x: rng.standard_normal((4, 3)), w: rng.standard_normal((3, 2))}


def test_forward_and_reverse_are_adjoint(net):
    x, w, y, feeds = net
    rng = np.random.default_rng(1)
    t = [rng.standard_normal((4, 3)), rng.standard_normal((3, 2))]
    g = rng.standard_normal((4, 2))
    pushed = run(sg.jvp(y, [x, w], t), feeds)
    pulled = run(sg.vjp(y, [x, w], g), feeds)
    forward = np.vdot(g, pushed)
    np.testing.assert_allclose(forward, sum(np.vdot(a, b) for a, b in zip(pulled, t, strict=True)))
    assert forward != 0


def test_forms_follow_the_arguments(net):
    x, w, y, _ = net
    ones = np.ones((4, 3))
    assert isinstance(sg.jvp(y, x, ones), sg.Node)
    assert isinstance(sg.jvp([y], x, ones), list)
    assert isinstance(sg.jvp((y,), x, ones), tuple)
    assert isinstance(sg.vjp(y, [x], np.ones((4, 2))), list)
    assert isinstance(sg.vjp(y, (v for v in [x]), np.ones((4, 2))), tuple)
    loss = sg.sum(y)
    assert isinstance(sg.hvp(loss, x, ones), sg.Node)
    assert isinstance(sg.hvp(loss, [x], [ones]), list)
    value, gradient = sg.value_and_grad(loss, x)
    assert value is loss
    assert gradient.type == x.type
    assert sg.hessian(loss, x).shape == (4, 3, 4, 3)
    rows = sg.hessian(loss, [x, w])
    assert [[h.shape for h in row] for row in rows] == [
        [(4, 3, 4, 3), (4, 3, 3, 2)],
        [(3, 2, 4, 3), (3, 2, 3, 2)],
    ]


class Pair(NamedTuple):
    first: Any
    second: Any


def shaped(tree):
    """The same with the shapes of nodes in their places."""
    if isinstance(tree, dict):
        return {k: shaped(v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        made = [shaped(v) for v in tree]
        return type(tree)(*made) if isinstance(tree, Pair) else type(tree)(made)
    return tree.shape


FORMS = [
    lambda x, w: {"x": x, "w": w},
    lambda x, w: [x, [w]],
    lambda x, w: ({"inner": [x]}, w),
    lambda x, w: Pair(w, {3: x, "w": (w,)}),
    lambda x, w: [[], x],
]


@pytest.mark.parametrize("form", FORMS)
def test_the_answer_has_the_form_of_what_is_asked(net, form):
    x, w, y, feeds = net
    loss = sg.sum(y * y)
    wrt, same = form(x, w), shaped(form(x, w))
    found, expected = run([sg.grad(loss, wrt), form(*sg.grad(loss, (x, w)))], feeds)
    assert str(found) == str(expected)
    assert shaped(sg.grad(loss, wrt)) == same
    value, gradient = sg.value_and_grad(loss, wrt)
    assert value is loss
    assert shaped(gradient) == same
    assert shaped(sg.vjp({"y": y}, wrt, {"y": sg.ones_like(y)})) == same
    vectors = form(sg.ones_like(x), sg.ones_like(w))
    assert shaped(sg.hvp(loss, wrt, vectors)) == same
    assert shaped(sg.jvp({"y": [y]}, wrt, vectors)) == {"y": [y.shape]}
    assert shaped(sg.jacobian(loss, wrt)) == same
    assert shaped(sg.hessian(loss, wrt)) == shaped(
        form(*(form(*(sg.zeros((*a.shape, *b.shape)) for b in (x, w))) for a in (x, w)))
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, y: sg.grad(y, {"a": [x, 1.0]}), r"wrt\['a'\]\[1\]: .* nodes, not float"),
        (lambda x, y: sg.hessian(y, [x, {"b": "x"}]), r"wrt\[1\]\['b'\]: .* nodes, not str"),
        (lambda x, y: sg.hvp(y, {"a": x}, [x]), "tangents: a dict with the keys 'a' is wanted"),
        (lambda x, y: sg.hvp(y, {"a": x}, {"b": x}), "keys 'a' is wanted, and this has 'b'"),
        (lambda x, y: sg.vjp([{"a": y}], x, [{"a": 1.0}, 2]), "a sequence of 1 is wanted, not of"),
        (
            lambda x, y: sg.vjp([[y]], x, [1.0]),
            r"cotangents\[0\]: a sequence of 1 is wanted",
        ),
    ],
)
def test_an_error_names_the_place_in_a_form(call, message):
    x = sg.placeholder("x", 3)
    with pytest.raises(GradientError, match=message):
        call(x, sg.sum(x * x))


def test_the_modes_of_a_jacobian_agree(net):
    x, w, y, feeds = net
    for wrt, shape in ((x, (4, 2, 4, 3)), (w, (4, 2, 3, 2))):
        forward = run(sg.jacobian(y, wrt, mode="forward"), feeds)
        reverse = run(sg.jacobian(y, wrt, mode="reverse"), feeds)
        assert forward.shape == reverse.shape == shape
        np.testing.assert_allclose(forward, reverse, rtol=1e-12, atol=1e-14)
        assert np.any(forward)


def test_a_jacobian_is_what_its_columns_say(net):
    x, w, y, feeds = net
    jacobian = run(sg.jacobian(y, w), feeds)
    for index in np.ndindex(3, 2):
        unit = np.zeros((3, 2))
        unit[index] = 1
        column = run(sg.jvp(y, w, unit), feeds)
        np.testing.assert_allclose(jacobian[(..., *index)], column, rtol=1e-12, atol=1e-15)
    assert x.shape == (4, 3)


def test_the_cheaper_mode_is_chosen():
    def modes(output, wrt):
        made = {m for n in sg.Graph([sg.jacobian(output, wrt)]).nodes for m in n.origin.made_by}
        return {m.kind for m in made if m.is_gradient}

    x = sg.placeholder("x", 3)
    wide = sg.tanh(np.ones((7, 3)) @ x)
    assert modes(wide, x) == {"jvp"}
    assert modes(sg.sum(wide) * np.ones(2), x) == {"vjp"}


def test_a_jacobian_begins_with_no_identity_matrix():
    x = sg.placeholder("x", 5)
    a = np.arange(35.0).reshape(7, 5)
    for mode in ("forward", "reverse"):
        program = sg.compile([x], sg.jacobian(sg.tanh(a @ x), x, mode=mode))
        assert not any(n.op.name == "eye" for n in program.raw.nodes)
        assert sum(step.name == "matmul" for step in program.plan.steps) == 1
        slopes = 1 - np.tanh(a @ np.full(5, 0.01)) ** 2
        np.testing.assert_allclose(program(np.full(5, 0.01)), slopes[:, None] * a)


def test_a_hessian_is_symmetric_and_its_products_agree(net):
    x, _, y, feeds = net
    loss = sg.sum(y * y)
    hessian = run(sg.hessian(loss, x), feeds).reshape(12, 12)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-10, atol=1e-12)
    v = np.random.default_rng(2).standard_normal((4, 3))
    product = run(sg.hvp(loss, x, v), feeds)
    np.testing.assert_allclose(product.ravel(), hessian @ v.ravel(), rtol=1e-10, atol=1e-12)


def test_named_dimensions_in_a_jacobian():
    x = sg.placeholder("x", ("N",))
    program = sg.compile([x], [sg.jacobian(x**3, x), sg.hessian(sg.sum(x**3), x)])
    for at in ([1.0, 2.0], [1.0, 2.0, 3.0]):
        first, second = program(at)
        np.testing.assert_allclose(first, np.diag(3 * np.square(at)))
        np.testing.assert_allclose(second, np.diag(6 * np.asarray(at)))


def test_derivatives_by_what_lies_inside(net):
    """By a node that a rule would look through: x * x under a root."""
    x = sg.placeholder("x", 3)
    inside = x * x
    loss = sg.sum(sg.sqrt(inside))
    by_inside, by_x = sg.grad(loss, [inside, x])
    at = np.array([1.0, 2.0, -4.0])
    found = run([by_inside, by_x], {x: at})
    np.testing.assert_allclose(found[0], 0.5 / np.abs(at))
    np.testing.assert_allclose(found[1], np.sign(at))


def test_a_node_is_its_own_derivative():
    x = sg.placeholder("x", ())
    assert run(sg.grad(x, x), {x: 3.0}) == 1
    assert run(sg.jvp(x, x, 2.0), {x: 3.0}) == 2
    assert run(sg.hessian(x * 1.0, x, disconnected="zero"), {x: 3.0}) == 0


def test_vmap_maps_what_is_built_once():
    rng = np.random.default_rng(0)
    rows, w = sg.placeholder("rows", ("N", 3)), sg.placeholder("w", (3, 2))

    def loss(row):
        return sg.sum(sg.tanh(row @ w) ** 2)

    found = sg.vmap(lambda row: [loss(row), sg.grad(loss(row), row), sg.hessian(loss(row), row)])
    data, weights = rng.standard_normal((5, 3)), rng.standard_normal((3, 2))
    losses, gradients, hessians = run(list(found(rows)), {rows: data, w: weights})
    row = sg.placeholder("row", 3)
    alone = sg.compile([row, w], [loss(row), sg.grad(loss(row), row), sg.hessian(loss(row), row)])
    for i in range(5):
        one = alone(data[i], weights)
        for many, single in zip((losses, gradients, hessians), one, strict=True):
            np.testing.assert_allclose(many[i], single, rtol=1e-12, atol=1e-14)


def test_vmap_of_what_does_not_depend_on_the_element():
    rows = sg.placeholder("rows", (4, 3))
    found = run(
        list(sg.vmap(lambda row: (row, sg.constant([1.0, 2.0])))(rows)), {rows: np.ones((4, 3))}
    )
    np.testing.assert_array_equal(found[1], np.tile([1.0, 2.0], (4, 1)))


@each(
    ("call", "message"),
    [
        (lambda x: sg.jvp(x, x, np.ones(4)), "the tangent of 'x'"),
        (lambda x: sg.jvp(x, [x], []), "tangents: a sequence of 1 is wanted, not of 0"),
        (lambda x: sg.vjp(x, x, np.ones(4)), "the cotangent of 'x'"),
        (lambda x: sg.jacobian(x, x, mode="sideways"), "mode is 'forward' or 'reverse'"),
        (lambda x: sg.jacobian(x > 0, x), "is no float"),
        (lambda x: sg.jvp(sg.floor(x), x, np.ones(3)), "piecewise constant"),
        (lambda x: sg.grad(sg.sum(sg.nextafter(x, 1.0)), x), "nextafter has no gradient"),
        (lambda x: sg.jvp(sg.nextafter(x, 1.0), x, np.ones(3)), "nextafter has no derivative"),
        (lambda x: sg.grad(sg.sum(x), x, disconnected="maybe"), "'raise' or 'zero'"),
        (lambda x: sg.jvp(x, x, np.ones(3), disconnected="maybe"), "'raise' or 'zero'"),
        (lambda x: sg.vmap(lambda a, b: a + b)(x, np.ones(4)), "differ: 3, 4"),
        (lambda x: sg.vmap(lambda a: a)(1.0), "one has none"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    x = sg.placeholder("x", 3)
    with pytest.raises(sg.GradientError, match=message):
        call(x)


# ---- nothing that is left out -------------------------------------------------------------------

FLAT = {
    "power": lambda x: x**0,
    "float power": lambda x: x**0.0,
    "power by zeros": lambda x: x ** np.zeros(3),
    "power by a wider array": lambda x: x ** np.zeros((2, 3)),
    "product": lambda x: x * 0,
    "difference": lambda x: x - x,
    "no elements": lambda x: x[0:0],
    "between one bound": lambda x: sg.clip(x, 1, 1),
    "not chosen": lambda x: sg.where(True, 1.0, x),
    "nowhere chosen": lambda x: sg.where(np.ones(3, bool), 1.0, x),
    "product of matrices": lambda x: x[:, None] @ np.ones((1, 0)),
    "broadcast to nothing": lambda x: sg.broadcast_to(x, (0, 3)),
    "product of nothing": lambda x: sg.prod(x[0:0]),
    "imaginary": lambda x: sg.real(1j * x),
}


@each("name", FLAT)
@each("rest", [None, sg.exp])
def test_what_is_constant_but_depends_has_zeros(name, rest):
    x = sg.placeholder("x", 3)
    at = np.array([-1.0, 0, 2])
    y = sg.sum(FLAT[name](x))
    expected = np.zeros(3)
    if rest is not None:
        y = y + sg.sum(rest(x))
        expected = np.exp(at)
    for found in (sg.grad(y, x), sg.jacobian(y, x, mode="forward")):
        for options in ({}, {"passes": ()}):
            np.testing.assert_array_equal(sg.compile([x], found, **options)(at), expected)
    np.testing.assert_array_equal(run(sg.hessian(y, x), {x: at}), np.diag(expected))


def test_the_power_of_nothing_is_flat_everywhere():
    x = sg.placeholder("x", 4)
    at = np.array([np.inf, -np.inf, np.nan, 0])
    found = run([sg.grad(sg.sum(x**0), x), sg.jvp(x**0, x, np.full(4, np.inf))], {x: at})
    np.testing.assert_array_equal(found, np.zeros((2, 4)))


def test_the_tangent_of_one_of_several_results_has_its_shape():
    x, y = sg.placeholder("x", (3, 1)), sg.placeholder("y", 4)
    _, remainder = np.divmod(x, y)
    assert sg.jvp(remainder, x, sg.ones((3, 1))).shape == (3, 4)
    assert sg.jvp(remainder, y, sg.ones(4)).shape == (3, 4)

"""Kinks by function and not by op: the branch is taken to which what is differentiated by moves."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.evaluate import evaluate
from tests.autodiff import kinks_campaign
from tests.helpers import each
from tools import kinks_table

x = sg.placeholder("x", ())
v = sg.placeholder("v", 3)


def both(y, by, kinks):
    """The gradient of a scalar by another in both modes, raw and optimised, which agree."""
    nodes = [
        sg.grad(y, by, kinks=kinks, disconnected="zero"),
        sg.jvp(y, by, 1.0, kinks=kinks, disconnected="zero"),
    ]
    found = evaluate(nodes, {by: 0.0}) + list(sg.compile([by], nodes)(0.0))
    np.testing.assert_allclose(found, found[0], rtol=1e-14)
    return float(found[0])


def three(u):
    return sg.stack([u, -2 * u, 3 * u])


AT_ZERO = {
    "-min(-x, 0)": (lambda u: -sg.minimum(-u, 0), 0, 1),
    "relu(x) + relu(-x)": (lambda u: sg.relu(u) + sg.relu(-u), -1, 1),
    "sign(x) * x": (lambda u: sg.sign(u) * u, -1, 1),
    "relu(x) - .1 relu(-x)": (lambda u: sg.relu(u) - 0.1 * sg.relu(-u), 0.1, 1),
    "max(x, 2x)": (lambda u: sg.maximum(u, 2 * u), 1, 2),
    "relu of relus": (lambda u: sg.relu(sg.relu(u) - sg.relu(-u)), 0, 1),
    "abs(abs(x) - relu(x))": (lambda u: abs(abs(u) - sg.relu(u)), -1, 0),
    "sort": (lambda u: sg.sort(sg.stack([u, -2 * u]))[1], -2, 1),
    "relu(x) - relu(-x)": (lambda u: sg.relu(u) - sg.relu(-u), 1, 1),
    "max + min": (lambda u: sg.maximum(u, 0) + sg.minimum(u, 0), 1, 1),
    "clip + clip": (lambda u: sg.clip(u, 0, None) + sg.clip(u, None, 0), 1, 1),
    "jumps that cancel": (
        lambda u: sg.where(u > 0, u + 1, 0) - sg.where(u >= 0, 1.0, 0), 0, 1),
    "floor": (lambda u: sg.floor(u) * u, -1, 0),
    "ceil": (lambda u: sg.ceil(u) * u, 0, 1),
    "trunc": (lambda u: sg.trunc(1 + u) * (2 + u), 0, 1),
    "round": (lambda u: sg.round(0.5 + u) * u, 0, 1),
    "remainder": (lambda u: (1 + u) % 1 * u, 1, 0),
    "divmod": (lambda u: sg.divmod(1 + u, 1)[1] * u + sg.divmod(2 + u, 2)[0] * u, 1, 1),
    "floor_divide": (lambda u: (2 + u) // 2 * u, 0, 1),
    "copysign": (lambda u: sg.copysign(u, u) + sg.copysign(u, -1.0), 2, 0),
    "i0e": (sg.special.i0e, 1, -1),
    "interp": (lambda u: sg.interp(u, [-1.0, 0.0, 2.0], [1.0, 0.0, 6.0]), -1, 3),
    "interp whose knots move": (
        lambda u: sg.interp(sg.zeros(()), sg.stack([u - 1, u, u + 2]), [1.0, 0.0, 6.0]), -3, 1),
    "searchsorted": (lambda u: sg.searchsorted(np.array([-1.0, 0.0, 0.0]), u) * u, 1, 3),
    "digitize": (lambda u: sg.digitize(u, [-1.0, 0.0]) * u, 1, 2),
    "max_at": (lambda u: sg.max_at(sg.zeros(1) - 1, [0, 0, 0], three(u))[0], -2, 3),
    "min_at": (lambda u: sg.min_at(u * np.ones(2), [0, 1, 0], three(u)) @ [1.0, 8.0], 11, -15),
    "fmod": (lambda u: sg.fmod(1 + u, 1) * u + sg.fmod(u - 1, 1) * (1 + u), 2, 0),
    "heaviside": (lambda u: sg.heaviside(u, 0.5) * u, 0, 1),
    "signbit": (lambda u: sg.signbit(u) * u, 1, 0),
    "atan2": (lambda u: abs(sg.atan2(u, -1.0)), 1, -1),
    "angle": (lambda u: abs(sg.angle(1j * u - 1)), 1, -1),
    "atan2 at the origin": (lambda u: sg.atan2(u, 1 * u) * u, -0.75 * np.pi, 0.25 * np.pi),
    "a root that touches 0": (lambda u: sg.sqrt(1 - sg.cos(u)), -0.5**0.5, 0.5**0.5),
    "a root that rests at 0": (lambda u: sg.sqrt(u**4 + u**6), 0, 0),
    "max": (lambda u: sg.max(three(u)), -2, 3),
    "min": (lambda u: sg.min(three(u)), 3, -2),
    "median": (lambda u: sg.median(three(u)), 1, 1),
    "quantile": (lambda u: sg.quantile(three(u), 0.75), -0.5, 2),
    "argmax": (lambda u: three(u)[sg.argmax(three(u))], -2, 3),
    "argmin": (lambda u: three(u)[sg.argmin(three(u))], 3, -2),
    "argsort": (lambda u: sg.take_along_axis(three(u), sg.argsort(three(u)), axis=0)[2], -2, 3),
    "top_k": (lambda u: sg.top_k(three(u), 2)[0][1], 1, 1),
    "cummax": (lambda u: sg.sum(sg.cummax(three(u))), -3, 5),
    "cummin": (lambda u: sg.sum(sg.cummin(three(u))), 5, -3),
    "max_pool": (lambda u: sg.max_pool(sg.reshape(three(u), (1, 1, 3)), 2, stride=1)[0, 0, 1],
        -2, 3),
    "norm": (lambda u: sg.vector_norm(sg.stack([3 * u, 4 * u])), -5, 5),
    "norm 1": (lambda u: sg.vector_norm(three(u), ord=1), -6, 6),
    "norm inf": (lambda u: sg.vector_norm(three(u), ord=np.inf), -3, 3),
    "hypot": (lambda u: sg.hypot(3 * u, 4 * u), -5, 5),
    "complex abs": (lambda u: abs(3 * u + 4j * u), -5, 5),
    "complex sign": (lambda u: sg.real(sg.sign(3j * u) * 2j * u), 2, -2),
    "std": (lambda u: sg.std(sg.stack([u, -u])), -1, 1),
    "leaky": (lambda u: sg.leaky_relu(u, 0.1), 0.1, 1),
    "elu": (lambda u: sg.nn.elu(u, alpha=0.5), 0.5, 1),
    "relu6": (lambda u: sg.relu6(u) + sg.relu6(6 + u), 1, 1),
    "hard_tanh": (lambda u: sg.hard_tanh(1 + u), 1, 0),
    "a root that is guarded": (lambda u: sg.where(u > 0, sg.sqrt(u), 0), 0, np.inf),
    "a quotient that is guarded": (lambda u: sg.where(u > 0, sg.sin(u) / u, 1), 0, 0),
    "cond": (lambda u: sg.cond(u > 0, lambda: sg.relu(u), lambda: 2 * u), 2, 1),
    "cond that captures": (lambda u: sg.cond(u > -1, lambda: sg.relu(u), lambda: u), 0, 1),
    "scan": (lambda u: sg.fori(3, lambda i, c: c + sg.relu(c), u), 1, 8),
    "scan of slices": (
        lambda u: sg.scan(lambda c, r: (sg.maximum(c, r), c), u, three(u))[0], -2, 3),
    "while": (
        lambda u: sg.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + sg.relu(c[1])),
                                (0, u))[1], 1, 8),
    "nested": (
        lambda u: sg.fori(2, lambda i, c: sg.fori(2, lambda j, d: sg.maximum(d, 2 * d), c), u),
        1, 16),
    "cond in scan": (
        lambda u: sg.fori(3, lambda i, c: sg.cond(c > 0, lambda: 2 * c, lambda: c + abs(c)), u),
        0, 8),
    "checkpoint": (lambda u: sg.checkpoint(lambda t: sg.relu(t) - 0.1 * sg.relu(-t))(u), 0.1, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_ZERO)
def test_at_zero(name):
    function, left, right = AT_ZERO[name]
    y = function(x)
    assert both(y, x, "left") == pytest.approx(left)
    assert both(y, x, "right") == pytest.approx(right)
    if np.isfinite(right):
        assert both(y, x, "split") == pytest.approx((left + right) / 2)
        assert both(y, x, 0.25) == pytest.approx(left + 0.25 * (right - left))
        assert both(y, x, {x: 3}) == pytest.approx(right)
        assert both(y, x, {x: -0.5}) == pytest.approx(left)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_at_their_kinks(seed):
    kinks_campaign.check(seed, compiled=seed < 2)


def at_origin(y, by, kinks):
    return [np.asarray(g).tolist() for g in evaluate(sg.grad(y, by, kinks=kinks), dict.fromkeys(
        by, 0.0))]  # fmt: skip


def test_a_direction_of_several_nodes():
    a, b = sg.placeholder("a", ()), sg.placeholder("b", ())
    y = sg.relu(a - b)
    assert at_origin(y, [a, b], {a: 1}) == [1, -1]
    assert at_origin(y, [a, b], {b: 1}) == [0, 0]
    assert at_origin(y, [a, b], {a: 1, b: 1}) == [0.5, -0.5], "what stays tied is split"
    assert at_origin(y, [a, b], ({a: 1, b: 1}, {b: -1})) == [1, -1]
    assert at_origin(y, [a, b], "right") in ([1, -1], [0, 0]), "a piece, by the second direction"
    assert at_origin(sg.maximum(a, b), [a, b], {a: 1, b: 1}) == [0.5, 0.5]
    assert at_origin(sg.max(sg.stack([a, b])), [a, b], {a: 1, b: 1}) == [0.5, 0.5]


def test_a_direction_may_be_a_node():
    d = sg.placeholder("d", 3)
    g = sg.grad(sg.sum(abs(v)), v, kinks={v: d})
    assert evaluate([g], {v: np.zeros(3), d: np.array([2.0, -1, 0])})[0].tolist() == [1, -1, 0]


def test_a_node_inside_moves_of_itself_and_with_what_it_is_made_of():
    h = x * 1.5
    y = sg.relu(h) - 0.1 * sg.relu(-h)
    assert at_origin_inside(y, h, "right") == [1.5, 1]
    assert at_origin_inside(y, h, "left") == [pytest.approx(0.15), pytest.approx(0.1)]


def at_origin_inside(y, h, kinks):
    return evaluate(sg.grad(y, [x, h], kinks=kinks), {x: 0.0})


def test_what_has_no_kink_is_what_it_is_without_a_choice():
    w = sg.placeholder("w", (3, 2))
    loss = sg.sum(sg.tanh(v @ w) ** 2) + sg.sum(sg.relu(sg.stop_gradient(v)))
    plain = sg.Graph([sg.grad(loss, w)])
    for kinks in ("right", "split", {w: np.ones((3, 2))}):
        assert sg.Graph([sg.grad(loss, w, kinks=kinks)]) == plain


def test_the_forward_is_computed_once():
    w = sg.placeholder("w", (3, 4))
    h = v @ w
    loss = sg.sum(sg.tanh(sg.relu(h)))
    graph = sg.compile([v, w], [loss, sg.grad(loss, w, kinks="right")], passes=()).graph
    ops = [n.op.name for n in graph.nodes]
    assert ops.count("tanh") == ops.count("relu") == 1


def test_second_derivatives_are_of_the_branch_that_was_taken():
    y = sg.relu(x) ** 2 + sg.relu(-x) * 3 + abs(x) * x
    for kinks, expected in (("right", 4), ("left", -2), ("split", 1)):
        twice = [sg.hessian(y, x, kinks=kinks), sg.hvp(y, x, 1.0, kinks=kinks)]
        if kinks != "split":
            twice.append(sg.grad(sg.grad(y, x, kinks=kinks), x, kinks=kinks))
        assert evaluate(twice, {x: 0.0}) == [expected] * len(twice)


@each(("kinks", "sign"), [("right", 1), ("left", -1)])
def test_the_second_derivative_of_a_root_that_touches_zero(kinks, sign):
    y = sg.sqrt(sg.exp(x) - 1 - x)  # of x**2 / 2 + x**3 / 6, up to terms of the fourth order
    g = sg.grad(y, x, kinks=kinks)
    twice = [
        sg.hessian(y, x, kinks=kinks),
        sg.grad(g, x, kinks=kinks),
        sg.jet(y, x, 2, kinks=kinks)[2],
    ]
    np.testing.assert_allclose(evaluate(twice, {x: 0.0}), sign / 18**0.5)


def test_a_region_is_on_its_side():
    with sg.kinks("right"):
        inside = sg.relu(x) - 0.1 * sg.relu(-x)
    with sg.kinks(0.25):
        between = sg.relu(x)
    y = inside + 10 * sg.relu(x) + 100 * between
    assert evaluate([sg.grad(y, x)], {x: 0.0}) == [1 + 0 + 25]
    assert evaluate([sg.grad(y, x, kinks="left")], {x: 0.0}) == [1 + 0 + 25]
    assert evaluate([sg.grad(y, x, kinks="right")], {x: 0.0}) == [1 + 10 + 25]
    with sg.kinks("zero"):
        y = sg.relu(x)
    assert evaluate([sg.grad(y + sg.relu(x), x, kinks="right")], {x: 0.0}) == [1]


def test_in_a_batch():
    rows = np.array([[0.0, 1, -1], [0, 0, 0]])
    g = sg.vmap(lambda r: sg.grad(sg.sum(sg.relu(r) - 0.1 * sg.relu(-r)), r, kinks="left"))
    found = sg.compile([m := sg.placeholder("m", ("N", 3))], g(m))(rows)
    np.testing.assert_allclose(found, [[0.1, 1, 0.1], [0.1, 0.1, 0.1]])


def test_a_named_dimension_has_a_second_direction():
    m = sg.placeholder("m", ("N",))
    g = sg.grad(sg.sum(sg.relu(m - sg.flip(m))), m, kinks="right")
    found = sg.compile([m], g)(np.zeros(4))
    assert sorted(found) == [-1, -1, 1, 1]


class Cube(sg.Function):
    """A function without a forward mode of its own; its kinks are the user's."""

    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        return sg.relu(t) ** 3

    @staticmethod
    def backward(ctx, g):
        (t,) = ctx.saved_tensors
        return g * 3 * (t > 0) * t**2


def test_through_a_function_of_the_users():
    y = sg.relu(x + Cube.apply(x)) - 0.5 * sg.relu(-x)
    assert both(y, x, "right") == 1
    assert both(y, x, "left") == 0.5


@pytest.mark.parametrize(
    ("kinks", "words"),
    [
        ({"relu": "right"}, "not op by op"),
        ({v: np.ones(2)}, "has its shape"),
        ({v: "up"}, "numbers|no array|cannot"),
        ({x: 1.0}, "by which is not differentiated"),
        (1.5, "a number from 0"),
        (("right", "split"), "each is"),
        ({}, "of several directions"),
    ],
)
def test_what_is_no_choice_is_refused(kinks, words):
    with pytest.raises(sg.SymgradError, match=words):
        sg.grad(sg.sum(sg.relu(v)), v, kinks=kinks)


def test_a_region_has_no_direction():
    with pytest.raises(sg.GradientError, match="belongs to what"), sg.kinks({v: np.ones(3)}):
        pass


def test_kinks_of_equations_that_are_solved_are_refused_on_a_side():
    y = sg.root(lambda z: z + sg.relu(z) - x, 0.0)
    assert np.isfinite(evaluate([sg.grad(y, x)], {x: 1.0})[0])
    with pytest.raises(sg.GradientError, match="kinks='zero'"):
        sg.grad(y, x, kinks="right")


@pytest.mark.parametrize("path", kinks_table.texts())
def test_the_table_is_what_symgrad_gives(path):
    assert path.read_text(encoding="utf-8") == kinks_table.texts()[path], (
        "run: python -m tools.kinks_table"
    )


@each("text", kinks_table.FUNCTIONS)
def test_both_sides_are_right_in_the_table(text):
    left, right = kinks_table.slopes(text, ("left", "right"))
    assert (left, right) == pytest.approx(kinks_table.FUNCTIONS[text])


ROOTS = {
    "an element": lambda u: sg.sqrt(u[0] * u[0]),
    "of a quotient": lambda u: sg.sqrt((u / 2) ** 2)[0],
    "of a sum with factors": lambda u: sg.sqrt((3 * u[0]) ** 2 + u[1] * u[1]),
    "of elements": lambda u: sg.sqrt(u[0] ** 2 + u[1] ** 2),
    "of four": lambda u: sg.sqrt(sg.hypot(u[0], u[1]) ** 2 + sg.hypot(u[1], u[2]) ** 2),
    "of a product of a quotient": lambda u: sg.sqrt((u / -2 * 3) ** 2)[0],
    "of a view of a quotient": lambda u: sg.sqrt(sg.reshape((u * 2) ** 2 / 9, (1, 3)) * 4)[0, 1],
    "of a part of a sum": lambda u: sg.sqrt((u[0] ** 2 + (u[1] - 3 * u[2]) ** 2) / 4),
}


@pytest.mark.parametrize("name", ROOTS)
def test_roots_of_squares_are_found(name):
    y = ROOTS[name](v)
    zero, right = sg.grad(y, v), sg.grad(y, v, kinks="right")
    forward = sg.jvp(y, v, np.ones(3), kinks="right")
    zero, right, forward = evaluate([zero, right, forward], {v: np.zeros(3)})
    assert zero.tolist() == [0, 0, 0]
    slope = evaluate([y], {v: np.ones(3)})[0]
    assert (right.sum(), float(forward)) == pytest.approx((float(slope), float(slope)))


MATRIX = np.array([[2.0, 1, 0], [1, 2, 0], [0, 0, 1]])
TOUCHING = {
    "of a form": lambda u: sg.sqrt((u @ MATRIX) @ u),
    "of a form that is flat": lambda u: sg.sqrt((u @ np.ones((3, 3))) @ u),
    "of weighted squares": lambda u: sg.sqrt(sg.sum(np.array([1.0, 2, 3]) * u * u)),
    "of no squares": lambda u: sg.sqrt(u[0] ** 2 + u[0] * u[1] + u[1] ** 2),
    "with a kink inside": lambda u: sg.sqrt(3 * sg.relu(u[0]) ** 2 + 2 * u[1] * u[1]),
    "in a loop": lambda u: sg.scan(lambda c, r: (sg.sqrt(2 * c * c + r * r), c), u[0], u)[0],
}


@each("name", TOUCHING)
def test_roots_of_what_touches_zero(name):
    y = TOUCHING[name](v)
    for d in (np.ones(3), -np.ones(3), np.array([0.0, 2, -1])):
        kinks = ({v: d}, {v: np.array([1.0, 3, 5])})
        g, t = sg.compile(v, [sg.grad(y, v, kinks=kinks), sg.jvp(y, v, d, kinks=kinks)])(0 * d)
        slope = float(evaluate([y], {v: d})[0])
        assert (g @ d, float(t)) == pytest.approx((slope, slope)), (name, d)


def test_what_a_side_adds_to_a_net_are_products_with_vectors():
    x, w1, w2 = (sg.placeholder(n, s) for n, s in (("x", (64, 500)), ("a", (500, 100)), ("b", 100)))
    loss = sg.sum((sg.relu(x @ w1) @ w2) ** 2)
    zero, right = (
        sg.compile([x, w1, w2], sg.grad(loss, [w1, w2], kinks=kinks)).cost().after.flops
        for kinks in ("zero", "right")
    )
    assert zero < right < 1.1 * zero

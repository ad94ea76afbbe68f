"""Functions of a user's own, with bodies made of nodes."""

import re

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import check_derivatives, check_second_derivatives, close, generator, same, value

INF, NAN = np.inf, np.nan
AT = np.array([-2.0, 0.0, 3.0])


class MyReLU(sg.Function):
    """By its input."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sg.relu(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x > 0)


class OwnReLU(sg.Function):
    """By its output, with methods of an instance."""

    def forward(self, x):
        y = sg.relu(x)
        self.save_for_backward(y)
        return y

    def backward(self, grad_output):
        (y,) = self.saved_tensors
        return (y > 0) * grad_output


class Product(sg.Function):
    """Two arguments, and a number that is none of the gradient's business."""

    @staticmethod
    def forward(ctx, a, b, power):
        ctx.save_for_backward(a, b)
        ctx.power = power
        return a**power * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * ctx.power * a ** (ctx.power - 1) * b, g * a**ctx.power, None


class SinCos(sg.Function):
    """Two results, each of which is saved."""

    @staticmethod
    def forward(ctx, x):
        s, c = sg.sin(x), sg.cos(x)
        ctx.save_for_backward(s, c)
        return s, c

    @staticmethod
    def backward(ctx, gs, gc):
        s, c = ctx.saved_tensors
        return gs * c - gc * s


def function(forward, backward=None, **methods):
    """A class with these bodies, static ones."""
    found = {"forward": forward, "backward": backward, **methods}
    return type(
        "Mine", (sg.Function,), {k: staticmethod(f) for k, f in found.items() if f is not None}
    )


def leaf(name="x", shape=3, dtype="float64"):
    return sg.placeholder(name, shape, dtype)


def gradient(f, at, cotangent=None, **options):
    x = leaf(shape=np.shape(at))
    y = f(x)
    g = sg.vjp(y, x, np.ones(y.shape) if cotangent is None else cotangent)
    return sg.compile([x], g, **options)(at)


# ---- both spellings -------------------------------------------------------------------------


@pytest.mark.parametrize("relu", [MyReLU.apply, OwnReLU()])
@pytest.mark.parametrize("options", [{}, {"passes": ()}, {"backend": "reference"}])
def test_values_and_gradients(relu, options):
    x = leaf()
    y, dx = sg.compile([x], [relu(x), sg.grad(sg.sum(relu(x) * AT), x)], **options)(AT)
    same(y, [0.0, 0, 3])
    same(dx, [0.0, 0, 3])


def net(relu):
    x = leaf("x", ("N", 10), "float32")
    w1 = sg.variable("w1", np.ones((10, 5), "float32"))
    w2 = sg.variable("w2", np.ones((5, 2), "float32"))
    loss = sg.sum((relu(x @ w1) @ w2) ** 2)
    d1, d2 = sg.grad(loss, [w1, w2])
    return sg.compile([x], loss, updates={w1: w1 - 1e-3 * d1, w2: w2 - 1e-3 * d2})


def without_comments(source):
    return re.sub(r"\s+#.*", "", source)


def test_the_compiled_step_is_that_of_the_built_in_relu():
    built_in = net(sg.relu)
    assert "keep_where_positive" in built_in.source
    own = net(OwnReLU())
    assert without_comments(own.source) == without_comments(built_in.source)
    by_input = net(MyReLU.apply)
    # Only the order may differ: the mask is made of another value, which is kept for it.
    names = [sorted(s.name for s in p.plan.steps) for p in (by_input, built_in)]
    assert names[0] == names[1]


def test_without_passes_it_costs_no_step_either():
    x = leaf()
    assert [s.name for s in sg.compile([x], OwnReLU()(x) * 2, passes=()).plan.steps] == [
        "relu",
        "multiply",
    ]


def test_the_lines_of_the_bodies_and_of_the_call_are_known():
    x = leaf()
    y = sg.exp(MyReLU.apply(x))
    text = str(sg.Graph([sg.grad(sg.sum(y), x)]))
    assert re.search(r"select\(.* by vjp\(MyReLU\)", text)
    assert re.search(r"custom\(.*rule='MyReLU'\)  # test_function.py", text)
    assert y.inputs[0].inputs[0].origin.scope == ("MyReLU",)


# ---- what flows -----------------------------------------------------------------------------


@pytest.mark.parametrize("exact", ["bits", "values", "rounding", "reals"])
@pytest.mark.parametrize("passes", [None, ()])
def test_nothing_flows_where_a_mask_is_0_not_even_an_inf(exact, passes):
    poison = np.array([INF, NAN, 2.0])
    spellings = [
        lambda g, x: g * (x > 0),
        lambda g, x: (x > 0) * g,
        lambda g, x: g * sg.astype(x > 0, "float64"),
        lambda g, x: (g * 3) * (x > 0) / 3,
        lambda g, x: sg.where(x > 0, g, 0),
        lambda g, x: sg.sum(g * sg.expand_dims(sg.astype(x > 0, "float64"), axis=0), axis=0),
        lambda g, x: g * (x > 0) / x * x,
    ]
    for spelling in spellings:

        def backward(ctx, g, spelling=spelling):
            return spelling(g, *ctx.saved_tensors)

        own = function(MyReLU.forward, backward)
        found = gradient(own.apply, AT, poison, exact=exact, passes=passes)
        np.testing.assert_array_equal(found, [0, 0, 2])


def test_a_product_of_two_cotangents_or_of_values_is_left_alone():
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * sg.sum(x * (x > 0))

    own = function(MyReLU.forward, backward)
    np.testing.assert_array_equal(gradient(own.apply, np.array([-INF, 1.0])), [NAN, NAN])


def test_an_untaken_branch_does_not_poison():
    root = function(
        lambda ctx, x: (y := sg.sqrt(x), ctx.save_for_backward(y))[0],
        lambda ctx, g: g / (2 * ctx.saved_tensors[0]),
    )
    found = gradient(lambda x: sg.where(x > 0, root.apply(x), 0), np.array([-1.0, 0.0, 4.0]))
    np.testing.assert_array_equal(found, [0, 0, 0.25])


def test_several_arguments_and_one_that_is_no_tensor():
    a, b = leaf("a"), leaf("b")
    da, db = sg.grad(sg.sum(Product.apply(a, b, 3)), [a, b])
    feeds = {a: np.array([1.0, 2, 3]), b: np.array([2.0, 0, 1])}
    same(value(da, feeds), [6.0, 0, 27])
    same(value(db, feeds), [1.0, 8, 27])


def test_arrays_become_constants():
    a = leaf("a")
    y = Product.apply(a, np.array([2.0, 0, 1]), 3)
    same(value(sg.grad(sg.sum(y), a), {a: np.array([1.0, 2, 3])}), [6.0, 0, 27])
    seen = []
    own = function(lambda ctx, x: seen.append(ctx.needs_input_grad) or sg.exp(x), None)
    same(np.asarray(own.apply(np.zeros(2))), [1.0, 1])
    own.apply(np.zeros(2, int))
    assert seen == [(True,), (False,)]


def test_the_same_node_twice_gets_both_gradients():
    a = leaf("a")
    same(
        value(sg.grad(sg.sum(Product.apply(a, a, 3)), a), {a: np.array([1.0, 2, 3])}),
        [4.0, 32, 108],
    )


def test_several_results_of_which_some_are_used():
    x = leaf()
    s, c = SinCos.apply(x)
    for loss, expected in [
        (sg.sum(s), np.cos(AT)),
        (sg.sum(c), -np.sin(AT)),
        (sg.sum(s * c), np.cos(2 * AT)),
    ]:
        close(value(sg.grad(loss, x), {x: AT}), expected)
        close(sg.compile([x], sg.grad(loss, x))(AT), expected)


def test_what_one_op_with_several_results_gives_is_several_results():
    halves = function(lambda ctx, x: np.divmod(x, 2.0), lambda ctx, gq, gr: gr)
    x = leaf()
    quotient, rest = halves.apply(x)
    same(value(sg.grad(sg.sum(rest * 3 + quotient), x), {x: AT}), [3.0, 3, 3])


def test_missing_cotangents_are_zeros_of_the_type_of_the_result():
    seen = []

    def forward(ctx, x):
        return x * 2, sg.astype(sg.sum(x), "float32"), sg.argmax(x)

    def backward(ctx, *grads):
        seen.extend(g.type for g in grads)
        return 2 * grads[0] + grads[1]

    x = leaf()
    double, total, where = function(forward, backward).apply(x)
    assert where.dtype == "int64"
    same(value(sg.grad(sg.sum(double), x), {x: AT}), [2.0, 2, 2])
    assert seen == [double.type, total.type, where.type]


def test_none_is_no_gradient():
    own = function(lambda ctx, a, b: a * b, lambda ctx, g: (g, None))
    a, b = leaf("a"), leaf("b")
    y = sg.sum(own.apply(a, b))
    same(value(sg.grad(y, a), {a: AT, b: AT}), np.ones(3))
    with pytest.raises(sg.GradientError, match="none flows to 'b'"):
        sg.grad(y, b)
    same(value(sg.grad(y, b, disconnected="zero"), {a: AT, b: AT}), np.zeros(3))


def test_what_a_forward_takes_from_outside_would_get_no_gradient():
    w = leaf("w")
    x = leaf()
    outside = function(lambda ctx, x: x * sg.tanh(w), lambda ctx, g: g)
    with pytest.raises(sg.GradientError, match=r"forward: it uses 'w' .*give it as an argument"):
        outside.apply(x)
    meant = function(lambda ctx, x: x * sg.stop_gradient(w), lambda ctx, g: g)
    y = sg.sum(meant.apply(x) + w)
    same(value(sg.grad(y, w), {x: AT, w: AT}), np.ones(3))


def test_a_step_function_can_be_given_a_gradient():
    straight = function(
        lambda ctx, x: sg.astype(sg.astype(sg.round(x), "int64"), "float64"), lambda ctx, g: g
    )
    x = leaf()
    y = straight.apply(x * 2)
    same(value(sg.grad(sg.sum(y * y), x), {x: np.array([0.3, 0.8, 1.1])}), [4.0, 8, 8])
    same(value(sg.jvp(y, x, AT), {x: AT}), 2 * AT)


def test_casts_that_lose_nothing_are_made_and_numbers_are_weak():
    own = function(
        lambda ctx, x, n: sg.sum(x) * n, lambda ctx, g: (sg.full(3, 1, dtype="float32"), 7)
    )
    x, n = leaf(), leaf("n", ())
    dx, dn = sg.grad(own.apply(x, n), [x, n])
    same(value(dx, {x: AT, n: 1.0}), np.ones(3))
    same(value(dn, {x: AT, n: 1.0}), np.float64(7))


# ---- every call is its own ------------------------------------------------------------------


def test_an_instance_is_called_many_times_and_each_call_saves_its_own():
    class Scale(sg.Function):
        def __init__(self, factor):
            self.factor = factor

        def forward(self, x):
            self.seen = x
            self.save_for_backward(x)
            return x**2 * self.factor

        def backward(self, g):
            assert self.saved_tensors == (self.seen,)
            return g * 2 * self.seen * self.factor

    scale, x = Scale(3.0), leaf()
    y = scale(scale(x)) + Scale(5.0)(x)
    close(value(sg.grad(sg.sum(y), x), {x: AT}), 27 * 4 * AT**3 + 10 * AT)
    assert vars(scale) == {"factor": 3.0}


def test_the_same_function_twice_is_computed_once():
    x = leaf()
    twice = sg.compile([x], OwnReLU()(x) + OwnReLU()(x))
    assert [s.name for s in twice.plan.steps] == ["relu", "multiply"]


def test_saved_nodes_are_not_computed_again_without_passes():
    def forward(ctx, x):
        inner = sg.exp(x)
        ctx.inner = inner
        return inner * 2

    own = function(forward, lambda ctx, g: g * ctx.inner * 2)
    x = leaf()
    y = own.apply(x)
    program = sg.compile([x], [y, sg.grad(sg.sum(y), x)], passes=())
    assert [s.name for s in program.plan.steps].count("exp") == 1


def test_named_dimensions():
    x = leaf(shape=("N", 3))
    program = sg.compile([x], sg.grad(sg.sum(MyReLU.apply(x)), x))
    for n in (1, 4):
        same(program(np.full((n, 3), 2.0)), np.ones((n, 3)))


def test_state_is_not_frozen_by_a_body():
    w = sg.variable("w", AT)
    program = sg.compile([], [MyReLU.apply(w), sg.grad(sg.sum(MyReLU.apply(w)), w)])
    w.value = -AT
    found = program()
    same(found[0], [2.0, 0, 0])
    same(found[1], [1.0, 0, 0])


# ---- higher derivatives and forward mode ----------------------------------------------------


@pytest.mark.parametrize(
    "build",
    [
        lambda a, b: [Product.apply(a, b, 3)],
        lambda a, b: list(SinCos.apply(a * b)),
        lambda a, b: [SinCos.apply(a)[1] * Product.apply(b, SinCos.apply(b)[0], 2)],
        lambda a, b: [sg.checkpoint(lambda u, v: Product.apply(u, v, 2))(a, b)],
    ],
)
def test_derivatives_of_both_modes_and_orders(build):
    rng = generator("function")
    a, b = leaf("a"), leaf("b")
    arrays = [rng.uniform(0.5, 1.5, 3), rng.uniform(0.5, 1.5, 3)]
    check_derivatives(build(a, b), [a, b], arrays, rng)
    check_second_derivatives(build(a, b), [a, b], arrays, rng)


def test_a_second_derivative_is_that_of_the_given_backward():
    """What a backward saved of its results has their own derivative, not that of the body."""
    own = function(
        lambda ctx, x: (y := sg.round(x) + 1, ctx.save_for_backward(y))[0],
        lambda ctx, g: g * ctx.saved_tensors[0],
    )
    x = leaf()
    first = sg.grad(sg.sum(own.apply(x)), x)
    same(value(first, {x: AT}), AT + 1)
    same(value(sg.grad(sg.sum(first), x), {x: AT}), AT + 1)


def test_a_jvp_of_its_own():
    def own_jvp(ctx, *tangents):
        assert tangents[2] is None
        a, b = ctx.saved_tensors
        return 3 * a**2 * b * tangents[0] + a**3 * tangents[1]

    own = function(Product.forward, None, jvp=own_jvp)
    a, b = leaf("a"), leaf("b")
    feeds = {a: np.array([1.0, 2, 3]), b: np.array([2.0, 0, 1])}
    same(
        value(sg.jvp(own.apply(a, b, 3), [a, b], [AT, AT]), feeds),
        7 * AT * [1, 0, 1] + [0, 0, 3 * 47.0],
    )
    same(value(sg.jvp(own.apply(a, b, 3), a, AT), feeds), AT * [6.0, 0, 27])
    with pytest.raises(
        sg.GradientError, match=r"Mine.backward: it is missing; define backward\(ctx"
    ):
        sg.grad(sg.sum(own.apply(a, b, 3)), a)


def test_jacobians_and_batches():
    x = leaf()
    feeds = {x: np.array([-1.0, 2, 3])}
    for f in (MyReLU.apply, lambda x: Product.apply(x, SinCos.apply(x)[0], 2)):
        y = f(x)
        for mode in ("forward", "reverse"):
            found = sg.compile([x], sg.jacobian(y, x, mode=mode))(feeds[x])
            expected = np.diag(value(sg.grad(sg.sum(y), x), feeds))
            close(found, expected)
        second = value(sg.hessian(sg.sum(y), x), feeds)
        twice = sg.grad(sg.sum(sg.grad(sg.sum(y), x)), x, disconnected="zero")
        close(second, np.diag(value(twice, feeds)))


def test_a_batch_keeps_its_derivative():
    """`vmap` of a function whose backward is not the derivative of its forward."""
    x, w = leaf(shape=(4, 3)), leaf("w")
    own = function(lambda ctx, a, b: (a * b, a + b), lambda ctx, g, h: (2 * g + h, 5 * g))

    def body(row):
        a, b = own.apply(row, w)
        return a * 3 + b

    y = sg.vmap(body)(x)
    rng = generator("vmap")
    feeds = {x: rng.standard_normal((4, 3)), w: AT}
    close(value(y, feeds), feeds[x] * AT * 3 + feeds[x] + AT)
    dx, dw = sg.grad(sg.sum(y), [x, w])
    same(value(dx, feeds), np.full((4, 3), 7.0))
    same(value(dw, feeds), np.full(3, 60.0))
    same(value(sg.jvp(y, x, np.ones((4, 3))), feeds), np.full((4, 3), 7.0))
    twice = sg.vmap(sg.vmap(lambda e: MyReLU.apply(e)))(x)
    same(value(sg.grad(sg.sum(twice), x), feeds), (feeds[x] > 0) * 1.0)


# ---- text -----------------------------------------------------------------------------------


def test_the_text_names_the_class_and_is_not_read_back():
    x = leaf()
    text = sg.Graph([MyReLU.apply(x)]).text()
    assert "custom(n1, n0, count=1, rule='MyReLU')" in text
    with pytest.raises(
        sg.ParseError, match=r"line 3: MyReLU is a function in Python.*build the graph"
    ):
        sg.Graph.parse(text)
    compiled = sg.compile([x], MyReLU.apply(x)).graph.text()
    assert "custom" not in compiled
    assert sg.Graph.parse(compiled) == sg.compile([x], sg.relu(x)).graph

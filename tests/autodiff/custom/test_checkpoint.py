"""Checkpoints: the same gradients in less memory."""

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import (
    check_derivatives,
    check_second_derivatives,
    close,
    each,
    generator,
    same,
    value,
)


def plain(function):
    return function


def deep(checkpointed, blocks=4, layers=8, **options):
    x = h = sg.placeholder("x", (32, 32))
    weights = [sg.variable(f"w{i}", np.eye(32) * (1 + i / 8)) for i in range(blocks)]

    def block(h, w):
        for _ in range(layers):
            h = sg.tanh(h @ w)
        return h

    for w in weights:
        h = checkpointed(block)(h, w)
    return sg.compile([x], list(sg.grad(sg.sum(h * h), [x, *weights])), **options)


@pytest.mark.parametrize("options", [{}, {"passes": ()}, {"exact": "bits"}])
def test_a_deep_chain_needs_less_memory_for_the_same_gradients(options):
    kept, again = deep(plain, **options), deep(sg.checkpoint, **options)
    at = generator("deep").standard_normal((32, 32))
    for a, b in zip(kept(at), again(at), strict=True):
        close(a, b)
    assert again.plan.arena_bytes < 0.5 * kept.plan.arena_bytes
    names = [s.name for s in again.plan.steps]
    assert names.count("tanh") == 2 * 4 * 8
    assert "custom" not in names
    assert "barrier" not in names


def test_what_a_function_reaches_is_differentiated_too():
    x, w = sg.placeholder("x", 3), sg.variable("w", np.array([1.0, 2, 3]))
    inner = sg.exp(w) * x
    rng = generator("closure")

    def build(wrap):
        return sg.sum(wrap(lambda a: sg.tanh(a * inner) + sg.sin(w) * a + 2.0)(x * x) * x)

    for order in (1, 2):
        results = [build(plain), build(sg.checkpoint)]
        for _ in range(order):
            results = [sg.sum(g * g) for r in results for g in [sum(sg.grad(r, [x, w]))]]
        at = rng.standard_normal(3)
        program = sg.compile([x], results)
        close(*program(at))


def test_both_modes_and_orders():
    rng = generator("checkpoint")
    a, b = sg.placeholder("a", 3), sg.placeholder("b", 3)
    arrays = [rng.uniform(0.5, 1.5, 3), rng.uniform(0.5, 1.5, 3)]

    @sg.checkpoint
    def both(u, v, scale=1.0):
        return sg.sin(u * v) * scale, u

    ys = list(both(a, sg.exp(b), scale=b))
    check_derivatives(ys, [a, b], arrays, rng)
    check_second_derivatives(ys, [a, b], arrays, rng)


def test_the_boundary_is_not_rewritten_away():
    """The square of a root is the value: but what lies outside is not the function's to see."""
    x = sg.placeholder("x", 3)
    y = sg.checkpoint(sg.square)(sg.sqrt(x))
    same(value(sg.grad(sg.sum(y), x), {x: np.array([1.0, 4, 16])}), np.ones(3))


@pytest.mark.parametrize("kinks", ["left", "right", 0.25])
def test_kinks_are_chosen_within(kinks):
    x = sg.placeholder("x", 3)
    at = np.array([-1.0, 0, 1])
    expected = value(sg.grad(sg.sum(sg.relu(x)), x, kinks=kinks), {x: at})
    for body in (sg.relu, lambda a: (a + sg.abs(a)) / 2, lambda a: sg.maximum(0, a)):
        y = sg.sum(sg.checkpoint(body)(x))
        same(value(sg.grad(y, x, kinks=kinks), {x: at}), expected)
        same(value(sg.jvp(sg.checkpoint(body)(x), x, np.ones(3), kinks=kinks), {x: at}), expected)


def test_results_have_the_form_of_the_function():
    x = sg.placeholder("x", 3)
    assert isinstance(sg.checkpoint(lambda a: [a, a * 2])(x), list)
    first, second = sg.checkpoint(lambda a: (a * 3.0, 2.0))(x)
    assert (first.shape, second.shape) == ((3,), ())
    assert sg.checkpoint(sg.tanh).__name__ == "tanh"


def test_integers_and_one_result_of_several():
    x, n = sg.placeholder("x", (4, 3)), sg.placeholder("n", (4, 1), "int64")
    first, rest = sg.checkpoint(lambda a, i: (a * a * i, sg.exp(a)))(x, n)
    feeds = {x: np.arange(12.0).reshape(4, 3), n: np.array([[1], [3], [0], [2]])}
    same(value(sg.grad(sg.sum(first), x), feeds), 2 * feeds[x] * feeds[n])
    assert rest.shape == (4, 3)


def test_on_a_batch():
    x, w = sg.placeholder("x", (4, 3)), sg.placeholder("w", 3)
    rng = generator("batch")
    feeds = {x: rng.standard_normal((4, 3)), w: rng.standard_normal(3)}
    results = []
    for wrap in (plain, sg.checkpoint):
        f = wrap(lambda row, u: sg.tanh(row * u) * row)
        y = sg.vmap(lambda row, f=f: f(row, w))(x)
        flows = sg.grad(sg.sum(y * y), [x, w])
        jacobian = sg.jacobian(f(w, w), w, mode="reverse")
        results.append([value(n, feeds) for n in (y, *flows, jacobian)])
    for a, b in zip(*results, strict=True):
        close(a, b)


def test_a_function_without_nodes_is_refused():
    x = sg.placeholder("x", 3)
    with pytest.raises(sg.UnsupportedError, match=r"give the nodes that it works on as arguments"):
        sg.checkpoint(lambda: x * 2)()
    with pytest.raises(sg.DtypeError, match="None"):
        sg.checkpoint(lambda a: None)(x)


def test_the_text_names_it_and_the_origin_says_what_is_computed_again():
    x = sg.placeholder("x", 3)
    y = sg.checkpoint(sg.tanh)(x)
    text = sg.Graph([y]).text()
    assert "checkpointed(n2, n1, count=1)" in text
    parsed = sg.Graph.parse(text)
    assert "by vjp(checkpoint)" in str(
        sg.Graph([sg.grad(sg.sum(parsed.outputs[0]), parsed.inputs[0])])
    )
    again = str(sg.Graph([sg.grad(sg.sum(y), x)]))
    assert "by vjp(checkpoint)" in again
    assert sg.Graph.parse(str(sg.compile([x], sg.grad(sg.sum(y), x)).graph))


class Sine(sg.Function):
    """A custom function that a checkpoint contains."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return sg.sin(x * w)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * sg.cos(x * w) * w, g * sg.cos(x * w) * x


def chains(w, count):
    """Ways to call functions that share a captured weight, several times in a row."""
    f, s = (lambda a: sg.tanh(a * w + sg.sin(w))), (lambda a: Sine.apply(a, w))

    def repeated(y, *functions):
        for _ in range(count):
            for f in functions:
                y = f(y)
        return y

    def added(y, f):
        for _ in range(count):
            y = y + f(y)
        return y

    return {
        "in a row": lambda wrap, x: repeated(x, wrap(f)),
        "residual": lambda wrap, x: added(x, wrap(f)),
        "with more between": lambda wrap, x: repeated(x, wrap(f), lambda y: y * w, wrap(f)),
        "nested": lambda wrap, x: repeated(x, wrap(lambda a: wrap(f)(wrap(f)(a) * w) + f(a))),
        "functions": lambda wrap, x: repeated(x, wrap(s), wrap(f), s),
        "two arguments": lambda wrap, x: repeated(x, lambda y: wrap(lambda a, b: a * f(b))(y, x)),
    }


@each("count", [1, 2, 3])
@each("name", chains(None, 1))
def test_checkpoints_that_share_what_they_capture(name, count):
    x, w = sg.placeholder("x", 3), sg.variable("w", np.array([0.5, 0.9, -0.7]))
    at = generator(name).standard_normal(3)
    found = []
    for wrap in (plain, sg.checkpoint):
        y = chains(w, count)[name](wrap, x)
        first = sg.grad(sg.sum(y * y), [x, w])
        second = sg.grad(sum(sg.sum(g * g) for g in first), [x, w])
        ahead = [sg.jvp(y, [x, w], [x, w]), sg.hvp(sg.sum(y * y), [x, w], [x, w])]
        found.append(sg.compile([x], [y, first, second, ahead])(at))
    flat = [[y, *first, *second, jvp, *hvp] for y, first, second, (jvp, hvp) in found]
    for a, b in zip(*flat, strict=True):
        close(a, b)


def test_a_result_that_is_captured_is_differentiated_too():
    x, w = sg.placeholder("x", 3), sg.variable("w", np.array([1.0, 2, 3]))
    found = []
    for wrap in (plain, sg.checkpoint):
        y, z, v = wrap(lambda a: (sg.tanh(a), sg.exp(w), w))(x)
        loss = sg.sum(y * z * v)
        found.append(sg.compile([x], [*sg.grad(loss, [x, w]), sg.jvp(loss, w, w)])(np.ones(3)))
    for a, b in zip(*found, strict=True):
        close(a, b)


def test_modules_in_checkpoints_in_a_row_have_the_gradients_of_the_modules():
    x = sg.placeholder("x", ("N", 3))
    norm = sg.nn.BatchNorm(3)
    found = []
    for f in (norm, sg.checkpoint(norm)):
        loss = sg.sum(f(sg.tanh(f(x)) * x) ** 3)
        found.append(sg.compile([x], sg.grad(loss, [x, *norm.parameters()])))
    at = generator("norms").normal(size=(5, 3))
    for a, b in zip(*(program(at) for program in found), strict=True):
        close(a, b)

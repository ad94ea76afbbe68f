"""What the bodies of a user's own function get wrong is told with class, method and line."""

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import each


def function(base, **methods):
    """A class `Mine` with these static methods."""
    return type("Mine", (base,), {k: staticmethod(f) for k, f in methods.items()})


def refused(kind, method, use, *words):
    """Assert that a use is refused in a body, with these words and the line of the use."""
    with pytest.raises(kind) as caught:
        use()
    text = str(caught.value)
    assert text.startswith(f"Mine.{method}: "), text
    for word in (*words, "applied at test_function_refusals.py", ": own.apply(x"):
        assert word in text, text


def assigned(ctx, g):
    g[g < 0] = 0
    return g


def added(ctx, g):
    out = np.zeros(3)
    out += g
    return out


def branched(ctx, g):
    return g if g > 0 else -g


NOT_THE_TYPE = "the gradient of 'x' is"


@each(
    ("kind", "backward", "words"),
    [
        (sg.GradientError, lambda ctx, g: (g, g), ["2 gradients, and", "given 1 argument;"]),
        (sg.GradientError, lambda ctx, g: (), ["0 gradients, and forward was given 1 argument;"]),
        (sg.ShapeError, lambda ctx, g: sg.sum(g), [NOT_THE_TYPE, "float32[()], and float32[3]"]),
        (sg.ShapeError, lambda ctx, g: sg.stack([g, g]), ["float32[2, 3]", "sum it over the axes"]),
        (sg.ShapeError, lambda ctx, g: 0, [NOT_THE_TYPE, "float32[()], and float32[3] is wanted"]),
        (sg.DtypeError, lambda ctx, g: g * np.ones(3), ["float64[3]", "sg.astype(x, 'float32')"]),
        (sg.GradientError, lambda ctx, g: "g", ["the gradient of 'x' is str 'g', and a tensor"]),
        (sg.GradientError, lambda ctx, g: ctx.saved_tensors, ["nothing was saved; call save_for_"]),
        (sg.UnsupportedError, lambda ctx, g: np.array(g), ["has no value", "sg.NumpyFunction"]),
        (sg.UnsupportedError, branched, ["has no value before", "sg.NumpyFunction"]),
        (sg.UnsupportedError, assigned, ["applied", "sg.NumpyFunction"]),
        (sg.UnsupportedError, lambda ctx, g: g.fill(0), ["no attribute 'fill'", "NumpyFunction"]),
        (sg.UnsupportedError, added, ["into an array", "sg.NumpyFunction"]),
    ],
)  # fmt: skip
def test_a_backward(kind, backward, words):
    own = function(sg.Function, forward=lambda ctx, x: x * 2, backward=backward)
    x = sg.placeholder("x", 3, "float32")
    y = own.apply(x)
    refused(kind, "backward", lambda: sg.grad(sg.sum(y), x), *words)


@each(
    ("kind", "forward", "words"),
    [
        (sg.GradientError, lambda ctx, x: None, ["it returned None, and a tensor is wanted"]),
        (sg.GradientError, lambda ctx, x: (x, "y"), ["it returned str 'y', and a tensor"]),
        (sg.GradientError, lambda ctx, x: (), ["it returned nothing"]),
        (sg.GradientError, lambda ctx, x: ctx.saved_tensors[0], ["nothing was saved"]),
        (sg.UnsupportedError, branched, ["has no value before", "'g'", "sg.NumpyFunction"]),
        (sg.UnsupportedError, lambda ctx, x: x * float(x[0]), ["has no value before"]),
    ],
)
@each("leaf", [sg.placeholder("v", 3), sg.variable("v", np.ones(3))])
def test_a_forward(kind, forward, words, leaf):
    own, x = function(sg.Function, forward=forward, backward=None), leaf
    refused(kind, "forward", lambda: own.apply(x), *words)


def test_a_method_that_is_missing():
    x = sg.placeholder("x", 3)
    own = function(sg.Function)
    refused(sg.GradientError, "forward", lambda: own.apply(x), "it is missing; define forward(ctx")
    own = function(sg.Function, forward=lambda ctx, x: x * 2)
    y = own.apply(x)
    refused(sg.GradientError, "backward", lambda: sg.grad(sg.sum(y), x), "define backward(ctx, …)")


def test_a_gradient_of_what_has_none():
    own = function(sg.Function, forward=lambda ctx, x, n: x * n, backward=lambda ctx, g: (g, g))
    x = sg.placeholder("x", 3)
    n = sg.placeholder("n", 3, "int64")
    y = own.apply(x, 2)
    refused(
        sg.GradientError, "backward", lambda: sg.grad(sg.sum(y), x),
        "'n' is int '2', which has no gradient; return None for it",
    )  # fmt: skip
    z = own.apply(x, n)
    refused(
        sg.GradientError, "backward", lambda: sg.grad(sg.sum(z), x), "'n' is int64[3], which has no"
    )


def test_a_backward_that_is_not_linear_has_no_transpose():
    own = function(
        sg.Function, forward=lambda ctx, x: x * 2, backward=lambda ctx, g: sg.clip(g, -1, 1)
    )
    x = sg.placeholder("x", 3)
    y = own.apply(x)
    refused(
        sg.GradientError, "backward", lambda: sg.jvp(y, x, np.ones(3)),
        "it is not linear in the cotangent; define jvp(ctx, *tangents)",
    )  # fmt: skip


def test_a_jvp():
    x = sg.placeholder("x", 3)
    for jvp, kind, words in [
        (lambda ctx, t: (t, t), sg.GradientError, "2 tangents for 1 results"),
        (lambda ctx, t: sg.sum(t), sg.ShapeError, "the tangent of result 1 is float64[()], and"),
    ]:
        own = function(sg.Function, forward=lambda ctx, x: x * 2, jvp=jvp)
        y = own.apply(x)
        refused(kind, "jvp", lambda y=y: sg.jvp(y, x, np.ones(3)), words)


def test_an_error_of_a_body_is_its_own_with_a_note():
    def forward(ctx, x):
        raise KeyError("mine")

    own = function(sg.Function, forward=forward)
    with pytest.raises(KeyError, match="mine") as caught:
        own.apply(sg.placeholder("x", 3))
    assert "in Mine.forward\n  applied at test_function_refusals.py" in caught.value.__notes__[0]
    own = function(sg.Function, forward=lambda ctx, x: x @ np.ones((4, 2)))
    with pytest.raises(sg.ShapeError, match="3 and 4 do not match") as caught:
        own.apply(sg.placeholder("v", 3))
    assert "in Mine.forward" in caught.value.__notes__[0]


def test_an_inner_function_is_told_from_an_outer_one():
    inner = function(sg.Function, forward=lambda ctx, x: x * bool(x > 0))
    outer = type("Outer", (sg.Function,), {"forward": staticmethod(lambda ctx, x: inner.apply(x))})
    with pytest.raises(sg.UnsupportedError) as caught:
        outer.apply(sg.placeholder("x", 3))
    assert str(caught.value).startswith("Mine.forward: ")
    assert str(caught.value).count("NumpyFunction") == 1
    assert "in Outer.forward" in caught.value.__notes__[0]


def test_a_class_with_an_init_is_called_as_an_instance():
    class Mine(sg.Function):
        def __init__(self, factor):
            self.factor = factor

        def forward(self, x):
            return x * self.factor

    with pytest.raises(sg.UnsupportedError, match=r"Mine has an __init__: make an instance"):
        Mine.apply(sg.placeholder("x", 3))


def test_a_node_with_several_results_is_no_argument():
    own = function(sg.Function, forward=lambda ctx, x: x)
    with pytest.raises(sg.ShapeError, match="divmod has 2 results; take one of them"):
        own.apply(sg.divmod(sg.placeholder("x", 3), 2.0)[0].inputs[0])

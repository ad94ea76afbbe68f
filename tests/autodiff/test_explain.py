"""explain_grad says along which paths a gradient flows, and what stops it, and where."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ops.select import select


def line_of(node):
    return node.origin.locations[0].line


def test_it_names_all_that_stops_a_gradient():
    x = sg.placeholder("x", 3)
    cast = sg.astype(x, "int32")
    rounded = sg.round(x)
    largest = sg.argmax(x)
    stopped = sg.stop_gradient(x)
    parts = [sg.astype(cast, "float64"), rounded, sg.astype(largest, "float64"), stopped]
    loss = sum((sg.sum(p) for p in parts[1:]), sg.sum(parts[0]))
    found = sg.explain_grad(loss, x)
    assert not found.flows
    by_node = dict(found.stops)
    assert set(by_node) == {cast, rounded, largest, stopped}
    text = str(found)
    for node, word in ((cast, "cast to int32"), (rounded, "piecewise constant"),
                       (largest, "argmax"), (stopped, "stop_gradient says so")):  # fmt: skip
        assert word in by_node[node]
        assert f"test_explain.py:{line_of(node)}" in text


def test_a_path_that_flows_is_shown_with_its_rules():
    x = sg.placeholder("x", 3)
    loss = sg.sum(sg.tanh(x) * sg.floor(x))
    found = sg.explain_grad(loss, x)
    assert found.flows
    assert [n.op.name for n, _ in found.stops] == ["floor"]
    text = str(found)
    for part in ("vjp(sum)", "vjp(multiply)", "vjp(tanh)", "a gradient flows", "float64[3]"):
        assert part in text


def test_a_gradient_flows_through_one_result_of_several():
    x = sg.placeholder("x", (2, 2))
    found = sg.explain_grad(sg.linalg.logdet(x), x)
    assert found.flows
    assert not found.stops


def test_no_path_and_a_false_mask():
    x, y = sg.placeholder("x", 3), sg.placeholder("y", 3)
    assert "there is no path" in str(sg.explain_grad(sg.sum(y), x))
    masked = sg.sum(select(np.zeros(3, bool), x))
    assert "false everywhere" in str(sg.explain_grad(masked, x))
    assert not sg.explain_grad(masked, x).flows


def test_a_comparison_stops_a_gradient():
    x = sg.placeholder("x", 3)
    found = sg.explain_grad(sg.sum(sg.astype(x > 0, "float64")), x)
    assert any("boolean result of greater" in why for _, why in found.stops)


def test_a_shared_part_is_shown_once_and_a_deep_one_ends():
    x = h = sg.placeholder("x", ())
    for _ in range(3000):
        h = sg.tanh(h * h)
    text = str(sg.explain_grad(h, x))
    assert "… and more" in text
    assert len(text.splitlines()) < 300
    twice = sg.tanh(x)
    assert "(shown above)" in str(sg.explain_grad(sg.exp(twice) + sg.sin(twice), x))


def test_the_error_of_a_disconnected_gradient_says_why():
    x = sg.placeholder("x", 3)
    with pytest.raises(sg.GradientError, match=r"rint .*test_explain.py:\d+.* cuts the path"):
        sg.grad(sg.sum(sg.round(x)), x)


class StraightThrough(sg.Function):
    """Rounds, and passes the gradient on as if it had not."""

    @staticmethod
    def forward(ctx, x):
        return sg.round(x)

    @staticmethod
    def backward(ctx, g):
        return g


def test_what_lies_inside_a_custom_function_stops_nothing():
    x = sg.placeholder("x", 3)
    found = sg.explain_grad(sg.sum(StraightThrough.apply(x)), x)
    assert found.flows
    assert not found.stops


def test_forward_mode_does_not_look_inside_a_custom_function():
    class Next(sg.Function):
        @staticmethod
        def forward(ctx, x):
            return sg.nextafter(x, 10.0)

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    x = sg.placeholder("x", 3)
    tangent = sg.jvp(Next.apply(x), x, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(sg.compile([x], tangent)(np.ones(3)), [2, 4, 6])

"""Arguments that do not fit a function: a TypeError that shows its signature."""

import pytest

import symgrad as sg

x = sg.placeholder("x", ("N", 3))


MANY = "too many positional arguments; what stands after the * is given by name"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sg.sum(x, 0, 1), f"sum: {MANY}: dtype=1; it is sum(x, /, axis=None"),
        (lambda: sg.tanh(), "tanh: missing a required argument: 'x'; it is tanh(x, /)"),
        (lambda: sg.tanh(x, axis=1), "tanh: got an unexpected keyword argument 'axis'; it is "),
        (lambda: sg.reshape(x), "reshape: missing a required argument: 'shape'; it is reshape(x,"),
        (lambda: sg.broadcast_to(x), "broadcast_to: missing a required argument: 'shape'; it is"),
        (lambda: sg.mean(x, 0, 1), f"mean: {MANY}: keepdims=1; it is mean("),
        (lambda: sg.softmax(), "softmax: missing a required argument: 'x'; it is softmax(x, /"),
        (lambda: sg.concat([x], foo=1), "concat: got an unexpected keyword argument 'foo'; it is"),
        (lambda: sg.sum(sg.mean(x, 0, 1)), f"mean: {MANY}"),
    ],
)
def test_arguments_that_do_not_fit_are_told_with_the_signature(call, words):
    with pytest.raises(TypeError) as caught:
        call()
    text = str(caught.value)
    assert text.startswith(words)
    assert "Node" not in text
    assert "->" not in text


def test_a_type_error_within_a_function_is_told_with_its_call():
    with pytest.raises(sg.ArgumentError) as caught:
        sg.tensordot(x, x, axes=None)
    text = str(caught.value)
    assert text.startswith("tensordot(float64[N, 3], float64[N, 3]): TypeError: ")
    assert "it is tensordot(x1, x2, /, *, axes=2)" in text

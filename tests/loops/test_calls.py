"""Functions that are none, and errors in those that are: what they were called with is told."""

import numpy as np
import pytest

import symgrad as sg

a = sg.placeholder("a", ())
x = sg.placeholder("x", ("B", "T", 3))
w = sg.placeholder("w", (3, 3))


@pytest.mark.parametrize(
    ("name", "written", "build"),
    [
        ("scan", "step is a function.*lambda carry, x:", lambda: sg.scan(a, a, x)),
        ("fori", "body is a function.*lambda i, carry:", lambda: sg.fori(3, a, a)),
        ("map", "f is a function.*lambda x:", lambda: sg.map(None, x)),
        ("while_loop", "cond is a function", lambda: sg.while_loop(a > 0, lambda c: c, a)),
        ("while_loop", "body is a function", lambda: sg.while_loop(lambda c: c > 0, a, a)),
        ("cond", r"g is a function.*lambda: .*sg\.where", lambda: sg.cond(a > 0, lambda: a, a)),
        ("root", "lambda x:", lambda: sg.root(a, a)),
        ("fixed_point", "lambda x:", lambda: sg.fixed_point(3, a)),
        ("minimizer", "lambda x:", lambda: sg.minimizer("f", a)),
        ("odeint", "lambda y, t:", lambda: sg.odeint(a, a, np.zeros(2))),
    ],
)
def test_what_is_no_function(name, written, build):
    with pytest.raises(sg.GraphError, match=f"(?s)^{name}: .*{written}"):
        build()


def test_an_error_in_a_step_tells_how_it_was_called():
    """As where the time axis is not the first, which no message of the step could know."""
    with pytest.raises(sg.ShapeError, match="T and B") as caught:
        sg.scan(lambda h, row: (row @ w + h, None), sg.zeros((x.shape[0], 3)), x)
    (note,) = caught.value.__notes__
    assert note.startswith("scan calls step(carry, x): carry is float64[B, 3], x, a slice along ")
    assert note.endswith("the first axis, is float64[T, 3]")
    with pytest.raises(sg.SymgradError) as caught:
        sg.fori(9, lambda c, i: c[0] * i, np.ones(2))
    (note,) = caught.value.__notes__
    assert note == "fori calls body(i, carry): carry is float64[2], i is int64[()]"
    with pytest.raises(TypeError) as caught:
        sg.while_loop(lambda c: c > 0, lambda c: c @ c, (a, a, a, a, a))
    (note,) = caught.value.__notes__
    assert note.startswith("while_loop calls body(carry): carry is (float64[()], ")
    assert note.endswith("…)")
    with pytest.raises(sg.SymgradError) as caught:
        sg.odeint(lambda t, y: y @ y, np.ones(2), np.zeros(2))
    assert caught.value.__notes__ == ["odeint calls f(y, t): y is float64[2]"]


def test_the_number_of_steps_is_told_by_name():
    for build in (lambda: sg.fori(2.5, lambda i, c: c, a), lambda: sg.fori((2, 3), max, a)):
        with pytest.raises(sg.ShapeError, match="fori: the number of steps"):
            build()
    with pytest.raises(sg.ShapeError, match="scan: the number of steps"):
        sg.scan(lambda c, _: (c, None), a, length=-1)

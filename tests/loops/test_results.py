"""Where results of loops lie, and loops without any that a derivative would have."""

import numpy as np

import symgrad as sg
from symgrad.ir.op import REGISTRY
from tests.helpers import each

x = sg.placeholder("x", 3)
X = np.array([1.0, -2.0, 3.0])


def last_of_while(steps):
    step = lambda c: (c[0] + 1, sg.sin(c[1]) + x)  # noqa: E731
    return sg.while_loop(lambda c: c[0] < steps, step, (0, x))[1]


def last_of_scan(steps):
    return sg.scan(lambda c, _: (sg.sin(c) + x, None), x, length=steps)[0]


@each("steps", [0, 1, 2, 3])
@each("last", [last_of_while, last_of_scan])
@each("backend", ["numpy", "reference"])
def test_a_part_of_an_array(steps, last, backend):
    end = X
    for _ in range(steps):
        end = np.sin(end) + X
    y = last(steps)
    joined = sg.concat([y, 2 * x]), sg.stack([y, 2 * x]), sg.stack([y, 2 * x], axis=1)
    expected = np.hstack([end, 2 * X]), np.stack([end, 2 * X]), np.stack([end, 2 * X], axis=1)
    for found, wanted in zip(joined, expected, strict=True):
        for passes in (None, ()):
            program = sg.compile(x, found, passes=passes, backend=backend)
            np.testing.assert_allclose(program(X), wanted, rtol=1e-14)


def test_steps_through_which_nothing_flows():
    rows = sg.placeholder("rows", ("T", 3))
    total = sg.sum(sg.map(lambda row: sg.ones_like(row) + sg.floor(row), rows)) + sg.sum(x)
    slope = sg.grad(total, rows, disconnected="zero")
    moved = sg.jvp(total, rows, sg.ones_like(rows), disconnected="zero")
    g, t = sg.compile([rows, x], [slope, moved], passes=())(np.ones((2, 3)), X)
    np.testing.assert_array_equal(g, np.zeros((2, 3)))
    assert t == 0.0


@each("length", [0, 1, 2, 7, "T"])
@each("dtype", ["float64", "float32"])
@each("reverse", [False, True])
def test_numbers_are_floats_of_python_with_the_same_bits(length, dtype, reverse):
    """Where a step only adds and multiplies; its results are NumPy's again, also for a division."""
    rows = sg.placeholder("rows", (length, 2), dtype)
    a, b, k = (sg.placeholder(n, (), dtype) for n in "abk")

    def step(carry, row):
        u, v = carry
        w = u * row[0] - v * 0.1 + k
        return (w, u), (-w * row[1], v - 3)

    (u, v), ys = sg.scan(step, (a, b), (rows[:, 0], rows[:, 1]), reverse=reverse)
    outputs = [u, v, 1 / u, a / (v - v), *ys, *sg.grad(u * v + sg.sum(ys[0]), [a, k, rows])]
    inputs = [a, b, k, rows]
    program = sg.compile(inputs, outputs, exact="bits")
    values = [0.0, -0.0, float(np.finfo(dtype).max), 5e-324, -2.5, np.inf, np.nan]
    for i in range(7):
        array = np.array([values[(3 * i + j) % 7] for j in range(14)], dtype).reshape(7, 2)
        feeds = [values[i], values[i - 1], values[i - 4]]
        given = [
            *(np.asarray(x, dtype)[()] for x in feeds),
            array[: 7 if length == "T" else length],
        ]
        found = program(*given)
        expected = sg.compile(inputs, outputs, exact="bits", backend="reference")(*given)
        for y, z in zip(found, expected, strict=True):
            assert type(y) is type(z)
            np.testing.assert_array_equal(y, z)
            assert (np.isnan(z) | (np.signbit(y) == np.signbit(z))).all()
    if length in (7, "T"):
        assert ("tolist" in str(program.source)) == (dtype == "float64")


def test_a_number_is_no_view_of_an_array():
    """What it was computed of is written over while it is still read."""
    seen = 0
    for op in REGISTRY.every().values():
        for dtype in ("float64", "complex128", "int64", "bool"):
            array = np.ones(1, dtype)
            try:
                with np.errstate(all="ignore"):
                    found = op.kernel(array.reshape(()))
            except (TypeError, AttributeError, ValueError, IndexError):
                continue
            if isinstance(found, (np.ndarray, np.generic)) and not (op.view or op.identity):
                assert not np.shares_memory(found, array), (op.name, dtype)
                seen += 1
    assert seen > 100

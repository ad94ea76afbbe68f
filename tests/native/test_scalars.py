"""Programs of single numbers as one function."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.graph import Graph
from symgrad.native.scalars import ScalarKernel
from symgrad.native.space import NotNative
from tests.native.checks import BINARY, COMPARE, SPECIAL, UNARY, reference

pytest.importorskip("llvmlite")


def rosenbrock(x, y):
    return (1 - x) ** 2 + 100 * (y - x * x) ** 2


def test_a_function_and_its_gradient():
    x, y = sg.placeholder("x", ()), sg.placeholder("y", ())
    loss = rosenbrock(x, y)
    program = sg.compile([x, y], [loss, *sg.grad(loss, [x, y])])
    kernel = ScalarKernel(program.graph, exact=True)
    for a, b in ((1.0, 1.0), (-1.2, 1.0), (np.float64(0.3), 2), (np.array(3.0), np.float32(0.5))):
        assert kernel.run([a, b]) == list(program(float(a), float(b)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(6))
def test_random_programs_have_numpys_bits(seed, dtype):
    rng = np.random.default_rng(seed)
    inputs = [sg.placeholder(f"x{i}", (), dtype) for i in range(3)]
    nodes = list(inputs)
    pick = lambda: nodes[rng.integers(len(nodes))]  # noqa: E731
    for _ in range(30):
        if rng.random() < 0.3:
            nodes.append(getattr(sg, rng.choice(UNARY))(pick()))
        elif rng.random() < 0.8:
            nodes.append(getattr(sg, rng.choice(BINARY))(pick(), pick()))
        else:
            mask = getattr(sg, rng.choice(COMPARE))(pick(), pick())
            nodes.append(sg.where(mask, pick(), pick()))
    graph = Graph(dict.fromkeys([sum(inputs), *nodes[-8:]]), inputs)
    kernel = ScalarKernel(graph, exact=True)
    for _ in range(40):
        given = [dtype(rng.choice([*SPECIAL, *rng.standard_normal(9)])) for _ in inputs]
        for a, b in zip(kernel.run(given), reference(graph, given), strict=True):
            assert type(a) is dtype
            assert (np.isnan(a) and np.isnan(b)) or (a == b and np.signbit(a) == np.signbit(b))


def test_functions_are_near_numpys():
    x = sg.placeholder("x", ())
    graph = Graph([sg.sin(x) * 1, sg.tanh(x) + 0, sg.exp(x) - 0, sg.log(x) * 1], [x])
    for v in (0.7, 300.0, 3.0):
        np.testing.assert_allclose(
            ScalarKernel(graph).run([v]), [np.sin(v), np.tanh(v), np.exp(v), np.log(v)], rtol=1e-15
        )
    with pytest.raises(NotNative, match="rounds otherwise"):
        ScalarKernel(graph, exact=True)


def test_what_is_left_to_numpy():
    x = sg.placeholder("x", ())
    for y, words in (
        ([sg.sin(x), x > 0], "one dtype"),
        ([sg.stack([x, x])], "array"),
        ([sg.broadcast_to(x, (3,)) * 2], "array"),
    ):
        with pytest.raises(NotNative, match=words):
            ScalarKernel(Graph(y, [x]))

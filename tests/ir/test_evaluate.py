import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.dims import Dim
from symgrad.ir.errors import SymbolicError
from symgrad.ir.evaluate import evaluate, resolve, sizes_of
from tests.helpers import same, value

x = sg.placeholder("x", ("N", 2))
y = sg.placeholder("y", ("2*N", 2))


def test_values_of_several_nodes():
    found = evaluate([x + 1, x, x + 1], {x: np.ones((3, 2))})
    same(found[0], np.full((3, 2), 2.0))
    assert len(found) == 3
    assert evaluate([]) == []


def test_a_placeholder_that_is_not_fed_is_named():
    with pytest.raises(SymbolicError, match=r"'y' has no value.*sg.compile"):
        evaluate([sg.sum(x) + sg.sum(y)], {x: np.ones((3, 2))})


def test_any_node_may_be_fed_and_what_only_it_needs_is_not_computed():
    inner = sg.exp(x)
    same(value(inner * 2, {inner: np.ones((1, 2))}), np.full((1, 2), 2.0))
    same(value(inner, {inner: np.ones(1)}), np.ones(1))


def test_sizes_of_names_come_from_the_arrays_or_are_given():
    count = sg.arange(x.shape[0])
    same(value(count * sg.sum(x), {x: np.ones((3, 2))}), np.array([0.0, 6, 12]))
    same(value(count, sizes={"N": 2}), np.array([0, 1]))
    same(value(sg.reshape(y, (-1,)), {y: np.ones((4, 2))}, {"N": 2}), np.ones(8))
    assert sizes_of({x: np.ones((3, 2)), y: np.ones((4, 2))}) == {"N": 3}
    with pytest.raises(SymbolicError, match="size of M is not known"):
        value(sg.zeros("M"))


def test_sizes_inside_attributes_are_resolved():
    n = Dim.of("N")
    assert resolve(((n, 3), {"a": n + 1}, "s", None), {"N": 2}) == ((2, 3), {"a": 3}, "s", None)


def test_kernels_warn_of_nothing():
    same(value(sg.log(sg.constant([-1.0, 0.0]))), np.array([np.nan, -np.inf]))
    same(value(sg.astype(sg.constant([1e300]), "float32")), np.array([np.inf], "float32"))


def test_a_kernel_that_fails_is_told_with_the_node_and_the_line_as_in_a_program():
    m = sg.placeholder("m", (2, 2))
    program, ones = sg.compile([m], sg.linalg.inv(m)), np.ones((2, 2))
    for attempt in (
        lambda: np.asarray(sg.linalg.inv(ones)),
        lambda: value(sg.linalg.inv(m), {m: ones}),
        lambda: program(ones),
    ):
        with pytest.raises(np.linalg.LinAlgError, match=r"inv\(float64\[2, 2\]\) failed") as caught:
            attempt()
        assert isinstance(caught.value, sg.KernelError)
        assert "test_evaluate.py" in str(caught.value)
    with pytest.raises(sg.BoundsError, match=r"(?s)index 3 is out of bounds.*test_evaluate\.py"):
        np.asarray(sg.bincount([0, 3], length=3))


def test_a_variable_has_its_present_value():
    w = sg.variable("w", [1.0, 2.0])
    node = w * 2
    same(value(node), np.array([2.0, 4.0]))
    w.value = [5.0, 6.0]
    same(value(node), np.array([10.0, 12.0]))
    same(value(node, {w: np.zeros(2)}), np.zeros(2))

"""What calls of modules offer: masks and next values, whatever was called before."""

import gc
import weakref
from copy import deepcopy

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import UnsupportedError
from tests.helpers import close, generator, same, value

nn, KEY, X = sg.nn, sg.random.key(0), np.ones(64)


def dropped(*graphs):
    """Which elements of each graph are 0."""
    return [mask.tobytes() for mask in (value(y) == 0 for y in graphs)]


def test_what_was_built_before_and_thrown_away_changes_nothing():
    drop = nn.Dropout(0.5, key=KEY)
    first = dropped(drop(X))
    pair = dropped(drop(X), drop(X))
    assert dropped(drop(X)) == first == pair[:1]
    assert dropped(nn.Dropout(0.5, key=KEY)(X)) == first
    used = nn.Dropout(0.5, key=KEY)
    held = used(X)
    assert dropped(deepcopy(used)(X)) == dropped(held), "a copy is part of no graph yet"


class Outer(nn.Module):
    """A module with a backward of its own around noise."""

    def __init__(self):
        self.drop = nn.Dropout(0.5, key=KEY)

    def forward(self, x):
        y = self.drop(x)
        self.save_for_backward(y)
        return y

    def backward(self, g):
        return g * (self.saved_tensors[0] != 0) * 2


def test_calls_in_one_graph_drop_other_parts_wherever_they_are():
    outer, x = Outer(), sg.placeholder("x", (64,))
    again = sg.checkpoint(outer.drop)
    calls = (outer(x), outer(x), again(x), again(x), outer.drop(x), outer.drop(x))
    slopes = [sg.grad(sg.sum(y), x) for y in calls]
    program = sg.compile([x], [calls, slopes], updates=outer.updates(*calls))
    assert list(outer.updates(*calls)) == [outer.drop.key]
    for _ in range(2):
        found, gradients = program(X)
        assert len({y.tobytes() for y in found}) == 6
        for y, slope in zip(found, gradients, strict=True):
            same(y, slope)  # at x = 1, with one mask in both directions


def test_a_module_keeps_no_graph_alive():
    drop, norm = nn.Dropout(0.5, key=KEY), nn.BatchNorm(3)
    x = sg.placeholder("x", ("N", 3))
    gone = [weakref.ref(drop(norm(x))) for _ in range(20)]
    gc.collect()
    assert not any(node() for node in gone)
    held = drop(norm(x))
    assert len(list(drop._offers)) == 1
    assert len(list(norm._offers)) == 2
    assert len(drop.updates(held) | norm.updates(held)) == 3


def test_running_averages_follow_the_calls_in_their_order():
    norm = nn.BatchNorm(2, momentum=np.float64(0.1))
    first, second = generator("order").normal(size=(2, 5, 2))
    x, y = sg.placeholder("x", ("N", 2)), sg.placeholder("y", ("N", 2))
    on_first, on_second = norm(x), norm(y)
    loss = sg.sum(on_second) - sg.sum(on_first)
    sg.compile([x, y], loss, updates=norm.updates(loss))(first, second)
    close(norm.mean.value, 0.09 * first.mean(0) + 0.1 * second.mean(0), 1e-12)
    kept = 0.81 + 0.09 * first.var(0, ddof=1) + 0.1 * second.var(0, ddof=1)
    close(norm.variance.value, kept, 1e-12)


def test_on_a_batch_of_batches_there_is_no_one_next_value():
    norm, x = nn.BatchNorm(3), sg.placeholder("x", ("B", "N", 3))
    y = sg.vmap(norm)(x)
    sg.Graph([y]).verify()
    batches = generator("vmap").normal(size=(4, 5, 3))
    each = np.stack([value(nn.BatchNorm(3)(b)) for b in batches])
    close(sg.compile([x], y)(batches), each, 1e-12)
    with pytest.raises(UnsupportedError, match=r"'mean' .* would be float64\[B, 3\]: within vmap"):
        norm.updates(y)
    assert norm.updates(sg.vmap(norm.eval())(x)) == {}

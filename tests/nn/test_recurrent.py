"""Recurrent layers over sequences: one loop, of any length, packed, in both directions; samples."""

import numpy as np
import pytest

import symgrad as sg

nn = sg.nn
KEYS = sg.random.split(sg.random.key(0))
RNG = np.random.default_rng(0)
MAKERS = [nn.RNNCell, nn.GRUCell, nn.LSTMCell]
FED = sg.placeholder("x", ("N", "T", 3))


def by_hand(cell, x, state=None):
    """Outputs of steps one by one, and the last state."""
    outputs = []
    for row in np.moveaxis(x, 1, 0):
        state = cell(row, state)
        outputs.append(np.asarray(state[0] if isinstance(state, tuple) else state))
    return np.stack(outputs, 1), state


def flat(state):
    return list(state) if isinstance(state, tuple) else [state]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("steps", [1, 4])
def test_a_named_length_is_one_loop(make, steps):
    cell, x = make(3, 5, key=KEYS[0]), RNG.standard_normal((2, steps, 3))
    outputs, state = cell.unroll(FED)
    program = sg.compile(FED, [outputs, *flat(state)])
    assert sum(bool(n.op.body) for n in program.graph.nodes) == 1
    expected, last = by_hand(cell, x)
    for a, b in zip(program(x), [expected, *flat(last)], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert [a.shape for a in program(x[:, :0])] == [(2, 0, 5), *[(2, 5)] * cell.states]
    # It goes on from a state, which broadcasts.
    _, half = cell.unroll(x)
    again, _ = cell.unroll(x, half)
    np.testing.assert_allclose(np.asarray(again), by_hand(cell, x, last)[0], rtol=1e-12)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("reverse", [False, True])
def test_packed_sequences(make, reverse):
    cell, x = make(3, 5, key=KEYS[0]), RNG.standard_normal((3, 6, 3))
    lengths = sg.placeholder("lengths", ("N",), "int32")
    outputs, state = cell.unroll(FED, lengths=lengths, reverse=reverse)
    loss = sg.sum(outputs**2) + sum(sg.sum(s) for s in flat(state))
    program = sg.compile([FED, lengths], [outputs, *flat(state), sg.grad(loss, FED)])
    counts = [6, 0, 4]
    outputs, *state, grad = program(x, np.array(counts, "int32"))
    for i, count in enumerate(counts):
        assert not outputs[i, count:].any()
        assert not grad[i, count:].any()
        alone = x[i : i + 1, :count]
        if count:
            expected, last = by_hand(cell, alone[:, ::-1] if reverse else alone)
            expected = expected[:, ::-1] if reverse else expected
            np.testing.assert_allclose(outputs[i : i + 1, :count], expected, rtol=1e-12)
            for a, b in zip(state, flat(last), strict=True):
                np.testing.assert_allclose(a[i], np.asarray(b)[0], rtol=1e-12)
        else:
            assert not any(s[i].any() for s in state)


def test_both_directions():
    first, second = nn.GRUCell(3, 4, key=KEYS[0]), nn.GRUCell(3, 4, key=KEYS[1])
    both, x = nn.Bidirectional(first, second), RNG.standard_normal((2, 5, 3))
    assert both.parameters()[0].name.startswith("first.")
    outputs, (last, begin) = both(FED)
    found = sg.compile(FED, [outputs, last, begin])(x)
    there, back = by_hand(first, x)[0], by_hand(second, x[:, ::-1])[0][:, ::-1]
    np.testing.assert_allclose(found[0], np.concatenate([there, back], 2), rtol=1e-12)
    np.testing.assert_allclose(found[1], there[:, -1], rtol=1e-12)
    np.testing.assert_allclose(found[2], back[:, 0], rtol=1e-12)


def test_less_is_kept():
    cell = nn.LSTMCell(3, 4, key=KEYS[0])
    x = sg.placeholder("x", (2, 100, 3))
    losses = [sg.sum(cell.unroll(x, keep=keep)[0] ** 2) for keep in ("all", "sqrt")]
    programs = [sg.compile(x, sg.grad(y, cell.parameters())) for y in losses]
    array = RNG.standard_normal(x.shape)
    for a, b in zip(*(p(array) for p in programs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    assert programs[1].plan.peak_bytes < programs[0].plan.peak_bytes


def test_a_sample():
    """A model that knows no chance: each token is the one after; and one that draws evenly."""

    def next_one(token, state):
        return sg.where(sg.arange(5) == ((token + 1) % 5)[:, None], 0.0, -np.inf), state + 1

    tokens, count = nn.sample(next_one, np.array([0, 3]), 0, 7, key=KEYS[0])
    assert np.asarray(tokens).tolist() == [[1, 2, 3, 4, 0, 1, 2], [4, 0, 1, 2, 3, 4, 0]]
    assert int(count) == 7
    even = nn.sample(lambda t, s: (np.zeros((400, 4)), s), np.zeros(400, int), (), 5, key=KEYS[1])
    counts = np.stack([np.bincount(row, minlength=4) for row in np.asarray(even[0]).T])
    assert (abs(counts - 100) < 45).all()
    assert len({tuple(row) for row in np.asarray(even[0])[:50]}) > 40


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: nn.RNNCell(3, 2, key=KEYS[0]).unroll(FED, lengths=[1.0]), "lengths are N ints"),
        (lambda: nn.LSTMCell(3, 2, key=KEYS[0]).unroll(FED, FED[:, 0, :2]), "the state is a pair"),
        (lambda: nn.Bidirectional(nn.RNNCell, nn.RNNCell), "two recurrent cells"),
    ],
)
def test_faults(made, words):
    with pytest.raises(sg.SymgradError, match=words):
        made()

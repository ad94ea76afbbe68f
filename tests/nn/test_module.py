"""`sg.nn.Module`: names, state, updates, training and use, and a backward of its own."""

import inspect
from copy import deepcopy

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import GradientError, GraphError, ShapeError, StateError, UnsupportedError
from tests.helpers import close, generator, same, value

nn, KEY = sg.nn, sg.random.key(0)
RNG = generator("module")
X, Y = RNG.normal(size=(7, 4)), RNG.normal(size=(7, 2))


class Block(nn.Module):
    def __init__(self, key):
        self.linear = nn.Linear(4, 4, key=key)
        self.gain = nn.parameter(np.ones(4))

    def forward(self, x):
        return sg.tanh(self.linear(x)) * self.gain


class Net(nn.Module):
    def __init__(self, key):
        first, second, last = sg.random.split(key, 3)
        self.blocks = [Block(first), Block(second)]
        self.heads = {"mean": nn.Linear(4, 2, key=last, bias=False)}
        self.activation = sg.relu

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.heads["mean"](self.activation(x))


PATHS = ["blocks.0.gain", "blocks.0.linear.weight", "blocks.0.linear.bias", "blocks.1.gain",
         "blocks.1.linear.weight", "blocks.1.linear.bias", "heads.mean.weight"]  # fmt: skip


# ---- names ----------------------------------------------------------------------------------


def test_variables_are_called_by_their_paths():
    net = Net(KEY)
    named = net.named_parameters()
    assert [path for path, _ in named] == PATHS
    assert [v.name for _, v in named] == PATHS
    assert {*net.parameters()} == {v for _, v in named} == {v for _, v in net.named_variables()}
    assert [path for path, _ in net.named_modules()] == [
        "", "blocks.0", "blocks.0.linear", "blocks.1", "blocks.1.linear", "heads.mean",
    ]  # fmt: skip
    assert repr(net.heads["mean"]) == "Linear(weight: float64[4, 2])"


def test_a_call_is_a_scope_of_the_modules_name():
    net = Net(KEY)
    y = net(X)
    assert y.origin.scope == ("Net", "heads.mean")
    tanh = next(n for n in sg.Graph([y]).nodes if n.op.name == "tanh")
    assert tanh.origin.scope == ("Net", "blocks.0")
    assert net.named("teacher")(X).origin.scope == ("teacher", "heads.mean")


def test_two_modules_in_one_program_may_have_names():
    teacher, student = (nn.Linear(4, 2, key=k) for k in sg.random.split(KEY))
    assert [p.name for p in (*teacher.parameters(), *student.parameters())] == [
        "weight", "bias", "weight", "bias",
    ]  # fmt: skip
    difference = sg.compile([], teacher(X) - student(X))()
    assert np.abs(difference).max() > 0.01
    teacher, student = (
        nn.Linear(4, 2, key=k).named(n) for k, n in zip(sg.random.split(KEY), "ab", strict=True)
    )
    sg.compile([], teacher(X) - student(X))()
    assert [p.name for p in student.parameters()] == ["b.weight", "b.bias"]


def test_two_parameters_of_one_name_are_refused_with_their_paths():
    class Own(nn.Module):
        def __init__(self):
            self.w = sg.variable("w", np.ones(3))

        def forward(self, x):
            return x * self.w

    twice = nn.Sequential(Own(), Own())
    for use in (twice.parameters, twice.state, lambda: twice(np.ones(3))):
        with pytest.raises(GraphError, match=r"layers.0.w and layers.1.w of Sequential .* 'w'"):
            use()


def test_a_variable_without_a_name_is_in_no_graph():
    layer = nn.Linear(4, 2, key=KEY)
    with pytest.raises(GraphError, match="ask it for its parameters"):
        sg.compile([], sg.sum(layer.weight))
    layer.parameters()
    sg.compile([], sg.sum(layer.weight))()
    with pytest.raises(GraphError, match="keeps it"):
        sg.ir.node.give_name(layer.weight, "other")


def test_what_is_shared_is_one():
    class Tied(nn.Module):
        def __init__(self):
            self.embed = nn.Embedding(5, 4, key=KEY)
            self.again = self.embed
            self.table = [self.embed.weight]

        def forward(self, numbers):
            return self.again(numbers) @ self.table[0].T

    net = Tied()
    assert [p for p, _ in net.named_parameters()] == ["table.0"]
    assert net(np.arange(5)).shape == (5, 5)
    net.parent = net
    assert len(net.parameters()) == 1, "a circle comes to an end"


# ---- state ----------------------------------------------------------------------------------


def test_state_is_read_and_written_by_name():
    net, other = Net(KEY), Net(sg.random.key(1))
    state = net.state()
    assert list(state) == PATHS
    other.load(state)
    same(value(other(X)), value(net(X)))
    state["blocks.0.gain"][:] = 7
    same(net.blocks[0].gain.value, np.ones(4))


def test_state_that_does_not_fit_changes_nothing():
    net = Net(KEY)
    before, state = net.state(), Net(sg.random.key(1)).state()
    del state["blocks.1.gain"]
    state |= {"more": np.ones(2), "blocks.0.gain": np.ones(3),
              "heads.mean.weight": np.ones((4, 2), "float32")}  # fmt: skip
    with pytest.raises(StateError) as caught:
        net.load(state)
    for words in (
        "nothing was changed", "blocks.1.gain is missing", "there is no more",
        "blocks.0.gain is float64[4], not float64[3]",
        "heads.mean.weight is float64[4, 2], not float32[4, 2]",
    ):  # fmt: skip
        assert words in str(caught.value)
    for name, array in net.state().items():
        same(array, before[name])


def test_a_checkpoint_of_a_module_and_its_optimiser(tmp_path):
    net = Net(KEY)
    loss = nn.mse_loss(net(X), Y)
    adam = sg.optim.Adam(net, lr=0.01)
    step = sg.compile([], loss, updates=adam.updates(loss))
    step()
    everything = [*net.named_variables(), *adam.variables]
    sg.save_state(tmp_path / "net.npz", everything)
    expected = [float(step()) for _ in range(3)]
    sg.load_state(tmp_path / "net.npz", everything)
    assert [float(step()) for _ in range(3)] == expected


def test_a_copy_has_variables_of_its_own():
    net = Net(KEY)
    target = deepcopy(net).named("target")
    step = sg.compile([], [net(X), target(X)], updates={net.blocks[0].gain: sg.zeros(4)})
    first, second = step()
    same(first, second)
    first, second = step()
    assert not np.array_equal(first, second)
    target.load(net.state())
    same(*step())


# ---- training and use -----------------------------------------------------------------------


class Noisy(nn.Module):
    def __init__(self):
        self.norm = nn.BatchNorm(4)
        self.drop = nn.Dropout(0.5, key=KEY)

    def forward(self, x):
        return self.drop(self.norm(x))


def test_training_is_a_choice_of_the_build():
    net = Noisy()
    assert [p.name for p in net.parameters()] == ["norm.scale", "norm.offset"]
    train = net(X)
    use = net.eval()(X)
    close(value(use), X / np.sqrt(1 + 1e-5), 1e-12)
    assert np.any(value(train) == 0)
    assert not net.norm.training
    assert net.train().norm.training


def test_a_module_in_two_programs():
    net, x = Noisy(), sg.placeholder("x", ("N", 4))
    first, second = net(x), net(x)
    other = net(x * 2)
    step = sg.compile([x], first, updates=net.updates(first))
    both = sg.compile([x], [first, second], updates=net.updates(first, second))
    used = sg.compile([x], net.eval()(x))
    mean = X.mean(0)
    step(X)
    close(net.norm.mean.value, 0.1 * mean, 1e-12)
    close(used(X), (X - 0.1 * mean) / np.sqrt(net.norm.variance.value + 1e-5), 1e-12)
    key = net.drop.key.value
    both(X)
    close(net.norm.mean.value, (1 - 0.9**3) * mean, 1e-12)
    expected = value(sg.random.split(sg.random.split(key, 1)[0], 1)[0])
    same(net.drop.key.value, expected)
    assert net.updates(other).keys() == net.updates(first).keys()
    assert net.updates(sg.sum(x)) == {}


def test_state_within_a_checkpoint_and_within_an_own_backward_is_updated():
    class Outer(nn.Module):
        def __init__(self):
            self.inner = Noisy()

        def forward(self, x):
            return self.inner(x)

    class Own(Outer):
        def backward(self, g):
            return g, None, None

    for net in (Outer(), Own()):
        x = sg.placeholder("x", ("N", 4))
        y = sg.checkpoint(net)(x) if type(net) is Outer else net(x)
        loss = sg.sum(y * y)
        updates = net.updates(loss)
        assert [v.name for v in updates] == ["inner.norm.mean", "inner.norm.variance",
                                             "inner.drop.key"]  # fmt: skip
        sg.compile([x], [loss, sg.grad(loss, x)], updates=updates)(X)
        close(net.inner.norm.mean.value, 0.1 * X.mean(0), 1e-12)
        used = sg.compile([x], net.eval()(x))(X)
        close(used, value(net.inner(X)), 1e-12)


# ---- a backward of its own ------------------------------------------------------------------


class TwoLayers(nn.Module):
    def __init__(self):
        first, second = sg.random.split(KEY)
        self.w1 = nn.parameter(sg.random.normal(first, (4, 5)))
        self.w2 = nn.parameter(sg.random.normal(second, (5, 2)))

    def forward(self, x):
        self.hidden = x @ self.w1
        self.save_for_backward(x)
        return sg.relu(self.hidden) @ self.w2


class Own(TwoLayers):
    def backward(self, g):
        (x,) = self.saved_tensors
        flow = (g @ self.w2.T) * (self.hidden > 0)
        return flow @ self.w1.T, x.T @ flow, sg.relu(self.hidden).T @ g


class Clamped(Own):
    def backward(self, g):
        (x,) = self.saved_tensors
        flow = sg.clip(g @ self.w2.T, 0, None)
        return flow @ self.w1.T, x.T @ flow, sg.relu(self.hidden).T @ g


def test_an_own_backward_replaces_the_derived_one():
    x, y = sg.placeholder("x", ("N", 4)), sg.placeholder("y", ("N", 2))
    found, counts = [], []
    for net in (TwoLayers(), Own()):
        loss = nn.mse_loss(net(x), y)
        wrt = [x, *net.parameters()]
        vectors = [sg.ones_like(w) for w in wrt]
        outputs = [loss, *sg.grad(loss, wrt), *sg.hvp(loss, wrt, vectors)]
        found.append(sg.compile([x, y], outputs)(X, Y))
        scopes = {n.origin.scope for n in sg.Graph([net(x)]).nodes if n.op.name == "matmul"}
        assert scopes == {(type(net).__name__,)}
        counts.append(len(sg.compile([x, y], outputs[:4]).plan.steps))
    for derived, own in zip(*found, strict=True):
        close(own, derived, 1e-12)
    assert counts[0] == counts[1], "the compiler sees through it"


def test_an_own_backward_is_checked_on_request():
    for net in (TwoLayers(), Own()):
        assert len(net.check_grads(X).verdicts) == 58
    with pytest.raises(AssertionError, match="wrong derivatives at order 1"):
        Clamped().check_grads(X)


def test_gradients_are_checked_in_float64_with_integers_beside():
    class Words(nn.Module):
        def __init__(self):
            self.embed = nn.Embedding(5, 3, key=KEY, dtype="float32")
            self.linear = nn.Linear(3, 1, key=KEY, dtype="float32")

        def forward(self, x, numbers):
            return self.linear(self.embed(numbers) * x)

    net = Words()
    assert net.check_grads(np.ones((4, 1), "float32"), np.array([0, 4, 2, 4])).kinks == []
    assert net.embed.weight.dtype == "float32"


@pytest.mark.parametrize(
    ("returns", "error", "words"),
    [
        (lambda s, g: g, GradientError, "1 gradients, not 3: .* for each of w1, w2"),
        (lambda s, g: (None, g, None), ShapeError, r"gradient of w1 is .* float64\[4, 5\]"),
        (lambda s, g: s.saved_tensors[1], IndexError, "out of range"),
    ],
)
def test_what_an_own_backward_gets_wrong(returns, error, words):
    net = type("Wrong", (TwoLayers,), {"backward": returns})()
    y = net(X)
    with pytest.raises(error, match=words):
        sg.grad(sg.sum(y), net.w1)


def test_saved_tensors_and_named_arguments():
    with pytest.raises(GradientError, match="nothing was saved"):
        _ = TwoLayers().saved_tensors
    with pytest.raises(UnsupportedError, match="give it x without names"):
        Own()(x=X)


def test_to_show_a_module_names_nothing():
    class Net(sg.nn.Module):
        def __init__(self):
            self.a = sg.nn.Linear(3, 3, key=sg.random.key(0))
            self.b = sg.nn.Linear(3, 3, key=sg.random.key(1))

        def forward(self, x):
            return self.b(self.a(x))

    net = Net()
    assert "weight: float64[3, 3]" in repr(net.a) + repr(net.b)
    net(sg.placeholder("x", ("N", 3)))
    assert [v.name for v in net.parameters()] == ["a.weight", "a.bias", "b.weight", "b.bias"]


def test_a_module_without_an_init_takes_no_arguments():
    class Plain(nn.Module):
        def forward(self, x):
            return x

    for make in (lambda: nn.Flatten(5, 7, bogus=3), lambda: Plain(3)):
        with pytest.raises(TypeError, match="takes no arguments"):
            make()
    assert str(inspect.signature(nn.Module)) == str(inspect.signature(nn.Flatten)) == "()"

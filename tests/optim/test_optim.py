"""Optimisers: what they take, what they refuse, and what they give `compile`."""

import gc
import math
import pickle

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import DtypeError, GradientError, GraphError, ShapeError, UnsupportedError
from tests.helpers import close, each, generator, same, value

optim, nn, KEY = sg.optim, sg.nn, sg.random.key(0)
METHODS = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "LBFGS"]
RNG = generator("optim")
X, Y = RNG.normal(size=(32, 5)), RNG.normal(size=(32, 1))


def net(dtype="float64"):
    first, second = sg.random.split(KEY)
    return nn.Sequential(
        nn.Linear(5, 16, key=first, dtype=dtype), sg.tanh, nn.Linear(16, 1, key=second, dtype=dtype)
    )


def trained(optimizer, loss, steps, *feeds):
    inputs = [n for n in sg.Graph([loss]).inputs if n.op.name == "placeholder"]
    step = sg.compile(inputs, loss, updates=optimizer.updates(loss))
    return [float(step(*feeds)) for _ in range(steps)]


@each("dtype", ["float32", "float64"])
@each("method", METHODS)
def test_each_method_trains_a_module_in_its_dtype(method, dtype):
    model = net(dtype)
    loss = nn.mse_loss(model(X.astype(dtype)), Y.astype(dtype))
    optimizer = getattr(optim, method)(model, lr=0.01 if method != "LBFGS" else 1.0)
    losses = trained(optimizer, loss, 60)
    assert losses[-1] < 0.9 * losses[0]
    assert {v.dtype.name for v in optimizer.variables} <= {dtype, "int64"}
    assert {v.name.split(".")[-2] for v in optimizer.variables} <= {method}


def test_lbfgs_is_quick_on_a_quadratic():
    matrix = np.diag(np.arange(1.0, 11)) + 0.1
    w = sg.variable("w", np.ones((2, 5)))
    flat = sg.reshape(w, -1)
    loss = flat @ (matrix @ flat)
    losses = trained(optim.LBFGS([w], lr=1.0), loss, 60)
    assert losses[-1] < 1e-12
    assert losses[-1] == losses[-2], "it stands still within the tolerance"


def test_a_rate_is_a_number_a_node_or_a_schedule():
    w = sg.variable("w", 0.0)
    rate, fed = sg.variable("rate", 0.5), sg.placeholder("fed", (), "float32")
    found = []
    for lr in (0.5, rate, fed, lambda step: 0.5 + 0.0 * step):
        w.value = 0.0
        feeds = [np.float32(0.5)] if lr is fed else []
        inputs = [fed] if feeds else []
        step = sg.compile(inputs, [], updates=optim.SGD([w], lr=lr).updates(3 * w))
        step(*feeds)
        found.append(float(w.value))
        if lr is rate:
            rate.value = 0.25
            step()
            assert float(w.value) == -2.25
    assert found == [-1.5] * 4


@each(
    "lr",
    [
        -0.1,
        np.nan,
        np.inf,
        10**400,
        True,
        None,
        sg.constant(-1.0),
        sg.variable("lr", np.nan),
        "fast",
    ],
)
@each("method", METHODS)
def test_a_rate_that_is_none_is_refused(method, lr):
    with pytest.raises(UnsupportedError, match="lr is a finite number from 0 on"):
        getattr(optim, method)([sg.variable("w", 1.0)], lr=lr)


@each(
    ("make", "error", "words"),
    [
        (
            lambda w: optim.SGD([w], 0.1, momentum=-1),
            UnsupportedError,
            "momentum is a finite",
        ),
        (lambda w: optim.SGD([w], 0.1, nesterov=True), UnsupportedError, "nesterov needs"),
        (lambda w: optim.Adam([w], betas=(0.9, 1.0)), UnsupportedError, "a beta .* below 1.0"),
        (lambda w: optim.SGD([w], sg.constant([0.1])), DtypeError, "lr is a real scalar"),
        (lambda w: optim.SGD([w, w], 0.1), GraphError, "listed twice"),
        (lambda w: optim.SGD([], 0.1), GraphError, "needs parameters"),
        (lambda w: optim.SGD([w + 1], 0.1), GraphError, "a variable of floats, not add"),
        (lambda w: optim.SGD({"w": w}, 0.1), GraphError, "a variable of floats, not 'w'"),
        (lambda w: optim.SGD([sg.variable("i", 1)], 0.1), GraphError, "a variable of floats"),
        (lambda w: optim.SGD([nn.parameter(1.0)], 0.1), GraphError, "has no name yet"),
        (lambda w: optim.Adam([sg.variable("z", 1j)]), UnsupportedError, "for real parameters"),
        (lambda w: optim.LBFGS([w], history=0), UnsupportedError, "from 1 on, not 0"),
        (lambda w: optim.SGD(w, 0.1), GraphError, r"write SGD\(net, …\) or SGD\(\[w, b\], …\)"),
        (lambda w: optim.Adam(None), GraphError, r"a module, or a list of variables, not None"),
        (lambda w: optim.Adam(nn.Sequential(sg.relu)), GraphError, r"Sequential\(\) has none"),
        (lambda w: optim.Adam([w], betas=0.9), UnsupportedError, r"two numbers, .* not 0\.9"),
        (lambda w: optim.Adam([w], betas=(0.9,)), UnsupportedError, "two numbers"),
        (lambda w: optim.Adam([w], betas=(1.0, 0.9)), UnsupportedError, "a beta .* not 1.0"),
        (lambda w: optim.SGD([w], 0.1, momentum=np.nan), UnsupportedError, "momentum .* not nan"),
        (lambda w: optim.SGD([w], 0.1, momentum=w), UnsupportedError, "momentum .* not 'w'"),
        (
            lambda w: optim.SGD([w], 0.1, weight_decay=-1),
            UnsupportedError,
            "decay .* not -1",
        ),
        (lambda w: optim.SGD([w], 0.1, clip_norm="a"), UnsupportedError, "clip_norm .* above 0"),
        (lambda w: optim.SGD([w], 0.1, clip_norm=0), UnsupportedError, "clip_norm .* above 0"),
        (
            lambda w: optim.SGD([w], 0.1, clip_value=True),
            UnsupportedError,
            "value .* not True",
        ),
        (lambda w: optim.SGD([w], 0.1).updates(None), GradientError, "a scalar node, not None"),
        (
            lambda w: sg.compile([], w, optim.SGD([w], 0.1)),
            GraphError,
            r"optimizer\.updates\(loss\)",
        ),
        (lambda w: optim.cosine(None, 3), UnsupportedError, "lr is .* not None"),
        (lambda w: optim.cosine(0.1, 2.5), UnsupportedError, "steps is a whole number"),
        (lambda w: optim.SGD([w], lambda s: None).updates(w), UnsupportedError, "schedule gives"),
        (lambda w: optim.LBFGS([w, sg.variable("h", np.float32(1))]), UnsupportedError, "one dtyp"),
        (lambda w: optim.SGD([w], 0.1, clip_norm=-1).updates(w), UnsupportedError, "above 0"),
        (lambda w: optim.SGD([w], 0.1).updates([w, w]), ShapeError, "2 gradients for 1"),
        (lambda w: optim.SGD([w], 0.1).updates([np.ones(2)]), ShapeError, "types differ"),
        (lambda w: optim.Optimizer([w], 0.1).updates(w), UnsupportedError, "define it"),
        (lambda w: optim.cosine(0.1, 0), UnsupportedError, "from 1 on"),
        (lambda w: optim.step_decay(-0.1, 5), UnsupportedError, "lr is a finite number"),
        (lambda w: optim.warm_up(5, float("nan")), UnsupportedError, "lr is a finite number"),
    ],
)
def test_what_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make(sg.variable("w", 1.0))


def test_a_parameter_on_which_the_loss_does_not_depend_is_named_by_its_path():
    model = net()
    model.unused = [nn.Linear(2, 1, key=KEY)]
    loss = nn.mse_loss(model(X), Y)
    with pytest.raises(GradientError, match=r"does not depend on 'unused\.0\.weight'"):
        optim.SGD(model, lr=0.1).updates(loss)
    updates = optim.SGD(model, lr=0.1).updates(loss, disconnected="zero")
    assert len(updates) == 6


def test_a_rate_that_becomes_nan_is_what_a_check_finds():
    w, rate = sg.variable("w", 1.0), sg.variable("rate", 0.1)
    step = sg.compile([], w * w, optim.Adam([w], rate).updates(w * w))
    rate.value = np.nan
    assert "'rate' float64" in str(step.check())
    assert w.value == 1


def test_gradients_may_be_given():
    w = sg.variable("w", [3.0, -4.0])
    (g,) = sg.grad(sg.sum(w * w), [w])
    sg.compile([], [], updates=optim.SGD([w], lr=0.5).updates([g]))()
    same(w.value, np.zeros(2))


def with_state():
    """A module with running means and a key, and its loss."""
    model = nn.Sequential(
        nn.Linear(5, 3, key=KEY), nn.BatchNorm(3), nn.Dropout(key=sg.random.key(1))
    )
    return model, sg.mean(model(X) ** 2)


def test_the_updates_have_what_else_changes_in_training():
    model, loss = with_state()
    updates = optim.SGD(model, lr=0.1).updates(loss)
    assert updates.keys() == {v for _, v in model.named_variables()}
    assert model.updates(loss).keys() == {*updates} - {*model.parameters()}


@pytest.mark.parametrize("listed", [list, lambda parameters: parameters[:2]])
def test_parameters_without_their_module_do_not_leave_its_state_behind(listed):
    states = []
    for given in (lambda model: model, lambda model: listed(model.parameters())):
        model, loss = with_state()
        trained(optim.SGD(given(model), lr=0.1), loss, 1)
        states.append(model.state())
    with_module, with_parameters = states
    fresh = with_state()[0].state()
    for name in ("layers.1.mean", "layers.1.variance", "layers.2.key"):
        same(with_parameters[name], with_module[name])
        assert (with_parameters[name] != fresh[name]).all()


def test_a_loss_and_parameters_are_enough_when_nobody_holds_the_module():
    def made():
        model, loss = with_state()
        return loss, model.parameters(), {v for _, v in model.named_variables()}

    loss, parameters, variables = made()
    gc.collect()
    assert optim.SGD(parameters, lr=0.1).updates(loss).keys() == variables


def test_state_that_is_not_in_training_is_left_alone():
    model, _ = with_state()
    head = nn.Linear(3, 1, key=KEY).named("head")
    loss = sg.mean(head(model.eval()(X)) ** 2)
    assert {*optim.SGD(head, lr=0.1).updates(loss)} == {*head.parameters()}


def test_two_optimisers_in_one_program():
    v, w = sg.variable("v", 1.0), sg.variable("w", 1.0)
    loss = v * v + w * w
    first, second = optim.Adam([v], 0.1), optim.Adam([w], 0.2)
    step = sg.compile([], loss, first.updates(loss) | second.updates(loss))
    step()
    close([float(v.value), float(w.value)], [0.9, 0.8], 1e-7)
    assert [u.name for u in first.variables] == ["v.Adam.mean", "v.Adam.square", "Adam.step"]
    named = optim.Adam([v], 0.1, name="slow")
    assert [u.name for u in named.variables] == ["v.slow.mean", "v.slow.square", "slow.step"]


def test_complex_parameters_descend():
    z = sg.variable("z", 3 + 4j)
    losses = trained(optim.SGD([z], lr=0.1, momentum=0.1), sg.abs(z - 1j) ** 2, 40)
    assert losses[-1] < 1e-6


def test_a_method_of_your_own():
    class SignDescent(optim.Optimizer):
        slots = ("last",)

        def rule(self, p, g, rate, last):
            return p - rate * sg.sign(g + last), g

    w = sg.variable("w", [3.0, -3.0])
    optimizer = SignDescent([w], lr=optim.step_decay(1.0, 1, factor=0.5))
    assert trained(optimizer, sg.sum(w * w), 3) == [18.0, 8.0, 4.5]
    assert [v.name for v in optimizer.variables] == ["w.SignDescent.last", "SignDescent.step"]


def test_arithmetic_is_part_of_the_program():
    model = net("float32")
    loss = nn.mse_loss(model(X.astype("float32")), Y.astype("float32"))
    step = sg.compile([], loss, updates=optim.Adam(model, lr=0.01).updates(loss))
    first = model.parameters()[0]
    assert "layers_0_weight_Adam_mean" in step.source
    ours = [n for n in step.raw.nodes if n.origin.scope[:1] == ("Adam",)]
    assert any(first in set(n.inputs) for n in ours)


# ---- schedules and clipping -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "steps", "expected"),
    [
        (optim.constant(0.3), [0, 9], [0.3, 0.3]),
        (optim.cosine(1.0, 4, end=0.2), [0, 2, 4, 9], [1.0, 0.6, 0.2, 0.2]),
        (optim.step_decay(1.0, 3), [0, 2, 3, 6], [1, 1, 0.1, 0.01]),
        (optim.warm_up(4, 1.0), [0, 1, 3, 4, 9], [0.25, 0.5, 1, 1, 1]),
        (optim.warm_up(2, optim.cosine(1.0, 2)), [0, 1, 2, 3, 4], [0.5, 1, 1, 0.5, 0]),
    ],
)
def test_schedules(schedule, steps, expected):
    close([float(value(sg.asarray(schedule(sg.constant(t))))) for t in steps], expected, 1e-12)


def test_clipping():
    grads = [sg.constant([3.0, 0.0]), sg.constant(np.float32([[-4.0]]))]
    small, large = optim.clip_by_norm(grads, 10), optim.clip_by_norm(grads, 1)
    close(value(small[0]), [3.0, 0.0])
    close(np.hypot(value(large[0])[0], value(large[1])[0, 0]), 1.0)
    assert [g.dtype.name for g in large] == ["float64", "float32"]
    same(value(optim.clip_by_value(grads, 2)[1]), np.float32([[-2.0]]))
    zeros = optim.clip_by_norm([sg.constant([0.0, 0.0])], 1)
    same(value(zeros[0]), np.zeros(2))


def test_a_schedule_that_branches_in_python_is_refused():
    w = sg.variable("w", np.zeros(1))
    for schedule in (lambda s: 0.1 if s < 3 else 0.01, lambda s: 0.1 * math.cos(s)):
        with pytest.raises(UnsupportedError, match=r"sg\.where"):
            sg.optim.SGD([w], lr=schedule).updates(sg.sum(w))
    for rate in (float("nan"), -1.0):
        with pytest.raises(UnsupportedError, match="what the schedule gives"):
            sg.optim.SGD([w], lr=lambda s, rate=rate: rate).updates(sg.sum(w))


def test_gradients_given_to_the_optimiser_of_a_module_update_its_state_too():
    net = sg.nn.Sequential(sg.nn.Linear(3, 2, key=sg.random.key(0)), sg.nn.BatchNorm(2))
    loss = sg.mean(net(sg.placeholder("x", ("N", 3))) ** 2)
    optimiser = sg.optim.SGD(net, lr=0.1)
    grads = sg.grad(loss, net.parameters())
    assert optimiser.updates(grads).keys() == optimiser.updates(loss).keys()


# ---- state that would stay as it is -----------------------------------------------------------


def noisy():
    keys = sg.random.split(sg.random.key(0))
    return sg.nn.Sequential(
        sg.nn.BatchNorm(3), sg.nn.Dropout(0.5, key=keys[0]), sg.nn.Linear(3, 1, key=keys[1])
    )


def test_a_module_that_was_called_for_use_is_told(recwarn):
    net, x = noisy(), sg.placeholder("x", ("N", 3))
    training = sg.mean(net(x) ** 2)
    sg.optim.SGD(net, 0.1).updates(training)
    in_use = sg.mean(net.eval()(x) ** 2)
    sg.optim.SGD(net, 0.1).updates(training)
    sg.optim.SGD(net.parameters(), 0.1).updates(in_use)
    assert not recwarn
    with pytest.warns(UserWarning, match=r"layers.0.mean, layers.0.variance, layers.1.key will"):
        sg.optim.SGD(net, 0.1).updates(in_use)


def test_a_loss_that_was_pickled_goes_on_updating_its_state(recwarn):
    net, x = noisy(), sg.placeholder("x", ("N", 3))
    net, loss = pickle.loads(pickle.dumps((net, sg.mean(net(x) ** 2))))
    assert sg.optim.SGD(net, 0.1).updates(loss).keys() == {v for _, v in net.named_variables()}
    assert not recwarn


def test_state_whose_update_is_not_in_the_graph_is_told():
    class Careless(sg.nn.Module):
        buffers = ("count",)

        def __init__(self):
            self.scale, self.count = sg.nn.parameter(np.ones(3)), sg.nn.parameter(0)

        def forward(self, x):
            y = x * self.scale
            return y, self.offer("count", lambda present, y: present + 1, y)

    net = Careless()
    with pytest.warns(UserWarning, match="count will stay as it is: .* what offer returned"):
        sg.optim.SGD(net, 0.1).updates(sg.mean(net(sg.placeholder("x", ("N", 3)))[0]))


def test_buffers_that_are_constant_are_no_matter(recwarn):
    class Shifted(sg.nn.Module):
        buffers = ("shift",)

        def __init__(self):
            self.scale, self.shift = sg.nn.parameter(np.ones(3)), sg.nn.parameter(np.ones(3))

        def forward(self, x):
            return x * self.scale + self.shift

    net = Shifted()
    sg.optim.SGD(net, 0.1).updates(sg.mean(net(sg.placeholder("x", ("N", 3)))))
    assert not recwarn


def test_modules_in_a_list_are_answered_with_their_parameters():
    net = sg.nn.Linear(2, 2, key=sg.random.key(0))
    for given in ([net, net], net.named_variables()):
        with pytest.raises(sg.GraphError, match=r"give \[\*a\.parameters\(\), \*b\.parameters"):
            sg.optim.Adam(given)

"""Where modules look for their parts, what they refuse to hold, and how copies are called."""

import pickle
from collections import OrderedDict, deque, namedtuple
from copy import deepcopy
from functools import partial

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import GraphError, ShapeError, UnsupportedError
from tests.helpers import same, value

nn, KEY = sg.nn, sg.random.key(0)
X = sg.placeholder("x", ("N", 3))
Pair = namedtuple("Pair", "left right")
OUTSIDE = nn.Linear(3, 3, key=KEY)


def layer():
    return nn.Linear(3, 3, key=KEY, bias=False)


class Holder(nn.Module):
    """Applies a function to what it holds."""

    def __init__(self, held, use=lambda held, x: x):
        self.held, self.use = held, use

    def forward(self, x):
        return self.use(self.held, x)


def paths(module):
    return [path for path, _ in module.named_parameters()]


@pytest.mark.parametrize(
    ("made", "use", "expected"),
    [
        (lambda: OrderedDict(a=layer()), lambda h, x: h["a"](x), ["a.weight"]),
        (lambda: Pair(layer(), [layer()]), lambda h, x: h.right[0](h.left(x)),
         ["0.weight", "1.0.weight"]),
        (lambda: layer().forward, lambda h, x: h(x), ["weight"]),
        (lambda: partial(layer()), lambda h, x: h(x), ["weight"]),
        (lambda: partial(lambda m, x, n: m(n(x)), layer(), n=layer()), lambda h, x: h(x),
         ["0.weight", "n.weight"]),
        (lambda: sg.checkpoint(layer()), lambda h, x: h(x), ["weight"]),
        (lambda: sg.vmap(sg.checkpoint(layer())), lambda h, x: h(x), ["weight"]),
        (lambda: {1, 2}, lambda h, x: x, []),
        (lambda: np.array([1, None], object), lambda h, x: x, []),
    ],
)  # fmt: skip
def test_parts_are_found(made, use, expected):
    net = Holder(made(), use)
    assert paths(net) == [f"held.{path}" for path in expected]
    net(X)
    net.check_grads(np.eye(3)[:2], order=1)


@pytest.mark.parametrize(
    "made",
    [
        lambda: {layer()},
        lambda: deque([layer()]),
        lambda: {"a": layer()}.values(),
        lambda: (layer() for _ in range(2)),
        lambda: map(Holder, [layer()]),
        lambda: [np.array([layer(), layer()])],
        lambda: {nn.parameter(np.ones(3))},
    ],
)
def test_what_has_no_places_is_refused(made):
    net = Holder(made())
    for use in (net.parameters, net.state, lambda: net(X)):
        with pytest.raises(GraphError, match=r"held.* is a .*; make it a list, a tuple or a dict"):
            use()


def test_a_list_that_holds_itself_is_refused():
    net, again = Holder([layer()]), [layer()]
    net.held.append({"inner": net.held})
    for use in (net.parameters, lambda: net(X)):
        with pytest.raises(GraphError, match=r"held\.1\.inner is a list that holds itself"):
            use()
    assert paths(Holder([again, again])) == ["held.0.0.weight"], "twice is not within itself"


def hiding(inner):
    """Layers that use a module which nobody finds in them."""
    scale, nested = sg.variable("scale", np.ones(3)), [lambda x: inner(x)]

    class Wrapped:
        def __call__(self, x):
            return inner(x)

    class Classwide(nn.Module):
        trunk = inner

        def forward(self, x):
            return self.trunk(x)

    return [
        lambda x: inner(x),
        lambda x: OUTSIDE(x),
        lambda x: x * scale,
        lambda x: {"y": inner(x)}["y"],
        lambda x, layer=inner: layer(x),
        lambda x: nested[0](x),
        Wrapped(),
        Classwide(),
    ]


@pytest.mark.parametrize("i", range(8))
def test_what_a_module_uses_and_does_not_have_is_refused(i):
    with pytest.raises(GraphError, match=r"uses '.*test_tree.py.* is no part of it, .* self.part"):
        nn.Sequential(layer(), hiding(layer())[i])(X)


def test_what_a_module_may_use():
    table, teacher, pool = layer(), layer().named("teacher"), nn.MaxPool(2)
    tied = nn.Sequential(table, lambda x: x @ table.weight.T)
    assert paths(tied) == ["layers.0.weight"]
    tied.check_grads(np.eye(3)[:2], order=1)
    assert paths(nn.Sequential(layer(), lambda x: pool(x))) == ["layers.0.weight"]
    layer()(layer()(X))  # both in a scope of one name
    nn.Sequential(layer(), lambda x: x - sg.stop_gradient(teacher(x)))(X)
    given = Holder(layer(), lambda held, x: held(x[0]) + x[1])
    given((X, teacher(X)))


@pytest.mark.parametrize(
    "made",
    [
        lambda m: np.ones((3, 3)),
        lambda m: [[1.0, 2.0, 3.0]] * 3,
        lambda m: 2.0,
        lambda m: sg.random.normal(KEY, (3, 3)),
        lambda m: m.weight * 2,
    ],
)
def test_values_do_not_take_the_place_of_a_variable(made):
    module = layer()
    before = module.weight
    with pytest.raises(GraphError, match=r"module.weight.value = array, or .* sg.nn.parameter"):
        module.weight = made(module)
    assert module.weight is before


def test_other_parts_take_the_place_of_a_variable():
    module, other = nn.Linear(3, 3, key=KEY), layer()
    for part in (nn.parameter(np.ones((3, 3))), other.weight.T, other, None):
        module.weight = nn.parameter(np.zeros((3, 3)))
        module.weight = part
        assert module.weight is part
    module.scale = 1.0
    module.scale = np.ones(3)


def test_an_error_says_in_which_module():
    net = nn.Sequential(nn.Linear(3, 4, key=KEY), nn.Residual(nn.Linear(4, 2, key=KEY)))
    with pytest.raises(ShapeError) as caught:
        net(X)
    assert caught.value.__notes__ == ["in the module Sequential, layers.1"]
    with pytest.raises(UnsupportedError, match="Empty has no forward; define"):
        type("Empty", (nn.Module,), {})()(X)


# ---- names of copies ------------------------------------------------------------------------


def test_a_copy_of_a_used_module_is_named_anew():
    net = nn.Sequential(layer(), sg.tanh, layer())
    first = net(X)
    before = sg.compile([X], first)
    target = deepcopy(net)
    same(sg.compile([X], first - target(X))(np.eye(3)), np.zeros((3, 3)))
    assert paths(target.named("target")) == ["layers.0.weight", "layers.2.weight"]
    assert [v.name for v in target.parameters()] == [f"target.{p}" for p in paths(target)]
    program = sg.compile([X], [first, target(X)])
    target.layers[0].weight.value = np.zeros((3, 3))
    found, zero = program(np.eye(3))
    same(found, before(np.eye(3)))
    same(zero, np.zeros((3, 3)))


def test_a_new_name_keeps_the_values_of_older_graphs():
    net = layer()
    program = sg.compile([X], net(X))
    net.named("first").named("second")
    assert [v.name for v in net.parameters()] == ["second.weight"]
    net.weight.value = np.ones((3, 3))
    same(program(np.eye(3)), np.ones((3, 3)))


def test_pickles_of_modules():
    for used in (False, True):
        net = nn.Sequential(layer(), sg.tanh, nn.Dropout(0.5, key=KEY), {"a": layer()}["a"])
        y = net(X) if used else None
        other = pickle.loads(pickle.dumps(net))
        assert paths(other) == ["layers.0.weight", "layers.3.weight"]
        same(value(other.eval()(np.eye(3))), value(net.eval()(np.eye(3))))
        assert y is None or (net.train().updates(y) and not other.updates(y))

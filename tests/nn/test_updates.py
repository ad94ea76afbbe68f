"""The updates that graphs carry: masks and next values, whatever was called or kept in a file."""

import gc
import pickle
import weakref
from copy import deepcopy

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import GradientError, GraphError, ParseError, UnsupportedError
from symgrad.ir.node import Variable, apply
from symgrad.ir.op import REGISTRY
from symgrad.ir.walk import topological
from symgrad.lowering.lower import lower
from symgrad.nn.updates import carried
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
    assert [len(v.cell.calls) for v in (drop.key, norm.mean, norm.variance)] == [1, 1, 1]
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
    y, z = sg.vmap(norm)(x), sg.placeholder("z", (2, "B", "N", 3))
    sg.Graph([y]).verify()
    batches = generator("vmap").normal(size=(4, 5, 3))
    each = np.stack([value(nn.BatchNorm(3)(b)) for b in batches])
    close(sg.compile([x], y)(batches), each, 1e-12)
    with pytest.raises(UnsupportedError, match=r"'mean' .* would be float64\[B, 3\]: within vmap"):
        norm.updates(y)
    (twice,) = {n.attr("batch") for n in updates_in(sg.Graph([sg.vmap(sg.vmap(norm))(z)]).nodes)}
    assert twice == 2
    assert norm.updates(sg.vmap(norm.eval())(x)) == {}


# ---- updates are part of the graph ----------------------------------------------------------


def noisy():
    """A net with running means and a key, and its loss."""
    first, second = sg.random.split(KEY)
    net = nn.Sequential(nn.Linear(3, 4, key=first), nn.BatchNorm(4), nn.Dropout(0.5, key=second))
    return net, sg.mean(net(sg.placeholder("x", ("N", 3))) ** 2)


def trained(graph, steps=3):
    """The values of all variables after a few steps of training with the output of a graph."""
    (x,) = (v for v in graph.inputs if not isinstance(v, Variable))
    variables = [v for v in graph.inputs if v is not x]
    floats = [v for v in variables if v.name.endswith(("weight", "bias", "scale", "offset"))]
    step = sg.compile([x], graph.outputs, updates=sg.optim.SGD(floats, 0.1).updates(*graph.outputs))
    for i in range(steps):
        step(generator(f"batch {i}").normal(size=(5, 3)))
    return {v.name: v.value for v in variables}


def saved(graph, path):
    """A graph that went through a file, with the values that a file leaves out."""
    found = sg.Graph.load(graph.save(path / "graph.json"))
    for v, w in zip(found.inputs, graph.inputs, strict=True):
        if isinstance(v, Variable):
            v.value = w.value
    return found


def parsed(graph, path):
    """A graph that went through a text, with the values that a text leaves out."""
    found = sg.Graph.parse(graph.text(full=True))
    assert found == graph
    for v, w in zip(found.inputs, graph.inputs, strict=True):
        if isinstance(v, Variable):
            v.value = w.value
    return found


@pytest.mark.parametrize(
    "through",
    [
        saved,
        parsed,
        lambda graph, path: pickle.loads(pickle.dumps(graph)),
        lambda graph, path: sg.Graph([pickle.loads(pickle.dumps(graph.outputs[0]))], None),
        lambda graph, path: deepcopy(graph),
    ],
    ids=["saved", "parsed", "pickled", "pickled node", "copied"],
)
def test_a_graph_that_was_kept_goes_on_updating_its_state(through, tmp_path):
    graph = sg.Graph([noisy()[1]])
    other = through(graph, tmp_path)
    other.verify()
    before = {v.name: v.value for v in graph.inputs if isinstance(v, Variable)}
    expected, found = trained(graph), trained(other)
    assert found.keys() == expected.keys() == before.keys()
    assert {*found} >= {"layers.1.mean", "layers.1.variance", "layers.2.key"}
    for name, array in found.items():
        same(array, expected[name])
        assert (array != before[name]).any()


def updates_in(nodes):
    return [n for n in nodes if n.op.update]


@pytest.mark.parametrize("options", [{}, {"passes": ()}, {"memory_budget": 10**6}])
def test_a_program_that_is_not_told_to_update_does_nothing_for_it(options):
    net, loss = noisy()
    (x,) = (v for v in sg.Graph([loss]).inputs if v.name == "x")
    assert len(updates_in(sg.Graph([loss]).nodes)) == 3
    program = sg.compile([x], loss, **options)
    assert not updates_in(program.graph.nodes)
    assert updates_in(program.raw.nodes), "what was written is told as it was written"
    inputs = ["x", "layers.2.key", *(v.name for v in net.parameters())]
    assert sorted(v.name for v in program.graph.inputs) == sorted(inputs)
    assert len(program.graph.nodes) == len(topological(program.graph.outputs)), "nothing unread"
    assert "_next" not in program.source
    assert "layers.1.mean" not in program.source
    before = net.state()
    program(np.ones((4, 3)))
    raw = lower(sg.compile([x], loss, passes=()).graph, {"N": 4}, tiled=False)
    assert len(program.cost().before.steps) == len(raw.steps)
    for name, array in net.state().items():
        same(array, before[name])


def test_derivatives_go_through_an_update_as_if_it_were_not_there():
    norm, x = nn.BatchNorm(3, momentum=0.5), sg.placeholder("x", (5, 3))
    point = generator("derivatives").normal(size=(5, 3))
    center, spread = sg.mean(x, axis=0), sg.var(x, axis=0)
    plain = nn.batch_norm(x, norm.scale, norm.offset, mean=center, variance=spread)
    results = []
    for y in (norm(x), plain):
        loss = sg.sum(y**3)
        g = sg.grad(loss, x)
        flows = [g, sg.jvp(loss, x, x), sg.hvp(loss, x, x), sg.jacobian(y, x)]
        results.append(sg.compile([x], flows)(point))
    for one, other in zip(*results, strict=True):
        close(one, other, 1e-12)
    with pytest.raises(GradientError, match="does not depend on"):
        sg.grad(sg.sum(norm(x) ** 2), norm.mean)
    assert norm.updates(sg.grad(sg.sum(norm(x) ** 2), x)).keys() == {norm.mean, norm.variance}


def test_gradients_alone_update_once_what_a_checkpoint_computes_twice():
    states = []
    for wrap in (sg.checkpoint, lambda net: net):
        net, x = noisy()[0], sg.placeholder("x", ("N", 3))
        grads = sg.grad(sg.mean(wrap(net)(x) ** 2), net.parameters())
        updates = sg.optim.SGD(net, 0.1).updates(grads)
        sg.compile([x], [], updates=updates)(generator("gradients").normal(size=(5, 3)))
        states.append(net.state())
    assert states[0].keys() == states[1].keys()
    for name, array in states[0].items():
        close(array, states[1][name], 1e-12)


@pytest.mark.parametrize("kept", [deepcopy, lambda both: pickle.loads(pickle.dumps(both))])
def test_a_module_that_was_kept_with_a_graph_counts_its_new_calls_too(kept):
    norm, x = nn.BatchNorm(2), sg.placeholder("x", ("N", 2))
    norm, loss = kept((norm, sg.sum(norm(x))))
    (y,) = (n for n in sg.Graph([loss]).inputs if n.name == "x")
    both = [loss, norm(2 * y)]
    batch = generator("kept").normal(size=(5, 2))
    sg.compile([y], both, updates=norm.updates(*both))(batch)
    close(norm.mean.value, (0.09 + 0.2) * batch.mean(0), 1e-12)


def test_only_what_is_computed_is_updated():
    class Two(nn.Module):
        buffers = ("sums",)

        def __init__(self):
            self.sums = nn.parameter(np.zeros(()))
            self.norm = nn.BatchNorm(3)

        def forward(self, x, y):
            added = self.offer("sums", lambda present, y, x: present + sg.sum(x + y), y * 2, x * 3)
            return added, self.norm(x) + 0 * sg.sum(added), self.norm.updates(x)

    two, (x, y) = Two(), (sg.placeholder(n, (4, 3)) for n in "xy")
    added, normed, _ = two(x, y)
    assert two.updates(normed).keys() == {two.norm.mean, two.norm.variance}
    assert two.updates(added) == {}, "one of the two that the sum is made of is not computed"
    beside = added + nn.Sequential(two.norm)(x)
    assert two.sums not in two.updates(beside)


def test_the_present_value_is_that_of_the_update_alone():
    """What a witness reads of the same variable is what it read, in each call."""

    class Trace(nn.Module):
        buffers = ("seen",)

        def __init__(self):
            self.seen = nn.parameter(np.zeros(()))

        def forward(self, x):
            y = x + self.seen
            return self.offer("seen", lambda present, y: present * 10 + y, y)

    module, x = Trace(), sg.placeholder("x", ())
    module.seen.value = np.array(1.0)
    calls = module(x), module(x)
    sg.compile([x], list(calls), updates=module.updates(*calls))(2.0)
    assert module.seen.value == (1 * 10 + 3) * 10 + 3


def test_a_module_that_was_named_shares_the_state_of_its_older_graphs():
    norm, x = nn.BatchNorm(2), sg.placeholder("x", ("N", 2))
    older = norm(x)
    both = [older, norm.named("other")(x)]
    updates = norm.updates(*both)
    assert len(norm.updates(older)) == len(updates) == 2
    batch = generator("named").normal(size=(5, 2))
    sg.compile([x], both, updates=updates)(batch)
    close(norm.mean.value, 0.19 * batch.mean(0), 1e-12)


@pytest.mark.parametrize(
    ("operands", "attrs", "message"),
    [
        ("n9, n9, n12", "batch=0, call=0", "updates a variable, and .* is none"),
        ("n9, n1, n9", "batch=0, call=0", r"the next value of a variable float64\[N, 3\] is no"),
        ("n9, n3, n12", "batch=0, call=0", r"variable float64\[4\] is no uint64\[2\]"),
        ("n9, n0, n12", "batch=1, call=0", r"variable uint64\[2\] is no uint64\[2\]"),
        ("n9, n0, n12", "batch=0, call=-1", "counted from 0"),
        ("n9, n0, n12", "batch=0", "it wants 'call'"),
        ("n9, n0", "batch=0, call=0", "3 or more"),
    ],
)
def test_an_update_that_is_read_is_of_a_variable_and_of_its_type(operands, attrs, message):
    text = sg.Graph([noisy()[1]]).text(full=True)
    wrong = text.replace("(n9, n10, n12, batch=0, call=0)", f"({operands}, {attrs})")
    assert wrong != text
    with pytest.raises(ParseError, match=message):
        sg.Graph.parse(wrong)


def test_an_update_of_what_is_no_variable_is_found_by_verify():
    (node, *_) = updates_in(sg.Graph([noisy()[1]]).nodes)
    value_, present, following = node.inputs
    held = apply(REGISTRY.ops["optimization_barrier"], [present])
    sg.Graph([apply(node.op, [value_, held, following], {"call": 0, "batch": 0})]).verify()
    made = apply(node.op, [value_, following, following], {"call": 0, "batch": 0})
    with pytest.raises(GraphError, match="updates a variable"):
        sg.Graph([made]).verify()


# ---- calls are told apart -------------------------------------------------------------------


class Count(nn.Module):
    """It counts its calls, and adds up what it is given."""

    buffers = ("count", "total")

    def __init__(self):
        self.count, self.total = nn.parameter(0), nn.parameter(0.0)

    def forward(self, x):
        y = self.offer("count", lambda present, y: present + 1, x * 2)
        return self.offer("total", lambda present, y: present + sg.sum(y), y)


CALLS = {
    "in a row": lambda s, ck, x: ck(s)(ck(s)(ck(s)(x))),
    "in one checkpoint": lambda s, ck, x: ck(lambda a: s(s(s(a))))(x),
    "mixed": lambda s, ck, x: s(ck(s)(s(x))),
    "nested": lambda s, ck, x: ck(lambda a: ck(s)(s(a)))(s(x)),
    "captured": lambda s, ck, x: (lambda y: ck(lambda a: a * y + s(a * y)))(s(x))(s(x)),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_within_checkpoints_are_counted_as_those_without(name):
    states, x = [], sg.placeholder("x", (3,))
    for ck in (lambda f: f, sg.checkpoint):
        module = Count()
        y = CALLS[name](module, ck, x)
        slope = sg.grad(sg.sum(y * y), x)
        for outputs in ([y], [y, slope], [slope]):
            module.load({"count": np.array(0), "total": np.array(0.0)})
            updates = module.updates(*outputs)
            found = sg.compile([x], outputs, updates=updates)(np.arange(3.0))
            states += [*module.state().values(), *found]
    half = len(states) // 2
    for a, b in zip(states[:half], states[half:], strict=True):
        close(a, b, 1e-12)
    assert states[0] == 3


def test_modules_that_share_a_buffer_update_it_one_after_the_other():
    one, x = Count(), sg.placeholder("x", (3,))
    modules = [one, Count(), Count()]
    for other in modules[1:]:
        vars(other).update(count=one.count, total=one.total)
    net = nn.Sequential(*modules)
    y = net(x)
    sg.compile([x], y, updates=net.updates(y))(np.ones(3))
    assert (one.count.value, one.total.value) == (3, 3 * (2 + 4 + 8))
    y = [net(x) for _ in range(2)]
    sg.compile([x], y, updates=net.updates(*y))(np.ones(3))
    assert one.count.value == 3 + 6


def test_modules_that_share_a_key_drop_other_parts():
    first, second = nn.Dropout(0.5, key=KEY), nn.Dropout(0.5, key=KEY)
    alone = dropped(second(X))
    second.key = first.key
    pair = dropped(first(X), second(X))
    assert pair[0] == alone[0] != pair[1]


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("kept", [deepcopy, lambda both: pickle.loads(pickle.dumps(both))])
def test_a_copy_of_a_module_and_its_graph_may_be_called_on_the_same_line(kept, times):
    module, x = Count(), sg.placeholder("x", (3,))
    y = x
    for i in range(times + 1):
        y = module(y)
        if i < times:
            module, x, y = kept((module, x, y))
    sg.compile([x], y, updates=module.updates(y))(np.ones(3))
    assert module.count.value == times + 1


@pytest.mark.parametrize("through", [saved, parsed])
def test_calls_of_a_graph_that_was_kept_are_told_apart(through, tmp_path):
    module, x = Count(), sg.placeholder("x", (3,))
    loss = sg.sum(module(module(module(x))))
    graph = through(sg.Graph([loss, sg.grad(loss, x)]), tmp_path)
    (x,) = (v for v in graph.inputs if v.name == "x")
    updates = carried(*graph.outputs)
    sg.compile([x], [], updates=updates)(np.ones(3))
    assert {v.name: v.value for v in updates} == {"count": 3, "total": 3 * (2 + 4 + 8)}


def test_what_an_update_reads_of_the_variable_itself_is_its_present_value():
    class Own(Count):
        def forward(self, x):
            return self.offer("count", lambda present, y: self.count + 1, x * 2)

    module, x = Own(), sg.placeholder("x", (3,))
    y = module(module(x))
    sg.compile([x], y, updates=module.updates(y))(np.ones(3))
    assert module.count.value == 2


# ---- offers ---------------------------------------------------------------------------------


class Offering(nn.Module):
    """What it returns is a function of x and of what `offer` returned."""

    buffers = ("count",)

    def __init__(self, results, witness=lambda x: x * 2, buffer="count"):
        self.count, self.results = nn.parameter(0), results
        self.witness, self.buffer = witness, buffer

    def forward(self, x):
        y = self.witness(x)
        return self.results(y, self.offer(self.buffer, lambda present, y: present + 1, y))


class OwnBackward(Offering):
    def backward(self, g):
        return g * 2


@pytest.mark.parametrize("kind", [Offering, OwnBackward])
@pytest.mark.parametrize("wrap", [lambda f: f, sg.checkpoint, lambda f: nn.Sequential(f)])
def test_an_offer_that_the_results_are_not_made_of_is_refused(kind, wrap):
    x = sg.placeholder("x", (3,))
    with pytest.raises(GraphError, match=r"y = self.offer\('count', following, y\)") as caught:
        wrap(kind(lambda y, offered: y))(x)
    assert "test_updates.py" in str(caught.value)
    module = kind(lambda y, offered: offered)
    assert len(module.updates(wrap(module)(x))) == 1


@pytest.mark.parametrize(
    "results",
    [
        lambda y, offered: [y, {"second": (offered, None, 2.0)}],
        lambda y, offered: sg.checkpoint(lambda a: a + sg.sum(offered))(y),
        lambda y, offered: sg.stop_gradient(offered) + y,
        lambda y, offered: {offered},  # a set is not looked into
    ],
)
def test_an_offer_may_be_anywhere_in_the_results(results):
    Offering(results)(sg.placeholder("x", (3,)))


def test_an_offer_takes_arrays_and_numbers_and_names_a_variable():
    x = sg.placeholder("x", (3,))
    for number in (np.ones(3), 2.0):
        module = Offering(lambda y, offered: offered, lambda x, number=number: number)
        y = module(x) + x
        sg.compile([x], y, updates=module.updates(y))(np.ones(3))
        assert module.count.value == 1
    for buffer in ("counts", "buffer"):
        with pytest.raises(GraphError, match=rf"offer\('{buffer}', …\) .* names no variable"):
            Offering(lambda y, offered: offered, buffer=buffer)(x)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_dropout_that_draws_nothing_offers_nothing(rate):
    drop = nn.Dropout(rate, key=KEY)
    assert drop.updates(drop(sg.placeholder("x", (3,)))) == {}


@pytest.mark.parametrize("f", [sg.tanh, lambda y: sg.log(1 + sg.exp(y))], ids=["tanh", "softplus"])
@pytest.mark.parametrize("wrap", [lambda f: f, sg.checkpoint], ids=["plain", "checkpoint"])
def test_calls_stay_apart_where_the_normal_form_of_a_gradient_rewrites_them(f, wrap):
    module, x = Count(), sg.placeholder("x", (3,))
    y = wrap(module)(f(wrap(module)(f(x))))
    loss = sg.sum(f(y))
    first = sg.grad(loss, x)
    totals = []
    for outputs in ([loss], [first], [loss, first], [loss, sg.grad(sg.sum(first), x)]):
        module.load({"count": np.array(0), "total": np.array(0.0)})
        sg.compile([x], outputs, updates=module.updates(*outputs))(np.ones(3))
        assert module.count.value == 2
        totals.append(module.total.value)
    close(totals, [totals[0]] * 4, 1e-12)

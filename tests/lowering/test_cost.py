"""What a program costs: operations and bytes, counted by hand for a few programs."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.op import REGISTRY
from symgrad.ops.select import select


def costs(inputs, outputs, passes=(), **sizes):
    return sg.compile(inputs, outputs, passes=passes).cost(**sizes).after


def step_costs(*args, **options):
    return {s.step.name: s for s in costs(*args, **options).steps}


def test_a_product_of_matrices_is_2mnk():
    a, b = sg.placeholder("a", (7, "K"), "float32"), sg.placeholder("b", ("K", 3), "float32")
    (step,) = costs([a, b], a @ b, K=5).steps
    assert (step.flops, step.bytes_read, step.bytes_written) == (
        2 * 7 * 5 * 3, 4 * (7 * 5 + 5 * 3), 4 * 7 * 3
    )  # fmt: skip
    assert step.intensity == pytest.approx(210 / (4 * (35 + 15 + 21)))


def test_each_kind_of_op_counts_as_is_said():
    x = sg.placeholder("x", (4, 6))
    found = step_costs(
        [x],
        [
            sg.tanh(x),
            sg.sum(x, axis=0),
            sg.max(x),
            x > 0,
            sg.astype(x, "float32"),
            select(x > 1, x),
            sg.softmax(x),
            sg.argsort(x),
            sg.concat([x, x]),
        ],
    )
    flops = {
        name: found[name].flops
        for name in ("tanh", "sum", "max", "greater", "astype", "select", "argsort", "concat")
    }
    assert flops == {
        "tanh": 24, "sum": 24 - 6, "max": 23, "greater": 0, "astype": 0, "select": 0,
        "argsort": 0, "concat": 0,
    }  # fmt: skip
    assert found["greater"].bytes_written == 24
    assert found["max"].bytes_written == 0  # a scalar


def test_integers_are_no_floats():
    k = sg.placeholder("k", 5, "int32")
    assert step_costs([k], k * 2 + k)["multiply"].flops == 0


def test_an_operand_is_read_once_and_as_far_as_it_is_seen():
    x, b = sg.placeholder("x", (10, 4)), sg.placeholder("b", 4)
    assert step_costs([x], x * x)["multiply"].bytes_read == 8 * 40
    assert step_costs([x, b], x + b)["add"].bytes_read == 8 * 44
    wide = sg.exp(sg.broadcast_to(b, (10, 4)))
    assert step_costs([b], wide)["exp"].bytes_read == 8 * 4
    assert step_costs([x], sg.exp(x[::2]))["exp"].bytes_read == 8 * 20
    assert step_costs([x], x.T @ x)["matmul"].bytes_read == 8 * 40


def test_an_empty_array_and_a_scalar_cost_nothing():
    x, s = sg.placeholder("x", (0, 3)), sg.placeholder("s", ())
    for found in (costs([x], sg.exp(x)), costs([s], sg.exp(s))):
        assert found.bytes_moved == 0
        assert found.intensity == 0
    assert costs([x], sg.sum(x)).flops == 0


def test_a_fused_group_counts_its_outside_only():
    x, y = sg.placeholder("x", ("N",)), sg.placeholder("y", ("N",))
    program = sg.compile([x, y], sg.tanh(sg.exp(x) * y) * x)
    cost = program.cost(N=1000)
    ops = 4
    assert len(cost.after.steps) == ops
    assert {s.step.group for s in cost.after.steps} == {0}
    assert cost.after.bytes_moved == 8000 * (2 + 3 + 2 + 3)
    assert cost.after.bytes_fused == 8000 * (2 + 1)
    assert cost.before.bytes_fused == cost.before.bytes_moved == cost.after.bytes_moved
    assert cost.after.flops == cost.before.flops == ops * 1000


def test_what_a_group_shares_with_others_is_written_once():
    x = sg.placeholder("x", (200, 200))
    e = sg.exp(x) + 1.0
    found = sg.compile([x], [sg.tanh(e * x), e @ x]).cost().after
    n = 8 * 200 * 200
    assert found.bytes_fused == n * (1 + 2) + n * 3  # the group; the product


def net(size=64):
    x, y = sg.placeholder("x", ("N", 1000), "float32"), sg.placeholder("y", ("N", 10), "float32")
    w1 = sg.variable("w1", np.ones((1000, 100), "float32"))
    w2 = sg.variable("w2", np.ones((100, 10), "float32"))
    loss = sg.sum((sg.relu(x @ w1) @ w2 - y) ** 2)
    dw1, dw2 = sg.grad(loss, [w1, w2])
    return sg.compile([x, y], loss, updates={w1: w1 - 1e-6 * dw1, w2: w2 - 1e-6 * dw2})


def test_the_optimiser_makes_nothing_dearer():
    cost = net().cost(N=64)
    for name in ("flops", "bytes_read", "bytes_written", "bytes_moved", "bytes_fused"):
        assert getattr(cost.after, name) <= getattr(cost.before, name), name
    products = 2 * 64 * 1000 * 100 * 2 + 3 * 2 * 64 * 100 * 10
    assert products < cost.after.flops < 1.01 * products
    assert cost.after.bytes_fused < cost.before.bytes_moved


def test_it_holds_for_the_sizes_asked_for_and_changes_nothing():
    program = net()
    program(np.zeros((3, 1000), "float32"), np.zeros((3, 10), "float32"))
    shown = program.source
    assert program.cost().after.plan.sizes == {"N": 3}
    assert program.cost(N=8).after.plan.sizes == {"N": 8}
    assert program.source == shown
    with pytest.raises(sg.FeedError, match="sizes are wanted for N"):
        program.cost(M=8)


def test_it_prints_as_a_table():
    cost = net().cost(N=64)
    lines = str(cost).splitlines()
    assert lines[0] == "cost for N = 64"
    (first,) = [line for line in lines if line.split()[:2] == ["0", "matmul"]]
    assert first.split()[2:5] == ["12,800,000", "656,000", "25,600"]
    assert "test_cost.py:" in first
    (moved,) = [line for line in lines if line.startswith("bytes moved by the steps")]
    assert moved.split()[-2:] == [f"{cost.before.bytes_moved:,}", f"{cost.after.bytes_moved:,}"]
    assert len(str(cost.before).splitlines()) == 1 + len(cost.before.steps)


class Twice(sg.NumpyFunction):
    def forward(self, x):
        return x + x

    def backward(self, g):
        return g + g


def test_what_a_users_kernel_computes_is_not_counted_and_it_says_so():
    x = sg.placeholder("x", 5)
    cost = sg.compile([x], Twice()(x) * 2.0).cost()
    assert cost.after.uncounted != ()
    assert "not counted: what" in str(cost)
    assert "?" in str(cost.after)


def test_every_op_of_our_own_can_be_counted():
    """What is costly and not elementwise says by `flops` what it takes."""
    for op in REGISTRY.every().values():
        known = op.flops is not None or op.elementwise or op.combiner or not op.expensive
        assert known or op.opaque or op.piecewise_constant, f"{op.name} needs flops="

"""Functions of the family of softmax that share their parts, held to the kernels they replace."""

import itertools

import numpy as np

import symgrad as sg
from tests.helpers import each

FAMILY = {
    "softmax": lambda x, axis: sg.softmax(x, axis=axis),
    "log_softmax": lambda x, axis: sg.log_softmax(x, axis=axis),
    "logsumexp": lambda x, axis: sg.logsumexp(x, axis=axis),
    "logsumexp, kept": lambda x, axis: sg.logsumexp(x, axis=axis, keepdims=True),
}
HOSTILE = np.array([0.0, -0.0, 1.0, 1000.0, -1000.0, np.inf, -np.inf, np.nan])


@each("dtype", ["float32", "float64"])
@each("axis", [0, 1, (0, 1)])
@each("names", list(itertools.combinations(FAMILY, 2)), ids=" and ".join)
def test_what_is_shared_is_what_the_kernels_give(names, axis, dtype):
    x = sg.placeholder("x", (3, 3), dtype)
    outputs = [FAMILY[name](x, axis) for name in names]
    program, raw = sg.compile(x, outputs), sg.compile(x, outputs, passes=())
    assert program.source.count(" exp(") == 1
    assert not {"softmax", "log_softmax", "logsumexp"} & {s.name for s in program.plan.steps}
    rng = np.random.default_rng(0)
    room = 4 * np.finfo(dtype).eps
    feeds = [rng.choice(HOSTILE, (3, 3)) for _ in range(200)]
    feeds += [rng.standard_normal((3, 3)) * 10 for _ in range(20)]
    for fed in feeds:
        array = fed.astype(dtype)
        for found, wanted in zip(program(array), raw(array), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=room, atol=room)


def test_alone_each_stays_a_kernel():
    x = sg.placeholder("x", (3, 4))
    for build in FAMILY.values():
        names = {s.name for s in sg.compile(x, build(x, 1)).plan.steps}
        assert names & {"softmax", "log_softmax", "logsumexp"}


def test_below_rounding_nothing_is_shared():
    x = sg.placeholder("x", (3, 4))
    program = sg.compile(x, [sg.softmax(x), sg.log_softmax(x)], exact="values")
    assert {"softmax", "log_softmax"} <= {s.name for s in program.plan.steps}

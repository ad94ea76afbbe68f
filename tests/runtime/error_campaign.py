"""Random programs whose error is known by mpmath: `python -m tests.runtime.error_campaign`."""

import sys
from math import inf

import mpmath
import numpy as np

import symgrad as sg
from tests.helpers import campaign

mpmath.mp.dps = 60
RATIOS = []
ONE = mpmath.mpf(1)


def each(function):
    return np.vectorize(function, otypes=[object])


def mp(value):
    return each(mpmath.mpf)(np.asarray(value, float))


def softmax(a):
    e = each(mpmath.exp)(a)
    return e / np.sum(e, axis=-1, keepdims=True)


def clip(a, low, high):
    return np.minimum(np.maximum(a, low), high)


# What is built, and the same for arrays of mpmath's numbers.
STEPS = (
    (lambda a, b: a + b, lambda a, b: a + b),
    (lambda a, b: a - b, lambda a, b: a - b),
    (lambda a, b: a * b, lambda a, b: a * b),
    (lambda a, b: a / (b * b + 0.5), lambda a, b: a / (b * b + ONE / 2)),
    (lambda a, b: a @ b, lambda a, b: np.dot(a, b)),
    (lambda a, b: sg.exp(-a * a), lambda a, b: each(mpmath.exp)(-a * a)),
    (lambda a, b: sg.log(1 + a * a), lambda a, b: each(mpmath.log)(1 + a * a)),
    (lambda a, b: sg.sqrt(a * a + 1) - sg.abs(a),
     lambda a, b: each(mpmath.sqrt)(a * a + 1) - abs(a)),
    (lambda a, b: sg.sin(a) + sg.cos(b), lambda a, b: each(mpmath.sin)(a) + each(mpmath.cos)(b)),
    (lambda a, b: sg.tanh(a), lambda a, b: each(mpmath.tanh)(a)),
    (lambda a, b: sg.sigmoid(a), lambda a, b: each(lambda x: 1 / (1 + mpmath.exp(-x)))(a)),
    (lambda a, b: sg.softplus(b), lambda a, b: each(lambda x: mpmath.log1p(mpmath.exp(x)))(b)),
    (lambda a, b: sg.relu(a) - b, lambda a, b: each(lambda x: max(x, 0))(a) - b),
    (lambda a, b: sg.maximum(a, b), lambda a, b: np.where(a > b, a, b)),
    (lambda a, b: sg.where(a > b, a * 2, b), lambda a, b: np.where(a > b, a * 2, b)),
    (lambda a, b: sg.sum(a, axis=0) * b, lambda a, b: np.sum(a, axis=0) * b),
    (lambda a, b: sg.mean(a, axis=1, keepdims=True) - b,
     lambda a, b: np.sum(a, axis=1, keepdims=True) / 3 - b),
    (lambda a, b: sg.softmax(a), lambda a, b: softmax(a)),
    (lambda a, b: sg.logsumexp(a, axis=1, keepdims=True) + b,
     lambda a, b: each(mpmath.log)(np.sum(each(mpmath.exp)(a), axis=1, keepdims=True)) + b),
    (lambda a, b: sg.expm1(a / 8), lambda a, b: each(mpmath.expm1)(a / 8)),
    (lambda a, b: sg.atan(a) * sg.erf(b), lambda a, b: each(mpmath.atan)(a) * each(mpmath.erf)(b)),
    (lambda a, b: sg.erfc(a), lambda a, b: each(mpmath.erfc)(a)),
    (lambda a, b: sg.cosh(a / 8) - 1, lambda a, b: each(mpmath.cosh)(a / 8) - 1),
    (lambda a, b: a**3 - b**2, lambda a, b: a**3 - b**2),
    (lambda a, b: sg.linalg.vector_norm(a, axis=1) * b,
     lambda a, b: each(mpmath.sqrt)(np.sum(a * a, axis=1)) * b),
    (lambda a, b: a[::-1].T + b, lambda a, b: a[::-1].T + b),
    (lambda a, b: sg.sort(a, axis=0), lambda a, b: np.sort(a, axis=0)),
    (lambda a, b: sg.std(a, axis=0) + b,
     lambda a, b: each(mpmath.sqrt)(np.sum((a - np.sum(a, axis=0) / 3) ** 2, axis=0) / 3) + b),
    (lambda a, b: sg.cumulative_sum(a, axis=0), lambda a, b: np.cumsum(a, axis=0)),
    (lambda a, b: sg.cummax(a, axis=1), lambda a, b: np.maximum.accumulate(a, axis=1)),
    (lambda a, b: a % 1.5, lambda a, b: a - ONE * 3 / 2 * each(mpmath.floor)(a * 2 / 3)),
    (lambda a, b: sg.clip(sg.clip(a, -1, 1), 0, b), lambda a, b: clip(clip(a, -1, 1), 0, b)),
    (lambda a, b: sg.hypot(sg.hypot(a, b), 1),
     lambda a, b: each(mpmath.sqrt)(a * a + b * b + 1)),
    (lambda a, b: (a > b) * a - sg.where(a > 0, sg.where(b > 0, b, a), 1),
     lambda a, b: np.where(a > b, a, 0 * a) - np.where(a > 0, np.where(b > 0, b, a), ONE)),
)  # fmt: skip


def check(seed):
    """Hold the bound and the estimate of one program against its error."""
    rng = np.random.default_rng(seed)
    dtype = ("float32", "float64")[seed % 2]
    inputs = [sg.placeholder(name, (3, 3), dtype) for name in "ab"]
    arrays = [
        (rng.standard_normal((3, 3)) * 2.0 ** rng.integers(-6, 5)).astype(dtype) for _ in "ab"
    ]
    nodes, exact = list(inputs), [mp(a) for a in arrays]
    for _ in range(rng.integers(1, 7)):
        build, compute = STEPS[rng.integers(len(STEPS))]
        i, j = rng.integers(len(nodes), size=2)
        nodes.append(sg.broadcast_to(build(nodes[i], nodes[j]), (3, 3)))
        exact.append(np.broadcast_to(compute(exact[i], exact[j]), (3, 3)))
    program = sg.compile(inputs, nodes[-1], exact=("bits", "rounding", "reals")[seed % 3])
    with np.errstate(all="ignore"):
        value = program(*arrays)
    if not np.isfinite(value).all():
        return
    true = max(map(abs, (exact[-1] - mp(value)).ravel()))
    found = program.error(*arrays, bound=True)
    assert found.bound >= true, f"{sg.Graph(nodes[-1:])}\n{found}\ntrue: {true}"
    assert found.bound < inf, found
    if true > 0:
        RATIOS.append(float(found.estimate / true))


def summary():
    """How far estimates are from errors, in the median and for nine of ten."""
    logs = np.abs(np.log10(np.maximum(RATIOS, 1e-30)))
    return f"{len(RATIOS)} with an error; estimates are off by a factor of " + ", ".join(
        f"{10 ** np.quantile(logs, q):.3g} ({q:.0%})" for q in (0.5, 0.9, 0.99)
    )


if __name__ == "__main__":
    try:
        campaign("tests.runtime.error_campaign", __doc__, check)
    finally:
        sys.stdout.write(summary() + "\n")

"""Random programs at their kinks: what `kinks` gives along a side is a fact of the function.

`python -m tests.autodiff.kinks_campaign --count 10000` writes random piecewise smooth programs,
each in several spellings, at points where many of their ops tie, and asserts for "right", "left"
and random directions d:

- g · d is the one-sided derivative of the program, by a difference, which is exact for the programs
  that are piecewise linear: their numbers are dyadic;
- g is the gradient at a point beside it where there is one, so that it is in the subdifferential;
- all spellings, both modes and all grades of passes agree.

Ties are compared in floats. A program with roots or other smooth functions is passed over, and
counted, if its spellings round some step to different numbers, so that one ties and one does not.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import symgrad as sg
from symgrad.ir.evaluate import evaluate

H = 2.0**-24
GRADES = ("bits", "values", "rounding", "reals")


def stacked(*us):
    return sg.stack(us)


def spread(k):
    """Weights that tell the results of sort and its kin apart."""
    return 2.0 ** -np.arange(k)


# Each function of scalars in several spellings.
LINEAR = {
    "add": (2, [lambda u, v: u + v, lambda u, v: sg.sum(stacked(u, v)), lambda u, v: u - (-v)]),
    "scale": (1, [lambda u: -2 * u, lambda u: u / -0.5, lambda u: -(u + u)]),
    "half": (1, [lambda u: 0.5 * u, lambda u: u / 2, lambda u: u - u / 2]),
    "shift": (1, [lambda u: u + 1, lambda u: 1.0 + u, lambda u: sg.subtract(u, -1)]),
}
KINKED = {
    "relu": (1, [
        sg.relu, lambda u: sg.maximum(0, u), lambda u: -sg.minimum(-u, 0), lambda u: u * (u > 0),
        lambda u: sg.where(u >= 0, u, 0), lambda u: (u + abs(u)) / 2, lambda u: u + sg.relu(-u),
        lambda u: sg.max(stacked(u, 0 * u)), lambda u: (sg.sign(u) + 1) * u / 2,
        lambda u: sg.clip(u, 0, None), lambda u: sg.cond(u > 0, lambda: u, lambda: 0 * u),
        lambda u: sg.heaviside(u, 0.5) * u, lambda u: sg.searchsorted(np.zeros(1), u) * u,
        lambda u: sg.where(sg.signbit(u), 0, u),
    ]),
    "abs": (1, [
        abs, lambda u: sg.maximum(u, -u), lambda u: sg.sqrt(u * u), lambda u: u * sg.sign(u),
        lambda u: sg.relu(u) + sg.relu(-u), lambda u: sg.vector_norm(stacked(u)),
        lambda u: sg.where(u > 0, u, -u), lambda u: sg.vector_norm(stacked(u, -u), ord=np.inf),
        lambda u: sg.hypot(u, 0 * u), lambda u: sg.copysign(u, 1.0),
    ]),
    "leaky": (1, [
        lambda u: sg.leaky_relu(u, 0.25), lambda u: sg.relu(u) - 0.25 * sg.relu(-u),
        lambda u: sg.maximum(u, 0.25 * u), lambda u: sg.where(u > 0, u, u / 4),
    ]),
    "hinge": (1, [
        lambda u: sg.clip(u, -1, 1), sg.hard_tanh, lambda u: sg.minimum(sg.maximum(u, -1), 1),
        lambda u: sg.relu(u + 1) - sg.relu(u - 1) - 1, lambda u: -sg.clip(-u, -1, 1),
        lambda u: sg.median(stacked(u, 0 * u - 1, 0 * u + 1)),
    ]),
    "nothing": (1, [
        lambda u: sg.relu(u) - sg.relu(-u), lambda u: sg.maximum(u, 0) + sg.minimum(u, 0),
        lambda u: sg.sign(u) * abs(u), lambda u: sg.where(u > 0, u, u), lambda u: +u,
        lambda u: sg.where(u > 0, u + 1, 0) - sg.where(u > 0, 1, -u),
        lambda u: u - 0.5 * sg.floor(u) + sg.floor(u) / 2,
    ]),
    "maximum": (2, [
        sg.maximum, lambda u, v: sg.maximum(v, u), sg.fmax, lambda u, v: -sg.minimum(-u, -v),
        lambda u, v: sg.max_at(0 * stacked(u) - np.inf, [0, 0], stacked(u, v))[0],
        lambda u, v: -sg.min_at(stacked(-u), 0, -v)[0],
        lambda u, v: sg.where(u > v, u, v), lambda u, v: sg.where(v >= u, v, u),
        lambda u, v: v + sg.relu(u - v), lambda u, v: (u + v + abs(u - v)) / 2,
        lambda u, v: sg.max(stacked(u, v)), lambda u, v: sg.sort(stacked(u, v))[1],
        lambda u, v: u * (u > v) + v * (u <= v), lambda u, v: sg.cummax(stacked(u, v))[1],
        lambda u, v: stacked(u, v)[sg.argmax(stacked(u, v))],
        lambda u, v: sg.max_pool(sg.reshape(stacked(u, v), (1, 1, 2)), 2)[0, 0, 0],
        lambda u, v: sg.fori(2, lambda i, c: sg.maximum(c, stacked(u, v)[i]), u),
    ]),
    "middle": (3, [
        lambda *u: sg.median(stacked(*u)), lambda *u: sg.sort(stacked(*u))[1],
        lambda a, b, c: sg.maximum(sg.minimum(a, b), sg.minimum(sg.maximum(a, b), c)),
        lambda *u: sg.quantile(stacked(*u), 0.5), lambda *u: sg.sum(stacked(*u)) - sg.max(
            stacked(*u)) - sg.min(stacked(*u)),
        lambda *u: sg.take_along_axis(stacked(*u), sg.argsort(stacked(*u)), axis=0)[1],
    ]),
    "sorted": (3, [
        lambda *u: sg.sum(sg.sort(stacked(*u)) * spread(3)),
        lambda *u: sg.sum(sg.sort(stacked(*u), descending=True) * spread(3)[::-1]),
        lambda *u: sg.sum(sg.flip(sg.top_k(stacked(*u), 3)[0]) * spread(3)),
    ]),
    "running": (3, [
        lambda *u: sg.sum(sg.cummax(stacked(*u)) * spread(3)),
        lambda *u: -sg.sum(sg.cummin(-stacked(*u)) * spread(3)),
        lambda a, b, c: a + sg.maximum(a, b) / 2 + sg.max(stacked(a, b, c)) / 4,
        lambda *u: sg.sum(sg.scan(lambda m, r: (sg.maximum(m, r),) * 2, u[0], stacked(*u))[1]
                          * spread(3)),
    ]),
    "size": (2, [
        lambda u, v: sg.vector_norm(stacked(u, v), ord=1), lambda u, v: abs(u) + abs(v),
        lambda u, v: sg.maximum(abs(u + v), abs(u - v)),
    ]),
    "largest": (3, [
        lambda *u: sg.vector_norm(stacked(*u), ord=np.inf), lambda *u: sg.max(abs(stacked(*u))),
        lambda a, b, c: sg.maximum(abs(a), sg.maximum(abs(b), abs(c))),
    ]),
}  # fmt: skip
SMOOTH = {
    "tanh": (1, [sg.tanh, lambda u: -sg.tanh(-u)]),
    "square": (1, [sg.square, lambda u: u * u, lambda u: abs(u) ** 2]),
    "times": (2, [lambda u, v: u * v / 4]),
    "length": (2, [
        lambda u, v: sg.vector_norm(stacked(u, v)), sg.hypot, lambda u, v: sg.sqrt(u * u + v * v),
        lambda u, v: abs(u + 1j * v),
    ]),
    "elu": (1, [lambda u: sg.nn.elu(u, alpha=0.5)]),
}  # fmt: skip


def program(rng, names, size, steps):
    """A random program: for each step a function and which earlier results it takes."""
    found = []
    for i in range(steps):
        name = str(rng.choice(names))
        arity = (LINEAR | KINKED | SMOOTH)[name][0]
        found.append((name, rng.integers(max(0, size + i - 5), size + i, arity).tolist()))
    return found


def spelled(rng, steps, x):
    """The program of a vector, each function in a random spelling."""
    known = [x[i] for i in range(x.shape[0])]
    for name, places in steps:
        spellings = (LINEAR | KINKED | SMOOTH)[name][1]
        known.append(spellings[rng.integers(len(spellings))](*(known[i] for i in places)))
    return known[-1] + 0.5 * known[-2] - 0.25 * known[-3], known


def value(node, x, at):
    return evaluate([node], {x: at})[0]


def generic(size):
    return 2 + np.sin(np.sqrt(11) * (1 + np.arange(size)))


def check(seed, spellings=2, compiled=False):
    """Assert what is said above of one program; false if it is passed over."""
    rng = np.random.default_rng(seed)
    smooth = rng.random() < 0.25
    size = int(rng.integers(1, 4))
    names = [*KINKED, *KINKED, *LINEAR, *(SMOOTH if smooth else ())]
    steps = program(rng, names, size, int(rng.integers(3, 9)))
    at = rng.choice([0.0, 0.0, 1.0, -1.0, 0.5], size)
    x = sg.placeholder("x", size)
    ys, known = zip(*(spelled(rng, steps, x) for _ in range(spellings)), strict=True)
    if smooth and len({(np.stack(evaluate(k, {x: at})) + 0.0).tobytes() for k in known}) > 1:
        return False
    weights = rng.integers(-2, 3, size).astype(float)
    sides = {
        "right": (np.ones(size), "right"),
        "left": (-np.ones(size), "left"),
        "along": (weights, ({x: weights}, {x: generic(size)})),
    }
    for side in [str(rng.choice(list(sides)))]:
        d, kinks = sides[side]
        found = []
        for y in ys:
            g = sg.grad(y, x, kinks=kinks, disconnected="zero")
            found.append(value(g, x, at))
            t = sg.jvp(y, x, d, kinks=kinks, disconnected="zero")
            close(value(t, x, at), found[-1] @ d, (side, steps, "the modes"))
        for g in found[1:]:
            close(g, found[0], (side, steps, "spellings"))
        slope = difference(ys[0], x, at, d, smooth)
        close(found[0] @ d, slope, (side, steps, "the difference"), 1e-5 if smooth else 1e-12)
        if not smooth:
            beside = at + 2.0**-18 * d + 2.0**-32 * generic(size) * (-1 if side == "left" else 1)
            near = value(sg.grad(ys[0], x, disconnected="zero"), x, beside)
            close(found[0], near, (side, steps, "the gradient beside it"))
        if compiled:
            g = sg.grad(ys[-1], x, kinks=kinks, disconnected="zero")
            for grade in GRADES:
                close(sg.compile([x], g, exact=grade)(at), found[0], (side, steps, grade), 1e-9)
    if seed % 5:
        return True
    right, left, split, part = (
        value(sg.grad(ys[0], x, kinks=k, disconnected="zero"), x, at)
        for k in ("right", "left", "split", 0.25)
    )
    close(split, (right + left) / 2, (steps, "split"))
    close(part, 0.25 * right + 0.75 * left, (steps, "a quarter"))
    return True


def close(found, wanted, what, tolerance=1e-9):
    if not np.allclose(found, wanted, rtol=tolerance, atol=tolerance):
        raise AssertionError(f"{what}: {found}, not {wanted}")


def difference(y, x, at, d, smooth):
    """The derivative from one side: exact for what is piecewise linear, of second order else."""
    if not smooth:
        return (value(y, x, at + H * d) - value(y, x, at)) / H
    h = 2.0**-16
    near, far = (value(y, x, at + k * h * d) - value(y, x, at) for k in (1, 2))
    return (4 * near - far) / (2 * h)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--count", type=int, default=1000)
    options.add_argument("--first", type=int, default=0)
    asked = options.parse_args()
    wrong, passed_over = 0, 0
    for seed in range(asked.first, asked.first + asked.count):
        try:
            passed_over += not check(seed, compiled=seed % 20 == 0)
        except Exception as error:
            wrong += 1
            sys.stdout.write(f"seed {seed}: {type(error).__name__}: {error}\n")
    sys.stdout.write(
        f"{asked.count} programs from {asked.first}, {wrong} wrong, {passed_over} passed over\n"
    )


if __name__ == "__main__":
    main()

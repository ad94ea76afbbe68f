"""What several test files need: samples, values, derivatives by other ways."""

import argparse
import functools
import inspect
import sys
import zlib
from traceback import format_exc

import numpy as np
import pytest

import symgrad as sg
from symgrad.autodiff.forward import push_forward
from symgrad.autodiff.reverse import is_differentiable
from symgrad.ir.evaluate import evaluate

STEP = 1e-6
TOLERANCE = 1e-6
only = ""  # pytest's option of that name


def each(names, cases, ids=None, parts=1):
    """Like `pytest.mark.parametrize`, but one test goes through the cases and tells which failed.

    A test of its own costs two milliseconds, which is more than most cases take. A fixture is one
    for all cases; a generator makes them when they are tested. With many slow cases there are
    `parts`, for several processors.
    """
    names = names.replace(",", " ").split() if isinstance(names, str) else [*names]

    @functools.cache
    def rows():
        found = [*cases]
        assert found, "there are no cases"
        assert not any(isinstance(case, type(pytest.param())) for case in found), "give tuples"
        return [(case,) if len(names) == 1 else tuple(case) for case in found]

    def label(i):
        if ids is None or callable(ids):
            return "-".join(map(ids or _name, rows()[i]))
        return str([*ids][i])

    def through_all(test):
        @functools.wraps(test)
        def check(**fixtures):
            part, failed = fixtures.pop("part") if parts > 1 else 0, []
            chosen = range(part, len(rows()), parts)
            if only and not (chosen := [i for i in chosen if only in label(i)]):
                pytest.skip(f"no case has {only!r} in its name")
            for i in chosen:
                try:
                    test(**dict(zip(names, rows()[i], strict=True)), **fixtures)
                except pytest.skip.Exception:
                    continue
                except (Exception, pytest.fail.Exception):
                    failed.append(f"{test.__name__}[{label(i)}]:\n{format_exc(limit=-3)}")
            assert not failed, f"{len(failed)} of {len(rows())} failed\n" + "\n".join(failed[:10])

        own = inspect.signature(test)
        kept = [p.replace(kind=p.KEYWORD_ONLY) for n, p in own.parameters.items() if n not in names]
        if parts > 1:
            kept.append(inspect.Parameter("part", inspect.Parameter.KEYWORD_ONLY))
            check = pytest.mark.parametrize("part", range(parts))(check)
        check.__signature__ = own.replace(parameters=kept)
        return check

    return through_all


def _name(value):
    return str(getattr(value, "__name__", None) or getattr(value, "name", None) or value)


def generator(name):
    """Random numbers that are the same in every run: seeded by a name."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def sample(rng, shape, dtype, interval=(-3.0, 3.0)):
    """An array of any dtype; numbers lie within the interval."""
    dtype, (low, high) = np.dtype(dtype), interval
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.kind in "iu":
        first = max(int(np.ceil(low)), 0 if dtype.kind == "u" else int(np.ceil(low)))
        return np.asarray(rng.integers(first, int(high) + 1, shape)).astype(dtype)
    values = np.asarray(rng.uniform(low, high, shape))
    if dtype.kind == "c":
        values = values + 1j * rng.uniform(low, high, shape)
    return np.asarray(values, dtype)


def value(node, feeds=None, sizes=None):
    """The value of one node."""
    return evaluate([node], feeds, sizes)[0]


def same(found, expected):
    """Assert equal dtype, shape and bytes, NaNs being equal."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected, strict=True)


def close(found, expected, tolerance=TOLERANCE):
    """Assert nearly equal, relative to the largest magnitude."""
    expected = np.asarray(expected)
    scale = 1 + np.max(np.abs(expected), initial=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


def differences(found, expected, room):
    """How arrays differ, in words: in shape, dtype, NaN, or by a part `room` of the largest."""
    y, z = np.asarray(found), np.asarray(expected)
    if (y.shape, y.dtype) != (z.shape, z.dtype):
        yield f"is {y.dtype}{y.shape}, not {z.dtype}{z.shape}"
    elif y.dtype.kind not in "fc":
        if not np.array_equal(y, z):
            yield f"is {y}, not {z}"
    elif not np.array_equal(np.isnan(y), np.isnan(z)):
        yield "has NaN in other places"
    else:
        largest = np.max(np.abs(z[np.isfinite(z)]), initial=0)
        away = np.nanmax(np.abs(np.where(y == z, 0, y - z)), initial=0)
        if away > room * largest:
            yield f"is away by {away:.1g}, where the largest element is {largest:.1g}"


def normal(rng, shape, dtype):
    """Normal numbers, of a float or complex dtype's precision or better."""
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return np.asarray(values)


def paired(flows, vectors):
    """What cotangents make of tangents: the sum of Re(conj(a) * b)."""
    return sum(np.vdot(a, b).real for a, b in zip(flows, vectors, strict=True))


def jvp(ys, tangents):
    """Tangents of `ys`, given tangents of some nodes. None is zero."""
    found = push_forward(ys, list(tangents), list(tangents.values()))
    return [found.get(y) for y in ys]


def difference(function, arrays, directions):
    """The central difference of a list of arrays along a direction, where one is given."""

    def moved(sign):
        return function(
            [
                a if d is None else a + sign * STEP * d
                for a, d in zip(arrays, directions, strict=True)
            ]
        )

    return [(up - down) / (2 * STEP) for up, down in zip(moved(1), moved(-1), strict=True)]


def check_derivatives(ys, xs, arrays, rng, held=()):
    """First derivatives of `ys` by `xs`, both ways, against differences and each other.

    Complex operands are moved in random complex directions; those `held` are not.
    """
    feeds = dict(zip(xs, arrays, strict=True))
    smooth = [x for x in xs if is_differentiable(x) and x not in set(held)]
    assert smooth
    steps = {x: normal(rng, feeds[x].shape, x.dtype) for x in smooth}
    weights = [normal(rng, np.shape(v), v.dtype) for v in evaluate(ys, feeds)]
    numbers = difference(
        lambda moved: evaluate(ys, dict(zip(xs, moved, strict=True))),
        arrays,
        [steps.get(x) for x in xs],
    )
    forward = jvp(ys, {x: sg.constant(steps[x]) for x in smooth})
    tangents = [
        np.zeros(n.shape) if t is None else value(t, feeds)
        for n, t in zip(numbers, forward, strict=True)
    ]
    for tangent, number in zip(tangents, numbers, strict=True):
        close(tangent, number)
    back = sg.vjp(ys, smooth, weights, disconnected="zero")
    for x, g in zip(smooth, back, strict=True):
        assert g.type == x.type
    flows = evaluate(back, feeds)
    close(paired(flows, [steps[x] for x in smooth]), paired(weights, tangents), 1e-10)


def check_second_derivatives(ys, xs, arrays, rng, held=()):
    """The gradient of the gradient against differences of the gradient."""
    smooth = [x for x in xs if is_differentiable(x) and x not in set(held)]
    loss = 0
    for y, found in zip(ys, evaluate(ys, dict(zip(xs, arrays, strict=True))), strict=True):
        weight = 1 - 0.5j if found.dtype.kind == "c" else 1
        loss = loss + sg.sum(sg.real(y * (weight * rng.uniform(0.5, 1.5, found.shape))))
    first = sg.grad(loss, smooth, disconnected="zero")
    check_derivatives(list(first), xs, arrays, rng, held)


class Doubled(sg.NumpyFunction):
    """Twice as much, by a function of a user's own."""

    def output_types(self, x):
        return x

    def forward(self, x):
        return 2 * x

    def backward(self, g):
        return 2 * g


def campaign(module, description, check, **others):
    """Check as many seeds as a command asks for, and print which failed.

    `others` are checks of other kinds, by the options that ask for them.
    """
    parser = argparse.ArgumentParser(f"python -m {module}", description=description)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--only", type=int)
    for name in others:
        parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args()
    check = next((other for name, other in others.items() if getattr(given, name)), check)
    if given.only is not None:
        check(given.only)
        return
    failed = 0
    for seed in range(given.first, given.first + given.count):
        try:
            check(seed)
        except Exception:
            failed += 1
            sys.stderr.write(f"--only {seed}\n{format_exc(limit=-3)[-1500:]}\n")
    sys.stdout.write(f"{given.count} seeds, {failed} failed\n")
    sys.exit(failed > 0)

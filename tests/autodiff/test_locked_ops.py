"""Every op with a kink or jump says what it is on a side: away from those it is what it was."""

import numpy as np

import symgrad as sg
from symgrad.ir.evaluate import evaluate
from tests.helpers import each
from tests.test_every_op import OPS, cases_of, has_cases, operand_dtypes, trial

KINKED = [o for o in OPS if o.locked is not None and has_cases(o)]


def test_every_kink_is_locked():
    assert not [o.name for o in OPS if o.kinks and o.locked is None]
    assert not [o.name for o in OPS if o.jumps and o.locked is None]


def on_sides(of):
    """The derivatives by what varies, in both modes, of a loss in which steps show, too."""
    results = [sg.astype(sg.real(y), "float64") for y in of.results]
    pairs = [(x, a) for x, a in zip(of.xs, of.arrays, strict=True) if x.tensor.is_inexact]
    xs, moved = [x for x, _ in pairs], [a for _, a in pairs]
    moving = 1 + sg.real(sg.sum(xs[0]))
    loss = sum(sg.sum(y * y) + sg.sum(y) * moving for y in results)
    for kinks in ("zero", "right", dict(pairs)):
        g = sg.grad(loss, xs, kinks=kinks, disconnected="zero")
        t = sg.jvp(loss, xs, moved, kinks=kinks, disconnected="zero")
        yield evaluate([*g, t], dict(zip(of.xs, of.arrays, strict=True)))


@each("op", KINKED, ids=lambda o: o.name)
def test_away_from_ties_a_side_makes_no_difference(op):
    for tried in cases_of(op)[:3]:
        dtype = "complex128" if op.trials.dtypes.startswith("complex") else "float64"
        of = trial(op, tried.shapes, operand_dtypes(op, dtype, len(tried.shapes)), tried.attrs)
        zero, *others = on_sides(of)
        for found in others:
            for a, b in zip(zero, found, strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12)

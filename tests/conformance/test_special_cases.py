"""The standard's special cases hold, evaluated at once and compiled: an optimiser can lose them."""

import math

import numpy as np
import pytest

import symgrad as sg
from tests.conformance.special_cases import COMPLEX_CASES, REAL_CASES, STATISTICAL

GRADES = ("bits", "values", "rounding")
# What NumPy misses, and so do we: it computes a complex expm1 by parts of which one overflows,
# divides by an infinite magnitude for a complex sign, and takes the square root where every
# exponent is 0.5. (-0.0 is 0.0 here.)
MISSED_PARTS = {
    "expm1": {(0, 0), *((a, b) for a in (-math.inf, math.inf) for b in (0, math.inf, "nan"))}
    | {("nan", 0)},
    "sign": {key for a in (-math.inf, math.inf) for key in ((a, "nan"), ("nan", a))},
}
MISSED_BESIDE_A_CONSTANT = {"pow": {(-math.inf, 0.5), (0, 0.5)}}

BINARY = [name for name, cases in REAL_CASES.items() if len(cases[0][0]) == 2]


def fits(found, wanted, signed):
    """Whether a number is one of these: nearly; an infinity, and a zero if `signed`, by sign."""
    if isinstance(wanted[0], bool):
        return bool(found) in wanted and np.asarray(found).dtype == bool
    for w in wanted:
        if math.isnan(w) and math.isnan(found):
            return True
        if math.isinf(w) and found == w:
            return True
        if w == 0 and found == 0 and (not signed or np.signbit(found) == np.signbit(w)):
            return True
        if w != 0 and math.isclose(found, w, rel_tol=1e-6):
            return True
    return False


def faults(found, cases, missed=(), signed=True):
    """The cases that do not hold, in words."""
    for value, (xs, parts) in zip(found, cases, strict=True):
        values = [value.real, value.imag] if len(parts) == 2 else [value]
        held = all(fits(v, p, signed) for v, p in zip(values, parts, strict=True))
        if not held and tuple("nan" if math.isnan(x) else x for x in xs) not in missed:
            yield f"{xs} gave {value}, not one of {parts}"


def checked(name, arrays, cases, missed=()):
    """Every way to evaluate a function gives what its cases say."""
    function = getattr(sg, name)
    ways = {"at once": np.asarray(function(*map(sg.asarray, arrays)))}
    xs = [sg.placeholder(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays)]
    for grade in GRADES:
        ways[grade] = sg.compile(xs, function(*xs), exact=grade)(*arrays)
    wrong = [
        f"{way}: {text}" for way, found in ways.items() for text in faults(found, cases, missed)
    ]
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", REAL_CASES)
def test_special_cases_of_real_numbers(name, dtype):
    cases = REAL_CASES[name]
    checked(name, [np.array(x, dtype) for x in zip(*(xs for xs, _ in cases), strict=True)], cases)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", COMPLEX_CASES)
def test_special_cases_of_complex_numbers(name, dtype):
    cases = COMPLEX_CASES[name]
    a, b = (np.array(x) for x in zip(*(xs for xs, _ in cases), strict=True))
    x = np.empty(a.shape, dtype)
    x.real, x.imag = a, b
    checked(name, [x], cases, MISSED_PARTS.get(name, ()))


@pytest.mark.parametrize("grade", GRADES)
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    "name", [name for name, cases in REAL_CASES.items() if len(cases[0][0]) == 2]
)
def test_special_cases_beside_a_constant(name, place, grade):
    """Rules look for constants: x + 0, x**0.5. The sign of a zero is theirs from `values` on."""
    function = getattr(sg, name)
    x = sg.placeholder("x", ("N",))
    by_constant = {}
    for xs, parts in REAL_CASES[name]:
        key = repr(xs[place]), math.copysign(1, xs[place])
        by_constant.setdefault(key, (xs[place], []))[1].append((xs, parts))
    missed = MISSED_BESIDE_A_CONSTANT.get(name, ())
    for value, cases in by_constant.values():
        node = function(*((value, x) if place == 0 else (x, value)))
        found = sg.compile(x, node, exact=grade)(np.array([xs[1 - place] for xs, _ in cases]))
        assert not [*faults(found, cases, missed, signed=grade == "bits")]


@pytest.mark.parametrize("size", ["N", None])
@pytest.mark.parametrize(("name", "elements", "options", "wanted"), STATISTICAL)
def test_special_cases_of_statistics(name, elements, options, wanted, size):
    function, array = getattr(sg, name), np.array(elements)
    x = sg.placeholder("x", size or len(elements))
    ways = [function(array, **options)]
    ways += [sg.compile(x, function(x, **options), exact=grade)(array) for grade in GRADES]
    for found in ways:
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


def test_what_numpy_misses_it_still_misses():
    """What is left out above is left out for a reason that lasts."""
    with np.errstate(all="ignore"):
        assert math.isnan(np.power(np.array([-math.inf]), 0.5)[0])
        assert math.isnan(np.expm1(np.array([complex(math.inf, 0)]))[0].imag)
        assert np.sign(np.array([complex(math.inf, math.nan)]))[0] == 1

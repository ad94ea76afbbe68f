"""The standard's special cases hold, evaluated at once and compiled: an optimiser can lose them."""

import math
import runpy

import numpy as np
import pytest

import symgrad as sg
from tests.conformance.special_cases import COMPLEX_CASES, REAL_CASES, STATISTICAL
from tests.helpers import each

GRADES = ("bits", "values", "rounding")
# What NumPy misses, and so do we: it takes the square root where every exponent is 0.5. (-0.0 is
# 0.0 here.)
MISSED_BESIDE_A_CONSTANT = {"pow": {(-math.inf, 0.5), (0, 0.5)}}

FLOOR_DIVIDE = REAL_CASES["floor_divide"]
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


def checked(name, arrays, cases):
    """Every way to evaluate a function gives what its cases say."""
    function = getattr(sg, name)
    ways = {"at once": np.asarray(function(*map(sg.asarray, arrays)))}
    xs = [sg.placeholder(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays)]
    for grade in GRADES:
        ways[grade] = sg.compile(xs, function(*xs), exact=grade)(*arrays)
    wrong = [f"{way}: {text}" for way, found in ways.items() for text in faults(found, cases)]
    assert not wrong, "\n".join(wrong[:20])


@each("dtype", ["float32", "float64"])
@each("name", REAL_CASES)
def test_special_cases_of_real_numbers(name, dtype):
    cases = REAL_CASES[name]
    checked(name, [np.array(x, dtype) for x in zip(*(xs for xs, _ in cases), strict=True)], cases)


@each("dtype", ["complex64", "complex128"])
@each("name", COMPLEX_CASES)
def test_special_cases_of_complex_numbers(name, dtype):
    cases = COMPLEX_CASES[name]
    a, b = (np.array(x) for x in zip(*(xs for xs, _ in cases), strict=True))
    x = np.empty(a.shape, dtype)
    x.real, x.imag = a, b
    checked(name, [x], cases)


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


@each("size", ["N", None])
@each(("name", "elements", "options", "wanted"), STATISTICAL)
def test_special_cases_of_statistics(name, elements, options, wanted, size):
    function, array = getattr(sg, name), np.array(elements)
    x = sg.placeholder("x", size or len(elements))
    ways = [function(array, **options)]
    ways += [sg.compile(x, function(x, **options), exact=grade)(array) for grade in GRADES]
    for found in ways:
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_divmod_is_the_quotient_and_the_remainder(dtype):
    a, b = (np.array(x, dtype) for x in zip(*(xs for xs, _ in FLOOR_DIVIDE), strict=True))
    with np.errstate(all="ignore"):
        rest = np.remainder(a, b)
    x, y = (sg.placeholder(name, v.shape, dtype) for name, v in (("x", a), ("y", b)))
    for exact in GRADES:
        q, r, first, second = sg.compile([x, y], [x // y, x % y, *divmod(x, y)], exact=exact)(a, b)
        for found, wanted in ((first, q), (second, r), (r, rest)):
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


def test_the_slope_of_a_remainder_that_is_the_divisor_itself():
    """The quotient that goes with a remainder is NumPy's: 1 % -inf is -inf, which is x2."""
    a, b = np.array([1.0, -2.0, 1.0, 7.0, -7.0]), np.array([-math.inf, math.inf, math.inf, 2, 2])
    x, y = sg.placeholder("x", 5), sg.placeholder("y", 5)
    for rest in (x % y, divmod(x, y)[1]):
        by_x, by_y = sg.compile([x, y], sg.grad(sg.sum(rest), [x, y]))(a, b)
        np.testing.assert_array_equal(by_x, np.ones(5))
        np.testing.assert_array_equal(by_y, [1, 1, 0, -3, 4])


def test_a_saved_program_gives_the_same_bits(tmp_path):
    parts = (0.0, -0.0, 0.5, -3.0, math.inf, -math.inf, math.nan)
    z = np.array([complex(a, b) for a in parts for b in parts])
    a, b = z.real.copy(), z.imag.copy()
    inputs = [sg.placeholder(name, v.shape, v.dtype) for name, v in (("z", z), ("a", a), ("b", b))]
    u, x, y = inputs
    program = sg.compile(inputs, [sg.expm1(u), sg.tanh(u), sg.sign(u), x // y, *divmod(x, y)])
    program.save_source(tmp_path / "step.py")
    with np.errstate(all="ignore"):
        saved = runpy.run_path(str(tmp_path / "step.py"))["step"](z, a, b)
    for found, wanted in zip(saved, program(z, a, b), strict=True):
        assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes()


def test_what_numpy_misses_it_still_misses():
    """What is left out above, and what kernels mend, is so for a reason that lasts."""
    with np.errstate(all="ignore"):
        assert math.isnan(np.power(np.array([-math.inf]), 0.5)[0])
        assert math.isnan(np.floor_divide(math.inf, 2.0))
        assert np.floor_divide(1.0, -math.inf) == -1
        assert math.isnan(np.expm1(np.array([complex(math.inf, 0)]))[0].imag)
        assert np.signbit(np.tanh(np.array([complex(math.inf, 3)]))[0].imag)
        assert np.sign(np.array([complex(math.inf, math.nan)]))[0] == 1

"""The parts of functions: polynomials, sums and products with their errors, exponents.

A pair `(high, low)` stands for high + low, with low below half a unit in the last place of high.
The functions are written once, for both floats. `short` says that a float64 is only on its way to
a float32, so that what corrects its last bits can be left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from symgrad.native import coefficients
from symgrad.native.vectors import Operand, Value

Pair: TypeAlias = tuple[Value, Value]
INF, NAN = math.inf, math.nan


class Format(NamedTuple):
    """How the floats of a kind are made up, and numbers that depend on it.

    `least` and `most` are where exp has become 0 and inf; `round` is the number that rounds to an
    integer what is added to it.
    """

    integer: str
    mantissa: int
    bias: int
    ln2: tuple[float, ...]
    least: float
    most: float
    round: float
    tiny: float


FORMATS: Mapping[str, Format] = {
    "f4": Format("i4", 23, 127, coefficients.LN2_F4, -120.0, 120.0, 1.5 * 2.0**23, 2.0**-126),
    "f8": Format("i8", 52, 1023, coefficients.LN2, -800.0, 800.0, 1.5 * 2.0**52, 2.0**-1022),
}


def polynomial(
    name: str, x: Value, short: bool = False, *, without_last: int = 0, square: Value | None = None
) -> Value:
    """A fitted polynomial of x by Horner's rule: see tools/fit_functions.py.

    It lacks so many of its lowest terms as `without_last` says, and is divided by their power of x.
    With the `square` of x it is made of its even and its odd terms, side by side: in half the time
    where nothing else is to be done meanwhile.
    """
    known = coefficients.POLYNOMIALS[name, "f4" if short else x.kind]
    known = known[: len(known) - without_last]
    if square is None:
        return _horner(known, x)
    odd, even = known[-2::-2][::-1], known[::-2][::-1]
    return x.code.fma(_horner(odd, square), x, _horner(even, square))


def _horner(known: Sequence[float], x: Value) -> Value:
    first, *rest = known
    found = x.code.constant(x.kind, first)
    for c in rest:
        found = x.code.fma(found, x, c)
    return found


def two_sum(a: Value, b: Value) -> Pair:
    """a + b and its error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def quick_sum(a: Operand, b: Value) -> Pair:
    """a + b and its error, where a is 0 or not smaller than b (Dekker)."""
    a = b.code.as_value(a, b.kind)
    total = a + b
    return total, b - (total - a)


def product(a: Value, b: Operand) -> Pair:
    """a * b and its error."""
    b = a.code.as_value(b, a.kind)
    found = a * b
    return found, a.code.fma(a, b, -found)


def absolute(x: Value) -> Value:
    """The absolute value of a float."""
    return x.code.call("fabs", x)


def copysign(x: Operand, sign: Value) -> Value:
    """The magnitude of one with the sign of the other."""
    return sign.code.call("copysign", sign.code.as_value(x, sign.kind), sign)


def root(x: Value) -> Value:
    """The square root, rounded as IEEE 754 says."""
    return x.code.call("sqrt", x)


def clipped(x: Value, low: float, high: float) -> Value:
    """x, but not below or above; a NaN stays."""
    x = x.code.select(x < low, low, x)
    return x.code.select(x > high, high, x)


def nearest(x: Value, factor: float = 1.0) -> tuple[Value, Value]:
    """The nearest integer to a multiple of a float that is not large, as a float and an integer.

    It is read from the bits of a sum, which a NaN does not make undefined.
    """
    form = FORMATS[x.kind]
    shifted = x + form.round if factor == 1.0 else x.code.fma(x, factor, form.round)
    base = int(form.round).bit_length() - 1 + form.bias
    bits = shifted.reinterpreted(form.integer) - ((base << form.mantissa) | 1 << form.mantissa - 1)
    return shifted - form.round, bits


def as_float(k: Value) -> Value:
    """An integer that is not large as a float of its size, by its bits."""
    kind = f"f{k.kind[1:]}"
    form = FORMATS[kind]
    base = int(form.round).bit_length() - 1 + form.bias
    bits = k + ((base << form.mantissa) | 1 << form.mantissa - 1)
    return bits.reinterpreted(kind) - form.round


def power_of_two(k: Value) -> Value:
    """2 to the power of an integer that is the exponent of a normal number."""
    kind = f"f{k.kind[1:]}"
    form = FORMATS[kind]
    return ((k + form.bias) << form.mantissa).reinterpreted(kind)


def scaled(x: Value, k: Value) -> Value:
    """x times 2 to the power of k, in two steps: results may be subnormal, 0 or inf."""
    form = FORMATS[x.kind]
    # Both exponents in place: half of k with the bias, and what is left of k with it.
    both = k + 2 * form.bias
    half = (both << form.mantissa - 1) & (-1 << form.mantissa)
    rest = (both << form.mantissa) - half
    return x * half.reinterpreted(x.kind) * rest.reinterpreted(x.kind)


def exponent_and_rest(x: Value) -> tuple[Value, Value]:
    """k and m with x = m 2**k and m in [sqrt(1/2), sqrt(2)), for x > 0 and finite; k as a float."""
    form = FORMATS[x.kind]
    up = form.mantissa + 2
    small = x < form.tiny
    bits = x.code.select(small, x * 2.0**up, x).reinterpreted(form.integer)
    least = x.code.constant(x.kind, math.sqrt(0.5)).reinterpreted(form.integer)
    bits = bits - least
    k = as_float(bits >> form.mantissa)
    m = (bits & (2**form.mantissa - 1)) + least
    return x.code.select(small, k - float(up), k), m.reinterpreted(x.kind)


def widened(x: Value) -> Value:
    """A float32 as float64."""
    return x.converted("f8")


def everywhere(number: float, x: Value) -> Value:
    """A number in every lane, of the kind of x."""
    return x.code.constant(x.kind, number)


def only_where(
    mask: Value, values: Sequence[Value], write: Callable[[], Sequence[Value]]
) -> list[Value]:
    """Values, but those that `write` gives where a mask is set; nothing is done where none is."""
    code = mask.code
    before, some, after = code.block, code.new_label("some"), code.new_label("after")
    code.do(f"br i1 {code.any(mask)}, label %{some}, label %{after}")
    code.label(some)
    made = [code.select(mask, new, old) for new, old in zip(write(), values, strict=True)]
    end = code.block
    code.do(f"br label %{after}")
    code.label(after)
    return [
        code.line(
            old.kind,
            f"phi {code.type(old.kind)} [ {new.text}, %{end} ], [ {old.text}, %{before} ]",
        )
        for old, new in zip(values, made, strict=True)
    ]

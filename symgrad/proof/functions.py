"""Functions of sums in normal form: powers, exponentials, logarithms, sines, masks."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from math import isqrt, log, pi
from typing import Concatenate, ParamSpec, TypeAlias

from symgrad.proof.terms import MASKS, ONE, ZERO, Algebra, Atom, Factor, Term, Terms, TooLarge

MOST_POWER = 12
MOST_ANGLES = 4
MOST_DIGITS = 10**4  # binary ones, of a power of a number
LEAST = Fraction(1, 2**40)  # coefficients below are what rounded constants leave
MOST_LOG = 700  # of such a power, that it be a float
SIMPLE = 10**4  # the denominators that a number is taken to have been meant with


PI = Fraction(pi)  # which stands for the number
PARTS = 12  # of it that are taken for such


def meant(value: float, digits: int) -> Fraction:
    """The number that a float stands for: 1/10 for 0.1, if that rounds to it in so many bits.

    So do multiples of `PI`.
    """
    exact = Fraction(value)
    turns = PI * (exact / PI).limit_denominator(PARTS)
    for simple in (turns, exact.limit_denominator(SIMPLE)):
        if abs(simple - exact) <= abs(exact) / 2**digits:
            return simple
    return exact


P = ParamSpec("P")
Method: TypeAlias = "Callable[Concatenate[Functions, Terms, P], Terms]"


def _by_pieces(function: Method[P]) -> Method[P]:
    """A function of a sum, taken where a mask in that holds and where it does not (Shannon)."""

    @wraps(function)
    def found(self: Functions, a: Terms, /, *args: P.args, **kwargs: P.kwargs) -> Terms:
        f = self.mask_in(a)
        if f is None:
            return function(self, a, *args, **kwargs)
        there, elsewhere = (
            found(self, self.where(a, f, holds), *args, **kwargs) for holds in (True, False)
        )
        return self.choice(self.normal([((f,), _ONE)]), there, elsewhere)

    return found


class Functions(Algebra):
    """The arithmetic of sums, and functions of them."""

    # ---- powers -----------------------------------------------------------------------------

    def power(self, a: Terms, p: Fraction) -> Terms:
        """A sum to a rational power. Where that is not a real number, nothing is said."""
        if p.denominator == 1 and 0 <= p <= MOST_POWER:
            found = ONE
            for _ in range(p.numerator):
                found = self.multiply(found, a)
            return found
        return self._root(a, p)

    @_by_pieces
    def _root(self, a: Terms, p: Fraction) -> Terms:
        """A sum to a power that is negative, large or no whole number."""
        if not a.items:
            raise TooLarge  # nothing is known of 1 / 0
        coefficient, factors, rest = self._content(a)
        inner, outer = self._split(factors, p)
        found = self.multiply(self._number(abs(coefficient), p), outer)
        if coefficient < 0:
            if p.denominator == 1:
                found = self.scale(found, -1 if p.numerator % 2 else 1)
            else:
                rest = self.scale(rest, -1)
        rest = self.multiply(rest, inner)
        return found if rest == ONE else self.multiply(found, self.function("sum", rest, p))

    def _content(self, a: Terms) -> tuple[Fraction, Term, Terms]:
        """The leading coefficient, the factors that all terms have, and what is left."""
        common: dict[tuple[int, tuple[int, ...]], Fraction] | None = None
        for term, _ in a.items:
            powers = {(f.atom, f.labels): f.power for f in term if min(f.labels, default=0) >= 0}
            if common is None:
                common = powers
            else:
                both = {k: min(common.get(k, _NONE), powers.get(k, _NONE)) for k in common | powers}
                common = {k: p for k, p in both.items() if p}
        factors = tuple(Factor(n, p, k) for (n, k), p in (common or {}).items())
        factors = tuple(f for f in factors if not self._is_mask(f))
        inverse = tuple(f._replace(power=-f.power) for f in factors)
        rest = self.normal([(t + inverse, c) for t, c in a.items]) if factors else a
        _, coefficient = self.leading(rest)
        return coefficient, factors, self.scale(rest, 1 / coefficient)

    def _is_mask(self, f: Factor) -> bool:
        return self.atoms[f.atom].kind in (*MASKS, "delta")

    def _split(self, factors: Term, p: Fraction) -> tuple[Terms, Terms]:
        """Of a product to a power: the factors that stay below it, and those it is applied to."""
        if p.denominator == 1:
            return ONE, self.normal([(tuple(f._replace(power=f.power * p) for f in factors), _ONE)])
        outer = [f._replace(power=f.power * p) for f in factors if self._is_positive(f)]
        inner = [f for f in factors if not self._is_positive(f)]
        found = self.normal([(tuple(outer), _ONE)])
        whole = [f for f in inner if f.power.denominator == (f.power * p).denominator == 1]
        if len(inner) == len(whole) == 1:
            (f,) = whole
            base = self.normal([((f._replace(power=_ONE),), _ONE)])
            found = self.multiply(found, self.power(base, f.power * p))
            if f.power % 2 == 0 and (f.power * p) % 2:  # the root of a square is a magnitude
                found = self.multiply(found, self.sign(base))
            return ONE, found
        return self.normal([(tuple(inner), _ONE)]), found

    def _is_positive(self, f: Factor) -> bool:
        """Whether a factor is known to be positive: an exponential, a size, a sum of such."""
        kind, of, _ = self.atoms[f.atom]
        if kind in ("size", "number"):
            return True
        if kind == "exp":
            assert isinstance(of, Terms)
            return not any(self._is_log_of_any_sign(g) for t, _ in of.items for g in t)
        if kind == "sum":
            if f.power.denominator % 2 == 0:
                return True
            assert isinstance(of, Terms)
            return self._all_positive(of)
        return False

    def _is_log_of_any_sign(self, f: Factor) -> bool:
        """Whether exp(n * f) may stand for x**n, which whole n make negative where x is."""
        kind, of, _ = self.atoms[f.atom]
        return kind == "log" and not (isinstance(of, Terms) and self._all_positive(of))

    def _all_positive(self, a: Terms) -> bool:
        return all(c > 0 and all(map(self._is_positive, t)) for t, c in a.items)

    def _number(self, c: Fraction, p: Fraction) -> Terms:
        """A positive number to a rational power: an atom, unless that is rational."""
        if c != 1:
            digits = abs(p) * max(c.numerator.bit_length(), c.denominator.bit_length())
            if digits > MOST_DIGITS or abs(p) * abs(_log(c)) > MOST_LOG:
                raise TooLarge
        if p.denominator == 1:
            return self.constant(c**p.numerator)
        if p.denominator == 2:
            top, bottom = isqrt(c.numerator), isqrt(c.denominator)
            if (top * top, bottom * bottom) == (c.numerator, c.denominator):
                return self.constant(Fraction(top, bottom) ** p.numerator)
        return self.one(Atom("number", c), (), p)

    # ---- exponentials -----------------------------------------------------------------------

    @_by_pieces
    def exp(self, a: Terms) -> Terms:
        """The product of the exponentials of the terms, each to the power of its coefficient."""
        found = ONE
        for term, c in a.items:
            inner = self._inside_log(term)
            if inner is None:
                one = self.function("exp", Terms(((term, _ONE),)), c)
            else:
                one = self.power(inner, c)
            found = self.multiply(found, one)
        return found

    def _inside_log(self, term: Term) -> Terms | None:
        """The sum that a term is the logarithm of; None if it is none."""
        if len(term) == 1 and term[0].power == 1 and self.atoms[term[0].atom].kind == "log":
            of = self.atoms[term[0].atom].of
            assert isinstance(of, Terms)
            return self.relabel(of, dict(enumerate(term[0].labels)))
        return None

    @_by_pieces
    def log(self, a: Terms) -> Terms:
        """The logarithm, that of positive factors taken apart."""
        if not a.items:
            raise TooLarge
        coefficient, factors, rest = self._content(a)
        found = self.constant(meant(_log(abs(coefficient)), 50))
        kept = []
        for f in factors:
            kind, of, _ = self.atoms[f.atom]
            if kind == "exp":
                assert isinstance(of, Terms)
                inner = self.relabel(of, dict(enumerate(f.labels)))
                found = self.add(found, self.scale(inner, f.power))
            elif self._is_positive(f):
                base = self.normal([((f._replace(power=_ONE),), _ONE)])
                if kind == "sum":
                    assert isinstance(of, Terms)
                    base = self.relabel(of, dict(enumerate(f.labels)))
                found = self.add(found, self.scale(self.function("log", base), f.power))
            else:
                kept.append(f)
        odd = len(kept) == 1 and kept[0].power % 2
        if odd and rest == ONE:
            base = self.normal([((kept[0]._replace(power=_ONE),), _ONE)])
            if coefficient > 0:
                return self.add(found, self.scale(self.function("log", base), kept[0].power))
        left = self.multiply(rest, self.normal([(tuple(kept), _ONE)]))
        if coefficient < 0:
            left = self.scale(left, -1)
        return found if left == ONE else self.add(found, self.function("log", left))

    # ---- trigonometry -----------------------------------------------------------------------

    @_by_pieces
    def sin(self, a: Terms) -> Terms:
        """The sine, that of sums by those of the terms."""
        return self._sin_and_cos(a)[0]

    @_by_pieces
    def cos(self, a: Terms) -> Terms:
        """The cosine, that of sums by those of the terms."""
        return self._sin_and_cos(a)[1]

    def _sin_and_cos(self, a: Terms) -> tuple[Terms, Terms]:
        """The addition theorem, for as many whole multiples of terms as are worth it.

        Quarters of a turn are turned by.
        """
        quarters = dict(a.items).get((), _NONE) / PI * 2
        if quarters and quarters.denominator == 1:
            s, c = self._sin_and_cos(self.subtract(a, self.constant(PI * quarters / 2)))
            for _ in range(quarters.numerator % 4):
                s, c = c, self.scale(s, -1)
            return s, c
        whole = sum(abs(c.numerator) for _, c in a.items) <= MOST_ANGLES
        angles = [Terms(((t, 1 / Fraction(c.denominator)),)) for t, c in a.items] if whole else [a]
        times = [c.numerator for _, c in a.items] if whole else [1]
        sine, cosine = ZERO, ONE
        for angle, n in zip(angles, times, strict=True):
            turned = self._turned(angle)
            angle = self.scale(angle, turned)
            s = self.scale(self.function("sin", angle), turned if n > 0 else -turned)
            c = self.function("cos", angle)
            for _ in range(abs(n)):
                sine, cosine = (
                    self.add(self.multiply(sine, c), self.multiply(cosine, s)),
                    self.subtract(self.multiply(cosine, c), self.multiply(sine, s)),
                )
        return sine, cosine

    @_by_pieces
    def erf(self, a: Terms) -> Terms:
        """The error function, odd in its operand."""
        turned = self._turned(a)
        return self.scale(self.function("erf", self.scale(a, turned)), turned)

    def _turned(self, a: Terms) -> int:
        """The sign of the leading term of a sum in closed form; 1 of no terms."""
        return 1 if not a.items or self.leading(self.closed(a)[0])[1] > 0 else -1

    # ---- masks ------------------------------------------------------------------------------

    def mask_in(self, a: Terms) -> Factor | None:
        """A mask in a sum that is not summed over."""
        found = (f for t, _ in a.items for f in t if self.atoms[f.atom].kind in MASKS)
        return next((f for f in found if min(f.labels, default=0) >= 0), None)

    def where(self, a: Terms, mask: Factor, holds: bool) -> Terms:
        """The sum that another is where a mask holds, or where it does not."""
        kind, of, shape = self.atoms[mask.atom]
        other = self.number_of(Atom(MASKS[kind == MASKS[0]], of, shape))
        known = {(mask.atom, mask.labels): holds}
        if holds:
            known[other, mask.labels] = False
        work = []
        for term, c in a.items:
            values = [known.get((f.atom, f.labels)) for f in term]
            if False not in values:
                kept = tuple(f for f, v in zip(term, values, strict=True) if v is None)
                work.append((kept, c))
        return self.normal(work)

    @_by_pieces
    def positive(self, a: Terms) -> Terms:
        """1 where a sum is positive, 0 elsewhere."""
        return self._masks(a)[0]

    @_by_pieces
    def negative(self, a: Terms) -> Terms:
        """1 where a sum is negative, 0 elsewhere."""
        return self._masks(a)[1]

    def _masks(self, a: Terms) -> tuple[Terms, Terms]:
        if not a.items:
            return ZERO, ZERO
        coefficient, factors, rest = self._content(a)
        kept = self.normal([(tuple(f for f in factors if not self._is_positive(f)), _ONE)])
        rest = kept if self._all_positive(rest) else self.multiply(rest, kept)
        closed, _ = self.closed(rest)
        sign = self.leading(closed)[1]
        rest = self.scale(rest, 1 / sign)
        if rest.number is not None:
            up, down = ONE, ZERO
        else:
            up, down = (self.function(kind, rest) for kind in MASKS)
        return (up, down) if coefficient * sign > 0 else (down, up)

    def sign(self, a: Terms) -> Terms:
        """1, 0 or -1."""
        return self.subtract(self.positive(a), self.negative(a))

    def opposite(self, mask: Terms) -> Terms:
        """Where a mask does not hold."""
        return self.subtract(ONE, mask)

    def choice(self, mask: Terms, a: Terms, b: Terms) -> Terms:
        """a where a mask holds, b elsewhere."""
        return self.add(b, self.multiply(mask, self.subtract(a, b)))

    # ---- equality ---------------------------------------------------------------------------

    def agree(self, a: Terms, b: Terms, room: Fraction) -> bool:
        """Whether two sums are equal: their coefficients are, but for a part `room` of each.

        Denominators are multiplied away, those that are not summed over.
        """
        for _ in range(MOST_POWER):
            a, b = (self.replaced(t, self._value) for t in (a, b))
            if self._is_near(a, b, room):
                return True
            below = self._denominator(self.subtract(a, b))
            if below is None:
                return False
            a, b = (self.multiply(t, below) for t in (a, b))
        return False

    @staticmethod
    def _is_near(a: Terms, b: Terms, room: Fraction) -> bool:
        first, second = dict(a.items), dict(b.items)
        pairs = ((first.get(t, _NONE), second.get(t, _NONE)) for t in first | second)
        return all(abs(c - d) <= LEAST + room * max(abs(c), abs(d)) for c, d in pairs)

    def _value(self, f: Factor) -> Fraction | None:
        kind, of, _ = self.atoms[f.atom]
        if kind != "number":
            return None
        assert isinstance(of, Fraction)
        return Fraction(float(of) ** float(f.power))

    def _denominator(self, a: Terms) -> Terms | None:
        """A denominator in a sum, first one that is no sum itself; None if there is none."""
        below = [f for t, _ in a.items for f in t if f.power < 0 <= min(f.labels, default=0)]
        for f in sorted(below, key=lambda f: self.atoms[f.atom].kind == "sum"):
            kind, of, _ = self.atoms[f.atom]
            if kind != "sum":
                return self.normal([((f._replace(power=-f.power),), _ONE)])
            assert isinstance(of, Terms)
            return self.relabel(of, dict(enumerate(f.labels)))
        return None


def _log(c: Fraction) -> float:
    """The logarithm of a number that may be no float."""
    top, bottom = c.numerator, c.denominator
    near = abs(top.bit_length() - bottom.bit_length()) < 64
    return log(top / bottom) if near else log(top) - log(bottom)


_ONE = Fraction(1)
_NONE = Fraction(0)

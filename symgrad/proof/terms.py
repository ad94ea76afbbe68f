"""Sums of products with labelled axes, in a normal form: einsum terms with exact coefficients.

The sum over k of 2 * a[i, k] * b[k, j] is one term: its coefficient is 2, its factors are the atoms
a and b, each to the power 1, with the labels of their axes. Labels from 0 on are axes of the
result, those below 0 are summed over. An axis of the result that no factor has is a broadcast one.

The normal form is that of a ring of polynomials modulo the equations that atoms fulfil: a mask is
its own square, an inverse times its sum is 1, sin**2 is 1 - cos**2. Equations are applied from left
to right, where the left side is the larger one in the order by degree, so that this ends.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import count, permutations, product
from math import factorial, prod
from typing import Any, NamedTuple, TypeAlias

from symgrad.ir.dims import Atom as DimAtom
from symgrad.ir.dims import Dim, Size, terms_of

Labels: TypeAlias = tuple[int, ...]
MOST_STEPS = 20_000
MOST_ORDERS = 720  # of summed labels that look alike


class TooLarge(Exception):
    """A normal form has more terms than are worth the time."""


class Factor(NamedTuple):
    """An atom, by its number, to a power, with the labels of its axes."""

    atom: int
    power: Fraction
    labels: Labels


Term: TypeAlias = tuple[Factor, ...]


class Terms(NamedTuple):
    """A sum in normal form: terms in order, each with its coefficient. Equal ones are the same."""

    items: tuple[tuple[Term, Fraction], ...]

    @property
    def labels(self) -> Labels:
        """The axes of the result that some factor has, in order."""
        return tuple(sorted({k for t, _ in self.items for f in t for k in f.labels if k >= 0}))

    @property
    def number(self) -> Fraction | None:
        """The number that it is, None if it is not one."""
        if not self.items:
            return Fraction(0)
        term, coefficient = self.items[0]
        return coefficient if len(self.items) == 1 and not term else None


class Atom(NamedTuple):
    """A value that is not taken apart: its kind, what it is of, and the sizes of its labels.

    "leaf" and "op" are values; "sum" is a sum, which only has negative or fractional powers; "exp",
    "log", "sin", "cos", "erf" are functions of sums; "positive" and "negative" are the masks of
    where a sum is; "number" has fractional powers; "delta" is 1 where two labels are equal; "size"
    is a named dimension.
    """

    kind: str
    of: Hashable
    shape: tuple[Size, ...] = ()


ZERO, ONE = Terms(()), Terms((((), Fraction(1)),))
MASKS = ("positive", "negative")
_Work: TypeAlias = list[tuple[Term, Fraction]]


class Algebra:
    """Atoms, numbered in the order in which they are met, and the arithmetic of sums of them.

    Raises `TooLarge` when all that was done takes more than `most` steps.
    """

    def __init__(self, most: int = MOST_STEPS) -> None:
        self.atoms: list[Atom] = []
        self._numbers: dict[Atom, int] = {}
        self._left = most
        self._fresh = count(10**6)

    # ---- building ---------------------------------------------------------------------------

    def number_of(self, atom: Atom) -> int:
        """The number of an atom."""
        if atom not in self._numbers:
            self._numbers[atom] = len(self.atoms)
            self.atoms.append(atom)
        return self._numbers[atom]

    def one(self, atom: Atom, labels: Labels = (), power: Fraction | int = 1) -> Terms:
        """An atom to a power as a sum."""
        return self.normal([((Factor(self.number_of(atom), Fraction(power), labels),), _ONE)])

    def constant(self, value: Fraction | int) -> Terms:
        """A number as a sum."""
        return Terms((((), Fraction(value)),)) if value else ZERO

    def size(self, size: Size) -> Terms:
        """A size as a sum: a polynomial of its names."""
        found = ZERO
        for monomial, coefficient in terms_of(size) if isinstance(size, Dim) else (((), size),):
            term = self.constant(coefficient)
            for name, power in monomial:
                atom = Atom("size", str(name) if isinstance(name, DimAtom) else name)
                term = self.multiply(term, self.one(atom, (), power))
            found = self.add(found, term)
        return found

    # ---- arithmetic -------------------------------------------------------------------------

    def add(self, *sums: Terms) -> Terms:
        """The sum of sums."""
        return self._collected(item for s in sums for item in s.items)

    def scale(self, a: Terms, by: Fraction | int) -> Terms:
        """A sum times a number."""
        return Terms(tuple((t, c * by) for t, c in a.items)) if by else ZERO

    def subtract(self, a: Terms, b: Terms) -> Terms:
        """a - b."""
        return self.add(a, self.scale(b, -1))

    def multiply(self, a: Terms, b: Terms) -> Terms:
        """The product of two sums, element by element."""
        number = a.number
        if number is not None:
            return self.scale(b, number)
        number = b.number
        if number is not None:
            return self.scale(a, number)
        work: _Work = []
        for (s, c), (t, d) in product(a.items, b.items):
            work.append((s + self._apart(t), c * d))
        return self.normal(work)

    def _apart(self, term: Term) -> Term:
        """A term whose summed labels are no other's."""
        names: dict[int, int] = {}
        for f in term:
            for k in f.labels:
                if k < 0 and k not in names:
                    names[k] = -next(self._fresh)
        return _relabelled(term, names)

    def relabel(self, a: Terms, names: Mapping[int, int]) -> Terms:
        """A sum with other labels; those below 0 are summed over from then on."""
        return self.normal([(_relabelled(t, names), c) for t, c in a.items])

    def sum_over(self, a: Terms, sizes: Mapping[int, Size]) -> Terms:
        """A sum summed over labels of these sizes."""
        found = []
        for term, c in a.items:
            had = {k for f in term for k in f.labels}
            names = {k: -next(self._fresh) for k in sizes if k in had}
            one = self.normal([(_relabelled(term, names), c)])
            for k in sizes.keys() - had:
                one = self.multiply(one, self.size(sizes[k]))
            found.append(one)
        return self.add(*found)

    # ---- normal form ------------------------------------------------------------------------

    def normal(self, work: Iterable[tuple[Term, Fraction]]) -> Terms:
        """The normal form of a sum of products."""
        stack, done = list(work), []
        while stack:
            self._left -= 1
            if self._left < 0:
                raise TooLarge
            term, c = stack.pop()
            merged = self._merged(term)
            if merged is None:
                continue
            made = self._reduced(merged)
            if made is None:
                done.append((self._ordered(merged), c))
            else:
                stack += [(t, c * d) for t, d in made]
        return self._collected(done)

    def _collected(self, items: Iterable[tuple[Term, Fraction]]) -> Terms:
        found: dict[Term, Fraction] = {}
        for term, c in items:
            found[term] = found.get(term, Fraction(0)) + c
        return Terms(tuple(sorted((t, c) for t, c in found.items() if c)))

    def _merged(self, term: Term) -> Term | None:
        """A product with each factor once, and labels that a delta makes one; None if it is 0."""
        term = self._without_deltas(term)
        powers: dict[tuple[int, Labels], Fraction] = {}
        for atom, power, labels in term:
            powers[atom, labels] = powers.get((atom, labels), Fraction(0)) + power
        found = []
        for (atom, labels), power in powers.items():
            kind, of, _ = self.atoms[atom]
            if kind in MASKS:
                power = Fraction(1)
                other = Atom(MASKS[kind == MASKS[0]], of, self.atoms[atom].shape)
                if kind == MASKS[0] and (self._numbers.get(other), labels) in powers:
                    return None
            if power:
                found.append(Factor(atom, power, labels))
        return tuple(found)

    def _without_deltas(self, term: Term) -> Term:
        for f in term:
            if self.atoms[f.atom].kind == "delta":
                i, j = f.labels
                rest = tuple(g for g in term if g is not f)
                if i == j:
                    return self._without_deltas(rest)
                if min(i, j) < 0:
                    return self._without_deltas(_relabelled(rest, {min(i, j): max(i, j)}))
                if i > j or any(j in g.labels for g in rest):
                    i, j = sorted(f.labels)
                    kept = f._replace(labels=(i, j))
                    return self._without_deltas((*_relabelled(rest, {j: i}), kept))
        return term

    def _reduced(self, term: Term) -> _Work | None:
        """The sum that an equation makes of a product; None if none applies."""
        for f in term:
            kind, of, _ = self.atoms[f.atom]
            if kind == "sum" and f.power >= 1:
                assert isinstance(of, Terms)
                rest = self._with_power(term, f, f.power - 1)
                return [(rest + t, c) for t, c in self._at(of, f.labels)]
            if kind == "number" and f.power.denominator == 1:
                assert isinstance(of, Fraction)
                return [(self._with_power(term, f, Fraction(0)), of**f.power.numerator)]
            if kind == "sin" and f.power >= 2 and f.power.denominator == 1:
                rest = self._with_power(term, f, f.power - 2)
                cosine = self.number_of(Atom("cos", of, self.atoms[f.atom].shape))
                return [(rest, _ONE), ((*rest, Factor(cosine, Fraction(2), f.labels)), -_ONE)]
            if (kind == "sum" and f.power < 0) or kind == "negative":
                assert isinstance(of, Terms)
                found = self._by_equation(term, f, of)
                if found is not None:
                    return found
        return None

    def _by_equation(self, term: Term, f: Factor, of: Terms) -> _Work | None:
        """E**-p * lead is E**(1-p) - E**-p * rest; E * negative is E - E * positive."""
        lead, coefficient = self.leading(of)
        names = dict(enumerate(f.labels))
        others = tuple(g for g in term if g is not f)
        left = next(self._without(others, lead, names), None)
        if left is None or not lead:
            return None
        rest = [(t, c) for t, c in self._at(of, f.labels) if c]
        smaller = [(t, -c / coefficient) for t, c in self._at(_less(of, lead), f.labels)]
        if self.atoms[f.atom].kind == "sum":
            first = (*left, Factor(f.atom, f.power + 1, f.labels))
            return [(first, 1 / coefficient), *[((*left, f, *t), c) for t, c in smaller]]
        positive = self.number_of(Atom("positive", of, self.atoms[f.atom].shape))
        mask = Factor(positive, _ONE, f.labels)
        return [
            *[((*left, *t), c / coefficient) for t, c in rest],
            *[((*left, mask, *t), -c / coefficient) for t, c in rest],
            *[((*left, f, *t), c) for t, c in smaller],
        ]

    def _without(self, term: Term, part: Term, names: Mapping[int, int]) -> Iterator[Term]:
        """A product without a part, if it has that: with these labels, summed ones being alone."""
        if not part:
            used = {k for f in term for k in f.labels}
            used.update(new for old, new in names.items() if old >= 0)
            if not any(old < 0 and new in used for old, new in names.items()):
                yield term
            return
        wanted, *others = part
        for f in term:
            if f.atom != wanted.atom or not 0 < wanted.power <= f.power:
                continue
            bound = dict(names)
            for old, new in zip(wanted.labels, f.labels, strict=True):
                if old < 0 <= new:
                    break
                if bound.setdefault(old, new) != new:
                    break
            else:
                if len({new for old, new in bound.items() if old < 0}) == sum(k < 0 for k in bound):
                    rest = self._with_power(term, f, f.power - wanted.power)
                    yield from self._without(rest, tuple(others), bound)

    @staticmethod
    def _with_power(term: Term, f: Factor, power: Fraction) -> Term:
        rest = tuple(g for g in term if g is not f)
        return (*rest, f._replace(power=power)) if power else rest

    def leading(self, a: Terms) -> tuple[Term, Fraction]:
        """The largest term of a sum by degree, with its coefficient."""
        return max(a.items, key=lambda item: (sum(f.power for f in item[0]), item[0]))

    def _at(self, a: Terms, labels: Labels) -> Iterator[tuple[Term, Fraction]]:
        names = dict(enumerate(labels))
        return ((_relabelled(self._apart(t), names), c) for t, c in a.items)

    # ---- names of labels --------------------------------------------------------------------

    def _ordered(self, term: Term) -> Term:
        """A product with its factors in order and its summed labels numbered as that makes least.

        Labels are told apart by the factors that have them (Weisfeiler and Leman's refinement);
        of those that look alike every order is tried.
        """
        summed = sorted({k for f in term for k in f.labels if k < 0})
        if not summed:
            return tuple(sorted(term))
        colours, kinds = dict.fromkeys(summed, 0), 0
        while kinds != len(set(colours.values())):
            kinds = len(set(colours.values()))
            signs = {k: (colours[k], self._readers(term, k, colours)) for k in summed}
            ranks = {sign: i for i, sign in enumerate(sorted(set(signs.values())))}
            colours = {k: ranks[signs[k]] for k in summed}
        classes: dict[int, list[int]] = {c: [] for c in sorted(set(colours.values()))}
        for k in summed:
            classes[colours[k]].append(k)
        groups = list(classes.values())
        if prod(factorial(len(g)) for g in groups) > MOST_ORDERS:
            raise TooLarge
        orders = product(*(permutations(g) for g in groups))
        return min(
            tuple(sorted(_relabelled(term, {k: -1 - i for i, k in enumerate(_flat(order))})))
            for order in orders
        )

    @staticmethod
    def _readers(term: Term, label: int, colours: Mapping[int, int]) -> tuple[Any, ...]:
        """Where a summed label stands, in factors whose other labels have such colours."""
        return tuple(
            sorted(
                (place, f.atom, f.power, tuple([(k < 0, colours.get(k, k)) for k in f.labels]))
                for f in term
                for place, k in enumerate(f.labels)
                if k == label
            )
        )

    def closed(self, a: Terms) -> tuple[Terms, Labels]:
        """A sum with the labels 0, 1, ..., in the order that makes it least, and what they were."""
        labels = a.labels
        if factorial(len(labels)) > 24:
            raise TooLarge
        orders = (
            (self.relabel(a, {k: i for i, k in enumerate(order)}), order)
            for order in permutations(labels)
        )
        return min(orders)

    def sizes(self, a: Terms) -> dict[int, Size]:
        """The size of each label of a sum."""
        pairs = (
            (k, size)
            for term, _ in a.items
            for f in term
            for k, size in zip(f.labels, self.atoms[f.atom].shape, strict=True)
        )
        return dict(pairs)

    def function(self, kind: str, a: Terms, power: Fraction | int = 1) -> Terms:
        """An atom of a kind that is of a sum, as a sum."""
        of, labels = self.closed(a)
        sizes = self.sizes(of)
        shape = tuple(sizes[k] for k in range(len(labels)))
        return self.one(Atom(kind, of, shape), labels, power)

    def replaced(self, a: Terms, change: Callable[[Factor], Fraction | None]) -> Terms:
        """A sum in which factors that are numbers have gone into coefficients."""
        found = []
        for term, c in a.items:
            kept = []
            for f in term:
                number = change(f)
                if number is None:
                    kept.append(f)
                else:
                    c *= number
            found.append((tuple(kept), c))
        return self._collected(found)


_ONE = Fraction(1)


def _less(a: Terms, term: Term) -> Terms:
    return Terms(tuple(item for item in a.items if item[0] != term))


def _relabelled(term: Term, names: Mapping[int, int]) -> Term:
    return tuple(
        Factor(atom, power, tuple([names.get(k, k) for k in labels]))
        for atom, power, labels in term
    )


def _flat(groups: Iterable[Iterable[int]]) -> Iterator[int]:
    return (k for group in groups for k in group)

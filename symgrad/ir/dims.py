"""Named dimensions: integer polynomials over names, rounded quotients and minima.

A dimension of a shape is an `int` or a `Dim`. `Dim`s arise from a name (`"N"`) and from what shape
inference does to it: concatenation gives `N + 3`, a reshape to one axis `28*N`, a slice in steps of
two `(N + 1)//2`, the diagonal of a matrix `min(M, N)`. The last two are no polynomials: they count
as names of their own, called atoms, and have a normal form. Two dimensions are the same only if
they are provably so, that is, equal as polynomials over names and atoms.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from symgrad.ir.callers import asked_outside
from symgrad.ir.errors import ShapeError, no_number, short, undecided, unordered

Name: TypeAlias = "str | Atom"
Monomial: TypeAlias = "tuple[tuple[Name, int], ...]"

# So many names and terms may be inside the atoms of a dimension.
MOST_INSIDE = 64
# So many may be in all the sizes that the least is sought of, so often are sums of minima opened.
MOST_COMPARED, MOST_LEVELS = 256, 8
# What a name is taken to be where only the order of magnitude matters (which operand is smaller).
GUESS = 64
# Names that mean something else in the text form of a graph.
GRAPH_NAME = re.compile("graph[0-9]+")
RESERVED = frozenset({"inf", "nan", "array", *(np.dtype(c).name for c in "?bhilqBHILQefdgFDG")})


class Atom(NamedTuple):
    """An atom of a polynomial that stands where a name could, and is 0 or more as that is.

    With a divisor it is the one argument divided by it and rounded down; with 0, the least of the
    arguments. `quotient` and `least` make them, in normal form.
    """

    args: tuple[Size, ...]
    divisor: int

    @property
    def names(self) -> frozenset[str]:
        return frozenset().union(*(a.names for a in self.args if isinstance(a, Dim)))

    def evaluate(self, sizes: Mapping[str, int]) -> Any:
        values: list[Any] = [evaluate(a, sizes) for a in self.args]
        if any(isinstance(v, Dim) for v in values):
            return quotient(values[0], self.divisor) if self.divisor else least(*values)
        return values[0] // self.divisor if self.divisor else min(values)

    def __str__(self) -> str:
        inside = ", ".join(map(str, self.args))
        if not self.divisor:
            return f"min({inside})"
        return f"{inside if inside.isidentifier() else f'({inside})'}//{self.divisor}"


class Dim:
    """An integer polynomial over names, such as `N`, `N + 1` or `28*N`, and over atoms: `N//2`.

    Arithmetic with ints and other dims gives a `Dim`, or an `int` where the names cancel out;
    division by an int that is 1 or more rounds down.

    >>> n = Dim.of("N")
    >>> n * 28 + 1, n - n, (n + 3) // 2
    (28*N + 1, 0, (N + 1)//2 + 1)
    """

    __slots__ = ("_hash", "terms")
    terms: tuple[tuple[Monomial, int], ...]
    _hash: int

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "_hash", hash(terms))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Dim is frozen: {name} cannot be set")

    def __reduce__(self) -> tuple[type[Dim], tuple[object]]:
        return Dim, (self.terms,)

    @staticmethod
    def of(name: str) -> Dim:
        """The dimension called `name`, which must be a Python identifier."""
        reserved = keyword.iskeyword(name) or name in RESERVED or GRAPH_NAME.fullmatch(name)
        if not name.isidentifier() or reserved:
            raise ShapeError(
                f"a named dimension must be an identifier such as 'N', not {short(name)}; "
                "expressions such as '28*N' are written with + - * and parentheses"
            )
        return Dim(((((name, 1),), 1),))

    @property
    def names(self) -> frozenset[str]:
        """The names that occur in it."""
        every = (name for monomial, _ in self.terms for name, _ in monomial)
        return frozenset().union(*({n} if isinstance(n, str) else n.names for n in every))

    @property
    def rounded(self) -> frozenset[str]:
        """The names inside quotients and minima: the whole does not tell their sizes."""
        every = (name for monomial, _ in self.terms for name, _ in monomial)
        return frozenset().union(*(n.names for n in every if isinstance(n, Atom)))

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """Its value where each name has the size given, which may be a dimension again."""
        total = 0
        for monomial, factor in self.terms:
            for name, power in monomial:
                value = sizes[name] if isinstance(name, str) else name.evaluate(sizes)
                for _ in range(power):  # a name may stand for another size
                    factor = factor * value
            total = total + factor
        return total

    def __add__(self, other: Size) -> Size:
        terms = terms_of(other) if _takes(self, other) else None
        return NotImplemented if terms is None else _collect([*self.terms, *terms])

    def __sub__(self, other: Size) -> Size:
        return self + -1 * other if _takes(self, other) else NotImplemented

    def __rsub__(self, other: Size) -> Size:
        return -1 * self + other if _takes(self, other) else NotImplemented

    def __neg__(self) -> Size:
        return -1 * self

    def __mul__(self, other: Size) -> Size:
        if not _takes(self, other):
            return NotImplemented
        return _collect((_multiply(p, q), a * b) for p, a in self.terms for q, b in terms_of(other))

    def __floordiv__(self, other: Size) -> Size:
        exact = divide_exactly(self, other) if _takes(self, other) else NotImplemented
        if exact is None and isinstance(other, int) and other > 0:
            return quotient(self, other)
        if exact is None:
            raise ShapeError(f"{self} // {other} is not known to be whole; use a fixed size here")
        return exact

    def __mod__(self, other: Size) -> Size:
        return self - self // other * other if _takes(self, other) else NotImplemented

    def __divmod__(self, other: Size) -> tuple[Size, Size]:
        return (self // other, self % other) if _takes(self, other) else NotImplemented

    def __pow__(self, other: object) -> Any:
        if type(other) is int and 0 <= other <= MOST_LEVELS:
            return product([self] * other)
        return no_number(self) if isinstance(other, NUMBERS) else NotImplemented

    def __truediv__(self, other: object) -> Any:
        return no_number(self) if isinstance(other, NUMBERS) else NotImplemented

    def __pos__(self) -> Size:
        return self

    def __index__(self) -> int:
        no_number(self)

    __int__ = __float__ = __complex__ = __round__ = __trunc__ = __index__
    __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rdivmod__ = __truediv__
    __radd__, __rmul__ = __add__, __mul__
    __lt__ = __le__ = __gt__ = __ge__ = unordered

    def __eq__(self, other: object) -> bool:
        """Whether both are provably the same: what symgrad asks of the types of nodes.

        A user who compares `x.shape[0] == 64` means the size that will be fed. Outside symgrad,
        what depends on that raises `SymbolicError`.
        """
        if isinstance(other, Dim) and self.terms == other.terms:
            return True
        if isinstance(other, (int, Dim)) and asked_outside() and _may_be_zero(self - other):
            undecided(f"{self} == {other}")
        return False

    def __hash__(self) -> int:
        return self._hash

    def __bool__(self) -> bool:
        """True. Raises `SymbolicError` outside symgrad if the size may be 0."""
        if _may_be_zero(self) and asked_outside():
            undecided(f"{self} == 0")
        return True

    def __repr__(self) -> str:
        text = ""
        for monomial, factor in self.terms:
            size = abs(factor)
            # Python reads 3*N//2 and -N//2 from the left.
            alone = len(monomial) == 1 and size == 1 and (factor > 0 or bool(text))
            names = "*".join(
                _power(n, p, (alone and p == 1) or isinstance(n, str)) for n, p in monomial
            )
            term = str(size) if not names else names if size == 1 else f"{size}*{names}"
            sign = "-" if factor < 0 else "+"
            text += f" {sign} {term}" if text else (f"-{term}" if factor < 0 else term)
        return text


Size: TypeAlias = int | Dim
NUMBERS = (int, float, complex, Dim)
Shape: TypeAlias = tuple[Size, ...]


def _power(name: Name, power: int, bare: bool) -> str:
    text = str(name) if bare or not (isinstance(name, Atom) and name.divisor) else f"({name})"
    return text if power == 1 else f"{text}**{power}"


def _is_size(value: object) -> bool:
    return isinstance(value, (int, Dim)) and not isinstance(value, bool)


def _takes(size: Dim, other: object) -> bool:
    """Whether arithmetic of the two gives a size. Raises `SymbolicError` for another number."""
    if not _is_size(other) and isinstance(other, NUMBERS):
        no_number(size)
    return _is_size(other)


def _may_be_zero(size: Size) -> bool:
    """Whether a size is 0 for some sizes of its names; names and atoms are 0 or more."""
    terms = dict(terms_of(size))
    signs = {f > 0 for f in terms.values() if f}
    return len(signs) != 1 or () not in terms


def terms_of(size: Size) -> tuple[tuple[Monomial, int], ...]:
    """A size as the terms of a polynomial, each a monomial and its factor."""
    return size.terms if isinstance(size, Dim) else (((), size),)


def _multiply(a: Monomial, b: Monomial) -> Monomial:
    powers = dict(a)
    for name, power in b:
        powers[name] = powers.get(name, 0) + power
    return tuple(sorted(powers.items(), key=_by_text))


def _by_text(item: tuple[Name, int]) -> tuple[str, int]:
    """An order of names and atoms."""
    return str(item[0]), item[1]


def _collect(terms: Iterable[tuple[Monomial, int]]) -> Size:
    total: dict[Monomial, int] = {}
    for monomial, factor in terms:
        total[monomial] = total.get(monomial, 0) + factor
    kept = {m: f for m, f in total.items() if f}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Dim(tuple(sorted(kept.items(), key=_order)))


def _order(term: tuple[Monomial, int]) -> tuple[int, tuple[tuple[str, int], ...]]:
    """High degrees first, so that constants come last: `N**2 + N + 1`."""
    return -sum(power for _, power in term[0]), tuple(map(_by_text, term[0]))


def divide_exactly(a: Size, b: Size) -> Size | None:
    """`a / b` if that is a polynomial with whole factors, else None (long division)."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    lead, factor = terms_of(b)[0]
    found: Size = 0
    rest = a
    while rest != 0:
        top, top_factor = terms_of(rest)[0]
        powers = dict(top)
        for name, power in lead:
            powers[name] = powers.get(name, 0) - power
        if any(p < 0 for p in powers.values()) or not factor or top_factor % factor:
            return None
        monomial = tuple(i for i in sorted(powers.items(), key=_by_text) if i[1])
        step = _collect([(monomial, top_factor // factor)])
        found = found + step
        rest = rest - step * b
    return found


# ---- quotients and minima -------------------------------------------------------------------


def quotient(size: Size, divisor: int) -> Size:
    """A size divided by an int that is 1 or more, and rounded down.

    >>> quotient(3 * Dim.of("N") + 5, 2)
    (N + 1)//2 + N + 2
    """
    whole = _collect((m, f // divisor) for m, f in terms_of(size))
    rest = _collect((m, f % divisor) for m, f in terms_of(size))
    if isinstance(rest, int):
        return whole
    constant = dict(rest.terms).get((), 0)
    names = rest - constant
    inner = _lone(names)
    if inner is not None and inner.divisor:
        # (a // m + c) // k is (a + c * m) // (m * k).
        m = inner.divisor
        return whole + quotient(inner.args[0] + constant * m, m * divisor)
    shared = math.gcd(divisor, *(f for _, f in terms_of(names)))
    if shared > 1:
        return whole + quotient(_over(names, shared) + constant // shared, divisor // shared)
    return whole + _as_dim(Atom((rest,), divisor))


def least(*sizes: Size) -> Size:
    """The least of sizes. What all of them have is no part of the atom.

    Raises `ShapeError` for more sizes than `MOST_INSIDE`, minima opened, before they are compared.

    >>> n = Dim.of("N")
    >>> least(n + 1, 3), least(n, n + 2)
    (min(N, 2) + 1, N)
    """
    return _least(sizes, MOST_LEVELS)


def _least(sizes: Iterable[Size], levels: int) -> Size:
    args: dict[Size, int] = {}
    compared = 0
    for size in (a for s in sizes for a in _alternatives(s)):
        if size not in args:
            args[size] = weight(size)
            compared += args[size]
        if len(args) > MOST_INSIDE or compared > MOST_COMPARED or not levels:
            raise too_long(size)
    kept = [a for a in args if not any(b is not a and _is_least(b, a) for b in args)]
    terms = [dict(terms_of(a)) for a in kept]
    shared = _collect((m, min(t.get(m, 0) for t in terms)) for m in {m for t in terms for m in t})
    if len(kept) == 1:
        return kept[0]
    rest = [a - shared for a in kept]
    if any(len(_alternatives(a)) > 1 for a in rest):
        return shared + _least(rest, levels - 1)
    factor = math.gcd(*(f for a in rest for _, f in terms_of(a)))
    rest = sorted((_over(a, factor) for a in rest), key=lambda a: (isinstance(a, int), str(a)))
    return shared + factor * _as_dim(Atom(tuple(rest), 0))


def most(a: Size, b: Size) -> Size:
    """The larger of two sizes: what is left of their sum when the smaller is taken away."""
    return a + b - least(a, b)


def _as_dim(atom: Atom) -> Dim:
    if _inside(atom) > MOST_INSIDE:
        raise too_long(atom)
    return Dim(((((atom, 1),), 1),))


def _inside(atom: Atom) -> int:
    """How many names and terms an atom is made of."""
    return sum(map(weight, atom.args))


def weight(size: Size) -> int:
    """How many terms a size has, and those inside its atoms: what its arithmetic costs."""
    terms = terms_of(size)
    atoms = (n for monomial, _ in terms for n, _ in monomial if isinstance(n, Atom))
    return len(terms) + sum(map(_inside, atoms))


def too_long(size: Size | Atom) -> ShapeError:
    """The error for a size that nobody can have meant."""
    return ShapeError(f"a dimension of this length is a mistake: {str(size)[:80]}…")


def _lone(size: Size) -> Atom | None:
    """The atom that a size is."""
    match size:
        case Dim(terms=((((Atom() as atom, 1),), 1),)):
            return atom
    return None


def _alternatives(size: Size) -> list[Size]:
    """The sizes that one is the least of; the minimum may have something added to it."""
    for term in terms_of(size):
        atom = _lone(Dim((term,)))
        if atom is not None and not atom.divisor:
            return [a + (size - Dim((term,))) for a in atom.args]
    return [size]


def _is_least(a: Size, b: Size) -> bool:
    """Whether a is never above b, whatever the names are."""
    return all(f >= 0 for _, f in terms_of(b - a))


def _over(size: Size, divisor: int) -> Size:
    return _collect((m, f // divisor) for m, f in terms_of(size))


def evaluate(size: Size, sizes: Mapping[str, int]) -> int:
    """The number that a size is, given the sizes of the names."""
    return size.evaluate(sizes) if isinstance(size, Dim) else size


def guess(size: Size) -> int:
    """A size for heuristics: every name counts as `GUESS`."""
    return size.evaluate(dict.fromkeys(size.names, GUESS)) if isinstance(size, Dim) else size


def product(shape: Iterable[Size]) -> Size:
    """The number of elements of a shape."""
    total: Size = math.prod(shape)
    return total

"""Named dimensions: integer polynomials over names.

A dimension of a shape is an `int` or a `Dim`. `Dim`s arise from a name (`"N"`) and from what shape
inference does to it: concatenation gives `N + 3`, a reshape to one axis `28*N`. Two dimensions are
the same only if they are provably so, that is, equal as polynomials.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np

from symgrad.ir.errors import ShapeError

Monomial: TypeAlias = tuple[tuple[str, int], ...]

# What a name is taken to be where only the order of magnitude matters (which operand is smaller).
GUESS = 64
# Names that mean something else in the text form of a graph.
GRAPH_NAME = re.compile("graph[0-9]+")
RESERVED = frozenset({"inf", "nan", "array", *(np.dtype(c).name for c in "?bhilqBHILQefdgFDG")})


class Dim:
    """An integer polynomial over names, such as `N`, `N + 1` or `28*N`.

    Arithmetic with ints and other dims gives a `Dim`, or an `int` where the names cancel out.

    >>> n = Dim.of("N")
    >>> n * 28 + 1, n - n
    (28*N + 1, 0)
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
                f"a named dimension must be an identifier such as 'N', not {name!r}; "
                "expressions such as '28*N' are written with + - * and parentheses"
            )
        return Dim(((((name, 1),), 1),))

    @property
    def names(self) -> frozenset[str]:
        """The names that occur in it."""
        return frozenset(name for monomial, _ in self.terms for name, _ in monomial)

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """Its value where each name has the size given."""
        total = 0
        for monomial, factor in self.terms:
            for name, power in monomial:
                factor *= sizes[name] ** power
            total += factor
        return total

    def __add__(self, other: Size) -> Size:
        return _collect([*self.terms, *_terms(other)]) if _is_size(other) else NotImplemented

    def __sub__(self, other: Size) -> Size:
        return self + -1 * other if _is_size(other) else NotImplemented

    def __rsub__(self, other: Size) -> Size:
        return -1 * self + other if _is_size(other) else NotImplemented

    def __neg__(self) -> Size:
        return -1 * self

    def __mul__(self, other: Size) -> Size:
        if not _is_size(other):
            return NotImplemented
        return _collect((_multiply(p, q), a * b) for p, a in self.terms for q, b in _terms(other))

    def __floordiv__(self, other: Size) -> Size:
        quotient = divide_exactly(self, other)
        if quotient is None:
            raise ShapeError(f"{self} // {other} is not known to be whole; use a fixed size here")
        return quotient

    __radd__ = __add__
    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        text = ""
        for monomial, factor in self.terms:
            names = "*".join(n if p == 1 else f"{n}**{p}" for n, p in monomial)
            size = abs(factor)
            term = str(size) if not names else names if size == 1 else f"{size}*{names}"
            sign = "-" if factor < 0 else "+"
            text += f" {sign} {term}" if text else (f"-{term}" if factor < 0 else term)
        return text


Size: TypeAlias = int | Dim
Shape: TypeAlias = tuple[Size, ...]


def _is_size(value: object) -> bool:
    return isinstance(value, (int, Dim)) and not isinstance(value, bool)


def _terms(size: Size) -> tuple[tuple[Monomial, int], ...]:
    return size.terms if isinstance(size, Dim) else (((), size),)


def _multiply(a: Monomial, b: Monomial) -> Monomial:
    powers = dict(a)
    for name, power in b:
        powers[name] = powers.get(name, 0) + power
    return tuple(sorted(powers.items()))


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


def _order(term: tuple[Monomial, int]) -> tuple[int, Monomial]:
    """High degrees first, so that constants come last: `N**2 + N + 1`."""
    return -sum(power for _, power in term[0]), term[0]


def divide_exactly(a: Size, b: Size) -> Size | None:
    """`a / b` if that is a polynomial with whole factors, else None (long division)."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    lead, factor = _terms(b)[0]
    quotient: Size = 0
    rest = a
    while rest != 0:
        top, top_factor = _terms(rest)[0]
        powers = dict(top)
        for name, power in lead:
            powers[name] = powers.get(name, 0) - power
        if any(p < 0 for p in powers.values()) or not factor or top_factor % factor:
            return None
        step = _collect(
            [(tuple((n, p) for n, p in sorted(powers.items()) if p), top_factor // factor)]
        )
        quotient = quotient + step
        rest = rest - step * b
    return quotient


def dim(value: Size | str) -> Size:
    """A dimension from an int, a `Dim`, a name or an expression of names.

    Raises `ShapeError` for a negative number or a text that is no polynomial over names.

    >>> dim("28*N + 1")
    28*N + 1
    """
    if isinstance(value, str):
        value = _parse(value)
    if isinstance(value, Dim):
        return value
    try:
        number = value.__index__()
    except AttributeError:
        raise ShapeError(f"a dimension is an int or a name, not {value!r}") from None
    if number < 0:
        raise ShapeError(f"a dimension cannot be negative: {number}")
    return number


def _parse(text: str) -> Size:
    try:
        return size_from_ast(ast.parse(text.strip(), mode="eval").body)
    except ShapeError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Dim.of(text)


def size_from_ast(tree: ast.expr) -> Size:
    """A size from Python syntax: ints, names, `+ - * **` (used by the text form too)."""
    match tree:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            return Dim.of(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -1 * size_from_ast(operand)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))):
            if 0 <= power <= 16:
                base = size_from_ast(left)
                result: Size = 1
                for _ in range(power):
                    result = _bounded(base * result)
                return result
        case ast.BinOp(left=left, op=op, right=right):
            a, b = size_from_ast(left), size_from_ast(right)
            if isinstance(op, ast.Add):
                return _bounded(a + b)
            if isinstance(op, ast.Sub):
                return _bounded(a - b)
            if isinstance(op, ast.Mult):
                return _bounded(a * b)
    raise ShapeError(
        f"not a dimension: {ast.unparse(tree)!r}; write an int, a name, or + - * of them"
    )


def _bounded(size: Size) -> Size:
    """The same, if it is of a size that somebody may have meant: text can come from anywhere."""
    terms = _terms(size)
    if len(terms) > 64 or any(abs(f) >= 2**63 or len(m) > 64 for m, f in terms):
        raise ShapeError("a dimension of this length is a mistake")
    return size


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

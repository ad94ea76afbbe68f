"""Sizes from text and from what users write for one: ints, names, expressions of names."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import SupportsIndex

from symgrad.ir.dims import (
    MOST_INSIDE,
    Dim,
    Monomial,
    Size,
    least,
    most,
    quotient,
    terms_of,
    weight,
)
from symgrad.ir.errors import ShapeError, short

LONGEST = 4096  # characters of the text of a size
MOST_WORK = 2**16  # pairs of terms that are multiplied or compared for one


def dim(value: Size | str | SupportsIndex) -> Size:
    """A dimension from an int, a `Dim`, a name or an expression of names.

    An expression is made of ints, names, `+ - * **`, `//` by an int, `min` and `max`. Raises
    `ShapeError` for a negative number or another text.

    >>> dim("28*N + 1")
    28*N + 1
    """
    if isinstance(value, str):
        value = _parse(value)
    if isinstance(value, Dim):
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ShapeError(
            f"a dimension is an int or, left open, a name such as 'N', not {short(value)}"
        )
    number = value.__index__()
    if number < 0:
        raise ShapeError(f"a dimension cannot be negative: {short(number)}")
    return number


def same_size(a: Size | str, b: Size | str) -> bool:
    """Whether two sizes are provably the same, whatever their names will be.

    For the guards of rules, which see sizes before any is known; `a == b` raises there unless it is
    decided. Takes what `dim` takes, and raises as it does.

    >>> same_size("N + N", "2*N"), same_size("N", 64)
    (True, False)
    """
    return dim(a) == dim(b)


def _parse(text: str) -> Size:
    if len(text) > LONGEST:
        raise ShapeError(f"a dimension of this length is a mistake: {text[:80]}…")
    try:
        return size_from_ast(ast.parse(text.strip(), mode="eval").body)
    except ShapeError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Dim.of(text)


def size_from_ast(tree: ast.expr) -> Size:
    """A size from Python syntax: ints, names, `+ - * ** // min max` (used by the text form too)."""
    return _Reader().size(tree)


class _Reader:
    """Reads one size, which can come from anywhere.

    No size on the way is longer than somebody may have meant. `left` is the work that may still be
    done, in pairs of terms; it is asked for before it is done.
    """

    def __init__(self) -> None:
        self.left = MOST_WORK

    def size(self, tree: ast.expr) -> Size:
        match tree:
            case ast.Constant(value=int(number)) if not isinstance(number, bool):
                return number
            case ast.Name(id=name):
                return Dim.of(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -1 * self.size(operand)
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))):
                if 0 <= power <= 16:
                    base = self.size(left)
                    result: Size = 1
                    for _ in range(power):
                        result = self.product(base, result)
                    return result
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=ast.Constant(value=int(divisor))):
                if 0 < divisor < 2**63:
                    whole = self.size(left)
                    self.work(weight(whole))
                    return _bounded(quotient(whole, divisor))
            case ast.Call(func=ast.Name(id="min"), args=[_, _, *_] as args, keywords=[]):
                if len(args) <= MOST_INSIDE:
                    return _bounded(least(*self.compared(args)))
            case ast.Call(func=ast.Name(id="max"), args=[_, _] as args, keywords=[]):
                return _bounded(most(*self.compared(args)))
            case ast.BinOp(left=left, op=op, right=right):
                a, b = self.size(left), self.size(right)
                self.work(weight(a) + weight(b))
                if isinstance(op, ast.Add):
                    return _bounded(a + b)
                if isinstance(op, ast.Sub):
                    return _bounded(a - b)
                if isinstance(op, ast.Mult):
                    return self.product(a, b)
        raise ShapeError(
            f"not a dimension: {shown_syntax(tree)}; write an int, a name, or + - * of them, "
            "// by an int, min(…) or max(…)"
        )

    def product(self, a: Size, b: Size) -> Size:
        self.work(weight(a) * weight(b))
        return _bounded(a * b)

    def compared(self, trees: Sequence[ast.expr]) -> list[Size]:
        """Sizes, each of which is to be compared with each."""
        sizes = list(map(self.size, trees))
        self.work(sum(map(weight, sizes)) ** 2)
        return sizes

    def work(self, pairs: int) -> None:
        self.left -= pairs
        if self.left < 0:
            raise ShapeError("a dimension that takes so much arithmetic is a mistake")


def _bounded(size: Size) -> Size:
    """The same, if it is of a size that somebody may have meant."""
    terms = terms_of(size)
    if weight(size) > 4 * MOST_INSIDE or len(terms) > MOST_INSIDE or any(map(_is_large, terms)):
        raise ShapeError("a dimension of this length is a mistake")
    return size


def _is_large(term: tuple[Monomial, int]) -> bool:
    return abs(term[1]) >= 2**63 or len(term[0]) > MOST_INSIDE


def shown_syntax(tree: ast.AST) -> str:
    """The kind of a piece of syntax, and its value or its name: a few words, however long it is."""
    match tree:
        case ast.Constant(value=value):
            return short(value)
        case ast.Name(id=name):
            return short(name)
        case ast.Call(func=ast.Name(id=name)) | ast.Subscript(value=ast.Name(id=name)):
            return f"{name[:60]}{'(…)' if isinstance(tree, ast.Call) else '[…]'}"
        case ast.BinOp(op=kind) | ast.UnaryOp(op=kind):
            return f"{type(kind).__name__}(…)"
        case ast.Expr(value=value):
            return shown_syntax(value)
    return f"{type(tree).__name__}(…)"

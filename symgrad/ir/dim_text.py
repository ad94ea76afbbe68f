"""Sizes from text and from what users write for one: ints, names, expressions of names."""

from __future__ import annotations

import ast

from symgrad.ir.dims import MOST_INSIDE, Dim, Size, least, most, quotient, terms_of
from symgrad.ir.errors import ShapeError


def dim(value: Size | str) -> Size:
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
    try:
        number = (None if isinstance(value, bool) else value).__index__()  # type: ignore[union-attr]
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
    """A size from Python syntax: ints, names, `+ - * ** // min max` (used by the text form too)."""
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
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=ast.Constant(value=int(divisor))):
            if 0 < divisor < 2**63:
                return _bounded(quotient(size_from_ast(left), divisor))
        case ast.Call(func=ast.Name(id="min"), args=[_, _, *_] as args, keywords=[]):
            if len(args) <= MOST_INSIDE:
                return _bounded(least(*map(size_from_ast, args)))
        case ast.Call(func=ast.Name(id="max"), args=[left, right], keywords=[]):
            return _bounded(most(size_from_ast(left), size_from_ast(right)))
        case ast.BinOp(left=left, op=op, right=right):
            a, b = size_from_ast(left), size_from_ast(right)
            if isinstance(op, ast.Add):
                return _bounded(a + b)
            if isinstance(op, ast.Sub):
                return _bounded(a - b)
            if isinstance(op, ast.Mult):
                return _bounded(a * b)
    raise ShapeError(
        f"not a dimension: {ast.unparse(tree)!r}; write an int, a name, or + - * of them, "
        "// by an int, min(…) or max(…)"
    )


def _bounded(size: Size) -> Size:
    """The same, if it is of a size that somebody may have meant: text can come from anywhere."""
    terms = terms_of(size)
    if len(terms) > 64 or any(abs(f) >= 2**63 or len(m) > 64 for m, f in terms):
        raise ShapeError("a dimension of this length is a mistake")
    return size

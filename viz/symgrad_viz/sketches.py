"""Sketches of rewrites: the expressions before and after as two small graphs."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from typing import TypeAlias

from symgrad_viz.words import shortened

MOST = 12  # boxes of one side; what has more is told by its text alone
WIDE = 18  # letters of a box
# What each box says, and the numbers of those before it that it reads.
Sketch: TypeAlias = list[tuple[str, tuple[int, ...]]]
_SIGNS: Mapping[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.MatMult: "@", ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_DTYPE = re.compile(r"(bool|u?int|float|complex)\d*")


@cache
def sketches(change: str) -> tuple[Sketch, ...]:
    """The two sides of `RewriteEvent.change` as graphs; nothing where that is long.

    What a box reads stands before it, and the same part is one box. Attributes of a call are told
    in its box.

    >>> sketches("A * A  ->  square(A)")
    ([('A', ()), ('*', (0, 0))], [('A', ()), ('square', (0,))])
    """
    try:
        parts = [ast.parse(side, mode="eval").body for side in change.split("  ->  ")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found = tuple(map(_drawn, parts))
    return found if len(found) == 2 and max(map(len, found)) <= MOST else ()


def _drawn(root: ast.expr) -> Sketch:
    boxes: dict[tuple[str, tuple[int, ...]], int] = {}

    def enter(term: ast.expr) -> int:
        label, operands = _taken_apart(term)
        box = shortened(label, WIDE), tuple(map(enter, operands))
        return boxes.setdefault(box, len(boxes))

    enter(root)
    return list(boxes)


def _taken_apart(term: ast.expr) -> tuple[str, list[ast.expr]]:
    """The label of a term, and the terms that it reads."""
    match term:
        case ast.BinOp():
            return _SIGNS[type(term.op)], [term.left, term.right]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return ast.unparse(term), []
        case ast.UnaryOp():
            return _SIGNS[type(term.op)], [term.operand]
        case ast.Compare(ops=[sign], comparators=[right]):
            return _SIGNS[type(sign)], [term.left, right]
        case ast.Attribute():
            return f".{term.attr}", [term.value]
        case ast.Call():
            reads = [x for x in term.args if not _is_attribute(x)]
            told = [ast.unparse(x) for x in (*term.args, *term.keywords) if x not in reads]
            return " ".join([ast.unparse(term.func), *told]), reads
    return ast.unparse(term), []


def _is_attribute(term: ast.expr) -> bool:
    return isinstance(term, ast.Tuple) or (
        isinstance(term, ast.Name) and _DTYPE.fullmatch(term.id) is not None
    )

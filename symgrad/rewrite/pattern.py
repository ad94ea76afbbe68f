"""Patterns: expressions over variables, written with the same functions that build graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import copysign
from typing import TYPE_CHECKING, Any, TypeAlias

import symgrad.ops  # noqa: F401  a pattern finds its ops by name
from symgrad.ir.errors import RewriteError
from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ir.node import Node, apply, constant_node, constant_value
from symgrad.ir.op import Op
from symgrad.ir.operators import Operators
from symgrad.ir.values import ArrayData

Substitution: TypeAlias = dict[str, Any]

if TYPE_CHECKING:
    _Anything = Any  # so that an `Attr` can stand where an op wants a value
else:
    _Anything = object


class Pattern(Operators):
    """Part of a rule. An op applied to a pattern makes a pattern, not a node.

    `op` is the one of the nodes that it can match, None if there are several.
    """

    __slots__ = ()
    op: Op | None = None

    def __symgrad_apply__(
        self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]
    ) -> Applied:
        return Applied(op, tuple(map(as_pattern, operands)), tuple(sorted(attrs.items())))


class Var(Pattern):
    """Matches any node; where it occurs twice, the same node twice."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


class Const(Var):
    """Matches a constant of one element."""

    __slots__ = ()
    op = CONSTANT


class Attr(_Anything):  # type: ignore[misc]
    """Matches the value of an attribute."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


class Literal(Pattern):
    """Matches a constant whose one element has this value; the sign of a zero counts."""

    __slots__ = ("value",)
    op = CONSTANT

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


class Applied(Pattern):
    """Matches a node of this op whose operands and attributes match."""

    __slots__ = ("attrs", "inputs", "op")
    op: Op

    def __init__(
        self, op: Op, inputs: tuple[Pattern, ...], attrs: tuple[tuple[str, Any], ...]
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.attrs = attrs

    def __repr__(self) -> str:
        parts = [*map(repr, self.inputs), *(f"{k}={v!r}" for k, v in self.attrs)]
        return f"{self.op.name}({', '.join(parts)})"


def as_pattern(value: Any) -> Pattern:
    """A pattern as it is, a Python number as a literal."""
    if isinstance(value, Pattern):
        return value
    if isinstance(value, (bool, int, float)):
        return Literal(value)
    raise RewriteError(f"a pattern is made of variables, numbers and ops, not of {value!r}")


def names_in(pattern: Pattern) -> list[str]:
    """The variables of a pattern, those for attributes too, as often as they occur."""
    if isinstance(pattern, Var):
        return [pattern.name]
    found = []
    if isinstance(pattern, Applied):
        for part in pattern.inputs:
            found += names_in(part)
        for _, value in pattern.attrs:
            if isinstance(value, Attr):
                found.append(value.name)
    return found


def applied_in(pattern: Pattern) -> Iterator[Applied]:
    """The ops that a pattern applies."""
    if isinstance(pattern, Applied):
        yield pattern
        for x in pattern.inputs:
            yield from applied_in(x)


def variants(pattern: Applied) -> tuple[Applied, ...]:
    """The pattern with the operands of its commutative ops in either order."""
    found = []
    parts = [variants(x) if isinstance(x, Applied) else (x,) for x in pattern.inputs]
    for inputs in product(*parts):
        found.append(Applied(pattern.op, inputs, pattern.attrs))
        if pattern.op.commutative and repr(inputs[0]) != repr(inputs[1]):
            found.append(Applied(pattern.op, inputs[::-1], pattern.attrs))
    return tuple(found)


def may_match(pattern: Pattern, node: Node, levels: int = 2) -> bool:
    """Whether the ops so many levels below a node allow it to have the form of a pattern."""
    if pattern.op is not None and pattern.op is not node.op:
        return False
    if not levels or not isinstance(pattern, Applied):
        return True
    if len(pattern.inputs) != len(node.inputs):
        return False
    for part, x in zip(pattern.inputs, node.inputs, strict=True):
        if part.op is not None and not may_match(part, x, levels - 1):
            return False
    return True


def match(pattern: Pattern, node: Node, bound: Substitution) -> bool:
    """Whether a node has the form of a pattern; fills `bound` with what the variables are."""
    # The innermost loop of the compiler: no generators, the most likely question first.
    if pattern.op is not None and pattern.op is not node.op:
        return False
    if pattern.__class__ is Applied:
        if len(node.inputs) != len(pattern.inputs):
            return False
        if pattern.attrs and not _match_attrs(pattern, node, bound):
            return False
        for part, x in zip(pattern.inputs, node.inputs, strict=True):
            if part.__class__ is Var:
                seen = bound.setdefault(part.name, x)
                if seen is not x and not _same_constant(seen, x):
                    return False
            elif not match(part, x, bound):
                return False
        return True
    if pattern.__class__ is Literal:
        return _is_literal(pattern, node)
    assert isinstance(pattern, Var)
    seen = bound.get(pattern.name)
    if seen is None:
        bound[pattern.name] = node
    elif seen is not node:
        return _same_constant(seen, node)
    return pattern.__class__ is Var or _is_one_element(node)


def _is_literal(pattern: Literal, node: Node) -> bool:
    array = constant_value(node)
    if array is None or array.size != 1:
        return False
    value, wanted = array.item(), pattern.value
    return bool(value == wanted) and (wanted != 0 or copysign(1, value.real) == copysign(1, wanted))


def _match_attrs(pattern: Applied, node: Node, bound: Substitution) -> bool:
    for (key, wanted), (name, value) in zip(pattern.attrs, node.attrs, strict=True):
        if key != name:
            return False
        if isinstance(wanted, Attr):
            wanted = bound.setdefault(wanted.name, value)
        # To NumPy None is a dtype, float64.
        if (wanted is None) is not (value is None) or wanted != value:
            return False
    return True


def _is_one_element(node: Node) -> bool:
    array = constant_value(node)
    return array is not None and array.size == 1


def _same_constant(a: Any, b: Any) -> bool:
    return (
        isinstance(a, Node)
        and isinstance(b, Node)
        and constant_value(a) is not None
        and a.attrs == b.attrs
    )


def interior(pattern: Pattern, node: Node) -> Iterator[Node]:
    """The matched nodes below the root that a pattern spells out; they vanish with the match."""
    if isinstance(pattern, Applied):
        for p, x in zip(pattern.inputs, node.inputs, strict=True):
            if isinstance(p, Applied):
                yield x
                yield from interior(p, x)


def instantiate(pattern: Pattern, bound: Mapping[str, Any], like: Node) -> Node:
    """The nodes that a pattern stands for, numbers taking the dtype of `like`."""
    if isinstance(pattern, Applied):
        operands = [
            p.value if isinstance(p, Literal) else instantiate(p, bound, like)
            for p in pattern.inputs
        ]
        attrs = {k: bound[v.name] if isinstance(v, Attr) else v for k, v in pattern.attrs}
        return apply(pattern.op, operands, attrs)
    if isinstance(pattern, Var):
        found = bound[pattern.name]
        assert isinstance(found, Node)
        return found
    assert isinstance(pattern, Literal)
    return constant_node(ArrayData(pattern.value, like.dtype))

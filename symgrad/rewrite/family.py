"""Families of rules: what holds of an op holds of its dual, its converse, its complement.

One rule of a family is declared; the others are its pattern with other ops, under its name and with
its reason in other words: `maximum_absorbs` makes `minimum_absorbs`, where "no less" is "no more".
Where exchanging words makes no true sentence, the declaration gives the reason of that twin.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import is_
from typing import Any

from symgrad.ir.op import REGISTRY, Op
from symgrad.ir.record import Record
from symgrad.ops.elementwise import add, divide, multiply, subtract
from symgrad.ops.select import where
from symgrad.rewrite.pattern import Applied, Literal, Pattern

_WORDS = re.compile("([a-zA-Z<>=]+)")


class Twin(Record, frozen=True):
    """How a rule becomes its twin: the ops of its pattern by a fact, its words by a list.

    `pattern` gives the twin of a pattern; `names` are words of names and `words` those of reasons,
    each of which stands for the other: `maximum/minimum less/greater`.
    """

    pattern: Callable[[Pattern], Pattern]
    names: Mapping[str, str]
    words: Mapping[str, str]

    def name(self, name: str) -> str:
        """The name of the twin of a rule."""
        return _replaced(name, self.names)

    def reason(self, reason: str) -> str:
        """The reason of the twin of a rule."""
        return _replaced(reason, self.words)


def _replaced(text: str, words: Mapping[str, str]) -> str:
    """A text with words exchanged, the longest first: `less_equal` is no `less`."""
    found = _WORDS.split(text)  # words are at odd places, what is between them at even ones
    for i in range(1, len(found) if words else 0, 2):
        for end in (i + 5, i + 3, i + 1):
            other = words.get("".join(found[i:end]))
            if other is not None:
                found[i:end] = [other, *[""] * (len(found[i:end]) - 1)]
                break
    return "".join(found)


def _either_way(pairs: str) -> dict[str, str]:
    """Words and what stands for them, from `one/other, one/other`."""
    found = [pair.split("/") for pair in pairs.split(", ")]
    return dict(found) | {b: a for a, b in found}


def _other(name: str, op: Op) -> Op:
    return REGISTRY.find(name) if name else op


def dual_of(op: Op) -> Op:
    """The op that takes its place where all signs change; of a comparison, the converse."""
    return _other(op.dual or op.converse, op)


def _or_equal(op: Op) -> Op:
    return REGISTRY.find(REGISTRY.find(op.complement).converse) if op.converse else op


def _with(pattern: Applied, op: Op, inputs: tuple[Pattern, ...]) -> Applied:
    """The pattern with another op and other inputs; itself if they are its own."""
    if op is pattern.op and all(map(is_, inputs, pattern.inputs)):
        return pattern
    return Applied(op, inputs, pattern.attrs)


def _by(fact: Callable[[Op], Op], number: Callable[[Any], Any]) -> Callable[[Pattern], Pattern]:
    """A pattern's twin, whose ops and numbers are other ones."""

    def twin(pattern: Pattern) -> Pattern:
        if isinstance(pattern, Applied):
            return _with(pattern, fact(pattern.op), tuple([twin(x) for x in pattern.inputs]))
        if isinstance(pattern, Literal) and (value := number(pattern.value)) is not pattern.value:
            return Literal(value)
        return pattern

    return twin


def _the_other_way(pattern: Pattern) -> Pattern:
    """A pattern whose choices are by the complement, and so the other way round."""
    if not isinstance(pattern, Applied):
        return pattern
    inputs = tuple(map(_the_other_way, pattern.inputs))
    asked = inputs[0] if pattern.op is where.op else None
    if isinstance(asked, Applied) and asked.op.complement:
        _, x, y = inputs
        other = Applied(REGISTRY.find(asked.op.complement), asked.inputs, asked.attrs)
        inputs = other, y, x
    return _with(pattern, pattern.op, inputs)


# The sign of all numbers is changed.
DUAL = Twin(
    _by(dual_of, lambda value: value if isinstance(value, bool) or not value else -value),
    _either_way(
        "maximum/minimum, fmax/fmin, max/min, argmax/argmin, floor/ceil, less/greater, "
        "lower/upper, choice_above/choice_below, choice_from/choice_up_to, is_positive/is_negative"
    ),
    _either_way(
        "maximum/minimum, larger/smaller, largest/smallest, less/greater, lower/upper, "
        "above/below, positive/negative, </>, <=/>=, no less/no more, a lower/an upper, "
        "A lower/An upper, higher one/lower one"
    ),
)
# Truth is negated: De Morgan's laws.
DE_MORGAN = Twin(
    _by(lambda op: _other(op.de_morgan, op), lambda v: not v if isinstance(v, bool) else v),
    _either_way("and/or, any/all, true/false, neither/not_both, implied/excluded"),
    _either_way("true/false, True/False, conjunction/disjunction"),
)
# What is true of less is true of less or equal.
OR_EQUAL = Twin(
    _by(_or_equal, lambda value: value),
    _either_way(
        "less/less_equal, greater/greater_equal, choice_below/choice_up_to, "
        "choice_above/choice_from, select_positive/select_not_negative, "
        "select_negative/select_not_positive"
    ),
    _either_way(
        "less/less or equal, greater/greater or equal, </<=, >/>=, positive/not negative, "
        "negative/not positive"
    ),
)
# A choice is by the opposite condition, and so the other way round; its reason is the same.
COMPLEMENT = Twin(
    _the_other_way,
    _either_way("less/greater_equal, greater/less_equal"),
    {},
)


def instead(words: str, *ops: tuple[Op, Op]) -> Twin:
    """The twin of which each of some ops has the place of another; `words` tell in what words."""
    swapped = {a: b for one, other in ops for a, b in ((one, other), (other, one))}
    pairs = _either_way(words)
    return Twin(_by(lambda op: swapped.get(op, op), lambda value: value), pairs, pairs)


DIFFERENCE = instead("sum/difference", (add.op, subtract.op))
QUOTIENT = instead(
    "times/over, factor/divisor, is multiplied once/divides once", (multiply.op, divide.op)
)
PRODUCT = instead(
    "sum/product, sums/products, term/factor, terms/factors, added/multiplied in",
    (add.op, multiply.op),
)
INVERSE = instead(
    "sum/difference, product/quotient, plus_minus/minus_plus, times_over/over_times, "
    "add/subtract, Adding/Subtracting, adding/subtracting",
    (add.op, subtract.op),
    (multiply.op, divide.op),
)

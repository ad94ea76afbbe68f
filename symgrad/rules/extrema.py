"""Extrema: relu, maximum, minimum and bounds; and the choices that are one of them, spelled out."""

from __future__ import annotations

import math

import numpy as np

from symgrad.ir.node import Node, constant_value
from symgrad.ops.activations import leaky_relu
from symgrad.ops.elementwise import abs, negative, square
from symgrad.ops.leaves import zeros_like
from symgrad.ops.logic import greater, less
from symgrad.ops.select import maximum, minimum, relu, select, where
from symgrad.ops.shape import astype_p
from symgrad.rewrite.family import COMPLEMENT, DUAL, OR_EQUAL
from symgrad.rewrite.pattern import Attr, Const, Var
from symgrad.rewrite.rule import Exact, Rewrite, rule
from symgrad.rules.masks import every, is_as_wide, is_finite, value_of

# ---- relu -----------------------------------------------------------------------------------


@rule(exact=Exact.VALUES, kinds="f")
def maximum_is_relu(x: Var) -> Rewrite:
    """The larger of x and 0 is relu."""
    return Rewrite(before=maximum(x, 0), after=relu(x))


@rule(exact=Exact.REALS, kinds="f", family=(OR_EQUAL,))
def select_positive_is_relu(x: Var) -> Rewrite:
    """x where it is positive, else 0, is relu, but for NaN."""
    return Rewrite(before=select(greater(x, 0), x), after=relu(x))


@rule(exact=Exact.REALS, kinds="f")
def positive_part_of_relu(x: Var) -> Rewrite:
    """Where x is not positive relu is 0 by itself, but for NaN."""
    return Rewrite(before=select(greater(x, 0), relu(x)), after=relu(x))


@rule(exact=Exact.BITS, kinds="f")
def relu_times_its_mask(x: Var, p: Attr) -> Rewrite:
    """Where x is not positive relu is 0 by itself."""
    return Rewrite(before=relu(x) * astype_p(greater(x, 0), dtype=p), after=relu(x))


@rule(exact=Exact.BITS, kinds="f")
def relu_of_abs(x: Var) -> Rewrite:
    """What has no sign is not negative."""
    return Rewrite(before=relu(abs(x)), after=abs(x))


@rule(exact=Exact.ROUNDING, kinds="f")
def relu_of_square(x: Var) -> Rewrite:
    """A square is not negative; but where it underflows, relu would have no slope."""
    return Rewrite(before=relu(square(x)), after=square(x))


@rule(exact=Exact.BITS)
def abs_of_relu(x: Var) -> Rewrite:
    """What is not negative has no sign to lose."""
    return Rewrite(before=abs(relu(x)), after=relu(x))


@rule(exact=Exact.BITS)
def relu_of_selected_relu(mask: Var, x: Var) -> Rewrite:
    """A selection of what is not negative is not negative."""
    return Rewrite(before=relu(select(mask, relu(x))), after=select(mask, relu(x)))


@rule(exact=Exact.REALS, kinds="f")
def relu_of_negative_relu(x: Var) -> Rewrite:
    """What is negative or 0 has no positive part, but for NaN."""
    return Rewrite(before=relu(-relu(x)), after=lambda x: zeros_like(x))


# ---- constant bounds ------------------------------------------------------------------------


def is_number(c: Node) -> bool:
    """Whether a constant is not NaN."""
    return every(c, lambda v: v == v)


def is_above_zero(c: Node) -> bool:
    """Whether a constant is greater than 0; it may be inf."""
    return every(c, lambda v: v > 0)


TWO_BOUNDS = tuple(
    {"x": (1,), "c": c, "d": d}
    for c in (0.0, 1.0, -1.0, np.inf)
    for d in (-0.0, 3.0, np.nan, -np.inf, 1e-45)
)


@rule(
    exact=Exact.VALUES,
    when=lambda x: constant_value(x) is None,
    examples=TWO_BOUNDS,
    family=(DUAL,),
)
def lower_bounds_are_one(x: Var, c: Const, d: Const) -> Rewrite:
    """Of two lower bounds the higher one counts."""
    return Rewrite(before=maximum(maximum(x, c), d), after=maximum(x, maximum(c, d)))


def _bounded_below(x: Node, c: Node) -> Node:
    return maximum(x, c) if is_above_zero(c) else relu(x)


@rule(exact=Exact.VALUES, kinds="f", when=is_number)
def maximum_of_relu(x: Var, c: Const) -> Rewrite:
    """Of two lower bounds the higher one counts; that of relu is 0."""
    return Rewrite(before=maximum(relu(x), c), after=_bounded_below)


@rule(exact=Exact.VALUES, kinds="f", when=is_number)
def relu_of_maximum(x: Var, c: Const) -> Rewrite:
    """Of two lower bounds the higher one counts; that of relu is 0."""
    return Rewrite(before=relu(maximum(x, c)), after=_bounded_below)


def _in_order(c: Node, d: Node) -> bool:
    low, high = constant_value(c), constant_value(d)
    return low is not None and high is not None and bool((low <= high).all())


@rule(exact=Exact.VALUES, single_use=True, when=_in_order)
def lower_bound_first(x: Var, c: Const, d: Const) -> Rewrite:
    """Of two bounds the lower one comes first, as in `clip`, so that it meets other lower ones."""
    return Rewrite(before=maximum(minimum(x, d), c), after=minimum(maximum(x, c), d))


@rule(exact=Exact.VALUES, kinds="f", single_use=True, when=is_above_zero)
def relu_before_minimum(x: Var, c: Const) -> Rewrite:
    """Of two bounds the lower one comes first, as in `clip`, so that it meets other lower ones."""
    return Rewrite(before=relu(minimum(x, c)), after=minimum(relu(x), c))


# ---- signs ----------------------------------------------------------------------------------


def _no_wider(x: Node, y: Node) -> bool:
    return is_as_wide(x, y) or is_as_wide(y, x)


@rule(exact=Exact.VALUES, kinds="f", single_use=True, when=_no_wider, family=(DUAL,))
def maximum_of_negatives(x: Var, y: Var) -> Rewrite:
    """What was negated is in the opposite order: one change of sign instead of two."""
    return Rewrite(before=maximum(-x, -y), after=-minimum(x, y))


@rule(exact=Exact.VALUES, kinds="f", single_use=True, family=(DUAL,))
def negative_of_maximum(x: Var, c: Const) -> Rewrite:
    """A lower bound among negatives is an upper bound."""
    return Rewrite(before=-maximum(-x, c), after=minimum(x, -c))


@rule(exact=Exact.VALUES, kinds="f")
def maximum_of_opposites(x: Var) -> Rewrite:
    """The larger of x and -x is the absolute value."""
    return Rewrite(before=maximum(x, -x), after=abs(x))


# ---- of a value with itself -----------------------------------------------------------------


@rule(exact=Exact.BITS, family=(DUAL,))
def maximum_of_same(x: Var) -> Rewrite:
    """The larger of a value and itself is the value."""
    return Rewrite(before=maximum(x, x), after=x)


# ---- lattice laws, for numbers without NaN and without gradient: at a tie it is shared otherwise


@rule(exact=Exact.BITS, kinds="biu", family=(DUAL,))
def maximum_absorbs(x: Var, y: Var) -> Rewrite:
    """x is no less than the smaller of it and another."""
    return Rewrite(before=maximum(x, minimum(x, y)), after=x)


@rule(exact=Exact.BITS, kinds="biu", family=(DUAL,))
def maximum_repeated(x: Var, y: Var) -> Rewrite:
    """A lower bound once is enough."""
    return Rewrite(before=maximum(x, maximum(x, y)), after=maximum(x, y))


# ---- choices that are extrema ---------------------------------------------------------------


@rule(exact=Exact.VALUES, kinds="f", when=is_number, family=(OR_EQUAL, DUAL))
def choice_below_is_maximum(x: Var, c: Const) -> Rewrite:
    """c where x is less, else x, is the larger one."""
    return Rewrite(before=where(less(x, c), c, x), after=maximum(x, c))


@rule(
    exact=Exact.VALUES,
    kinds="f",
    family=(OR_EQUAL, COMPLEMENT),
    reasons={
        "choice_by_less_is_abs": "-x where x is negative, else x, is the absolute value.",
        "choice_by_less_equal_is_abs": "-x where x is not positive, else x, is the absolute value.",
    },
)
def choice_by_greater_is_abs(x: Var) -> Rewrite:
    """x where it is positive, else -x, is the absolute value."""
    return Rewrite(before=where(greater(x, 0), x, negative(x)), after=abs(x))


@rule(exact=Exact.VALUES, kinds="f", when=lambda c: every(c, lambda v: (v > 0) & (v < 1)))
def maximum_is_leaky_relu(x: Var, c: Const) -> Rewrite:
    """The larger of x and c * x is leaky relu, for a slope c between 0 and 1."""
    return Rewrite(before=maximum(x, x * c), after=lambda x, c: leaky(x, c))


def leaky(x: Node, c: Node) -> Node | None:
    """leaky_relu, for a slope that is an ordinary number."""
    slope = float(value_of(c).item())
    return leaky_relu(x, slope=slope) if math.isfinite(slope) else None


@rule(
    exact=Exact.VALUES,
    kinds="f",
    when=is_finite,
    family=(OR_EQUAL, COMPLEMENT),
    reasons={
        "choice_by_less_is_leaky_relu": "c * x where x is negative, else x, is leaky relu.",
        "choice_by_less_equal_is_leaky_relu": (
            "c * x where x is not positive, else x, is leaky relu."
        ),
    },
)
def choice_by_greater_is_leaky_relu(x: Var, c: Const) -> Rewrite:
    """x where it is positive, else c * x, is leaky relu."""
    return Rewrite(before=where(greater(x, 0), x, x * c), after=lambda x, c: leaky(x, c))

"""Kinks: which subgradient is taken where a function has no derivative.

The answer is always an element of Clarke's generalised gradient: for one variable, a number between
the one-sided derivatives; at a tie of two variables each gets half. (F. H. Clarke, Optimization and
Nonsmooth Analysis, 1983, section 2.3.) The choice is made op by op, on the normal form of the
graph: for a composition that no normal form knows, the chain rule of the choices need not lie
there.

A NaN is the same as a NaN: where an extremum is NaN, what flows goes to the operands that are NaN,
which share it, so that no zeros hide where it came from. Only relu has the derivative 0 at NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

from symgrad.ir.errors import GradientError
from symgrad.ir.op import REGISTRY
from symgrad.ir.origin import kinks_within

Side: TypeAlias = "str | float"
Policy: TypeAlias = "Side | Mapping[str, Side] | Kinks | None"

SIDES = ("zero", "left", "right", "split")


class Kinks(NamedTuple):
    """A choice of subgradient: one for all ops, and others for ops by name.

    `zero` is the element nearest to 0, `left` and `right` the one-sided derivatives, `split` their
    mean, and a number t in [0, 1] lies so far on the way from the left one to the right one.
    """

    side: Side = "zero"
    by_op: tuple[tuple[str, Side], ...] = ()

    @classmethod
    def of(cls, policy: Policy) -> Kinks:
        """A policy from what a user writes. Raises `GradientError` for anything else."""
        if policy is None:
            return cls()
        if isinstance(policy, Kinks):
            return policy
        if isinstance(policy, Mapping):
            kinked = [n for n, op in REGISTRY.every().items() if op.kinks]
            for name in policy:
                if name not in kinked:
                    raise GradientError(
                        f"{name!r} is no op with a kink; those are {', '.join(kinked)}"
                    )
            return cls("zero", tuple((n, _side(s)) for n, s in policy.items()))
        return cls(_side(policy))

    @property
    def policy(self) -> Side | dict[str, Side]:
        """The policy as a user writes it: one side, or a side for each op."""
        return dict(self.by_op) or self.side

    def at(self, op_name: str, active: tuple[bool, ...]) -> Choice:
        """The choice for one op, of whose inputs some depend on what is differentiated by."""
        return Choice(dict(self.by_op).get(op_name, self.side), active, self)


class Choice(NamedTuple):
    """The choice for the derivative of an op: the slope at a kink, and which inputs are active."""

    side: Side
    active: tuple[bool, ...]
    policy: Kinks = Kinks()

    def pick(self, left: float, right: float) -> float:
        """The slope at a kink between two slopes."""
        if self.side == "zero":
            return min(max(0.0, min(left, right)), max(left, right))
        parts = {"left": 0.0, "right": 1.0, "split": 0.5}
        t = parts[self.side] if isinstance(self.side, str) else self.side
        return left + float(t) * (right - left)


def _side(side: Side) -> Side:
    if side in SIDES:
        return side
    if isinstance(side, (int, float)) and not isinstance(side, bool) and 0 <= side <= 1:
        return float(side)
    raise GradientError(
        f"kinks is 'zero', 'left', 'right', 'split', a number from 0 (left) to 1 (right), or a "
        f"dict of these by the name of an op, not {side!r}"
    )


@contextmanager
def kinks(policy: Policy) -> Iterator[None]:
    """A region of the graph whose kinks have this subgradient, whatever `grad` is told.

    >>> with kinks("right"):
    ...     y = relu(x)
    """
    with kinks_within(Kinks.of(policy)):
        yield

"""Kinks: which subgradient is taken where a function has no derivative.

`zero` is chosen op by op, on the normal form of the graph: of the slopes of an op the one nearest
to 0; what ties shares. All others are chosen for the function as a whole, by the direction in which
what is differentiated by moves: `right` is +1 for every element of every `wrt`, `left` is -1. At a
tie an op takes the branch to which its operands move then (`autodiff/locking.py`). The gradient g
along a direction d has g · d = f'(x; d), the one-sided derivative of the function, however it is
spelled, and it is an element of Clarke's generalised gradient where f is piecewise smooth. (F. H.
Clarke, Optimization and Nonsmooth Analysis, 1983, section 2.3; K. A. Khan and P. I. Barton, A
vector forward mode of automatic differentiation for generalized derivative evaluation, 2015.)

A NaN is the same as a NaN: where an extremum is NaN, what flows goes to the operands that are NaN,
which share it, so that no zeros hide where it came from. Only relu has the derivative 0 at NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, TypeAlias

from symgrad.ir.errors import GradientError
from symgrad.ir.node import Node, as_node, describe
from symgrad.ir.origin import kinks_within

Side: TypeAlias = Literal["zero", "left", "right", "split"] | float
Policy: TypeAlias = "Side | Mapping[Node, Any] | tuple[Any, ...] | Kinks | None"
Direction: TypeAlias = "str | tuple[tuple[Node, Node], ...]"  # or for some nodes how they move

SIDES = ("zero", "left", "right", "split")


class Kinks(NamedTuple):
    """A choice of subgradient: a side, or directions one after the other.

    The side is "zero", or a place between "left" and "right": a number t in [0, 1] is the mean of
    the gradients on both sides, that on the right weighing t; "split" is 0.5.
    """

    side: Side | Literal["along"] = "zero"
    along: tuple[Direction, ...] = ()

    @classmethod
    def of(cls, policy: Policy) -> Kinks:
        """A choice from what a user writes. Raises `GradientError` for anything else."""
        if policy is None:
            return cls()
        if isinstance(policy, Kinks):
            return policy
        if isinstance(policy, Mapping):
            return cls("along", (_direction(policy),))
        if isinstance(policy, tuple) and policy:
            return cls("along", tuple(map(_direction, policy)))
        if isinstance(policy, str) and policy in SIDES:
            return cls(policy)
        if isinstance(policy, (int, float)) and not isinstance(policy, bool) and 0 <= policy <= 1:
            return cls(float(policy))
        raise GradientError(
            "kinks is 'zero', 'left', 'right', 'split', a number from 0 (left) to 1 (right), or a "
            f"direction, as in {{w: 1.0}} with the nodes of wrt, not {policy!r:.60}"
        )

    @classmethod
    def of_region(cls, policy: Policy) -> Kinks:
        """The same for a region of a graph, which has a side."""
        found = cls.of(policy)
        if found.along:
            raise GradientError(
                "kinks is 'zero', 'left', 'right', 'split' or a number for a region of a graph; a "
                "direction belongs to what is differentiated by: grad(loss, w, kinks={w: …})"
            )
        return found

    @property
    def place(self) -> float | None:
        """Where it is between left, 0, and right, 1; None for "zero" and for directions."""
        if isinstance(self.side, str):
            return {"left": 0.0, "right": 1.0, "split": 0.5}.get(self.side)
        return self.side


def _direction(given: Any) -> Direction:
    if isinstance(given, str) and given in ("left", "right"):
        return given
    if not isinstance(given, Mapping) or not given:
        raise GradientError(
            "kinks is 'zero', 'left', 'right', 'split' or a number; of several directions each is "
            f"'left', 'right', or a dict with an array for each node that moves, not {given!r:.60}"
        )
    pairs = []
    for node, value in given.items():
        if not isinstance(node, Node):
            raise GradientError(
                f"a direction at kinks is of nodes, not of {node!r:.60}: it is chosen for the "
                "function and not op by op. Write kinks={w: array}, w being in wrt"
            )
        moved = as_node(value)
        if moved.shape not in ((), node.shape) or moved.dtype.kind not in "iufc":
            raise GradientError(
                f"the direction of {describe(node)} at kinks has its shape, {node.shape}, and "
                f"numbers, not {moved.type!r}"
            )
        pairs.append((node, moved))
    return tuple(pairs)


@contextmanager
def kinks(policy: Policy) -> Iterator[None]:
    """A region of the graph whose kinks have this subgradient, whatever `grad` is told.

    It is a side, as `grad` takes: "zero", "left", "right", "split" or a number from 0 to 1.

    >>> with kinks("right"):
    ...     y = relu(x)
    """
    with kinks_within(Kinks.of_region(policy)):
        yield

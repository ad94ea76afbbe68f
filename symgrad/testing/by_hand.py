"""A gradient derived by hand, held against the derived one."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.autodiff.transforms import grad
from symgrad.ir.arraylike import is_function
from symgrad.ir.errors import ArgumentError, short
from symgrad.ir.kinks import Policy
from symgrad.ir.node import Node, as_node
from symgrad.ops.shape import astype
from symgrad.proof.counterexample import Counterexample
from symgrad.proof.same import Equality, same


def assert_same_gradient(
    loss: Node, wrt: Node, *, by_hand: Any, kinks: Policy = "zero", proved: bool = False
) -> Equality:
    """Assert that a gradient derived by hand is that of a loss; give the proof (see `sg.same`).

    `loss` is a scalar node, `wrt` a node that it is made of, `by_hand` a node of the shape of
    `wrt`. On failure the message says at which point the two differ, in which element, and what
    stands between them, if that is a factor or a transposition. If it is neither proved nor
    refuted, all points that were tried agree: this passes, unless it is to be `proved`.

    Raises `AssertionError` where they differ, `ArgumentError` if the shapes do.

    >>> loss = sg.sum((x @ w - t) ** 2)
    >>> assert_same_gradient(loss, w, by_hand=2 * x.T @ (x @ w - t))
    """
    for name, given in (("wrt", wrt), ("by_hand", by_hand)):
        if isinstance(given, (list, tuple)) or is_function(given):
            raise ArgumentError(
                f"{name} is one node, not {short(given)}; call this once for each gradient"
            )
    derived, written = grad(loss, wrt, kinks=kinks), as_node(by_hand)
    if written.dtype.kind == "b":
        written = astype(written, derived.dtype)
    if derived.shape != written.shape:
        turned = derived.shape == written.shape[::-1]
        raise ArgumentError(
            f"the gradient by {wrt.type!r} has its shape, {derived.shape}; what was derived by "
            f"hand has {written.shape}" + ("; transpose it" if turned else "")
        )
    found = same(derived, written)
    if found.verdict == "different":
        point = found.counterexample
        why = "" if point is None else f"{_between(point)}\n{point}"
        raise AssertionError(
            f"the gradient derived by hand (the second) is another: {why or found}"
            + _at_kinks(loss, wrt, written, kinks)
        )
    if proved and not found:
        raise AssertionError(f"the gradient derived by hand is not proved to be right: {found}")
    return found


def _at_kinks(loss: Node, wrt: Node, written: Node, kinks: Policy) -> str:
    """For which other slopes at kinks it is not refuted, in words."""
    sides: tuple[Policy, ...] = ("zero", "left", "right", "split")
    for side in sides:
        other = grad(loss, wrt, kinks=side)
        if side != kinks and same(other, written, effort=0).verdict != "different":
            return f"\nit agrees with the gradient of another choice at kinks: kinks={side!r}"
    return ""


def _between(point: Counterexample) -> str:
    """The difference of two arrays in words: a factor, a transposition, or elements that differ."""
    a, b = np.asarray(point.first, float), np.asarray(point.second, float)
    if a.ndim == 2 and a.shape[0] == a.shape[1] and np.allclose(a, b.T) and not np.allclose(a, a.T):
        return "it is the transposed one"
    there = (a != 0) & (b != 0)
    ratios = b[there] / a[there]
    if ratios.size > 1 and np.allclose(ratios, ratios[0]) and ((a == 0) == (b == 0)).all():
        return f"at this point it is {ratios[0]:.6g} times the derived one"
    wrong = ~np.isclose(a, b, equal_nan=True)
    return f"{np.count_nonzero(wrong)} of {wrong.size} elements differ at this point"

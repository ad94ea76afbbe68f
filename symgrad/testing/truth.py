"""Stable rules, which are held to the truth: what long double finds from the same numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from symgrad.ir.graph import Graph
from symgrad.ir.long_double import WIDE
from symgrad.ir.long_double import Run as WideRun
from symgrad.ir.node import Node
from symgrad.ir.walk import topological
from symgrad.ops.leaves import placeholder
from symgrad.rewrite.rule import Rule
from symgrad.testing.equality import Run
from symgrad.testing.graphs import random_feeds
from symgrad.testing.spellings import gradients, is_elementwise, named_in, points_of

ROOM = 32  # units in the last place
MAGNITUDES = ((-1e-9, 1e-9), (-1e-3, 1e-3), (-30.0, 30.0), (-1e3, 1e3), (999.0, 1001.0))


def held_to_truth(rule: Rule, before: Node, after: Node, inputs: Sequence[Node]) -> int:
    """Assert that a stable rule is near the truth; the number of points at which that is known."""
    _refuse_undoing(rule, before, after)
    if np.finfo(before.dtype).nmant + 8 > np.finfo(WIDE).nmant:
        return 0
    g = placeholder("g", before.shape, before.dtype)
    old, new = ([y, *gradients(y, inputs, g)] for y in (before, after))
    rng = np.random.default_rng(1)
    trials = (random_feeds(rng, inputs, domain=(interval,)) for interval in MAGNITUDES)
    points, undone = 0, _Undone(before, after)
    for arrays in chain(trials, points_of(inputs, named_in([before, after]))):
        feeds = dict(zip([*inputs, g], [*arrays, *random_feeds(rng, [g])], strict=True))
        if _is_near(rule, old, new, feeds):
            points += 1
            undone.see(feeds)
    undone.refuse(rule)
    return points


class _Undone:
    """The operands and inner nodes whose value what stands for them has had at every point."""

    def __init__(self, before: Node, after: Node) -> None:
        self.after = after
        self.left = [n for n in topological([before])[:-1] if n.type == before.type]
        self.seen = 0

    def see(self, feeds: Mapping[Node, Any]) -> None:
        """Compare at one more point."""
        if self.left and all(np.size(v) for v in feeds.values()):
            self.seen += 1
            *inner, found = Run([*self.left, self.after], feeds).results()
            self.left = [n for n, v in zip(self.left, inner, strict=True) if _is_about(found, v)]

    def refuse(self, rule: Rule) -> None:
        """Assert that none is left."""
        assert not self.left or not self.seen, (
            f"{rule.name} always has the value of {self.left[0]!r}, an operand or an inner node; "
            f"that undoes a rounding, and is no stable form: {rule}"
        )


def _is_about(found: Any, value: Any) -> bool:
    eps = np.finfo(found.dtype).eps
    return bool(np.allclose(found, value, rtol=ROOM * eps, atol=0, equal_nan=True))


def _refuse_undoing(rule: Rule, before: Node, after: Node) -> None:
    inner = topological([before])
    kept = after
    while kept.op.view:
        kept = kept.inputs[0]
    assert not any(kept is n for n in inner), (
        f"{rule.name} gives back an operand; that undoes a rounding, and is no stable form: {rule}"
    )
    assert any(n.inputs and (n.op.expensive or not n.op.elementwise) for n in inner), (
        f"{rule.name} rewrites arithmetic on elements, each of whose roundings IEEE 754 defines, "
        f"so that it may be meant; `stable` is not for that: {rule}"
    )


def _is_near(
    rule: Rule, before: Sequence[Node], after: Sequence[Node], feeds: Mapping[Node, Any]
) -> bool:
    """Whether the truth is known at a point, where a stable rule must be near it."""
    truth = _exactly(before, feeds)
    if truth is None:
        return False
    olds, news = Run(before, feeds).results(), Run(after, feeds).results()
    normwise = not all(map(is_elementwise, topological(after[:1])))
    # There are no derivatives at infinities.
    count = len(before) if all(np.isfinite(v).all() for v in feeds.values()) else 1
    first = list(zip(truth, olds, news, strict=True))[:count]
    if all(_near(t, a, b, normwise, i == 0) for i, (t, a, b) in enumerate(first)):
        return True
    lost = [_exactly(before, feeds, noise=seed) or truth for seed in range(4)]
    moved = [_exactly(before, _nudged(feeds, seed)) or truth for seed in range(4)]
    for i, (t, old, new) in enumerate(first):
        doubts, slopes = [x[i] for x in lost], [x[i] for x in moved]
        if not _near(t, old, new, normwise, i == 0, doubts, slopes):
            at = "\n".join(f"  {n.name} = {v!r}" for n, v in feeds.items())
            raise AssertionError(
                f"not near the true {'gradient' if i else 'value'}: {rule}\n{at}\n"
                f"truth:  {t!r}\nbefore: {old!r}\nafter:  {new!r}\n"
                f"before:\n{Graph(before)}\nafter:\n{Graph(after)}"
            )
    return True


def _near(
    truth: Any,
    old: Any,
    new: Any,
    normwise: bool,
    is_value: bool,
    lost: Sequence[Any] = (),
    moved: Sequence[Any] = (),
) -> bool:
    """Whether a result is near the truth, which may be in doubt, and steep in the operands."""
    limits = np.finfo(old.dtype)
    with np.errstate(all="ignore"):
        size, error = _finite_part(truth), _finite_part(old - truth)
        if normwise:
            size = np.full(size.shape, size.max(initial=0))
        if is_value:
            error = np.where(error > size / 2, 0, error)
        doubt = sum(_finite_part(x - truth) for x in lost)
        slope = sum(_finite_part(x - truth) for x in moved)
        allowed = error + 10 * doubt + ROOM * (limits.eps * size + slope) + limits.tiny
        near = (np.abs(new - truth) <= allowed) | (new == truth) | (np.isnan(new) & np.isnan(truth))
        unknown = np.isfinite(truth) & (np.abs(truth) > limits.max / 2)
        for x in lost:
            unknown |= (np.isfinite(x) != np.isfinite(truth)) | (np.isnan(x) != np.isnan(truth))
    return bool((near | unknown).all())


def _finite_part(x: Any) -> Any:
    return np.where(np.isfinite(x), np.abs(x), 0)


def _nudged(feeds: Mapping[Node, Any], seed: int) -> dict[Node, Any]:
    """The feeds in long double, each number moved by half a unit in the last place of its own."""
    rng = np.random.default_rng(seed)
    return {
        x: v * (1 + np.finfo(v.dtype).eps * rng.choice([-0.5, 0.5], np.shape(v)).astype(WIDE))
        if np.asarray(v).dtype.kind == "f"
        else v
        for x, v in feeds.items()
    }


def _exactly(
    outputs: Sequence[Node], feeds: Mapping[Node, Any], noise: int | None = None
) -> list[Any] | None:
    """The results in long double; None where even that overflows or underflows.

    With `noise`, what is computed is off by a few units in the last place: what then changes is
    lost in long double, too.
    """
    rng = None if noise is None else np.random.default_rng(noise)
    run = WideRun(outputs, feeds, noise=rng, unit=float(np.finfo(WIDE).eps))
    return None if run.extreme else run.results()

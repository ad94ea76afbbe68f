"""Whether a rule keeps its grade: spelled out, fed, and compared, for values and gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import lru_cache
from itertools import chain, tee
from typing import Any

import numpy as np

from symgrad.ir.errors import RewriteError
from symgrad.ir.graph import Graph
from symgrad.ir.leaf_ops import PLACEHOLDER
from symgrad.ir.node import Node
from symgrad.ir.walk import topological
from symgrad.ops.elementwise import add, subtract
from symgrad.ops.leaves import ones_like
from symgrad.rewrite.driver import Index, rewrite
from symgrad.rewrite.rule import Exact, Rule
from symgrad.rewrite.trace import Trace
from symgrad.testing.equality import (
    Run,
    assert_finite,
    assert_same,
    is_same,
    last_digits,
    tolerances,
)
from symgrad.testing.spellings import (
    MANY,
    edges_of,
    gradients,
    is_elementwise,
    named_in,
    points_of,
    spellings,
)
from symgrad.testing.truth import held_to_truth

Feeds = Mapping[Node, Any]


def check_rule(rule: Rule) -> int:
    """Assert that a rule keeps its grade, for values and gradients; the number of points compared.

    What it rewrites is spelled out from its pattern in every dtype that it accepts, and fed with
    ordinary numbers, with all of {0, -0, 1, -1, inf, -inf, nan, denormal, max}, with numbers of all
    magnitudes, and with those that the rule names, their neighbours and multiples. The rule is
    applied once, at one place. Below `rounding` it is tried on large views of transposed arrays,
    too, and the result must lie in memory as it did. At `rounding` the digits at points where IEEE
    arithmetic signals overflow or underflow are left out; but there, and near the largest and the
    smallest numbers, what is finite as written must be finite, unless it is a sum of terms that
    cancel though their magnitudes overflow. Elsewhere elementwise rules are held to a few units in
    the last place of the result, so that none can undo a rounding that was written.

    A rule that is `stable` is held to the truth instead: what it rewrites, computed in long double
    from the same numbers. Wherever that is known (nothing overflows, underflows or is lost in long
    double either), NaN and inf must be where they are there, and the error must be at most that of
    what it rewrites and a few units in the last place of the result (of the largest one, if it
    works along axes) or of the operands. Where what it rewrites has no right digit, its error
    counts for nothing: there the truth must be met. A rule that gives back an operand, or what
    always has the value of one or of an inner node, or that rewrites nothing but arithmetic on
    elements, is refused: see `symgrad.rule`. Where long double has no more digits than a dtype,
    that is not checked. Raises `RewriteError` for what is no rule.
    """
    if not isinstance(rule, Rule):
        raise RewriteError(f"check_rule is given what @sg.rule(exact=…) has made, not {rule!r:.60}")
    points = 0
    turned = applications(rule, turned=True) if rule.exact < Exact.ROUNDING else ()
    for before, inputs, after in chain(applications(rule), turned):
        assert after.type == before.type
        held = held_to_truth if rule.stable else _held_to_grade
        points += held(rule, before, after, inputs)
    assert points, f"nothing that was spelled out lets {rule.name} act: give it `examples`"
    return points


def applications(rule: Rule, turned: bool = False) -> Iterator[tuple[Node, list[Node], Node]]:
    """The spellings of a rule at which it acts, with their placeholders, and what it makes."""
    return copy(_applied(rule, turned))


@lru_cache(maxsize=2)  # several tests of one rule ask for them
def _applied(rule: Rule, turned: bool) -> Iterator[tuple[Node, list[Node], Node]]:
    made = ((y, xs, applied_once(rule, y, xs)) for y, xs in spellings(rule, turned))
    (shared,) = tee(((y, xs, after) for y, xs, after in made if after is not None), 1)
    return shared


def applied_once(rule: Rule, before: Node, inputs: Sequence[Node]) -> Node | None:
    """The result of a rule applied once, as near to the root as it fits; None if it fits nowhere.

    Raises `AssertionError` if the rule fails, but `RewriteError` if it makes another type.
    """
    graph = Graph([before], inputs)
    keep_layout = rule.exact < Exact.ROUNDING
    place, index = _at_one_place(rule)
    for node in reversed(graph.nodes):
        if not index.at(node):
            continue
        trace = Trace()
        # At this node alone, so that it never meets what it made itself.
        place.node = node
        try:
            made = rewrite(graph, index, trace, keep_layout=keep_layout).outputs[0]
        except RewriteError:
            raise
        except Exception as error:
            raise AssertionError(f"{rule} raised {error!r} for\n{graph}") from error
        if trace.fired:
            return made
    return None


class _Place:
    """The one node at which a rule is tried."""

    node: Node | None = None

    def __call__(self, node: Node) -> bool:
        return node is self.node


@lru_cache(maxsize=2)  # asked for at every spelling
def _at_one_place(rule: Rule) -> tuple[_Place, Index]:
    place = _Place()
    return place, Index([rule.only(place)])


def _held_to_grade(rule: Rule, before: Node, after: Node, inputs: Sequence[Node]) -> int:
    """Assert that a rule keeps its grade; the number of points that could be compared."""
    old, new = [before], [after]
    if not rule.after_grad:
        g = ones_like(before)
        old, new = ([y, *gradients(y, inputs, g)] for y in (before, after))
    named = named_in([before, after])
    # Sums are as exact as their largest terms.
    sums = _has_sums(before)
    reach = 8 if sums and rule.exact >= Exact.ROUNDING else 30
    if rule.exact == Exact.ROUNDING:
        for arrays in _no_longer_finite(before, after, inputs):
            feeds = dict(zip(inputs, arrays, strict=True))
            with suppress(ValueError):  # a singular matrix
                written = Run([before], feeds)
                _stays_finite(rule, written, _run(rule, [after], feeds))
    points = list(points_of(inputs, named, reach))
    return sum(
        _compare(rule, old, new, dict(zip(inputs, arrays, strict=True)))
        # The first ones in any case: they show that shapes, dtypes and layouts are the same.
        for arrays in [*points[:2], *_apart(old, new, inputs, points[2:])]
    )


def _apart(
    old: Sequence[Node], new: Sequence[Node], inputs: Sequence[Node], points: list[list[Any]]
) -> list[list[Any]]:
    """The points at which results may differ in a byte, but for which NaN they have."""
    expected, found = (_at_once(nodes, inputs, points) for nodes in (old, new))
    if expected is None or found is None:
        return points
    same = np.ones(len(points), bool)
    for a, b in zip(expected, found, strict=True):
        equal = (_bytes(a) == _bytes(b)).all(axis=-1) | ((a != a) & (b != b)).reshape(len(a), -1)
        same &= equal.all(axis=1)
    return [point for point, alike in zip(points, same, strict=True) if not alike]


def _no_longer_finite(before: Node, after: Node, inputs: Sequence[Node]) -> list[list[Any]]:
    """Arrays near the ends of the range at which what was finite may not be so."""
    points = edges_of(inputs)
    expected, found = (_at_once([y], inputs, points) for y in (before, after))
    if expected is None or found is None:
        return points
    lost = (np.isfinite(expected[0]) & ~np.isfinite(found[0])).reshape(len(points), -1)
    return [point for point, apart in zip(points, lost.any(axis=1), strict=True) if apart]


def _at_once(
    nodes: Sequence[Node], inputs: Sequence[Node], points: list[list[Any]]
) -> list[np.ndarray[Any, Any]] | None:
    """The values of nodes at all points, along a new first axis.

    None if an op does more with what comes of the inputs than work on its elements. What comes of
    constants alone is the same at all points, and may be made by any op.
    """
    ndim = max((x.ndim for x in inputs), default=0)
    fed = {*inputs}
    for n in topological(nodes):
        if isinstance(n.type, tuple) or n.ndim > ndim:
            return None
        if not fed.isdisjoint(n.inputs):
            if not n.op.elementwise:
                return None
            fed.add(n)
    if not inputs or len(points) < 2:
        return None
    feeds = {
        x: np.stack(column).reshape(len(points), *(1,) * (ndim - x.ndim), *x.tensor.shape)
        for x, column in zip(inputs, zip(*points, strict=True), strict=True)
    }
    try:
        values = Run(nodes, feeds).results()
    except ValueError:  # an integer to a negative power
        return None
    shapes: list[Any] = [(len(points), *y.tensor.shape) for y in nodes]
    alone = [
        np.reshape(v, s) if y in fed else v for y, v, s in zip(nodes, values, shapes, strict=True)
    ]
    return [np.array(np.broadcast_to(v, s)) for v, s in zip(alone, shapes, strict=True)]


def _bytes(rows: Any) -> Any:
    """The bytes of each element of each row."""
    return rows.reshape(len(rows), -1, 1).view(np.uint8)


@lru_cache(maxsize=64)  # asked again at every point
def _has_sums(y: Node) -> bool:
    """Whether something in what a node is computed from works along axes."""
    return not all(map(is_elementwise, topological([y])))


def _stays_finite(rule: Rule, old: Run, new: Run) -> None:
    """Assert that a value that is finite as written is finite; see `assert_finite`."""
    (before, *_), (after, *_) = old.outputs, new.outputs
    try:
        assert_finite([before], old, [new.values[after]])
    except AssertionError as error:
        graphs = f"before:\n{Graph(before)}\nafter:\n{Graph(after)}"
        raise AssertionError(f"{error}\n{rule}\n{_shown(old.feeds)}\n{graphs}") from None


def _compare(
    rule: Rule, before: Sequence[Node], after: Sequence[Node], feeds: Feeds, again: bool = True
) -> bool:
    """Whether the two could be compared at a point, where they must be the same.

    The first is the value; the others are gradients, which there are none of at a pole or a NaN,
    and which, where they are sums, are sums in another order.
    """
    try:
        a = Run(before, feeds)
    except ValueError:  # a singular matrix, or an integer to a negative power
        return False
    b = _run(rule, after, feeds)
    grade, extreme = rule.exact, a.extreme or b.extreme
    compared = False
    if again and (extreme or a.pole or b.pole):
        tame = _tamed([a, b], feeds)
        compared = tame is not None and _compare(rule, before, after, tame, again=False)
    if grade >= Exact.ROUNDING and extreme:
        if grade == Exact.ROUNDING:
            _stays_finite(rule, a, b)
        return compared
    if grade < Exact.ROUNDING:
        _same_layout(rule, a, b)
    smooth = not (a.pole or b.pole) and not any(np.isnan(v).any() for v in feeds.values())
    pairs = (
        zip(before, a.results(), b.results(), strict=True)
        if smooth
        else [(before[0], a.results()[0], b.results()[0])]
    )
    for y, expected, found in pairs:
        sums = _has_sums(y)
        least = Exact.BITS if y is before[0] else Exact.ROUNDING if sums else Exact.VALUES
        held = max(grade, least)
        if not is_same(found, expected, held):
            loose = held >= Exact.ROUNDING and (sums or grade == Exact.REALS)
            cancelled = np.False_ if loose or grade < Exact.ROUNDING else _cancelled(y, a)
            room = (loose or cancelled.any()) and not extreme
            allowed = tolerances([y], feeds, held) if room else None
            if loose and allowed is None:
                return compared
            if allowed is not None and not loose:
                allowed = [np.where(cancelled, allowed[0], last_digits(np.asarray(expected)))]
            _hold(rule, y, after, feeds, found, expected, held, allowed)
    return True


def _cancelled(y: Node, run: Run) -> Any:
    """The elements in which terms of a sum cancel: they are as uncertain as the terms are large."""
    found = np.zeros(np.shape(run.values[y]), bool)
    for node in topological([y]):
        if y.dtype.kind in "fc" and node.op in (add.op, subtract.op) and node.dtype.kind in "fc":
            terms = np.maximum(*(np.abs(run.values[x]) for x in node.inputs))
            found = found | (np.abs(run.values[node]) < terms / 16)
    return found


def _run(rule: Rule, after: Sequence[Node], feeds: Feeds) -> Run:
    try:
        return Run(after, feeds)
    except Exception as error:
        raise AssertionError(
            f"what {rule} makes raised {error!r} at\n{_shown(feeds)}\nafter:\n{Graph(after)}"
        ) from error


def _tamed(runs: Sequence[Run], feeds: Feeds) -> Feeds | None:
    """The feeds of many points, those left out at which something is extreme; None if all are."""
    if not feeds or any(np.shape(v) != (MANY,) for v in feeds.values()):
        return None
    wild = np.zeros(MANY, bool)
    for value in chain.from_iterable(run.values.values() for run in runs):
        if np.shape(value) == (MANY,) and value.dtype.kind == "f":
            wild |= ~np.isfinite(value) | (np.abs(value) < np.finfo(value.dtype).tiny)
    if wild.all() or not wild.any():
        return None
    return {x: np.where(wild, v[np.argmin(wild)], v) for x, v in feeds.items()}


def _same_layout(rule: Rule, old: Run, new: Run) -> None:
    """Assert that two results lie in memory alike: else sums of them round differently."""
    one, other = map(_strides, (old.results()[0], new.results()[0]))
    if one == other or not old.outputs[0].size:
        return
    raise AssertionError(
        f"not the same layout, so that sums round differently: {rule}\n"
        f"{_shown({x: v for x, v in old.values.items() if x.op is PLACEHOLDER})}\n"
        f"strides {other}, expected {one}\n"
        f"before:\n{Graph(old.outputs[:1])}\nafter:\n{Graph(new.outputs[:1])}"
    )


def _strides(x: Any) -> list[int]:
    return [s for s, n in zip(np.asarray(x).strides, np.shape(x), strict=True) if n > 1]


def _hold(
    rule: Rule,
    y: Node,
    after: Sequence[Node],
    feeds: Feeds,
    found: Any,
    expected: Any,
    grade: Exact,
    allowed: list[Any] | None,
) -> None:
    """Assert with the room that noise leaves, or without any; the message is the counterexample."""
    try:
        assert_same(found, expected, grade, allowed and allowed[0])
    except AssertionError as last:
        raise AssertionError(
            f"not the same at {grade.name}: {rule}\n{_shown(feeds)}\n{last}\n"
            f"before:\n{Graph(y)}\nafter:\n{Graph(after)}"
        ) from None


def _shown(feeds: Feeds) -> str:
    return "\n".join(f"  {n.name} = {v!r}" for n, v in feeds.items())

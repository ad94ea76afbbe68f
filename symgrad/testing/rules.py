"""Whether a rule keeps its grade: spelled out, fed, and compared, for values and gradients."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, cycle, product
from typing import Any

import numpy as np

from symgrad.autodiff.reverse import carries
from symgrad.derive import vjp
from symgrad.ir.errors import SymgradError
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, apply
from symgrad.ir.operators import call
from symgrad.ir.walk import topological
from symgrad.ops.leaves import constant, ones_like, placeholder
from symgrad.rewrite.driver import rewrite
from symgrad.rewrite.pattern import Attr, Bound, Const, Var
from symgrad.rewrite.rule import Exact, Rule
from symgrad.rewrite.trace import Trace
from symgrad.testing.equality import Run, assert_same, rooms
from symgrad.testing.graphs import (
    DTYPES,
    NUMBERS,
    cases_of,
    random_feeds,
    results_of,
    special_values,
    spelled,
)

CONSTANTS = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, np.inf, np.nan, 1e-310, 1e-45, 1e38, 1e308)

Spelling = tuple[Node, list[Node]]


def check_rule(rule: Rule) -> int:
    """Assert that a rule keeps its grade, for values and gradients; the number of points compared.

    What it rewrites is spelled out from its pattern in every dtype that it accepts, and fed with
    ordinary numbers and with all of {0, -0, 1, -1, inf, -inf, nan, denormal, max}. At `rounding`
    points where IEEE arithmetic signals overflow or underflow are left out, since there the order
    of operations decides between a number and inf. Elsewhere elementwise rules are held to a few
    units in the last place of the result, so that none can undo a rounding that was written.

    A rule that is `stable` is held to the truth instead: what it rewrites, computed in long double
    from the same numbers. Wherever that is known (nothing overflows, underflows or is lost in long
    double either), NaN and inf must be where they are there, and the error must be at most that of
    what it rewrites and a few units in the last place of the result (of the largest one, if it
    works along axes) or of the operands. Where what it rewrites has no right digit, its error
    counts for nothing: there the truth must be met. A rule
    that gives back an operand, or that rewrites nothing but arithmetic on elements, is refused: see
    `symgrad.rule`. Where long double has no more digits than a dtype, that is not checked.
    """
    points = 0
    for before, inputs in spellings(rule):
        trace = Trace()
        after = rewrite(Graph([before], inputs), [rule], trace).outputs[0]
        if not trace.fired:
            continue
        assert after.type == before.type
        if rule.stable:
            points += _held_to_truth(rule, before, after, inputs)
        else:
            points += sum(
                _compare(
                    rule,
                    [before, *_gradients(before, inputs)],
                    [after, *_gradients(after, inputs)],
                    dict(zip(inputs, arrays, strict=True)),
                )
                for arrays in _points(inputs)
            )
    assert points, f"nothing that was spelled out lets {rule.name} act: give it `tries`"
    return points


def _gradients(y: Node, inputs: Sequence[Node], g: Node | None = None) -> Sequence[Node]:
    wrt = [x for x in inputs if carries(x)]
    if not wrt or not carries(y) or any(n.op.vjp is None and n.inputs for n in topological([y])):
        return ()
    return vjp(y, wrt, ones_like(y) if g is None else g, disconnected="zero")


def _compare(
    rule: Rule, before: Sequence[Node], after: Sequence[Node], feeds: Mapping[Node, Any]
) -> bool:
    """Whether the two could be compared at a point, where they must be the same.

    The first is the value; the others are gradients, which there are none of at a pole or a NaN,
    and which, where they are sums, are sums in another order.
    """
    a, b = Run(before, feeds), Run(after, feeds)
    grade, extreme = rule.exact, a.extreme or b.extreme
    if grade >= Exact.ROUNDING and extreme:
        return False
    smooth = not (a.pole or b.pole) and not any(np.isnan(v).any() for v in feeds.values())
    compared = (
        zip(before, a.results(), b.results(), strict=True)
        if smooth
        else [(before[0], a.results()[0], b.results()[0])]
    )
    for y, expected, found in compared:
        sums = not all(map(_is_elementwise, topological([y])))
        least = Exact.BITS if y is before[0] else Exact.ROUNDING if sums else Exact.VALUES
        try:
            assert_same(found, expected, max(grade, least))
        except AssertionError as error:
            loose = max(grade, least) >= Exact.ROUNDING and (sums or grade == Exact.REALS)
            allowed = rooms([y], feeds, max(grade, least)) if loose and not extreme else None
            if loose and allowed is None:
                return False
            _hold(rule, y, after, feeds, found, expected, max(grade, least), allowed, error)
    return True


# ---- stable rules, and the truth ------------------------------------------------------------

WIDE = np.dtype(np.longdouble)
ROOM = 32  # units in the last place
MAGNITUDES = ((-1e-9, 1e-9), (-1e-3, 1e-3), (-30.0, 30.0), (-1e3, 1e3), (999.0, 1001.0))


def _held_to_truth(rule: Rule, before: Node, after: Node, inputs: Sequence[Node]) -> int:
    """Assert that a stable rule is near the truth; the number of points at which that is known."""
    _refuse_undoing(rule, before, after)
    if np.finfo(before.dtype).nmant + 8 > np.finfo(WIDE).nmant:
        return 0
    g = placeholder("g", before.shape, before.dtype)
    old, new = ([y, *_gradients(y, inputs, g)] for y in (before, after))
    rng = np.random.default_rng(1)
    trials = (random_feeds(rng, inputs, domain=(interval,)) for interval in MAGNITUDES)
    points = 0
    for arrays in chain(trials, _points(inputs)):
        feeds = dict(zip([*inputs, g], [*arrays, *random_feeds(rng, [g])], strict=True))
        points += _is_near(rule, old, new, feeds)
    return points


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
    normwise = not all(map(_is_elementwise, topological(after[:1])))
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
    extreme: list[str] = []
    values = {x: _wide(v) for x, v in feeds.items()}
    with np.errstate(all="ignore", over="call", under="call", call=lambda k, f: extreme.append(k)):
        for node in topological(outputs, known=values.keys()):
            operands, attrs = [values[x] for x in node.inputs], dict(node.attrs)
            made = _wide(node.op.kernel(*operands, **attrs))
            if rng is not None and operands and made.dtype == WIDE:
                size = np.abs(made)
                if not node.op.elementwise:
                    size = np.fmax(size, np.abs(node.op.kernel(*map(np.abs, operands), **attrs)))
                size = np.where(np.isfinite(size), size, 0)
                made = made + 4 * np.finfo(WIDE).eps * size * rng.standard_normal(made.shape)
            values[node] = made
    return None if extreme else [values[y] for y in outputs]


def _wide(value: Any) -> Any:
    array = np.asarray(value)
    return array.astype(WIDE) if array.dtype.kind == "f" else array


# ---- the other rules ------------------------------------------------------------------------


def _hold(
    rule: Rule,
    y: Node,
    after: Sequence[Node],
    feeds: Mapping[Node, Any],
    found: Any,
    expected: Any,
    grade: Exact,
    allowed: list[Any] | None,
    error: AssertionError,
) -> None:
    """Assert once more, with the room that noise leaves; the message is the counterexample."""
    try:
        if allowed is None:
            raise error
        assert_same(found, expected, grade, allowed[0])
    except AssertionError as last:
        at = "\n".join(f"  {n.name} = {v!r}" for n, v in feeds.items())
        raise AssertionError(
            f"not the same at {grade.name}: {rule}\n{at}\n{last}\n"
            f"before:\n{Graph(y)}\nafter:\n{Graph(after)}"
        ) from None


def _is_elementwise(node: Node) -> bool:
    return node.op.elementwise or node.op.view or not node.inputs


def _points(inputs: Sequence[Node]) -> Iterator[list[Any]]:
    """Arrays for the inputs: the whole grid where each has one element, else draws from it."""
    rng = np.random.default_rng(0)
    for _ in range(2):
        yield random_feeds(rng, inputs)
    if inputs and all(x.shape == (1,) for x in inputs):
        for values in product(*(special_values(x.dtype) for x in inputs)):
            yield [np.array([v]) for v in values]
    else:
        for _ in range(8):
            yield random_feeds(rng, inputs, special=True)


def spellings(rule: Rule) -> Iterator[Spelling]:
    """Nodes to which a rule may apply, each with its placeholders."""
    for attempt in rule.tries:
        if callable(attempt):
            count = len(inspect.signature(attempt).parameters)
            yield from _built(attempt, [(3, 4)] * count)
    if rule.function is not None:
        yield from _with_op(rule)
    for form in rule.forms:
        for binding in _bindings(rule, grid=form is rule.forms[0]):
            names = [v.name for v in rule.variables if type(v) is Var]
            fixed = {k: v for k, v in binding.items() if k not in names}

            def spell(*xs: Node) -> Node:
                bound = {**fixed, **dict(zip(names, xs, strict=True))}  # noqa: B023
                dtypes = [x.dtype for x in xs]
                like = next((d for d in dtypes if d.kind != "b"), dtypes[0])
                made = spelled(form, bound, like)  # noqa: B023
                assert isinstance(made, Node)
                return made

            yield from _built(spell, [binding[n] for n in names], mixed=True)


def _built(
    build: Callable[..., Node], shapes: Sequence[Any], mixed: bool = False
) -> Iterator[Spelling]:
    """What a function builds of placeholders, in every dtype; some of them masks, if `mixed`."""
    for dtype in DTYPES:
        for choice in product(
            (dtype, "bool") if mixed and dtype != "bool" else (dtype,), repeat=len(shapes)
        ):
            xs = [
                placeholder(f"x{i}", s, d)
                for i, (s, d) in enumerate(zip(shapes, choice, strict=True))
            ]
            try:
                yield build(*xs), xs
            except SymgradError:
                continue


def _bindings(rule: Rule, grid: bool) -> Iterator[Bound]:
    """What the variables of a rule are: shapes, numbers and values of attributes."""
    names = [v.name for v in rule.variables if type(v) is Var]
    numbers = [v.name for v in rule.variables if isinstance(v, Const)]
    yield from (dict(t) for t in rule.tries if not callable(t))
    if rule.tries or any(isinstance(v, Attr) for v in rule.variables):
        return
    for shapes in (((2, 3),), ((2, 3), (3,), (2, 1)), ((3,), (2, 1)), ((),), ((0, 3),)):
        for ndim in (0, 2):
            arrays = (np.full((1,) * ndim, v) for v in NUMBERS)
            yield {
                **dict(zip(names, cycle(shapes), strict=False)),
                **dict(zip(numbers, arrays, strict=False)),
            }
    for values in product(CONSTANTS if grid else (), repeat=len(numbers)):
        yield {**dict.fromkeys(names, (1,)), **dict(zip(numbers, values, strict=True))}


def _with_op(rule: Rule) -> Iterator[Spelling]:
    """Each op of which a rule knows a fact, on constants and on what was broadcast."""
    for op in rule.ops:
        for shapes, attrs in cases_of(op):
            for dtype in op.dtypes.split():
                rng = np.random.default_rng(0)
                xs = [placeholder(f"x{i}", s, dtype) for i, s in enumerate(shapes)]
                feeds = random_feeds(rng, xs, domain=op.domain)
                wide = [call("broadcast_to", x, (2, *x.shape)) for x in xs if op.elementwise]
                trials = [[constant(a) for a in feeds], xs, wide, [*wide[:1], *xs[1:]]]
                for operands in trials if wide else trials[:2]:
                    try:
                        made = apply(op, operands, attrs)
                    except SymgradError:
                        continue
                    for y in results_of(made):
                        yield y, [n for n in topological([y]) if n.op.name == "placeholder"]

"""Points at which two nodes differ, sought at random and then made as simple as they get."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from symgrad.ir.dims import Dim, evaluate
from symgrad.ir.long_double import Run
from symgrad.ir.node import Node
from symgrad.ir.types import types_of
from symgrad.ir.walk import topological
from symgrad.ops.activations import log_softmax, logsumexp, softmax
from symgrad.ops.elementwise import add, subtract
from symgrad.ops.ranges.facts import ROUNDED
from symgrad.ops.ranges.inference import declared
from symgrad.rewrite.rule import Exact

SIMPLE = (0.0, 1.0, -1.0, 2.0, 0.5)
EXTREME = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)
NOISES = range(4)
MOST_TRIALS = 300  # of simpler points
KINDS = ("ties", "normal", "unit", "positive", "negative", "wide", "definite", "zeros")
# Of integers up to where they wrap; not beside floats, which round them, nor in loops to them.
WRAPPING = ("ends", "anything")
FAR = 100  # times what noise does
SHORT = 2**12
ROWS = (log_softmax.op, logsumexp.op, softmax.op)


class Counterexample(NamedTuple):
    """A point at which two nodes differ: the arrays that are fed, and what each node is there.

    `place` is the index of the element that differs most.
    """

    feeds: Mapping[str, Any]
    first: Any
    second: Any
    place: tuple[int, ...]

    def __str__(self) -> str:
        lines = [f"  {name} = {_short(value)}" for name, value in self.feeds.items()]
        at = f" at {list(self.place)}" if self.place else ""
        first, second = (np.asarray(v)[self.place] for v in (self.first, self.second))
        return "\n".join([*lines, f"there the first is {first}, the second {second}{at}"])


def _short(value: Any) -> str:
    return np.array2string(np.asarray(value), threshold=24, separator=", ").replace("\n", "\n    ")


def find(
    f: Node, g: Node, inputs: Sequence[Node], exact: Exact, points: int
) -> tuple[Counterexample | None, int]:
    """A point at which two nodes of one type differ at a grade, and at how many they agreed."""
    agreed = 0
    kinds = KINDS if exact == Exact.REALS else ("extreme", *KINDS)
    if all(not n.bodies and types_of(n.type)[0].dtype.kind in "iub" for n in topological([f, g])):
        kinds = (*kinds[:2], *WRAPPING, *kinds[2:])
    for feeds in _points(inputs, kinds, points):
        verdict = differs(f, g, feeds, exact)
        if verdict:
            return _counterexample(f, g, _simplified(f, g, feeds, exact), exact), agreed
        agreed += verdict is False
    return None, agreed


def _counterexample(f: Node, g: Node, feeds: Mapping[Node, Any], exact: Exact) -> Counterexample:
    first, second = map(np.asarray, Run([f, g], feeds, wide=False).results())
    apart: Any = np.not_equal(first, second)
    if first.dtype.kind in "fc":
        with np.errstate(all="ignore"):
            size = np.abs(np.subtract(first, second))
        apart = np.where(apart, np.where(np.isnan(size), np.inf, size), 0)
        if exact > Exact.VALUES:  # what is not finite tells nothing about real numbers
            apart = np.where(np.isfinite(first) & np.isfinite(second), apart, 0)
        else:
            apart = np.where(np.isnan(first) & np.isnan(second), 0, apart)
    index = np.unravel_index(int(np.argmax(apart)), np.shape(apart))
    place = tuple(int(i) for i in index)
    return Counterexample({str(x.name): v for x, v in feeds.items()}, first, second, place)


def differs(f: Node, g: Node, feeds: Mapping[Node, Any], exact: Exact) -> bool | None:
    """Whether two nodes differ at a point, None where rounding or what is undefined hides it."""
    try:
        plain = Run([f, g], feeds, wide=False)
    except Exception:  # a kernel refuses the point, as a singular matrix
        return None
    a, b = map(np.asarray, plain.results())
    if exact <= Exact.VALUES:
        if exact == Exact.VALUES or a.dtype.kind not in "fc":
            return not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
        return bool((np.isnan(a) != np.isnan(b)).any()) or _bytes(a) != _bytes(b)
    if a.dtype.kind not in "fc":
        return None if _moves(plain, f, g, feeds) is None else not np.array_equal(a, b)
    wide = _long(f, g, feeds)
    if wide is not None and _is_exact(plain, wide):
        fine = np.isfinite(a) & np.isfinite(b)
        return bool((a != b)[fine].any()) if fine.any() else None
    finer = plain if wide is None else wide
    moves = None if finer.extreme else _moves(finer, f, g, feeds)
    if moves is None:
        return None
    a, b = map(np.asarray, finer.results())
    fine = np.isfinite(a) & np.isfinite(b)
    if not fine.any():
        return None
    with np.errstate(all="ignore"):
        return bool((np.abs(a - b) > FAR * moves + np.finfo(_real_dtype(f)).tiny)[fine].any())


def _real_dtype(node: Node) -> Any:
    """The dtype of a node's real part."""
    return np.finfo(node.dtype).dtype


def _bytes(a: Any) -> bytes:
    """The bytes of numbers, whichever NaN a NaN is."""
    return bytes(np.where(np.isnan(a), a.dtype.type(1), a).tobytes())


def _long(f: Node, g: Node, feeds: Mapping[Node, Any]) -> Run | None:
    try:
        return Run([f, g], feeds)
    except Exception:  # no kernel of LAPACK's takes long doubles
        return None


def _is_exact(plain: Run, wide: Run) -> bool:
    """Whether nothing was rounded: every number is the same in long double, and that is no chance.

    Long double, too, forgets 1 beside 1e20, takes tanh(50) for 1 and exp(-1e5) for 0.
    """
    return not wide.extreme and all(
        isinstance(v, tuple)
        or (np.array_equal(v, wide.values[n], equal_nan=True) and _shows_its_rounding(n, wide))
        for n, v in plain.values.items()
    )


def _shows_its_rounding(node: Node, wide: Run) -> bool:
    """Whether a rounded result of a node would not be the same in double and in long double."""
    op, value = node.op, wide.values[node]
    if value.dtype.kind != "f":
        return bool(value.dtype.kind != "c")  # complex numbers are no wider there
    operands = [wide.values[x] for x in node.inputs]
    if any(isinstance(x, tuple) for x in operands):
        return False
    if op in (add.op, subtract.op):  # after Knuth's TwoSum
        first, second = operands
        with np.errstate(invalid="ignore"):
            part = value - first
            kept = (value - part == first) & (part == (second if op is add.op else -second))
        return bool(kept[np.isfinite(value)].all())
    if not operands or op.view or op.kinks or op.zero_filled or op.name in ROUNDED:
        return True
    if op.elementwise or op in ROWS:  # such a function of other numbers is irrational
        return all(bool(np.isin(np.abs(x), (0, 1)).all()) for x in operands)
    return all(map(_is_short, (*operands, value)))


def _is_short(value: Any) -> bool:
    """Whether numbers have few digits, so that those of their products and sums are all there."""
    if value.dtype.kind != "f":
        return True
    scaled = value * SHORT
    return bool(((scaled == np.rint(scaled)) & (np.abs(value) <= SHORT)).all())


def _moves(base: Run, f: Node, g: Node, feeds: Mapping[Node, Any]) -> Any:
    """How far noise moves the two; None if it makes another choice somewhere."""
    found: Any = 0.0
    for seed in NOISES:
        try:
            noisy = Run([f, g], feeds, wide=base.wide, noise=np.random.default_rng(seed))
        except Exception:  # as above
            return None
        for node, value in base.values.items():
            if isinstance(value, tuple):
                continue
            other = noisy.values[node]
            if value.dtype.kind in "fc":
                if not np.array_equal(np.isfinite(value), np.isfinite(other)):
                    return None
            elif not np.array_equal(value, other):
                return None
        with np.errstate(all="ignore"):
            for y in (f, g):
                if y.dtype.kind in "fc":
                    found = np.fmax(found, np.abs(noisy.values[y] - base.values[y]))
    return found


# ---- points ---------------------------------------------------------------------------------


def _points(inputs: Sequence[Node], kinds: Sequence[str], count: int) -> Iterator[dict[Node, Any]]:
    """Arrays for the inputs: small numbers that tie, ordinary, positive ones, probabilities."""
    rng = np.random.default_rng(0)
    names = sorted(
        {name for x in inputs for d in x.shape if isinstance(d, Dim) for name in d.names}
    )
    for number, kind in zip(range(count), cycle(kinds), strict=False):
        sizes = {name: 1 + (number + i) % 4 for i, name in enumerate(names)}
        shapes = [tuple(evaluate(d, sizes) for d in x.shape) for x in inputs]
        pairs = zip(inputs, shapes, strict=True)
        yield {x: drawn(rng, x, shape, kind) for x, shape in pairs}


def drawn(rng: np.random.Generator, x: Node, shape: tuple[int, ...], kind: str) -> Any:
    """Numbers of a kind that may be fed: of the dtype, within the range that was declared."""
    return _as_declared(x, _draw(rng, x, shape, kind))


def _as_declared(x: Node, values: Any) -> Any:
    array, found = np.asarray(values).astype(x.dtype), declared(x)
    if found is None:
        return array
    inside = np.where(
        array >= found.low, np.where(array <= found.high, array, found.high), found.low
    )
    return inside.astype(x.dtype)


def _draw(rng: np.random.Generator, x: Node, shape: tuple[int, ...], kind: str) -> Any:
    if kind == "definite" and len(shape) > 1 and shape[-1] == shape[-2]:
        a = rng.standard_normal(shape) if x.dtype.kind in "fc" else np.zeros(shape)
        return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])
    if x.dtype.kind == "b":
        return rng.random(shape) < 0.5
    if x.dtype.kind in "iu":
        if kind == "ends" or (kind == "wide" and x.dtype.itemsize == 1):
            ends = np.iinfo(x.dtype)
            near = [ends.min, ends.min + 1, 0, 1, ends.max - 1, ends.max]
            return rng.choice(np.array(near, x.dtype), shape)
        if kind == "anything":
            ends = np.iinfo(x.dtype)
            return rng.integers(ends.min, ends.max, shape, x.dtype, endpoint=True)
        low, high = {"ties": (-3, 4), "negative": (-9, 0), "wide": (0, 99)}.get(kind, (0, 4))
        return rng.integers(low, high, shape) if x.dtype.kind == "i" else rng.integers(0, 4, shape)
    if x.dtype.kind == "c":
        return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    draws: dict[str, Callable[[], Any]] = {
        "extreme": lambda: rng.choice(EXTREME, shape),
        "zeros": lambda: np.zeros(shape),
        "ties": lambda: rng.choice([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0], shape),
        "unit": lambda: rng.uniform(0.05, 0.95, shape),
        "positive": lambda: rng.uniform(0.2, 3, shape),
        "negative": lambda: rng.uniform(-9, -0.2, shape),
        "wide": lambda: rng.standard_normal(shape) * np.exp2(rng.integers(-8, 5, shape)),
    }
    return draws[kind]() if kind in draws else rng.standard_normal(shape)


def _holds(kind: str, number: float) -> bool:
    return kind == "f" or (number == int(number) and (kind == "i" or number >= 0))


def _simplified(f: Node, g: Node, feeds: dict[Node, Any], exact: Exact) -> dict[Node, Any]:
    """A point that still shows the difference, of numbers that are as simple as may be."""
    left = MOST_TRIALS
    for x in feeds:
        if feeds[x].dtype.kind not in "fiu" or not feeds[x].size:
            continue
        within = declared(x)
        values = [v for v in SIMPLE if _holds(x.dtype.kind, v)]
        values = [v for v in values if within is None or v in within]
        whole = (np.full_like(feeds[x], v) for v in values)
        simple = next((a for a in whole if differs(f, g, feeds | {x: a}, exact)), None)
        if simple is not None:
            feeds = feeds | {x: simple}
            continue
        for i in range(min(feeds[x].size, 64)):
            for v in (*values, _as_declared(x, np.round(feeds[x].flat[i]))):
                if left <= 0:
                    return feeds
                if feeds[x].flat[i] == v:
                    break
                trial = feeds[x].copy()
                trial.flat[i] = v
                left -= 1
                if differs(f, g, feeds | {x: trial}, exact):
                    feeds = feeds | {x: trial}
                    break
    return feeds

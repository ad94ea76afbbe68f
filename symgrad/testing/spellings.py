"""Examples for rules: nodes spelled out from a pattern, and arrays to feed them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import lru_cache
from itertools import cycle, groupby, product, tee
from math import prod
from typing import Any

import numpy as np

from symgrad.autodiff.reverse import is_differentiable
from symgrad.autodiff.transforms import vjp
from symgrad.ir.errors import SymgradError
from symgrad.ir.graph import Graph
from symgrad.ir.leaf_ops import PLACEHOLDER
from symgrad.ir.node import Node, apply, constant_value
from symgrad.ir.op import Op
from symgrad.ir.origin import built_as, current_origin
from symgrad.ir.types import TensorType
from symgrad.ir.walk import topological
from symgrad.ops.identity import results_of
from symgrad.ops.leaves import constant, placeholder
from symgrad.ops.shape import broadcast_to, permute_dims
from symgrad.rewrite.pattern import Attr, Const, Substitution, Var, applied_in, instantiate
from symgrad.rewrite.rule import Rule
from symgrad.testing.graphs import (
    COMPLEX,
    DTYPES,
    NUMBERS,
    as_constant,
    cases_of,
    examples_of,
    neighbours,
    random_feeds,
    special_values,
    wide_feeds,
)

ORDINARY = (-1.0, 0.5, 3.0, 0.1, 49.0)
CONSTANTS = (0.0, -0.0, 1.0, *ORDINARY, np.inf, np.nan, 1e-310, 1e-45, 1e38, 1e308)
WIDE_AND_NARROW = (((2, 3), (3,), (2, 1)), ((3,), (2, 3)), ((3,), (3,), (2, 3)))
SHAPES = (((2, 3),), *WIDE_AND_NARROW, ((3,), (2, 1)), ((),), ((0, 3),))
SQUARES = ((3, 3),)
MANY = 200
TOO_MANY = 10**7

Spelling = tuple[Node, list[Node]]


def gradients(y: Node, inputs: Sequence[Node], g: Node) -> Sequence[Node]:
    """The gradients of a node for those of the inputs that it has any for."""
    wrt = [x for x in inputs if is_differentiable(x)]
    if not wrt or not is_differentiable(y) or any(_has_no_slope(n) for n in topological([y])):
        return ()
    found: list[Node] = vjp(y, wrt, g, disconnected="zero")
    return found


def _has_no_slope(node: Node) -> bool:
    op = node.op
    return bool(node.inputs and (op.no_slope or (op.vjp is None and not op.of_several)))


def is_elementwise(node: Node) -> bool:
    """Whether a node computes with elements, one by one, if with any."""
    return node.op.elementwise or node.op.view or not node.inputs


# ---- arrays ---------------------------------------------------------------------------------


def points_of(
    inputs: Sequence[Node], named: Sequence[float] = (), reach: int = 30
) -> Iterator[list[Any]]:
    """Arrays for the inputs: ordinary, special, and of numbers of all sizes and those `named`.

    The whole grid of special values where each has one element, else draws from it. Of all sizes
    are those that have many elements, and most between 2 to the power of ±`reach`.
    """
    if not inputs:
        yield []
        return
    types = tuple([x.tensor for x in inputs])
    yield from _special(types)
    if any(x.shape != (1,) for x in inputs):
        yield from _wide(types, tuple(named), reach)


@lru_cache(maxsize=1024)  # asked for by every rule
def _wide(
    types: Sequence[TensorType], named: Sequence[float], reach: int
) -> list[list[np.ndarray[Any, Any]]]:
    """Arrays of numbers of all sizes, and of those that are named."""
    rng = np.random.default_rng(1)
    return [wide_feeds(rng, types, named, within) for within in (reach, reach, None)]


@lru_cache(maxsize=1024)
def _special(types: Sequence[TensorType]) -> list[list[Any]]:
    """Ordinary arrays, and such as have special values."""
    rng = np.random.default_rng(0)
    found: list[list[Any]] = [random_feeds(rng, types) for _ in range(2)]
    if types and all(t.shape == (1,) for t in types):
        grid = product(*(special_values(t.dtype) for t in types))
        return found + [[np.array([v]) for v in values] for values in grid]
    many = max((t.size for t in types if isinstance(t.size, int)), default=0) >= MANY
    return found + [random_feeds(rng, types, special=True) for _ in range(2 if many else 8)]


def edges_of(inputs: Sequence[Node]) -> list[list[Any]]:
    """Arrays for the inputs of numbers near the largest, the smallest normal ones, and 1."""
    return _edges(tuple([x.tensor for x in inputs]))


@lru_cache(maxsize=1024)
def _edges(types: Sequence[TensorType]) -> list[list[Any]]:
    rng = np.random.default_rng(2)
    floats = [i for i, t in enumerate(types) if t.dtype.kind == "f"]
    found: list[list[Any]] = []
    for sizes in product(("large", "small", "one"), repeat=min(len(floats), 3)):
        for signs in ((1,), (-1, 1)) if len(floats) < 3 else ((1,),):
            arrays: list[Any] = random_feeds(rng, types)
            for i, size in zip(floats, cycle(sizes), strict=False):
                dtype, shape = arrays[i].dtype, arrays[i].shape
                limits = np.finfo(dtype)
                end = {"large": limits.max, "small": limits.tiny, "one": dtype.type(1)}[size]
                # Half of them within a factor of 2 of it, where sums of two are beyond.
                away = rng.integers(0, 12, shape) * rng.integers(0, 2, shape)
                step = np.exp2(-away).astype(dtype)
                far = end * step if size != "small" else end / step
                part = rng.uniform(0.5, 1, shape).astype(dtype)
                arrays[i] = far * part * rng.choice(signs, shape).astype(dtype)
            found.append(arrays)
    return found


def named_in(nodes: Sequence[Node]) -> list[float]:
    """The numbers that nodes name, with their neighbours and a few of their multiples."""
    found: dict[float, None] = {}
    for node in topological(nodes):
        array = constant_value(node)
        numbers = [] if array is None or array.size > 8 else array.ravel().tolist()
        numbers += [v for _, v in node.attrs if isinstance(v, (int, float))]
        for c in numbers if isinstance(node.type, TensorType) else ():
            if np.isfinite(c):
                found.update(dict.fromkeys(neighbours(float(c.real), node.tensor.dtype)))
    return list(found)


# ---- nodes ----------------------------------------------------------------------------------


def spellings(rule: Rule, turned: bool = False) -> Iterator[Spelling]:
    """Examples of what a rule matches: nodes, each with the placeholders that it is made of.

    Each is built from the rule's pattern, in a dtype that it accepts. With `turned` the variables
    are larger, and are views of transposed arrays.
    """
    return copy(_spelled(rule, turned))


@lru_cache(maxsize=2)  # several tests of one rule ask for them
def _spelled(rule: Rule, turned: bool) -> Iterator[Spelling]:
    (shared,) = tee(_distinct(rule, turned), 1)
    return shared


def _distinct(rule: Rule, turned: bool) -> Iterator[Spelling]:
    seen: set[Graph] = set()
    candidates, here = _candidates(rule, turned), current_origin()
    while True:
        with built_as(here):  # found once, not for every node
            found = next(candidates, None)
        if found is None:
            return
        y, inputs = found
        graph = Graph([y], inputs)
        if graph not in seen:  # as 0.1 and 0.5 are one integer
            seen.add(graph)
            yield y, inputs


def _candidates(rule: Rule, turned: bool) -> Iterator[Spelling]:
    for attempt in rule.examples:
        if callable(attempt):
            count = len(inspect.signature(attempt).parameters)
            yield from _built(rule, attempt, [(3, 4)] * count, turned)
    if rule.function is not None:
        yield from _with_op(rule, turned)
    for form in rule.forms[: 1 if turned else None]:
        known: set[tuple[object, ...]] = set()
        first = form is rule.forms[0]
        for turn, binding in enumerate(_bindings(rule, grid=first and not turned), not first):
            names = [v.name for v in rule.variables if type(v) is Var]
            numbers = [v.name for v in rule.variables if isinstance(v, Const)]

            def spell(*xs: Node) -> Node | None:
                like = next((x for x in xs if x.dtype.kind != "b"), xs[0])
                constants = [as_constant(binding[n], like.dtype) for n in numbers]  # noqa: B023
                bound = binding | dict(zip(names, xs, strict=True))  # noqa: B023
                bound |= dict(zip(numbers, constants, strict=True))  # noqa: B023
                values = [c.attr("value") for c in constants]
                key = (*[v for n, v in bound.items() if n not in numbers], *values)  # noqa: B023
                if key in known:  # noqa: B023
                    return None
                known.add(key)  # noqa: B023
                return instantiate(form, bound, like)  # noqa: B023

            shapes = [binding[n] for n in names]
            # Scalars promote in their own way, and one number may be special in one dtype only.
            every = shapes[0] == () or (len(numbers) == 1 and shapes[0] == (1,))
            yield from _built(rule, spell, shapes, turned, True, 0 if every else turn)


def _built(
    rule: Rule,
    build: Callable[..., Node | None],
    shapes: Sequence[Any],
    turned: bool,
    mixed: bool = False,
    turn: int = 0,
) -> Iterator[Spelling]:
    """The nodes a function builds of placeholders, of dtypes; some are masks, if `mixed`.

    In turn 0 they are of every dtype, and masks in any places; in a later one they are of one dtype
    of each kind, and masks in half of the ways to have some, and in the next of the others.
    """
    dtypes = (*DTYPES, *COMPLEX) if "c" in rule.kinds else DTYPES
    for dtype in _in_turn(dtypes, turn):
        ways = product(
            (dtype, "bool") if mixed and dtype != "bool" else (dtype,), repeat=len(shapes)
        )
        for i, choice in enumerate(ways):
            if turn and i and (i + turn // 2) % 2:
                continue
            if turned:
                yield from _turned(build, shapes, choice)
                continue
            xs = _placeholders(tuple(shapes), choice)
            made = _made(build, xs)
            if made is not None:
                yield made, [*xs]


def _in_turn(dtypes: Sequence[str], turn: int) -> Sequence[str]:
    """All dtypes in the first turn; in each later one, of each kind one, and then the other."""
    kinds = [list(of) for _, of in groupby(dtypes, lambda d: np.dtype(d).kind)]
    return [of[(turn + turn // 2) % len(of)] for of in kinds] if turn else dtypes


def _made(build: Callable[..., Node | None], operands: Sequence[Node]) -> Node | None:
    """The node a function builds, None if it refuses the operands."""
    try:
        return build(*operands)
    except SymgradError:  # such as attributes that are for other shapes
        return None


@lru_cache(maxsize=1024)  # the same for every rule
def _placeholders(shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Node, ...]:
    pairs = zip(shapes, dtypes, strict=True)
    return tuple([placeholder(f"x{i}", s, d) for i, (s, d) in enumerate(pairs)])


def _turned(
    build: Callable[..., Node | None], shapes: Sequence[Any], dtypes: Sequence[Any]
) -> Iterator[Spelling]:
    """The nodes a function builds of large arrays: all of them views, one of them, and none."""
    # Sums of so many go in an order that layouts decide.
    large = [tuple(5 + 16 * n if n > 1 else n for n in s) for s in shapes]
    if not any(np.dtype(d).kind in "fc" for d in dtypes) or max(map(len, large), default=0) < 2:
        return
    if max(map(prod, large)) > TOO_MANY:
        return
    ways = [[True] * len(large), [False] * len(large)]
    ways += [[i == j for j in range(len(large))] for i in range(len(large))]
    for way in ways[: 2 if len(large) == 1 else None]:
        own = [s[::-1] if turn else s for s, turn in zip(large, way, strict=True)]
        xs = _placeholders(tuple(own), dtypes)
        views = [
            permute_dims(x, tuple(range(x.ndim))[::-1]) if turn and x.ndim > 1 else x
            for x, turn in zip(xs, way, strict=True)
        ]
        made = _made(build, views)
        if made is not None:
            yield made, [*xs]


def _bindings(rule: Rule, grid: bool) -> Iterator[Substitution]:
    """Bindings of the variables of a rule: shapes, numbers and values of attributes."""
    names = [v.name for v in rule.variables if type(v) is Var]
    numbers = [v.name for v in rule.variables if isinstance(v, Const)]
    yield from (dict(t) for t in examples_of(rule) if not callable(t))
    if rule.examples or any(isinstance(v, Attr) for v in rule.variables):
        return
    wide = all(p.op.elementwise for form in rule.forms[:1] for p in applied_in(form))
    for shapes in SHAPES if wide else (SQUARES, *SHAPES):
        for ndim in (0, 2) if numbers else (0,):
            arrays = (np.full((1,) * ndim, v) for v in NUMBERS)
            yield {
                **dict(zip(names, cycle(shapes), strict=False)),
                **dict(zip(numbers, arrays, strict=False)),
            }
    for n, constants in ((1, CONSTANTS), (MANY, ORDINARY)) if grid else ():
        for values in product(constants, repeat=len(numbers)):
            yield {**dict.fromkeys(names, (n,)), **dict(zip(numbers, values, strict=True))}


def _with_op(rule: Rule, turned: bool) -> Iterator[Spelling]:
    """Each op of which a rule knows a fact, on constants and on what was broadcast."""
    for turn, op in enumerate(rule.ops, 1):
        for shapes, attrs in cases_of(op):
            for dtype in _in_turn(op.trials.dtypes.split(), turn):
                if turned:
                    build = _applies(op, attrs)
                    yield from _turned(build, shapes, (dtype,) * len(shapes))
                    continue
                rng = np.random.default_rng(0)
                xs = [*_placeholders(tuple(shapes), (dtype,) * len(shapes))]
                feeds = random_feeds(rng, xs, domain=op.trials.domain)
                wide = [broadcast_to(x, (2, *x.shape)) for x in xs if op.elementwise]
                trials = [[constant(a) for a in feeds], xs, wide, [*wide[:1], *xs[1:]]]
                for operands in trials if wide else trials[:2]:
                    try:
                        made = apply(op, operands, attrs)
                    except SymgradError:
                        continue
                    for y in results_of(made):
                        yield y, [n for n in topological([y]) if n.op is PLACEHOLDER]


def _applies(op: Op, attrs: Mapping[str, Any]) -> Callable[..., Node]:
    return lambda *xs: results_of(apply(op, xs, attrs))[0]

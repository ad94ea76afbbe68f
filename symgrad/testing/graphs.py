"""Random graphs, and arrays to feed them, drawn from what ops and rules say of themselves."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cache
from itertools import cycle
from typing import Any, TypeVar

import numpy as np

from symgrad.autodiff.reverse import is_differentiable
from symgrad.ir.errors import SymgradError
from symgrad.ir.graph import is_leaf
from symgrad.ir.node import Node, apply
from symgrad.ir.op import REAL, REGISTRY, Interval, Op
from symgrad.ir.types import TensorType
from symgrad.ops import reduce
from symgrad.ops.complexes import part_dtype, real
from symgrad.ops.identity import results_of
from symgrad.ops.leaves import constant, placeholder
from symgrad.ops.logic import greater
from symgrad.ops.shape import astype, broadcast_to, reshape
from symgrad.ops.trigonometry import tanh
from symgrad.passes import RULES
from symgrad.rewrite.pattern import (
    Attr,
    Const,
    Substitution,
    Var,
    applied_in,
    instantiate,
    names_in,
)
from symgrad.rewrite.rule import Example, Rule
from symgrad.testing.equality import Run

T = TypeVar("T")
DTYPES = ("float32", "float64", "int32", "int64", "uint8", "bool")
SHAPES = ((), (4,), (3, 4), (3, 1), (1, 4), (2, 3, 4), (1,), (0, 4))
COMPLEX = ("complex64", "complex128")
NUMBERS = (3.0, 0.5, -2.0, 0.1, 1.0, -1.0, 0.0, -0.0, 2.0, 7.0)


def cases_of(op: Op) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Shapes and attributes with which an op can be tried."""
    if op.trials.cases or not op.elementwise:
        return [(c.shapes, dict(c.attrs)) for c in op.trials.cases]
    return [(((3, 4),) * op.operands[0], {})]


def examples_of(rule: Rule) -> list[Example]:
    """The examples of a rule; if it gives none, made of the cases of the op with its attributes.

    What that op is of has a shape of the case, what stands beside it the shape of the result; and
    again with all variables but the first so small that they broadcast.
    """
    attrs = {v.name for v in rule.variables if isinstance(v, Attr)}
    parts = [p for form in rule.forms[:1] for p in applied_in(form)]
    whole = [p for p in parts if {v.name for _, v in p.attrs if isinstance(v, Attr)} == attrs]
    if rule.examples or not attrs or not whole:
        return list(rule.examples)
    found: list[Example] = []
    numbers = [v.name for v in rule.variables if isinstance(v, Const)]
    for shapes, given in cases_of(whole[0].op):
        made = apply(whole[0].op, [placeholder(f"x{i}", s) for i, s in enumerate(shapes)], given)
        known = [(v, own) for (_, v), (_, own) in zip(whole[0].attrs, made.attrs, strict=True)]
        if any(not isinstance(v, Attr) and v != own for v, own in known):
            continue
        sizes = {v.name: made.shape for v in rule.variables if type(v) is Var}
        for part in whole:
            for x, shape in zip(part.inputs, shapes, strict=False):
                sizes |= {name: shape for name in names_in(x) if name in sizes}
        smaller = {name: sizes[name][-1:] for name in list(sizes)[1:]}
        values = {v.name: own for v, own in known if isinstance(v, Attr)}
        for i in range(3 if numbers else 1):
            bound = sizes | values | dict(zip(numbers, NUMBERS[i:], strict=False))
            found += [bound, bound | smaller] if smaller else [bound]
    return found


def as_constant(value: Any, dtype: Any) -> Node:
    """A number as a constant of a dtype, even if that cannot hold it."""
    with np.errstate(all="ignore"):
        return constant(np.asarray(value).astype(dtype))


def special_values(dtype: Any) -> np.ndarray[Any, Any]:
    """The values of a dtype at which identities break, as an array.

    Of floats 0, -0, 1, -1, inf, -inf, nan, nearly the least denormal number and the largest one.

    >>> special_values("int8").tolist()
    [-128, -1, 0, 1, 2, 7, 127]
    """
    kind = np.dtype(dtype).kind
    if kind == "c":
        parts = special_values(part_dtype(np.dtype(dtype)))
        return _complex(parts, np.roll(parts, 2), dtype)
    if kind == "b":
        return np.array([False, True])
    if kind in "iu":
        info = np.iinfo(dtype)
        return np.array(
            sorted({0, 1, 2, 7, int(info.min), int(info.max), max(-1, int(info.min))}), dtype
        )
    limits = np.finfo(dtype)
    least, most = 3 * limits.smallest_subnormal, limits.max
    return np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, least, most], dtype)


def neighbours(c: float, dtype: Any) -> list[float]:
    """The numbers at which a comparison with c, or a product with it, may turn out otherwise."""
    with np.errstate(all="ignore"):
        found = [c, c - 1, c + 1, -c, 2 * c, 3 * c, 7 * c, c / 2]
        if np.dtype(dtype).kind == "f":
            near = np.asarray(c, dtype)
            found += [float(np.nextafter(near, near.dtype.type(to))) for to in (-np.inf, np.inf)]
    return [v for v in found if np.isfinite(v)]


def of_all_sizes(rng: np.random.Generator, shape: Any, dtype: Any, reach: int | None) -> Any:
    """Numbers as likely of one magnitude as of another: 2 to the power of up to ±reach, or any."""
    if np.dtype(dtype).kind == "c":
        part = part_dtype(np.dtype(dtype))
        real, imag = (of_all_sizes(rng, shape, part, reach) for _ in range(2))
        return _complex(real, imag, dtype)
    if np.dtype(dtype).kind == "b":
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        small = rng.integers(max(-300, info.min), min(300, info.max), shape, dtype, endpoint=True)
        whole = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        return np.where(rng.random(shape) < 0.5, small, whole)
    limits = np.finfo(dtype)
    low, high = (limits.minexp, limits.maxexp) if reach is None else (-reach, reach)
    sign = rng.choice([-1.0, 1.0], shape)
    return np.ldexp(sign * rng.uniform(0.5, 1, shape), rng.integers(low + 1, high + 1, shape))


def _complex(real: Any, imag: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """An array of complex numbers of these parts, infinite ones too."""
    found = np.empty(np.shape(real), dtype)
    found.real, found.imag = real, imag
    return found


def random_feeds(
    rng: np.random.Generator,
    inputs: Sequence[Node | TensorType],
    special: bool = False,
    domain: Sequence[Interval] = (REAL,),
) -> list[np.ndarray[Any, Any]]:
    """Arrays for placeholders, or of types, of known shapes, within the intervals; `special` adds
    extremes.
    """
    found = []
    for x, (low, high) in zip(inputs, cycle(domain), strict=False):
        shape: Any = x.shape
        values: Any = rng.uniform(low, high, shape)
        if x.dtype.kind == "c":
            values = values + 1j * rng.uniform(low, high, shape)
        if x.dtype.kind == "b":
            values = rng.random(shape) < 0.5
        elif x.dtype.kind in "iu":
            least = 0 if x.dtype.kind == "u" else int(np.ceil(low))
            values = rng.integers(least, int(high) + 1, shape)
        values = np.asarray(values).astype(x.dtype)
        if special:
            extremes = special_values(x.dtype)
            # The last ones seldom: where numbers overflow, little can be compared.
            choice = rng.choice(extremes if rng.random() < 0.3 else extremes[:7], shape)
            values = np.where(rng.random(shape) < 0.3, choice, values)
        found.append(np.asarray(values, x.dtype))
    return found


def wide_feeds(
    rng: np.random.Generator,
    inputs: Sequence[Node | TensorType],
    named: Sequence[float],
    reach: int | None,
) -> list[np.ndarray[Any, Any]]:
    """Arrays for placeholders, of numbers of all sizes (see `of_all_sizes`) and of those named."""
    found = []
    for x in inputs:
        shape: Any = x.shape
        values = of_all_sizes(rng, shape, x.dtype, reach)
        fitting = [v for v in named if _holds(x.dtype, v)]
        if fitting:
            chosen = rng.choice(np.asarray(fitting).astype(x.dtype), shape)
            values = np.where(rng.random(shape) < 0.4, chosen, values)
        found.append(np.asarray(values, x.dtype))
    return found


def _holds(dtype: Any, number: float) -> bool:
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return number == int(number) and info.min <= number <= info.max
    return bool(dtype.kind in "fc" and abs(number) <= float(np.finfo(dtype).max))


class _Grower:
    """A growing pool of nodes, each with a value, so that what is built of them is in domain."""

    def __init__(self, rng: np.random.Generator, dtypes: Sequence[str]) -> None:
        self.rng = rng
        self.dtypes = dtypes
        self.inputs: list[Node] = []
        self.pool: list[Node] = []
        self.values: dict[Node, Any] = {}
        self.extremes: dict[Node, Any] = {}
        self.read: set[Node] = set()
        watched = {rule.root for rule in RULES}
        self.ops = [
            op
            for _, op in sorted(REGISTRY.every().items())
            for _ in range(4 if op in watched else 1)
            if (op.elementwise or op.trials.cases) and {*op.trials.dtypes.split()} & {*dtypes}
            if op.vjp is not None
            or (op.trials.cases and not any(c.shapes for c in op.trials.cases))
            if not op.trials.ill_conditioned and not op.no_slope
        ]
        self.attempts = _attempts_of_rules()
        self.inexact = tuple(d for d in dtypes if np.dtype(d).kind in "fc")
        self.likely = (*self.inexact * 3, *dtypes)

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.rng.integers(len(items)))]

    def input(self, shape: Any = None, dtype: Any = None) -> Node:
        """A new placeholder."""
        shape = self.pick(SHAPES[:-1] * 4 + SHAPES[-1:]) if shape is None else shape
        x = placeholder(f"x{len(self.inputs)}", shape, dtype or self.pick(self.likely))
        self.inputs.append(x)
        self.pool.append(x)
        self.values[x] = random_feeds(self.rng, [x])[0]
        self.extremes[x] = random_feeds(self.rng, [x], special=True)[0]
        return x

    def node(self) -> Node:
        """Some node, more likely a late one."""
        late = self.pool[-6:] if self.rng.random() < 0.6 else self.pool
        return self.pick(late)

    def mask(self) -> Node:
        """A boolean node, made by a comparison if there is none."""
        found = [n for n in self.pool if n.dtype.kind == "b"]
        return self.pick(found) if found and self.rng.random() < 0.5 else greater(self.node(), 0)

    def operand(self, shape: Any = None) -> Any:
        """A node, or a number; of a shape, if it is given."""
        if shape is None:
            return self.pick(NUMBERS) if self.rng.random() < 0.2 else self.node()
        for x in (self.node() for _ in range(8)):
            if x.size == int(np.prod(shape)):
                return x if x.shape == shape else reshape(x, shape)
            if self.rng.random() < 0.3 and x.size and _broadcasts(x.shape, shape):
                return broadcast_to(x, shape)
        return self.input(shape)

    def indices(self, shape: Any, interval: Interval) -> Node:
        """Constant integers from one bound to the other."""
        low, high = map(int, interval)
        return constant(self.rng.integers(low, high + 1, shape))

    def in_domain(self, x: Any, interval: Interval) -> Any:
        """x itself if its values lie in the interval, else x squeezed into it."""
        low, high = interval
        if not isinstance(x, Node) or interval == REAL or x.dtype.kind == "b":
            return x
        value = self.value(x)
        if np.all((value >= low) & (value <= high)):
            return x
        return tanh(x) * ((high - low) / 2) + (high + low) / 2

    def value(self, node: Node) -> Any:
        return Run([node], self.values).results()[0]

    def by_op(self) -> Node:
        """Some op on operands that it can take."""
        op = self.pick(self.ops)
        shapes, attrs = self.pick(cases_of(op))
        mask_first = op.weak is not None and 0 not in op.weak and op.operands[0] > len(op.weak)
        operands = [
            self.mask()
            if mask_first and i == 0
            else self.indices(s, d)
            if op.indices and i >= op.indices
            else self.in_domain(self.operand(None if op.elementwise and not attrs else s), d)
            for i, (s, d) in enumerate(zip(shapes, cycle(op.trials.domain), strict=False))
        ]
        if "float32" not in op.trials.dtypes:
            wanted = self.pick([d for d in op.trials.dtypes.split() if d in self.dtypes])
            operands = [astype(x, wanted) if isinstance(x, Node) else x for x in operands]
        if len(operands) > 1 and not op.indices and self.rng.random() < 0.15:
            operands[-1] = operands[0]
        return apply(op, operands, attrs)

    def by_rule(self) -> Node:
        """A node that some rule's pattern matches."""
        rule, attempts = self.pick(self.attempts)
        binding = self.pick(attempts)
        if callable(binding):
            count = len(inspect.signature(binding).parameters)
            made: Node = binding(*(self.operand((3, 4)) for _ in range(count)))
            return made
        like = self.node()
        bound: Substitution = {}
        for v in rule.variables:
            if isinstance(v, Const):
                bound[v.name] = as_constant(self.pick(NUMBERS), like.dtype)
            elif isinstance(v, Attr):
                bound[v.name] = binding.get(v.name, like.dtype)
            elif v.name in binding:
                bound[v.name] = self.operand(binding[v.name])
            else:
                bound[v.name] = self.mask() if self.rng.random() < 0.25 else self.node()
        return instantiate(self.pick(rule.forms), bound, like)

    def grow(self) -> None:
        """One more node, with what it needs; nothing if it would be ill-typed, huge or wild."""
        try:
            found = results_of(self.by_rule() if self.rng.random() < 0.35 else self.by_op())
            values = Run(found, self.values).values
            extremes = Run(found, self.extremes).values
        except (SymgradError, ValueError):  # NumPy refuses integers to negative powers
            return
        new = [n for n in values if n not in self.values and isinstance(n.type, TensorType)]
        if all(_is_tame(n, values[n]) for n in new):
            self.values.update({n: values[n] for n in new})
            self.extremes.update({n: extremes[n] for n in new})
            self.read.update(x for n in new for x in n.inputs)
            self.pool += [n for n in new if not is_leaf(n)]


@cache
def _attempts_of_rules() -> list[tuple[Rule, list[Any]]]:
    return [(rule, attempts) for rule in RULES if (attempts := _attempts(rule))]


def _attempts(rule: Rule) -> list[Any]:
    """The functions that spell a rule out, and bindings of the variables of its forms."""
    attrs = {v.name for v in rule.variables if isinstance(v, Attr)}
    bindings = [t for t in examples_of(rule) or [{}] if callable(t) or t.keys() >= attrs]
    return bindings if rule.forms else [t for t in bindings if callable(t)]


def _broadcasts(shape: Any, to: Any) -> bool:
    try:
        return bool(np.broadcast_shapes(shape, to) == to)
    except ValueError:
        return False


def _is_tame(node: Node, value: Any) -> bool:
    x = np.asarray(value)
    if x.dtype.kind in "iu":
        x = x.astype("f8")
    with np.errstate(all="ignore"):
        return x.size <= 64 and (x.dtype.kind == "b" or bool(np.all(np.abs(x) < 1e4)))


def random_graph(
    rng: np.random.Generator, size: int, dtypes: Sequence[str] = DTYPES
) -> tuple[list[Node], list[Node]]:
    """Placeholders, and outputs made of about `size` random ops on them.

    The first output is a scalar loss of floats; the others are of any dtype. What is built is
    drawn from the facts of the registered ops, and from the patterns of the rules. `dtypes` are
    those of the placeholders, of which the first has the last inexact one.
    """
    grower = _Grower(rng, dtypes)
    for _ in range(3):
        grower.input(dtype=None if grower.inputs else grower.inexact[-1])
    for _ in range(20 * size):
        if len(grower.pool) >= size + len(grower.inputs):
            break
        grower.grow()
    loose = [n for n in grower.pool if n not in grower.read and n.inputs] or grower.pool
    loss = constant(0.0)
    for y in loose:
        if is_differentiable(y):
            loss = loss + reduce.sum(real(y))
    return grower.inputs, [loss, *[y for y in loose if not is_differentiable(y)][:3]]

"""What symgrad's own tests check with, for the tests of others: programs, rules, random graphs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice, product
from typing import Any

import numpy as np

from symgrad.autodiff.reverse import carries, vjp
from symgrad.compile import compile
from symgrad.ir.errors import SymgradError
from symgrad.ir.evaluate import resolve, sizes_of
from symgrad.ir.graph import Graph, is_leaf
from symgrad.ir.node import Node, Variable, apply
from symgrad.ir.op import REAL, REGISTRY, Interval, Op
from symgrad.ir.operators import call
from symgrad.ir.types import TensorType
from symgrad.ir.walk import topological
from symgrad.ops.leaves import constant, ones_like, placeholder
from symgrad.passes import RULES, PassLike
from symgrad.rewrite.driver import rewrite
from symgrad.rewrite.pattern import Applied, Attr, Bound, Const, Literal, Pattern, Var
from symgrad.rewrite.rule import Exact, Rule
from symgrad.rewrite.trace import Trace

DTYPES = ("float32", "float64", "int32", "int64", "uint8", "bool")
SHAPES = ((), (4,), (3, 4), (3, 1), (1, 4), (2, 3, 4), (1,), (0, 4))
CONSTANTS = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, np.inf, -np.inf, np.nan, 1e-310, 1e-45, 1e38, 1e308)
NUMBERS = (3.0, 0.5, -2.0, 0.1, 1.0, -1.0, 0.0, -0.0, 2.0, 7.0)

# ---- equality at a grade --------------------------------------------------------------------


def assert_same(
    found: Any, expected: Any, exact: Exact | str, room: Any = None, note: str = ""
) -> None:
    """Assert that two arrays have the same shape and dtype, and are the same at a grade.

    `bits`: the same bytes. `values`: equal, NaN at the same places. `rounding`: NaN and inf at the
    same places, the rest no further apart than `room` or a few units in the last place. `reals`:
    the same, but only where both are finite. `note` is told on failure.
    """
    grade = Exact.of(exact)
    a, b = np.asarray(found), np.asarray(expected)
    assert (a.dtype, a.shape) == (b.dtype, b.shape), (
        f"{a.dtype}{a.shape}, expected {b.dtype}{b.shape}\n{note}"
    )
    if grade == Exact.BITS:
        assert a.tobytes() == b.tobytes(), f"bytes differ: {a!r}, expected {b!r}\n{note}"
        return
    inexact = grade >= Exact.ROUNDING and a.dtype.kind in "fc"
    finite = np.isfinite(a) & np.isfinite(b) if inexact else np.zeros(a.shape, bool)
    if grade < Exact.REALS or not inexact:
        equal = (a == b) | ((a != a) & (b != b)) | finite
        assert equal.all(), f"{a!r}, expected {b!r}\n{note}"
    if inexact:
        allowed = 8 * np.finfo(a.dtype).eps * np.abs(b) if room is None else room
        away = np.abs(np.where(finite, a, 0).astype("f8") - np.where(finite, b, 0).astype("f8"))
        near = ~finite | (away <= allowed)
        assert near.all(), f"{a!r}, expected {b!r}: apart {away}, allowed {allowed}\n{note}"


class _Run:
    """Every node's value by its kernel, and whether a number overflowed or underflowed on the way.

    With `noise`, every value that was rounded is changed by a few units in the last place, and
    the signs of zeros and NaNs at random: what a rewrite may do to it. At `reals` that goes for
    leaves and for what was exact, too.
    """

    def __init__(
        self, outputs: Iterable[Node], feeds: Mapping[Node, Any], grade: Exact = Exact.BITS,
        noise: np.random.Generator | None = None,
    ) -> None:
        self.outputs = list(outputs)
        self.values: dict[Node, Any] = dict(feeds)
        self.extreme = False
        self.grade = grade
        self.noise = noise
        self.pole = False
        if noise is not None:
            self.values = {x: self._changed(x, v, []) for x, v in self.values.items()}
        with np.errstate(all="ignore", over="call", under="call", divide="call", call=self._note):
            self._walk(self.outputs, self.values)

    def _note(self, kind: str, flag: int) -> None:
        if kind == "divide by zero":
            self.pole = True
        else:
            self.extreme = True

    def _walk(self, outputs: Iterable[Node], values: dict[Node, Any]) -> None:
        sizes = sizes_of(values)
        for node in topological(outputs, known=values.keys()):
            operands = [values[x] for x in node.inputs]
            attrs = resolve(dict(node.attrs), sizes)
            inner = attrs.get("graph")
            if isinstance(node, Variable):
                values[node] = node.value
            elif isinstance(inner, Graph):  # a fused node: one by one, so that every flag is seen
                parts = dict(zip(inner.inputs, operands, strict=True))
                self._walk(inner.outputs, parts)
                values[node] = parts[inner.outputs[0]]
            else:
                made = node.op.kernel(*operands, **attrs)
                if not node.op.view and getattr(made, "ndim", 0) > 1:
                    # As in a program: the layout decides in which order a sum is taken.
                    made = np.asarray(made, order="C")
                values[node] = made if self.noise is None else self._changed(node, made, operands)

    def _changed(self, node: Node, value: Any, operands: list[Any]) -> Any:
        assert self.noise is not None
        if isinstance(node.type, tuple) or node.dtype.kind not in "fc":
            return value
        if is_leaf(node) and self.grade < Exact.REALS:
            return value
        y = np.array(value)
        flip = (np.isnan(y) | (y == 0)) & (self.noise.random(y.shape) < 0.5)
        y = np.where(flip, -y, y)
        if self.grade >= Exact.ROUNDING:
            step = 4 * np.finfo(y.dtype).eps * np.asarray(self.noise.standard_normal(y.shape))
            if operands and self.grade == Exact.ROUNDING:
                # What is found among the operands was only moved, or chosen, and so not rounded.
                known = np.concatenate([np.ravel(x) for x in operands])
                step = np.where(np.isin(np.abs(y), np.abs(known)), 0, step)
            with np.errstate(all="ignore"):
                y = y * (1 + step).astype(y.dtype)
        return y[()]

    def results(self) -> list[Any]:
        return [self.values[y] for y in self.outputs]


def rooms(outputs: Sequence[Node], feeds: Mapping[Node, Any], exact: Exact | str) -> list[Any] | None:
    """How far the results of a graph may move at a grade: a hundred times what noise does to them.

    None if the graph says nothing at these feeds: because noise flips an integer, a comparison or
    a NaN, a sign of a zero decides, a number overflows or underflows, or, for `reals`, because
    some number is not real.
    """
    grade = Exact.of(exact)
    base = _Run(outputs, feeds)
    if grade == Exact.BITS:
        return [0.0 for _ in outputs]
    if grade >= Exact.ROUNDING and base.extreme:
        return None
    spread = [np.zeros(np.shape(v)) for v in base.results()]
    for seed in range(4):
        moved = _Run(outputs, feeds, grade, np.random.default_rng(seed))
        for node, value in base.values.items():
            if not _agrees(value, moved.values[node], grade):
                return None
        for i, (a, b) in enumerate(zip(base.results(), moved.results(), strict=True)):
            if np.asarray(a).dtype.kind == "f":
                with np.errstate(all="ignore"):
                    spread[i] = np.fmax(spread[i], np.abs(np.subtract(a, b, dtype="f8")))
    return [100 * s + np.finfo("f4" if np.asarray(v).dtype.itemsize == 4 else "f8").tiny
            for s, v in zip(spread, base.results(), strict=True)]


def _agrees(value: Any, moved: Any, grade: Exact) -> bool:
    if isinstance(value, tuple):
        return all(_agrees(a, b, grade) for a, b in zip(value, moved, strict=True))
    a, b = np.asarray(value), np.asarray(moved)
    if a.dtype.kind not in "fc" or grade == Exact.VALUES:
        return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    finite = np.isfinite(a) & np.isfinite(b)
    if grade == Exact.REALS and not finite.all():
        return False
    return np.array_equal(np.where(finite, 0, a), np.where(finite, 0, b), equal_nan=True)


def assert_equivalent(
    inputs: Sequence[Node],
    outputs: Sequence[Node],
    arrays: Sequence[Any],
    *,
    exact: Exact | str = "rounding",
    passes: Iterable[PassLike] | None = None,
) -> bool:
    """Assert that a compiled program computes what its graph says, at a grade.

    The reference is every node's kernel, one after the other, without passes or plan; how far
    apart results may be says the graph itself, run with noise. The two backends must agree to
    the bit. False if the graph says nothing at these arrays (see `rooms`).
    """
    grade = Exact.of(exact)
    feeds = dict(zip(inputs, arrays, strict=True))
    steps = None if passes is None else tuple(passes)
    program = compile(inputs, list(outputs), exact=grade, passes=steps)
    walked = compile(inputs, list(outputs), exact=grade, passes=steps, backend="reference")
    found, expected = program(*arrays), _Run(outputs, feeds).results()
    rules = ", ".join(program.trace.rules())
    text = f"raw:\n{program.raw}\noptimised at {grade.name} by {rules}:\n{program.graph}"
    for a, b in zip(found, walked(*arrays), strict=True):
        assert_same(a, b, Exact.BITS, note=f"the two backends\n{program.source}\n{text}")
    allowed: list[Any] | None = [None] * len(expected)
    if not all(map(_is_same, found, expected, cycle([grade]))):
        allowed = rooms(outputs, feeds, grade)
        if grade >= Exact.ROUNDING and _Run(program.graph.outputs, feeds).extreme:
            return False
    if allowed is None:
        return False
    for a, b, room in zip(found, expected, allowed, strict=True):
        assert_same(a, b, grade, room, note=text)
    return True


def _is_same(found: Any, expected: Any, exact: Exact) -> bool:
    try:
        assert_same(found, expected, exact)
    except AssertionError:
        return False
    return True


# ---- rules ----------------------------------------------------------------------------------

Spelling = tuple[Node, list[Node]]


def check_rule(rule: Rule) -> int:
    """Assert that a rule keeps its grade, for values and gradients; the number of points compared.

    What it rewrites is spelled out from its pattern in every dtype that it accepts, and fed with
    ordinary numbers and with all of {0, -0, 1, -1, inf, -inf, nan, denormal, max}. At `rounding`
    points where IEEE arithmetic signals overflow or underflow are left out, since there the order
    of operations decides between a number and inf. Elsewhere elementwise rules are held to a few
    units in the last place of the result, so that none can undo a rounding that was written.
    """
    points = 0
    for before, inputs in spellings(rule):
        trace = Trace()
        after = rewrite(Graph([before], inputs), [rule], trace).outputs[0]
        if trace.fired:
            assert after.type == before.type
            points += sum(
                _compare(rule, [before, *_gradients(before, inputs)],
                         [after, *_gradients(after, inputs)], dict(zip(inputs, arrays, strict=True)))
                for arrays in _points(rule, inputs)
            )
    assert points, f"nothing that was spelled out lets {rule.name} act: give it `tries`"
    return points


def _gradients(y: Node, inputs: Sequence[Node]) -> Sequence[Node]:
    wrt = [x for x in inputs if carries(x)]
    if not wrt or not carries(y) or any(n.op.vjp is None and n.inputs for n in topological([y])):
        return ()
    return vjp(y, wrt, ones_like(y), disconnected="zero")


def _compare(
    rule: Rule, before: Sequence[Node], after: Sequence[Node], feeds: Mapping[Node, Any]
) -> bool:
    """Whether the two could be compared at a point, where they must be the same.

    The first is the value; the others are gradients, which there are none of at a pole or a NaN,
    and which, where they are sums, are sums in another order.
    """
    a, b = _Run(before, feeds), _Run(after, feeds)
    grade, extreme = rule.exact, a.extreme or b.extreme
    if grade >= Exact.ROUNDING and extreme:
        return False
    smooth = not (a.pole or b.pole) and not any(np.isnan(v).any() for v in feeds.values())
    compared = zip(before, a.results(), b.results(), strict=True) if smooth else [
        (before[0], a.results()[0], b.results()[0])]
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


def _hold(
    rule: Rule, y: Node, after: Sequence[Node], feeds: Mapping[Node, Any], found: Any,
    expected: Any, grade: Exact, allowed: list[Any] | None, error: AssertionError,
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


def _points(rule: Rule, inputs: Sequence[Node]) -> Iterator[list[Any]]:
    """Arrays for the inputs: the whole grid where each has one element, else draws from it."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        yield random_feeds(rng, inputs)
    if inputs and all(x.shape == (1,) for x in inputs):
        for values in product(*(special_values(x.dtype) for x in inputs)):
            yield [np.array([v]) for v in values]
    else:
        for _ in range(20):
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
                return _spelled(form, bound, xs[0].dtype if xs else np.dtype("f8"))  # noqa: B023

            yield from _built(spell, [binding[n] for n in names], mixed=True)


def _built(
    build: Callable[..., Node], shapes: Sequence[Any], mixed: bool = False
) -> Iterator[Spelling]:
    """What a function builds of placeholders, in every dtype; some of them masks, if `mixed`."""
    for dtype in DTYPES:
        for choice in product((dtype, "bool") if mixed and dtype != "bool" else (dtype,), repeat=len(shapes)):
            xs = [placeholder(f"x{i}", s, d) for i, (s, d) in enumerate(zip(shapes, choice, strict=True))]
            try:
                yield build(*xs), xs
            except SymgradError:
                continue


def _bindings(rule: Rule, grid: bool) -> Iterator[Bound]:
    """What the variables of a rule are: shapes, numbers and values of attributes."""
    names = [v.name for v in rule.variables if type(v) is Var]
    numbers = [v.name for v in rule.variables if isinstance(v, Const)]
    attempts = [t for t in rule.tries if not callable(t)]
    if attempts:
        yield from attempts
    if rule.tries or any(isinstance(v, Attr) for v in rule.variables):
        return
    for shapes in (((2, 3),), ((2, 3), (3,), (2, 1)), ((3,), (2, 1)), ((),), ((0, 3),)):
        for ndim in (0, 2):
            values = [np.full((1,) * ndim, v) for v in islice(cycle(NUMBERS), len(numbers))]
            yield dict(zip(names, cycle(shapes), strict=False)) | dict(zip(numbers, values, strict=True))
    for values in product(CONSTANTS if grid else (), repeat=len(numbers)):
        yield dict.fromkeys(names, (1,)) | dict(zip(numbers, values, strict=True))


def _spelled(pattern: Pattern, bound: Bound, dtype: Any) -> Any:
    if isinstance(pattern, Applied):
        attrs = {k: bound[v.name] if isinstance(v, Attr) else v for k, v in pattern.attrs}
        return apply(pattern.op, [_spelled(p, bound, dtype) for p in pattern.inputs], attrs)
    if isinstance(pattern, Literal):
        return pattern.value
    assert isinstance(pattern, Var)
    found = bound[pattern.name]
    with np.errstate(all="ignore"):
        return found if isinstance(found, Node) else constant(np.asarray(found).astype(dtype))


def _with_op(rule: Rule) -> Iterator[Spelling]:
    """Each op of which a rule knows a fact, on constants and on what was broadcast."""
    for op in rule.ops:
        for shapes, attrs in _cases(op):
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


def results_of(node: Node) -> list[Node]:
    """A node itself, or the results of one that has several."""
    return [node[i] for i in range(len(node.type))] if isinstance(node.type, tuple) else [node]


def _cases(op: Op) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Shapes and attributes with which an op can be tried."""
    if op.cases or not op.elementwise:
        return [(c.shapes, dict(c.attrs)) for c in op.cases]
    return [(((3, 4),) * _arity(op), {})]


def _arity(op: Op) -> int:
    if isinstance(op.kernel, np.ufunc):
        return op.kernel.nin
    parameters = inspect.signature(op.kernel).parameters.values()
    return sum(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)


# ---- random graphs --------------------------------------------------------------------------


def special_values(dtype: Any) -> np.ndarray[Any, Any]:
    """The values of a dtype at which identities break."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([False, True])
    if kind in "iu":
        info = np.iinfo(dtype)
        return np.array(sorted({0, 1, 2, 7, int(info.min), int(info.max), max(-1, int(info.min))}), dtype)
    info = np.finfo(dtype)
    return np.array(
        [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, info.smallest_subnormal * 3, info.max], dtype
    )


def random_feeds(
    rng: np.random.Generator, inputs: Sequence[Node], special: bool = False,
    domain: Sequence[Interval] = (REAL,),
) -> list[np.ndarray[Any, Any]]:
    """Arrays for placeholders of known shapes, within the intervals; `special` strews in extremes."""
    found = []
    for x, (low, high) in zip(inputs, cycle(domain), strict=False):
        kind, shape = x.dtype.kind, tuple(x.shape)
        if kind == "b":
            values = rng.random(shape) < 0.5
        elif kind in "iu":
            values = rng.integers(0 if kind == "u" else int(np.ceil(low)), int(high) + 1, shape)
        else:
            values = rng.uniform(low, high, shape)
        values = np.asarray(values).astype(x.dtype)
        if special:
            choice = rng.choice(special_values(x.dtype)[:: 1 if rng.random() < 0.3 else -1][-7:], shape)
            values = np.where(rng.random(shape) < 0.3, choice, values)
        found.append(np.asarray(values, x.dtype))
    return found


class _Grower:
    """A growing pool of nodes, each with a value, so that what is built of them is in domain."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.inputs: list[Node] = []
        self.pool: list[Node] = []
        self.values: dict[Node, Any] = {}
        self.read: set[Node] = set()
        watched = {op for rule in RULES if rule.function is None for op in rule.ops}
        self.ops = [
            op for op in REGISTRY.ops.values() for _ in range(4 if op in watched else 1)
            if (op.elementwise or op.cases) and op.vjp is not None and {*op.dtypes.split()} & {*DTYPES}
        ]
        self.rules = [r for r in RULES if r.forms]

    def pick(self, items: Sequence[Any]) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def input(self, shape: Any = None, dtype: Any = None) -> Node:
        """A new placeholder."""
        shape = self.pick(SHAPES[:-1] * 4 + SHAPES[-1:]) if shape is None else shape
        x = placeholder(f"x{len(self.inputs)}", shape, dtype or self.pick(DTYPES[:2] * 3 + DTYPES))
        self.inputs.append(x)
        self.pool.append(x)
        self.values[x] = random_feeds(self.rng, [x])[0]
        return x

    def node(self) -> Node:
        """Some node, more likely a late one."""
        late = self.pool[-6:] if self.rng.random() < 0.6 else self.pool
        return self.pick(late)  # type: ignore[no-any-return]

    def mask(self) -> Node:
        """A boolean node, made by a comparison if there is none."""
        found = [n for n in self.pool if n.dtype.kind == "b"]
        return self.pick(found) if found and self.rng.random() < 0.5 else self.node() > 0  # type: ignore[no-any-return]

    def operand(self, shape: Any = None) -> Any:
        """A node, or a number; of a shape, if it is given."""
        if shape is None:
            return self.pick(NUMBERS) if self.rng.random() < 0.2 else self.node()
        for x in (self.node() for _ in range(8)):
            if x.size == int(np.prod(shape)):
                return x if x.shape == shape else call("reshape", x, shape)
            if self.rng.random() < 0.3 and x.size and _broadcasts(x.shape, shape):
                return call("broadcast_to", x, shape)
        return self.input(shape)

    def in_domain(self, x: Any, interval: Interval) -> Any:
        """x itself if its values lie in the interval, else x squeezed into it."""
        low, high = interval
        if not isinstance(x, Node) or interval == REAL or x.dtype.kind == "b":
            return x
        value = self.value(x)
        if np.all((value >= low) & (value <= high)):
            return x
        return call("tanh", x) * ((high - low) / 2) + (high + low) / 2

    def value(self, node: Node) -> Any:
        return _Run([node], self.values).results()[0]

    def by_op(self) -> Node:
        """Some op on operands that it can take."""
        op = self.pick(self.ops)
        shapes, attrs = self.pick(_cases(op))
        mask_first = op.weak is not None and 0 not in op.weak and _arity(op) > len(op.weak)
        operands = [
            self.mask() if mask_first and i == 0
            else self.in_domain(self.operand(None if op.elementwise and not attrs else s), d)
            for i, (s, d) in enumerate(zip(shapes, cycle(op.domain), strict=False))
        ]
        if "float32" not in op.dtypes:
            wanted = self.pick(op.dtypes.split())
            operands = [call("astype", x, wanted) if isinstance(x, Node) else x for x in operands]
        if len(operands) > 1 and self.rng.random() < 0.15:
            operands[-1] = operands[0]
        return apply(op, operands, attrs)

    def by_rule(self) -> Node:
        """What some rule looks for."""
        rule = self.pick(self.rules)
        binding = self.pick([t for t in rule.tries if not callable(t)] or [{}])
        like = self.node()
        bound: Bound = {}
        for v in rule.variables:
            if type(v) is Var:
                masks = "mask" in v.name or (v.name[0] == "m" and v.name[1:].isdigit())
                bound[v.name] = self.mask() if masks else (
                    self.operand(binding[v.name]) if v.name in binding else self.node())
            else:
                bound[v.name] = self.pick(NUMBERS) if isinstance(v, Const) else binding.get(v.name, like.dtype)
        return _spelled(self.pick(rule.forms), bound, like.dtype)  # type: ignore[no-any-return]

    def grow(self) -> None:
        """One more node, with what it needs; nothing if it would be ill-typed, huge or wild."""
        try:
            found = results_of(self.by_rule() if self.rng.random() < 0.35 else self.by_op())
        except SymgradError:
            return
        values = _Run(found, self.values).values
        new = [n for n in values if n not in self.values and isinstance(n.type, TensorType)]
        if all(_is_tame(n, values[n]) for n in new):
            self.values.update({n: values[n] for n in new})
            self.read.update(x for n in new for x in n.inputs)
            self.pool += [n for n in new if not is_leaf(n)]


def _broadcasts(shape: Any, to: Any) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


def _is_tame(node: Node, value: Any) -> bool:
    x = np.asarray(value)
    return x.size <= 64 and (x.dtype.kind == "b" or bool(np.all(np.abs(x.astype("f8")) < 1e4)))


def random_graph(rng: np.random.Generator, size: int) -> tuple[list[Node], list[Node]]:
    """Placeholders, and outputs made of about `size` random ops on them.

    The first output is a scalar loss of floats; the others are of any dtype. What is built is
    drawn from the facts of the registered ops, and from the patterns of the rules.
    """
    grower = _Grower(rng)
    for _ in range(3):
        grower.input(dtype="float64" if not grower.inputs else None)
    for _ in range(20 * size):
        if len(grower.pool) >= size + len(grower.inputs):
            break
        grower.grow()
    loose = [n for n in grower.pool if n not in grower.read and n.inputs] or grower.pool
    loss = constant(0.0)
    for y in loose:
        if carries(y):
            loss = loss + call("sum", y)
    return grower.inputs, [loss, *[y for y in loose if not carries(y)][:3]]

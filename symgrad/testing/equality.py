"""When two programs compute the same: equality at a grade, with the room that rounding needs.

What may change at each grade is the table of `docs/lookup/grades.md`; here alone it is checked, for
rules, programs and random graphs. `assert_same` has its lines of zeros, digits, inf and NaN,
`assert_finite` that of numbers near the ends of the range, where digits say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from symgrad.compiler import compile
from symgrad.ir.errors import SymbolicError
from symgrad.ir.evaluate import resolve, sizes_of
from symgrad.ir.graph import is_leaf
from symgrad.ir.node import Node, Variable
from symgrad.ir.record import replace
from symgrad.ir.walk import GraphLike, topological
from symgrad.ops.cumulative import running_sum
from symgrad.passes import PassLike
from symgrad.rewrite.rule import Exact, Grade
from symgrad.runtime.executable import Backend
from symgrad.runtime.program import Program
from symgrad.testing.extremes import all_finite, of_zeros, overflows, underflows


def assert_same(
    found: Any, expected: Any, exact: Exact | Grade, room: Any = None, note: object = ""
) -> None:
    """Assert that two arrays have the same shape and dtype, and are the same at a grade.

    `bits`: the same bytes, but for which NaN it is: that depends on where NumPy finds its operands.
    `values`: equal, NaN at the same places. `rounding`: NaN and inf at the same places, the rest no
    further apart than `room` or a few units in the last place. `reals`: the same, but only where
    both are finite. `note` is told on failure.
    """
    fault = _difference(found, expected, exact, room)
    assert fault is None, f"{fault()}\n{note}"


def is_same(found: Any, expected: Any, exact: Exact | Grade, room: Any = None) -> bool:
    """Whether `assert_same` would let two arrays pass."""
    return _difference(found, expected, exact, room) is None


def _difference(
    found: Any, expected: Any, exact: Exact | Grade, room: Any
) -> Callable[[], str] | None:
    """None if two arrays are the same at a grade, else the text of how they differ, when asked."""
    grade = Exact.of(exact)
    a, b = np.asarray(found), np.asarray(expected)
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return lambda: f"{a.dtype}{a.shape}, expected {b.dtype}{b.shape}"
    if a.tobytes() == b.tobytes():
        return None  # in most cases, and sooner seen than what follows
    if grade == Exact.BITS:
        one, other = (np.where(x != x, x.dtype.type(1), x).tobytes() for x in (a, b))
        if not np.array_equal(a != a, b != b):
            return lambda: f"NaN: {a!r}, expected {b!r}"
        return None if one == other else lambda: f"bytes differ: {a!r}, expected {b!r}"
    inexact = grade >= Exact.ROUNDING and a.dtype.kind in "fc"
    finite = np.isfinite(a) & np.isfinite(b) if inexact else np.zeros(a.shape, bool)
    if grade < Exact.REALS or not inexact:
        equal = (a == b) | ((a != a) & (b != b)) | finite
        if not equal.all():
            return lambda: f"{a!r}, expected {b!r}"
    if inexact:
        allowed = np.broadcast_to(last_digits(b) if room is None else room, a.shape)
        away = _distance(np.where(finite, a, 0), np.where(finite, b, 0))
        if not (~finite | (away <= allowed)).all():
            return lambda: f"{a!r}, expected {b!r}\n{_worst(away, allowed)}"
    return None


def _worst(away: Any, allowed: Any) -> str:
    """The element that is farthest from what is allowed, in words."""
    at = np.unravel_index(np.argmax(np.where(away <= allowed, -1, away)), away.shape)
    return f"at {[*map(int, at)]} they are {away[at]:.3g} apart, where {allowed[at]:.3g} is allowed"


def last_digits(x: Any) -> Any:
    """The room that numbers have where no term cancels: a few units in the last place of each."""
    return 8 * np.finfo(x.dtype).eps * np.abs(x)


def assert_finite(
    outputs: Sequence[Node],
    run: Run,
    found: Sequence[Any],
    note: object = "",
    *,
    seeds: Iterable[int] = (),
) -> None:
    """Assert of results at `rounding` that what is finite in a run as written is finite.

    But for what that page excepts: numbers within last digits of the largest, and sums of terms
    that cancel though their magnitudes overflow. Of several ops in a row, what is decided by digits
    may differ, too: what is infinite with the noise of one of the `seeds` is left out.
    """
    for y, a in zip(outputs, found, strict=True):
        b = run.values[y]
        expected = np.asarray(b)
        if expected.dtype.kind not in "fc":
            continue
        limits = np.finfo(expected.dtype)
        lost = (np.abs(expected) < limits.max * (1 - 32 * limits.eps)) & ~np.isfinite(a)
        if not lost.any() or run.cancels(outputs):
            continue
        for seed in seeds:
            noise = np.random.default_rng(seed)
            try:
                noisy = Run(outputs, run.feeds, Exact.ROUNDING, noise)
                lost &= np.isfinite(noisy.values[y])
            except np.linalg.LinAlgError:  # singular, but for rounding
                return
        assert not lost.any(), f"not finite, as it was: {a!r}, expected {b!r}\n{note}"


def _distance(a: Any, b: Any) -> Any:
    """How far numbers are apart, in double precision."""
    return np.abs(np.subtract(a, b, dtype=np.result_type(a, b, np.float64)))


class Run:
    """Every node's value by its kernel, and whether a number overflowed or underflowed on the way.

    With `noise`, every value that was rounded is changed by a few units in the last place, and
    the signs of zeros and NaNs at random: what a rewrite may do to it. At `reals` that goes for
    leaves and for what was exact, too.
    """

    def __init__(
        self,
        outputs: Iterable[Node],
        feeds: Mapping[Node, Any],
        grade: Exact = Exact.BITS,
        noise: np.random.Generator | None = None,
    ) -> None:
        self.outputs = list(outputs)
        self.feeds = feeds
        self.values: dict[Node, Any] = dict(feeds)
        self.extreme = False
        self.grade = grade
        self.noise = noise
        self.pole = False
        if noise is not None:
            self.values = {x: self._changed(x, v, [], {}) for x, v in self.values.items()}
        with np.errstate(all="ignore", over="call", under="call", divide="call", call=self._note):
            self._walk(self.outputs, self.values)

    def _note(self, kind: str, flag: int) -> None:
        if kind == "divide by zero":
            self.pole = True
        else:
            self.extreme = True

    def _walk(self, outputs: Iterable[Node], values: dict[Node, Any]) -> None:
        steps = _steps(tuple(outputs), tuple(values))
        sizes = sizes_of(values) if any(step.attrs is None for step in steps) else {}
        for node, inputs, kernel, known, inner, joins, relaid in steps:
            operands = [values[x] for x in inputs]
            attrs = resolve(dict(node.attrs), sizes) if known is None else known
            if isinstance(node, Variable):
                values[node] = node.value
            elif inner is not None:  # a fused node: one by one, so that every flag is seen
                parts = dict(zip(inner.inputs, operands, strict=True))
                self._walk(inner.outputs, parts)
                found = tuple(parts[y] for y in inner.outputs)
                values[node] = found if len(found) > 1 else found[0]
            else:
                made = kernel(*operands, **attrs)
                if joins and not isinstance(made, tuple):
                    # BLAS signals nothing: what is inf, and was not, has overflowed.
                    self.extreme |= overflows(node, made, operands, attrs)
                    self.extreme |= underflows(node, made, operands, attrs)
                if relaid and getattr(made, "ndim", 0) > 1:
                    # As in a program: the layout decides in which order a sum is taken.
                    made = np.asarray(made, order="C")
                values[node] = (
                    made if self.noise is None else self._changed(node, made, operands, attrs)
                )

    def _changed(
        self, node: Node, value: Any, operands: list[Any], attrs: Mapping[str, Any]
    ) -> Any:
        assert self.noise is not None
        if isinstance(node.type, tuple) or node.dtype.kind not in "fc":
            return value
        if is_leaf(node) and self.grade < Exact.REALS:
            return value
        y = np.array(value)
        unsigned = np.isnan(y) | ((y == 0) & (self.grade > Exact.BITS))
        flip = unsigned & (self.noise.random(y.shape) < 0.5)
        y = np.where(flip, -y, y)
        if self.grade >= Exact.ROUNDING:
            step = 4 * np.finfo(y.dtype).eps * np.asarray(self.noise.standard_normal(y.shape))
            if y.dtype.kind == "c":
                step = step * np.exp(2j * np.pi * self.noise.random(y.shape))
            with np.errstate(all="ignore"):
                y = y + (step * self._weight(node, y, operands, attrs)).astype(y.dtype)
        return y[()]

    def _weight(self, node: Node, y: Any, operands: list[Any], attrs: Mapping[str, Any]) -> Any:
        """How large the numbers are whose rounding shows in a value."""
        weight = np.abs(y)
        if operands and self.grade == Exact.ROUNDING:
            # What is found among the operands was only moved, or chosen, and so not rounded.
            if node.op.elementwise:
                moved = np.any([np.equal(weight, np.abs(x)) for x in operands], axis=0)
            else:
                moved = np.isin(weight, np.abs(np.concatenate([np.ravel(x) for x in operands])))
            if (
                node.op.commutative
                and not node.op.kinks
                and np.array_equal(node.op.kernel(y, np.zeros_like(y)), y, equal_nan=True)
            ):  # 1 + 1e-20 is 1, but not because nothing was rounded
                moved &= np.logical_or(*(np.equal(x, 0) for x in operands))
            elif node.op.expensive:  # nor because nothing was rounded is x + log(2) just x
                moved &= ~of_zeros(node, operands, attrs)
            weight = np.where(moved, 0, weight)
        if operands and not (node.op.elementwise or node.op.view or node.op.kinks):
            # A sum is as uncertain as its terms are large, even where they cancel.
            sizes = [np.abs(x) if np.asarray(x).dtype.kind in "fc" else x for x in operands]
            terms = np.abs(node.op.kernel(*sizes, **attrs))
            weight = np.where(np.isfinite(terms) & (terms > np.abs(y)), terms, weight)
        return np.where(np.isfinite(weight), weight, 0)

    def cancels(self, outputs: Iterable[Node]) -> bool:
        """Whether outputs need a sum of terms whose magnitudes add up to more than the largest.

        Beside infinite terms the others count: in one order they overflow, in another not, so that
        an infinite one meets its opposite or is the sum.
        """
        for node in topological(outputs):
            operands = [self.values[x] for x in node.inputs]
            if operands and not (node.op.elementwise or node.op.view or node.op.kinks):
                sizes = [_size(x) if np.asarray(x).dtype.kind in "fc" else x for x in operands]
                attrs = resolve(dict(node.attrs), sizes_of(self.values))
                sums = node.op.combiner == "add" or node.op is running_sum.op
                if sums or all(map(all_finite, operands)):
                    with np.errstate(all="ignore"):
                        made = node.op.kernel(*sizes, **attrs)
                    if not all_finite(made):
                        return True
        return False

    def results(self) -> list[Any]:
        return [self.values[y] for y in self.outputs]


def _size(x: Any) -> Any:
    """The magnitudes of numbers, 0 of those that are not finite."""
    return np.where(np.isfinite(x), np.abs(x), np.zeros((), np.asarray(x).real.dtype))


class _Step(NamedTuple):
    """A node to compute, with what is the same at every point."""

    node: Node
    inputs: tuple[Node, ...]
    kernel: Callable[..., Any]
    attrs: dict[str, Any] | None  # None if they hold named sizes
    inner: GraphLike | None
    joins: bool  # it computes with more than one element of an operand
    relaid: bool


@lru_cache(maxsize=8)  # the same graphs are run at many points
def _steps(outputs: tuple[Node, ...], known: tuple[Node, ...]) -> list[_Step]:
    """The nodes to compute, in order."""
    return [
        _Step(
            node,
            node.inputs,
            node.op.kernel,
            _plain(node),
            node.inner_graph,
            bool(node.inputs) and not (node.op.elementwise or node.op.view),
            not (node.op.view or node.op.identity),
        )
        for node in topological(outputs, known={*known})
    ]


def _plain(node: Node) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = resolve(dict(node.attrs), {})
    except SymbolicError:
        return None
    return found


def tolerances(
    outputs: Sequence[Node],
    feeds: Mapping[Node, Any],
    exact: Exact | Grade,
    seeds: Iterable[int] = range(4),
) -> list[Any] | None:
    """How far each element of the results may move at a grade: 100 times what noise does to it.

    The graph is run with its values changed in the last digits, once for each of the `seeds`. None
    if the graph says nothing at these feeds: because noise flips an integer, a comparison or a NaN,
    a sign of a zero decides, a number overflows or underflows, or, for `reals`, because some number
    is not real.
    """
    grade = Exact.of(exact)
    base = Run(outputs, feeds)
    if grade >= Exact.ROUNDING and base.extreme:
        return None
    spread = [np.zeros(np.shape(v)) for v in base.results()]
    for seed in seeds:
        try:
            moved = Run(outputs, feeds, grade, np.random.default_rng(seed))
        except np.linalg.LinAlgError:  # singular, but for rounding
            return None
        for node, value in base.values.items():
            if not _agrees(value, moved.values[node], grade):
                return None
        for i, (a, b) in enumerate(zip(base.results(), moved.results(), strict=True)):
            if np.asarray(a).dtype.kind in "fc":
                with np.errstate(all="ignore"):
                    spread[i] = np.fmax(spread[i], _distance(a, b))
    return [
        100 * s + np.finfo("f4" if np.asarray(v).real.dtype.itemsize == 4 else "f8").tiny
        for s, v in zip(spread, base.results(), strict=True)
    ]


def _agrees(value: Any, moved: Any, grade: Exact) -> bool:
    if isinstance(value, tuple):
        return all(_agrees(a, b, grade) for a, b in zip(value, moved, strict=True))
    a, b = np.asarray(value), np.asarray(moved)
    if a.dtype.kind not in "fc" or grade <= Exact.VALUES:
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
    exact: Exact | Grade = "rounding",
    passes: Iterable[PassLike] | None = None,
    backend: Backend = "numpy",
) -> bool:
    """Assert that a compiled program computes what its graph says, at a grade.

    The reference is every node's kernel, one after the other, without passes or plan; how far
    apart results may be says the graph itself, run with noise. The two backends that call NumPy
    must agree to the bit, and machine code to the grade. False if the graph says nothing of digits
    at these arrays (see `tolerances`), where at `rounding` what is finite as written must still be
    finite, or if a kernel refuses them, such as a singular matrix.
    """
    grade = Exact.of(exact)
    steps = None if passes is None else tuple(passes)
    program = compile(inputs, list(outputs), exact=grade, passes=steps, backend=backend)
    return assert_computes(program, arrays, grade)


def assert_computes(program: Program, arrays: Sequence[Any], grade: Exact) -> bool:
    """Assert of a program that was compiled at a grade what `assert_equivalent` does."""
    outputs = program.raw.outputs
    placeholders = (n for n in program.raw.inputs if not isinstance(n, Variable))
    feeds = dict(zip(placeholders, arrays, strict=True))
    walked = _with_backend(program, "reference")
    try:
        written = Run(outputs, feeds)
    except ValueError:  # refused by a kernel, as a singular matrix is, and by any program
        return False
    expected = written.results()
    found = program(*arrays)
    text = _Description(program)
    plain = (
        found if program.interface.backend == "numpy" else _with_backend(program, "numpy")(*arrays)
    )
    for a, b in zip(plain, walked(*arrays), strict=True):
        assert_same(a, b, Exact.BITS, note=_Description(program, "the two backends"))
    allowed: list[Any] | None = [None] * len(expected)
    if not all(map(is_same, found, expected, cycle([grade]))):
        allowed = tolerances(outputs, feeds, grade)
        if allowed is not None and not all(map(is_same, found, expected, cycle([grade]), allowed)):
            # Among thousands of elements are some that four kinds of noise leave as they are.
            allowed = tolerances(outputs, feeds, grade, seeds=range(20))
        if grade >= Exact.ROUNDING and Run(program.graph.outputs, feeds).extreme:
            allowed = None
    if allowed is None:
        if grade == Exact.ROUNDING:
            assert_finite(outputs, written, found, text, seeds=range(4))
        return False
    for a, b, room in zip(found, expected, allowed, strict=True):
        assert_same(a, b, grade, room, note=text)
    return True


@lru_cache(maxsize=4)  # asked again for other arrays
def _with_backend(program: Program, backend: Backend) -> Program:
    """The same program, run in another way."""
    interface = replace(program.interface, backend=backend)
    return Program(program.graph, program.raw, program.trace, interface, program.split)


class _Description:
    """A program's graphs, before and after: as text for a failure only, since that takes long."""

    def __init__(self, program: Program, backends: str = "") -> None:
        self.program, self.backends = program, backends

    def __str__(self) -> str:
        rules = ", ".join(self.program.trace.rules())
        graphs = f"raw:\n{self.program.raw}\noptimised by {rules}:\n{self.program.graph}"
        return f"{self.backends}\n{self.program.source}\n{graphs}" if self.backends else graphs

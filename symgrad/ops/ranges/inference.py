"""The range of a node: between which numbers all its elements lie, whatever is fed.

A placeholder has the range that it was declared with; others, and variables, may be any numbers,
or any finite ones, as is asked. Ranges go through every op that has an interval rule; what comes of
another is unknown. Rounding counts: where IEEE 754 rounds an op correctly, rounded ends are ends of
what is rounded, since rounding is monotone; functions have room for four units in the last place,
and stay within their own ends (exp is not negative). Elements of one array are not told apart, nor
are two uses of one node (but for x * x), so that a range may be wider than what can happen.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from math import inf, isinf, isnan, nextafter, trunc
from types import MappingProxyType
from typing import Any

import numpy as np

from symgrad.ir.dims import Dim, product
from symgrad.ir.leaf_ops import CONSTANT, INPUTS, PLACEHOLDER
from symgrad.ir.long_double import WIDE
from symgrad.ir.node import Node, constant_value
from symgrad.ir.ranges import UNKNOWN, Range
from symgrad.ir.types import DType, TensorType
from symgrad.ir.walk import topological
from symgrad.ops.elementwise import multiply
from symgrad.ops.leaves import size_of
from symgrad.ops.ranges.facts import DOMAINS, MOVES, OWN, ROUNDED, TOTAL, WITH_ZEROS
from symgrad.ops.ranges.intervals import Interval, Table, UnboundedError
from symgrad.ops.reduce import sum as sum_of

MOST_ELEMENTS = 2**40  # that an axis of named size is taken to have at most
MOST_NODES = 100  # that a rule looks at for one range
DENSE = 2**53  # up to here every integer is a float
UNITS = 4

_wide: Callable[[Any], Any] = WIDE.type


def range_of(node: Node) -> Range:
    """The range of a node, if all inputs are finite."""
    return ranges_of([node], finite=True)[node]


def ranges_of(
    nodes: Iterable[Node], *, finite: bool = False, most: int | None = None
) -> dict[Node, Range]:
    """The ranges of nodes and of all that they are made of.

    Inputs whose range is not declared are any numbers, or any that are `finite`; then no axis of
    named size is taken to be empty. Of what is further away than the `most` nearest nodes nothing
    is taken to be known.
    """
    wanted = list(nodes)
    found = dict.fromkeys(_beyond(wanted, most), UNKNOWN) if most else {}
    rules = _Rules(found, least=int(finite))
    with np.errstate(all="ignore"):
        for node in topological(wanted, known=found.keys()):
            if node.op in INPUTS:
                found[node] = _of_input(node, finite)
            else:
                found[node] = _range(node, [found[x] for x in node.inputs], rules)
    return found


def _beyond(nodes: list[Node], most: int) -> set[Node]:
    """The operands of the nearest nodes that are not among them."""
    near = dict.fromkeys(nodes)
    todo = deque(nodes)
    while todo and len(near) < most:
        for x in todo.popleft().inputs:
            if x not in near:
                near[x] = None
                todo.append(x)
    return {x for n in todo for x in n.inputs if x not in near}


def declared(node: Node) -> Range | None:
    """The range that a placeholder was declared with: of numbers of its dtype, as it is fed.

    In single precision that from 0.1 begins with float32(0.1), which is larger, and that from
    1e-300 with 0.
    """
    attrs = dict(node.attrs) if node.op is PLACEHOLDER else {}
    if "within" not in attrs:
        return None
    low, high = attrs["within"]
    if node.dtype.kind == "f":
        most = float(np.finfo(node.dtype).max)  # which no finite end rounds beyond
        low, high = (
            e if isinf(e) else float(np.clip(e, -most, most).astype(node.dtype))
            for e in (low, high)
        )
    return Range(low, high)


def _of_input(node: Node, finite: bool) -> Range:
    found = declared(node)
    if found is not None and node.dtype.kind in "iu":
        return _of_integers(found.low, found.high)
    if found is None and (finite or node.dtype.kind != "f"):
        found = any_finite(node.dtype)
    return UNKNOWN if found is None else found


def any_finite(dtype: DType) -> Range:
    """The range of all finite numbers of a dtype."""
    if dtype.kind == "f":
        most = float(np.finfo(dtype).max)
        return Range(-most, most)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return Range(float(info.min), float(info.max))
    return Range(0, 1) if dtype.kind == "b" else UNKNOWN


def _range(node: Node, operands: list[Range], rules: _Rules) -> Range:
    op = node.op
    if not isinstance(node.type, TensorType) or node.tensor.is_complex:
        return UNKNOWN
    if op is CONSTANT:
        return _of_array(constant_value(node))
    if op.identity or op.view:
        return operands[0]
    if any(x.tensor.is_complex for x in node.inputs if isinstance(x.type, TensorType)):
        return UNKNOWN
    if node.dtype.kind == "b" and not op.elementwise:
        return Range(0, 1)
    try:
        made = rules.range(node, operands)
    except UnboundedError:
        return any_finite(node.dtype) if node.dtype.kind in "iub" else UNKNOWN
    return _fitting(made, node.dtype)


def _of_array(array: Any) -> Range:
    values = np.asarray(array)
    if not values.size:
        return Range(0, 0)
    if values.dtype.kind in "iu":
        return _of_integers(int(values.min()), int(values.max()))
    known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    nan = known.size < values.size
    return Range(float(known.min()), float(known.max()), nan) if known.size else UNKNOWN


def _fitting(made: Range, dtype: DType) -> Range:
    """A range in a dtype: beyond its ends floats are infinite, and integers are anything."""
    if dtype.kind in "iu":
        inside = _is_within(made, dtype)
        return _of_integers(made.low, made.high) if inside else any_finite(dtype)
    if dtype.kind == "f":
        low, high = (float(np.asarray(v, WIDE).astype(dtype)) + 0.0 for v in made[:2])
        # Room for rounding around an infinite end is not a number.
        return Range(-inf if isnan(low) else low, inf if isnan(high) else high, made.nan)
    return made


def _of_integers(low: Any, high: Any) -> Range:
    """A range of integers; its ends are moved outwards where floats skip some."""
    a, b = float(low), float(high)
    return Range(
        a if abs(a) < DENSE else nextafter(a, -inf), b if abs(b) < DENSE else nextafter(b, inf)
    )


def _is_within(made: Range, dtype: DType) -> bool:
    """Whether all of a range are integers of a dtype; the largest of 64 bits is no float."""
    low, high, _ = any_finite(dtype)
    return bool(low <= made.low <= made.high <= high and made.high < max(high, DENSE))


class _Rules:
    """How ranges go through ops: by the table of intervals, and what that does not have.

    An axis of named size has at `least` so many elements.
    """

    def __init__(self, known: Mapping[Node, Range], least: int) -> None:
        self.table, self.known, self.least = Table(), known, least

    def range(self, node: Node, operands: list[Range]) -> Range:
        name = node.op.name
        if name in MOVES:
            return _hull(operands[: 1 if node.op.indices else None])
        if name in WITH_ZEROS:
            return _hull([operands[0], Range(0, 0)])
        if hasattr(self, f"of_{name}"):
            found: Range = getattr(self, f"of_{name}")(node, operands)
            return found
        if not node.op.elementwise:
            raise UnboundedError
        return self._elementwise(node, operands)

    def _elementwise(self, node: Node, operands: list[Range]) -> Range:
        name = node.op.name
        method: Callable[..., Interval] = self.table.square
        if node.op is multiply.op and node.inputs[0] is node.inputs[1]:
            name, operands = "square", operands[:1]
        else:
            method = self.table.lookup(node)
        ends = [_interval(r, x) for r, x in zip(operands, node.inputs, strict=False)]
        made = method(*ends, node)
        if node.dtype.kind == "b":  # of a NaN a mask may be either
            nan = any(r.nan for r in operands)
            return Range(0, 1) if nan else Range(float(made.low), float(made.high))
        low, high = (_wide(v) for v in made)
        if name not in ROUNDED:
            unit = UNITS * np.finfo(node.dtype).eps if node.dtype.kind == "f" else 0
            low, high = low - unit * abs(low), high + unit * abs(high)
        least, most = OWN.get(name, (-inf, inf))
        low, high = max(low, _wide(least)), min(high, _wide(most))
        return Range(low, high, _may_be_nan(name, operands))

    # ---- sums -------------------------------------------------------------------------------

    def of_divide(self, node, operands):
        mean = self._of_mean(*node.inputs) if operands[0].finite else None
        return self._elementwise(node, operands) if mean is None else mean

    def _of_mean(self, total, count):
        """The range of a sum over the number of its terms: theirs, and room for roundings."""
        if total.op is not sum_of.op or total.dtype.kind != "f":
            return None
        x = total.inputs[0]
        size = product(x.shape[k] for k in total.attr("axis"))
        value = constant_value(count)
        if not size or size != (count.attr("dim") if count.op is size_of.op else value):
            return None
        many = MOST_ELEMENTS if isinstance(size, Dim) else size
        room = (many + UNITS) * float(np.finfo(total.dtype).eps)
        low, high, nan = self.known[x]
        empty = isinstance(size, Dim) and not self.least
        return Range(low - room * abs(low), high + room * abs(high), nan or empty)

    def of_sum(self, node, operands):
        x = node.inputs[0]
        return self._times(operands[0], [x.shape[k] for k in node.attr("axis")], node)

    def of_matmul(self, node, operands):
        one = self._product(*operands)
        return self._times(one, node.inputs[0].shape[-1:], node)

    def of_vecdot(self, node, operands):
        return self.of_matmul(node, operands)

    def of_running_sum(self, node, operands):
        total = self._times(operands[0], [node.shape[node.attr("axis")]], node)
        return _hull([operands[0], total])

    def of_norm2(self, node, operands):
        x = node.inputs[0]
        size = max(abs(operands[0].low), abs(operands[0].high))
        # Not of squares, which may vanish where their root does not.
        count = self._times(Range(0, 1), [x.shape[k] for k in node.attr("axis")], node).high
        room = 1 + UNITS * float(np.finfo(node.dtype).eps)
        return Range(0, size and _wide(size) * count**0.5 * room, operands[0].nan)

    def _times(self, one, sizes, node):
        """The sum of so many numbers of a range, each addition being rounded."""
        least, most = 1, 1
        for n in sizes:
            named = isinstance(n, Dim)
            least, most = (
                least * (self.least if named else n),
                most * (MOST_ELEMENTS if named else n),
            )
        ends = [_wide(v) * n if n else _wide(0) for v in one[:2] for n in (least, most)]
        eps = _wide(np.finfo(node.dtype).eps) if node.dtype.kind == "f" else _wide(0)
        room = (min(most, MOST_ELEMENTS) + 1) * eps if most > 1 else _wide(0)
        low, high = min(ends), max(ends)
        if room:
            low, high = low - room * abs(low), high + room * abs(high)
        limit = any_finite(node.dtype)
        nan = one.nan or (low < limit.low and high > limit.high)  # an inf may meet another
        return Range(low, high, nan)

    def _product(self, a, b):
        ends = [_wide(x) * _wide(y) for x in a[:2] for y in b[:2]]
        nan = a.nan or b.nan or any(np.isnan(e) for e in ends) or _meets(a, b) or _meets(b, a)
        known = [e for e in ends if not np.isnan(e)] or [_wide(0)]
        return Range(min(known), max(known), nan)

    # ---- rows -------------------------------------------------------------------------------

    def of_softmax(self, node, operands):
        return Range(0, 1 + UNITS * float(np.finfo(node.dtype).eps), not operands[0].finite)

    def of_log_softmax(self, node, operands):
        x, size = operands[0], self._logs(node)
        room = UNITS * float(np.finfo(node.dtype).eps) * (x.high - x.low)
        return Range(x.low - x.high - size - room, 0, not x.finite)

    def of_logsumexp(self, node, operands):
        x, size = operands[0], self._logs(node)
        room = UNITS * float(np.finfo(node.dtype).eps) * (max(abs(x.low), abs(x.high)) + 1)
        sizes = node.inputs[0].shape
        empty = 0 in sizes or (not self.least and any(isinstance(n, Dim) for n in sizes))
        return Range(-inf if empty else x.low - room, x.high + size + room, x.nan)

    def _logs(self, node):
        sizes = (node.inputs[0].shape[k] for k in node.attr("axis"))
        many = (MOST_ELEMENTS if isinstance(n, Dim) else max(n, 1) for n in sizes)
        return float(sum(np.log(float(n)) for n in many)) * (1 + 1e-6)

    # ---- integers and draws -----------------------------------------------------------------

    def of_astype(self, node, operands):
        (x,) = operands
        if node.dtype.kind not in "iu":
            return self._elementwise(node, operands)
        inside = x.finite and _is_within(x, node.dtype)
        return Range(trunc(x.low), trunc(x.high)) if inside else any_finite(node.dtype)

    def of_argmax(self, node, operands):
        n = node.inputs[0].shape[node.attr("axis")]
        return Range(0, MOST_ELEMENTS if isinstance(n, Dim) else max(n - 1, 0))

    of_argmin = of_argmax

    def of_size_of(self, node, operands):
        return Range(0, float(MOST_ELEMENTS))

    def of_eye(self, node, operands):
        return Range(0, 1)

    def of_reciprocal(self, node, operands):
        if node.dtype.kind in "iu":  # rounded towards 0, and anything for 0
            raise UnboundedError
        return self._elementwise(node, operands)

    def of_arange(self, node, operands):
        count = node.attr("count")
        last = (MOST_ELEMENTS if isinstance(count, Dim) else max(count - 1, 0)) * node.attr("step")
        ends = node.attr("start"), node.attr("start") + last
        return Range(min(ends), max(ends))


def _hull(parts: list[Range]) -> Range:
    nan = any(r.nan for r in parts)
    return Range(min(r.low for r in parts), max(r.high for r in parts), nan)


def _interval(r: Range, node: Node) -> Interval:
    if node.dtype.kind == "b":
        return Interval(np.bool_(r.low > 0), np.bool_(r.high > 0))
    return Interval(_wide(r.low), _wide(r.high))


def _infinite(r: Range) -> bool:
    """Whether it has an end that is not finite."""
    return isinf(r.low) or isinf(r.high)


def _has_zero(r: Range) -> bool:
    return r.low <= 0 <= r.high


def _meets(a: Range, b: Range) -> bool:
    """Whether a zero of the one may meet an inf of the other."""
    return _has_zero(a) and _infinite(b)


def _power_may_be_nan(a: Range, b: Range) -> bool:
    """Whether a negative number may be raised to a power that is no integer."""
    return a.low < 0 and not (b.low == b.high and not isinf(b.low) and b.low == int(b.low))


# Whether an op may make a NaN of numbers in these ranges, where `TOTAL` and `DOMAINS` do not say.
MAKES_NAN: Mapping[str, Callable[..., bool]] = MappingProxyType(
    {
        "sin": _infinite, "cos": _infinite, "tan": _infinite,
        "add": lambda a, b: _infinite(a) and _infinite(b),
        "subtract": lambda a, b: _infinite(a) and _infinite(b),
        "multiply": lambda a, b: _meets(a, b) or _meets(b, a),
        "divide": lambda a, b: (
            (_has_zero(a) and _has_zero(b)) or (_infinite(a) and _infinite(b))
        ),
        "reciprocal": lambda a: False,
        "pow": _power_may_be_nan,
        "xlogy": lambda a, b: _infinite(a) or _infinite(b) or b.low < 0,
    }
)  # fmt: skip


def _may_be_nan(name: str, operands: list[Range]) -> bool:
    if any(r.nan for r in operands):
        return True
    if domain := DOMAINS.get(name):
        return not domain[0] <= operands[0].low <= operands[0].high <= domain[1]
    if made := MAKES_NAN.get(name):
        return made(*operands)
    return name not in TOTAL

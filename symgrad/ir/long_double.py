"""Values of graphs in long double, and how far rounding may move them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from symgrad.ir.evaluate import resolve, sizes_of
from symgrad.ir.node import Node, Variable
from symgrad.ir.walk import topological

WIDE = np.dtype(np.longdouble)
SPREAD = 4  # units in the last place that noise moves a number by


class Run:
    """The value of every node by its kernel, in long double if `wide`, else as the graph says.

    With `noise`, what is computed is off by a few units in the last place: of its dtype, or of long
    double if `unit` says so; and so are the operands of the nodes that are `shaken`. `extreme`
    tells whether a number overflowed or underflowed on the way. With `fallback`, a kernel that
    takes no long doubles is given doubles; `fallen_back` has the nodes. Without `rounding`, casts
    to floats round nothing.
    """

    def __init__(
        self,
        outputs: Iterable[Node],
        feeds: Mapping[Node, Any],
        *,
        wide: bool = True,
        noise: np.random.Generator | None = None,
        unit: float | None = None,
        fallback: bool = False,
        rounding: bool = True,
        sizes: Mapping[str, int] | None = None,
        shaken: Collection[Node] = (),
    ) -> None:
        self.outputs = list(outputs)
        self.wide, self.noise, self.unit, self.fallback = wide, noise, unit, fallback
        self.extreme, self.shaken, self.rounding = False, shaken, rounding
        self.values: dict[Node, Any] = {x: self._wide(v) for x, v in feeds.items()}
        self.fallen_back: list[Node] = []
        sizes = {**sizes_of(self.values), **(sizes or {})}
        with np.errstate(all="ignore", over="call", under="call", call=self._note):
            for node in topological(self.outputs, known=self.values.keys()):
                self.values[node] = self._value(node, resolve(dict(node.attrs), sizes))

    def _note(self, kind: str, flag: int) -> None:
        self.extreme = True

    def _value(self, node: Node, attrs: Mapping[str, Any]) -> Any:
        if isinstance(node, Variable):
            return self._wide(node.value)
        operands = [self.values[x] for x in node.inputs]
        if self.noise is not None and node in self.shaken:
            pairs = zip(operands, node.inputs, strict=True)
            operands = [self._shaken(v, np.abs(v), x) for v, x in pairs]
        made = self._made(node, operands, attrs)
        if isinstance(made, tuple):
            return tuple(map(self._wide, made))
        made = self._wide(made)
        if self.noise is None or not operands or made.dtype.kind not in "fc":
            return made
        if node.op.elementwise and node.op.piecewise_constant:  # a whole number, or a sign
            return made
        size = np.abs(made)
        if node.op.of_several:  # of a decomposition, which is as uncertain as its largest element
            size = np.full_like(size, np.max(size, initial=0))
        elif not node.op.elementwise:  # a sum is as uncertain as its terms are large
            sizes = [np.abs(x) if np.asarray(x).dtype.kind in "fc" else x for x in operands]
            size = np.fmax(size, np.abs(node.op.kernel(*sizes, **attrs)))
        size = np.where(np.isfinite(size), size, 0)
        if node.op.cast or node.op.view or node.op.kinks or node.op.zero_filled:
            moved = np.concatenate([np.ravel(np.abs(x)) for x in operands])
            size = np.where(np.isin(np.abs(made), moved), 0, size)
        return self._shaken(made, size, node)

    def _shaken(self, value: Any, size: Any, node: Node) -> Any:
        """A value with noise that is so large."""
        if self.noise is None or np.asarray(value).dtype.kind not in "fc":
            return value
        unit = np.finfo(node.dtype).eps if self.unit is None else self.unit
        return value + SPREAD * unit * size * self.noise.standard_normal(np.shape(value))

    def _made(self, node: Node, operands: list[Any], attrs: Mapping[str, Any]) -> Any:
        if node.op.cast and not self.rounding and node.dtype.kind == "f":
            return node.op.kernel(*operands, **{**attrs, "dtype": WIDE})
        if not self.fallback:
            return node.op.kernel(*operands, **attrs)
        try:
            return node.op.kernel(*operands, **attrs)
        except Exception:  # no kernel of LAPACK's takes long doubles
            self.fallen_back.append(node)
            plain = (np.asarray(x, np.float64) if x.dtype == WIDE else x for x in operands)
            return node.op.kernel(*plain, **attrs)

    def _wide(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return value
        array = np.asarray(value)
        return array.astype(WIDE) if self.wide and array.dtype.kind == "f" else array

    def results(self) -> list[Any]:
        """The values of the outputs."""
        return [self.values[y] for y in self.outputs]

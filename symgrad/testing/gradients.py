"""Checking derivatives: against differences, against each other, and fairly at kinks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from symgrad.autodiff.transforms import jvp, vjp
from symgrad.ir.dims import evaluate as evaluate_dim
from symgrad.ir.errors import GradientError
from symgrad.ir.evaluate import evaluate
from symgrad.ir.kinks import Policy
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import whole
from symgrad.ir.walk import topological
from symgrad.ops.complexes import real
from symgrad.ops.leaves import placeholder
from symgrad.ops.linalg.products import vecdot
from symgrad.ops.shape import reshape

STEP = 1e-6
COMPLEX_STEP = 1e-30
MOST_DIRECTIONS = 64


@dataclass(frozen=True)
class Verdict:
    """One directional derivative: from the left, from the right, and by symgrad in both modes.

    `forward` is None where there is no forward mode, as in a custom function with arrays.
    """

    direction: str
    left: float
    right: float
    forward: float | None
    reverse: float
    tolerance: float

    @property
    def is_kink(self) -> bool:
        """Whether the one-sided derivatives differ."""
        return not abs(self.left - self.right) <= 1e3 * self.tolerance

    @property
    def modes_agree(self) -> bool:
        """Whether forward and reverse mode give the same."""
        return self.forward is None or abs(self.forward - self.reverse) <= self.tolerance

    @property
    def is_right(self) -> bool:
        """Whether both modes agree, and lie between the one-sided derivatives."""
        room = self.tolerance * (10 if self.is_kink else 1)
        low, high = sorted((self.left, self.right))
        if not self.is_kink:
            low = high = (low + high) / 2
        return self.modes_agree and low - room <= self.reverse <= high + room

    def __str__(self) -> str:
        ours = f"{self.reverse:.10g}"
        if not self.modes_agree:
            ours += f" in reverse and {self.forward:.10g} in forward mode"
        between = "lies between" if self.is_right else "does not lie between"
        if self.is_kink:
            return (
                f"{self.direction}: a kink; left {self.left:.6g}, right {self.right:.6g}, "
                f"ours {ours}, which {between}"
            )
        middle = (self.left + self.right) / 2
        return f"{self.direction}: by differences {middle:.10g}, ours {ours}"


@dataclass(frozen=True)
class Report:
    """All the directions that were checked; `kinks` are those along which there is a kink."""

    verdicts: tuple[Verdict, ...]

    @property
    def kinks(self) -> list[Verdict]:
        """The directions along which the one-sided derivatives differ."""
        return [v for v in self.verdicts if v.is_kink]

    def __str__(self) -> str:
        return "\n".join(map(str, self.verdicts))


def check_grads(
    function: Callable[..., Any], *arrays: Any, order: int = 2, kinks: Policy = None, seed: int = 0
) -> Report:
    """Assert that the derivatives of a function of nodes are right at a point, in both modes.

    The function is given a float64 placeholder for each array, or a complex128 one. Its derivative
    along each axis, the imaginary ones too (or along random directions, if there are many), is
    compared with differences from the left and from the right. Where these differ there is a kink,
    and the derivative must lie between them. With `order=2` the derivatives of the gradient are
    checked too, where there is no kink. Where every op is analytic the differences are complex
    steps, exact to the last digits (Squire and Trapp, SIAM Review 40, 1998). Raises
    `AssertionError` with a verdict for each direction that is wrong.

    >>> check_grads(lambda x: relu(x), [0.0]).kinks[0].right
    1.0
    """
    order = whole(order, "order", 1, GradientError)
    points = [np.asarray(a, np.result_type(np.asarray(a), np.float64)) for a in arrays]
    xs = [placeholder(f"argument {i}", p.shape, p.dtype) for i, p in enumerate(points)]
    rng = np.random.default_rng(seed)
    y = _weighted(function(*xs), rng)
    report = _check(y, xs, points, kinks, rng, 1)
    for level in range(2, order + 1 if not report.kinks else 2):
        try:
            y = _weighted(vjp(y, xs, 1.0, kinks=kinks, disconnected="zero"), rng)
            vjp(y, xs, 1.0, kinks=kinks, disconnected="zero")
        except GradientError:
            break  # a function over arrays on the way: it has no second derivative to be wrong
        _check(y, xs, points, kinks, rng, level)
    return report


def _weighted(results: Any, rng: np.random.Generator) -> Node:
    """One number from all the results: each times random weights, so that no error cancels."""
    nodes = [as_node(r) for r in (results if isinstance(results, (tuple, list)) else [results])]
    total: Node | None = None
    for node in nodes:
        if not node.tensor.is_inexact:
            raise GradientError(f"check_grads needs a function with float results, not {node!r}")
        count = evaluate_dim(node.size, {})
        weights = 1 + rng.random(count) if count > 1 else np.ones(count)
        if node.tensor.is_complex:
            weights = weights * np.exp(1j * rng.random(count))
        part = real(vecdot(reshape(node, -1), weights))
        total = part if total is None else total + part
    assert total is not None
    return total


def _check(
    y: Node, xs: list[Node], points: list[Any], kinks: Policy, rng: np.random.Generator, order: int
) -> Report:
    feeds = dict(zip(xs, points, strict=True))
    nodes = topological([y])
    values = dict(zip(nodes, evaluate(nodes, feeds), strict=True)) | feeds
    gradient = evaluate(vjp(y, xs, 1.0, kinks=kinks, disconnected="zero"), feeds)
    tangents = [placeholder(f"tangent {i}", x.shape, x.dtype) for i, x in enumerate(xs)]
    pushed = _pushed(y, xs, tangents, kinks)
    analytic = all(map(_is_analytic, nodes))
    verdicts = []
    for name, directions in _directions(points, rng):
        moved = {**values, **dict(zip(tangents, directions, strict=True))}
        forward = None if pushed is None else float(evaluate([pushed], moved)[0])
        reverse = sum(float(np.vdot(g, d).real) for g, d in zip(gradient, directions, strict=True))
        left, right, tolerance = _slopes(y, values[y], xs, points, directions, analytic)
        verdicts.append(Verdict(name, left, right, forward, reverse, tolerance))
    wrong = "\n".join(f"  {v}" for v in verdicts if not v.is_right)
    if wrong:
        raise AssertionError(f"wrong derivatives at order {order}:\n{wrong}")
    return Report(tuple(verdicts))


def _pushed(y: Node, xs: list[Node], tangents: list[Node], kinks: Policy) -> Node | None:
    """The derivative in forward mode, if every function on the way has one."""
    try:
        return jvp(y, xs, tangents, kinks=kinks, disconnected="zero")
    except GradientError:
        return None


def _directions(points: Sequence[Any], rng: np.random.Generator) -> Iterator[tuple[str, list[Any]]]:
    """Along each axis, if there are few; else along random directions."""
    units = [(1, 1j) if np.iscomplexobj(p) else (1,) for p in points]
    if sum(p.size * len(u) for p, u in zip(points, units, strict=True)) > MOST_DIRECTIONS:
        for i in range(MOST_DIRECTIONS):
            yield (
                f"random direction {i}",
                [
                    sum(u * rng.standard_normal(p.shape) for u in several)
                    for p, several in zip(points, units, strict=True)
                ],
            )
        return
    for i, p in enumerate(points):
        for index, unit in product(np.ndindex(p.shape), units[i]):
            one = [np.zeros_like(q) for q in points]
            one[i][index] = unit
            name = f"argument {i}{list(index) if index else ''}"
            yield name if unit == 1 else f"i times {name}", one


def _slopes(
    y: Node, value: Any, xs: list[Node], points: list[Any], directions: list[Any], analytic: bool
) -> tuple[float, float, float]:
    """The derivatives from the left and from the right, and how well they are known.

    `value` is that of y at the points.
    """
    if analytic:
        moved = [p + 1j * COMPLEX_STEP * d for p, d in zip(points, directions, strict=True)]
        stepped = evaluate([y], dict(zip(xs, moved, strict=True)))[0]
        slope = float(np.imag(stepped)) / COMPLEX_STEP
        return slope, slope, 1e-9 * (1 + abs(slope))

    def at(t: float) -> float:
        moved = [p + t * d for p, d in zip(points, directions, strict=True)]
        return float(evaluate([y], dict(zip(xs, moved, strict=True)))[0])

    h = STEP * max(1.0, max((float(np.abs(p).max(initial=0)) for p in points), default=1.0))
    middle = float(value)
    # Two steps each, extrapolated: the error is of second order, as for a central difference.
    left = (3 * middle - 4 * at(-h) + at(-2 * h)) / (2 * h)
    right = (-3 * middle + 4 * at(h) - at(2 * h)) / (2 * h)
    scale = 1 + abs(middle) + abs(left) + abs(right)
    return left, right, 1e-8 * scale


def _is_analytic(node: Node) -> bool:
    """Whether a kernel takes complex numbers and is analytic, so that a complex step is exact."""
    kernel = node.op.kernel
    if isinstance(node.type, tuple) or node.tensor.is_complex:
        return False  # of what is complex already, no part is free to carry a derivative
    if not node.inputs:
        return True
    if node.op.kinks or node.op.piecewise_constant:
        return False
    if isinstance(kernel, np.ufunc):
        return any(t.replace("D", "") == "->" for t in kernel.types)
    return node.op.linear

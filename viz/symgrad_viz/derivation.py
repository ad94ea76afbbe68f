"""Derivations: the way from a loss as it was written to its gradient, line by line.

Every line equates two nodes, which can be evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symgrad.autodiff.transforms import grad, hvp
from symgrad.compiler import compile
from symgrad.ir.errors import GradientError, RenderError
from symgrad.ir.graph import is_input
from symgrad.ir.kinks import Kinks, Policy
from symgrad.ir.node import Node, Variable
from symgrad.ir.origin import built_as
from symgrad.ir.types import in_order
from symgrad.ir.walk import topological
from symgrad.ops.leaves import placeholder
from symgrad.ops.reduce import sum
from symgrad.rewrite.rule import Exact, Grade
from symgrad_viz import derivation_page as pages
from symgrad_viz.derivation_steps import Section, Step
from symgrad_viz.derivation_writer import FIRST, Writer, second
from symgrad_viz.picture import write
from symgrad_viz.terms import plain

NOISE = 1e-3


@dataclass(frozen=True, eq=False)
class Derivation:
    """The way from a loss to its derivative: what `sg.derivation` gives. It prints as text.

    `sections` are its parts, `steps` all their lines, `result` the nodes that were derived.
    """

    title: str
    sections: tuple[Section, ...]
    result: tuple[Node, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for section in self.sections for step in section.steps)

    def errors(self, /, **arrays: Any) -> list[float]:
        """Evaluate every line for these arrays: the largest relative error of each.

        That is the largest difference of its two sides over their largest element, or over a
        thousandth of the largest of any line: a gradient that is 0 has digits of rounding only.
        Nothing is simplified before. Variables have their present values. The direction in which a
        second derivative is taken is fed by its name. It takes as long as the square of the lines.

        >>> derivation(loss, w).errors(x=X, y=Y)
        """
        pairs = [[step.before, step.after] for step in self.steps]
        leaves = [n for n in topological([n for p in pairs for n in p]) if is_input(n)]
        fed = [n for n in leaves if not isinstance(n, Variable)]
        found = compile(fed, pairs, passes=(), backend="numpy")(**arrays)
        largest = max((_largest(side) for pair in found for side in pair), default=0.0)
        return [_error(a, b, largest * NOISE) for a, b in found]

    def html(self) -> str:
        """A page that needs no network and no script: formulas are MathML."""
        return pages.page(self)

    def latex(self, *, document: bool = True) -> str:
        """A document for LaTeX, or what stands in one; it needs the package amsmath."""
        return pages.latex(self, document=document)

    def save(self, path: str | Path) -> Path:
        """Write the page (.html) or the document (.tex). Gives back the path.

        Raises `RenderError` for another suffix, and if the file cannot be written.
        """
        path = Path(path)
        writers = {".html": self.html, ".tex": self.latex}
        if path.suffix.lower() not in writers:
            raise RenderError(
                f"a derivation is a page or a document; name {path.name!r} with .html or .tex at "
                "its end"
            )
        write(path, writers[path.suffix.lower()]().encode())
        return path

    def _repr_html_(self) -> str:
        return pages.article(self)

    def __str__(self) -> str:
        lines = [self.title]
        for section in self.sections:
            lines += ["", section.title, *(f"  {step}" for step in section.steps)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Derivation: {self.title}, {len(self.steps)} lines>"


def derivation(
    loss: Node,
    wrt: Node | Sequence[Node],
    *,
    order: int = 1,
    kinks: Policy = None,
    exact: Exact | Grade = "rounding",
) -> Derivation:
    """The way from a scalar loss to its gradient, as a page of mathematics.

    The function as it was written, with your names; the chain rule, op by op; the rules that
    simplify what came of it, up to the grade `exact`; the result. With `order=2` the same follows
    for the Hessian times a vector `v`, or `u` or `d` where an input has that name, and for one
    vector the equation of Newton's step. `kinks` are those of `grad`.

    Raises as `grad` does, `GradientError` for a loss that is no node and for another order, and
    `UnsupportedError` for a choice at kinks that is the mean of two sides.

    >>> print(derivation(sum(x * x), x))
    """
    if order not in (1, 2):
        raise GradientError(f"order is 1, the gradient, or 2, the Hessian with it, not {order!r}")
    if not isinstance(loss, Node):
        raise GradientError(f"a derivation is of a node, and the loss is {loss!r:.80}")
    xs = [wrt] if isinstance(wrt, Node) else list(in_order(wrt, "wrt", GradientError))
    writer = Writer(Exact.of(exact), Kinks.of(kinks))
    with built_as(loss.origin):  # no line of this file is the user's
        found = writer.part(loss, xs, grad(loss, xs, kinks=kinks), FIRST)
        if order == 2:
            v = _direction(loss)
            names = [v] if len(xs) == 1 else [f"{v}{i}" for i in range(1, len(xs) + 1)]
            vs = [placeholder(n, x.shape, x.dtype) for n, x in zip(names, xs, strict=True)]
            along = _total([sum(g * v) for g, v in zip(found, vs, strict=True)])
            products = hvp(loss, xs, vs, kinks=kinks)
            found = (*found, *writer.part(along, xs, products, second(v)))
            if len(xs) == 1 and xs[0].ndim == 1:
                writer.newton(loss, xs[0], kinks)
    symbol = ", ".join(plain(writer.names.shown(x)) for x in xs)
    what = "gradient" if order == 1 else "gradient and Hessian"
    said = plain(writer.names.shown(loss))
    return Derivation(f"The {what} of {said} by {symbol}", tuple(writer.sections), found)


def _direction(loss: Node) -> str:
    """A letter that no input begins with, or `v` with low lines behind it."""
    taken = {str(n.name) for n in topological([loss]) if n.name is not None}
    free = (v for v in "vud" if not any(n.rstrip("0123456789") == v for n in taken))
    return next(free, "v" + "_" * max(map(len, taken), default=0))


def _total(nodes: Sequence[Node]) -> Node:
    first, *rest = nodes
    for node in rest:
        first = first + node
    return first


def _error(a: Any, b: Any, least: float) -> float:
    a, b = np.asarray(a, np.complex128), np.asarray(b, np.complex128)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        apart = np.abs(np.where(same, 0, a - b)).max(initial=0.0)
    return float(apart / max(_largest(a), _largest(b), least)) if apart else float(apart)


def _largest(value: Any) -> float:
    found = np.abs(np.asarray(value, np.complex128))
    return float(found.max(initial=0.0, where=np.isfinite(found)))

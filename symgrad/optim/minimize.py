"""Minima by SciPy's methods, for a loss in the graph: over arrays, or piece by piece.

All methods are given the gradient, those of Newton's kind products with the Hessian too. What
SciPy's functions want, one vector of float64, is made of the variables and back here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from symgrad.autodiff.transforms import hvp, value_and_grad
from symgrad.compiler import compile
from symgrad.distributed.chunks import Chunks
from symgrad.distributed.rounds import Executor
from symgrad.distributed.step import map_reduce
from symgrad.ir.errors import FeedError, GraphError, ShapeError, UnsupportedError
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, Variable, describe
from symgrad.ir.types import DType
from symgrad.nn.module import Module
from symgrad.ops.leaves import placeholder
from symgrad.ops.loops.loop import substituted
from symgrad.ops.special.scipy_kernels import optimizers
from symgrad.optim.checks import listed
from symgrad.runtime.store import VariableStore

Vector = np.ndarray[Any, DType]


class _Method(NamedTuple):
    """Whether a method of SciPy's takes bounds, products with the Hessian; its word for steps."""

    bounds: bool = False
    products: bool = False
    most: str = "maxiter"


METHODS: Mapping[str, _Method] = {
    "L-BFGS-B": _Method(bounds=True),
    "BFGS": _Method(),
    "CG": _Method(),
    "TNC": _Method(bounds=True, most="maxfun"),
    "SLSQP": _Method(bounds=True),
    "Newton-CG": _Method(products=True),
    "trust-ncg": _Method(products=True),
    "trust-krylov": _Method(products=True),
    "trust-constr": _Method(bounds=True, products=True),
}


@dataclass(frozen=True)
class Minimum:
    """Where a search ended: the loss there, whether SciPy says that it converged, and in how much.

    `slope` is the largest element of the gradient, `evaluations` counts losses with gradients.

    >>> w = sg.variable("w", np.ones(2))
    >>> minimize(sg.sum((w - 3) ** 2), [w]).converged
    True
    """

    loss: float
    slope: float
    converged: bool
    message: str
    steps: int
    evaluations: int


def minimize(
    loss: Node,
    variables: Module | Iterable[Variable],
    data: Mapping[str, Any] | Chunks | None = None,
    *,
    over: str | None = None,
    method: str = "L-BFGS-B",
    bounds: Any = None,
    tolerance: float | None = None,
    max_steps: int | None = None,
    executor: Executor | None = None,
) -> Minimum:
    """Set variables to where a loss of all the data is least, near where they are.

    `data` are arrays by the names of placeholders, or `sg.chunks(…)`, which are gone over piece by
    piece along the dimension `over`, on an executor: see `map_reduce`. `method` is one of
    `scipy.optimize.minimize`: L-BFGS-B, BFGS, CG, TNC, SLSQP; with products of the Hessian and a
    vector, which are derived too, Newton-CG, trust-ncg, trust-krylov and trust-constr. `bounds` are
    (low, high) for all variables or, by variable, `{w: (0, None)}`: numbers or arrays that
    broadcast to its shape, None for no bound. `tolerance` and `max_steps` are SciPy's `tol` and
    `maxiter`. The loss is computed in the dtypes of the graph, the search in float64.

    The variables are set together when the search has ended; if it raises, they are as before.
    SciPy is the extra `symgrad[special]`; `UnsupportedError` says if it is missing, and refuses
    another method, or bounds for one that has none. Raises `GraphError` for what is no variable of
    floats, `ShapeError` for bounds of another shape, `FeedError` for data that does not fit.

    >>> a = sg.variable("a", [-1.2, 1.0])
    >>> found = sg.optim.minimize(100 * (a[1] - a[0] ** 2) ** 2 + (1 - a[0]) ** 2, [a])
    >>> found.converged, np.round(a.value, 3).tolist()
    (True, [1.0, 1.0])
    """
    kind = METHODS.get(method)
    if kind is None:
        raise UnsupportedError(f"method is one of {', '.join(METHODS)}, not {method!r:.60}")
    if find_spec("scipy") is None:
        raise UnsupportedError(
            "minimize searches by SciPy, which is not installed: pip install 'symgrad[special]'"
        )
    wanted = listed(variables, "minimize", "minimize", takes_complex=False)
    limits = None if bounds is None else _bounds(bounds, wanted)
    if limits is not None and not kind.bounds:
        names = ", ".join(n for n, m in METHODS.items() if m.bounds)
        raise UnsupportedError(f"{method} has no bounds; take one of {names}")
    flat = _Flat(wanted)
    search = _Search(loss, flat, data, over, executor)
    scipy: Any = optimizers  # its types are no part of ours
    found = scipy().minimize(
        search.evaluated,
        flat.start(),
        jac=True,
        hessp=search.product if kind.products else None,
        method=method,
        bounds=limits,
        tol=tolerance,
        options={} if max_steps is None else {kind.most: max_steps},
    )
    store = VariableStore(wanted, wanted)
    store.alone(store.exchange, flat.parts(found.x))
    count = search.evaluations
    value, slopes = search.evaluated(found.x)
    return Minimum(
        value,
        float(np.max(np.abs(slopes), initial=0.0)),
        bool(found.success),
        str(found.message),
        int(found.nit),
        count,
    )


class _Flat:
    """Variables as one vector of float64, and back."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = variables
        self.ends = np.cumsum([v.value.size for v in variables])[:-1]

    def start(self) -> Vector:
        """The present values."""
        return self.vector([v.value for v in self.variables])

    def vector(self, parts: Sequence[Any]) -> Vector:
        """Arrays of the variables' shapes, one after the other."""
        return np.concatenate([np.asarray(p, np.float64).reshape(-1) for p in parts])

    def parts(self, vector: Vector) -> list[Vector]:
        """The arrays that a vector holds, of the variables' shapes and dtypes."""
        parts = np.split(np.asarray(vector), self.ends)
        return [
            p.reshape(v.value.shape).astype(v.dtype)
            for p, v in zip(parts, self.variables, strict=True)
        ]


class _Search:
    """The loss, its gradient, and products with its Hessian, as functions of one vector."""

    def __init__(
        self,
        loss: Node,
        flat: _Flat,
        data: Mapping[str, Any] | Chunks | None,
        over: str | None,
        executor: Executor | None,
    ) -> None:
        self.flat, self.data, self.over, self.executor = flat, data, over, executor
        self.evaluations = 0
        self.last: tuple[Vector, tuple[float, Vector]] | None = None
        given = {str(x.name) for x in Graph([loss]).inputs}
        self.states = [self._input("value", v, given) for v in flat.variables]
        self.ways = [self._input("direction", v, given) for v in flat.variables]
        places: dict[Node, Node] = dict(zip(flat.variables, self.states, strict=True))
        (self.loss,) = substituted([loss], places)
        self.inputs = [x for x in Graph([loss]).inputs if not isinstance(x, Variable)]
        value, slopes = value_and_grad(self.loss, self.states)
        self.program = self._compiled(self.states, [value, *slopes])
        self.products: Callable[..., Any] | None = None

    def _input(self, of: str, v: Variable, taken: set[str]) -> Node:
        name = f"{of} of {v.name}"
        while name in taken:
            name += " "
        taken.add(name)
        return placeholder(name, v.shape, v.dtype)

    def _compiled(self, inputs: Sequence[Node], outputs: Sequence[Node]) -> Callable[..., Any]:
        """A function of arrays for these inputs, by which the data is gone over."""
        names = [str(x.name) for x in inputs]
        data = self.data
        if isinstance(data, Chunks):
            if self.over is None:
                raise GraphError("chunks are gone over along a dimension: minimize(…, over='N')")
            step = map_reduce([*inputs, *self.inputs], list(outputs), over=self.over)
            call = partial(step, data, executor=self.executor)
            return lambda *arrays: call(**dict(zip(names, arrays, strict=True)))
        if self.over is not None or self.executor is not None:
            raise FeedError("over and executor are for data in pieces: give it as sg.chunks(…)")
        program = compile([*inputs, *self.inputs], list(outputs))
        call = partial(program, **(data or {}))
        return lambda *arrays: call(**dict(zip(names, arrays, strict=True)))

    def evaluated(self, vector: Vector) -> tuple[float, Vector]:
        """The loss and its gradient; those of the last vector are known."""
        if self.last is None or not np.array_equal(self.last[0], vector):
            self.evaluations += 1
            value, *slopes = self.program(*self.flat.parts(vector))
            self.last = vector.copy(), (float(value), self.flat.vector(slopes))
        return self.last[1]

    def product(self, vector: Vector, way: Vector) -> Vector:
        """The Hessian times a vector."""
        if self.products is None:
            outputs = hvp(self.loss, self.states, self.ways)
            self.products = self._compiled([*self.states, *self.ways], outputs)
        return self.flat.vector(self.products(*self.flat.parts(vector), *self.flat.parts(way)))


def _bounds(bounds: Any, variables: Sequence[Variable]) -> list[tuple[float, float]]:
    """Bounds of every element, as SciPy takes them."""
    by_variable = isinstance(bounds, Mapping)
    if by_variable and (other := [v for v in bounds if v not in {*variables}]):
        raise GraphError(f"bounds of what is not searched for: {describe(other[0])}")
    found = []
    for v in variables:
        pair = bounds.get(v, (None, None)) if by_variable else bounds
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ShapeError(f"bounds are (low, high) or a dict of such, not {pair!r:.60}")
        ends = []
        for end, none in zip(pair, (-np.inf, np.inf), strict=True):
            try:
                end = np.asarray(none if end is None else end, np.float64)
                wide = np.broadcast_to(end, v.value.shape)
            except ValueError as error:
                raise ShapeError(f"bounds of {describe(v)}: {error}") from None
            ends.append(wide.reshape(-1))
        if (ends[0] > ends[1]).any():
            raise ShapeError(f"bounds of {describe(v)}: the low one is above the high one")
        found += list(zip(*ends, strict=True))
    return found

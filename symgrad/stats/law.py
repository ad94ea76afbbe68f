"""The base class of laws: parameters, shapes, supports, and how they are asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar, NoReturn

import numpy as np

from symgrad.ir.dims import Shape
from symgrad.ir.errors import ArgumentError, UnsupportedError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import DType, as_shape, broadcast_shapes
from symgrad.ops.activations import log1mexp
from symgrad.ops.declare import NodeLike, explaining, require
from symgrad.ops.domains import Domain, required
from symgrad.ops.elementwise import exp, floor, log, log1p, negative, sqrt
from symgrad.ops.leaves import constant
from symgrad.ops.logic import isnan, logical_or
from symgrad.ops.select import where
from symgrad.ops.shape import astype, broadcast_to
from symgrad.stats.declared import Declared, declared


@declared
class Law(Declared):
    """The base class of all laws of probability, whose parameters are nodes.

    The parameters broadcast: their common shape is the `batch_shape`, of as many independent laws
    (but for vectors, of which one draw has the `event_shape`). They take one dtype: that of the
    floats among them, else float64. Each is checked when it is given, if its value is known then,
    else when a program runs: a `KernelError` says which parameter, its value and the line.

    A method that a law has no closed form for raises `UnsupportedError`. Densities are 0 and
    `log_prob` is -inf outside the support, as in SciPy.

    >>> law = sg.stats.Normal([0.0, 1.0], 2.0)
    >>> law.log_prob(np.zeros((5, 1))).type, law.sample(sg.random.key(0), (3,)).type
    (float64[5, 2], float64[3, 2])
    """

    domains: ClassVar[tuple[Domain | None, ...]] = ()
    discrete: ClassVar[bool] = False
    # Whether a gradient flows through samples to the parameters.
    reparametrised: ClassVar[bool] = True
    # Whether mean and variance are those of numbers, and exist.
    has_moments: ClassVar[bool] = True

    def check(self) -> None:
        """Make nodes of the parameters, and check that each lies in its domain."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        optional = {f.name for f in fields(self) if f.default is None}
        if missing := [n for n, v in given.items() if v is None and n not in optional]:
            raise ArgumentError(f"{type(self).__name__} takes a number or array for {missing[0]}")
        dtype = dtype_of([v for v in given.values() if v is not None])
        for (name, value), domain in zip(given.items(), self.domains, strict=True):
            if value is not None:
                text = f"the parameter {name} of {type(self).__name__}"
                node = parameter(value, dtype)
                object.__setattr__(self, name, required(node, domain, text) if domain else node)
        broadcast_shapes((), self.batch_shape)

    # ---- shapes -----------------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, Node]:
        """The parameters that were given, as nodes, by their names."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def dtype(self) -> DType:
        """The dtype of the parameters, and of what is drawn and computed."""
        return next(iter(self.parameters.values())).dtype

    @property
    def batch_shape(self) -> Shape:
        """The shape of the laws. Raises `ShapeError` if the parameters do not broadcast."""
        return broadcast_shapes((), *(p.shape for p in self.parameters.values()))

    @property
    def event_shape(self) -> Shape:
        """The shape of one draw of one law."""
        return ()

    # ---- probabilities ----------------------------------------------------------------------

    def log_prob(self, x: NodeLike, /) -> Node:
        """The logarithm of the density at x, or of the probability of x."""
        value = self._value(x)
        return self._inside(value, self._log_prob(value))

    def prob(self, x: NodeLike, /) -> Node:
        """The density at x, or the probability of x: exp(log_prob(x))."""
        found = self.log_prob(x)
        # Where it is -inf its slope is infinite, and that of the density, which ends there, is 0.
        return where(found == -np.inf, 0, exp(found))

    def cdf(self, x: NodeLike, /) -> Node:
        """The probability of x and less."""
        value = self._value(x)
        return self._between(value, self._cdf(self._whole(value)), 0, 1)

    def sf(self, x: NodeLike, /) -> Node:
        """The probability of more than x, which is 1 - cdf(x), exact where that is small."""
        value = self._value(x)
        return self._between(value, self._sf(self._whole(value)), 1, 0)

    def log_cdf(self, x: NodeLike, /) -> Node:
        """log(cdf(x)); where the law has a stable form, also where cdf(x) underflows."""
        value = self._value(x)
        return self._between(value, self._log_cdf(self._whole(value)), -np.inf, 0)

    def log_sf(self, x: NodeLike, /) -> Node:
        """log(sf(x)); where the law has a stable form, also where sf(x) underflows."""
        value = self._value(x)
        return self._between(value, self._log_sf(self._whole(value)), 0, -np.inf)

    def icdf(self, p: NodeLike, /) -> Node:
        """The quantile: the x with cdf(x) = p; NaN unless p is from 0 to 1."""
        value = self._value(p)
        return where((value >= 0) & (value <= 1), self._icdf(value), np.nan)

    def isf(self, p: NodeLike, /) -> Node:
        """The x with sf(x) = p, exact where p is small; NaN unless p is from 0 to 1."""
        value = self._value(p)
        return where((value >= 0) & (value <= 1), self._isf(value), np.nan)

    # ---- moments ----------------------------------------------------------------------------

    @property
    def mean(self) -> Node:
        """The mean, of the shape `batch_shape + event_shape`."""
        return self._like_a_draw(self._mean())

    @property
    def variance(self) -> Node:
        """The variance, of each element of an event, in the shape of the mean."""
        return self._like_a_draw(self._variance())

    @property
    def stddev(self) -> Node:
        """The standard deviation, sqrt(variance)."""
        return sqrt(self.variance)

    @property
    def mode(self) -> Node:
        """Where the density is largest; of several such places, the least."""
        return self._like_a_draw(self._mode())

    def entropy(self) -> Node:
        """The mean of -log_prob, in nats."""
        return broadcast_to(self._entropy(), self.batch_shape)

    # ---- samples ----------------------------------------------------------------------------

    def sample(self, key: NodeLike, shape: Any = ()) -> Node:
        """Independent draws, of the shape `shape + batch_shape + event_shape`; see `sg.random`.

        A gradient flows to the parameters where the law is `reparametrised`.
        """
        return as_node(self._sample(as_node(key), (*as_shape(shape), *self.batch_shape)))

    # ---- what a law defines -----------------------------------------------------------------

    def bounds(self) -> tuple[NodeLike | None, NodeLike | None]:
        """The least and the largest value of the support; None where there is none."""
        return None, None

    def _log_prob(self, x: Node) -> NodeLike:
        self._refuse("density")

    def _cdf(self, x: Node) -> NodeLike:
        self._refuse("distribution function")

    def _sf(self, x: Node) -> NodeLike:
        self._refuse("survival function")

    def _log_cdf(self, x: Node) -> NodeLike:
        return log_of(self._cdf, self._sf, x)

    def _log_sf(self, x: Node) -> NodeLike:
        return log_of(self._sf, self._cdf, x)

    def _icdf(self, p: Node) -> NodeLike:
        self._refuse("quantile function")

    def _isf(self, p: Node) -> NodeLike:
        return self._icdf(1 - p)

    def _mean(self) -> NodeLike:
        self._refuse("mean")

    def _variance(self) -> NodeLike:
        self._refuse("variance")

    def _mode(self) -> NodeLike:
        self._refuse("mode")

    def _entropy(self) -> NodeLike:
        self._refuse("entropy")

    def _mean_log(self) -> NodeLike:
        """The mean of log(x)."""
        self._refuse("mean of the logarithm")

    def _mean_exp(self, t: Node) -> NodeLike:
        """The mean of exp(t * x), for t <= 0."""
        self._refuse("mean of the exponential")

    def _sample(self, key: Node, shape: Shape) -> Node:
        self._refuse("sampler")

    def _kl(self, other: Any) -> NodeLike:
        self._refuse("divergence of Kullback and Leibler")

    def _cross(self, p: Law) -> NodeLike:
        """The mean of log_prob under a law of another kind."""
        _refuse_kl(p, self)

    def _refuse(self, what: str) -> NoReturn:
        raise UnsupportedError(
            f"{type(self).__name__} has no {what} in closed form; estimate it from samples, "
            "sg.mean(f(law.sample(key, (10_000,))), axis=0)"
        )

    # ---- values -----------------------------------------------------------------------------

    def _value(self, x: NodeLike) -> Node:
        """A value as a node: a number or integers in the dtype of the law, floats as they are."""
        node = as_node(x)
        require("biuf", node.tensor)
        is_weak = isinstance(x, (int, float)) or node.dtype.kind != "f"
        return astype(node, self.dtype) if is_weak else node

    def _like_a_draw(self, x: NodeLike) -> Node:
        """A number of each element of an event, in the dtype of the law."""
        value = astype(as_node(x), self.dtype)
        return broadcast_to(value, (*self.batch_shape, *self.event_shape))

    def _whole(self, x: Node) -> Node:
        return floor(x) if self.discrete else x

    def _inside(self, x: Node, y: NodeLike) -> Node:
        """y, and -inf where x is outside the support, or infinite beside a bound."""
        low, high = self.bounds()
        outside = [] if low is None else [x < low]
        if high is not None:
            outside.append(x > high)
        elif low is not None:
            outside.append(x == np.inf)
        if self.discrete:
            outside.append(x != floor(x))
        mask = None
        for part in outside:
            mask = part if mask is None else logical_or(mask, part)
        return self._unless_nan(x, y if mask is None else where(mask, -np.inf, y))

    def _unless_nan(self, x: Node, y: NodeLike) -> Node:
        """y, and NaN where x is, which comparisons of integers would take for one."""
        return where(isnan(x), x, y) if self.discrete else as_node(y)

    def _between(self, x: Node, y: NodeLike, below: float, above: float) -> Node:
        """y, and other values below and above the support; those at infinity, too."""
        low, high = self.bounds()
        y = where(x == np.inf if high is None else x > high, above, y)
        return self._unless_nan(x, where(x == -np.inf if low is None else x < low, below, y))


def log_of(part: Callable[[Node], NodeLike], rest: Callable[[Node], NodeLike], x: Node) -> Node:
    """log(part(x)), by rest(x), which is 1 - part(x), where that is less.

    Both are in float64: the least of float32 is no less than exp(-103). -inf has the slope 0.
    """
    wide = astype(x, np.float64)
    p, q = part(wide), rest(wide)
    found = where(p < q, log(p), log1p(negative(q)))
    return astype(where(p == 0, -np.inf, found), x.dtype)


def log1mexpexp(x: NodeLike) -> Node:
    """log(1 - exp(-exp(x))), which is x as exp(x) comes to nothing."""
    return where(x < -37, x, log1mexp(negative(exp(x))))


def dtype_of(values: Any) -> DType:
    """The dtype of the floats among parameters, float64 if there are none."""
    kinds = [as_node(v).dtype for v in values if not isinstance(v, (int, float))]
    floats = [d for d in kinds if d.kind == "f"]
    return np.result_type(*floats) if floats else np.dtype(np.float64)


def parameter(value: NodeLike, dtype: DType) -> Node:
    """A parameter as a node of this dtype. Raises `DtypeError` for complex numbers."""
    if isinstance(value, (int, float)):
        return constant(np.asarray(value, dtype))
    node = as_node(value)
    require("biuf", node.tensor)
    return astype(node, dtype)


@explaining
def kl(p: Law, q: Law, /) -> Node:
    """The divergence of Kullback and Leibler: the mean under p of log(p / q), in closed form.

    >>> float(sg.stats.kl(sg.stats.Normal(0.0, 1.0), sg.stats.Normal(1.0, 1.0)))
    0.5

    The laws may be of two kinds, such as `kl(Gamma(2.0), Normal())`; where q is 0 and p is not, it
    is inf. Raises `UnsupportedError` where there is no closed form: the mean of
    `p.log_prob(x) - q.log_prob(x)` over samples of p estimates it.
    """
    for law in (p, q):
        if not isinstance(law, Law):
            raise ArgumentError(f"a divergence is one of two laws of sg.stats, not {law!r:.60}")
    shape = broadcast_shapes(p.batch_shape, q.batch_shape)
    return broadcast_to(p._kl(q) if type(p) is type(q) else _kl_of_kinds(p, q), shape)


def _kl_of_kinds(p: Law, q: Law) -> NodeLike:
    """The divergence of laws of two kinds: minus the entropy of p, less the mean of log(q)."""
    is_scalar = not p.event_shape and not q.event_shape and p.discrete == q.discrete
    if not is_scalar or not p.has_moments:
        _refuse_kl(p, q)
    ends = zip(p.bounds(), q.bounds(), (1, -1), strict=True)
    inside: list[Any] = [
        mine is not None and side * mine >= side * theirs
        for mine, theirs, side in ends
        if theirs is not None
    ]
    if any(part is False for part in inside):
        return constant(np.asarray(np.inf, p.dtype))
    found = -p.entropy() - q._cross(p)
    for part in inside:
        found = where(part, found, np.inf)
    return found


def _refuse_kl(p: Law, q: Law) -> NoReturn:
    raise UnsupportedError(
        f"the divergence of {type(p).__name__} from {type(q).__name__} has no closed form here;"
        " estimate it from samples: x = p.sample(key, (10_000,)), and "
        "sg.mean(p.log_prob(x) - q.log_prob(x), axis=0)"
    )

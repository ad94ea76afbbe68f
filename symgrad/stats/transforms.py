"""Laws of functions of what has a law: `Transformed(law, transform)`, with its log-determinant."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from symgrad.ir.dims import Shape
from symgrad.ir.errors import ArgumentError, UnsupportedError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import broadcast_shapes
from symgrad.ops.activations import sigmoid, softplus
from symgrad.ops.declare import NodeLike
from symgrad.ops.domains import required
from symgrad.ops.elementwise import abs as abs_
from symgrad.ops.elementwise import exp, expm1, log, negative, square
from symgrad.ops.reduce import sum
from symgrad.ops.select import where
from symgrad.ops.shape import broadcast_to
from symgrad.ops.special.normal import logit
from symgrad.stats.declared import Declared, declared
from symgrad.stats.law import Law, dtype_of, kl, parameter
from symgrad.stats.location_scale import Normal


@declared
class Transform(Declared):
    """An invertible smooth function y of x, for `Transformed`. Derive from it for one of your own.

    Define `forward` (y of x), `inverse` (x of y) and `log_slope` (log(abs(dy / dx)) at x);
    `outside` where some y are no values of it, and `falls` where y falls as x rises.
    """

    def forward(self, x: Node) -> Node:
        """y of x."""
        raise UnsupportedError(f"{type(self).__name__} defines no forward(x)")

    def inverse(self, y: Node) -> Node:
        """x of y."""
        raise UnsupportedError(f"{type(self).__name__} defines no inverse(y)")

    def log_slope(self, x: Node) -> Node:
        """log(abs(dy / dx)) at x: of several elements it is the log-determinant, summed."""
        raise UnsupportedError(f"{type(self).__name__} defines no log_slope(x)")

    def outside(self, y: Node) -> Node | None:
        """Where y is no value of the function; None if it takes all."""
        return None

    def falls(self) -> Node | None:
        """Where y falls as x rises; None if it rises everywhere."""
        return None


@declared
class Exp(Transform):
    """The transform y = exp(x), for `Transformed`: of a normal law it makes the log-normal one."""

    def forward(self, x: Node) -> Node:
        """exp(x)."""
        return exp(x)

    def inverse(self, y: Node) -> Node:
        """log(y)."""
        return log(y)

    def log_slope(self, x: Node) -> Node:
        """x."""
        return x

    def outside(self, y: Node) -> Node | None:
        """Not above 0."""
        found: Node = (y <= 0) | (y == np.inf)
        return found


@declared
class Sigmoid(Transform):
    """The transform y = 1 / (1 + exp(-x)), for `Transformed`: its values are from 0 to 1."""

    def forward(self, x: Node) -> Node:
        """sigmoid(x)."""
        return sigmoid(x)

    def inverse(self, y: Node) -> Node:
        """logit(y)."""
        return logit(y)

    def log_slope(self, x: Node) -> Node:
        """-softplus(x) - softplus(-x)."""
        return negative(softplus(x) + softplus(-x))

    def outside(self, y: Node) -> Node | None:
        """Not between 0 and 1."""
        return (y <= 0) | (y >= 1)


@declared
class Affine(Transform):
    """The transform y = loc + scale * x, for `Transformed`; `scale` is not 0."""

    loc: NodeLike = 0.0
    scale: NodeLike = 1.0

    def check(self) -> None:
        """Refuse parameters that make no law."""
        dtype = dtype_of([self.loc, self.scale])
        scale = required(parameter(self.scale, dtype), "true", "that scale of Affine is not 0")
        object.__setattr__(self, "loc", parameter(self.loc, dtype))
        object.__setattr__(self, "scale", scale)

    def forward(self, x: Node) -> Node:
        """loc + scale * x."""
        found: Node = self.loc + self.scale * x
        return found

    def inverse(self, y: Node) -> Node:
        """(y - loc) / scale."""
        found: Node = (y - self.loc) / self.scale
        return found

    def log_slope(self, x: Node) -> Node:
        """log(abs(scale))."""
        return broadcast_to(log(abs_(self.scale)), broadcast_shapes(x.shape, self.scale.shape))

    def falls(self) -> Node | None:
        """Where the scale is negative."""
        falls: Node = self.scale < 0
        return falls


class Changed(Law):
    """The law of transform(x), where x has a law."""

    law: Law
    transform: Transform

    def check(self) -> None:
        """The law has checked its parameters."""

    @property
    def reparametrised(self) -> bool:  # type: ignore[override]
        """Whether a gradient flows through samples to the parameters."""
        return self.law.reparametrised

    @property
    def parameters(self) -> dict[str, Node]:
        """Those of the law."""
        return self.law.parameters

    @property
    def batch_shape(self) -> Shape:
        """The shape of the laws, and of the parameters of the transform."""
        inner = (*self.law.batch_shape, *self.law.event_shape)
        own = (getattr(self.transform, f.name) for f in fields(self.transform))
        whole = broadcast_shapes(inner, *(v.shape for v in own if isinstance(v, Node)))
        return whole[: len(whole) - len(self.law.event_shape)]

    @property
    def event_shape(self) -> Shape:
        """The shape of one draw."""
        return self.law.event_shape

    def bounds(self) -> tuple[NodeLike | None, NodeLike | None]:
        """They are those of the law, transformed, which a transform does not tell."""
        self._refuse("divergence of Kullback and Leibler from or of such a law")

    def log_prob(self, x: NodeLike, /) -> Node:
        """The logarithm of the density: that of the law at the inverse, less log(abs(slope))."""
        y = self._value(x)
        inner = self.transform.inverse(y)
        slope, outside = self.transform.log_slope(inner), self.transform.outside(y)
        if outside is not None:
            slope = where(outside, np.inf, slope)
        if axes := tuple(range(-len(self.event_shape), 0)):
            slope = sum(slope, axis=axes)
        found = self.law.log_prob(inner)
        return where(slope == np.inf, -np.inf, found - slope)

    def cdf(self, x: NodeLike, /) -> Node:
        """The probability of x and less."""
        return self._turned(x, self.law.cdf, self.law.sf, 0, 1)

    def sf(self, x: NodeLike, /) -> Node:
        """The probability of more than x."""
        return self._turned(x, self.law.sf, self.law.cdf, 1, 0)

    def log_cdf(self, x: NodeLike, /) -> Node:
        """log(cdf(x))."""
        return self._turned(x, self.law.log_cdf, self.law.log_sf, -np.inf, 0)

    def log_sf(self, x: NodeLike, /) -> Node:
        """log(sf(x))."""
        return self._turned(x, self.law.log_sf, self.law.log_cdf, 0, -np.inf)

    def icdf(self, p: NodeLike, /) -> Node:
        """The x with cdf(x) = p."""
        return self._quantile(p, self.law.icdf, self.law.isf)

    def isf(self, p: NodeLike, /) -> Node:
        """The x with sf(x) = p."""
        return self._quantile(p, self.law.isf, self.law.icdf)

    def _turned(self, x: NodeLike, rising: Any, falling: Any, below: float, above: float) -> Node:
        """One function of the law where the transform rises, the other where it falls."""
        if self.event_shape:
            self._refuse("distribution function")
        y = self._value(x)
        inner = self.transform.inverse(y)
        falls, outside = self.transform.falls(), self.transform.outside(y)
        found = rising(inner)
        if falls is not None:
            found = where(falls, falling(inner), found)
        if outside is not None:
            found = where(outside & (y <= 0), below, where(outside & (y > 0), above, found))
        return as_node(found)

    def _quantile(self, p: NodeLike, rising: Any, falling: Any) -> Node:
        falls, found = self.transform.falls(), rising(p)
        return self.transform.forward(found if falls is None else where(falls, falling(p), found))

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        return self.transform.forward(self.law._sample(key, shape))

    def _mean(self) -> NodeLike:
        if isinstance(self.transform, Affine):
            return self.transform.forward(self.law.mean)
        self._refuse("mean")

    def _variance(self) -> NodeLike:
        if isinstance(self.transform, Affine):
            return square(self.transform.scale) * self.law.variance
        self._refuse("variance")

    def _kl(self, other: Any) -> NodeLike:
        mine, others = self.transform, other.transform
        same = mine is others or (type(mine) is type(others) and not fields(mine))
        if not same:
            self._refuse("divergence of Kullback and Leibler from such a law")
        return kl(self.law, other.law)


@declared
class Transformed(Changed):
    """The law of transform(x), where x has a law: `Exp` gives the log-normal one.

    >>> law = sg.stats.Transformed(sg.stats.Normal(0.0, 1.0), sg.stats.Exp())
    >>> round(float(law.log_prob(1.0)), 12)
    -0.918938533205

    Of a law of vectors each element is transformed, and the log-determinant is the sum.
    """

    law: Law
    transform: Transform

    def check(self) -> None:
        """Refuse what is no law, or no transform."""
        given: tuple[Any, Any] = (self.law, self.transform)
        if not isinstance(given[0], Law) or not isinstance(given[1], Transform):
            raise ArgumentError(
                "a law and a transform are taken, Transformed(Normal(), Exp()), not "
                f"{self.law!r:.60} and {self.transform!r:.60}"
            )


@declared
class LogNormal(Changed):
    """The law of exp(x), where x is normal with the mean `loc` and the standard deviation `scale`.

    >>> float(sg.stats.LogNormal(0.0, 1.0).cdf(1.0))
    0.5
    """

    loc: NodeLike = 0.0
    scale: NodeLike = 1.0

    def check(self) -> None:
        """Refuse parameters that make no law."""
        normal = Normal(self.loc, self.scale)
        object.__setattr__(self, "loc", normal.loc)
        object.__setattr__(self, "scale", normal.scale)
        object.__setattr__(self, "law", normal)
        object.__setattr__(self, "transform", Exp())

    def bounds(self) -> tuple[NodeLike | None, NodeLike | None]:
        """From 0 on."""
        return 0, None

    def _mean(self) -> NodeLike:
        return exp(self.law.mean + self.law.variance / 2)

    def _mean_log(self) -> NodeLike:
        return self.law.mean

    def _mode(self) -> NodeLike:
        return exp(self.law.mean - self.law.variance)

    def _variance(self) -> NodeLike:
        spread = self.law.variance
        return expm1(spread) * exp(2 * self.law.mean + spread)

    def _entropy(self) -> NodeLike:
        return self.law.entropy() + self.law.mean


__all__ = ["Affine", "Exp", "LogNormal", "Sigmoid", "Transform", "Transformed"]

"""Laws of vectors, and of several independent draws: multivariate normal, Dirichlet, Independent.

One draw of them has an `event_shape`, of which `log_prob` gives one number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symgrad import random
from symgrad.ir.dims import Shape
from symgrad.ir.errors import ArgumentError, ShapeError
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import broadcast_shapes, require_equal
from symgrad.ops.activations import xlogy
from symgrad.ops.declare import NodeLike
from symgrad.ops.elementwise import log, square
from symgrad.ops.leaves import arange
from symgrad.ops.linalg.products import matmul
from symgrad.ops.linalg.solve import diagonal
from symgrad.ops.linalg.triangular import cholesky, solve_triangular
from symgrad.ops.order import argmax
from symgrad.ops.reduce import sum
from symgrad.ops.select import maximum, where
from symgrad.ops.shape import astype, broadcast_to, expand_dims, squeeze
from symgrad.ops.special.gamma import digamma, gamma_log_density, gammaln
from symgrad.stats.declared import declared
from symgrad.stats.discrete import require_one
from symgrad.stats.law import Law, kl
from symgrad.stats.stirling import gamma_entropy


@declared
class MultivariateNormal(Law):
    """The normal law of vectors, of the mean `loc` and a covariance, or its Cholesky factor.

    `covariance` is positive definite, or `scale_tril` lower triangular with covariance =
    scale_tril @ scale_tril.mT. Raises `ArgumentError` unless one is given, `ShapeError` for what is
    no square matrix, `KernelError` for a covariance that is not symmetric: when a program runs if
    its value is not known, as for one that is not positive definite.

    >>> law = sg.stats.MultivariateNormal([0.0, 0.0], covariance=[[2.0, 1.0], [1.0, 2.0]])
    >>> law.event_shape
    (2,)
    """

    domains = (None, "symmetric", None)
    loc: NodeLike
    covariance: NodeLike = None
    scale_tril: NodeLike = None

    def check(self) -> None:
        """Refuse parameters that make no law."""
        require_one(self, covariance=self.covariance, scale_tril=self.scale_tril)
        super().check()
        if self.scale_tril is None:
            object.__setattr__(self, "scale_tril", cholesky(self.covariance))
        assert self.event_shape

    @property
    def batch_shape(self) -> Shape:
        """The shape of the laws, without the axes of the vectors."""
        matrix = self.covariance if self.scale_tril is None else self.scale_tril
        if self.loc.ndim < 1 or matrix.ndim < 2:
            raise ShapeError(
                f"a vector and a matrix are wanted, not {self.loc.type!r} and {matrix.type!r}"
            )
        return broadcast_shapes(self.loc.shape[:-1], matrix.shape[:-2])

    @property
    def event_shape(self) -> Shape:
        """The length of a vector."""
        (size,) = broadcast_shapes(self.loc.shape[-1:], self.scale_tril.shape[-1:])
        require_equal(size, self.scale_tril.shape[-2])
        return (size,)

    @property
    def _log_volume(self) -> NodeLike:
        """The logarithm of the determinant of the factor."""
        return sum(log(diagonal(self.scale_tril, axis1=-2, axis2=-1)), axis=-1)

    def _log_prob(self, x: Node) -> NodeLike:
        past = x - self.loc
        z = squeeze(solve_triangular(self.scale_tril, expand_dims(past, axis=-1), lower=True), -1)
        size = past.shape[-1]
        found: Node = sum(square(z), axis=-1) * -0.5 - self._log_volume
        return found - astype(as_node(size), self.dtype) * (math.log(2 * math.pi) / 2)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        z = random.normal(key, (*shape, *self.event_shape), dtype=self.dtype)
        moved = squeeze(matmul(self.scale_tril, expand_dims(z, axis=-1)), -1)
        return self.loc + moved

    def _mean(self) -> NodeLike:
        return self.loc

    def _mode(self) -> NodeLike:
        return self.loc

    def _variance(self) -> NodeLike:
        return sum(square(self.scale_tril), axis=-1)

    def _entropy(self) -> NodeLike:
        size = astype(as_node(self.event_shape[0]), self.dtype)
        return self._log_volume + size * ((1 + math.log(2 * math.pi)) / 2)

    def _kl(self, other: MultivariateNormal) -> NodeLike:
        lower = other.scale_tril
        spread = solve_triangular(lower, self.scale_tril, lower=True)
        past = solve_triangular(lower, expand_dims(self.loc - other.loc, axis=-1), lower=True)
        squares = sum(square(spread), axis=(-2, -1)) + sum(square(past), axis=(-2, -1))
        size = astype(as_node(self.event_shape[0]), self.dtype)
        return (squares - size) / 2 + other._log_volume - self._log_volume


@declared
class Dirichlet(Law):
    """The law of Dirichlet, of vectors of probabilities of classes, which sum to 1.

    The density of x is in proportion to the product of x**(concentration - 1); `concentration` is a
    vector of positive numbers.

    >>> np.asarray(sg.stats.Dirichlet([1.0, 1.0, 2.0]).mean).tolist()
    [0.25, 0.25, 0.5]
    """

    domains = ("positive",)
    concentration: NodeLike

    @property
    def batch_shape(self) -> Shape:
        """The shape of the laws, without the axis of the classes."""
        if self.concentration.ndim == 0:
            raise ShapeError("Dirichlet takes a vector of concentrations, not a number")
        shape: Shape = self.concentration.shape[:-1]
        return shape

    @property
    def event_shape(self) -> Shape:
        """The number of classes."""
        shape: Shape = self.concentration.shape[-1:]
        return shape

    @property
    def _total(self) -> NodeLike:
        return sum(self.concentration, axis=-1, keepdims=True)

    @property
    def _log_beta(self) -> NodeLike:
        """The logarithm of the multivariate beta function."""
        a = self.concentration
        return sum(gammaln(a), axis=-1) - gammaln(sum(a, axis=-1))

    def _inside(self, x: Node, y: NodeLike) -> Node:
        off = abs(sum(x, axis=-1) - 1) > float(np.sqrt(np.finfo(self.dtype).eps))
        bad = sum(astype(x < 0, self.dtype), axis=-1) > 0
        return where(bad | off, -np.inf, y)

    def _log_prob(self, x: Node) -> NodeLike:
        a, total = self.concentration, self._total
        logs = log(total)
        each = gamma_log_density(a, total * x, xlogy(a - 1, x) + (a - 1) * logs)
        whole = gamma_log_density(total, total, (total - 1) * logs)
        found = sum(each + logs, axis=-1) - squeeze(whole + logs, axis=-1)
        # It takes for granted that x sums to 1, which the gradient by x does not.
        return found + squeeze(total, axis=-1) * (sum(x, axis=-1) - 1)

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        return random.dirichlet(key, self.concentration, shape, dtype=self.dtype)

    def _mean(self) -> NodeLike:
        return self.concentration / self._total

    def _variance(self) -> NodeLike:
        mean = self._mean()
        return mean * (1 - mean) / (self._total + 1)

    def _mode(self) -> NodeLike:
        a = self.concentration
        past = maximum(a - 1, 0)
        total = sum(past, axis=-1, keepdims=True)
        corner = argmax(a, axis=-1, keepdims=True) == arange(a.shape[-1])
        return where(total > 0, past / where(total > 0, total, 1), astype(corner, self.dtype))

    def _entropy(self) -> NodeLike:
        total = self._total
        rest = squeeze(gamma_entropy(total) - digamma(total), axis=-1)
        return sum(gamma_entropy(self.concentration) - digamma(total), axis=-1) - rest

    def _kl(self, other: Dirichlet) -> NodeLike:
        a = self.concentration
        parts = (a - other.concentration) * (digamma(a) - digamma(self._total))
        return other._log_beta - self._log_beta + sum(parts, axis=-1)


@declared
class Independent(Law):
    """Several laws as the one of all their draws: the last `axes` of the batch become an event.

    >>> law = sg.stats.Independent(sg.stats.Normal(np.zeros(3), 1.0))
    >>> law.log_prob(np.zeros((5, 3))).shape
    (5,)
    """

    law: Law
    axes: Any = 1

    def check(self) -> None:
        """Refuse parameters that make no law."""
        if not isinstance(self.law, Law):
            raise ArgumentError(f"laws of sg.stats are joined, not {self.law!r:.60}")
        if not isinstance(self.axes, int) or self.axes is True or self.axes < 0:
            raise ArgumentError(f"axes is the number of axes, an int, not {self.axes!r}")
        if self.axes > len(self.law.batch_shape):
            raise ShapeError(
                f"laws of the shape {self.law.batch_shape} have no {self.axes} axes to join"
            )

    @property
    def parameters(self) -> dict[str, Node]:
        """Those of the laws."""
        return self.law.parameters

    @property
    def batch_shape(self) -> Shape:
        """The shape of the laws without the last axes."""
        shape = self.law.batch_shape
        return shape[: len(shape) - self.axes]

    @property
    def event_shape(self) -> Shape:
        """The last axes, and what is one draw of one law."""
        shape = self.law.batch_shape
        return (*shape[len(shape) - self.axes :], *self.law.event_shape)

    def _together(self, x: Node) -> Node:
        return sum(x, axis=tuple(range(-self.axes, 0))) if self.axes else x

    def log_prob(self, x: NodeLike, /) -> Node:
        """The logarithm of the density of all draws together."""
        found = self.law.log_prob(x)
        shape = broadcast_shapes(found.shape, self.law.batch_shape)
        return self._together(broadcast_to(found, shape))

    def _sample(self, key: Node, shape: Shape) -> NodeLike:
        return self.law._sample(key, (*shape, *self.law.batch_shape[len(self.batch_shape) :]))

    def _mean(self) -> NodeLike:
        return self.law.mean

    def _variance(self) -> NodeLike:
        return self.law.variance

    def _entropy(self) -> NodeLike:
        return self._together(self.law.entropy())

    def _kl(self, other: Any) -> NodeLike:
        if self.axes != other.axes:
            self._refuse("divergence of Kullback and Leibler from such a law")
        return self._together(kl(self.law, other.law))

    def _mode(self) -> NodeLike:
        return self.law.mode


__all__ = ["Dirichlet", "Independent", "MultivariateNormal"]

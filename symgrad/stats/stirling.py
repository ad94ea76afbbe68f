"""The gamma law's log-density and entropy, with all digits for large parameters.

There logarithms as large as the parameters cancel. Stirling's formula cancels them beforehand, and
leaves Binet's function; so does Loader, Fast and accurate computation of binomial probabilities
(2000). Poisson's, binomial, beta and Dirichlet's laws are made of these, since draws y of gamma
laws have a sum that is independent of y / sum(y).
"""

from __future__ import annotations

import math

from symgrad.ir.node import Node
from symgrad.ops.declare import NodeLike
from symgrad.ops.elementwise import log
from symgrad.ops.select import where
from symgrad.ops.special.elementary import kl_div_p
from symgrad.ops.special.gamma import binet, gammaln


def gamma_log_density(a: Node, z: Node, leading: NodeLike) -> Node:
    """leading - z - gammaln(a), where `leading` is (a - 1) * log(z): of the scale 1."""
    is_large = (a >= 10) & (z > 0)
    power = where(is_large, a - 1, 1)
    spread = log(2 * math.pi * power) / 2 + binet(power, order=0)
    near = -kl_div_p(power, where(is_large, z, 1)) - spread
    return where(is_large, near, leading - z - gammaln(a))


def gamma_entropy(a: Node) -> Node:
    """The entropy of the gamma law of the scale 1."""
    rest = binet(a, order=0) + (1 - a) * binet(a, order=1)
    return (log(2 * math.pi * a) + 1 - 1 / a) / 2 + rest


__all__ = ["gamma_entropy", "gamma_log_density"]

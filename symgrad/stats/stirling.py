"""The gamma law's entropy, with all digits for large parameters.

There logarithms as large as the parameters cancel. Stirling's formula cancels them beforehand, and
leaves Binet's function; so does `gamma_log_density`. Poisson's, binomial, beta and Dirichlet's laws
are made of the two, since draws y of gamma laws have a sum that is independent of y / sum(y).
"""

from __future__ import annotations

import math

from symgrad.ir.node import Node
from symgrad.ops.elementwise import log
from symgrad.ops.special.gamma import binet


def gamma_entropy(a: Node) -> Node:
    """The entropy of the gamma law of the scale 1."""
    rest = binet(a, order=0) + (1 - a) * binet(a, order=1)
    return (log(2 * math.pi * a) + 1 - 1 / a) / 2 + rest


__all__ = ["gamma_entropy"]

"""Taylor coefficients of products, quotients and exponentials along a curve.

A series is a function from a degree to the coefficient of it, a node, or None for 0. (A. Griewank
and A. Walther, Evaluating Derivatives, 2008, section 13.2.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import mul
from typing import TypeAlias

from symgrad.ir.node import Node
from symgrad.ir.op import Cotangent
from symgrad.ops.flows import total

Series: TypeAlias = Callable[[int], Cotangent]


def convolved(
    product: Callable[[Node, Node], Node], a: Series, b: Series, degree: int, at: Iterable[int]
) -> Cotangent:
    """The sum of products of the coefficients i of a and degree - i of b, for all i in `at`."""
    pairs = [(a(i), b(degree - i)) for i in at]
    return total(*(product(p, q) for p, q in pairs if p is not None and q is not None))


def quotient_series(
    product: Callable[[Node, Node], Node], divided: Callable[[Node, Node], Node]
) -> Callable[..., Cotangent]:
    """The series of y where product(a, y) is b: that of b, less what lower degrees make of it.

    `divided(b, a)` is the y of such a and b.
    """

    def series(k: int, y: Series, a: Series, b: Series) -> Cotangent:
        made, wanted = convolved(product, a, y, k, range(1, k + 1)), b(k)
        if made is None:
            left: Cotangent = wanted
        else:
            left = -made if wanted is None else wanted - made
        first = a(0)
        return None if left is None or first is None else divided(left, first)

    return series


def exponential_series(k: int, y: Series, x: Series) -> Cotangent:
    """The coefficient of degree k > 0 of y = exp(x), by y' = x' * y.

    To factor exp(x(0)) out of all coefficients would save operations. But where it is 0, what is
    left may overflow, and 0 times inf is NaN.
    """

    def rate(j: int) -> Cotangent:
        return scaled(x(j), j)

    lower = scaled(convolved(mul, rate, y, k, range(1, k)), 1 / k)
    return total(lower, convolved(mul, x, y, k, [k]))


def scaled(node: Cotangent, factor: float) -> Cotangent:
    """A coefficient times a number."""
    return node if node is None or factor == 1 else node * factor

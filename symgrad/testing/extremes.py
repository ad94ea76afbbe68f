"""Where numbers leave the range of their dtype, so that rounding decides of much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from symgrad.ir.node import Node


def all_finite(value: Any) -> bool:
    """Whether a value, or each of a tuple, has neither inf nor NaN."""
    parts = value if isinstance(value, tuple) else (value,)
    return all(bool(np.isfinite(v).all()) for v in parts)


def overflows(node: Node, made: Any, operands: list[Any], attrs: Mapping[str, Any]) -> bool:
    """Whether what is not finite is so for finite terms, too.

    Where an inf is among the terms of a sum, whether the others overflow says nobody: it depends on
    the order in which they are added up, and inf - inf is NaN.
    """
    if all_finite(made):
        return False
    if all(map(all_finite, operands)):
        return True
    if node.op.combiner != "add":
        return False
    sizes = [np.where(np.isfinite(x), np.abs(x), 0) for x in operands]
    return not all_finite(node.op.kernel(*sizes, **attrs))


def underflows(node: Node, made: Any, operands: list[Any], attrs: Mapping[str, Any]) -> bool:
    """Whether products that are summed became too small: of ones instead they are not 0."""
    if len(operands) < 2 or any(isinstance(x, tuple) for x in operands):
        return False
    if any(np.asarray(x).dtype.kind not in "fc" for x in (made, *operands)):
        return False
    tiny = np.finfo(np.asarray(made).dtype).tiny
    if not np.any(np.abs(made) < tiny):
        return False
    sizes = [np.abs(x) for x in operands]
    try:
        with np.errstate(all="ignore"):
            terms = node.op.kernel(*sizes, **attrs)
            ones = node.op.kernel(*(np.not_equal(x, 0).astype(x.dtype) for x in sizes), **attrs)
    except (np.linalg.LinAlgError, ValueError):  # no system of them can be solved
        return False
    return bool(np.any((np.abs(terms) < tiny) & (np.abs(ones) > 0)))


def of_zeros(node: Node, operands: list[Any], attrs: Mapping[str, Any]) -> Any:
    """Where an op gives something for zeros, as logsumexp does."""
    zeros = [np.zeros_like(x) if x.dtype.kind in "fc" else x for x in operands]
    try:
        with np.errstate(all="ignore"):
            return np.not_equal(node.op.kernel(*zeros, **attrs), 0)
    except np.linalg.LinAlgError:  # zeros are singular
        return np.False_

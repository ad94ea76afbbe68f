"""Whether matrices are what a user declared them to be, for the arrays of one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from symgrad.ir.errors import KernelError
from symgrad.ir.evaluate import evaluate
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ops.linalg.assume import assume_p

ROUNDINGS = 100  # for each row, in units of the last place of the largest element


def broken(graph: Graph, values: Mapping[Node, Any]) -> list[tuple[Node, Any, str]]:
    """The nodes of which a declared fact does not hold, their values, and in words which.

    Where a matrix has a NaN or an inf, or cannot be computed, nothing is said of it.
    """
    faults = []
    for node in (n for n in graph.nodes if n.op is assume_p.op):
        try:
            with np.errstate(all="ignore"):
                matrix = np.asarray(evaluate([node.inputs[0]], values)[0])
        except KernelError:
            continue
        for fact in node.attr("facts") if matrix.size and np.isfinite(matrix).all() else ():
            if words := TESTS[fact](matrix):
                faults.append((node, matrix, f"was declared {fact.replace('_', ' ')}, and {words}"))
    return faults


def _room(a: Any) -> Any:
    """The rounding that each matrix of a batch may show."""
    largest = np.abs(a).max((-2, -1), keepdims=True)
    return ROUNDINGS * a.shape[-1] * np.finfo(a.dtype).eps * largest


def _elements(wrong: Any, what: str) -> str:
    if not wrong.any():
        return ""
    return f"{what} at {tuple(np.argwhere(wrong)[0].tolist())}"


def _symmetric(a: Any) -> str:
    return _elements(np.abs(a - a.mT) > _room(a), "differs from its transpose")


def _lower(a: Any) -> str:
    return _elements(np.triu(a, 1) != 0, "has an element above the diagonal")


def _upper(a: Any) -> str:
    return _elements(np.tril(a, -1) != 0, "has an element below the diagonal")


def _eigenvalue(a: Any, least: Any) -> str:
    """The first eigenvalue that is below the least of its matrix."""
    found = np.linalg.eigvalsh(a)
    below = found[found < least]
    return f"has the eigenvalue {below[0]:.3g}" if below.size else ""


def _definite(a: Any) -> str:
    return _symmetric(a) or _eigenvalue(a, np.finfo(a.dtype).smallest_subnormal)


def _semidefinite(a: Any) -> str:
    return _symmetric(a) or _eigenvalue(a, -_room(a)[..., 0])


def _orthogonal(a: Any) -> str:
    wrong = np.abs(a.mT @ a - np.eye(a.shape[-1])) > _room(np.ones_like(a))
    return _elements(wrong, "its transpose times itself is not the identity")


TESTS: Mapping[str, Callable[[Any], str]] = MappingProxyType(
    {
        "symmetric": _symmetric,
        "positive_definite": _definite,
        "positive_semidefinite": _semidefinite,
        "lower": _lower,
        "upper": _upper,
        "diagonal": lambda a: _lower(a) or _upper(a),
        "orthogonal": _orthogonal,
    }
)

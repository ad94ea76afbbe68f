"""Checks of the numbers that an optimiser is given."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from symgrad.ir.errors import DtypeError, GraphError, UnsupportedError
from symgrad.ir.node import Node, Variable, constant_value, describe
from symgrad.ir.types import in_order
from symgrad.nn.module import Module


def number(value: Any, name: str, *, above: bool = False, below: float = math.inf) -> float:
    """A finite number from 0 on, or above 0, as a float. Raises `UnsupportedError` for another."""
    given = np.asarray(value) if isinstance(value, (int, float, np.number, np.ndarray)) else None
    is_real = given is not None and not given.ndim and given.dtype.kind in "iuf"
    if not is_real or not 0 <= value < below or (above and not value):
        said = describe(value) if isinstance(value, Node) else repr(value)
        ends = ("above 0" if above else "from 0 on") + f" and below {below}" * (below < math.inf)
        raise UnsupportedError(f"{name} is a finite number {ends}, not {said:.80}")
    return float(value)


def listed(given: Any, method: str, name: str, *, takes_complex: bool) -> list[Variable]:
    """The parameters of a module, or those of a list, for a method; `name` is that of its state.

    Raises `GraphError` for what is no variable of floats, or listed twice, and for none,
    `UnsupportedError` for complex ones that it does not take.
    """
    if isinstance(given, Node) or not isinstance(given, (Module, Iterable)):
        said = describe(given) if isinstance(given, Node) else repr(given)
        raise GraphError(
            f"an optimiser is given a module, or a list of variables, not {said:.80}; "
            f"write {method}(net, …) or {method}([w, b], …)"
        )
    found = list(
        given.parameters()
        if isinstance(given, Module)
        else in_order(given, "parameters", GraphError)
    )
    if not found:
        raise GraphError(f"an optimiser needs parameters, and {given!r:.80} has none")
    seen: set[Variable] = set()
    for p in found:
        if not isinstance(p, Variable) or not p.tensor.is_inexact:
            several = "; of several modules give [*a.parameters(), *b.parameters()]"
            said = describe(p) if isinstance(p, Node) else f"{p!r:.80}{several}"
            raise GraphError(f"a parameter is a variable of floats, not {said}")
        if p.name is None:
            raise GraphError(f"{describe(p)} has no name yet; ask its module for parameters()")
        if p.tensor.is_complex and not takes_complex:
            raise UnsupportedError(f"{name} is for real parameters, not {describe(p)}")
        if p in seen:
            raise GraphError(f"{describe(p)} is listed twice; list each parameter once")
        seen.add(p)
    return found


def rate(value: Any, name: str = "lr") -> Any:
    """A number as above, or a real scalar node, which may not hold another.

    Raises `UnsupportedError` for another number, `DtypeError` for another node.
    """
    if not isinstance(value, Node):
        return number(value, name)
    if value.shape or value.dtype.kind not in "iuf":
        raise DtypeError(f"{name} is a real scalar, not {describe(value)}")
    known = value.value if isinstance(value, Variable) else constant_value(value)
    if known is not None:
        number(known, name)
    return value

"""Reductions of the elements that a mask takes in, and from an initial value: NumPy's `where=`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.ir.errors import DtypeError, UnsupportedError
from symgrad.ir.operators import call
from symgrad.ir.schema import plain

if TYPE_CHECKING:
    from symgrad.ir.node import Node

# What changes nothing where a mask does not take an element in, and what joins the initial value.
_NEUTRAL: Mapping[str, Any] = MappingProxyType(
    {"sum": 0, "prod": 1, "all": True, "any": False, "logsumexp": -np.inf}
)
_JOINS: Mapping[str, str] = MappingProxyType(
    {
        "sum": "add",
        "prod": "multiply",
        "max": "maximum",
        "min": "minimum",
        "logsumexp": "logaddexp",
        "nansum": "add",
        "nanprod": "multiply",
        "nanmax": "fmax",
        "nanmin": "fmin",
    }
)
_AVERAGES = frozenset({"mean", "var", "std"})
REDUCTIONS = frozenset({*_NEUTRAL, *_JOINS, *_AVERAGES, "nanmean", "nanvar", "nanstd"})


def reduced(
    name: str, x: Any, *, where: Any = True, initial: Any = None, mean: Any = None, **options: Any
) -> Node:
    """The reduction of this name of the elements where `where` holds, and of `initial`.

    The extrema of a mask, and of no elements, need an initial value, as in NumPy; a variance may be
    about a `mean` that is given. Raises `UnsupportedError` if there is none, `DtypeError` for a
    mask that is not of booleans.
    """
    all_in = where is True
    if all_in and initial is None and mean is None:
        return call(name, x, **options)
    if mean is not None and name not in ("var", "std"):
        raise UnsupportedError(f"{name} takes no mean")
    options = {"keepdims": False, "axis": None, **options}
    mask = call("asarray", where)
    if mask.dtype.kind != "b":
        raise DtypeError(f"where= takes a mask of booleans, not {mask.dtype.name}")
    if initial is not None and name not in _JOINS:
        raise UnsupportedError(f"{name} takes no initial value")
    if name in _AVERAGES:
        return _average(name, x, mask, mean, **options)
    node = call("asarray", x)
    if not all_in and name.endswith(("max", "min")) and initial is None:
        raise UnsupportedError(f"{name} of a mask needs an initial value, as of no element")
    if name.startswith("nan"):
        if node.dtype.kind not in "fc":
            return reduced(name[3:], node, where=where, initial=initial, **options)
        node = node if all_in else call("where", mask, node, np.nan)
    elif not all_in:
        if name == "logsumexp" and node.dtype.kind in "biu":
            node = call("astype", node, "float64")
        if name in ("all", "any"):
            node = call("astype", node, "bool")
        neutral = call("asarray", _NEUTRAL.get(name, initial))
        node = call("where", mask, node, call("astype", neutral, node.dtype))
    if initial is None:
        return call(name, node, **options)
    if name in ("max", "min") and node.size == 0:
        shape = call("any", node, axis=options["axis"], keepdims=options["keepdims"]).shape
        return call("broadcast_to", call("astype", call("asarray", initial), node.dtype), shape)
    found = call(name, node, **options)
    # As in NumPy, the initial value is converted to the dtype of the result.
    return call(_JOINS[name], found, call("astype", call("asarray", initial), found.dtype))


def _average(name: str, x: Any, mask: Node, about: Any, **options: Any) -> Node:
    """The mean, variance or deviation of the elements that a mask takes in."""
    node = call("asarray", x)
    floats = node.dtype if node.dtype.kind in "fc" else np.dtype(np.float64)
    node = call("astype", node, floats)
    correction = plain(options.pop("correction", 0))
    axis, keepdims = options["axis"], options["keepdims"]
    whole = call("broadcast_to", mask, node.shape)

    def total(values: Node, keep: bool) -> Node:
        return call("sum", call("where", whole, values, 0), axis=axis, keepdims=keep)

    real = call("real", node).dtype
    counted = call("astype", whole, real)

    def mean(keep: bool) -> Node:
        return call("divide", total(node, keep), call("sum", counted, axis=axis, keepdims=keep))

    if name == "mean":
        return mean(keepdims)
    away = call(
        "abs",
        call("subtract", node, mean(True) if about is None else call("astype", about, floats)),
    )
    count = call("sum", counted, axis=axis, keepdims=keepdims)
    left = call("maximum", call("subtract", count, correction), 0)
    found = call("divide", total(call("square", away), keepdims), left)
    return call("sqrt", found) if name == "std" else found

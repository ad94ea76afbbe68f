"""NumPy's own functions on nodes: `np.tanh(node)` builds a node.

A function that has no symbolic form, or an argument that has none, is refused by name; nothing
silently becomes an object array.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from symgrad.ir.errors import UnsupportedError
from symgrad.ir.op import REGISTRY

_REDUCTIONS: Mapping[Any, str] = MappingProxyType(
    {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min"}
)
_OURS = MappingProxyType({"ddof": "correction"})  # arguments of NumPy's by other names


def ufunc(function: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `Node.__array_ufunc__` answers."""
    name = f"np.{function.__name__}"
    if kwargs.get("out") is not None:
        raise UnsupportedError(
            f"{name} cannot write a symbolic node into an array (out=, or an in-place operator on "
            f"an array); write y = {name}(...) or y = a + node"
        )
    if method == "reduce" and function in _REDUCTIONS:
        axis = kwargs.pop("axis", 0) if len(inputs) == 1 else inputs[1]
        given = {k: v for k, v in kwargs.items() if v is not None}
        return _call(f"{name}.reduce", _REDUCTIONS[function], inputs[:1], {"axis": axis, **given})
    if method != "__call__":
        raise UnsupportedError(f"{name}.{method} is not supported on a symbolic node")
    if function not in REGISTRY.by_numpy:
        raise UnsupportedError(f"{name} has no symbolic form{_supported()}")
    return _call(name, REGISTRY.by_numpy[function], inputs, kwargs)


def function(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `Node.__array_function__` answers: NumPy's arguments, put under our names."""
    name = f"np.{function.__name__}"
    if function not in REGISTRY.by_numpy:
        raise UnsupportedError(f"{name} has no symbolic form{_supported()}")
    ours = REGISTRY.by_numpy[function]
    parameters = inspect.signature(REGISTRY.functions[ours]).parameters.values()
    arrays = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
    options = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    try:
        theirs = list(inspect.signature(function).parameters)
    except ValueError:  # NumPy's functions in C tell no signature
        theirs = [p.name for p in arrays] + options
    named = dict(zip(theirs, args, strict=False)) | kwargs
    positional = []
    for parameter, alias in zip(arrays, theirs, strict=False):
        if alias in named and parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(named.pop(alias))
        elif alias in named:
            named[parameter.name] = named.pop(alias)
    return _call(name, ours, tuple(positional), named)


def _call(name: str, ours: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    target = REGISTRY.functions[ours]
    known = inspect.signature(target).parameters
    kwargs = {_OURS.get(k, k): v for k, v in kwargs.items()}
    unknown = [k for k, v in kwargs.items() if k not in known and v is not None]
    if unknown:
        raise UnsupportedError(
            f"{name} on a symbolic node takes no {', '.join(unknown)}; "
            f"sg.{ours}{inspect.signature(target)} is what there is"
        )
    return target(*args, **{k: v for k, v in kwargs.items() if k in known})


def _supported() -> str:
    names = sorted(f"np.{f.__name__}" for f in REGISTRY.by_numpy)
    return f"; supported are {', '.join(names)}"

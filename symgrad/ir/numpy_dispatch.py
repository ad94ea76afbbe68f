"""NumPy's own functions on nodes: `np.tanh(node)` builds a node.

A function that has no symbolic form, or an argument that has none, is refused by name; nothing
silently becomes an object array.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
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
    name = _name(function)
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
        raise _unknown(function)
    return _call(name, REGISTRY.by_numpy[function], inputs, kwargs)


def function(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `Node.__array_function__` answers: NumPy's arguments, put under our names."""
    name = _name(function)
    if function not in REGISTRY.by_numpy:
        raise _unknown(function)
    if function is np.where and len(args) + len(kwargs) == 1:
        raise UnsupportedError(
            "np.where of a condition alone has a shape that depends on data; "
            "write np.where(condition, a, b)"
        )
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
            f"sg.{ours}{signature_text(target)} is what there is"
        )
    return target(*args, **{k: v for k, v in kwargs.items() if k in known})


def signature_text(function: Callable[..., Any]) -> str:
    """The parameters of a function as a person would write them: `(x, /, *, axis=None)`."""
    signature = inspect.signature(function)
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(plain))


def _name(function: Callable[..., Any]) -> str:
    """`np.linalg.inv`, or what another library calls its function."""
    name = function.__name__
    if getattr(np, name, None) is function:
        return f"np.{name}"
    module = getattr(function, "__module__", None)
    return f"{module}.{name}".replace("numpy.", "np.", 1) if module else name


def _unknown(function: Callable[..., Any]) -> UnsupportedError:
    near = get_close_matches(function.__name__, REGISTRY.functions, n=3)
    hint = f"near it are {', '.join(f'sg.{n}' for n in near)}; " if near else ""
    return UnsupportedError(
        f"{_name(function)} has no symbolic form; {hint}dir(symgrad) lists all that there is"
    )

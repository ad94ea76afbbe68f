"""NumPy's own functions on nodes: `np.tanh(node)` builds a node, as do SciPy's special ones.

A function that has no symbolic form, or an argument that has none, is refused by name; nothing
silently becomes an object array.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from symgrad.ir.errors import SymgradError, UnsupportedError, nearest
from symgrad.ir.masked import REDUCTIONS, reduced
from symgrad.ir.messages import refuse, signature_text
from symgrad.ir.op import REGISTRY
from symgrad.ir.operators import call
from symgrad.ir.refusals import INSTEAD
from symgrad.ir.types import normalize_axis

_REDUCTIONS: Mapping[Any, str] = MappingProxyType(
    {
        np.add: "sum",
        np.multiply: "prod",
        np.maximum: "max",
        np.minimum: "min",
        np.logical_and: "all",
        np.logical_or: "any",
    }
)
_OURS = MappingProxyType({"ddof": "correction"})  # arguments of NumPy's by other names
# Arguments of reductions, and what they are unless given.
_PARTIAL: Mapping[str, Any] = MappingProxyType({"where": True, "initial": None})
_HOW = frozenset({"optimize", "kind"})  # these say how to compute, not what
_BY_SCIPY: Mapping[str, str] = MappingProxyType(
    {"psi": "digamma", "expit": "sigmoid", "log_expit": "log_sigmoid"}
)
# What every ufunc takes, and does without being asked.
_UFUNC_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {"where": True, "casting": "same_kind", "order": "K", "subok": True, "dtype": None}
)
# Questions that are answered when the graph is built, and what another function has as a case.
DIRECT: Mapping[Any, Callable[..., Any]] = MappingProxyType(
    {
        np.shape: lambda a: a.shape,
        np.ndim: lambda a: a.ndim,
        np.size: lambda a, axis=None: (
            a.size if axis is None else a.shape[normalize_axis(axis, a.ndim)]
        ),
        np.iscomplexobj: lambda x: x.dtype.kind == "c",
        np.isrealobj: lambda x: x.dtype.kind != "c",
        np.outer: lambda a, b: call("outer", call("reshape", a, -1), call("reshape", b, -1)),
        np.linalg.diagonal: lambda x, /, *, offset=0: call(
            "diagonal", x, offset=offset, axis1=-2, axis2=-1
        ),
        np.linalg.trace: lambda x, /, *, offset=0, dtype=None: call(
            "trace", x, offset=offset, axis1=-2, axis2=-1, dtype=dtype
        ),
    }
)


def ufunc(function: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The answer of `Node.__array_ufunc__`."""
    name = _name(function)
    if kwargs.get("out") is not None:
        raise UnsupportedError(
            f"{name} cannot write a symbolic node into an array (out=, or an in-place operator on "
            f"an array); write y = {name}(...) or y = a + node"
        )
    if method == "reduce" and function in _REDUCTIONS:
        axis = kwargs.pop("axis", 0) if len(inputs) == 1 else inputs[1]
        given = {"axis": axis, **{k: v for k, v in kwargs.items() if v is not None}}
        target = REGISTRY.functions[_REDUCTIONS[function]]
        return _call(f"{name}.reduce", target, inputs[:1], given, _UFUNC_DEFAULTS)
    if method != "__call__":
        raise UnsupportedError(f"{name}.{method} is not supported on a symbolic node")
    ours = REGISTRY.of_numpy(function)
    found = _by_scipy(function) if ours is None else REGISTRY.functions[ours]
    if found is None:
        raise _unknown(function)
    return _call(name, found, inputs, kwargs, _UFUNC_DEFAULTS)


def _is_scipys(function: Callable[..., Any]) -> bool:
    """Whether SciPy has the function. It is not imported for that: who calls it has done so."""
    name = getattr(function, "__name__", "")
    return getattr(sys.modules.get("scipy.special"), name, None) is function


def _by_scipy(function: np.ufunc) -> Callable[..., Any] | None:
    """Our function for one of `scipy.special`, which has the same name unless a table says so.

    What has such a name in `nn` or a user's module need not mean the same: there `kl_div` is a
    mean, and SciPy's is a primitive.
    """
    if not _is_scipys(function):
        return None
    ours = _BY_SCIPY.get(function.__name__, function.__name__)
    for target in (REGISTRY.functions.get(ours), REGISTRY.builders.get(ours)):
        if target and target.__module__.startswith("symgrad.ops."):
            return target
    return None


def function(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The answer of `Node.__array_function__`: NumPy's arguments, put under our names."""
    if function in DIRECT:
        try:
            return DIRECT[function](*args, **kwargs)
        except SymgradError as error:
            refuse(error, _name(function), args)
    ours = REGISTRY.of_numpy(function)
    if ours is None:
        raise _unknown(function)
    if function is np.where and len(args) + len(kwargs) == 1:
        raise UnsupportedError(
            "np.where of a condition alone has a shape that depends on data; "
            "write np.where(condition, a, b)"
        )
    known = _parameters(REGISTRY.functions[ours])
    arrays = [p for p in known if p.kind is not p.KEYWORD_ONLY]
    options = [p.name for p in known if p.kind is p.KEYWORD_ONLY]
    try:
        theirs = inspect.signature(function).parameters
    except ValueError:  # NumPy's functions in C tell no signature
        theirs = MappingProxyType({n: _unset(n) for n in (*(p.name for p in arrays), *options)})
    defaults = {n: p.default for n, p in theirs.items() if p.default is not p.empty}
    if any(p.kind is p.VAR_POSITIONAL for p in arrays):
        return _call(_name(function), REGISTRY.functions[ours], args, kwargs, defaults)
    given = dict(zip(theirs, args, strict=False)) | kwargs
    named = {k: v for k, v in given.items() if v is not _NO_VALUE}
    positional = []
    for parameter, alias in zip(arrays, theirs, strict=False):
        if alias not in named and parameter.default is parameter.empty and alias in defaults:
            named[alias] = defaults[alias]
        if alias in named and parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(named.pop(alias))
        elif alias in named:
            named[parameter.name] = named.pop(alias)
    return _call(_name(function), REGISTRY.functions[ours], tuple(positional), named, defaults)


_NO_VALUE = inspect.signature(np.sum).parameters["initial"].default


def _unset(name: str) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _parameters(ours: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(ours).parameters.values())


def _call(
    name: str,
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    defaults: Mapping[str, Any],
) -> Any:
    """Our function, of NumPy's arguments; what it does not know may be as NumPy has it anyway."""
    known = {p.name: p.default for p in _parameters(target)}
    named = {k if k in known else _OURS.get(k, k): v for k, v in kwargs.items()}
    partial = {k: v for k, v in named.items() if k in _PARTIAL and v is not _PARTIAL[k]}
    if partial and target.__name__.rstrip("_") in REDUCTIONS:
        kept = {k: v for k, v in named.items() if k in known and v is not None}
        try:
            return reduced(target.__name__.rstrip("_"), args[0], **{**kept, **partial})
        except SymgradError as error:
            refuse(error, name, args)
    unknown = [k for k, v in named.items() if k not in known and not _is_default(v, k, defaults)]
    if unknown:
        raise UnsupportedError(
            f"{name} on a symbolic node takes no {', '.join(unknown)}; "
            f"{_as_written(target)}{signature_text(target)} is what there is"
        )
    # None where ours has another default is NumPy's way to say nothing.
    unsaid = {k for k, v in named.items() if v is None and defaults.get(k, 0) is None}
    return target(
        *args,
        **{
            k: v
            for k, v in named.items()
            if k in known and not (k in unsaid and known[k] is not None)
        },
    )


def _as_written(target: Callable[..., Any]) -> str:
    """One of our functions as a user writes it; a primitive has the name of its op."""
    name = target.__name__.rstrip("_")
    known = REGISTRY.functions.get(name) is target
    return REGISTRY.qualified_name(name) if known else name.removesuffix("_p")


def _is_default(value: Any, name: str, defaults: Mapping[str, Any]) -> bool:
    """Whether an argument says what NumPy does without it."""
    default = defaults.get(name)
    return (
        name in _HOW
        or value is default
        or (isinstance(value, (str, int)) and bool(value == default))
    )


def _name(function: Callable[..., Any]) -> str:
    """`np.linalg.inv`, or what another library calls its function."""
    name = function.__name__
    if getattr(np, name, None) is function:
        return f"np.{name}"
    if _is_scipys(function):
        return f"scipy.special.{name}"
    module = getattr(function, "__module__", None)
    return f"{module}.{name}".replace("numpy.", "np.", 1) if module else name


def _unknown(function: Callable[..., Any]) -> UnsupportedError:
    name = _name(function)
    hint = INSTEAD.get(name.removeprefix("np."))
    if hint is None:
        near = nearest(function.__name__, REGISTRY.functions)
        hint = f"near it are {', '.join(map(REGISTRY.qualified_name, near))}; " if near else ""
        hint += "dir(symgrad) lists all that there is"
    return UnsupportedError(f"{name} has no symbolic form; {hint}")

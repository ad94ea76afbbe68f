"""NumPy's own functions on nodes: `np.tanh(node)` builds a node, as do SciPy's special ones.

A function that has no symbolic form, or an argument that has none, is refused by name; nothing
silently becomes an object array.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from symgrad.ir.errors import DtypeError, SymbolicError, SymgradError, UnsupportedError, nearest
from symgrad.ir.masked import REDUCTIONS, reduced
from symgrad.ir.messages import refuse, signature_text
from symgrad.ir.numpy_cases import COUNTED, DIRECT, of_values
from symgrad.ir.op import REGISTRY
from symgrad.ir.operators import call
from symgrad.ir.refusals import INSTEAD, instead_of_scipys
from symgrad.ir.types import as_dtype

_REDUCTIONS: Mapping[Any, str] = MappingProxyType(
    {
        np.add: "sum",
        np.multiply: "prod",
        np.maximum: "max",
        np.minimum: "min",
        np.logical_and: "all",
        np.logical_or: "any",
        np.logaddexp: "logsumexp",
        np.fmax: "nanmax",
        np.fmin: "nanmin",
    }
)
_RUNNING: Mapping[Any, str] = MappingProxyType(
    {
        np.add: "cumulative_sum",
        np.multiply: "cumulative_prod",
        np.maximum: "cummax",
        np.minimum: "cummin",
    }
)
# Arguments of NumPy's by other names.
_OURS = MappingProxyType({"ddof": "correction", "rcond": "rtol"})
# Arguments of reductions, and what they are unless given.
_PARTIAL: Mapping[str, Any] = MappingProxyType({"where": True, "initial": None, "mean": None})
# These say how to compute or where to put it, not what.
_HOW = frozenset(
    {"optimize", "kind", "subok", "overwrite_input", "assume_unique", "copy", "hermitian"}
)
# What a `dtype=` converts first, and of these what is computed in floats.
_AVERAGES = frozenset({"mean", "var", "std", "nanmean", "nanvar", "nanstd"})
_CONVERTING = _AVERAGES | {"concat", "stack", "hstack", "vstack", "einsum"}
_BY_SCIPY: Mapping[str, str] = MappingProxyType(
    {"psi": "digamma", "expit": "sigmoid", "log_expit": "log_sigmoid"}
)
# What every ufunc takes, and does without being asked.
_UFUNC_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {"where": True, "casting": "same_kind", "order": "K", "subok": True, "dtype": None}
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
        target = _named(_REDUCTIONS[function])
        return _call(f"{name}.reduce", target, inputs[:1], given, _UFUNC_DEFAULTS)
    if method == "accumulate" and function in _RUNNING:
        options = dict(zip(("axis", "dtype"), inputs[1:], strict=False))
        given = {"axis": 0, **options, **{k: v for k, v in kwargs.items() if v is not None}}
        target = _named(_RUNNING[function])
        return _call(f"{name}.accumulate", target, inputs[:1], given, _UFUNC_DEFAULTS)
    if method == "outer":
        return _outer(function, *inputs, **kwargs)
    if method != "__call__":
        raise UnsupportedError(f"{name}.{method} has no symbolic form; {_METHODS[method]}")
    if (dtype := kwargs.pop("dtype", None)) is not None:
        inputs = _loop_operands(function, inputs, dtype, kwargs.get("casting", "same_kind"))
    ours = REGISTRY.of_numpy(function)
    found = _by_scipy(function) if ours is None else REGISTRY.functions[ours]
    if found is None:
        raise _unknown(function)
    return _call(name, found, inputs, kwargs, _UFUNC_DEFAULTS)


def _named(name: str) -> Callable[..., Any]:
    if name not in REGISTRY.functions:
        REGISTRY.every()
    return REGISTRY.functions[name]


# What to write for a method of a ufunc.
_METHODS: Mapping[str, str] = MappingProxyType(
    {
        "reduce": "write a fold: sg.scan, or functools.reduce over the parts of x",
        "accumulate": "write a fold: sg.scan",
        "reduceat": "write sg.stack of the function of each slice, or sg.add_at",
        "at": "it writes into an array, and a node is frozen; write x.at[indices].add(values)",
    }
)


def _outer(function: np.ufunc, a: Any, b: Any, /, **kwargs: Any) -> Any:
    """The ufunc of each element of one array with each of another."""
    first, second = call("asarray", a), call("asarray", b)
    spread = call("reshape", first, (*first.shape, *(1,) * second.ndim))
    return ufunc(function, "__call__", (spread, second), kwargs)


def _loop_operands(
    function: np.ufunc, inputs: tuple[Any, ...], dtype: Any, casting: Any
) -> tuple[Any, ...]:
    """The operands in the dtypes of the loop whose results have a dtype."""
    given = [type(x) if type(x) in (int, float, complex) else call("asarray", x) for x in inputs]
    asked = [x if isinstance(x, type) else x.dtype for x in given]
    signature = (*(None,) * function.nin, *(as_dtype(dtype),) * function.nout)
    try:
        loop = function.resolve_dtypes(
            (*asked, *(None,) * function.nout), signature=signature, casting=casting
        )
    except TypeError as error:
        raise DtypeError(f"{_name(function)}: {error}") from None
    return tuple(call("astype", x, d) for x, d in zip(inputs, loop, strict=False))


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
        except Exception as error:
            refuse(error, _name(function), args)
    ours = REGISTRY.of_numpy(function)
    if ours is None and function in COUNTED:
        with suppress(SymbolicError):
            return of_values(function, args, kwargs)
    if ours is None:
        raise _unknown(function)
    known = _parameters(REGISTRY.functions[ours])
    arrays = [p for p in known if p.kind is not p.KEYWORD_ONLY]
    options = [p.name for p in known if p.kind is p.KEYWORD_ONLY]
    try:
        theirs = _signature(function)
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


@lru_cache(maxsize=1024)  # to inspect a function takes longer than to build a node
def _signature(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def _parameters(ours: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(_signature(ours).values())


def _call(
    name: str,
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    defaults: Mapping[str, Any],
) -> Any:
    """Our function, of NumPy's arguments; what it does not know may be as NumPy has it anyway."""
    known = {p.name: p.default for p in _parameters(target)}
    if any(p.kind is p.VAR_KEYWORD for p in _parameters(target)):
        known = dict.fromkeys(kwargs) | known
    named = {k if k in known else _OURS.get(k, k): v for k, v in kwargs.items()}
    ours = target.__name__.rstrip("_")
    partial = {k: v for k, v in named.items() if k in _PARTIAL and v is not _PARTIAL[k]}
    partial = partial if ours in REDUCTIONS else {}
    allowed = {*known, *partial, *(("dtype", "casting") if ours in _CONVERTING else ())}
    unknown = [k for k, v in named.items() if k not in allowed and not _is_default(v, k, defaults)]
    if unknown:
        masked = "where" in unknown and f"write sg.where(mask, {name}(...), other); "
        raise UnsupportedError(
            f"{name} on a symbolic node takes no {', '.join(unknown)}; {masked or ''}"
            f"{_as_written(target)}{signature_text(target)} is what there is"
        )
    try:
        if "dtype" not in known and named.get("dtype") is not None:
            args = _converted(ours, args, named)
        if partial:
            kept = {k: v for k, v in named.items() if k in known and v is not None}
            return reduced(ours, args[0], **{**kept, **partial})
    except SymgradError as error:
        refuse(error, name, args)
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


def _converted(ours: str, args: Any, named: Mapping[str, Any]) -> Any:
    """The operands of a function in the dtype that is asked for, those in lists too."""
    dtype, casting = as_dtype(named["dtype"]), named.get("casting", "same_kind")
    if ours in _AVERAGES and dtype.kind not in "fc":
        raise DtypeError(f"{ours} is a float; write sg.astype({ours}(x), {dtype.name!r})")

    def one(x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return [one(part) for part in x]
        if isinstance(x, str):
            return x
        node = call("asarray", x)
        if ours not in _AVERAGES and not np.can_cast(node.dtype, dtype, casting):
            raise DtypeError(f"{node.dtype} is not cast to {dtype} by casting={casting!r}")
        return call("astype", node, dtype)

    return tuple(map(one, args))


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
        or (name in _PARTIAL and value is _PARTIAL[name])
        or (name == "order" and (value is None or str(value) in ("K", "A", "C", "F")))
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
    if name.startswith("_") and (mend := instead_of_scipys()):
        return UnsupportedError(mend)
    hint = INSTEAD.get(name.removeprefix("np."))
    if hint is None:
        near = nearest(function.__name__, REGISTRY.functions)
        hint = f"near it are {', '.join(map(REGISTRY.qualified_name, near))}; " if near else ""
        hint += "dir(symgrad) lists all that there is"
    return UnsupportedError(f"{name} has no symbolic form; {hint}")

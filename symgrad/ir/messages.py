"""Messages about refused calls: the function, its operands, the user's line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, wraps
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, ParamSpec, TypeVar

import numpy as np

from symgrad.ir.arraylike import ArrayLike, describe, is_function
from symgrad.ir.errors import AllocationError, ArgumentError, SymgradError, short
from symgrad.ir.evaluate import KINDS, SMALLER, said
from symgrad.ir.op import REGISTRY
from symgrad.ir.origin import current_origin, raised_elsewhere

_PLACE = re.compile(r"\n  (built|applied) at ")
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
MOST_SHOWN = 6  # of the elements of a list
# What to write where the arguments do not fit, by function.
HINTS: Mapping[str, str] = MappingProxyType(
    {
        "compile": "first come the placeholders, then what is computed: compile([x], y)(array)",
        "cond": "its functions take nothing, and use the nodes around them: lambda: f(x)",
    }
)
# Words of others for arguments that NumPy has.
WORDS: Mapping[str, str] = MappingProxyType(
    {"axes": "axis", "dim": "axis", "dims": "axis", "keep_dims": "keepdims", "keepdim": "keepdims"}
)


def explained(error: Exception, name: str, operands: Sequence[Any]) -> Exception:
    """The same error with what an inner rule cannot know: the op, the operands, the lines.

    The name is that of the outermost function of symgrad's on the user's line, which is the one
    that the user called. An error of Python's or NumPy's own becomes one of symgrad's; one that
    the user's code raised stays as it is.
    """
    origin = current_origin()
    report = vars(error).get("_report")
    if report is None and _PLACE.search(str(error)):
        return error  # it names a line, as that of a function of the user's own does
    if report is not None and report.frames != origin.frames:
        return error
    if not isinstance(error, SymgradError):
        if raised_elsewhere(error):
            return error
        error = _translated(error)
    types, listed = zip(*map(_shown, operands), strict=True) if operands else ((), ())
    head = f"{name}({', '.join(types)})"
    if report is None:
        report = _Report(str(error), head, origin.frames)
    text = report.text if report.text.startswith(f"{name}(") else f"{head}: {report.text}"
    if isinstance(error, ArgumentError) and name in REGISTRY.functions:
        text += f"; it is {name}{signature_text(REGISTRY.functions[name])}"
    if not report.within.startswith(f"{name}("):
        text += f"\n  in {report.within}"
    text += origin.place()
    if operands:
        text += f"\n  operands: {', '.join(listed)}"
    made = type(error)(text)
    vars(made)["_report"] = report
    for note in getattr(error, "__notes__", ()):
        made.add_note(note)
    return made


def refuse(error: Exception, name: str, operands: Sequence[Any]) -> NoReturn:
    """Raise an error `explained`; of one of Python's or NumPy's own, it is the cause."""
    made = explained(error, name, operands)
    try:
        if made is error:
            raise error
        raise made from (error.__cause__ if isinstance(error, SymgradError) else error)
    finally:
        # Its traceback holds this frame: a frame that held it in turn, and the graph with it, would
        # wait for the collector.
        del error, made


def signature_text(function: Callable[..., Any]) -> str:
    """The parameters of a function as a person would write them: `(x, /, *, axis=None)`."""
    signature = inspect.signature(function)
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(plain))


def check_arguments(
    function: Callable[..., Any], name: str, args: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """Raise a `TypeError` that shows the function's signature if the arguments do not fit it."""
    try:
        inspect.signature(function).bind(*args, **named)
    except TypeError as error:
        raise TypeError(_misfit(function, name, error, args, named)) from None


def telling(function: Callable[P, R]) -> Callable[P, R]:
    """The same function; arguments that do not fit it are answered with what it takes."""

    @wraps(function)
    def called(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except TypeError as error:
            if not isinstance(error, SymgradError):
                check_arguments(function, function.__name__.rstrip("_"), args, named)
            raise

    return called


def telling_methods(of: type[T]) -> type[T]:
    """The same class; arguments that do not fit a method are answered in the same way."""
    for name, method in list(vars(of).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(of, name, telling_method(method, f"x.{name}"))
    return of


def telling_method(method: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """As `telling`, for a method that is called by this name, or by that of its class."""

    @wraps(method)
    def called(self: Any, *args: Any, **named: Any) -> Any:
        try:
            return method(self, *args, **named)
        except TypeError as error:
            if not isinstance(error, SymgradError):
                check_arguments(partial(method, self), name or type(self).__name__, args, named)
            raise

    return called


def _misfit(
    function: Callable[..., Any],
    name: str,
    error: Exception,
    args: Sequence[Any],
    given: Collection[str] = (),
) -> str:
    """The message about arguments that do not fit a function: how to write what was meant.

    `given` are the names of those that were given by name.
    """
    parameters = inspect.signature(function).parameters.values()
    places = [p for p in parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    several = any(p.kind is p.VAR_POSITIONAL for p in places)
    hint = f"; {HINTS[name]}" if name in HINTS and "unexpected" not in str(error) else ""
    if args and is_function(args[0]) and places and places[0].name in ("loss", "output", "outputs"):
        hint = f"; it takes nodes, so call the function: {name}(f(x), x)"
    ours = {p.name for p in parameters}
    for theirs, word in WORDS.items():
        if theirs in given and word in ours:
            hint = f"; NumPy's word for it is {word}"
    if named and not several and len(args) > len(places):
        wanted = [n for n in ("dtype", "key") if n in named] or named
        typed = isinstance(args[-1], (str, np.dtype, type)) and "dtype" in wanted
        meant = wanted[0] if typed else wanted[-1]
        hint = f"; what stands after the * is given by name: {meant}={_shown(args[-1])[0]:.40}"
    return f"{name}: {error}{hint}; it is {name}{signature_text(function)}"


class _Report(NamedTuple):
    """The fault that an explained error reports, the call that found it, and the user's lines."""

    text: str
    within: str
    frames: tuple[Any, ...]


def _translated(error: Exception) -> SymgradError:
    """An error of Python's or NumPy's as one of symgrad's."""
    kind = next((ours for theirs, ours in KINDS if isinstance(error, theirs)), ArgumentError)
    return kind(f"{said(error)}; {SMALLER}" if kind is AllocationError else said(error))


def _shown(operand: Any) -> tuple[str, str]:
    """The type of an operand and its description, in a few words each."""
    if _is_node(operand):
        return repr(operand.type), describe(operand)
    if isinstance(operand, np.ndarray):
        kind = f"{operand.dtype}{list(operand.shape) or '[()]'}"
        return kind, f"array {kind}"
    if isinstance(operand, (list, tuple)) and _holds_node(operand):
        parts = [*map(_shown, operand[:MOST_SHOWN]), *[("…", "…")] * (len(operand) > MOST_SHOWN)]
        types, listed = zip(*parts, strict=True)
        return f"[{', '.join(types)}]", f"[{', '.join(listed)}]"
    text = short(operand)
    return text, text


def _is_node(value: Any) -> bool:
    return isinstance(value, ArrayLike)


def _holds_node(value: Any) -> bool:
    return _is_node(value) or (isinstance(value, (list, tuple)) and any(map(_holds_node, value)))

"""The attributes that an op takes, as its type rule declares them.

    def infer(x: TensorType, *, axis: tuple[int, ...], keepdims: bool) -> TensorType: ...

The keyword-only parameters of `infer` are the attributes of a node, in canonical form, and their
annotations are their types. They are meant strictly: True is no int, 1 is no float. An int fits
64 bits, a dtype is one of symgrad's, a protocol is an object of Python's that has its methods.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

from symgrad.ir.dims import Dim
from symgrad.ir.errors import GraphError, UnsupportedError, short
from symgrad.ir.types import is_clean_dtype
from symgrad.ir.values import ArrayData

Check: TypeAlias = Callable[[Any], bool]

LEAST, MOST = -(2**63), 2**64  # of what counts words of 64 bits, the end of a range included


class Schema(NamedTuple):
    """The attributes that a type rule takes: the check of each, and what the check is for.

    Those with a default are `optional`: a node need not have them.
    """

    checks: Mapping[str, Check]
    hints: Mapping[str, Any]
    optional: frozenset[str] = frozenset()

    def require(self, attrs: Mapping[str, Any]) -> None:
        """Refuse other attributes than these, and values of another type.

        Raises `GraphError` for a name or for what is no code, `UnsupportedError` for a value.
        """
        if attrs.keys() != self.checks.keys() and (
            not attrs.keys() <= self.checks.keys()
            or not self.checks.keys() <= attrs.keys() | self.optional
        ):
            self._refuse_names(attrs)
        for name, value in attrs.items():
            if not self.checks[name](value):
                self._refuse_value(name, value)

    def admitted(self, attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Attributes that a user gave, with NumPy's scalars as Python's; raises as `require`."""
        checks = self.checks
        for name, value in attrs.items():
            if name not in checks or not checks[name](value):
                attrs = {k: plain(v) for k, v in attrs.items()}
                self.require(attrs)
                break
        return attrs

    def _refuse_value(self, name: str, value: Any) -> None:
        hint = self.hints[name]
        if getattr(hint, "_is_protocol", False):
            code = value if value.__class__ is str else short(value)
            raise GraphError(
                f"{code:.60} is a function in Python, which no text and no file holds; "
                "build the graph again with it"
            )
        raise UnsupportedError(f"{name} must be {describe(hint)}, not {short(value)}")

    def _refuse_names(self, attrs: Mapping[str, Any]) -> None:
        more = ", ".join(short(k) for k in attrs if k not in self.checks)
        less = ", ".join(repr(k) for k in self.checks if k not in {*attrs, *self.optional})
        faults = (f"it has no attribute {more}" if more else "", f"it wants {less}" if less else "")
        raise GraphError("; ".join(filter(None, faults)))


@cache
def schema_of(infer: Callable[..., Any]) -> Schema:
    """The attributes of the ops with a type rule. Raises `GraphError` if it does not name them."""
    parameters = inspect.signature(infer).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        raise GraphError(f"{infer.__qualname__} takes any attribute; name them, with their types")
    found = get_type_hints(infer)
    own = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    hints = {p.name: found.get(p.name, Any) for p in own}
    optional = frozenset(p.name for p in own if p.default is not p.empty)
    return Schema({name: _check(hint) for name, hint in hints.items()}, hints, optional)


def _check(hint: Any) -> Check:
    """Whether a value is of a type."""
    parts = get_args(hint)
    origin = get_origin(hint)
    if hint is Any:
        return lambda value: True
    if hint is int:
        return lambda value: value.__class__ is int and LEAST <= value <= MOST
    if hint in (bool, float, str, types.NoneType):
        return lambda value: value.__class__ is hint
    if origin is Literal:
        return lambda value: value.__class__ is str and value in parts
    if origin is np.dtype:
        return is_clean_dtype
    if origin in (Union, types.UnionType):
        inner = tuple(map(_check, parts))
        return lambda value: any(check(value) for check in inner)
    if origin is tuple and parts[1:] == (...,):
        each = _check(parts[0])
        return lambda value: value.__class__ is tuple and all(map(each, value))
    if origin is tuple:
        several = tuple(map(_check, parts))
        return lambda value: (
            value.__class__ is tuple
            and len(value) == len(several)
            and all(check(v) for check, v in zip(several, value, strict=True))
        )
    if not isinstance(hint, type):
        raise GraphError(f"an attribute cannot be declared as {hint}")
    return lambda value: isinstance(value, hint)


def describe(hint: Any) -> str:
    """The type of an attribute in words: `int`, `tuple[int, ...]`, `'left' | 'right'`."""
    parts = get_args(hint)
    match get_origin(hint):
        case None:
            words = {Dim: "a named dimension", types.NoneType: "None", ArrayData: "an array"}
            return words.get(hint, getattr(hint, "__name__", str(hint)))
        case np.dtype:
            return "a dtype"
        case _ if get_origin(hint) is Literal:
            return " | ".join(map(repr, parts))
        case _ if get_origin(hint) is tuple:
            return f"tuple[{', '.join('...' if p is ... else describe(p) for p in parts)}]"
    return " | ".join(map(describe, parts))


def plain(value: Any) -> Any:
    """A NumPy scalar as Python's, which leaves the dtype of an array as it is; in tuples too."""
    if isinstance(value, np.generic):
        return value.item()
    return tuple(map(plain, value)) if value.__class__ is tuple else value

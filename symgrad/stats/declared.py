"""How a law or a transform is declared: a class whose annotations are its parameters."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar, dataclass_transform

from symgrad.ir.messages import check_arguments, refuse

C = TypeVar("C", bound="Declared")


class Declared:
    """An immutable object with the parameters that its class declares.

    Its `__init__` is no generated one, which messages would take for the user's line.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        kind = type(self)
        check_arguments(kind, kind.__name__, args, options)
        bound = inspect.signature(kind).bind(*args, **options)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            object.__setattr__(self, name, value)
        try:
            self.check()
        except Exception as error:
            refuse(error, kind.__name__, args)

    def check(self) -> None:
        """Refuse parameters that make no sense, and make nodes of those that are arrays."""


@dataclass_transform(frozen_default=True, eq_default=False)
def declared(kind: type[C]) -> type[C]:
    """A frozen class with the annotated parameters, in their order, equal to itself alone."""
    made = dataclass(frozen=True, eq=False, init=False)(kind)
    parameters = [
        inspect.Parameter(
            f.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if f.default is MISSING else f.default,
        )
        for f in fields(made)  # type: ignore[arg-type]
    ]
    made.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return made

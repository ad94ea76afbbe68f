"""One use of a user's own function: what it was given, and how its bodies are run and checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symgrad.ir.errors import (
    DtypeError,
    GradientError,
    ShapeError,
    SymbolicError,
    SymgradError,
    UnsupportedError,
    counted,
)
from symgrad.ir.node import Node, as_node, constant_node
from symgrad.ir.origin import Origin, current_origin
from symgrad.ir.types import TensorType
from symgrad.ir.values import ArrayData
from symgrad.ops.shape import astype

ADVICE = (
    "the bodies of a Function are run once, on nodes, which have no values; write them with sg's "
    "functions (sg.where(x > 0, g, 0)), or derive from sg.NumpyFunction for bodies over real arrays"
)


@dataclass(frozen=True)
class Tensor:
    """Stands for an argument that is a tensor."""

    number: int


@dataclass(frozen=True, eq=False)
class CustomCall:
    """One call of a user's differentiable function: its context, its arguments and its place.

    `args` has a `Tensor` in the place of every node or array; `operands` are these, as nodes.
    """

    ctx: Any
    args: tuple[Any, ...]
    operands: tuple[Node, ...]
    origin: Origin

    @classmethod
    def of(cls, ctx: Any, args: Sequence[Any]) -> CustomCall:
        """The call of a function at the user's line."""
        tensors = [as_node(a) for a in args if isinstance(a, (Node, np.ndarray))]
        for x in tensors:
            x.tensor  # noqa: B018  refuses a node with several results
        numbers = iter(range(len(tensors)))
        placed = (Tensor(next(numbers)) if isinstance(a, (Node, np.ndarray)) else a for a in args)
        return cls(ctx, tuple(placed), tuple(tensors), current_origin())

    @property
    def name(self) -> str:
        """The name of the class."""
        return type(self.ctx).__name__

    @property
    def place(self) -> str:
        """The user's line, as a line of a message."""
        return self.origin.place("applied")

    @property
    def needs_grad(self) -> tuple[bool, ...]:
        """Which arguments a gradient flows to: the float tensors."""
        return tuple(
            isinstance(a, Tensor) and self.operands[a.number].tensor.is_inexact for a in self.args
        )

    def filled(self, tensors: Sequence[Any]) -> list[Any]:
        """The arguments, with these tensors in their places."""
        return [tensors[a.number] if isinstance(a, Tensor) else a for a in self.args]

    def names(self) -> list[str]:
        """The tensors, by the names that `forward` gives them."""
        return [self._argument(i) for i, a in enumerate(self.args) if isinstance(a, Tensor)]

    def _argument(self, i: int) -> str:
        cls = type(self.ctx)
        body = getattr(cls, "forward", None) or getattr(cls, "forward_out", None)
        given = list(inspect.signature(body).parameters.values())[1:] if body else []
        named = i < len(given) and given[i].kind is not given[i].VAR_POSITIONAL
        return given[i].name if named else f"argument {i + 1}"

    # ---- running ----------------------------------------------------------------------------

    def method(self, name: str) -> Callable[..., Any]:
        """A method, as a function of the context and the rest."""
        found: Callable[..., Any] | None = getattr(type(self.ctx), name, None)
        if found is None:
            raise self.error(name, f"it is missing; define {name}(ctx, …)")
        return found

    def error(
        self, method: str, text: str, kind: type[SymgradError] = GradientError
    ) -> SymgradError:
        """An error that names the class, the method and the user's line."""
        return kind(f"{self.name}.{method}: {text}{self.place}")

    def run(self, ctx: Any, method: str, *args: Any) -> Any:
        """A body, run on nodes. One that asks a node for its value is told to take arrays."""
        body = self.method(method)
        try:
            return body(ctx, *args)
        except Exception as error:
            if _wants_arrays(error):
                raise self.error(method, f"{error};\n  {ADVICE}", UnsupportedError) from error
            if isinstance(error, SymgradError) and "\n" not in str(error):
                raise self.error(method, str(error), type(error)) from None
            error.add_note(f"in {self.name}.{method}{self.place}")
            raise

    # ---- checking ---------------------------------------------------------------------------

    def results(self, found: Any) -> tuple[list[Any], bool]:
        """The results of forward as a list, and whether it returned several."""
        if isinstance(found, Node) and isinstance(found.type, tuple):
            found = tuple(found)
        several = isinstance(found, (tuple, list))
        results = list(found) if several else [found]
        for y in results:
            if not _is_number(y) and not isinstance(y, (Node, np.ndarray, np.generic)):
                raise self.error("forward", f"it returned {_said(y)}, and a tensor is wanted")
        if not results:
            raise self.error("forward", "it returned nothing; return a tensor, or several")
        return results, several

    def gradients(self, found: Any, method: str = "backward") -> list[Any]:
        """The gradient that backward returned for each tensor; None where nothing flows."""
        given = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(given) != len(self.args):
            raise self.error(
                method,
                f"it returned {counted(len(given), 'gradient')}, and forward was given "
                f"{counted(len(self.args), 'argument')}; return one for each, "
                "None where none flows",
            )
        grads: list[Any] = [None] * len(self.operands)
        for i, (g, arg) in enumerate(zip(given, self.args, strict=True)):
            if g is not None and not self.needs_grad[i]:
                what = (
                    repr(self.operands[arg.number].type) if isinstance(arg, Tensor) else _said(arg)
                )
                raise self.error(
                    method,
                    f"{self._argument(i)!r} is {what}, which has no gradient; return None for it",
                )
            if isinstance(arg, Tensor):
                grads[arg.number] = g
        return grads

    def fitted(self, method: str, value: Any, wanted: TensorType, what: str) -> Node:
        """A node of the type that is wanted; only casts that lose nothing are made."""
        if _is_number(value):
            node = constant_node(ArrayData(value, wanted.dtype))
        elif isinstance(value, (Node, np.ndarray, np.generic)):
            node = as_node(value)
        else:
            raise self.error(method, f"{what} is {_said(value)}, and a tensor is wanted")
        self.check(method, node.tensor, wanted, what, f"sg.astype(x, {wanted.dtype.name!r})")
        return astype(node, wanted.dtype)

    def check(
        self,
        method: str,
        found: TensorType,
        wanted: TensorType,
        what: str,
        cast: str,
        kind: type[SymgradError] | None = None,
    ) -> None:
        """Refuse another shape, and a dtype that cannot be cast without loss."""
        text = f"{what} is {found!r}, and {wanted!r} is wanted"
        if found.shape != wanted.shape:
            summed = "; sum it over the axes that were broadcast" * (found.ndim > wanted.ndim)
            raise self.error(method, text + summed, kind or ShapeError)
        if not np.can_cast(found.dtype, wanted.dtype, "safe"):
            raise self.error(method, f"{text}; convert it: {cast}", kind or DtypeError)


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


def _wants_arrays(error: Exception) -> bool:
    """Whether a body failed because it took a node for an array."""
    text = str(error)
    if ADVICE in text:
        return False
    if isinstance(error, (SymbolicError, UnsupportedError)):
        return True
    plain = isinstance(error, (AttributeError, TypeError))
    return plain and ("a node has no attribute" in text or "'Node' object" in text)


def _said(value: Any) -> str:
    return "None" if value is None else f"{type(value).__name__} {str(value)[:60]!r}"

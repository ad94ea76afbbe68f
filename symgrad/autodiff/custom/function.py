"""A user's own differentiable functions: a forward and a backward, of nodes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, ClassVar

from symgrad.autodiff.custom.call import CustomCall
from symgrad.autodiff.custom.traced import trace
from symgrad.ir.errors import GradientError, UnsupportedError


class SavesTensors:
    """The values that a `forward` keeps for its `backward`: of functions, and of modules."""

    _saved: tuple[Any, ...] | None = None

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep what `forward` has computed for `backward`."""
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The values given to `save_for_backward`. Raises `GradientError` if it was not called."""
        if self._saved is None:
            raise GradientError("nothing was saved; call save_for_backward(x, …) in forward")
        return self._saved


class Function(SavesTensors):
    """A differentiable function of your own: derive from it, and define `forward` and `backward`.

    Static methods `forward(ctx, x, …)` and `backward(ctx, grad_output, …)`, called by
    `MyReLU.apply(x)`; or methods `forward(self, x, …)` and `backward(self, grad_output, …)`, called
    by `relu = MyReLU()`, `relu(x)`. Every call has its own `ctx`, in the second form a copy of the
    instance.

    `forward` returns a node or a tuple of nodes. `backward` is given a cotangent for each, of its
    shape and dtype (zeros where nothing flows), and returns a gradient for each argument of
    `forward`, of its shape and dtype: None where none flows, and for what is neither node nor
    array. Nothing flows to what `forward` takes from elsewhere. An optional `jvp(ctx, *tangents)`
    gives the tangents of the results; without it forward mode is the transpose of `backward`.

    The bodies are run when the graph is built, on nodes: the compiler optimises what they build
    with the rest, and derivatives of any order go through it. See `NumpyFunction` for bodies over
    arrays. What a body gets wrong is a `GradientError`, `ShapeError`, `DtypeError` or
    `UnsupportedError` that names the class, the method and the line where it was applied.

    >>> class MyReLU(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return maximum(x, 0)
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (x,) = ctx.saved_tensors
    ...         return grad_output * (x > 0)
    >>> MyReLU.apply(placeholder("x", 3)).type
    float64[3]
    """

    forward: ClassVar[Callable[..., Any]]
    backward: ClassVar[Callable[..., Any]]

    needs_input_grad: tuple[bool, ...] = ()
    """Which arguments of `forward` a gradient can flow to: the float tensors."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """The function of nodes, arrays (taken as constants) and whatever else `forward` takes."""
        static = isinstance(inspect.getattr_static(cls, "forward", None), staticmethod)
        if cls.__init__ is not object.__init__ and not static:
            raise UnsupportedError(
                f"{cls.__name__} has an __init__: make an instance and call it, "
                f"f = {cls.__name__}(…) and f(x), or make forward and backward static methods"
            )
        return cls._build(cls.__new__(cls), args)

    def __call__(self, *args: Any) -> Any:
        """The same as `apply`, for methods that know the instance."""
        return self._build(copy(self), args)

    @classmethod
    def _build(cls, ctx: Any, args: Sequence[Any]) -> Any:
        return trace(CustomCall.of(ctx, args))

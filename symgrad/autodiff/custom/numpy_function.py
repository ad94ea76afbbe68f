"""A user's own differentiable functions over real arrays: opaque to the compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from symgrad.autodiff.custom.arrays import Backward, Forward, Place
from symgrad.autodiff.custom.call import CustomCall
from symgrad.autodiff.custom.function import Function
from symgrad.autodiff.custom.traced import PerElement
from symgrad.ir.node import Node
from symgrad.ir.op import Cotangent
from symgrad.ir.origin import Maker, built_as
from symgrad.ops.identity import custom, results_of
from symgrad.ops.leaves import zeros_like
from symgrad.ops.opaque import Body, opaque


class NumpyFunction(Function):
    """A `Function` whose bodies work on real arrays, and run as they are when a program runs.

    `forward(ctx, x, …)` and `backward(ctx, grad_output, …)` are given NumPy arrays, the arguments
    read-only; write into copies: `grad = grad_output.copy(); grad[x < 0] = 0`. What `ctx` keeps of
    a forward (saved tensors, attributes) reaches its backward, and nothing else does. What its
    first run writes into what its uses share (an array, a container or an object that the instance
    had before, an attribute of the class) is put back, and refused; objects of other packages are
    not looked into. A global variable cannot be seen: where nothing is kept, `backward` runs after
    its `forward`, but two uses at once and the rows of a `vmap` share the variable, and what is
    last written wins. Attributes that are no arrays must be the same in every run.

    Which types `forward` returns is tried out once, on arrays of ones, when the graph is built. Or
    a method `output_types(x, …)` states them (a `TensorType` or several), given the types of the
    tensors: needed for named dimensions. Then nothing is tried out, and only arguments and results
    can be saved.

    `forward_out(ctx, x, …, out=…)`, if there is one, runs instead of `forward`, and writes into the
    array that it is given. `batched_forward` and `batched_backward` are for arrays that all have a
    leading batch axis (for jacobians); without them rows are done one by one.

    There are no higher derivatives and no forward mode: `GradientError`. A body that fails, or
    returns something else than it should, is a `KernelError` that names the class, the method and
    the line where it was applied.

    >>> class Clamp(NumpyFunction):
    ...     def forward(self, x):
    ...         self.save_for_backward(x)
    ...         return np.maximum(x, 0)
    ...     def backward(self, grad_output):
    ...         grad = grad_output.copy()
    ...         grad[self.saved_tensors[0] < 0] = 0
    ...         return grad
    >>> Clamp()(placeholder("x", 3)).type
    float64[3]
    """

    output_types: ClassVar[Callable[..., Any]]

    @classmethod
    def _build(cls, ctx: Any, args: Sequence[Any]) -> Any:
        call = CustomCall.of(ctx, args)
        if not call.operands:
            raise call.error("forward", "it was given no node, and runs for its arguments' values")
        ctx.needs_input_grad = call.needs_grad
        if not hasattr(cls, "forward_out"):
            call.method("forward")
        place = Place(call)
        types, several = place.stated() if hasattr(cls, "output_types") else place.tried()
        place.types = types
        found = results_of(
            opaque(
                call.operands,
                Forward(place),
                types + place.extra_types(),
                in_place=hasattr(cls, "forward_out"),
            )
        )
        results, extras = found[: len(types)], found[len(types) :]
        with built_as(call.origin):
            made = results_of(custom(results, (*call.operands, *extras), _Rule(place)))
        return tuple(made) if several else made[0]


@dataclass(frozen=True, eq=False)
class _Rule(PerElement):
    """The rule of a function over arrays; see `CustomRule`."""

    place: Place

    def __repr__(self) -> str:
        return repr(self.place.call.name)

    def vjp(self, flows: tuple[Cotangent, ...], y: Node) -> Sequence[Cotangent]:
        """A node that runs the body of backward."""
        place, ys = self.place, results_of(y)
        place.call.method("backward")
        count = len(place.call.operands)
        inputs, extras = y.inputs[len(ys) :][:count], y.inputs[len(ys) + count :]
        there = {"input": inputs, "output": ys, "extra": extras}
        wanted = [i for i, x in enumerate(inputs) if x.tensor.is_inexact]
        if not wanted:
            return [None] * (len(y.inputs) - len(ys))
        sources = place.sources()
        given = [there[a.source][a.number] for a in sources]
        with built_as(y.origin.then(Maker("vjp", place.call.name))):
            seeds = [zeros_like(r) if f is None else f for f, r in zip(flows, ys, strict=True)]
            body = Backward(place, tuple(sources), tuple(wanted))
            types = [inputs[i].tensor for i in wanted]
            made = results_of(opaque([*given, *seeds], body, types))
            # Whatever backward reads, and wherever it has that from, its gradients depend on all
            # that forward was given.
            grads = results_of(custom(made, [*inputs, *seeds], _Refused(body)))
        found: list[Cotangent] = [None] * (len(y.inputs) - len(ys))
        for i, g in zip(wanted, grads, strict=True):
            found[i] = g
        return found

    def jvp(self, tangents: tuple[Cotangent, ...], y: Node) -> Sequence[Cotangent]:
        """Refused."""
        Forward(self.place).no_derivative()


@dataclass(frozen=True, eq=False)
class _Refused(PerElement):
    """The rule of what a body made that cannot be differentiated; see `CustomRule`."""

    body: Body

    def __repr__(self) -> str:
        return repr(self.body)

    def vjp(self, flows: tuple[Cotangent, ...], y: Node) -> Sequence[Cotangent]:
        """Refused."""
        self.body.no_derivative()

    def jvp(self, tangents: tuple[Cotangent, ...], y: Node) -> Sequence[Cotangent]:
        """Refused."""
        self.body.no_derivative()

"""A user's own differentiable functions, written with nodes: a forward and a backward.

The bodies are run once, when the graph is built, on stand-ins for the arguments; what they build is
copied over the arguments themselves, and so is part of the graph like anything else. That a
cotangent times a 0/1 mask is a selection holds in a backward body too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from symgrad.autodiff.batching import batched
from symgrad.autodiff.reverse import pull_back
from symgrad.ir.errors import (
    DtypeError,
    GradientError,
    ShapeError,
    SymbolicError,
    SymgradError,
    UnsupportedError,
)
from symgrad.ir.node import Node, apply, as_node, constant_node, constant_value, describe
from symgrad.ir.op import Cotangent
from symgrad.ir.origin import Origin, built_as, current_origin, scope
from symgrad.ir.types import TensorType
from symgrad.ir.values import ArrayData
from symgrad.ir.walk import topological
from symgrad.ops.batch import batch_size, of_all
from symgrad.ops.declare import Choice
from symgrad.ops.identity import CustomRule, custom, results_of
from symgrad.ops.leaves import placeholder, zeros_like
from symgrad.ops.select import select
from symgrad.ops.shape import astype

ADVICE = (
    "the bodies of a Function are run once on nodes, which have no values; write them with sg's "
    "functions (sg.where(x > 0, g, 0)), or derive from sg.NumpyFunction for bodies over real arrays"
)


class Function:
    """A differentiable function of your own: derive from it, and define `forward` and `backward`.

    Static methods `forward(ctx, x, …)` and `backward(ctx, grad_output, …)`, called by
    `MyReLU.apply(x)`; or methods `forward(self, x, …)` and `backward(self, grad_output, …)`, called
    by `relu = MyReLU()`, `relu(x)`. Every call has its own `ctx`, in the second form a copy of the
    instance.

    `forward` returns a node or a tuple of nodes. `backward` is given a cotangent for each, of its
    shape and dtype (zeros where nothing flows), and returns a gradient for each argument of
    `forward`, of its shape and dtype; None where none flows, and for arguments that are neither
    nodes nor arrays. An optional `jvp(ctx, *tangents)` gives the tangents of the results; without
    it forward mode is the transpose of `backward`.

    Both are made of nodes, so that the compiler optimises them with the rest, and derivatives of
    any order go through them. See `NumpyFunction` for bodies over arrays.

    Raises `GradientError`, `ShapeError`, `DtypeError` or `UnsupportedError`, which name the class,
    the method and the line it was applied at.

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
    _saved: tuple[Any, ...] | None = None

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
        """The same as `apply`, with methods that know the instance."""
        return self._build(copy(self), args)

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep nodes (or arrays) of `forward` for `backward`."""
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` was given. Raises `GradientError` if it was not called."""
        if self._saved is None:
            raise GradientError("nothing was saved: call save_for_backward(x, …) in forward")
        return self._saved

    @classmethod
    def _build(cls, ctx: Function, args: Sequence[Any]) -> Any:
        return _trace(Use(ctx, current_origin(), *_operands(args)))


# ---- one use of a function ------------------------------------------------------------------


def _operands(args: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Node, ...]]:
    """The arguments, each tensor replaced by its number, and the tensors as nodes."""
    tensors = [as_node(a) for a in args if _is_tensor(a)]
    numbers = iter(range(len(tensors)))
    return tuple(Tensor(next(numbers)) if _is_tensor(a) else a for a in args), tuple(tensors)


def _is_tensor(arg: Any) -> bool:
    return isinstance(arg, (Node, np.ndarray))


@dataclass(frozen=True)
class Tensor:
    """Stands for an argument that is a tensor."""

    number: int


@dataclass(frozen=True, eq=False)
class Use:
    """One use of a function: its context, where it stands, and what it was given."""

    ctx: Function
    origin: Origin
    args: tuple[Any, ...]
    operands: tuple[Node, ...]

    @property
    def name(self) -> str:
        """The name of the class."""
        return type(self.ctx).__name__

    def filled(self, tensors: Sequence[Any]) -> list[Any]:
        """The arguments, with these tensors in their places."""
        return [tensors[a.number] if isinstance(a, Tensor) else a for a in self.args]

    def argument(self, i: int) -> str:
        """An argument by the name that `forward` gives it."""
        names = list(inspect.signature(self.method("forward")).parameters.values())[1:]
        plain = i < len(names) and names[i].kind is not names[i].VAR_POSITIONAL
        return f"{names[i].name!r}" if plain else f"argument {i + 1}"

    def method(self, name: str) -> Callable[..., Any]:
        """A method as a function of the context and the rest."""
        found: Callable[..., Any] | None = getattr(type(self.ctx), name, None)
        if found is None:
            raise self.error(name, f"it is missing; define {name}(ctx, …)")
        return found

    def error(
        self, method: str, text: str, kind: type[SymgradError] = GradientError
    ) -> SymgradError:
        """An error that names the class, the method and the user's line."""
        return kind(f"{self.name}.{method}: {text}{self.place}")

    @property
    def place(self) -> str:
        """The user's line, as a line of a message."""
        return "".join(f"\n  applied at {p}: {p.text}" for p in self.origin.locations[:1])

    def run(self, ctx: Function, method: str, *args: Any) -> Any:
        """A body, run on nodes. What asks a node for its value is told to be a `NumpyFunction`."""
        body = self.method(method)
        try:
            return body(ctx, *args)
        except (SymbolicError, UnsupportedError, AttributeError, TypeError) as error:
            if not _wants_arrays(error):
                error.add_note(f"in {self.name}.{method}{self.place}")
                raise
            raise self.error(method, f"{error};\n  {ADVICE}", UnsupportedError) from error
        except Exception as error:
            error.add_note(f"in {self.name}.{method}{self.place}")
            raise

    def results(self, found: Any) -> tuple[list[Any], bool]:
        """What forward returned as a list, and whether it was several."""
        if isinstance(found, Node) and isinstance(found.type, tuple):
            found = tuple(found)
        several = isinstance(found, (tuple, list))
        results = list(found) if several else [found]
        for y in results:
            if not isinstance(y, (Node, np.ndarray, np.generic, bool, int, float, complex)):
                raise self.error("forward", f"it returned {_said(y)}, and a tensor is wanted")
        if not results:
            raise self.error("forward", "it returned nothing; return a tensor, or several")
        return results, several

    def gradients(self, found: Any, types: Sequence[TensorType]) -> list[Any]:
        """What backward returned for each tensor; None where nothing flows."""
        given = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(given) != len(self.args):
            raise self.error(
                "backward",
                f"it returned {len(given)} gradients, and forward has {len(self.args)} arguments; "
                "return one for each, None where none flows",
            )
        grads: list[Any] = [None] * len(types)
        for i, (g, arg) in enumerate(zip(given, self.args, strict=True)):
            if g is None:
                continue
            if not isinstance(arg, Tensor):
                raise self.error(
                    "backward", f"{self.argument(i)} is no tensor; return None for its gradient"
                )
            if not types[arg.number].is_float:
                raise self.error(
                    "backward",
                    f"{self.argument(i)} is {types[arg.number]!r}, no float; "
                    "return None for its gradient",
                )
            grads[arg.number] = g
        return grads

    def fitted(self, method: str, value: Any, wanted: TensorType, what: str) -> Node:
        """A node of the type that is wanted; only casts that lose nothing are made."""
        if isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
            node = constant_node(ArrayData(value, wanted.dtype))
        elif isinstance(value, (Node, np.ndarray, np.generic)):
            node = as_node(value)
        else:
            raise self.error(method, f"{what} is {_said(value)}, and a tensor is wanted")
        if node.type != wanted:
            self.check(method, node.tensor, wanted, what)
        return astype(node, wanted.dtype)

    def check(
        self,
        method: str,
        found: TensorType,
        wanted: TensorType,
        what: str,
        kind: type[SymgradError] | None = None,
    ) -> None:
        """Refuse another shape, and a dtype that cannot be cast without loss."""
        if found.shape != wanted.shape:
            mend = "; sum it over the axes that were broadcast" * (found.ndim > wanted.ndim)
            text = f"{what} is {found!r}, and {wanted!r} is wanted{mend}"
            raise self.error(method, text, kind or ShapeError)
        if not np.can_cast(found.dtype, wanted.dtype, "safe"):
            text = f"{what} is {found!r}, and {wanted!r} is wanted; convert it: "
            call = (
                f"x.astype({wanted.dtype.name!r})"
                if kind
                else f"sg.astype(x, {wanted.dtype.name!r})"
            )
            raise self.error(method, text + call, kind or DtypeError)


def _wants_arrays(error: Exception) -> bool:
    text = str(error)
    if ADVICE in text:
        return False
    is_ours = isinstance(error, (SymbolicError, UnsupportedError))
    return is_ours or "a node has no attribute" in text or "'Node' object" in text


def _said(value: Any) -> str:
    return "None" if value is None else f"{type(value).__name__} {str(value)[:60]!r}"


# ---- tracing --------------------------------------------------------------------------------


def _trace(use: Use) -> Any:
    """The results of forward over the operands, which know how they are differentiated."""
    ctx = use.ctx
    ctx.needs_input_grad = tuple(
        isinstance(a, Tensor) and use.operands[a.number].tensor.is_float for a in use.args
    )
    standins = _standins(use)
    with scope(use.name):
        found, several = use.results(use.run(ctx, "forward", *use.filled(standins)))
    results = [as_node(y) for y in found]
    known = {*results, *standins}
    kept = [n for n in _nodes_on(ctx) if n not in known]
    rule = Traced(use, (*results, *standins, *dict.fromkeys(kept)))
    actual = replaced(rule.template, dict(zip(standins, use.operands, strict=True)))
    count = len(results)
    with built_as(use.origin):
        made = results_of(custom(actual[:count], actual[count:], rule))
    return tuple(made) if several else made[0]


def _standins(use: Use) -> list[Node]:
    """A placeholder for each operand, so that no body can take a present value for a constant."""
    numbers = [i for i, a in enumerate(use.args) if isinstance(a, Tensor)]
    return [
        x if constant_value(x) is not None else placeholder(use.argument(i), x.shape, x.dtype)
        for i, x in zip(numbers, use.operands, strict=True)
    ]


def _nodes_on(ctx: Function) -> Iterable[Node]:
    """The nodes that a context has kept, saved or as attributes."""
    for value in vars(ctx).values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, Node) and item.inputs:
                yield item


@dataclass(frozen=True, eq=False)
class Traced:
    """The rule of a function of nodes.

    `template` is what forward built on the stand-ins: its results, the stand-ins, what it kept.
    """

    use: Use
    template: tuple[Node, ...]

    def __repr__(self) -> str:
        return repr(self.use.name)

    def vjp(self, flows: tuple[Cotangent, ...], y: Node, kinks: Choice) -> Sequence[Cotangent]:
        """The body of backward, on cotangents; see `CustomRule`."""
        ys = results_of(y)
        with built_as(y.origin.then(f"vjp({self.use.name})")):
            seeds, grads = self._backward(ys)
            given = [zeros_like(r) if f is None else f for f, r in zip(flows, ys, strict=True)]
            becomes = self._actual(y) | dict(zip(seeds, given, strict=True))
            found = iter(replaced([g for g in grads if g is not None], becomes, seeds))
        cotangents = [None if g is None else next(found) for g in grads]
        return cotangents + [None] * (len(y.inputs) - len(ys) - len(grads))

    def jvp(self, tangents: tuple[Cotangent, ...], y: Node, kinks: Any) -> Sequence[Cotangent]:
        """The body of `jvp`, or the transpose of backward, which is linear; see `CustomRule`."""
        ys = results_of(y)
        given = tangents[len(ys) : len(ys) + len(self.use.operands)]
        with built_as(y.origin.then(f"jvp({self.use.name})")):
            if hasattr(type(self.use.ctx), "jvp"):
                return self._own_jvp(given, y)
            seeds, grads = self._backward(ys)
            pairs = [
                (g, t) for g, t in zip(grads, given, strict=True) if g is not None and t is not None
            ]
            rows = replaced([g for g, _ in pairs], self._actual(y), seeds)
            flows = pull_back(rows, [t for _, t in pairs], seeds, kinks.policy)
            if not {*seeds}.isdisjoint(topological(flows.values())):
                raise self.use.error(
                    "backward",
                    "forward mode transposes it, and it is not linear in grad_output; "
                    "define jvp(ctx, *tangents)",
                )
            return [flows.get(s) for s in seeds]

    def batch(self, inputs: Sequence[Node], flags: Sequence[bool], y: Node) -> Node:
        """See `CustomRule`."""
        return batched_custom(self, inputs, flags, y)

    def _actual(self, y: Node) -> dict[Node, Node]:
        """What stands for the nodes of the template. For a result, what others see of it."""
        ys = results_of(y)
        return dict(zip(self.template, (*ys, *y.inputs[len(ys) :]), strict=True))

    def _backward(self, ys: Sequence[Node]) -> tuple[list[Node], list[Node | None]]:
        """Stand-ins for the cotangents, and the gradients that backward builds of them."""
        use, count = self.use, len(ys)
        seeds = [placeholder("grad_output", t.shape, t.dtype) for t in self.template[:count]]
        standins = self.template[count : count + len(use.operands)]
        types = [x.tensor for x in standins]
        found = use.gradients(use.run(copy(use.ctx), "backward", *seeds), types)
        names = dict(
            zip((a.number for a in use.args if isinstance(a, Tensor)), self._names(), strict=True)
        )
        grads = [
            None if g is None else use.fitted("backward", g, t, f"the gradient of {names[i]}")
            for i, (g, t) in enumerate(zip(found, types, strict=True))
        ]
        return seeds, grads

    def _names(self) -> list[str]:
        return [self.use.argument(i) for i, a in enumerate(self.use.args) if isinstance(a, Tensor)]

    def _own_jvp(self, tangents: Sequence[Cotangent], y: Node) -> Sequence[Cotangent]:
        use, ys = self.use, results_of(y)
        flows = [
            (zeros_like(x) if t is None else t) if x.tensor.is_float else None
            for x, t in zip(use.operands, tangents, strict=True)
        ]
        seeds = [None if t is None else placeholder("tangent", t.shape, t.dtype) for t in flows]
        given = [seeds[a.number] if isinstance(a, Tensor) else None for a in use.args]
        made = use.run(copy(use.ctx), "jvp", *given)
        several = list(made) if isinstance(made, (tuple, list)) else [made]
        if len(several) != len(ys):
            raise use.error("jvp", f"it returned {len(several)} tangents for {len(ys)} results")
        rows = [
            None if t is None else use.fitted("jvp", t, r.tensor, f"the tangent of result {i + 1}")
            for i, (t, r) in enumerate(zip(several, ys, strict=True))
        ]
        pairs = {s: t for s, t in zip(seeds, flows, strict=True) if s is not None and t is not None}
        found = iter(replaced([t for t in rows if t is not None], self._actual(y) | pairs, pairs))
        return [None if t is None else next(found) for t in rows]


def replaced(
    ys: Sequence[Node], becomes: Mapping[Node, Node], flows: Iterable[Node] = ()
) -> list[Node]:
    """`ys` with other nodes of the same types in the places of some; the rest is shared.

    `flows` are cotangents: a product of what depends on them with a 0/1 mask is a selection.
    """
    done = dict(becomes)
    carried = set(flows)
    for node in topological(ys, known=done):
        inputs = tuple(done.get(x, x) for x in node.inputs)
        if any(x in carried for x in node.inputs):
            carried.add(node)
            mask, flow = _masked(node, inputs, carried)
            if mask is not None:
                done[node] = select(mask, flow)
                continue
        if any(a is not b for a, b in zip(inputs, node.inputs, strict=True)):
            done[node] = Node(node.op, inputs, node.attrs, node.type, node.origin)
    return [done.get(y, y) for y in ys]


def _masked(node: Node, inputs: Sequence[Node], carried: set[Node]) -> tuple[Node | None, Any]:
    """The mask and the cotangent of which a node is the product, if it is one."""
    if node.op.name == "multiply":
        for i in (0, 1):
            if node.inputs[i] in carried and node.inputs[1 - i] not in carried:
                return _mask(inputs[1 - i]), inputs[i]
    return None, None


def _mask(factor: Node) -> Node | None:
    """The boolean node of which a factor is the 0/1 form, maybe seen through views."""
    views = []
    while factor.op.view:
        views.append(factor)
        factor = factor.inputs[0]
    if factor.op.name != "astype" or factor.inputs[0].dtype.kind != "b":
        return None
    mask = factor.inputs[0]
    for view in reversed(views):
        mask = apply(view.op, [mask], dict(view.attrs))
    return mask


# ---- on a batch -----------------------------------------------------------------------------


def batched_custom(
    rule: CustomRule, inputs: Sequence[Node], flags: Sequence[bool], y: Node
) -> Node:
    """The custom node `y` on a batch, whose rule is `rule` for each element."""
    many, count = of_all(inputs, flags), len(results_of(y))
    return custom(many[:count], many[count:], Batched(rule, y, batch_size(inputs, flags)))


@dataclass(frozen=True, eq=False)
class Batched:
    """The rule of the custom node `one` on a batch: what it does for one element, done for all."""

    rule: CustomRule
    one: Node
    size: Any

    def __repr__(self) -> str:
        return repr(self.rule)

    def vjp(self, flows: tuple[Cotangent, ...], y: Node, kinks: Choice) -> Sequence[Cotangent]:
        """See `CustomRule`."""
        return self._of_all(self.rule.vjp, flows, results_of(self.one), y, kinks)

    def jvp(self, tangents: tuple[Cotangent, ...], y: Node, kinks: Choice) -> Sequence[Cotangent]:
        """See `CustomRule`."""
        return self._of_all(self.rule.jvp, tangents, self.one.inputs, y, kinks)

    def batch(self, inputs: Sequence[Node], flags: Sequence[bool], y: Node) -> Node:
        """See `CustomRule`."""
        return batched_custom(self, inputs, flags, y)

    def _of_all(
        self,
        derive: Callable[..., Sequence[Cotangent]],
        flows: Sequence[Cotangent],
        like: Sequence[Node],
        y: Node,
        kinks: Choice,
    ) -> Sequence[Cotangent]:
        single = [placeholder(describe(x), x.shape, x.dtype) for x in self.one.inputs]
        one = Node(self.one.op, tuple(single), self.one.attrs, self.one.type, self.one.origin)
        seeds = [
            None if f is None else placeholder("flow", x.shape, x.dtype)
            for f, x in zip(flows, like, strict=True)
        ]
        given = dict(zip(single, y.inputs, strict=True)) | {one: y}
        given |= {
            s: f for s, f in zip(seeds, flows, strict=True) if s is not None and f is not None
        }
        found = derive(tuple(seeds), one, kinks)
        rows = iter(batched([g for g in found if g is not None], given, self.size))
        return [None if g is None else next(rows) for g in found]

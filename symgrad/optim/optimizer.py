"""The base of all optimisers: parameters, their state, and the updates that are compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeAlias, TypedDict
from warnings import warn

import numpy as np

from symgrad.autodiff.transforms import grad
from symgrad.ir.arraylike import is_function
from symgrad.ir.errors import GradientError, ShapeError, SymbolicError, UnsupportedError
from symgrad.ir.errors import listed as shown
from symgrad.ir.messages import telling_method
from symgrad.ir.node import Node, Variable, as_node, describe
from symgrad.ir.origin import scope
from symgrad.nn.module import Module
from symgrad.nn.updates import carried, left_behind
from symgrad.ops.leaves import placeholder, variable
from symgrad.ops.shape import astype
from symgrad.optim.checks import listed, number, rate
from symgrad.optim.clipping import clip_by_norm, clip_by_value

Rate: TypeAlias = Any
Schedule: TypeAlias = Callable[[Node], Any]
_COMPILED = "write sg.compile(inputs, loss, updates=optimizer.updates(loss)), and call that"
_KEPT = "its state is in optimizer.variables, for sg.save_state and sg.load_state"
# What optimisers of others have, and what to write.
ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "apply_gradients": _COMPILED,
        "init": "its state is there from the start: optimizer.variables",
        "load_state_dict": _KEPT,
        "minimize": _COMPILED,
        "state_dict": _KEPT,
        "step": _COMPILED,
        "update": _COMPILED,
        "zero_grad": "nothing is added up: gradients are nodes of the graph",
    }
)


class Limits(TypedDict, total=False):
    """The options that all optimisers take; see `Optimizer`."""

    clip_norm: float | None
    clip_value: float | None
    name: str | None


class Optimizer:
    """Turns a loss into next values of parameters: `compile(…, updates=optimizer.updates(loss))`.

    `parameters` are a module, or variables. Either way the updates have the next values of what
    else changes in a step of training too: the running means of `BatchNorm`, the key of `Dropout`.
    Of a module there is a warning if they stay as they are, since it was called after `eval()`.
    `lr` is a number, a scalar node (a variable that you set, a placeholder that you feed), or a
    schedule: a function of the number of the step. `clip_value` bounds each element of the
    gradients, `clip_norm` then the norm of all of them.

    The state is in `variables`, which a checkpoint holds beside the parameters; their names are
    those of the parameters and of the optimiser, `name`. Of two optimisers in one checkpoint each
    has its own `name`, or a key: `{"g": g.variables, "d": d.variables}`. If both losses call a
    module, `module.updates(loss_1, loss_2)` counts each call.

    For your own, derive from it and define `rule`, and name in `slots` what it keeps for each
    parameter, beginning with zeros.

    Raises `UnsupportedError` for a rate, limit or option that is no finite number from 0 on, and
    for complex parameters if the method is for real ones; `GraphError` for parameters that are no
    variables, or listed twice. A rate that becomes NaN later is found by `Program.check`.
    """

    slots: tuple[str, ...] = ()
    counts: ClassVar[bool] = False  # whether the rule asks for the number of the step
    takes_complex: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Arguments that an `__init__` does not take are told with what it takes."""
        super().__init_subclass__(**options)
        for name in vars(cls).keys() & {"__init__"}:
            setattr(cls, name, telling_method(cls.__init__))

    def __init__(
        self,
        parameters: Module | Iterable[Variable],
        lr: Rate | Schedule,
        *,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        name: str | None = None,
    ) -> None:
        self.name = type(self).__name__ if name is None else name
        self.parameters = listed(
            parameters, type(self).__name__, self.name, takes_complex=self.takes_complex
        )
        self._module = parameters if isinstance(parameters, Module) else None
        self.lr = lr if is_function(lr) else rate(lr)
        self.clip_norm, self.clip_value = (
            None if limit is None else number(limit, name, above=True)
            for name, limit in (("clip_norm", clip_norm), ("clip_value", clip_value))
        )
        # One that does not count has no `step`, so that `optimizer.step()` is answered below.
        self._number: Variable | None = None
        if self.counts or is_function(lr):
            self.step = self._number = variable(f"{self.name}.step", np.int64(0))
        self._kept = self._state()

    @property
    def variables(self) -> list[Variable]:
        """Its state: what is kept for each parameter, and the number of the step if it counts."""
        kept = [v for several in self._kept for v in several]
        return kept if self._number is None else [*kept, self._number]

    def updates(self, loss: Node | Sequence[Any], **options: Any) -> dict[Variable, Node]:
        """The next values of the parameters and of all state, as `compile` takes them.

        `loss` is a scalar node, of which the gradients are taken (`options` are those of `grad`),
        or a sequence of gradients, one for each parameter. Raises `GradientError` for a parameter
        on which the loss does not depend, `ShapeError` for gradients that do not fit.
        """
        if isinstance(loss, Node):
            grads: Sequence[Node] = grad(loss, self.parameters, **options)
        else:
            grads = self._fitting(loss)
        outputs = [loss] if isinstance(loss, Node) else grads
        of_modules = carried(*outputs)
        self._warn_of_left_behind(outputs, of_modules)
        with scope(self.name):
            if self.clip_value is not None:
                grads = clip_by_value(grads, self.clip_value)
            if self.clip_norm is not None:
                grads = clip_by_norm(grads, self.clip_norm)
            if (step := self._number) is None:
                return self._next(grads, self.lr) | of_modules
            found = self._next(grads, self._rate(step)) | {step: step + 1}
        return found | of_modules

    def _warn_of_left_behind(self, outputs: Sequence[Node], found: Iterable[Variable]) -> None:
        still = [] if self._module is None else left_behind(self._module, outputs, found)
        if still:
            warn(
                f"{', '.join(still)} will stay as {'they are' if still[1:] else 'it is'}: the loss "
                "was built after net.eval(), or forward did not go on with what offer returned; "
                "build it after net.train(), or give the optimiser net.parameters() if that is "
                "meant",
                stacklevel=3,
            )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            hint = f"; {ELSEWHERE[name]}" if name in ELSEWHERE else ""
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{hint}")

    def __repr__(self) -> str:
        return f"<{self.name} of {shown(str(p.name) for p in self.parameters)}>"

    def _rate(self, step: Node) -> Any:
        """The learning rate at a step: what a schedule makes of it is graph, too."""
        if not is_function(self.lr):
            return self.lr
        try:
            self.lr(placeholder("step", (), step.dtype))
        except SymbolicError:
            raise UnsupportedError(
                "a schedule is called once, with the number of the step as a node that has no "
                "value yet; write it with sg's functions: sg.where(step < 100, 0.1, 0.01), "
                "sg.cos(step)"
            ) from None
        return rate(self.lr(step), "what the schedule gives")

    def rule(self, p: Variable, g: Node, rate: Any, *kept: Variable) -> Sequence[Node]:
        """The next value of a parameter, and of what is kept for it, given its gradient.

        The rate is a number, or a node of the parameter's dtype.
        """
        raise UnsupportedError(f"{type(self).__name__} has no rule(p, g, rate, *kept); define it")

    @property
    def count(self) -> Node:
        """The number of the step, from 1 on, as float64."""
        return astype(self.step + 1, "float64")

    def _next(self, grads: Sequence[Node], rate: Any) -> dict[Variable, Node]:
        found: dict[Variable, Node] = {}
        for p, g, kept in zip(self.parameters, grads, self._kept, strict=True):
            found.update(zip((p, *kept), self.rule(p, g, like(rate, p), *kept), strict=True))
        return found

    def _state(self) -> list[list[Variable]]:
        """The variables that are kept, for each parameter."""
        return [
            [variable(f"{p.name}.{self.name}.{s}", np.zeros(p.shape, p.dtype)) for s in self.slots]
            for p in self.parameters
        ]

    def _fitting(self, grads: Any) -> list[Node]:
        if not isinstance(grads, Iterable):
            raise GradientError(
                f"a loss is a scalar node, not {grads!r:.80}; write updates(loss), or "
                "updates(gradients) with one for each parameter"
            )
        nodes = list(map(as_node, grads))
        if len(nodes) != len(self.parameters):
            raise ShapeError(f"{len(nodes)} gradients for {len(self.parameters)} parameters")
        for g, p in zip(nodes, self.parameters, strict=True):
            if g.type != p.type:
                raise ShapeError(f"the gradient {describe(g)} is for {describe(p)}: types differ")
        return nodes


def like(x: Any, p: Node) -> Any:
    """A scalar as the arithmetic on a parameter takes it: in its dtype."""
    return astype(x, p.dtype) if isinstance(x, Node) else x

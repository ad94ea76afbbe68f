"""Modules: what has variables, and makes a graph when it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Protocol, Self, TypeVar, cast

import numpy as np

from symgrad.autodiff.custom.function import Function, SavesTensors
from symgrad.autodiff.custom.traced import replaced
from symgrad.ir.errors import GradientError, GraphError, ShapeError, SymgradError, UnsupportedError
from symgrad.ir.leaf_ops import VARIABLE
from symgrad.ir.messages import refuse, telling_method
from symgrad.ir.node import Node, Variable, as_node, give_name, leaf, new_cell
from symgrad.ir.origin import built_as, current_origin, scope
from symgrad.ir.updates import variable_behind
from symgrad.ir.values import ArrayData
from symgrad.nn.state import write
from symgrad.nn.summary import Summarized
from symgrad.nn.tree import (
    check_captures,
    check_offers,
    drops_parameter,
    join,
    named_leaves,
    renamed,
    substitute,
)
from symgrad.nn.updates import carried
from symgrad.ops.declare import NodeLike, explaining
from symgrad.ops.identity import optimization_barrier, stop_gradient, with_update
from symgrad.ops.leaves import variable
from symgrad.testing.gradients import Report, check_grads

# The buffers of which `forward`, which is being run, has offered next values, by their calls.
_OFFERS: ContextVar[dict[Node, str]] = ContextVar("offers")


P = ParamSpec("P")
R = TypeVar("R", covariant=True)


@explaining
def parameter(value: Any) -> Variable:
    """A variable of a module, which names it by its path: `self.weight = parameter(array)`.

    It has no name until the module, or one that it is part of, is called or asked for its
    parameters; no graph takes it in before. `value` is copied.

    >>> class Scale(Module):
    ...     def __init__(self):
    ...         self.factor = parameter(np.ones(3))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale().parameters()[0].name
    'factor'
    """
    data = ArrayData(value)
    made = leaf(VARIABLE, data.type, cell=new_cell(data.array.copy()))
    assert isinstance(made, Variable)
    return made


class _Forward(Protocol[P, R]):
    """A module by its `forward`, whose arguments and results a call has."""

    def forward(self, *args: P.args, **options: P.kwargs) -> R: ...


class Module(SavesTensors, Summarized):
    """A part of a model: derive from it, make variables and modules attributes, define `forward`.

    Its variables and modules are what its attributes hold, directly or in lists, tuples and dicts;
    a set that holds them is refused with a `GraphError`, as is a call that uses a variable which
    the module does not have. Each has a path, such as `layers.0.weight`, by which
    `named_parameters`, `state` and `load` know it; a variable made by `parameter` has its path as
    its name too. A call builds the graph of `forward`, in a `scope` of the module's name; it
    evaluates nothing.

    `buffers` lists the attributes that hold state which no optimiser trains, such as running means.
    Their next values are carried by what `offer` returns, and collected by `updates`. `train()` and
    `eval()` say for which of the two the graphs that are built from then on are meant.

    A module with a method `backward` is differentiated by it. It is given a cotangent for each
    result of `forward` and returns a gradient for each argument of `forward`, then one for each
    parameter, in the order of `named_parameters`; None where none flows. What `forward` computed
    it finds in `self.saved_tensors`, if that said `self.save_for_backward(x, …)`. See `Function`,
    whose rules these are. `check_grads` compares it with differences.

    >>> class Net(Module):
    ...     def __init__(self, key):
    ...         first, second = sg.random.split(key)
    ...         self.hidden = Linear(4, 8, key=first)
    ...         self.out = Linear(8, 2, key=second)
    ...     def forward(self, x):
    ...         return self.out(relu(self.hidden(x)))
    >>> [name for name, _ in Net(sg.random.key(0)).named_parameters()]
    ['hidden.weight', 'hidden.bias', 'out.weight', 'out.bias']
    """

    buffers: ClassVar[tuple[str, ...]] = ()
    training: bool = True
    name: str | None = None

    _label: str | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Arguments that an `__init__` does not take are told with what it takes."""
        super().__init_subclass__(**options)
        for name in vars(cls).keys() & {"__init__"}:
            setattr(cls, name, telling_method(cls.__init__))

    def __call__(self: _Forward[P, R], *args: P.args, **options: P.kwargs) -> R:
        """The graph of `forward`.

        Raises `GraphError` if two variables have one name, and for a variable that `forward` uses
        and the module does not have, since it would be neither trained nor saved; and if the
        results are not made of what `offer` returned, since that buffer would not be updated.
        """
        graph: R = cast(Module, self)._graph(*args, **options)
        return graph

    if TYPE_CHECKING:  # a module without one is refused when it is called

        def forward(self, *args: Any, **options: Any) -> Any: ...

    def _graph(self, *args: Any, **options: Any) -> Any:
        name, own = self._settled()
        if not hasattr(self, "forward"):
            raise UnsupportedError(f"{name} has no forward; define forward(self, x)")
        if not hasattr(self, "backward"):
            with scope(name):
                try:
                    found = self._run(*args, **options)
                    check_captures(name, found, [*args, options], current_origin().scope, own)
                    return found
                except SymgradError as error:
                    if not getattr(error, "__notes__", ()):
                        error.add_note(f"in the module {', '.join(current_origin().scope)}")
                    refuse(error, type(self).__name__, args)
        if options:
            raise UnsupportedError(
                f"{name} has a backward of its own, which gives a gradient for each argument by "
                f"its place; give it {', '.join(options)} without names"
            )
        # The class has the module's name, by which messages call it, and pictures.
        return type(name, (_Own,), {})(self)(*args, *self.parameters())

    def _run(self, *args: Any, **options: Any) -> Any:
        """The results of `forward`, which are made of what it offered."""
        token = _OFFERS.set({})
        try:
            found = self.forward(*args, **options)
            check_offers(type(self).__name__, found, [*args, options], _OFFERS.get())
            return found
        finally:
            _OFFERS.reset(token)

    def _settled(self) -> tuple[str, set[Variable]]:
        """The name of its scope, and its variables, once they and the modules in it have names."""
        own = {v for _, v in self.named_variables()}
        for path, part in self._parts():
            if isinstance(part, Module) and part is not self:
                vars(part)["_label"] = path
        return self.name or self._label or type(self).__name__, own

    def named(self, name: str) -> Self:
        """The module itself, with a name: for pictures, and before the names of its variables.

        Two modules of one program may go without, and so have variables of one name. Graphs that
        were built before keep the names that they have, and share the values.

        >>> Linear(3, 1, key=sg.random.key(0)).named("teacher").parameters()[0].name
        'teacher.weight'
        """
        modules: dict[int, Any] = {id(m): m for _, m in self.named_modules()}
        becomes: dict[Variable, Node] = {}
        for path, m in self.named_modules():
            for part, v in m._parts():
                own = join(path, part)
                if isinstance(v, Variable) and v.name and f".{v.name}".endswith(f".{own}"):
                    becomes.setdefault(v, renamed(v, join(name, own)))
        for m in modules.values():
            vars(m).update({k: substitute(v, becomes, modules) for k, v in vars(m).items()})
        self.name = name
        return self

    def train(self, training: bool = True) -> Self:
        """The module itself; the graphs that it and its parts build from now on are for training.

        Then `Dropout` drops, and `BatchNorm` takes the statistics of the batch. So it is at first.
        """
        for _, module in self.named_modules():
            module.training = training
        return self

    def eval(self) -> Self:
        """The module itself; the graphs that it builds from now on are for use, not training."""
        return self.train(False)

    # ---- its parts --------------------------------------------------------------------------

    def named_modules(self) -> list[tuple[str, Module]]:
        """Itself, whose path is empty, and the modules in it, each once."""
        found: dict[int, tuple[str, Module]] = {}
        stack: list[tuple[str, Module]] = [("", self)]
        while stack:
            path, module = stack.pop()
            if id(module) not in found:
                found[id(module)] = path, module
                parts = [(join(path, p), m) for p, m in module._parts() if isinstance(m, Module)]
                stack += reversed(parts)
        return list(found.values())

    def named_variables(self) -> list[tuple[str, Variable]]:
        """All its variables by their paths, each once: the parameters and the buffers.

        Raises `GraphError` if two have one name, or one has none that a module could give it.
        """
        return [(path, v) for path, v, _ in self._variables()]

    def named_parameters(self) -> list[tuple[str, Variable]]:
        """The float variables that are no buffers, by their paths, each once."""
        return [(path, v) for path, v, is_buffer in self._variables() if not is_buffer]

    def parameters(self) -> list[Variable]:
        """The variables that are trained, each once, in the order of `named_parameters`."""
        return [v for _, v in self.named_parameters()]

    def _parts(self) -> Iterator[tuple[str, Any]]:
        """The modules and variables that its attributes hold, and where."""
        return named_leaves(vars(self).items())

    def _variables(self) -> list[tuple[str, Variable, bool]]:
        """Each variable once, with its path and whether it is a buffer. All of them get names."""
        found: dict[Variable, tuple[str, Variable, bool]] = {}
        for path, module in self.named_modules():
            for name, part in module._parts():
                if isinstance(part, Variable) and part not in found:
                    kept = name.partition(".")[0] in module.buffers or not part.tensor.is_inexact
                    found[part] = join(path, name), part, kept
        paths: dict[str | None, str] = {}
        for path, v, _ in found.values():
            if v.name is None:
                give_name(v, join(self.name or "", path))
            if v.name in paths:
                raise GraphError(
                    f"{paths[v.name]} and {path} of {type(self).__name__} are two variables called "
                    f"{v.name!r}; make them with sg.nn.parameter(value), so that the module names "
                    "them by their paths, or give a module that was used on its own a name: "
                    "module.named(name)"
                )
            paths[v.name] = path
        return list(found.values())

    def __setattr__(self, name: str, value: Any) -> None:
        held = vars(self).get(name)
        if isinstance(held, Variable) and drops_parameter(held, value):
            raise GraphError(
                f"{name} of {type(self).__name__} is a variable, and with this in its place "
                f"nothing would be trained; give it another value, module.{name}.value = array, or "
                f"make another variable, module.{name} = sg.nn.parameter(array)"
            )
        super().__setattr__(name, value)

    # ---- its state --------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The present values of all variables by their paths, as copies.

        >>> {name: a.shape for name, a in Linear(2, 3, key=sg.random.key(0)).state().items()}
        {'weight': (2, 3), 'bias': (3,)}
        """
        return {path: np.array(v.value) for path, v in self.named_variables()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Give all variables the values of another `state`, or none of them.

        Raises `StateError` that lists what is missing, what is there besides, and what has another
        shape or dtype.
        """
        write(dict(self.named_variables()), state)

    def offer(
        self, buffer: str, following: Callable[..., Node], witness: NodeLike, *others: NodeLike
    ) -> Node:
        """A node of `forward` that carries the next value of a buffer, to go on with in its place.

        The next value is `following(present, witness, *others)`. It holds for programs that compute
        these nodes, of which the results of `forward` are made, else a call of the module raises
        `GraphError`. So does a buffer that is no variable of the module.

        >>> class Steps(Module):
        ...     buffers = ("count",)
        ...     def __init__(self):
        ...         self.count = parameter(0)
        ...     def forward(self, x):
        ...         return self.offer("count", lambda present, y: present + 1, x * 2)
        >>> steps = Steps()
        >>> [v.name for v in steps.updates(steps(placeholder("x", 3)))]
        ['count']
        """
        state = getattr(self, buffer, None)
        if not isinstance(state, Node):
            raise GraphError(
                f"offer({buffer!r}, …) of {type(self).__name__} names no variable of the module; "
                f"make one: self.{buffer} = sg.nn.parameter(array)"
            )
        variable = variable_behind(state, "offer")
        operands = [as_node(x) for x in (witness, *others)]
        with built_as(operands[0].origin):
            # A node of this call alone, by which its copies in a graph are known to be of it.
            present = optimization_barrier(variable)
            made = as_node(following(present, *operands))
            (made,) = replaced([made], {x: x for x in (*operands, present)} | {state: present})
            variable.cell.calls[call := variable.cell.next_call] = present
            _OFFERS.get({})[present] = buffer
            return with_update(operands[0], present, made, *operands[1:], call=call)

    def updates(self, *outputs: Node) -> dict[Variable, Node]:
        """The next values of its state in a program with these outputs, for `compile`'s updates.

        They are those that the calls carry of which the outputs are made; if there were several
        calls, one update after the other. An optimiser adds to its own those of all the
        modules of which the loss is made. Raises `UnsupportedError` for a call within `vmap`, of
        which each element of the batch would have a next value of its own.
        """
        found = {v.cell: (v, y) for v, y in carried(*outputs).items()}
        return dict(found[v.cell] for _, v in self.named_variables() if v.cell in found)

    # ---- its own backward -------------------------------------------------------------------

    def check_grads(self, *arrays: Any, **options: Any) -> Report:
        """Assert that the gradients by its arguments and parameters are right, at these arrays.

        See `sg.testing.check_grads`, whose options and errors these are. Everything is computed in
        float64, at the parameters' present values.

        >>> Linear(3, 2, key=sg.random.key(0)).check_grads(np.ones((4, 3))).kinks
        []
        """
        given: dict[int, Any] = dict(enumerate(map(np.asarray, arrays)))
        floats = [i for i, a in given.items() if a.dtype.kind in "fc"]
        exact = {p: _in_double(p) for p in self.parameters()}
        double = substitute(self, exact, {})

        def function(*nodes: Node) -> Any:
            args = given | dict(zip(floats, nodes, strict=False))
            found = double(*args.values())
            results = found if isinstance(found, (tuple, list)) else [found]
            return replaced(results, dict(zip(exact.values(), nodes[len(floats) :], strict=True)))

        points = [*(given[i] for i in floats), *(p.value for p in exact.values())]
        return check_grads(function, *points, **options)

    def __repr__(self) -> str:
        found: dict[Variable, str] = {}
        for path, module in self.named_modules():
            for name, part in module._parts():
                if isinstance(part, Variable):
                    found.setdefault(part, join(path, name))
        # To show a module gives no names: it may be a part of another that is yet to be shown.
        listed = [f"{path}: {v.type!r}" for v, path in found.items()]
        return f"{type(self).__name__}({', '.join(listed)})"


def _in_double(p: Variable) -> Variable:
    return variable(str(p.name), p.value.astype(np.result_type(p.dtype, np.float64)))


class _Own(Function):
    """A module's own forward and backward, as a function of its arguments and its parameters."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.names = [path for path, _ in module.named_parameters()]
        self.parameters = module.parameters()

    def forward(self, *args: Any) -> Any:
        self.arguments = len(args) - len(self.parameters)
        self.nodes = args[self.arguments :]
        module, becomes = self.module, dict(zip(self.parameters, self.nodes, strict=True))
        states = [v for _, v, is_buffer in module._variables() if is_buffer and v.tensor.is_inexact]
        becomes |= {v: stop_gradient(v) for v in states}
        self.module = substitute(module, becomes, {})
        found = self.module._run(*args[: self.arguments])
        self.kept: list[Any] = []
        for value in vars(self.module).values():
            self.kept += value if isinstance(value, (list, tuple)) else [value]
        return found

    def backward(self, *flows: Any) -> Any:
        found = self.module.backward(*flows)  # type: ignore[attr-defined]
        grads = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(grads) != self.arguments + len(self.names):
            raise GradientError(
                f"it returned {len(grads)} gradients, not {self.arguments + len(self.names)}: one "
                f"for each argument of forward, then one for each of {', '.join(self.names)}"
            )
        of_parameters: Sequence[Any] = grads[self.arguments :]
        for name, g, x in zip(self.names, of_parameters, self.nodes, strict=True):
            if isinstance(g, Node) and g.shape != x.shape:
                raise ShapeError(f"the gradient of {name} is {g.type!r}, and {x.type!r} is wanted")
        return grads

"""The tree of a module: the modules and variables that its attributes hold, and their paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, MutableMapping, Set, ValuesView
from contextlib import suppress
from copy import copy
from functools import partial
from types import (
    CellType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MethodType,
    NoneType,
)
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.ir.arraylike import is_function
from symgrad.ir.errors import GraphError
from symgrad.ir.graph import is_input
from symgrad.ir.node import Node, Variable, describe
from symgrad.ir.origin import PACKAGE
from symgrad.ir.updates import update_call
from symgrad.ir.walk import topological
from symgrad.ops.identity import stop_gradient

# They have no places by which a part could be called, or can be gone through once only.
WITHOUT_PLACES = (Set, ValuesView, deque)
ONCE = (GeneratorType, map, filter, zip)
NUMBERS = (np.ndarray, np.generic, bool, int, float, complex, NoneType)


_ON_DEVICE = "a program has a device: sg.compile(…, backend='jax', device='gpu')"
_SAVED = "write sg.save_state(path, net) and sg.load_state(path, net)"
_TRAINED = (
    "write step = sg.compile([x, y], loss, updates=optimizer.updates(loss)), and sg.fit(step, …)"
)
# What modules of others have, and what to write.
ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "cuda": _ON_DEVICE,
        "fit": _TRAINED,
        "load_state_dict": _SAVED,
        "predict": "write program = sg.compile(x, net(x)), and call it",
        "state_dict": _SAVED,
        "to": _ON_DEVICE,
        "trainable_variables": "write net.parameters()",
        "trainable_weights": "write net.parameters()",
        "weights": "write net.parameters()",
        "zero_grad": "nothing is added up: gradients are nodes of the graph",
    }
)


class ModuleBase:
    """The base of modules, by which what is below them knows them."""

    if not TYPE_CHECKING:  # which would take any name for one of a module's

        def __getattr__(self, name: str) -> Any:
            if name in ELSEWHERE and not hasattr(type(self), name):
                said = f"{type(self).__name__!r} object has no attribute {name!r}"
                raise AttributeError(f"{said}; {ELSEWHERE[name]}")
            return object.__getattribute__(self, name)  # which tells what a property failed for


def join(path: str, name: str) -> str:
    """The path of what has a name, or none, within something."""
    return f"{path}.{name}" if path and name else path or name


def named_leaves(items: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The modules and variables among some values and what these hold, and where.

    Raises `GraphError` for a value that holds some and has no places for them, or holds itself.
    """
    stack: list[tuple[str, Any, tuple[Any, ...]]] = [(path, v, ()) for path, v in items][::-1]
    known: set[int] = set()
    while stack:
        path, value, around = stack.pop()
        inner: list[tuple[str, Any]] = []
        if isinstance(value, (ModuleBase, Variable)):
            yield path, value
        elif isinstance(value, FunctionType) and value.__code__.co_filename.startswith(PACKAGE):
            # Such as checkpoint(module).
            used = [v for v in _enclosed(value).values() if is_function(v) and id(v) not in known]
            known.update(map(id, used))
            inner = [(path, v) for v in used]
        elif any(value is other for other in around):
            raise GraphError(f"{path} is a {type(value).__name__} that holds itself; take it out")
        elif isinstance(value, (list, tuple)):
            inner = [(join(path, str(i)), v) for i, v in enumerate(value)]
        elif isinstance(value, Mapping):
            inner = [(join(path, str(k)), v) for k, v in value.items()]
        elif isinstance(value, MethodType):
            inner = [(path, value.__self__)]
        elif isinstance(value, partial):
            given = dict(enumerate(value.args)) | value.keywords
            inner = [(path, value.func), (path, given)]
        elif _hides(value):
            raise GraphError(
                f"{path} is a {type(value).__name__}, in which modules and variables have no "
                "places to be called by, and would not be trained; make it a list, a tuple or a "
                "dict"
            )
        stack += [(p, v, (*around, value)) for p, v in inner[::-1]]


def _hides(value: Any) -> bool:
    held: Iterable[Any] = value if isinstance(value, WITHOUT_PLACES) else ()
    if isinstance(value, np.ndarray) and value.dtype == object:
        held = value.flat
    return isinstance(value, ONCE) or any(isinstance(v, (ModuleBase, Variable)) for v in held)


def check_captures(
    name: str, results: Any, given: Any, scope: tuple[str, ...], own: Container[Variable]
) -> None:
    """Refuse variables that are not a module's own among the operands of what was built in a scope.

    What was given to it, or built in other scopes, is not looked into. One through which nothing
    flows back, since it is given to `stop_gradient`, is not meant to be trained.
    """
    seen = set(_nodes(given))
    stack = [y for y in _nodes(results) if y not in seen]
    seen.update(stack)
    while stack:
        node = stack.pop()
        if node.op is stop_gradient.op or node.origin.scope[: len(scope)] != scope:
            continue
        for x in node.value_inputs:
            if isinstance(x, Variable) and x.tensor.is_inexact and x not in own:
                raise GraphError(
                    f"{name} uses {describe(x)}, which is no part of it, and would be neither "
                    "trained nor saved with it; make it, or the module that has it, an attribute: "
                    "self.part = …; or give it as an argument, or stop_gradient(it) to leave it "
                    "as it is"
                )
            if x not in seen:
                seen.add(x)
                stack.append(x)


def check_offers(name: str, results: Any, given: Any, offers: Mapping[Node, str]) -> None:
    """Refuse results of a module that are not made of what `offer` returned for its buffers.

    `offers` has the buffers by their calls. Results that hold objects of other kinds than lists,
    tuples, dicts, nodes and numbers may have it in these, and are not looked into.
    """
    if not offers or not all(isinstance(v, (Node, *NUMBERS)) for v in _leaves(results)):
        return
    order = topological(_nodes(results), known=set(_nodes(given)))
    reached = {update_call(node) for node in order if node.op.update}
    for call, buffer in offers.items():
        if call not in reached:
            raise GraphError(
                f"{name} returns nothing that is made of what offer({buffer!r}, …) returned, so "
                f"that {buffer} would never be updated; go on with that in the place of the node "
                f"that was given: y = self.offer({buffer!r}, following, y){call.origin.place()}"
            )


def _nodes(results: Any) -> Iterator[Node]:
    """The nodes among what a module is given or returns."""
    return (v for v in _leaves(results) if isinstance(v, Node))


def _leaves(results: Any) -> Iterator[Any]:
    """The leaves of lists, tuples and dicts, or the value itself."""
    if isinstance(results, (list, tuple, Mapping)):
        for part in results.values() if isinstance(results, Mapping) else results:
            yield from _leaves(part)
    else:
        yield results


def _enclosed(function: FunctionType) -> dict[str, Any]:
    """The values that a function has closed over, by name."""
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # it is yet to be set
            found[name] = cell.cell_contents
    return found


def _globals(function: FunctionType) -> dict[str, Any]:
    """The globals that a function names, or that are called as an attribute that it names."""
    used = {*function.__code__.co_names} & function.__globals__.keys()
    return {name: function.__globals__[name] for name in sorted(used)}


def drops_parameter(held: Variable, value: Any) -> bool:
    """Whether a value put in a variable's place leaves no variable there: numbers, or nodes made of
    the variable itself.
    """
    if isinstance(value, Node):
        inputs = {n for n in topological([value]) if is_input(n)}
        return value is not held and (not inputs or held in inputs)
    if isinstance(value, (list, tuple)):
        return not any(isinstance(v, (Node, ModuleBase)) for v in value)
    return isinstance(value, (np.ndarray, np.generic, bool, int, float, complex))


def renamed(v: Variable, name: str) -> Variable:
    """The same variable under another name, for graphs that are yet to be built."""
    attrs = tuple((k, name if k == "name" else value) for k, value in v.attrs)
    return Variable(v.op, (), attrs, v.type, v.origin)


def substitute(value: Any, becomes: Mapping[Variable, Node], made: dict[int, Any]) -> Any:
    """A module, or what an attribute holds, with nodes in the places of variables."""
    other: Any
    if isinstance(value, Variable):
        return becomes.get(value, value)
    if isinstance(value, ModuleBase):
        if id(value) not in made:
            made[id(value)] = other = copy(value)
            vars(other).update({k: substitute(v, becomes, made) for k, v in vars(value).items()})
        return made[id(value)]
    if isinstance(value, list):
        other = copy(value)
        other[:] = [substitute(v, becomes, made) for v in value]
        return other
    if isinstance(value, tuple):
        parts = [substitute(v, becomes, made) for v in value]
        return getattr(type(value), "_make", type(value))(parts)
    if isinstance(value, Mapping):
        items = {k: substitute(v, becomes, made) for k, v in value.items()}
        if not isinstance(value, MutableMapping):
            return items
        other = copy(value)
        other.update(items)
        return other
    if isinstance(value, MethodType):
        return MethodType(value.__func__, substitute(value.__self__, becomes, made))
    if isinstance(value, FunctionType):
        return made.get(id(value)) or _substitute_in_function(value, becomes, made)
    if isinstance(value, partial):
        func, *args = (substitute(v, becomes, made) for v in (value.func, *value.args))
        return partial(func, *args, **substitute(value.keywords, becomes, made))
    return value


def _substitute_in_function(
    function: FunctionType, becomes: Mapping[Variable, Node], made: dict[int, Any]
) -> FunctionType:
    """The function, with replacements of the modules and variables that it reads from around it."""
    enclosed, others = _enclosed(function), _globals(function)
    if not any(
        isinstance(v, (ModuleBase, Variable)) for _, v in named_leaves((enclosed | others).items())
    ):
        return function
    cells = {name: CellType() for name in function.__code__.co_freevars}
    read = dict(function.__globals__)
    other = FunctionType(function.__code__, read, closure=tuple(cells.values()))
    other.__defaults__, other.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    made[id(function)] = other  # before it is looked into: it may take itself
    read.update(substitute(others, becomes, made))
    for name, value in enclosed.items():
        cells[name].cell_contents = substitute(value, becomes, made)
    return other

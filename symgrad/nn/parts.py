"""What the attributes of a module hold: where its modules and variables are looked for."""

from __future__ import annotations

import dis
from collections import deque
from collections.abc import (
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
    Set,
    ValuesView,
)
from contextlib import suppress
from copy import copy
from functools import lru_cache, partial
from types import CellType, CodeType, FunctionType, GeneratorType, MethodType
from typing import Any

import numpy as np

from symgrad.ir.errors import GraphError
from symgrad.ir.graph import is_input
from symgrad.ir.node import Node, Variable
from symgrad.ir.origin import PACKAGE
from symgrad.ir.walk import topological
from symgrad.nn.offers import Offers

# They have no places by which a part could be called, or can be gone through once only.
WITHOUT_PLACES = (Set, ValuesView, deque)
ONCE = (GeneratorType, map, filter, zip)


class Part:
    """The base of modules: what their calls offer is kept while the graphs of these are held."""

    @property
    def _offers(self) -> Offers:
        found: Offers | None = vars(self).get("_offers")
        if found is None:
            found = vars(self)["_offers"] = Offers(self)
        return found


def join(path: str, name: str) -> str:
    """The path of what has a name, or none, within something."""
    return f"{path}.{name}" if path and name else path or name


def walk(items: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The modules, variables and functions among some values and what these hold, and where.

    Raises `GraphError` for a value that holds some and has no places for them.
    """
    stack = list(items)[::-1]
    known: set[int] = set()
    while stack:
        path, value = stack.pop()
        if isinstance(value, (Part, Variable)):
            yield path, value
        elif isinstance(value, FunctionType) and value.__code__.co_filename.startswith(PACKAGE):
            # Such as checkpoint(module).
            inner = [v for v in _enclosed(value).values() if callable(v) and id(v) not in known]
            known.update(map(id, inner))
            stack += [(path, v) for v in inner]
        elif isinstance(value, FunctionType):
            yield path, value
        elif isinstance(value, (list, tuple)):
            stack += [(join(path, str(i)), v) for i, v in enumerate(value)][::-1]
        elif isinstance(value, Mapping):
            stack += [(join(path, str(k)), v) for k, v in value.items()][::-1]
        elif isinstance(value, MethodType):
            stack.append((path, value.__self__))
        elif isinstance(value, partial):
            given = dict(enumerate(value.args)) | value.keywords
            stack += [(path, given), (path, value.func)]
        elif _hides(value):
            raise GraphError(
                f"{path} is a {type(value).__name__}, in which modules and variables have no "
                "places to be called by, and would not be trained; make it a list, a tuple or a "
                "dict"
            )


def _hides(value: Any) -> bool:
    held: Iterable[Any] = value if isinstance(value, WITHOUT_PLACES) else ()
    if isinstance(value, np.ndarray) and value.dtype == object:
        held = value.flat
    return isinstance(value, ONCE) or any(isinstance(v, (Part, Variable)) for v in held)


def refuse_strays(whole: str, modules: Sequence[tuple[str, Part]]) -> None:
    """Refuse functions among the attributes of modules that use others with variables.

    What they use is no part of the whole, by the class of which it is called: it would be neither
    trained nor saved.
    """
    own = {id(module) for _, module in modules}
    for path, module in modules:
        for name, function in walk(vars(module).items()):
            for taken, other in _around(function) if isinstance(function, FunctionType) else ():
                if id(other) not in own and _has_variables(other):
                    raise GraphError(
                        f"{join(path, name)} of {whole} is a function that uses {taken}, a "
                        f"{type(other).__name__} that is no part of the module, and would be "
                        "neither trained nor saved; make it an attribute of the module, too"
                    )


def _around(function: FunctionType) -> Iterator[tuple[str, Part]]:
    """The modules that a function takes from around it, and their names there."""
    for name, value in walk((_enclosed(function) | _globals(function)).items()):
        if isinstance(value, Part):
            yield name, value


def _enclosed(function: FunctionType) -> dict[str, Any]:
    """What a function has closed over."""
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # it is yet to be set
            found[name] = cell.cell_contents
    return found


def _globals(function: FunctionType) -> dict[str, Any]:
    """The globals that a function reads."""
    used = _globals_of(function.__code__) & function.__globals__.keys()
    return {name: function.__globals__[name] for name in sorted(used)}


@lru_cache(maxsize=1024)
def _globals_of(code: CodeType) -> frozenset[str]:
    steps = dis.get_instructions(code)
    return frozenset(step.argval for step in steps if step.opname == "LOAD_GLOBAL")


def _has_variables(module: Part) -> bool:
    seen: set[int] = set()
    stack = [module]
    while stack:
        part = stack.pop()
        if id(part) not in seen:
            seen.add(id(part))
            held = [v for _, v in walk(vars(part).items())]
            if any(isinstance(v, Variable) for v in held):
                return True
            stack += [v for v in held if isinstance(v, Part)]
    return False


def loses(held: Variable, value: Any) -> bool:
    """Whether what is put in a variable's place is no other part: values, or made of the variable
    itself.
    """
    if isinstance(value, Node):
        inputs = {n for n in topological([value]) if is_input(n)}
        return value is not held and (not inputs or held in inputs)
    if isinstance(value, (list, tuple)):
        return not any(isinstance(v, (Node, Part)) for v in value)
    return isinstance(value, (np.ndarray, np.generic, bool, int, float, complex))


def renamed(v: Variable, name: str) -> Variable:
    """The same variable under another name, for graphs that are yet to be built."""
    attrs = tuple((k, name if k == "name" else value) for k, value in v.attrs)
    return Variable(v.op, (), attrs, v.type, v.origin)


def twin(value: Any, becomes: Mapping[Variable, Node], made: dict[int, Any]) -> Any:
    """A module, or what an attribute holds, with nodes in the places of variables."""
    other: Any
    if isinstance(value, Variable):
        return becomes.get(value, value)
    if isinstance(value, Part):
        if id(value) not in made:
            offers = value._offers  # what is called is the module, though its twin builds the graph
            made[id(value)] = other = copy(value)
            vars(other).update({k: twin(v, becomes, made) for k, v in vars(value).items()})
            vars(other)["_offers"] = offers
        return made[id(value)]
    if isinstance(value, list):
        other = copy(value)
        other[:] = [twin(v, becomes, made) for v in value]
        return other
    if isinstance(value, tuple):
        parts = [twin(v, becomes, made) for v in value]
        return getattr(type(value), "_make", type(value))(parts)
    if isinstance(value, Mapping):
        items = {k: twin(v, becomes, made) for k, v in value.items()}
        if not isinstance(value, MutableMapping):
            return items
        other = copy(value)
        other.update(items)
        return other
    if isinstance(value, MethodType):
        return MethodType(value.__func__, twin(value.__self__, becomes, made))
    if isinstance(value, FunctionType):
        return made.get(id(value)) or _twin_of_function(value, becomes, made)
    if isinstance(value, partial):
        func, *args = (twin(v, becomes, made) for v in (value.func, *value.args))
        return partial(func, *args, **twin(value.keywords, becomes, made))
    return value


def _twin_of_function(
    function: FunctionType, becomes: Mapping[Variable, Node], made: dict[int, Any]
) -> FunctionType:
    """A function that takes the twins of the parts that it takes from around it."""
    enclosed, others = _enclosed(function), _globals(function)
    if not any(isinstance(v, (Part, Variable)) for _, v in walk((enclosed | others).items())):
        return function
    cells = {name: CellType() for name in function.__code__.co_freevars}
    read = dict(function.__globals__)
    other = FunctionType(function.__code__, read, closure=tuple(cells.values()))
    other.__defaults__, other.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    made[id(function)] = other  # before it is looked into: it may take itself
    read.update(twin(others, becomes, made))
    for name, value in enclosed.items():
        cells[name].cell_contents = twin(value, becomes, made)
    return other

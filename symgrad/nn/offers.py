"""The next values of a module's state, as its calls offer them, while their graphs live."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any
from weakref import ref

import numpy as np

from symgrad.ir.errors import UnsupportedError
from symgrad.ir.node import Node, Variable, describe
from symgrad.ir.origin import Origin, built_as
from symgrad.ir.walk import topological


@dataclass(frozen=True, eq=False)
class Offer:
    """The next value of a buffer: what `following` makes of the present one and the witnesses.

    It holds for graphs in which the witnesses are. These are known by their origins, which copies
    share, such as those within a checkpoint or a custom function.
    """

    number: int
    buffer: str
    following: Callable[..., Node]
    origins: tuple[ref[Origin], ...]

    def witnesses(self, nodes: Mapping[int, Node]) -> list[Node] | None:
        """The witnesses among nodes that are listed by their origins; None if one is missing."""
        found = [nodes[id(o)] for origin in self.origins if id(o := origin()) in nodes]
        return found if len(found) == len(self.origins) else None


class Offers:
    """The offers of a module's calls, without those whose graphs nobody holds any more."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self._found: list[Offer] = []

    def __iter__(self) -> Iterator[Offer]:
        self._found[:] = [o for o in self._found if all(origin() for origin in o.origins)]
        return iter(self._found)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy of a module is part of no graph yet."""
        return type(None), ()

    def number(self) -> int:
        """The least number that no offer has: the same whatever was built and thrown away."""
        taken = {o.number for o in self}
        return next(n for n in count() if n not in taken)

    def add(self, buffer: str, following: Callable[..., Node], *witnesses: Node) -> None:
        """Enter the offer of a call: the graph keeps the module, the module does not the graph."""
        for w in witnesses:
            object.__setattr__(w.origin, "modules", (*w.origin.modules, self.module))
        origins = tuple(ref(w.origin) for w in witnesses)
        self._found.append(Offer(self.number(), buffer, following, origins))


def offered(*outputs: Node) -> dict[Variable, Node]:
    """The `updates` of all modules of which the outputs are made.

    >>> noise = Dropout(0.5, key=sg.random.key(0))
    >>> [v.name for v in offered(noise(placeholder("x", 3)))]
    ['key']
    """
    nodes = topological(outputs)
    return followed({id(m): m for n in nodes for m in n.origin.modules}.values(), nodes)


def followed(modules: Iterable[Any], outputs: Iterable[Node]) -> dict[Variable, Node]:
    """The next values that modules have offered to graphs with these nodes."""
    nodes = {id(n.origin): n for n in outputs}
    found: dict[Variable, Node] = {}
    for module in modules:
        for offer in module._offers:
            witnesses = offer.witnesses(nodes)
            if witnesses is not None:
                variable: Variable = getattr(module, offer.buffer)
                with built_as(replace(witnesses[0].origin)):
                    present = found.get(variable, variable)
                    found[variable] = offer.following(present, *witnesses)
                _check_next(variable, found[variable])
    return found


def idle(module: Any, outputs: Iterable[Node], found: Container[Variable]) -> list[str]:
    """The buffers of a module, by their paths, that training with these nodes leaves as they are.

    Those of parts that are set for use, not for training; and running means that are not read, and
    keys that are, of parts that the nodes are not known to come from, as after pickling.
    """
    there = {n for n in outputs if isinstance(n, Variable)}
    listed = []
    for path, part in module.named_modules():
        is_used = any(v in there for _, v in part._parts())
        for buffer in part.buffers:
            v: Variable = getattr(part, buffer)
            forgotten = is_used and (v not in there or v.dtype == np.uint64)
            if v not in found and (forgotten or not part.training):
                listed.append(f"{path}.{buffer}" if path else buffer)
    return listed


def _check_next(variable: Variable, value: Node) -> None:
    if value.type != variable.type:
        raise UnsupportedError(
            f"the next value of {describe(variable)} would be {value.type!r}: within "
            "vmap each element of the batch has its own; call the module on the whole batch, or "
            "build this graph with eval()"
        )

"""Lists, tuples and dicts of nodes, nested as you like: their leaves, and results in their form.

Forms are functions of modules, so that programs that give results in them can be pickled. A record
of one node and of what is known besides, such as a sparse matrix, is a leaf with a form of its own,
which `__symgrad_parts__` gives: the node, and what makes of another, or of an array, such a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from symgrad.ir.errors import SymgradError
from symgrad.ir.types import in_order

Form: TypeAlias = Callable[[Iterable[Any]], Any]


class Leaf(NamedTuple):
    """A leaf of nested containers: its value, its name, and its place, as Python writes it."""

    value: Any
    name: str
    path: str


def flatten(value: Any, name: str, path: str | None = None) -> tuple[list[Leaf], Form]:
    """The leaves in order, and what gives as many others the form of `value`.

    A leaf in a dict is called as its key, one in a sequence by its number, `output 0`.
    """
    path = name if path is None else path
    if isinstance(value, Mapping):
        keys = list(value)
        inner = [flatten(v, str(k), f"{path}[{k!r}]") for k, v in value.items()]
        make: Form = partial(_as_dict, keys)
    elif isinstance(value, (list, tuple)):
        inner = [flatten(v, f"{name} {i}", f"{path}[{i}]") for i, v in enumerate(value)]
        make = list if isinstance(value, list) else getattr(type(value), "_make", tuple)
    elif hasattr(type(value), "__symgrad_parts__"):
        node, made = value.__symgrad_parts__()
        return [Leaf(node, name, path)], made
    else:
        return [Leaf(value, name, path)], _only
    leaves = [leaf for found, _ in inner for leaf in found]
    if all(form is _only for _, form in inner):
        return leaves, make
    return leaves, partial(_nested, make, [(form, len(found)) for found, form in inner])


def aligned(
    value: Any, like: Any, what: str, error: type[SymgradError], path: str | None = None
) -> Iterator[Leaf]:
    """The leaves of what has the form of another thing: where that has a leaf, all that is there.

    `what` says what the value is called. Raises `error`, which names the place, where it has
    another form: other keys, another number of elements, or none.
    """
    path = what if path is None else path
    if isinstance(like, Mapping):
        if not isinstance(value, Mapping) or value.keys() != like.keys():
            keys = ", ".join(map(repr, like))
            has = f"has {', '.join(map(repr, value))}" if isinstance(value, Mapping) else "is none"
            raise error(f"{path}: a dict with the keys {keys} is wanted, and this {has}")
        for k, inner in like.items():
            yield from aligned(value[k], inner, what, error, f"{path}[{k!r}]")
    elif isinstance(like, (list, tuple)):
        if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
            raise error(f"{path}: a sequence of {len(like)} is wanted, not {type(value).__name__}")
        values = list(in_order(value, path, error))
        if len(values) != len(like):
            raise error(f"{path}: a sequence of {len(like)} is wanted, not of {len(values)}")
        for i, (v, inner) in enumerate(zip(values, like, strict=True)):
            yield from aligned(v, inner, what, error, f"{path}[{i}]")
    else:
        if hasattr(type(value), "__symgrad_parts__"):
            value, _ = value.__symgrad_parts__()
        yield Leaf(value, what, path)


def _only(results: Iterable[Any]) -> Any:
    return next(iter(results))


def _as_dict(keys: Sequence[Any], parts: Iterable[Any]) -> dict[Any, Any]:
    return dict(zip(keys, parts, strict=True))


def _nested(make: Form, parts: Sequence[tuple[Form, int]], results: Iterable[Any]) -> Any:
    left = iter(results)
    return make([form(islice(left, count)) for form, count in parts])

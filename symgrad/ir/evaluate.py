"""The plainest way to a value: every node's kernel, one after the other.

Constant folding and `np.asarray(node)` use it, and the tests hold everything else against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.ir.dims import Dim
from symgrad.ir.errors import AllocationError, BoundsError, KernelError, LinAlgError, SymbolicError
from symgrad.ir.leaf_ops import PLACEHOLDER, VARIABLE
from symgrad.ir.types import TensorType
from symgrad.ir.values import Cell
from symgrad.ir.walk import topological

if TYPE_CHECKING:
    from symgrad.ir.node import Node


def evaluate(
    outputs: Iterable[Node],
    feeds: Mapping[Node, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> list[Any]:
    """The values of nodes, given arrays for their placeholders.

    `feeds` may give a value for any node, `sizes` one for each named dimension. Raises
    `SymbolicError` for a placeholder that is not fed.
    """
    outputs = list(outputs)
    values: dict[Node, Any] = dict(feeds or {})
    sizes = {**sizes_of(values), **(sizes or {})}
    with np.errstate(all="ignore"):
        for node in topological(outputs, known=values.keys()):
            values[node] = _compute(node, [values[x] for x in node.inputs], sizes)
    return [values[node] for node in outputs]


def value_of(node: Node) -> Any:
    """The value of a node that no placeholder feeds, computed once and kept in the node.

    What was computed on the way is kept as well, so that code written for arrays that are there at
    once does not compute it again. What a variable or a user's own code has a part in is not kept.
    Raises `SymbolicError` if there are placeholders, and names them.
    """
    order = topological([node], known=_HELD)
    if names := [n.name for n in order if n.op is PLACEHOLDER]:
        raise SymbolicError(
            f"it has no value before its placeholders are fed: {', '.join(map(repr, names))}. "
            "Compile it: sg.compile([...], node)(...)"
        )
    fresh: dict[Node, Any] = {}
    with np.errstate(all="ignore"):
        for n in order:
            operands = [fresh.get(x, x.held) for x in n.inputs]
            found = _compute(n, operands, {})
            if n.op.opaque or n.op is VARIABLE or any(x in fresh for x in n.inputs):
                fresh[n] = found
            else:
                object.__setattr__(n, "held", found)
    return fresh.get(node, node.held)


class _Held:
    """The nodes that keep their value."""

    def __contains__(self, node: object) -> bool:
        return getattr(node, "held", None) is not None


_HELD = _Held()


def _compute(node: Node, operands: list[Any], sizes: Mapping[str, int]) -> Any:
    attrs = dict(node.attrs)
    if node.op is PLACEHOLDER:
        raise SymbolicError(
            f"the placeholder {attrs['name']!r} has no value; compile the graph and feed it: "
            "sg.compile([...], outputs)(...)"
        )
    if isinstance(cell := attrs.get("cell"), Cell):
        return cell.read(attrs["name"])
    return computed(node, operands, resolve(attrs, sizes))


def computed(node: Node, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """The result of a node's kernel for operands. Raises `KernelError` that names the node."""
    try:
        return node.op.kernel(*operands, **attrs)
    except (KernelError, SymbolicError):
        raise
    except Exception as error:
        raise kernel_error(error, node, node.op.name) from error


def kernel_error(error: Exception, node: Node, name: str) -> KernelError:
    """The error of a kernel of this name, with what the node was made of and the user's line."""
    types = ", ".join(repr(x.type) for x in node.inputs)
    kind = next((ours for theirs, ours in KINDS if isinstance(error, theirs)), KernelError)
    if kind is BoundsError and node.op.indices:
        return kind(f"{error}, found by {name}({types}){node.origin.description}")
    mend = f"; {SMALLER}" if kind is AllocationError else ""
    return kind(f"{name}({types}) failed: {said(error)}{mend}{node.origin.description}")


def said(error: Exception) -> str:
    """An error in a line: its class, and what it says."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


SMALLER = "make the arrays smaller, or take a part of them at a time"
KINDS: tuple[tuple[type[Exception], type[KernelError]], ...] = (
    (IndexError, BoundsError),
    (np.linalg.LinAlgError, LinAlgError),
    (MemoryError, AllocationError),
)


def sizes_of(values: Mapping[Node, Any]) -> dict[str, int]:
    """The sizes of the names that the shapes of fed arrays show directly."""
    sizes: dict[str, int] = {}
    for node, value in values.items():
        if isinstance(node.type, TensorType):
            for dim, size in zip(node.type.shape, np.shape(value), strict=False):
                match dim:
                    case Dim(terms=((((str(name), 1),), 1),)):
                        sizes[name] = size
    return sizes


def resolve(value: Any, sizes: Mapping[str, int]) -> Any:
    """Attributes with their named dimensions replaced by numbers."""
    if value.__class__ is int or value.__class__ is str:
        return value  # as most are
    if isinstance(value, Dim):
        missing = value.names - sizes.keys()
        if missing:
            raise SymbolicError(f"the size of {', '.join(sorted(missing))} is not known here")
        return value.evaluate(sizes)
    if isinstance(value, tuple):
        return tuple([resolve(v, sizes) for v in value])
    if isinstance(value, dict):
        return {k: resolve(v, sizes) for k, v in value.items()}
    return value

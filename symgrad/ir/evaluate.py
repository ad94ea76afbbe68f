"""The plainest way to a value: every node's kernel, one after the other.

Constant folding and `np.asarray(node)` use it, and the tests hold everything else against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.ir.dims import Dim
from symgrad.ir.errors import SymbolicError
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


def _compute(node: Node, operands: list[Any], sizes: Mapping[str, int]) -> Any:
    attrs = dict(node.attrs)
    if node.op.name == "placeholder":
        raise SymbolicError(
            f"the placeholder {attrs['name']!r} has no value; compile the graph and feed it: "
            "sg.compile([...], outputs)(...)"
        )
    if isinstance(cell := attrs.get("cell"), Cell):
        return cell.read(attrs["name"])
    return node.op.kernel(*operands, **resolve(attrs, sizes))


def sizes_of(values: Mapping[Node, Any]) -> dict[str, int]:
    """The sizes of the names that the shapes of fed arrays show directly."""
    sizes: dict[str, int] = {}
    for node, value in values.items():
        if isinstance(node.type, TensorType):
            for dim, size in zip(node.type.shape, np.shape(value), strict=False):
                match dim:
                    case Dim(terms=((((name, 1),), 1),)):
                        sizes[name] = size
    return sizes


def resolve(value: Any, sizes: Mapping[str, int]) -> Any:
    """Attributes with their named dimensions replaced by numbers."""
    if isinstance(value, Dim):
        missing = value.names - sizes.keys()
        if missing:
            raise SymbolicError(f"the size of {', '.join(sorted(missing))} is not known here")
        return value.evaluate(sizes)
    if isinstance(value, tuple):
        return tuple(resolve(v, sizes) for v in value)
    if isinstance(value, dict):
        return {k: resolve(v, sizes) for k, v in value.items()}
    return value

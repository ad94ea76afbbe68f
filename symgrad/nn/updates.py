"""The updates that graphs carry: the next values of state, such as running means and keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from symgrad.autodiff.custom.traced import replaced
from symgrad.ir.errors import UnsupportedError
from symgrad.ir.node import Node, Variable, describe
from symgrad.ir.updates import update_call, updated_variable
from symgrad.ir.values import Cell
from symgrad.ir.walk import topological
from symgrad.nn.tree import named_leaves

if TYPE_CHECKING:
    from symgrad.nn.module import Module


def carried(*outputs: Node) -> dict[Variable, Node]:
    """The next values of variables that the outputs carry, if what carries them is computed.

    Of several calls the later one starts from the next value that the earlier one gives. Raises
    `UnsupportedError` for a call within `vmap`.

    >>> noise = Dropout(0.5, key=sg.random.key(0))
    >>> [v.name for v in carried(noise(placeholder("x", 3)))]
    ['key']
    """
    order = topological(outputs)
    needed = set(outputs)
    for node in reversed(order):
        if node in needed:
            needed.update(node.value_inputs)
    calls: dict[Cell, dict[tuple[Node, int], Node]] = {}
    for node in order:
        if node.op.update and node in needed and needed.issuperset(node.inputs[3:]):
            found = calls.setdefault(updated_variable(node).cell, {})
            found.setdefault((update_call(node), node.attr("call")), node)
    in_order = (sorted(f.values(), key=lambda node: node.attr("call")) for f in calls.values())
    return dict(map(_next_value, in_order))


def _next_value(calls: Sequence[Node]) -> tuple[Variable, Node]:
    """A variable, and what several calls, one after the other, make of it."""
    present: Node = (variable := updated_variable(calls[0]))
    for node in calls:
        value, before, following, *others = node.inputs
        if node.attr("batch"):
            raise UnsupportedError(
                f"the next value of {describe(variable)} would be {following.type!r}: within "
                "vmap each element of the batch has its own; call the module on the whole batch, "
                "or build this graph with eval()"
            )
        if before is not present:
            # What the witnesses are made of stays as it is.
            becomes = {x: x for x in (value, *others)} | {before: present}
            (following,) = replaced([following], becomes)
        present = following
    return variable, present


def left_behind(module: Module, outputs: Sequence[Node], found: Iterable[Variable]) -> list[str]:
    """The buffers of a module, by their paths, that training with these outputs leaves as they are.

    Those of parts that are set for use, not for training, and those of parts in use that the
    outputs neither read nor update.
    """
    updated = {v.cell for v in found}
    there = {n.cell for n in topological(outputs) if isinstance(n, Variable)}
    listed = []
    for path, part in module.named_modules():
        in_use = any(
            isinstance(v, Variable) and v.cell in there for _, v in named_leaves(vars(part).items())
        )
        for buffer in part.buffers:
            cell = getattr(part, buffer).cell
            if cell not in updated and (not part.training or (in_use and cell not in there)):
                listed.append(f"{path}.{buffer}" if path else buffer)
    return listed

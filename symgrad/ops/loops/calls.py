"""The functions that users give to loops, choices and solvers: how they are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from symgrad.ir.arraylike import is_function
from symgrad.ir.errors import GraphError
from symgrad.ir.node import Node

MOST = 4  # types that are listed
WHERE = "; of nodes that are there already, sg.where(p, a, b) chooses"


def require_function(name: str, given: Any, call: str, mend: str = "") -> None:
    """Raise `GraphError` for what cannot be called: a node, mostly, where its function belongs."""
    if not is_function(given):
        what, _, rest = call.partition("(")
        raise GraphError(
            f"{name}: {what} is a function, called as {call}, not {type(given).__name__} "
            f"{given!r:.60}; write lambda {rest.rstrip(')')}: …{mend}".replace(
                "lambda :", "lambda:"
            )
        )


@contextmanager
def calling(name: str, call: str, **given: Sequence[Node]) -> Iterator[None]:
    """Note on an error how a function was called, and on what types of nodes."""
    try:
        yield
    except Exception as error:
        listed = ", ".join(f"{k} is {_types(v)}" for k, v in given.items() if v)
        error.add_note(f"{name} calls {call}{f': {listed}' if listed else ''}")
        raise


def _types(nodes: Sequence[Node]) -> str:
    types = [repr(n.type) for n in nodes[:MOST]] + ["…"] * (len(nodes) > MOST)
    return types[0] if len(types) == 1 else f"({', '.join(types)})"

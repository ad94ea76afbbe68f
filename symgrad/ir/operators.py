"""Python's operators, for nodes and for the pattern variables of rules alike.

Each finds its function by name, so that this floor imports no op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from symgrad.ir.errors import UnsupportedError
from symgrad.ir.late import SLOTS
from symgrad.ir.op import REGISTRY

if TYPE_CHECKING:
    from symgrad.ir.node import Node


def call(name: str, *args: Any, **attrs: Any) -> Node:
    """The node that a function of symgrad makes, for a file that its file stands above.

    It is a public one, or else the builder of the op of that name.
    """
    found = REGISTRY.functions.get(name) or REGISTRY.builders.get(name)
    if found is None:
        SLOTS.declare_ops(name)
        found = REGISTRY.functions.get(name) or REGISTRY.builders[name]
    made: Node = found(*args, **attrs)
    return made


def _unary(name: str) -> Callable[[Any], Node]:
    def method(self: Any) -> Any:
        return REGISTRY.functions[name](self)

    return method


def _binary(name: str) -> Callable[[Any, Any], Node]:
    def method(self: Any, other: Any) -> Any:
        return REGISTRY.functions[name](self, other)

    return method


def _reflected(name: str) -> Callable[[Any, Any], Node]:
    def method(self: Any, other: Any) -> Any:
        return REGISTRY.functions[name](other, self)

    return method


class Operators:
    """Methods for `a + b`, `-a`, `a < b` and the rest, which apply the op of that name."""

    __slots__ = ()

    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("subtract"), _reflected("subtract")
    __mul__, __rmul__ = _binary("multiply"), _reflected("multiply")
    __truediv__, __rtruediv__ = _binary("divide"), _reflected("divide")
    __floordiv__, __rfloordiv__ = _binary("floor_divide"), _reflected("floor_divide")
    __mod__, __rmod__ = _binary("remainder"), _reflected("remainder")
    __divmod__, __rdivmod__ = _binary("divmod"), _reflected("divmod")
    __rpow__ = _reflected("pow")
    __matmul__, __rmatmul__ = _binary("matmul"), _reflected("matmul")
    __and__, __rand__ = _binary("bitwise_and"), _reflected("bitwise_and")
    __or__, __ror__ = _binary("bitwise_or"), _reflected("bitwise_or")
    __xor__, __rxor__ = _binary("bitwise_xor"), _reflected("bitwise_xor")
    __lshift__, __rlshift__ = _binary("bitwise_left_shift"), _reflected("bitwise_left_shift")
    __rshift__, __rrshift__ = _binary("bitwise_right_shift"), _reflected("bitwise_right_shift")
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")
    __neg__, __pos__ = _unary("negative"), _unary("positive")
    __abs__, __invert__ = _unary("abs"), _unary("bitwise_invert")

    def __pow__(self, other: Any, modulus: Any = None) -> Node:
        if modulus is not None:
            raise UnsupportedError(
                "pow with a modulus has no symbolic form; write sg.pow(x, y) % modulus, "
                "which computes the whole power first"
            )
        return call("pow", self, other)

    def __round__(self, ndigits: Any = None) -> Node:
        if ndigits:
            raise UnsupportedError(
                f"round to {ndigits!r:.20} digits has no symbolic form; write "
                f"sg.round(x * 10.0**{ndigits!r:.20}) / 10.0**{ndigits!r:.20}"
            )
        return call("round", self)

    def __eq__(self, other: object) -> Any:
        return call("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return call("not_equal", self, other)

    __hash__ = object.__hash__

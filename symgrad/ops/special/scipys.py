"""Functions whose values are SciPy's, which is imported when a kernel first runs.

It is the extra `symgrad[special]`. float32 stays float32, float64 stays float64, and what is less
precise becomes float32.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from symgrad.ir.errors import UnsupportedError
from symgrad.ir.node import Node
from symgrad.ir.op import Builder, Case, Interval
from symgrad.ir.types import DType, TensorType
from symgrad.ops.declare import P, elementwise
from symgrad.ops.flows import Partial
from symgrad.ops.special import scipy_kernels
from symgrad.ops.special.normal import at_least_single

scipys: Callable[[str], Any] = scipy_kernels.scipys


def from_scipy(
    name: str,
    partials: Callable[..., tuple[Partial, ...]],
    domain: tuple[Interval, ...],
    cases: tuple[Case, ...],
    **facts: Any,
) -> Callable[[Callable[P, Node]], Builder[P]]:
    """Declare a function element by element whose kernel is a ufunc of scipy.special."""

    def kernel(*arrays: Any, out: Any = None) -> Any:
        return scipys(name)(*arrays, out=out)

    in_double = getattr(scipy_kernels, name, None)
    return elementwise(
        in_double or kernel,
        partials=partials,
        promote=needs_scipy(name),
        source="" if in_double else f"scipy.special.{name}",
        domain=domain,
        cases=cases,
        expensive=True,
        **facts,
    )


def needs_scipy(name: str) -> Callable[..., tuple[DType, ...]]:
    """The dtypes to compute in, of operands of types; refused if SciPy is not installed."""

    def promote(*types: TensorType) -> tuple[DType, ...]:
        if find_spec("scipy") is None:
            raise UnsupportedError(
                f"{name} takes its values from SciPy, which is not installed: "
                "pip install 'symgrad[special]'"
            )
        return at_least_single(*types)

    return promote

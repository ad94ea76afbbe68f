"""A workload: inputs, one loss in the words that all libraries share, and NumPy by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from benchmarks import peers
from benchmarks.peers import Run

Array: TypeAlias = np.ndarray[Any, Any]


class Workload:
    """A loss and its gradients; each contestant is a method that makes something to call.

    `loss` is what the libraries that differentiate are given. A library with kernels of its own for
    it says so in an override of its method. `naive` is what one writes first with NumPy, and the
    reference; `tuned` is the same with buffers, in place, for people who care.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    wanted: ClassVar[tuple[int, ...]]
    dtype: ClassVar[str] = "float32"
    memory_bound: ClassVar[bool] = False
    rtol: ClassVar[float | None] = None

    def __init__(self, scale: float = 1) -> None:
        """`scale` is the fraction of the size that is measured; tests take little."""
        self.scale = scale
        self.rng = np.random.default_rng(0)

    def inputs(self) -> list[Array]:
        raise NotImplementedError

    def loss(self, xp: Any, *inputs: Any) -> Any:
        raise NotImplementedError

    def naive(self, *inputs: Any) -> Run:
        raise NotImplementedError

    def tuned(self, *inputs: Any) -> Run:
        raise NotImplementedError

    def numexpr(self, *inputs: Any) -> Run:
        raise NotImplementedError

    def numba(self, *inputs: Any) -> Run:
        raise NotImplementedError

    def products(self, *inputs: Any) -> Run:
        """The matrix products alone: the floor for everybody."""
        raise NotImplementedError

    # What differentiates is the same for every workload.

    def symgrad(self, *inputs: Any, backend: str = "numpy") -> Run:
        return peers.symgrad(self.loss, inputs, self.wanted, backend)

    def symgrad_native(self, *inputs: Any) -> Run:
        return self.symgrad(*inputs, backend="native")

    def symgrad_jax(self, *inputs: Any) -> Run:
        return self.symgrad(*inputs, backend="jax")

    def pytensor(self, *inputs: Any, linker: str = "auto") -> Run:
        return peers.pytensor(self.loss, inputs, self.wanted, linker)

    def pytensor_c(self, *inputs: Any) -> Run:
        return self.pytensor(*inputs, linker="cvm")

    def jax(self, *inputs: Any) -> Run:
        return peers.jax(self.loss, inputs, self.wanted)

    def torch(self, *inputs: Any, compiled: bool = False) -> Run:
        run = peers.torch_compiled if compiled else peers.torch
        return run(self.torch_loss, inputs, self.wanted)

    def torch_loss(self, xp: Any, *inputs: Any) -> Any:
        """The loss in torch's own words, where it has better ones."""
        return self.loss(xp, *inputs)

    def torch_compile(self, *inputs: Any) -> Run:
        return self.torch(*inputs, compiled=True)

    def autograd(self, *inputs: Any) -> Run:
        return peers.autograd(self.loss, inputs, self.wanted)

    # ---- for workloads ----------------------------------------------------------------------

    def size(self, full: int, least: int = 2) -> int:
        return max(least, round(full * self.scale))

    def normal(self, *shape: int) -> Array:
        return self.rng.standard_normal(shape).astype(self.dtype)

    @property
    def tolerance(self) -> float:
        """How far a result may be from NumPy's, as a part of its largest element."""
        return self.rtol or {"float32": 1e-4, "float64": 1e-9}[self.dtype]


class Training(Workload):
    """One step of training: the loss is returned, and the state is replaced.

    The inputs are `data` arrays, then the state, which begins with the parameters. The step is that
    of gradient descent at `rate`, unless a workload has its own.
    """

    data: ClassVar[int]
    parameters: ClassVar[int]
    rate: ClassVar[float]

    def next(self, xp: Any, state: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
        """The state after a step, in the words that all libraries share."""
        return [w - self.rate * g for w, g in zip(state, gradients, strict=True)]

    def torch_update(self, parameters: Sequence[Any]) -> Callable[[], None]:
        """A function that moves the parameters along their gradients, as torch does it best."""
        import torch

        def update() -> None:
            with torch.no_grad():
                for p in parameters:
                    p.sub_(p.grad, alpha=self.rate)

        return update

    def symgrad(self, *inputs: Any, backend: str = "numpy") -> Run:
        return peers.symgrad_step(self, inputs, backend)

    def pytensor(self, *inputs: Any, linker: str = "auto") -> Run:
        return peers.pytensor_step(self, inputs, linker)

    def jax(self, *inputs: Any) -> Run:
        return peers.jax_step(self, inputs)

    def torch(self, *inputs: Any, compiled: bool = False) -> Run:
        return (peers.torch_compiled_step if compiled else peers.torch_step)(self, inputs)

    def autograd(self, *inputs: Any) -> Run:
        return peers.autograd_step(self, inputs)


# Contestant: the method that makes it, and the library that it imports.
CONTESTANTS = {
    "tuned": ("tuned", "numpy"),
    "naive": ("naive", "numpy"),
    "symgrad": ("symgrad", "symgrad"),
    "symgrad native": ("symgrad_native", "symgrad"),
    "symgrad jax": ("symgrad_jax", "symgrad"),
    "PyTensor": ("pytensor", "pytensor"),
    "PyTensor C": ("pytensor_c", "pytensor"),
    "JAX": ("jax", "jax"),
    "PyTorch": ("torch", "torch"),
    "torch.compile": ("torch_compile", "torch"),
    "autograd": ("autograd", "autograd"),
    "numexpr": ("numexpr", "numexpr"),
    "Numba": ("numba", "numba"),
    "products": ("products", "numpy"),
}
# Its C code wants a BLAS of the system to link to, and is without one no measure of PyTensor.
ASKED_FOR = ("PyTensor C", "symgrad native", "symgrad jax")
COMPILERS = (
    "symgrad", "symgrad native", "symgrad jax", "PyTensor", "PyTensor C", "JAX", "torch.compile",
    "Numba",
)  # fmt: skip

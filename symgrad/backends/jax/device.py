"""JAX, imported on first use, and the device of a program."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from symgrad.ir.cached import cached_property
from symgrad.ir.errors import (
    AllocationError,
    FeedError,
    GraphError,
    KernelError,
    SymgradError,
    UnsupportedError,
)
from symgrad.ir.evaluate import SMALLER
from symgrad.ir.types import TensorType

OLDEST = (0, 10)


def imported() -> Any:
    """JAX. Raises `UnsupportedError`, which says what to install, where it is missing."""
    try:
        import jax
        import jax.export
    except ImportError as error:
        raise UnsupportedError(
            f"JAX cannot be imported: {error}; install it: pip install 'symgrad[jax]' (for a GPU: "
            "pip install 'jax[cuda13]'), or leave backend='jax' out"
        ) from None
    if jax.__version_info__ < OLDEST:
        raise UnsupportedError(
            f"JAX {jax.__version__} is too old: pip install --upgrade 'symgrad[jax]'"
        )
    return jax


@contextmanager
def as_needed(jax: Any) -> Iterator[None]:
    """Let JAX have numbers of 64 bits, arrays of several ranks in an operation, and no mesh.

    That is so in this thread and for this while: of the state of JAX nothing stays changed. Each
    option is set to what it is before it is set to what is wanted: Ctrl-C may come before JAX has
    noted what to go back to, and the outer one knows it.
    """
    wide, ranks = jax.enable_x64, jax.numpy_rank_promotion
    now, allowed = jax.config.jax_enable_x64, jax.config.jax_numpy_rank_promotion
    mesh = _mesh(jax)
    as_it_is, none = (nullcontext(),) * 2 if mesh is None else map(jax.set_mesh, (mesh, None))
    # No ExitStack: after Ctrl-C it leaves options set until garbage is looked for.
    with wide(now), wide(True), ranks(allowed), ranks("allow"), as_it_is, none:
        yield


def _mesh(jax: Any) -> Any:
    """The mesh that is set; None if there is none, or where JAX traces, and nobody may set one."""
    try:
        mesh = jax.sharding.get_mesh()
    except ValueError:
        return None
    return None if mesh.empty else mesh


class Device:
    """A device of JAX's by its name: `cpu`, `gpu`, `gpu:1`; None is JAX's default.

    Raises `GraphError`, which lists the devices that there are, for one that is not there.
    """

    def __init__(self, name: str | None) -> None:
        self.jax = imported()
        self.name = name
        self.device = self._found()
        self._alone = {self.device}
        self._seen: Any = None
        # Whether it writes the elements of a scatter one after the other.
        self.in_turn = self.device.platform == "cpu"
        # Whether memory is worth keeping: of a processor it would be new in every call, and is
        # cleared page by page when it is first written.
        self.keeps_memory = self.in_turn

    def _found(self) -> Any:
        if self.name is None:
            return self.jax.devices()[0]
        kind, colon, number = str(self.name).partition(":")
        try:
            return dict(enumerate(self.jax.devices(kind or "?")))[int(number if colon else 0)]
        except (RuntimeError, ValueError, KeyError):
            there = self.jax.devices()
            if there[0].platform != "cpu":
                there = [*there, *self.jax.devices("cpu")]
            listed = ", ".join(f"'{d.platform}:{i}'" for d, i in _numbered(there))
            raise GraphError(
                f"there is no device {self.name!r:.60}; JAX has {listed}. A GPU wants its own JAX: "
                "pip install 'jax[cuda13]'; for others see "
                "https://docs.jax.dev/en/latest/installation.html"
            ) from None

    @contextmanager
    def here(self) -> Iterator[None]:
        """Let JAX compute on the device, now, whatever the caller has told it or lets it trace."""
        jax, place = self.jax, self.jax.default_device
        with (
            jax.core.eval_context(),
            as_needed(jax),
            place(jax.config.jax_default_device),
            place(self.device),
        ):
            yield

    def failed(self, error: Exception) -> Exception:
        """The error of JAX or XLA as one of symgrad's; any other as it is."""
        text = str(error).partition("\n")[0]
        if "RESOURCE_EXHAUSTED" in text:
            return AllocationError(f"there is no memory on {self.device}: {text}; {SMALLER}")
        if isinstance(error, SymgradError):
            return error
        if self.jax.config.jax_disable_jit:
            return UnsupportedError(
                "a program is compiled before it runs, which jax.disable_jit() forbids; to look at "
                "it step by step, compile it with backend='reference'"
            )
        if type(error).__name__ == "InternalFloatingPointError":  # JAX names it nowhere in public
            return KernelError(
                f"{error.args[-1]} was computed, and jax_debug_nans or jax_debug_infs is on; "
                "program.check(…) tells which of your lines made it"
            )
        if "Disallowed" in text and "transfer" in text:
            forbidden = text.rpartition("Disallowed ")[2]
            return UnsupportedError(f"jax.transfer_guard forbids what it needs, a {forbidden}")
        if "has been deleted" in text:
            return FeedError(f"an array that was given is there no more: {text}")
        if isinstance(error, self.jax.errors.JaxRuntimeError):
            return KernelError(f"the program failed on {self.device}: {text}")
        return error

    def put(self, array: Any, place: Any = None) -> Any:
        """An array on the device, or at another place."""
        with self.here():
            return self.jax.device_put(array, place or self.device)

    def has(self, value: Any) -> bool:
        """Whether it is an array on this device, which nobody has deleted."""
        if type(value) not in self.array_types or value.is_deleted():
            return False
        # All that a function makes has one sharding, of which to ask JAX for the devices is dear.
        if value.sharding is not self._seen:
            if value.sharding.device_set != self._alone:
                return False
            self._seen = value.sharding
        return True

    def empty(self, like: TensorType) -> Any:
        """An array on the device, of any content: `jax.numpy.empty` would compile a function."""
        return self.put(np.empty(like.shape, like.dtype))

    def moved(self, arrays: Sequence[Any]) -> list[Any]:
        """Arrays of which some may be on another device, on this one."""
        return list(self.put([*arrays]))

    def kept(self, value: Any) -> Any:
        """A next value within a function, as it is kept."""
        return value

    def own(self, values: Sequence[Any], borrowed: Collection[int]) -> list[Any]:
        """Values on the device that are the caller's: copies of what is not only theirs."""
        if not borrowed and self.array_types.issuperset(map(type, values)):
            return list(values)
        return [
            y if type(y) in self.array_types and k not in borrowed else self.copied(y)
            for k, y in enumerate(values)
        ]

    def copied(self, value: Any) -> Any:
        """A value on the device that nobody else can write, delete or donate."""
        if not isinstance(value, self.array_type):
            return self.put(np.array(value))
        with self.here():
            return self.jax.numpy.copy(value)

    @cached_property
    def array_types(self) -> frozenset[Any]:
        return frozenset([self.array_type])

    @cached_property
    def array_type(self) -> Any:
        """The type of arrays on devices."""
        return type(self.put(0))


def _numbered(devices: Any) -> Iterator[tuple[Any, int]]:
    seen: dict[str, int] = {}
    for device in devices:
        number = seen.setdefault(device.platform, 0)
        seen[device.platform] += 1
        yield device, number


def as_numpy(value: Any) -> Any:
    """A value on a device as a kernel of NumPy's takes it."""
    array = np.asarray(value)
    return array if array.ndim else array[()]

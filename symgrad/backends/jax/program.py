"""Programs that JAX runs: their executables, and variables whose values stay on the device."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, NoReturn

import numpy as np

from symgrad.backends.jax.device import Device
from symgrad.backends.jax.feeding import DeviceFeeder
from symgrad.backends.jax.lowering import Lowering, Stage, picker
from symgrad.backends.jax.mesh import Mesh
from symgrad.backends.jax.store import DeviceStore
from symgrad.ir.cached import cached_property
from symgrad.ir.errors import UnsupportedError
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, Variable
from symgrad.ir.types import TensorType
from symgrad.lowering.plan import ALIGNMENT, Plan
from symgrad.runtime.executable import Executable, Executables
from symgrad.runtime.feeding import Feeder
from symgrad.runtime.program import Program
from symgrad.runtime.store import VariableStore
from symgrad.runtime.workspace import MOST_KEPT, Pages

# Next values of fewer bytes get new memory, which costs less than to pass them what is old.
LEAST_PASSED = 1 << 17
# JAX copies an array of NumPy's on a processor unless it begins where XLA likes it, which those of
# NumPy's own never do. From this size on its copy takes two to ten times as long as ours.
LEAST_HANDED = 1 << 17


class JaxExecutable(Executable):
    """The functions of a graph for known sizes, which compile when they first run.

    The last `count` outputs are next values. Its plan and source are those of NumPy, for the same
    graph: they can be looked at and saved.
    """

    direct = None

    def __init__(
        self,
        graph: Graph,
        sizes: Mapping[str, int],
        count: int,
        device: Device,
        plan: Callable[[Mapping[str, int]], Plan],
    ) -> None:
        self.device, self.sizes, self._planned = device, dict(sizes), plan
        self._on_device = device.array_types
        self.filename, self.backend, self.annotate = "<symgrad program>", "jax", None
        self.lowering = Lowering(graph, sizes, device.jax, device.in_turn)
        number = {node: i for i, node in self.lowering.given.items()}
        inputs = [number[x] for x in graph.inputs if not isinstance(x, Variable)]
        fed = [*inputs, *(number[x] for x in graph.inputs if isinstance(x, Variable))]
        # Values in the order in which they come: what is given, constants, what the stages make.
        stages, outputs = self.lowering.stages, self.lowering.outputs
        self._held = [i for i in (*self.lowering.given, *self.lowering.written) if i not in fed]
        self._order = [*fed, *self._held, *(i for s in stages for i in (*s.gives, *s.host))]
        place = {i: k for k, i in enumerate(self._order)}
        self._stages = [(s, picker([place[i] for i in s.takes])) for s in stages]
        self._results = picker([place[i] for i in outputs])
        self.count = len(outputs) - count
        # Next values that are not a function's alone: inputs, constants, what NumPy has computed,
        # and results, which the caller may donate.
        made = {i for s in stages for i in s.gives} - {*outputs[: self.count]}
        self._foreign = {k for k, i in enumerate(outputs) if k >= self.count and i not in made}
        # Results that are not the caller's alone: those, and what is asked for twice.
        every = {i for s in stages for i in s.gives}
        shown = outputs[: self.count]
        self.borrowed = {k for k, i in enumerate(shown) if i not in every or i in shown[:k]}
        # A function that makes all that is asked for is the whole of a call.
        gives = stages[0].gives
        alone = len(stages) == 1 and not stages[0].host and not self._foreign
        makes_all = alone and bool(gives) and {*outputs} <= {*gives}
        self._whole = picker([*map(gives.index, outputs)]) if makes_all else None
        # The updated variables, by number, whose next values are made in memory that is passed.
        own = (k for k in range(self.count, len(outputs)) if k not in self._foreign)
        firsts = {outputs[k]: k - self.count for k in reversed([*own])}
        several = len(stages) > 1 or not device.keeps_memory
        passed = () if several else firsts.items()
        self.passed = sorted(k for i, k in passed if self._nbytes(i) >= LEAST_PASSED)
        # The inputs, by place, that are copied to where XLA reads them, into memory that is kept.
        large = [k for k, i in enumerate(inputs) if self._nbytes(i) >= LEAST_HANDED]
        self._copied = large if device.keeps_memory else []
        # XLA may let go of one when the next call has begun: so there are two of each.
        kept = 2 * sum(self._nbytes(inputs[k]) for k in self._copied)
        self._pages = Pages(2 * len(self._copied) if kept <= MOST_KEPT else 0)

    def __getattr__(self, name: str) -> Any:
        """The plan, which is made when somebody asks for it."""
        if name != "plan":
            raise AttributeError(name)
        self.plan = self._planned(self.sizes)
        return self.plan

    def _nbytes(self, number: int) -> int:
        t = self.lowering.tasks[number].type
        return prod(map(int, t.shape)) * t.dtype.itemsize if isinstance(t, TensorType) else 0

    @cached_property
    def _constants(self) -> list[Any]:
        """Values of every call: large constants, on the device, and small ones."""
        given, written = self.lowering.given, self.lowering.written
        arrays = [written[i] if i in written else given[i].attr("value").array for i in self._held]
        return [
            a if i in written else self.device.put(a)
            for i, a in zip(self._held, arrays, strict=True)
        ]

    def run(
        self,
        inputs: Sequence[Any],
        current: Sequence[Any],
        nexts: Sequence[Any] = (),
        workspace: Sequence[Any] = (),
    ) -> Sequence[Any]:
        """The outputs and then the next values, when all are there and nothing has failed.

        `nexts` are arrays of which JAX may take the memory for those of `passed`: they are gone
        then. Raises `KernelError` for a step that fails.
        """
        values = [*inputs, *current, *self._constants]
        for k in self._copied:
            if type(values[k]) is np.ndarray:
                values[k] = self._where_xla_reads(values[k])
        if self._whole is not None:
            stage, taken = self._stages[0]
            results: Sequence[Any] = self._whole(self._computed(stage, taken(values), nexts))
            return results
        for stage, taken in self._stages:
            if stage.tasks:
                values += self._computed(stage, taken(values), nexts)
            if stage.host:
                known = dict(zip(self._order, values, strict=False))
                for i in stage.host:
                    known[i] = self.lowering.on_host(i, known)
                    values.append(known[i])
        results = self._results(values)
        if self._foreign:
            copied, foreign = self.device.copied, self._foreign
            results = [copied(y) if k in foreign else y for k, y in enumerate(results)]
        return results

    def _where_xla_reads(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """An array, or a copy of it, that begins where XLA takes it without a copy of its own.

        The memory of the copy is taken again when XLA has let go of it.
        """
        if array.ctypes.data % ALIGNMENT == 0:
            return array
        made = self._pages.paged(array.shape, array.dtype)
        np.copyto(made, array)
        return made

    def _computed(self, stage: Stage, arrays: Sequence[Any], nexts: Sequence[Any]) -> Sequence[Any]:
        """The results of a stage's function, when all are there and nothing has failed."""
        made: Sequence[Any]
        try:
            made = self._ran(stage, arrays, nexts)
        except ValueError:  # of JAX's, for arrays that are on other devices
            made = self._ran(stage, self.device.moved(arrays), nexts)
        if stage.checked:
            *made, flags = made
            if (failed := np.asarray(flags)).any():
                with self.device.here():
                    raise self.lowering.failure(stage, failed, arrays)
        elif made:
            # All results are there when one is; to wait for each takes twice as long.
            made[0].block_until_ready()
        return made

    def _ran(self, stage: Stage, arrays: Sequence[Any], nexts: Sequence[Any]) -> Any:
        """The results of a stage's function, which is compiled when it is first called.

        Without `enable_x64` JAX would take numbers of 64 bits for such of 32.
        """
        if stage.function is None:
            with self.device.here():
                # What is elsewhere would draw the function there.
                arrays = self.device.moved(arrays)
                self._compile(stage, arrays, nexts)
        if not stage.wide or self._on_device.issuperset(map(type, arrays)):
            return stage.function(*arrays, *nexts)
        # As `as_needed`, which as a generator would take as long as JAX's own call.
        jax = self.device.jax
        with jax.enable_x64(jax.config.jax_enable_x64), jax.enable_x64(True):
            return stage.function(*arrays, *nexts)

    def _compile(self, stage: Stage, arrays: Sequence[Any], nexts: Sequence[Any]) -> None:
        updated = {*self.lowering.outputs[self.count :]}
        kept = [self.device.kept if i in updated else _as_it_is for i in stage.gives]
        run = partial(_kept, self.lowering.function(stage, stage.gives), kept, len(arrays))
        with self.lowering.tracing:  # the first of several threads compiles it
            if stage.function is None:
                passed = range(len(arrays), len(arrays) + len(nexts))
                jitted = self.device.jax.jit(run, donate_argnums=passed, keep_unused=bool(passed))
                stage.function = jitted.lower(*arrays, *nexts).compile()


def _kept(
    run: Callable[..., Any], kept: Sequence[Callable[[Any], Any]], count: int, *arrays: Any
) -> Any:
    """The results of a function of the lowering, those that are kept as the device keeps them.

    The flags of what can fail are the last one, if there are any. Of the arrays the first `count`
    are what it takes; the others are memory for results.
    """
    made, flags = run(*arrays[:count])
    return *(keep(y) for keep, y in zip(kept, made, strict=True)), *flags


def _as_it_is(value: Any) -> Any:
    return value


class JaxExecutables(Executables):
    """Executables of JAX's, one for each combination of sizes."""

    def __init__(
        self, names: Collection[str], make: Callable[[Mapping[str, int]], JaxExecutable]
    ) -> None:
        self._make = make
        super().__init__(names, lambda sizes: make(sizes).plan, "jax")

    def _made(self, sizes: Mapping[str, int], filename: str = "") -> Executable:
        return self._make(sizes)


class JaxProgram(Program):
    """A program that JAX runs: `compile(..., backend="jax")`.

    Variables stay on the device from call to call; `.value`, checkpoints and other programs fetch
    them. Their memory is not donated to the next values: a step that fails could not leave them as
    they were, and any step may, for want of memory, when XLA has taken theirs. On a processor that
    of the values before them is, for variables of 128 KiB or more, which so take it twice. Ctrl-C
    is seen when what XLA runs has ended.
    `plan`, `source` and `cost()` are those of the NumPy program of the same graph.
    """

    def parts(
        self, placeholders: Sequence[Node], variables: Sequence[Variable]
    ) -> tuple[Feeder, Executables, VariableStore]:
        names = {name for n in placeholders for name in n.tensor.names}
        name, shard = self.interface.device, self.interface.shard
        self.mesh = None if shard is None else Mesh(name, shard, names)
        device = self.device = self.mesh or Device(name)
        updated = self.interface.updated
        make = partial(
            JaxExecutable,
            self.graph,
            count=len(updated),
            device=device,
            plan=partial(self.lower, updates=updated),
        )
        return (
            DeviceFeeder(placeholders, self.interface.forms, device),
            JaxExecutables(names, make),
            DeviceStore(variables, updated, device),
        )

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._called(_owned, args, kwargs)

    def on_device(self, /, *args: Any, **kwargs: Any) -> Any:
        """The same call, whose results are left on the device, as arrays of JAX's.

        Numbers of 64 bits become such of 32 bits in what JAX then computes of them, unless it is
        told otherwise: `with jax.enable_x64(True)`.
        """
        return self._called(self.device.own, args, kwargs)

    def _called(
        self,
        as_given: Callable[[Sequence[Any], Collection[int]], list[Any]],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        inputs, sizes = self.feeder.feed(args, kwargs)
        executable: Any = self.executables.fixed or self.executables.of(sizes)
        try:
            if self.mesh is not None:
                inputs = self.mesh.fed(self.feeder.inputs, inputs, sizes)
            results = self.store.run(executable, inputs, ())
            return self.form(as_given(results, executable.borrowed))
        except Exception as error:
            if (told := self.device.failed(error)) is error:
                raise
            raise told from error

    def error(self, /, *args: Any, **options: Any) -> NoReturn:
        raise UnsupportedError(
            "how XLA rounds is not known line by line; ask the same program with backend='numpy'"
        )

    def profile(self, /, *args: Any, **options: Any) -> NoReturn:
        raise UnsupportedError(
            "XLA tells nobody how long the parts of a program take that it has joined; use "
            "jax.profiler.trace, or profile the same program with backend='numpy'"
        )


def _owned(values: Sequence[Any], borrowed: Collection[int]) -> list[Any]:
    """Results as arrays of NumPy's that are the caller's: each is copied."""
    arrays = map(np.asarray, values)
    return [a.copy() if a.ndim else a[()] for a in arrays]

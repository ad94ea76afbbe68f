"""Programs that JAX runs: their executables, and variables whose values stay on the device."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NoReturn

import numpy as np

from symgrad.backends.jax.device import Device
from symgrad.backends.jax.lowering import Lowering
from symgrad.backends.jax.mesh import Mesh
from symgrad.ir.errors import UnsupportedError
from symgrad.ir.graph import Graph
from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ir.node import Node, Variable
from symgrad.lowering.plan import Plan
from symgrad.runtime.executable import Executable, Executables
from symgrad.runtime.feeding import Feeder
from symgrad.runtime.program import Program
from symgrad.runtime.store import VariableStore


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
        self.filename, self.backend, self.annotate = "<symgrad program>", "jax", None
        self.lowering = Lowering(graph, sizes, device.jax, device.in_turn)
        number = {node: i for i, node in self.lowering.given.items()}
        self._inputs = [number[x] for x in graph.inputs if not isinstance(x, Variable)]
        self._variables = [number[x] for x in graph.inputs if isinstance(x, Variable)]
        self.count = len(self.lowering.outputs) - count
        nexts = {*self.lowering.outputs[self.count :]}
        made = {i for stage in self.lowering.stages for i in stage.gives}
        # Next values that no function makes: inputs, constants, and what NumPy has computed.
        last = range(self.count, len(self.lowering.outputs))
        self._foreign = [k for k in last if self.lowering.outputs[k] not in made]
        for stage in self.lowering.stages:
            kept = [device.kept if i in nexts else _as_it_is for i in stage.gives]
            run = partial(_kept, self.lowering.function(stage, stage.gives), kept)
            stage.function = device.jax.jit(run)

    def __getattr__(self, name: str) -> Any:
        """The plan, which is made when somebody asks for it."""
        if name != "plan":
            raise AttributeError(name)
        self.plan = self._planned(self.sizes)
        return self.plan

    @cached_property
    def _constants(self) -> dict[int, Any]:
        """Values of every call: large constants, on the device, and small ones."""
        given = self.lowering.given.items()
        large = {i: self.device.put(n.attr("value").array) for i, n in given if n.op is CONSTANT}
        return self.lowering.written | large

    def run(
        self,
        inputs: Sequence[Any],
        current: Sequence[Any],
        nexts: Sequence[Any] = (),
        workspace: Sequence[Any] = (),
    ) -> Sequence[Any]:
        """The outputs and then the next values, when all are there and nothing has failed.

        Raises `KernelError` for a step that fails.
        """
        lowering = self.lowering
        values = self._constants | dict(zip(self._inputs, inputs, strict=True))
        values.update(zip(self._variables, current, strict=True))
        for stage in lowering.stages:
            if stage.tasks:
                arrays = [values[i] for i in stage.takes]
                made, flags = stage.function(*arrays)
                if stage.checked and (failed := np.asarray(flags)).any():
                    raise lowering.failure(stage, failed, arrays)
                if not stage.checked and made:
                    # All results are there when one is; to wait for each takes twice as long.
                    made[0].block_until_ready()
                values.update(zip(stage.gives, made, strict=True))
            for i in stage.host:
                values[i] = lowering.on_host(i, values)
        results = [values[i] for i in lowering.outputs]
        for k in self._foreign:
            results[k] = self.device.own(results[k])
        return results


def _kept(run: Callable[..., Any], kept: Sequence[Callable[[Any], Any]], *arrays: Any) -> Any:
    """The results of a function of the lowering, those that are kept as the device keeps them."""
    made, flags = run(*arrays)
    return [keep(y) for keep, y in zip(kept, made, strict=True)], flags


def _as_it_is(value: Any) -> Any:
    return value


class DeviceStore(VariableStore):
    """Variables whose next values stay on the device; those that are not there are put there."""

    def __init__(
        self, variables: Sequence[Variable], updated: Sequence[Variable], device: Device
    ) -> None:
        super().__init__(variables, updated)
        self.device = device
        # Contents of variables with what they are on the device, which only new ones are put on.
        self._known: list[tuple[Any, Any]] = [(None, None)] * len(self.variables)
        place = {v: i for i, v in enumerate(self.variables)}
        self._places = [place[v] for v in self.updated]

    def placed(self) -> list[Any]:
        """The values of all variables at one moment, on the device."""
        found = []
        for i, content in enumerate(self.contents()):
            # That a content is held is what keeps other programs from writing into it.
            held, there = self._known[i]
            if held is not content:
                there = self.device.put(content)
                self._known[i] = content, there
            found.append(there)
        return found

    def _step(self, executable: Any, inputs: Sequence[Any], workspace: Sequence[Any]) -> Any:
        results = executable.run(inputs, self.placed())
        count = len(results) - len(self.updated)
        if self._commits:
            self.exchange(nexts := results[count:])
            for i, value in zip(self._places, nexts, strict=True):
                self._known[i] = value, value
        return results[:count]


class JaxExecutables(Executables):
    """Executables of JAX's, one for each combination of sizes."""

    def __init__(
        self, names: Collection[str], make: Callable[[Mapping[str, int]], JaxExecutable]
    ) -> None:
        self._make = make
        super().__init__(names, lambda sizes: make(sizes).plan, "jax")

    def _made(self, sizes: Mapping[str, int], filename: str = "") -> Executable:
        return self._make(sizes)


class DeviceFeeder(Feeder):
    """A feeder that leaves arrays of JAX's where they are."""

    def __init__(self, inputs: Sequence[Node], forms: Any, device: Device) -> None:
        super().__init__(inputs, forms)
        self.device = device

    def _array(self, p: Node, value: Any) -> Any:
        if isinstance(value, self.device.array_type) and value.dtype == p.dtype:
            return value
        return super()._array(p, value)


class JaxProgram(Program):
    """A program that JAX runs: `compile(..., backend="jax")`.

    Variables stay on the device from call to call; `.value`, checkpoints and other programs fetch
    them. Their memory is not donated to the next values: a step that fails, be it for want of
    memory, could not leave them as they were. Ctrl-C is seen when what XLA runs has ended.
    `plan`, `source` and `cost()` are those of the NumPy program of the same graph.
    """

    def parts(
        self, placeholders: Sequence[Node], variables: Sequence[Variable]
    ) -> tuple[Feeder, Executables, VariableStore]:
        names = {name for n in placeholders for name in n.tensor.names}
        name, shard = self.interface.device, self.interface.shard
        device = self.device = Device(name) if shard is None else Mesh(name, shard, names)
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
        with self.device.here():
            return self.form(list(map(_owned, self._results(args, kwargs))))

    def on_device(self, /, *args: Any, **kwargs: Any) -> Any:
        """The same call, whose results are left on the device, as arrays of JAX's.

        Numbers of 64 bits become such of 32 bits in what JAX then computes of them, unless it is
        told otherwise: `with jax.enable_x64(True)`.
        """
        with self.device.here():
            return self.form(list(map(self.device.own, self._results(args, kwargs))))

    def _results(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Sequence[Any]:
        inputs, sizes = self.feeder.feed(args, kwargs)
        executable = self.executables.fixed or self.executables.of(sizes)
        return self.store.run(executable, self.device.fed(self.feeder.inputs, inputs, sizes), ())

    def profile(self, /, *args: Any, **options: Any) -> NoReturn:
        raise UnsupportedError(
            "XLA tells nobody how long the parts of a program take that it has joined; use "
            "jax.profiler.trace, or profile the same program with backend='numpy'"
        )


def _owned(value: Any) -> Any:
    """A result as an array of NumPy's that is the caller's."""
    return np.array(value) if value.ndim else np.asarray(value)[()]

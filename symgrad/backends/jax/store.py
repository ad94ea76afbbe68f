"""Variables whose values stay on the device from call to call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symgrad.backends.jax.device import Device
from symgrad.ir.node import Variable
from symgrad.runtime.store import VariableStore


class DeviceStore(VariableStore):
    """Variables whose next values stay on the device; those that are not there are put there."""

    def __init__(
        self, variables: Sequence[Variable], updated: Sequence[Variable], device: Device
    ) -> None:
        super().__init__(variables, updated)
        self.device = device
        self._on_device = device.array_types
        # Contents that are arrays of NumPy's with what they are on the device: new ones are put
        # there. That a content is held is what keeps other programs from writing into it.
        self._known: list[tuple[Any, Any]] = [(None, None)] * len(self.variables)

    def _placed(self, contents: Sequence[Any]) -> list[Any]:
        """Contents of variables, on the device."""
        found = []
        for i, content in enumerate(contents):
            held, there = self._known[i]
            if type(content) in self._on_device:
                there = content
            elif held is not content:
                there = self.device.put(content)
                self._known[i] = content, there
            found.append(there)
        return found

    def _step(self, executable: Any, inputs: Sequence[Any], workspace: Sequence[Any]) -> Any:
        there = self.contents()
        if not self._on_device.issuperset(map(type, there)):
            there = self._placed(there)
        passed = executable.passed
        results = executable.run(inputs, there, self._passed(passed) if passed else ())
        if self._commits:
            old = self.exchange(results[executable.count :])
            for i in passed:
                self.spares[i] = old[i]
        return results[: executable.count]

    def _passed(self, numbers: Sequence[int]) -> list[Any]:
        """Arrays for the next values of some variables: as in `_spare`, those before the present.

        In the call they are used up, and Ctrl-C may end it anywhere: so none is kept here. The
        present values are not among them, so that a call that fails leaves these as they were.
        """
        found = []
        for i in numbers:
            free = self.device.has(self.spares[i]) and self.is_free(i)
            found.append(self.spares[i] if free else self.device.empty(self._types[i]))
        self.spares = [None] * len(self.updated)
        return found

"""Several devices among which named dimensions are shared out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from symgrad.backends.jax.device import Device
from symgrad.ir.dims import Dim
from symgrad.ir.errors import FeedError, GraphError
from symgrad.ir.node import Node
from symgrad.ir.types import whole


class Mesh(Device):
    """A grid of devices with an axis for each name: `{"N": 4}` is four, each with a part of N.

    An input with a named dimension lies in parts, everything else whole on every device. XLA finds
    out what follows, and what is summed over all devices. Raises `GraphError` for what is no such
    dict, for a name that no input has, for a device with a number, and if there are not so many
    devices.
    """

    def __init__(self, name: str | None, shard: Any, names: Collection[str]) -> None:
        super().__init__(name)
        if name is not None and ":" in str(name):
            raise GraphError(
                "beside shard=, device= is a kind of device, of which the first are taken, not "
                f"{name!r:.60}: write device={self.device.platform!r}"
            )
        if not isinstance(shard, Mapping) or not shard:
            raise GraphError(f"shard is a dict such as {{'N': 4}}, not {shard!r:.60}")
        for key, number in shard.items():
            if key not in names:
                listed = ", ".join(map(repr, sorted(names))) or "none"
                raise GraphError(
                    f"no input has the named dimension {key!r:.60} of shard; there is {listed}"
                )
            whole(number, f"shard[{key!r}]", 1, GraphError)
        self.shard = dict(shard)
        there, count = self.jax.devices(self.device.platform), prod(self.shard.values())
        if count > len(there):
            raise GraphError(
                f"shard={self.shard} wants {count} devices, and there are {len(there)} of "
                f"{self.device.platform!r}"
            )
        self.in_turn, self.keeps_memory = count == 1, False
        sharding = self.jax.sharding
        grid = np.array(there[:count]).reshape(tuple(self.shard.values()))
        self._mesh = sharding.Mesh(grid, tuple(self.shard))
        self._whole = sharding.NamedSharding(self._mesh, sharding.PartitionSpec())

    def put(self, array: Any, place: Any = None) -> Any:
        """An array whole on every device, or at another place."""
        return super().put(array, place or self._whole)

    def fed(
        self, inputs: Sequence[Node], arrays: Sequence[Any], sizes: Mapping[str, int]
    ) -> list[Any]:
        """Arrays for placeholders, each in its parts. Raises `FeedError` where these are uneven."""
        for name, number in self.shard.items():
            if rest := sizes[name] % number:
                below = sizes[name] - rest
                near = " or ".join(str(s) for s in (below, below + number) if s)
                raise FeedError(
                    f"{name} = {sizes[name]} rows are not shared out evenly among {number} "
                    f"devices; feed {near}"
                )
        return [self.put(a, self._parts(x)) for x, a in zip(inputs, arrays, strict=True)]

    def moved(self, arrays: Sequence[Any]) -> list[Any]:
        """Arrays of which some may be elsewhere, whole on every device; parts stay parts."""
        lies = [getattr(a, "sharding", self._whole).device_set for a in arrays]
        here = self._whole.device_set
        return [a if d == here else self.put(a) for a, d in zip(arrays, lies, strict=True)]

    def _parts(self, x: Node) -> Any:
        """How an input lies: cut along the first axis that is of each name."""
        left = list(self.shard)
        axes = []
        for size in x.shape:
            name = next((n for n in left if isinstance(size, Dim) and size == Dim.of(n)), None)
            axes.append(name)
            if name is not None:
                left.remove(name)
        sharding = self.jax.sharding
        return sharding.NamedSharding(self._mesh, sharding.PartitionSpec(*axes))

    def kept(self, value: Any) -> Any:
        """A next value within a function: whole on every device."""
        return self.jax.lax.with_sharding_constraint(value, self._whole)

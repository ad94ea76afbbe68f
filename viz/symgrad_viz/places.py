"""Where values lie: the slots of a plan, and temporaries in the spare arrays of next values."""

from __future__ import annotations

from typing import NamedTuple

from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import Ref, Slot
from symgrad.ops.index.slices import slice_p


class Place(NamedTuple):
    """A slot, or a temporary told as one, with the number of the spare array that it lies in.

    Its offset is then that in the array.
    """

    slot: Slot
    host: int = -1


class Places:
    """The places of a plan by their numbers: its slots, then what lies in spare arrays.

    A temporary that is written anew, unread, begins a place of its own. A spare array that holds
    some is first written itself when the last of them is done with.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.all = [Place(slot) for slot in plan.slots]
        self._numbers: dict[tuple[int, str], int] = {}
        newest: dict[str, int] = {}
        hosts = {ref.slot for ref in plan.inside.values()}
        for i, step in enumerate(plan.steps):
            read = {plan.named(ref)[0] for ref in step.operands}
            for ref in (*step.operands, *step.results):
                name = plan.named(ref)[0]
                if name not in plan.inside:
                    if ref.slot in hosts:
                        hosts.remove(ref.slot)
                        self._begin(ref.slot, i)
                    continue
                if name not in newest or (name not in read and ref == plan.inside[name]):
                    newest[name] = len(self.all)
                    self.all.append(self._guest(name, i))
                at = self._numbers[i, name] = newest[name]
                self.all[at] = self.all[at]._replace(slot=self.all[at].slot._replace(last=i))

    def number(self, step: int, ref: Ref) -> int:
        """The number of the place of a value that a step reads or writes."""
        return self._numbers.get((step, self.plan.named(ref)[0]), ref.slot)

    def _begin(self, slot: int, step: int) -> None:
        self.all[slot] = Place(self.plan.slots[slot]._replace(first=step))

    def _guest(self, name: str, step: int) -> Place:
        ref = self.plan.inside[name]
        host = self.plan.slots[ref.slot]
        type = host.type.with_shape(ref.shape(host.type))
        (run,) = (dict(v.attrs)["index"] for v in ref.views if v.op is slice_p.op)
        offset = run[0][0] * host.dtype.itemsize
        return Place(Slot(name, "next", type, step, step, offset), ref.slot)

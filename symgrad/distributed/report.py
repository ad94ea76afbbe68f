"""A program in rounds as text, and where the time of a call went."""

from __future__ import annotations

from dataclasses import dataclass, field

from symgrad.distributed.rounds import Spent
from symgrad.ir.dims import guess
from symgrad.ir.errors import counted
from symgrad.ir.node import Node, describe
from symgrad.ir.types import TensorType
from symgrad.lowering.map_reduce.split import Meeting, Split


@dataclass
class Report:
    """Where the time of a call went, round by round; it prints as a table."""

    rounds: list[Spent] = field(default_factory=list)

    def __str__(self) -> str:
        lines = ["round  pieces        rows  reading  computing  sending  joining  workers  (s)"]
        for i, s in enumerate(self.rounds):
            lines.append(
                f"{i + 1:5}{s.pieces:8}{s.rows:12}{s.reading:9.3f}{s.computing:11.3f}"
                f"{s.sending:9.3f}{s.joining:9.3f}{len(s.workers):9}"
            )
        return "\n".join(lines)


def described(split: Split) -> str:
    """The rounds of a program: what every piece reads, and what it sends back."""
    names = ", ".join(str(x.name) for x in split.feeds)
    lines = [f"{counted(len(split.rounds), 'round')} over {split.over}, cut: {names}"]
    for i, (part, meetings) in enumerate(zip(split.rounds, split.meetings, strict=True)):
        rows = [x for x in part.given if x in split.feeds]
        common = [x for x in part.given if x not in split.feeds]
        reads = ", ".join(str(x.name) for x in rows) or "no rows"
        lines.append(f"round {i + 1}: every piece reads {reads}")
        if common:
            lines.append(f"  and in common {_bytes(common)}")
            lines += [f"    {describe(x)}" for x in common]
        lines.append(f"  and sends back {_bytes(part.gives)}")
        lines += [
            f"    {describe(y)}, {_met(m)}" for y, m in zip(part.gives, meetings, strict=True)
        ]
    return "\n".join(lines)


def _met(meeting: Meeting) -> str:
    if meeting.axis is not None:
        return f"in a row along axis {meeting.axis}"
    return f"joined by {meeting.by}"


def _bytes(nodes: list[Node] | tuple[Node, ...]) -> str:
    total = sum(_nbytes(x.tensor) for x in nodes)
    about = "about " * any(x.tensor.names for x in nodes)
    return f"{about}{total:,} bytes"


def _nbytes(t: TensorType) -> int:
    return guess(t.size) * t.dtype.itemsize

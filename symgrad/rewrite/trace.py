"""What the compiler did: the graph after every pass, and every rewrite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, describe
from symgrad.rewrite.rule import Rule


@dataclass(frozen=True)
class Stage:
    """A pass that has run: the graphs before and after it, and how long it took in seconds."""

    name: str
    before: Graph
    after: Graph
    seconds: float


@dataclass(frozen=True)
class Fired:
    """A rule that acted: in which pass, on which node, and what it put there."""

    stage: str
    rule: Rule
    before: Node
    after: Node

    def __str__(self) -> str:
        return f"{self.stage}: {self.rule.name}: {describe(self.before)} -> {describe(self.after)}"


@dataclass
class Trace:
    """Filled while a program is compiled; it is only ever added to."""

    stages: list[Stage] = field(default_factory=list)
    fired: list[Fired] = field(default_factory=list)

    def rules(self) -> dict[str, int]:
        """How often each rule acted, by its name."""
        counts: dict[str, int] = {}
        for entry in self.fired:
            counts[entry.rule.name] = counts.get(entry.rule.name, 0) + 1
        return counts

    def _lines(self) -> Iterator[str]:
        for stage in self.stages:
            yield (
                f"{stage.name}: {len(stage.before)} -> {len(stage.after)} nodes"
                f" in {1e3 * stage.seconds:.1f} ms"
            )
            for entry in self.fired:
                if entry.stage == stage.name:
                    yield f"  {entry.rule.name} at {entry.before.origin}"
                    yield f"    {describe(entry.before)} -> {describe(entry.after)}"
                    yield f"    because: {entry.rule.reason.splitlines()[0]}"

    def __str__(self) -> str:
        return "\n".join(self._lines())

"""Rules in their order, some of which are loaded when a graph needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias, overload

from symgrad.ir.cached import cached_property
from symgrad.ir.op import Op
from symgrad.rewrite.rule import Exact, Rule


class Late(NamedTuple):
    """Rules that are loaded when they are needed: none fits in a graph without one of some ops.

    They go by name, since an op may not be declared yet. Without any, the rules are needed wherever
    they are admitted; all are of the grade `exact` or a looser one.
    """

    load: Callable[[], Iterable[Rule]]
    ops: frozenset[str] = frozenset()
    exact: Exact = Exact.BITS

    def are_for(self, op: Op) -> bool:
        """Whether they may fit in a graph that has an op."""
        return not self.ops or op.name in self.ops

    def where(self, holds: Callable[[Rule], bool]) -> Late:
        """Those of which something holds."""
        return self._replace(load=lambda: filter(holds, self.load()))


RuleLike: TypeAlias = "Rule | Late"


class Rules(Sequence[Rule]):
    """Rules in their order. To look through them is to load those that are late.

    An `Index` of them does not: it loads what the ops of a graph ask for. What a graph becomes does
    not depend on it, since a late rule keeps its place among the others.
    """

    def __init__(self, parts: Iterable[RuleLike]) -> None:
        self.parts: tuple[RuleLike, ...] = tuple(parts)

    @classmethod
    def of(cls, rules: Iterable[Rule]) -> Rules:
        """Rules as they are, or those of a list."""
        return rules if isinstance(rules, Rules) else cls(rules)

    def where(self, holds: Callable[[Rule], bool]) -> Rules:
        """Those of which something holds, in their order."""
        late = [p.where(holds) if isinstance(p, Late) else p for p in self.parts]
        return Rules([p for p in late if isinstance(p, Late) or holds(p)])

    def admitted(self, exact: Exact) -> Rules:
        """Those that a grade admits, in their order."""
        parts = [p for p in self.parts if p.exact <= exact]
        return Rules(parts).where(lambda rule: rule.exact <= exact)

    @cached_property
    def loaded(self) -> tuple[Rule, ...]:
        """All of them, also those that no graph has asked for."""
        parts = [p.load() if isinstance(p, Late) else (p,) for p in self.parts]
        return tuple(chain.from_iterable(parts))

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.loaded)

    def __len__(self) -> int:
        return len(self.loaded)

    @overload
    def __getitem__(self, at: int) -> Rule: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Rule]: ...
    def __getitem__(self, at: int | slice) -> Rule | Sequence[Rule]:
        return self.loaded[at]

    def __add__(self, others: Rules) -> Rules:
        return Rules([*self.parts, *others.parts])

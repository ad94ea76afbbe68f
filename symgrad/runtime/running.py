"""How steps that run bodies are written: loops and choices. A body is a function of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from symgrad.lowering.choices import Branch
from symgrad.lowering.loops import Loop
from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import Ref
from symgrad.lowering.visitor import Visitor
from symgrad.runtime.source import Module


class Running(Visitor[Iterable[str]]):
    """The part of the code generator that writes steps which run bodies."""

    plan: Plan
    module: Module

    @abstractmethod
    def expression(self, ref: Ref, literal: bool = False) -> str:
        """A value as text."""

    @abstractmethod
    def copied(self, target: str, value: str) -> str:
        """The line that copies a value into an array."""

    @abstractmethod
    def function_of(self, plan: Plan) -> str:
        """The name of the function of a plan, which is written unless one like it has been."""

    def loop(self, step: Loop) -> Iterator[str]:
        turns = step.turns
        init, sequences, fixed = (list(map(self.expression, refs)) for refs in step.parts())
        names = [self.expression(r) for r in step.results]
        workspace, spares = turns.shared_out([self.plan.slots[r.slot].name for r in step.scratch])
        state, others = names[: turns.carries], names[: turns.carries]
        for i, spare in enumerate(spares):
            if spare is None:
                yield f"{names[i]} = {init[i]}"
                continue
            # The arrays change places in each step, and the last one is the result.
            places = [names[i], spare]
            state[i], others[i] = places if turns.length % 2 == 0 else places[::-1]
            yield self.copied(state[i], init[i])
        t = self.module.new("t")
        self.module.taken.remove(t)
        targets = [*others, *(f"{name}[{t}]" for name in names[turns.carries :])]
        given = [*state, *(f"{x}[{t}]" for x in sequences), *fixed]
        line = self._called(turns.plan, targets, given, workspace)
        last = turns.length - 1
        yield f"for {t} in {f'range({last}, -1, -1)' if turns.reverse else f'range({last + 1})'}:"
        yield f"    {line}"
        pairs = [(a, b) for a, b in zip(state, others, strict=True) if a != b]
        if pairs:
            here, there = (", ".join(f"{p[i]}, {p[1 - i]}" for p in pairs) for i in (0, 1))
            yield f"    {here} = {there}"
            if turns.length % 2:
                yield f"{here} = {there}"

    def branch(self, step: Branch) -> Iterator[str]:
        p, *given = map(self.expression, step.operands)
        names = [self.expression(r) for r in step.results]
        scratch = [self.plan.slots[r.slot].name for r in step.scratch]
        for word, (plan, workspace) in zip((f"if {p}:", "else:"), step.sides(scratch), strict=True):
            yield word
            yield f"    {self._called(plan, names, given, workspace)}"

    def _called(
        self, plan: Plan, names: Sequence[str], given: Sequence[str], workspace: Sequence[str]
    ) -> str:
        """The call of a plan's function, which writes into arrays of these names, or gives them."""
        made = list(zip(names, plan.nexts, strict=True))
        arguments = [*given, *(name for name, n in made if n >= 0), *workspace]
        numbers = ", ".join(name for name, n in made if n < 0)
        line = f"{self.function_of(plan)}({', '.join(arguments)})"
        return f"{numbers} = {line}" if numbers else line

"""How steps that run bodies are written: loops and choices. A body is a function of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain, compress
from typing import TYPE_CHECKING

from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import Ref, Step
from symgrad.lowering.visitor import Visitor
from symgrad.runtime.literals import int_text, plain_text
from symgrad.runtime.source import Module

if TYPE_CHECKING:
    from symgrad.lowering.choices import Branch
    from symgrad.lowering.loops import Loop
    from symgrad.lowering.whiles import Sized, While


class _Swaps:
    """Names of carries: arrays change places with spare ones, and a number has the same name."""

    def __init__(self, names: Sequence[str], spares: Sequence[str | None]) -> None:
        places = list(zip(names, spares, strict=False))
        self.state = [name for name, _ in places]
        self.others = [name if spare is None else spare for name, spare in places]
        self.swap = [spare is not None for spare in spares]

    def begin_with_spares(self) -> None:
        """Let the state be in the spare arrays: after an odd number of steps it is not."""
        self.state, self.others = self.others, self.state

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The names of the arrays that change places."""
        return list(compress(zip(self.state, self.others, strict=True), self.swap))

    @property
    def text(self) -> str:
        """The line that lets arrays change places."""
        here, there = (", ".join(f"{p[i]}, {p[1 - i]}" for p in self.pairs) for i in (0, 1))
        return f"{here} = {there}"


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
        turns, (first, *read) = step.turns, step.parts()
        seen = yield from self._named([*chain(*read), *step.results])
        sequences, fixed, names = ([seen[r] for r in refs] for refs in (*read, step.results))
        init = self._expressions(first)
        if turns.is_of_floats:
            init = [f"float({x})" for x in init]
            values = [*(f"{x}.tolist()" for x in sequences), *(f"float({x})" for x in fixed)]
            read_by_steps = yield from self._also(values)
            sequences, fixed = read_by_steps[: len(sequences)], read_by_steps[len(sequences) :]
        workspace, spares = turns.shared_out(self._scratch(step))
        length, swaps = int_text(turns.length), _Swaps(names, spares)
        if isinstance(turns.length, int) and turns.length % 2:
            swaps.begin_with_spares()
        t = self.module.new("t")
        self.module.taken.remove(t)
        yield from self._begun(swaps, init, turns.kept)
        for i in turns.kept:
            yield self.copied(f"{names[i]}[{turns.first}]", init[i])
            rows = (f"{t} + 1" if further else t for further in turns.rows)
            swaps.state[i], swaps.others[i] = (f"{names[i]}[{row}]" for row in rows)
        targets = [*swaps.others, *(f"{name}[{t}]" for name in names[turns.carries :])]
        given = [*swaps.state, *(f"{x}[{t}]" for x in sequences), *fixed]
        steps = f"range({length})"
        if turns.reverse:
            last = turns.length - 1
            steps = f"range({int_text(last)}, -1, -1)"
        yield f"for {t} in {steps}:"
        yield f"    {self._called(turns.plan, targets, given, workspace)}"
        if swaps.pairs:
            yield f"    {swaps.text}"
            if not isinstance(turns.length, int):
                yield from self._settled(swaps, length)
            elif turns.length % 2:
                yield swaps.text
        for name in names[: turns.carries] if turns.is_of_floats else ():
            self.module.numpy_names.add("float64")
            yield f"{name} = float64({name})"

    def while_loop(self, step: While) -> Iterator[str]:
        first, read = step.parts()
        seen = yield from self._named([*read, *step.results])
        init, fixed = self._expressions(first), [seen[r] for r in read]
        count, *names = (seen[r] for r in step.results)
        looks, workspace, spares = step.shared_out(self._scratch(step))
        swaps = _Swaps(names, spares)
        yield from self._begun(swaps, init)
        yield f"{count} = 0"
        given = [*swaps.state, *fixed]
        yield f"while {self.function_of(step.test)}({', '.join([*given, *looks])}):"
        if step.most is not None:
            yield f"    if {count} == {int_text(step.most)}:"
            yield f"        raise RuntimeError({plain_text(step.exceeded)})"
        yield f"    {self._called(step.turns.plan, swaps.others, given, workspace)}"
        yield f"    {count} += 1"
        if swaps.pairs:
            yield f"    {swaps.text}"
            yield from self._settled(swaps, count)
        self.module.numpy_names.add("int64")
        yield f"{count} = int64({count})"

    def sized(self, step: Sized) -> Iterator[str]:
        yield self._called(
            step.plan,
            self._expressions(step.results),
            self._expressions(step.operands),
            self._scratch(step),
        )

    def _named(self, refs: Sequence[Ref]) -> Generator[str, None, dict[Ref, str]]:
        """The lines that name views, which a loop reads or swaps in each step; all names."""
        seen = {r: self.module.new("v") if r.views else self.expression(r) for r in refs}
        for ref, name in seen.items():
            if ref.views:
                self.module.taken.remove(name)
                yield f"{name} = {self.expression(ref)}"
        return seen

    def _also(self, values: Sequence[str]) -> Generator[str, None, list[str]]:
        """The lines that name values which only a loop reads; their names."""
        names = [self.module.new("n") for _ in values]
        self.module.taken.difference_update(names)
        yield from (f"{name} = {value}" for name, value in zip(names, values, strict=True))
        return names

    def _begun(self, swaps: _Swaps, init: Sequence[str], kept: Sequence[int] = ()) -> Iterator[str]:
        """The lines that give carries what they begin with, but for those that are kept."""
        for i, (state, value) in enumerate(zip(swaps.state, init, strict=True)):
            if i not in kept:
                yield self.copied(state, value) if swaps.swap[i] else f"{state} = {value}"

    def _settled(self, swaps: _Swaps, count: str) -> Iterator[str]:
        """The lines that bring results to their places after a number of steps that may be odd."""
        yield f"if {count} % 2:"
        for state, other in swaps.pairs:
            yield f"    {self.copied(other, state)}"
        yield f"    {swaps.text}"

    def _expressions(self, refs: Sequence[Ref]) -> list[str]:
        return [self.expression(ref) for ref in refs]

    def _scratch(self, step: Step) -> list[str]:
        return [self.plan.slots[r.slot].name for r in step.scratch]

    def branch(self, step: Branch) -> Iterator[str]:
        p, *given = self._expressions(step.operands)
        names, sides = self._expressions(step.results), step.sides(self._scratch(step))
        for word, (plan, workspace) in zip((f"if {p}:", "else:"), sides, strict=True):
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

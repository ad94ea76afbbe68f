"""How steps in machine code are written: a line that calls it, and says which ops it holds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator

from symgrad.ir.node import Node
from symgrad.lowering.native import NativeCall, NativeLoop, held
from symgrad.lowering.steps import Product, Ref
from symgrad.runtime.running import Running
from symgrad.runtime.threads import resting, share


class MachineCode(Running):
    """The part of the code generator that writes steps in machine code."""

    @abstractmethod
    def joined(self, ref: Ref, parts: str, y: Node) -> str:
        """The line that joins the parts of a reduction over rows."""

    def sharing(self) -> Callable[..., None]:
        """`share`, before which the threads of machine code go to rest, if there are any."""
        if not self.plan.has_native:
            return share
        from symgrad.native.team import has_team, team

        return resting(team().rest) if has_team() else share

    def native_product(self, step: Product) -> str:
        """The name of what multiplies large matrices of this kind."""
        scope, code = self.module.scope, step.code.call
        known = [name for name, held in scope.items() if held is code]
        plain = step.name
        name = known[0] if known else plain if plain not in scope else self.module.new(plain)
        scope[name] = code
        return name

    def native_loop(self, step: NativeLoop) -> Iterator[str]:
        module, rows = self.module, step.code.rows
        name = module.new("native")
        module.scope[name] = step.code.call
        ends = list(step.ends([self.plan.slots[r.slot].name for r in step.scratch]))
        given = [*map(self.expression, step.operands)]
        given += [self.expression(ref) if part is None else part for ref, part, _ in ends]
        call = f"{name}({', '.join(given)}"
        shared = module.threads and step.piece < rows
        pieces = f", {step.piece} rows in a piece, on {step.threads} threads" if shared else ""
        yield f"# machine code for {held(step)}{pieces}"
        if not shared:
            yield f"{call}, 0, {rows})"
        elif step.code.shares:
            yield f"{call}, 0, {rows}, {step.piece}, {step.threads})"
        else:
            work, start = module.new("rows"), module.new("start")
            module.taken.remove(start)
            module.scope["share"] = self.sharing()
            yield f"def {work}({start}):"
            yield f"    {call}, {start}, min({start} + {step.piece}, {rows}))"
            yield f"share({work}, range(0, {rows}, {step.piece}), [()] * {step.threads})"
        yield from (self.joined(ref, part, y) for ref, part, y in ends if part is not None)

    def native_call(self, step: NativeCall) -> Iterator[str]:
        name = self.module.new("native")
        self.module.scope[name] = step.code.call
        slots = [self.plan.slots[r.slot] for r in step.results]
        given = [*map(self.expression, step.operands)]
        given += [s.name for s in slots if s.kind == "next"]
        made = [s.name for s in slots if s.kind != "next"]
        yield f"# machine code for {held(step)}"
        targets = f"({made[0]},)" if len(made) == 1 else ", ".join(made)
        yield f"{targets}{' = ' * bool(made)}{name}({', '.join(given)})"

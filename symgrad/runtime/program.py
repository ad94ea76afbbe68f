"""Programs: compiled graphs that are called with arrays. The one object with state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack, overload

from symgrad.ir.errors import FeedError, GraphError, listed
from symgrad.ir.graph import Graph
from symgrad.ir.late import SLOTS, Displayed, Drawing, Exploring, Telling
from symgrad.ir.node import Node, Variable
from symgrad.ir.origin import printable
from symgrad.ir.record import Record, replace
from symgrad.lowering.cost import Cost, cost
from symgrad.lowering.lower import lower
from symgrad.lowering.native import NativeCall, NativeCode, NativeLoop, WholeCode
from symgrad.lowering.plan import Plan
from symgrad.lowering.steps import MatmulCode, Product, Step
from symgrad.passes.erase_identities import erase_updates
from symgrad.passes.hoist import Split
from symgrad.rewrite.trace import Trace
from symgrad.runtime.codegen import generate
from symgrad.runtime.copies import VERSION, remade, state_of, traces_of
from symgrad.runtime.executable import Backend, Executables
from symgrad.runtime.feeding import Feeder
from symgrad.runtime.native import Natives
from symgrad.runtime.prologue import Prologue, annotate_body, lower_body
from symgrad.runtime.runner import Runner
from symgrad.runtime.store import VariableStore
from symgrad.runtime.subnormals import prepare

if TYPE_CHECKING:
    from pathlib import Path

    from symgrad.runtime.inspect.check import Check
    from symgrad.runtime.inspect.finite import Finiteness
    from symgrad.runtime.inspect.profile import Profile
    from symgrad.runtime.inspect.rounding import RoundingError
    from symgrad.runtime.inspect.why import Why

NOTHING: Mapping[Any, Any] = MappingProxyType({})
RUNS = 30  # that `profile` times
RTOL = 1e-3  # by which `check` lets a result differ from that in float64


class Interface(Record, frozen=True):
    """How a program is called, and what runs it.

    `form` makes of the outputs what a call returns; `output_names` are their names, those of next
    values last; `updated` are the variables that a call updates; `forms` are those of the arguments
    by position, None if each is one array. `backend`, `threads`, `device` and `shard` are those of
    `compile`; `exact` if no bit may differ from NumPy's; `flushes` if subnormal numbers count as 0.
    """

    form: Callable[[Sequence[Any]], Any]
    output_names: tuple[str, ...]
    updated: tuple[Variable, ...] = ()
    forms: tuple[Any, ...] | None = None
    backend: Backend = "numpy"
    threads: int = 1
    exact: bool = False
    device: str | None = None
    shard: Mapping[str, int] | None = None
    flushes: bool = False


class Program(Displayed, Runner):
    """A compiled graph. Call it with arrays, by position or by name.

    What it returns has the form of the `outputs` it was compiled with; the arrays are the
    caller's, and 0-d results are NumPy scalars. Inputs are never written. If it updates
    variables, all of them change together once everything has been computed, or none of them.
    It may be called from several threads: calls that update take turns.

    `graph` is what runs, `raw` what was written, `trace` the way from the one to the other.

    What depends only on variables that it does not update is computed once and kept, until one of
    them has changed, if that saves work: `kept` is a program that computes it, or None. Of `graph`
    that is a part; `plan`, `source` and `cost` are of the rest, and `kept` has its own. A partial
    program may keep several parts: `held` has the program of each, by what it depends on.

    `interface` says how it is called. `feeder`, `executables` and `store` are what a call goes
    through: see `Runner`.
    """

    def __init__(
        self,
        graph: Graph,
        raw: Graph,
        trace: Trace,
        interface: Interface,
        split: Split | None = None,
        made: Mapping[Split, Program] = NOTHING,
    ) -> None:
        self.graph, self.raw, self.trace = graph, raw, trace
        self.interface, self.split = interface, split
        self.output_names = interface.output_names
        placeholders = [n for n in graph.inputs if not isinstance(n, Variable)]
        variables = [n for n in graph.inputs if isinstance(n, Variable)]
        # `lower` for the graph, or for that part of it that runs in every call.
        self.lower = partial(lower, graph) if split is None else partial(lower_body, split)
        self.natives: Natives | None = None
        self.held: dict[str, Program] = {}
        self._made = dict(made)
        super().__init__(*self.parts(placeholders, variables), interface.form)
        fixed = self.executables.fixed
        if fixed is not None and interface.forms is None and not self.feeder.ranges:
            self.direct = fixed.direct

    def parts(
        self, placeholders: Sequence[Node], variables: Sequence[Variable]
    ) -> tuple[Feeder, Executables, VariableStore]:
        """The way of a call; a back end that is not NumPy has its own."""
        interface, split = self.interface, self.split
        updated, backend, threads = interface.updated, interface.backend, interface.threads
        names = {name for n in placeholders for name in n.tensor.names}
        annotate = None if split is None else annotate_body
        if interface.flushes:
            prepare()
        if backend in (None, "native"):
            insist = backend == "native"
            self.natives = Natives(exact=interface.exact, insist=insist, threads=threads)
        plan = partial(self.lower, updates=updated, threads=threads, native=self.natives)
        prologue = None
        if split is not None:
            own = replace(interface, form=tuple, updated=(), forms=None)
            for part in split.kept:
                if part not in self._made:
                    named = replace(own, output_names=part.names)
                    traced = part.graph, part.raw, part.trace
                    self._made[part] = Program(*traced, named, part, self._made)
            programs = [self._made[part] for part in split.kept]
            self.held = {p.depends: made for p, made in zip(split.kept, programs, strict=True)}
            executables = [made.executables for made in programs]
            prologue = Prologue(split, executables, placeholders, variables)
        return (
            Feeder(placeholders, interface.forms),
            Executables(names, plan, backend, annotate, interface.flushes),
            VariableStore(variables, updated, prologue),
        )

    # ---- copies -----------------------------------------------------------------------------

    def __copy__(self) -> Program:
        """The same program: it shares variables, plans and workspaces."""
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Program:
        """The same with variables of its own, which begin with the present values.

        What is copied together shares them: `copy.deepcopy((program, w))`.
        """
        return remade(VERSION, *deepcopy((*state_of(self), *traces_of(self)), memo))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, it runs the same graph, and variables have their values; the trace is lost."""
        return remade, (VERSION, *state_of(self))

    @property
    def kept(self) -> Program | None:
        """The program that computes what is kept, if there is one such part; see `held`."""
        return next(iter(self.held.values())) if len(self.held) == 1 else None

    # ---- looking ----------------------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        """Steps and memory, for the sizes of the last call (before one: every name is 64).

        What is kept from call to call is counted by `kept.plan.output_bytes`.
        """
        return self.executables.shown().plan

    @property
    def source(self) -> str:
        """The NumPy program, for the sizes of the last call (before one: every name is 64)."""
        return self.executables.shown().source.text

    @property
    def native(self) -> tuple[NativeCode | WholeCode | MatmulCode, ...]:
        """The groups and products that run as machine code, or the whole, or ().

        They are those for the sizes of the last call. Each has `ir`, which is LLVM's, and
        `assembly`.
        """
        steps = [s for step in self.plan.steps for s in (step, *_inside(step))]
        kinds = (NativeLoop, NativeCall, Product)
        return tuple(dict.fromkeys(step.code for step in steps if isinstance(step, kinds)))

    def why(self, node_or_line: Node | int | str) -> Why:
        """Why it runs what it runs: the way from what was written to the step that computes it now.

        Ask about a node that it was compiled from, about a line of yours (`12`, or `"train.py:12"`
        if there are several files), about a line of `source`, or about a node of `graph`, which
        runs. The answer prints as a story: the line, what it built, each rewrite with its grade and
        reason, and the steps of the plan with their lines in the source; then why ops are one fused
        group, and where it begins and ends; and why large groups were left to NumPy, if any were
        that could have been machine code. It has the same as fields. Of what is computed once and
        kept, the steps are those of `kept.plan`, and the lines those of `kept.source`.

        Raises `GraphError` for a node that is no part of the program, and for a line at which
        nothing was built; it lists the nearest that built something.
        """
        from symgrad.runtime.inspect.why import explained

        runs = [p.executables.shown() for p in (self, *self.held.values())]
        answer = explained(self.raw, self.trace, runs, self.split, node_or_line)
        reasons = () if self.natives is None else self.natives.reasons
        return replace(answer, left=tuple(reasons))

    def cost(self, /, **sizes: int) -> Cost:
        """Floating-point operations and bytes moved, of each step and in all; it prints as a table.

        It holds for the sizes of the last call, or for those given: `cost(N=64)`. `before` is the
        graph as it was written, run op by op, `after` what runs. Each has `steps`, with `flops`,
        `bytes_read`, `bytes_written` and `intensity`, and these in all; `bytes_moved` if each step
        goes over whole arrays, and `bytes_fused` if each fused group is one pass over its operands,
        as a large one nearly is that runs in tiles.
        `symgrad.lowering.cost.cost` says what counts. What is computed once and kept is no part of
        `after`: see `kept.cost()`.
        """
        known = self.executables.shown(sizes).plan.sizes
        written = Graph(erase_updates(self.raw, Trace()), self.raw.inputs)
        raw = lower(written, known, self.store.updated, tiled=False)
        return Cost(cost(raw), cost(self.untiled(known)))

    def untiled(self, sizes: Mapping[str, int]) -> Plan:
        """The plan for these sizes as its cost is counted: each step goes over whole arrays."""
        return self.lower(sizes, self.store.updated, tiled=False)

    def profile(self, /, *args: Any, runs: int = RUNS, **kwargs: Any) -> Profile:
        """Time each step in calls with these arrays, which update nothing: see `Profile`."""
        from symgrad.runtime.inspect.profile import profiled

        return profiled(self, args, kwargs, runs)

    def check(
        self, /, *args: Any, against: str | None = None, rtol: float = RTOL, **kwargs: Any
    ) -> Check:
        """Find the first node that makes a NaN or an inf of these arrays that reaches an output.

        With `against="float64"`, the first node whose result differs by more than `rtol` from that
        of the same graph in float64, relative to its largest element. Constants, random numbers and
        what Python code of yours gives are taken as they are. The answer is true if nothing was
        found; printed, it names the node, its line and the ranges of its inputs, and lists what
        reaches no output, being harmless. A matrix that is not what `assume` says is told instead.
        Nothing is updated.

        >>> x = placeholder("x", 3)
        >>> print(compile(x, sum(log(x))).check([1.0, 0.0, 2.0]))  # doctest: +ELLIPSIS
        log made inf: 1 of 3, first at (1,)
          built at ...
          input 0, 'x' float64[3] (...): from 0 to 2
          result, log float64[3] (...): from 0 to 0.693147, 1 inf
        """
        from symgrad.runtime.inspect.check import checked

        return checked(self.graph, self.raw, self, args, kwargs, against, rtol)

    def finite(self) -> Finiteness:
        """Prove that no output is NaN or infinite, or name the first node that can make one.

        What is proved holds for all inputs that are finite and lie within the ranges that their
        placeholders were declared with, and for named axes of 1 to 2**40 elements; see
        `Node.range`. Where it is not proved, nothing is said: ranges do not know that two operands
        are of one node. It is about the graph as written; at `reals` no program overflows sooner.

        >>> p = placeholder("p", 3, within=(0, 1))
        >>> bool(compile(p, exp(p)).finite())
        True
        >>> print(compile(p, log(p)).finite())  # doctest: +ELLIPSIS
        log can make an inf
        ...
        """
        from symgrad.runtime.inspect.finite import finiteness

        return finiteness(self.raw)

    def error(self, /, *args: Any, bound: bool = False, **kwargs: Any) -> RoundingError:
        """Tell how far rounding has moved the outputs for these arrays, and which lines cause it.

        What is estimated is the distance from what the graph as written gives in long double, in
        the element where it is largest; that of float64 programs, where long double is no wider
        than float64, as 0. With `bound`, each output has a number that its error does not exceed,
        whatever was rounded: the graph is run once more, on intervals that are rounded outwards,
        for arrays and constants that are taken as exact, which those in the formula of a function
        may not be, such as that of gelu. It is `inf` where no bound is known, and `why` names the
        line: for solves, decompositions, loops, complex numbers, and beside a jump or a pole. The
        causes are the nodes whose own rounding moves that element most, to first order. It prints;
        nothing is updated. See Higham, Accuracy and Stability of Numerical Algorithms, 2002.

        >>> x = placeholder("x", (), "float32")
        >>> print(compile(x, (exp(x) - 1 - x) / x**2).error(1e-3))  # doctest: +ELLIPSIS
        output: ... of its magnitude)
          ...  expm1  ...
        """
        from symgrad.runtime.inspect.rounding import of_program

        return of_program(self, self.raw, self.trace, self.output_names, args, kwargs, bound)

    def save_source(self, path: str | Path, /, **sizes: int) -> Path:
        """Write the program as one file that imports NumPy only.

        It holds for the sizes of the last call, or for those given: `save_source("p.py", N=64)`.
        What is computed once and kept here is computed in every call there. Arguments by position
        and results have the same form; by name the file is given arrays. The file is written whole
        or not at all. Raises `FeedError` if sizes are not known.
        """
        from symgrad.runtime.standalone import Standalone

        if not sizes and not self.executables.used:
            wanted = ", ".join(f"{n}=…" for n in self.executables.names)
            raise FeedError(f"a program is written for known sizes: save_source(path, {wanted})")
        shown, updated = self.executables.shown(sizes), self.store.updated
        plan, source = shown.plan, shown.source
        outputs = self.output_names[: len(plan.outputs)]
        keeps = self.split is not None
        if keeps or self.interface.threads > 1 or self.native:
            plan = lower(self.graph, plan.sizes, updated)
            source = generate(plan)
        forms = self.feeder.forms
        return Standalone(plan, source, updated, outputs, self.form, forms, keeps).save(path)

    @property
    def outputs_as_written(self) -> Graph:
        """The graph of its outputs as it was written, without updates.

        Raises `GraphError` if there are none.
        """
        count = len(self.raw.outputs) - len(self.interface.updated)
        if not count:
            raise GraphError("it has no outputs, and updates are not exported")
        return Graph(erase_updates(self.raw, Trace())[:count], self.raw.inputs)

    def export(
        self,
        path: str | Path,
        platforms: Sequence[str] = ("cpu", "cuda", "tpu"),
        *,
        checked: bool = False,
    ) -> Path:
        """Write what it computes as StableHLO, which XLA runs on any of these platforms.

        `jax.export.deserialize(bytearray(data)).call(*arrays)` runs it, without symgrad, within
        `jax.enable_x64(True)` if there are numbers of 64 bits. Arrays are by position, outputs in
        one row; named dimensions stay open, from 1 on. Variables have their present values, and
        updates are left out.

        It refuses nothing. Where the program would raise, an index out of bounds is the nearest
        one, a loop ends after its most steps, a parameter of a law is taken as it is, and a matrix
        without factor or inverse gives NaN or inf. If it is `checked`, a last output tells whether
        there was such a thing: a bool. What `placeholder(within=…)` declares is believed.

        Raises `UnsupportedError`, which names the node and its line, for what runs in NumPy and for
        a size that must be known, and if JAX is missing.
        """
        return SLOTS.export(self, path, platforms, checked)

    @overload
    def render(self, path: str | Path, **options: Unpack[Drawing]) -> Path: ...
    @overload
    def render(self, path: None = None, **options: Unpack[Drawing]) -> Any: ...
    def render(self, path: str | Path | None = None, **options: Unpack[Drawing]) -> Any:
        """Draw the graph that runs into a file: .svg, .png or .dot. What is kept is part of it.

        Without a path, as in `explore` and `story`, the answer is what a notebook shows.
        """
        return SLOTS.viewer().render(self, path, **options)

    @overload
    def explore(self, path: str | Path, **options: Unpack[Exploring]) -> Path: ...
    @overload
    def explore(self, path: None = None, **options: Unpack[Exploring]) -> Any: ...
    def explore(self, path: str | Path | None = None, **options: Unpack[Exploring]) -> Any:
        """Write a page that shows every pass, every node with its story, and the source.

        It is one HTML file that needs no network. `profile=` takes what `profile` gave;
        `embed_source=False` leaves your source out. See `symgrad_viz.explore`.
        """
        return SLOTS.viewer().explore(self, path, **options)

    @overload
    def story(self, path: str | Path, **options: Unpack[Telling]) -> Path: ...
    @overload
    def story(self, path: None = None, **options: Unpack[Telling]) -> Any: ...
    def story(self, path: str | Path | None = None, **options: Unpack[Telling]) -> Any:
        """Draw the way from what was written to what runs, stage by stage, into one SVG.

        See `symgrad_viz.story`, whose options these are.
        """
        return SLOTS.viewer().story(self, path, **options)

    def __repr__(self) -> str:
        names = printable(listed(self.feeder.names))
        updated = printable(listed(str(v.name) for v in self.store.updated))
        updates = f", updating {updated}" * bool(updated)
        return f"<Program of ({names}): {len(self.graph)} nodes{updates}>"


def _inside(step: Step) -> Iterator[Step]:
    """The steps that a step runs again and again, and those within them."""
    for inner in () if step.inner is None else step.inner.steps:
        yield inner
        yield from _inside(inner)

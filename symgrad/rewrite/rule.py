"""Rules: what may be written instead of what, why, and how exactly it is the same."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias, get_type_hints

from symgrad.ir.arraylike import is_function
from symgrad.ir.cached import cached_property
from symgrad.ir.errors import RewriteError, UnsupportedError
from symgrad.ir.node import Node
from symgrad.ir.op import NO_PICKLE, REGISTRY, Op
from symgrad.ir.record import Record, replace
from symgrad.rewrite.family import Twin
from symgrad.rewrite.pattern import (
    Applied,
    Attr,
    Const,
    Pattern,
    Substitution,
    Var,
    applied_in,
    as_pattern,
    instantiate,
    interior,
    match,
    names_in,
    variants,
)

Example: TypeAlias = "Mapping[str, Any] | Callable[..., Node]"
Grade: TypeAlias = Literal["bits", "values", "rounding", "reals"]


class Exact(IntEnum):
    """How much a rule may change, from nothing to all that real arithmetic allows.

    `BITS`: nothing. `VALUES`: the sign of a zero, and what is made of it. `ROUNDING`: last digits,
    and an inf or NaN that only came of an overflow on the way; what was finite stays finite, and no
    rounding that was written is undone. `REALS`: floats are taken for real numbers. Which NaN a NaN
    is may change at each. The table of `docs/lookup/grades.md` has it exactly, with examples.
    """

    BITS = 0
    VALUES = 1
    ROUNDING = 2
    REALS = 3

    @classmethod
    def of(cls, grade: Exact | Grade) -> Exact:
        """A grade from its name. Raises `RewriteError` for another."""
        try:
            return grade if isinstance(grade, Exact) else cls[grade.upper()]
        except (KeyError, AttributeError):
            names = ", ".join(repr(g.name.lower()) for g in cls)
            raise RewriteError(f"exact is one of {names}, not {grade!r}") from None


class Rewrite(NamedTuple):
    """A pattern and what stands for it: another, or a function of the rule's variables.

    The function is given the nodes and attributes that the variables it names were bound to, and as
    `node` what was matched; it returns a node, or None to leave things as they are.
    """

    before: Any
    after: Any


class Match(NamedTuple):
    """A rule that fits a node: what its variables are, and which nodes vanish with it."""

    rule: Rule
    node: Node
    bound: Substitution
    replaced: tuple[Node, ...]

    def build(self) -> Node | None:
        """The replacement, or None if the rule leaves things as they are."""
        if self.rule.function is not None:
            return self.rule.function(self.node)
        assert self.rule.rewrite is not None
        after = self.rule.rewrite.after
        if isinstance(after, Pattern):
            return instantiate(after, self.bound, self.node)
        made = _call(after, self.bound | {"node": self.node})
        assert made is None or isinstance(made, Node)
        return made


class Rule(Record, frozen=True):
    """A named rewrite with its reason, its grade and its guard.

    It is tried at the op of its pattern, or at all of which a `fact` holds. `single_use` says that
    the nodes within the pattern must have no other reader, since their work would otherwise be done
    twice. `stable` says that the truth judges it, not what was written; see `rule`. One that is
    `last` waits until no other fits: what it makes is a kernel of its own, which no other rule
    knows. One for `after_grad` need not keep the gradient. `at` tells at which nodes it is tried,
    if not at all. `examples` bind the variables in tests: shapes for `Var`, numbers for `Const`,
    values for `Attr`; or spell out, of nodes, what the rule is there for. `twins` are the others of
    its family, each made of it by the last of its `twin_by`, `reasons` theirs by name.
    """

    name: str
    exact: Exact
    definition: Callable[..., Any]
    rewrite: Rewrite | None = None
    fact: Callable[[Op], bool] | None = None
    function: Callable[[Node], Node | None] | None = None
    operands: Callable[[Sequence[Op]], bool] | None = None
    when: Callable[..., bool] | None = None
    single_use: bool = False
    stable: bool = False
    last: bool = False
    kinds: str = "biuf"
    examples: tuple[Example, ...] = ()
    variables: tuple[Var | Attr, ...] = ()
    ordered: bool = False
    after_grad: bool = False
    at: Callable[[Node], bool] | None = None
    twins: tuple[Rule, ...] = ()
    twin_by: tuple[Twin, ...] = ()
    reasons: Mapping[str, str] = MappingProxyType({})

    @cached_property
    def reason(self) -> str:
        """Why it holds; of a twin, in its own words or with words exchanged."""
        if self.name in self.reasons:
            return self.reasons[self.name]
        reason = inspect.cleandoc(self.definition.__doc__ or "")
        for twin in self.twin_by:
            reason = twin.reason(reason)
        return reason

    @property
    def root(self) -> Op | None:
        """The op of its pattern; None if it is for those of which a fact holds."""
        op: Op | None = None if self.rewrite is None else self.rewrite.before.op
        return op

    @property
    def ops(self) -> tuple[Op, ...]:
        """The ops at which it is tried, of all that there are, by name."""
        return tuple(op for _, op in sorted(REGISTRY.every().items()) if self.is_for(op))

    def is_for(self, op: Op) -> bool:
        """Whether it is tried at an op."""
        return op is self.root if self.fact is None else self.fact(op)

    @property
    def family(self) -> tuple[Rule, ...]:
        """The rule and its twins."""
        return (self, *self.twins)

    @cached_property
    def forms(self) -> tuple[Applied, ...]:
        """The patterns that it matches, with operands in either order where that is the same."""
        before = None if self.rewrite is None else self.rewrite.before
        if not isinstance(before, Applied):
            return ()
        return (before,) if self.ordered else variants(before)

    def __deepcopy__(self, memo: object) -> Rule:
        return self

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(NO_PICKLE)

    def matches(
        self, node: Node, uses: Callable[[tuple[Node, ...]], bool], forms: Iterable[Applied] | None
    ) -> Sequence[Match]:
        """The ways in which the rule fits a node.

        `uses` tells whether nodes have no reader but this one; `forms` are those worth trying.
        """
        if self.at is not None and not self.at(node):
            return ()
        if self.function is not None:
            fits = self.when is None or self.when(node)
            return (Match(self, node, {}, (node,)),) if fits else ()
        if forms is None:
            forms = self.forms if node.tensor.dtype.kind in self.kinds else ()
        found = []
        for form in forms:
            bound: Substitution = {}
            if not match(form, node, bound) or not self._takes(bound):
                continue
            if self.when is not None and not _call(self.when, bound):
                continue
            inner = tuple(interior(form, node))
            if not self.single_use or uses(inner):
                found.append(Match(self, node, bound, (node, *inner)))
        return found

    def fits(self, node: Node) -> bool:
        """Whether the rule fits a node, if its inner nodes had no other reader."""
        return self.is_for(node.op) and bool(self.matches(node, lambda inner: True, None))

    def only(self, at: Callable[[Node], bool]) -> Rule:
        """The rule, tried at nodes of which something holds: as a pass has seen in the graph."""
        return replace(self, at=at)

    def _takes(self, bound: Substitution) -> bool:
        """Whether the operands are of its kinds: no complex ones, unless it is for those."""
        nodes = bound.values() if "c" not in self.kinds else ()
        return not [x for x in nodes if isinstance(x, Node) and x.tensor.is_complex]

    @property
    def may_shrink(self) -> bool:
        """Whether a replacement of a smaller shape stands for itself, repeated to fit.

        What a function makes, it may; of a pattern, only what works element by element.
        """
        after = None if self.rewrite is None else self.rewrite.after
        return not isinstance(after, Pattern) or all(p.op.elementwise for p in applied_in(after))

    def __repr__(self) -> str:
        if self.rewrite is None:
            return f"{self.name} [{self.exact.name.lower()}]: {self.reason}"
        after = self.rewrite.after if isinstance(self.rewrite.after, Pattern) else "…"
        return f"{self.name} [{self.exact.name.lower()}]: {self.rewrite.before!r} -> {after!r}"


def _call(function: Callable[..., Any], bound: Substitution) -> Any:
    return function(*[bound[name] for name in _parameters(function)])


@lru_cache(maxsize=4096)
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return function.__code__.co_varnames[: function.__code__.co_argcount]


def rule(
    *,
    exact: Exact | Grade,
    when: Callable[..., bool] | None = None,
    single_use: bool = False,
    ordered: bool = False,
    stable: bool = False,
    last: bool = False,
    kinds: str = "biuf",
    examples: tuple[Example, ...] = (),
    family: tuple[Twin, ...] = (),
    reasons: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Callable[..., Rewrite]], Rule]:
    """Declare a rule: a function's parameters are its pattern variables, its docstring the reason.

    Parameters are annotated `Var` (any node), `Const` (a constant of one element) or `Attr` (the
    value of an attribute). The operands of a commutative op match in either order, but for
    `ordered`. `kinds` are the dtype kinds of the result for which the rule holds; without "c" among
    them, no operand is complex either. A `family` (`symgrad.rewrite.family`) makes twins of it:
    of a rule of maximum that of minimum, whose name and reason are in other words, or whose reason
    is the one of that name in `reasons`.

    `stable` is for another form of a function that is written in one that overflows or cancels: it
    is held to the value that exact arithmetic gives, and may differ from what was computed as far
    as that was wrong. It is not for taking back a rounding that was written: `(x + y) - y`,
    `(x * y) / y`, `log(exp(x))` and `sqrt(x)**2` stay, though x would be nearer to the truth, for
    compensated summation lives by such errors. So the check refuses a stable rule that puts an
    operand in place, or that rewrites nothing but sums, products, quotients and roots of elements,
    whose roundings IEEE 754 defines; and an inner value, such as 1 + x in log(1 + x), whose error
    another reader may make up for is matched with `single_use`.

    >>> @rule(exact="bits")
    ... def double_negative(x: Var) -> Rewrite:
    ...     '''Two changes of sign cancel.'''
    ...     return Rewrite(before=-(-x), after=x)
    """

    def declare(function: Callable[..., Rewrite]) -> Rule:
        name = _name(function)
        hints = _hints(function)
        variables = tuple([_variable(name, p, hints.get(p)) for p in _parameters(function)])
        made = function(*variables)
        if not isinstance(made, Rewrite):
            raise RewriteError(f"the rule {name} must return a Rewrite, not {made!r}")
        before = as_pattern(made.before)
        if not isinstance(before, Applied):
            raise RewriteError(f"the rule {name} must match an op, not {before!r}")
        after = made.after if is_function(made.after) else as_pattern(made.after)
        bound = names_in(before)
        _check_bound(name, before, bound, "after", after)
        if when is not None:
            _check_bound(name, before, bound, "when", when)
        declared = Rule(
            name=name,
            exact=Exact.of(exact),
            rewrite=Rewrite(before, after),
            when=when,
            single_use=single_use,
            stable=stable,
            last=last,
            kinds=kinds,
            examples=examples,
            variables=variables,
            ordered=ordered,
            reasons=reasons,
            definition=function,
        )
        twins = _twins(declared, family)
        if strays := reasons.keys() - {twin.name for twin in twins}:
            raise RewriteError(f"the rule {name} has no twin {', '.join(sorted(strays))}")
        return replace(declared, twins=twins) if twins else declared

    return declare


def _twins(rule: Rule, family: Iterable[Twin]) -> tuple[Rule, ...]:
    """The twins of a rule, and those of its twins that have any."""
    found = [rule]
    for twin in family:
        made = [_twin(r, twin) for r in found]
        if made[0] is None:
            raise RewriteError(f"the rule {rule.name} has no twin: no op in {rule} has another")
        found += [r for r in made if r is not None]
    return tuple(found[1:])


def _twin(rule: Rule, twin: Twin) -> Rule | None:
    assert rule.rewrite is not None
    name = twin.name(rule.name)
    before, after = (twin.pattern(p) if isinstance(p, Pattern) else p for p in rule.rewrite)
    assert isinstance(before, Applied)
    if before is rule.rewrite.before:
        return None
    if name == rule.name:
        words = ", ".join(twin.names)
        raise RewriteError(f"the name {name} must tell it from its twin: use one of {words}")
    made = Rewrite(before, after)
    return replace(rule, name=name, twin_by=(*rule.twin_by, twin), rewrite=made)


def rule_for(
    fact: Callable[[Op], bool],
    *,
    exact: Exact | Grade,
    operands: Callable[[Sequence[Op]], bool] | None = None,
    when: Callable[[Node], bool] | None = None,
    after_grad: bool = False,
    last: bool = False,
    examples: tuple[Example, ...] = (),
) -> Callable[[Callable[[Node], Node | None]], Rule]:
    """Declare a rule for every op of which a fact holds: a function of the node itself.

    `operands` tells by the ops of a node's operands whether it is worth trying, `when` by the node.
    One for `after_grad` keeps the value, but need not keep the gradient; see `Rule` for `last`.
    """

    def declare(function: Callable[[Node], Node | None]) -> Rule:
        return Rule(
            _name(function),
            Exact.of(exact),
            function,
            fact=fact,
            function=function,
            operands=operands,
            when=when,
            after_grad=after_grad,
            last=last,
            examples=examples,
        )

    return declare


def rules_of(*modules: ModuleType) -> tuple[Rule, ...]:
    """The rules that modules declare, in their order, each with its twins."""
    declared = [
        found
        for module in modules
        for found in vars(module).values()
        if isinstance(found, Rule) and found.definition.__module__ == module.__name__
    ]
    return tuple(r for found in declared for r in found.family)


_KINDS: Mapping[str, type] = {"Var": Var, "Const": Const, "Attr": Attr}


def _name(function: Callable[..., Any]) -> str:
    """The name of a rule. Raises `RewriteError` if nothing says why the rule holds."""
    if not (function.__doc__ or "").strip():
        raise RewriteError(f"the rule {function.__name__} has no docstring to say why it holds")
    return function.__name__


def _hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    """The annotations of a rule, most of which are names that need no evaluation."""
    try:
        return {k: _KINDS[v] for k, v in function.__annotations__.items() if k != "return"}
    except (KeyError, TypeError):
        return get_type_hints(function)


def _variable(rule_name: str, name: str, kind: Any) -> Var | Attr:
    if kind not in (Var, Const, Attr):
        raise RewriteError(f"{rule_name}: annotate {name} as Var, Const or Attr, not {kind}")
    made = kind(name)
    assert isinstance(made, (Var, Attr))
    return made


def _check_bound(name: str, before: Pattern, bound: Sequence[str], part: str, wanted: Any) -> None:
    """Refuse variables that a match does not bind, in a pattern or in a function's parameters."""
    if isinstance(wanted, Pattern):
        used: Sequence[str] = names_in(wanted)
    elif isinstance(wanted, FunctionType):
        used = _parameters(wanted)
    else:
        raise RewriteError(f"the rule {name}: `{part}` must be a plain function, not {wanted!r}")
    free = [n for n in used if n not in bound and (n, part) != ("node", "after")]
    if free:
        raise RewriteError(
            f"the rule {name}: `{part}` uses {', '.join(dict.fromkeys(free))}, "
            f"which `before` does not bind: {before!r}"
        )

"""Where a node comes from: the user's line, the scope, and the rules that made it.

A frame is kept as a code object and an instruction offset, and resolved to a file, a line and
columns only when somebody asks: that costs a fraction of a microsecond a node, where a formatted
stack costs many.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from types import CodeType
from typing import Any, Literal, NamedTuple, TypeAlias

from symgrad.ir.errors import UnsupportedError
from symgrad.ir.record import Record

# A place in code, or one that is known already, as of a graph that was read from a file.
Frame: TypeAlias = "tuple[CodeType | Location, int]"

# pathlib takes as long to import as a tenth of NumPy.
PACKAGE = f"{os.path.dirname(os.path.dirname(__file__))}{os.sep}"  # noqa: PTH120
_LIBRARIES = sys.stdlib_module_names | {"numpy"}
MOST_MAKERS = 3
MOST_FRAMES = 4  # a node that many others were merged into keeps the first few lines


def printable(text: str) -> str:
    """A text that is safe in a comment: on one line, and no character that an editor would hide."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else "?" for c in text)


class Location(Record, frozen=True):
    """A line of the user's: `file`, `line` (from 1), the source `text` of the expression.

    `code` is that of this process which the line belongs to, if any. A line that was read from a
    file or a pickle has none: it is text, and no path to open.
    """

    file: str
    line: int
    text: str
    code: CodeType | None = None

    def around(self, count: int) -> dict[int, str]:
        """The lines of its file from `count` before it to `count` after it, by their numbers.

        The file is read only if the line is of code of this process; else its text is all there is.
        """
        if self.code is None:
            return {self.line: self.text}
        numbered = enumerate(linecache.getlines(self.code.co_filename), 1)
        return dict(islice(numbered, max(self.line - count - 1, 0), self.line + count))

    def __reduce__(self) -> tuple[Any, ...]:
        return Location, (self.file, self.line, self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Location) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self.file, self.line, self.text))

    def __repr__(self) -> str:
        return f"Location(file={self.file!r}, line={self.line}, text={self.text!r})"

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"  # noqa: PTH119


class Maker(NamedTuple):
    """Who made a node: the gradient rule of an op or function, or a rewrite, of a rule or a pass.

    It prints as `vjp(tanh)`, or as the name of the rewrite.
    """

    kind: Literal["vjp", "jvp", "rewrite"]
    name: str

    @property
    def is_gradient(self) -> bool:
        """Whether differentiation made the node."""
        return self.kind != "rewrite"

    @staticmethod
    def parse(text: str) -> Maker:
        """The maker that prints as this text."""
        for kind in GRADIENT_KINDS:
            if text.startswith(f"{kind}(") and text.endswith(")"):
                return Maker(kind, text[len(kind) + 1 : -1])
        return Maker("rewrite", text)

    def __str__(self) -> str:
        return f"{self.kind}({self.name})" if self.is_gradient else self.name


GRADIENT_KINDS: tuple[Literal["vjp", "jvp"], ...] = ("vjp", "jvp")


class Origin(NamedTuple):
    """Where a node comes from.

    `frames` are the user's lines, the first one the nearest; `scope` the names of the regions it
    was built in; `made_by` the gradient rule and the rewrites that made it, oldest first, empty
    for a node that the user wrote; `kinks` the subgradient asked for in the region, if any.
    """

    frames: tuple[Frame, ...] = ()
    scope: tuple[str, ...] = ()
    made_by: tuple[Maker, ...] = ()
    kinks: Any = None

    @property
    def is_backward(self) -> bool:
        """Whether differentiation made it."""
        return bool(self.made_by) and any(m.kind != "rewrite" for m in self.made_by)

    @property
    def locations(self) -> list[Location]:
        """The user's lines."""
        return [_resolve(frame) for frame in self.frames]

    @property
    def nearest(self) -> Location | None:
        """The nearest of the user's lines; None if none is known."""
        return _resolve(self.frames[0]) if self.frames else None

    def place(self, verb: str = "built") -> str:
        """The nearest of the user's lines as a line of a message, or an empty text."""
        return "".join(f"\n  {verb} at {p}: {p.text}" for p in self.locations[:1])

    @property
    def description(self) -> str:
        """The user's lines, and what made it of them, as the last lines of a message."""
        places = "".join(f"\n  built at {p}: {p.text}" for p in self.locations)
        return places + (f"\n  made by {self.makers}" if self.made_by else "")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, its lines are known, and need no code."""
        frames = tuple((place, 0) for place in self.locations)
        return Origin, (frames, self.scope, self.made_by, self.kinks)

    @property
    def makers(self) -> str:
        """Who made it, in the order in which they did, as part of a message."""
        return ", ".join(map(str, self.made_by))

    def few_makers(self, besides: Maker | None = None) -> str:
        """Who made it, `besides` one; of many from the gradient rule on, the first and the last."""
        makers = [m for m in dict.fromkeys(self.made_by) if m != besides]
        if len(makers) > MOST_MAKERS:
            makers = makers[next((i for i, m in enumerate(makers) if m.is_gradient), 0) :]
        texts = list(map(str, makers))
        if len(texts) > MOST_MAKERS:
            texts[1 : 1 - MOST_MAKERS] = ["…"]
        return ", ".join(texts)

    def then(self, maker: Maker) -> Origin:
        """The same place, after one more rule has acted."""
        return Origin(self.frames, self.scope, (*self.made_by, maker), self.kinks)

    def moved_to(self, other: Origin) -> Origin:
        """The same line and makers, in the region of another origin, if that is of any."""
        return Origin(self.frames, other.scope or self.scope, self.made_by, self.kinks)

    def merged(self, others: Iterable[Origin]) -> Origin:
        """The same, with the lines of others that were merged into it.

        What is merged with part of a gradient is part of the gradient.
        """
        others = [o for o in others if o is not self]
        if not others:
            return self
        frames = [*self.frames]
        backward, made_by = self.is_backward, self.made_by
        for other in others:
            for code, at in other.frames:
                # By identity: equal code in two files is two places.
                if not any(c is code and i == at for c, i in frames):
                    frames.append((code, at))
            if not backward and other.is_backward:
                backward, made_by = True, other.made_by
        return Origin(tuple(frames[:MOST_FRAMES]), self.scope, made_by, self.kinks)

    def __str__(self) -> str:
        lines = ", ".join(dict.fromkeys(str(p) for p in self.locations))
        made = f" by {' then '.join(map(str, self.made_by))}" if self.made_by else ""
        return printable(" ".join(f"{lines}{made}".split()))


class Resolver:
    """The user's lines of many origins: nodes share lines, and each is resolved once."""

    def __init__(self) -> None:
        # By identity, since equal code in two files is two places; a location holds its code.
        self._resolved: dict[tuple[int, int], Location] = {}

    def locations(self, origin: Origin) -> Iterator[Location]:
        """The lines of an origin, the nearest one first."""
        for code, offset in origin.frames:
            key = (id(code), offset)
            if key not in self._resolved:
                self._resolved[key] = _resolve((code, offset))
            yield self._resolved[key]

    def nearest(self, origin: Origin) -> Location | None:
        """The nearest of the lines of an origin; None if none is known."""
        return next(self.locations(origin), None)


def _resolve(frame: Frame) -> Location:
    code, offset = frame
    # By identity: equal code in two files is two places.
    return code if isinstance(code, Location) else _resolved(id(code), code, offset)


@lru_cache(maxsize=4096)
def _resolved(identity: int, code: CodeType, offset: int) -> Location:
    """The place of an instruction; to go through the positions of long code takes its time."""
    positions = next(islice(code.co_positions(), offset // 2, None), (None,) * 4)
    first, last, start, end = positions
    line = first or code.co_firstlineno
    raw = linecache.getline(code.co_filename, line)
    if start is not None and end is not None and first == last:
        # Columns count bytes of UTF-8.
        text = raw.encode()[start:end].decode(errors="replace")
    else:
        text = raw
    return Location(code.co_filename, line, text.strip(), code)


# The one thing that building a graph takes from its surroundings: the region it happens in.
_scope: ContextVar[tuple[str, ...]] = ContextVar("symgrad_scope", default=())
_kinks: ContextVar[Any] = ContextVar("symgrad_kinks", default=None)
_origin: ContextVar[Origin | None] = ContextVar("symgrad_origin", default=None)
_traced: ContextVar[tuple[str, ...]] = ContextVar("symgrad_traced", default=())


def current_origin() -> Origin:
    """The origin of a node built now: the nearest line outside symgrad, or what `built_as` says."""
    given = _origin.get()
    if given is not None:
        return given
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(PACKAGE):
        if frame.f_back is None:
            return Origin((), _scope.get(), (), _kinks.get())
        frame = frame.f_back
    return Origin(((frame.f_code, frame.f_lasti),), _scope.get(), (), _kinks.get())


def raised_elsewhere(error: BaseException) -> bool:
    """Whether code of the user's, which symgrad called, had a part in raising an error."""
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if not frame.f_code.co_filename.startswith(PACKAGE) and module not in _LIBRARIES:
            return True
        trace = trace.tb_next
    return False


class built_as:
    """Nodes built inside have this origin: used by differentiation and by the rewrite driver."""

    __slots__ = ("origin", "token")

    def __init__(self, origin: Origin) -> None:
        self.origin = origin

    def __enter__(self) -> None:
        self.token = _origin.set(self.origin)

    def __exit__(self, *error: object) -> None:
        _origin.reset(self.token)


@contextmanager
def scope(name: str) -> Iterator[None]:
    """A named region of the graph, for pictures and messages. Regions nest.

    >>> with scope("layer1"):
    ...     pass
    """
    token = _scope.set((*_scope.get(), str(name)))
    try:
        yield
    finally:
        _scope.reset(token)


@contextmanager
def traced(name: str, region: str = "") -> Iterator[tuple[str, ...]]:
    """A body of the function of this name is built inside, where no side effect is allowed.

    All that is built is of the region, also where differentiation builds. It gives their scope.
    """
    token = _traced.set((*_traced.get(), name))
    given = _origin.get()
    try:
        if not region:
            yield ()
        elif given is None:
            with scope(region):
                yield _scope.get()
        else:
            inside = (*given.scope, region)
            with built_as(Origin(given.frames, inside, given.made_by, given.kinks)):
                yield inside
    finally:
        _traced.reset(token)


def inner_name(name: str) -> str:
    """A name for an input of a body while it is built: no other of the bodies and nodes around."""
    depth = len(_traced.get())
    return f"{name}_{depth} of a step" if depth else f"{name} of a step"


def plain_name(inner: str) -> str:
    """The name of such an input in the body when it is built, where there are no others."""
    return inner.removesuffix(" of a step")


def refuse_side_effect(what: str) -> None:
    """Raise `UnsupportedError` within the body of a loop or a choice, which is run by a graph."""
    if names := _traced.get():
        raise UnsupportedError(
            f"{names[-1]}: a body has no side effects, and {what}; it is traced once, however "
            f"often it runs: carry the value instead{current_origin().place('set')}"
        )


@contextmanager
def kinks_within(policy: Any) -> Iterator[None]:
    """Nodes built inside ask for this subgradient at their kinks, whatever `grad` is told."""
    token = _kinks.set(policy)
    try:
        yield
    finally:
        _kinks.reset(token)

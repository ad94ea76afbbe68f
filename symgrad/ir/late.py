"""Slots for what stands on higher floors: who draws, exports, declares ops, differentiates loops.

This file imports nothing of symgrad. `symgrad/__init__.py`, which is loaded before any of its
modules, fills the slots with functions that import when they are called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict, Unpack

if TYPE_CHECKING:
    from pathlib import Path


Theme: TypeAlias = Literal["auto", "light", "dark"]


class Drawing(TypedDict, total=False):
    """The options of a picture; `symgrad_viz.draw` says what each means."""

    title: str | None
    engine: str | None
    timeout: float
    theme: Theme
    stubs: bool
    expand: bool | None
    color_by: Literal["cost", "memory", "time"] | None
    profile: Any
    collapse: bool | None
    legend: bool


class Exploring(TypedDict, total=False):
    """The options of the page of a program; see `symgrad_viz.explore`."""

    title: str | None
    embed_source: bool
    profile: Any


class Telling(TypedDict, total=False):
    """The options of the stages of a program side by side; see `symgrad_viz.story`."""

    title: str | None
    theme: Theme
    columns: int | None
    most: int


class Viewer(Protocol):
    """Draws graphs, programs, plans and traces."""

    def render(self, thing: Any, path: str | Path | None, **options: Unpack[Drawing]) -> Any:
        """Draw it into a file; the suffix (.svg, .png, .dot) says how. Without, give a picture."""
        ...

    def explore(self, program: Any, path: str | Path | None, **options: Unpack[Exploring]) -> Any:
        """Write a page that shows a program, stage by stage; without a path, give it."""
        ...

    def story(self, program: Any, path: str | Path | None, **options: Unpack[Telling]) -> Any:
        """Draw all stages of a program's making into one SVG; without a path, give it."""
        ...

    def mimebundle(self, thing: Any, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The texts and pictures that a notebook shows of it, by MIME type. Never raises."""
        ...


LoopKind: TypeAlias = Literal[
    "loops", "choices", "whiles", "dynamic_shapes", "implicit", "custom.checkpoint"
]


class Loops(Protocol):
    """How an op that runs graphs is differentiated, and works on a batch; see `Op`."""

    def vjp(self, flows: Any, y: Any, active: Any) -> tuple[Any, ...]:
        """A cotangent for each operand of a loop, from those of its results."""
        ...

    def jvp(self, tangents: Any, y: Any) -> tuple[Any, ...]:
        """A tangent for each result of a loop, from those of its operands."""
        ...

    def locked(self, lock: Any, y: Any) -> Any:
        """The results of a loop whose graphs have one branch at each of their kinks."""
        ...

    def batch(self, inputs: Any, flags: Any, y: Any) -> Any:
        """The results of a loop for operands of which those flagged have a batch axis."""
        ...

    def checkpoint(self, function: Any) -> Any:
        """A function of which the backward keeps nothing but what goes in."""
        ...

    def batched(self, ys: Any, given: Any, size: Any) -> Any:
        """Nodes with a leading axis of a size; `given` stands for some that they are made of."""
        ...


class Slots:
    """The functions that lower floors call without knowing who answers."""

    viewer: Callable[[], Viewer]
    export: Callable[..., Path]
    declare_ops: Callable[[str], None]
    loops: Callable[[LoopKind], Loops]
    range_of: Callable[[Any], Any]


SLOTS = Slots()


class Displayed:
    """Mixin of what a notebook shows as text and as a picture."""

    __slots__ = ()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return SLOTS.viewer().mimebundle(self, include, exclude)

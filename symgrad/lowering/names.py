"""Names for the slots of a plan, as its source says them."""

from __future__ import annotations

import builtins
import keyword
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import numpy as np

from symgrad.ir.values import is_uniform
from symgrad.lowering.steps import NATIVE_MATMUL, SlotBuilder
from symgrad.ops.copied import own_names

# What generated text says itself: no value takes such a name.
WORDS = frozenset(
    {"np", "scipy", "step", "self", "fitted", "found", "workspace", "Program", "share"}
    | {"paged", NATIVE_MATMUL, "namedtuple", "forms", "parts", "argument", "named", "call"}
)
LONGEST = 80
FUNCTION = re.compile("fused[0-9]*")
RESERVED = frozenset(
    {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), *np.__all__, *own_names(), *WORDS}
)


def identifier(name: str) -> str:
    """A Python name as near to any text as can be. Two leading underscores mean something else."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name[:LONGEST])
    plain = plain if plain[:1].isalpha() else f"_{plain.lstrip('_') or 'unnamed'}"
    return f"{plain}_" if plain in RESERVED or FUNCTION.fullmatch(plain) else plain


def _letters() -> Iterator[str]:
    """a, b, … z, a1, b1, …"""
    for round_ in count():
        for letter in "abcdefghijklmnopqrstuvwxyz":
            yield f"{letter}{round_ or ''}"


def names_of(builders: list[SlotBuilder], place: Mapping[int, Any]) -> dict[int, str]:
    """A name for every slot, and for those that have a place in another; arrays of one shape and
    dtype at one place share theirs."""
    names: dict[int, str] = {}
    taken = set(RESERVED)
    letters = _letters()
    shared: dict[Any, str] = {}
    numbers: dict[str, Iterator[int]] = defaultdict(count)

    def fresh(stem: str) -> str:
        found = stem
        for k in numbers[stem]:
            found = f"{stem}{k or ''}"
            if found not in taken:
                break
        taken.add(found)
        return found

    given = ("input", "variable", "next")
    for i, d in enumerate(builders):
        if d.kind in given and d.root == i:
            names[i] = fresh(identifier(str(d.value)))
    for i, d in enumerate(builders):
        if d.root == i and d.kind in given:
            continue
        if d.root != i and i not in place:
            continue
        if d.kind == "arena":
            key = (place[i], d.type)
            if key not in shared:
                shared[key] = fresh(d.value or next(n for n in letters if n not in taken))
            names[i] = shared[key]
        else:
            names[i] = fresh(_stem(d))
    return names


def _stem(builder: SlotBuilder) -> str:
    """The stem of a slot's name: its kind; of a constant, its number if that is 0 or 1."""
    if builder.kind != "constant":
        return {"scalar": "s", "output": "out"}[builder.kind]
    uniform = is_uniform(builder.value)
    return {0: "zero", 1: "one"}.get(builder.value.flat[0].item(), "k") if uniform else "k"

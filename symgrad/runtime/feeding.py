"""Feeding: what a caller gives is checked and named before anything runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from symgrad.ir.cached import cached_property
from symgrad.ir.dims import Dim, Size, divide_exactly
from symgrad.ir.errors import FeedError, nearest
from symgrad.ir.foreign import as_array_mend, by_dlpack, in_order_of
from symgrad.ir.forms import aligned
from symgrad.ir.node import Node, describe
from symgrad.ir.types import DType, name_of
from symgrad.ir.values import lost_in_cast
from symgrad.ops.ranges.inference import declared

Array = np.ndarray[Any, DType]

# The arrays as the program takes them, and the shapes of those that are not 0-d; or None.
Quick: TypeAlias = Callable[..., tuple[list[Any], tuple[tuple[int, ...], ...]] | None]
# The flags C_CONTIGUOUS and ALIGNED.
PLAIN = 0x1 | 0x100

# How many combinations of shapes are remembered to fit: to check costs more than a small step.
MOST_SHAPES = 64


class Feeder:
    """Brings arguments into the order, dtype and layout of a program's placeholders."""

    def __init__(self, inputs: Sequence[Node], forms: tuple[Any, ...] | None = None) -> None:
        self.inputs = tuple(inputs)
        # Of the arguments by position, where not each is one array.
        self.forms = forms
        self.names = tuple(str(p.name) for p in inputs)
        # For those that a call leaves out: see `HoldingFeeder`.
        self.held: dict[str, Any] = {}
        self.seen: dict[tuple[tuple[int, ...], ...], dict[str, int]] = {}
        # The placeholders of which a range is declared, by their places.
        self.ranges = {i: r for i, p in enumerate(inputs) if (r := declared(p)) is not None}

    def feed(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Sequence[Any], dict[str, int]]:
        """The arrays in order, and the sizes of the named dimensions.

        Raises `FeedError` for a name that is missing, unknown or given twice, for a dtype that
        cannot be cast safely, for a rank or size that does not fit, and for another form.
        """
        if self.forms is not None and args:
            args = tuple(self._flat(args, self.forms))
        plain = not kwargs and len(args) == len(self.names)
        if plain and self.seen and (fed := self.quick(*args)) is not None:
            known = self.seen.get(fed[1])
            if known is not None:
                self._check_ranges(fed[0])
                return fed[0], known
        values = args if plain else self._sort(args, kwargs)
        arrays = [self._array(p, v) for p, v in zip(self.inputs, values, strict=True)]
        shapes = tuple([a.shape for p, a in zip(self.inputs, arrays, strict=True) if p.ndim])
        fit = all(p.ndim or not a.ndim for p, a in zip(self.inputs, arrays, strict=True))
        sizes = self.seen.get(shapes) if fit else None
        if sizes is None:
            sizes = {}
            for _ in self.inputs:  # N*M tells M once another placeholder has told N
                count = len(sizes)
                for p, array in zip(self.inputs, arrays, strict=True):
                    self._bind(p, array, sizes)
                if len(sizes) == count:
                    break
            self._check(arrays, sizes)
            if len(self.seen) >= MOST_SHAPES:
                self.seen.clear()
            self.seen[shapes] = sizes
        self._check_ranges(arrays)
        return [a if a.ndim or type(a) is not np.ndarray else a[()] for a in arrays], sizes

    def _check_ranges(self, arrays: Sequence[Any]) -> None:
        """Refuse arrays with elements beyond what was declared, and NaN there."""
        for i, wanted in self.ranges.items():
            array = np.asarray(arrays[i])
            outside = ~((array >= wanted.low) & (array <= wanted.high))
            if outside.any():
                place = tuple(int(k) for k in np.argwhere(outside)[0])
                at = f" at {list(place)}" if place else ""
                raise FeedError(
                    f"{describe(self.inputs[i])} was declared within ({wanted.low:.6g}, "
                    f"{wanted.high:.6g}), and was fed {array[place]}{at}; feed numbers that are, "
                    "or declare a range that holds them"
                )

    def _flat(self, args: tuple[Any, ...], forms: tuple[Any, ...]) -> Iterator[Any]:
        """The arrays in arguments that hold several."""
        if len(args) > len(forms):
            raise FeedError(f"{len(args)} arguments were given, and the program takes {len(forms)}")
        for i, (arg, form) in enumerate(zip(args, forms, strict=False)):
            for leaf in aligned(arg, form, f"argument {i}", FeedError):
                yield leaf.value

    def check_names(self, method: str, given: int, options: Sequence[str]) -> None:
        """Refuse by name what a method takes for an option; `given` inputs are by position."""
        for name in self.names[given:]:
            if name in options:
                raise FeedError(
                    f"{method}({name}=…) is an option, and an input has this name, too: give the "
                    f"inputs up to it by position, in the order {', '.join(self.names)[:200]}"
                )

    @cached_property
    def quick(self) -> Quick:
        """The check of arrays that need no conversion, compiled to one condition."""
        names = [f"x{i}" for i in range(len(self.inputs))]
        scope: dict[str, Any] = {"ndarray": np.ndarray}
        checks, shapes, found = [], [], []
        for x, p in zip(names, self.inputs, strict=True):
            dtype, kind = f"{name_of(p.dtype)}_", p.dtype.type
            scope[dtype] = p.dtype
            flags = f"{x}.flags.num & {PLAIN} == {PLAIN}" if p.ndim else f"not {x}.ndim"
            check = f"{x}.__class__ is ndarray and {x}.dtype is {dtype} and {flags}"
            if not p.ndim:
                numbers, number = f"{dtype}_numbers", f"{dtype}_number"
                scope[numbers] = (kind, *[float] * (kind is np.float64))
                scope[number] = kind
                check = f"({x}.__class__ in {numbers} or {check})"
            checks.append(check)
            found.append(x if p.ndim else f"{number}({x})")
            shapes += [f"{x}.shape, "] * bool(p.ndim)
        given = f"[{', '.join(found)}], ({''.join(shapes)})"
        fits = " and ".join(checks) or "True"
        exec(f"def quick({', '.join(names)}):\n    if {fits}:\n        return {given}", scope)
        made: Quick = scope.pop("quick")
        return made

    def _sort(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Positional and named arguments in the order of the placeholders."""
        faults = []
        if len(args) > len(self.names):
            faults.append(f"{len(args)} arrays were given for {len(self.names)} placeholders")
        given = dict(zip(self.names, args, strict=False))
        for name in kwargs:
            if name in given:
                faults.append(f"{name!r} is given twice, by position and by name")
            elif name not in self.names:
                near = nearest(name, self.names)
                hint = f"; did you mean {near[0][:60]!r}?" if near else ""
                faults.append(f"there is no placeholder {name[:60]!r}{hint}")
        known = {**self.held, **given, **kwargs}
        missing = [n[:60] for n in self.names if n not in known]
        if missing:
            faults.append(f"missing: {', '.join(map(repr, missing))}")
        if faults:
            listed = ", ".join(repr(n[:60]) for n in self.names)
            raise FeedError(f"{'; '.join(faults)}. The placeholders are, in order: {listed}")
        return [known[n] for n in self.names]

    def _array(self, p: Node, value: Any) -> Array:
        """A native C-contiguous array of the placeholder's dtype; a copy only where it must be."""
        dtype = p.dtype
        if type(value) is np.ndarray:
            flags = value.flags
            if value.dtype == dtype and flags.c_contiguous and flags.aligned:
                return value
        elif type(value) is dtype.type or (type(value) is float and dtype.type is np.float64):
            return np.asarray(value)
        array = _as_array(p, value)
        weak = isinstance(value, (bool, int, float, complex, list, tuple))
        weak = weak and not isinstance(value, np.generic)
        loose = weak and array.dtype.kind not in "iu"
        if not np.can_cast(array.dtype, dtype, "same_kind" if loose else "safe") and not (
            weak and _holds(array, dtype)
        ):
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of imaginary parts
                fault = lost_in_cast(array, array.astype(dtype), exact=True)
            own = "array" if isinstance(value, np.ndarray) else "np.asarray(value)"
            mend = (
                f"{fault}; give the placeholder a dtype that holds it, or feed other numbers"
                if fault
                else f"convert it: {own}.astype({dtype.name!r})"
            )
            raise FeedError(
                f"{describe(p)} was fed {array.dtype.name}, which cannot be cast to "
                f"{dtype.name} without loss; {mend}"
            )
        with np.errstate(over="ignore"):
            made = np.require(array, dtype, ["C", "A"])
        if fault := lost_in_cast(array, made, exact=True):
            raise FeedError(
                f"{describe(p)} was fed {array.dtype.name} that {dtype.name} cannot hold: {fault}; "
                f"if that is meant, convert it: np.asarray(value).astype({dtype.name!r})"
            )
        return made

    def _bind(self, p: Node, array: Array, sizes: dict[str, int]) -> None:
        """Learn the sizes of names from one array."""
        if array.ndim != p.ndim:
            raise FeedError(
                f"{describe(p)} has {p.ndim} dimensions, and was fed an array of shape "
                f"{array.shape}"
            )
        for wanted, size in zip(p.shape, array.shape, strict=True):
            if isinstance(wanted, Dim):
                _solve(wanted, size, sizes)

    def _check(self, arrays: list[Array], sizes: dict[str, int]) -> None:
        for p, array in zip(self.inputs, arrays, strict=True):
            for axis, (wanted, size) in enumerate(zip(p.shape, array.shape, strict=True)):
                unknown = wanted.names - sizes.keys() if isinstance(wanted, Dim) else None
                if unknown:
                    listed = ", ".join(sorted(unknown))
                    raise FeedError(
                        f"{describe(p)} was fed an array of shape {array.shape}: "
                        f"no {listed} is found for which {wanted} is {size}; feed another size, or "
                        f"give {listed} a placeholder that has it as a size of its own"
                    )
                expected = wanted.evaluate(sizes) if isinstance(wanted, Dim) else wanted
                if size != expected:
                    raise FeedError(self._misfit(p, array, axis, wanted, expected))

    def _misfit(self, p: Node, array: Array, axis: int, wanted: Size, expected: int) -> str:
        text = (
            f"{describe(p)} was fed an array of shape {array.shape}: "
            f"axis {axis} is {array.shape[axis]}, not {expected}"
        )
        if isinstance(wanted, Dim):
            others = [
                n
                for n, q in zip(self.names, self.inputs, strict=True)
                if q is not p
                and any(isinstance(s, Dim) and s.names & wanted.names for s in q.shape)
            ]
            text += f"; {wanted} is {expected} by {', '.join(map(repr, others)) or 'another axis'}"
        return text


def _as_array(p: Node, value: Any) -> Array:
    if isinstance(value, Node):
        raise FeedError(
            f"{describe(p)} was fed the node {describe(value)}; "
            "feed arrays, or build the graph with that node instead"
        )
    if np.ma.isMaskedArray(value):
        raise FeedError(f"{describe(p)} was fed a masked array; fill it first: a.filled(0)")
    value = in_order_of(value, tuple(map(_name_of, p.shape)), describe(p))
    try:
        array = np.asarray(by_dlpack(value))
    except Exception as error:  # of the value's own `__array__`
        mend = as_array_mend(value, p.dtype)
        raise FeedError(f"{describe(p)} was fed what is no array: {error}{mend}") from None
    if array.dtype.kind not in "biufc":
        mend = as_array_mend(value, p.dtype) or (
            f"; if it holds numbers, convert it: np.asarray(value, dtype={p.dtype.name!r})"
        )
        raise FeedError(f"{describe(p)} was fed an array of {array.dtype}, not of numbers{mend}")
    return array


def _name_of(size: Size) -> str | None:
    """The name of a dimension, if it is no more than a name."""
    return str(size) if isinstance(size, Dim) and str(size) in size.names else None


def _holds(array: Array, dtype: DType) -> bool:
    """Whether a dtype holds the very numbers that a Python list or scalar gave."""
    if dtype.kind in "iu" and array.dtype.kind in "iu" and array.size:
        info = np.iinfo(dtype)
        return bool(info.min <= array.min() and array.max() <= info.max)
    return not array.size or (dtype.kind in "fc" and array.dtype.kind in "iu")


def _solve(wanted: Dim, size: int, sizes: dict[str, int]) -> None:
    """Learn a name from `a * N + b = size`; what is left over is checked later."""
    names = [n for n in wanted.names if n not in sizes]
    if len(names) != 1 or names[0] in wanted.rounded:
        return
    (name,) = names
    known = wanted.evaluate({**sizes, name: 0})
    factor = wanted.evaluate({**sizes, name: 1}) - known
    found = divide_exactly(size - known, factor) if factor else None
    if isinstance(found, int) and found >= 0 and wanted.evaluate({**sizes, name: found}) == size:
        sizes[name] = found

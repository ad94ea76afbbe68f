"""How the bodies of a function over arrays are run, and what a forward leaves for its backward."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from symgrad.autodiff.custom.call import CustomCall
from symgrad.autodiff.custom.state import State
from symgrad.ir.errors import GradientError, KernelError, ShapeError
from symgrad.ir.types import TensorType
from symgrad.ops.opaque import Array, Body


@dataclass(frozen=True)
class At:
    """Stands for an array that forward left: a `source` is an input, an output or an extra."""

    source: str
    number: int


class Place:
    """A function over arrays in its place in a graph, and what its forward leaves for backward.

    `left` says, for each attribute of the context that forward sets, what it is, arrays by where
    they are found. It is written once, by the first run, and held against every later one. `seen`
    are the bodies that were seen to write nowhere else in their first run.
    """

    def __init__(self, call: CustomCall) -> None:
        self.call = call
        self.types: list[TensorType] = []
        self.left: dict[str, Any] | None = None
        self.extras: list[TensorType] | None = None
        self.seen: set[str] = set()

    # ---- types ------------------------------------------------------------------------------

    def stated(self) -> tuple[list[TensorType], bool]:
        """The types of the results, as `output_types` states them; whether they are several."""
        call = self.call
        given = call.filled([x.tensor for x in call.operands])
        found = call.ctx.output_types(*given)
        several = isinstance(found, (tuple, list))
        types = list(found) if several else [found]
        for t in types:
            if not isinstance(t, TensorType):
                raise call.error(
                    "output_types",
                    f"it returned {t!r}, and a type is wanted: sg.TensorType(x.shape, x.dtype)",
                )
        if not types:
            raise call.error("output_types", "it returned nothing; return a type, or several")
        return types, several

    def tried(self) -> tuple[list[TensorType], bool]:
        """The types of the results, found by running forward on ones; whether they are several."""
        call = self.call
        names = sorted({n for x in call.operands for n in x.tensor.names})
        if names or not hasattr(type(call.ctx), "forward"):
            why = f"the sizes {', '.join(names)} are not known" if names else "there is no forward"
            raise call.error(
                "forward",
                f"it cannot be tried out, since {why}: state what it returns, with a method "
                "output_types(x, …) that returns for example sg.TensorType(x.shape, x.dtype)",
                ShapeError,
            )
        ones = [_filled_with(1, x.tensor) for x in call.operands]
        for x in ones:
            x.flags.writeable = False
        ctx = copy(call.ctx)
        with np.errstate(all="ignore"), self.unchanged("forward"):
            found = self.run(ctx, "forward", "tried out on ones", *call.filled(ones))
        results, several = call.results(found)
        arrays = [np.asarray(y) for y in results]
        extras: list[Array] = []
        self.left = self._found_on(ctx, ones, results, arrays, extras)
        self.extras = [TensorType(a.shape, a.dtype) for a in extras]
        return [TensorType(a.shape, a.dtype) for a in arrays], several

    def extra_types(self) -> list[TensorType]:
        """The types of the arrays that are neither arguments nor results, and yet kept."""
        return self.extras or []

    def sources(self) -> list[At]:
        """The values of forward that backward is given: those kept, or all that may be."""
        if self.left is None:
            inputs = [At("input", i) for i in range(len(self.call.operands))]
            return inputs + [At("output", i) for i in range(len(self.types))]
        kept = [a for v in self.left.values() for a in _parts(v)]
        plain = not all(map(_is_placed, self.left.values()))
        # What is no array is held against every run of forward, which so has to take place. So it
        # has where nothing is kept: what such a backward knows of forward it has from elsewhere.
        return list(dict.fromkeys([*kept, At("output", 0)] if plain or not kept else kept))

    # ---- running ----------------------------------------------------------------------------

    def run(self, ctx: Any, method: str, when: str, *args: Any, **named: Any) -> Any:
        """A body run on arrays. Raises `KernelError` if it fails."""
        body = self.call.method(method)
        try:
            return body(ctx, *args, **named)
        except KernelError:
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise self.call.error(
                method, f"it failed{when and f' when {when}'}: {said}", KernelError
            ) from error

    def fitted(self, method: str, value: Any, wanted: TensorType, what: str) -> Array:
        """An array of the type that is wanted."""
        weak = isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)
        array = np.asarray(value, wanted.dtype if weak else None)
        found = TensorType(array.shape, array.dtype) if array.dtype.kind in "biufc" else None
        if found is None:
            self.fail(method, f"{what} is {type(value).__name__}, and an array is wanted")
        mend = f"x.astype({wanted.dtype.name!r})"
        self.call.check(method, found, wanted, what, mend, KernelError)
        return array.astype(wanted.dtype, copy=False)

    def fail(self, method: str, text: str) -> NoReturn:
        """Raise a `KernelError` that names the class, the method and the user's line."""
        raise self.call.error(method, text, KernelError)

    # ---- what forward leaves ----------------------------------------------------------------

    @contextmanager
    def unchanged(self, method: str) -> Iterator[None]:
        """Refuse a first run that writes into what is shared, and put that back as it was."""
        if method in self.seen:
            yield
            return
        state = State(self.call.ctx)
        try:
            yield
        finally:
            name = state.restore()
        if name:
            self.fail(
                method,
                f"it wrote into {name}, which all uses of the function share, and backward is not "
                "given that; keep what backward needs by save_for_backward(array), or as an "
                f"attribute that forward sets: self.{name} = …; fill a cache before the first use",
            )
        self.seen.add(method)

    def leave(
        self,
        method: str,
        ctx: Any,
        inputs: Sequence[Any],
        results: Sequence[Any],
        arrays: Sequence[Array],
    ) -> list[Array]:
        """Note what a run of forward left; the arrays that are to be handed on to backward."""
        extras: list[Array] = []
        left = self._found_on(ctx, inputs, results, arrays, extras)
        if self.extras is None and extras:
            self.fail(
                method,
                "it kept an array that is neither an argument nor a result, whose type is not "
                "known where output_types states those of the results; return it as one more "
                "result, or compute it again in backward",
            )
        if self.left is None:
            self.left = left
        for name in left.keys() | self.left.keys():
            if not _same(left.get(name), self.left.get(name)):
                what = "saved_tensors" if name == "_saved" else f"ctx.{name}"
                self.fail(
                    method,
                    f"{what} is another in this run than in the first one; what depends on the "
                    "arguments' values reaches backward only as an array: save_for_backward(array)",
                )
        return extras

    def _found_on(
        self,
        ctx: Any,
        inputs: Sequence[Any],
        results: Sequence[Any],
        arrays: Sequence[Array],
        extras: list[Array],
    ) -> dict[str, Any]:
        known = {id(a): At("input", i) for i, a in enumerate(inputs)}
        for found in (results, arrays):
            known |= {id(a): At("output", i) for i, a in enumerate(found)}

        def placed(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(map(placed, value))
            if not isinstance(value, (np.ndarray, np.generic)):
                return value
            if id(value) not in known:
                known[id(value)] = At("extra", len(extras))
                extras.append(np.asarray(value))
            return known[id(value)]

        before = vars(self.call.ctx)
        return {
            name: placed(value)
            for name, value in vars(ctx).items()
            if name not in before or before[name] is not value
        }

    def context(self, arrays: Mapping[At, Array]) -> Any:
        """A context for backward, as forward left it."""
        if self.left is None:
            self.fail("backward", "it runs before forward, in which it was to find what was saved")
        ctx = copy(self.call.ctx)
        vars(ctx).update({name: _filled(value, arrays) for name, value in self.left.items()})
        return ctx


def _parts(value: Any) -> list[At]:
    if isinstance(value, tuple):
        return [a for v in value for a in _parts(v)]
    return [value] if isinstance(value, At) else []


def _is_placed(value: Any) -> bool:
    return all(map(_is_placed, value)) if isinstance(value, tuple) else isinstance(value, At)


def _filled(value: Any, arrays: Mapping[At, Array]) -> Any:
    if isinstance(value, tuple):
        return tuple(_filled(v, arrays) for v in value)
    return arrays[value] if isinstance(value, At) else value


def _same(a: Any, b: Any) -> bool:
    try:
        return a is b or (type(a) is type(b) and bool(a == b))
    except Exception:  # what cannot be compared is not known to be the same
        return False


# ---- what opaque nodes run ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Forward:
    """Runs forward; see `Body`. `many` says that all arrays have a leading batch axis."""

    place: Place
    many: bool = False

    def __repr__(self) -> str:
        return repr(f"{self.place.call.name}.forward")

    def run(self, arrays: Sequence[Array], types: Sequence[TensorType], outs: Any) -> list[Array]:
        """The results, then what else backward needs."""
        place, call = self.place, self.place.call
        count = len(place.types)
        ctx, args = copy(call.ctx), call.filled(arrays)
        in_place = not self.many and hasattr(call.ctx, "forward_out")
        method = "batched_forward" if self.many else "forward_out" if in_place else "forward"
        with place.unchanged(method):
            if in_place:
                results = list(outs or (_filled_with(0, t) for t in types))[:count]
                out = results[0] if count == 1 else tuple(results)
                place.run(ctx, method, "", *args, out=out)
            else:
                results = _listed(place.run(ctx, method, "", *args))
        if len(results) != count:
            place.fail(method, f"it returned {len(results)} results, and {count} are wanted")
        found = [
            place.fitted(method, y, t, f"result {i}")
            for i, (y, t) in enumerate(zip(results, types, strict=False), 1)
        ]
        extras = place.leave(method, ctx, arrays, results, found)
        return found + [
            place.fitted(method, a, t, "an array that is kept for backward")
            for a, t in zip(extras, types[count:], strict=True)
        ]

    def batched(self) -> Body:
        """The form for a batch."""
        if hasattr(self.place.call.ctx, "batched_forward") and not self.many:
            return Forward(self.place, many=True)
        return Rows(self)

    def no_derivative(self) -> NoReturn:
        """Refuse to be differentiated: in reverse its custom node knows what to do."""
        raise self.place.call.error(
            "forward",
            "it works on arrays, and there is no forward mode through it; use grad or vjp, or "
            "write its bodies with sg's functions, as a Function",
        )


@dataclass(frozen=True, eq=False)
class Backward:
    """Runs backward for the gradients of the tensors `wanted`; see `Body`.

    The operands are what forward left, by its `sources`, then the cotangents.
    """

    place: Place
    sources: tuple[At, ...]
    wanted: tuple[int, ...]
    many: bool = False

    def __repr__(self) -> str:
        return repr(f"{self.place.call.name}.backward")

    def run(self, arrays: Sequence[Array], types: Sequence[TensorType], outs: Any) -> list[Array]:
        """The gradients; zeros for None."""
        place, count = self.place, len(self.sources)
        method = "batched_backward" if self.many else "backward"
        ctx = place.context(dict(zip(self.sources, arrays[:count], strict=True)))
        names = place.call.names()
        try:
            # Copies, because a body is free to write into what it is given: grad[x < 0] = 0.
            cotangents = [np.array(g) for g in arrays[count:]]
            grads = place.call.gradients(place.run(ctx, method, "", *cotangents), method)
        except GradientError as error:
            raise KernelError(str(error)) from None
        return [
            _filled_with(0, t)
            if grads[i] is None
            else place.fitted(method, grads[i], t, f"the gradient of {names[i]!r}")
            for i, t in zip(self.wanted, types, strict=True)
        ]

    def batched(self) -> Body:
        """The form for a batch."""
        if hasattr(self.place.call.ctx, "batched_backward") and not self.many:
            return Backward(self.place, self.sources, self.wanted, many=True)
        return Rows(self)

    def no_derivative(self) -> NoReturn:
        """Refuse to be differentiated."""
        raise self.place.call.error(
            "backward",
            "it works on arrays, and there are no higher derivatives through it; write its bodies "
            "with sg's functions, as a Function",
        )


@dataclass(frozen=True, eq=False)
class Rows:
    """Runs a body row for row; see `Body`."""

    body: Body

    def __repr__(self) -> str:
        return repr(self.body)

    def run(self, arrays: Sequence[Array], types: Sequence[TensorType], outs: Any) -> list[Array]:
        """The results of all the rows."""
        found = [_filled_with(0, t) for t in types]
        single = [t.with_shape(t.shape[1:]) for t in types]
        for i in range(len(arrays[0])):
            rows = self.body.run([a[i, ...] for a in arrays], single, None)
            for target, row in zip(found, rows, strict=True):
                target[i] = row
        return found

    def batched(self) -> Body:
        """A batch of batches."""
        return Rows(self)

    def no_derivative(self) -> NoReturn:
        """As the body says."""
        self.body.no_derivative()


def _filled_with(number: int, t: TensorType) -> Array:
    shape: tuple[Any, ...] = t.shape
    return np.full(shape, number, t.dtype)


def _listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (tuple, list)) else [found]

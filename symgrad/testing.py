"""What symgrad's own tests check with, for the tests of others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from symgrad.compile import compile
from symgrad.ir.errors import SymgradError
from symgrad.ir.evaluate import evaluate
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.ir.operators import call
from symgrad.ops.leaves import placeholder
from symgrad.passes import PassLike
from symgrad.rewrite.rule import Exact

# How far apart results may be that differ in the order of additions and the like.
NOISE = 1e-13
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-310, 1e308)


def assert_same(found: Any, expected: Any, exact: Exact | str, scale: Any = 0.0) -> None:
    """Assert that two arrays are the same at a grade.

    `bits`: the same bytes. `values`: equal, NaN at the same places. `rounding`: NaN and inf at the
    same places, the rest within 1e-9 in float64 (1e-3 in float32), relative to the values or to
    `scale`. `reals`: the same, where both are finite.
    """
    grade = Exact.of(exact)
    a, b = np.asarray(found), np.asarray(expected)
    assert a.shape == b.shape, f"shape {a.shape}, expected {b.shape}"
    assert a.dtype == b.dtype, f"dtype {a.dtype}, expected {b.dtype}"
    if grade == Exact.BITS:
        assert a.tobytes() == b.tobytes(), f"bytes differ: {a} and {b}"
        return
    if grade == Exact.VALUES or a.dtype.kind not in "fc":
        np.testing.assert_array_equal(a, b)
        return
    both = np.isfinite(a) & np.isfinite(b)
    if grade == Exact.ROUNDING:
        np.testing.assert_array_equal(np.where(both, 0, a), np.where(both, 0, b))
    tolerance = 1e-9 if a.dtype.itemsize >= 8 else 1e-3
    room = tolerance * np.maximum(np.maximum(np.abs(b), scale), np.finfo(a.dtype).tiny)
    difference = np.abs(np.where(both, a, 0) - np.where(both, b, 0))
    assert np.all(difference <= np.where(both, room, np.inf)), f"{a} and {b} differ by {difference}"


def assert_equivalent(
    inputs: Sequence[Node],
    outputs: Sequence[Node],
    arrays: Sequence[Any],
    *,
    exact: Exact | str = "rounding",
    passes: Iterable[PassLike] | None = None,
) -> None:
    """Assert that a compiled program computes what its graph says, at a grade.

    The reference is every node's kernel, one after the other, without passes or plan. Both
    backends are run, and must agree to the bit.
    """
    expected = evaluate(outputs, dict(zip(inputs, arrays, strict=True)))
    noise = _noise(outputs, dict(zip(inputs, arrays, strict=True)))
    steps = None if passes is None else tuple(passes)
    program = compile(inputs, list(outputs), exact=exact, passes=steps)
    walked = compile(inputs, list(outputs), exact=exact, passes=steps, backend="reference")
    found = program(*arrays)
    for a, b in zip(found, walked(*arrays), strict=True):
        assert_same(a, b, "bits")
    for a, b, scale in zip(found, expected, noise, strict=True):
        try:
            assert_same(a, b, exact, scale)
        except AssertionError as error:
            raise AssertionError(f"{error}\nraw:\n{program.raw}\noptimised:\n{program.graph}") from None


def _noise(outputs: Sequence[Node], feeds: dict[Node, Any]) -> list[Any]:
    raise NotImplementedError


def random_graph(rng: np.random.Generator, size: int) -> tuple[list[Node], Node]:
    """Placeholders and a scalar made of about `size` random ops on them."""
    raise SymgradError

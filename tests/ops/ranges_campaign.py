"""Random programs, each value of which lies in its range: `python -m tests.ops.ranges_campaign`."""

from collections import Counter

import numpy as np

import symgrad as sg
from symgrad.ir.evaluate import evaluate
from symgrad.ir.types import TensorType
from symgrad.ops.ranges.inference import declared, ranges_of
from symgrad.testing import random_feeds, random_graph
from tests.helpers import campaign

TALLY = Counter()
ENDS = (
    (-3, 3),
    (0, 1),
    (-1, 0),
    (0, 3e38),
    (-3e38, 3e38),
    (1e-300, 1e-3),
    (2, 2),
    (-2, -1),
    (80, 90),
)


def check(seed):
    """Hold the values of a random graph against ranges; inputs are declared, or finite."""
    rng = np.random.default_rng(seed)
    dtypes = ("float32", "float64", "int32", "bool") if seed % 2 else ("float64", "float32")
    inputs, outputs = random_graph(rng, int(rng.integers(2, 14)), dtypes)
    becomes = {}
    nodes = sg.Graph(outputs).nodes
    feeds = dict(zip(inputs, random_feeds(rng, inputs), strict=True))
    if seed % 3:
        for x in inputs:
            if x.dtype.kind in "fi":
                # (-3, 3) is what random feeds lie within.
                ends = ENDS[rng.integers(len(ENDS))] if x.dtype.kind == "f" else (-3, 3)
                becomes[x] = sg.placeholder(x.name, x.shape, x.dtype, within=ends)
                if ends != (-3, 3):
                    feeds[x] = _drawn(rng, x, *declared(becomes[x])[:2])
    if not becomes:
        for x in inputs:
            if x.dtype.kind == "f" and rng.random() < 0.5:
                ends = np.array([0.0, -0.0, 1e-300, 3e38, -3e38, 1.0, 1e10])
                feeds[x] = rng.choice(ends, x.shape).astype(x.dtype)
    single = [n for n in nodes if isinstance(n.type, TensorType) and n not in feeds]
    try:
        values = evaluate(single, feeds)
    except sg.SymgradError:
        return
    ranges = ranges_of(outputs, finite=True) if not becomes else _declared(outputs, becomes)
    for node, value in zip(single, values, strict=True):
        if node.tensor.is_complex:
            continue
        found = ranges[node]
        TALLY["known" if abs(found.low) < np.inf and abs(found.high) < np.inf else "unknown"] += 1
        assert np.asarray(value) in found or not np.size(value), (
            f"{sg.Graph([node])}\n{found}\n{np.min(value)} to {np.max(value)}"
        )


def _drawn(rng, x, low, high):
    """Numbers within ends: these, zeros of both signs, and between them."""
    special = [v for v in (low, high, 0.0, -0.0, 5e-324, -1e-310) if low <= v <= high]
    between = low + (high - low) * rng.random(x.shape) if high - low < np.inf else 0.0
    values = np.where(rng.random(x.shape) < 0.5, rng.choice(special, x.shape), between)
    return np.clip(values.astype(x.dtype), x.dtype.type(low), x.dtype.type(high))


def _declared(outputs, becomes):
    """The ranges of nodes as if their placeholders were other ones, which are declared."""
    from symgrad.ops.ranges import inference

    original = inference.declared
    try:
        inference.declared = lambda node: original(becomes.get(node, node))
        return ranges_of(outputs, finite=True)
    finally:
        inference.declared = original


if __name__ == "__main__":
    campaign("tests.ops.ranges_campaign", __doc__, check)

"""Every op of the registry with a named dimension at every place: right or refused, never wrong."""

import itertools

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.dims import Dim
from symgrad.ir.errors import SymgradError, UnsupportedError
from symgrad.ir.evaluate import evaluate
from symgrad.ir.node import apply
from symgrad.ops import batch
from tests.distributed.pieces import by_pieces
from tests.helpers import close, generator, same, sample
from tests.test_every_op import OPS, cases_of, operand_dtypes

N = Dim.of("N")
ENDS = [(7,), (3, 7), (2, 3, 7)]
MOST_PLACES = 4


def named(value, size):
    """An attribute with the dimension in place of a size."""
    if isinstance(value, tuple):
        return tuple(named(v, size) for v in value)
    return N if type(value) is int and value == size else value


def asked(case):
    """Shapes and attributes with the dimension at some places in place of a size."""
    places = [(i, a) for i, shape in enumerate(case.shapes) for a in range(len(shape))]
    sizes = {case.shapes[i][a] for i, a in places} | {3}
    for size in sorted(sizes - {0, 1}):
        here = [(i, a) for i, a in places if case.shapes[i][a] == size]
        chosen = [
            c
            for k in range(min(len(here), MOST_PLACES) + 1)
            for c in itertools.combinations(here, k)
        ]
        for some in chosen:
            shapes = [
                tuple(N if (i, a) in {*some} else s for a, s in enumerate(shape))
                for i, shape in enumerate(case.shapes)
            ]
            other = {k: named(v, size) for k, v in case.attrs.items()}
            if some:
                yield shapes, case.attrs
            if repr(other) != repr(dict(case.attrs)):
                yield shapes, other


def built(op, shapes, attrs):
    """The node, its inputs and arrays for them; None if it cannot be built so."""
    if not op.trials.dtypes:  # it is of a dtype that no placeholder has
        return None
    dtypes = operand_dtypes(op, op.trials.dtypes.split()[0], len(shapes))
    dtypes = ["float64" if d == "float32" else d for d in dtypes]
    rng = generator(f"{op.name} {shapes}")
    xs = [
        sg.placeholder(f"x{i}", s, d) for i, (s, d) in enumerate(zip(shapes, dtypes, strict=True))
    ]
    intervals = itertools.cycle(op.trials.domain)
    arrays = [
        sample(rng, [7 if isinstance(s, Dim) else s for s in x.shape], x.dtype, next(intervals))
        for x in xs
    ]
    if op.trials.symmetric and arrays[0].shape[-2:] == arrays[0].mT.shape[-2:]:
        arrays[0] = arrays[0] + arrays[0].mT + 20 * np.eye(arrays[0].shape[-1])
    try:
        node = apply(op, xs, attrs)
    except (SymgradError, TypeError):
        return None
    several = isinstance(node.type, tuple)
    return [node[i] for i in range(len(node.type))] if several else [node], xs, arrays


def tried(op):
    """Whether an op was right or refused, for each way to cut it; an error if it was wrong."""
    seen = set()
    for case in cases_of(op):
        for shapes, attrs in asked(case):
            key = repr((shapes, attrs))
            if key in seen or (found := built(op, shapes, attrs)) is None:
                continue
            seen.add(key)
            ys, xs, arrays = found
            rows = sg.placeholder("rows", ("N",))
            xs, arrays = [*xs, rows], [*arrays, np.zeros(7)]
            try:
                expected = evaluate(ys, dict(zip(xs, arrays, strict=True)), {"N": 7})
            except SymgradError:
                continue
            for ends in ENDS if len(seen) < 4 else ENDS[2:]:
                try:
                    parts, _ = by_pieces(ys, xs, arrays, ends)
                except UnsupportedError:
                    yield False
                    break
                for y, e in zip(parts, expected, strict=True):
                    assert np.shape(y) == np.shape(e), (op, shapes, attrs)
                    (close if np.asarray(e).dtype.kind in "fc" else same)(y, e)
            else:
                yield True


@pytest.mark.parametrize("op", [pytest.param(o, id=o.name) for o in OPS])
def test_it_is_right_or_refused(op):
    found = list(tried(op))
    if op.elementwise:
        assert all(found)
    elif op.batch in (batch.over_axes, batch.together):
        assert any(found)

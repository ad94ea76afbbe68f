"""A split graph by plain kernels: what the programs of `map_reduce` are held against."""

import numpy as np

from symgrad.ir.dims import evaluate as size
from symgrad.ir.evaluate import evaluate
from symgrad.ir.op import REGISTRY
from symgrad.lowering.map_reduce.split import split
from symgrad.ops.leaves import size_of
from symgrad.rewrite.rule import Exact


def by_pieces(outputs, inputs, arrays, ends, over="N", sizes=None, exact=Exact.ROUNDING):
    """The outputs, of pieces that end at these rows."""
    parts = split(outputs, inputs, over, exact)
    fed = dict(zip(inputs, arrays, strict=True))
    sizes = {**(sizes or {}), over: ends[-1]}
    values = dict(fed)

    def given(part, known):
        for x in part.given:
            if x.op is size_of.op:
                values[x] = x.dtype.type(size(x.attr("dim"), sizes))
        feeds = [known[x] for x in part.given]
        return feeds

    def run(part, feeds, own):
        names = dict(zip(part.graph.inputs, feeds, strict=False))
        return evaluate(part.graph.outputs, names, own)

    for number, stage in enumerate(parts.stages):
        if stage.gives:
            values.update(zip(stage.gives, run(stage, given(stage, values), sizes), strict=True))
        if number == len(parts.rounds):
            break
        part, totals, start = parts.rounds[number], None, 0
        for stop in ends:
            given(part, values)
            rows = {
                x: fed[x][(*(slice(None),) * axis, slice(start, stop))]
                for x, axis in parts.feeds.items()
            }
            feeds = given(part, {**values, **rows}) + [np.int64(start)] * part.is_numbered
            found = run(part, feeds, {**sizes, over: stop - start})
            pairs = zip(totals or found, found, parts.meetings[number], strict=True)
            totals = found if totals is None else [met(a, b, m) for a, b, m in pairs]
            start = stop
        values.update(zip(part.gives, totals, strict=True))
    for y in parts.outputs:
        if y.op is size_of.op:
            values[y] = y.dtype.type(size(y.attr("dim"), sizes))
    return [values[y] for y in parts.outputs], parts


def met(a, b, meeting):
    if meeting.axis is not None:
        return np.concatenate([a, b], meeting.axis)
    with np.errstate(all="ignore"):
        return REGISTRY.ops[meeting.by].kernel(a, b)

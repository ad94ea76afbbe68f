"""Loops that have one body, as those of a file do that are alike, and begin with other values."""

import numpy as np
import pytest

import symgrad as sg


@pytest.mark.parametrize("exact", ["bits", "rounding"])
def test_what_a_file_holds_once(tmp_path, exact):
    a, b, rows = sg.placeholder("a", 3), sg.placeholder("b", 3), sg.placeholder("rows", (4, 3))

    def step(c, row):
        return (sg.sin(c[0]) + row, sg.cos(c[1]) * row), c[0] * row

    (first, second), ys = sg.scan(step, (a, b), rows)
    (third, fourth), zs = sg.scan(step, (b, a), rows)
    raw = sg.Graph([first, second, third, fourth, sg.sum(ys, axis=0), sg.sum(zs, axis=0)])
    loaded = sg.Graph.load(raw.save(tmp_path / "g.json"))
    bodies = {id(n.attr("body")) for n in loaded.nodes if n.op.body}
    assert len(bodies) == 1
    given = np.random.default_rng(0).standard_normal((6, 3))
    arrays = [{"a": given[0], "b": given[1], "rows": given[2:]}[x.name] for x in raw.inputs]
    expected = sg.compile(raw.inputs, raw.outputs, passes=(), backend="reference")(*arrays)
    for graph in (raw, loaded):
        found = sg.compile(graph.inputs, graph.outputs, exact=exact)(*arrays)
        np.testing.assert_allclose(found, expected, rtol=1e-14)

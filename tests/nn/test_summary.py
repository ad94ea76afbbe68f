"""What a module prints as, and the table of its layers."""

from __future__ import annotations

import symgrad as sg


def net():
    keys = sg.random.split(sg.random.key(0), 2)
    first, last = (
        sg.nn.Linear(*sizes, key=k) for sizes, k in zip(((3, 4), (4, 2)), keys, strict=True)
    )
    return sg.nn.Sequential(first, sg.nn.BatchNorm(4), sg.relu, last)


def test_it_prints_with_its_activations_and_counts():
    head, *lines = str(net()).splitlines()
    assert head == "Sequential: 34 parameters"  # 16 and 10, and the scale and offset of four
    assert [line.split()[:2] for line in lines] == [
        ["layers.0", "Linear"], ["layers.1", "BatchNorm"], ["layers.2", "relu"],
        ["layers.3", "Linear"],
    ]  # fmt: skip
    assert "float64[3, 4]" in lines[0]


def test_the_summary_tells_what_each_layer_gives():
    told = net().summary(sg.placeholder("x", ("N", 3)))
    rows = [line.split("  ") for line in told.splitlines()]
    cells = [[c.strip() for c in row if c.strip()] for row in rows]
    assert cells[0] == ["layer", "kind", "gives", "parameters"]
    assert ["layers.0", "Linear", "float64[N, 4]", "16"] in cells
    assert ["layers.3", "Linear", "float64[N, 2]", "10"] in cells
    assert cells[-1] == ["in all", "34"]


def test_what_is_shared_is_counted_once():
    layer = sg.nn.Linear(3, 3, key=sg.random.key(0))
    assert str(sg.nn.Sequential(layer, layer)).startswith("Sequential: 12 parameters")

"""Questions about graphs."""

import symgrad as sg
from symgrad.analysis import ancestors, critical_path, descendants, dominators, is_convex


def _diamond():
    x = sg.placeholder("x", (3,))
    left, right = sg.exp(x), sg.sin(x)
    y = left * right
    return sg.Graph([y]), x, left, right, y


def test_networkx_has_nodes_edges_and_types():
    graph, x, left, right, _ = _diamond()
    found = graph.to_networkx()
    assert sorted(found.edges()) == [(0, 1), (0, 2), (1, 3), (2, 3)]
    assert found.nodes[0] == {"op": "placeholder", "type": "float64[3]", "node": x}
    assert found.graph["outputs"] == (3,)
    twice = sg.Graph([left * left]).to_networkx()
    assert twice.number_of_edges() == 3, "an operand used twice is two edges"
    assert found.nodes[2]["node"] is right


def test_reachability():
    graph, x, left, right, y = _diamond()
    assert ancestors(graph, y) == {x, left, right}
    assert descendants(graph, left) == {y}
    assert descendants(graph, y) == set()


def test_convexity():
    graph, x, left, right, y = _diamond()
    assert is_convex(graph, [left, right, y])
    assert not is_convex(graph, [x, left, y]), "a path leaves by right and comes back to y"


def test_dominators():
    graph, x, left, right, y = _diamond()
    assert dominators(graph, y) == {x: y, left: y, right: y}
    chain = sg.Graph([sg.exp(left)])
    assert dominators(chain, chain.outputs[0])[x] is left


def test_critical_path():
    graph, x, left, _, y = _diamond()
    assert critical_path(graph, lambda n: 5.0 if n is left else 1.0) == [x, left, y]

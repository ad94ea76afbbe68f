"""Questions about graphs."""

import symgrad as sg


def test_networkx_has_nodes_edges_and_types():
    x = sg.placeholder("x", (3,))
    left, right = sg.exp(x), sg.sin(x)
    found = sg.Graph([left * right]).to_networkx()
    assert sorted(found.edges()) == [(0, 1), (0, 2), (1, 3), (2, 3)]
    assert found.nodes[0] == {"op": "placeholder", "type": "float64[3]", "node": x}
    assert found.graph["outputs"] == (3,)
    twice = sg.Graph([left * left]).to_networkx()
    assert twice.number_of_edges() == 3, "an operand used twice is two edges"
    assert found.nodes[2]["node"] is right

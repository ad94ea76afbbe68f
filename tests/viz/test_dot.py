"""DOT: deterministic, escaped, and with all that the scene has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import symgrad
import symgrad_viz
from symgrad.ir.errors import RenderError
from symgrad_viz import to_dot
from symgrad_viz.builder import scene_of

NODE = re.compile(r"^\t+(n\w+) \[label=", re.MULTILINE)
EDGE = re.compile(r"^\t+(n\w+) -> (n\w+)(?!.*style=invis)", re.MULTILINE)


def strings(dot: str) -> list[str]:
    """The quoted strings of a DOT text, as its grammar has them; fails if one does not end."""
    found = re.findall(r'"((?:[^"\\]|\\.)*)"', dot, re.DOTALL)
    rest = re.sub(r'"(?:[^"\\]|\\.)*"', "", dot, flags=re.DOTALL)
    assert '"' not in rest
    return found


def test_nodes_and_edges_are_those_of_the_scene(net):
    graph = net()
    dot, scene = to_dot(graph), scene_of(graph)
    assert sorted(NODE.findall(dot)) == sorted(b.id for b in scene.boxes)
    assert EDGE.findall(dot) == [(e.tail, e.head) for e in scene.edges]


def test_parts_are_clusters(net):
    clusters = re.findall(r"subgraph (\w+)", to_dot(net()))
    assert clusters == ["cluster_forward", "cluster_backward", "cluster_update"]


def test_fused_nodes_are_clusters(fused_graph):
    assert re.findall(r"subgraph (\w+)", to_dot(fused_graph)) == ["cluster_n3", "cluster_n4"]
    assert "shape=box3d" not in to_dot(fused_graph)
    closed = to_dot(fused_graph, expand=False)
    assert "subgraph" not in closed
    assert closed.count("shape=box3d") == 2


def test_shape_tells_the_role(net):
    dot = to_dot(net(update=False))
    lines = {m.group(1): line for line in dot.splitlines() if (m := NODE.match(line))}
    assert "shape=ellipse" in lines["n0"]
    assert "shape=cylinder" in lines["n1"]
    outputs = [line for line in lines.values() if "peripheries=2" in line]
    assert len(outputs) == 3
    assert all("is-output" in line and "⟶ output" in line for line in outputs)


def test_types_are_on_the_nodes(net):
    assert r"n5 = relu(n4)\nfloat32[N, 8]" in to_dot(net())


def test_there_are_no_html_labels_and_no_links(net, hostile_program):
    for thing in (net(), hostile_program):
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', to_dot(thing, title="<b>title</b>"))
        assert "<" not in bare
        assert not re.search(r"\b(URL|href|image)\b", bare, re.IGNORECASE)


def test_user_text_stays_within_its_string(hostile_program):
    dot = to_dot(hostile_program, title='"]; evil [label="')
    assert "evil" in "".join(strings(dot))
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', dot)
    assert "script" not in bare
    assert "evil" not in bare
    # Names of attributes, ids and classes are ours, whatever the user wrote.
    assert set(re.findall(r"\b(?:id|class)=(\S+?)[\]\s]", bare)) <= {'""'} | set(
        re.findall(r"\b(?:id|class)=((?:n|scope)\w+)", bare)
    )


def test_every_character_can_be_written_to_a_file(hostile_program):
    dot = to_dot(hostile_program)
    assert dot.encode().decode() == dot
    assert all(c.isprintable() or c in "\n\t" for c in dot)
    assert len(dot) < 100_000


def test_the_same_graph_gives_the_same_text(net):
    assert to_dot(net()) == to_dot(net())
    assert to_dot(net(2)) != to_dot(net(3))


def test_the_text_does_not_depend_on_the_hash_seed():
    code = (
        "import symgrad as sg, symgrad_viz\n"
        "x = sg.placeholder('x', ('N', 4), 'float32')\n"
        "y = sg.sum(sg.tanh(x * x) + sg.relu(x))\n"
        "print(symgrad_viz.to_dot(sg.Graph([y, sg.grad(y, x)])))\n"
    )
    roots = [str(Path(m.__file__).parent.parent) for m in (symgrad, symgrad_viz)]
    texts = set()
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(roots)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        texts.add(done.stdout)
    assert len(texts) == 1
    assert "cluster_backward" in texts.pop()


def test_a_wrong_theme_is_refused(net):
    with pytest.raises(RenderError, match="theme is one of 'auto', 'light', 'dark'"):
        to_dot(net(), theme="pink")

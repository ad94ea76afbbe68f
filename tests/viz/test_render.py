"""From graph to file: engines, what happens when one fails, escaping, and saving."""

from __future__ import annotations

import shutil
import stat
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import pytest

import symgrad as sg
from symgrad.ir.errors import RenderError
from symgrad_viz import draw, render, save, to_dot
from symgrad_viz.builder import scene_of
from symgrad_viz.captions import drawn_by
from symgrad_viz.engines import ENGINES, Engine, EngineError, EngineTimeoutError
from symgrad_viz.picture import MOST_NODES
from symgrad_viz.view import view_of

SVG = "{http://www.w3.org/2000/svg}"
PNG = b"\x89PNG\r\n\x1a\n"


def here(name: str) -> bool:
    return ENGINES[name].command("svg") is not None


DOT = pytest.param("dot", marks=pytest.mark.skipif(not here("dot"), reason="no dot"))
PYGRAPHVIZ = pytest.param(
    "pygraphviz", marks=pytest.mark.skipif(not here("pygraphviz"), reason="no pygraphviz")
)
every_engine = pytest.mark.parametrize("engine", [DOT, PYGRAPHVIZ, "layers"])
graphviz_engine = pytest.mark.parametrize("engine", [DOT, PYGRAPHVIZ])


def groups(svg: str, kind: str) -> dict[str, ET.Element]:
    """The groups of a class, by id (or by number, for edges)."""
    root = ET.fromstring(svg)
    found = [g for g in root.iter(f"{SVG}g") if kind in g.get("class", "").split()]
    return {g.get("id") if kind != "edge" else str(i): g for i, g in enumerate(found)}


def program_called_dot(folder: Path, body: str) -> Path:
    """A program that answers to the name dot, in a folder of its own."""
    script = folder / "dot"
    script.write_text(f"#!{sys.executable}\nimport sys\n{body}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.fixture
def no_dot(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def no_pygraphviz(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)


class Fake:
    """An engine that gives each of some answers in turn, and remembers what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def run(self, dot, format, timeout):
        self.asked.append(dot)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def engines(monkeypatch):
    """Puts fakes in the place of the engines."""

    def put(**fakes):
        for name, fake in fakes.items():
            monkeypatch.setitem(ENGINES, name, fake)

    return put


# What is in a picture


@every_engine
def test_the_picture_has_every_node_edge_and_part(net, engine):
    graph = net()
    svg = render(graph, engine=engine)
    scene = scene_of(graph)
    assert set(groups(svg, "node")) == {b.id for b in scene.boxes}
    assert len(groups(svg, "edge")) == len(scene.edges)
    assert set(groups(svg, "cluster")) == {"forward", "backward", "update"}


@every_engine
def test_the_picture_can_be_read_aloud_and_follows_a_dark_screen(net, engine):
    root = ET.fromstring(render(net(), engine=engine, title="my <net> & more"))
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    title, desc, style = list(root)[:3]
    assert (title.tag, title.text) == (f"{SVG}title", "my <net> & more")
    assert desc.tag == f"{SVG}desc"
    assert "forward" in desc.text
    assert f"Laid out by {engine}." in desc.text
    assert style.tag == f"{SVG}style"
    assert "prefers-color-scheme: dark" in style.text
    assert root.get("class") == "symgrad-auto"


@every_engine
def test_a_fixed_theme_does_not_follow_the_screen(net, engine):
    svg = render(net(), engine=engine, theme="dark")
    assert "prefers-color-scheme" not in svg
    assert 'class="symgrad-dark"' in svg
    assert "#43223a" in svg


@every_engine
def test_tooltips_and_labels_are_those_of_the_scene(net, engine):
    graph = net()
    drawn = groups(render(graph, engine=engine), "node")
    for box in view_of(graph).boxes:
        assert drawn[box.id].find(f"{SVG}title").text == box.tooltip
        assert tuple(t.text for t in drawn[box.id].iter(f"{SVG}text")) == box.lines
        assert set(box.classes.split()) < set(drawn[box.id].get("class").split())


@every_engine
def test_there_is_no_background_and_no_link(net, engine):
    svg = render(net(), engine=engine)
    root = ET.fromstring(svg)
    assert not list(root.iter(f"{SVG}a"))
    assert "href" not in svg
    assert "transparent" not in svg
    canvas = root.find(f"{SVG}g")
    assert canvas.find(f"{SVG}polygon") is None
    assert canvas.find(f"{SVG}rect") is None


@graphviz_engine
def test_fused_nodes_are_boxes_around_what_is_inside(fused_graph, engine):
    svg = render(fused_graph, engine=engine)
    clusters = groups(svg, "cluster")
    assert set(clusters) == {"n3", "n4"}
    assert clusters["n3"].find(f"{SVG}title").text.startswith("n3 = fused(n2, b, graph=6 nodes)")
    assert {"n3_3", "n3_4", "n3_5", "n4_1", "n4_3"} <= set(groups(svg, "node"))


@every_engine
def test_hostile_names_are_shown_and_do_no_harm(hostile_program, hostile_names, engine):
    svg = render(hostile_program, engine=engine, title=hostile_names[0])
    root = ET.fromstring(svg)
    assert not list(root.iter(f"{SVG}script"))
    assert not list(root.iter(f"{SVG}b"))
    assert "href" not in svg
    labels = {t.text for t in root.iter(f"{SVG}text")}
    shown = ["</svg><script>alert(1)</script>", '"];', "λ", "''", r"two\nlines\r\n"]
    shown += [r"\u202egnp.exe", r"\x00\x01\x1f\x7f", r"\ud800", "\\N\\G\\", "<b>bold</b>"]
    shown += ["&lt;&amp;&#60;", "]]>", "漢字", r"\ufffe", "--", "x" * 39 + "…"]
    assert set(shown) <= labels
    assert len(svg) < 200_000


@every_engine
@pytest.mark.parametrize("what", ["nothing", "an input", "a constant"])
def test_graphs_with_hardly_anything_in_them(engine, what):
    x = sg.placeholder("x", (3,), "float32")
    outputs = {"nothing": [], "an input": [x], "a constant": [sg.constant(2.0)]}[what]
    assert len(groups(render(sg.Graph(outputs), engine=engine), "node")) == len(outputs)


@graphviz_engine
def test_png(net, engine):
    assert render(net(), format="png", engine=engine).startswith(PNG)


# Which engine draws


@pytest.mark.skipif(not here("dot"), reason="no dot")
def test_dot_is_the_first_choice(net):
    assert draw(net()).engine == "dot"
    assert draw(net()).notes == ()


def entered_from_above() -> sg.Graph:
    """An edge that comes in from above in the middle of a frame as narrow as its title."""
    x = sg.placeholder("x", (4,), "float32")
    with sg.scope("a title of some width"):
        y = sg.tanh(sg.exp(x))
    return sg.Graph([y * y])


def crossed(svg: str) -> int:
    """How many titles of frames an edge runs behind."""
    root = ET.fromstring(svg.replace(f' xmlns="{SVG[1:-1]}"', ""))
    areas = list(drawn_by(g for g in root.iter("g") if "edge" in g.get("class", "").split()))
    tabs = [g.find("rect") for g in root.iter("g") if "caption" in g.get("class", "").split()]
    assert areas
    assert tabs
    found = 0
    for tab in tabs:
        x, y, width, height = (float(tab.get(n)) for n in ("x", "y", "width", "height"))
        across = [a for a in areas if x < a.right and a.left < x + width]
        found += any(a.top < y + height and y < a.bottom for a in across)
    return found


@graphviz_engine
def test_frames_grow_until_no_edge_runs_behind_a_title(engine, engines):
    graph, before = entered_from_above(), ENGINES[engine]
    first = Fake(*[before.run(to_dot(graph), "svg", 20)] * 4)
    engines(**{engine: first})
    # One that draws all of them as the first gives up, and one that is stopped is left in peace.
    assert crossed(render(graph, engine=engine)) == 1
    assert len(first.asked) == 4
    slow = Fake(before.run(to_dot(graph), "svg", 20), EngineTimeoutError("it took too long"))
    engines(**{engine: slow})
    assert crossed(render(graph, engine=engine)) == 1
    engines(**{engine: before})
    assert crossed(render(graph, engine=engine)) == 0


@pytest.mark.skipif(not here("pygraphviz"), reason="no pygraphviz")
def test_pygraphviz_draws_where_there_is_no_dot(net, no_dot):
    picture = draw(net())
    assert picture.engine == "pygraphviz"
    assert picture.notes == ("dot is not installed.",)
    assert render(net(), format="png").startswith(PNG)


def test_the_built_in_layout_draws_where_there_is_no_graphviz(net, no_dot, no_pygraphviz):
    picture = draw(net())
    assert picture.engine == "layers"
    assert picture.notes == ("dot is not installed.", "pygraphviz is not installed.")
    assert "dot is not installed. pygraphviz is not installed." in picture.data
    assert set(groups(picture.data, "cluster")) == {"forward", "backward", "update"}


def test_a_png_without_graphviz_says_what_to_install(net, no_dot, no_pygraphviz):
    with pytest.raises(RenderError, match=r"pip install 'symgrad\[render\]'"):
        render(net(), format="png")
    with pytest.raises(RenderError, match="draws SVG only"):
        render(net(), format="png", engine="layers")


def test_an_engine_asked_for_by_name_has_no_stand_in(net, no_dot):
    with pytest.raises(RenderError, match="dot is not installed"):
        render(net(), engine="dot")


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("sys.stderr.write('syntax error\\n'); sys.exit(3)", "dot failed: syntax error."),
        ("sys.exit(3)", "dot failed: exit 3."),
        ("", "dot failed: exit 0."),
        ("print('<svg')", "dot gave no SVG: "),
    ],
)
def test_a_broken_dot_is_passed_over(net, monkeypatch, tmp_path, no_pygraphviz, body, note):
    monkeypatch.setenv("PATH", str(program_called_dot(tmp_path, body)))
    picture = draw(net())
    assert picture.engine == "layers"
    assert picture.notes[0].startswith(note)


def test_a_dot_that_gives_no_png_is_passed_over(net, monkeypatch, tmp_path, no_pygraphviz):
    monkeypatch.setenv("PATH", str(program_called_dot(tmp_path, "print('hello')")))
    with pytest.raises(RenderError, match="dot gave no PNG"):
        render(net(), format="png")


def test_what_a_broken_dot_says_cannot_break_the_picture(net, monkeypatch, tmp_path, no_pygraphviz):
    body = "sys.stderr.buffer.write(b'\\x00\\xff</desc><script>'); sys.exit(1)"
    monkeypatch.setenv("PATH", str(program_called_dot(tmp_path, body)))
    root = ET.fromstring(render(net()))
    assert not list(root.iter(f"{SVG}script"))
    assert "</desc><script>" in root.find(f"{SVG}desc").text


def test_a_slow_engine_is_stopped():
    slow = Engine("slow", lambda format: [sys.executable, "-c", "import time; time.sleep(600)"])
    with pytest.raises(EngineTimeoutError, match=r"slow took more than 0\.2 s"):
        slow.run("digraph {}", "svg", 0.2)


def test_an_engine_that_cannot_be_started():
    with pytest.raises(EngineError, match="could not be started"):
        Engine("gone", lambda format: ["/no/such/program"]).run("digraph {}", "svg", 1)


def test_a_slow_layout_is_tried_again_in_a_hurry(net, engines):
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'><g class='graph'/></svg>"
    dot = Fake(EngineTimeoutError("dot took more than 20 s"), svg)
    engines(dot=dot)
    picture = draw(net())
    assert picture.engine == "dot"
    assert picture.notes == (
        "dot took more than 20 s.",
        "Told to hurry, it drew straight lines.",
    )
    first, second = dot.asked
    assert "nslimit" not in first
    assert "nslimit=2" in second
    assert "splines=line" in second


def test_twice_too_slow_goes_straight_to_the_built_in_layout(net, engines):
    late = EngineTimeoutError("dot took more than 20 s")
    other = Fake()
    engines(dot=Fake(late, late), pygraphviz=other)
    picture = draw(net())
    assert picture.engine == "layers"
    assert picture.notes[0] == "dot took more than 20 s."
    assert other.asked == []


def test_a_big_graph_is_drawn_by_the_built_in_layout(engines):
    dot = Fake()
    engines(dot=dot)
    h = sg.placeholder("x", (3,), "float32")
    for _ in range(MOST_NODES):
        h = sg.tanh(h)
    picture = draw(sg.Graph([h]), collapse=False)
    assert picture.engine == "layers"
    assert dot.asked == []
    assert f"Above {MOST_NODES} nodes" in ET.fromstring(picture.data).find(f"{SVG}desc").text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "pdf"}, "format is one of 'svg', 'png', 'dot', not 'pdf'"),
        ({"engine": "neato"}, "engine is one of 'dot', 'pygraphviz', 'layers', not 'neato'"),
        ({"theme": "pink"}, "theme is one of"),
        ({"timeout": 0}, "timeout is a number of seconds above 0"),
        ({"timeout": "1"}, "timeout is a number of seconds above 0"),
        ({"title": 5}, "title is a text, not 5; write title='5'"),
        ({"theme": ["light"]}, "theme is one of"),
    ],
)
def test_wrong_options_are_refused(net, options, message):
    with pytest.raises(RenderError, match=message):
        render(net(), **options)


# Files and notebooks


@pytest.mark.parametrize(
    ("name", "start"), [("a.svg", b"<svg"), ("a.dot", b"digraph"), ("A.SVG", b"<svg")]
)
def test_the_suffix_decides(net, tmp_path, name, start):
    path = tmp_path / name
    assert save(net(), path) == path
    assert path.read_bytes().startswith(start)
    assert save(net(), str(path)) == path


@graphviz_engine
def test_png_file(net, tmp_path, engine):
    assert save(net(), tmp_path / "a.png", engine=engine).read_bytes().startswith(PNG)


@pytest.mark.parametrize("name", ["a", "a.pdf", "a.svg.gz"])
def test_another_suffix_is_refused(net, tmp_path, name):
    with pytest.raises(RenderError, match=r"\.svg, \.png or \.dot"):
        save(net(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(net, tmp_path):
    with pytest.raises(RenderError, match=r"there is no folder .*missing"):
        save(net(), tmp_path / "missing" / "a.svg")


def test_a_failure_leaves_the_old_file_and_no_other(net, tmp_path, monkeypatch):
    path = tmp_path / "a.svg"
    path.write_text("old")

    def fail(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(RenderError, match="No space left"):
        save(net(), path, engine="layers")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_no_file(net, tmp_path):
    path = tmp_path / "a.svg"
    path.mkdir()
    with pytest.raises(RenderError, match="could not be written"):
        save(net(), path, engine="layers")
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_followed(net, tmp_path):
    real, link = tmp_path / "real.svg", tmp_path / "link.svg"
    link.symlink_to(real)
    save(net(), link, engine="layers")
    assert link.is_symlink()
    assert real.read_bytes().startswith(b"<svg")


def test_a_program_is_drawn_by_its_graph(net):
    program = SimpleNamespace(graph=net(1), output_names=("loss", "w0 (update)"))
    labels = [t.text for t in ET.fromstring(render(program)).iter(f"{SVG}text")]
    assert "⟶ loss" in labels
    assert "⟶ w0 (update)" in labels


def test_what_has_no_graph_is_refused():
    with pytest.raises(RenderError, match="a Graph or a Program can be drawn, not a str"):
        render("graph")


def test_a_picture_shows_itself_in_a_notebook(net):
    assert draw(net())._repr_svg_().startswith("<svg")
    assert draw(net())._repr_png_() is None


@graphviz_engine
def test_a_png_in_a_notebook(net, engine):
    picture = draw(net(), format="png", engine=engine)
    assert picture._repr_png_().startswith(PNG)
    assert picture._repr_svg_() is None


def test_the_program_dot_is_looked_for_on_the_path(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(program_called_dot(tmp_path, "")))
    assert ENGINES["dot"].command("svg") == [shutil.which("dot"), "-Tsvg"]

"""The lines that a file names are text: nothing of symgrad opens what they name."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.formats import saved
from symgrad.ir.origin import Location

ROOT = Path(__file__).parents[1]
SECRET = "the secret of the file"
# Everything that shows lines, with an error of a kernel and one of a rule, under an audit hook.
SHOWS = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "open" else None)
from pathlib import Path
import numpy as np
import symgrad as sg
from symgrad import display

graph = sg.Graph.load("graph.json")
program = sg.compile(list(graph.inputs), list(graph.outputs))
program(np.ones(3))
for why in (program.raw.outputs[0], 1):
    str(program.why(why))
str(program.raw.text()), str(program.plan), str(program.cost()), str(program.trace)
str(program.check(np.zeros(3))), str(program.profile(np.ones(3), runs=1))
program.save_source("source.py"), graph.save("again.json"), program.trace.save("trace.json")
program.render("picture.svg", engine="layers"), display.story(program, "story.svg")
program.explore("page.html"), display.mimebundle(program), display.mimebundle(graph)
try:
    graph.outputs[0] @ graph.outputs[0].T[:2]
except sg.SymgradError as error:
    str(error)
assert not [o for o in opened if "named" in str(o)], opened
"""


def graph_that_names(file, folder):
    graph = sg.Graph([sg.log(sg.placeholder("x", 3)) * 2])
    document = json.loads(graph.save(folder / "graph.json").read_text())
    for line in document["lines"]:
        line[:] = [str(file), 1, "y"]
    for told in ("format", "version", "checksum"):
        del document[told]
    (folder / "graph.json").write_text(saved.sealed(document))


@pytest.mark.parametrize("kind", ["file", "fifo", "device"])
def test_what_a_recorded_line_names_is_never_opened(kind, tmp_path):
    named = tmp_path / "named"
    if kind == "file":
        named.write_text(SECRET)
    elif kind == "device":
        named.symlink_to("/dev/zero")
    else:
        os.mkfifo(named)
    graph_that_names(named, tmp_path)
    command = [sys.executable, "-c", SHOWS]
    paths = f"{ROOT}:{ROOT / 'viz'}"
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    written = [p for p in tmp_path.iterdir() if p.suffix in (".svg", ".html", ".py", ".json")]
    assert len(written) >= 6
    assert not [p for p in written if SECRET in p.read_text()]
    assert "named" in (tmp_path / "page.html").read_text(), "the line itself is told"


def test_a_line_has_code_only_if_this_process_built_it(tmp_path):
    graph = sg.Graph([sg.tanh(sg.placeholder("x", 3))])
    (place,) = graph.outputs[0].origin.locations
    assert place.code is not None
    assert place.around(1)[place.line].strip().startswith("graph = sg.Graph([sg.tanh(")
    assert len(place.around(1)) == 3
    loaded = sg.Graph.load(graph.save(tmp_path / "g.json"))
    for again in (loaded, pickle.loads(pickle.dumps(graph))):
        (found,) = again.outputs[0].origin.locations
        assert found == place
        assert found.code is None
        assert found.around(12) == {place.line: place.text}
    assert pickle.loads(pickle.dumps(place)).code is None


def test_a_line_far_beyond_its_file_is_only_told():
    assert Location("/etc/passwd", 10**9, "y").around(12) == {10**9: "y"}
    with_code = Location("x", 10**9, "y", (lambda: np).__code__)
    assert with_code.around(12) == {}

"""`python -m symgrad`: its commands, what they answer in text and in JSON, and how they exit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import symgrad as sg
from symgrad import cli, display, doctor

ROOT = Path(__file__).parent.parent
SCRIPT = """
import sys
import symgrad as sg
assert len(sys.argv) == 1 and sys.argv[0].endswith("train.py")

print("this is no part of the answer")
x = sg.placeholder("x", ("N", 3), "float32")
loss = sg.sum(sg.relu(x) ** 2)
program = sg.compile([x], [loss, sg.grad(loss, x)])
graph = sg.Graph([loss])
several = {"loss": loss, "twice": loss * 2}
number = 3


def make():
    return graph, program


def fail():
    raise ValueError("no such luck")


def leave():
    sys.exit(3)


def wants(x):
    return x


if __name__ == "__main__":
    raise SystemExit("a script that is looked at is not run as one")
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def run(capsys):
    """Runs a command: its exit code, what it wrote, and what it complained of."""

    def call(*argv, **options):
        code = cli.main([str(a) for a in argv], **options)
        out = capsys.readouterr()
        return code, out.out, out.err

    return call


@pytest.mark.parametrize("name", ["program", "graph", "loss", "several", "make"])
def test_render_draws_what_is_named(run, script, name):
    code, out, _ = run("render", f"train.py:{name}", "--to", "p.svg")
    assert (code, out) == (0, "wrote p.svg\n")
    assert Path("p.svg").read_text(encoding="utf-8").startswith("<svg")


def test_render_has_a_name_for_the_file_and_options(run, script):
    code, out, _ = run("render", "train.py:program", "--json", "--color-by", "cost")
    answer = json.loads(out)
    assert code == 0
    assert answer == {"written": "program.svg", "bytes": Path("program.svg").stat().st_size}
    assert "floating-point" in Path("program.svg").read_text(encoding="utf-8")


def test_render_tells_stories_and_writes_explorers(run, script):
    assert run("render", "train.py:program", "--story", "--to", "s.svg")[0] == 0
    assert "what runs, after" in Path("s.svg").read_text(encoding="utf-8")
    assert run("render", "train.py:program", "--to", "p.html")[0] == 0
    assert Path("p.html").read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html")
    code, _, err = run("render", "train.py:graph", "--story")
    assert code == 1
    assert "a story is of a compiled Program, not of a Graph" in err
    for options in (("--story", "--to", "c.svg"), ("--to", "c.html")):
        code, _, err = run("render", "train.py:program", "--color-by", "cost", *options)
        assert code == 1
        assert "--color-by is for a picture, not" in err
        assert not Path(options[-1]).exists()


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("train.py", "write FILE.py:NAME"),
        ("none.py:x", "there is no file 'none.py'"),
        ("train.py:nothing", "nothing of the name 'nothing'; it has x, loss, program, graph"),
        ("train.py:number", "number is of type int"),
        ("train.py:fail", "train.py:20 failed: ValueError: no such luck"),
        ("train.py:leave", "train.py:24 failed: SystemExit: 3"),
        ("train.py:wants", "train.py failed: TypeError: wants() missing 1 required"),
        ("broken.py:x", "broken.py failed: SyntaxError: '(' was never closed (broken.py, line 2)"),
        ("folder.py:x", "there is no file 'folder.py'"),
    ],
)
@pytest.mark.parametrize("command", ["render", "explain"])
def test_what_cannot_be_found_is_said(run, script, command, what, message):
    Path("broken.py").write_text("\nx = (")
    Path("folder.py").mkdir()
    code, out, err = run(command, what)
    assert (code, out) == (1, "")
    *_, last = err.splitlines()
    assert last.startswith("symgrad: ")
    assert message in last
    code, out, err = run(command, what, "--json")
    assert code == 1
    assert json.loads(out) == {"error": last.removeprefix("symgrad: ")}
    assert "symgrad: " not in err


def test_a_picture_that_cannot_be_drawn_is_an_error_of_one_line(run, script):
    code, _, err = run("render", "train.py:graph", "--to", "p.pdf")
    assert code == 1
    assert err.splitlines()[1:] == [err.splitlines()[-1]]
    assert err.splitlines()[-1].startswith("symgrad: 'p.pdf' does not say which kind of picture")


def test_explain_tells_what_was_written_done_and_runs(run, script):
    code, out, err = run("explain", "train.py:program")
    assert code == 0
    for part in ("What was written", "What the compiler did", "What runs", "What it costs"):
        assert f"\n{part}\n\n" in f"\n{out}"
    assert "[" in out
    assert "this is no part of the answer" in err
    assert "this is no part" not in out


def test_explain_in_json(run, script):
    answer = json.loads(run("explain", "train.py:program", "--json")[1])
    assert answer["nodes"]["written"] > 0
    assert answer["passes"]
    assert answer["cost"]["runs"]["flops"] <= answer["cost"]["written"]["flops"]
    assert "np" in answer["source"]
    assert "placeholder" in json.loads(run("explain", "train.py:graph", "--json")[1])["graph"]


def test_explain_a_line(run, script):
    code, out, _ = run("explain", "train.py:program", "--line", "7")
    assert code == 0
    assert out.startswith("why train.py:7 built ")
    answer = json.loads(run("explain", "train.py:program", "--line", "train.py:7", "--json")[1])
    assert answer["stories"]
    assert all(s["verdict"] for s in answer["stories"])
    code, _, err = run("explain", "train.py:program", "--line", "2")
    assert code == 1
    assert "nothing of this program was built at line 2" in err
    assert run("explain", "train.py:graph", "--line", "7")[0] == 1
    for line in ("²", "-1", "3.5", "", ":", "train.py:", "9" * 5000):
        code, out, err = run("explain", "train.py:program", "--line", line)
        assert (code, out) == (1, "")
        assert f"{line!r} is no line of this program's source" in err


def test_demo(run, tmp_path):
    code, out, _ = run("demo")
    assert "# demo.py:5 x @ w1" in out
    assert code == 0
    assert "the loss fell from" in out
    answer = json.loads(run("demo", "--json", "--to", tmp_path / "out")[1])
    assert answer["losses"][-1] < answer["losses"][0]
    written = {Path(f).name for f in answer["files"]}
    assert written == {"demo.svg", "demo_story.svg", "demo.html", "demo_step.py"}
    assert all(Path(f).stat().st_size for f in answer["files"])
    (tmp_path / "file").write_text("")
    code, _, err = run("demo", "--to", tmp_path / "file")
    assert (code, "cannot be made" in err) == (1, True)
    (tmp_path / "out" / "demo_step.py").unlink()
    (tmp_path / "out" / "demo_step.py").mkdir()
    code, out, _ = run("demo", "--json", "--to", tmp_path / "out")
    assert code == 1
    assert "Is a directory" in json.loads(out)["error"]


def test_doctor(run):
    code, out, _ = run("doctor")
    assert code == 0
    assert "All is well." in out
    answer = json.loads(run("doctor", "--json")[1])
    assert answer["packages"]["symgrad"] == sg.__version__
    assert set(answer["engines"]) == {"dot", "pygraphviz", "layers"}
    assert answer["engines"]["layers"] == "built in"
    assert answer["threads"] >= 1
    assert answer["machine code"].startswith(("LLVM", "none, NumPy does the work: "))
    assert set(answer["blas"]) == {"name", "version", "threads"}


def test_doctor_says_what_is_missing(run, monkeypatch):
    version = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda n: None if n == "networkx" else version(n))
    code, out, _ = run("doctor")
    assert code == 1
    assert "networkx missing" in out
    assert "pip install networkx" in out


@pytest.mark.skipif(sys.platform == "win32", reason="of a program that is a script")
def test_doctor_tries_what_draws(run, tmp_path, monkeypatch):
    assert json.loads(run("doctor", "--json")[1])["faults"] == {}
    dot = tmp_path / "dot"
    dot.write_text("#!/bin/sh\necho 'no plugins <here>' >&2\nexit 1\n")
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, _ = run("doctor")
    assert code == 1
    assert "dot is there, but draws nothing: no SVG could be drawn: dot failed: no plugins <" in out
    assert out.endswith("dot broken\n")
    dot.unlink()
    code, out, _ = run("doctor")
    assert code == 0
    assert "  dot         not installed\n" in out


def test_doctor_works_where_the_pictures_cannot_be_loaded(run, monkeypatch):
    def fail():
        raise ImportError("No module named 'graphviz'")

    monkeypatch.setattr(display, "engines", fail)
    code, out, _ = run("doctor", "--json")
    assert code in (0, 1)
    assert json.loads(out)["engines"] == {}


@pytest.mark.parametrize("argv", [[], ["fly"], ["render"], ["demo", "--theme", "x"]])
def test_wrong_use_exits_with_2(argv, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(argv)
    assert caught.value.code == 2
    assert "usage: python -m symgrad" in capsys.readouterr().err


def test_headings_are_bold_only_where_there_are_colours(run, script):
    assert "\x1b[1mWhat runs\x1b[0m" in run("explain", "train.py:program", colour=True)[1]
    assert "\x1b" not in run("explain", "train.py:program")[1]
    assert "\x1b" not in run("explain", "train.py:program", "--json", colour=True)[1]


def as_module(*argv, **env):
    paths = os.pathsep.join([str(ROOT), str(ROOT / "viz")])
    env = {**os.environ, "PYTHONPATH": paths, **env}
    command = [sys.executable, "-m", "symgrad", *argv]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_it_is_a_module_that_can_be_run():
    done = as_module("doctor", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["missing"] == []
    assert as_module().returncode == 2
    assert as_module("--version").stdout == f"symgrad {sg.__version__}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="of pipes, and of a device that is full")
def test_an_answer_that_nobody_can_have_is_no_traceback():
    paths = os.pathsep.join([str(ROOT), str(ROOT / "viz")])
    command = f"{sys.executable} -m symgrad doctor"
    for where, said in [("| true", ""), ("> /dev/full", "cannot be written: [Errno 28]")]:
        done = subprocess.run(
            ["bash", "-c", f"{command} {where}; exit ${{PIPESTATUS[0]}}"],
            env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert said in done.stderr
        assert done.stderr.count("\n") == bool(said)


def test_names_that_the_terminal_cannot_write_are_escaped(tmp_path):
    script = tmp_path / "names.py"
    script.write_text(
        "import symgrad as sg\nx = sg.placeholder('λ\\ud800', (3,))\ny = sg.tanh(x)\n",
        encoding="utf-8",
    )
    done = as_module("explain", f"{script}:y", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert "\\" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal is asked of the system")
@pytest.mark.parametrize(("no_color", "bold"), [("", True), ("1", False)])
def test_no_color_is_heeded(script, no_color, bold):
    import pty

    ours, theirs = pty.openpty()
    paths = os.pathsep.join([str(ROOT), str(ROOT / "viz")])
    env = {**os.environ, "PYTHONPATH": paths, "NO_COLOR": no_color}
    command = [sys.executable, "-m", "symgrad", "doctor"]
    done = subprocess.run(command, env=env, stdout=theirs, stderr=subprocess.PIPE, check=False)
    os.close(theirs)
    told = os.read(ours, 65536)
    os.close(ours)
    assert done.returncode == 0
    assert (b"\x1b[1m" in told) == bold


def test_play_shows_its_address_and_ends_when_it_is_interrupted(run, script, monkeypatch):
    from symgrad.play import server

    texts = []

    def interrupted(self):
        texts.append((self.name, self.text))
        raise KeyboardInterrupt

    monkeypatch.setattr(server.Server, "serve_forever", interrupted)
    monkeypatch.setattr(server.Evaluator, "_start", lambda self: None)
    monkeypatch.setattr(server.Evaluator, "close", lambda self: None)
    code, out, _ = run("play", "train.py")
    assert code == 0
    assert out.startswith("http://127.0.0.1:")
    assert texts == [("train.py", SCRIPT)]
    code = [
        {"cell_type": "code", "source": source, "metadata": metadata}
        for source, metadata in (
            (["x = 1\n", "y = 2"], {}),
            ("1 / 0", {"tags": ["raises-exception"]}),
            ("x", {}),
        )
    ]
    cells = [*code, {"cell_type": "markdown", "source": "# Title"}]
    Path("t.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert run("play", "t.ipynb")[0] == 0
    assert texts[1] == ("t.py", "x = 1\ny = 2\n\nx\n")
    Path("broken.ipynb").write_text("[1]", encoding="utf-8")
    for wrong in ("none.py", "broken.ipynb"):
        assert run("play", wrong)[0] == 1


def test_a_port_that_cannot_be_had_is_told(run):
    from socket import create_server

    with create_server(("127.0.0.1", 0)) as taken:
        code, _, told = run("play", "--port", str(taken.getsockname()[1]))
    assert code == 1
    assert re.fullmatch(r"symgrad: port \d+ cannot be listened on: .*; without --port .*\n", told)
    for wrong in ("65536", "-1", "x"):
        with pytest.raises(SystemExit):
            run("play", f"--port={wrong}")

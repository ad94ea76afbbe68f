"""The commands of `python -m symgrad`: demo, render, explain, play and doctor.

They exit with 0 if all went well, 1 if something failed, and 2 if they were called wrongly. What
failed is told on the error stream; with `--json`, in the answer: `{"error": "…"}`.
"""

from __future__ import annotations

import argparse
import json
import linecache
import runpy
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np

import symgrad as sg
from symgrad import display
from symgrad.doctor import how_to_install, installation
from symgrad.ir.errors import SymgradError
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node
from symgrad.rewrite.trace import reason_text
from symgrad.runtime.program import Program

FAILED = 1
WRITTEN = """\
rng = np.random.default_rng(0)
x, y = sg.placeholder("x", ("N", 8), "float32"), sg.placeholder("y", ("N", 2), "float32")
w1 = sg.variable("w1", rng.standard_normal((8, 16), dtype="float32"))
w2 = sg.variable("w2", rng.standard_normal((16, 2), dtype="float32"))
loss = sg.sum((sg.relu(x @ w1) @ w2 - y) ** 2)
dw1, dw2 = sg.grad(loss, [w1, w2])
step = sg.compile([x, y], loss, updates={w1: w1 - 1e-4 * dw1, w2: w2 - 1e-4 * dw2})
X, Y = (rng.standard_normal((32, n), dtype="float32") for n in (8, 2))
losses = [float(step(X, Y)) for _ in range(100)]
"""


class CommandError(Exception):
    """An error as it is shown on the error stream."""


@dataclass(frozen=True)
class Answer:
    """The answer of a command: as text, as data for JSON, and whether all is well."""

    text: str
    data: Any
    is_well: bool = True


@dataclass(frozen=True)
class _Style:
    """Headings, bold where the terminal has colours."""

    colour: bool

    def heading(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self.colour else text


def main(argv: Sequence[str], *, colour: bool = False) -> int:
    """Run a command; gives the exit code."""
    arguments = _parser().parse_args(argv)
    style = _Style(colour and not arguments.json)
    command: Callable[[Any, _Style], Answer] = arguments.command
    try:
        answer = command(arguments, style)
    except (CommandError, SymgradError, OSError) as error:
        if not arguments.json:
            sys.stderr.write(f"symgrad: {error}\n")
            return FAILED
        answer = Answer("", {"error": str(error)}, False)
    text = json.dumps(answer.data, indent=1) if arguments.json else answer.text
    sys.stdout.write(_printable(text) + "\n")
    sys.stdout.flush()
    return 0 if answer.is_well else FAILED


def _printable(text: str) -> str:
    """The text as the output stream can write it."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m symgrad", description="Look at what symgrad makes of a program."
    )
    parser.add_argument("--version", action="version", version=f"symgrad {sg.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="command")

    def add(name: str, run: Callable[[Any, _Style], Answer], says: str) -> argparse.ArgumentParser:
        found = commands.add_parser(name, help=says, description=says)
        found.add_argument("--json", action="store_true", help="answer in JSON")
        found.set_defaults(command=run)
        return found

    demo_ = add("demo", demo, "Train a small net; show what was written and what runs.")
    demo_.add_argument("--to", metavar="FOLDER", help="write pictures and the program there, too")
    what = "what to look at: a Program, Graph, node, several nodes, or a function that gives one"
    render_ = add("render", render, "Draw a graph or program of a script into a file.")
    render_.add_argument("what", metavar="FILE.py:NAME", help=what)
    render_.add_argument(
        "-o", "--to", metavar="PATH",
        help=".svg, .png, .dot, or .html for the explorer; NAME.svg by default",
    )  # fmt: skip
    render_.add_argument("--story", action="store_true", help="all stages in one picture")
    render_.add_argument("--theme", choices=("auto", "light", "dark"), default="auto")
    render_.add_argument("--color-by", choices=("cost", "memory"), help="colour nodes by figures")
    explain_ = add("explain", explain, "Tell what the compiler did with a program, and why.")
    explain_.add_argument("what", metavar="FILE.py:NAME", help=what)
    explain_.add_argument("--line", help="tell of one line only: 12, or train.py:12")
    play_ = add("play", play, "Serve a page to try gradients on; it shows its address.")
    play_.add_argument(
        "file", metavar="FILE", nargs="?", help="a program or notebook to begin with"
    )
    play_.add_argument(
        "--port", type=_port, default=0, metavar="PORT",
        help="of 127.0.0.1; a free one by default",
    )  # fmt: skip
    add("doctor", doctor, "Say what is installed: versions, layout engines, BLAS, threads.")
    return parser


# ---- demo ---------------------------------------------------------------------------------------


def demo(arguments: Any, style: _Style) -> Answer:
    """A two-layer net, trained for some steps."""
    # Run as a file of the user's is, so that nodes know these lines, and their text.
    linecache.cache["demo.py"] = len(WRITTEN), None, WRITTEN.splitlines(True), "demo.py"
    made: dict[str, Any] = {"np": np, "sg": sg}
    exec(compile(WRITTEN, "demo.py", "exec"), made)
    step, losses = made["step"], made["losses"]
    files = [] if arguments.to is None else _demo_files(Path(arguments.to), step)
    parts = [
        ("What was written", WRITTEN),
        ("What the compiler did", _rules_text(step)),
        ("What runs", step.source),
        ("What it gave", f"the loss fell from {losses[0]:.6g} to {losses[-1]:.6g} in 100 steps"),
    ]
    parts += [("Written", "\n".join(files))] if files else []
    text = "\n\n".join(f"{style.heading(title)}\n\n{body.strip()}" for title, body in parts)
    found = {"losses": losses, "source": step.source, "rules": step.trace.rules(), "files": files}
    return Answer(text, found)


def _demo_files(folder: Path, step: Program) -> list[str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"{folder} cannot be made: {error.strerror}") from None
    written = [
        step.render(folder / "demo.svg"),
        display.story(step, folder / "demo_story.svg"),
        step.explore(folder / "demo.html"),
        step.save_source(folder / "demo_step.py"),
    ]
    return [str(path) for path in written]


# ---- render and explain -------------------------------------------------------------------------


def render(arguments: Any, style: _Style) -> Answer:
    """Draw what was named into a file."""
    thing, name = _found(arguments.what)
    path = Path(arguments.to or f"{name}.svg")
    page = path.suffix.lower() in (".html", ".htm")
    if (page or arguments.story) and not isinstance(thing, Program):
        what = "a story" if arguments.story else "an explorer"
        raise CommandError(f"{what} is of a compiled Program, not of a {type(thing).__name__}")
    if arguments.color_by and (arguments.story or page):
        what = "a story" if arguments.story else "an explorer"
        raise CommandError(f"--color-by is for a picture, not {what}; write --to {name}.svg alone")
    if arguments.story:
        written = display.story(thing, path, theme=arguments.theme)
    elif page:
        written = display.explore(thing, path)
    else:
        written = display.render(thing, path, theme=arguments.theme, color_by=arguments.color_by)
    return Answer(f"wrote {written}", {"written": str(written), "bytes": path.stat().st_size})


def explain(arguments: Any, style: _Style) -> Answer:
    """Tell what the compiler did, or what became of a line."""
    thing, _ = _found(arguments.what)
    if not isinstance(thing, Program):
        if arguments.line is not None:
            raise CommandError("a line is explained of a compiled Program")
        return Answer(str(thing), {"nodes": len(thing), "graph": str(thing)})
    if arguments.line is not None:
        why = thing.why(arguments.line)
        stories = [
            {
                "built": str(s.node),
                "rewrites": [f.rule.name for f in s.rewrites],
                "steps": list(s.steps),
                "code": [list(c) for c in s.code],
                "verdict": s.verdict,
            }
            for s in why.stories
        ]
        return Answer(str(why), {"asked": why.asked, "stories": stories})
    parts = (
        ("What was written", str(thing.raw)),
        ("What the compiler did", _rules_text(thing)),
        ("What runs", thing.source),
        ("What it costs", str(thing.cost())),
    )
    text = "\n\n".join(f"{style.heading(title)}\n\n{body.strip()}" for title, body in parts)
    cost = thing.cost()
    found = {
        "nodes": {"written": len(thing.raw), "runs": len(thing.graph)},
        "passes": [
            {"name": s.name, "before": len(s.before), "after": len(s.after), "seconds": s.seconds}
            for s in thing.trace.stages
        ],
        "rules": thing.trace.rules(),
        "source": thing.source,
        "cost": {
            when: {"steps": len(c.steps), "flops": c.flops, "bytes_moved": c.bytes_moved}
            for when, c in (("written", cost.before), ("runs", cost.after))
        },
    }
    return Answer(text, found)


def _rules_text(program: Program) -> str:
    """The rules that acted, each with how often, its grade and its reason."""
    rules = {f.rule.name: f.rule for f in program.trace.fired}
    counts = program.trace.rules()
    lines = [f"{len(program.raw)} nodes became {len(program.graph)}, by these rules:"]
    lines += [
        f"  {name} ×{counts[name]} [{rule.exact.name.lower()}]: {reason_text(rule)}"
        for name, rule in rules.items()
    ]
    return "\n".join(lines if rules else [f"{lines[0].partition(',')[0]}; no rule acted"])


def _found(what: str) -> tuple[Program | Graph, str]:
    """The object that `FILE.py:NAME` names, and NAME."""
    file, _, name = what.rpartition(":")
    if not file or not name:
        raise CommandError(f"{what!r} does not name anything; write FILE.py:NAME")
    path = Path(file)
    if not path.is_file():
        raise CommandError(f"there is no file {file!r}")
    before = sys.path[:], sys.argv[:]
    sys.path.insert(0, str(path.resolve().parent))
    sys.argv[:] = [str(path)]
    try:
        # What the script prints is not part of the answer.
        with redirect_stdout(sys.stderr):
            names = runpy.run_path(str(path), run_name=path.stem)
            if name not in names:
                drawable = [n for n, v in names.items() if _is_shown(v) and not n.startswith("_")]
                hint = f"; it has {', '.join(drawable[:20])}" if drawable else ""
                raise CommandError(f"{path.name} has nothing of the name {name!r}{hint}")
            thing = names[name]
            if callable(thing) and not isinstance(thing, Program | Node):
                thing = thing()
    except (CommandError, SymgradError):
        raise
    except (Exception, SystemExit) as error:
        lines = [f.lineno for f in extract_tb(error.__traceback__) if f.filename == str(path)]
        at = f"{path.name}:{lines[-1]}" if lines else path.name
        raise CommandError(f"{at} failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path[:], sys.argv[:] = before
    shown = _as_shown(thing)
    if shown is None:
        raise CommandError(
            f"{name} is of type {type(thing).__name__}; a Program, a Graph or nodes can be shown, "
            "or a function without arguments that gives one of these"
        )
    return shown, name


def _is_shown(value: Any) -> bool:
    return isinstance(value, Program | Graph | Node)


def _as_shown(thing: Any) -> Program | Graph | None:
    if isinstance(thing, Program | Graph):
        return thing
    nodes = list(thing.values()) if isinstance(thing, dict) else thing
    nodes = [nodes] if isinstance(nodes, Node) else nodes
    if isinstance(nodes, list | tuple) and nodes and all(isinstance(n, Node) for n in nodes):
        return Graph(nodes)
    programs = [v for v in nodes if isinstance(v, Program)] if isinstance(nodes, tuple) else []
    return programs[0] if len(programs) == 1 else None


# ---- play ---------------------------------------------------------------------------------------


def _port(text: str) -> int:
    """The number of a port; for argparse, which says what is wrong with another."""
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {text!r:.20}")
    return int(text)


def play(arguments: Any, style: _Style) -> Answer:
    """Serve the page where a gradient can be tried, until it is interrupted."""
    from symgrad.play.server import START, Server, read

    text, name = (START, "play.py") if arguments.file is None else read(Path(arguments.file))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no process stays behind
    try:
        served = Server(text, name, arguments.port)
    except OSError as error:
        where = f"port {arguments.port} cannot be listened on: {error.strerror}"
        raise CommandError(f"{where}; without --port a free one is taken") from None
    with served as server:
        said = sys.stderr if arguments.json else sys.stdout
        said.write(f"{server.address}\n")
        said.flush()
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    return Answer("stopped", {"address": server.address})


# ---- doctor -------------------------------------------------------------------------------------


def doctor(arguments: Any, style: _Style) -> Answer:
    """Report which packages are installed, which are missing, and which draw nothing."""
    found = installation()
    blas, engines, faults = found["blas"], found["engines"], found["faults"]
    lines = [style.heading("symgrad and what it stands on"), f"  python      {found['python']}"]
    lines += [f"  {n:<11} {v or how_to_install(n)}" for n, v in found["packages"].items()]
    lines += [style.heading("what lays out pictures, in this order")]
    lines += [f"  {n:<11} {where or 'not installed'}" for n, where in engines.items()]
    lines += [f"  {n} is there, but draws nothing: {fault}" for n, fault in faults.items()]
    wrong = [*(f"{n} missing" for n in found["missing"]), *(f"{n} broken" for n in faults)]
    threads = blas["threads"] or "unknown"
    lines += [
        style.heading("what computes"),
        f"  BLAS        {blas['name']} {blas['version']}, threads: {threads}",
        f"  processors  {found['threads']} for symgrad's own blocks",
        f"  machine code {found['machine code']}",
        ", ".join(wrong) or "All is well.",
    ]
    return Answer("\n".join(lines), found, not wrong)

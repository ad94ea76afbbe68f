"""From a text to what the page shows: graph, gradient, the rules that acted, program.

It runs in a process of its own, which is ended if it takes too long.
"""

from __future__ import annotations

import ast
import io
import json
import linecache
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from html import escape
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from traceback import extract_tb
from typing import Any, TypeAlias

import numpy as np

import symgrad as sg
from symgrad import display
from symgrad.ir.errors import ArgumentError, GradientError
from symgrad.ir.graph import Graph
from symgrad.ir.node import Node, Variable
from symgrad.ir.origin import Origin
from symgrad.rewrite.rule import Exact
from symgrad.rewrite.trace import reason_text
from symgrad.runtime.program import Program
from symgrad_viz import draw
from symgrad_viz.derivation_page import article

if sys.platform != "win32":
    import resource

Json: TypeAlias = dict[str, Any]
ALONE = 60  # seconds after which a text is ended, should there be no server left that ends it
MOST_MEMORY = 4 * 2**30  # bytes that a text may hold
MOST_DRAWN = 150  # nodes
MOST_DERIVED = 60
MOST_PRINTED = 10_000  # letters
PICTURES = ("written", "gradient", "runs")
GRADES = tuple(grade.name.lower() for grade in Exact)
PASSES = tuple(step.name for step in sg.passes.DEFAULT)


def serve(pipe: Connection, folder: str, name: str) -> None:
    """Answer requests until the pipe is closed; first, say that all is loaded."""
    # The terminal's ^C is for the server, which then closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        os.setpgid(0, 0)  # so that what a text starts is ended with it
    sys.path.insert(0, folder)
    sys.argv[:] = [name]
    first = evaluate({"text": "sg.sum(sg.relu(sg.placeholder('x', 2)))"}, name)
    _limit_memory()
    with suppress(EOFError, ConnectionError):  # the server is gone
        pipe.send_bytes(json.dumps(first["error"]).encode())
        while True:
            request = json.loads(pipe.recv_bytes())
            if sys.platform != "win32":
                signal.alarm(ALONE)
            answer = evaluate(request, name)
            if sys.platform != "win32":
                signal.alarm(0)
            pipe.send_bytes(json.dumps(answer).encode())


def _limit_memory() -> None:
    """Let a text that asks for too much fail, as long as the machine has room: on Linux only."""
    if sys.platform == "linux":
        held = int(Path("/proc/self/statm").read_text("ascii").split()[5]) * resource.getpagesize()
        _, highest = resource.getrlimit(resource.RLIMIT_DATA)
        most = held + MOST_MEMORY
        if highest == resource.RLIM_INFINITY or most < highest:
            resource.setrlimit(resource.RLIMIT_DATA, (most, highest))


def evaluate(request: Json, name: str = "play.py") -> Json:
    """All that is shown of `request["text"]`, a program whose last expression is a node.

    `kinks`, `exact`, `off` (names of passes) and `picture` say how. `error` has what went wrong,
    with the line of the text.
    """
    started, printed = perf_counter(), io.StringIO()
    answer: Json = {"error": None, "gradient": "", "remark": ""}
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            answer |= _shown(_last_value(request["text"], name), request, name)
    except (Exception, SystemExit) as error:
        answer["error"] = _error_json(error, name)
    answer["printed"] = printed.getvalue()[:MOST_PRINTED]
    answer["seconds"] = perf_counter() - started
    return answer


def _last_value(text: str, name: str) -> Any:
    """The value of the last expression, or of the last name that is a node or a program.

    Names count where the expression gives nothing, or what another library made, such as a figure.
    Those that begin with an underscore do not.
    """
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    tree = ast.parse(text, name)
    names: Json = {"sg": sg, "np": np, "__name__": name.removesuffix(".py"), "__file__": name}
    last = None
    if tree.body and isinstance(written := tree.body[-1], ast.Expr):
        del tree.body[-1]
        last = ast.Expression(written.value)
    exec(compile(tree, name, "exec"), names)
    value = None if last is None else eval(compile(last, name, "eval"), names)
    if value is None or type(value).__module__.partition(".")[0] not in ("builtins", "symgrad"):
        named = [v for n, v in names.items() if isinstance(v, Node | Program) and n[0] != "_"]
        return named[-1] if named else value
    return value


def _shown(value: Any, request: Json, name: str) -> Json:
    if isinstance(value, Program):
        return _of_program(value, value.raw, name) | {"remark": "The program as it was compiled."}
    nodes = list(value.values()) if isinstance(value, dict) else value
    nodes = [nodes] if isinstance(nodes, Node) else nodes
    if not (isinstance(nodes, list | tuple) and nodes and all(isinstance(n, Node) for n in nodes)):
        kind = type(value).__name__
        what = "gives nothing" if value is None else f"has the type {kind}: {value!r:.80}"
        raise ArgumentError(
            f"the last expression {what}; end with a node, as `sg.sum(x ** 2)`, with several, or "
            "with a program"
        )
    written = Graph(nodes)
    kinks, exact = request.get("kinks", "zero"), request.get("exact", "rounding")
    wrt = [n for n in written.inputs if np.issubdtype(n.dtype, np.floating)]
    outputs, found = list(nodes), {"gradient": "", "remark": ""}
    if len(nodes) == 1 and nodes[0].shape == () and wrt:
        outputs += sg.grad(nodes[0], wrt, kinks=kinks, disconnected="zero")
        if len(written) <= MOST_DERIVED:
            found["gradient"] = _derived(nodes[0], wrt, kinks, exact)
        else:
            found["remark"] = f"Of more than {MOST_DERIVED} nodes no derivation is written."
    else:
        found["remark"] = "A gradient is shown of one scalar that depends on floats."
    off = set(request.get("off", ()))
    passes = [step for step in sg.passes.DEFAULT if step.name not in off] if off else None
    inputs = [n for n in Graph(outputs).inputs if not isinstance(n, Variable)]
    program = sg.compile(inputs, outputs, exact=exact, passes=passes)
    graphs = {"written": written, "gradient": Graph(outputs), "runs": program.graph}
    return found | _of_program(program, graphs[request.get("picture", "written")], name)


def _derived(loss: Node, wrt: Sequence[Node], kinks: Any, exact: Any) -> str:
    """The derivation as HTML; where there is no gradient, the reason."""
    try:
        return article(display.derivation(loss, wrt, kinks=kinks, exact=exact))
    except GradientError as error:
        return f"<pre>{escape(str(error))}</pre>"


def _of_program(program: Program, graph: Graph, name: str) -> Json:
    source = program.executables.shown().source
    lines = enumerate(source.text.splitlines(), 1)
    numbers = {n: _lines([step.node.origin], name) for n, step in source.lines.items()}
    return {
        "program": [[text, numbers.get(n, [])] for n, text in lines],
        "rules": _rules(program, name),
        "picture": _picture(graph),
        "sizes": [len(program.raw), len(program.graph)],
    }


def _rules(program: Program, name: str) -> list[list[Any]]:
    """The rules that acted: name, how often, grade, reason, changes, lines of the text."""
    found: dict[str, list[Any]] = {}
    for event in program.trace.fired:
        rule = event.rule
        new: list[Any] = [rule.name, 0, rule.exact.name.lower(), reason_text(rule), [], set()]
        row = found.setdefault(rule.name, new)
        row[1] += 1
        row[4] += [event.change()] if len(row[4]) < 3 else []
        row[5].update(_lines([event.before.origin], name))
    return [[*row[:5], sorted(row[5])] for row in found.values()]


def _lines(origins: Iterable[Origin], name: str) -> list[int]:
    """The lines of the text that nodes come from."""
    return sorted({p.line for o in origins for p in o.locations if p.file == name})


def _picture(graph: Graph) -> str:
    """The graph as SVG, by the layout that starts no other program; "" of a large one."""
    return str(draw(graph, engine="layers").data) if len(graph) <= MOST_DRAWN else ""


def _named(name: str) -> str:
    """The end of the message about a name that is not there: how to write it."""
    if name in dir(sg):
        return f"; write sg.{name}"
    return f'; an input is made by {name} = sg.placeholder("{name}", 3)' if len(name) < 3 else ""


def _error_json(error: BaseException, name: str) -> Json:
    """An error as it is shown: its kind, its text, and the line of the text that raised it."""
    lines = [f.lineno for f in extract_tb(error.__traceback__) if f.filename == name]
    if isinstance(error, SyntaxError) and error.filename == name:
        return {"kind": "SyntaxError", "text": error.msg, "line": error.lineno}
    line = lines[-1] if lines else None
    text = str(error)
    if type(error) is NameError:
        text += _named(str(error.name))
    if isinstance(error, MemoryError):
        text = f"{text or 'no memory'} (a text may hold {MOST_MEMORY // 2**30} GiB here)"
    return {"kind": type(error).__name__, "text": text, "line": line}

"""Programs that lay a graph out, each run as a process of its own that can be stopped."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_PYGRAPHVIZ = """
import sys, pygraphviz
graph = pygraphviz.AGraph(string=sys.stdin.buffer.read().decode("utf-8"))
sys.stdout.buffer.write(graph.draw(format=sys.argv[1], prog="dot"))
"""


class EngineError(Exception):
    """An engine gave no picture; the text says why, in a few words."""


class EngineTimeoutError(EngineError):
    """An engine was stopped because it took too long."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A layout engine: `command(format)` is how it is called, None where it is not installed."""

    name: str
    command: Callable[[str], list[str] | None]

    def run(self, dot: str, format: str, timeout: float) -> bytes:
        """The picture of a DOT text. Raises `EngineError`."""
        command = self.command(format)
        if command is None:
            raise EngineError(f"{self.name} is not installed")
        try:
            done = subprocess.run(
                command, input=dot.encode(), capture_output=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            raise EngineTimeoutError(f"{self.name} took more than {timeout:g} s") from None
        except OSError as error:
            raise EngineError(f"{self.name} could not be started: {error}") from None
        if done.returncode or not done.stdout:
            said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise EngineError(f"{self.name} failed: {''.join(said) or f'exit {done.returncode}'}")
        return done.stdout


def _dot_command(format: str) -> list[str] | None:
    found = shutil.which("dot")
    return None if found is None else [found, f"-T{format}"]


def _pygraphviz_command(format: str) -> list[str] | None:
    # Its wheel carries the libraries of Graphviz but not the program, and a library cannot be
    # stopped: so Python itself is the program. -P keeps files of the working folder out of it.
    if not sys.executable or importlib.util.find_spec("pygraphviz") is None:
        return None
    return [sys.executable, "-P", "-c", _PYGRAPHVIZ, format]


# In the order in which they are tried.
ENGINES: Mapping[str, Engine] = {
    e.name: e for e in (Engine("dot", _dot_command), Engine("pygraphviz", _pygraphviz_command))
}


def installed() -> dict[str, str | None]:
    """The engines, each with its program, or None; the built-in layout is always there."""
    found = {name: engine.command("svg") for name, engine in ENGINES.items()}
    return {n: c[0] if c else None for n, c in found.items()} | {"layers": "built in"}

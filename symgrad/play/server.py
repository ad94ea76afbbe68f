"""The server of the page: one address with a secret in it, which nothing but this machine reaches.

It listens on 127.0.0.1. Whoever asks for anything has to know the token and to name this host, so
that neither a page of another site nor a name that is bound anew can ask. It serves no files.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path
from string import Template
from threading import Lock
from typing import Any

from symgrad.ir.errors import ArgumentError
from symgrad.ir.kinks import SIDES
from symgrad.play.share import in_parts, shared, style
from symgrad.play.worker import GRADES, PASSES, PICTURES, Json, serve

LIMIT = 5.0  # seconds for one text
STARTING = 60.0  # seconds in which a process has to be there, on a machine that is busy
MOST_BYTES = 200_000  # of a request
TOO_LONG = f"413: no text of more than {MOST_BYTES:,} bytes is run\n"
START = """\
# The last line is the result. sg and np are imported.
x = sg.placeholder("x", ("N", 3))
w = sg.variable("w", np.ones((3, 2)))
sg.sum(sg.relu(x @ w) ** 2)
"""


class Evaluator:
    """Runs texts, one after the other, in a process that is ended if one takes too long."""

    def __init__(self, folder: str, name: str, limit: float = LIMIT) -> None:
        self.folder, self.name, self.limit = folder, name, limit
        self._lock = Lock()
        self._start()

    def _start(self) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        arguments = (theirs, self.folder, self.name)
        self._process = context.Process(target=serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self._is_ready = False

    def close(self) -> None:
        """End the process, and those that texts have started in it."""
        if sys.platform != "win32" and self._process.pid is not None:
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def ask(self, request: Json) -> Json:
        """Give what is shown of a text; an error if it takes too long, or ends the process."""
        with self._lock:
            try:
                if not self._is_ready:
                    self._receive(STARTING)
                    self._is_ready = True
                self._pipe.send_bytes(json.dumps(request).encode())
                answer: Json = self._receive(self.limit)
            except TimeoutError:
                fault = f"it took more than {self.limit:g} seconds, and was ended"
            except (EOFError, OSError):
                fault = "it ended the process in which it ran"
            else:
                return answer
            self.close()
            self._start()
        error = {"kind": "Stopped", "text": f"{fault}; a new one is ready", "line": None}
        return {"error": error, "printed": "", "seconds": self.limit}

    def _receive(self, limit: float) -> Any:
        if not self._pipe.poll(limit):
            raise TimeoutError
        return json.loads(self._pipe.recv_bytes())


def checked(body: bytes) -> Json:
    """A request as the worker takes it. Raises `ArgumentError` for anything else."""
    try:
        request = json.loads(body)
        text, off = request["text"], request.get("off", [])
        chosen = {"kinks": "zero", "exact": "rounding", "picture": "written"}
        chosen |= {key: request[key] for key in chosen if key in request}
        is_sound = isinstance(text, str) and isinstance(off, list) and set(off) <= {*PASSES}
        allowed = {"kinks": SIDES, "exact": GRADES, "picture": PICTURES}
        is_sound = is_sound and all(chosen[key] in allowed[key] for key in allowed)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArgumentError("the request is no JSON object with a text") from error
    if not is_sound:
        raise ArgumentError("the request has a choice that there is not")
    return {"text": text, "off": off, **chosen}


def read(path: Path) -> tuple[str, str]:
    """The text of a program, or the code of a notebook, and the name under which it runs.

    Cells of a notebook that are to fail are left out. Raises `ArgumentError` for a file that is no
    notebook.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix != ".ipynb":
        return text, path.name
    try:
        cells = [
            cell["source"]
            for cell in json.loads(text)["cells"]
            if cell["cell_type"] == "code"
            and "raises-exception" not in cell["metadata"].get("tags", ())
        ]
        text = "\n\n".join("".join(source) for source in cells) + "\n"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArgumentError(f"{path.name!r} is no notebook of Jupyter's") from error
    return text, f"{path.stem}.py"


class Server(ThreadingHTTPServer):
    """Listens on the loopback address; `address` is what to open."""

    daemon_threads = True

    def __init__(self, text: str = START, name: str = "play.py", port: int = 0) -> None:
        self.evaluator = Evaluator(str(Path.cwd()), name)
        super().__init__(("127.0.0.1", port), Handler)
        self.token = secrets.token_urlsafe(24)
        self.text, self.name = text, name
        self.hosts = {f"{host}:{self.server_address[1]}" for host in ("127.0.0.1", "localhost")}
        self.address = f"http://127.0.0.1:{self.server_address[1]}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tell of an error, but not of a page that was closed before its answer was there."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def server_close(self) -> None:
        """Stop listening, and end the process that runs texts."""
        super().server_close()
        self.evaluator.close()


class Handler(BaseHTTPRequestHandler):
    """Answers a request: with the page, with what is shown of a text, or with a refusal."""

    server: Server
    server_version, sys_version = "symgrad", ""
    timeout = 20

    def do_GET(self) -> None:
        """Send the page."""
        self._answer({"": self._page})

    def do_POST(self) -> None:
        """Send what is shown of a text, as JSON or as a page to keep."""
        self._answer({"run": self._run, "share": self._share})

    def do_other(self) -> None:
        """Nothing else is answered, and nothing said to who has no token."""
        self._answer({})

    do_HEAD = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_other

    def _answer(self, ways: dict[str, Callable[[], None]]) -> None:
        _, token, *rest = (*self.path.split("/", 2), "", "")[:3]
        known = secrets.compare_digest(token.encode(), self.server.token.encode())
        origin = self.headers.get("Origin")
        homes = {f"http://{host}" for host in self.server.hosts}
        is_home = self.headers.get("Host") in self.server.hosts
        if not known or not is_home or (origin is not None and origin not in homes):
            self._send(HTTPStatus.FORBIDDEN, "text/plain", "403: open the address with its token\n")
        elif rest[0] not in ways:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "404: there is one page\n")
        else:
            ways[rest[0]]()

    def _send(self, status: HTTPStatus, kind: str, text: str, policy: str = "") -> None:
        body = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header(
            "Content-Security-Policy", f"default-src 'none'; {policy}frame-ancestors 'none'"
        )
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _page(self) -> None:
        nonce = secrets.token_urlsafe(16)
        server, home = self.server, files("symgrad.play")
        begin = {
            "text": server.text, "name": server.name, "kinks": SIDES, "exact": GRADES,
            "passes": PASSES, "folder": server.evaluator.folder, "limit": server.evaluator.limit,
        }  # fmt: skip
        page = Template(home.joinpath("page.html").read_text("utf-8")).substitute(
            nonce=nonce,
            style=style(),
            script=home.joinpath("page.js").read_text("utf-8"),
            data=in_parts(begin),
        )
        own = f"script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; "
        own += "connect-src 'self'; base-uri 'none'; form-action 'none'; "
        self._send(HTTPStatus.OK, "text/html", page, own)

    def _request(self) -> Json | None:
        """Give what was asked, if it may be; else refuse it."""
        length = self.headers.get("Content-Length", "")
        if self.headers.get_content_type() != "application/json":
            self._send(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "text/plain", "415: send JSON\n")
        elif not (length.isascii() and length.isdigit()):
            self._send(HTTPStatus.LENGTH_REQUIRED, "text/plain", "411: say how long it is\n")
        elif len(length) > 9 or int(length) > MOST_BYTES:
            self._send(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "text/plain", TOO_LONG)
        else:
            try:
                return checked(self.rfile.read(int(length)))
            except ArgumentError as error:
                self._send(HTTPStatus.BAD_REQUEST, "text/plain", f"400: {error}\n")
        return None

    def _run(self) -> None:
        if (request := self._request()) is not None:
            answer = self.server.evaluator.ask(request)
            self._send(HTTPStatus.OK, "application/json", json.dumps(answer))

    def _share(self) -> None:
        if (request := self._request()) is not None:
            answer = self.server.evaluator.ask(request)
            self._send(HTTPStatus.OK, "text/html", shared(request, answer, self.server.name))

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the token is in the path."""

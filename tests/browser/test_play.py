"""The page where a gradient can be tried, as a reader uses it; nothing else is asked for."""

import json
import re
import struct
import sys
from http.client import HTTPConnection
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET, create_connection
from threading import Thread
from time import sleep

import pytest
from axe_playwright_python.sync_playwright import Axe

from symgrad.play.server import MOST_BYTES, Evaluator, Server, checked
from symgrad.play.worker import evaluate

ABS = 'x = sg.placeholder("x", ())\n\nabs(x)\n'
WRONG = 'x = sg.placeholder("x", 3)\ny = sg.placeholder("y", 4)\nsg.sum(x * y)\n'


@pytest.fixture(scope="module")
def server():
    with Server() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, way="run", body=b'{"text": "1"}', method="POST", token=None, **headers):
    """The status and the headers of an answer, and its text."""
    sent = {"Content-Type": "application/json"} | {
        k.replace("_", "-"): v for k, v in headers.items()
    }
    connection = HTTPConnection("127.0.0.1", server.server_address[1])
    path = f"/{server.token if token is None else token}/{way}"
    connection.request(method, path, body, sent)
    found = connection.getresponse()
    text = found.read().decode()
    connection.close()
    return found.status, found.headers, text


def test_who_does_not_know_the_token_is_refused(server):
    for token in ("", "x", server.token[:-1], server.token + "x", "%2e%2e", "é"):
        for method in ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS"):
            token = token.encode().decode("latin-1") if token != "é" else "%C3%A9"
            assert ask(server, "", b"", method, token)[0] == 403
    port = server.server_address[1]
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}"):
        assert ask(server, "", None, "GET", Host=host)[0] == 403
    assert ask(server, Origin="http://evil.example")[0] == 403
    assert ask(server, Origin="null")[0] == 403
    assert ask(server, "", None, "GET", Host=f"localhost:{port}")[0] == 200


def test_nothing_else_is_answered(server):
    for way in ("page.js", "../page.js", "%2e%2e/page.js", "run/x", "run?x"):
        assert ask(server, way)[0] == 404
    assert ask(server, "run", None, "GET")[0] == 404
    assert ask(server, "", b"{}", "PUT")[0] == 404
    assert ask(server, Content_Type="text/plain")[0] == 415
    assert ask(server, Content_Length=str(MOST_BYTES + 1))[0] == 413
    assert ask(server, Content_Length="9" * 5000)[0] == 413
    assert ask(server, Content_Length="-1")[0] == 411
    for body in (
        b"",
        b"[]",
        b"{}",
        b'{"text": 1}',
        b"\xff",
        b"[" * 9000,
        b'{"text": "", "off": ["x"]}',
    ):
        assert ask(server, body=body)[0] == 400
    _, headers, _ = ask(server, "", None, "GET")
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'nonce-")
    assert "unsafe" not in policy
    assert headers["Referrer-Policy"] == "no-referrer"


def test_a_page_that_is_closed_before_its_answer_is_there_is_no_error(server, capfd):
    port, head = server.server_address[1], f"POST /{server.token}/run HTTP/1.1\r\n"
    head += f"Host: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
    with create_connection(("127.0.0.1", port)) as left:
        left.setsockopt(
            SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0)
        )  # closed at once, not kindly
        left.sendall(head.encode())
    assert ask(server)[0] == 200
    assert capfd.readouterr().err == ""


def is_gone(stat, tries=100):
    """Whether a process ends within some seconds: it is killed, which takes it a moment."""
    for _ in range(tries):
        try:
            if stat.read_text().split()[2] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        sleep(0.05)
    return False


def test_a_text_that_does_not_end_or_ends_the_process_is_stopped(tmp_path):
    evaluator = Evaluator(str(tmp_path), "play.py", limit=30)
    try:
        ended = evaluator.ask(checked(b'{"text": "import os; os._exit(3)"}'))
        assert "ended the process" in ended["error"]["text"]
        evaluator.limit = 0.3
        endless = evaluator.ask(checked(b'{"text": "while True: pass"}'))
        assert "more than 0.3 seconds" in endless["error"]["text"]
        evaluator.limit = 30
        if sys.platform == "linux":
            large = evaluator.ask(checked(b'{"text": "\\nx = bytearray(10 * 2**30)"}'))["error"]
            assert (large["kind"], large["line"]) == ("MemoryError", 2)
        path = str(tmp_path / "pid")
        text = "import os, subprocess\npid = subprocess.Popen(['sleep', '99']).pid\n"
        text += f"with open({path!r}, 'w') as f: f.write(str(pid))\nos._exit(0)"
        assert evaluator.ask(checked(json.dumps({"text": text}).encode()))["error"]
        if sys.platform == "linux":
            assert is_gone(Path("/proc", Path(path).read_text(), "stat"))
        assert evaluator.ask(checked(b'{"text": "sg.placeholder(\'x\', 2)"}'))["error"] is None
    finally:
        evaluator.close()


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        (WRONG, "ShapeError", 3),
        ("x = (1\n", "SyntaxError", 1),
        ("\n1 / 0", "ZeroDivisionError", 2),
        ("raise SystemExit(3)", "SystemExit", 1),
        ("3", "ArgumentError", None),
        ("", "ArgumentError", None),
    ],
)
def test_an_error_has_its_line(text, kind, line):
    error = evaluate({"text": text})["error"]
    assert (error["kind"], error["line"]) == (kind, line)


def test_a_name_that_is_not_there_is_told_how_to_write():
    said = [evaluate({"text": text})["error"]["text"] for text in ("sin(1)", "y", "longer")]
    assert "write sg.sin" in said[0]
    assert 'y = sg.placeholder("y", 3)' in said[1]
    assert said[2].endswith("is not defined")


@pytest.mark.parametrize(
    "text",
    [
        "x = sg.placeholder('x', 2)\ny = sg.sum(x)",
        "x = sg.placeholder('x', 2)\ny = sg.sum(x)\nprint(y)",
        "x = sg.placeholder('x', 2)\nx, x * 2",
        "x = sg.placeholder('x', 2)\nsg.compile(x, x * 2)",
        "sg.sum(sg.placeholder('i', 2, 'int64'))",
        "x = sg.placeholder('</script><b>', 2)\nsg.sum(x ** 2)",
    ],
)
def test_what_may_stand_at_the_end(text):
    answer = evaluate({"text": text})
    assert answer["error"] is None
    assert answer["program"]
    assert "<b>" not in answer["picture"] + answer["gradient"]


def test_the_page(server, chromium, tmp_path):
    page = chromium.new_context(viewport={"width": 1300, "height": 900}).new_page()
    page.set_default_timeout(20_000)
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))

    def settled(done):
        page.locator(f"body[data-done='{done}']").wait_for()

    page.goto(server.address)
    settled(1)
    assert "relu" in page.locator("#program").inner_text()
    assert page.locator("#graph svg").count() == 1
    assert page.locator("#gradient article").count() == 1
    assert "sum_of_squares" in page.locator("#rules").inner_text()

    page.locator("#program div", has_text="matmul(x, w, a)").first.hover()
    assert page.locator("#numbers .hinted").all_inner_texts() == ["4"]

    page.locator("#program").focus()
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    walked = page.locator("#program .walked").inner_text()
    assert walked in page.locator("#said").text_content()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "text"
    assert page.locator("#numbers .hinted").all_inner_texts() == ["4"]
    assert page.locator("#program .walked").count() == 0

    page.locator("#text").fill(ABS)
    settled(2)
    before = page.locator("#program").inner_text()
    assert "sign" in before
    page.locator("#kinks").select_option("right")
    settled(3)
    assert page.locator("#program").inner_text() != before

    page.locator("#text").fill(WRONG)
    settled(4)
    assert "3 and 4" in page.locator("#error").inner_text()
    assert page.locator("#numbers .wrong").all_inner_texts() == ["3"]

    page.locator("#text").fill(WRONG.replace("4)", "3)"))
    settled(5)
    assert page.locator("#error").is_hidden()
    page.locator("summary", has_text="passes").click()
    page.get_by_label("fusion").uncheck()
    settled(6)
    assert page.locator("#left-out").inner_text() == "(1 off)"
    page.locator("summary", has_text="passes").click()

    page.locator("#text").fill("#" * MOST_BYTES)
    settled(7)
    told = page.locator("#error").inner_text()
    assert told == "Refused\n413: no text of more than 200,000 bytes is run"
    assert "413" in said.pop()  # the browser tells of it
    page.locator("#text").fill(ABS)
    settled(8)

    found = Axe().run(page).response["violations"]
    assert [
        (v["id"], [n["html"] for n in v["nodes"]])
        for v in found
        if v["impact"] in ("serious", "critical")
    ] == []

    with page.expect_download() as download:
        page.locator("#share").click()
    kept = tmp_path / "kept.html"
    download.value.save_as(kept)
    assert said == []
    assert all(url.startswith((server.address, "blob:", "data:")) for url in asked)
    text = kept.read_text("utf-8")
    assert "without fusion" in text
    assert not re.search(r"<script|https?://(?!www\.w3\.org)", text)
    page.context.close()

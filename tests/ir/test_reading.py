"""What is read: regular files only, of a size that was reckoned with, and JSON to the letter."""

import os
import socket
import threading
import tracemalloc

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import FileError, ParseError, RenderError, StateError, SymgradError
from symgrad.ir.formats.reading import regular_file, strict_json
from tests.helpers import each

w = sg.variable("w", np.ones(3))
graph = sg.Graph([sg.tanh(w)])
READERS = {
    "g.json": sg.Graph.load,
    "s.npz": lambda path: sg.load_state(path, [w]),
    "s.safetensors": lambda path: sg.load_state(path, [w]),
}


@pytest.fixture(params=READERS)
def name(request):
    return request.param


def link(path):
    target = path.rename(path.with_name("target"))
    path.symlink_to(target)


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("kind", ["folder", "pipe", "zero", "full", "socket"])
def test_what_is_no_regular_file_is_refused_at_once(kind, linked, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    path = tmp_path / name
    with socket.socket(socket.AF_UNIX) as listening:
        match kind:
            case "folder":
                path.mkdir()
            case "pipe":
                os.mkfifo(path)
            case "socket":
                listening.bind(name)
            case _:
                path.symlink_to(f"/dev/{kind}")
        if linked:
            link(path)
        with pytest.raises(FileError, match="is no regular file"):
            READERS[name](path)


def test_a_link_to_a_file_is_followed(name, tmp_path):
    path = tmp_path / name
    graph.save(path) if name == "g.json" else sg.save_state(path, [w])
    link(path)
    READERS[name](path)


def test_a_path_that_no_file_can_have_is_refused_by_whatever_reads_or_writes(tmp_path):
    program = sg.compile([], graph.outputs)
    for stem in ("a\0b", "a\ud800b"):
        for suffix, use in [
            *((name.partition(".")[2], read) for name, read in READERS.items()),
            ("npz", lambda path: sg.save_state(path, [w])),
            ("safetensors", lambda path: sg.save_state(path, [w])),
            ("json", graph.save),
            ("py", program.save_source),
            ("json", program.trace.save),
        ]:
            with pytest.raises(FileError, match="no file can be called"):
                use(f"{tmp_path}/{stem}.{suffix}")
        for suffix, draw in (("svg", program.render), ("html", program.explore)):
            with pytest.raises((FileError, RenderError)):
                draw(f"{tmp_path}/{stem}.{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_a_file_error_is_one_of_symgrad_and_of_the_system():
    assert issubclass(FileError, SymgradError)
    assert issubclass(FileError, OSError)
    assert str(FileError("said")) == "said"


def test_a_file_that_is_not_there_is_not_found(name, tmp_path):
    with pytest.raises(FileNotFoundError):
        READERS[name](tmp_path / name)


def peak(act):
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("head", [b"", b"\xff\xff\xff\xff", b"\xff" * 8, b"PK\x03\x04"])
def test_of_a_large_sparse_file_little_is_read(head, name, tmp_path):
    path = tmp_path / name
    path.write_bytes(head)
    with path.open("r+b") as file:
        file.truncate(2**40)

    def act():
        with pytest.raises((FileError, StateError)):
            READERS[name](path)

    assert peak(act) < 2**26


def test_a_zip_file_with_a_large_directory_is_refused(tmp_path):
    path = tmp_path / "s.npz"
    size = 2**30
    end = b"PK\x05\x06" + bytes(4) + b"\1\0\1\0" + size.to_bytes(4, "little") + bytes(6)
    with path.open("wb") as file:
        file.truncate(size)
        file.seek(size)
        file.write(end)

    def act():
        with pytest.raises(StateError, match="1073741824 bytes are to be read at once"):
            READERS[path.name](path)

    assert peak(act) < 2**22


def test_a_graph_may_be_as_large_as_the_user_says(tmp_path):
    path = graph.save(tmp_path / "g.json")
    size = path.stat().st_size
    assert sg.Graph.load(path, most_bytes=size) == graph
    with pytest.raises(FileError, match=f"{size} bytes, and at most 100 .* most_bytes={size}"):
        sg.Graph.load(path, most_bytes=100)


def test_a_file_that_grows_while_it_is_read_is_read_as_it_was(tmp_path):
    path = tmp_path / "g.json"
    path.write_bytes(b"abc")
    with regular_file(path, 10) as file:
        with path.open("ab") as more:
            more.write(bytes(10**6))
        assert file.read() == b"abc"


def test_a_pipe_that_nobody_writes_into_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "g.json")
    found = []

    def read():
        try:
            sg.Graph.load(tmp_path / "g.json")
        except FileError as error:
            found.append(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(60)
    assert len(found) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "a": 1}', "'a' is there twice"),
        ("[NaN]", "NaN is no JSON"),
        ("[-Infinity]", "no JSON"),
        ("[" * 10**6, "nested|delimiter|Expecting"),
        ('{"a":' * 10**5, "nested"),
        ("1" * 10**5, "digits"),
        ("[1,]", "Expecting"),
        ("[]" + "x", "Extra data"),
        (f"[{',' * 2**16}]", "65537 values"),
        ("{" + ":" * 2**15 + ",]", "98306 values"),
    ],
    ids=lambda value: value[:12],
)
def test_json_is_read_to_the_letter(text, words):
    with pytest.raises(ValueError, match=words):
        strict_json(text, 6400 if text.endswith(",]") else None)


NESTED = ("(", "[", "{", "-", "~", "not ", "f(", "a[", "lambda:", "x if y else ", "1+(", "a.b(")


@each("opening", NESTED)
def test_deep_nesting_in_a_text_is_refused(opening):
    for depth in (101, 10_001, 300_001):
        deep = opening * depth + "1"
        for text in (
            f"n0: float32[3] = placeholder(name={deep})\nreturn n0",
            f"n0: float32[{deep}] = placeholder(name='x')\nreturn n0",
            deep,
        ):
            with pytest.raises(ParseError):
                sg.Graph.parse(text)

"""Files, written whole or not at all: modes, links, what is killed, what cannot be written."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import symgrad as sg
from symgrad import display
from symgrad.ir.formats.writing import whole_file, write_whole

x = sg.placeholder("x", 3)
program = sg.compile(x, sg.tanh(x))
program([1.0, 2.0, 3.0])
WRITERS = {
    "graph.json": sg.Graph([sg.tanh(x)]).save,
    "trace.json": program.trace.save,
    "profile.json": program.profile([1.0, 2.0, 3.0], runs=1).save,
    "source.py": program.save_source,
    "picture.svg": lambda path: program.render(path, engine="layers"),
    "picture.dot": program.render,
    "story.svg": lambda path: display.story(program, path),
    "explorer.html": program.explore,
    "state.npz": lambda path: sg.save_state(path, [sg.variable("w", 1.0)]),
    "state.safetensors": lambda path: sg.save_state(path, [sg.variable("w", 1.0)]),
    "text.txt": lambda path: write_whole(path, "text"),
}


def listed(folder):
    return sorted(p.name for p in folder.iterdir())


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=WRITERS)
def write(request, tmp_path):
    """Writes a file, of which it gives the path."""

    def act(path=tmp_path / request.param):
        WRITERS[request.param](path)
        return path

    return act


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_of_new_files_and_an_old_one_keeps_its_own(write, mask):
    before = os.umask(mask)
    try:
        path = write()
        assert mode(path) == 0o666 & ~mask
        path.chmod(0o640)
        write()
        assert mode(path) == 0o640
    finally:
        os.umask(before)
    assert listed(path.parent) == [path.name]


def test_a_link_stays_and_leads_to_what_was_written(write, tmp_path):
    path = write()
    (tmp_path / "elsewhere").mkdir()
    target = path.rename(tmp_path / "elsewhere" / "target")
    path.symlink_to(target)
    for was in (target.read_bytes(), None):
        target.write_text("old") if was else target.unlink()
        write(path)
        assert path.is_symlink()
        assert target.stat().st_size > 3
    assert listed(target.parent) == [target.name]


def test_what_is_no_file_is_written_into(tmp_path):
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_whole(pipe, "said")
    reader.join(timeout=60)
    assert found == [b"said"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    write_whole(Path(os.devnull), "unheard")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_what_cannot_be_written_is_said(write, tmp_path):
    path = write()
    before = path.read_bytes()
    folder = tmp_path / f"folder{path.suffix}"
    folder.mkdir()
    with pytest.raises((OSError, sg.RenderError), match="directory"):
        write(folder)
    with pytest.raises((OSError, sg.RenderError), match=r"no folder .*; make it first"):
        write(tmp_path / "none" / path.name)
    assert path.read_bytes() == before
    assert listed(tmp_path) == sorted([path.name, folder.name])


def test_a_protected_file_is_not_replaced(tmp_path, monkeypatch):
    def refuse(path, how):
        raise PermissionError(13, "Permission denied", str(path))

    path = tmp_path / "f.txt"
    path.write_text("old")
    # For root nothing is protected.
    monkeypatch.setattr(os, "access", lambda path, how: False)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PermissionError):
        write_whole(path, "new")
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert listed(tmp_path) == ["f.txt"]


def test_home_is_not_expanded_and_the_error_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder ~.*Path\(path\)\.expanduser\(\)"):
        write_whole(Path("~/none/of/these"), "text")


KILLED = """
import sys
from pathlib import Path
from symgrad.ir.formats.writing import whole_file
with whole_file(Path(sys.argv[1])) as file:
    file.write(bytes(10**6))
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""


def writing(path):
    """A process that is in the middle of writing a file."""
    started = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(Path(sg.__file__).parents[1])},
    )  # fmt: skip
    assert started.stdout.readline() == b"writing\n"
    return started


def test_what_a_killed_process_left_is_removed_and_what_another_writes_is_not(tmp_path):
    path = tmp_path / "state.npz"
    other = tmp_path / f".{path.name}.mine"
    other.write_text("not a part")
    killed, working = writing(path), writing(path)
    killed.kill()
    killed.communicate()
    assert len(listed(tmp_path)) == 3
    write_whole(path, "new")
    (left,) = {*listed(tmp_path)} - {path.name, other.name}
    assert left.startswith(".state.npz.")
    assert left.endswith(".part")
    assert path.read_text() == "new"
    working.communicate(b"")
    assert working.returncode == 0
    assert path.stat().st_size == 10**6
    assert {*listed(tmp_path)} == {path.name, other.name}


def test_the_bytes_are_on_the_disk_before_the_name_and_the_name_before_the_end(
    tmp_path, monkeypatch
):
    done, sync, replace = [], os.fsync, Path.replace

    def synced(handle):
        done.append(stat.S_IFMT(os.fstat(handle).st_mode))
        sync(handle)

    def named(path, target):
        done.append(path.read_text())
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", named)
    write_whole(tmp_path / "f.txt", "text")
    assert done == [stat.S_IFREG, "text", stat.S_IFDIR]


def test_two_threads_may_write_one_file(tmp_path):
    path = tmp_path / "f.txt"
    texts = [str(i) * 10_000 for i in range(8)]
    failed = []

    def work(text):
        try:
            for _ in range(30):
                write_whole(path, text)
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=[text]) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert path.read_text() in texts
    assert listed(tmp_path) == [path.name]


def half(path):
    with whole_file(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt


def test_an_exception_leaves_what_was_there(tmp_path):
    path = tmp_path / "f.txt"
    for before in (None, "old"):
        if before:
            path.write_text(before)
        with pytest.raises(KeyboardInterrupt):
            half(path)
        assert (path.read_text() if path.exists() else None) == before
        assert listed(tmp_path) == [path.name] * bool(before)

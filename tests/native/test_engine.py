"""The engine, its store on disk, and the call: what goes wrong gives no wrong code."""

import errno
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.graph import Graph
from symgrad.native import engine as engines
from symgrad.native import store as stores
from symgrad.native.engine import OPTIMISED, Engine, Unavailable, host
from symgrad.native.kernel import compiled
from symgrad.native.store import Store, standard_folder
from tests.native.mapped import mapped

pytest.importorskip("llvmlite")


def graph(number=3.0):
    x = sg.placeholder("x", (100,), "float32")
    return Graph([sg.exp(x) * number + sg.sin(x)], [x])


X = np.linspace(-3, 3, 100, dtype=np.float32)


def test_kernels_are_optimised():
    x = sg.placeholder("x", (100, 100))
    program = sg.compile(x, sg.exp(x) * x, backend="native")
    program(np.ones((100, 100)))
    (kernel,) = program.native
    assert OPTIMISED in kernel.ir


def test_a_kept_object_is_not_compiled_again(tmp_path, monkeypatch):
    store = Store.at(tmp_path / "objects")
    first = compiled(graph(), {}, engine=Engine(store)).run([X])
    assert len(list(store.folder.iterdir())) == 1
    again = Engine(store)
    monkeypatch.setattr(again, "_optimised", None)
    np.testing.assert_array_equal(compiled(graph(), {}, engine=again).run([X]), first)
    with pytest.raises(TypeError):
        compiled(graph(4.0), {}, engine=again)


@pytest.mark.parametrize("place", [0, 5, 18, 30, 200, -1])
def test_a_damaged_object_is_noticed(tmp_path, place):
    store = Store.at(tmp_path / "objects")
    store.put("key", bytes(range(256)) * 4)
    (path,) = store.folder.iterdir()
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)
    assert store.get("key") is None
    assert not path.exists()


@pytest.mark.parametrize("size", [0, 10, 20, 25, 100])
def test_an_object_that_was_cut_is_noticed(tmp_path, size):
    store = Store.at(tmp_path / "objects")
    store.put("key", bytes(200))
    (path,) = store.folder.iterdir()
    path.write_bytes(path.read_bytes()[:size])
    assert store.get("key") is None


def test_an_object_is_found_by_its_whole_key_only(tmp_path):
    store = Store.at(tmp_path / "objects")
    store.put("key", b"content")
    assert store.get("key") == b"content"
    store._path("key").rename(store._path("other"))
    assert store.get("other") is None
    assert store.get("key") is None


def test_the_store_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "RARE", "")
    store = Store(tmp_path, most=5000)
    for i in range(20):
        store.put(f"key {i}", bytes(1000))
        os.utime(store._path(f"key {i}"), (i, i))
        store.get("key 0")
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) <= 5000
    assert store.get("key 0") is not None
    assert store.get("key 19") is not None
    assert store.get("key 1") is None


def test_few_entries_look_at_the_whole_folder(tmp_path, monkeypatch):
    store, looks = Store(tmp_path, most=5000), []
    monkeypatch.setattr(store, "_shrink", lambda: looks.append(1))
    for i in range(1000):
        store.put(f"key {i}", b"")
    assert 1 <= len(looks) <= 10


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions of POSIX")
def test_a_folder_that_others_write_to_is_not_used(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    assert Store.at(folder) is None
    assert Store.at(None) is None
    assert Store.at(folder / "own") is None, "another could be put in its place"
    folder.chmod(0o1777)
    assert Store.at(folder / "own") is not None


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    assert Store.at(file / "objects") is None
    store = Store(file / "objects")
    store.put("key", b"content")
    assert store.get("key") is None
    found = compiled(graph(), {}, engine=Engine(store)).run([X])
    np.testing.assert_array_equal(found, compiled(graph(), {}, engine=Engine(None)).run([X]))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_disk_that_is_full_or_read_only_costs_nothing_but_time(tmp_path, monkeypatch, number):
    """A kernel runs, no part of an entry is left, and what was kept before is still loaded."""
    folder = tmp_path / "objects"
    engine, (expected,) = Engine(Store.at(folder)), compiled(graph(2.0), {}).run([X])
    compiled(graph(1.0), {}, engine=engine)
    (kept,) = folder.iterdir()
    before = kept.read_bytes()

    def write(path, content):
        if number != errno.EROFS:
            with path.open("wb") as file:
                file.write(content[: len(content) // 2])
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "write_bytes", write)
    if number == errno.EROFS:
        for owner, name in ((os, "utime"), (Path, "unlink"), (Path, "replace")):
            monkeypatch.setattr(owner, name, lambda *given, **options: write(None, b""))
    (found,) = compiled(graph(2.0), {}, engine=engine).run([X])
    np.testing.assert_array_equal(found, expected)
    assert [path.read_bytes() for path in folder.iterdir()] == [before]
    monkeypatch.setattr(engine, "_optimised", None)
    compiled(graph(1.0), {}, engine=engine).run([X])


def test_the_folder_is_the_users_own(monkeypatch):
    assert standard_folder().name == "native"

    def none(*args):
        raise RuntimeError("no home")

    monkeypatch.setattr("pathlib.Path.home", none)
    assert standard_folder() is None


def _process(folder, queue):
    found = compiled(graph(), {}, engine=Engine(Store.at(folder))).run([X])
    queue.put(found[0].tobytes())


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_many_processes_share_a_store(tmp_path):
    context = multiprocessing.get_context("fork")
    expected = compiled(graph(), {}, engine=Engine(None)).run([X])[0].tobytes()
    queue = context.Queue()
    children = [context.Process(target=_process, args=(tmp_path / "s", queue)) for _ in range(6)]
    for child in children:
        child.start()
    assert {queue.get(timeout=60) for _ in children} == {expected}
    for child in children:
        child.join()
    assert [p.suffix for p in (tmp_path / "s").iterdir()] == [".o"]


def test_many_threads_compile_and_call(tmp_path):
    engine, found = Engine(Store.at(tmp_path / "objects")), {}

    def work(i):
        kernel = compiled(graph(float(i % 5)), {}, engine=engine)
        for _ in range(20):
            (y,) = kernel.run([X])
        found[i] = y

    threads = [threading.Thread(target=work, args=(i,)) for i in range(50)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 50
    for i in range(50):
        np.testing.assert_array_equal(found[i], found[i % 5])


def test_code_is_freed_with_its_last_function():
    kernel = compiled(graph(), {}, engine=Engine(None))
    call = kernel.call
    del kernel
    gc.collect()
    out = np.empty_like(X)
    call(X, out, 0, 100)
    assert np.isfinite(out).all()
    del call
    gc.collect()


def test_equal_modules_are_in_memory_once(monkeypatch):
    engine = Engine(None)
    first = compiled(graph(), {}, engine=engine)
    with monkeypatch.context() as patch:
        patch.setattr(engine, "compiled", None)
        again = compiled(graph(), {}, engine=engine)
    want = first.run([X])
    del first
    gc.collect()
    np.testing.assert_array_equal(again.run([X]), want)
    other = compiled(graph(4.0), {}, engine=engine).run([X])
    np.testing.assert_allclose(other[0], 4 * np.exp(X) + np.sin(X), rtol=1e-5)
    del again
    gc.collect()
    monkeypatch.setattr(engine, "compiled", None)
    with pytest.raises(TypeError):
        compiled(graph(), {}, engine=engine)


def test_a_wrong_call_is_an_error_and_runs_nothing():
    call = compiled(graph(), {}).call
    out = np.full_like(X, 7)
    for arguments in ((), (X,), (X, out), (X, out, 0), (X, out, 0, "b"), (X, out, 0, 100, 1)):
        with pytest.raises(TypeError):
            call(*arguments)
    with pytest.raises(TypeError):
        call(None, out, None, 100)
    with pytest.raises(ValueError, match="plain"):
        call(X, out[::2], 0, 50)
    with pytest.raises((TypeError, ValueError)):
        call("x", out, 0, 100)
    assert (out == 7).all()


@pytest.mark.parametrize("cpu", ["haswell", "skylake-avx512", "x86-64-v3", "znver3"])
def test_the_bits_are_the_same_on_every_processor(cpu):
    here = Engine(None)
    if not here.triple.startswith("x86_64") or "+avx512vl" not in here.features.split(","):
        pytest.skip("this processor does not run what it would compile for others")
    there = Engine(None, cpu, "+fma")
    assert (
        there.assembly(compiled(graph(), {}, engine=here).ir)
        != compiled(graph(), {}, engine=here).assembly
    )
    rng = np.random.default_rng(0)
    x, y = (sg.placeholder(n, (40, 130), "float32") for n in "xy")
    e = sg.exp(x - sg.max(x, axis=1, keepdims=True))
    softmax = e / sg.sum(e, axis=1, keepdims=True)
    outputs = [softmax * sg.tanh(y), sg.sum(sg.log1p(e) * y, axis=0), sg.where(x > y, x, sg.cos(y))]
    arrays = [rng.standard_normal((40, 130)).astype(np.float32) for _ in range(2)]
    both = [compiled(Graph(outputs, [x, y]), {}, engine=e).run(arrays) for e in (here, there)]
    for a, b in zip(*both, strict=True):
        assert a.tobytes() == b.tobytes()


def test_a_processor_without_fused_multiply_add_is_refused():
    if not Engine(None).triple.startswith("x86_64"):
        pytest.skip("others have it")
    with pytest.raises(Unavailable, match="fused multiply-add"):
        Engine(None, "x86-64", "-fma")


def test_without_llvmlite_there_is_a_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    with pytest.raises(Unavailable, match="llvmlite"):
        Engine(None)


def test_code_that_cannot_be_loaded_is_a_reason(monkeypatch):
    engine = Engine(None)

    def refuse(*args, **kwargs):
        raise RuntimeError("Cannot allocate memory")

    monkeypatch.setattr(engine._llvm, "create_lljit_compiler", refuse)
    with pytest.raises(Unavailable, match="cannot be loaded"):
        compiled(graph(), {}, engine=engine)
    with pytest.raises(Unavailable, match="refuses"):
        engine.compiled("define void @f( {")


def test_llvmlite_is_imported_when_it_is_needed():
    code = "import sys, symgrad.native.kernel; sys.exit('llvmlite' in sys.modules)"
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]) == 0


def test_names_of_users_are_not_in_the_code():
    name = 'x" } define void @evil() { ret void }'
    x = sg.placeholder(name, (20,), "float32")
    kernel = compiled(Graph([sg.exp(x) * 2], [x]), {})
    assert "evil" not in kernel.ir
    assert "evil" not in kernel.assembly


def test_integers_from_floats_are_those_of_numpy():
    x = np.array([0.0, 1.7, -1.7, 2.0**31, -(2.0**40), np.inf, -np.inf, np.nan, 127.5], np.float64)
    for dtype, kind in (("int32", "i4"), ("int64", "i8")):
        with np.errstate(invalid="ignore"):
            expected = x.astype(dtype)
        found = mapped(engines.host(), lambda v, kind=kind: v.converted(kind), "f8")(x)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "int32", "int64", "uint64", "uint8", "bool"]
)
def test_single_numbers_are_taken_as_they_are(dtype):
    s = sg.placeholder("s", (), dtype)
    x = sg.placeholder("x", (20,), dtype)
    kernel = compiled(Graph([sg.where(x == s, s, x), x == s], [x, s]), {})
    for value in {"bool": [True, False]}.get(dtype, [3, 2**63 + 7 if dtype == "uint64" else 100]):
        number = np.array(value, dtype)
        array = np.zeros(20, dtype)
        array[::3] = number
        for given in (number, number[()], number.item()):
            found, same = kernel.run([array, given])
            np.testing.assert_array_equal(found, array)
            np.testing.assert_array_equal(same, array == number)
    with pytest.raises(TypeError):
        kernel.run([array, None if dtype != "bool" else _Refuses()])


class _Refuses:
    def __bool__(self):
        raise TypeError("neither")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_another_thread_compiles(monkeypatch):
    """The child finds no lock held: it compiles what the other was compiling."""
    monkeypatch.setattr(host(), "store", None)
    x = sg.placeholder("x", ("n", 5), "float32")
    y = sg.exp(sg.tanh(x * 1.5)) - x
    program, stop = sg.compile(x, y, backend="native"), threading.Event()

    def work():
        for i in count(2):
            if stop.is_set():
                return
            program(np.ones((i, 5), np.float32))

    def compiled_in_child(i):
        signal.alarm(20)  # the default of this signal is to die
        found = program(np.ones((10_000 + i, 5), np.float32))
        return int(found.shape == (10_000 + i, 5))

    program(np.ones((1, 5), np.float32))  # all modules are imported: Python locks those, too
    thread = threading.Thread(target=work)
    thread.start()
    try:
        for i in range(6):
            time.sleep(0.01)
            child = os.fork()
            if child == 0:
                os._exit(42 * compiled_in_child(i))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    finally:
        stop.set()
        thread.join()

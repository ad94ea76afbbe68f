"""Checkpoints: whole or not at all, all variables or none, and training that is killed."""

import io
import json
import pickle
import random
import resource
import subprocess
import sys
import threading
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import symgrad as sg
from symgrad.ir.errors import StateError, SymbolicError

KINDS = (".npz", ".safetensors")
DTYPES = ("?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8")


@pytest.fixture(params=KINDS)
def path(request, tmp_path):
    return tmp_path / f"state{request.param}"


def model(fill=None):
    """Variables of every dtype, of several ranks; odd bits, or filled with a number."""
    rng = np.random.default_rng(0)
    shapes = ((), (3,), (2, 3), (0, 2))
    found = {}
    for i, dtype in enumerate(DTYPES):
        shape = shapes[i % len(shapes)]
        array = (100 * rng.standard_normal(shape)).astype(dtype)
        found[f"layer {i}.{dtype}"] = array if fill is None else np.full(shape, fill, dtype)
    found["special"] = np.array([np.nan, -0.0, np.inf, 5e-324]) if fill is None else np.zeros(4)
    return [sg.variable(name, array) for name, array in found.items()]


def bits(variables):
    return [v.value.tobytes() for v in variables]


def test_values_come_back_to_the_bit(path):
    one, other = model(), model(fill=1)
    assert bits(one) != bits(other)
    assert sg.save_state(path, one) == path
    sg.load_state(str(path), other)
    assert bits(one) == bits(other)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_equal_values_are_equal_files(path):
    first = sg.save_state(path, model()).read_bytes()
    assert sg.save_state(path, model()).read_bytes() == first


def test_numpy_opens_what_was_saved(tmp_path):
    w = sg.variable("net.w", np.arange(3.0))
    with np.load(sg.save_state(tmp_path / "w.npz", [w])) as found:
        assert found["net.w"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_saved_is_read(save, tmp_path):
    array = np.arange(6.0).reshape(2, 3)
    save(tmp_path / "w.npz", w=array.T.astype(">f8"))
    w = sg.variable("w", np.zeros((3, 2)))
    sg.load_state(tmp_path / "w.npz", [w])
    np.testing.assert_array_equal(w.value, array.T)
    assert w.value.dtype.isnative


def test_names_may_be_given(path):
    a, b = sg.variable("w", 1.0), sg.variable("w", 2.0)
    sg.save_state(path, {"one": a, "two": b})
    sg.load_state(path, [("two", a), ("one", b)])
    assert (a.value, b.value) == (2, 1)
    with pytest.raises(StateError, match="two variables are called 'w'"):
        sg.save_state(path, [a, b])


def test_a_loaded_variable_can_be_updated_and_the_file_stays_what_it_was(path):
    w = sg.variable("w", np.ones(3))
    sg.save_state(path, [w])
    step = sg.compile([], sg.sum(w), {w: w * 2})
    for _ in range(3):
        sg.load_state(path, [w])
        assert [step(), step()] == [3, 6]


def test_a_checkpoint_of_another_model_is_refused_with_all_that_differs(path):
    sg.save_state(path, [sg.variable("a", np.ones(3)), sg.variable("b", 1.0), sg.variable("d", 1)])
    a, b, c = sg.variable("a", np.ones(4)), sg.variable("b", np.float32(7)), sg.variable("c", 1.0)
    with pytest.raises(StateError, match="another model") as caught:
        sg.load_state(path, [a, b, c])
    for line in (
        "a: float64[3] in the file, float64[4] here",
        "b: float64[()] in the file, float32[()] here",
        "c: not in the file",
        "d: int64[()] in the file, no variable here",
    ):
        assert f"\n  {line}" in str(caught.value)
    assert (a.value.sum(), b.value, c.value) == (4, 7, 1)


def test_a_long_list_of_differences_is_cut(path):
    sg.save_state(path, [sg.variable(f"w{i}", 1.0) for i in range(100)])
    with pytest.raises(StateError, match="and 92 more"):
        sg.load_state(path, [])


def refused(path, variables, words):
    before = bits(variables)
    with pytest.raises(StateError, match=words):
        sg.load_state(path, variables)
    assert bits(variables) == before


def test_a_truncated_file_is_refused_and_changes_nothing(path):
    whole = sg.save_state(path, model()).read_bytes()
    for length in (*range(0, len(whole), 97), len(whole) - 1):
        path.write_bytes(whole[:length])
        refused(path, model(fill=1), "damaged, or no checkpoint")


def test_a_flipped_bit_of_an_npz_is_found(tmp_path):
    w = sg.variable("w", np.arange(100.0))
    path = sg.save_state(tmp_path / "w.npz", [w])
    whole = bytearray(path.read_bytes())
    whole[whole.index(np.float64(50).tobytes())] ^= 1
    path.write_bytes(whole)
    refused(path, [w], "CRC")


def bundle(path, *entries):
    """A zip file of these names and bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in entries:
            made.writestr(name, data)


def npy(array, version=(1, 0), **options):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), version, **options)
    return stream.getvalue()


class Planted:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return exec, ("raise SystemExit('a pickle was opened')",)


def hostile():
    large = npy(np.zeros(1)).replace(b"(1,), ", b"(%d,), " % 10**12)
    objects = npy(np.array([Planted()]), allow_pickle=True)
    yield "no zip", b"not a zip file", "damaged, or no checkpoint"
    yield "a pickle", pickle.dumps(Planted()), "damaged, or no checkpoint"
    yield "objects", [("w.npy", objects)], "array of object"
    yield "another version", [("w.npy", npy(np.ones(1), (2, 0)))], "another version"
    yield "no array", [("w.npy", b"hello, world")], "damaged, or no checkpoint"
    yield "an empty bundle", [], "w: not in the file"
    yield "too large a shape", [("w.npy", large)], "another model"
    yield "too many bytes", [("w.npy", npy(np.ones(1)) + bytes(10**7))], "another size"
    yield "too few bytes", [("w.npy", npy(np.ones(1))[:-1])], "another size"
    yield "a huge header", [("w.npy", b"\x93NUMPY\x01\x00\xff\xff" + bytes(65535))], "damaged"
    yield "two of a name", [("w.npy", npy([1.0])), ("w", npy([2.0]))], "two arrays of one name"
    yield "text", [("w.npy", npy(np.array(["a"])))], "array of <U1"
    yield "a record", [("w.npy", npy(np.zeros(1, "f4,f4")))], "no checkpoint"


@pytest.mark.parametrize(
    ("content", "words"), [pytest.param(*rest, id=name) for name, *rest in hostile()]
)
def test_a_hostile_npz_is_refused_and_changes_nothing(content, words, tmp_path):
    path = tmp_path / "state.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        bundle(path, *content)
    refused(path, [sg.variable("w", np.ones(1))], words)


def test_no_more_is_read_than_there_is_room_for(tmp_path):
    path = tmp_path / "state.npz"
    bundle(path, ("w.npy", npy(np.ones(1)) + bytes(2**28)))
    assert path.stat().st_size < 2**20
    tracemalloc.start()
    try:
        refused(path, [sg.variable("w", np.ones(1))], "another size")
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


ONE = {"w": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}


def test_a_name_twice_in_a_safetensors_is_refused(tmp_path):
    path = tmp_path / "state.safetensors"
    for header in (json.dumps(ONE), f"{json.dumps(ONE)[:-1]}, {json.dumps(ONE)[1:]}"):
        path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + bytes(8))
        if header == json.dumps(ONE):
            sg.load_state(path, [sg.variable("w", np.ones(1))])
        else:
            refused(path, [sg.variable("w", np.ones(1))], "'w' is there twice")


@pytest.mark.parametrize(
    ("header", "data", "words"),
    [
        ({"w": {"dtype": "F64", "shape": [2], "data_offsets": [0, 8]}}, bytes(8), "damaged"),
        ({"w": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}, bytes(2), "is BF16"),
        ({"w": {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]}}, b"", "damaged"),
        ({"w": [1]}, b"", "damaged"),
        ([1], b"", "damaged"),
        ({"w": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}, bytes(16), "damaged"),
        ({"w": {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]}}, bytes(16), "damaged"),
        ({"w": {"dtype": "F64", "shape": [1.0], "data_offsets": [0, 8]}}, bytes(8), "damaged"),
        ({"w": {"dtype": "F64", "shape": [True], "data_offsets": [0, 8]}}, bytes(8), "damaged"),
        ({"w": {"dtype": "F64", "shape": [-1], "data_offsets": [0, -8]}}, b"", "damaged"),
        ({"w": {"dtype": "F64", "shape": [1] * 99, "data_offsets": [0, 8]}}, bytes(8), "damaged"),
        (
            {"w": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8], "at": 3}},
            bytes(8),
            "damaged",
        ),
        ({"__metadata__": [], **ONE}, bytes(8), "damaged"),
        ({"__metadata__": {"a": 3}, **ONE}, bytes(8), "damaged"),
        ({**ONE, "v": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}, bytes(8), "damaged"),
        ({}, b"", "w: not in the file"),
    ],
)
def test_a_hostile_safetensors_is_refused_and_changes_nothing(header, data, words, tmp_path):
    path = tmp_path / "state.safetensors"
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    refused(path, [sg.variable("w", np.ones(1))], words)


def test_what_cannot_be_saved_is_refused_before_anything_is_written(tmp_path):
    w = sg.variable("w", np.ones(3))
    path = sg.save_state(tmp_path / "w.npz", [w])
    before = path.read_bytes()
    unset = sg.Graph.parse(sg.Graph([w]).text()).inputs[0]
    net, optimizer = sg.nn.Linear(2, 2, key=sg.random.key(0)), sg.optim.Adam([w])
    for variables, error, words in [
        ([w, 3], StateError, r"variables that have names, not in 3; .* \[w, b\]"),
        (net, StateError, r"not in Linear\(.*; .* net.named_variables\(\)"),
        ([net], StateError, r"not in Linear\(.*; .* net.named_variables\(\)"),
        (optimizer, StateError, r"Adam .*; .* \*optimizer.variables"),
        ([net.weight], StateError, "variables that have names"),
        (w, StateError, "not in <'w'"),
        (None, StateError, "not in None"),
        ([("w", w, 1)], StateError, "not in .'w', "),
        ([w, unset], StateError, "two variables"),
        ([unset], SymbolicError, "has no value"),
        ({"": w}, StateError, "can be called"),
        ({"a\0b": w}, StateError, "can be called"),
        ({"\ud800": w}, StateError, "can be called"),
        ({"x" * 70_000: w}, StateError, "can be called"),
        ({1: w}, StateError, "variables that have names"),
    ]:
        with pytest.raises(error, match=words):
            sg.save_state(path, variables)
    with pytest.raises(StateError, match=r"\*\.npz or \*\.safetensors"):
        sg.save_state(tmp_path / "w.pickle", [w])
    with pytest.raises(FileNotFoundError, match="no folder"):
        sg.save_state(tmp_path / "nowhere" / "w.npz", [w])
    with pytest.raises(FileNotFoundError):
        sg.load_state(tmp_path / "other.npz", [w])
    with pytest.raises(StateError, match="safetensors has no complex128"):
        sg.save_state(tmp_path / "w.safetensors", [sg.variable("z", 1j)])
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["w.npz"]


def test_the_package_safetensors_reads_what_was_saved_and_is_read(tmp_path):
    path, one = tmp_path / "w.safetensors", model()
    found = load_file(sg.save_state(path, one))
    assert {n: a.tobytes() for n, a in found.items()} == {v.name: v.value.tobytes() for v in one}
    assert all(found[v.name].shape == v.shape for v in one)
    for metadata in (None, {"format": "np"}):
        save_file(found, path, metadata)
        sg.load_state(path, other := model(fill=1))
        assert bits(one) == bits(other)
    old = Path(__file__).parents[1] / "ir" / "versions" / "state_1.safetensors"
    sizes = {"w": np.zeros(3, "f4"), "b": np.zeros(4), "c": np.zeros(3, bool)}
    w, b, c = (sg.variable(n, z) for n, z in sizes.items())
    sg.load_state(old, [w, b, c])
    values = [v.value.tolist() for v in (w, b, c)]
    assert values == [[1, 1, 1], [0, 1, 2, 3], [True, False, True]]


def test_no_variables_are_a_state(path):
    sg.load_state(sg.save_state(path, []), [])


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_an_error_or_changes_nothing(kind, tmp_path):
    path = tmp_path / f"w{kind}"
    small = [sg.variable("w", np.arange(3.0)), sg.variable("b", np.array([True, False]))]
    large = [sg.variable(f"w{i}", np.arange(300.0)) for i in range(9)]
    rng = np.random.default_rng(0)
    for variables, most in ((small, None), (large, 100)):
        data = sg.save_state(path, variables).read_bytes()
        others = [sg.variable(v.name, np.zeros(v.shape, v.dtype)) for v in variables]
        places = range(len(data)) if most is None else rng.choice(len(data), most, replace=False)
        noticed = 0
        for place, bit in ((p, 1 << i) for p in places for i in range(8)):
            changed = bytearray(data)
            changed[place] ^= bit
            path.write_bytes(changed)
            try:
                sg.load_state(path, others)
            except StateError:
                noticed += 1
                continue
            assert bits(others) == bits(variables), (place, bit)
        assert noticed > 4 * len(places), "most bytes of a small file count"


def test_a_full_disk_leaves_the_file_before(path):
    w = sg.variable("w", np.zeros(10))
    before = sg.save_state(path, [w]).read_bytes()
    large = {"w": sg.variable("w", np.ones(100_000))}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"large: '.*state\."):
            sg.save_state(path, large)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_what_is_saved_while_others_train_is_of_one_moment(tmp_path):
    a, b = sg.variable("a", np.zeros(2000)), sg.variable("b", np.zeros(2000))
    step = sg.compile([], [], {a: a + 1, b: b + 1})
    stop = threading.Event()

    def train():
        while not stop.is_set():
            step()

    thread = threading.Thread(target=train)
    thread.start()
    try:
        for _ in range(30):
            path = sg.save_state(tmp_path / "state.npz", [a, b])
            with np.load(path) as found:
                assert len({*found["a"], *found["b"]}) == 1
    finally:
        stop.set()
        thread.join()


# ---- killed at any moment -------------------------------------------------------------------

STEPS = 400
TRAIN = """
import sys, numpy as np, symgrad as sg
path, log, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
rng = np.random.default_rng(0)
X, Y = rng.standard_normal((100, 20)), rng.standard_normal((100, 1))
x, y = sg.placeholder("x", ("N", 20)), sg.placeholder("y", ("N", 1))
w, m = sg.variable("w", np.zeros((20, 1))), sg.variable("m", np.zeros((20, 1)))
pad = sg.variable("pad", np.zeros(100_000))
done = sg.variable("done", 0)
loss = sg.mean((x @ w - y) ** 2)
m1 = 0.9 * m + sg.grad(loss, w)
step = sg.compile([x, y], loss, {w: w - 0.01 * m1, m: m1, pad: pad + 1, done: done + 1})
state = [w, m, pad, done]
try:
    sg.load_state(path, state)
except FileNotFoundError:
    pass
batches = sg.batches(X, Y, size=32, key=7)
start = int(done.value)
with open(log, "a", buffering=1) as out:
    def save(history):
        print("loss", int(done.value), history.losses[-1].hex(), file=out)
        if int(done.value) % 3 == 0:
            sg.save_state(path, state)
        return int(done.value) == steps
    print("start", start, file=out)
    history = sg.History.after(start, batches)
    sg.fit(step, batches, epochs=steps, history=history, on_step=save, progress=False)
    assert (pad.value == steps).all()
"""


def killed_and_resumed(folder, kills, suffix=".npz", steps=STEPS, seed=0):
    """Train, killed so many times at random moments; all (step, loss), the starts, the kills."""
    rng = random.Random(seed)
    script, log, path = folder / "train.py", folder / "log", folder / f"state{suffix}"
    script.write_text(TRAIN)
    command = [sys.executable, str(script), str(path), str(log), str(steps)]
    where, killed = str(Path(__file__).parents[2]), 0
    while True:
        lines = log.read_text().splitlines() if log.exists() else []
        starts = [s for s in lines if s.startswith("start")]
        running = subprocess.Popen(
            command, cwd=where, env={"PYTHONPATH": where}, stderr=subprocess.PIPE, text=True
        )
        if killed < kills:
            while running.poll() is None:  # it is under way once it has said where it starts
                now = log.read_text().splitlines() if log.exists() else []
                if sum(s.startswith("start") for s in now) > len(starts):
                    break
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.1))
            running.kill()
        error = running.communicate()[1]
        if running.returncode == -9:
            killed += 1
            continue
        assert running.returncode == 0, error
        lines = log.read_text().splitlines()
        losses = {(int(s.split()[1]), s.split()[2]) for s in lines if s.startswith("loss")}
        return losses, [int(s.split()[1]) for s in lines if s.startswith("start")], killed


@pytest.mark.parametrize("suffix", KINDS)
def test_what_is_killed_goes_on_and_ends_with_the_same_losses(suffix, tmp_path):
    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    for folder in (unbroken, broken):
        folder.mkdir()
    expected, starts, _ = killed_and_resumed(unbroken, 0, suffix)
    found, resumed, killed = killed_and_resumed(broken, 3, suffix)
    assert starts == [0]
    assert len(expected) == STEPS
    assert found == expected, "each step had the loss that it has in the unbroken run"
    assert len(resumed) == killed + 1 >= 2
    assert resumed == sorted(resumed)
    left = {p.name for p in broken.iterdir()} - {"train.py", "log"}
    assert left == {f"state{suffix}"}, "what was half written is removed by the next to save"


# ---- two of a kind --------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_two_nets_and_two_optimisers_in_one_program_and_one_checkpoint(tmp_path, suffix):
    def made(seed):
        first, second = (sg.nn.Linear(3, 2, key=k) for k in sg.random.split(sg.random.key(seed)))
        x = sg.placeholder("x", (4, 3))
        one, other = sg.mean(first(x) ** 2), sg.mean((second(x) - 1) ** 2)
        by = [sg.optim.Adam(m, 0.1) for m in (first, second)]
        step = sg.compile(x, one + other, by[0].updates(one) | by[1].updates(other))
        state = {
            "one": [*first.named_variables(), *by[0].variables],
            "other": [*second.named_variables(), *by[1].variables],
        }
        return step, state, [v for s in state.values() for v in s]

    pytest.importorskip("safetensors" if suffix == "safetensors" else "numpy")
    x = np.arange(12.0).reshape(4, 3) / 10
    step, state, _ = made(0)
    step(x)
    path = sg.save_state(tmp_path / f"state.{suffix}", state)
    expected = [step(x), step(x)]
    again, into, _ = made(1)
    sg.load_state(path, into)
    assert [again(x), again(x)] == expected
    with np.load(sg.save_state(tmp_path / "names.npz", state)) as file:
        assert len(set(file)) == 14
        assert {"one.weight", "other.weight", "one.Adam.step", "other.weight.Adam.mean"} < {*file}


def test_a_checkpoint_of_before_has_the_names_that_it_had(tmp_path):
    net = sg.nn.Linear(3, 2, key=sg.random.key(0))
    adam = sg.optim.Adam(net, 0.1)
    path = sg.save_state(tmp_path / "one.npz", [*net.named_variables(), *adam.variables])
    with np.load(path) as file:
        assert {*file} == {
            "weight", "bias", "Adam.step", "weight.Adam.mean", "weight.Adam.square",
            "bias.Adam.mean", "bias.Adam.square",
        }  # fmt: skip


def test_two_of_one_name_in_a_checkpoint_are_refused_with_the_way_out(tmp_path):
    a, b = sg.variable("w", np.ones(3)), sg.variable("w", np.zeros(3))
    with pytest.raises(StateError, match=r"two variables are called 'w'.*'first': \[a, …\]"):
        sg.save_state(tmp_path / "a.npz", [a, b])
    with pytest.raises(StateError, match=r"two variables are called 'x\.w'"):
        sg.save_state(tmp_path / "a.npz", {"x": [a, b]})
    path = sg.save_state(tmp_path / "a.npz", {"x": a, "y": {"z": [b]}})
    sg.load_state(path, {"y.z.w": a, "x": b})
    np.testing.assert_array_equal(a.value, np.zeros(3))


@pytest.mark.parametrize("seal", ["", "0", "g" * 32, "A" * 32])
def test_a_checksum_that_is_none_is_not_passed_over(seal, tmp_path):
    path, w = tmp_path / "w.safetensors", sg.variable("w", np.arange(3.0))
    sg.save_state(path, [w])
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["__metadata__"]["symgrad"] = seal
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
    with pytest.raises(StateError, match="its checksum is not where"):
        sg.load_state(path, [w])


def test_what_a_file_calls_its_arrays_sends_nothing_to_the_terminal(tmp_path):
    path = tmp_path / "w.npz"
    np.savez(path, **{"x\x1b[31m": np.ones(3)})
    with pytest.raises(StateError) as caught:
        sg.load_state(path, [sg.variable("w", np.ones(3))])
    assert "\x1b" not in str(caught.value)

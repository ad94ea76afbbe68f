"""Programs that run piece by piece give what compiled ones give, on every executor."""

import io
import multiprocessing
import os
import pickle
import re
import signal
import subprocess
import sys
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import symgrad as sg
from symgrad.distributed import worker
from symgrad.distributed.rounds import Now
from symgrad.distributed.worker import Key, Lent, Missing, Piece, compute
from symgrad.ir.errors import FeedError, GraphError, UnsupportedError
from tests.helpers import close, each, generator

ROWS = 23


def inputs(width=5, dtype="float64"):
    return sg.placeholder("x", ("N", width), dtype), sg.placeholder("y", ("N",), dtype)


def arrays(rows=ROWS, width=5, dtype="float64"):
    rng = generator(f"{rows} {width}")
    return rng.standard_normal((rows, width)).astype(dtype), rng.uniform(1, 2, rows).astype(dtype)


def normalized(h):
    return (h - sg.mean(h, axis=0)) / sg.sqrt(sg.var(h, axis=0) + 1e-5)


def net(x, y, middle=lambda h: h, dtype="float64"):
    rng = generator("net")
    w1 = sg.variable("w1", rng.standard_normal((x.shape[1], 7)).astype(dtype))
    w2 = sg.variable("w2", rng.standard_normal(7).astype(dtype))
    loss = sg.mean((sg.relu(middle(x @ w1)) @ w2 - y) ** 2)
    return loss, sg.optim.Adam([w1, w2]).updates(loss)


def both(outputs, updates=None, rows=4, steps=2):
    """What a compiled program and one by pieces give, with the variables afterwards."""
    found = sg.Graph(outputs if isinstance(outputs, list) else [outputs]).inputs
    fed = [n for n in found if not isinstance(n, sg.Variable)]
    given = dict(zip("xy", arrays(), strict=True))
    given = {n.name: given[n.name] for n in fed}
    whole = sg.compile(fed, outputs, updates)
    parts = sg.map_reduce(fed, outputs, updates, over="N")
    state = [v.value for v in whole.store.updated]
    found = []
    chunks = sg.chunks(**given, rows=rows)
    for call in (lambda: whole(**given), lambda: parts(chunks)):
        for v, start in zip(whole.store.updated, state, strict=True):
            v.value = start
        results = [call() for _ in range(steps if updates else 1)]
        found.append((results, [v.value for v in whole.store.updated]))
    return found, parts


def agree(found, tolerance=1e-12):
    (results, state), (parts, after) = found
    wanted, given = [*sg_leaves(results), *state], [*sg_leaves(parts), *after]
    for a, b in zip(wanted, given, strict=True):
        assert np.shape(a) == np.shape(b)
        close(b, a, tolerance)


def sg_leaves(results):
    return [v for r in results for v in (r if isinstance(r, (list, tuple)) else [r])]


@pytest.mark.parametrize("rows", [1, 4, 23, 100])
def test_a_net_learns_the_same(rows):
    x, y = inputs()
    found, step = both(*net(x, y), rows=rows)
    agree(found)
    assert len(step.rounds) == 1


def test_batch_statistics_are_those_of_all_rows():
    x, y = inputs()
    found, step = both(*net(x, y, normalized))
    agree(found)
    assert len(step.rounds) == 5


def listed(y):
    return y if isinstance(y, list) else [y]


OF_ROWS = {
    "mean": lambda x, y: sg.mean(x, axis=0),
    "var": lambda x, y: sg.var(x, axis=0, correction=1),
    "std": lambda x, y: sg.std(x, axis=0),
    "covariance": lambda x, y: sg.cov(x.T),
    "logsumexp": lambda x, y: sg.logsumexp(x, axis=0),
    "softmax": lambda x, y: sg.softmax(x, axis=0),
    "log_softmax": lambda x, y: sg.log_softmax(x * 100, axis=0),
    "norm": lambda x, y: sg.linalg.vector_norm(x),
    "prod": lambda x, y: sg.prod(y),
    "max": lambda x, y: sg.max(x, axis=0),
    "min": lambda x, y: sg.min(x),
    "any": lambda x, y: sg.any(x > 2, axis=0),
    "all": lambda x, y: sg.all(x > -1, axis=0),
    "count": lambda x, y: sg.count_nonzero(x > 1),
    "argmax": lambda x, y: sg.argmax(x, axis=0),
    "argmin": lambda x, y: sg.argmin(y),
    "rows as they are": lambda x, y: sg.tanh(x) @ np.ones((5, 2)),
    "the size": lambda x, y: sg.sum(y) / (x.shape[0] * x.shape[0]),
    "numbers": lambda x, y: sg.sum(sg.arange(x.shape[0]) * y),
    "normal equations": lambda x, y: sg.linalg.solve(x.T @ x, x.T @ y),
    "Hessian": lambda x, y: sg.hessian(
        sg.sum(sg.exp(x @ (w := sg.variable("w", np.ones(5) / 9)))), w
    ),
    "labels picked": lambda x, y: sg.sum(
        sg.take_along_axis(x, sg.astype(y * 2, "int64")[:, None], axis=1)
    ),
    "counts": lambda x, y: sg.bincount(sg.astype(y * 3, "int64"), length=7),
    "rows by name": lambda x, y: sg.sum(x[sg.arange(x.shape[0]), sg.astype(y * 2, "int64")]),
    "rows and columns by number": lambda x, y: [
        sg.astype(sg.concat([x] * 5, axis=1), "float32")[(n := sg.arange(x.shape[0])), n],
        sg.zeros((x.shape[0], 25)).at[n, n].set(n + y),
        sg.zeros(9).at[sg.astype(y * 2, "int64")].add(sg.astype(n, "float64")),
    ],
    "numbers of few bits": lambda x, y: [
        sg.astype(sg.arange(x.shape[0]) * 9, "int8") + sg.arange(x.shape[0], dtype="float16"),
        x,
    ],
    "inputs and variables": lambda x, y: [x, sg.variable("v", [1.0, 2.0]), sg.variable("s", 3.0)],
    "their gradient": lambda x, y: sg.grad(
        sg.sum((x * x)[sg.arange(x.shape[0]), sg.astype(y * 2, "int64")]), x
    ),
    "embedding": lambda x, y: sg.grad(
        sg.sum(sg.take(w := sg.variable("w", np.ones((4, 2))), sg.astype(y, "int64"), axis=0) ** 3),
        w,
    ),
    "along other axes": lambda x, y: sg.cumulative_sum(sg.sort(x, axis=1), axis=1)[:, ::-2],
    "a loop along columns": lambda x, y: sg.scan(
        lambda c, row: (sg.tanh(c + row), c), sg.zeros((x.shape[0],)), x.T
    )[0],
    "its gradient": lambda x, y: sg.grad(
        sg.sum(sg.scan(lambda c, row: (sg.tanh(c + row), c), sg.zeros((x.shape[0],)), x.T)[0]), x
    ),
    "sums of steps": lambda x, y: sg.scan(
        lambda c, row: ((sg.tanh(c[0] + row), c[1] + sg.sum(c[0] * row)), None),
        (sg.zeros((x.shape[0],)), 3.0),
        x.T,
    )[0][1],
    "both in one": lambda x, y: sg.reshape(sg.reshape(x, (-1,)) * 2, (x.shape[0], 5)),
}


@each("name", OF_ROWS)
def test_it_gives_what_all_rows_give(name):
    found, _ = both(listed(OF_ROWS[name](*inputs())))
    agree(found)


DRAWN = {
    "dropout": lambda x: sg.nn.dropout(x, KEY, rate=0.3),
    "floats": lambda x: sg.random.uniform(KEY, (x.shape[0], 3), dtype="float32"),
    "doubles": lambda x: sg.random.uniform(KEY, x.shape[0]),
    "normal": lambda x: sg.random.normal(KEY, (x.shape[0], 2), dtype="float32"),
    "integers": lambda x: sg.random.randint(KEY, x.shape, low=-3, high=2**40),
    "int32": lambda x: sg.random.randint(KEY, x.shape[0], high=9, dtype="int32"),
    "a key a row": lambda x: sg.vmap(lambda i: sg.random.normal(sg.random.fold_in(KEY, i), 2))(
        sg.arange(x.shape[0])
    ),
}
KEY = sg.random.key(7)


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_drawn_is_the_same_bit_for_bit(name):
    x, _ = inputs()
    drawn = DRAWN[name](x)
    X = arrays()[0]
    expected = sg.compile([x], drawn)(X)
    step = sg.map_reduce([x], drawn, over="N")
    for rows in (1, 4, 7, ROWS):
        np.testing.assert_array_equal(step(sg.chunks(x=X, rows=rows)), expected, strict=True)


REFUSED = {
    "sort": lambda x, y: sg.sort(x, axis=0),
    "median": lambda x, y: sg.median(y),
    "cumulative_sum": lambda x, y: sg.cumulative_sum(y),
    "diff": lambda x, y: y[1:] - y[:-1],
    "x @ x.T": lambda x, y: x @ x.T,
    "flip": lambda x, y: sg.flip(y),
    "roll": lambda x, y: sg.roll(y, 1),
    "scan": lambda x, y: sg.scan(lambda c, v: (c + v, c), 0.0, y)[0],
    "x[0]": lambda x, y: x[0],
    "qr": lambda x, y: sg.linalg.qr(x)[1],
    "det of rows": lambda x, y: x.T.reshape((-1,))[: x.shape[0]],
    "a sum that turns": lambda x, y: sg.scan(
        lambda c, row: (c.T + x.T @ (x * row[:, None]), None), np.eye(5), x.T
    )[0],
    "a sum that is read": lambda x, y: sg.scan(
        lambda c, row: ((c[0] + sg.sum(row), c[1] + c[0]), None), (0.0, 0.0), x.T
    )[0],
    "an order": lambda x, y: sg.random.permutation(KEY, x.shape[0]),
    "bytes": lambda x, y: sg.random.randint(KEY, x.shape[0], high=9, dtype="uint8"),
    "a step that sums": lambda x, y: sg.scan(lambda c, r: (c + sg.sum(r), c), 0.0, x.T)[0],
}


@each("name", REFUSED)
def test_what_needs_all_rows_is_refused_with_its_line(name):
    x, y = inputs()
    with pytest.raises(UnsupportedError, match=r"piece by piece over N(.|\n)*test_map_reduce.py:"):
        sg.map_reduce([x, y], [REFUSED[name](x, y)], over="N")


def test_sums_of_floats_round_and_others_do_not():
    x, y = inputs()
    with pytest.raises(UnsupportedError, match="which rounds"):
        sg.map_reduce([x, y], sg.sum(y), over="N", exact="values")
    step = sg.map_reduce([x, y], [sg.max(y), sg.sum(y > 1.5), sg.any(x)], over="N", exact="bits")
    X, Y = arrays()
    assert step(sg.chunks(x=X, y=Y, rows=5)) == [Y.max(), (Y > 1.5).sum(), True]


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2) as found:
        yield found


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_every_executor_gives_the_same_bits(kind, processes, tmp_path):
    x, y = inputs(dtype="float32", width=300)
    X, Y = arrays(500, 300, "float32")
    np.save(tmp_path / "x.npy", X)
    loss, updates = net(x, y, normalized, "float32")
    step = sg.map_reduce([x, y], loss, updates, over="N")
    state = [(v, v.value) for v in step.store.updated]
    found = []
    with ThreadPoolExecutor(3) as threads:
        for executor in (None, {"threads": threads, "processes": processes}[kind]):
            for v, start in state:
                v.value = start
            data = sg.chunks(x=tmp_path / "x.npy", y=Y, rows=64)
            found.append([step(data, executor=executor) for _ in range(2)])
            found[-1] += [v.value.tobytes() for v, _ in state]
    assert found[0] == found[1]
    assert step.report.rounds[0].pieces == 8
    assert step.report.rounds[0].rows == 500


def failing(start, stop):
    if start >= 8:
        raise OSError("the disk is gone")
    return np.ones((stop - start, 5))


@pytest.mark.parametrize("kind", [None, "processes"])
def test_an_error_names_the_piece_and_changes_nothing(kind, processes):
    x, y = inputs()
    loss, updates = net(x, y)
    step = sg.map_reduce([x, y], loss, updates, over="N")
    before = [v.value for v in step.store.updated]
    data = sg.chunks(x=(failing, ROWS), y=arrays()[1], rows=4)
    with pytest.raises(OSError, match="the disk is gone") as error:
        step(data, executor=processes if kind else None)
    assert (
        "in piece 2 of round 1 of 1, rows 8 to 12; nothing was changed" in error.value.__notes__[0]
    )
    for v, b in zip(step.store.updated, before, strict=True):
        np.testing.assert_array_equal(v.value, b)


def test_an_executor_that_is_shut_down_changes_nothing():
    x, y = inputs()
    step = sg.map_reduce([x, y], *net(x, y), over="N")
    X, Y = arrays()
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown") as error:
        step(sg.chunks(x=X, y=Y), executor=pool)
    assert "nothing was changed" in error.value.__notes__[0]


class Client:
    """A client, of which an executor is to be asked for."""

    def submit(self, function, piece):
        raise AssertionError

    def get_executor(self):
        raise AssertionError


def test_bad_data_is_refused():
    x, y = inputs()
    c = sg.placeholder("c", ())
    step = sg.map_reduce([x, y, c], sg.sum(y * c) + sg.sum(x), over="N")
    X, Y = arrays()
    for data, whole, words in [
        ({"x": X, "y": Y[:9]}, {"c": 1.0}, "x has 23, y has 9"),
        ({"x": X, "y": Y}, {}, "missing: 'c'"),
        ({"x": X}, {"c": 1.0, "y": Y}, "y: rows are given as"),
        ({"x": X, "y": Y, "z": Y}, {"c": 1.0}, "no placeholder 'z'"),
        ({"x": X[:, :3], "y": Y}, {"c": 1.0}, "axis 1 is 3, not 5"),
        ({"x": X, "y": Y.astype(complex)}, {"c": 1.0}, "complex128"),
        ({"x": X, "y": Y, "c": 1.0}, {"c": 1.0}, "c: given twice"),
    ]:
        with pytest.raises(FeedError, match=re.escape(words)):
            step(sg.chunks(**data), **whole)
    assert step(sg.chunks(x=X, y=Y, rows=4), c=2.0) == pytest.approx(2 * Y.sum() + X.sum())
    assert step(sg.chunks(x=X, y=Y, c=2.0)) == pytest.approx(2 * Y.sum() + X.sum())
    assert step(sg.chunks(x=X[:0], y=Y[:0]), c=2.0) == 0
    with pytest.raises(FeedError, match=r"sg\.chunks"):
        step((X, Y), c=2.0)
    for executor, words in ((2, "has submit"), (Client(), "get_executor")):
        with pytest.raises(FeedError, match=words):
            step(sg.chunks(x=X, y=Y), c=2.0, executor=executor)
    with pytest.raises(GraphError, match="no input has a dimension"):
        sg.map_reduce([x, y, c], sg.sum(y * c) + sg.sum(x), over=["N"])
    with pytest.raises(GraphError, match="no input has a dimension called 'M'"):
        sg.map_reduce([x, y], sg.sum(x) + sg.sum(y), over="M")


def test_sources(tmp_path):
    X = arrays()[0]
    np.save(tmp_path / "c.npy", X)
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    np.savez(tmp_path / "x.npz", x=X, other=X[:2])
    np.savez_compressed(tmp_path / "z.npz", x=X)
    x = sg.placeholder("x", ("N", 5))
    step = sg.map_reduce([x], [x * 2, sg.sum(x, axis=0)], over="N")
    transposed = sg.placeholder("x", (5, "N"))
    flat = sg.map_reduce([transposed], [transposed * 2, sg.sum(transposed, axis=1)], over="N")
    for source in (
        X, X.tolist(), str(tmp_path / "c.npy"), tmp_path / "f.npy", tmp_path / "x.npz",
        np.load(tmp_path / "c.npy", mmap_mode="r"), (lambda a, b: X[a:b], ROWS),
    ):  # fmt: skip
        same, total = step(sg.chunks(x=source, rows=6))
        np.testing.assert_array_equal(same, X * 2)
        close(total, X.sum(0))
    with pytest.raises(FeedError, match="along its first axis"):
        flat(sg.chunks(x=(lambda a, b: X.T[a:b], 5)))
    np.save(tmp_path / "t.npy", X.T)
    for source in (X.T, tmp_path / "t.npy", np.load(tmp_path / "f.npy", mmap_mode="r").T):
        np.testing.assert_array_equal(flat(sg.chunks(x=source, rows=6))[0], X.T * 2)
    (tmp_path / "no.npy").write_text("no array")
    for bad, words in [
        (tmp_path / "z.npz", "np.savez"),
        (tmp_path / "none.npy", "No such file"),
        (tmp_path / "no.npy", "no array"),
        ("text", "No such file"),
        (np.array(["a"]), "numbers, a path or a function"),
        ((lambda a, b: X, 5), "one row here"),
    ]:
        with pytest.raises(FeedError, match=re.escape(words)):
            sg.chunks(x=bad)
    for rows in (0, 1.5, True):
        with pytest.raises(FeedError, match="rows of a piece"):
            sg.chunks(x=X, rows=rows)
    with pytest.raises(FeedError, match="name the data"):
        sg.chunks()


def test_it_prints_and_draws_its_rounds(tmp_path):
    x, y = inputs()
    step = sg.map_reduce([x, y], *net(x, y), over="N")
    drawn = step.render(tmp_path / "step.svg").read_text(encoding="utf-8")
    assert "round 1" in drawn
    assert "after the last round" in drawn
    text = str(step)
    assert "1 round over N, cut: x, y" in text
    assert "'w1' float64[5, 7]" in text
    assert "joined by add" in text
    assert repr(step) == "<MapReduce over N: 1 round>"
    step(sg.chunks(x=arrays()[0], y=arrays()[1]))
    assert "computing" in str(step.report)
    before = step.store.updated[0].value
    assert step.profile(sg.chunks(x=arrays()[0], y=arrays()[1], rows=4)).rounds[0].pieces == 6
    np.testing.assert_array_equal(step.store.updated[0].value, before)


def test_fit_calls_it_once_an_epoch_and_tells_the_pieces(monkeypatch):
    x, y = inputs()
    X, Y = arrays()
    step = sg.map_reduce([x, y], *net(x, y), over="N")
    monkeypatch.setattr("symgrad.train.progress.SECONDS_BETWEEN_LINES", 0.0)
    shown = io.StringIO()
    history = sg.fit(step.on(sg.chunks(x=X, y=Y, rows=8)), epochs=4, progress=shown)
    assert len(history.losses) == 4
    assert history.losses[3] < history.losses[0]
    assert "epoch 1/4  round 1  piece 2/3" in shown.getvalue()
    with pytest.raises(FeedError, match="updates nothing"):
        sg.fit(sg.map_reduce([x], sg.sum(x), over="N").on(sg.chunks(x=X)))
    with pytest.raises(FeedError, match="missing: 'y'"):
        step.on(sg.chunks(x=X))
    ends = sg.map_reduce([x], [sg.sum(x), sg.max(x)], over="N").on(sg.chunks(x=X))
    assert sg.evaluate(ends, [()])["output 1"] == X.max()


def dying(start, stop):
    """Rows, of which the first reader dies."""
    mark = Path(DEATHS)
    if start == 8 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return arrays()[0][start:stop]


DEATHS = ""


def test_a_worker_that_dies_leaves_all_as_it_was_and_again_it_is_right(tmp_path):
    x, y = inputs()
    step = sg.map_reduce([x, y], *net(x, y), over="N")
    before = [v.value for v in step.store.updated]
    X, Y = arrays()
    expected = step.profile(sg.chunks(x=X, y=Y, rows=4))
    assert expected.rounds[0].rows == ROWS
    global DEATHS
    DEATHS = str(tmp_path / "dead")
    data = sg.chunks(x=(dying, ROWS), y=Y, rows=4)
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(2, mp_context=fork) as pool, pytest.raises(BrokenExecutor) as error:
        step(data, executor=pool)
    assert "nothing was changed" in error.value.__notes__[0]
    for v, b in zip(step.store.updated, before, strict=True):
        np.testing.assert_array_equal(v.value, b)
    with ProcessPoolExecutor(1, mp_context=fork) as pool:
        again = step(data, executor=pool), [v.value.tobytes() for v in step.store.updated]
    for v, b in zip(step.store.updated, before, strict=True):
        v.value = b
    alone = step(sg.chunks(x=X, y=Y, rows=4))
    assert again == (alone, [v.value.tobytes() for v in step.store.updated])


def test_weights_travel_once_to_a_process_and_change():
    """A process that lacks what was lent says so, and a pickled loan is small."""
    arrays_ = [np.ones(5000)]
    lent = Lent("here", arrays_, Key(arrays_))
    small = pickle.dumps(lent.without())
    assert len(small) < 300 < 40_000 < len(pickle.dumps(lent))
    assert pickle.loads(pickle.dumps(lent)).get()[0].sum() == 5000
    assert pickle.loads(small).get()[0].sum() == 5000
    other = [np.zeros(5000)]
    changed = pickle.loads(pickle.dumps(Lent("here", other, Key(other)).without()))
    assert isinstance(compute(Piece(changed, [], changed, [])), Missing)
    tiny = [np.ones(3)]
    assert pickle.loads(pickle.dumps(Lent("tiny", tiny, Key(tiny)).without())).get()[0].sum() == 3


class Forgetful:
    """An executor whose every call is in another process, as far as what is lent goes."""

    def __init__(self):
        self.calls = 0

    def submit(self, function, piece):
        self.calls += 1
        worker._shelf().kept.clear()
        return Now(function, pickle.loads(pickle.dumps(piece)))


def test_a_piece_without_what_it_reads_is_sent_again():
    x, y = inputs(300)
    X, Y = arrays(ROWS, 300)
    loss, updates = net(x, y)
    step = sg.map_reduce([x, y], loss, updates, over="N")
    executor = Forgetful()
    before = [v.value for v in step.store.updated]
    found = step(sg.chunks(x=X, y=Y, rows=1), executor=executor)
    (spent,) = step.report.rounds
    assert spent.sent_again > 0
    assert executor.calls == ROWS + spent.sent_again
    for v, b in zip(step.store.updated, before, strict=True):
        v.value = b
    assert found == step(sg.chunks(x=X, y=Y, rows=1))


LARGER = """
import resource, sys
import numpy as np, symgrad as sg
x = sg.placeholder("x", ("N", 256), "float32")
w = sg.variable("w", np.ones(256, "float32"))
loss = sg.mean((x @ w) ** 2)
step = sg.map_reduce([x], loss, {w: w - 0.001 * sg.grad(loss, w)}, over="N", threads=1)
here = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (here + 40 * 2**20,) * 2)
for _ in range(2):
    print(float(step(sg.chunks(x=sys.argv[1], rows=2048))))
try:
    np.array(np.load(sys.argv[1], mmap_mode="r"))
except MemoryError:
    print("too large")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_data_larger_than_the_memory_limit(tmp_path):
    rows = generator("large").standard_normal((65_536, 256), dtype="float32")  # 64 MiB
    np.save(tmp_path / "x.npy", rows)
    ran = subprocess.run(
        [sys.executable, "-c", LARGER, tmp_path / "x.npy"], capture_output=True, text=True,
        env={"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(Path(sg.__file__).parent.parent)},
    )  # fmt: skip
    *losses, last = ran.stdout.split("\n")[:3]
    assert last == "too large", ran.stderr
    w = np.ones(256)
    for loss in losses:
        away = rows @ w
        assert float(loss) == pytest.approx(np.mean(away**2), rel=1e-5)
        w -= 0.002 * rows.T @ away / len(rows)


class Interrupting:
    """An executor whose third result is waited for when Ctrl-C comes."""

    def __init__(self):
        self.cancelled = self.calls = 0

    def submit(self, function, piece):
        self.calls += 1
        return Waited(self, self.calls, function, piece)


class Waited:
    def __init__(self, executor, number, function, piece):
        self.executor, self.number, self.run = executor, number, lambda: function(piece)

    def result(self):
        if self.number == 3:
            raise KeyboardInterrupt
        return self.run()

    def cancel(self):
        self.executor.cancelled += 1


def test_an_interrupt_takes_back_what_has_not_begun():
    x, y = inputs()
    step = sg.map_reduce([x, y], *net(x, y), over="N")
    before = [v.value for v in step.store.updated]
    X, Y = arrays()
    executor = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        step(sg.chunks(x=X, y=Y, rows=1), executor=executor)
    assert executor.cancelled == executor.calls - 3
    for v, b in zip(step.store.updated, before, strict=True):
        np.testing.assert_array_equal(v.value, b)
    step(sg.chunks(x=X, y=Y))  # no lock was left behind


def test_joins_of_nan_infinity_and_ties():
    x, n = sg.placeholder("x", ("N", 6)), sg.placeholder("n", "N", "int8")
    X = arrays(9, 6)[0]
    X[4, 0] = X[7, 0] = np.nan
    X[2, 1] = X[8, 1] = np.inf
    X[:, 2] = -np.inf
    X[1, 3] = X[6, 3] = 9.0
    X[:, 5] = 0.0
    outputs = [
        f(x, axis=0) for f in (sg.argmax, sg.argmin, sg.max, sg.min, sg.logsumexp, sg.softmax)
    ]
    outputs += [sg.linalg.vector_norm(x, axis=0), sg.prod(x, axis=0), sg.argmax(n > 2)]
    outputs += [sg.argmin(n), sg.sum(n), sg.sum(n, dtype="int8"), sg.max(n)]
    V = np.array([5, -3, 100, 100, -3, 7, 9, 1, 90], np.int8)
    whole = sg.compile([x, n], outputs)(X, V)
    step = sg.map_reduce([x, n], outputs, over="N")
    for rows in (1, 2, 4):
        for a, b in zip(step(sg.chunks(x=X, n=V, rows=rows)), whole, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_several_files_in_a_row(tmp_path):
    X = arrays()[0]
    paths = [tmp_path / f"{i}.npy" for i in range(4)]
    for path, rows in zip(paths, np.split(X, [5, 5, 16]), strict=True):
        np.save(path, rows)
    x = sg.placeholder("x", ("N", 5))
    step = sg.map_reduce([x], [x * 2, sg.sum(x, axis=0)], over="N")
    for rows in (1, 4, 6, 50):
        same, total = step(sg.chunks(x=[paths[0], str(paths[1]), *paths[2:]], rows=rows))
        np.testing.assert_array_equal(same, X * 2)
        close(total, X.sum(0))
    np.save(paths[0], X[:, :3])
    with pytest.raises(FeedError, match="alike"):
        sg.chunks(x=paths)


def test_columns_of_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    X, Y = arrays()
    table = pa.table({"a": X[:, 0], "b": X[:, 1].astype("float32"), "y": Y, "t": ["w"] * ROWS})
    path = tmp_path / "data.parquet"
    parquet.write_table(table, path, row_group_size=5)
    x, y = sg.placeholder("x", ("N", 2)), sg.placeholder("y", "N")
    step = sg.map_reduce([x, y], [x, y, sg.sum(x * y[:, None], axis=0)], over="N")
    for rows in (3, 5, 12, 50):
        a, b, c = step(sg.chunks(x=(path, ["a", "b"]), y=(path, "y"), rows=rows))
        np.testing.assert_array_equal(a[:, 0], X[:, 0])
        np.testing.assert_array_equal(b, Y)
        close(c, a.T @ b)
    for columns, words in ((["a", "z"], "'z'"), ("t", "columns are numbers"), (3, "are names")):
        with pytest.raises(FeedError, match=words):
            sg.chunks(x=(path, columns))
    (tmp_path / "no.parquet").write_text("no")
    with pytest.raises(FeedError, match="no file that can be read"):
        sg.chunks(x=(tmp_path / "no.parquet", "a"))
    parquet.write_table(pa.table({"a": pa.array([1.0, None])}), path)
    with pytest.raises(FeedError, match="has no value"):
        sg.map_reduce([y], sg.sum(y), over="N")(sg.chunks(y=(path, "a")))

"""Training loops: batches, figures, callbacks, what is refused, and what Ctrl-C leaves."""

import doctest
import inspect
import io
import os
import signal
import sys
import threading
import xml.etree.ElementTree as ET
from importlib import metadata

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import FeedError, UnsupportedError
from symgrad.train import batches, loop, progress
from tests.helpers import each
from tests.test_docstrings import NAMES

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.3


@pytest.fixture(autouse=True)
def ctrl_c():
    """As in a terminal: a job in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def regression(rate=0.1):
    """A linear regression that trains, what measures it, and its variables."""
    x, y = sg.placeholder("x", ("N", 3)), sg.placeholder("y", "N")
    w, b = sg.variable("w", np.zeros(3)), sg.variable("b", 0.0)
    loss = sg.mean((x @ w + b - y) ** 2)
    dw, db = sg.grad(loss, [w, b])
    step = sg.compile([x, y], loss, {w: w - rate * dw, b: b - rate * db})
    return step, sg.compile([x, y], {"loss": loss, "bias": b}), [w, b]


def by_hand(epochs, size, key):
    """The losses and the variables, with a plain loop of NumPy."""
    w, b, losses = np.zeros(3), 0.0, []
    for epoch in range(epochs):
        for x, y in sg.batches(X, Y, size=size, key=key)(epoch):
            e = x @ w + b - y
            losses.append(np.mean(e**2))
            w, b = w - 0.1 * 2 * (e @ x) / len(x), b - 0.1 * 2 * np.mean(e)
    return losses, w, b


EXAMPLES = [loop, batches, sg.batches, sg.save_state, sg.Program.check]


@pytest.mark.parametrize("thing", EXAMPLES, ids=lambda thing: thing.__name__)
def test_the_examples_in_docstrings_run(thing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parser, told = doctest.DocTestParser(), []
    test = parser.get_doctest(inspect.getdoc(thing), NAMES, thing.__name__, None, 0)
    assert test.examples
    doctest.DocTestRunner().run(test, out=told.append)
    assert not told, "".join(told)


# ---- batches --------------------------------------------------------------------------------


@each("key", [None, 0, 2**70, sg.random.key(3), np.array([1, 2], "u8")])
@each("size", [1, 7, 50, 99])
def test_each_epoch_has_every_row_once_and_rows_stay_together(size, key):
    rows = np.arange(50)
    made = sg.batches(rows, rows * 2.0, size=size, key=key)
    for epoch in (0, 1):
        parts = list(made(epoch))
        assert [len(x) for x, _ in parts] == [size] * (50 // size) + [50 % size] * (50 % size > 0)
        assert len(made) == len(parts)
        assert sorted(np.concatenate([x for x, _ in parts])) == list(rows)
        assert all((y == 2 * x).all() for x, y in parts)


def test_the_order_is_a_function_of_key_and_epoch():
    def order(key, epoch):
        return [x.tolist() for (x,) in sg.batches(np.arange(50), size=8, key=key)(epoch)]

    assert order(1, 0) == order(1, 0) == order(np.int64(1), 0)
    assert order(1, 0) != order(1, 1) != order(2, 1)
    assert order(None, 0) == order(None, 1)
    assert repr(sg.batches(np.arange(50), size=8, key=1)) == "<7 batches of 8 of 50 rows>"


def test_to_go_over_batches_again_is_the_next_epoch():
    made = sg.batches(np.arange(50), size=8, key=1)

    def order(some):
        return [x.tolist() for (x,) in some]

    expected = [order(made(epoch)) for epoch in range(3)]
    assert [order(made) for _ in range(3)] == expected
    made.epoch = 1
    assert [order(made) for _ in range(2)] == expected[1:]
    seen = []
    sg.fit(lambda x: seen.append(x.tolist()) or 0.0, made, epochs=3, progress=False)
    assert seen == [x for epoch in expected for x in epoch], "fit begins with epoch 0"
    assert order(made(0)) == expected[0]
    assert made.epoch == 3, "to ask for an epoch by its number is none that was gone over"


@each(
    ("arrays", "options", "words"),
    [
        ((), {"size": 1}, "as many rows each"),
        ((np.ones(3), np.ones(4)), {"size": 1}, r"not \(3,\), \(4,\)"),
        ((np.ones((0, 3)),), {"size": 1}, "from 1 on"),
        ((3.0,), {"size": 1}, "as many rows"),
        ((X,), {"size": 0}, "whole number from 1 on, not 0"),
        ((X,), {"size": -1}, "whole number"),
        ((X,), {"size": 2.5}, "whole number"),
        ((X,), {"size": True}, "whole number"),
        (([[1], [1, 2]],), {"size": 1}, "all of one shape"),
        ((X,), {"size": 2, "key": -1}, "an int from 0 on"),
        ((X,), {"size": 2, "key": 0.5}, "an int from 0 on"),
        ((X,), {"size": 2, "key": sg.random.split(sg.random.key(0))}, "an int from 0 on"),
    ],
)
def test_batches_that_cannot_be_are_refused(arrays, options, words):
    with pytest.raises(FeedError, match=words):
        sg.batches(*arrays, **options)


# ---- fit ------------------------------------------------------------------------------------


def test_fit_does_what_a_loop_does():
    step, measure, (w, b) = regression()
    batches = sg.batches(X, Y, size=16, key=5)
    test = sg.batches(X, Y, size=7)
    history = sg.fit(step, batches, epochs=6, test=(measure, test), progress=False)
    losses, expected_w, expected_b = by_hand(6, 16, 5)
    np.testing.assert_allclose(history.losses, losses, rtol=1e-10)
    np.testing.assert_allclose(w.value, expected_w, rtol=1e-10)
    np.testing.assert_allclose(b.value, expected_b, rtol=1e-10)
    assert (history.epoch, history.batch, len(history.records)) == (6, 0, 6)
    first = np.average(losses[:4], weights=[16, 16, 16, 2])
    np.testing.assert_allclose(history["loss"][0], first, rtol=1e-10)
    np.testing.assert_allclose(history["test loss"][-1], measure(X, Y)["loss"], rtol=1e-12)
    assert history["test bias"][-1] == pytest.approx(float(b.value))
    with pytest.raises(KeyError, match="'loss', 'test loss', 'test bias'"):
        history["accuracy"]


def test_batches_are_tuples_dicts_single_arrays_lists_and_functions_of_the_epoch():
    x, total = sg.placeholder("x", "N"), sg.variable("total", 0.0)
    step = sg.compile([x], [sg.sum(x), sg.max(x)], {total: total + sg.sum(x)})
    rows = np.arange(4.0)
    for given in (
        [(rows,)], [[rows]], [{"x": rows}], [rows], [rows.tolist()] * 0 + [(rows.tolist(),)],
        lambda epoch: [rows], (r for r in [rows]), sg.batches(rows, size=9),
    ):  # fmt: skip
        history = sg.fit(step, given, progress=False)
        assert history.records == [{"loss": 6, "output 1": 3}]
    assert total.value == 48
    seen = []
    sg.fit(step, lambda epoch: seen.append(epoch) or [rows], epochs=3, progress=False)
    assert seen == [0, 1, 2]


def test_a_run_that_goes_on_is_the_unbroken_one():
    whole, _, whole_variables = regression()
    batches = sg.batches(X, Y, size=16, key=5)
    expected = sg.fit(whole, batches, epochs=5, progress=False)
    step, _, variables = regression()
    history = sg.History()
    sg.fit(step, batches, epochs=2, history=history, progress=False)
    stop_at = [11, 14]  # in the middle of an epoch
    for _ in stop_at:
        sg.fit(
            step, batches, epochs=5, history=history, progress=False,
            on_step=lambda h: len(h.losses) in stop_at,
        )  # fmt: skip
    sg.fit(step, batches, epochs=5, history=history, progress=False)
    assert history == expected
    assert [v.value.tobytes() for v in variables] == [v.value.tobytes() for v in whole_variables]
    assert sg.fit(step, batches, epochs=5, history=history, progress=False).losses is history.losses
    assert len(history.losses) == 20


def test_a_count_of_steps_is_enough_to_go_on():
    batches = sg.batches(X, Y, size=16, key=5)
    history = sg.History.after(sg.variable("step", 11).value, batches)
    assert (history.epoch, history.batch) == (2, 3)
    expected = list(batches(2))[3][0]
    seen = []
    sg.fit(lambda x, y: seen.append(x) or 0.0, batches, epochs=3, history=history, progress=False)
    np.testing.assert_array_equal(seen, [expected])
    with pytest.raises(FeedError, match="whole number from 0 on, not -1"):
        sg.History.after(-1, batches)


def test_callbacks_are_given_the_history_and_may_end_the_run(tmp_path):
    step, _, variables = regression()
    batches = sg.batches(X, Y, size=25, key=0)
    steps, epochs = [], []
    history = sg.fit(
        step, batches, epochs=9, progress=False,
        on_step=lambda h: steps.append(len(h.losses)),
        on_epoch=[
            lambda h: epochs.append(h.epoch),
            lambda h: sg.save_state(tmp_path / "w.npz", variables),
            lambda h: np.bool_(h.epoch == 3),
        ],
    )  # fmt: skip
    assert steps == [1, 2, 3, 4, 5, 6]
    assert epochs == [1, 2, 3]
    assert history.epoch == 3


@pytest.mark.filterwarnings("ignore:the loss of step")
def test_early_stopping():
    figures = iter([3.0, 2.0, np.nan, 2.5, 2.0, 1.0])
    stop = sg.early_stopping(patience=3)
    history = sg.fit(lambda x: next(figures), [X], epochs=9, progress=False, on_epoch=stop)
    assert len(history.records) == 5, "as good is not better"
    rising = sg.History(records=[{"test accuracy": a} for a in (0.1, 0.9, 0.8)])
    assert sg.early_stopping("test accuracy", patience=1, higher=True)(rising)
    assert not sg.early_stopping("test accuracy", patience=2, higher=True)(rising)
    with pytest.raises(FeedError, match="no 'test_accuracy', but 'test accuracy'"):
        sg.early_stopping("test_accuracy", patience=1)(rising)
    with pytest.raises(KeyError, match="no 'accuracy', but 'test accuracy'"):
        rising["accuracy"]
    with pytest.raises(FeedError, match="patience"):
        sg.early_stopping(patience=0)


@each(
    ("batches", "words"),
    [
        ([X, X[:, :2]], r"batch 1 of epoch 0 has rows of the shapes \[\(2,\)\].*had \[\(3,\)\]"),
        ([(X, Y), (X,)], "batch 1 of epoch 0"),
        ([{"x": X, "y": Y}, {"x": X}], "batch 1 of epoch 0"),
        ([{"x": X}, {"z": X}], r"shapes \{'z': \(3,\)\}"),
        ([X, X[:0]], "batch 1 of epoch 0 has no rows"),
        ([], "no batches in epoch 0"),
        (X, "a list of batches"),
        ((X, Y), "a list of batches"),
        ({"x": X}, "a list of batches"),
        (lambda epoch: None, "a list of batches, .* not a NoneType"),
        (3, "a list of batches"),
        ((x for x in [X]), "no batches in epoch 1; a generator can be gone over once"),
    ],
)
def test_batches_that_do_not_fit_are_refused(batches, words):
    with pytest.raises(FeedError, match=words):
        sg.fit(lambda *_, **__: 0.0, batches, epochs=2, progress=False)


def test_a_batch_of_another_shape_changes_nothing():
    x, w = sg.placeholder("x", ("N", "M")), sg.variable("w", 0.0)
    step = sg.compile([x], sg.sum(x), {w: w + 1})
    history = sg.History()
    with pytest.raises(FeedError, match="pad or crop"):
        sg.fit(step, [X, X[:3], X[:, :2]], history=history, progress=False)
    assert w.value == history.batch == len(history.losses) == 2


@pytest.mark.parametrize(
    ("result", "words"),
    [((), "nothing"), ({}, "nothing"), (np.ones(3), "'loss', which is no real scalar"),
     ({"loss": 1.0, "logits": np.ones((2, 2))}, "'logits'"), (1j, "no real scalar")],
)  # fmt: skip
def test_a_program_must_return_scalars(result, words):
    with pytest.raises(FeedError, match=words):
        sg.fit(lambda x: result, [X], progress=False)


def test_what_measures_has_batches_and_does_not_learn():
    with pytest.raises(FeedError, match="no batches"):
        sg.evaluate(lambda x: 0.0, [])
    step, _, (w, _) = regression()
    with pytest.raises(FeedError, match=r"updating w, b> would learn from the data"):
        sg.evaluate(step, [(X, Y)])
    assert not w.value.any()


X_IN, W_IN = sg.placeholder("x", ("N", 3)), sg.variable("w", 0.0)
LEARNS = {W_IN: W_IN + 1}


@each(
    ("options", "words"),
    [
        ({"program": sg.sum(X_IN)}, r"not sum float64\[\(\)\].*make it: sg\.compile"),
        ({"program": None}, r"updates=optimizer\.updates\(loss\)"),
        ({"program": sg.compile([X_IN], sg.sum(X_IN))}, "updates nothing"),
        ({"program": sg.compile([X_IN], X_IN, LEARNS)}, r"'output: float64\[N, 3\]', which is no"),
        ({"program": sg.compile([X_IN], [], LEARNS)}, "returns nothing"),
        ({"epochs": 2.5}, "epochs is a whole number from 0 on, not 2.5"),
        ({"epochs": -1}, "from 0 on, not -1"),
        ({"epochs": None}, "not None"),
        ({"history": []}, r"sg\.History\(\), not \[\]"),
        ({"progress": None}, "a stream such as sys.stdout, not None"),
        ({"test": [X]}, r"\(measure, data\)"),
        ({"test": (sg.compile([X_IN], sg.sum(X_IN), LEARNS), [X])}, "would learn from the data"),
        ({"test": (sg.compile([X_IN], X_IN), [X])}, "no real scalar"),
        ({"on_step": None}, "on_step is a function of the history, or a list of them, not None"),
        ({"on_epoch": [3]}, "on_epoch is a function"),
    ],
)
def test_what_cannot_be_fitted_is_refused_before_anything_runs(options, words):
    given = {"program": lambda x: pytest.fail("it ran"), "batches": [X], "progress": False}
    with pytest.raises(FeedError, match=words):
        sg.fit(**given | options)
    assert W_IN.value == 0


def test_what_a_step_raises_says_which_batch_it_was():
    step, _, (w, _) = regression()
    for batch, words in [({"x": X, "z": Y}, "there is no placeholder 'z'"), ((X, Y[:3]), "axis 0")]:
        with pytest.raises(FeedError, match=words) as caught:
            sg.fit(step, [batch], progress=False)
        assert "in batch 0 of epoch 0, arrays of the shapes" in caught.value.__notes__[0]
    assert not w.value.any()


# ---- Ctrl-C ---------------------------------------------------------------------------------


def press():
    os.kill(os.getpid(), signal.SIGINT)


@each("at", [1, 4, 7, 20])
@each("where", ["the step", "a callback", "the test"])
def test_after_ctrl_c_a_second_run_goes_on_as_if_there_had_been_none(at, where):
    batches = sg.batches(X, Y, size=16, key=5)
    whole, measure, _ = regression()
    test = (measure, sg.batches(X, Y, size=50))
    expected = sg.fit(whole, batches, epochs=5, test=test, progress=False)
    step, measure, _ = regression()
    calls = dict.fromkeys(("the step", "a callback", "the test"), 0)

    def pressed(place, result=None):
        calls[place] += 1
        if place == where and calls[place] == (at if place != "the test" else 2):
            press()
        return result

    def run():
        return sg.fit(
            lambda x, y: pressed("the step", step(x, y)), batches, epochs=5, history=history,
            test=(lambda x, y: pressed("the test", measure(x, y)), test[1]),
            on_step=lambda h: pressed("a callback"), progress=False,
        )  # fmt: skip

    history = sg.History()
    with pytest.raises(KeyboardInterrupt):
        run()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert len(history.losses) < 20 or at == 20
    assert run() == expected
    assert calls["the step"] == len(history.losses) == 20


def test_ctrl_c_in_the_test_waits_for_one_batch_of_it():
    step, measure, _ = regression()
    calls, history = [], sg.History()

    def pressed(x, y):
        calls.append(len(history.losses))
        if len(calls) == 2:
            press()
        return measure(x, y)

    options = {"test": (pressed, sg.batches(X, Y, size=10)), "history": history, "progress": False}
    with pytest.raises(KeyboardInterrupt):
        sg.fit(step, [(X, Y)], **options)
    assert (calls, history.epoch, history.batch, history.records) == ([1, 1], 0, 1, [])
    sg.fit(step, [(X, Y)], **options)
    assert (calls, history.epoch) == ([1] * 7, 1)


def test_a_second_ctrl_c_is_raised_at_once():
    def hangs(x):
        press()
        press()
        pytest.fail("not interrupted")

    with pytest.raises(KeyboardInterrupt):
        sg.fit(hangs, [X], progress=False)


def test_handlers_of_the_user_and_other_threads_are_left_alone():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        sg.fit(lambda x: press() or 0.0, [X, X], progress=False)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1, 1]
    histories = []
    thread = threading.Thread(
        target=lambda: histories.append(sg.fit(lambda x: 0.0, [X], progress=False))
    )
    thread.start()
    thread.join()
    assert histories[0].epoch == 1


# ---- progress and plots ---------------------------------------------------------------------


def test_a_log_has_a_line_now_and_then(monkeypatch, capsys):
    clock = iter(range(10_000))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    stream = io.StringIO()
    sg.fit(lambda x: 0.5, [X] * 10, epochs=3, progress=stream)
    lines = stream.getvalue().splitlines()
    assert 3 < len(lines) < 12
    assert lines[0].startswith("epoch 1/3  batch ")
    assert any(line.startswith("epoch 2/3  batch ") for line in lines)
    assert lines[-1].startswith("epoch 3/3  loss 0.5  ")
    assert capsys.readouterr() == ("", "")


def test_a_short_run_says_how_it_began_and_how_it_ended(capsys):
    sg.fit(lambda x: 0.5, [X], epochs=100)
    printed, said = capsys.readouterr()
    assert not printed
    assert [line[:11] for line in said.splitlines()] == ["epoch 1/100", "epoch 100/1"]
    sg.fit(lambda x: 0.5, [X], epochs=100, progress=False)
    assert capsys.readouterr() == ("", "")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_has_a_bar():
    metadata.version("tqdm")
    stream, history = Terminal(), sg.History()
    for epochs in (1, 2):
        sg.fit(lambda x: 0.5, [X] * 5, epochs=epochs, history=history, progress=stream)
    last = stream.getvalue().split("\r")[-1]
    assert "epoch 2/2" in last
    assert "10/10" in last
    assert "loss 0.5" in last


def test_without_tqdm_a_terminal_has_lines(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    stream = Terminal()
    sg.fit(lambda x: 0.5, [X], progress=stream)
    assert stream.getvalue().startswith("epoch 1/1  loss 0.5")


def test_a_history_is_told_in_a_line():
    assert repr(sg.History()) == "<History of 0 epochs, 0 steps>"
    assert repr(sg.History(losses=[3.0, 2.0])) == "<History of 0 epochs, 2 steps: loss 2>"
    history = sg.fit(lambda x: 0.5, [X], epochs=99, test=(lambda x: 0.25, [X]), progress=False)
    assert repr(history) == "<History of 99 epochs, 99 steps: loss 0.5  test loss 0.25>"


def test_a_history_plots_itself(tmp_path):
    records = [{"loss": 1 / n, "test loss": 2 / n, "test accuracy": 0.5} for n in range(1, 5)]
    figure = sg.History(epoch=4, records=records).plot(tmp_path / "run.svg")
    assert [a.get_ylabel() for a in figure.axes] == ["loss", "accuracy"]
    assert [line.get_label() for line in figure.axes[0].lines] == ["loss", "test loss"]
    assert ET.parse(tmp_path / "run.svg").getroot().tag.endswith("svg")
    unfinished = sg.History(losses=[3.0, 2.0]).plot()
    assert unfinished.axes[0].lines[0].get_ydata().tolist() == [3, 2]


def test_a_plot_without_matplotlib_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UnsupportedError, match="pip install matplotlib"):
        sg.History().plot()


def test_what_may_have_gone_wrong_is_told():
    net = sg.nn.Sequential(sg.nn.BatchNorm(3), sg.nn.Linear(3, 1, key=sg.random.key(0)))
    x, rate = sg.placeholder("x", ("N", 3)), sg.placeholder("rate", ())
    loss = sg.mean(net(x) ** 2)
    step = sg.compile([x, rate], loss, updates=sg.optim.SGD(net, lr=rate).updates(loss))
    measure = sg.compile([x, rate], loss)
    batches = [(np.eye(3), r) for r in (0.1, np.nan, 0.1, 0.1)]
    with pytest.warns(UserWarning, match=r"built for training|loss of step") as told:
        sg.fit(step, batches, test=(measure, batches[:1]), progress=False)
    found = [str(w.message) for w in told]
    assert len(found) == 2
    assert "built for training, in which 'layers.0.mean' changes" in found[0]
    assert "the loss of step 2 is NaN" in found[1]
    assert {w.filename for w in told} == {__file__}

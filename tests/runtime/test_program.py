"""Programs from the outside: forms of outputs, updates, what they show, what they cost to keep."""

import copy
import gc
import linecache
import pickle
import traceback
import weakref
from collections import namedtuple

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.collector import without_collection
from symgrad.ir.errors import FeedError, GraphError, SymgradError
from symgrad.runtime.executable import MOST_PLANS
from tests.helpers import same

Pair = namedtuple("Pair", "loss rest")


def test_results_have_the_form_of_the_outputs():
    x = sg.placeholder("x", 2)
    a, b = sg.sum(x), x * 2
    fed = np.array([1.0, 2.0])

    def found(outputs):
        return sg.compile(x, outputs)(fed)

    assert found(a) == 3
    assert found([a]) == [3]
    assert found((a,)) == (3,)
    assert found({"loss": a}) == {"loss": 3}
    assert found([]) == []
    assert found(()) == ()
    assert found({}) == {}
    nested = found({"a": [a, (b, a)], 3: {"": a}, "none": []})
    assert list(nested) == ["a", 3, "none"]
    assert nested["a"][1][0].tolist() == [2, 4]
    assert (nested["a"][0], nested["a"][1][1], nested[3], nested["none"]) == (3, 3, {"": 3}, [])
    assert found(Pair(a, [a, 5.0])) == Pair(3, [3, 5])
    assert isinstance(found(Pair(a, a)), Pair)


def test_a_gradient_beside_its_loss_needs_no_unpacking():
    x = sg.placeholder("x", 2)
    v, w = sg.variable("v", np.ones(2)), sg.variable("w", np.ones(2))
    loss = sg.sum(x * v * w)
    found, (dv, dw) = sg.compile(x, (loss, sg.grad(loss, [v, w])))([1.0, 2.0])
    assert (found, dv.tolist(), dw.tolist()) == (3, [1, 2], [1, 2])


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_updates_of_every_rank(backend):
    x = sg.placeholder("x", (), "float32")
    n = sg.variable("n", np.int64(0))
    m = sg.variable("m", np.zeros(2, "float32"))
    old = sg.variable("old", np.zeros(2, "float32"))
    flag = sg.variable("flag", np.bool(False))
    program = sg.compile(x, [], updates={n: n + 1, m: m + x, old: m, flag: True}, backend=backend)
    assert program(2) == []
    assert program(3) == []
    assert (n.value, m.value.tolist(), old.value.tolist(), flag.value) == (2, [5, 5], [2, 2], True)
    assert [type(v.value) for v in (n, m)] == [np.ndarray, np.ndarray]
    only = sg.compile([], n, updates={n: 7}, backend=backend)
    assert (only(), only(), n.value) == (2, 7, 7)


def test_variables_swap_and_share_a_next_value():
    a, b = sg.variable("a", np.zeros(2)), sg.variable("b", np.ones(2))
    swap = sg.compile([], [a, b], updates=[(a, b), (b, a)])
    swap()
    assert (a.value.tolist(), b.value.tolist()) == ([1, 1], [0, 0])
    both = sg.exp(a)
    same = sg.compile([], both, updates={a: both, b: both})
    kept = same()
    assert a.value.tolist() == b.value.tolist() == kept.tolist()
    assert not np.shares_memory(a.cell.array, b.cell.array)
    assert not np.shares_memory(a.cell.array, kept)


def test_a_variable_nobody_reads_is_updated():
    w = sg.variable("w", np.ones(3))
    program = sg.compile([], [], updates={w: np.zeros(3)})
    assert program() == []
    assert w.value.tolist() == [0, 0, 0]
    w.value = np.ones(3)
    program()
    assert w.value.tolist() == [0, 0, 0]


def test_to_write_into_a_value_is_refused_since_it_would_change_nothing():
    w, n = sg.variable("w", np.zeros(3)), sg.variable("n", 0.0)
    with pytest.raises(ValueError, match="read-only"):
        w.value[:] = 1
    with pytest.raises(ValueError, match="read-only"):
        w.value += 1
    with pytest.raises(ValueError, match="read-only"):
        n.value[...] = 1
    before, w.value = w.value, w.value + 1
    assert (before.tolist(), w.value.tolist(), float(n.value)) == ([0, 0, 0], [1, 1, 1], 0)
    assert not np.shares_memory(w.value, w.value)


def test_the_spare_array_is_used_again_unless_somebody_reads_it():
    w = sg.variable("w", np.zeros(1000))
    program = sg.compile([], [], updates={w: w + 1})
    program()
    first = w.cell.array.ctypes.data
    program()
    program()
    assert w.cell.array.ctypes.data == first, "two arrays are enough for a variable"
    held = w.cell.array
    before = held.copy()
    for _ in range(4):
        program()
    np.testing.assert_array_equal(held, before)
    view = w.cell.array[::2]
    kept = view.copy()
    for _ in range(4):
        program()
    np.testing.assert_array_equal(view, kept)


def test_kernels_are_named_where_they_fail():
    from symgrad.ir.node import apply
    from symgrad.ir.op import Op

    def kernel(x, out=None):
        raise ZeroDivisionError("no luck")

    fails = Op.of(name="fails", infer=lambda t: t, kernel=kernel, out=True)
    x = sg.placeholder("x", 3)
    y = sg.exp(apply(fails, [x * 2]))
    for backend in ("numpy", "reference"):
        program = sg.compile(x, y, backend=backend, passes=())
        with pytest.raises(sg.KernelError) as caught:
            program(np.ones(3))
        message = str(caught.value)
        assert "fails(float64[3]) failed: ZeroDivisionError: no luck" in message
        assert "test_program.py" in message
        assert "apply(fails, [x * 2])" in message
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(sg.KernelError) as caught:
        sg.compile(x, y)(np.ones(3))
    shown = "".join(traceback.format_exception(caught.value))
    assert "kernel0(" in shown
    assert "# test_program.py:" in shown, "the line of the generated source is shown"


def test_a_kernel_without_memory_is_told_with_its_node_and_line():
    from symgrad.ir.node import apply
    from symgrad.ir.op import Op

    def kernel(x, out=None):
        raise MemoryError

    full = Op.of(name="full_up", infer=lambda t: t, kernel=kernel, out=True)
    x = sg.placeholder("x", 3)
    for backend in ("numpy", "reference"):
        with pytest.raises(sg.AllocationError, match=r"full_up\(float64\[3\]\) failed") as caught:
            sg.compile(x, apply(full, [x]), backend=backend)(np.ones(3))
        assert isinstance(caught.value, MemoryError)
        assert "built at test_program.py:" in str(caught.value)
        assert type(caught.value.__cause__) is MemoryError


def test_plans_are_bounded_and_leave_nothing_behind():
    x = sg.placeholder("x", "N")
    program = sg.compile(x, sg.sum(x))
    before = set(linecache.cache)
    for n in range(3 * MOST_PLANS):
        assert program(np.ones(n)) == n
    gc.collect()
    assert len(program.executables.used) == MOST_PLANS
    assert len(set(linecache.cache) - before) == MOST_PLANS
    for n in (0, 3 * MOST_PLANS - 1, 5):
        assert program(np.ones(n)) == n
    alive = weakref.ref(program)
    del program
    gc.collect()
    assert alive() is None
    assert not set(linecache.cache) - before


@pytest.mark.parametrize("backend", ["numpy", "reference", "native"])
def test_what_nobody_reads_is_freed_without_the_collector(backend):
    """It may come much later, and takes its time; so nothing that was compiled holds itself."""
    if backend == "native":
        pytest.importorskip("llvmlite")
    with without_collection():
        x, w = sg.placeholder("x", ("N", 4)), sg.variable("w", np.ones(4))
        last, rows = sg.scan(lambda c, row: (sg.tanh(c + row), c), w, x)
        loss = sg.sum(sg.softmax(rows * w)) + sg.sum(last)
        program = sg.compile(x, loss, updates={w: w - sg.grad(loss, w)}, backend=backend)
        for n in (3, 5):
            program(np.ones((n, 4)))
        alive = [weakref.ref(thing) for thing in (program, program.graph.outputs[0], x, loss)]
        del program, x, w, last, rows, loss
        assert all(ref() is None for ref in alive)


def test_a_call_that_is_refused_keeps_nothing():
    with without_collection():
        x = sg.placeholder("x", 4)
        y = x * 2
        alive = [weakref.ref(x), weakref.ref(y)]
        with pytest.raises(sg.ShapeError):
            sg.reshape(y, 5)
        with pytest.raises(sg.ShapeError):
            y + sg.ones(3)
        with pytest.raises(sg.ShapeError):
            np.reshape(y, 5)
        del x, y
        assert all(ref() is None for ref in alive)


@pytest.mark.parametrize("depth", [4_000])
def test_deep_chains_need_no_recursion(depth):
    x = h = sg.placeholder("x", 4)
    for i in range(depth):
        h = sg.tanh(h + i % 3)
    program = sg.compile(x, [sg.sum(h), sg.grad(sg.sum(h), x)], passes=())
    loss, slope = program(np.zeros(4))
    assert np.isfinite(loss)
    assert slope.shape == (4,)
    assert repr(program).startswith("<Program of (x): ")


def test_what_a_program_shows_before_and_after_a_call():
    x = sg.placeholder("x", ("N", 2))
    program = sg.compile(x, x * 2)
    assert "(64, 2)" in program.source
    assert "64" in str(program.plan)
    program(np.ones((5, 2)))
    assert "(5, 2)" in program.source
    assert program.plan.sizes == {"N": 5}
    assert program.plan.output_bytes == 80


def test_sizes_on_which_steps_fail_are_not_kept():
    x = sg.placeholder("x", "N")
    program = sg.compile(x, x[3:])
    with pytest.raises(sg.ShapeError):
        program(np.ones(2))
    assert not program.executables.used
    assert program(np.ones(4)).tolist() == [1]


@pytest.mark.parametrize("dtype", ["int32", "complex64", "float64"])
def test_a_variable_of_no_elements_keeps_its_dtype(dtype):
    w = sg.variable("w", np.zeros(0, dtype))
    program = sg.compile([], w * 2, updates={w: w * 2})
    program()
    program()
    assert w.value.dtype == dtype


# ---- inputs in dicts, lists and tuples ------------------------------------------------------


def nested():
    x, w, b = (sg.placeholder(n, ("N",)) for n in "xwb")
    return x, w, b, x * w + 2 * b


def test_inputs_have_the_form_in_which_they_were_given():
    x, w, b, y = nested()
    a = [np.arange(3.0), np.full(3, 2.0), np.ones(3)]
    expected = a[0] * a[1] + 2 * a[2]
    whole = sg.compile({"x": x, "layer": [w, (b,)]}, {"y": y})
    for program in (whole, pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole)):
        same(program({"layer": [a[1], (a[2],)], "x": a[0]})["y"], expected)
        same(program(x=a[0], w=a[1], b=a[2])["y"], expected)
    mixed = sg.compile([x, {"w": w, "b": b}], y)
    same(mixed(a[0], {"w": a[1], "b": a[2]}), expected)
    same(mixed(a[0], w=a[1], b=a[2]), expected)
    assert mixed.check(a[0], {"w": a[1], "b": a[2]})
    assert mixed.profile(a[0], {"w": a[1], "b": a[2]}, runs=1)
    same(mixed(a[0].tolist(), {"w": a[1].tolist(), "b": a[2]}), expected)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ({"w": 1.0},),
            "argument 0: a dict with the keys 'x', 'layer' is wanted",
        ),
        (([1.0],), "argument 0: a dict with the keys 'x', 'layer' is wanted, and this is none"),
        (({"x": [1.0], "layer": [[1.0]]},), r"argument 0\['layer'\]: a sequence of 2 is wanted"),
        (({"x": [1.0], "layer": [[1.0], 3]},), r"\['layer'\]\[1\]: a sequence of 1 is wanted"),
        ((1, 2), "2 arguments were given, and the program takes 1"),
    ],
)
def test_arguments_of_another_form_are_refused(args, message):
    x, w, b, y = nested()
    with pytest.raises(FeedError, match=message):
        sg.compile({"x": x, "layer": [w, (b,)]}, y)(*args)


def test_what_cannot_be_compiled_is_told_with_its_place():
    x, w, b, y = nested()
    with pytest.raises(GraphError, match=r"inputs\[0\]\['w'\]\[1\]: an input is a placeholder"):
        sg.compile({"x": x, "w": [w, 3.0]}, y)
    with pytest.raises(SymgradError, match=r"outputs\['y'\]\[1\]: "):
        sg.compile([x, w, b], {"y": [y, "text"]})


def test_a_name_of_a_user_sends_nothing_to_the_terminal():
    with sg.scope("s\x1b[31m\nfake"):
        x = sg.placeholder("x\x1b[31m\nfake", 3)
        w = sg.variable("w\x1b[0m", np.ones(3))
        y = sg.sin(x * x)
    updating = sg.compile([x], [], updates={w: w + y})
    program = sg.compile([x], y)
    program(np.ones(3))
    for text in (repr(program), repr(updating), str(program.why(y))):
        assert "\x1b" not in text
        assert "\nfake" not in text

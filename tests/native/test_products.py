"""Products of matrices by machine code or BLAS, on one thread or several: NumPy's, but for last
digits.
"""

import ctypes
import os
import threading

import numpy as np
import pytest

import symgrad as sg

pytest.importorskip("llvmlite")

from symgrad.lowering.steps import Product
from symgrad.native import gemm
from symgrad.native import products as native_products
from symgrad.native.blas import blas_threads, openblas, set_blas_threads
from symgrad.ops.linalg.products import LEAST_SHARED
from symgrad.runtime.executor import execute

if openblas() is None:
    pytest.skip("NumPy has no OpenBLAS", allow_module_level=True)
RNG = np.random.default_rng(3)


def product(threads):
    """What multiplies on so many threads."""

    def multiply(*given):
        kind = "f8" if getattr(given[0], "dtype", "f8") == np.float64 else "f4"
        return native_products.product(threads, kind).call(*given)

    return multiply


@pytest.fixture(params=[False, True], ids=["by BLAS", "by machine code"], autouse=True)
def own(request, monkeypatch):
    """Whether machine code multiplies what is large, as where that was found to be faster."""
    monkeypatch.setattr(gemm, "is_fast", lambda _: request.param)
    monkeypatch.setattr(native_products, "is_fast", lambda _: request.param)
    native_products.product.cache_clear()
    yield request.param
    native_products.product.cache_clear()


@pytest.fixture(autouse=True)
def two_threads_of_blas():
    """BLAS may take two threads here; the tests have one otherwise."""
    before = blas_threads()
    set_blas_threads(2)
    yield
    assert blas_threads() == 2  # whatever was held is given back
    set_blas_threads(before)


def laid_out(rows, columns, dtype, how, batch=()):
    """A matrix, or several, whose rows or columns lie side by side, with gaps or without."""
    if how == "rows":
        return RNG.standard_normal((*batch, rows, columns)).astype(dtype)
    if how == "columns":
        return laid_out(columns, rows, dtype, "rows", batch).swapaxes(-1, -2)
    if how == "part":
        return laid_out(rows + 3, columns + 5, dtype, "rows", batch)[..., 1:-2, 2:-3]
    return laid_out(columns, rows, dtype, "part", batch).swapaxes(-1, -2)


LAYOUTS = ("rows", "columns", "part", "part of columns")


def assert_near(found, a, b):
    expected = np.matmul(a, b)
    eps = np.finfo(found.dtype).eps
    bound = 4 * a.shape[-1] ** 0.5 * eps * np.max(np.abs(a)) * np.max(np.abs(b)) * 4
    assert np.max(np.abs(found - expected)) <= bound


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_of_any_size_and_layout_they_are_numpys(threads, dtype):
    multiply = product(threads)
    set_blas_threads(threads)
    for trial in range(120):
        m, k, n = (int(2 ** RNG.uniform(1, 8.5)) for _ in range(3))
        batches = [[(), ()], [(3,), (3,)], [(), (4,)], [(1,), (1,)], [(12,), ()]][trial % 5]
        a = laid_out(m, k, dtype, LAYOUTS[trial % 4], batches[0])
        b = laid_out(k, n, dtype, LAYOUTS[trial // 4 % 4], batches[1])
        out = np.full((*max(batches, key=len), m, n), np.nan, dtype)
        assert multiply(a, b, out) is None or m * k * n < LEAST_SHARED or threads == 1
        assert_near(out, a, b)
    set_blas_threads(2)


def test_a_result_may_have_gaps_between_its_rows():
    a, b = laid_out(200, 100, "f4", "rows"), laid_out(100, 150, "f4", "rows")
    whole = np.zeros((200, 170), "f4")
    product(2)(a, b, whole[:, 10:160])
    assert_near(whole[:, 10:160], a, b)
    assert not whole[:, :10].any()
    assert not whole[:, 160:].any()


def test_what_it_does_not_know_is_numpys():
    multiply = product(2)
    a, b, c = (laid_out(100, 100, "f4", "rows") for _ in range(3))
    given = [
        (a, b, c[::-1]), (a[:, ::-1], b, c), (a, b, np.zeros((100, 100))), (a.astype("f2"), b, c),
        (a, a.T, c), (a[None, None], b, c[None, None]), (a, b[0], c[0]), (a[0], b, c[0]),
    ]  # fmt: skip
    for x, y, out in given:
        expected = np.matmul(x, y, np.empty_like(out))
        multiply(x, y, out)
        assert np.array_equal(out, expected)
    assert np.array_equal(multiply(a.tolist(), b), np.matmul(a.tolist(), b))
    read_only = c.copy()
    read_only.flags.writeable = False
    for wrong in ((a, b, read_only), (a, b[:-1], c), (a, b, c[:-1]), (a, 3.0, c), (a,)):
        with pytest.raises((ValueError, TypeError)) as expected:
            np.matmul(*wrong)
        with pytest.raises(type(expected.value)):
            multiply(*wrong)


def test_what_is_written_over_an_operand_is_right():
    whole = laid_out(300, 200, "f8", "rows")
    square = laid_out(200, 200, "f8", "rows")
    for a, b, out in (
        (whole[:200], square, whole[:200]),
        (square, whole[:200], whole[:200]),
        (whole[:200], square, whole[50:250]),
        (whole[100:], square, whole[:200]),
    ):
        before = whole.copy()
        expected = a @ b
        product(2)(a, b, out)
        np.testing.assert_allclose(out, expected, rtol=1e-10)
        whole[:] = before


def test_matrices_that_are_one_are_no_place_for_several():
    a, b = laid_out(100, 100, "f4", "rows", (3,)), laid_out(100, 100, "f4", "rows", (3,))
    one = np.zeros((100, 100), "f4")
    out = np.lib.stride_tricks.as_strided(one, (3, 100, 100), (0, *one.strides))
    product(2)(a, b, out)
    assert_near(one, a[2], b[2])


def test_with_one_thread_of_blas_there_is_one(own):
    a, b = laid_out(300, 300, "f4", "rows"), laid_out(300, 300, "f4", "rows")
    set_blas_threads(1)
    found = np.empty((300, 300), "f4")
    product(2)(a, b, found)
    assert blas_threads() == 1
    if own:
        assert_near(found, a, b)
    else:
        assert np.array_equal(found, np.matmul(a, b))
    set_blas_threads(2)


def test_several_threads_multiply_at_once_with_the_same_bits():
    a, b = laid_out(100, 400, "f8", "rows"), laid_out(400, 301, "f8", "columns")
    expected, wrong = np.empty((100, 301)), []
    product(2)(a, b, expected)
    assert_near(expected, a, b)

    def work():
        out = np.empty((100, 301))
        for _ in range(60):
            product(2)(a, b, out)
            if not np.array_equal(out, expected) or blas_threads() != 2:
                wrong.append(1)

    asking = [threading.Thread(target=work) for _ in range(6)]
    for t in asking:
        t.start()
    for t in asking:
        t.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_process_that_is_forked_meanwhile_has_all_threads_of_blas():
    a, b = laid_out(1500, 1000, "f8", "rows"), laid_out(1000, 1500, "f8", "rows")
    out, done = np.empty((1500, 1500)), threading.Event()

    def work():
        while not done.is_set():
            product(2)(a, b, out)

    other = threading.Thread(target=work)
    other.start()
    try:
        for _ in range(4):
            child = os.fork()
            if child == 0:
                asked = ctypes.CFUNCTYPE(ctypes.c_int)(openblas().threads)()
                os._exit(0 if asked == blas_threads() == 2 else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        done.set()
        other.join()


X, Y = (RNG.standard_normal(s).astype("f4") for s in ((128, 300), (128, 10)))
W1, W2 = (RNG.standard_normal(s).astype("f4") / 20 for s in ((300, 200), (200, 10)))


def net(**options):
    """A step of training, and its variables."""
    x, y = sg.placeholder("x", ("N", 300), "float32"), sg.placeholder("y", ("N", 10), "float32")
    w1, w2 = sg.variable("w1", W1), sg.variable("w2", W2)
    loss = sg.mean((sg.relu(x @ w1) @ w2 - y) ** 2)
    grads = sg.grad(loss, [w1, w2])
    updates = {w: w - 0.1 * g for w, g in zip((w1, w2), grads, strict=True)}
    return sg.compile([x, y], loss, updates, **options), (w1, w2)


def products(program):
    return [s for s in program.plan.steps if isinstance(s, Product)]


def test_a_program_shares_its_large_products(tmp_path):
    shared, own = net(backend=None, threads=2)
    plain, others = net(backend="numpy")
    for _ in range(20):
        np.testing.assert_allclose(shared(X, Y), plain(X, Y), rtol=1e-4)
    for found, expected in zip(own, others, strict=True):
        np.testing.assert_allclose(found.value, expected.value, atol=1e-5)
    assert len(products(shared)) == 2
    assert shared.source.count("native_matmul(") == 2
    assert "# native_matmul: matmul, " in shared.source
    assert str(shared.plan).count("native_matmul ") == 2
    shared.save_source(tmp_path / "step.py")
    assert "native" not in (tmp_path / "step.py").read_text()


def test_the_executor_walks_them_as_matmul():
    program, _ = net(backend=None, threads=2)
    shown = program.executables.of({"N": 128})
    spares = [np.empty_like(w) for w in (W1, W2)]
    (walked,) = execute(shown.plan, [X, Y], [W1, W2], spares, shown.workspace())
    np.testing.assert_allclose(walked, program(X, Y), rtol=1e-4)


def test_where_bits_are_to_be_numpys_there_are_none():
    for options in ({"exact": "bits"}, {"exact": "values"}, {"backend": "numpy"}):
        program, _ = net(**{"backend": None, "threads": 2, **options})
        program(X, Y)
        assert not products(program), options


def test_on_one_thread_they_are_those_that_machine_code_multiplies(own):
    program, _ = net(backend=None, threads=1)
    plain, _ = net(backend="numpy")
    np.testing.assert_allclose(program(X, Y), plain(X, Y), rtol=1e-4)
    assert [s.threads for s in products(program)] == [1, 1] * own


@pytest.mark.parametrize("own", [True], indirect=True)  # BLAS has several kernels, for each cut
def test_machine_code_gives_the_same_bits_on_any_number_of_threads():
    set_blas_threads(5)
    for layout in LAYOUTS:
        a, b = laid_out(150, 300, "f4", layout), laid_out(300, 140, "f4", layout)
        found = [np.empty((150, 140), "f4") for _ in range(4)]
        for threads, out in zip((1, 2, 3, 5), found, strict=True):
            assert product(threads)(a, b, out) is None
            assert_near(out, a, b)
            assert np.array_equal(out, found[0])
    set_blas_threads(2)


def test_where_there_is_no_room_to_pack_operands_blas_multiplies(own, monkeypatch):
    asked = []
    refuse = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(asked.append)
    address = ctypes.cast(refuse, ctypes.c_void_p).value
    monkeypatch.setattr(native_products, "_of_system", lambda _: address)
    a, b = laid_out(150, 300, "f4", "rows"), laid_out(300, 140, "f4", "rows")
    found = np.empty((150, 140), "f4")
    product(2)(a, b, found)
    assert_near(found, a, b)
    assert len(asked) == 2 * own


def test_what_lies_just_behind_a_slice_of_columns_is_apart_from_it():
    a, b = RNG.standard_normal((129, 760)), laid_out(700, 70, "f8", "rows")
    memory = np.empty(a.size + 129 * 70)
    whole = memory[: a.size].reshape(a.shape)
    whole[:] = a
    behind, elsewhere = memory[a.size :].reshape(129, 70), np.empty((129, 70))
    for out in (behind, elsewhere):
        assert product(2)(whole[:, 60:], b, out) is None  # `np.matmul` gives the result
    assert np.array_equal(behind, elsewhere)
    assert_near(behind, a[:, 60:], b)


def test_products_of_two_dtypes_have_a_name_each(own):
    x, y = (sg.placeholder(n, (300, 300), "float32") for n in "xy")
    w, h, rows = (sg.placeholder(n, s) for n, s in (("w", (300, 300)), ("h", (300, 300)), ("r", 3)))
    looped = sg.scan(lambda c, r: (sg.tanh(c @ w + r), sg.sum(c)), h, rows)[0]
    inputs, outputs = [x, y, w, rows, h], [x @ y, looped]
    program = sg.compile(inputs, outputs, backend=None, threads=2)
    arrays = [RNG.standard_normal(p.shape).astype(p.dtype) / 20 for p in inputs]
    found, expected = program(*arrays), sg.compile(inputs, outputs, backend="numpy")(*arrays)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    alone = sg.compile([x, y], x @ y, backend=None, threads=2)
    assert np.array_equal(found[0], alone(*arrays[:2]))
    assert "native_matmul(x, y, " in program.source
    assert "native_matmul1(" in program.source
    assert "# native_matmul, native_matmul1: matmul" in program.source


@pytest.mark.parametrize("threads", [1, 2])
def test_in_the_gradient_of_a_loop_of_which_nobody_knows_the_length(threads):
    w, h = sg.placeholder("w", (64, 64), "float32"), sg.placeholder("h", (300, 64), "float32")
    end = sg.while_loop(lambda c: sg.sum(c) < 1e4, lambda c: sg.tanh(c @ w) + c + 0.1, h)
    grads = sg.grad(sg.sum(end * end), [w, h])
    arrays = np.full((64, 64), 0.01, "f4"), np.zeros((300, 64), "f4")
    found = sg.compile([w, h], grads, backend="native", threads=threads)(*arrays)
    expected = sg.compile([w, h], grads, backend="numpy")(*arrays)
    for a, b in zip(found, expected, strict=True):
        assert b.any()
        np.testing.assert_allclose(a, b, rtol=1e-4)


def test_their_code_can_be_read(own):
    program, _ = net(backend=None, threads=2)
    program(X, Y)
    (code,) = {s.code for s in products(program)}
    assert code in program.native
    assert ("@gemm(" in code.ir) == ("gemm" in code.assembly) == own
    assert "@call_from_python" in code.ir


def test_tiles_of_products_run_one_after_the_other_on_a_team():
    q, k, v = (sg.placeholder(n, (16, 256, 64), "float32") for n in "qkv")
    out = sg.nn.softmax(q @ k.mT / 8, axis=-1) @ v
    arrays = [RNG.standard_normal((16, 256, 64)).astype("f4") for _ in range(3)]
    shared, plain = (
        sg.compile([q, k, v], [out, *sg.grad(sg.sum(out * v), [q, k, v])], **options)
        for options in ({"backend": None, "threads": 2}, {"backend": "numpy"})
    )
    for found, expected in zip(shared(*arrays), plain(*arrays), strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-5)
    assert "native_matmul(" in shared.source
    assert "share(" not in shared.source


def test_where_blas_cannot_be_asked_products_are_left_to_it(monkeypatch):
    monkeypatch.setattr(native_products, "openblas", lambda: None)
    native_products.product.cache_clear()
    program, _ = net(backend=None, threads=2)
    program(X, Y)
    assert not products(program)
    assert "no OpenBLAS" in str(program.why(program.raw.outputs[0]))

"""Products in machine code: right for every size, layout and processor, and with the same bits."""

import ctypes
import mmap

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from symgrad.native import gemm
from symgrad.native.engine import Engine, host
from symgrad.native.gemm import DEPTH, SPACE, WIDTH, MicroTile, micro_tile, write_gemm
from symgrad.native.vectors import Module

RNG = np.random.default_rng(11)
SIZE, PLACE = ctypes.c_int64, ctypes.c_void_p
ARGUMENTS = *[SIZE] * 3, *[PLACE, SIZE, SIZE] * 2, PLACE, SIZE, PLACE


class Product:
    """Multiplies by the code for an engine and a tile."""

    def __init__(self, kind, engine=None, shape=None):
        engine, module = engine or host(), Module()
        write_gemm(module, kind, shape or micro_tile(engine, kind), "multiply")
        self.code = engine.loaded(str(module), ("multiply",), {})
        self.function = ctypes.CFUNCTYPE(None, *ARGUMENTS)(self.code["multiply"])
        self.space = np.empty(SPACE + 64, np.uint8)

    def __call__(self, a, b, c):
        (m, k), n = a.shape, b.shape[1]
        operands = [x for y in (a, b) for x in (y.ctypes.data, *y.strides)]
        place = self.space.ctypes.data
        self.function(m, n, k, *operands, c.ctypes.data, c.strides[0], place + -place % 64)
        return c


def without_masks():
    """An engine for a processor of this kind that has vectors of 32 bytes, or the host's."""
    is_x86 = host().triple.startswith("x86_64")
    return Engine(None, "x86-64-v3", "+fma") if is_x86 else host()


def laid_out(rows, columns, kind, turned):
    """A matrix within NaNs, whose rows or columns lie side by side."""
    if turned:
        return laid_out(columns, rows, kind, False).T
    whole = np.full((rows + 2, columns + 5), np.nan, kind)
    whole[1:-1, 2:-3] = RNG.standard_normal((rows, columns))
    return whole[1:-1, 2:-3]


def made(multiply, a, b):
    """The product, beside which nothing is written."""
    whole = np.full((len(a) + 2, b.shape[1] + 3), 7, a.dtype)
    found = multiply(a, b, whole[1:-1, 1:-2]).copy()
    whole[1:-1, 1:-2] = 7
    assert (whole == 7).all()
    return found


def assert_near(found, a, b):
    wide = np.longdouble
    eps, bound = np.finfo(found.dtype).eps, np.abs(a.astype(wide)) @ np.abs(b.astype(wide))
    error = np.abs(found - a.astype(wide) @ b.astype(wide))
    assert (error <= a.shape[1] ** 0.5 * eps * bound).all()


SIZES = (1, 2, 5, 6, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 129)


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_of_every_size_and_layout_they_are_right(kind):
    multiply = Product(kind)
    for trial in range(200):
        m, n, k = (int(RNG.choice(SIZES)) for _ in range(3))
        a = laid_out(m, k, kind, turned=trial % 2)
        b = laid_out(k, n, kind, turned=trial // 2 % 2)
        assert_near(made(multiply, a, b), a, b)


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("turned", [False, True])
def test_blocks_of_terms_and_of_columns_are_joined(kind, turned):
    columns = WIDTH // int(kind[1])
    for k in (DEPTH - 1, DEPTH, DEPTH + 1, 2 * DEPTH + 17):
        for n in (columns - 1, columns, columns + 1, 2 * columns + 35):
            a, b = laid_out(7, k, kind, turned), laid_out(k, n, kind, turned)
            assert_near(made(Product(kind), a, b), a, b)


TILES = [MicroTile(16, 4), MicroTile(8, 2), MicroTile(4, 4), MicroTile(2, 2), MicroTile(4, 1)]


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_every_tile_and_processor_gives_the_same_bits(kind):
    products = [Product(kind, shape=shape) for shape in TILES]
    products += [Product(kind), Product(kind, without_masks())]
    for trial in range(4):
        a = laid_out(45, 300, kind, turned=trial % 2)
        b = laid_out(300, 83, kind, turned=trial // 2)
        first, *others = (made(multiply, a, b) for multiply in products)
        for other in others:
            assert np.array_equal(first, other)


def test_the_largest_tile_is_that_of_the_processor():
    narrow = without_masks()
    if narrow.triple.startswith("x86_64"):
        assert (micro_tile(narrow, "f4"), micro_tile(narrow, "f8")) == (
            MicroTile(8, 2),
            MicroTile(4, 2),
        )
    if host().has_masks:
        assert (micro_tile(host(), "f4"), micro_tile(host(), "f8")) == (
            MicroTile(16, 4),
            MicroTile(8, 4),
        )


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_the_place_of_an_element_and_what_is_beside_it_make_no_difference(kind):
    multiply = Product(kind)
    a, b = laid_out(50, 270, kind, turned=False), laid_out(270, 90, kind, turned=True)
    whole = made(multiply, a, b)
    for rows, columns in (
        (slice(3, 44), slice(90)),
        (slice(50), slice(17, 83)),
        (slice(9, 10),) * 2,
    ):
        assert np.array_equal(made(multiply, a[rows], b[:, columns]), whole[rows, columns])
    b[:, 5], a[7] = np.nan, np.inf
    again = made(multiply, a, b)
    others = np.ix_(*(np.delete(np.arange(n), i) for n, i in ((50, 7), (90, 5))))
    assert np.array_equal(again[others], whole[others])
    assert np.isnan(again[:, 5]).all()


def test_what_is_not_finite_is_as_numpy_has_it():
    for kind in ("f4", "f8"):
        a, b = laid_out(20, 40, kind, turned=False), laid_out(40, 30, kind, turned=False)
        a[3, 4], a[5, 6], a[7], b[4, 8], b[6, :20] = np.nan, np.inf, 0, -np.inf, 0
        with np.errstate(invalid="ignore"):
            found, expected = made(Product(kind), a, b), a @ b
        for test in (np.isnan, np.isposinf, np.isneginf):
            assert np.array_equal(test(found), test(expected))
        assert not np.signbit(found[7][found[7] == 0]).any()


@pytest.fixture
def fenced():
    """A function that places a matrix between pages that nobody may read or write."""
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    page, kept = mmap.PAGESIZE, []

    def place(matrix, at_end):
        data = np.ascontiguousarray(matrix)
        pages = -(-data.nbytes // page)
        kept.append(memory := mmap.mmap(-1, (pages + 2) * page))
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for fence in (address, address + (pages + 1) * page):
            assert protect(fence, page, 0) == 0
        begin = (pages + 1) * page - data.nbytes if at_end else page
        found = np.frombuffer(memory, data.dtype, data.size, begin).reshape(data.shape)
        found[:] = data
        return found

    return place


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("at_end", [False, True])
def test_nothing_beyond_the_matrices_is_read_or_written(kind, at_end, fenced):
    for m, n, k in ((1, 1, 1), (7, 33, 5), (65, 70, 300), (3, 530, 20)):
        for turn_a, turn_b in ((0, 0), (0, 1), (1, 0), (1, 1)):
            a = fenced(RNG.standard_normal((k, m) if turn_a else (m, k)).astype(kind), at_end)
            b = fenced(RNG.standard_normal((n, k) if turn_b else (k, n)).astype(kind), at_end)
            a, b = a.T if turn_a else a, b.T if turn_b else b
            found = Product(kind)(a, b, fenced(np.zeros((m, n), kind), at_end))
            assert_near(found, a, b)


def test_they_are_taken_where_they_were_found_to_be_faster():
    engine = Engine(None)
    found = {}
    for cpu in ("icelake-server", "skylake-avx512", "znver4", "haswell"):
        engine.cpu = cpu
        engine.features = "+avx512bw,+avx512vl" if cpu != "haswell" else "+avx2"
        found[cpu] = gemm.is_fast(engine)
    assert found == {"icelake-server": 1, "skylake-avx512": 1, "znver4": 0, "haswell": 0}

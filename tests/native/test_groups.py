"""Groups in machine code give what their ops give: bit for bit where no op rounds its own way."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.graph import Graph
from symgrad.native.engine import Engine, host
from symgrad.native.kernel import compiled
from symgrad.native.space import NotNative
from tests.helpers import each
from tests.native.campaign import everything
from tests.native.checks import (
    BINARY,
    COMPARE,
    UNARY,
    WHOLE,
    assert_same_bits,
    reference,
    values,
)

pytest.importorskip("llvmlite")
EXTREMA = ("relu", "maximum", "minimum")  # of which float16 has other zeros


def random_group(rng, shapes, dtype):
    """An elementwise graph over placeholders that broadcast, with several outputs."""
    half = dtype == np.float16
    unary = [n for n in UNARY if not (half and n in EXTREMA)]
    binary = [n for n in BINARY if not (half and n in EXTREMA)]
    inputs = [sg.placeholder(f"x{i}", s, dtype) for i, s in enumerate(shapes)]
    integers = np.dtype(dtype).kind in "iu"
    nodes, masks = list(inputs), []
    pick = lambda: nodes[rng.integers(len(nodes))]  # noqa: E731
    for _ in range(rng.integers(3, 25)):
        what = rng.random()
        if what < 0.2 and not integers:
            nodes.append(getattr(sg, rng.choice(unary))(pick()))
        elif what < 0.6:
            nodes.append(getattr(sg, rng.choice(WHOLE if integers else binary))(pick(), pick()))
        elif what < 0.75:
            masks.append(getattr(sg, rng.choice(COMPARE))(pick(), pick()))
        elif what < 0.85 and masks:
            nodes.append(sg.where(masks[rng.integers(len(masks))], pick(), pick()))
        elif what < 0.92 and masks:
            a, b = (masks[rng.integers(len(masks))] for _ in range(2))
            masks.append((a & b, a | b, ~a)[rng.integers(3)])
        else:
            nodes.append(pick() * dtype(3) + dtype(1))
    wide = [n for n in (*nodes[len(inputs) :], *masks) if n.shape == shapes[0]]
    chosen = wide[-3:] or [nodes[0] + nodes[0]]
    return Graph(dict.fromkeys(chosen), inputs)


FLOATS = [np.float16, np.float32, np.float64]


@each("dtype", [*FLOATS, np.int32, np.int64, np.uint8])
@each("seed", range(12))
def test_elementwise_groups_have_numpys_bits(seed, dtype):
    rng = np.random.default_rng([seed, np.dtype(dtype).itemsize, np.dtype(dtype).kind == "f"])
    n, c = (int(v) for v in rng.integers(2, 70, 2))
    forms = [
        [(n,), (n,), ()],
        [(n, c), (c,), (n, 1), ()],
        [(n, 3, c), (n, 1, c), (3, 1), (n, 3, 1)],
    ]
    shapes = forms[seed % 3]
    graph = random_group(rng, shapes, dtype)
    arrays = [values(rng, s, dtype) for s in shapes]
    found = compiled(graph, {}, exact=True).run(arrays)
    for a, b in zip(found, reference(graph, arrays), strict=True):
        assert_same_bits(a, b)


@each("n", [*range(1, 70), 127, 128, 129, 200])
def test_tails_of_every_length(n):
    rng = np.random.default_rng(n)
    x, y = (sg.placeholder(name, (n,), "float32") for name in "xy")
    graph = Graph([sg.where(x > y, x * y, x - y), x > y, sg.sum(x * y)], [x, y])
    if n == 1:
        with pytest.raises(NotNative):
            compiled(graph, {})
        return
    arrays = [values(rng, (n,), np.float32) for _ in range(2)]
    arrays = [np.nan_to_num(a, posinf=1, neginf=2) for a in arrays]
    guard = np.full(n + 2, 7, np.float32)
    found = compiled(graph, {})
    out, mask, parts = guard[1:-1], np.zeros(n, bool), np.empty(found.parts[2].shape, np.float32)
    found.call(*arrays, out, mask, parts, 0, n)
    expected = reference(graph, arrays)
    assert_same_bits(out, expected[0])
    assert_same_bits(mask, expected[1])
    np.testing.assert_allclose(parts.sum(), expected[2], rtol=1e-4, atol=1e-4)
    assert guard[0] == guard[-1] == 7


@each("dtype", ["float16", "float32", "float64", "uint8", "int16", "bool"])
@each("columns", [3, 37])
def test_nothing_beyond_the_end_of_a_row_is_written(dtype, columns):
    """Neither through masks, where this processor has them, nor by way of buffers."""
    rng, rows = np.random.default_rng(6), 5
    x, y = (sg.placeholder(*p, dtype) for p in (("x", (rows, columns)), ("y", (columns,))))
    graph = Graph([sg.where(x > y, x, y), x > y], [x, y])
    arrays = [values(rng, p.shape, dtype) for p in (x, y)]
    for masked in {False, host().has_masks}:
        engine = Engine(None) if masked else Engine(None, features=without_masks(host().features))
        found = compiled(graph, {}, engine=engine)
        guard = np.full(rows * columns + 2, 7).astype(dtype)
        out, mask = guard[1:-1].reshape(rows, columns), np.zeros(x.shape, bool)
        found.call(*arrays, out, mask, 0, rows)
        for a, b in zip((out, mask), reference(graph, arrays), strict=True):
            assert_same_bits(a, b)
        assert guard[0] == guard[-1] == np.array(7).astype(dtype)


def without_masks(features):
    return ",".join("-avx512bw" if f == "+avx512bw" else f for f in features.split(","))


def softmax_cross_entropy(x, y):
    top = sg.max(x, axis=1, keepdims=True)
    e = sg.exp(x - top)
    total = sg.sum(e, axis=1, keepdims=True)
    p = e / total
    return [p - y, sg.log(total) + top - sg.sum(x * y, axis=1, keepdims=True)]


def layer_norm(x, y):
    centred = x - sg.sum(x, axis=1, keepdims=True) * (1 / x.shape[1])
    variance = sg.sum(centred * centred, axis=1, keepdims=True) * (1 / x.shape[1])
    z = centred / sg.sqrt(variance + 1e-5)
    return [z * sg.sigmoid(z) * y, sg.sum(z * y, axis=0), sg.sum(z * y)]


@each("dtype", ["float32", "float64"])
@each("rows", [softmax_cross_entropy, layer_norm])
@each("shape", [(3, 2), (5, 10), (7, 64), (40, 257), (300, 33), (2, 9_001)])
def test_rows(rows, shape, dtype):
    rng = np.random.default_rng(5)
    x, y = (sg.placeholder(name, shape, dtype) for name in "xy")
    graph = Graph(rows(x, y), [x, y])
    arrays = [rng.standard_normal(shape).astype(dtype), rng.random(shape).astype(dtype)]
    found = compiled(graph, {}).run(arrays)
    exact = reference(
        Graph(rows(*(wide := [sg.placeholder(n, shape, "float64") for n in "xy"])), wide),
        [a.astype(np.float64) for a in arrays],
    )
    for a, b, plain in zip(found, exact, reference(graph, arrays), strict=True):
        assert a.dtype == dtype
        rounding = np.finfo(dtype).eps * (8 * np.max(np.abs(b)) + np.sqrt(x.size))
        allowed = 4 * np.max(np.abs(plain - b)) + rounding
        assert np.max(np.abs(a - b)) <= allowed


@pytest.mark.parametrize("name", ["sum", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_reductions_over_rows_and_within_them(name, dtype):
    rng = np.random.default_rng(6)
    for shape in ((50, 20), (9, 31), (40, 8, 5)):
        x = sg.placeholder("x", shape, dtype)
        y = x + x
        reduce = getattr(sg, name)
        last = tuple(range(x.ndim))[-1]
        outer = tuple(range(last))
        graph = Graph(
            [
                y,
                reduce(y, axis=outer),
                reduce(y),
                reduce(y, axis=last),
                reduce(y, axis=last, keepdims=True),
            ],
            [x],
        )
        array = rng.integers(0, 9, shape).astype(dtype)
        for a, b in zip(compiled(graph, {}).run([array]), reference(graph, [array]), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("shape", [(9, 3, 21), (4, 3, 2, 19), (70, 40, 33)])
def test_reductions_that_keep_some_axes_of_the_rows(shape, dtype):
    """As batch norm's are, in several blocks and in one; with what depends on no column."""
    rng = np.random.default_rng([len(shape), 6])
    x = sg.placeholder("x", shape, dtype)
    gain = sg.placeholder("gain", (shape[1], *(1,) * (len(shape) - 2)), dtype)
    row = sg.placeholder("row", (*shape[:2], *(1,) * (len(shape) - 2)), dtype)
    most = tuple(i for i in range(len(shape)) if i != 1)
    y = x * gain + row
    ends = [sg.sum(y, axis=most), sg.max(x, axis=most, keepdims=True), sg.sum(row * gain, axis=0)]
    graph = Graph([*ends, sg.sum(y, axis=0), y], [x, gain, row])
    arrays = [rng.integers(0, 9, p.shape).astype(dtype) for p in graph.inputs]
    found = compiled(graph, {}).run(arrays)
    for a, b in zip(found, reference(graph, arrays), strict=True):
        assert_same_bits(a, b)


def test_what_is_not_finite_comes_through_reductions():
    x = sg.placeholder("x", (4, 21), "float32")
    graph = Graph([x * 2, sg.max(x * 2, axis=1), sg.sum(x * 2, axis=1, keepdims=True)], [x])
    array = np.ones((4, 21), np.float32)
    array[0, 20], array[1, 3], array[2, 20] = np.nan, np.inf, -np.inf
    _, top, total = compiled(graph, {}).run([array])
    np.testing.assert_array_equal(top, [np.nan, np.inf, 2, 2])
    np.testing.assert_array_equal(total[:, 0], [np.nan, np.inf, -np.inf, 42])


def test_blocks_do_not_depend_on_who_runs_them():
    rng = np.random.default_rng(7)
    for shape in ((100_001,), (9000, 37)):
        x = sg.placeholder("x", shape, "float32")
        graph = Graph([sg.sum(sg.exp(x)), sg.sum(x * x, axis=0)], [x])
        array = rng.standard_normal(shape).astype(np.float32)
        kernel = compiled(graph, {})
        whole = kernel.run([array])
        parts = [np.empty(p.shape, np.float32) for p in kernel.parts]
        pieces = list(kernel.spans(3))
        assert len(pieces) > 3
        for first, end in reversed(pieces):
            kernel.call(array, *parts, first, end)
        for a, p in zip(whole, parts, strict=True):
            assert_same_bits(np.asarray(np.add.reduce(p, 0)), np.asarray(a))


def stepped(x):
    return [None if n == 1 else s for s, n in zip(x.strides, x.shape, strict=True)]


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[:, 3:40],
        lambda a: a[::-2, :74:2],
        lambda a: a[:, 36::-1],
        lambda a: np.broadcast_to(a[3], (40, 80))[:20, :37],
        lambda a: np.broadcast_to(a[:, 3:4], (40, 37))[:20],
        lambda a: np.broadcast_to(a[5, 5], (20, 37)),
        lambda a: a.reshape(-1)[: 20 * 37].reshape(37, 20).T,
    ],
)
def test_views_are_followed_where_they_lie(view):
    rng = np.random.default_rng(3)
    whole = values(rng, (40, 80), "float32")
    seen = view(whole)[:20]
    x, y = (sg.placeholder(name, seen.shape, "float32") for name in "xy")
    graph = Graph([sg.where(x > y, x, y * 2), sg.max(x * y, axis=1), sg.max(x - y)], [x, y])
    arrays = [seen, values(rng, seen.shape, "float32")]
    kernel = compiled(graph, {}, strides=[tuple(stepped(seen)), None])
    expected = reference(graph, arrays)
    # What lies otherwise than was said is copied first.
    for first in (seen, seen.copy(), np.asfortranarray(seen)):
        for a, e in zip(kernel.run([first, arrays[1]]), expected, strict=True):
            np.testing.assert_array_equal(a, e)
    with pytest.raises(TypeError):
        kernel.run([seen[0], arrays[1]])


def test_what_is_written_over_is_not_read_again():
    x, y = (sg.placeholder(name, (40, 33), "float32") for name in "xy")
    b, z = sg.placeholder("b", (33,), "float32"), sg.placeholder("z", (40, 33), "float64")
    top = sg.max(x * y, axis=1, keepdims=True)
    outputs = [x * y + b, x - top, sg.sum(x, axis=0), sg.astype(x + y, "float64") + z]
    kernel = compiled(Graph(outputs, [x, y, b, z]), {})
    assert kernel.in_place == ((1,), (0, 1), (), (3,))
    arrays = [values(np.random.default_rng(0), n.shape, n.dtype) for n in (x, y, b, z)]
    arrays[0] = np.nan_to_num(arrays[0], posinf=1, neginf=2)
    expected = kernel.run(arrays)
    parts = np.empty(kernel.parts[2].shape, np.float32)
    kernel.call(*arrays, arrays[1], arrays[0], parts, arrays[3], 0, 40)
    for k, e in ((1, expected[0]), (0, expected[1]), (3, expected[3])):
        assert_same_bits(arrays[k], e)


def test_operands_that_are_not_plain_are_copied():
    rng = np.random.default_rng(8)
    x, s = sg.placeholder("x", (12, 9), "float32"), sg.placeholder("s", (), "float32")
    kernel = compiled(Graph([x * s + x], [x, s]), {})
    array = rng.standard_normal((9, 12)).astype(np.float32)
    unaligned = np.frombuffer(b"?" + array.tobytes(), np.uint8)[1:].view(np.float32).reshape(9, 12)
    assert not unaligned.flags.aligned
    expected = array.T * np.float32(3) + array.T
    for given in (array.T, unaligned.T, np.asfortranarray(array.T), array.T.astype(np.float64)):
        (found,) = kernel.run([given, np.float32(3)])
        assert_same_bits(found, expected)


def test_rows_of_more_elements_than_an_int32_counts():
    count = 2**31 + 17
    x, r = sg.placeholder("x", (count,), "uint8"), sg.placeholder("r", (2, 1), "uint8")
    kernel = compiled(Graph([sg.max(sg.minimum(x, r) * r, axis=1)], [x, r]), {})
    try:
        array = np.zeros(count, np.uint8)  # nothing of it is in memory before it is written
    except MemoryError:
        pytest.skip("no room for 2 GB of addresses")
    array[5] = 9
    (found,) = kernel.run([array, np.array([[3], [20]], np.uint8)])
    np.testing.assert_array_equal(found, [9, 180])


def test_numbers_that_a_dtype_does_not_hold():
    x = sg.placeholder("x", (20,), "float32")
    graph = Graph([sg.leaky_relu(x * 2, slope=-1e300)], [x])
    arrays = [np.linspace(-1, 1, 20, dtype=np.float32)]
    (found,) = compiled(graph, {}).run(arrays)
    assert_same_bits(found, reference(graph, arrays)[0])


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda x: sg.fmax(x * 2, x), "rounds otherwise"),
        (lambda x: sg.astype(sg.astype(x * 2, "uint32"), "int32"), "out of range"),
        (lambda x: sg.sort(x, axis=0), "no native form"),
        (lambda x: sg.astype(x, "complex64") * 2, "no vectors of complex64"),
        (lambda x: sg.astype(x, "float16") * 2, "astype of float16"),
        (lambda x: sg.relu(sg.astype(x > 0, "float16")), "rounds otherwise"),
        (lambda x: sg.sum(sg.astype(x > 0, "float16"), axis=1), "sum of float16"),
        (lambda x: sg.exp(x), "rounds otherwise"),
        (lambda x: sg.argmax(x, axis=1), "exact groups have none"),
        (lambda x: x * sg.sum(x, axis=1, keepdims=True), "another order"),
    ],
)
def test_what_is_left_to_numpy_and_why(build, words):
    x = sg.placeholder("x", (5, 6))
    graph = Graph([build(x)], [x])
    with pytest.raises(NotNative, match=words):
        compiled(graph, {}, exact=True)


@pytest.mark.parametrize(
    "build",
    [
        lambda x, y: x * sg.sum(x, axis=0),
        lambda x, y: x + sg.permute_dims(y, (1, 0)),
        lambda x, y: x + sg.sum(y),
        lambda x, y: sg.reshape(x * y, (36,)),
        lambda x, y: x[:0] * y[:0],
    ],
)
def test_loops_that_do_not_lie_within_each_other(build):
    x, y = (sg.placeholder(n, (6, 6)) for n in "xy")
    with pytest.raises(NotNative):
        compiled(Graph([build(x, y)], [x, y]), {})


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "int8", "int32", "int64", "uint16", "bool"]
)
def test_ops_of_every_kind_have_numpys_bits(dtype):
    rng = np.random.default_rng(9)
    kind = np.dtype(dtype).kind
    x, y = (sg.placeholder(name, 1003, dtype) for name in "xy")
    if kind == "f":
        outputs = [sg.deg2rad(x), sg.rad2deg(x), sg.heaviside(x, y), sg.rint(x), sg.signbit(x)]
    elif kind == "b":
        outputs = [x & y, x | y, x ^ y, ~x, x + y, x * y, x > y, sg.maximum(x, y), abs(x)]
    else:
        outputs = [x << y, x >> y, x & y, ~x, abs(x), sg.sign(x), x * y, sg.minimum(x, y), x >= y]
    arrays = [values(rng, (1003,), dtype) for _ in range(2)]
    graph = Graph(outputs, [x, y])
    for a, b in zip(
        compiled(graph, {}, exact=True).run(arrays), reference(graph, arrays), strict=True
    ):
        assert_same_bits(a, b)


def test_float16_is_computed_in_float32_and_rounded_after_each_op():
    rng = np.random.default_rng(4)
    x, c, k = (
        sg.placeholder(n, s, "float16") for n, s in (("x", (9, 37)), ("c", (37,)), ("k", ()))
    )
    wide = sg.astype(x, "float32")
    h = wide - sg.mean(wide, axis=1, keepdims=True)
    outputs = [sg.astype(sg.tanh(h) * 3.3, "float16") * c + k, sg.astype(x * 10, "int32"), x > c]
    arrays = [values(rng, x.shape, "float16"), values(rng, c.shape, "float16"), np.float16(0.3)]
    arrays[0][~(np.abs(arrays[0]) < 100)] = 7
    graph = Graph(outputs, [x, c, k])
    made, expected = compiled(graph, {}).run(arrays), reference(graph, arrays)
    np.testing.assert_allclose(made[0], expected[0], rtol=2e-3)
    for a, b in zip(made[1:], expected[1:], strict=True):
        assert (a == b).all()


def test_functions_that_numpy_is_faster_at_are_left_to_it():
    x = sg.placeholder("x", 1003, "float32")
    slow = [x**2.5, sg.log2(x), sg.log10(x), sg.asinh(x), sg.acosh(x), sg.atanh(x), sg.cbrt(x)]
    for y in (*slow, sg.exp2(x)):
        with pytest.raises(NotNative, match="as fast"):
            compiled(Graph([y], [x]), {}, if_it_pays=True)
    for y in (sg.erfinv(x), sg.special.logit(x), sg.erf(x), sg.exp(x)):
        assert compiled(Graph([y], [x]), {}, if_it_pays=True)


def test_what_is_the_same_in_several_rows_is_summed_up_once():
    x, r = sg.placeholder("x", (4, 3, 20), "float32"), sg.placeholder("r", (4, 1, 1), "float32")
    b = sg.placeholder("b", (3, 1), "float32")
    graph = Graph([x * b + r, sg.sum(r), sg.sum(r * 2, axis=0)], [x, r, b])
    arrays = [np.ones(p.shape, np.float32) for p in graph.inputs]
    for a, b in zip(compiled(graph, {}).run(arrays), reference(graph, arrays), strict=True):
        assert_same_bits(np.asarray(a), b)


def test_a_sum_over_rows_of_a_view_that_repeats_each_of_them_is_whole():
    """The view is no array of its own: NaN beside the sums would be memory that nobody wrote."""
    x = sg.placeholder("x", (55, 86), "float32")
    a = np.arange(55 * 86, dtype=np.float32).reshape(55, 86) % 97
    repeated = np.broadcast_to(a[:, :1], a.shape)
    for reduce in (sg.sum, sg.max, sg.min):
        graph = Graph([reduce(x, axis=0)], [x])
        with pytest.raises(NotNative, match="repeats"):
            compiled(graph, {}, strides=[repeated.strides])
        y = reduce(sg.broadcast_to(sg.roll(x, 1, axis=1)[:, :1], x.shape), axis=0)
        with everything():
            program = sg.compile([x], [y], backend="native")
        plain = sg.compile([x], [y], backend="numpy")
        np.testing.assert_allclose(program(a)[0], plain(a)[0], rtol=1e-5)

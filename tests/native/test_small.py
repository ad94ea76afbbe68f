"""Whole small programs as one function: NumPy's results, and its bits where no op rounds."""

import gc
import sys

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.node import apply
from symgrad.ir.op import REGISTRY
from symgrad.lowering.native import NativeCall
from symgrad.runtime.executor import execute
from symgrad.testing import random_feeds, random_graph
from symgrad.testing.equality import assert_computes
from symgrad.testing.graphs import cases_of
from tests.native.checks import BINARY, COMPARE, SPECIAL, UNARY, assert_same_bits, values

pytest.importorskip("llvmlite")

from tests.helpers import each
from tests.native import campaign

x, y = sg.placeholder("x", ()), sg.placeholder("y", ())
v = sg.placeholder("v", (10,))
BACKENDS = ("native", "numpy")


def rosenbrock(a, b):
    return sg.sum(sg.square(1 - a) + 100 * sg.square(b - a * a))


def both(inputs, outputs, **options):
    """The program in machine code, which is one step, and in NumPy."""
    programs = [sg.compile(inputs, outputs, backend=b, **options) for b in BACKENDS]
    (step,) = programs[0].plan.steps
    assert isinstance(step, NativeCall)
    assert len(programs[0].native) == 1
    return programs


def test_a_function_and_its_gradient():
    loss = rosenbrock(x, y)
    native, plain = both([x, y], [loss, *sg.grad(loss, [x, y])], exact="bits")
    given = [(1.0, 1.0), (-1.2, 1.0), (np.float64(0.3), 2), (np.array(3.0), np.float32(0.5))]
    for a, b in (*given, (True, np.int8(3))):
        found = native(a, b)
        assert found == plain(a, b) == native(x=a, y=b) == native(a, y=b)
        assert {type(r) for r in found} == {np.float64}
    assert "# machine code for" in native.source
    assert "s, s1, s2 = native(x, y)" in native.source
    assert "fmul double" in native.native[0].ir
    assert native.native[0].assembly.count("\n") > 20
    assert "by step 0" in str(native.why(loss))


def test_where_it_pays_a_small_program_is_one_function():
    loss = rosenbrock(x, y)
    outputs = [loss, *sg.grad(loss, [x, y])]
    chosen, native, plain = (sg.compile([x, y], outputs, backend=b) for b in (None, *BACKENDS))
    assert chosen(-1.2, 1.0) == native(-1.2, 1.0) == plain(-1.2, 1.0)
    assert chosen.source == native.source != plain.source
    assert not sg.compile([x, y], [x * y, x + y], backend=None).native, "there is little to gain"
    wide = sg.placeholder("wide", (65,))
    assert not sg.compile([wide], sg.sin(sg.cos(wide) * wide + wide * wide), backend=None).native


@each("dtype", [np.float32, np.float64])
@each("seed", range(6))
def test_random_programs_have_numpys_bits(seed, dtype):
    rng = np.random.default_rng(seed)
    shapes = [(), (), ()] if seed < 3 else [(7,), (3, 1), ()]
    inputs = [sg.placeholder(f"x{i}", s, dtype) for i, s in enumerate(shapes)]
    nodes = list(inputs)
    pick = lambda: nodes[rng.integers(len(nodes))]  # noqa: E731
    while len(nodes) < 30:
        if rng.random() < 0.3:
            nodes.append(getattr(sg, rng.choice(UNARY))(pick()))
        elif rng.random() < 0.8:
            nodes.append(getattr(sg, rng.choice(BINARY))(pick(), pick()))
        else:
            mask = getattr(sg, rng.choice(COMPARE))(pick(), pick())
            nodes.append(sg.where(mask, pick(), pick()))
    programs = both(inputs, [sg.add(inputs[0], inputs[1]), *nodes[-8:]], exact="bits")
    for _ in range(40):
        given = [values(rng, s, dtype) for s in shapes]
        for a, b in zip(*(p(*given) for p in programs), strict=True):
            assert type(a) is type(b)
            assert_same_bits(np.asarray(a), np.asarray(b))


def moved():
    """What only moves elements about, forwards and backwards."""
    w = sg.placeholder("w", (3, 4), "float32")
    parts = [w.T[1:, ::-1], sg.stack([w[0], w[2]]), w[:, None, 1:3].reshape(6), sg.flip(w, axis=0)]
    parts += [sg.concat([w, w[1:] * 2], axis=0), sg.broadcast_to(w[1], (2, 4)), w[1, 2]]
    parts += [sg.roll(w, 2, axis=1), sg.diag(w[:, :3]), sg.diag(w[0]), sg.cumulative_sum(w, axis=0)]
    parts += [sg.cumulative_sum(w[1])]
    loss = sum(sg.sum(p * (i + 1)) for i, p in enumerate(parts))
    return [w], [*parts, sg.grad(loss, w)]


def net():
    s, w = sg.placeholder("s", 3), sg.placeholder("w", (4, 3))
    b, u = sg.placeholder("b", 4), sg.placeholder("u", (2, 4))
    out = u @ sg.tanh(w @ s + b)
    loss = sg.sum(sg.nn.log_softmax(out) * out) + sg.max(out) - sg.min(w)
    return [s, w, b, u], [loss, *sg.grad(loss, [s, w, b, u]), out]


def chained():
    loss = rosenbrock(v[:-1], v[1:])
    return [v], [loss, sg.grad(loss, v), sg.sum(v.reshape(2, 5), axis=0), sg.mean(v)]


@pytest.mark.parametrize("build", [moved, net, chained])
def test_small_arrays(build):
    inputs, outputs = build()
    programs = both(inputs, outputs)
    rng = np.random.default_rng(3)
    for _ in range(3):
        given = [rng.standard_normal(p.shape).astype(p.dtype) for p in inputs]
        found, expected = (p(*given) for p in programs)
        walked = sg.compile(inputs, outputs, backend="reference", passes=())(*given)
        for a, b, c in zip(found, expected, walked, strict=True):
            assert np.shape(a) == np.shape(b)
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(a, c, rtol=1e-5, atol=1e-6)
        shown = programs[0].executables.shown()
        for a, b in zip(execute(shown.plan, given, [], [], []), found, strict=True):
            assert_same_bits(np.asarray(a), np.asarray(b))


@each("n", range(1, 65))
def test_every_number_of_elements(n):
    a, b = sg.placeholder("a", n, "float32"), sg.placeholder("b", (), "float32")
    programs = both([a, b], [sg.where(a > b, a * b, a - b), a > b, sg.max(a), a[::-1]])
    rng = np.random.default_rng(n)
    given = [values(rng, (n,), np.float32), np.float32(rng.standard_normal())]
    for found, expected in zip(*(p(*given) for p in programs), strict=True):
        assert_same_bits(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64", "bool"])
def test_integers_and_booleans(dtype):
    a, b = sg.placeholder("a", 5, dtype), sg.placeholder("b", (), dtype)
    outputs = [a & b, a == b, sg.maximum(a, b), sg.where(a > b, a, b), sg.astype(a, "float32")]
    outputs += [a * b + a, sg.square(a), abs(a), a | ~b]
    outputs += [a << b, a >> b, sg.sum(a), sg.sign(a)] if dtype != "bool" else []
    programs = both([a, b], outputs)
    rng = np.random.default_rng(4)
    for _ in range(5):
        given = [values(rng, (5,), dtype), values(rng, (), dtype)]
        for other in (given, [given[0], np.dtype(dtype).type(given[1])]):
            for found, expected in zip(*(p(*other) for p in programs), strict=True):
                assert_same_bits(np.asarray(found), np.asarray(expected))


def test_arguments_of_every_form_are_read_or_refused():
    native, plain = both([v, x], [v * x, sg.sum(v)])
    array = np.arange(20.0)[::2]
    unaligned = np.frombuffer(b"?" + array.tobytes(), np.uint8)[1:].view(np.float64)
    swapped = array.astype(">f8")
    for given in (array, array.copy(), unaligned, swapped, list(array), array.astype("f4")):
        for a, b in zip(native(given, 2.5), plain(given, 2.5), strict=True):
            assert_same_bits(np.asarray(a), np.asarray(b))
    for wrong in (np.zeros(9), np.zeros((10, 1)), np.zeros(10, complex), "text", None, 1.0):
        with pytest.raises(sg.FeedError):
            native(wrong, 2.5)
    for count in (0, 1, 3):
        with pytest.raises(sg.FeedError):
            native(*[array] * count)
    given = array.copy()
    first, _ = native(given, 1.0)
    first[:] = 7
    assert_same_bits(given, array.copy())
    assert first.flags.owndata
    assert native(given, 1.0)[0] is not first


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_are_fed_as_arrays_are(backend):
    whole = sg.placeholder("whole", (), "int32")
    program = sg.compile([x, whole], [1 / x, x * whole, whole + 1], backend=backend)
    given = [(2.0, 3), (np.float64(2), np.int32(3)), (np.array(2.0), np.array(3, "i4")), (2, 3)]
    for a, b in given:
        found = program(a, b)
        assert found == [0.5, 6.0, 4]
        assert [type(v) for v in found] == [np.float64, np.float64, np.int32]
    with np.errstate(all="raise"):
        assert program(0.0, 1)[0] == np.inf
    with pytest.raises(sg.FeedError):
        program(2.0, 3.5)


C_LONG = {8: np.longlong, 4: np.intc}[np.dtype(np.int_).itemsize]


@pytest.mark.parametrize("own", [C_LONG, np.dtype("f8", metadata={"unit": "m"}), ">i1", "?"])
@pytest.mark.parametrize("shape", [(3,), ()])
def test_a_dtype_may_be_another_object_than_numpys(own, shape):
    """Such as that of a C `long long`, one with metadata, one made by `newbyteorder`."""
    own = np.dtype(own).newbyteorder("<") if own in (">i1", "?") else np.dtype(own)
    dtype = np.dtype(own.str)
    assert own == dtype
    given, state = np.ones(shape, own), sg.variable("state", np.ones(shape, own))
    p = sg.placeholder("p", shape, dtype)
    programs = [
        sg.compile([p], [state * p, p * p], updates={state: p}, backend=backend)
        for backend in BACKENDS
    ]
    for program in programs:
        state.value = given
        for x in (given, np.zeros(shape, own)[::-1] if shape else given, given):
            before = state.value
            for a, b in zip(program(x), (before * x, x * x), strict=True):
                assert_same_bits(np.asarray(a), np.asarray(b))
            assert_same_bits(np.asarray(state.value), x)


@pytest.mark.parametrize("shape", [(3, 4), (40, 33)])
def test_a_sum_of_masks_is_whether_one_is_true(shape):
    a, b = (sg.placeholder(name, shape, "bool") for name in "ab")
    differ = a != b
    ends = [sg.sum(differ, axis=k, dtype=bool) for k in (0, 1, None)]
    ends += [sg.max(differ, axis=k) for k in (0, 1)]
    ends += [sg.min(differ, axis=k) for k in (0, 1)] + [sg.vecdot(a, b), sg.sum(a, dtype=bool)]
    rng = np.random.default_rng(0)
    for share in (0.0, 0.1, 0.9, 1.0):
        given = [rng.random(shape) < share, rng.random(shape) < 0.5 * (share > 0)]
        for end in ends:
            found, expected = (
                sg.compile([a, b], end, backend=k)(*given) for k in ("native", "reference")
            )
            assert_same_bits(np.asarray(found), np.asarray(expected))


@each("seed", range(40))
def test_random_small_programs(seed):
    campaign.check_small(seed)


def test_updates_are_written_into_spare_arrays():
    dt = sg.placeholder("dt", ())
    results = []
    for backend in BACKENDS:
        s, t = sg.variable("s", np.array([1.0, 2.0, 3.0])), sg.variable("t", 0.0)
        right = sg.stack([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - s[2]])
        program = sg.compile(dt, sg.sum(s), updates={s: s + dt * right, t: t + dt}, backend=backend)
        made = [program(0.01) for _ in range(5)]
        results.append((made, s.value.tolist(), float(t.value)))
    np.testing.assert_allclose(np.hstack(results[0]), np.hstack(results[1]), rtol=1e-14)


def test_named_sizes_that_are_small():
    n = sg.placeholder("n", "N")
    program = sg.compile(n, [sg.sum(sg.exp(n)), n * 2], backend="native")
    for size in (3, 17, 100, 3):
        given = np.linspace(0, 1, size)
        total, twice = program(given)
        np.testing.assert_allclose(total, np.exp(given).sum(), rtol=1e-14)
        assert_same_bits(twice, given * 2)
        assert isinstance(program.plan.steps[0], NativeCall) == (size < 64)


def test_the_body_of_a_loop_is_one_function():
    xs, start = sg.placeholder("xs", (20, 3)), sg.placeholder("start", 3)

    def body(carry, row):
        after = carry + 0.01 * sg.tanh(carry * row)
        return after, sg.sum(after)

    programs = [sg.compile([start, xs], sg.scan(body, start, xs), backend=b) for b in BACKENDS]
    given = np.ones(3), np.random.default_rng(5).standard_normal((3, 20)).T
    for a, b in zip(*(p(*given) for p in programs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    assert programs[0].native


def test_nothing_is_leaked():
    program, _ = both([v, x], [v * x, v[0], v + 1])
    array = np.ones(10)
    counts = []
    for _ in range(3):
        for _ in range(300):
            program(array, 2.0)
        gc.collect()
        things = (array, np.dtype("f8"), None)
        counts.append((*map(sys.getrefcount, things), sys.getallocatedblocks()))
    assert counts[2][:2] == counts[1][:2]
    assert counts[2][3] - counts[1][3] < 100


@pytest.mark.parametrize("exact", ["bits", "values", "rounding"])
@pytest.mark.parametrize("seed", range(14))
def test_random_graphs(seed, exact):
    rng = np.random.default_rng([seed, 18])
    inputs, outputs = random_graph(rng, int(rng.integers(5, 40)))
    wrt = [p for p in inputs if p.dtype.kind == "f"]
    outputs = [*outputs, *sg.grad(outputs[0], wrt, disconnected="zero")] if wrt else outputs
    program = sg.compile(inputs, outputs, exact=exact, backend="native")
    for special in (False, True):
        assert_computes(program, random_feeds(rng, inputs, special), sg.Exact.of(exact))


def trials(dtype):
    """Each op of the registry on small arrays, where it has one result."""
    for name, op in sorted(REGISTRY.every().items()):
        if dtype not in op.trials.dtypes or op.trials.ill_conditioned or op.body or op.opaque:
            continue
        for shapes, attrs in cases_of(op)[:1]:
            inputs = [sg.placeholder(f"x{i}", s, dtype) for i, s in enumerate(shapes)]
            try:
                node = apply(op, inputs, attrs)
            except sg.SymgradError:
                continue
            if inputs and isinstance(node, sg.Node) and not isinstance(node.type, tuple):
                yield name, inputs, node, op.trials.domain


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_every_op_that_has_a_native_form(dtype):
    rng, found = np.random.default_rng(6), set()
    for name, inputs, node, domain in trials(dtype):
        program = sg.compile(inputs, [node, inputs[0]], backend="native")
        if program.direct is None:
            continue
        found.add(name)
        for special in (False, True):
            feeds = random_feeds(rng, inputs, special, domain)
            assert_computes(program, feeds, sg.Exact.ROUNDING)
    assert len(found) > {"f": 60, "i": 4, "u": 4}[dtype[0]], found


def test_what_is_left_to_numpy():
    large = sg.placeholder("large", 65)
    for given, outputs in (
        ([large], [large * 2, large + 1]),
        ([x], [sg.broadcast_to(x, (9, 9)) * 2]),
        ([v], [sg.sort(v) * 2]),
        ([v], [sg.astype(v, "complex128") * 2]),
    ):
        program = sg.compile(given, outputs, backend="native")
        assert not any(isinstance(s, NativeCall) for s in program.plan.steps)
        assert program.direct is None
    exactly = sg.compile([x], [sg.sin(x), x + 1], backend="native", exact="bits")
    assert exactly.direct is None
    assert exactly(SPECIAL[5])[0] == np.sin(SPECIAL[5])


def test_a_saved_source_is_numpy(tmp_path):
    program, plain = both([v], [sg.sum(v), v * 2])
    path = program.save_source(tmp_path / "saved.py")
    assert "native" not in path.read_text()
    assert "native" in str(program.profile(np.ones(10), runs=2))
    assert program.cost().after.flops == plain.cost().after.flops


@each("size", [24, 32, 64])
@each("dtype", ["uint8", "int8", "int16", "float32"])
def test_what_a_mask_selects_of_its_own_elements_moved(dtype, size):
    """LLVM 20 takes the moved bytes for those in place: they are 1 where the mask is set."""
    x = sg.placeholder("x", (size,), "float32")
    mask, zero = x > 0, sg.constant(np.zeros((), dtype))
    y = sg.astype(mask, dtype)
    a = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    for moved in (sg.flip(y, axis=0), sg.roll(y, 1, axis=0)):
        for made in (moved * y, sg.where(mask, moved, zero)):
            program = sg.compile([x], [made], backend="native")
            assert len(program.native) == 1
            plain = sg.compile([x], [made], backend="reference", passes=())
            np.testing.assert_array_equal(program(a)[0], plain(a)[0])

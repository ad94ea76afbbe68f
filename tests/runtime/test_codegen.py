"""The generated source computes what the executor does, to the bit, and what the nodes say."""

import re
from itertools import cycle
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.evaluate import evaluate
from symgrad.ir.node import apply
from symgrad.ir.op import REGISTRY, Op
from symgrad.ir.operators import call
from symgrad.ir.types import DType
from symgrad.lowering.lower import lower
from symgrad.ops.select import select
from symgrad.runtime.codegen import generate
from symgrad.runtime.literals import constant_text, literal_text
from symgrad.testing.equality import assert_same
from symgrad.testing.graphs import special_values
from tests.helpers import each, generator, sample


def both(inputs, outputs, arrays, **options):
    """What both backends give, which must be the same, and what evaluating every node gives."""
    found = sg.compile(inputs, list(outputs), **options)(*arrays)
    walked = sg.compile(inputs, list(outputs), backend="reference", **options)(*arrays)
    for i, (a, b) in enumerate(zip(found, walked, strict=True)):
        same_bits(a, b, f"output {i}: source and executor")
        assert type(a) is type(b)
    return found, evaluate(outputs, dict(zip(inputs, arrays, strict=True)))


def same_bits(a, b, what=""):
    a, b = np.asarray(a), np.asarray(b)
    assert (a.dtype, a.shape) == (b.dtype, b.shape), what
    assert a.tobytes() == b.tobytes(), f"{what}: {a} and {b}"


def raw(inputs, outputs, arrays):
    """As `both`, without passes: then every bit is as the nodes say."""
    found, expected = both(inputs, outputs, arrays, passes=())
    for a, b in zip(found, expected, strict=True):
        same_bits(a, b)


def checked(inputs, outputs, arrays):
    """As `raw`, and that both backends agree after the passes, too."""
    raw(inputs, outputs, arrays)
    both(inputs, outputs, arrays)


# ---- every op -------------------------------------------------------------------------------

DTYPES = ("bool", "uint8", "float16", "float32", "complex64")
# Operand shapes: as they are, with broadcasting, of no dimensions, empty.
SHAPES = [[(3, 4)] * 3, [(3, 1), (1, 4), (3, 4)], [(), (), ()], [(4,), (3, 4), ()], [(0, 4)] * 3]


def pointwise():
    for name, op in sorted(REGISTRY.every().items()):
        if op.elementwise and name != "astype":
            for dtype in DTYPES:
                yield op, dtype


@each(("op", "dtype"), pointwise(), parts=4)
def test_every_elementwise_op(op, dtype):
    rng = generator(op.name)
    attrs = op.trials.cases[0].attrs if op.trials.cases else {}
    arity = len(op.trials.domain) if len(op.trials.domain) > 1 else arity_of(op)
    masks = {"select": 1, "where": 1}.get(op.name, 0)
    dtypes = ["bool"] * masks + [dtype] * (arity - masks)
    inputs, outputs, arrays = [], [], []
    for k, shapes in enumerate(SHAPES):
        xs = [
            sg.placeholder(f"x{k}_{i}", s, d)
            for i, (s, d) in enumerate(zip(cycle(shapes), dtypes, strict=False))
        ]
        try:
            y = apply(op, xs, attrs)
        except sg.SymgradError:
            return
        made = [y[i] for i in range(len(y.type))] if isinstance(y.type, tuple) else [y]
        inputs += xs
        outputs += made
        arrays += [sample(rng, x.shape, x.dtype, (0.2, 2.0)) for x in xs]
        if k == 0 and len(made) == 1:
            both(xs, made, arrays)
            z = apply(op, [x.T for x in xs], attrs)
            outputs += [z, z == z]
    raw(inputs, outputs, arrays)


def arity_of(op):
    if isinstance(op.kernel, np.ufunc):
        return op.kernel.nin
    return {"select": 2, "where": 3, "keep_where_positive": 2, "logaddexp": 2}.get(op.name, 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_casts(dtype):
    x = sg.placeholder("x", (2, 3), dtype)
    scalar = sg.placeholder("s", (), dtype)
    dtypes = DTYPES if dtype != "complex64" else ["complex64", "complex128"]
    outputs = [sg.astype(v, d) for d in dtypes for v in (x, x.T, scalar, x[0])]
    rng = generator("casts")
    checked([x, scalar], outputs, [sample(rng, x.shape, dtype, (0, 3)), sample(rng, (), dtype)[()]])


@each("name", ["sum", "prod", "max", "min", "any", "all"])
@each("dtype", ["bool", "int8", "float16", "float32", "float64"])
def test_reductions(name, dtype):
    x = sg.placeholder("x", (2, 3, 4), dtype)
    function = getattr(sg, name)
    if name in ("max", "min") and dtype == "bool":
        return
    outputs = [function(x, axis=a) for a in (None, 0, -1, (0, 2), (0, 1, 2), ())]
    outputs += [function(x, axis=1, keepdims=True), function(x.T, axis=(0, 1))]
    if name in ("sum", "prod"):
        outputs += [function(x, axis=1, dtype=d) for d in ("float64", "float32", "int64")]
    checked([x], outputs, [sample(generator(name), x.shape, dtype, (-2, 2))])
    scalar = sg.placeholder("x", (), dtype)
    checked([scalar], [function(scalar), function(scalar, keepdims=True)], [np.ones((), dtype)[()]])


def test_views_and_what_copies_them():
    x = sg.placeholder("x", (4, 6), "float32")
    y = sg.exp(x)
    chains = [
        x.T, y.T, sg.reshape(x.T, 24), sg.reshape(y.T, (2, 12)), sg.reshape(y.T, 24) * 2,
        sg.reshape(y[1:, ::2].T, (3, 3)) + 1, sg.reshape(y, (2, 2, 6))[1].T @ y[:2],
        sg.permute_dims(sg.reshape(x, (2, 2, 6)), (2, 0, 1)), y[0], y[0, 0], y[-1, ::-1],
        y[0::-1], y[3:0:-1], y[3::-2], y[::-1, ::-1][0:1], y[2:2], y[None, :, 1, None],
        sg.broadcast_to(x, (3, 4, 6)), sg.broadcast_to(y[:1], (4, 6)),
        sg.broadcast_to(sg.sum(y), (2, 2)), sg.sum(sg.broadcast_to(y, (2, 4, 6)), axis=0),
        sg.concat([x, y, x[:0]], axis=0), sg.concat([y.T, x.T], axis=1), sg.concat([y], axis=0),
        sg.grad(sg.sum(y[1:3, ::-2] ** 2), x), sg.grad(sg.sum(sg.reshape(y.T, 24)[::-3]), x),
        sg.reshape(sg.sum(y), (1, 1)), sg.reshape(y[:1, :1], ()), sg.reshape(y.T[:, :1], 6),
    ]  # fmt: skip
    arrays = [sample(generator("views"), (4, 6), "float32")]
    checked([x], chains, arrays)
    for chain in chains:
        checked([x], [chain], arrays)


@pytest.mark.parametrize("size", [1, 4, 5])
def test_every_slice(size):
    x = sg.placeholder("x", size, "float64")
    bounds = [None, 0, 1, -1, 3, -3, size]
    slices = [slice(a, b, s) for a in bounds for b in bounds for s in (None, 1, 2, -1, -2)]
    outputs = [x[s] for s in slices]
    arrays = [np.arange(size, dtype=float)]
    checked([x], outputs, arrays)
    found = sg.compile(x, outputs)(*arrays)
    for s, y in zip(slices, found, strict=True):
        same_bits(y, arrays[0][s], str(s))


def test_matmul_of_every_shape():
    cases = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
             ((1, 2, 3), (5, 3, 4)), ((2, 0), (0, 3)), ((0, 3), (3, 2))]  # fmt: skip
    for a, b in cases:
        for dtype in ("float32", "complex128", "int32"):
            xs = [sg.placeholder("a", a, dtype), sg.placeholder("b", b, dtype)]
            arrays = [sample(generator("matmul"), s, dtype) for s in (a, b)]
            checked(xs, [xs[0] @ xs[1]], arrays)
            if len(a) == len(b) == 2:
                checked(xs, [xs[1].T @ xs[0].T, sg.exp(xs[1]).T @ xs[0].T], arrays)


def test_one_array_in_many_places():
    x = sg.placeholder("x", (3, 3), "float32")
    y = x * 2
    outputs = [y * y, y - y, y @ y, sg.where(y > 0, y, y), sg.maximum(y, y), sg.concat([y, y])]
    outputs += [y + y.T, select(y.T > 0, y), sg.where(y > 0, y.T, y), y[0] + y[:, 0]]
    arrays = [sample(generator("places"), (3, 3), "float32")]
    checked([x], outputs, arrays)
    for y in outputs:
        checked([x], [y], arrays)


CONSTANTS = [
    np.float32(np.inf), np.float32(-np.inf), np.float64(np.nan), -np.float64(np.nan),
    np.frombuffer(b"\x01\x00\xc0\x7f", "f4")[0], np.float64(-0.0), np.float16(0.1),
    np.float16(65504), np.float32(1e-45), np.float64(5e-324), np.float32(0.1), np.float64(1e22),
    np.complex64(1 - 0.0j), np.complex128(complex(np.nan, -np.inf)), np.bool(True),
    np.int8(-128), np.uint64(2**64 - 1), np.int64(-(2**63)),
    np.zeros(0, "f4"), np.ones((0, 3)), np.arange(6, dtype="i2").reshape(2, 3),
    np.array([True, False]), np.array([[1.5, -0.0]]), np.array([np.nan, 1.0]),
    np.linspace(0, 1, 1000).reshape(10, 100), np.arange(9) * 1j,
]  # fmt: skip


@each("k", CONSTANTS, ids=lambda k: f"{np.asarray(k).dtype}-{np.asarray(k).flat[:2]}")
def test_constants_are_exact(k):
    back = eval(constant_text(k), {"np": np})
    same_bits(back, k)
    assert isinstance(back, np.generic) == (np.ndim(k) == 0)
    text = literal_text(k) if np.ndim(k) == 0 else None
    if text is not None:
        same_bits(k.dtype.type(eval(text)), k)
    x = sg.placeholder("x", np.shape(k), k.dtype)
    c = sg.constant(k)
    ones = np.ones(np.shape(k), k.dtype)
    checked([x], [c, c * x, x * c, sg.concat([sg.reshape(c, -1), sg.reshape(x, -1)])], [ones[()]])


@pytest.mark.parametrize("dtype", ["uint64", "int64"])
@pytest.mark.parametrize("name", ["add", "maximum", "equal", "bitwise_and", "logical_and"])
def test_the_largest_integer_stands_beside_an_array(name, dtype):
    most = np.iinfo(dtype).max
    x = sg.placeholder("x", 3, dtype)
    checked([x], [getattr(sg, name)(x, most)], [np.array([0, 1, most], dtype)])


def test_weak_literals_do_not_widen():
    """A literal is printed only where NumPy gives it the dtype that the constant has."""
    outputs = []
    xs = [sg.placeholder(f"x_{d}", 3, d) for d in ("int8", "float16", "float32", "uint8", "bool")]
    for x in xs:
        outputs += [x * sg.constant(np.ones((), x.dtype)), x * np.float64(0.1), x + np.int16(300)]
    checked(xs, outputs, [np.ones(3, x.dtype) for x in xs])


# ---- kernels of a user's own ----------------------------------------------------------------


def own_op(kernel, name="own", **facts):
    return Op.of(**{"name": name, "infer": lambda t: t, "kernel": kernel, **facts})


def test_kernels_and_attributes_that_cannot_be_spelled():
    class Callable:
        def __call__(self, x, mode=True, table=None, axis=None, limit=0.0, dtype=None):
            assert mode is False
            assert table["a"] == 1
            assert axis == (1,)
            assert limit == np.inf
            assert dtype is np.dtype("int8")
            return x + len(table)

    attrs = {"mode": False, "axis": (1,), "limit": np.inf, "dtype": np.dtype("int8")}
    x = sg.placeholder("x", 3)
    table = frozenset_dict(a=1)

    def infer(t, *, mode: bool, axis: tuple[int, ...], limit: float, dtype: DType, table: Any):
        return t

    own = own_op(Callable(), infer=infer, opaque=True)
    y = apply(own, [x], {**attrs, "table": table})
    z = apply(own_op(lambda x, out=None: np.add(x, 1, out=out), out=True), [y])
    found, _ = both([x], [y, z], [np.ones(3)])
    assert [r.tolist() for r in found] == [[2, 2, 2], [3, 3, 3]]


class frozenset_dict(dict):
    """A dict that can be hashed, whose repr is no expression for it."""

    def __init__(self, **items):
        super().__init__(items)

    def __hash__(self):
        return hash(frozenset(self.items()))

    def __repr__(self):
        return "<a table>"


def test_a_kernel_is_not_taken_for_numpys_by_its_name():
    def tanh(x, out=None):
        return np.add(x, 1, out=out)

    def select(x):
        return x + 2

    x = sg.placeholder("x", 3)
    nodes = [apply(own_op(tanh, "mine", out=True), [x]), apply(own_op(select, "its"), [x])]
    nodes += [sg.tanh(x), call("select", x > 0, x)]
    found, _ = both([x], nodes, [np.ones(3)])
    assert [r[0] for r in found] == [2, 3, np.tanh(1), 1]


def test_several_results_from_a_kernel_without_out():
    def split(x):
        return x.min(), x.max(axis=0), x + 1

    def infer(t):
        return (t.with_shape(()), t.with_shape(t.shape[1:]), t)

    op = Op(name="split", infer=infer, kernel=split)
    x = sg.placeholder("x", (2, 3))
    y = apply(op, [x])
    found, expected = both([x], [y[1], y[0] * 2, y[2] * 1.5], [np.arange(6.0).reshape(2, 3)])
    for a, b in zip(found, expected, strict=True):
        same_bits(a, b)


# ---- the text -------------------------------------------------------------------------------


def test_the_source_is_what_a_person_would_write():
    x = sg.placeholder("x", (8, 4), "float32")
    w = sg.variable("w", np.ones((4, 2), "float32"))
    y = sg.relu(x @ w)
    program = sg.compile(x, sg.sum(y, axis=0), updates={w: w - 0.5 * sg.grad(sg.sum(y), w)})
    body = program.source.split("def step")[1].splitlines()
    assert body[0] == "(x, w, w_next, a, b, bits):"
    code = [re.sub(r"\s+#.*", "", line) for line in body[2:]]
    assert code[:4] == [
        "    out = empty((2,), 'float32')",
        "    matmul(x, w, a)",
        "    maximum(a, 0, out=a)",
        "    add.reduce(a, axis=0, out=out)",
    ]
    assert code[-1] == "    return out"
    assert all("test_codegen.py:" in line for line in body[3:-1])


def test_every_line_of_source_knows_its_step():
    x = sg.placeholder("x", (3, 3))
    program = sg.compile(x, [sg.exp(x) @ x, sg.sum(x)])
    source = generate(program.plan)
    lines = source.text.splitlines()
    assert len(source.lines) == len(program.plan.steps)
    for number, step in source.lines.items():
        assert step.name.replace("sum", "reduce") in lines[number - 1]


def test_two_spaces_come_before_every_comment():
    long = sg.placeholder("a_name_that_is_rather_long", (2, 3))
    for n in range(12):
        x = sg.placeholder("x" * n + "x", (2, 3))
        program = sg.compile([long, x], sg.tanh(long + x))
        program(np.ones((2, 3)), np.ones((2, 3)))
        noted = [line for line in program.source.splitlines() if re.search(r"\S.*#", line)]
        assert len(noted) == 2
        assert all(re.search(r"\S  +# test_codegen", line) for line in noted)


@pytest.mark.parametrize("line", ["x = 1  # \u2028 raise", "\x0c", "\ud800", "\x00", "a\rb"])
def test_no_line_of_the_users_can_break_out_of_a_comment(line, monkeypatch):
    from symgrad.ir.origin import Location, Origin

    monkeypatch.setattr(Origin, "locations", [Location(f"/a\n{line}.py", 3, f"{line}\n{line}")])
    x = sg.placeholder("x", 3)
    program = sg.compile(x, sg.exp(x) * 2)
    assert program(np.zeros(3)).tolist() == [2, 2, 2]
    assert len(program.source.splitlines()) == len(program.source.split("\n")) - 1
    program.source.encode()


def test_own_kernels_say_what_their_scratch_is():
    """The kernels that take a temporary are called with a byte for each element."""
    x = sg.placeholder("x", (4, 4), "float64")
    plan = lower(sg.Graph([select(x > 0, x * 2)]), {})
    (step,) = [s for s in plan.steps if s.name == "select"]
    assert [plan.slots[r.slot].dtype for r in step.scratch] == [np.int8]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arithmetic_of_scalars_is_written_with_signs_and_has_the_same_bits(dtype):
    x, y = sg.placeholder("x", (), dtype), sg.placeholder("y", (), dtype)
    outputs = [x + y, x - y, x * y, x / y, -x, sg.square(x), x * 3.0, x < y, sg.equal(x, y), 1 / x]
    program = sg.compile([x, y], outputs, exact="bits")
    walked = sg.compile([x, y], outputs, exact="bits", backend="reference")
    assert "multiply(" not in program.source
    assert "s = x + y" in program.source
    values = special_values(dtype)
    for a in values:
        for b in values:
            for found, expected in zip(program(a, b), walked(a, b), strict=True):
                assert_same(found, expected, "bits")


def test_integers_have_no_signs():
    """NumPy's scalars warn where its arrays wrap."""
    x = sg.placeholder("x", (), "int8")
    found = sg.compile([x], x * x + x)(np.int8(100))
    assert found == (np.array([100], "int8") * np.array([101], "int8"))[0]

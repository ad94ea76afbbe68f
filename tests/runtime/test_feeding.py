"""Whatever the layout of what is fed, and whatever becomes of it later, the bits are the same."""

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.node import apply
from symgrad.ir.op import Op
from symgrad.ops.select import select

RNG = np.random.default_rng(7)
X = RNG.standard_normal((6, 4)).astype("float32")


def unaligned(a):
    memory = np.empty(a.nbytes + 1, np.uint8)
    found = memory[1:].view(a.dtype).reshape(a.shape)
    found[...] = a
    assert not found.flags.aligned
    return found


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


LAYOUTS = {
    "read-only": read_only,
    "fortran": np.asfortranarray,
    "backwards": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "every other": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "little-endian": lambda a: a.astype(a.dtype.newbyteorder("<")),
    "unaligned": unaligned,
    "half": lambda a: a.astype("float16"),
    "list": lambda a: a.tolist(),
    "tuple of rows": tuple,
    "matrix": lambda a: a.view(np.matrix),
    "memory": memoryview,
}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_changes_no_bit(layout, backend):
    x = sg.placeholder("x", ("N", 4), "float32")
    w = sg.constant(RNG.standard_normal((4, 3)).astype("float32"))
    outputs = [sg.tanh(x @ w), sg.sum(sg.exp(x)), x[::-1], select(x > 0, x), x.T + 1]
    program = sg.compile(x, outputs, backend=backend)
    data = X.astype("float16").astype("float32")
    expected = program(data.copy())
    fed = LAYOUTS[layout](data)
    for a, b in zip(program(fed), expected, strict=True):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    np.testing.assert_array_equal(np.asarray(fed, "float32"), data)


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_kernels_are_given_plain_arrays(backend):
    """Native, aligned and in C order: other layouts may take another loop, and round otherwise."""

    def kernel(a, out=None):
        flags = a.flags
        seen.append((flags.c_contiguous, flags.aligned, a.dtype.isnative, type(a)))
        return np.copyto(out, a)

    seen = []
    watch = Op.of(name="watch", infer=lambda t: t, kernel=kernel, out=True)
    x = sg.placeholder("x", ("N", 4), "float32")
    program = sg.compile(x, apply(watch, [x]), backend=backend)
    for layout in ("fortran", "backwards", "big-endian", "unaligned", "half", "memory"):
        program(LAYOUTS[layout](X))
    assert set(seen) == {(True, True, True, np.ndarray)}


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_outputs_share_no_memory(backend):
    x = sg.placeholder("x", (3, 3))
    w = sg.variable("w", np.arange(9.0).reshape(3, 3))
    k = sg.constant(np.arange(9.0).reshape(3, 3))
    y = sg.exp(x)
    outputs = [x, x.T, w, w[1:], k, k.T, y, y, y.T, y[0], sg.reshape(y, 9), x[0, 0], w[1, 1]]
    program = sg.compile(x, outputs, updates={w: w + 1}, backend=backend)
    a = np.ones((3, 3))
    first = program(a)
    arrays = [r for r in first if r.ndim]
    storage = [a, w.cell.array, k.attrs[0][1].array, *program.store.spares]
    storage += [m for ready in program.executables.used for work in ready.free for m in work]
    for i, r in enumerate(arrays):
        assert r.flags.writeable
        for other in [*storage, *arrays[:i]]:
            assert not np.shares_memory(r, other)
    kept = [r.tobytes() for r in first]
    a[:] = 7
    program(a)
    assert [r.tobytes() for r in first] == kept, "a later call changed what an earlier one gave"
    for r in arrays:
        r[...] = -1
    w.value = np.arange(9.0).reshape(3, 3)
    again = program(np.ones((3, 3)))
    assert [r.tobytes() for r in again] == kept, "a caller's change came back"


def test_results_of_no_dimensions_are_numpy_scalars():
    x = sg.placeholder("x", (), "float32")
    v = sg.variable("v", np.float32(2))
    outputs = [x, v, sg.constant(np.float32(3)), x * v, sg.where(x > 0, x, v), x > 0]
    for backend in ("numpy", "reference"):
        program = sg.compile(x, outputs, updates={v: v * x}, backend=backend)
        v.value = np.float32(2)
        for fed in (3.0, np.float32(3), np.array(3, "float32"), np.array(3, ">f4")):
            v.value = np.float32(2)
            found = program(fed)
            assert [type(r) for r in found] == [np.float32] * 5 + [np.bool]
            assert [float(r) for r in found] == [3, 2, 3, 6, 3, 1]
            assert v.value == 6


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_empty_arrays(backend):
    x = sg.placeholder("x", ("N", 3), "float32")
    w = sg.variable("w", np.ones((3, 2), "float32"))
    y = sg.relu(x @ w)
    loss = sg.sum(y * y)
    program = sg.compile(x, [loss, y, sg.grad(loss, w), sg.sum(x, axis=0)], backend=backend)
    found = program(np.ones((0, 3), "float32"))
    assert [r.shape for r in found] == [(), (0, 2), (3, 2), (3,)]
    assert not any(np.any(r) for r in found)
    none = sg.compile(sg.placeholder("x", (2, 0)), [sg.constant(np.ones((0, 3)))], backend=backend)
    assert none(np.ones((2, 0)))[0].shape == (0, 3)

"""Random graphs as machine code beside NumPy: `python -m tests.native.campaign --count 5000`.

    python -m tests.native.campaign --first 0 --count 500    # 3 minutes or so
    python -m tests.native.campaign --only 4711              # one graph again, with its traceback
    python -m tests.native.campaign --small                  # whole small programs instead
    python -m tests.native.campaign --channels               # images of few channels instead
    python -m tests.native.campaign --placed                 # parts placed in arrays instead
    python -m tests.native.campaign --axes                   # reductions over any axes instead
    python -m tests.native.campaign --gates                  # slices of one sum instead

A third of the graphs are those of `symgrad.testing`, with gradients, at every grade. A third are
elementwise graphs of everything that has a native form, over all dtypes and rows of any length,
whose bits must be NumPy's. The others reduce rows, and read what they gave.
"""

import random
from contextlib import contextmanager

import numpy as np

import symgrad as sg
from symgrad.ir.node import apply
from symgrad.ir.op import REGISTRY
from symgrad.lowering import native as shared
from symgrad.lowering import tiling
from symgrad.native import groups, streams
from symgrad.native.engine import host
from symgrad.native.operations import operation
from symgrad.ops.cumulative import products_before, running_extremum, running_sum
from symgrad.passes import DEFAULT
from symgrad.runtime import native
from symgrad.testing import random_feeds, random_graph
from symgrad.testing.equality import assert_computes
from symgrad.testing.graphs import of_all_sizes, special_values
from tests.helpers import campaign
from tests.native.checks import assert_same_bits

GRADES = ("bits", "values", "rounding")
DTYPES = ("float32", "float64", "int8", "int16", "int32", "int64")
DTYPES += ("uint8", "uint16", "uint32", "uint64", "bool")


@contextmanager
def everything(block=None, tile=None, streamed=False):
    """Whatever can run as machine code does so, however small; in blocks and tiles of so many."""
    places = [(native, "LEAST_BYTES", 0), (groups.Group, "pays", lambda *_: True)]
    places.append((shared, "LEAST_WOKEN", 0))
    if block is not None:
        places += [(groups, name, block) for name in ("BLOCK", "COLUMN_BLOCK")]
        places += [(groups, "GRAIN", min(block, 1024))]
        places += [(groups, "PER_PART", 0)]
    if streamed:
        places += [(streams, "LEAST_BYTES", 0)]
    if tile is not None:
        places += [(tiling, "LEAST_BYTES", 0), (tiling, "TILE_BYTES", tile)]
    before = [(where, name, getattr(where, name)) for where, name, _ in places]
    try:
        for where, name, value in places:
            setattr(where, name, value)
        yield
    finally:
        for where, name, value in before:
            setattr(where, name, value)


def some_graph(seed):
    """A graph of `symgrad.testing`, with the gradients of its loss."""
    rng = np.random.default_rng([seed, 17])
    inputs, outputs = random_graph(rng, int(rng.integers(5, 40)))
    wrt = [x for x in inputs if x.dtype.kind == "f"]
    outputs = [*outputs, *sg.grad(outputs[0], wrt, disconnected="zero")] if wrt else outputs
    return inputs, outputs, rng


def check_graph(seed):
    """A graph at one grade, with ordinary values and special ones, also in tiles."""
    inputs, outputs, rng = some_graph(seed)
    grade = sg.Exact.of(GRADES[seed % 3])
    with everything(tile=200 if seed % 3 == 0 else None):
        program = sg.compile(inputs, outputs, exact=grade, backend=None)
        for special in (False, True):
            assert_computes(program, random_feeds(rng, inputs, special), grade)


def exact_ops():
    """The ops whose machine code has NumPy's bits."""
    found = [op for op in REGISTRY.every().values() if op.elementwise and operation(op) is not None]
    return [op for op in found if operation(op).exact and not op.cast]


def random_group(rng, pick, shape=None, leaf=sg.placeholder):
    """Placeholders that broadcast to one shape, and results of ops on them that are exact."""
    if shape is None:
        ndim = int(rng.integers(1, 4))
        shape = tuple(int(rng.integers(1, [201, 30, 9][ndim - 1])) for _ in range(ndim - 1))
        shape += (int(rng.integers(1, 201)),)
    ndim = len(shape)
    first, second = pick(DTYPES), pick(DTYPES)
    inputs = []
    for i in range(int(rng.integers(2, 6))):
        own = tuple(1 if rng.random() < 0.2 else s for s in shape)
        own = (shape, shape, own, own[int(rng.integers(ndim + 1)) :])[int(rng.integers(4))]
        dtype = (first, first, second, pick(DTYPES))[int(rng.integers(4))]
        inputs.append(leaf(f"x{i}", own, dtype))
    pool, ops = made_before(rng, inputs), exact_ops()
    while len(pool) < len(inputs) + int(rng.integers(3, 25)):
        like = pick(pool[-6:])
        if rng.random() < 0.15:
            pool.append(sg.astype(like, pick(DTYPES)))
            continue
        op = pick(ops)
        fitting = [n for n in pool if n.dtype == like.dtype]
        operands = [like, *(pick(fitting) for _ in range(len(op.operands) - 1))]
        if rng.random() < 0.2 and len(operands) > 1:
            operands[-1] = sg.constant(np.asarray(pick((0, 1, 2, 3)), like.dtype))
        masks = [n for n in pool if n.dtype == bool]
        if op.name in ("where", "select") and masks:
            operands[0] = pick(masks)
        attrs = {"slope": pick((0.0, 0.01, 1.0, 3.0, -2.0))} if op.name == "leaky_relu" else {}
        try:
            pool.append(apply(op, operands, attrs))
        except (sg.SymgradError, ValueError, TypeError):
            continue
    made = pool[len(inputs) :]
    read = {x for n in made for x in n.inputs}
    return inputs, [n for n in made if n not in read][-4:]


def values(rng, x):
    """An array of numbers of any size, with special ones, laid out in one of several ways."""
    made = of_all_sizes(rng, x.shape, x.dtype, None if rng.random() < 0.3 else 5)
    if rng.random() < 0.5:
        odd = rng.random(x.shape) < 0.3
        made = np.where(odd, rng.choice(special_values(x.dtype), x.shape), made)
    with np.errstate(all="ignore"):
        array = np.asarray(np.asarray(made).astype(x.dtype))
    how = int(rng.integers(6))
    if how == 1 and array.ndim:
        return np.asfortranarray(array)
    if how == 2 and array.ndim:
        wide = np.repeat(array, 2, axis=-1)
        return wide[..., ::2]
    if how == 3 and array.ndim:
        return array[::-1].copy()[::-1]
    if how == 4:
        content = b"?" + array.tobytes()
        return np.frombuffer(content, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    if how == 5:
        return array.astype(x.dtype.newbyteorder())
    return array


def check_group(seed):
    """A group in machine code, on one thread and on two, to the bit."""
    rng, pick = np.random.default_rng([seed, 18]), random.Random(seed).choice
    inputs, outputs = random_group(rng, pick)
    with everything(block=pick((64, 100, 8192)), streamed=seed % 2):
        plain = sg.compile(inputs, outputs, exact="bits")
        programs = [
            sg.compile(inputs, outputs, exact="bits", backend="native", threads=n) for n in (1, 2)
        ]
        for _ in range(2):
            arrays = [values(rng, x) for x in inputs]
            kept = [a.tobytes() for a in arrays]
            expected = plain(*arrays)
            for program in programs:
                for a, b in zip(program(*arrays), expected, strict=True):
                    assert_same_bits(np.asarray(a), np.asarray(b))
            assert kept == [a.tobytes() for a in arrays]
    return len(programs[0].native)


def made_before(rng, inputs):
    """The inputs, or what a step before makes of them, which may be written over; also as views."""

    def made(x):
        how = rng.random()
        if not x.ndim or how < 0.2:
            return x
        first = sg.roll(x, 1, axis=-1)
        if how < 0.6:
            return first
        if how < 0.7:
            return sg.flip(first if how < 0.65 else x, axis=int(rng.integers(x.ndim)))
        if how < 0.8:
            return sg.concat([first, x], axis=-1)[..., :: 2 if how < 0.75 else 1][
                ..., -x.shape[-1] :
            ]
        if how < 0.9:
            of = first[:1] if how < 0.85 else first[..., :1]
            return sg.broadcast_to(of, x.shape)
        return sg.concat([first, x], axis=0)[::-2] if x.ndim > 1 else first

    return [made(x) for x in inputs]


def along_rows(rng, pick, x, given):
    """A running sum, product or extremum, or what is done with one element of each row.

    Its place is that of an extremum of what is `given`, not of what is rounded.
    """
    rows = x.shape[0]
    how = int(rng.integers(4))
    if how == 0:
        return running_sum(x, axis=1, reverse=bool(rng.integers(2)))
    if how == 1:
        return running_extremum(x, axis=1, largest=bool(rng.integers(2)))
    if how == 2:
        factors = sg.clip(x, -1, 1)
        return products_before(factors, axis=1, reverse=bool(rng.integers(2)))
    index = pick((sg.argmax, sg.argmin))(given, axis=1)
    picked = sg.take_along_axis(x, index[:, None], axis=1)
    return x.at[sg.arange(rows), index].add(picked[:, 0]) if rng.random() < 0.5 else x - picked


def random_rows(rng, pick):
    """Functions of rows and of their sums and extrema, and reductions over the rows in the end."""
    rows, columns = int(rng.integers(2, 60)), int(rng.integers(2, 201))
    dtype = pick(("float32", "float32", "float64", "int32", "uint8"))
    shapes = ((rows, columns), (rows, columns), (columns,), (rows, 1), ())
    inputs = [sg.placeholder(f"x{i}", pick(shapes) if i else shapes[0], dtype) for i in range(4)]
    pool = made_before(rng, inputs)
    floats = (sg.exp, sg.tanh, sg.sqrt, sg.abs, sg.sigmoid, sg.sin, sg.log1p, sg.reciprocal)
    for _ in range(int(rng.integers(3, 16))):
        x, y = pick(pool[-5:]), pick(pool)
        if rng.random() < 0.25 and x.shape == shapes[0]:
            y = pick((sg.sum, sg.max, sg.min))(x, axis=1, keepdims=True)
            pool.append(sg.astype(y, x.dtype))
        elif rng.random() < 0.25 and x.shape == shapes[0]:
            pool.append(along_rows(rng, pick, x, inputs[0]))
        elif rng.random() < 0.4 and x.dtype.kind == "f":
            pool.append(pick(floats)(x))
        else:
            z = pick((sg.add, sg.subtract, sg.multiply, sg.maximum))(x, y)
            pool.append(sg.where(x > y, x, z) if rng.random() < 0.2 else z)
    read = {x for n in pool for x in n.inputs}
    ends = [n for n in pool[len(inputs) :] if n not in read][-2:]
    last = pick([n for n in pool if n.shape == shapes[0]])
    how = ({"axis": 0}, {"axis": 1}, {}, {"axis": 0, "keepdims": True})
    ends += [pick((sg.sum, sg.max, sg.min))(last, **pick(how)) for _ in range(2)]
    return inputs, ends


def random_axes(rng, pick):
    """Functions of an array of some axes, of its means over some, and reductions over others."""
    shape = tuple(int(rng.integers(1, most)) for most in pick(((9, 9, 80), (5, 5, 9, 20))))
    dtype = pick(("float32", "float32", "float64", "int32"))

    def of_some():
        return tuple(s if rng.random() < 0.5 else 1 for s in shape)

    pool = [sg.placeholder("x0", shape, dtype), sg.placeholder("x1", shape, dtype)]
    pool += [sg.placeholder(f"x{i}", of_some(), dtype) for i in (2, 3)]
    inputs = list(pool)
    for _ in range(int(rng.integers(2, 9))):
        op = pick((sg.add, sg.subtract, sg.multiply, sg.maximum))
        pool.append(op(pick(pool[-4:]), pick(pool)))
        if rng.random() < 0.2:
            pool.append(pool[-1] - sg.max(pool[-1], axis=random_some(rng, shape), keepdims=True))
    outputs = []
    for _ in range(4):
        of, reduce = pick([*pool[-3:], pool[0]]), pick((sg.sum, sg.sum, sg.max, sg.min))
        keeps = bool(rng.integers(2))
        outputs.append(reduce(of, axis=random_some(rng, shape), keepdims=keeps))
    return inputs, [*outputs, pool[-1]]


def random_some(rng, shape):
    """Some of the axes of a shape, one at least."""
    found = tuple(map(int, np.flatnonzero(rng.random(len(shape)) < 0.5)))
    return found or (int(rng.integers(len(shape))),)


def check_axes(seed):
    """The same of arrays of several axes."""
    check_rows(seed, random_axes)


def check_rows(seed, made=random_rows):
    """A group with reductions at `rounding`; on two threads it has the bits of one."""
    rng, pick = np.random.default_rng([seed, 19]), random.Random(seed).choice
    inputs, outputs = made(rng, pick)
    passes = [p for p in DEFAULT if p.name == "fusion"]
    with everything(block=pick((64, 100, 8192)), streamed=seed % 2):
        programs = [
            sg.compile(inputs, outputs, passes=passes, backend="native", threads=n)
            for n in (None, 1, 2)
        ]
        for special in (False, True):
            arrays = random_feeds(rng, inputs, special)
            assert_computes(programs[0], arrays, sg.Exact.ROUNDING)
            for a, b in zip(*(program(*arrays) for program in programs[1:]), strict=True):
                assert_same_bits(np.asarray(a), np.asarray(b))


def small_sums(x, y):
    """Products, sums, extrema and what moves about, of two arrays of one shape and dtype."""
    found = [
        sg.max(x),
        sg.min(x, axis=0),
        sg.sum(x, axis=-1),
        sg.cumulative_sum(y),
        sg.vecdot(x, y),
    ]
    found += [
        sg.sum(x * y),
        sg.max(x, axis=-1, keepdims=True),
        sg.flip(x, axis=0),
        sg.stack([x, y]),
    ]
    found += [sg.sum(x != y, axis=0, dtype=x.dtype), x.at[1:].set(y[1:])]
    found += [x.at[:-1].add(y[1:])] if x.dtype != bool else []
    if x.ndim > 1:
        found += [x @ y.T, x.T @ x, sg.min(x == y, axis=1), x.T.reshape(-1)]
    return found


def check_sums(seed):
    """Reductions of small arrays and their like: exact ones to the bit, others to the grade."""
    rng, pick = np.random.default_rng([seed, 21]), random.Random(seed).choice
    shape = pick([(2,), (7,), (64,), (2, 2), (3, 5), (8, 8), (1, 9), (2, 3)])
    dtype = pick(DTYPES)
    inputs = [sg.placeholder(name, shape, dtype) for name in ("x", "y")]
    x, y = inputs
    outputs = []
    while len(outputs) < 4:
        made = pick(small_sums(x, y))
        outputs.append(made)
        if made.shape == shape and made.dtype == x.dtype and rng.random() < 0.5:
            x, y = pick([(made, x), (y, made), (made, made)])
    program = sg.compile(inputs, outputs, backend="native")
    plain = sg.compile(inputs, outputs, backend="reference", passes=())
    for _ in range(3):
        arrays = [values(rng, p) for p in inputs]
        if x.dtype.kind == "f":
            arrays = random_feeds(rng, inputs, bool(rng.random() < 0.5))
            assert_computes(program, arrays, sg.Exact.ROUNDING)
            continue
        for a, b in zip(program(*arrays), plain(*arrays), strict=True):
            assert_same_bits(np.asarray(a), np.asarray(b))
    return len(program.native)


def check_updates(seed):
    """A small program that changes its variables, several times: to the bit."""
    rng, pick = np.random.default_rng([seed, 20]), random.Random(seed).choice
    shape = tuple(int(rng.integers(1, 5)) for _ in range(int(rng.integers(0, 4))))

    def leaf(name, shape, dtype):
        if name == "x0":
            return sg.placeholder(name, shape, dtype)
        return sg.variable(name, np.zeros(shape, dtype))

    (x, *held), outputs = random_group(rng, pick, shape, leaf)
    nexts = {}
    for v in held:
        fits = [n for n in (*held, *outputs) if (n.shape, n.dtype) == (v.shape, v.dtype)]
        nexts[v] = pick(fits)
    first, given = [values(rng, v) for v in held], [values(rng, x) for _ in range(4)]
    found = []
    for backend in ("native", "numpy"):
        program = sg.compile([x], outputs, updates=nexts, exact="bits", backend=backend)
        for v, a in zip(held, first, strict=True):
            v.value = np.array(a, v.dtype)
        results = [np.array(a) for x in given for a in program(x)]
        found.append(results + [v.value for v in held])
    for a, b in zip(*found, strict=True):
        assert_same_bits(np.asarray(a), np.asarray(b))


def check_channels(seed):
    """Images of few channels, mirrored or not, with gains that broadcast: to the bit."""
    rng = np.random.default_rng([seed, 77])
    shape = tuple(int(rng.integers(1, most)) for most in (5, 8, 30, 18))
    dtype = str(rng.choice(["uint8", "int16", "int32", "float32", "float64"]))
    inputs = [sg.placeholder(f"x{i}", shape, dtype) for i in range(2)]
    for i in range(3):
        own = tuple(s if rng.random() < 0.5 else 1 for s in shape)[int(rng.integers(3)) :]
        inputs.append(sg.placeholder(f"gain{i}", own, dtype))
    axes = tuple(map(int, np.flatnonzero(rng.random(4) < 0.4)))
    pool = [sg.flip(inputs[0], axis=axes) if axes else inputs[0], *inputs[1:]]
    if seed % 4 == 3:
        pool[2] = sg.broadcast_to(sg.roll(inputs[2], 1, axis=0), shape)
    ops = (sg.add, sg.multiply, sg.subtract, sg.maximum, sg.minimum)
    for _ in range(int(rng.integers(2, 9))):
        op, other = ops[int(rng.integers(5))], pool[int(rng.integers(len(pool)))]
        pool.append(op(other, pool[-int(rng.integers(1, 4))]))
        if np.dtype(dtype).kind in "iu" and rng.random() < 0.2:
            pool.append(pool[-1] // np.array(rng.integers(1, 100), dtype))
    outputs = [pool[-1] + pool[0], pool[-2] * inputs[1]]
    with everything(streamed=seed % 2):
        program, plain = (
            sg.compile(inputs, outputs, exact="bits", backend=backend, threads=1 + seed % 2)
            for backend in ("native", "numpy")
        )
        for _ in range(2):
            arrays = [values(rng, x) for x in inputs]
            for a, b in zip(program(*arrays), plain(*arrays), strict=True):
                assert_same_bits(np.asarray(a), np.asarray(b))


def check_small(seed):
    """A small program, which is one function."""
    return (check_sums, check_updates)[seed % 2](seed // 2)


def check(seed):
    """One graph of a campaign."""
    return (check_group, check_graph, check_rows)[seed % 3](seed // 3)


if __name__ == "__main__":
    from tests.native.gates import check_gates
    from tests.native.placed import check_placed

    host().store = None  # the user's, which these graphs would fill
    campaign(
        "tests.native.campaign",
        __doc__,
        check,
        small=check_small,
        channels=check_channels,
        axes=check_axes,
        placed=check_placed,
        gates=check_gates,
    )

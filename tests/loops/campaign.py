"""Random loops beside the same graphs unrolled: `python -m tests.loops.campaign --count 500`.

Bodies of random ops with scans, while loops and choices inside; their values, gradients, both
modes, batches, saved and loaded again, in stretches, at all grades and in all backends.
"""

import random
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

import symgrad as sg
from symgrad.ir.evaluate import evaluate
from symgrad.lowering import rows
from symgrad.passes import in_stretches
from tests.helpers import campaign

GRADES = ("bits", "values", "rounding", "reals")
DTYPES = ("float32", "float64", "complex128")
LENGTHS = (0, 1, 2, 7)
BATCH = 3
MOST = 4  # steps of a while loop


class Loops(NamedTuple):
    """How loops and choices are written: as such, or with neither."""

    scan: object
    while_loop: object
    cond: object


def unrolled_scan(step, init, xs=None, length=None, reverse=False):
    """The steps of a scan one after the other."""
    count = xs.shape[0] if length is None else length
    carry, ys = init, [None] * count
    for t in range(count)[:: -1 if reverse else 1]:
        carry, ys[t] = step(carry, None if xs is None else xs[t])
    if not ys:
        shapes = sg.scan(step, init, xs, length)[1]
        return carry, tuple(sg.zeros(y.shape, dtype=y.dtype) for y in shapes)
    return carry, tuple(map(sg.stack, zip(*ys, strict=True)))


def masked_while(test, step, init):
    """As many steps as there may be, of which those after the last change nothing."""
    carry = init
    for _ in range(MOST):
        on, after = test(carry), step(carry)
        carry = tuple(sg.where(on, a, b) for a, b in zip(after, carry, strict=True))
    return carry


def selected(p, f, g):
    """Both sides, of which one is selected."""
    return tuple(sg.where(p, a, b) for a, b in zip(f(), g(), strict=True))


AS_LOOPS = Loops(sg.scan, sg.while_loop, sg.cond)
WITHOUT = Loops(unrolled_scan, masked_while, selected)


def real(x):
    return sg.real(x) if x.dtype.kind == "c" else x


def fitted(x, shape):
    """A value made of another, of this shape."""
    while x.ndim > len(shape):
        x = sg.sum(x, axis=0)
    for axis, (a, b) in enumerate(zip(x.shape[::-1], shape[::-1], strict=False)):
        if a != b and a != 1:
            x = sg.sum(x, axis=-1 - axis, keepdims=True)
    return x if x.shape == shape else sg.broadcast_to(x, shape)


def mixed(pick, pool, count, depth, loops):
    """More nodes made of those of a pool, with loops inside as deep as this; the new ones."""
    pool, made = list(pool), []
    for _ in range(count):
        x, y = pick(pool), pick(pool)
        both = x, fitted(y, x.shape)
        kinds = ["tanh", "sin", "half", "add", "multiply", "sum", "flip", "matmul", "where", "part"]
        kind = pick(kinds + ["scan", "scan", "while", "cond"] * (depth > 0))
        match kind:
            case "tanh" | "sin":
                z = getattr(sg, kind)(real(x) + 0.3) * fitted(y, x.shape) * 0.5
            case "half":
                z = x * 0.5 - 0.25
            case "add" | "multiply":
                z = getattr(sg, kind)(*both) * 0.7
            case "sum":
                z = (
                    sg.sum(
                        x, axis=pick([None, -1]) if x.ndim else None, keepdims=pick([True, False])
                    )
                    * 0.3
                )
            case "flip":
                z = sg.flip(x) if x.ndim else -x
            case "matmul":
                z = fitted(x, (2, 3)) @ fitted(y, (3, 3)) * 0.3
            case "where":
                z = sg.where(real(both[0]) > real(both[1]), both[1] * 0.9, both[0])
            case "part":
                z = sg.concat([x[..., 1:], x[..., :1] * 0.5], axis=-1) if x.ndim else x * x * 0.4
            case "scan":
                z = inner_scan(pick, x, y, depth, loops)
            case "while":
                z = inner_while(pick, x, y, depth, loops)
            case _:
                z = inner_cond(pick, x, pool, loops)
        pool.append(z)
        made.append(z)
    return made


def last(made):
    """The last one, in bounds."""
    return made[-1] / (1 + abs(made[-1]) * 0.5) if made[-1].dtype.kind != "c" else made[-1] * 0.5


def inner_scan(pick, x, y, depth, loops):
    """The last carry or a stack of a scan over the rows of a value, or over nothing."""
    seed, reverse = pick(range(10**6)), pick([False, True])
    xs = fitted(y, (2, 3)) if pick([True, True, False]) else None

    def step(carry, row):
        choice = random.Random(seed).choice
        pool = [carry, y] if row is None else [carry, row, y]
        z = last(mixed(choice, pool, 2, depth - 1, loops))
        return fitted(z, x.shape), (z,)

    end, (stack,) = loops.scan(step, x, xs, 2 if xs is None else None, reverse=reverse)
    return end if pick([True, False]) else sg.sum(stack, axis=0) * 0.5


def inner_cond(pick, x, pool, loops):
    """One of two functions of the pool."""
    choices = [random.Random(pick(range(10**6))).choice for _ in range(2)]

    def side(choice):
        return lambda: (fitted(last(mixed(choice, pool, 2, 0, loops)), x.shape),)

    return loops.cond(real(sg.sum(x)) > 0.1, *map(side, choices))[0]


def inner_while(pick, x, y, depth, loops):
    """What is carried by a while loop whose steps depend on the data."""
    seed, bound = pick(range(10**6)), pick([0.5, 1.5, 2.5])
    bound = bound + sg.where(real(sg.sum(y)) > 0, 0.0, 0.6)

    def step(carry):
        count, z = carry
        made = mixed(random.Random(seed).choice, [z, y], 2, depth - 1, loops)
        return count + 1, fitted(last(made), z.shape)

    zero = sg.zeros((), dtype=real(x).dtype)
    return loops.while_loop(lambda c: c[0] < bound, step, (zero, x))[1]


class Drawn:
    """A random loop, and the graph that computes the same without."""

    def __init__(self, seed):
        rng = random.Random(seed)
        self.pick, self.seed = rng.choice, rng.randrange(10**9)
        self.dtype, self.length = self.pick(DTYPES), self.pick(LENGTHS)
        self.named, self.reverse = self.pick([True, False]), self.pick([True, False])
        self.shapes = [self.pick([(), (3,), (2, 3)]) for _ in range(self.pick([1, 2]))]
        self.row = self.pick([(), (3,), (2, 3)])
        self.depth, self.keep = self.pick([0, 1, 1, 2]), self.pick([None, "all", "sqrt", 1, 3])
        self.inits = [sg.placeholder(f"h{i}", s, self.dtype) for i, s in enumerate(self.shapes)]
        self.w = sg.placeholder("w", (3, 3), self.dtype)
        values = np.random.default_rng(seed)

        def value(shape):
            parts = values.uniform(-1, 1, (2, *shape))
            made = parts[0] + 1j * parts[1] if self.dtype == "complex128" else parts[0]
            return np.asarray(made, self.dtype)

        self.value = value
        self.arrays = [value(n.shape) for n in (*self.inits, self.w)]
        self.arrays.append(value((self.length, *self.row)))

    def inputs(self, named):
        length = "T" if named else self.length
        return [*self.inits, self.w, sg.placeholder("x", (length, *self.row), self.dtype)]

    def outputs(self, inputs, loops):
        """The last carries, and the stacks, some of which give their last row alone."""
        *inits, w, x = inputs
        seed = self.seed

        def step(carry, row):
            choice = random.Random(seed).choice
            made = mixed(choice, [*carry, row, w], choice([2, 4, 6]), self.depth, loops)
            free = mixed(choice, [row, w], 2, 0, loops)
            nexts = tuple(self.after(choice, c, made, free) for c in carry)
            late = mixed(choice, [*nexts, row], 2, 0, loops)
            return nexts, (made[-1], choice([*made, *carry, *nexts, *free, *late]))

        known = loops is AS_LOOPS and isinstance(x.shape[0], int)
        options = {"keep": self.keep} if known else {}
        ends, stacks = loops.scan(step, tuple(inits), x, reverse=self.reverse, **options)
        choice = random.Random(seed + 1).choice
        if self.length and choice([True, False]):
            stacks = (stacks[0], stacks[1][0 if self.reverse else -1])
        return [*ends, *stacks]

    def after(self, choice, carry, made, free):
        """The next carry: something new, or a sum or a recurrence of what depends on no carry."""
        new, term, factor = (fitted(choice(xs), carry.shape) for xs in (made, free, free))
        return choice([last([new]), last([new]), carry + term * 0.3, carry * factor * 0.5 + term])

    def all_of(self, named, loops, second):
        """The inputs, and values with their derivatives in both modes."""
        inputs = self.inputs(named)
        ys = self.outputs(inputs, loops)
        loss = sum(sg.sum(sg.sin(real(y)) + (sg.imag(y) if y.dtype.kind == "c" else 0)) for y in ys)
        grads = sg.grad(loss, inputs, disconnected="zero")
        moved = sg.jvp(ys, inputs, [x * 0.3 + 0.5 for x in inputs], disconnected="zero")
        more = []
        if second:
            size = sum(sg.sum(real(g) ** 2) for g in grads)
            more = sg.grad(size, inputs[:-2] if second == 1 else inputs, disconnected="zero")
        return inputs, [*ys, *grads, *moved, *more]


def assert_close(found, expected, tolerance):
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    scale = max(1.0, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


@contextmanager
def rows_over_rows():
    """However small stacks are, they may lie in the memory of others."""
    before, rows.LEAST = rows.LEAST, 0
    try:
        yield
    finally:
        rows.LEAST = before


def check(seed):
    """One random loop in one of the ways to run it, beside the graph without loops."""
    one = Drawn(seed)
    pick = one.pick
    second = pick([0, 0, 0, 1, 2]) if one.depth < 2 else 0
    tolerance = {"float32": 2e-3, "float64": 1e-8, "complex128": 1e-8}[one.dtype]
    inputs, plain = one.all_of(False, WITHOUT, second)
    expected = evaluate(plain, dict(zip(inputs, one.arrays, strict=True)))
    inputs, outputs = one.all_of(one.named, AS_LOOPS, second)
    options = {"exact": pick(GRADES), "backend": pick(["numpy", "numpy", "reference", None])}
    if not one.named and pick([True, False, False]):
        options["passes"] = in_stretches(pick([2, 3]), deep=pick([True, False]))
    if pick([True, False, False]):
        graph = saved_and_loaded(sg.Graph(outputs, inputs))
        inputs, outputs = graph.inputs, graph.outputs
    with rows_over_rows():
        found = sg.compile([*inputs], [*outputs], **options)(*one.arrays)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, tolerance)
    if pick([True, False]):
        check_batch(one, tolerance, options | {"passes": None})


def saved_and_loaded(graph):
    with TemporaryDirectory() as folder:
        return sg.Graph.load(graph.save(Path(folder) / "graph.json"))


def check_batch(one, tolerance, options):
    """The values and gradients of a batch, of which some inputs have no axis for it."""
    inputs = one.inputs(False)
    flags = [one.pick([True, False]) for _ in inputs]
    flags[0] = True

    def f(*rows):
        rows = iter(rows)
        given = [next(rows) if flag else x for x, flag in zip(inputs, flags, strict=True)]
        ys = one.outputs(given, AS_LOOPS)
        return [*ys, *sg.grad(sum(sg.sum(real(y)) for y in ys), [*given], disconnected="zero")]

    many = [sg.placeholder(x.name, (BATCH, *x.shape), x.dtype) if flag else x
            for x, flag in zip(inputs, flags, strict=True)]  # fmt: skip
    outputs = sg.vmap(f)(*(x for x, flag in zip(many, flags, strict=True) if flag))
    arrays = [np.stack([a, one.value(a.shape), a * 0.5]) if flag else a
              for a, flag in zip(one.arrays, flags, strict=True)]  # fmt: skip
    with rows_over_rows():
        found = sg.compile(many, [*outputs], **options)(*arrays)
    ys = one.outputs(inputs, WITHOUT)
    grads = sg.grad(sum(sg.sum(real(y)) for y in ys), inputs, disconnected="zero")
    for i in range(BATCH):
        given = [a[i] if flag else a for a, flag in zip(arrays, flags, strict=True)]
        expected = evaluate([*ys, *grads], dict(zip(inputs, given, strict=True)))
        for a, b in zip(found, expected, strict=True):
            assert_close(a[i], b, tolerance)


if __name__ == "__main__":
    campaign("tests.loops.campaign", __doc__, check)

"""Random graphs of parts that are placed in arrays, as machine code beside NumPy."""

import random

import numpy as np

import symgrad as sg
from symgrad.ops.index.slices import place, put
from tests.native import campaign
from tests.native.checks import assert_same_bits


def random_index(rng, shape):
    """Slices that take a part along each axis, or all of it, now and then every other element."""
    found = []
    for n in shape:
        first, last = sorted(map(int, rng.integers(0, n + 1, 2)))
        last = max(last, first + 1) if first < n else n
        how = rng.random()
        found.append((0, n, 1) if how < 0.4 or first == last else (first, last, 1 + (how > 0.97)))
    return tuple(found)


def check_placed(seed):
    """Parts that are placed in arrays, added there or set, amid what reads them: to the bit."""
    rng, pick = np.random.default_rng([seed, 23]), random.Random(seed).choice
    shape = tuple(int(rng.integers(1, most)) for most in pick(((200,), (12, 70), (5, 7, 40))))
    dtype = pick(("float32", "float32", "float64", "int32", "uint8", "int16", "int64"))
    inputs = [sg.placeholder(f"x{i}", shape, dtype) for i in range(2)]
    inputs.append(sg.placeholder("gain", tuple(pick((1, s)) for s in shape), dtype))
    pool = campaign.made_before(rng, inputs)
    for i in range(int(rng.integers(3, 12))):
        if rng.random() < 0.4:
            op = pick((sg.add, sg.multiply, sg.maximum, sg.subtract))
            pool.append(op(pick(pool), pick([x for x in pool if x.shape == shape])))
            continue
        index = random_index(rng, shape)
        of = sg.zeros(shape, dtype=dtype)[tuple(slice(*i) for i in index)].shape
        u = sg.placeholder(f"u{i}", of, dtype)
        inputs.append(u)
        u = pick([u, u, sg.roll(u, 1, axis=-1), u * u, u])
        target = pick([x for x in pool[-4:] if x.shape == shape] or pool[:1])
        mode = pick(("add", "add", "set", ""))
        made = put(target, u, index=index, mode=mode) if mode else None
        pool.append(place(u, shape=shape, index=index) if made is None else made)
    outputs = [x for x in pool[-3:] if x.shape == shape] + [pool[-1] * pool[0]]
    with campaign.everything(block=pick((64, 8192)), streamed=seed % 2):
        program, plain = (
            sg.compile(inputs, outputs, exact="bits", backend=backend, threads=1 + seed % 2)
            for backend in ("native", "numpy")
        )
        for _ in range(2):
            arrays = [campaign.values(rng, x) for x in inputs]
            for a, b in zip(program(*arrays), plain(*arrays), strict=True):
                assert_same_bits(np.asarray(a), np.asarray(b))
    held = (step.computes for step in program.plan.steps if step.name == "native")
    return sum(n.op in (place.op, put.op) for nodes in held for n in nodes)

"""Random gates, which are slices of what is computed for all, as machine code beside NumPy."""

import random

import numpy as np

import symgrad as sg
from symgrad.testing import assert_equivalent
from tests.native import campaign

FUNCTIONS = (sg.sigmoid, sg.tanh, sg.relu, sg.exp, sg.abs)


def check_gates(seed):
    """Slices side by side of a sum of arrays and biases, and gradients through them."""
    rng, pick = np.random.default_rng([seed, 31]), random.Random(seed).choice
    count, size, rows = (int(n) for n in rng.integers([2, 1, 1], [5, 20, 40]))
    axis, dtype = pick((0, 1, 1)), pick(("float32", "float32", "float64"))
    shape = (rows, count * size) if axis else (count * size, rows)
    inputs = [sg.placeholder(f"x{i}", shape, dtype) for i in range(2)]
    inputs.append(sg.placeholder("b", tuple(pick((1, n)) for n in shape)[pick((0, 1)) :], dtype))
    z = inputs[0] + inputs[2]
    for _ in range(int(rng.integers(0, 4))):
        z = pick((lambda z: z * inputs[1], lambda z: z + inputs[2], pick(FUNCTIONS)))(z)
    # Now and then slices overlap, or leave something out.
    starts = [i * size - pick((0,) * 9 + (1,)) * (i > 0) for i in range(count)]
    parts = [z[:, s : s + size] if axis else z[s : s + size] for s in starts]
    y = parts[0]
    for part in parts[1 : count - pick((0, 0, 1))]:
        y = pick((sg.add, sg.multiply, sg.subtract))(pick(FUNCTIONS)(y), part)
    outputs = [y, sg.sum(y * y)] + [z] * (seed % 7 == 0)
    outputs += sg.grad(outputs[1], inputs[:3], disconnected="zero")
    with campaign.everything(block=pick((64, 8192))):
        arrays = [rng.uniform(-1, 1, p.shape).astype(dtype) for p in inputs]
        assert_equivalent(inputs, outputs, arrays, backend="native")

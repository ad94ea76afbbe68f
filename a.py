"""A program written by symgrad. It needs NumPy and nothing else.

    program = Program(w)
    results = program(x)

It is planned for N = 2.

Variables, which are copied when the program is made:
    w: float64[3]

Inputs, which are never written:
    x: float64[2, 3]

Results, which are the caller's:
    float64[()]  output
"""

import numpy as np
from numpy import matmul


def vdot(a, b):
    """The sum of the products of all elements; of many in parts, which rounds less than BLAS.

    So small that BLAS starts no threads for them, which in a block of rows is slow.
    """
    if a.size <= 8192 or a.dtype == np.float16:  # of which parts may overflow that cancel
        return np.vdot(a, b)
    x, y = a.reshape(-1), b.reshape(-1)
    parts = range(0, x.size, 8192)
    return np.add.reduce([np.vdot(x[i : i + 8192], y[i : i + 8192]) for i in parts])


def step(x, w, a):
    # a: float64[2, 1]
    matmul(x, w.reshape(3, 1), a)  # more.py:6 x@w
    s = vdot(a, a)  # more.py:6 sg.mean((x@w)**2)  sum_of_squares, dot_of_reshaped
    s1 = s / 2.0  # more.py:6 sg.mean((x@w)**2)
    return s1


def fitted(value, name, shape, dtype, within=None):
    """An argument as step takes it: a C-contiguous array of this shape and dtype."""
    if np.ma.isMaskedArray(value):
        raise ValueError(f"{name!r} is a masked array; fill it first: a.filled(0)")
    array = np.asarray(value)
    casting = "safe" if isinstance(value, (np.ndarray, np.generic)) else "same_kind"
    if array.shape != shape or not np.can_cast(array.dtype, dtype, casting):
        found = f"{array.dtype}{list(array.shape)}"
        raise ValueError(f"{name!r} must be {dtype}{list(shape)}, not {found}")
    with np.errstate(all="ignore"):
        made = np.require(array, dtype, ["C", "A"])
        ints = array.dtype.kind in "iu"
        back = made.real.astype(array.dtype) if ints else made
    lost = back != array if ints else np.isfinite(made) != np.isfinite(array)
    if lost.any():
        raise ValueError(f"{name!r} holds {array[lost].flat[0]}, which {dtype} cannot")
    if within is not None and not ((made >= within[0]) & (made <= within[1])).all():
        raise ValueError(f"{name!r} must lie within {within}")
    return made[()]


def workspace():
    """The arrays that step works in: 64 bytes."""
    memory = np.empty(128, np.uint8)
    arena = memory[-memory.ctypes.data % 64 :]
    return (
        arena[0:16].view("float64").reshape((2, 1)),  # a
    )


class Program:
    """The program with its variables; call it with the inputs."""

    def __init__(self, w):
        self.w = fitted(w, "w", (3,), "float64").copy()
        self.workspace = workspace()

    def __call__(self, x):
        x = fitted(x, "x", (2, 3), "float64")
        with np.errstate(all="ignore"):
            found = step(x, self.w, *self.workspace)
        return found

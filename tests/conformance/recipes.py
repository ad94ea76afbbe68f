"""How to call each function of the standard: arrays for it, and what to do with them.

A recipe is given hypothesis's `draw`, and returns arrays and a call, `call(f, xp, *arrays)`, that
does the same with any library: `f` is its function, `xp` its namespace.
"""

import math

import array_api_strict as strict
import numpy as np
from hypothesis import strategies as st

BY_KIND = {
    "b": ("bool",),
    "i": ("int8", "int16", "int32", "int64"),
    "u": ("uint8", "uint16", "uint32", "uint64"),
    "f": ("float32", "float64"),
    "c": ("complex64", "complex128"),
}
WHOLE = (0, 1, 2, 3, 5)
REAL = (-2.5, -1.0, -0.5, 0.0, 0.25, 1.0, 1.5, 3.0)


def one_of(*options):
    """A strategy: one of these."""
    return st.sampled_from(options)


def dtype_of(draw, kinds):
    """The name of a dtype of one of these kinds."""
    return draw(one_of(*(d for k in kinds for d in BY_KIND[k])))


def shape_of(draw, least=0, most=3, sizes=(0, 1, 2, 3)):
    """A small shape."""
    return tuple(draw(st.lists(one_of(*sizes), min_size=least, max_size=most)))


def array(draw, kinds, shape=None, dtype=None, low=-3):
    """A small array; integers are at least `low`."""
    dtype = np.dtype(dtype or dtype_of(draw, kinds))
    shape = shape_of(draw) if shape is None else shape
    size = math.prod(shape)
    low = max(low, 0) if dtype.kind == "u" else low
    known = {"b": (False, True), "i": range(low, 6), "u": range(low, 6)}.get(dtype.kind, REAL)

    def elements():
        """Drawn at once, as bytes: an element at a time took longer than what is tested."""
        drawn = draw(st.binary(min_size=size, max_size=size))
        return np.array([known[byte % len(known)] for byte in drawn], dtype).reshape(shape)

    return elements() + dtype.type(1j) * elements() if dtype.kind == "c" else elements()


def subshape(draw, shape):
    """A shape that broadcasts to another."""
    kept = shape[draw(st.integers(0, len(shape))) :]
    return tuple(draw(one_of(1, s)) for s in kept)


def axis_of(draw, ndim, none=True):
    """An axis, counted from either side."""
    axes = [*range(-ndim, ndim), *([None] if none else [])]
    return draw(one_of(*axes))


def axes_of(draw, ndim):
    """None, an axis, or several."""
    several = draw(st.lists(one_of(*range(ndim)), unique=True)) if ndim else []
    return draw(one_of(tuple(several), axis_of(draw, ndim)))


# ---- elementwise ----------------------------------------------------------------------------


def unary(kinds):
    """A function of one array."""

    def recipe(draw):
        return [array(draw, kinds)], lambda f, xp, x: f(x)

    return recipe


def binary(kinds, second=None):
    """A function of two arrays that broadcast, or of an array and a number."""

    def recipe(draw):
        kind = draw(one_of(*kinds))
        x = array(draw, kind, low=second or -3)
        y = array(draw, kind, subshape(draw, x.shape), low=-3 if second is None else second)
        way = draw(one_of("arrays", "swapped", "number"))
        if way == "number" and second is None:
            number = {"b": True, "i": 2, "u": 2, "f": 1.5, "c": 1 - 0.5j}[kind]
            if draw(st.booleans()):
                return [x], lambda f, xp, x: f(x, number)
            return [x], lambda f, xp, x: f(number, x)
        if way == "swapped":
            return [y, x], lambda f, xp, y, x: f(y, x)
        return [x, y], lambda f, xp, x, y: f(x, y)

    return recipe


UNARY = {
    "abs": "iufc", "acos": "fc", "acosh": "fc", "asin": "fc", "asinh": "fc", "atan": "fc",
    "atanh": "fc", "bitwise_invert": "biu", "ceil": "iuf", "conj": "iufc", "cos": "fc",
    "cosh": "fc", "exp": "fc", "expm1": "fc", "floor": "iuf", "imag": "c", "isfinite": "iufc",
    "isinf": "iufc", "isnan": "iufc", "log": "fc", "log10": "fc", "log1p": "fc", "log2": "fc",
    "logical_not": "b", "negative": "ifc", "positive": "iufc", "real": "iufc", "reciprocal": "fc",
    "round": "iufc", "sign": "iufc", "signbit": "f", "sin": "fc", "sinh": "fc", "sqrt": "fc",
    "square": "iufc", "tan": "fc", "tanh": "fc", "trunc": "iuf",
    "unique_all": "biuf", "unique_counts": "biuf", "unique_inverse": "biuf",
    "unique_values": "biuf",
}  # fmt: skip
BINARY = {
    "add": "iufc", "atan2": "f", "bitwise_and": "biu", "bitwise_or": "biu", "bitwise_xor": "biu",
    "copysign": "f", "divide": "fc", "equal": "biufc", "greater": "iuf", "greater_equal": "iuf",
    "hypot": "f", "less": "iuf", "less_equal": "iuf", "logaddexp": "f", "logical_and": "b",
    "logical_or": "b", "logical_xor": "b", "maximum": "iuf", "minimum": "iuf", "multiply": "iufc",
    "nextafter": "f", "not_equal": "biufc", "subtract": "iufc",
}  # fmt: skip


def clip(draw):
    x = array(draw, "iuf")
    low = draw(one_of(None, 1, array(draw, "", subshape(draw, x.shape), x.dtype)))
    high = draw(one_of(None, 3))
    if isinstance(low, np.ndarray):
        low = np.minimum(low, 3)
        return [x, low], lambda f, xp, x, low: f(x, low, high)
    low, high = (v if v is None or x.dtype.kind != "f" else float(v) for v in (low, high))
    return [x], lambda f, xp, x: f(x, min=low, max=high)


def where(draw):
    condition = array(draw, "b")
    x = array(draw, "biufc", subshape(draw, condition.shape))
    y = array(draw, "", subshape(draw, condition.shape), x.dtype)
    return [condition, x, y], lambda f, xp, c, x, y: f(c, x, y)


# ---- over axes ------------------------------------------------------------------------------


def reduction(kinds, *more, empty=True, several=True):
    """A function over axes, with these further arguments."""

    def recipe(draw):
        x = array(draw, kinds, shape_of(draw, sizes=(0, 1, 2, 3) if empty else (1, 2, 3)))
        axis = axes_of(draw, x.ndim) if several else axis_of(draw, x.ndim)
        options = {"axis": axis, "keepdims": draw(st.booleans())}
        if "correction" in more:
            options["correction"] = draw(one_of(0, 1, 0.5))
        dtype = draw(one_of(None, *BY_KIND[x.dtype.kind])) if "dtype" in more else None

        def call(f, xp, x):
            return f(x, **options, **({"dtype": getattr(xp, dtype)} if dtype else {}))

        return [x], call

    return recipe


def cumulative(draw):
    x = array(draw, "iufc", shape_of(draw, least=1))
    axis = axis_of(draw, x.ndim, none=x.ndim == 1)
    initial = draw(st.booleans())
    return [x], lambda f, xp, x: f(x, axis=axis, include_initial=initial)


def ordered(draw):
    x = array(draw, "iuf", shape_of(draw, least=1))
    options = {"axis": axis_of(draw, x.ndim, none=False), "descending": draw(st.booleans())}
    return [x], lambda f, xp, x: f(x, **options)


def diff(draw):
    x = array(draw, "iufc", shape_of(draw, least=1))
    axis, n = axis_of(draw, x.ndim, none=False), draw(st.integers(0, 3))
    if draw(st.booleans()):
        return [x, x], lambda f, xp, x, y: f(x, axis=axis, n=n, prepend=y)
    return [x], lambda f, xp, x: f(x, axis=axis, n=n)


# ---- of shapes ------------------------------------------------------------------------------


def reshaped(draw):
    x = array(draw, "biufc")
    shape = draw(one_of((x.size,), (1, x.size), (x.size, 1), *([(-1,)] if x.size else [])))
    copy = draw(one_of(None, True))
    return [x], lambda f, xp, x: f(x, shape, copy=copy)


def with_axis(least=1, most=3):
    """A function with a keyword-only axis that it needs."""

    def recipe(draw):
        x = array(draw, "biufc", shape_of(draw, least, most))
        axis = axis_of(draw, x.ndim, none=False)
        return [x], lambda f, xp, x: f(x, axis=axis)

    return recipe


def flip(draw):
    x = array(draw, "biufc")
    axis = axes_of(draw, x.ndim)
    return [x], lambda f, xp, x: f(x, axis=axis)


def expand_dims(draw):
    x = array(draw, "biufc")
    axis = draw(st.integers(-x.ndim - 1, x.ndim))
    return [x], lambda f, xp, x: f(x, axis=axis)


def squeeze(draw):
    x = array(draw, "biufc", (1, *shape_of(draw, most=2), 1))
    axis = draw(one_of(0, -1, (0, -1), x.ndim - 1))
    return [x], lambda f, xp, x: f(x, axis=axis)


def permute(draw):
    x = array(draw, "biufc")
    axes = tuple(draw(st.permutations(range(x.ndim))))
    return [x], lambda f, xp, x: f(x, axes)


def moveaxis(draw):
    x = array(draw, "biufc", shape_of(draw, least=1))
    places = (axis_of(draw, x.ndim, none=False) for _ in range(2))
    source, destination = places
    return [x], lambda f, xp, x: f(x, source, destination)


def roll(draw):
    x = array(draw, "biufc")
    shift = draw(st.integers(-4, 4))
    axis = axis_of(draw, x.ndim)
    return [x], lambda f, xp, x: f(x, shift, axis=axis)


def repeat(draw):
    x = array(draw, "biufc")
    count, axis = draw(st.integers(0, 3)), axis_of(draw, x.ndim)
    return [x], lambda f, xp, x: f(x, count, axis=axis)


def tile(draw):
    x = array(draw, "biufc")
    times = tuple(draw(st.lists(st.integers(0, 2), max_size=3)))
    return [x], lambda f, xp, x: f(x, times)


def joined(draw):
    x = array(draw, "biufc", shape_of(draw, least=1))
    y = array(draw, "", x.shape, draw(one_of(*BY_KIND[x.dtype.kind])))
    axis = axis_of(draw, x.ndim, none=False)
    return [x, y], lambda f, xp, x, y: f([x, y], axis=axis)


def broadcast_to(draw):
    shape = shape_of(draw)
    return [array(draw, "biufc", subshape(draw, shape))], lambda f, xp, x: f(x, shape)


def broadcast_arrays(draw):
    x = array(draw, "biufc")
    return [x, array(draw, "biufc", subshape(draw, x.shape))], lambda f, xp, x, y: f(x, y)


def triangle(draw):
    x = array(draw, "biufc", shape_of(draw, least=2))
    k = draw(st.integers(-3, 3))
    return [x], lambda f, xp, x: f(x, k=k)


def meshgrid(draw):
    dtype = dtype_of(draw, "iufc")
    xs = [array(draw, "", (n,), dtype) for n in draw(st.lists(st.integers(0, 3), max_size=3))]
    indexing = draw(one_of("xy", "ij"))
    return xs, lambda f, xp, *xs: f(*xs, indexing=indexing)


# ---- by indices -----------------------------------------------------------------------------


def take(draw):
    x = array(draw, "biufc", shape_of(draw, least=1, sizes=(1, 2, 3)))
    axis = axis_of(draw, x.ndim, none=x.ndim == 1)
    size = x.shape[axis or 0]
    indices = draw(st.lists(st.integers(-size, size - 1), max_size=4))
    return [x, np.array(indices, "int64")], lambda f, xp, x, i: f(x, i, axis=axis)


def take_along_axis(draw):
    x = array(draw, "biufc", shape_of(draw, least=1, sizes=(1, 2, 3)))
    axis = axis_of(draw, x.ndim, none=False)
    indices = array(draw, "", x.shape, "int64", low=0) % x.shape[axis]
    return [x, indices], lambda f, xp, x, i: f(x, i, axis=axis)


def searchsorted(draw):
    x = np.sort(array(draw, "f", shape_of(draw, 1, 1)))
    side = draw(one_of("left", "right"))
    return [x, array(draw, "", None, x.dtype)], lambda f, xp, x, y: f(x, y, side=side)


def isin(draw):
    x, invert = array(draw, "iu"), draw(st.booleans())

    def call(f, xp, x, y):
        # The reference forgets `invert` in its version 2.6; NumPy does not.
        f, *xs = (np.isin, np.asarray(x), np.asarray(y)) if xp is strict else (f, x, y)
        return f(*xs, invert=invert)

    return [x, array(draw, "", None, x.dtype)], call


def nonzero(draw):
    return [array(draw, "biufc", shape_of(draw, least=1))], lambda f, xp, x: f(x)


# ---- from no array --------------------------------------------------------------------------


def filled(value=None, values=False):
    """zeros, ones, empty; full, whose value is drawn."""

    def recipe(draw):
        shape, dtype = shape_of(draw), draw(one_of(None, dtype_of(draw, "biufc")))
        given = [draw(one_of(True, 1, 1.0, 1j) if dtype is None else one_of(True, 1))]
        if not values:
            given = []

        def call(f, xp):
            return f(shape, *given, **({"dtype": getattr(xp, dtype)} if dtype else {}))

        return [], call

    return recipe


def like(*values):
    """zeros_like and its kind."""

    def recipe(draw):
        x, dtype = array(draw, "biufc"), draw(one_of(None, dtype_of(draw, "biufc")))

        def call(f, xp, x):
            return f(x, *values, **({"dtype": getattr(xp, dtype)} if dtype else {}))

        return [x], call

    return recipe


def arange(draw):
    start, stop, step = (draw(st.integers(*r)) for r in ((-3, 3), (-3, 5), (1, 3)))
    step *= draw(one_of(1, -1))
    scale = draw(one_of(1, 0.5))
    dtype = draw(one_of(None, "float32", "int64") if scale == 1 else one_of(None, "float32"))

    def call(f, xp):
        given = (start * scale, stop * scale, step * scale)
        return f(*given, **({"dtype": getattr(xp, dtype)} if dtype else {}))

    return [], call


def eye(draw):
    rows, columns, k = draw(st.integers(0, 3)), draw(one_of(None, 0, 2)), draw(st.integers(-3, 3))
    return [], lambda f, xp: f(rows, columns, k=k)


def linspace(draw):
    start, stop, num = draw(one_of(*REAL)), draw(one_of(*REAL)), draw(st.integers(0, 4))
    end, dtype = draw(st.booleans()), draw(one_of(None, "float32", "complex128"))

    def call(f, xp):
        given = {"dtype": getattr(xp, dtype)} if dtype else {}
        return f(start, stop, num, endpoint=end, **given)

    return [], call


def asarray(draw):
    x = array(draw, "bifc", dtype=draw(one_of("bool", "int64", "float64", "complex128")))
    dtype = draw(one_of(None, "complex128" if x.dtype.kind == "c" else "float32"))

    def call(f, xp):
        return f(x.tolist(), **({"dtype": getattr(xp, dtype)} if dtype and x.size else {}))

    return ([], call) if x.size else ([x], lambda f, xp, x: f(x))


def astype(draw):
    x = array(draw, "biufc", low=0)
    dtype = dtype_of(draw, "c" if x.dtype.kind == "c" else "biufc")
    x = np.abs(x) if dtype[0] == "u" and x.dtype.kind in "fi" else x
    return [x], lambda f, xp, x: f(x, getattr(xp, dtype), copy=True)


# ---- linear algebra -------------------------------------------------------------------------


def matrices(draw, kinds="fc", square=True, like=None):
    """Matrices far from singular, in a stack."""
    dtype = dtype_of(draw, kinds) if like is None else like
    rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    shape = (*shape_of(draw, most=1, sizes=(1, 2)), rows, rows if square else columns)
    seed = draw(st.integers(0, 10))
    x = np.random.default_rng(seed).uniform(-1, 1, (2, *shape))
    x = x[0] + 1j * x[1] if np.dtype(dtype).kind == "c" else x[0]
    return (x + (4 * np.eye(rows) if square else 0)).astype(dtype)


def of_matrices(square=True, symmetric=False, kinds="fc", **options):
    """A function of a stack of matrices, with options each drawn from a few."""

    def recipe(draw):
        x = matrices(draw, kinds, square)
        if symmetric:
            x = x @ np.conj(np.swapaxes(x, -1, -2))
        given = {name: draw(one_of(*values)) for name, values in options.items()}
        return [x], lambda f, xp, x: f(x, **given)

    return recipe


def with_tolerance(draw):
    """A function of a stack of matrices, with one tolerance, or one for each of them."""
    x = matrices(draw, "fc", False)
    if draw(st.booleans()):
        rtol = draw(one_of(None, 1e-3))
        return [x], lambda f, xp, x: f(x, rtol=rtol)
    size = math.prod(x.shape[:-2])
    given = draw(st.lists(one_of(1e-3, 0.037), min_size=size, max_size=size))
    rtol = np.array(given, x.real.dtype).reshape(x.shape[:-2])
    return [x, rtol], lambda f, xp, x, rtol: f(x, rtol=rtol)


def product(draw):
    dtype = dtype_of(draw, "iufc")
    n, m, k = (draw(st.integers(0, 3)) for _ in range(3))
    stack = shape_of(draw, most=1)
    x = array(draw, "", draw(one_of((n,), (m, n), (*stack, m, n))), dtype)
    y = array(draw, "", draw(one_of((n,), (n, k), (*stack, n, k))), dtype)
    return [x, y], lambda f, xp, x, y: f(x, y)


def tensordot(draw):
    dtype = dtype_of(draw, "iufc")
    x, y = array(draw, "", (2, 3, 1), dtype), array(draw, "", (3, 1, 2), dtype)
    axes = draw(one_of(0, ((1,), (0,)), ((0, 1), (2, 0)), ((-2, -1), (0, 1)), 2))
    return [x, y], lambda f, xp, x, y: f(x, y, axes=axes)


def vecdot(draw):
    dtype = dtype_of(draw, "iufc")
    shape = shape_of(draw, least=1)
    axis = draw(one_of(*range(-len(shape), 0)))
    x, y = (array(draw, "", shape, dtype) for _ in range(2))
    return [x, y], lambda f, xp, x, y: f(x, y, axis=axis)


def outer(draw):
    dtype = dtype_of(draw, "iufc")
    xs = [array(draw, "", shape_of(draw, 1, 1), dtype) for _ in range(2)]
    return xs, lambda f, xp, x, y: f(x, y)


def cross(draw):
    dtype, shape = dtype_of(draw, "ifc"), (2, 3, 3)
    axis = draw(one_of(-1, -2))
    return [array(draw, "", shape, dtype) for _ in range(2)], lambda f, xp, x, y: f(x, y, axis=axis)


def solve(draw):
    a = matrices(draw)
    columns = draw(one_of((), (2,)))
    b = array(draw, "", (a.shape[-1], *columns), a.dtype)
    return [a, b], lambda f, xp, a, b: f(a, b)


def matrix_power(draw):
    n = draw(st.integers(-2, 3))
    return [matrices(draw)], lambda f, xp, x: f(x, n)


def matrix_norm(draw):
    ord_ = draw(one_of(-math.inf, -2, -1, 1, 2, math.inf, "fro", "nuc"))
    keepdims = draw(st.booleans())
    x = matrices(draw, square=draw(st.booleans()))
    return [x], lambda f, xp, x: f(x, keepdims=keepdims, ord=ord_)


def vector_norm(draw):
    x = array(draw, "fc", shape_of(draw, sizes=(1, 2, 3)))
    ord_ = draw(one_of(-math.inf, -2, -1, 0, 1, 2, 3.5, math.inf))
    axis, keepdims = axes_of(draw, x.ndim), draw(st.booleans())
    return [x], lambda f, xp, x: f(x, axis=axis, keepdims=keepdims, ord=ord_)


# ---- Fourier --------------------------------------------------------------------------------

NORMS = ("backward", "ortho", "forward")


def transform(kinds, several=False):
    """A Fourier transform over one axis or over several."""

    def recipe(draw):
        x = array(draw, kinds, shape_of(draw, 2, 3, sizes=(2, 3)))
        norm = draw(one_of(*NORMS))
        if several:
            axes = tuple(draw(st.permutations(range(x.ndim))))[:2]
            sizes = draw(one_of(None, (3, 2)))
            return [x], lambda f, xp, x: f(x, s=sizes, axes=axes, norm=norm)
        n, axis = draw(one_of(None, 2, 4)), axis_of(draw, x.ndim, none=False)
        return [x], lambda f, xp, x: f(x, n=n, axis=axis, norm=norm)

    return recipe


def frequencies(draw):
    n, d = draw(st.integers(1, 5)), draw(one_of(1.0, 0.5))
    dtype = draw(one_of(None, "float32"))

    def call(f, xp):
        return f(n, d=d, **({"dtype": getattr(xp, dtype)} if dtype else {}))

    return [], call


def shifted(draw):
    x = array(draw, "fc", shape_of(draw, least=1))
    axes = axes_of(draw, x.ndim)
    return [x], lambda f, xp, x: f(x, axes=axes)


RECIPES = {
    **{name: unary(kinds) for name, kinds in UNARY.items()},
    **{name: binary(kinds) for name, kinds in BINARY.items()},
    "pow": binary("iufc", second=1), "floor_divide": binary("iuf", second=1),
    "remainder": binary("iuf", second=1), "bitwise_left_shift": binary("iu", second=1),
    "bitwise_right_shift": binary("iu", second=1), "clip": clip, "where": where,
    "sum": reduction("iufc", "dtype"), "prod": reduction("iufc", "dtype"),
    "mean": reduction("fc"), "std": reduction("f", "correction"),
    "var": reduction("f", "correction"), "max": reduction("iuf", empty=False),
    "min": reduction("iuf", empty=False), "all": reduction("biufc"), "any": reduction("biufc"),
    "count_nonzero": reduction("biufc"), "argmax": reduction("iuf", empty=False, several=False),
    "argmin": reduction("iuf", empty=False, several=False),
    "cumulative_sum": cumulative, "cumulative_prod": cumulative, "sort": ordered,
    "argsort": ordered, "diff": diff, "reshape": reshaped, "unstack": with_axis(), "flip": flip,
    "expand_dims": expand_dims, "squeeze": squeeze, "permute_dims": permute,
    "moveaxis": moveaxis, "roll": roll, "repeat": repeat, "tile": tile, "concat": joined,
    "stack": joined, "broadcast_to": broadcast_to, "broadcast_arrays": broadcast_arrays,
    "tril": triangle, "triu": triangle, "meshgrid": meshgrid, "take": take,
    "take_along_axis": take_along_axis, "searchsorted": searchsorted, "isin": isin,
    "nonzero": nonzero, "zeros": filled(), "ones": filled(), "empty": filled(),
    "full": filled(values=True), "zeros_like": like(), "ones_like": like(), "empty_like": like(),
    "full_like": like(1), "arange": arange, "eye": eye, "linspace": linspace, "asarray": asarray,
    "astype": astype, "from_dlpack": unary("biufc"), "matmul": product,
    "matrix_transpose": of_matrices(square=False), "tensordot": tensordot, "vecdot": vecdot,
    "linalg.cholesky": of_matrices(symmetric=True, upper=(False, True)), "linalg.cross": cross,
    "linalg.det": of_matrices(), "linalg.diagonal": of_matrices(square=False, offset=(-1, 0, 1)),
    "linalg.eigh": of_matrices(symmetric=True), "linalg.eigvalsh": of_matrices(symmetric=True),
    "linalg.inv": of_matrices(), "linalg.matmul": product, "linalg.matrix_norm": matrix_norm,
    "linalg.matrix_power": matrix_power,
    "linalg.matrix_rank": with_tolerance,
    "linalg.matrix_transpose": of_matrices(square=False), "linalg.outer": outer,
    "linalg.pinv": with_tolerance, "linalg.slogdet": of_matrices(),
    "linalg.qr": of_matrices(square=False, mode=("reduced", "complete")),
    "linalg.solve": solve, "linalg.svd": of_matrices(square=False, full_matrices=(False, True)),
    "linalg.svdvals": of_matrices(square=False), "linalg.tensordot": tensordot,
    "linalg.trace": of_matrices(square=False, offset=(-1, 0, 1)), "linalg.vecdot": vecdot,
    "linalg.vector_norm": vector_norm,
    "fft.fft": transform("c"), "fft.ifft": transform("c"), "fft.rfft": transform("f"),
    "fft.irfft": transform("c"), "fft.hfft": transform("c"), "fft.ihfft": transform("f"),
    "fft.fftn": transform("c", several=True), "fft.ifftn": transform("c", several=True),
    "fft.rfftn": transform("f", several=True), "fft.irfftn": transform("c", several=True),
    "fft.fftfreq": frequencies, "fft.rfftfreq": frequencies, "fft.fftshift": shifted,
    "fft.ifftshift": shifted,
}  # fmt: skip

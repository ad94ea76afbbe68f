"""How each function of NumPy is called to see whether nodes answer it: on arrays and on nodes.

`numpy_calls.txt` has a line for each: its name and calls of it, in which `f` is the function and
a letter one of the arrays below. A ufunc that has no line is called by the number of its operands.
"""

import types
import warnings
from functools import cache
from pathlib import Path

import numpy as np

import symgrad as sg
from symgrad.ir.errors import SymgradError
from symgrad.ir.evaluate import evaluate
from symgrad.ir.op import REGISTRY

_rng = np.random.default_rng(7)
ARRAYS = {
    "s": np.float64(0.7), "v": _rng.uniform(0.2, 2, 4), "w": _rng.uniform(-2, 2, 4),
    "m": _rng.uniform(-2, 2, (3, 4)), "n": _rng.uniform(-2, 2, (3, 4)),
    "q": _rng.uniform(-1, 1, (3, 3)) + 3 * np.eye(3), "u": _rng.uniform(0.1, 0.8, (3, 4)),
    "t": _rng.uniform(-2, 2, (2, 3, 4)), "e": np.zeros(0), "o": np.zeros((0, 3)),
    "h": _rng.uniform(0.2, 2, (3, 4)).astype("f4"), "z": _rng.normal(size=3) + 1j,
    "i": np.array([3, 1, 0, 2]), "k": np.array([[2, 0], [1, 1]]), "b": np.array([1, 0, 1, 1]) > 0,
    "c": _rng.uniform(-2, 2, (3, 4)) > 0, "x": np.array([-0.5, 0.3, 1.4, 9.0]),
    "g": np.array([0.0, 1.0, 2.5, 4.0]), "r": np.array([np.nan, np.inf, -np.inf, 1.5]),
}  # fmt: skip
# What a call may use besides: it is no array in either.
PLAIN = {"np": np, "mask": np.array([True, False, True, True]), "pick": np.array([2, 0, 1])}
LINES = (Path(__file__).parent / "numpy_calls.txt").read_text(encoding="utf-8").splitlines()
CALLS = {name: calls.split("; ") for name, _, calls in (line.partition(": ") for line in LINES)}
BY_OPERANDS = {1: ["f(u)", "f(s)", "f(h)", "f(e)"], 2: ["f(v, w)", "f(m, v)", "f(h, s)", "f(e, e)"]}
# Other values or types than NumPy's, and why.
DIFFERENT = {
    "np.floor_divide": "where a quotient is infinite they follow the array API standard",
    "np.divmod": "where a quotient is infinite they follow the array API standard",
    "np.std": "with no more elements than the correction it is NaN, as in the standard",
    "np.var": "with no more elements than the correction it is NaN, as in the standard",
    "np.linalg.eig": "NumPy's dtype depends on values; here it is complex",
    "np.linalg.eigvals": "NumPy's dtype depends on values; here it is complex",
    "np.linalg.lstsq": "NumPy's residuals are none where the rank, a value, is not full",
    "np.polymul": "NumPy leaves out leading zeros, which are values",
}
SPACES = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}


def functions(space):
    """The public functions of a namespace of NumPy's, by their names, in order."""
    found = {n: getattr(space, n, None) for n in sorted(space.__all__)}
    kinds = (type, types.ModuleType)
    return {n: f for n, f in found.items() if callable(f) and not isinstance(f, kinds)}


def attributes():
    """The public methods and attributes of NumPy's arrays."""
    return [n for n in dir(np.ndarray) if not n.startswith("_")]


@cache
def names():
    """The public functions by the name that a user writes, and the attributes of arrays."""
    found = {f"{s}.{n}": f for s, space in SPACES.items() for n, f in functions(space).items()}
    return found | {f"ndarray.{n}": getattr(np.ndarray, n) for n in attributes()}


def calls_of(name):
    """The calls of a function or method, each a line of Python; none where nothing fits."""
    short, function = name.removeprefix("np."), names()[name]
    if short not in CALLS and isinstance(function, np.ufunc) and function is not np.isnat:
        return BY_OPERANDS[function.nin]
    return CALLS.get(short, [])


def flat(result):
    """The parts of a result, as a list."""
    if isinstance(result, sg.Node) and isinstance(result.type, tuple):
        return [result[i] for i in range(len(result.type))]
    if isinstance(result, (tuple, list)):
        return [y for part in result for y in flat(part)]
    return [result]


@cache
def _code(call):
    return compile(call, "<call>", "eval")


def made(call, function, operands):
    """The results of a call, part by part."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return flat(eval(_code(call), {**PLAIN, **operands, "f": function}))


def on_arrays(call, function, arrays=ARRAYS):
    """The results of a call with arrays, part by part."""
    return made(call, function, {k: a.copy() for k, a in arrays.items()})  # some write into them


def placeholders(arrays=ARRAYS):
    """A placeholder for each of the arrays, by its letter."""
    return {k: sg.placeholder(k, np.shape(a), np.asarray(a).dtype) for k, a in arrays.items()}


def values(parts, nodes, arrays=ARRAYS):
    """The values of what a call of nodes gave, which have the types that the nodes tell."""
    feeds = {node: np.asarray(arrays[k]) for k, node in nodes.items()}
    with np.errstate(all="ignore"):
        found = [evaluate([p], feeds)[0] if isinstance(p, sg.Node) else p for p in parts]
    for part, value in zip(parts, found, strict=True):
        if isinstance(part, sg.Node):
            assert (part.dtype, part.shape) == (np.asarray(value).dtype, np.shape(value)), part
    return found


def same(found, wanted):
    """Assert that two results agree in values, and arrays in shape and dtype."""
    assert len(found) == len(wanted), (found, wanted)
    for mine, numpys in zip(found, wanted, strict=True):
        if isinstance(numpys, (np.ndarray, np.generic)):
            mine, numpys = np.asarray(mine), np.asarray(numpys)
            assert (mine.dtype, mine.shape) == (numpys.dtype, numpys.shape), (mine, numpys)
            single = numpys.dtype in (np.float32, np.complex64)
            # A sum over both signs has the error of its largest term, on each processor another.
            wide = numpys[np.isfinite(numpys)].astype(complex) if single else ()
            largest = np.max(np.abs(wide), initial=0)
            atol = max(1e-12, 4e-7 * largest)
            np.testing.assert_allclose(mine, numpys, rtol=1e-6 if single else 1e-11, atol=atol)
        else:
            assert mine == numpys, (mine, numpys)


@cache
def failing(name):
    """The calls of a function that nodes do not answer, with what they raise."""
    function = names()[name]
    nodes, found = placeholders(), {}
    for call in calls_of(name):
        wanted = on_arrays(call, function)
        try:
            same(values(made(call, function, nodes), nodes), wanted)
        except (SymgradError, TypeError, AttributeError, AssertionError) as error:
            found[call] = error
    return found


def state(name):
    """`yes`, `in part`, `no`, or `plain` of what has no calls, for no array is given to it."""
    calls, missed = calls_of(name), failing(name)
    if len(missed) == len(calls):
        return "no" if calls else "plain"
    return "in part" if missed else "yes"


def ours(name):
    """The name of our function for one of NumPy's; None of those that are not functions."""
    return REGISTRY.by_numpy.get(names()[name]) if not name.startswith("ndarray.") else None

"""Write the table of functions anew: `python -m tools.ops_table`. Review what changed.

What it says of a function is found by calling it: which dtypes it takes, and what its gradient is.
"""

import importlib
import inspect
import re
import sys

import numpy as np

import symgrad as sg
from symgrad.ir.errors import GradientError, SymgradError
from symgrad.ir.op import REGISTRY
from symgrad.ir.types import TensorType
from symgrad.ir.walk import topological
from tests.conformance.names import FFT, LINALG, MAIN
from tools import numpy_calls
from tools.rules_table import ROOT, row, updated, write

SPACES = ("fft", "linalg", "nn", "random", "special")
STANDARD = {*MAIN.split(), *(f"linalg.{n}" for n in LINALG.split())}
STANDARD |= {f"fft.{n}" for n in FFT.split()}
WHOLE, MAP = ROOT / "symgrad" / "ops" / "README.md", ROOT / "symgrad" / "README.md"
BEGIN, END = "<!-- ops: begin -->", "<!-- ops: end -->"
DTYPES = {"b": "bool", "i": "int32", "u": "uint8", "f": "float64", "c": "complex128"}
INDICES = np.array([1, 0, 1, 0])
# What is not an array, by the name of the parameter.
GIVEN = {
    "shape": (4, 4), "dtype": "float64", "axis": -1, "source": 0, "destination": 1, "shift": 1,
    "repetitions": 2, "repeats": 2, "window_shape": 2, "indices": INDICES[None].repeat(4, 0),
    "num_classes": 3, "k": 2, "pad_width": 1, "size": 2, "q": 0.5, "segment_ids": INDICES,
    "num_segments": 2, "factor": 2.0, "num": 3, "index": 0, "n": 2, "fill_value": 1.0,
    "n_rows": 3, "dim": sg.dim("N"), "name": "x", "kind": "numeric", "to": "complex128",
    "condition": np.eye(4) > 0, "mask": np.eye(4) > 0, "key": None, "rate": 0.5, "data": 1,
}  # fmt: skip
# They make values and declarations for modules, or take functions: no functions of arrays.
NO_FUNCTIONS = ("nn.initial", "nn.parameter", "nn.sample")
UNIQUE = ("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values")
SPLITS = ("split", "array_split", "hsplit", "vsplit", "dsplit")
WRITES = ("set", "add", "multiply", "divide", "max", "min")
# Calls that those do not make: f is the function, x makes arrays by their shapes.
CALLS = {
    "arange": lambda f, x: f(3),
    "assume": lambda f, x: f(x(4, 4), "symmetric"),
    "constant": lambda f, x: f(1.0),
    "clip": lambda f, x: f(x(4, 4), x(), x()),
    "einsum": lambda f, x: f("ij->i", x(4, 4)),
    "full": lambda f, x: f((4, 4), x()),
    "full_like": lambda f, x: f(np.zeros((4, 4)), x()),
    "astype": lambda f, x: f(x(4, 4), "complex128"),
    "elu": lambda f, x: f(x(4, 4), alpha=0.5),
    "item": lambda f, x: f(sg.linalg.slogdet(x(4, 4)).logabsdet.inputs[0], 1),
    "multi_dot": lambda f, x: f([x(4, 4), x(4, 4)]),
    "convolve": lambda f, x: f(x(4), x(3)),
    "correlate": lambda f, x: f(x(4), x(3)),
    "delete": lambda f, x: f(x(4, 4), 1, axis=0),
    "digitize": lambda f, x: f(x(4, 4), x(4)),
    "interp": lambda f, x: f(x(4, 4), x(4), x(4)),
    "piecewise": lambda f, x: f(y := x(4, 4), [y > 0], [sg.square]),
    "polyval": lambda f, x: f(x(4), x(4, 4)),
    "rollaxis": lambda f, x: f(x(4, 4), 1),
    "select_first": lambda f, x: f([np.eye(4) > 0], [x(4, 4)]),
    "swapaxes": lambda f, x: f(x(4, 4), 0, 1),
    "tensorinv": lambda f, x: f(x(4, 2, 2), ind=1),
    "tensorsolve": lambda f, x: f(x(2, 2, 4), x(2, 2)),
    "vander": lambda f, x: f(x(4)),
    **{n: lambda f, x: f(x(4, 4, 4), 2) for n in SPLITS},
    "eval_gegenbauer": lambda f, x: f(2, 1.5, x(4, 4)),
    "multigammaln": lambda f, x: f(x(4, 4), 2),
    "polygamma": lambda f, x: f(1, x(4, 4)),
    "take": lambda f, x: f(x(4), INDICES),
    "variable": lambda f, x: f("x", 1.0),
    "cross": lambda f, x: f(x(4, 3), x(4, 3)),
    "conv1d": lambda f, x: f(x(2, 4, 8), x(4, 4, 3)),
    "conv2d": lambda f, x: f(x(2, 4, 8, 8), x(4, 4, 3, 3)),
    "conv3d": lambda f, x: f(x(2, 4, 8, 8, 8), x(4, 4, 3, 3, 3)),
    "conv": lambda f, x: f(x(2, 4, 8), x(4, 4, 3)),
    "conv_transpose": lambda f, x: f(x(2, 4, 8), x(4, 4, 3)),
    "bincount": lambda f, x: f(x(4), length=3),
    "broadcast_shapes": lambda f, x: f((4, 1), (3,)),
    "dirichlet": lambda f, x: f(sg.random.key(0), x(4)),
    "dropout": lambda f, x: f(x(4, 4), sg.random.key(0)),
    "exponential": lambda f, x: f(sg.random.key(0), scale=x()),
    "gumbel": lambda f, x: f(sg.random.key(0), loc=x(), scale=x()),
    "key": lambda f, x: f(0),
    "max_pool": lambda f, x: f(x(2, 4, 8), 2),
    "normal": lambda f, x: f(sg.random.key(0), loc=x(), scale=x()),
    "uniform": lambda f, x: f(sg.random.key(0), low=x(), high=x()),
    "nonzero": lambda f, x: f(x(4), size=3),
    "outer": lambda f, x: f(x(4), x(4)),
    "random.split": lambda f, x: f(sg.random.key(0)),
    "randint": lambda f, x: f(sg.random.key(0), (4,), low=0, high=3),
    "searchsorted": lambda f, x: f(x(4), x(4)),
    "sliding_window_view": lambda f, x: f(x(4), 2),
    "zeta": lambda f, x: f(2.0, x(4, 4)),
    **{n: lambda f, x: f(x(4), size=3) for n in UNIQUE},
    **{f"{n}_at": lambda f, x: f(x(4), 0, x()) for n in WRITES},
    "avg_pool": lambda f, x: f(x(2, 4, 8), 2),
}


class _Letters(dict):
    """The namespace for calls of `numpy_calls`: the function, and arrays that x makes."""

    def __init__(self, function, x):
        super().__init__(numpy_calls.PLAIN, f=function)
        self.make = x

    def __missing__(self, letter):
        value = numpy_calls.ARRAYS[letter]
        self[letter] = self.make(*np.shape(value)) if value.dtype.kind == "f" else value
        return self[letter]


def numpy_of(name):
    """The first function of NumPy's that one of ours answers."""
    return next((f for f, ours in REGISTRY.by_numpy.items() if ours == name), None)


def loaded():
    """All functions by the name that a user writes, once every namespace is there."""
    spaces = {name: importlib.import_module(f"symgrad.{name}") for name in SPACES}
    REGISTRY.every()
    assert sg.compile  # and all that the compiler declares
    REGISTRY.every()
    found = {REGISTRY.qualified_name(n)[3:]: f for n, f in REGISTRY.functions.items()}
    for space, module in spaces.items():
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isfunction(function) and REGISTRY.functions.get(name) is not function:
                found[f"{space}.{name}"] = function
    return {name: function for name, function in found.items() if name not in NO_FUNCTIONS}


def called(name, function, dtype):
    """The arrays of this dtype that a function was given, and what it gave."""
    xs = []

    def x(*shape):
        xs.append(sg.placeholder(f"x{len(xs)}", shape, dtype))
        return xs[-1]

    last = name.rpartition(".")[2]
    if call := CALLS.get(name) or CALLS.get(last):
        return call(function, x), xs
    if function.__module__.startswith("symgrad.ops.numpy."):
        calls = numpy_calls.CALLS.get(name) or numpy_calls.BY_OPERANDS[numpy_of(last).nin]
        return eval(calls[0], {}, _Letters(function, x)), xs
    if name.startswith("random."):
        GIVEN["key"] = sg.random.key(0)
    args, named = [], {}
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            args += [x(4), x(4)]
        elif p.default is p.empty:
            value = GIVEN[p.name] if p.name in GIVEN else x(4, 4)
            value = [value, x(4, 4)] if p.name == "arrays" else value
            if p.kind is p.KEYWORD_ONLY:
                named[p.name] = value
            else:
                args.append(value)
    return function(*args, **named), xs


def nodes(result):
    """The nodes of a result, one for each of several."""
    if isinstance(result, sg.Node):
        several = not isinstance(result.type, TensorType)
        return [result[i] for i in range(len(result.type))] if several else [result]
    return [y for part in result for y in nodes(part)] if isinstance(result, (tuple, list)) else []


def tried(name, function):
    """For each kind of dtypes that a function takes, what it gave and of which arrays."""
    found = {}
    for kind, dtype in DTYPES.items():
        try:
            result, xs = called(name, function, dtype)
        except (SymgradError, TypeError, ValueError):
            continue
        found[kind] = nodes(result), xs
    return found


def gradient(calls):
    """`yes`, `0` where it is that by rule, or none."""
    best = "–"
    for kind in "fc":
        ys, xs = calls.get(kind, ([], []))
        for y, x in ((y, x) for y in ys for x in xs if y.dtype.kind in "fc"):
            try:
                sg.vjp(y, x, sg.ones_like(y))
            except GradientError:
                path = {*topological([y])}
                if x in path and not any(n.inputs and n.op.vjp is None for n in path):
                    best = "0"
            else:
                return "yes"
    return best


def kinks(name, calls):
    """Where one-sided derivatives differ, or by which ops they do."""
    if name in REGISTRY.ops:
        return REGISTRY.ops[name].kinks
    ys = calls.get("f", ([], []))[0]
    return ", ".join(sorted({f"`{n.op.name}`" for n in topological(ys) if n.op.kinks}))


def numpys(name):
    """The functions of NumPy's that give this one."""
    found = [f for f, ours in REGISTRY.by_numpy.items() if ours == name]
    homes = [getattr(f, "__module__", None) or "numpy" for f in found]
    paths = (f"{home}.{f.__name__}" for home, f in zip(homes, found, strict=True))
    return " ".join(dict.fromkeys(f"`{p.replace('numpy', 'np', 1)}`" for p in paths))


def summary(function):
    """The first sentence of a docstring."""
    text = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    return re.match(r".*?([.](?=\s|$)|$)", text).group()


def entry(name, function):
    """A row of the table."""
    last = name.rpartition(".")[2]
    calls = tried(name, function)
    own = REGISTRY.functions.get(last) is function
    return row(
        f"`{name}`",
        summary(function),
        "primitive" if own and last in REGISTRY.ops else "",
        gradient(calls),
        kinks(last if own else "", calls),
        "".join(k for k in DTYPES if k in calls and calls[k][1]),
        numpys(last) if own else "",
        "✓" if name in STANDARD or f"linalg.{name}" in STANDARD else "",
    )


def families():
    """The functions by the file in which they stand."""
    by_file = {}
    for name, function in loaded().items():
        by_file.setdefault(function.__module__, []).append((name, function))
    return dict(sorted(by_file.items()))


def counts():
    """How many there are."""
    functions = loaded()
    made = sum(n.rpartition(".")[2] not in REGISTRY.ops for n in functions)
    return (
        f"{len(functions)} functions are public. {len(functions) - made} of them are primitives, "
        f"with a kernel and derivatives of their own, {made} are composites: made of primitives, "
        f"those and {len(unnamed())} more that have no function of their own, being parts of "
        "others, transposes of others, or what rules rewrite to."
    )


def unnamed():
    """The primitives that have no function of their own."""
    public = {n.rpartition(".")[2] for n in loaded()}
    return [op for name, op in sorted(REGISTRY.ops.items()) if name not in public]


def listed():
    """Every function, family by family."""
    yield counts()
    for module, functions in families().items():
        title = inspect.getdoc(sys.modules[module]).splitlines()[0].rstrip(".")
        path = f"{module.replace('.', '/')}.py"
        yield from ("", f"## {title}", "", f"`{path}`", "")
        yield row(
            "function", "what it gives", "", "gradient", "kinks", "dtypes", "NumPy", "standard"
        )
        yield "|---|---|---|---|---|---|---|---|"
        for name, function in functions:
            yield entry(name, function)
    yield from ("", "## Primitives that have no function of their own", "")
    yield from (row("op", "what it gives", "gradient", "kinks"), "|---|---|---|---|")
    for op in unnamed():
        slope = "–" if op.vjp is None else "0" if op.piecewise_constant else "yes"
        yield row(f"`{op.name}`", " ".join(op.doc.split("\n\n")[0].split()), slope, op.kinks)


def texts():
    """The two files as they should be."""
    both = ((MAP, [counts()]), (WHOLE, listed()))
    return {p: updated(p.read_text(encoding="utf-8"), lines, BEGIN, END) for p, lines in both}


if __name__ == "__main__":
    write(texts())

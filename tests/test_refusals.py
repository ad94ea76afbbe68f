"""Every public function, called wrongly: what it raises names the function and the user's line."""

import inspect
import sys

import numpy as np

import symgrad as sg
from symgrad.ir.op import REGISTRY
from tests.helpers import each

REGISTRY.every()
SPACES = (sg.linalg, sg.fft, sg.nn, sg.random, sg.special, sg.stats)
X = sg.placeholder("x", ("N", 3))
SMALL, OTHER = sg.placeholder("small", (2, 3)), sg.placeholder("other", (4, 5))
INDEX = sg.placeholder("i", (4,), "int64")
FLAGS, Z = sg.placeholder("flags", (2, 3), "bool"), sg.placeholder("z", (2, 3), "complex64")
PAIR = divmod(SMALL, 2)[0].inputs[0]
GOOD = (X, SMALL, INDEX)


class Strange:
    """No array, no number, no sequence."""

    def __repr__(self):
        return "<strange>"


class Fails:
    """An array of another library, which cannot be had."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array today")


BAD = {
    "none": None,
    "text": "abc",
    "strange": Strange(),
    "fails": Fails(),
    "ragged": [[1.0, 2.0], [3.0]],
    "objects": np.array([None, "a"], dtype=object),
    "dates": np.zeros(3, "M8[s]"),
    "scalar": sg.placeholder("s", ()),
    "several": PAIR,
    "flags": FLAGS,
    "complex": Z,
    "ints": INDEX,
    "other": OTHER,
    "deep": sg.placeholder("deep", (2,) * 7),
    "empty": [],
    "masked": np.ma.masked_array(np.ones(3), [0, 1, 0]),
    "nodes": [SMALL, OTHER],
    "dict": {"a": 1},
    "slice": slice(1, 2),
    "negative": -1,
    "huge": 2**70,
    "nan": float("nan"),
    "half": 0.5,
    "function": len,
}
OPTIONS = {
    "axis": (7, -9, "x", 1.5, (0, 0), (0, 9), [None], 2**70),
    "*": ("bad", -1, 1.5, float("nan"), 2**70, (), [None], Strange(), OTHER),
}


def public():
    """The functions of the registry, and the others of the namespaces, as they are called."""
    found = {REGISTRY.qualified_name(n): f for n, f in REGISTRY.functions.items()}
    for space in SPACES:
        for name in space.__all__:
            value = getattr(space, name)
            if inspect.isfunction(value) and value not in found.values():
                found[f"{space.__name__.removeprefix('symgrad.')}.{name}"] = value
    return found


FUNCTIONS = public()


def calls(function):
    """Arguments that are wrong, or may be."""
    parameters = list(inspect.signature(function).parameters.values())
    first = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in first if p.default is p.empty]
    count = max(len(needed), 1) if first else 2
    options = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL and p not in needed]
    yield (X,) * 12, {}
    yield (SMALL,) * count, {"no_such_option": 1}
    yield (), {}
    for value in BAD.values():
        yield (value,) * count, {}
        for good in GOOD:
            for i in range(count if count > 1 else 0):
                yield (*(good,) * i, value, *(good,) * (count - i - 1)), {}
        yield ([value, SMALL],), {}
    for name in options:
        for value in OPTIONS.get(name, OPTIONS["*"]):
            for good in (SMALL, INDEX):
                yield (good,) * count, {name: value}


@each("spelled", FUNCTIONS, parts=6)
def test_what_is_refused_names_the_function_and_the_line(spelled):
    function, faults = FUNCTIONS[spelled], {}
    name = function.__name__
    for args, options in calls(function):
        try:
            function(*args, **options)
        except Exception as error:
            at = f"test_refusals.py:{sys.exc_info()[2].tb_lineno}"
            text = str(error)
            if text == "no array today":
                continue  # an error of the array's own, which stays as it is
            if isinstance(error, sg.SymgradError):
                fault = "" if text.startswith(f"{name}(") and at in text else "names too little"
            else:
                told = type(error) is TypeError and text.startswith(f"{name}: ")
                fault = "" if told else "is raw"
            if fault:
                faults[f"{type(error).__name__} {fault}: {text[:300]}"] = (args, options)
    assert not faults, "\n".join(f"{c}\n  of {a}" for c, a in faults.items())

"""NumPy's names on nodes: what is answered has values, dtypes and derivatives.

The calls are those of `tools/numpy_calls.txt`: one that is added there is tested here.
"""

import re
import traceback
from functools import cache

import numpy as np
import pytest

import symgrad as sg
from symgrad.autodiff.reverse import is_differentiable
from symgrad.ir.array_methods import NO_METHODS
from symgrad.ir.numpy_cases import COUNTED
from symgrad.ir.op import REGISTRY
from symgrad.ir.refusals import INSTEAD
from tests.helpers import check_derivatives, each, generator
from tools import numpy_calls
from tools.numpy_calls import ARRAYS, calls_of
from tools.numpy_table import DRAWS

REGISTRY.every()
NAMES = sorted(numpy_calls.names())  # in NumPy they are in any order
CALLED = [n for n in NAMES if calls_of(n)]
COUNTED_NAMES = {n for n, f in numpy_calls.names().items() if f in COUNTED}
# Which of equal numbers comes first is open, and float32 has a rounding error.
OPEN = {"np.argsort", "ndarray.argsort", "np.fft.irfft", "np.linalg.lstsq"}
# Gradients of these are tested where they are at home: their calls are at kinks or singular, or
# leave a phase open.
AT_KINKS = {
    "np.max", "np.min", "np.amax", "np.amin", "np.linalg.svd", "np.linalg.eig", "np.corrcoef",
    "np.linalg.eigvals", "np.nextafter", "np.interp f(i, g, v)", "np.linalg.qr f(m.T, 'complete')",
    "np.linalg.eigh f((q * z) + (q * z).conj().T)",
}  # fmt: skip
ROUGH = re.compile(r"\b[rh]\b|'f4'")  # what is not finite, and what is not precise


def calls(name):
    return [c for c in calls_of(name) if c not in numpy_calls.failing(name)]


def test_enough_is_answered():
    assert sum(numpy_calls.state(n) in ("yes", "in part") for n in NAMES) > 370


@each("name", (n for n in NAMES if numpy_calls.failing(n)))
def test_what_is_not_answered_says_what_to_write(name):
    for error in numpy_calls.failing(name).values():
        if name not in numpy_calls.DIFFERENT:
            assert isinstance(error, sg.SymgradError), error
        assert "near it are" not in str(error), error


@cache
def constants():
    return {k: sg.constant(a) for k, a in ARRAYS.items()}


@each("name", NAMES)
def test_of_constants_they_give_what_they_give_of_arrays(name):
    function, counted = numpy_calls.names()[name], name in COUNTED_NAMES
    for call in calls_of(name) if counted else calls(name):
        found = numpy_calls.made(call, function, constants())
        numpy_calls.same(numpy_calls.values(found, {}), numpy_calls.on_arrays(call, function))


# ---- nothing raw ----------------------------------------------------------------------------

FORMS = """f(m); f(s); f(e); f(o); f(i); f(c); f(z); f(m, m); f(v, m); f(m, m, m); f(v, i, w);
f(m, 0); f(m, 1.5); f(m, 'bogus'); f(m, None); f([m, m]); f((m,), m); f([v, [w]]); f(m, [0, 'a']);
f(m, {}); f(np.sin, m); f(m, np.sin); f('a', m); f(None, m); f(m, axis=m); f(m, axis='x'); f(i, 3);
f(m, axis=1.5); f(N); f(N, N); f(D, D); f(D, 1); f(q, q); f(m, [1, 2], 3); f(v, [0.5], [0.5])"""
# They would set what NumPy does, or run its own tests; a buffer is asked of Python's own protocol.
LEFT_OUT = re.compile("show_|test$|info$|set|print|file|load|regex|txt|buffer|_rng|seed")


def every_function():
    """All public functions, those of np.random, and the methods of ufuncs."""
    yield from ((n, f) for n, f in numpy_calls.names().items() if not n.startswith("ndarray."))
    for name, function in numpy_calls.functions(np.random).items():
        yield f"np.random.{name}", function
    generator = np.random.default_rng(0)
    for name in (n for n in dir(generator) if not n.startswith("_")):
        yield f"Generator.{name}", getattr(generator, name)
    for name, function in numpy_calls.names().items():
        if isinstance(function, np.ufunc):
            for method in ("reduce", "accumulate", "outer", "at", "reduceat"):
                yield f"{name}.{method}", getattr(function, method)


def outcome(call, function, operands):
    """What a call gives, part by part, or the error that it raises."""
    try:
        return numpy_calls.made(call, function, operands)
    except Exception as error:
        return error


@pytest.mark.parametrize("letter", "abcdefghijklmnopqrstuvwxyz")
def test_called_on_nodes_none_raises_anything_but_our_errors(letter, tmp_path, monkeypatch):
    """What NumPy itself raises of nodes, it raises of arrays too: its arguments are not those."""
    monkeypatch.chdir(tmp_path)
    nodes = {**numpy_calls.placeholders(), "N": sg.placeholder("N", "n")}
    nodes["D"] = sg.placeholder("D", ("a", "b"))
    arrays = {**ARRAYS, "N": np.ones(3), "D": np.ones((2, 2))}
    for name, function in every_function():
        if name.split(".")[-1][0].lower() != letter or LEFT_OUT.search(name):
            continue
        for call in FORMS.replace("\n", " ").split("; "):
            found = outcome(call, function, nodes)
            if isinstance(found, list):
                kinds = [x.dtype.kind for x in found if isinstance(x, np.ndarray)]
                assert "O" not in kinds or name == "np.real_if_close", (name, call)
            elif not isinstance(found, sg.SymgradError):
                frames = traceback.extract_tb(found.__traceback__)
                assert not any("/symgrad/" in f.filename for f in frames), (name, call, found)
                assert isinstance(outcome(call, function, arrays), Exception), (name, call, found)


@cache
def converted(kind):
    """The arrays in other dtypes: singly precise, or rounded to integers."""

    def one(array):
        if array.dtype.kind == "c" and kind == "f4":
            return array.astype("c8")
        if array.dtype.kind != "f":
            return array
        filled = np.nan_to_num(array, posinf=3, neginf=-3)
        return array.astype("f4") if kind == "f4" else np.round(filled).astype(kind)

    return {letter: one(np.asarray(array)) for letter, array in ARRAYS.items()}


@each("kind", ["f4", "i8"])
@each("name", [n for n in CALLED if n not in OPEN], parts=3)
def test_values_shapes_and_dtypes_are_numpys_in_other_dtypes(name, kind):
    arrays, function = converted(kind), numpy_calls.names()[name]
    nodes = numpy_calls.placeholders(arrays)
    for call in calls(name):
        try:
            wanted = numpy_calls.on_arrays(call, function, arrays)
        except (TypeError, ValueError, ArithmeticError, np.linalg.LinAlgError):
            continue  # NumPy takes no such dtype
        found = numpy_calls.made(call, function, nodes)
        numpy_calls.same(numpy_calls.values(found, nodes, arrays), wanted)


@each("name", [n for n in CALLED if n not in AT_KINKS], parts=6)
def test_gradients_in_both_modes_are_those_of_differences(name):
    function, nodes = numpy_calls.names()[name], numpy_calls.placeholders()
    for call in calls(name):
        if ROUGH.search(call) or f"{name} {call}" in AT_KINKS:
            continue
        wanted = numpy_calls.on_arrays(call, function)
        if not all(np.all(np.isfinite(p)) for p in wanted if np.asarray(p).dtype.kind in "fc"):
            continue
        parts = numpy_calls.made(call, function, nodes)
        ys = [y for y in parts if isinstance(y, sg.Node) and is_differentiable(y)]
        ys = [y for y in ys if y.dtype in (np.float64, np.complex128)]
        # The gradients by others, on which it does not depend, would be zeros each time.
        letters = [k for k in ARRAYS if k not in "rh" and re.search(rf"\b{k}\b", call)]
        xs = [nodes[k] for k in letters]
        if ys and any(map(is_differentiable, xs)):
            arrays = [np.asarray(ARRAYS[k]) for k in letters]
            check_derivatives(ys, xs, arrays, generator(f"{name} {call}"))


# ---- the same names in sg, and methods ------------------------------------------------------


@each(
    ("call", "parts"),
    [
        (lambda x: np.unique(x), ["size=..."]),
        (lambda x: np.argwhere(x), ["sg.nonzero(x, size=...)"]),
        (lambda x: np.fill_diagonal(x, 0), ["frozen", "sg.where("]),
        (lambda x: np.trim_zeros(x), ["x[start:stop]"]),
        (lambda x: np.union1d(x, x), ["sg.unique("]),
        (lambda x: x[x > 0], ["sg.where(mask, x, other)"]),
        (lambda x: np.compress(x > 0, x), ["sg.where(condition, x, other)"]),
        (lambda x: np.max(x, where=x > 0), ["initial value"]),
        (lambda x: np.subtract.accumulate(x), ["np.subtract.accumulate", "sg.scan"]),
        (lambda x: np.bitwise_or.reduce(x > 0), ["np.bitwise_or.reduce", "sg.scan"]),
        (lambda x: np.add.at(x, 0, 1.0), ["np.add.at", ".at[indices].add(values)"]),
        (lambda x: np.add.reduceat(x, [0, 1]), ["np.add.reduceat", "sg.add_at"]),
        (lambda x: np.sin(x, where=x > 0), ["np.sin", "sg.where(mask, np.sin(...), other)"]),
        (lambda x: np.mean(x, dtype="i8"), ["mean is a float", "sg.astype("]),
        (lambda x: np.random.default_rng(0).normal(x), ["sg.random.normal(key", "sg.stats"]),
        (lambda x: np.roots(sg.placeholder("p", "N")), ["length N", "not known"]),
        (lambda x: np.asarray(x, copy=False), ["without a copy"]),
        (lambda x: x.sum(out=np.zeros(())), ["nothing is written into an array"]),
        (lambda x: np.split(x, 2), ["equal parts", "array_split"]),
        (lambda x: np.partition(x, 3), ["kth=3", "3 elements"]),
        (lambda x: np.argpartition(x, [0, -4]), ["kth=[0, -4]", "3 elements"]),
        (lambda x: np.partition(x, 0.5), ["kth is an int", "0.5"]),
        (lambda x: np.ldexp(x, x), ["integers, not float64"]),
        (lambda x: np.insert(sg.placeholder("y", "N"), 1, 0.0), ["sg.concat("]),
    ],
)
def test_where_numpys_answer_cannot_be_symbolic_the_error_says_what_to_write(call, parts):
    with pytest.raises(sg.SymgradError) as caught:
        call(sg.placeholder("x", 3))
    assert all(part in str(caught.value) for part in parts), caught.value


@each("name", sorted(NO_METHODS))
def test_methods_that_nodes_have_not_say_what_to_write(name):
    x = sg.placeholder("x", 3)
    assert not hasattr(x, name)
    with pytest.raises(AttributeError) as caught:
        getattr(x, name)
    assert NO_METHODS[name] in str(caught.value)


def test_the_hints_name_what_there_is():
    hints = [*INSTEAD.values(), *NO_METHODS.values(), *(f"sg.{d}" for d in DRAWS.values())]
    named = {n for hint in hints for n in re.findall(r"sg\.((?:\w+\.)?\w+)", hint)}
    for name in named:
        thing = sg
        for part in name.split("."):
            thing = getattr(thing, part)


def test_values_of_nodes_without_placeholders():
    x = sg.constant([[1.0, 2.0]])
    assert x.tolist() == [[1.0, 2.0]]
    assert (x.sum().item(), x.item(0, 1)) == (3.0, 2.0)
    with pytest.raises(sg.SymbolicError):
        sg.placeholder("x", ()).item()
    with pytest.raises(sg.ShapeError, match="one element"):
        x.item()


def test_axes_may_stand_where_numpy_has_them():
    x = sg.placeholder("x", (2, 3))
    for name in ("sum", "mean", "max", "std", "any", "argmin", "sort", "flip", "median"):
        assert getattr(sg, name)(x, 1).type == getattr(sg, name)(x, axis=1).type
    assert sg.concat([x, x], 1).shape == (2, 6)
    assert sg.diff(x, 2).shape == (2, 1)


def test_named_sizes():
    x, y = sg.placeholder("x", ("N", 3)), sg.placeholder("y", "N")
    for node, shape in (
        (np.dot(x, np.ones(3)), "(N,)"), (np.hstack([y, y]), "(2*N,)"), (np.ravel(x), "(3*N,)"),
        (np.cov(x, rowvar=False), "(3, 3)"), (np.vstack([x, x]), "(2*N, 3)"),
        (np.polyfit(y, y, 1), "(2,)"), (np.convolve(y, np.ones(3)), "(N + 2,)"),
        (np.swapaxes(x, 0, 1), "(3, N)"), (np.gradient(y), "(N,)"), (np.interp(y, y, y), "(N,)"),
        (np.inner(x, np.ones((2, 3))), "(N, 2)"), (np.atleast_2d(y), "(1, N)"),
    ):  # fmt: skip
        assert str(node.shape) == shape


@pytest.mark.parametrize("size", [2, 5])
def test_programs_of_named_sizes(size):
    rng = np.random.default_rng(size)
    a, b = rng.normal(size=(size, 3)), np.sort(rng.normal(size=size))
    x, y = sg.placeholder("x", ("N", 3)), sg.placeholder("y", "N")
    for function in (
        lambda x, y: np.cov(x, rowvar=False), lambda x, y: np.gradient(y, 0.5),
        lambda x, y: np.interp(x, y, y * 2), lambda x, y: np.convolve(y, [1.0, 2.0, 3.0]),
        lambda x, y: np.hstack([y, y.sum(keepdims=True)]), lambda x, y: np.average(x, 0, y**2),
        lambda x, y: np.trapezoid(x, y, axis=0), lambda x, y: np.vander(y, 3),
    ):  # fmt: skip
        found = sg.compile([x, y], function(x, y))(a, b)
        np.testing.assert_allclose(found, function(a, b), rtol=1e-10)

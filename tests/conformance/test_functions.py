"""Each function of the standard gives what the reference gives: dtypes, shapes and values.

It is evaluated at once, from values, and compiled, from placeholders, at a grade that is drawn.
"""

import warnings

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg
from tests.conformance.names import NAMES, both
from tests.conformance.recipes import RECIPES, one_of

# Tested by their answers in test_namespace.
QUESTIONS = (
    *("__array_namespace_info__", "broadcast_shapes", "can_cast", "finfo", "iinfo", "isdtype"),
    "result_type",
)
# What is in them depends on a sign or a basis; their products are compared instead.
BASES = ("linalg.eigh", "linalg.qr", "linalg.svd")
# How many elements they have depends on data, so that they have no placeholders.
COUNTING = ("nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values")
UNSAID = ("empty", "empty_like")
GRADES = ("bits", "values", "rounding")
EXAMPLES = 15


def test_every_function_is_tried():
    assert {*RECIPES, *QUESTIONS} == {*NAMES}


def listed(results):
    """Several results as a list, one as a list of it."""
    return list(results) if isinstance(results, (tuple, list)) else [results]


def multiplied(name, parts):
    """What a factorisation factors."""
    if name == "linalg.qr":
        return parts[0] @ parts[1]
    if name == "linalg.eigh":
        return (parts[1] * parts[0][..., None, :]) @ np.conj(np.swapaxes(parts[1], -1, -2))
    rank = parts[1].shape[-1]
    return (parts[0][..., :rank] * parts[1][..., None, :]) @ parts[2][..., :rank, :]


def check(name, found, wanted):
    """Same dtypes and shapes, values nearly."""
    assert [(f.dtype, f.shape) for f in found] == [(w.dtype, w.shape) for w in wanted]
    if name in UNSAID:
        return
    if name in BASES:
        found, wanted = [multiplied(name, found)], [multiplied(name, wanted)]
    for f, w in zip(found, wanted, strict=True):
        if w.dtype.kind in "fc":
            tolerance = 2e-4 if w.dtype.itemsize // (1 + (w.dtype.kind == "c")) == 4 else 1e-9
            scale = 1 + np.max(np.abs(w[np.isfinite(w)]), initial=0)
            np.testing.assert_allclose(f, w, rtol=tolerance, atol=tolerance * scale)
        else:
            np.testing.assert_array_equal(f, w)


@pytest.mark.parametrize("name", RECIPES)
@settings(max_examples=EXAMPLES, derandomize=True, database=None, deadline=None)
@given(data=st.data())
def test_it_gives_what_the_reference_gives(name, data):
    arrays, call = RECIPES[name](data.draw)
    ours, theirs = both(name)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = listed(call(theirs, strict, *map(strict.asarray, arrays)))
        wanted = [np.asarray(w) for w in wanted]
        at_once = listed(call(ours, sg, *map(sg.asarray, arrays)))
        assert all(isinstance(y, sg.Node) for y in at_once)
        check(name, [np.asarray(y) for y in at_once], wanted)
    if name in (*COUNTING, "from_dlpack"):
        return
    grade = data.draw(one_of(*GRADES))
    xs = [sg.placeholder(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays)]
    nodes = listed(call(ours, sg, *xs))
    assert [(n.dtype, n.shape) for n in nodes] == [(w.dtype, w.shape) for w in wanted]
    compiled = sg.compile(xs, nodes, exact=grade)(*arrays)
    check(name, [np.asarray(y) for y in compiled], wanted)

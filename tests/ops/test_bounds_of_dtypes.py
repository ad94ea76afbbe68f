"""Python ints beside arrays of a dtype that cannot hold them, and products of booleans."""

import operator

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import DtypeError
from tests.helpers import each, generator, same, value

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
BEYOND = (-1, 300, -(2**31) - 1, 2**32, 2**63, 2**64, 2**70, -(2**70), 2**2000)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
every_dtype = each("dtype", INTEGERS)


def limits(dtype):
    """The least, the largest and an element between them."""
    info = np.iinfo(dtype)
    return np.array([info.min, 3, info.max], dtype)


@every_dtype
@each("comparison", COMPARISONS)
def test_comparisons_with_a_python_int_are_those_of_numpy(comparison, dtype):
    compare, data, x = getattr(operator, comparison), limits(dtype), sg.placeholder("x", 3, dtype)
    for v in BEYOND:
        both = sg.compile(x, [compare(x, v), compare(v, x)])(data)
        same(both[0], compare(data, v))
        same(both[1], compare(v, data))


@every_dtype
def test_nothing_beyond_a_dtype_is_in_it_and_it_sorts_before_or_after_all(dtype):
    data = limits(dtype)
    for v in BEYOND:
        same(value(sg.isin(data, v)), np.isin(data, v))
        if abs(v) < 2**63:
            same(value(sg.searchsorted(data, v)), np.searchsorted(data, v))


def test_a_boolean_is_an_int_that_a_large_one_is_beyond():
    same(value(sg.constant([True, False]) < 2**70), np.array([True, True]))


def test_numpys_scalars_and_floats_are_compared_as_ever():
    x = np.array([1, 2], "uint8")
    same(value(sg.constant(x) > np.int64(-1)), x > np.int64(-1))
    same(value(sg.constant(x) > -1.5), x > -1.5)


@every_dtype
def test_a_bound_that_every_number_keeps_is_none(dtype):
    info, data = np.iinfo(dtype), limits(dtype)
    x = sg.placeholder("x", 3, dtype)
    for least, most in ((info.min - 5, 9), (3, info.max + 1), (-(2**70), 2**70), (None, 2**70)):
        clipped = sg.clip(x, least, most)
        assert clipped.dtype == dtype
        same(sg.compile(x, clipped)(data), np.clip(data, least, most))
        same(sg.compile(x, np.clip(x, least, most))(data), np.clip(data, least, most))


@pytest.mark.parametrize("bounds", [(300, None), (None, -1)])
def test_a_bound_that_no_number_keeps_is_refused_as_by_numpy(bounds):
    x = np.arange(3, dtype="uint8")
    with pytest.raises(OverflowError):
        np.clip(x, *bounds)
    with pytest.raises(DtypeError, match="out of bounds for uint8"):
        sg.clip(x, *bounds)


@pytest.mark.parametrize("make", [
    lambda x, v: x + v, lambda x, v: sg.maximum(x, v), lambda x, v: sg.where(x > 1, x, v),
])  # fmt: skip
def test_where_a_number_is_wanted_it_must_be_one_of_the_dtype(make):
    with pytest.raises(DtypeError, match="out of bounds"):
        make(sg.constant(np.arange(3, dtype="uint8")), -1)


# ---- products of booleans -------------------------------------------------------------------


def masks(*shape):
    return generator("masks").random(shape) < 0.3


PRODUCTS = [
    ((3, 4), (4, 5), lambda xp, a, b: a @ b),
    ((4,), (4, 5), lambda xp, a, b: a @ b),
    ((3, 4), (4,), lambda xp, a, b: a @ b),
    ((4,), (4,), lambda xp, a, b: a @ b),
    ((2, 3, 4), (4, 5), lambda xp, a, b: xp.matmul(a, b)),
    ((3, 0), (0, 5), lambda xp, a, b: a @ b),
    ((3, 4, 2), (4, 2, 5), lambda xp, a, b: xp.tensordot(a, b, axes=2)),
    ((3, 4), (4, 5), lambda xp, a, b: xp.tensordot(a, b, axes=1)),
    ((3, 4), (4, 5), lambda xp, a, b: xp.einsum("ij,jk->ik", a, b)),
    ((2, 3, 4), (2, 4), lambda xp, a, b: xp.einsum("bij,bj->bi", a, b)),
    ((3, 4), (3, 4), lambda xp, a, b: xp.vecdot(a, b)),
    ((3, 4), (4, 4), lambda xp, a, b: xp.linalg.multi_dot([a, b, b])),
    ((4, 4), (4, 4), lambda xp, a, b: xp.linalg.matrix_power(b, 3)),
]


@each(("left", "right", "make"), PRODUCTS)
def test_products_of_booleans_are_those_of_numpy(left, right, make):
    arrays = masks(*left), masks(*right)
    a, b = (sg.placeholder(n, x.shape, "bool") for n, x in zip("ab", arrays, strict=True))
    y = make(sg, a, b)
    assert y.dtype == "bool"
    found = sg.compile([a, b], y, passes=())(*arrays), sg.compile([a, b], y)(*arrays)
    for x in found:
        same(x, np.asarray(make(np, *arrays)))


def test_a_count_of_pairs_does_not_wrap_around():
    ones = np.ones((1, 65536), bool)
    same(value(sg.constant(ones) @ ones.T), ones @ ones.T)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import symgrad as sg
from symgrad.ir.dims import Dim
from symgrad.ir.errors import AllocationError, DtypeError, ShapeError, SymgradError
from symgrad.ir.types import (
    TensorType,
    as_dtype,
    as_shape,
    broadcast_shapes,
    normalize_axes,
    normalize_axis,
)
from tests.helpers import each

N, M = Dim.of("N"), Dim.of("M")


def test_a_type_says_what_it_is():
    t = TensorType(("N", 3, "2*M"), "f4")
    assert repr(t) == "float32[N, 3, 2*M]"
    assert repr(TensorType((), float)) == "float64[()]"
    assert (t.ndim, t.size, t.names, t.is_float) == (3, 6 * N * M, {"N", "M"}, True)
    assert not TensorType((), "int8").is_float
    assert t.with_shape((2,)) == TensorType(2, "float32")
    assert t.with_dtype(np.dtype("?")).dtype == bool


def test_equal_types_are_equal_however_they_were_written():
    for dtype in ("int64", "longlong", np.int64, ">i8", np.dtype("<i8"), int):
        found = TensorType((3,), dtype)
        assert found == TensorType([np.int32(3)], np.dtype("int64"))
        assert hash(found) == hash(TensorType(3, "int64"))
        assert found.dtype.isnative
        assert found.dtype.char == np.dtype("int64").char


@each(
    "bad", ["O", "U5", "S3", "M8[s]", "m8", "V4", "i4,i4", "(2,)f4", None, "no", 3, [], "bfloat16"]
)
def test_other_dtypes_are_refused(bad):
    with pytest.raises(DtypeError, match=r"float32|floats"):
        as_dtype(bad)
    with pytest.raises(DtypeError):
        TensorType((3,), bad)


def test_a_structured_dtype_is_refused_on_the_fast_way_too():
    for bad in (np.dtype(object), np.dtype("U5"), np.dtype("i4,i4")):
        with pytest.raises(DtypeError):
            TensorType((3,), bad)


@pytest.mark.parametrize("bad", [(-1,), (1.5,), "N N", None, 2.0, (None,), ((1,),), "-2"])
def test_what_is_no_shape_is_refused(bad):
    with pytest.raises(ShapeError):
        as_shape(bad)


def test_shapes_are_ints_names_and_dims():
    assert as_shape(3) == (3,)
    assert as_shape("N") == (N,)
    assert as_shape(N + 1) == (N + 1,)
    assert as_shape(["N", 3, np.int8(2)]) == (N, 3, 2)
    assert as_shape(()) == ()


@given(mutually_broadcastable_shapes(num_shapes=3, min_side=0, max_dims=4))
def test_broadcasting_is_numpys(shapes):
    assert broadcast_shapes(*shapes.input_shapes) == shapes.result_shape


@given(st.lists(st.lists(st.integers(0, 3), max_size=3).map(tuple), min_size=1, max_size=3))
def test_what_numpy_does_not_broadcast_is_refused(shapes):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ShapeError, match="do not match"):
            broadcast_shapes(*shapes)
    else:
        assert broadcast_shapes(*shapes) == expected


def test_named_dimensions_broadcast_if_they_are_the_same():
    assert broadcast_shapes((N, 3), (3,), (1, 1)) == (N, 3)
    assert broadcast_shapes((N + 1,), (1,), ()) == (N + 1,)
    assert broadcast_shapes((N, 1), (M,)) == (N, M)
    for other in (M, 3, 0, N + 1):
        with pytest.raises(ShapeError, match=r"N and .* not known to be equal.*same name"):
            broadcast_shapes((N,), (other,))


@pytest.mark.parametrize(
    "build",
    [
        lambda x, n: sg.placeholder("y", (n,)),
        lambda x, n: sg.zeros((n,)),
        lambda x, n: x[n],
        lambda x, n: x + n * 10**400,
        lambda x, n: sg.arange(n),
        lambda x, n: sg.reshape(x, (n,)),
        lambda x, n: sg.placeholder("y", (-n,)),
    ],
)
def test_ints_of_any_length_are_told_by_their_number_of_digits(build):
    for n in (10**30, 10**5000):
        with pytest.raises(SymgradError):
            build(sg.placeholder("x", 3), n)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: sg.linalg.diagonal(x),
        lambda x: x[:, 1:3],
        lambda x: x[1:3],
        lambda x: sg.tanh(x),
        lambda x: sg.sum(x),
    ],
)
def test_named_sizes_that_no_memory_holds_are_refused_before_any_rule_is_asked(build):
    x = sg.placeholder("x", ("N**16", 4))
    program = sg.compile(x, build(x))
    for size in (64, 2**63 - 1):
        with pytest.raises(AllocationError, match="EiB"):
            program.cost(N=size)


def test_axes():
    assert normalize_axis(-1, 3) == 2
    assert normalize_axis(np.int8(1), 3) == 1
    assert normalize_axes(None, 3) == (0, 1, 2)
    assert normalize_axes([2, 0], 3) == (0, 2)
    assert normalize_axes((), 3) == ()
    assert normalize_axes(-1, 3) == (2,)
    for bad in (3, -4, 1.0, "0", (0, 0), (0, -3), None):
        with pytest.raises(ShapeError):
            (normalize_axes if isinstance(bad, tuple) else normalize_axis)(bad, 3)
    with pytest.raises(ShapeError, match="out of range for 0"):
        normalize_axis(0, 0)

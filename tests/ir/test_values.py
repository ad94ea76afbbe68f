import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, scalar_dtypes

import symgrad as sg
from symgrad.ir.errors import DtypeError, SymbolicError
from symgrad.ir.values import ArrayData, Cell
from tests.helpers import same

numeric = scalar_dtypes().filter(lambda d: d.kind in "biufc")


@given(arrays(numeric, array_shapes(min_dims=0, min_side=0, max_side=3)))
def test_data_is_a_native_read_only_copy(array):
    data = ArrayData(array)
    assert data.array.dtype.isnative
    np.testing.assert_array_equal(data.array, array)
    assert data.array.shape == array.shape
    assert not np.shares_memory(data.array, array)
    with pytest.raises(ValueError, match="read-only"):
        data.array[...] = 0


@given(arrays(numeric, array_shapes(min_dims=0, min_side=0, max_side=3)), st.data())
def test_equal_data_hashes_alike(array, chance):
    one, other = ArrayData(array), ArrayData(array.copy())
    assert one == other
    assert hash(one) == hash(other)
    assert one.digest == other.digest
    if array.size:
        changed = array.copy().ravel()
        place = chance.draw(st.integers(0, array.size - 1))
        changed[place] = 0 if changed[place] else 1
        assert one != ArrayData(changed.reshape(array.shape))
    assert one != ArrayData(array[None])
    assert one != "data"


@pytest.mark.parametrize(
    "array",
    [np.arange(6, dtype=">i4").reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3)),
     np.arange(6.0)[::-1], np.broadcast_to(np.float32(3), (2, 2)), np.arange(3, dtype="longlong"),
     np.array(2.5), np.empty((0, 3)), np.float16(3), True, [[1, 2], [3, 4]], (), range(3),
     np.arange(4.0).reshape(2, 2).view(np.matrix) if hasattr(np, "matrix") else 1],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_arrays_of_every_layout(array):
    expected = np.array(array)
    expected = expected.astype(expected.dtype.newbyteorder("="))
    found = ArrayData(array).array
    same(found, expected)
    assert found.flags.c_contiguous
    assert type(found) is np.ndarray


def test_a_constant_is_not_the_array_it_was_made_of():
    array = np.ones(3)
    c = sg.constant(array)
    array[:] = 5
    same(np.asarray(c), np.ones(3))


def test_dtype_names_of_c_are_the_same_data():
    one, other = (ArrayData(np.arange(3, dtype=d)) for d in ("longlong", "int64"))
    assert one == other
    assert hash(one) == hash(other)


def test_signs_of_zero_and_payloads_of_nan_are_told_apart():
    assert ArrayData(0.0) != ArrayData(-0.0)
    quiet, other = np.array([0x7FF8000000000000, 0x7FF8000000000001], "u8").view("f8")
    assert ArrayData(quiet) == ArrayData(np.nan)
    assert ArrayData(quiet) != ArrayData(other)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(300, "uint8"), (-1, "uint8"), (2**64, "int64"), (np.nan, "int32"), ("x", "float64"),
     (1j, "float64"), ([[1], [1, 2]], "float64"), (None, "int8")],
)  # fmt: skip
def test_a_value_that_its_dtype_cannot_hold_is_refused(value, dtype):
    with pytest.raises(DtypeError, match=f"no array of {dtype}"):
        ArrayData(value, np.dtype(dtype))


def test_data_is_frozen_and_shown_shortly():
    data = ArrayData(np.arange(1000))
    with pytest.raises(AttributeError, match="frozen"):
        data.array = None
    assert len(repr(data)) < 60


def test_a_cell_that_was_never_filled_says_how_to_fill_it():
    with pytest.raises(SymbolicError, match=r"'w'.*variable.value = array"):
        Cell(None, None).read("w")

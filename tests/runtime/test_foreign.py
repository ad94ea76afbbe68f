"""Other libraries' arrays are fed, or told what to write; stand-ins behave as theirs do."""

from types import SimpleNamespace

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import each

TO_NUMPY = "frame.to_numpy(dtype='float32', na_value=np.nan)"
ROWS = np.arange(6, dtype="float32").reshape(2, 3)


class Array:
    """An array that is NumPy's when NumPy asks, and has what else is given."""

    def __init__(self, array=ROWS, fault="", **attributes):
        self.array, self.fault = array, fault
        vars(self).update(attributes)

    def __array__(self, dtype=None, copy=None):
        if self.fault:
            raise TypeError(self.fault)
        return self.array


class Tensor(Array):
    """As PyTorch's."""

    def detach(self):
        return Array(self.array)


class Frame(Array):
    """As a frame of pandas with nullable columns."""

    def to_numpy(self, dtype=None, na_value=None):
        return np.asarray(self.array, dtype)


class Matrix:
    """As a matrix of scipy.sparse."""

    def toarray(self):
        return ROWS


class Named(Array):
    """As an array of xarray."""

    def transpose(self, *dims):
        axes = [self.dims.index(d) for d in dims]
        return Named(self.array.transpose(axes), dims=dims)


class OnlyDlpack:
    def __init__(self, array, fault=""):
        self.array, self.fault = array, fault

    def __dlpack__(self, **options):
        if self.fault:
            raise BufferError(self.fault)
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def fed(value, shape=("N", 3), dtype="float32"):
    x = sg.placeholder("batch", shape, dtype)
    return sg.compile(x, x + 0)(value)


@each(
    ("value", "mend"),
    [
        (Tensor(fault="grad", requires_grad=True), "tensor.detach()"),
        (Tensor(fault="grad"), "tensor.detach()"),
        (Tensor(fault="x", requires_grad=False, dtype="torch.bfloat16"), "tensor.float()"),
        (Tensor(fault="x", requires_grad=True, dtype="torch.bfloat16"), "tensor.detach().float()"),
        (Tensor(fault="x", requires_grad=False, layout="torch.sparse_coo"), "tensor.to_dense()"),
        (Tensor(fault="x", requires_grad=True, device="cuda:0"), "tensor.detach().cpu()"),
        (Tensor(fault="x", requires_grad=False, is_conj=lambda: True), "tensor.resolve_conj()"),
        (Tensor(fault="x", requires_grad=False, is_neg=lambda: True), "tensor.resolve_neg()"),
        (Tensor(fault="x", requires_grad=False), "tensor.detach().cpu().numpy()"),
        (
            Matrix(),
            "matrix.toarray(), since symgrad's arrays are dense; products, A @ x, take it as it is",
        ),
        (Frame(ROWS.astype(object)), TO_NUMPY),
        (
            Frame(
                ROWS.astype(object),
                dtypes={"a": np.dtype("f4"), "b": SimpleNamespace(kind="O"), "c": np.dtype("M8")},
            ),
            f"{TO_NUMPY}, of columns of numbers; 'b', 'c' is none: encode it, or leave it out",
        ),
    ],
)
def test_what_numpy_does_not_take_is_told_what_to_write(value, mend):
    with pytest.raises(sg.FeedError) as caught:
        fed(value)
    assert str(caught.value).startswith("'batch' float32[N, 3]")
    assert str(caught.value).endswith(f"; give its array: {mend}")


def test_no_integer_stands_for_what_is_missing():
    with pytest.raises(sg.FeedError, match=r"to_numpy\(dtype='int64'\)$"):
        fed(Frame(ROWS.astype(object)), dtype="int64")


def test_tensors_and_frames_that_numpy_takes_are_fed():
    for value in (Tensor(requires_grad=False), Frame(), Array()):
        np.testing.assert_array_equal(fed(value), ROWS)


@pytest.mark.parametrize(
    ("dims", "shape", "axes"),
    [
        (("T", "F"), ("T", "F"), (0, 1)),
        (("F", "T"), ("T", "F"), (1, 0)),
        (("F", "B", "T"), ("B", "T", "F"), (1, 2, 0)),
        (("x", "y"), ("T", "F"), (0, 1)),  # names that nobody knows stay where they are
        (("T", "y"), ("T", 3), (0, 1)),
        (("T", "y"), ("T", "F"), (0, 1)),
    ],
)
def test_named_dimensions_are_transposed_into_place(dims, shape, axes):
    array = np.arange(2.0 * 3 * 3).reshape(2, 3, 3)[slice(None) if len(dims) == 3 else 0]
    found = fed(Named(array, dims=dims), tuple(shape), "float64")
    np.testing.assert_array_equal(found, array.transpose(axes))


@pytest.mark.parametrize(
    ("dims", "shape", "order"),
    [
        (("y", "T"), ("T", 3), "'T', 'y'"),
        (("y", "T"), ("T", "F"), "'T', 'y'"),
        (("F", "y", "T"), ("T", 3, "F"), "'T', 'y', 'F'"),
    ],
)
def test_dimensions_some_of_which_are_elsewhere_are_refused(dims, shape, order):
    with pytest.raises(sg.FeedError) as caught:
        fed(Named(np.ones((3,) * len(dims), "float32"), dims=dims), shape)
    assert str(caught.value).startswith("'batch'")
    assert str(caught.value).endswith(f"transpose it: array.transpose({order})")


def test_dlpack_is_enough():
    for array in (ROWS, ROWS[::-1, :2]):
        np.testing.assert_array_equal(fed(OnlyDlpack(array), ("N", "M")), array)
    np.testing.assert_array_equal(sg.variable("w", OnlyDlpack(ROWS)).value, ROWS)
    np.testing.assert_array_equal(np.asarray(sg.constant(OnlyDlpack(ROWS))), ROWS)
    with pytest.raises(sg.FeedError, match=r"'batch'.*was fed what is no array: on a GPU"):
        fed(OnlyDlpack(ROWS, "on a GPU"))


@pytest.mark.parametrize("library", ["torch", "pandas", "xarray", "scipy.sparse"])
def test_the_libraries_themselves(library):
    module = pytest.importorskip(library)
    wrong = {
        "torch": lambda: [
            module.ones(2, 3, requires_grad=True), module.ones(2, 3, dtype=module.bfloat16),
        ],
        "pandas": lambda: [module.DataFrame(ROWS).astype("Float32")],
        "xarray": lambda: [module.DataArray(ROWS, dims=("y", "N"))],
        "scipy.sparse": lambda: [module.csr_array(ROWS), module.csr_matrix(ROWS)],
    }[library]()  # fmt: skip
    for value in wrong:
        with pytest.raises(sg.FeedError, match=r"'batch'.*(give its array|transpose it)"):
            fed(value)
    right = {
        "torch": lambda: module.as_tensor(ROWS),
        "pandas": lambda: module.DataFrame(ROWS),
        "xarray": lambda: module.DataArray(ROWS, dims=("N", "y")),
        "scipy.sparse": lambda: module.csr_array(ROWS).toarray(),
    }[library]()
    np.testing.assert_array_equal(fed(right), ROWS)

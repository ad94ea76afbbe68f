"""Dtypes, constants, what the namespace says of itself, and what a node has as an array."""

import inspect
import math

import array_api_strict as strict
import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.errors import DtypeError, SymgradError, UnsupportedError
from tests.conformance.names import CONSTANTS, DTYPES
from tests.helpers import each

INTEGERS = [d for d in DTYPES if "int" in d]
INEXACT = [d for d in DTYPES if "float" in d or "complex" in d]
KINDS = (
    *("bool", "signed integer", "unsigned integer", "integral", "real floating"),
    *("complex floating", "numeric"),
)
METHODS = """
    abs add and bool complex dlpack dlpack_device eq float floordiv ge getitem gt index int invert
    le lshift lt matmul mod mul ne neg or pos pow radd rand rfloordiv rlshift rmatmul rmod rmul ror
    rpow rrshift rshift rsub rtruediv rxor setitem sub truediv xor array_namespace
"""


def test_constants_are_numbers():
    for name in CONSTANTS:
        ours, theirs = getattr(sg, name), getattr(strict, name)
        assert ours == theirs or (math.isnan(ours) and math.isnan(theirs))
    assert sg.__array_api_version__ == "2024.12"


@each("name", DTYPES)
def test_dtypes_compare_and_hash(name):
    dtype = getattr(sg, name)
    assert dtype == sg.zeros(2, dtype=dtype).dtype == np.dtype(name)
    assert {dtype: 1}[np.dtype(name)] == 1
    assert [d for d in DTYPES if getattr(sg, d) == dtype] == [name]


@pytest.mark.parametrize("name", INEXACT)
def test_finfo(name):
    ours, theirs = sg.finfo(getattr(sg, name)), strict.finfo(getattr(strict, name))
    for limit in ("bits", "eps", "max", "min", "smallest_normal"):
        assert getattr(ours, limit) == getattr(theirs, limit)
        assert type(getattr(ours, limit)) is (int if limit == "bits" else float)
    assert ours.dtype == np.dtype(name.replace("complex64", "float32").replace("complex128", "f8"))
    assert sg.finfo(sg.zeros(2, dtype=name)) == ours


@pytest.mark.parametrize("name", INTEGERS)
def test_iinfo(name):
    ours, theirs = sg.iinfo(getattr(sg, name)), strict.iinfo(getattr(strict, name))
    assert (ours.bits, ours.max, ours.min) == (theirs.bits, theirs.max, theirs.min)
    assert ours.dtype == np.dtype(name)


@each("name", DTYPES)
def test_isdtype(name):
    dtype, other = getattr(sg, name), getattr(strict, name)
    for kind in (*KINDS, KINDS[:2], ("bool", "complex floating")):
        assert sg.isdtype(dtype, kind) == strict.isdtype(other, kind)
    assert sg.isdtype(dtype, dtype)
    assert sg.isdtype(dtype, ("bool", dtype))
    with pytest.raises(DtypeError, match="no kind"):
        sg.isdtype(dtype, "nonsense")


@each("a", DTYPES)
@each("b", DTYPES)
def test_promotion(a, b):
    x, y = sg.placeholder("x", 3, a), getattr(sg, b)
    assert sg.can_cast(x, y) == sg.can_cast(x.dtype, y) == np.can_cast(a, b)
    try:
        wanted = strict.result_type(getattr(strict, a), getattr(strict, b))
    except TypeError:
        return  # the standard leaves it open
    name = next(d for d in DTYPES if getattr(strict, d) == wanted)
    assert sg.result_type(x, y) == sg.result_type(y, x) == getattr(sg, name)
    assert sg.result_type(x, np.ones(2, b), y) == getattr(sg, name)


@pytest.mark.parametrize(
    "call",
    [
        lambda: sg.finfo("int8"),
        lambda: sg.iinfo(sg.float32),
        lambda: sg.result_type(),
        lambda: sg.can_cast("O", "int8"),
        lambda: sg.result_type(sg.float32, "nonsense"),
    ],
)
def test_questions_about_dtypes_that_have_no_answer(call):
    with pytest.raises(DtypeError):
        call()


def test_what_the_namespace_says_of_itself():
    info, other = sg.__array_namespace_info__(), strict.__array_namespace_info__()
    assert info.default_device() == "cpu"
    assert info.devices() == ["cpu"]
    assert info.capabilities().keys() == other.capabilities().keys()
    assert info.default_dtypes().keys() == other.default_dtypes().keys()
    assert info.default_dtypes(device="cpu")["integral"] == sg.asarray(3).dtype
    assert info.default_dtypes()["complex floating"] == sg.asarray(1j).dtype
    for kind in (None, *KINDS, ("bool", "integral")):
        assert info.dtypes(kind=kind).keys() == other.dtypes(kind=kind).keys()
        assert all(getattr(sg, n) == d for n, d in info.dtypes(kind=kind).items())
    with pytest.raises(UnsupportedError, match="'cpu'"):
        info.dtypes(device="gpu")


# ---- nodes as arrays ------------------------------------------------------------------------


@each("name", METHODS.split())
def test_a_node_has_the_methods_of_the_standard(name):
    assert callable(getattr(sg.Node, f"__{name}__"))


def test_a_node_has_the_attributes_of_the_standard():
    x = sg.asarray([[1.0, 2.0]])
    assert (x.dtype, x.device, x.ndim, x.shape, x.size) == (sg.float64, "cpu", 2, (1, 2), 2)
    assert x.T.shape == x.mT.shape == (2, 1)
    assert x.to_device("cpu") is x
    assert x.__array_namespace__(api_version="2024.12") is sg
    with pytest.raises(UnsupportedError, match="'cpu'"):
        x.to_device("gpu")
    with pytest.raises(UnsupportedError, match="version"):
        x.__array_namespace__(api_version="1999.01")


@pytest.mark.parametrize("value", [True, False, 3, -2, 1.5, -0.0, float("inf"), 2 + 3j])
def test_scalars_are_pythons_numbers(value):
    x = sg.asarray(value)
    for kind in (bool, int, float, complex):
        try:
            wanted = kind(value)
        except (TypeError, OverflowError) as error:
            with pytest.raises(type(error)):
                kind(x)
        else:
            assert type(kind(x)) is kind
            assert repr(kind(x)) == repr(wanted)
    if type(value) is int:
        assert [10, 20, 30, 40][x] == [10, 20, 30, 40][value]
    else:
        with pytest.raises(TypeError, match="no integer"):
            [10, 20][x]


@each("dtype", DTYPES)
def test_other_libraries_read_nodes_and_nodes_read_them(dtype):
    x = sg.asarray([[0, 1], [1, 1]], dtype=dtype)
    np.testing.assert_array_equal(np.from_dlpack(x), np.asarray(x))
    assert np.from_dlpack(x).dtype == x.dtype
    theirs = strict.astype(strict.asarray([[0, 1], [1, 1]]), getattr(strict, dtype))
    back = sg.from_dlpack(theirs)
    assert back.dtype == x.dtype
    assert bool(sg.all(back == x))
    assert x.__dlpack_device__() == (1, 0)
    wanted = "(self, *, stream=None, max_version=None, dl_device=None, copy=None)"
    found = inspect.signature(sg.Node.__dlpack__)
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    assert str(inspect.Signature(bare)) == wanted
    capsule = x.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=True)
    assert "dltensor" in repr(capsule)


def test_several_arrays_of_one_kind_are_a_list():
    """As the standard has it up to version 2024.12."""
    x, y = sg.placeholder("x", "N"), sg.placeholder("y", 3)
    for found in (sg.meshgrid(x, y), sg.meshgrid(x), sg.meshgrid(x, y, indexing="ij")):
        assert type(found) is list
    assert sg.meshgrid() == []
    assert type(sg.broadcast_arrays(y, 1.0)) is list


def test_code_for_arrays_that_are_there_at_once_runs():
    """Newton's method, with a test of how near it is in Python."""

    def root(x, steps=50):
        xp = x.__array_namespace__()
        y = xp.ones_like(x)
        for _ in range(steps):
            following = (y + x / y) / 2
            if xp.max(xp.abs(following - y)) < 1e-12:
                return following
            y = following
        raise AssertionError("it does not converge")

    found = root(sg.asarray([1.0, 2.0, 9.0]))
    np.testing.assert_allclose(np.asarray(found), np.sqrt([1.0, 2.0, 9.0]))


def test_scalars_with_a_value_are_numbers_wherever_python_wants_one():
    x = sg.asarray([1.0, 4.0])
    assert f"{sg.sum(x):.2f} {x[0]:g}" == "5.00 1"
    assert f"{x}".startswith("<constant float64[2]")
    assert math.sqrt(x[1]) == 2.0
    assert list(range(sg.asarray(2))) == [0, 1]
    assert sg.zeros((sg.asarray(2), 3)).shape == (2, 3)
    assert sg.arange(sg.asarray(1), sg.asarray(7), sg.asarray(2)).shape == (3,)
    assert 4.0 in x
    assert float(max(x)) == 4.0
    n = sg.placeholder("n", (), "int64")
    for ask in (lambda: sg.arange(n), lambda: f"{n:d}", lambda: range(n), lambda: sg.zeros((n,))):
        with pytest.raises(SymgradError):
            ask()


def test_a_value_is_computed_once():
    x = sg.asarray([1.0, 4.0])
    y = sg.sqrt(x)
    assert float(sg.sum(y)) == 3.0
    assert y.held is not None
    found = np.asarray(y)
    found[:] = 7
    assert float(sg.sum(y * 1)) == 3.0
    w = sg.variable("w", 2.0)
    z = sg.sqrt(x) * w
    assert float(z[1]) == 4.0
    w.value = 3.0
    assert float(z[1]) == 6.0


@each("device", ["gpu", 0])
@each(
    "make",
    [
        lambda d: sg.asarray(1, device=d),
        lambda d: sg.zeros(2, device=d),
        lambda d: sg.ones_like(sg.zeros(2), device=d),
        lambda d: sg.full(2, 1.0, device=d),
        lambda d: sg.full(2, 1.0, dtype="int8", device=d),
        lambda d: sg.empty(2, device=d),
        lambda d: sg.arange(2, device=d),
        lambda d: sg.eye(2, device=d),
        lambda d: sg.linspace(0, 1, 2, device=d),
        lambda d: sg.astype(sg.zeros(2), "int8", device=d),
        lambda d: sg.from_dlpack(np.zeros(2), device=d),
    ],
)
def test_there_is_one_device(make, device):
    assert make("cpu").device == make(None).device == "cpu"
    with pytest.raises(UnsupportedError, match="'cpu'"):
        make(device)


def test_what_must_not_be_copied_and_would_be_is_refused():
    x = sg.asarray([1.0])
    assert sg.asarray(x, copy=False) is sg.from_dlpack(x, copy=False) is x
    for bad in (
        lambda: sg.asarray([1.0], copy=False),
        lambda: sg.asarray(np.ones(2), copy=False),
        lambda: sg.from_dlpack(np.ones(2), copy=False),
    ):
        with pytest.raises(ValueError, match="copy"):
            bad()


def test_writing_into_a_node_is_refused_and_says_what_to_write():
    x = sg.asarray([1.0, 2.0])
    with pytest.raises(SymgradError, match=r"x\.at\[index\]\.set\(value\)"):
        x[0] = 3.0


@pytest.mark.parametrize("space", ["fft", "linalg", "nn", "random", "special"])
def test_a_namespace_lists_what_is_public(space):
    module = getattr(sg, space)
    assert dir(module) == sorted(module.__all__)
    assert not {"Any", "ModuleType", "TYPE_CHECKING", "import_module", "ir", "ops"} & set(dir(sg))
    assert {"compile", "grad", "argmax", space} <= set(dir(sg))

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.dims import Dim
from symgrad.ir.errors import DtypeError, GraphError, ShapeError
from symgrad.ir.op import REGISTRY, Op, Registry, Storage, Trials
from symgrad.ir.operators import call
from symgrad.ir.types import TensorType
from symgrad.ops.declare import elementwise
from symgrad.ops.linalg.products import matmul_p
from tests.helpers import each

REGISTRY.every()


def op(name="probe"):
    return Op(name=name, infer=lambda t: t, kernel=np.positive)


def test_a_name_is_given_once():
    registry = Registry()
    registry.add_op(op())
    with pytest.raises(GraphError, match="'probe' already"):
        registry.add_op(op())
    registry.add_function("f", len, (np.sin,))
    with pytest.raises(GraphError, match="'f' already"):
        registry.add_function("f", len, ())
    assert registry.by_numpy == {np.sin: "f"}


def test_an_op_is_frozen_and_itself():
    one, other = op(), op()
    assert one != other
    assert repr(one) == "<op probe>"
    with pytest.raises(AttributeError):
        one.name = "other"


def test_facts_given_in_a_row_come_into_their_groups():
    made = Op.of(
        name="probe", infer=lambda t: t, kernel=np.positive, linear=True, out=True, dtypes="int8"
    )
    assert (made.storage, made.trials) == (Storage(out=True), Trials(dtypes="int8"))
    assert made.linear
    assert (op().storage, op().trials) == (Storage(), Trials())
    with pytest.raises(TypeError, match="in_palce"):
        Op.of(name="probe", infer=lambda t: t, kernel=np.positive, in_palce=(0,))


def test_the_door_refuses_a_second_primitive_of_a_name():
    with pytest.raises(GraphError, match="'tanh' already"):

        @elementwise(np.tanh)
        def tanh(x, /):
            """Again."""


def test_check_wants_what_apply_leaves():
    add, reduce = REGISTRY.ops["add"], REGISTRY.ops["sum"]
    f4, f8 = TensorType(("N", 3), "f4"), TensorType((3,), "f8")
    assert add.check((f4, f4), {}) == f4
    with pytest.raises(GraphError, match="cast to float64"):
        add.check((f4, f8), {})
    with pytest.raises(ShapeError):
        add.check((f4, TensorType((2,), "f4")), {})
    good = {"axis": (1,), "keepdims": False, "dtype": None}
    assert reduce.check((f4,), good) == TensorType(("N",), "f4")
    with pytest.raises(GraphError, match="should be"):
        reduce.check((f4,), good | {"axis": (-1,)})


@each("name", sorted(REGISTRY.functions))
def test_every_function_has_a_docstring_and_every_parameter_a_type(name):
    function = REGISTRY.functions[name]
    assert function.__doc__
    assert function.__doc__.strip().split("\n")[0].endswith((".", ":", ","))
    hints = function.__annotations__
    assert "return" in hints


# ---- weak scalars, which the door to new nodes makes -------------------------------------------

y4 = sg.placeholder("y", ("N", 3), "float32")
u1 = sg.placeholder("u", 3, "uint8")


@each(
    ("node", "dtype"),
    [
        (1 - y4 * y4, "float32"),
        (y4 * 2.5 + 1, "float32"),
        (True + y4, "float32"),
        (y4 / 3, "float32"),
        (3**y4, "float32"),
        (y4 * 1j, "complex64"),
        (sg.maximum(y4, 0), "float32"),
        (sg.where(y4 > 0, 1.5, y4), "float32"),
        (sg.where(y4 > 0, 1, 0), "int64"),
        (sg.clip(y4, 0, 1), "float32"),
        (y4 + Dim.of("N"), "float32"),
        (sg.mean(y4), "float32"),
        (sg.mean(y4, axis=0), "float32"),
        (sg.var(y4, correction=0.5), "float32"),
        (sg.std(y4, correction=1), "float32"),
        (np.float64(3) * y4, "float64"),
        (y4 * np.float64(3), "float64"),
        (np.float32(3) * y4, "float32"),
        (y4 + np.ones(3), "float64"),
        (y4 + np.ones(3, "float32"), "float32"),
        (y4 + np.int64(1), "float64"),
        (y4 + np.float16(1), "float32"),
        (u1 + 255, "uint8"),
        (u1 + 1.0, "float64"),
        (u1 / 2, "float64"),
        (u1 < 7, "bool"),
        (u1 + True, "uint8"),
        ((u1 > 3) + 2, "int64"),
        (sg.add(1, 2), "int64"),
        (sg.add(1, 2.0), "float64"),
        (sg.sum(u1), "uint64"),
        (sg.sum(u1 > 3), "int64"),
        (sg.sum(y4, dtype="float64"), "float64"),
        (sg.mean(u1), "float64"),
    ],
)
def test_weak_scalars_take_the_dtype_beside_them(node, dtype):
    assert node.dtype == dtype


@pytest.mark.parametrize("scalar", [300, -1, 2**70])
def test_a_scalar_that_does_not_fit_is_refused_at_the_users_line(scalar):
    with pytest.raises(DtypeError, match=r"add\(uint8\[3\], .*\).*uint8(.|\n)*test_op.py"):
        u1 + scalar
    with pytest.raises(DtypeError):
        sg.full(3, scalar, dtype="uint8")
    with pytest.raises(DtypeError):
        sg.constant(scalar, "uint8")


@each(
    "bad",
    ["1.5", b"1", None, object(), {"a": 1}, {1.0}, np.array(["a"]), np.array([None, 1]),
     np.datetime64("2020-01-01"), [[1, 2], [3]], np.array([(1, 2)], "i4,i4"), np.timedelta64(3)],
)  # fmt: skip
def test_what_is_no_array_of_numbers_is_refused_and_says_what_to_write(bad):
    for build in (lambda: y4 + bad, lambda: bad + y4, lambda: sg.constant(bad)):
        with pytest.raises(DtypeError, match=r"is no array of numbers"):
            build()


def test_an_array_of_objects_is_told_how_to_become_numbers():
    with pytest.raises(DtypeError, match=r"np.asarray\(value, dtype='float64'\)"):
        y4 + np.array([1, 2, 3], object)


def test_a_builder_carries_its_op():
    assert sg.tanh.op is REGISTRY.ops["tanh"]
    assert matmul_p.op is REGISTRY.ops["matmul"] is REGISTRY.builders["matmul"].op
    assert not hasattr(sg.matmul, "op")  # a composite, which decides what a vector means
    for name, builder in REGISTRY.builders.items():
        assert builder.op is REGISTRY.ops[name]


@pytest.mark.parametrize("name", ["select", "keep_where_positive", "size_of", "gather", "barrier"])
def test_a_primitive_that_is_not_public_has_no_function(name):
    assert name in REGISTRY.builders
    assert name not in REGISTRY.functions
    assert not hasattr(sg, name)


def test_call_finds_public_functions_first():
    x = sg.placeholder("x", (2, 3))
    assert call("select", x > 0, x).op.name == "select"
    assert call("matmul", x, sg.placeholder("v", 3)).shape == (2,)

"""Nodes, and `apply`: the one door through which a node is born."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import wraps
from operator import attrgetter, is_
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from symgrad.ir import numpy_dispatch
from symgrad.ir.array_methods import ArrayMethods, missing
from symgrad.ir.arraylike import ArrayLike
from symgrad.ir.arraylike import describe as describe
from symgrad.ir.at import At
from symgrad.ir.dims import Dim, Shape, Size
from symgrad.ir.errors import (
    GraphError,
    MissingError,
    ShapeError,
    SymbolicError,
    UnsupportedError,
)
from symgrad.ir.leaf_ops import CONSTANT
from symgrad.ir.messages import refuse
from symgrad.ir.op import REGISTRY, Op, casts_of, inferred, inferred_as_given
from symgrad.ir.operators import Operators, call
from symgrad.ir.origin import Origin, current_origin, refuse_side_effect
from symgrad.ir.schema import schema_of
from symgrad.ir.types import DType, TensorType, Type
from symgrad.ir.values import ArrayData, Cell, converted, weak_data
from symgrad.ir.walk import GraphLike, topological

Attrs = tuple[tuple[str, Any], ...]
_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")  # of the array API standard


class Node(Operators, ArrayMethods, ArrayLike):
    """A value that is not computed yet: an op applied to other nodes. Frozen.

    `shape` and `dtype` are known when the node is built. `==` builds a node; hashing and
    membership in sets and dicts go by identity. A graph without placeholders is a value:
    `np.asarray(node)`, `float(node)` and `bool(node)` compute it.
    """

    __slots__ = ("__weakref__", "attrs", "held", "inputs", "op", "origin", "type")
    op: Op
    inputs: tuple[Node, ...]
    attrs: Attrs
    type: Type
    origin: Origin
    held: Any  # the value, once it was asked for; None before

    def __init__(
        self, op: Op, inputs: tuple[Node, ...], attrs: Attrs, type: Type, origin: Origin
    ) -> None:
        _set_op(self, op)
        _set_inputs(self, inputs)
        _set_attrs(self, attrs)
        _set_type(self, type)
        _set_origin(self, origin)
        _set_held(self, None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a node is frozen: build a new one instead of setting {name!r}")

    __hash__ = object.__hash__

    @property
    def tensor(self) -> TensorType:
        """Its type, of which there is one. Raises `ShapeError` for an op with several results."""
        if isinstance(self.type, tuple):
            raise _several(self.op, self.type)
        return self.type

    @property
    def shape(self) -> Shape:
        return self.tensor.shape

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype

    @property
    def ndim(self) -> int:
        return len(self.tensor.shape)

    @property
    def size(self) -> Size:
        """The number of elements."""
        return self.tensor.size

    @property
    def name(self) -> str | None:
        """The name of a placeholder or variable; None for other nodes."""
        for key, value in self.attrs:
            if key == "name":
                return str(value)
        return None

    def attr(self, name: str) -> Any:
        """The value of an attribute. Raises `KeyError` if there is none of this name.

        >>> permute_dims(placeholder("x", (2, 3)), (1, 0)).attr("axes")
        (1, 0)
        """
        for key, value in self.attrs:
            if key == name:
                return value
        raise KeyError(f"{self.op.name} has no attribute {name!r}")

    @property
    def value_inputs(self) -> tuple[Node, ...]:
        """The operands that its value is made of: not those of an update that it carries."""
        return self.inputs[:1] if self.op.update else self.inputs

    @property
    def inner_graph(self) -> GraphLike | None:
        """The graph of what a fused node computes; None for other nodes."""
        return self.attr(self.op.inner_graph) if self.op.inner_graph else None

    @property
    def body(self) -> GraphLike | None:
        """The graph that a loop runs once for each of its steps; None for other nodes."""
        return self.attr(self.op.body) if self.op.body else None

    @property
    def bodies(self) -> tuple[GraphLike, ...]:
        """All graphs that it runs: the body of a loop, the two of a choice."""
        return tuple(self.attr(name) for name in (self.op.body, *self.op.graphs) if name)

    @property
    def T(self) -> Node:
        """The axes in reverse order."""
        return self if self.ndim < 2 else call("permute_dims", self, range(self.ndim)[::-1])

    @property
    def mT(self) -> Node:
        """The last two axes swapped."""
        return call("matrix_transpose", self)

    def __getitem__(self, index: Any) -> Node:
        if isinstance(self.type, tuple):
            return call("item", self, index=index)
        return call("getitem", self, index)

    @property
    def at(self) -> At:
        """Functional writes: `x.at[index].set(value)` is x with the value there; see `At`."""
        return At(self)

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise UnsupportedError(
            "a node is frozen: nothing can be written into it; build the changed value instead: "
            "x = x.at[index].set(value), or x = sg.where(mask, value, x)"
        )

    def __len__(self) -> int:
        if isinstance(self.type, tuple):
            return len(self.type)
        if not self.ndim:
            raise SymbolicError(f"{describe(self)} is a scalar, which has no length")
        if isinstance(size := self.shape[0], int):
            return size
        raise SymbolicError(
            f"the length {size} of {describe(self)} is not known; it is x.shape[0], and sg.scan or "
            "sg.map go over the rows"
        )

    def __iter__(self) -> Iterator[Node]:
        if not isinstance(self.type, tuple) and not self.ndim:
            raise SymbolicError(f"{describe(self)} is a scalar, which has no parts")
        return self._parts()

    def _parts(self) -> Iterator[Node]:
        # A length that is not known is told by the first part, not by iter(), in whose place NumPy
        # puts a TypeError of its own.
        for i in range(len(self)):
            yield self[i]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return numpy_dispatch.ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return numpy_dispatch.function(func, args, kwargs)

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """The functions that build graphs, under the Python array API standard's names."""
        if api_version not in (None, *_VERSIONS):
            raise UnsupportedError(f"version {api_version!r} is not one of {', '.join(_VERSIONS)}")
        return sys.modules[__name__.partition(".")[0]]

    if not TYPE_CHECKING:  # which would take any name for one of a node's

        def __getattr__(self, name: str) -> NoReturn:
            if not name.startswith("_"):  # those are protocols, which are asked for all the time
                REGISTRY.every()
            raise MissingError(missing(name))

    def __copy__(self) -> Node:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        """Variables are copied with their values, and so is what depends on them; no more is."""
        copies: dict[Node, Node] = memo.setdefault(id(Node), {})
        for node in topological([self], copies):
            copies[node] = node._copied(tuple([copies[x] for x in node.inputs]))
        return copies[self]

    def _copied(self, inputs: tuple[Node, ...]) -> Node:
        if all(map(is_, inputs, self.inputs)):
            return self
        return Node(self.op, inputs, self.attrs, self.type, self.origin)

    def __repr__(self) -> str:
        return f"<{describe(self)}>"


_type_of = attrgetter("type")
_set_op = vars(Node)["op"].__set__
_set_inputs = vars(Node)["inputs"].__set__
_set_attrs = vars(Node)["attrs"].__set__
_set_type = vars(Node)["type"].__set__
_set_origin = vars(Node)["origin"].__set__
_set_held = vars(Node)["held"].__set__


class Variable(Node):
    """State that is kept between calls of the programs that use it."""

    __slots__ = ()

    if not TYPE_CHECKING:  # which has the signature of a node's

        @wraps(Node.__init__)
        def __init__(self, *args: Any, **named: Any) -> None:
            if named or len(args) != 5 or not isinstance(args[0], Op):
                made = "a variable is made by its name and its first value, with a small v"
                raise UnsupportedError(f"{made}: sg.variable('w', value)")
            super().__init__(*args)

    def _copied(self, inputs: tuple[Node, ...]) -> Node:
        array = self.cell.array
        cell = new_cell(None if array is None else array.copy())
        attrs = tuple((k, cell if k == "cell" else v) for k, v in self.attrs)
        return Variable(self.op, (), attrs, self.type, self.origin)

    @property
    def cell(self) -> Cell:
        """Where the value lies."""
        found = self.attr("cell")
        assert isinstance(found, Cell)
        return found

    @property
    def value(self) -> np.ndarray[Any, DType]:
        """The present value: a copy that cannot be written into, since that would change nothing.

        Setting it takes an array of the same shape and dtype: `w.value = w.value + 1`.
        """
        present = self.cell.read(str(self.name)).copy()
        present.flags.writeable = False
        return present

    @value.setter
    def value(self, value: Any) -> None:
        refuse_side_effect(f"the variable {self.name!r} is set")
        weak = _is_weak(value) and np.result_type(self.dtype, value) == self.dtype
        data = ArrayData(value, self.dtype if weak else None).array
        made = converted(data, self.tensor, f"the variable {self.name!r}")
        with self.cell.lock:
            self.cell.content = made

    def __setattr__(self, name: str, value: object) -> None:
        if name != "value":
            super().__setattr__(name, value)
        object.__setattr__(self, name, value)


def _several(op: Op, types: tuple[TensorType, ...]) -> ShapeError:
    return ShapeError(f"{op.name} has {len(types)} results; take one of them: node[0]")


def leaf(op: Op, type: TensorType, **attrs: Any) -> Node:
    """A node without inputs: its type is what it was declared to be."""
    cls = Variable if "cell" in attrs else Node
    return cls(op, (), tuple(sorted(attrs.items())), type, current_origin())


def give_name(variable: Variable, name: str) -> None:
    """Name a variable that was made without a name; no graph takes one in before it has one."""
    if variable.name is not None:
        raise GraphError(f"{describe(variable)} has a name, and keeps it")
    _set_attrs(variable, (*variable.attrs, ("name", name)))


def constant_node(data: ArrayData) -> Node:
    """A constant of this data."""
    return leaf(CONSTANT, data.type, value=data)


def constant_value(node: Node) -> np.ndarray[Any, DType] | None:
    """The array of a constant node, None for any other."""
    if node.op is not CONSTANT:
        return None
    data = node.attr("value")
    assert isinstance(data, ArrayData)
    return data.array


def new_cell(array: np.ndarray[Any, DType] | None) -> Cell:
    """Storage for a variable, with a lock of its own."""
    return Cell(array, RLock())


def apply(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any] | None = None) -> Node:
    """A node of this op: operands become nodes of fitting dtype, the type rule is asked.

    Python scalars are weak: they take the dtype of the operands beside them (NumPy 2's rule).
    An operand that has `__symgrad_apply__` (a pattern variable) takes over instead. Raises
    `ShapeError` or `DtypeError` with the op, its operands' types and the user's lines.
    """
    nodes = tuple([x for x in operands if isinstance(x, Node)])
    if len(nodes) != len(operands):
        for x in operands:
            if not isinstance(x, Node) and hasattr(x, "__symgrad_apply__"):
                made: Node = x.__symgrad_apply__(op, operands, attrs or {})
                return made
    try:
        if len(nodes) != len(operands):
            nodes = _as_nodes(op, operands)
        types = tuple(map(_type_of, nodes))
        if not attrs and (known := inferred_as_given(op, types)) is not None:
            return Node(op, nodes, (), known, current_origin())
        if tuple in map(type, types) and not op.of_several:
            raise next(_several(n.op, n.type) for n in nodes if isinstance(n.type, tuple))
        if op.of_complex and any(isinstance(t, TensorType) and t.is_complex for t in types):
            op = REGISTRY.ops[op.of_complex]
        if attrs and op.normalize is not None:
            attrs = op.normalize(*types, **attrs)
        if attrs:
            attrs = schema_of(op.infer).admitted(attrs)
        pairs = tuple(sorted(attrs.items())) if attrs else ()
        inputs, casts = nodes, casts_of(op, types)
        if casts:
            wanted = zip(nodes, casts, strict=True)
            inputs = tuple([n if d is None else _cast(n, d) for n, d in wanted])
            types = tuple(map(_type_of, inputs))
        return Node(op, inputs, pairs, inferred(op, types, pairs), current_origin())
    except Exception as error:
        refuse(error, op.name, nodes if len(nodes) == len(operands) else operands)


def _cast(node: Node, dtype: DType) -> Node:
    array = constant_value(node)
    if array is not None and array.size == 1:
        return constant_node(ArrayData(array, dtype))
    return apply(REGISTRY.ops["astype"], (node,), {"dtype": dtype})


def _as_nodes(op: Op, operands: Sequence[Any]) -> tuple[Node, ...]:
    weak = range(len(operands)) if op.weak is None else op.weak
    nodes = [None if i in weak and _is_weak(x) else as_node(x) for i, x in enumerate(operands)]
    dtypes = [n.dtype for i in weak if (n := nodes[i]) is not None]
    return tuple(
        [
            _weak(_reachable(x, dtypes) if op.compares else x, dtypes) if n is None else n
            for n, x in zip(nodes, operands, strict=True)
        ]
    )


def _is_weak(value: Any) -> bool:
    """Whether a value may take the dtype beside it; `np.result_type` decides which it takes."""
    return isinstance(value, (bool, int, float, complex, Dim))


def _reachable(scalar: Any, dtypes: list[DType]) -> Any:
    """A Python int as it is, or infinity of its sign if the dtype of the elements cannot hold it.

    To compare with either has the same answers.
    """
    if type(scalar) is not int or not dtypes:
        return scalar
    dtype = np.result_type(*dtypes, scalar)
    if dtype.kind not in "iu" or np.iinfo(dtype).min <= scalar <= np.iinfo(dtype).max:
        return scalar
    return math.inf if scalar > 0 else -math.inf


def _weak(scalar: bool | int | float | complex | Dim, dtypes: list[DType]) -> Node:
    if isinstance(scalar, Dim):
        dtype = np.result_type(*dtypes, 0) if dtypes else np.dtype(np.int64)
        return call("size_of", dim=scalar, dtype=dtype)
    return constant_node(weak_data(scalar, tuple(dtypes)))


def as_node(value: Any) -> Node:
    """A node as it is; an array or scalar as a constant.

    Raises `DtypeError` for what is no array of booleans or numbers.
    """
    if isinstance(value, Node):
        return value
    if isinstance(value, Dim):
        return _weak(value, [])
    if _holds_node(value):
        return call("stack", value)
    return constant_node(ArrayData(value))


def _holds_node(value: Any) -> bool:
    is_sequence = isinstance(value, (list, tuple))
    return isinstance(value, Node) or (is_sequence and any(map(_holds_node, value)))

"""Nodes, and `apply`: the one door through which a node is born."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from threading import RLock
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from symgrad.ir import numpy_dispatch
from symgrad.ir.dims import Dim, Shape, Size
from symgrad.ir.errors import DtypeError, ShapeError, SymbolicError, SymgradError, UnsupportedError
from symgrad.ir.evaluate import evaluate
from symgrad.ir.op import REGISTRY, Op
from symgrad.ir.operators import Operators, call
from symgrad.ir.origin import Origin, current_origin
from symgrad.ir.types import DType, TensorType, Type
from symgrad.ir.values import ArrayData, Cell
from symgrad.ir.walk import topological

Attrs = tuple[tuple[str, Any], ...]


class Node(Operators):
    """A value that is not computed yet: an op applied to other nodes. Frozen.

    `shape` and `dtype` are known when the node is built. `==` builds a node; hashing and
    membership in sets and dicts go by identity. A graph without placeholders is a value:
    `np.asarray(node)`, `float(node)` and `bool(node)` compute it.
    """

    __slots__ = ("__weakref__", "attrs", "inputs", "op", "origin", "type")
    op: Op
    inputs: tuple[Node, ...]
    attrs: Attrs
    type: Type
    origin: Origin

    def __init__(
        self, op: Op, inputs: tuple[Node, ...], attrs: Attrs, type: Type, origin: Origin
    ) -> None:
        _set_op(self, op)
        _set_inputs(self, inputs)
        _set_attrs(self, attrs)
        _set_type(self, type)
        _set_origin(self, origin)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a node is frozen: build a new one instead of setting {name!r}")

    __hash__ = object.__hash__

    @property
    def tensor(self) -> TensorType:
        """Its type, of which there is one. Raises `ShapeError` for an op with several results."""
        if isinstance(self.type, tuple):
            raise ShapeError(_several(self))
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
        return next((value for key, value in self.attrs if key == "name"), None)

    @property
    def T(self) -> Node:
        """The axes in reverse order."""
        return self if self.ndim < 2 else _node(call("permute_dims", self, range(self.ndim)[::-1]))

    @property
    def mT(self) -> Node:
        """The last two axes swapped."""
        return _node(call("matrix_transpose", self))

    def __getitem__(self, index: Any) -> Node:
        if isinstance(self.type, tuple):
            return _node(call("item", self, index=index))
        return _node(call("getitem", self, index))

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise UnsupportedError(
            "a node is frozen: nothing can be written into it; build the changed value instead, "
            "for example x = sg.where(mask, value, x)"
        )

    def __len__(self) -> int:
        if isinstance(self.type, tuple):
            return len(self.type)
        if not self.ndim:
            raise SymbolicError(f"{describe(self)} is a scalar, which has no length")
        size = self.shape[0]
        if isinstance(size, int):
            return size
        raise SymbolicError(f"the length {size} of {describe(self)} is not known; use node.shape")

    def __iter__(self) -> Iterator[Node]:
        return (self[i] for i in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, DType]:
        if copy is False:
            raise ValueError("a node's value is computed: it cannot be had without a copy")
        return np.array(self._value(), dtype=dtype)

    def _value(self) -> Any:
        names = [n.name for n in topological([self]) if n.op.name == "placeholder"]
        if names:
            raise SymbolicError(
                f"{describe(self)} has no value before its placeholders are fed: "
                f"{', '.join(map(repr, names))}. Compile it: sg.compile([...], node)(...); "
                "for a choice inside a graph write sg.where(condition, a, b)"
            )
        return evaluate([self])[0]

    def __bool__(self) -> bool:
        return bool(self._value())

    def __float__(self) -> float:
        return float(self._value())

    def __int__(self) -> int:
        return int(self._value())

    def __complex__(self) -> complex:
        return complex(self._value())

    def __index__(self) -> int:
        if isinstance(self.type, TensorType) and self.type.dtype.kind not in "iu":
            raise SymbolicError(f"{describe(self)} is no integer and cannot be an index")
        return int(np.asarray(self._value()).__index__())

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return numpy_dispatch.ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return numpy_dispatch.function(func, args, kwargs)

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """The functions that build graphs, under the Python array API standard's names."""
        return sys.modules[__name__.partition(".")[0]]

    def __getattr__(self, name: str) -> NoReturn:
        hint = f"; write sg.{name}(x)" if name in REGISTRY.functions else ""
        raise AttributeError(f"a node has no attribute {name!r}{hint}")

    def __copy__(self) -> Node:
        return self

    def __deepcopy__(self, memo: object) -> Node:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("nodes are not pickled; print the graph and parse it: sg.Graph.parse(text)")

    def __repr__(self) -> str:
        return f"<{describe(self)}>"


_set_op = vars(Node)["op"].__set__
_set_inputs = vars(Node)["inputs"].__set__
_set_attrs = vars(Node)["attrs"].__set__
_set_type = vars(Node)["type"].__set__
_set_origin = vars(Node)["origin"].__set__


class Variable(Node):
    """State that is kept between calls of the programs that use it."""

    __slots__ = ()

    @property
    def cell(self) -> Cell:
        """Where the value lies."""
        found = dict(self.attrs)["cell"]
        assert isinstance(found, Cell)
        return found

    @property
    def value(self) -> np.ndarray[Any, DType]:
        """The present value, a copy. Setting it takes an array of the same shape and dtype."""
        return self.cell.read(str(self.name)).copy()

    @value.setter
    def value(self, value: Any) -> None:
        weak = _is_weak(value) and np.result_type(self.dtype, value) == self.dtype
        data = ArrayData(value, self.dtype if weak else None).array
        misfit = (
            f"the variable {self.name!r} is {self.type!r}; "
            f"a value of {TensorType(data.shape, data.dtype)!r} does not fit"
        )
        if data.shape != self.shape:
            raise ShapeError(misfit)
        if not np.can_cast(data.dtype, self.dtype, "safe"):
            raise DtypeError(f"{misfit}; convert it: value.astype({self.dtype.name!r})")
        with self.cell.lock:
            self.cell.array = data.astype(self.dtype)

    def __setattr__(self, name: str, value: object) -> None:
        if name != "value":
            super().__setattr__(name, value)
        object.__setattr__(self, name, value)


def _node(value: Any) -> Node:
    assert isinstance(value, Node)
    return value


def _several(node: Node) -> str:
    return f"{node.op.name} has {len(node.type)} results; take one of them: node[0]"  # type: ignore[arg-type]


def describe(node: Node) -> str:
    """A node in a few words: `x float32[N, 3] (train.py:5)`."""
    name = repr(node.name) if node.name is not None else node.op.name
    place = next((f" ({p})" for p in node.origin.locations[:1]), "")
    return f"{name[:60]} {node.type!r}{place}"


def leaf(op: Op, type: TensorType, **attrs: Any) -> Node:
    """A node without inputs: its type is what it was declared to be."""
    cls = Variable if "cell" in attrs else Node
    return cls(op, (), tuple(sorted(attrs.items())), type, current_origin())


def constant_node(data: ArrayData) -> Node:
    """A constant of this data."""
    return leaf(REGISTRY.ops["constant"], data.type, value=data)


def constant_value(node: Node) -> np.ndarray[Any, DType] | None:
    """The array of a constant node, None for any other."""
    if node.op.name != "constant":
        return None
    data = node.attrs[0][1]
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
    for x in operands:
        if not isinstance(x, Node) and hasattr(x, "__symgrad_apply__"):
            return x.__symgrad_apply__(op, operands, attrs or {})  # type: ignore[no-any-return]
    nodes = tuple(x for x in operands if isinstance(x, Node))
    try:
        if len(nodes) != len(operands):
            nodes = _as_nodes(op, operands)
        if op.name != "item":
            for n in nodes:
                if isinstance(n.type, tuple):
                    raise ShapeError(_several(n))
        if attrs and op.normalize is not None:
            attrs = op.normalize(*(n.type for n in nodes), **attrs)
        pairs = tuple(sorted(attrs.items())) if attrs else ()
        inputs, types = nodes, tuple(n.type for n in nodes)
        if op.promote is not None:
            inputs = tuple(
                n if d is None or n.dtype == d else _cast(n, d)
                for n, d in zip(nodes, _promote(op, types), strict=True)
            )
            types = tuple(n.type for n in inputs)
        return Node(op, inputs, pairs, _infer(op, types, pairs), current_origin())
    except SymgradError as error:
        raise explained(
            error, op.name, nodes if len(nodes) == len(operands) else operands
        ) from None


@lru_cache(maxsize=4096)
def _promote(op: Op, types: tuple[Type, ...]) -> tuple[DType | None, ...]:
    assert op.promote is not None
    return op.promote(*types)


@lru_cache(maxsize=4096)
def _infer(op: Op, types: tuple[Type, ...], attrs: Attrs) -> Type:
    return op.infer(*types, **dict(attrs))


def _cast(node: Node, dtype: DType) -> Node:
    array = constant_value(node)
    if array is not None and array.size == 1:
        return constant_node(ArrayData(array, dtype))
    return apply(REGISTRY.ops["astype"], (node,), {"dtype": dtype})


def _as_nodes(op: Op, operands: Sequence[Any]) -> tuple[Node, ...]:
    weak = range(len(operands)) if op.weak is None else op.weak
    scalars = [i for i in weak if _is_weak(operands[i])]
    nodes = {i: as_node(x) for i, x in enumerate(operands) if i not in scalars}
    dtypes = [nodes[i].dtype for i in weak if i in nodes]
    for i in scalars:
        nodes[i] = _weak(operands[i], dtypes)
    return tuple(nodes[i] for i in range(len(operands)))


def _is_weak(value: Any) -> bool:
    """Whether a value may take the dtype beside it; `np.result_type` decides which it takes."""
    return isinstance(value, (bool, int, float, complex, Dim))


def _weak(scalar: bool | int | float | complex | Dim, dtypes: list[DType]) -> Node:
    if isinstance(scalar, Dim):
        dtype = np.result_type(*dtypes, 0) if dtypes else np.dtype(np.int64)
        return _node(call("size_of", dim=scalar, dtype=dtype))
    dtype = np.result_type(*dtypes, scalar) if dtypes else np.asarray(scalar).dtype
    return constant_node(ArrayData(scalar, dtype))


def as_node(value: Any) -> Node:
    """A node as it is; an array or scalar as a constant.

    Raises `DtypeError` for what is no array of booleans or numbers.
    """
    if isinstance(value, Node):
        return value
    if isinstance(value, Dim):
        return _weak(value, [])
    if _holds_node(value):
        return _node(call("stack", value))
    return constant_node(ArrayData(value))


def _holds_node(value: Any) -> bool:
    return isinstance(value, Node) or (
        isinstance(value, (list, tuple)) and any(map(_holds_node, value))
    )


def explained(error: SymgradError, name: str, operands: Sequence[Any]) -> SymgradError:
    """The same error with what an inner rule cannot know: the op, the operands, the lines."""
    if "explained" in vars(error):
        return error
    text = str(error)
    types, listed = zip(*map(_shown, operands), strict=True) if operands else ((), ())
    if not text.startswith(f"{name}("):
        text = f"{name}({', '.join(types)}): {text}"
    where = "".join(f"\n  built at {p}: {p.text}" for p in current_origin().locations[:1])
    beside = f"\n  operands: {', '.join(listed)}" if operands else ""
    made = type(error)(f"{text}{where}{beside}")
    vars(made)["explained"] = True
    return made


def _shown(operand: Any) -> tuple[str, str]:
    """What an operand is, and which one, in a few words each."""
    if isinstance(operand, Node):
        return repr(operand.type), describe(operand)
    if isinstance(operand, np.ndarray):
        kind = f"{operand.dtype}{list(operand.shape) or '[()]'}"
        return kind, f"array {kind}"
    text = reprlib.repr(operand)
    return text, text

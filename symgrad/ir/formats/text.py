"""The text form of a graph. It prints, and parses back.

    n0: float32[N, 3] = placeholder(name='x')
    n1: float32[N, 3] = tanh(n0)  # train.py:8
    return n1

Each line is Python syntax, so that Python's own parser reads it. A graph inside an attribute (of a
`fused` node) is a `def` before its use.
"""

from __future__ import annotations

import ast
import binascii
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np

from symgrad.ir.dim_text import shown_syntax, size_from_ast
from symgrad.ir.dims import GRAPH_NAME
from symgrad.ir.errors import ArgumentError, ParseError, SymgradError, short
from symgrad.ir.leaf_ops import INPUTS, LEAVES, VARIABLE
from symgrad.ir.node import Node, leaf, new_cell
from symgrad.ir.op import REGISTRY, Op
from symgrad.ir.origin import current_origin
from symgrad.ir.types import DType, TensorType, Type
from symgrad.ir.updates import updated_variable
from symgrad.ir.values import ArrayData, Cell
from symgrad.ir.walk import GraphLike

G = TypeVar("G", bound=GraphLike)
SMALL = 16  # constants of up to so many elements are written out
SYNTAX = 800  # bytes that a character takes at most when it has become a syntax tree
# A constant as bytes, and a line that is one. Of these there may be many.
_BYTES = r"array\('([A-Za-z0-9+/]*=*)', ([a-z0-9]+), \(([0-9, ]{0,999})\)\)"
CONSTANT = re.compile(_BYTES)
_LINE = re.compile(
    rf"(?:\A|(?<![\\\r])\n) *n[0-9]+: [^'\"\\\n]{{0,999}} = constant\(value={_BYTES}\)"
)


def write(graph: GraphLike, *, full: bool, origins: bool) -> str:
    """The text of a graph; see `Graph.text`."""
    bodies: dict[Any, str] = {}
    lines = _body(graph, bodies, full, origins, "")
    return "\n".join(lines) + "\n"


def _body(
    graph: GraphLike, bodies: dict[Any, str], full: bool, origins: bool, indent: str
) -> list[str]:
    lines: list[str] = []
    names = {node: f"n{i}" for i, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        parts = [names[x] for x in node.inputs]
        for key, value in node.attrs:
            if isinstance(value, Cell):
                continue
            if is_graph(value):
                if value not in bodies:
                    inner = _body(value, bodies, full, origins, indent + "    ")
                    bodies[value] = f"graph{len(bodies)}"
                    lines += [f"{indent}def {bodies[value]}():", *inner]
                parts.append(f"{key}={bodies[value]}")
            else:
                parts.append(f"{key}={attr_text(value, full)}")
        line = f"{indent}{names[node]}: {type_text(node.type)} = {node.op.name}({', '.join(parts)})"
        place = str(node.origin) if origins else ""
        lines.append(f"{line}  # {place}" if place else line)
    wanted = ", ".join(names[y] for y in graph.outputs) or "()"
    lines.append(f"{indent}return {wanted}")
    return lines


def type_text(type: Type) -> str:
    """`float32[N, 3]`; several results in parentheses."""
    if isinstance(type, tuple):
        inside = ", ".join(map(repr, type))
        return f"({inside},)" if len(type) == 1 else f"({inside})"
    return repr(type)


def is_graph(value: Any) -> bool:
    """Whether an attribute is a graph, whose class stands above this file."""
    return hasattr(value, "nodes")


def attr_text(value: Any, full: bool) -> str:
    """An attribute as text; long arrays only in `full`, without which it cannot be read back."""
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, ArrayData):
        return _array(value, full)
    if isinstance(value, tuple):
        inside = ", ".join(attr_text(v, full) for v in value)
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return repr(value)


def _array(data: ArrayData, full: bool) -> str:
    array = data.array
    if array.size <= SMALL:
        elements = _elements(array)
        written = f"array({elements}, {array.dtype.name}{_shape_if_empty(array)})"
        if _reads_back(elements, array):
            return written
    if full or array.size <= SMALL:
        code = binascii.b2a_base64(array.tobytes(), newline=False).decode()
        return f"array('{code}', {array.dtype.name}, {array.shape!r})"
    return f"array({array.shape!r}, {array.dtype.name}, digest='{data.digest}')"


def _reads_back(elements: str, array: np.ndarray[Any, DType]) -> bool:
    """Whether decimals say it exactly, which they do not for a NaN with a payload."""
    try:
        found = np.array(
            _number_array(ast.parse(elements, mode="eval").body, array.dtype), array.dtype
        )
    except (ParseError, OverflowError):
        return False
    return found.tobytes() == array.tobytes()


def _elements(array: np.ndarray[Any, DType]) -> str:
    if array.ndim == 0:
        return str(array[()])
    return f"[{', '.join(_elements(row) for row in array)}]"


def _shape_if_empty(array: np.ndarray[Any, DType]) -> str:
    return "" if array.size else f", {array.shape!r}"


def read(
    source: str, graph_class: Callable[..., GraphLike], most_bytes: int
) -> tuple[list[Node], list[Node]]:
    """The inputs and outputs that a text describes; see `Graph.parse`."""
    if not isinstance(source, str):
        raise ArgumentError(f"a graph is read from text, a str, not from {short(source)}")
    constants = sum(len(m[1]) for m in _LINE.finditer(source))
    needed = SYNTAX * (len(source) - constants) + 4 * constants
    if needed > most_bytes:
        raise ParseError(
            f"line 1: this text may take {needed} bytes of memory, more than {most_bytes}; if it "
            f"is known to be good: most_bytes={needed}"
        )
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise ParseError(f"line {line}: this is no graph: {error}") from None
    return Reader(graph_class).read(tree.body)


class Reader(Generic[G]):
    """Reads statements; `bodies` are the graphs defined so far, made by `graph_class`."""

    def __init__(self, graph_class: Callable[..., G]) -> None:
        self.graph_class = graph_class
        self.bodies: dict[str, G] = {}

    def read(self, statements: list[ast.stmt]) -> tuple[list[Node], list[Node]]:
        nodes: dict[str, Node] = {}
        outputs: list[Node] | None = None
        line = 1
        for statement in statements:
            line = statement.lineno
            try:
                if outputs is not None:
                    raise ParseError("this comes after the end: the line 'return ...'")
                outputs = self.statement(statement, nodes)
            except ParseError as error:
                raise _at_line(line, error) from None
            except Exception as error:  # the rules of ops are asked about attributes of any kind
                raise _at_line(line, error) from error
        if outputs is None:
            raise ParseError(f"line {line}: the text ends without a line 'return ...'")
        return [n for n in nodes.values() if n.op in INPUTS], outputs

    def statement(self, statement: ast.stmt, nodes: dict[str, Node]) -> list[Node] | None:
        """Read one statement; the outputs if it returns them."""
        match statement:
            case ast.FunctionDef(name=name, body=body) if GRAPH_NAME.fullmatch(name):
                if len(body) < sum(1 for _ in ast.iter_child_nodes(statement)) - 1 or any(
                    ast.iter_child_nodes(statement.args)
                ):
                    raise ParseError(f"a graph is defined as def {name}(): and no more")
                if name in self.bodies:
                    raise ParseError(f"{name} is defined twice")
                inner, results = self.read(body)
                self.bodies[name] = self.graph_class(results, inner)
            case ast.AnnAssign(
                target=ast.Name(id=name),
                annotation=annotation,
                value=ast.Call(func=ast.Name(id=op), args=args, keywords=keywords),
            ):
                if name in nodes:
                    raise ParseError(f"{name} is defined twice")
                inputs = [_find(a, nodes) for a in args]
                attrs = {str(k.arg): self.attr(k.value) for k in keywords}
                if len(attrs) < len(keywords):
                    raise ParseError("an attribute is there twice")
                nodes[name] = build_node(op, inputs, attrs, read_type(annotation))
            case ast.Return(value=value) if value is not None:
                wanted = value.elts if isinstance(value, ast.Tuple) else [value]
                return [_find(w, nodes) for w in wanted]
            case _:
                raise ParseError(f"not a node: {shown_syntax(statement)}")
        return None

    def attr(self, tree: ast.expr) -> Any:
        match tree:
            case ast.Name(id=name) if name in self.bodies:
                return self.bodies[name]
            case ast.Constant(value=value):
                return value
            case ast.Tuple(elts=elements):
                return tuple(self.attr(e) for e in elements)
            case ast.Call(func=ast.Name(id="array"), args=args, keywords=[]):
                return _read_array(args)
            case ast.Call(func=ast.Name(id="array")):
                raise ParseError(
                    "this text has a large constant left out; "
                    "write the graph with graph.text(full=True)"
                )
            case ast.Name(id=name) if name in _DTYPES:
                return np.dtype(name)
        number = _number(tree)
        return size_from_ast(tree) if number is None else number


# Ops that had another name in texts and files of earlier versions. Those that had other operands or
# attributes tell of them themselves: see `Op.former`.
RENAMED: Mapping[str, str] = MappingProxyType(
    {"hold": "optimization_barrier", "probabilities": "within"}
)

_DTYPES = frozenset(np.dtype(c).name for c in np.typecodes["All"] if np.dtype(c).kind in "biufc")


def _at_line(line: int, error: Exception) -> ParseError:
    text = str(error) if isinstance(error, SymgradError) else f"no node can be made: {error}"
    return ParseError(text if text.startswith("line ") else f"line {line}: {text}")


def _find(tree: ast.expr, nodes: dict[str, Node]) -> Node:
    name = _name(tree)
    if name not in nodes:
        raise ParseError(f"{name} is not defined")
    return nodes[name]


def _name(tree: ast.expr) -> str:
    if isinstance(tree, ast.Name):
        return tree.id
    raise ParseError(f"expected the name of a node, found {shown_syntax(tree)}")


def read_type(tree: ast.expr) -> Type:
    """The type of a node that has been written as an annotation."""
    match tree:
        case ast.Tuple(elts=elements):
            return tuple(_tensor_type(e) for e in elements)
    return _tensor_type(tree)


def _tensor_type(tree: ast.expr) -> TensorType:
    match tree:
        case ast.Subscript(value=ast.Name(id=name), slice=inside) if name in _DTYPES:
            sizes = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            return TensorType(tuple(size_from_ast(s) for s in sizes), np.dtype(name))
    raise ParseError(f"not a type: {shown_syntax(tree)}; write for example float32[N, 3]")


def _number(tree: ast.expr) -> int | float | complex | bool | None:
    match tree:
        case ast.Constant(value=value) if isinstance(value, (bool, int, float, complex)):
            return value
        case ast.Name(id="inf" | "nan" as name):
            return float(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _number(operand)
            return None if number is None or isinstance(number, bool) else -number
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=right):
            a, b = _number(left), _number(right)
            if isinstance(b, complex) and not isinstance(a, bool | complex | None):
                return complex(a, b.imag if isinstance(sign, ast.Add) else -b.imag)
    return None


def _number_array(tree: ast.expr, dtype: DType) -> Any:
    if isinstance(tree, ast.List):
        return [_number_array(e, dtype) for e in tree.elts]
    value = _number(tree)
    if value is None:
        raise ParseError(f"not a number: {shown_syntax(tree)}")
    if not _is_exact(value, dtype):
        raise ParseError(f"{short(value)} is no element of an array of {dtype}")
    return value


def _is_exact(value: complex, dtype: DType) -> bool:
    """Whether a number is one of a dtype; decimals stand for the nearest."""
    if isinstance(value, bool) or dtype.kind in "biu":
        return type(value) is (bool if dtype.kind == "b" else int) and dtype.kind in "biu"
    if isinstance(value, int):
        return abs(value) < 2**64 and int(dtype.type(value).real) == value
    return bool(np.isfinite(dtype.type(value)) or not np.isfinite(value))


def _read_array(args: list[ast.expr]) -> ArrayData:
    if not 2 <= len(args) <= 3 or _name(args[1]) not in _DTYPES:
        raise ParseError("an array is written array(elements, dtype) or with a shape after them")
    dtype = np.dtype(_name(args[1]))
    shape = _shape(args[2]) if len(args) > 2 else None
    match args[0]:
        case ast.Constant(value=str(code)):
            return _from_bytes(code, dtype, shape)
        case elements:
            array = np.array(_number_array(elements, dtype), dtype)
    return ArrayData(array if shape is None else array.reshape(shape))


def _shape(tree: ast.expr) -> tuple[int, ...]:
    match tree:
        case ast.Tuple(elts=sizes):
            values = (s.value for s in sizes if isinstance(s, ast.Constant))
            found = tuple(v for v in values if isinstance(v, int) and not isinstance(v, bool))
            if len(found) == len(sizes):
                return found
    raise ParseError(f"the shape of a constant is a tuple of ints, not {shown_syntax(tree)}")


def _from_bytes(code: str, dtype: DType, shape: tuple[int, ...] | None) -> ArrayData:
    try:
        array = np.frombuffer(binascii.a2b_base64(code, strict_mode=True), dtype)
    except binascii.Error:
        raise ParseError("the bytes of a constant are damaged") from None
    return ArrayData(array if shape is None else array.reshape(shape))


def constant_of_bytes(written: str) -> ArrayData | None:
    """The constant that a text says as bytes, if it does. No syntax tree is made."""
    found = CONSTANT.fullmatch(written)
    if found is None or found[2] not in _DTYPES:
        return None
    shape = _shape(ast.parse(f"({found[3]})", mode="eval").body)
    return _from_bytes(found[1], np.dtype(found[2]), shape)


def build_node(name: str, inputs: list[Node], attrs: dict[str, Any], type: Type) -> Node:
    """A node that has been read. Raises `ParseError` if its op is not of the type as written."""
    name = RENAMED.get(name, name)
    op = REGISTRY.find(name)
    if op in LEAVES:
        if not isinstance(type, TensorType) or inputs:
            raise ParseError(f"{name} has no inputs and one result")
        return _build_leaf(op, attrs, type)
    if op.former is not None:
        inputs, attrs = op.former(inputs, attrs)
    types = tuple(x.type for x in inputs)
    found = op.check(types, attrs)
    if found != type:
        raise ParseError(f"{name} gives {type_text(found)} here, not {type_text(type)}")
    made = Node(op, tuple(inputs), tuple(sorted(attrs.items())), found, current_origin())
    if op.update:
        updated_variable(made)
    return made


def _build_leaf(op: Op, attrs: dict[str, Any], type: TensorType) -> Node:
    if "cell" in attrs:
        raise ParseError("the storage of a variable is in no text")
    cell = {"cell": new_cell(None)} if op is VARIABLE else {}
    if (found := op.check_leaf((), {**attrs, **cell}, type)) != type:
        raise ParseError(f"a constant of {found!r} is no {type!r}")
    return leaf(op, type, **attrs, **cell)

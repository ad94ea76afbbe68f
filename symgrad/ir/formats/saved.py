"""The saved form of a graph: flat JSON, which is read without recursion and believed in nothing.

`format` is "symgrad-graph" and `version` 2. `checksum` is that of the text after it, so that no
damage goes unnoticed; version 1 had none. `lines` are the user's, each a list of its file, its
number and its text: nobody opens the file. `graphs` are the graph, as the last, and before it those
that are inside of fused nodes, each with

- `nodes`, each with its `op`; `inputs`, the places of its operands in the list, which come before
  it; `attrs` and `type`, written as in the text form; and, unless they are empty, `lines`, the
  places of its lines in that list, `scope`, `made_by`, the gradient rule and the rewrites, and
  `kinks`, the subgradient that `sg.kinks` asks for there;
- `inputs`, how many of the first nodes are the inputs;
- `outputs`, the places of the nodes that are wanted.

There are no other fields. Constants are exact to the bit. Variables have no values: those are for
`save_state`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from symgrad.ir.dims import Dim
from symgrad.ir.errors import GraphError, ParseError, SymgradError
from symgrad.ir.formats.reading import Checksum, strict_json
from symgrad.ir.formats.text import (
    G,
    Reader,
    attr_text,
    build_node,
    constant_of_bytes,
    is_graph,
    read_type,
    type_text,
)
from symgrad.ir.kinks import Kinks
from symgrad.ir.node import Node, describe, leaf, new_cell
from symgrad.ir.op import REGISTRY
from symgrad.ir.origin import Location, Maker, Origin, Resolver, built_as, printable
from symgrad.ir.types import TensorType, Type
from symgrad.ir.values import ArrayData, Cell
from symgrad.ir.walk import GraphLike

FORMAT, VERSION = "symgrad-graph", 2
_PIECE = 2**20  # characters that are encoded at once
T = TypeVar("T")
_LISTS = ("scope", "made_by")
_FIELDS = ("op", "inputs", "attrs", "type", "lines", *_LISTS, "kinks")
_HEAD = f'{{"format": "{FORMAT}", "version": {VERSION}, "checksum": "%s", '
MOST_LINES = 2**31  # of a file
LONGEST = 2**16  # characters of a type or an attribute, but for the bytes of a constant
# What the text form of an attribute can say; other objects are kept beside it.
_SAID = (bool, int, float, complex, str, type(None), Dim, np.dtype, ArrayData)


def write(graph: GraphLike, objects: list[Any] | None = None) -> str:
    """The saved form of a graph; `objects` takes what it cannot hold, such as Python code.

    Without it, as for a file, such a graph is refused with `GraphError`.
    """
    writer = _Writer(objects)
    writer.graph(graph)
    lines = [[p.file, p.line, p.text] for p in writer.lines]
    return sealed({"lines": lines, "graphs": writer.graphs})


def sealed(document: Mapping[str, Any]) -> str:
    """A document as text, with its format, its version and its checksum in front."""
    import json

    body = json.dumps(document, allow_nan=False)[1:]
    return f"{_HEAD % Checksum(body)}{body}"


def _check_seal(source: str) -> None:
    """Refuse a text that is not what `sealed` made. Blanks at its end do no harm."""
    head = re.match(re.escape(_HEAD).replace("%s", "([0-9a-f]{32})"), source)
    start, end = head.end() if head else 0, len(source)
    while end > start and source[end - 1] in " \t\r\n":
        end -= 1
    pieces = (source[i : min(i + _PIECE, end)] for i in range(start, end, _PIECE))
    if head is None or str(Checksum(*pieces)) != head[1]:
        raise ParseError(
            "the file is damaged, or was changed: its checksum is that of another text"
        )


class _Writer:
    def __init__(self, objects: list[Any] | None) -> None:
        self.objects = objects
        self.graphs: list[dict[str, Any]] = []
        self.names: dict[Any, str] = {}
        self.lines: dict[Location, int] = {}
        self.resolver = Resolver()

    def graph(self, graph: GraphLike) -> str:
        """Write a graph, unless it has been written; the name that it has in attributes."""
        if graph not in self.names:
            place = {node: i for i, node in enumerate(graph.nodes)}
            nodes = [self.node(n, [place[x] for x in n.inputs]) for n in graph.nodes]
            outputs = [place[y] for y in graph.outputs]
            self.names[graph] = f"graph{len(self.graphs)}"
            self.graphs.append({"nodes": nodes, "inputs": len(graph.inputs), "outputs": outputs})
        return self.names[graph]

    def node(self, node: Node, inputs: list[int]) -> dict[str, Any]:
        attrs = {k: self.attr(v, node) for k, v in node.attrs if not isinstance(v, Cell)}
        written = {"op": node.op.name, "inputs": inputs, "attrs": attrs}
        written["type"] = type_text(node.type)
        origin = node.origin
        rest: dict[str, list[Any]] = {"lines": self.places(origin)}
        rest |= {"scope": list(origin.scope), "made_by": list(map(str, origin.made_by))}
        if origin.kinks is not None:
            written["kinks"] = origin.kinks.side
        return written | {k: v for k, v in rest.items() if v}

    def places(self, origin: Origin) -> list[int]:
        """The numbers of its lines."""
        found = self.resolver.locations(origin)
        return [self.lines.setdefault(line, len(self.lines)) for line in found]

    def attr(self, value: Any, node: Node) -> str:
        if is_graph(value):
            return self.graph(value)
        if isinstance(value, tuple):
            inside = ", ".join(self.attr(v, node) for v in value)
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        if isinstance(value, _SAID):
            return attr_text(value, full=True)
        if self.objects is None:
            raise GraphError(_in_python(node, value))
        self.objects.append(value)
        return f"kept({len(self.objects) - 1})"


def _in_python(node: Node, code: Any) -> str:
    """The message for a node that holds code of a user's."""
    does, instead = "runs", "pickle the graph"
    if not node.op.opaque:
        does = "is differentiated by"
        instead += ", or save one that needs no rule: sg.compile(inputs, outputs).graph"
    place = node.origin.place()
    return f"{describe(node)} {does} {code!r:.60}, Python code that no file holds; {instead}{place}"


def read(
    source: str,
    graph_class: Callable[..., G],
    leaves: Sequence[Node] = (),
    objects: Sequence[Any] = (),
    most_bytes: int | None = None,
) -> G:
    """The graph of a saved form; `leaves` are its inputs, if there are any already.

    Raises `ParseError` for anything but a graph that could have been built.
    """
    try:
        document = strict_json(source, most_bytes)
    except ValueError as error:
        raise ParseError(f"this is no saved graph: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ParseError(f"this is no saved graph: its format is not {FORMAT!r}")
    version = document.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise ParseError(
            f"this is a saved graph of version {version!r:.20}, "
            f"and versions up to {VERSION} are read here"
        )
    _check_fields(document, ("format", "version", "lines", "graphs", *["checksum"][: version - 1]))
    if version > 1:
        _check_seal(source)
    del source  # it may be large, as the constants are
    reader = SavedReader(graph_class, _lines(document), objects)
    graphs = document.get("graphs")
    if not isinstance(graphs, list) or not graphs:
        raise ParseError("graphs is to be a list, with the graph as the last")
    for number, written in enumerate(graphs):
        given = leaves if number == len(graphs) - 1 else ()
        found = reader.graph(number, written, given)
        reader.bodies[f"graph{number}"] = found
    return found


class SavedReader(Reader[G]):
    """Reads the records of nodes; `lines` are the places in source that they name."""

    def __init__(
        self, graph_class: Callable[..., G], lines: Sequence[Location], objects: Sequence[Any]
    ) -> None:
        super().__init__(graph_class)
        self.lines, self.objects = lines, objects

    def graph(self, number: int, written: Any, leaves: Sequence[Node]) -> G:
        nodes: list[Node] = []
        where = f"graph {number}"
        try:
            for i, record in enumerate(_field(written, "nodes", list)):
                where = f"graph {number}, node {i}"
                nodes.append(leaves[i] if i < len(leaves) else self.node(record, nodes))
            where = f"graph {number}"
            _check_fields(written, ("nodes", "inputs", "outputs"))
            outputs = [_place(i, nodes) for i in _field(written, "outputs", list)]
            count = _field(written, "inputs", int)
            if not 0 <= count <= len(nodes):
                raise ParseError(f"{count} of {len(nodes)} nodes cannot be the inputs")
            return self.graph_class(outputs, nodes[:count])
        except SymgradError as error:
            raise ParseError(f"{where}: {error}") from None
        except Exception as error:  # the rules of ops are asked about attributes of any kind
            raise ParseError(f"{where}: no node can be made: {error}") from error

    def node(self, record: Any, nodes: Sequence[Node]) -> Node:
        _check_fields(record, _FIELDS)
        inputs = [_place(i, nodes) for i in _field(record, "inputs", list)]
        attrs = {k: self.attr_value(v) for k, v in _field(record, "attrs", dict).items()}
        frames = [(_place(i, self.lines), 0) for i in _field(record, "lines", list, [])]
        scope, made_by = (_texts(_field(record, k, list, [])) for k in _LISTS)
        kinks = Kinks.of_region(record["kinks"]) if record.get("kinks") is not None else None
        type = parse_type(_field(record, "type", str))
        makers = tuple(map(Maker.parse, made_by))
        with built_as(Origin(tuple(frames), scope, makers, kinks)):
            return build_node(_field(record, "op", str), inputs, attrs, type)

    def attr_value(self, text: Any) -> Any:
        """The value of an attribute."""
        constant = constant_of_bytes(text) if type(text) is str else None
        return self.attr(syntax(text)) if constant is None else constant

    def attr(self, tree: ast.expr) -> Any:
        match tree:
            case ast.Call(func=ast.Name(id="kept"), args=[ast.Constant(value=number)]):
                if not isinstance(number, int) or not 0 <= number < len(self.objects):
                    raise ParseError("it has an object of Python's that no file holds")
                return self.objects[number]
        return super().attr(tree)


def _field(record: Any, name: str, kind: type, default: Any = None) -> Any:
    """A part of a JSON object, of the kind that it must be."""
    if not isinstance(record, Mapping):
        raise ParseError(f"a JSON object is wanted, not {record!r:.40}")
    value = record.get(name, default)
    if type(value) is not kind:
        raise ParseError(f"{name!r} is to be of the kind {kind.__name__}, not {value!r:.40}")
    return value


def _check_fields(record: Any, known: Sequence[str]) -> None:
    """Refuse fields that mean nothing: whoever wrote them meant something."""
    if isinstance(record, Mapping) and (unknown := [k for k in record if k not in known]):
        raise ParseError(f"there is no field {unknown[0][:60]!r}, but {', '.join(known)}")


def _texts(values: list[Any]) -> tuple[str, ...]:
    if not all(type(v) is str for v in values):
        raise ParseError(f"texts are wanted, not {values!r:.60}")
    return tuple(map(printable, values))


def _place(number: Any, among: Sequence[T]) -> T:
    if type(number) is not int or not 0 <= number < len(among):
        raise ParseError(f"{number!r:.20} is not the place of anything before it")
    return among[number]


def _lines(document: Mapping[str, Any]) -> list[Location]:
    match lines := document.get("lines"):
        case [*_] if all(_is_line(line) for line in lines):
            return [Location(printable(file), line, printable(text)) for file, line, text in lines]
    raise ParseError("lines is to be a list of [file, number, text]")


def _is_line(value: Any) -> bool:
    is_one = isinstance(value, list) and [type(part) for part in value] == [str, int, str]
    return is_one and 0 <= value[1] < MOST_LINES


@lru_cache(maxsize=4096)
def parse_type(written: str) -> Type:
    """The type that a text spells, such as "float64[N, 4]"."""
    return read_type(syntax(written))


def syntax(written: str) -> ast.expr:
    """A text as the syntax tree of one expression. Raises `ParseError` if it is none."""
    try:
        if type(written) is not str:
            raise TypeError("it is no text")
        if len(written) > LONGEST:
            raise ValueError(f"it has {len(written)} characters, and at most {LONGEST} are read")
        return ast.parse(written, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError) as error:
        raise ParseError(f"{written!r:.60} cannot be read: {error}") from None


# ---- inputs in pickles, where variables have values -----------------------------------------


def written_input(node: Node) -> tuple[Any, ...]:
    """The arguments of `restored_input` for a placeholder or variable."""
    attrs = dict(node.attrs)
    cell = attrs.pop("cell", None)
    return node.op.name, type_text(node.type), attrs, node.origin, cell and (cell.array,)


def restored_input(
    op: str, type: str, attrs: dict[str, Any], origin: Origin, value: tuple[Any] | None
) -> Node:
    """A placeholder or variable that was pickled, the latter with its value."""
    found = parse_type(type)
    assert isinstance(found, TensorType)
    cell = {} if value is None else {"cell": new_cell(*value)}
    with built_as(origin):
        return leaf(REGISTRY.find(op), found, **attrs, **cell)

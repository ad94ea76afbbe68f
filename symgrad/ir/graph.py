"""A graph: its inputs and its outputs, and all that lies between. Frozen."""

from __future__ import annotations

import copyreg
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from symgrad.ir.errors import GraphError, ParseError, SymgradError
from symgrad.ir.late import Displayed
from symgrad.ir.leaf_ops import INPUTS, LEAVES
from symgrad.ir.networks import to_networkx
from symgrad.ir.node import Node, Variable, as_node, describe
from symgrad.ir.op import REGISTRY
from symgrad.ir.origin import plain_name
from symgrad.ir.types import in_order
from symgrad.ir.updates import updated_variable
from symgrad.ir.values import Cell
from symgrad.ir.walk import GraphLike, topological

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES = 2**28  # of a file
MOST_MEMORY = 2**30  # for the syntax tree of a text


class Graph(Displayed):
    """A computation: outputs, and all nodes that they are computed from.

    `inputs` are the placeholders and variables, `outputs` the nodes that are wanted, `nodes` all
    of them in an order in which they can be computed: the inputs first. Two graphs are equal if
    they compute the same in the same way; variables are equal by name and type.

    Raises `GraphError` if an output needs a placeholder that `inputs` does not list, or if two
    inputs have one name. Without `inputs` they are found, in the order of use.
    """

    __slots__ = ("_hash", "_key", "inputs", "nodes", "outputs")
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    nodes: tuple[Node, ...]
    _key: tuple[Any, ...] | None
    _hash: int | None

    def __init__(self, outputs: Iterable[Any], inputs: Iterable[Node] | None = None) -> None:
        wanted = (
            (outputs,)
            if isinstance(outputs, Node)
            else tuple(map(as_node, in_order(outputs, "outputs", GraphError)))
        )
        order = topological(wanted)
        given = tuple(filter(is_input, order) if inputs is None else inputs)
        _check_listed(given)
        self._fill(wanted, given, order)

    def _fill(self, outputs: tuple[Node, ...], inputs: tuple[Any, ...], order: list[Node]) -> None:
        listed = set(inputs)
        inner = [n for n in order if n not in listed]
        if missing := [n for n in inner if not n.inputs and is_input(n)]:
            raise _missing(missing)
        _set_inputs(self, inputs)
        _set_outputs(self, outputs)
        _set_nodes(self, (*inputs, *inner))
        _set_key(self, None)
        _set_hash(self, None)

    def giving(self, outputs: Iterable[Node]) -> Graph:
        """The graph of other outputs on the same inputs. Raises `GraphError` if one needs more.

        >>> graph.giving(graph.outputs) == graph
        True
        """
        made, wanted = object.__new__(Graph), tuple(outputs)
        made._fill(wanted, self.inputs, topological(wanted))
        return made

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a graph is frozen: build a new one instead of setting {name!r}")

    def __len__(self) -> int:
        return len(self.nodes)

    def verify(self) -> None:
        """Raise `GraphError` unless each node is known, in order, and typed as its rule says."""
        seen: set[Node] = set()
        inside: set[GraphLike] = set()
        for node in self.nodes:
            if REGISTRY.ops.get(node.op.name) is not node.op:
                raise GraphError(f"{describe(node)}: the op {node.op.name!r} is not registered")
            if any(x not in seen for x in node.inputs):
                raise GraphError(f"{describe(node)} comes before one of its inputs")
            try:
                types, attrs = tuple(x.type for x in node.inputs), dict(node.attrs)
                if is_leaf(node):
                    expected = node.op.check_leaf(types, attrs, node.type)
                else:
                    expected = node.op.check(types, attrs)
                if node.op.update:
                    updated_variable(node)
            except SymgradError as error:
                raise GraphError(f"{describe(node)}: {error}") from error
            if expected != node.type:
                raise GraphError(f"{describe(node)}: its rule gives {expected!r}")
            for inner in filter(None, (node.inner_graph, *node.bodies)):
                if inner not in inside:
                    inside.add(inner)
                    inner.verify()
            seen.add(node)

    @property
    def key(self) -> tuple[Any, ...]:
        """The key by which graphs are equal: ops, wiring, attributes and types; not origins."""
        if self._key is None:
            number = {node: i for i, node in enumerate(self.nodes)}
            body = tuple(
                (n.op.name, tuple(number[x] for x in n.inputs), _own(n), n.type) for n in self.nodes
            )
            key = (len(self.inputs), body, tuple(number[y] for y in self.outputs))
            object.__setattr__(self, "_key", key)
        assert self._key is not None
        return self._key

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Graph) and self.key == other.key)

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash(self.key))
        assert self._hash is not None
        return self._hash

    def text(self, *, full: bool = False, origins: bool = True) -> str:
        """The graph as text, one node a line.

        `full` writes large constants out, which `parse` needs; `origins` adds the user's lines.
        """
        from symgrad.ir.formats import text

        return text.write(self, full=full, origins=origins)

    @staticmethod
    def parse(source: str, *, most_bytes: int = MOST_MEMORY) -> Graph:
        """The graph that a text describes. Raises `ParseError` with the line that is wrong.

        It is refused, too, if its syntax tree may take more than `most_bytes` of memory: by
        default from 1.3 million characters on, the bytes of constants aside.

        The user's lines, scopes and choices at kinks are in what `save` writes, not in a text.

        >>> Graph.parse(graph.text(full=True)) == graph
        True
        """
        from symgrad.ir.formats import text

        inputs, outputs = text.read(source, Graph, most_bytes)
        return Graph(outputs, inputs)

    def save(self, path: str | Path) -> Path:
        """Write the graph as JSON (see `symgrad.ir.formats.saved`), whole or not at all.

        Constants are exact to the bit; variables are without values, which `sg.save_state` writes.
        Raises `GraphError`, which names the node and its line, for Python code of yours: what a
        `NumpyFunction` runs, and what differentiates a `Function` or a checkpoint. The graph of a
        compiled program needs no rule of the latter kind any more.
        """
        from symgrad.ir.formats import saved
        from symgrad.ir.formats.writing import write_whole

        return write_whole(path, saved.write(self) + "\n")

    @staticmethod
    def load(path: str | Path, *, most_bytes: int = MOST_BYTES) -> Graph:
        """The graph that `save` wrote; each node is asked of its op's type rule, as when built.

        A file may come from anywhere: nothing in it is run or opened. A pickle can run anything:
        read only your own. Raises `ParseError`, which names the node, for an unknown op, a wrong
        type, a damaged file, or no graph; `FileError` for what is no regular file, or has more than
        `most_bytes`: bytes, text and what it says are held at once, by default in less than 1 GB.
        """
        from symgrad.ir.formats import saved

        return saved.read(_text_of(path, most_bytes), Graph, most_bytes=most_bytes)

    def __reduce__(self) -> tuple[Any, ...]:
        from symgrad.ir.formats import saved

        objects: list[Any] = []
        return _restored, (saved.write(self, objects), self.inputs, tuple(objects))

    def __copy__(self) -> Graph:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        """Variables are copied, with their values; placeholders are the same."""
        return Graph(*([deepcopy(n, memo) for n in each] for each in (self.outputs, self.inputs)))

    def to_networkx(self) -> Any:
        """A `networkx.MultiDiGraph` of node numbers, with `op`, `type` and `node` attributes."""
        return to_networkx(self)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Graph of {len(self.nodes)} nodes, {len(self.outputs)} outputs>"


_set_inputs = vars(Graph)["inputs"].__set__
_set_outputs = vars(Graph)["outputs"].__set__
_set_nodes = vars(Graph)["nodes"].__set__
_set_key = vars(Graph)["_key"].__set__
_set_hash = vars(Graph)["_hash"].__set__


def _text_of(path: str | Path, most_bytes: int) -> str:
    from symgrad.ir.formats.reading import regular_file

    with regular_file(path, most_bytes) as file:
        data = file.read()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ParseError(f"{path} is no saved graph: {error}") from None


def is_leaf(node: Node) -> bool:
    """Whether a node's type is declared, not inferred: a placeholder, variable or constant."""
    return node.op in LEAVES


def is_input(node: Node) -> bool:
    """Whether a node is a placeholder or a variable."""
    return node.op in INPUTS


def _own(node: Node) -> tuple[Any, ...]:
    # A NaN is not equal to itself, and two zeros are that differ: floats are told by their digits.
    attrs = ((k, (float, repr(v)) if v.__class__ is float else v) for k, v in node.attrs)
    return tuple((k, v) for k, v in attrs if not isinstance(v, Cell))


def _check_listed(given: tuple[Any, ...]) -> None:
    """Refuse what is no input, and names that are there twice."""
    names: dict[str, Node] = {}
    seen: set[Node] = set()
    for node in given:
        if not isinstance(node, Node) or not is_input(node):
            raise GraphError(
                f"an input is a placeholder or a variable, not {node!r}; "
                "make one with sg.placeholder(name, shape, dtype)"
            )
        if node.name is None:
            raise GraphError(
                f"{describe(node)} is part of a module that has not named it yet; call the module, "
                "or ask it for its parameters(), before you use them elsewhere"
            )
        name = str(node.name)
        other = names.setdefault(name, node)
        # What is fed is told by its name; variables are told by what they are, and may share one.
        shared = isinstance(other, Variable) and isinstance(node, Variable)
        if node in seen or not (other is node or shared):
            raise GraphError(
                f"two inputs are called {name[:60]!r}: {describe(other)} and "
                f"{describe(node)}; give each its own name, and list each once"
            )
        seen.add(node)


def _missing(missing: Sequence[Node]) -> GraphError:
    mend = "which the inputs do not list; add it to them"
    if any(plain_name(str(n.name)) != n.name for n in missing):
        mend = "which has a value in a loop only: let the step return it"
    return GraphError(f"the outputs need {', '.join(map(describe, missing))}, {mend}")


# ---- pickles --------------------------------------------------------------------------------


def _restored(source: str, inputs: Sequence[Node], objects: Sequence[Any]) -> Graph:
    from symgrad.ir.formats import saved

    return saved.read(source, Graph, inputs, objects)


def _only_output(graph: Graph) -> Node:
    return graph.outputs[0]


def _reduced(node: Node) -> tuple[Any, ...]:
    """A node as the one output of a graph.

    Inputs stand for themselves, so that they are the same for all that is in one pickle.
    """
    if is_input(node):
        from symgrad.ir.formats import saved

        return saved.restored_input, saved.written_input(node)
    return _only_output, (Graph([node]),)


for _kind in (Node, Variable):
    copyreg.pickle(_kind, _reduced)

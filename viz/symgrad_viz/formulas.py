"""Formulas and names: how a person would write a node, and what the user calls it."""

from __future__ import annotations

import ast
import dis
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from types import CodeType
from typing import Any, TypeAlias

from symgrad.ir.formats.infix import ATOM, Text, to_text
from symgrad.ir.node import Node, constant_value
from symgrad.ir.op import Op
from symgrad.ir.origin import Frame
from symgrad.ir.walk import GraphLike
from symgrad.ops.conv.convolve import convolve_inputs, convolve_p, convolve_weights
from symgrad.ops.elementwise import add, divide, multiply, pow, reciprocal, square, subtract
from symgrad.ops.fused import fused
from symgrad.ops.index.gather import gather
from symgrad.ops.index.slices import put, slice_p
from symgrad.ops.linalg.products import matmul_p, matmul_tn, vdot_p
from symgrad.ops.logic import logical_and, logical_or
from symgrad.ops.loops.loop import loop
from symgrad.ops.select import keep_bits, keep_where_positive, select, where
from symgrad.ops.shape import astype_p, broadcast_to, item, permute_dims, reshape_p
from symgrad.rewrite.lineage import Lineage
from symgrad_viz.words import name_text, shortened

Form: TypeAlias = Callable[[Node, Sequence[Text]], Text]
Named: TypeAlias = Callable[[Node], str | None]
LOOSE = 0  # binds less than any sign: "a where c, else b"
_STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")
_SIGNS: Mapping[type[ast.operator], Op] = {
    ast.Add: add.op, ast.Sub: subtract.op, ast.Mult: multiply.op, ast.Div: divide.op,
    ast.MatMult: matmul_p.op, ast.Pow: pow.op,
}  # fmt: skip


def formula(node: Node, named: Named, most: int = 200) -> str:
    """The expression that computes a node, as a person writes it, in at most so many characters.

    `named` gives the name of an operand; one for which it gives None is written out itself, and so
    are numbers.

    >>> formula(w @ sg.where(x > 0, x, 0.0), {w: "w", x: "x"}.get)
    'w @ (x where x > 0, else 0)'
    """
    return shortened(to_text(node, _Leaf(named))[0], most)


class _Leaf:
    """Says how a term is written, if not as signs and calls are: by its name, or in its own form.

    As an object, and no function that knows itself, it is gone at once when it is done with.
    """

    def __init__(self, named: Named) -> None:
        self.named = named

    def __call__(self, term: Node, depth: int) -> str | Text | None:
        if depth:
            value = constant_value(term)
            if value is not None and value.size == 1:
                return number_text(value.reshape(-1)[0])
            name = self.named(term)
            if name is not None or not term.inputs:
                return name or "…"
        form = _form_of(term)
        return form and form(term, [to_text(x, self, depth + 1) for x in term.inputs])


def is_aside(node: Node) -> bool:
    """Whether a node is but a matrix transposed, which a formula writes `w.T` where it is read."""
    return node.op is permute_dims.op and _transposed(node) is not None


def number_text(value: Any) -> str:
    """A number as one writes it: `2`, not `2.0`; `1e-06`."""
    text = str(value)
    return text.removesuffix(".0")


def _transposed(node: Node) -> str | None:
    axes = tuple(node.attr("axes"))
    if axes == (1, 0):
        return ".T"
    swapped = (*range(len(axes) - 2), len(axes) - 1, len(axes) - 2)
    return ".mT" if len(axes) > 2 and axes == swapped else None


def _bound(part: Text, strength: int) -> str:
    text, own = part
    return text if own >= strength else f"({text})"


def _chosen(x: Text, condition: Text, otherwise: str = "0") -> Text:
    return f"{_bound(x, 1)} where {_bound(condition, 1)}, else {otherwise}", LOOSE


def _positive_chosen(y: Text, x: Text) -> Text:
    return f"{_bound(x, 1)} where {_bound(y, 2)} > 0, else 0", LOOSE


def _permuted(node: Node, parts: Sequence[Text]) -> Text:
    sign = _transposed(node)
    if sign is not None:
        text = _bound(parts[0], ATOM)
        return (text.removesuffix(sign) if text.endswith(sign) else f"{text}{sign}"), ATOM
    return f"{_bound(parts[0], ATOM)}.transpose{_tuple(node.attr('axes'))}", ATOM


def _tuple(values: Iterable[object]) -> str:
    return f"({', '.join(map(str, values))})"


def _shaped(node: Node, parts: Sequence[Text]) -> Text:
    return f"{_bound(parts[0], ATOM)}.reshape{_tuple(node.attr('shape'))}", ATOM


def sliced(index: Iterable[Sequence[Any]], shape: Sequence[Any]) -> str:
    """Slices as one writes them: `[:, 1:3, ::2]`."""
    found = []
    for (start, stop, step), size in zip(index, shape, strict=True):
        first, end = (0, size) if step > 0 else (size - 1, None)
        begins = "" if start is None or start == first else f"{start}"
        ends = "" if stop is None or stop == end else f"{stop}"
        found.append(f"{begins}:{ends}{'' if step == 1 else f':{step}'}")
    while len(found) > 1 and found[-1] == ":":
        found.pop()
    return f"[{', '.join(found)}]"


def _slice(node: Node, parts: Sequence[Text]) -> Text:
    return f"{_bound(parts[0], ATOM)}{sliced(node.attr('index'), node.inputs[0].shape)}", ATOM


def _put(node: Node, parts: Sequence[Text]) -> Text:
    sign = {"set": "=", "add": "+="}.get(node.attr("mode"), f"{node.attr('mode')}=")
    where = sliced(node.attr("index"), node.inputs[0].shape)
    return f"{_bound(parts[0], ATOM)} with {where} {sign} {_bound(parts[1], 1)}", LOOSE


def _gathered(node: Node, parts: Sequence[Text]) -> Text:
    before = ":, " * node.attr("axis")
    return f"{_bound(parts[0], ATOM)}[{before}{parts[1][0]}]", ATOM


def _reduced(node: Node, parts: Sequence[Text]) -> Text:
    axes, x = tuple(node.attr("axis")), node.inputs[0]
    listed = axes[0] if len(axes) == 1 else axes
    along = "" if len(axes) == x.ndim else f", axis={listed}"
    kept = ", keepdims=True" if node.attr("keepdims") else ""
    return f"{node.op.name}({parts[0][0]}{along}{kept})", ATOM


def _spread(node: Node, parts: Sequence[Text]) -> Text:
    return f"{_bound(parts[0], 1)} for each of {_tuple(node.attr('shape'))}", LOOSE


def _dotted(node: Node, parts: Sequence[Text]) -> Text:
    a, b = parts
    if node.inputs[0] is node.inputs[1]:
        return f"sum({_bound(a, 10)}**2)", ATOM
    return f"sum({_bound(a, 7)} * {_bound(b, 8)})", ATOM


def _cast(node: Node, parts: Sequence[Text]) -> Text:
    return f"{_bound(parts[0], 1)} as {node.attr('dtype').name}", LOOSE


def _power(node: Node, parts: Sequence[Text]) -> Text:
    return f"{_bound(parts[0], 10)}**{_bound(parts[1], 9)}", 9


def _joined(sign: str) -> Form:
    return lambda node, parts: (f"{_bound(parts[0], 1)} {sign} {_bound(parts[1], 1)}", LOOSE)


def _repeated(node: Node, parts: Sequence[Text]) -> Text:
    return f"{node.attr('length')} steps of a loop", LOOSE


def _convolved(node: Node, parts: Sequence[Text]) -> Text:
    said = [parts[0][0], parts[1][0]]
    for name in ("stride", "dilation"):
        sizes = tuple(node.attr(name))
        if any(s != 1 for s in sizes):
            said.append(f"{name}={_tuple(sizes)}")
    return f"{node.op.name}({', '.join(said)})", ATOM


def _group(node: Node, parts: Sequence[Text]) -> Text:
    """A fused node: the formulas of its results, over what it reads."""
    inner = node.inner_graph
    if inner is None:
        return _call(node, parts)
    given = dict(zip(inner.inputs, parts, strict=True))

    def leaf(term: Node, depth: int) -> str | Text | None:
        if term in given:
            return given[term]
        value = constant_value(term)
        if value is not None and value.size == 1:
            return number_text(value.reshape(-1)[0])
        if depth > 6 or not term.inputs:
            return "…"
        form = _form_of(term)
        return form and form(term, [to_text(x, leaf, depth + 1) for x in term.inputs])

    return "; ".join(to_text(y, leaf)[0] for y in inner.outputs), LOOSE


def _call(node: Node, parts: Sequence[Text]) -> Text:
    return f"{node.op.name}({', '.join(text for text, _ in parts)})", ATOM


_FORMS: Mapping[Op, Form] = {
    **dict.fromkeys((select.op, keep_bits.op), lambda n, p: _chosen(p[1], p[0])),
    where.op: lambda n, p: _chosen(p[1], p[0], _bound(p[2], 1)),
    keep_where_positive.op: lambda n, p: _positive_chosen(p[0], p[1]),
    permute_dims.op: _permuted,
    reshape_p.op: _shaped,
    slice_p.op: _slice,
    put.op: _put,
    gather.op: _gathered,
    broadcast_to.op: _spread,
    vdot_p.op: _dotted,
    astype_p.op: _cast,
    pow.op: _power,
    square.op: lambda n, p: (f"{_bound(p[0], 10)}**2", 9),
    reciprocal.op: lambda n, p: (f"1 / {_bound(p[0], 8)}", 7),
    matmul_tn.op: lambda n, p: (f"{_bound(p[0], ATOM)}.T @ {_bound(p[1], 8)}", 7),
    logical_and.op: _joined("and"),
    logical_or.op: _joined("or"),
    item.op: lambda n, p: (f"result {n.attr('index')} of {_bound(p[0], ATOM)}", LOOSE),
    loop.op: _repeated,
    fused.op: _group,
    **dict.fromkeys((convolve_p.op, convolve_weights.op, convolve_inputs.op), _convolved),
}


def _reduces(node: Node) -> bool:
    attrs = dict(node.attrs)
    return "keepdims" in attrs and isinstance(attrs.get("axis"), tuple)


def _form_of(node: Node) -> Form | None:
    """How a node is written, if not as signs and calls are."""
    return _FORMS.get(node.op) or (_reduced if _reduces(node) else None)


def given_names(graph: GraphLike) -> dict[Node, str]:
    """The user's names for nodes: those that the recorded lines assign to, or read.

    A name that several nodes have is of none of them, and leaves have names of their own.
    """
    found = [*_assigned(graph), *_operands(graph)]
    own = {node.name for node in graph.nodes if node.name is not None}
    times = Counter(name for name, _ in dict.fromkeys((name, node) for node, name in found))
    names: dict[Node, str] = {}
    for node, name in found:
        if times[name] == 1 and name not in own and node.name is None:
            names.setdefault(node, name_text(name, 24))
    return names


def names_of_values(lineage: Lineage) -> dict[Node, str]:
    """The user's names for values: by what stands for all nodes that compute each."""
    return {lineage.value(node): name for node, name in given_names(lineage.raw).items()}


def names_in(
    lineage: Lineage, graph: GraphLike, values: Mapping[Node, str] | None = None
) -> dict[Node, str]:
    """The user's names for the nodes of a graph that was made of what the user wrote.

    `values` is what `names_of_values` gave, where that is known.
    """
    values = names_of_values(lineage) if values is None else values
    inside = (n for node in graph.nodes if node.inner_graph for n in node.inner_graph.nodes)
    known = (n for n in (*graph.nodes, *inside) if n.inputs and lineage.form(n) is not None)
    found = ((node, values.get(lineage.value(node))) for node in known)
    return {node: name for node, name in found if name is not None}


def _assigned(graph: GraphLike) -> Iterator[tuple[Node, str]]:
    """The node that a line computed last, and the name that the line assigns it to."""
    made: dict[tuple[int, int], list[Node]] = defaultdict(list)
    frames: dict[tuple[int, int], Frame] = {}
    for node in graph.nodes:
        for frame in node.origin.frames[:1]:
            key = id(frame[0]), frame[1]
            if not node.origin.is_backward:
                made[key].append(node)
                frames[key] = frame
    targets: dict[CodeType, Mapping[int, str]] = {}
    for key, nodes in made.items():
        code, offset = frames[key]
        if not isinstance(code, CodeType):
            continue
        read = {x for n in nodes for x in n.inputs}
        last = [n for n in nodes if n not in read]
        if code not in targets:
            targets[code] = dict(_targets(code))
        name = targets[code].get(offset)
        if name is not None and len(last) == 1 and not last[0].origin.made_by:
            yield last[0], name


def _targets(code: CodeType) -> Iterator[tuple[int, str]]:
    """Of the instructions whose result is assigned at once, by their offsets: to which name."""
    for made, stored in pairwise(dis.get_instructions(code)):
        if stored.opname.startswith(_STORES):
            name = stored.argval[0] if isinstance(stored.argval, tuple) else stored.argval
            # While it runs, an instruction is known by itself or by what follows in its cache.
            yield from ((at, str(name)) for at in range(made.offset, stored.offset, 2))


def _operands(graph: GraphLike) -> Iterator[tuple[Node, str]]:
    """Operands that have a name where they are read: `dw1` in `1e-6 * dw1`."""
    signs, parsed = set(_SIGNS.values()), cache(_parsed)
    for node in graph.nodes:
        if node.op not in signs or node.origin.made_by:
            continue
        place = node.origin.nearest
        written = None if place is None else parsed(place.text)
        if isinstance(written, ast.BinOp) and _SIGNS.get(type(written.op)) is node.op:
            for side, x in zip((written.left, written.right), node.inputs, strict=True):
                if isinstance(side, ast.Name):
                    yield x, side.id


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None

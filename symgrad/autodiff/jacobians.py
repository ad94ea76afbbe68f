"""Jacobians and Hessians, all derivatives in one batched pass, dense or sparse.

Of a sparse one only those entries are computed that the graph allows to differ from 0. Columns that
share no row are pushed forward as one vector (Curtis, Powell and Reid, On the estimation of sparse
Jacobian matrices, 1974), or rows that share no column are pulled back as one.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, Unpack, overload

import numpy as np

from symgrad.autodiff.batching import batched
from symgrad.autodiff.checks import Disconnected, Several, check_outputs, check_wrt, several
from symgrad.autodiff.colouring import apart, coloured, coloured_apart, fewest
from symgrad.autodiff.known import with_known
from symgrad.autodiff.locking import on_each_side
from symgrad.autodiff.reverse import active_nodes
from symgrad.autodiff.sparsity import Numbers, sparsity
from symgrad.autodiff.transforms import Nodes, Options, grad, pushed_forward, vjp
from symgrad.ir.dims import guess
from symgrad.ir.errors import GradientError
from symgrad.ir.forms import flatten
from symgrad.ir.kinks import Kinks, Policy
from symgrad.ir.node import Node, constant_node, describe
from symgrad.ir.values import ArrayData
from symgrad.ir.walk import topological
from symgrad.ops.declare import explaining
from symgrad.ops.index.gather import gather
from symgrad.ops.leaves import placeholder, zeros
from symgrad.ops.shape import permute_dims, reshape
from symgrad.ops.sparse.matrix import Matrix

Mode: TypeAlias = Literal["forward", "reverse"] | None


@explaining
def jacobian(
    output: Node,
    wrt: Nodes,
    *,
    mode: Mode = None,
    sparse: bool = False,
    kinks: Policy = None,
    disconnected: Disconnected = "raise",
) -> Any:
    """All partial derivatives of an output: of shape `(*output.shape, *wrt.shape)`, one a `wrt`.

    By default in the mode with fewer vectors: all rows in one batched pass in reverse, or all
    columns in one forward, a pass for each `wrt`. If a function on the way has no forward mode, in
    reverse. By a complex `wrt` a real output has gradients, as those of `grad`, and a complex one
    its complex derivative, if every op on the way has one, else `GradientError`.

    With `sparse=True` it is a `sg.sparse.Matrix`, with a row for each element of the output and a
    column for each of `wrt`, in their order: `J.values`, `J.rows` and `J.columns` are its entries,
    `J @ v` and `J.todense()` nodes, and a program returns it as an array of `scipy.sparse`. Which
    entries there are is found in the graph: elements are followed through arithmetic, slices,
    known indices, sums, products with known matrices; what nothing is known of mixes all. Columns
    that share no row, or rows that share no column, are computed together: a band of three takes
    three passes, side by side, however long it is. Raises `GradientError` for a size that is a
    name, and where little is sparse.

    >>> x = placeholder("x", 3)
    >>> jacobian(x * x, x).type
    float64[3, 3]
    >>> jacobian(x[1:] * x[:-1], x, sparse=True)
    <sparse 2 × 3 float64: 4 entries>
    """
    if mode not in (None, "forward", "reverse"):
        raise GradientError(f"mode is 'forward' or 'reverse', not {mode!r}")
    _check_sparse(sparse)
    asked = several(wrt, "wrt")
    xs = asked.nodes
    check_wrt(xs, asked.paths)
    check_outputs([output])
    mode = _mode_of_complex(output, xs, mode)
    if sparse:
        return asked.form([_sparse(output, xs, x, mode, kinks, disconnected) for x in xs])
    inputs = sum(guess(x.size) for x in xs)
    forward = inputs < guess(output.size) if mode is None else mode == "forward"
    if forward:
        try:
            return asked.form(_jacobian_forward(output, xs, kinks, disconnected))
        except GradientError:
            if mode is not None:
                raise  # else: a custom function on the way may have no forward mode
    return asked.form(_jacobian_reverse(output, xs, kinks, disconnected))


@overload
def hessian(loss: Node, wrt: Node, **options: Unpack[Options]) -> Node: ...
@overload
def hessian(
    loss: Node, wrt: Node, *, sparse: Literal[True], **options: Unpack[Options]
) -> Matrix: ...
@overload
def hessian(loss: Node, wrt: Nodes, *, sparse: bool = False, **options: Unpack[Options]) -> Any: ...
@explaining
def hessian(
    loss: Node,
    wrt: Nodes,
    *,
    sparse: bool = False,
    kinks: Policy = None,
    disconnected: Disconnected = "raise",
) -> Any:
    """The second derivatives of a scalar loss: of shape `(*wrt.shape, *wrt.shape)`.

    For several `wrt`, one in the form of `wrt` for each: row i of the rows of a tuple, say, holds
    the derivatives of the i-th gradient. With `sparse=True` each is a `sg.sparse.Matrix`; see
    `jacobian`.

    >>> x = placeholder("x", 3)
    >>> hessian(sum(x * x), x).type
    float64[3, 3]
    """
    _check_sparse(sparse)
    asked = several(wrt, "wrt")
    wrt = asked.given
    if sparse:
        return _sparse_hessian(loss, asked, Kinks.of(kinks), disconnected)

    def on_side(kinks: Kinks) -> Any:
        first, _ = flatten(grad(loss, wrt, kinks=kinks, disconnected=disconnected), "wrt")
        options: Options = {"kinks": kinks, "disconnected": "zero"}
        return asked.form([jacobian(g.value, wrt, mode="forward", **options) for g in first])

    return on_each_side(kinks, on_side)


def _check_sparse(sparse: Any) -> None:
    if not isinstance(sparse, bool):
        raise GradientError(f"sparse is True or False, not {sparse!r}")


# ---- jacobians ------------------------------------------------------------------------------


def _mode_of_complex(y: Node, xs: list[Node], mode: Mode) -> Mode:
    """The mode in which one vector an element is enough: for complex numbers there is just one."""
    by = [x for x in xs if x.tensor.is_complex]
    if not (by or y.tensor.is_complex):
        return mode
    wanted: Mode = "forward" if y.tensor.is_complex else "reverse"
    if mode not in (None, wanted):
        raise GradientError(f"the jacobian of {describe(y)} is taken in {wanted} mode")
    for node in active_nodes(topological([y]), by):
        if wanted == "forward" and node.inputs and not node.op.holomorphic:
            raise GradientError(
                f"{describe(y)} has no complex derivative: {describe(node)} is on the way; "
                "differentiate real(y) and imag(y), or take jvp or vjp"
            )
    return wanted


def _jacobian_reverse(
    y: Node, xs: list[Node], kinks: Policy, disconnected: Disconnected
) -> tuple[Node, ...]:
    seed = placeholder("cotangent", y.shape, y.dtype)
    rows = vjp(y, xs, seed, kinks=kinks, disconnected=disconnected)
    many = batched(rows, {}, y.size, seed)
    return tuple(reshape(m, (*y.shape, *x.shape)) for m, x in zip(many, xs, strict=True))


def _jacobian_forward(
    y: Node, xs: list[Node], kinks: Policy, disconnected: Disconnected
) -> tuple[Node, ...]:
    found = []
    for x in xs:
        _, _, seed, column = _flow(y, xs, x, True, kinks, disconnected)
        (many,) = batched([column], {}, x.size, seed)
        axes = (*range(1, many.ndim), 0)
        found.append(reshape(permute_dims(many, axes), (*y.shape, *x.shape)))
    return tuple(found)


def _sparse_hessian(loss: Node, asked: Several, kinks: Kinks, disconnected: Disconnected) -> Any:
    """For each of what is differentiated by a row of sparse matrices."""
    xs = asked.nodes
    symmetric = _is_symmetric(loss)

    def on_side(kinks: Kinks) -> list[list[Matrix]]:
        first = grad(loss, xs, kinks=kinks, disconnected=disconnected)
        for g in first:
            _mode_of_complex(g, xs, "forward")
        return [
            [_sparse(g, xs, x, "forward", kinks, "zero", symmetric and x is own) for x in xs]
            for g, own in zip(first, xs, strict=True)
        ]

    t = kinks.place
    if t is None or t in (0, 1):
        found = on_side(kinks)
    else:  # the entries of the sides may be others
        pairs = zip(on_side(Kinks("left")), on_side(Kinks("right")), strict=True)
        found = [[a * (1 - t) + b * t for a, b in zip(*pair, strict=True)] for pair in pairs]
    return asked.form([asked.form(row) for row in found])


def _is_symmetric(loss: Node) -> bool:
    """Whether second derivatives can be exchanged: its gradient is what follows from its value.

    A function with a derivative of its own, or one that stops it, is an identity of its operand.
    """
    return all(
        not n.bodies and not n.op.opaque and (n.op.barrier or n.op.update or not n.op.identity)
        for n in topological([loss])
    )


def _sparse(
    y: Node,
    xs: list[Node],
    x: Node,
    mode: Mode,
    kinks: Policy,
    disconnected: Disconnected,
    symmetric: bool = False,
) -> Matrix:
    """The entries of the Jacobian by one of `xs`, each read from the vector of its colour.

    Of a symmetric one an entry may be read in place of that across the diagonal: what has a column
    for itself needs no row.
    """
    pattern = sparsity(y, x)
    pattern.sort_indices()
    rows, columns = np.repeat(np.arange(int(y.size)), np.diff(pattern.indptr)), pattern.indices
    alone = apart(pattern) if symmetric and not x.tensor.is_complex else np.zeros(int(x.size), bool)
    if alone.any():
        forward, colours = True, coloured_apart(pattern, alone)
        across = alone[rows] & ~alone[columns]
        sources, places = np.where(across, rows, columns), np.where(across, columns, rows)
    else:
        forward, colours = _passes(pattern, mode)
        sources, places = columns, rows

    def entries(forward: bool, colours: Numbers) -> Node:
        start, end, seed, flow = _flow(y, xs, x, forward, kinks, disconnected)
        size = int(colours.max(initial=-1)) + 1
        if not size:
            return zeros(0, dtype=flow.dtype)
        units = np.zeros((size, len(colours)), seed.dtype)
        (own,) = np.nonzero(colours >= 0)
        units[colours[own], own] = 1
        seeds = constant_node(ArrayData(units.reshape(size, *start.shape)))
        (many,) = batched([flow], {seed: seeds}, size)
        given, found = (sources, places) if forward else (places, sources)
        at = colours[given] * int(end.size) + found
        return with_known(gather(reshape(many, (size * int(end.size),)), at, axis=0))

    try:
        values = entries(forward, colours)
    except GradientError:
        if mode is not None or not forward:
            raise  # else: a custom function on the way may have no forward mode
        values = entries(*_passes(pattern, "reverse"))
    shape = (int(y.size), int(x.size))
    return Matrix(values, ArrayData(pattern.indices), ArrayData(pattern.indptr), shape)


def _passes(pattern: Any, mode: Mode) -> tuple[bool, Numbers]:
    """Whether to go forward, with colours of the columns, else of the rows: what takes fewer."""
    turned = pattern.T.tocsr()
    if mode is not None:
        return mode == "forward", coloured(pattern if mode == "forward" else turned)
    forward = fewest(pattern) <= fewest(turned)
    first, second = (pattern, turned) if forward else (turned, pattern)
    colours = coloured(first)
    if colours.max(initial=-1) + 1 > fewest(second):
        others = coloured(second)
        if others.max(initial=-1) < colours.max(initial=-1):
            return not forward, others
    return forward, colours


def _flow(
    y: Node, xs: list[Node], x: Node, forward: bool, kinks: Policy, disconnected: Disconnected
) -> tuple[Node, Node, Node, Node]:
    """Where a vector starts and ends, the vector, and what becomes of it on the way."""
    if forward:
        seed = placeholder("tangent", x.shape, x.dtype)
        tangents = [seed if x is o else None for o in xs]
        (flow,) = pushed_forward([y], xs, tangents, kinks, disconnected)
        return x, y, seed, flow
    seed = placeholder("cotangent", y.shape, y.dtype)
    flows = vjp(y, xs, seed, kinks=kinks, disconnected=disconnected)
    return y, x, seed, dict(zip(xs, flows, strict=True))[x]

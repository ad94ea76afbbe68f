"""The primitives that convolutions are made of.

They are three, each linear in both operands and each the transpose of the others, so that
derivatives of every order are made of them. x is (groups, rows, channels, *other axes, batch), y
the same with filters for channels, and w is (groups, filters, rows, *other axes, channels); see
`convolution_kernels` for why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from symgrad.ir.along import Along, AlongRule, Cut, Cuts, Joined, Piecewise
from symgrad.ir.dims import Shape, Size, product
from symgrad.ir.errors import ShapeError
from symgrad.ir.node import Node, apply
from symgrad.ir.op import Builder, Cotangent, case
from symgrad.ir.types import TensorType, require_equal
from symgrad.ops import batch
from symgrad.ops.conv import kernels
from symgrad.ops.conv.windows import span_of, window_count
from symgrad.ops.declare import NodeLike, P, common_dtype, op, require
from symgrad.ops.shape import reshape

MOST = 2**16  # elements of scratch where it can be as small as one likes

Ints: TypeAlias = tuple[int, ...]


def _counts(x: TensorType, kernel: Ints, stride: Ints, dilation: Ints) -> list[Size]:
    return list(map(window_count, _sizes(x), kernel, stride, dilation))


def _sizes(x: TensorType) -> Shape:
    return (x.shape[1], *x.shape[3:-1])


def _margins(sizes: Shape, kernel: Ints, dilation: Ints) -> list[Size]:
    """Sizes that are all 0 or more where a kernel fits into axes of these sizes."""
    return [n - span_of(k, d) for n, k, d in zip(sizes, kernel, dilation, strict=True)]


def kernel_of(w: TensorType) -> Ints:
    """The sizes of a kernel."""
    if not all(isinstance(k, int) for k in w.shape[2:-1]):
        raise ShapeError(f"a kernel has sizes that are known, not those of {w!r}")
    return tuple(k for k in w.shape[2:-1] if isinstance(k, int))


def _infer(x: TensorType, w: TensorType, *, stride: Ints, dilation: Ints) -> TensorType:
    require("fc", x, w)
    if not len(stride) == len(dilation) == x.ndim - 3 == w.ndim - 3 > 0:
        raise ShapeError(
            f"{x!r} and {w!r} are not convolved with a stride of {stride}, a dilation of {dilation}"
        )
    require_equal(x.shape[0], w.shape[0])
    require_equal(x.shape[2], w.shape[-1])
    rows, *inner = _counts(x, kernel_of(w), stride, dilation)
    return x.with_shape((x.shape[0], rows, w.shape[1], *inner, x.shape[-1]))


def _weights_infer(
    x: TensorType, y: TensorType, *, kernel: Ints, stride: Ints, dilation: Ints
) -> TensorType:
    if not len(kernel) == x.ndim - 3 == y.ndim - 3 > 0:
        raise ShapeError(f"{x!r} and {y!r} have no kernel of {kernel} between them")
    w = x.with_shape((x.shape[0], y.shape[2], *kernel, x.shape[2]))
    _require_result(y, x, w, stride, dilation)
    return w


def _inputs_infer(
    y: TensorType, w: TensorType, *, sizes: Shape, stride: Ints, dilation: Ints
) -> TensorType:
    if not len(sizes) == y.ndim - 3 == w.ndim - 3 > 0:
        raise ShapeError(f"{y!r} is no convolution by {w!r} of axes of {sizes}")
    x = y.with_shape((y.shape[0], sizes[0], w.shape[-1], *sizes[1:], y.shape[-1]))
    _require_result(y, x, w, stride, dilation)
    return x


def _require_result(
    y: TensorType, x: TensorType, w: TensorType, stride: Ints, dilation: Ints
) -> None:
    found = _infer(x, w, stride=stride, dilation=dilation)
    if found.shape != y.shape:
        raise ShapeError(f"a convolution of {x!r} by {w!r} is {found!r}, not {y!r}")


def _lowered(
    x: TensorType, y: TensorType, kernel: Ints, stride: Ints, dilation: Ints
) -> tuple[TensorType, ...]:
    """The scratch into which the kernels lower x; none if it can be read as it is."""
    if x.shape[3:-1] == y.shape[3:-1]:
        return ()
    count, shared = y.shape[1], math.gcd(stride[0], dilation[0])
    assert isinstance(count, int)
    most = -(-count // (dilation[0] // shared))
    step = stride[0] // shared
    rows = max((most - 1) * step + kernel[0], most + -(-kernel[0] // step) - 1)
    parts = (x.shape[0], rows, x.shape[2], *kernel[1:], *y.shape[3:])
    return (x.with_shape((product(parts),)),)


def _some_rows(x: TensorType, y: TensorType, w: TensorType, **attrs: Any) -> Any:
    """The scratch of `convolve_inputs`: as many rows as stay in a cache, but one."""
    found: Any = _lowered(x, y, kernel_of(w), **attrs)
    line: Any = product((x.shape[0], x.shape[2], *kernel_of(w)[1:], *y.shape[3:]))
    most = max(MOST // max(line, 1), 1) * line
    return tuple(t.with_shape((min(t.size, most),)) for t in found)


def _flops(y: TensorType, w: TensorType) -> int:
    found = 2 * y.size * product(w.shape[2:])
    assert isinstance(found, int)
    return found


def _in_groups(inputs: Sequence[Node], flags: Any, node: Node, **attrs: Any) -> Node:
    """A batch is made of more groups."""
    size = batch.batch_size(inputs, flags)
    many = (reshape(x, (size * x.shape[1], *x.shape[2:])) for x in batch.of_all(inputs, flags))
    found = apply(node.op, list(many), attrs)
    return reshape(found, (size, *node.shape))


def _along(by_rows: tuple[bool, bool], joined: Along) -> AlongRule:
    """By groups, the first axis, or by rows, the last axis of the operands that have them."""

    def at(cut: Cut | None, t: TensorType) -> int | None:
        return None if cut is None else cut.axis + 1 - t.ndim if cut.axis else 1

    def rule(types: tuple[TensorType, ...], cuts: Cuts, **attrs: Any) -> Along:
        places = [at(c, t) for c, t in zip(cuts, types, strict=True)]
        if places == [1, 1]:
            return Piecewise.KEPT
        return joined if places == [0 if rows else None for rows in by_rows] else None

    return rule


def _bilinear(
    transposes: Callable[..., tuple[Node, Node]], **facts: Any
) -> Callable[[Callable[P, Node]], Builder[P]]:
    def vjp(g: Node, y: Node, a: Node, b: Node, **attrs: Any) -> tuple[Cotangent, ...]:
        return transposes(g, a, b, attrs["stride"], attrs["dilation"])

    return op(
        vjp=vjp,
        bilinear=True,
        promote=common_dtype,
        batch=_in_groups,
        out=True,
        expensive=True,
        public=False,
        **facts,
    )


ROWS: Mapping[str, Ints] = {"stride": (1,), "dilation": (1,)}
PLANE: Mapping[str, Ints] = {"stride": (1, 1), "dilation": (1, 1)}
SPARSE: Mapping[str, Ints] = {"stride": (2, 1), "dilation": (3, 2)}


def sizes_of(x: Node) -> Shape:
    """The axes of x that a kernel slides along."""
    return (x.shape[1], *x.shape[3:-1])


def _convolve_vjp(g: Node, x: Node, w: Node, *places: Ints) -> tuple[Node, Node]:
    by_x = convolve_inputs(g, w, sizes_of(x), *places)
    return by_x, convolve_weights(x, g, kernel_of(w.tensor), *places)


def _weights_vjp(g: Node, x: Node, y: Node, *places: Ints) -> tuple[Node, Node]:
    return convolve_inputs(y, g, sizes_of(x), *places), convolve_p(x, g, *places)


def _inputs_vjp(g: Node, y: Node, w: Node, *places: Ints) -> tuple[Node, Node]:
    return convolve_p(g, w, *places), convolve_weights(g, y, kernel_of(w.tensor), *places)


@_bilinear(
    _convolve_vjp,
    infer=_infer,
    kernel=kernels.convolve,
    along=_along((True, False), Piecewise.KEPT),
    scratch=lambda x, w, **attrs: _lowered(x, _infer(x, w, **attrs), kernel_of(w), **attrs),
    flops=lambda x, w, **attrs: _flops(_infer(x, w, **attrs), w),
    margins=lambda x, w, stride, dilation: _margins(_sizes(x), kernel_of(w), dilation),
    cases=(
        case((1, 4, 2, 3), (1, 2, 3, 2), **ROWS),
        case((2, 4, 2, 5, 2), (2, 3, 2, 3, 2), **PLANE),
        case((1, 6, 1, 4, 2), (1, 2, 2, 2, 1), **SPARSE),
        case((1, 3, 2, 2, 0), (1, 2, 3, 2, 2), **PLANE),
    ),
)
def convolve_p(x: NodeLike, w: NodeLike, /, stride: Ints, dilation: Ints) -> Node:
    """The sum over taps and channels of w * x, at every place that the whole kernel fits in."""
    ...


@_bilinear(
    _weights_vjp,
    infer=_weights_infer,
    kernel=kernels.convolve_weights,
    along=_along((True, True), Joined("add")),
    scratch=lambda x, y, kernel, **attrs: _lowered(x, y, kernel, **attrs),
    flops=lambda x, y, **attrs: _flops(y, _weights_infer(x, y, **attrs)),
    margins=lambda x, y, kernel, stride, dilation: _margins(_sizes(x), kernel, dilation),
    cases=(
        case((1, 4, 2, 3), (1, 2, 2, 3), kernel=(3,), **ROWS),
        case((2, 4, 2, 5, 2), (2, 3, 3, 3, 2), kernel=(2, 3), **PLANE),
        case((1, 6, 1, 4, 2), (1, 2, 2, 2, 2), kernel=(2, 2), **SPARSE),
    ),
)
def convolve_weights(
    x: NodeLike, y: NodeLike, /, kernel: Ints, stride: Ints, dilation: Ints
) -> Node:
    """convolve, transposed with respect to its weights."""
    ...


@_bilinear(
    _inputs_vjp,
    infer=_inputs_infer,
    kernel=kernels.convolve_inputs,
    along=_along((True, False), Piecewise.KEPT),
    scratch=lambda y, w, sizes, **attrs: _some_rows(
        _inputs_infer(y, w, sizes=sizes, **attrs), y, w, **attrs
    ),
    flops=lambda y, w, **attrs: _flops(y, w),
    margins=lambda y, w, sizes, stride, dilation: _margins(sizes, kernel_of(w), dilation),
    cases=(
        case((1, 2, 2, 3), (1, 2, 3, 2), sizes=(4,), **ROWS),
        case((2, 3, 3, 3, 2), (2, 3, 2, 3, 2), sizes=(4, 5), **PLANE),
        case((1, 2, 2, 2, 2), (1, 2, 2, 2, 1), sizes=(6, 4), **SPARSE),
    ),
)
def convolve_inputs(
    y: NodeLike, w: NodeLike, /, sizes: Shape, stride: Ints, dilation: Ints
) -> Node:
    """convolve, transposed with respect to x, whose axes have these sizes."""
    ...

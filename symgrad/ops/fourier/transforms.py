"""Discrete Fourier transforms: complex, of real numbers, and to real numbers.

Three primitives, linear all of them; the rest are composites. The transform of complex numbers is a
symmetric matrix and so its own transpose. Those from and to real numbers hold half of a spectrum:
what the other half repeats counts twice in their adjoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from symgrad.ir.dims import evaluate, product
from symgrad.ir.errors import DtypeError, ShapeError, UnsupportedError
from symgrad.ir.node import Node
from symgrad.ir.op import case
from symgrad.ir.operators import call
from symgrad.ir.types import DType, TensorType, normalize_axes, normalize_axis
from symgrad.ops import batch
from symgrad.ops.complexes import COMPLEX, conj, part_dtype
from symgrad.ops.declare import NodeLike, composite, linear, require
from symgrad.ops.fourier import kernels
from symgrad.ops.index.slices import getitem
from symgrad.ops.leaves import constant, zeros
from symgrad.ops.reduce import as_float
from symgrad.ops.shape import concat

NAMESPACE = "fft"
Norm: TypeAlias = Literal["backward", "ortho", "forward"]
NORMS = ("backward", "ortho", "forward")
SWAPPED = ("forward", "ortho", "backward")


def _norm(norm: Any) -> str:
    if norm not in NORMS:
        raise UnsupportedError(f"norm is 'backward', 'ortho' or 'forward', not {norm!r}")
    return str(norm)


def _swapped(norm: str) -> str:
    """The norm with which an inverse transform scales as its forward one does with `norm`."""
    return SWAPPED[NORMS.index(_norm(norm))]


def _complex(t: TensorType) -> tuple[DType, ...]:
    require("fc", t)
    return (np.result_type(t.dtype, np.complex64),)


def _single(t: TensorType) -> tuple[DType | None, ...]:
    """NumPy has none of half precision."""
    require("fc", t)
    return (np.dtype(np.float32) if t.dtype.itemsize == 2 else None,)


def _flops(t: TensorType, axis: Any, **attrs: Any) -> int:
    """As of the algorithm of Cooley and Tukey."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    length = product(t.shape[a] for a in axes)
    return 5 * evaluate(t.size, {}) * evaluate(length, {}).bit_length()


# ---- primitives -----------------------------------------------------------------------------


def _fourier_infer(
    t: TensorType, *, axis: tuple[int, ...], inverse: bool, norm: Norm
) -> TensorType:
    if 0 in [t.shape[a] for a in axis]:
        raise ShapeError(f"an axis of size 0 in {t!r} has no Fourier transform")
    return t.with_dtype(*_complex(t))


def _fourier_normalize(t: TensorType, axis: Any, inverse: Any, norm: Any) -> dict[str, Any]:
    axes = normalize_axes(axis, t.ndim)
    if not axes:
        raise ShapeError("a Fourier transform is over one axis or more")
    return {"axis": axes, "inverse": bool(inverse), "norm": _norm(norm)}


@linear(
    infer=_fourier_infer,
    kernel=kernels.fourier,
    normalize=_fourier_normalize,
    promote=_single,
    transpose=lambda g, x, **attrs: call("fourier", g, **attrs),
    flops=_flops,
    batch=batch.over_axes,
    out=True,
    expensive=True,
    cases=(
        case((5,), axis=0, inverse=False, norm="backward"),
        case((3, 4), axis=(0, 1), inverse=True, norm="backward"),
        case((2, 3, 4), axis=(0, -1), inverse=False, norm="ortho"),
        case((4, 3), axis=0, inverse=True, norm="forward"),
        case((0, 3), axis=1, inverse=False, norm="forward"),
    ),
    public=False,
)
def fourier(x: NodeLike, /, axis: Any, inverse: bool, norm: str) -> Node:
    """The discrete Fourier transform over some axes, or its inverse."""
    ...


def _weighted(x: Node, axis: int, n: int, inner: float) -> Node:
    """Half a spectrum of n numbers, with those of its elements scaled that the other half has."""
    weights = np.full(n // 2 + 1, inner)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    behind = (1,) * (x.ndim - axis - 1)
    return x * constant(weights.reshape(-1, *behind), part_dtype(x.dtype))


def _known(t: TensorType, axis: int) -> int:
    size = t.shape[axis]
    if not isinstance(size, int):
        raise ShapeError(f"axis {axis} of {t!r} has no known size; write n=")
    if size == 0:
        raise ShapeError(f"an axis of size 0 in {t!r} has no Fourier transform")
    return size


def _of_real_infer(t: TensorType, *, axis: int, norm: Norm) -> TensorType:
    if t.is_complex:
        raise DtypeError(f"takes real numbers, not {t.dtype.name}; write fft, or take real(x)")
    half = _known(t, axis) // 2 + 1
    shape = (*t.shape[:axis], half, *t.shape[axis + 1 :])
    return TensorType(shape, *_complex(t))


def _real_normalize(t: TensorType, axis: Any, norm: Any, **n: int) -> dict[str, Any]:
    return {"axis": normalize_axis(axis, t.ndim), "norm": _norm(norm), **n}


def _of_real_transpose(g: Node, x: Node, axis: int, norm: str) -> Node:
    n = _known(x.tensor, axis)
    return fourier_to_real(_weighted(g, axis, n, 0.5), axis=axis, n=n, norm=_swapped(norm))


@linear(
    infer=_of_real_infer,
    kernel=kernels.fourier_of_real,
    normalize=_real_normalize,
    promote=_single,
    transpose=_of_real_transpose,
    holomorphic=False,
    flops=lambda t, axis, norm: _flops(t, axis) // 2,
    batch=batch.over_axes,
    out=True,
    expensive=True,
    cases=(
        case((5,), axis=0, norm="backward"),
        case((3, 4), axis=-1, norm="forward"),
        case((6, 2), axis=0, norm="ortho"),
        case((1,), axis=0, norm="backward"),
    ),
    public=False,
)
def fourier_of_real(x: NodeLike, /, axis: int, norm: str) -> Node:
    """The first half of the discrete Fourier transform of real numbers over an axis."""
    ...


def _to_real_infer(t: TensorType, *, axis: int, n: int, norm: Norm) -> TensorType:
    if _known(t, axis) != n // 2 + 1:
        raise ShapeError(f"{n} numbers have a half spectrum of {n // 2 + 1}, not {t.shape[axis]}")
    shape = (*t.shape[:axis], n, *t.shape[axis + 1 :])
    return TensorType(shape, part_dtype(t.dtype))


@linear(
    infer=_to_real_infer,
    kernel=kernels.fourier_to_real,
    normalize=_real_normalize,
    promote=_complex,
    transpose=lambda g, x, axis, n, norm: _weighted(
        fourier_of_real(g, axis=axis, norm=_swapped(norm)), axis, n, 2
    ),
    holomorphic=False,
    flops=lambda t, axis, n, norm: _flops(t, axis),
    batch=batch.over_axes,
    out=True,
    expensive=True,
    dtypes=COMPLEX,
    cases=(
        case((3,), axis=0, n=5, norm="backward"),
        case((3, 3), axis=-1, n=4, norm="forward"),
        case((4, 2), axis=0, n=6, norm="ortho"),
        case((1,), axis=0, n=1, norm="backward"),
    ),
    public=False,
)
def fourier_to_real(x: NodeLike, /, axis: int, n: int, norm: str) -> Node:
    """The n real numbers whose discrete Fourier transform has x for its first half."""
    ...


# ---- sizes ----------------------------------------------------------------------------------


def length_of(n: Any) -> int:
    """How many elements are transformed. Raises `ShapeError` for none."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ShapeError(f"a Fourier transform is of one element or more, not of n={n!r}")
    return int(n)


def _resized(x: Node, axis: int, n: Any) -> Node:
    """The first n elements along an axis, with zeros behind them if there are fewer."""
    size, wanted = x.shape[axis], length_of(n)
    if wanted == size:
        return x
    if not isinstance(size, int):
        raise ShapeError(f"whether {size} is more than n={wanted} is not known")
    if wanted < size:
        return getitem(x, (*(slice(None),) * axis, slice(0, wanted)))
    shape = (*x.shape[:axis], wanted - size, *x.shape[axis + 1 :])
    return concat([x, zeros(shape, dtype=x.dtype)], axis=axis)


def axes_of(x: Node, s: Any, axes: Any) -> list[int]:
    """The axes of a transform, in the order in which `s` names their sizes."""
    if axes is None:
        axes = range(x.ndim) if s is None else range(-len(s), 0)
    found = [normalize_axis(a, x.ndim) for a in (axes if isinstance(axes, Iterable) else (axes,))]
    normalize_axes(tuple(found), x.ndim)
    if s is not None and len(s) != len(found):
        raise ShapeError(f"s names {len(s)} sizes, and there are {len(found)} axes")
    return found


def _over(x: Node, s: Any, axes: Sequence[int]) -> Node:
    """x with the sizes `s` along axes; -1 leaves one as it is."""
    for axis, n in zip(axes, s or (), strict=False):
        x = x if n == -1 else _resized(x, axis, n)
    return x


def _transformed(x: NodeLike, s: Any, axes: Any, inverse: bool, norm: str) -> Node:
    node = as_float(x)
    found = axes_of(node, s, axes)
    return fourier(_over(node, s, found), axis=tuple(found), inverse=inverse, norm=norm)


def _sizes(n: Any) -> list[int] | None:
    return None if n is None else [length_of(n)]


# ---- the public ones ------------------------------------------------------------------------


@composite(numpy=(np.fft.fft,))
def fft(x: NodeLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Node:
    """The discrete Fourier transform over an axis: sum(x[j] * exp(-2j * pi * j * k / n)).

    `n` cuts x, or puts zeros behind it. `norm` says where 1/n is: in the inverse ("backward"), here
    ("forward"), or its root in both ("ortho"). Of float32 and complex64 it is complex64, else
    complex128. Raises `ShapeError` for an axis out of range, or of no elements.

    >>> fft(placeholder("x", 8, "float32")).type
    complex64[8]
    """
    return _transformed(x, _sizes(n), axis, False, norm)


@composite(numpy=(np.fft.ifft,))
def ifft(x: NodeLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Node:
    """The inverse of `fft`, whose arguments and errors it has.

    >>> ifft(placeholder("x", 8, "complex64")).type
    complex64[8]
    """
    return _transformed(x, _sizes(n), axis, True, norm)


@composite(numpy=(np.fft.fftn,))
def fftn(x: NodeLike, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Node:
    """The discrete Fourier transform over several axes, all by default; see `fft`.

    `s` gives a size for each of the axes, which are the last ones by default; -1 leaves one as it
    is. Raises `ShapeError` for an axis out of range or given twice.

    >>> fftn(placeholder("x", (4, 8)), s=(6, 6)).type
    complex128[6, 6]
    """
    return _transformed(x, s, axes, False, norm)


@composite(numpy=(np.fft.ifftn,))
def ifftn(x: NodeLike, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Node:
    """The inverse of `fftn`, whose arguments and errors it has.

    >>> ifftn(placeholder("x", (4, 8))).type
    complex128[4, 8]
    """
    return _transformed(x, s, axes, True, norm)


@composite(numpy=(np.fft.rfft,))
def rfft(x: NodeLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Node:
    """The first n // 2 + 1 elements of the `fft` of real numbers; the rest are their conjugates.

    The size of the axis must be known. Raises `DtypeError` for complex numbers.

    >>> rfft(placeholder("x", 8)).type
    complex128[5]
    """
    return rfftn(x, s=_sizes(n), axes=(axis,), norm=norm)


@composite(numpy=(np.fft.irfft,))
def irfft(x: NodeLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Node:
    """The inverse of `rfft`: n real numbers, by default 2 * (size - 1).

    The imaginary parts of the first element, and of the last one of an even n, count for nothing.

    >>> irfft(placeholder("x", 5, "complex64")).type
    float32[8]
    """
    return irfftn(x, s=_sizes(n), axes=(axis,), norm=norm)


def _last_apart(x: Node, s: Any, axes: Any) -> tuple[tuple[int, ...], int]:
    found = axes_of(x, s, axes)
    if not found:
        raise ShapeError("a Fourier transform is over one axis or more")
    return tuple(found[:-1]), found[-1]


@composite(numpy=(np.fft.rfftn,))
def rfftn(x: NodeLike, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Node:
    """The `rfft` over the last of several axes, and the `fftn` over the others.

    >>> rfftn(placeholder("x", (4, 8))).type
    complex128[4, 5]
    """
    node = as_float(x)
    others, last = _last_apart(node, s, axes)
    y = fourier_of_real(_over(node, s, [*others, last]), axis=last, norm=norm)
    return fourier(y, axis=others, inverse=False, norm=norm) if others else y


@composite(numpy=(np.fft.irfftn,))
def irfftn(x: NodeLike, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Node:
    """The inverse of `rfftn`: `ifftn` over all axes but the last, and over that `irfft`.

    >>> irfftn(placeholder("x", (4, 5), "complex64")).type
    float32[4, 8]
    """
    node = as_float(x)
    others, last = _last_apart(node, s, axes)
    n = length_of(2 * (_known(node.tensor, last) - 1) if s is None or s[-1] == -1 else s[-1])
    y = _over(_resized(node, last, n // 2 + 1), s, others)
    if others:
        y = fourier(y, axis=others, inverse=True, norm=norm)
    return fourier_to_real(y, axis=last, n=n, norm=norm)


@composite(numpy=(np.fft.hfft,))
def hfft(x: NodeLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Node:
    """The real `fft` of n numbers of which the second half are the conjugates of the first, x.

    >>> hfft(placeholder("x", 5, "complex64")).type
    float32[8]
    """
    return irfft(conj(x), n=n, axis=axis, norm=_swapped(norm))


@composite(numpy=(np.fft.ihfft,))
def ihfft(x: NodeLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Node:
    """The inverse of `hfft`: the first n // 2 + 1 elements of the `ifft` of real numbers.

    >>> ihfft(placeholder("x", 8)).type
    complex128[5]
    """
    return conj(rfft(x, n=n, axis=axis, norm=_swapped(norm)))

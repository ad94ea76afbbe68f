"""Drawing with a key: the primitives below `sg.random`.

A key is two words of uint64; several keys, one for each element of a batch, stand along leading
axes. The result is a function of the key and nothing else: equal draws are one, and are computed
where and as often as the compiler likes.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from symgrad.ir.along import Along, Cuts, Piecewise
from symgrad.ir.dims import Shape, Size
from symgrad.ir.errors import DtypeError, ShapeError
from symgrad.ir.node import Node
from symgrad.ir.op import POSITIVE, REAL, Cotangent, case
from symgrad.ir.types import DType, TensorType, as_shape, names_in, require_equal
from symgrad.ops import batch
from symgrad.ops.along import of_only
from symgrad.ops.declare import NodeLike, as_floats, op, require
from symgrad.ops.elementwise import multiply, negative
from symgrad.ops.leaves import arange
from symgrad.ops.random import kernels
from symgrad.ops.special.gamma import gamma_slope

WORD = np.dtype(np.uint64)
INT = np.dtype(np.int64)
SINGLE = np.dtype(np.float32)
DOUBLE = np.dtype(np.float64)
Law: TypeAlias = Literal["random", "standard_normal", "standard_exponential"]


def require_key(t: TensorType) -> None:
    """Refuse what is not two words of uint64."""
    if t.dtype != WORD or t.ndim == 0 or t.shape[-1] != 2:
        raise DtypeError(f"a key is uint64[2], not {t!r}; make one with sg.random.key(0)")


def _drawn(key: TensorType, shape: Any, dtype: DType) -> TensorType:
    require_key(key)
    return TensorType((*key.shape[:-1], *shape), dtype)


_drawing = partial(
    op,
    batch=batch.repeated,
    out=True,
    flops=lambda *types, **attrs: 0,
    expensive=True,
    public=False,
)
_by_key = partial(_drawing, dtypes="uint64")
_by_law = partial(_drawing, ill_conditioned=True, weak=(0,), indices=1)


def _draw_key_infer(key: TensorType, *, count: int) -> TensorType:
    return _drawn(key, (count, 2), WORD)


@op(
    infer=_draw_key_infer,
    kernel=kernels.draw_key,
    batch=batch.repeated,
    dtypes="uint64",
    cases=(case((2,), count=3), case((3, 2), count=1)),
    public=False,
)
def draw_key(key: NodeLike, /, count: int) -> Node:
    """Keys of a key."""
    ...


def _fold_infer(key: TensorType, data: TensorType) -> TensorType:
    require_key(key)
    require("iu", data)
    if data.shape != key.shape[:-1]:
        raise ShapeError(f"{key!r} takes as many integers as there are keys, not {data.shape}")
    return key


@op(
    infer=_fold_infer,
    kernel=kernels.fold_key,
    batch=batch.repeated,
    dtypes="uint64",
    cases=(case((2,), ()), case((3, 2), (3,))),
    public=False,
)
def fold_key(key: NodeLike, data: NodeLike, /) -> Node:
    """A key of a key and an integer."""
    ...


def _law(key: TensorType, law: str, shape: Any, dtype: Any) -> dict[str, Any]:
    return {"law": law, "shape": as_shape(shape), "dtype": np.dtype(dtype)}


def _draw_infer(key: TensorType, *, law: Law, shape: Shape, dtype: DType) -> TensorType:
    if dtype not in (SINGLE, DOUBLE):
        raise DtypeError(f"NumPy draws float32 and float64, not {dtype.name}; convert with astype")
    return _drawn(key, shape, dtype)


@_by_key(
    infer=_draw_infer,
    along=lambda types, cuts, **attrs: _drawn_along(types, cuts, **attrs),
    normalize=_law,
    kernel=kernels.draw,
    row_source=True,
    cases=(
        case((2,), law="random", shape=(3, 4), dtype=SINGLE),
        case((3, 2), law="standard_normal", shape=(), dtype=SINGLE),
        case((2,), law="standard_exponential", shape=(0,), dtype=np.dtype(np.float64)),
    ),
)
def draw(key: NodeLike, /, law: str, shape: Any, dtype: Any) -> Node:
    """Floats by a law that is a method of NumPy's generator."""
    ...


def _draw_integers_infer(
    key: TensorType, *, low: int, high: Size, shape: Shape, dtype: DType
) -> TensorType:
    if dtype.kind not in "biu":
        raise DtypeError(f"integers are drawn as integers, not as {dtype.name}")
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if low < least or (isinstance(high, int) and not low < high <= int(most) + 1):
        raise ShapeError(f"there is no {dtype.name} from {low} on and below {high}")
    return _drawn(key, shape, dtype)


@_by_key(
    infer=_draw_integers_infer,
    along=lambda types, cuts, **attrs: _drawn_along(types, cuts, **attrs),
    kernel=kernels.draw_integers,
    cases=(
        case((2,), low=-2, high=5, shape=(3, 4), dtype=INT),
        case((3, 2), low=0, high=200, shape=(), dtype=np.dtype(np.uint8)),
    ),
)
def draw_integers(key: NodeLike, /, low: int, high: Size, shape: Any, dtype: Any) -> Node:
    """Integers from low on and below high."""
    ...


def _rows_infer(
    key: TensorType, rows: TensorType, *, law: Law, shape: Shape, dtype: DType
) -> TensorType:
    return _draw_infer(key, law=law, shape=_of_rows(key, rows, shape), dtype=dtype)


def _of_rows(key: TensorType, rows: TensorType, shape: Shape) -> Shape:
    require_key(key)
    require("iu", rows)
    if rows.shape[:-1] != key.shape[:-1] or not rows.ndim:
        raise ShapeError(f"{key!r} takes numbers of rows for each key, not {rows!r}")
    return rows.shape[-1], *shape


def _rows_promote(key: TensorType, rows: TensorType) -> tuple[DType | None, ...]:
    require("iu", rows)
    return None, INT


_of_rows_by_key = partial(
    _by_key,
    promote=_rows_promote,
    along=of_only(1),
    indices=1,
    domain=((0.0, 2.0**60), (0.0, 6.0)),
)


@_of_rows_by_key(
    infer=_rows_infer,
    normalize=lambda key, rows, law, shape, dtype: _law(key, law, shape, dtype),
    kernel=kernels.draw_rows,
    cases=(
        case((2,), (4,), law="random", shape=(3,), dtype=DOUBLE),
        case((2,), (3,), law="random", shape=(), dtype=SINGLE),
        case((3, 2), (3, 2), law="standard_normal", shape=(2,), dtype=SINGLE),
    ),
)
def draw_rows(key: NodeLike, rows: NodeLike, /, law: str, shape: Any, dtype: Any) -> Node:
    """The rows of these numbers, from 0 on, of what `draw` gives for more rows of this shape."""
    ...


def _integer_rows_infer(
    key: TensorType, rows: TensorType, *, low: int, high: Size, shape: Shape, dtype: DType
) -> TensorType:
    if dtype.itemsize < 4:
        raise DtypeError(f"several {dtype.name} are drawn from a word at once; draw 'int64'")
    found = _of_rows(key, rows, shape)
    return _draw_integers_infer(key, low=low, high=high, shape=found, dtype=dtype)


@_of_rows_by_key(
    infer=_integer_rows_infer,
    kernel=kernels.draw_integer_rows,
    cases=(
        case((2,), (4,), low=-2, high=5, shape=(3,), dtype=INT),
        case((3, 2), (3, 1), low=0, high=9, shape=(), dtype=np.dtype(np.int32)),
    ),
)
def draw_integer_rows(
    key: NodeLike, rows: NodeLike, /, low: int, high: Size, shape: Any, dtype: Any
) -> Node:
    """The rows of these numbers, from 0 on, of what `draw_integers` gives for more rows."""
    ...


def _drawn_along(
    types: tuple[TensorType, ...], cuts: Cuts, shape: Shape, dtype: DType, **attrs: Any
) -> Along:
    """Rows of one key are told by their numbers; each key of several draws its own."""
    if cuts[0] is not None:
        return None if names_in((shape, *attrs.values())) else Piecewise.KEPT
    small = "low" in attrs and dtype.itemsize < 4
    others = names_in((*shape[1:], *attrs.values()))
    if types[0].ndim != 1 or small or not others.isdisjoint(names_in(shape[:1])):
        return None
    of: Any = draw_integer_rows if "low" in attrs else draw_rows
    attrs |= {"shape": shape[1:], "dtype": dtype}
    return lambda key, **_: of(key, arange(shape[0]), **attrs)


def _draw_order_infer(key: TensorType, *, count: Size) -> TensorType:
    return _drawn(key, (count,), INT)


@_by_key(
    infer=_draw_order_infer,
    kernel=kernels.draw_order,
    cases=(case((2,), count=5), case((3, 2), count=1)),
)
def draw_order(key: NodeLike, /, count: Any) -> Node:
    """The integers below `count` in any order."""
    ...


def _parametrised(t: TensorType, key: TensorType) -> None:
    require("f", t)
    require_key(key)
    for a, b in zip(t.shape, key.shape[:-1], strict=False):
        require_equal(a, b)


def _gamma_infer(t: TensorType, key: TensorType) -> TensorType:
    _parametrised(t, key)
    if t.dtype.itemsize not in (4, 8):
        raise DtypeError(f"takes float32 and float64, not {t.dtype.name}")
    return t


def _key_promote(t: TensorType, key: TensorType) -> tuple[DType | None, ...]:
    require("iu", key)
    return None, WORD


@_by_law(
    infer=_gamma_infer,
    promote=_key_promote,
    kernel=kernels.draw_gamma,
    domain=(POSITIVE, REAL),
    cases=(case((3, 4), (2,)), case((3,), (3, 2)), case((), (2,))),
)
def draw_gamma(concentration: NodeLike, key: NodeLike, /) -> Node:
    """The gamma law of scale 1. It has no derivative: `_reparameterised` knows it."""
    ...


def _poisson_infer(t: TensorType, key: TensorType) -> TensorType:
    _parametrised(t, key)
    return t.with_dtype(INT)


@_by_law(
    infer=_poisson_infer,
    promote=_key_promote,
    kernel=kernels.draw_poisson,
    piecewise_constant=True,
    domain=(POSITIVE, REAL),
    cases=(case((3, 4), (2,)), case((3,), (3, 2)), case((), (2,))),
)
def draw_poisson(rate: NodeLike, key: NodeLike, /) -> Node:
    """How many of what is rare happen. No gradient flows to the rate."""
    ...


def _multinomial_infer(p: TensorType, n: TensorType, key: TensorType) -> TensorType:
    _parametrised(p, key)
    require("iu", n)
    if p.ndim == 0 or n.shape != p.shape[:-1]:
        raise ShapeError(f"{p!r} takes as many counts as it has laws, not {n!r}")
    if p.ndim < key.ndim:
        raise ShapeError(f"{key!r} takes a law for each key, not {p!r}")
    return p.with_dtype(INT)


def _multinomial_promote(p: TensorType, n: TensorType, key: TensorType) -> tuple[DType | None, ...]:
    require("iu", n, key)
    return None, INT, WORD


@_by_law(
    infer=_multinomial_infer,
    promote=_multinomial_promote,
    kernel=kernels.draw_multinomial,
    piecewise_constant=True,
    domain=(POSITIVE, POSITIVE, REAL),
    cases=(case((3, 4), (3,), (2,)), case((3, 2), (3,), (3, 2)), case((5,), (), (2,))),
)
def draw_multinomial(p: NodeLike, n: NodeLike, key: NodeLike, /) -> Node:
    """How often each class is drawn in n draws, with probabilities in proportion to p."""
    ...


@_by_law(
    infer=_gamma_infer,
    promote=_key_promote,
    kernel=kernels.draw_vonmises,
    domain=(POSITIVE, REAL),
    cases=(case((3, 4), (2,)), case((3,), (3, 2)), case((), (2,))),
)
def draw_vonmises(concentration: NodeLike, key: NodeLike, /) -> Node:
    """Angles around 0 from von Mises's law. It has no derivative."""
    ...


# ---- gradients ------------------------------------------------------------------------------


def _implicit(flow: Cotangent, y: Node, a: Node) -> Cotangent:
    if flow is None:
        return None
    return multiply(negative(flow), gamma_slope(a, y, order=1))


@op(
    infer=lambda y, a: y,
    kernel=lambda y, a: y,
    promote=as_floats,
    vjp=lambda g, y, drawn, a: (None, _implicit(g, y, a)),
    jvp=lambda t, y, drawn, a: _implicit(t[1], y, a),
    batch=batch.repeated,
    identity=True,
    domain=(POSITIVE, POSITIVE),
    cases=(case((3, 4), (3, 4)),),
    public=False,
)
def follow_gamma(drawn: NodeLike, concentration: NodeLike, /) -> Node:
    """Draws from the gamma law, as a differentiable function of its parameter.

    Of all numbers with a fixed quantile: d = -(dF/da) / (dF/dx) da with F = gammainc. Figurnov,
    Mohamed and Mnih, Implicit reparameterization gradients, arXiv:1805.08498.
    """
    ...


def gamma_of(key: Node, concentration: Node) -> Node:
    """Draws from the gamma law of scale 1, with a gradient by its parameter."""
    return follow_gamma(draw_gamma(concentration, key), concentration)

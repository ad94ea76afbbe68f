"""`sg.random`: random numbers that are functions of a key.

>>> key = sg.random.key(0)
>>> a, b = sg.random.split(key)
>>> x = sg.random.normal(a, ("N", 3), dtype="float32")

A key is two words of uint64: a constant, or a placeholder `sg.placeholder("key", (2,), "uint64")`
that each call of a program is fed. The generator is NumPy's counter-based Philox, started anew by
every draw: the same key, shape and law give the same numbers, whatever else is drawn, in whatever
order and with however many threads. So draw once with a key: two draws with one key are the same
numbers, and the compiler computes them once. `split` and `fold_in` make keys that are independent
of the one they are made of, and of what it draws.

Gradients flow to the parameters of laws that can be written as a function of noise that does not
depend on them (normal, uniform, gamma, beta, …), and not to those of discrete ones. A shape may
have named dimensions; without one it is that of the parameters. Without a dtype the result has that
of the parameters, or float64. `vmap` over keys draws for each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.ir.dims import Dim, product
from symgrad.ir.elsewhere import absent
from symgrad.ir.errors import DtypeError, ShapeError
from symgrad.ir.namespace import public_names
from symgrad.ir.node import Node, as_node
from symgrad.ir.types import DType, as_dtype, as_shape, broadcast_shapes, normalize_axis
from symgrad.ops.creation import asarray
from symgrad.ops.declare import NodeLike, explaining
from symgrad.ops.domains import required
from symgrad.ops.elementwise import divide, log, negative
from symgrad.ops.index.take import take
from symgrad.ops.leaves import constant, ones_like
from symgrad.ops.logic import less
from symgrad.ops.order import argmax, argsort
from symgrad.ops.random import draws
from symgrad.ops.reduce import as_float, sum
from symgrad.ops.select import clip, where
from symgrad.ops.shape import astype, broadcast_to, reshape
from symgrad.ops.special.normal import ndtr, ndtri

# ---- keys -----------------------------------------------------------------------------------


@explaining
def key(seed: int) -> Node:
    """The key of a seed, an int from 0 on, by NumPy's `SeedSequence`.

    >>> sg.random.key(0).type
    uint64[2]

    Raises `DtypeError` for a node; `fold_in(key(0), node)` is the key of a number in the graph.
    """
    if not _is_int(seed) or seed < 0:
        raise DtypeError(f"a seed is an int from 0 on, not {seed!r}; see fold_in")
    return constant(np.random.SeedSequence(int(seed)).generate_state(2, np.uint64))


@explaining
def split(key: NodeLike, n: int = 2) -> Node:
    """`n` keys made of a key, as uint64[n, 2], each for draws of its own: `a, b = split(key)`.

    The first of them are the same for every n. Raises `ShapeError` for an `n` below 0.
    """
    if not _is_int(n) or n < 0:
        raise ShapeError(f"the number of keys is an int from 0 on, not {n!r}")
    return draws.draw_key(_one(key), count=int(n))


@explaining
def fold_in(key: NodeLike, data: NodeLike) -> Node:
    """A key made of a key and an integer: in a loop, of the number of the step.

    `data` may be a node, so that one program draws anew at each call.
    """
    return draws.fold_key(_one(key), data)


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _one(key: NodeLike) -> Node:
    node = as_node(key)
    draws.require_key(node.tensor)
    if node.ndim != 1:
        raise ShapeError(f"one key is taken, not {node.type!r}; for several use vmap")
    return node


# ---- continuous laws ------------------------------------------------------------------------


def _frame(shape: Any, dtype: Any, *parameters: NodeLike) -> tuple[tuple[Any, ...], DType]:
    """The shape and dtype of what is drawn: as wanted, else those of the parameters."""
    nodes = [as_node(p) for p in parameters if not isinstance(p, (int, float))]
    own = broadcast_shapes((), *(n.shape for n in nodes))
    if dtype is None:
        kinds = [n.dtype for n in nodes]
        found = np.result_type(*kinds) if kinds else np.dtype(np.float64)
        dtype = found if found.kind == "f" else np.dtype(np.float64)
    wanted = as_dtype(dtype)
    if wanted.kind != "f":
        raise DtypeError(f"floats are drawn, not {wanted.name}")
    if shape is None:
        return own, wanted
    given = as_shape(shape)
    ends = zip(own[::-1], given[::-1], strict=False)
    if len(own) > len(given) or any(a not in (1, b) for a, b in ends):
        raise ShapeError(f"parameters of the shape {own} do not broadcast to {given}")
    return given, wanted


def _as(x: NodeLike, dtype: DType) -> Any:
    """A parameter in the dtype of what is drawn."""
    return x if isinstance(x, (int, float)) else astype(as_node(x), dtype)


def _noise(key: NodeLike, law: str, shape: tuple[Any, ...], dtype: DType) -> Node:
    half = dtype.itemsize < 4
    found = draws.draw(_one(key), law=law, shape=shape, dtype=np.float32 if half else dtype)
    return astype(found, dtype) if half else found


def _moved(z: Node, loc: Any, scale: Any) -> Node:
    """loc + scale * z, unless it is z."""
    if isinstance(scale, Node) or scale != 1:
        z = z * scale
    return z + loc if isinstance(loc, Node) or loc != 0 else z


@explaining
def uniform(
    key: NodeLike,
    shape: Any = None,
    *,
    low: NodeLike = 0.0,
    high: NodeLike = 1.0,
    dtype: Any = None,
) -> Node:
    """Numbers that are equally likely from `low` (included) to `high` (excluded).

    The shape is that of the parameters by default. A gradient flows to both.

    >>> float(sg.random.uniform(sg.random.key(0)))
    0.014067035665647709
    """
    size, kind = _frame(shape, dtype, low, high)
    start, stop = _as(low, kind), _as(high, kind)
    return _moved(_noise(key, "random", size, kind), start, stop - start)


@explaining
def normal(
    key: NodeLike,
    shape: Any = None,
    *,
    loc: NodeLike = 0.0,
    scale: NodeLike = 1.0,
    dtype: Any = None,
) -> Node:
    """Numbers from the normal law with the mean `loc` and the standard deviation `scale`.

    A gradient flows to both.

    >>> sg.random.normal(sg.random.key(0), (2, "N"), dtype="float32").type
    float32[2, N]
    """
    size, kind = _frame(shape, dtype, loc, scale)
    z = _noise(key, "standard_normal", size, kind)
    return _moved(z, _as(loc, kind), _as(scale, kind))


@explaining
def truncated_normal(
    key: NodeLike, shape: Any = None, *, low: NodeLike, high: NodeLike, dtype: Any = None
) -> Node:
    """Numbers from the standard normal law, of which only those from `low` to `high` are taken.

    Uniform numbers are put into the inverse of the distribution function, in the lower tail, where
    it is exact. A gradient flows to both ends.

    >>> 3 <= float(sg.random.truncated_normal(sg.random.key(0), low=3.0, high=4.0)) <= 4
    True
    """
    size, kind = _frame(shape, dtype, low, high)
    u = clip(_noise(key, "random", size, kind), np.finfo(kind).eps / 4, None)
    a, b = (astype(asarray(bound), kind) for bound in (low, high))
    side = where(a > 0, negative(ones_like(a)), 1)
    start, stop = ndtr(side * a), ndtr(side * b)
    return clip(side * ndtri(start + u * (stop - start)), a, b)


@explaining
def exponential(
    key: NodeLike, shape: Any = None, *, scale: NodeLike = 1.0, dtype: Any = None
) -> Node:
    """Numbers from the exponential law, such as waiting times, with the mean `scale`."""
    size, kind = _frame(shape, dtype, scale)
    return _moved(_noise(key, "standard_exponential", size, kind), 0, _as(scale, kind))


@explaining
def gumbel(
    key: NodeLike,
    shape: Any = None,
    *,
    loc: NodeLike = 0.0,
    scale: NodeLike = 1.0,
    dtype: Any = None,
) -> Node:
    """Numbers from Gumbel's law, that of maxima: loc - scale * log(E), where E is exponential."""
    size, kind = _frame(shape, dtype, loc, scale)
    z = negative(log(_noise(key, "standard_exponential", size, kind)))
    return _moved(z, _as(loc, kind), _as(scale, kind))


@explaining
def gamma(
    key: NodeLike,
    concentration: NodeLike,
    shape: Any = None,
    *,
    scale: NodeLike = 1.0,
    dtype: Any = None,
) -> Node:
    """Numbers from the gamma law of a concentration (also called shape, or alpha), times `scale`.

    A gradient flows to both: to the concentration implicitly, through the distribution function
    (Figurnov, Mohamed and Mnih, arXiv:1805.08498). They are float32 or float64.

    >>> a = sg.placeholder("a", ())
    >>> sg.grad(sg.random.gamma(sg.random.key(0), a), a).type
    float64[()]
    """
    size, kind = _frame(shape, dtype, concentration, scale)
    a = broadcast_to(astype(asarray(concentration), kind), size)
    return _moved(draws.gamma_of(_one(key), a), 0, _as(scale, kind))


@explaining
def beta(key: NodeLike, a: NodeLike, b: NodeLike, shape: Any = None, *, dtype: Any = None) -> Node:
    """Numbers from the beta law: x / (x + y), for x and y from the gamma laws of a and b.

    A gradient flows to both. Where both are below about 0.01 the result may be NaN in float32.
    """
    size, kind = _frame(shape, dtype, a, b)
    first, second = split(key)
    x, y = gamma(first, a, size, dtype=kind), gamma(second, b, size, dtype=kind)
    return divide(x, x + y)


@explaining
def dirichlet(
    key: NodeLike, concentration: NodeLike, shape: Any = (), *, dtype: Any = None
) -> Node:
    """Vectors of probabilities, which sum to 1, along the last axis: from Dirichlet's law.

    `concentration` is a vector, one number for each class; `shape` is that of the draws, without
    the last axis. A gradient flows to it.

    >>> sg.random.dirichlet(sg.random.key(0), [1.0, 1.0, 2.0], (5,)).type
    float64[5, 3]
    """
    a = as_node(concentration)
    x = gamma(key, a, (*as_shape(shape), *a.shape[-1:]), dtype=dtype)
    return divide(x, sum(x, axis=-1, keepdims=True))


# ---- discrete laws --------------------------------------------------------------------------


@explaining
def bernoulli(key: NodeLike, p: NodeLike = 0.5, shape: Any = None) -> Node:
    """Booleans that are True with the probability `p`. No gradient flows to it.

    A `KernelError` says if p is not from 0 to 1: at once if it is known, else when a program runs.
    """
    size, kind = _frame(shape, None, p)
    return less(_noise(key, "random", size, kind), _probabilities(p))


def _probabilities(p: NodeLike, *, whole: bool = False) -> Any:
    """p, if it is known to be probabilities; else with a check when the program runs."""
    node = as_float(p)
    checked = required(node, "law" if whole else "probability", "p")
    return p if checked is node else checked


@explaining
def randint(
    key: NodeLike, shape: Any = (), *, low: int = 0, high: int | Dim, dtype: Any = "int64"
) -> Node:
    """Integers that are equally likely from `low` (included) to `high` (excluded).

    `high` may be a named dimension. Raises `ShapeError` if there are none, `DtypeError` for nodes
    and for a dtype that cannot hold them.

    >>> sg.random.randint(sg.random.key(0), (3,), high=10).type
    int64[3]
    """
    kind = as_dtype(dtype)
    known = _is_int(high) or isinstance(high, Dim)
    if not _is_int(low) or not known or kind.kind not in "iu":
        raise DtypeError(f"randint takes ints, not {low!r}, {high!r} and {kind.name}")
    if not isinstance(high, Dim):
        if low >= high:
            raise ShapeError(f"there are no integers from {low} on and below {high}")
        if low < np.iinfo(kind).min or high - 1 > np.iinfo(kind).max:
            raise DtypeError(f"{kind.name} cannot hold integers from {low} to {high - 1}")
    return draws.draw_integers(_one(key), low=low, high=high, shape=as_shape(shape), dtype=kind)


@explaining
def poisson(key: NodeLike, rate: NodeLike, shape: Any = None) -> Node:
    """Numbers of random events, int64, from Poisson's law with the mean `rate`."""
    size, kind = _frame(shape, None, rate)
    mean = broadcast_to(astype(asarray(rate), kind), size)
    return draws.draw_poisson(mean, _one(key))


@explaining
def categorical(key: NodeLike, logits: NodeLike, shape: Any = None, *, axis: int = -1) -> Node:
    """Numbers of classes, int64: class k of an axis with the probability softmax(logits)[k].

    `shape` is that of the result, to which that of the logits without the axis broadcasts. The
    class is that with the largest sum of its logit and noise from Gumbel's law. No gradient flows
    to the logits.

    >>> sg.random.categorical(sg.random.key(0), np.zeros((4, 10))).type
    int64[4]
    """
    x = as_float(logits)
    along = normalize_axis(axis, x.ndim)
    classes, rest = x.shape[along], (*x.shape[:along], *x.shape[along + 1 :])
    size = rest if shape is None else as_shape(shape)
    if broadcast_shapes(size, rest) != size:
        raise ShapeError(f"logits for the shape {rest} do not broadcast to {size}")
    place = len(size) - len(rest) + along
    noise = gumbel(key, (*size[:place], classes, *size[place:]), dtype=x.dtype)
    return argmax(x + noise, axis=place)


@explaining
def permutation(key: NodeLike, x: NodeLike | Dim, *, axis: int = 0) -> Node:
    """x with its parts along an axis in a random order; for an int n, the integers below n so.

    A named dimension counts as an int. All orders are equally likely.

    >>> np.asarray(sg.random.permutation(sg.random.key(0), 5)).tolist()
    [0, 3, 4, 2, 1]
    """
    if _is_int(x) or isinstance(x, Dim):
        return draws.draw_order(_one(key), count=as_shape(x)[0])
    node = as_node(x)
    along = normalize_axis(axis, node.ndim)
    return take(node, draws.draw_order(_one(key), count=node.shape[along]), axis=along)


@explaining
def choice(
    key: NodeLike,
    x: NodeLike | Dim,
    shape: Any = (),
    *,
    replace: bool = True,
    p: NodeLike | None = None,
    axis: int = 0,
) -> Node:
    """Parts of x along an axis, drawn at random; for an int or a named dimension, integers below.

    `p` are their probabilities, else all are alike. Without `replace` none is drawn twice. Raises
    `ShapeError` if there are too few then, and for a `p` of another length; a `KernelError` says if
    it is negative or does not sum to 1: at once if it is known, else when a program runs.

    >>> np.asarray(sg.random.choice(sg.random.key(0), [10, 20, 30], (4,))).tolist()
    [10, 10, 30, 10]
    """
    node = None if _is_int(x) or isinstance(x, Dim) else as_node(x)
    along = 0 if node is None else normalize_axis(axis, node.ndim)
    count = as_shape(x)[0] if node is None else node.shape[along]
    size = as_shape(shape)
    if p is not None:
        if (own := as_node(p).shape) != (count,):
            raise ShapeError(f"p has the shape {own}; for {count} parts it is ({count},)")
        p = as_node(_probabilities(p, whole=True))
    if replace:
        found = randint(key, size, high=count) if p is None else categorical(key, log(p), size)
    else:
        wanted = product(size)
        if isinstance(count, int) and isinstance(wanted, int) and wanted > count:
            raise ShapeError(f"{wanted} cannot be drawn of {count} without replacement")
        order = (
            permutation(key, count)
            if p is None
            else argsort(log(p) + gumbel(key, (count,)), descending=True)
        )
        found = reshape(order[:wanted], size)
    return found if node is None else take(node, found, axis=along)


__all__ = public_names(globals(), defined_in=__name__)

if not TYPE_CHECKING:  # which would take any name for one of these
    __getattr__ = absent("random", __all__)


def __dir__() -> list[str]:
    return __all__

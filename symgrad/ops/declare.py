"""How an op is declared: once, where its function stands.

A `def` whose body is `...` is a primitive: its decorator says how it is typed, computed and
differentiated. A `def` with a body is a composite: it is made of other functions, and everything
follows. Positional-only parameters are arrays, the others are attributes (as in the array API
standard). A primitive that is not `public` has no function for users: it is a part or a
transpose of others, or what rules rewrite to. Where a public composite has its name, as `matmul`,
which decides what a one-dimensional operand means, the primitive is called `matmul_p`; the name
of its op is "matmul" none the less.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import CodeType, MappingProxyType
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

import numpy as np

from symgrad.ir.errors import DtypeError, GradientError, SymgradError
from symgrad.ir.messages import check_arguments, refuse
from symgrad.ir.node import Node, apply
from symgrad.ir.op import REGISTRY, Builder, Cotangent, Op
from symgrad.ir.operators import call
from symgrad.ir.types import DType, TensorType, broadcast_shapes
from symgrad.ops.flows import ARRAYS, HALF, SINGLE, Partial, chain, total, widened

P = ParamSpec("P")
R = TypeVar("R")
NodeLike: TypeAlias = Any  # a node, an array, a number, or nested lists of these


def elementwise(
    kernel: Callable[..., Any],
    *,
    partials: Callable[..., tuple[Partial, ...]] | None = None,
    numpy: tuple[Callable[..., Any], ...] | None = None,
    like: np.ufunc | None = None,
    promote: Callable[..., tuple[DType | None, ...]] | None = None,
    result: Callable[..., DType] | None = None,
    infer: Callable[..., Any] | None = None,
    real: bool = False,
    **facts: Any,
) -> Callable[[Callable[P, Node]], Builder[P]]:
    """Declare an op that works element by element, with broadcasting.

    `partials(y, *inputs)` gives the derivative of the result by each input and so both the vjp and
    the jvp: a node, a number, or None where it is zero everywhere; of a real result by a complex
    input, the gradient. A boolean node is a mask: what flows is selected by it, not multiplied.
    Those of an op that is `by_activity` take `active`, too: which inputs vary. A ufunc knows its
    dtypes; another kernel has those of the ufunc that it is `like`, or `promote` and `result` say
    them. One with attributes gives an `infer`, which checks them. A `real` op refuses complex
    numbers, though its kernel takes them.
    """
    ufunc = kernel if isinstance(kernel, np.ufunc) else like
    if numpy is None:
        numpy = () if ufunc is None else (ufunc,)
    if promote is None:
        promote = _ufunc_promote(ufunc) if ufunc is not None else common_dtype
    if real:
        promote = _promote_real(promote)
    if partials is not None:
        facts |= {"vjp": vjp_of(partials), "jvp": jvp_of(partials)}
    facts.setdefault("in_place", (0, 1, 2))
    return op(
        infer=infer or _elementwise_rule(ufunc, result),
        kernel=kernel,
        numpy=numpy,
        promote=promote,
        elementwise=True,
        out=True,
        **facts,
    )


def op(
    *,
    numpy: tuple[Callable[..., Any], ...] = (),
    public: bool = True,
    pullback: Callable[..., Cotangent] | None = None,
    pushforward: Callable[..., Any] | None = None,
    **facts: Any,
) -> Callable[[Callable[P, Node]], Builder[P]]:
    """Declare an op that gives its own `infer`, `kernel`, `vjp` and, where it can, `jvp`.

    Where the first operand x alone has a derivative, `pullback(g, y, x, *others, **attrs)` gives
    its cotangent and `pushforward(t, y, x, *others, **attrs)` takes its tangent, which is there.
    One that is `piecewise_constant` has the derivative 0, and one that is `bilinear` the jvp of a
    product. One that is not `public`, and any whose
    name ends in `_p`, gets no function in `sg`.
    """
    if pullback is not None:
        facts["vjp"] = _vjp_by_first(pullback)
    if pushforward is not None:
        facts["jvp"] = _jvp_by_first(pushforward)
    if facts.get("bilinear"):
        facts = {"jvp": _bilinear_jvp, **facts}
    if facts.get("piecewise_constant"):
        facts = {"vjp": _no_cotangents, "jvp": _no_tangent, **facts}

    def declare(function: Callable[P, Node]) -> Builder[P]:
        name = op_name(function)
        least, count, options, defaults = _parameters(function)
        doc = function.__doc__ or ""
        record = REGISTRY.add_op(Op.of(name=name, doc=doc, operands=(least, count), **facts))
        names, required = frozenset(options), frozenset(options) - defaults.keys()
        positional = options[: function.__code__.co_argcount - least]

        @wraps(function)
        def build(*args: P.args, **attrs: P.kwargs) -> Node:
            if not attrs and not required and len(args) == count:
                return apply(record, args, defaults)
            operands: Sequence[Any] = args
            given: Mapping[str, Any] = attrs
            if len(args) != count and count != sys.maxsize:
                operands = args[:count]
                given = {**dict(zip(positional, args[count:], strict=False)), **attrs}
            # Fewer are left where one was given twice, or by place where it has none.
            fits = len(operands) + len(given) == len(args) + len(attrs) and len(operands) >= least
            if not (fits and required <= given.keys() <= names):
                check_arguments(function, name, args, attrs)
            return apply(record, operands, {**defaults, **given})

        builder = cast("Builder[P]", build)
        builder.op = record
        if public and not function.__name__.endswith("_p"):
            REGISTRY.add_function(name, builder, numpy)
        REGISTRY.builders[name] = builder
        return builder

    return declare


def op_name(function: Callable[..., Any]) -> str:
    """The name of the op that a function builds: `abs` of `abs_`, `matmul` of `matmul_p`."""
    return function.__name__.removesuffix("_p").rstrip("_")


def _parameters(
    function: Callable[..., Any],
) -> tuple[int, int, tuple[str, ...], dict[str, Any]]:
    """The least and largest number of operands, which come first; the attributes, with defaults."""
    # Read off the code, since `inspect.signature` would take a third of the time of the import.
    code: CodeType = function.__code__
    least = code.co_posonlyargcount or code.co_argcount
    attributes = code.co_varnames[least : code.co_argcount + code.co_kwonlyargcount]
    given = function.__defaults__ or ()
    last = code.co_varnames[code.co_argcount - len(given) : code.co_argcount]
    defaults = dict(zip(last, given, strict=True)) | (function.__kwdefaults__ or {})
    return (
        least,
        sys.maxsize if code.co_flags & inspect.CO_VARARGS else least,
        attributes,
        {name: defaults[name] for name in attributes if name in defaults},
    )


def linear(
    *, transpose: Callable[..., Node], accumulates: bool = False, **facts: Any
) -> Callable[[Callable[P, Node]], Builder[P]]:
    """Declare an op linear in its one operand: `transpose(g, x, **attrs)` gives both modes.

    One that `accumulates` adds up many terms, and so tangents of float16 in float32; a transpose
    that does is to be `in_single`.
    """

    return op(
        pullback=lambda g, y, x, **attrs: transpose(g, x, **attrs),
        pushforward=lambda t, y, x, **attrs: apply_again(y, widened(t) if accumulates else t),
        linear=True,
        preserves_zero=True,
        **facts,
    )


def composite(
    *, numpy: tuple[Callable[..., Any], ...] = (), widens: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a function made of other functions; it is found by name and by NumPy's dispatch.

    One that `widens` is computed in float32 where its operands are float16; see `in_single`. What
    it refuses itself is told like what an op refuses: with the operands and the user's line.
    """

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        body: Any = in_single(function) if widens else function  # type: ignore[arg-type]
        build: Callable[P, R] = explaining(body)
        REGISTRY.add_function(function.__name__.rstrip("_"), build, numpy)
        return build

    return declare


def in_single(function: Callable[P, Node]) -> Callable[P, Node]:
    """A function whose float16 operands are computed with as float32, and so their derivatives.

    A sum of float16 overflows above 65,504, where a mean does not, and loses terms that are 2,048
    times as small as it is. The result is float16 again, unless another operand is wider.
    """

    @wraps(function)
    def in_wide(*args: P.args, **options: P.kwargs) -> Node:
        given = [x for x in (*args, *options.values()) if isinstance(x, ARRAYS)]
        dtypes = {x.dtype for x in given}
        if HALF not in dtypes:
            return function(*args, **options)
        wide: Any = [*map(widened, args)], {k: widened(x) for k, x in options.items()}
        found = function(*wide[0], **wide[1])
        if SINGLE in dtypes or found.dtype != SINGLE:
            return found
        return call("astype", found, HALF)

    return in_wide


def explaining(function: Callable[P, R]) -> Callable[P, R]:
    """The same function; what it refuses is told with its name, operands and the user's line."""
    name = function.__name__.rstrip("_")

    @wraps(function)
    def build(*args: P.args, **options: P.kwargs) -> R:
        try:
            return function(*args, **options)
        except Exception as error:
            if not isinstance(error, SymgradError):
                check_arguments(function, name, args, options)
            _, count, _, _ = _parameters(inspect.unwrap(function))
            refuse(error, name, args[:count])

    return build


def again(t: Node, y: Node, x: Node, *others: Node, **attrs: Any) -> Node:
    """The pushforward of an op that is linear in its first operand: the op of its tangent."""
    return apply(y.op, (t, *others), attrs)


def apply_again(y: Node, operand: Node) -> Node:
    """The op of `y`, with its attributes, on another operand."""
    return Node(
        y.op, (operand,), y.attrs, y.op.infer(operand.type, **dict(y.attrs)), operand.origin
    )


def vjp_of(partials: Callable[..., tuple[Partial, ...]]) -> Callable[..., tuple[Cotangent, ...]]:
    """The vjp that partial derivatives give."""

    def vjp(g: Node, y: Node, *inputs: Node, **attrs: Any) -> tuple[Cotangent, ...]:
        return tuple(chain(g, p) for p in partials(y, *inputs, **attrs))

    return vjp


def jvp_of(partials: Callable[..., tuple[Partial, ...]]) -> Callable[..., Cotangent]:
    """The jvp that partial derivatives give."""

    def jvp(tangents: tuple[Cotangent, ...], y: Node, *inputs: Node, **attrs: Any) -> Cotangent:
        pairs = zip(tangents, partials(y, *inputs, **attrs), strict=True)
        return total(*(_pushed(t, p, y) for t, p in pairs if t is not None))

    return jvp


def _bilinear_jvp(t: tuple[Cotangent, ...], y: Node, a: Node, b: Node, **attrs: Any) -> Cotangent:
    left = None if t[0] is None else apply(y.op, (t[0], b), attrs)
    right = None if t[1] is None else apply(y.op, (a, t[1]), attrs)
    return total(left, right)


def _pushed(t: Node, partial: Partial, y: Node) -> Cotangent:
    if t.tensor.is_complex and not y.tensor.is_complex:
        return call("real", call("conj", partial) * t)
    return chain(t, partial)


def _vjp_by_first(pullback: Callable[..., Cotangent]) -> Callable[..., tuple[Cotangent, ...]]:
    def vjp(g: Any, y: Node, *inputs: Node, **attrs: Any) -> tuple[Cotangent, ...]:
        return pullback(g, y, *inputs, **attrs), *(None,) * (len(inputs) - 1)

    return vjp


def _jvp_by_first(pushforward: Callable[..., Any]) -> Callable[..., Any]:
    def jvp(tangents: tuple[Cotangent, ...], y: Node, *inputs: Node, **attrs: Any) -> Any:
        t = tangents[0]
        return None if t is None else pushforward(t, y, *inputs, **attrs)

    return jvp


def _no_cotangents(g: Node, y: Node, *inputs: Node, **attrs: Any) -> tuple[Cotangent, ...]:
    return (None,) * len(inputs)


def _no_tangent(tangents: Any, y: Node, *inputs: Node, **attrs: Any) -> Cotangent:
    return None


def _elementwise_rule(
    ufunc: np.ufunc | None, result: Callable[..., DType] | None
) -> Callable[..., TensorType | tuple[TensorType, ...]]:
    def infer(*types: TensorType) -> TensorType | tuple[TensorType, ...]:
        shape = broadcast_shapes(*(t.shape for t in types))
        if ufunc is None:
            dtype = result(*types) if result else types[0].dtype
            return TensorType(shape, dtype)
        dtypes = resolve(ufunc, types)[ufunc.nin :]
        results = tuple(TensorType(shape, d) for d in dtypes)
        return results if len(results) > 1 else results[0]

    return infer


def _ufunc_promote(ufunc: np.ufunc) -> Callable[..., tuple[DType, ...]]:
    def promote(*types: TensorType) -> tuple[DType, ...]:
        return resolve(ufunc, types)[: ufunc.nin]

    return promote


def _promote_real(
    promote: Callable[..., tuple[DType | None, ...]],
) -> Callable[..., tuple[DType | None, ...]]:
    def promote_real(*types: TensorType) -> tuple[DType | None, ...]:
        if any(t.is_complex for t in types):
            raise DtypeError("complex numbers have no order; take real(x), imag(x) or abs(x)")
        return promote(*types)

    return promote_real


# What to write in place of a ufunc that does not take the dtypes of its operands.
INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "subtract": "where booleans differ, a ^ b is true; to count, sg.astype(x, 'int64')",
        "negative": "the opposite of a boolean is ~x; to count, sg.astype(x, 'int64')",
        "bitwise_xor": "a power is x ** y",
        "bitwise_and": "of conditions, each stands in brackets: (a > 0) & (b > 0)",
        "bitwise_or": "of conditions, each stands in brackets: (a > 0) | (b > 0)",
        "invert": "the opposite of a condition stands in brackets: ~(a > 0)",
    }
)


def resolve(ufunc: np.ufunc, types: tuple[TensorType, ...]) -> tuple[DType, ...]:
    """The dtypes of the loop that NumPy would choose, operands then results."""
    try:
        return ufunc.resolve_dtypes((*(t.dtype for t in types), *(None,) * ufunc.nout))
    except TypeError:
        names = ", ".join(t.dtype.name for t in types)
        instead = INSTEAD.get(ufunc.__name__, "convert them: sg.astype(x, dtype)")
        raise DtypeError(f"np.{ufunc.__name__} does not take {names}; {instead}") from None


def as_floats(*types: TensorType, kinds: str = "iuf") -> tuple[DType, ...]:
    """The dtypes to compute in: floats as they are, integers as NumPy's functions take them."""
    require(kinds, *types)
    dtype = np.result_type(*(t.dtype for t in types))
    return resolve(np.exp, (TensorType((), dtype),))[:1] * len(types)


def common_dtype(*types: TensorType) -> tuple[DType, ...]:
    """Every operand cast to the dtype that they promote to."""
    return (np.result_type(*(t.dtype for t in types)),) * len(types)


def require_order(*orders: int, least: int = 0, most: int = 1000) -> None:
    """Refuse an order of a derivative, several of which add up, that takes too long to compute."""
    if min(orders) < 0 or not least <= sum(orders) <= most:
        found = " and ".join(map(str, orders))
        raise GradientError(f"a derivative of order {found}; it is known from {least} to {most}")


def require(kinds: str, *types: TensorType) -> None:
    """Refuse a dtype of another kind: 'b' booleans, 'iu' integers, 'f' floats, 'c' complex."""
    for t in types:
        if t.dtype.kind not in kinds:
            names = {"b": "booleans", "i": "integers", "u": "", "f": "floats", "c": "complex"}
            listed = ", ".join(filter(None, (names[k] for k in kinds)))
            mend = "take real(x), imag(x) or abs(x)" if t.is_complex else "convert it with astype"
            raise DtypeError(f"takes {listed}, not {t.dtype.name}; {mend}")

"""Ops: the record of one, and the registry that finds it by name."""

from __future__ import annotations

import math
import reprlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, ParamSpec, Protocol, TypeAlias, TypeVar

from symgrad.ir.along import AlongRule
from symgrad.ir.errors import GraphError, SymgradError, UnsupportedError
from symgrad.ir.late import SLOTS
from symgrad.ir.record import Record
from symgrad.ir.schema import schema_of
from symgrad.ir.types import DType, TensorType, Type, possible
from symgrad.ir.values import ArrayData

if TYPE_CHECKING:
    from symgrad.ir.dims import Size
    from symgrad.ir.node import Node

P = ParamSpec("P")
V = TypeVar("V")
Shape = tuple[int, ...]
Interval: TypeAlias = tuple[float, float]
Cotangent: TypeAlias = "Node | None"
Former: TypeAlias = "tuple[list[Node], dict[str, Any]]"

REAL: Interval = (-3.0, 3.0)
POSITIVE: Interval = (0.2, 3.0)
UNIT: Interval = (-0.9, 0.9)
ABOVE_ONE: Interval = (1.2, 3.0)


NO_PICKLE = (
    "ops are not pickled, nor what is told of them: a plan, trace, cost, profile or rule. "
    "Pickle the program; or keep str(plan), str(cost), trace.save(path), profile.save(path)"
)


class Case(NamedTuple):
    """Operand shapes and attributes with which the tests try an op."""

    shapes: tuple[Shape, ...]
    attrs: Mapping[str, Any] = MappingProxyType({})


def case(*shapes: Shape, **attrs: Any) -> Case:
    """Operands of these shapes, with these attributes."""
    return Case(shapes, attrs)


class Storage(NamedTuple):
    """Where the kernel of an op writes, and how a program writes the call.

    `out` kernels take `out=`; `in_place` names the operands whose memory the result may take;
    `scratch(*types, **attrs)` gives the types of the temporaries that the kernel is to be handed.
    `source` is how the call is written where it is not kernel(operands, out): {0} {1} {out} {axis},
    in a line or more; or source(here, **attrs) that says so, `here` if the result is written over
    the first operand.
    """

    out: bool = False
    in_place: tuple[int, ...] = ()
    scratch: Callable[..., tuple[TensorType, ...]] | None = None
    source: str | Callable[..., str] = ""


class Trials(NamedTuple):
    """The operands and attributes with which tests and random graphs try an op.

    `domain` has an interval for each operand, the last ones again; `dtypes` those that it takes;
    `cases` shapes and attributes. Of a `symmetric` op the first operand is a symmetric (Hermitian)
    matrix, of which half is read: its derivative is that along symmetric matrices, and it is tried
    with positive definite ones. Of an `ill_conditioned` one a rounding error can change the result
    altogether, or make an error of it: vectors known up to a sign or a phase, a rank, what wants a
    probability; random graphs have none.
    """

    domain: tuple[Interval, ...] = (REAL,)
    dtypes: str = "float32 float64"
    cases: tuple[Case, ...] = ()
    symmetric: bool = False
    ill_conditioned: bool = False


class Op(Record, frozen=True, kw_only=True):
    """A primitive operation, with all that any part of symgrad needs to know of it.

    `infer(*types, *, attributes)` gives the type of the result, and declares the attributes: see
    `symgrad.ir.schema`; `kernel(*arrays, **attrs)` computes it;
    `vjp(g, y, *inputs, **attrs)` gives a cotangent for each input and `jvp(tangents, y, *inputs,
    **attrs)` the tangent of the result, as nodes, with None for a symbolic zero. For an op with
    several results `g` and the tangent are tuples.

    The rest are facts. Whoever needs to know something about ops asks for a fact; nobody keeps a
    list of op names. `storage` is for programs only, `trials` for tests only.
    """

    name: str
    infer: Callable[..., Type]
    kernel: Callable[..., Any]
    vjp: Callable[..., tuple[Cotangent, ...]] | None = None
    jvp: Callable[..., Any] | None = None
    doc: str = ""

    # The least and the largest number of operands.
    operands: tuple[int, int] = (0, sys.maxsize)
    # How operands are made alike: the dtype that each is cast to, or None to leave them.
    promote: Callable[..., tuple[DType | None, ...]] | None = None
    # The operands among which Python scalars take their dtype; None is all of them.
    weak: tuple[int, ...] | None = None
    # The op that stands in for it if an operand is complex, where NumPy's kernel will not do.
    of_complex: str = ""
    # User's attributes to canonical ones: normalize(*types, **attrs) -> attrs.
    normalize: Callable[..., dict[str, Any]] | None = None
    # Operands and attributes as earlier versions wrote them in files, as they are now, and others
    # as they are: former(operands, attrs) -> operands, attrs.
    former: Callable[[list[Node], dict[str, Any]], Former] | None = None

    # The error where a named size is too small for the type of the result, which says what to write
    # instead: too_small(*types, sizes, **attrs) -> error or None, of types with their names.
    too_small: Callable[..., SymgradError | None] | None = None
    # Sizes that are all 0 or more only where named sizes are not too small, for who knows no sizes:
    # margins(*types, **attrs) -> sizes. An op with a `too_small` has them.
    margins: Callable[..., Sequence[Size]] | None = None

    # How it works on operands with a leading batch axis, unless it is elementwise:
    # batch(operands, flags, node, **attrs) -> node, flags telling which operands have the axis; of
    # an op with several results, it may be a tuple of these.
    batch: Callable[..., Node | tuple[Node, ...]] | None = None
    # Whether vjp and jvp take `active=`: which operands depend on what is differentiated by.
    by_activity: bool = False
    # What it is on the side of a kink or jump to which its operands move, with one slope there:
    # locked(side, y, *operands, **attrs) -> node, side being a `Side` of `ops/sides.py`; of an op
    # that runs graphs, its results. It has the value of y, unless the op `jumps`.
    locked: Callable[..., Any] | None = None
    # Whether what it has on one side of such a point may be another value than it has there.
    jumps: bool = False
    # Whether the vjp only moves the elements of a cotangent about, or repeats them.
    data_movement: bool = False
    # Whether each element of the result is one of an operand's, or 0, and attributes, shapes and
    # indices alone tell which: so the kernel tells it of the numbers of the elements.
    index_map: bool = False
    # Whether it is its second operand where its first, a mask, is true, and 0 elsewhere.
    selection: bool = False
    # Whether it only converts its operand to another dtype.
    cast: bool = False
    # Whether its result has zeros that were not computed: a selection, a slice put in place.
    zero_filled: bool = False
    # Whether its derivative by complex operands is one complex number. The vjp is then the plain
    # transpose, and is given conj(g) for complex g; else it is the adjoint for Re(conj(g) * dy).
    holomorphic: bool = True
    # Whether the derivative can be inf or NaN where the operands are finite.
    unbounded_slope: bool = False
    # Operands by which the derivative is not known: to ask for it is an error. The vjp and the jvp
    # take it for 0.
    no_slope: tuple[int, ...] = ()

    # Facts about values.
    elementwise: bool = False
    commutative: bool = False
    idempotent: bool = False
    preserves_zero: bool = False
    linear: bool = False
    # Whether it is linear in each of its two operands, as a product is.
    bilinear: bool = False
    # Its Taylor coefficients along a curve, where the op of its slopes would be it again: those of
    # a degree k > 0 from lower ones, series(k, y, *operands), each of which gives a coefficient for
    # a degree, None for 0.
    series: Callable[..., Node | None] | None = None
    # Whether it asks which operand is larger, or if they are equal, so that a Python int that the
    # dtype beside it cannot hold has an answer: it is beyond every element.
    compares: bool = False
    # Other ops that it is, by which rules come in families; `converse` and `complement` are of
    # comparisons. The converse is it with its operands exchanged: f(x, y) == g(y, x).
    converse: str = ""
    # The complement is true where it is not, and false where it is, if neither operand is NaN.
    complement: str = ""
    # The dual is it of numbers of the other sign: f(-x, -y) == -g(x, y); of a place, == g(x, y).
    dual: str = ""
    # De Morgan: not f(x, y) == g(not x, not y), bit by bit of integers.
    de_morgan: str = ""
    # Operands of which a 0 makes the result 0, whatever the others are.
    annihilators: tuple[int, ...] = ()
    # For each operand of such types whether each row of the result is made of the same row of it,
    # where the other facts do not tell: by_rows(*types); see `ops.rows`.
    by_rows: Callable[..., tuple[bool, ...]] | None = None
    # How it works piece by piece along a named dimension, where its family does not tell:
    # along(types, cuts, **attrs), of the operands' types and of where each is cut; see `ir.along`.
    along: AlongRule | None = None
    # Whether each row of its result can be made alone, of operands that have no rows.
    row_source: bool = False
    # The first of the operands that are indices, and so integers; 0 if there are none.
    indices: int = 0
    # For a reduction: the op that combines the results of two parts of the operand into one.
    combiner: str = ""
    piecewise_constant: bool = False
    expensive: bool = False
    # Whether it runs a user's own code.
    opaque: bool = False
    # How many operations on floats it takes: flops(*types, **attrs) of operands of known sizes.
    # None if other facts tell: one for each element that it takes in, elementwise or reducing.
    flops: Callable[..., int] | None = None
    kinks: str = ""

    # Facts about results: those of a `view` share their operand's memory; an `identity` has its
    # first operands for results, and costs nothing; if it is a `barrier`, no rule takes it away,
    # since it says that all its operands come before its readers.
    view: bool = False
    identity: bool = False
    barrier: bool = False
    # Whether it is an identity that carries an update: its operands are a value, a variable, the
    # next value of that, and what else this is made of.
    update: bool = False
    # For several results: the ops that compute just one of them; "" if there is none.
    projections: tuple[str, ...] = ()
    # Whether its operand is an op with several results, of which it takes the one at `index`.
    of_several: bool = False
    # The attribute that holds the graph of what it computes, whose inputs are the operands.
    inner_graph: str = ""
    # The attribute that holds the graph that it runs once for each of its steps.
    body: str = ""
    # The attributes that hold other graphs that it runs, each when its turn comes.
    graphs: tuple[str, ...] = ()

    storage: Storage = Storage()
    trials: Trials = Trials()

    @property
    def runs_graphs(self) -> bool:
        """Whether it runs graphs, when their turn comes: the body of a loop, those of a choice."""
        return bool(self.body or self.graphs)

    @classmethod
    def of(cls, **facts: Any) -> Op:
        """An op by facts that are given in one row, those of `storage` and `trials` among them."""
        for group, record in (("storage", Storage), ("trials", Trials)):
            own = {k: facts.pop(k) for k in record._fields if k in facts}
            if own:
                facts[group] = record(**own)
        return cls(**facts)

    def check(self, types: tuple[Type, ...], attrs: dict[str, Any]) -> Type:
        """The type of the result of operands and attributes that are as `apply` leaves them.

        Nothing is believed of either: a node that was read is one that could have been built.
        Raises `SymgradError` for another number of operands, other attributes or values of them,
        what is not normal or not promoted, and what the type rule refuses.
        """
        self._check_declared(types, attrs)
        if self.normalize is not None and (found := self.normalize(*types, **attrs)) != attrs:
            raise GraphError(f"the attributes {reprlib.repr(attrs)} should be {found}")
        if self.promote is not None:
            for t, dtype in zip(types, self.promote(*types), strict=True):
                if dtype is not None and isinstance(t, TensorType) and t.dtype != dtype:
                    raise GraphError(f"{t!r} should be cast to {dtype}")
        return possible(self.infer(*types, **attrs))

    def check_leaf(self, types: tuple[Type, ...], attrs: dict[str, Any], type: Type) -> Type:
        """The type that a leaf was declared to have; raises as `check`."""
        self._check_declared(types, attrs)
        if "within" in attrs:
            require_ends(attrs["within"], type)
        held = (value.type for value in attrs.values() if isinstance(value, ArrayData))
        return next(held, possible(type))

    def _check_declared(self, types: tuple[Type, ...], attrs: dict[str, Any]) -> None:
        least, most = self.operands
        if not least <= len(types) <= most:
            wanted = str(least) if least == most else f"{least} or more"
            raise GraphError(f"it takes {wanted} operands, not {len(types)}")
        schema = schema_of(self.infer)
        schema.require(attrs)
        if any(isinstance(t, tuple) is not self.of_several for t in types):
            raise GraphError("several results are no operand but of item, which takes one of them")

    def __deepcopy__(self, memo: dict[int, Any]) -> Op:
        return self

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(NO_PICKLE)

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def require_ends(ends: tuple[float, float], type: Type) -> None:
    """Refuse ends that are no range, or of a type that has none. Raises `GraphError`."""
    low, high = ends
    if not low <= high or low == math.inf or high == -math.inf:
        raise GraphError(f"within=({low!r}, {high!r}) holds no number: give the smaller one first")
    if not isinstance(type, TensorType) or type.dtype.kind not in "fiu":
        raise GraphError(f"within is for real numbers and integers, not for {type!r}")


@lru_cache(maxsize=4096)
def casts_of(op: Op, types: tuple[Type, ...]) -> tuple[DType | None, ...]:
    """The dtype that each operand must be cast to, None for one that need not be; () if none."""
    if op.promote is None:
        return ()
    casts = [
        None if d is None or (isinstance(t, TensorType) and d == t.dtype) else d
        for t, d in zip(types, op.promote(*types), strict=True)
    ]
    return tuple(casts) if any(d is not None for d in casts) else ()


def inferred(op: Op, types: tuple[Type, ...], attrs: tuple[tuple[str, Any], ...]) -> Type:
    """The type of what an op makes of operands of these types.

    Attributes are to be admitted before: True and 1 are the same to a cache. It holds no arrays,
    which may be large.
    """
    if attrs and any(value.__class__ is ArrayData for _, value in attrs):
        return possible(op.infer(*types, **dict(attrs)))
    return _inferred(op, types, attrs)


@lru_cache(maxsize=4096)
def _inferred(op: Op, types: tuple[Type, ...], attrs: tuple[tuple[str, Any], ...]) -> Type:
    return possible(op.infer(*types, **dict(attrs)))


@lru_cache(maxsize=4096)
def inferred_as_given(op: Op, types: tuple[Type, ...]) -> Type | None:
    """The type of the result of an op without attributes, of operands as they are.

    None if they may not stay as they are: one is cast, or has several results, or complex ones have
    an op of their own.
    """
    several = not op.of_several and any(t.__class__ is tuple for t in types)
    if several or op.of_complex or casts_of(op, types):
        return None
    return inferred(op, types, ())


class Builder(Protocol[P]):
    """A primitive as a function: it makes a node of `op`, whose record it carries."""

    op: Op
    __name__: str

    def __call__(self, *args: P.args, **attrs: P.kwargs) -> Node:
        """The node of these operands and attributes."""
        ...


class _Declared(dict[str, V]):
    """Entries by name; one that is not there yet is declared when it is read."""

    def __missing__(self, name: str) -> V:
        for home in (name, ""):
            SLOTS.declare_ops(home)
            if (found := self.get(name)) is not None:
                return found
        raise KeyError(name)


class Registry:
    """Every op, its builder and every public function, by name: the one table of the package."""

    def __init__(self) -> None:
        self.ops: dict[str, Op] = _Declared()
        self.builders: dict[str, Builder[...]] = _Declared()
        self.functions: dict[str, Callable[..., Any]] = _Declared()
        self.by_numpy: dict[Callable[..., Any], str] = {}

    def add_op(self, op: Op) -> Op:
        if op.name in self.ops:
            raise GraphError(f"there is an op called {op.name!r} already; choose another name")
        self.ops[op.name] = op
        return op

    def every(self) -> Mapping[str, Op]:
        """Every op by its name, also those that nobody has asked for yet."""
        SLOTS.declare_ops("")
        return self.ops

    def of_numpy(self, function: Callable[..., Any]) -> str | None:
        """The name of our function for one of NumPy's, None if there is none."""
        if function not in self.by_numpy:
            self.every()
        return self.by_numpy.get(function)

    def find(self, name: str) -> Op:
        """The op of this name. Raises `GraphError` if there is none."""
        try:
            return self.ops[name]
        except KeyError:
            raise GraphError(f"there is no op called {name!r}") from None

    def add_function(
        self, name: str, function: Callable[..., Any], numpy: tuple[Callable[..., Any], ...]
    ) -> None:
        if name in self.functions:
            raise GraphError(f"there is a function called {name!r} already; choose another name")
        self.functions[name] = function
        for alias in numpy:
            self.by_numpy[alias] = name

    def qualified_name(self, name: str) -> str:
        """A public function as a user writes it: `sg.sum`, `sg.fft.rfft`, `sg.nn.silu`.

        A file of ops whose functions are in a namespace of their own says so: `NAMESPACE = "fft"`.
        """
        module = self.functions[name].__module__
        inside = module.removeprefix("symgrad.").split(".")[0] if "." in module else "ops"
        space = getattr(sys.modules[module], "NAMESPACE", "" if inside == "ops" else inside)
        return ".".join(filter(None, ("sg", space, name)))


REGISTRY = Registry()

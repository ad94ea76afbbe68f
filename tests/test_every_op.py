"""Every op of the registry, asked what it is by its own record.

An op that is added is tested here without a line being added: its `cases`, `domain` and `dtypes`
say what to try.
"""

import functools
import inspect
import itertools
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.autodiff.reverse import is_differentiable
from symgrad.ir.errors import DtypeError, GradientError, SymgradError
from symgrad.ir.evaluate import evaluate
from symgrad.ir.graph import is_leaf
from symgrad.ir.node import apply, leaf
from symgrad.ir.op import REGISTRY, case
from symgrad.ir.types import TensorType
from symgrad.ops.complexes import part_dtype
from tests.helpers import (
    check_derivatives,
    check_second_derivatives,
    close,
    each,
    generator,
    same,
    sample,
)

SHAPES = {
    1: [((3, 4),), ((),), ((0,),), ((2, 0, 3),)],
    2: [((3, 4), (3, 4)), ((3, 1), (4,)), ((), (3,)), ((0,), (1,)), ((), ()), ((2, 1, 3), (5, 1))],
    3: [((3, 4), (3, 4), (3, 4)), ((3, 1), (4,), ()), ((0,), (1,), (0,)), ((), (), ())],
}
COMPLEX = ("complex64", "complex128")
GRID = ("?", "i1", "i4", "i8", "u1", "u8", "f2", "f4", "f8", "c8", "c16")

OPS = [op for op in REGISTRY.every().values() if not is_leaf(leaf(op, TensorType((), "bool")))]


@dataclass
class Trial:
    """An op applied to placeholders, with arrays for them."""

    node: Any
    xs: list[Any]
    arrays: list[Any]
    drawn: Any  # the random numbers from which the arrays were drawn

    @functools.cached_property
    def rng(self):
        """Those that come next; for each who tries it, the same."""
        return deepcopy(self.drawn)

    @property
    def attrs(self):
        return dict(self.node.attrs)

    @property
    def results(self):
        """Its results, each as a node."""
        several = isinstance(self.node.type, tuple)
        return [self.node[i] for i in range(len(self.node.type))] if several else [self.node]

    @property
    def smooth_results(self):
        """Those that are floats as precise as the operands."""
        size = part_dtype(self.xs[-1].dtype).itemsize
        return [
            y for y in self.results if is_differentiable(y) and part_dtype(y.dtype).itemsize >= size
        ]

    @property
    def held(self):
        """The operands by which no derivative is known."""
        return [self.xs[i] for i in self.node.op.no_slope]

    def run(self, *arrays, **extra):
        """What the kernel gives, as a list."""
        with np.errstate(all="ignore"):
            found = self.node.op.kernel(*(arrays or self.arrays), **self.attrs, **extra)
        return list(found) if isinstance(self.node.type, tuple) else [found]

    def values(self):
        """What evaluation gives, as a list."""
        return evaluate(self.results, dict(zip(self.xs, self.arrays, strict=True)))

    def scratch(self):
        """Without and with the temporaries that the kernel can use, filled with rubbish."""
        wanted = self.node.op.storage.scratch
        types = wanted(*(x.type for x in self.xs), **self.attrs) if wanted else ()
        return [{}, *({"scratch": np.full(t.shape, 85, t.dtype)} for t in types)]

    def places(self):
        """The operands whose memory the result may take: none of complex numbers."""
        if self.node.dtype.kind == "c":
            return []
        found = [i for i in self.node.op.storage.in_place if i < len(self.xs)]
        return [i for i in found if self.xs[i].type == self.node.type]


def arity(op):
    if isinstance(op.kernel, np.ufunc):
        return op.kernel.nin
    parameters = inspect.signature(op.kernel).parameters.values()
    return sum(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)


def cases_of(op):
    """What the op says, and for an elementwise one every way to broadcast."""
    if op.trials.cases or not op.elementwise:
        return op.trials.cases
    return [case(*shapes) for shapes in SHAPES[arity(op)]]


def operand_dtypes(op, dtype, count):
    """The dtype for each operand; masks, which are not among the weak ones, are boolean."""
    if op.indices:
        return [dtype] * op.indices + ["int64"] * (count - op.indices)
    dtypes = [dtype] * count
    try:
        op.check(tuple(TensorType((), d) for d in dtypes), {})
    except DtypeError:
        return [d if op.weak is None or i in op.weak else "?" for i, d in enumerate(dtypes)]
    except (SymgradError, TypeError, IndexError):
        pass  # it wants attributes or shapes, and so is no op with masks
    return dtypes


def trial(op, shapes, dtypes, attrs, interval=None):
    rng = generator(f"{op.name} {shapes} {dtypes}")
    xs = [
        sg.placeholder(f"x{i}", shape, dtype)
        for i, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True))
    ]
    intervals = itertools.cycle([interval] if interval else op.trials.domain)
    arrays = [sample(rng, x.shape, x.dtype, next(intervals)) for x in xs]
    operands = list(xs)
    if op.trials.symmetric:
        operands[0] = (xs[0] + sg.conj(xs[0].mT)) / 2
        half = (arrays[0] + arrays[0].mT.conj()) / 2
        arrays[0] = half + 6 * len(half.T) * np.eye(len(half.T), dtype=half.dtype)
    return Trial(apply(op, operands, attrs), xs, arrays, rng)


def trials(op, *dtypes):
    """One for each case of the op, and each dtype of its own and complex one that it takes."""
    return (replace(t) for t in made_trials(op, dtypes))


@functools.cache  # most tests of an op ask for the same
def made_trials(op, dtypes):
    return [*trials_of(op, dtypes)]


def trials_of(op, dtypes):
    own = op.trials.dtypes.split()
    for dtype, tried in itertools.product(dtypes or dict.fromkeys((*own, *COMPLEX)), cases_of(op)):
        if dtype not in own and (op.trials.ill_conditioned or not tried.shapes):
            continue
        try:
            made = trial(
                op, tried.shapes, operand_dtypes(op, dtype, len(tried.shapes)), tried.attrs
            )
        except DtypeError:
            if dtype in own:
                raise
            continue
        yield made


def every(having=lambda op: True):
    return each("op", [op for op in OPS if having(op)])


def has_cases(op):
    return bool(cases_of(op))


def takes_floats(op):
    return any(np.dtype(d).kind in "fc" for d in op.trials.dtypes.split())


def is_smooth(op):
    given = has_cases(op) and op.vjp is not None and takes_floats(op)
    return given and not op.piecewise_constant and not op.identity


def test_what_has_no_cases_works_on_a_graph_or_on_several_results():
    for op in OPS:
        if not has_cases(op) and not op.update:  # which has a variable among its operands
            on_graphs = {"graph", "index", "rule", "count", "body", *op.graphs}
            assert on_graphs & set(inspect.signature(op.infer).parameters), op


@every()
def test_it_says_what_it_is(op):
    assert len(op.doc) > 2
    assert op.doc.partition(">>>")[0].rstrip().endswith(".")


@every(has_cases)
def test_the_type_rule_tells_what_the_kernel_gives(op):
    for t in trials(op):
        for y, found in zip(t.results, t.values(), strict=True):
            assert TensorType(np.shape(found), np.asarray(found).dtype) == y.type


@every(lambda op: op.elementwise and not op.trials.cases)
def test_it_takes_the_dtypes_that_numpy_takes_and_gives_the_same(op):
    count = arity(op)
    taken = 0
    for dtypes in itertools.product(GRID, repeat=count):
        try:
            t = trial(op, [(2,)] * count, dtypes, {}, interval=(0, 3))
        except DtypeError as error:
            if "no order" in str(error):
                assert any(np.dtype(d).kind == "c" for d in dtypes)
            elif isinstance(op.kernel, np.ufunc):
                with pytest.raises(TypeError):
                    op.kernel(*(np.ones(2, d) for d in dtypes))
            continue
        taken += 1
        operands = t.arrays
        if not isinstance(op.kernel, np.ufunc):
            weak = range(count) if op.weak is None else op.weak
            common = np.result_type(*(dtypes[i] for i in weak))
            (found,) = {t.node.inputs[i].dtype for i in weak}
            as_numpys = np.int8 if common.kind == "b" else common
            assert found in (common, as_numpys, np.result_type(common, np.float16))
            operands = [a.astype(x.dtype) for a, x in zip(t.arrays, t.node.inputs, strict=True)]
        for y, mine, numpys in zip(t.results, t.values(), t.run(*operands), strict=True):
            same(mine, numpys)
            assert mine.dtype == y.dtype
    assert taken


@every(lambda op: has_cases(op) and op.storage.out)
def test_out_holds_the_same(op):
    for t in trials(op):
        for extra in t.scratch():
            outs = [np.full(y.shape, 1, y.dtype) for y in t.results]
            t.run(out=tuple(outs) if len(outs) > 1 else outs[0], **extra)
            for out, expected in zip(outs, t.run(), strict=True):
                same(out, expected)


@every(lambda op: has_cases(op) and op.storage.out)
def test_out_and_the_operands_may_lie_in_memory_as_they_like(op):
    """In Fortran's order, backwards, read-only."""
    back = slice(None, None, -1)
    # A symmetric matrix with both axes backwards is one.
    turned = (..., back, back) if op.trials.symmetric else (..., back)
    for t in trials(op):
        operands = [np.asfortranarray(a)[turned] if a.ndim else a for a in t.arrays]
        for a in operands:
            a.flags.writeable = False
        for extra in t.scratch():
            outs = [np.full(y.shape, 1, y.dtype, order="F")[...] for y in t.results]
            t.run(*operands, out=tuple(outs) if len(outs) > 1 else outs[0], **extra)
            copies = [np.ascontiguousarray(a).reshape(a.shape) for a in operands]
            for out, expected in zip(outs, t.run(*copies), strict=True):
                np.testing.assert_allclose(out, expected, rtol=1e-5)


@every(lambda op: has_cases(op) and op.storage.in_place and op.trials.dtypes)
def test_out_may_be_the_memory_of_the_operands_it_names(op):
    tried = 0
    for t in trials(op):
        for i, extra in itertools.product(t.places(), t.scratch()):
            given = [a.copy() for a in t.arrays]
            t.run(*given, out=given[i], **extra)
            same(given[i], t.run()[0])
            tried += 1
    assert tried or t.node.dtype.kind in "bc"


@every(lambda op: has_cases(op) and op.storage.in_place and op.trials.dtypes)
def test_out_may_be_an_operand_that_is_given_twice(op):
    for t in trials(op):
        for i, extra in itertools.product(t.places(), t.scratch()):
            shared = t.arrays[i].copy()
            given = [
                shared if x.type == t.xs[i].type else a for x, a in zip(t.xs, t.arrays, strict=True)
            ]
            (expected,) = t.run(*(a.copy() for a in given))
            t.run(*given, out=shared, **extra)
            same(shared, expected)


@every(lambda op: op.view)
def test_a_view_shares_memory(op):
    for t in trials(op):
        (found,) = t.run()
        assert not found.size or np.shares_memory(found, t.arrays[0])


@every(is_smooth)
def test_derivatives(op):
    tried = 0
    for t in trials(op, "float64", "complex128"):
        if ys := t.smooth_results:
            check_derivatives(ys, t.xs, t.arrays, t.rng, t.held)
            tried += 1
    assert tried


@every(is_smooth)
def test_second_derivatives(op):
    for t in trials(op, "float64", "complex128"):
        if ys := t.smooth_results:
            check_second_derivatives(ys, t.xs, t.arrays, t.rng, t.held)


@every(is_smooth)
def test_a_cotangent_has_the_type_of_what_it_belongs_to(op):
    for t in trials(op, "float32", "complex64"):
        wrt = [x for x in t.xs if is_differentiable(x) and x not in set(t.held)]
        for y in t.smooth_results:
            flows = sg.vjp(y, wrt, sg.ones_like(y), disconnected="zero")
            assert [g.type for g in flows] == [x.type for x in wrt]


@every(lambda op: op.no_slope)
def test_a_derivative_that_is_not_known_is_refused_in_both_modes(op):
    for t in trials(op, "float64"):
        for x in t.held:
            with pytest.raises(GradientError, match=f"derivative of {op.name} by its"):
                sg.grad(sg.sum(t.node), x)
            with pytest.raises(GradientError, match=f"derivative of {op.name} by its"):
                sg.jvp(t.node, x, np.ones(x.shape))


@every(lambda op: op.piecewise_constant)
def test_no_gradient_flows_through_what_is_piecewise_constant(op):
    for t in trials(op):
        assert op.vjp(t.node, t.node, *t.xs, **t.attrs) == (None,) * len(t.xs)
        assert op.jvp(tuple(t.xs), t.node, *t.xs, **t.attrs) is None
        if not is_differentiable(t.node):
            continue
        loss = sg.real(sg.sum(t.node))
        with pytest.raises(GradientError, match=op.name):
            sg.grad(loss, t.xs[0])
        found = sg.grad(loss, t.xs[0], disconnected="zero")
        same(np.asarray(found), np.zeros_like(t.arrays[0]))


@every(lambda op: op.vjp is None)
def test_what_has_no_gradient_has_none_on_purpose(op):
    """It takes no floats, or no arrays, or its parts have it, or it says so itself."""
    takes_arrays = any(c.shapes for c in cases_of(op))
    assert not takes_floats(op) or not takes_arrays or "no derivative" in op.doc


@every()
def test_both_modes_are_there_or_none(op):
    assert (op.vjp is None) == (op.jvp is None)


@every(lambda op: op.commutative)
def test_commutative(op):
    for t in trials(op):
        alike = close if t.node.dtype.kind == "c" else same
        alike(t.run()[0], t.run(*t.arrays[::-1])[0])


@every(lambda op: op.idempotent)
def test_idempotent(op):
    for t in trials(op):
        twice = t.run() if len(t.xs) == 1 else t.arrays[:1] * 2
        same(t.run(*twice)[0], twice[0])


@every(lambda op: op.preserves_zero)
def test_preserves_zero(op):
    for t in trials(op):
        assert not np.any(t.run(*map(np.zeros_like, t.arrays))[0])


@every(lambda op: op.identity and has_cases(op))
def test_identity(op):
    for t in trials(op):
        for y, x in zip(t.run(), t.arrays, strict=False):
            same(np.asarray(y), x)


@every(lambda op: op.cast)
def test_a_cast_only_converts(op):
    for t in trials(op):
        with np.errstate(all="ignore"):
            same(t.run()[0], t.arrays[0].astype(t.node.dtype))


@every(lambda op: op.selection)
def test_a_selection_is_its_operand_or_0(op):
    for t in trials(op):
        mask, x = np.broadcast_arrays(*t.arrays)
        same(t.run()[0], np.where(mask, x, np.zeros((), x.dtype)))


@every(lambda op: op.annihilators)
def test_annihilators(op):
    for t, i in itertools.product(trials(op), op.annihilators):
        given = [np.zeros_like(a) if k == i else a for k, a in enumerate(t.arrays)]
        assert not np.any(t.run(*given)[0])


@every(lambda op: op.combiner)
def test_the_results_of_two_parts_are_combined(op):
    tried = 0
    for t in trials(op):
        axes = t.attrs.get("axis", (0,))
        if not len(axes) or any(a.ndim <= axes[0] or a.shape[axes[0]] < 2 for a in t.arrays):
            continue
        parts = zip(*(np.split(a, [1], axes[0]) for a in t.arrays), strict=True)
        found = REGISTRY.ops[op.combiner].kernel(*(t.run(*part)[0] for part in parts))
        np.testing.assert_allclose(found, t.run()[0], rtol=1e-2 if found.itemsize < 4 else 1e-5)
        tried += 1
    assert tried


@every(lambda op: op.index_map or op.data_movement)
def test_what_moves_elements_computes_none(op):
    """Neither forward, if it is an index map, nor backward, if its vjp moves data."""
    for t in trials(op):
        if op.index_map:
            given = np.concatenate([a.ravel() for a in t.arrays])
            mode = t.attrs.get("mode", "set")
            assert mode == "add" or np.isin(t.run()[0], [*given, 0]).all()
        if op.data_movement and t.smooth_results:
            g = t.rng.permutation(t.node.tensor.size).reshape(t.node.shape).astype(t.node.dtype)
            flows = sg.vjp(t.node, [x for x in t.xs if is_differentiable(x)], g)
            moved = evaluate(flows, dict(zip(t.xs, t.arrays, strict=True)))
            assert all(np.isin(flow, [*g.ravel(), 0]).all() for flow in moved)


@every(lambda op: op.linear)
def test_linear(op):
    for t in trials(op, "float64"):
        (x,), other = t.arrays, t.rng.standard_normal(t.xs[0].shape)
        (left,) = t.run(np.asarray(2 * x - other))
        np.testing.assert_allclose(left, 2 * t.run()[0] - t.run(other)[0], atol=1e-12)


@every(lambda op: op.projections)
def test_projections_compute_one_of_the_results(op):
    for t in trials(op):
        for part, name in zip(t.run(), op.projections, strict=True):
            if name:
                found = REGISTRY.ops[name].kernel(*t.arrays, **t.attrs)
                same(found, part) if op.elementwise else close(found, part)

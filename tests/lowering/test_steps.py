"""Steps: each kind is a class, with a method wherever steps are gone through."""

import inspect

import numpy as np
import pytest

import symgrad as sg
from symgrad.lowering.choices import Branch
from symgrad.lowering.loops import Loop
from symgrad.lowering.lower import lower
from symgrad.lowering.native import NativeCall, NativeLoop, held
from symgrad.lowering.steps import Call, Copy, Product, RowSums, Step
from symgrad.lowering.tiling import TileLoop
from symgrad.lowering.visitor import Visitor
from symgrad.lowering.whiles import Sized, While


class Namer(Visitor[str]):
    """Answers with the method that was called."""

    def call(self, step):
        return "call"

    def copy(self, step):
        return "copy"

    def tile_loop(self, step):
        return "tile_loop"

    def loop(self, step):
        return "loop"

    def branch(self, step):
        return "branch"

    def while_loop(self, step):
        return "while_loop"

    def sized(self, step):
        return "sized"

    def native_loop(self, step):
        return "native_loop"

    def native_call(self, step):
        return "native_call"


class SomeCode:
    """Stands for machine code of one result, which is joined from parts."""

    rows, grain, ir, assembly, call, shares = 4000, 100, "", "", None, True
    nanoseconds = 10**6
    parts = (sg.placeholder("parts", (40,)).tensor,)
    in_place, strides, wide = ((),), (None,), {}


class SomeMaker:
    """Makes that code for each group, or one function of a whole program."""

    insist, times, has_products = False, 1, False

    def product(self, threads, kind):
        return kind if threads > 1 or self.has_products else None

    def __init__(self, whole):
        self.is_whole = whole

    def __call__(self, graph, sizes, strides):
        return SomeCode()

    def regrouped(self, graph, sizes):
        return graph

    def repeated(self, times):
        return self

    def whole(self, graph, sizes, nexts):
        return SomeCode() if self.is_whole else None


def steps_of(inputs, outputs):
    return sg.compile(inputs, outputs, backend="numpy").plan.steps


def native_steps(whole):
    graph = sg.compile(large, sg.sum(sg.exp(sg.tanh(large * 2))), backend="numpy").graph
    return lower(graph, {}, threads=2, native=SomeMaker(whole)).steps


x, p = sg.placeholder("x", (4, 3)), sg.placeholder("p", (), "bool")
s = sg.placeholder("s", ())
halved = sg.while_loop(lambda c: c > 1, lambda c: c / 2, s)
large = sg.placeholder("large", (2000, 1000), "float32")
PLANS = {
    "call": steps_of(x, sg.exp(x)),
    "copy": steps_of(x, x.T),
    "tile_loop": steps_of(large, sg.exp(sg.tanh(large * 2))),
    "loop": steps_of(x, sg.scan(lambda c, row: (sg.exp(c * row), None), x[0], x)[0]),
    "branch": steps_of([p, x], sg.cond(p, lambda: sg.exp(x), lambda: x)),
    "while_loop": steps_of(s, halved),
    "sized": [i for i in steps_of(s, sg.grad(sg.sin(halved), s)) if i.name == "sized"][:1],
    "native_loop": native_steps(False),
    "native_call": native_steps(True),
}


def kinds(base=Step):
    return {kind for c in base.__subclasses__() for kind in (c, *kinds(c))}


@pytest.mark.parametrize("method", PLANS)
def test_each_kind_has_its_method(method):
    (step,) = PLANS[method]
    assert Namer().visit(step) == method


def test_there_is_no_kind_that_has_none():
    mine = {k for k in kinds() if k.__module__.startswith("symgrad.")}
    running = {Loop, Branch, While, Sized}
    assert mine == {Call, RowSums, Product, Copy, TileLoop, *running, NativeLoop, NativeCall}
    wanted = {n for n, f in vars(Visitor).items() if inspect.isfunction(f)} - {"visit"}
    assert wanted == PLANS.keys()


def test_a_visitor_that_forgets_a_kind_is_not_made():
    class Forgetful(Visitor[None]):
        def call(self, step):
            pass

    with pytest.raises(TypeError, match="copy"):
        Forgetful()


def test_a_kind_without_a_method_is_refused():
    class Unknown(Step):
        name = "unknown"

    with pytest.raises(TypeError, match="Unknown"):
        Namer().visit(Unknown(sg.exp(x), (), ()))


def test_a_loop_tells_of_the_steps_within_it():
    (step,) = PLANS["tile_loop"]
    inside = dict(step.within())
    assert set(inside) >= set(step.inner.steps)
    assert step.times == step.tiling.count / step.tiling.size > 1
    own = set(step.node.inner_graph.nodes)
    assert all(node in own for node in inside.values())
    (call,) = PLANS["call"]
    assert (call.inner, call.times, list(call.within())) == (None, 1, [])


def test_a_native_loop_tells_what_it_holds_and_how_its_rows_are_shared(monkeypatch):
    (step,) = PLANS["native_loop"]
    assert held(step) == "multiply, tanh, exp, sum"
    assert step.piece == 500
    monkeypatch.setattr(SomeCode, "nanoseconds", 100_000)
    assert step.piece == 500
    monkeypatch.setattr(SomeCode, "shares", False)  # sooner done than one of Python's threads wakes
    assert step.piece == 4000
    monkeypatch.setattr(SomeCode, "nanoseconds", 200_000)
    assert step.piece == 500
    assert [(part, y.op.name) for _, part, y in step.ends(["parts"])] == [("parts", "sum")]


def products(m, k, n, dtype="float32", threads=2):
    """The steps for a product of these sizes."""
    a, b = sg.placeholder("a", (m, k), dtype), sg.placeholder("b", (k, n), dtype)
    graph = sg.compile([a, b], a @ b, backend="numpy").graph
    return lower(graph, {}, threads=threads, native=SomeMaker(False)).steps


def test_threads_share_products_that_make_up_for_starting_them():
    (step,) = products(256, 256, 64)
    assert (type(step), step.name, step.code) == (Product, "native_matmul", "f4")
    assert step.accept(Namer()) == "call"
    alone = [(256, 256, 63), (1, 5000, 5000), (256, 256, 64, "int32"), (256, 256, 64, "float16")]
    for given in alone:
        assert Product not in map(type, products(*given)), given
    assert Product not in map(type, products(256, 256, 64, threads=1))


def test_machine_code_takes_large_products_on_one_thread_where_it_has_them(monkeypatch):
    monkeypatch.setattr(SomeMaker, "has_products", True)
    (step,) = products(256, 256, 64, threads=1)
    assert (type(step), step.threads) == (Product, 1)
    assert products(256, 256, 64)[0].threads == 2
    a, b = sg.placeholder("a", (300, 300)), sg.placeholder("b", (300, 300), "float32")
    graph = sg.compile([a, b], [a @ a, b @ b], backend="numpy").graph
    steps = lower(graph, {}, threads=1, native=SomeMaker(False)).steps
    assert [s.code for s in steps if isinstance(s, Product)] == ["f8", "f4"]
    alone = [(31, 4000, 400), (400, 4000, 47), (4000, 2, 120), (2000, 2000, 2000)]
    for given in [*alone, (300, 300, 300, "int32")]:
        assert Product not in map(type, products(*given, threads=1)), given


def test_beside_other_work_of_blas_products_are_left_to_it():
    a, b = sg.placeholder("a", (256, 256), "float32"), sg.placeholder("b", (256, 64), "float32")
    for other in (sg.linalg.cholesky(a), sg.linalg.solve(a, b)):
        graph = sg.compile([a, b], [a @ b, other], backend="numpy").graph
        steps = lower(graph, {}, threads=2, native=SomeMaker(False)).steps
        assert Product not in map(type, steps)


def test_beside_threads_of_blas_that_spin_only_long_loops_are_shared(monkeypatch):
    monkeypatch.setattr(SomeCode, "nanoseconds", 100_000)
    a = sg.placeholder("a", (256, 256), "float32")
    for other, piece in ((sg.linalg.cholesky(a), 4000), (a[:2], 500)):
        graph = sg.compile([a], [sg.exp(sg.tanh(a)) * 2, other], backend="numpy").graph
        steps = lower(graph, {}, threads=2, native=SomeMaker(False)).steps
        (loop,) = (s for s in steps if isinstance(s, NativeLoop))
        assert loop.piece == piece


def test_beside_machine_code_threads_share_smaller_products():
    a, b = sg.placeholder("a", (64, 64), "float32"), sg.placeholder("b", (64, 64), "float32")
    graph = sg.compile([a, b], sg.exp(sg.tanh(a @ b)) * 2, backend="numpy").graph
    kinds = [type(s) for s in lower(graph, {}, threads=2, native=SomeMaker(False)).steps]
    assert kinds == [Product, NativeLoop]


def test_a_native_call_stands_for_all_nodes():
    (step,) = PLANS["native_call"]
    assert held(step) == "multiply, tanh, exp, sum"
    assert [n.op.name for n in step.computes] == ["multiply", "tanh", "exp", "sum"]


def test_sums_of_rows_are_products_that_count_as_sums():
    rows = sg.ops.linalg.products.row_sums(sg.placeholder("a", (5, 7)), keepdims=True)
    (step,) = lower(sg.Graph([rows]), {}).steps
    assert isinstance(step, RowSums)
    assert step.op.kernel is np.matmul
    assert sg.compile(list(sg.Graph([rows]).inputs), rows).cost().after.flops == 5 * 7

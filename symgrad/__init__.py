"""symgrad: a define-then-run compiler for gradients.

Build a graph with NumPy's vocabulary, derive its gradient as a graph, compile both into a NumPy
program, and look at every stage.

>>> import symgrad as sg
>>> x = sg.placeholder("x", ("N",))
>>> loss = sg.sum(sg.relu(x) ** 2)
>>> program = sg.compile([x], [loss, sg.grad(loss, x)])

A name is loaded when it is first used, so that `import symgrad` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from symgrad.ir.late import SLOTS, Viewer

if TYPE_CHECKING:
    from symgrad import fft as fft
    from symgrad import linalg as linalg
    from symgrad import nn as nn
    from symgrad import optim as optim
    from symgrad import passes as passes
    from symgrad import random as random
    from symgrad import special as special
    from symgrad import testing as testing
    from symgrad.autodiff.custom.checkpoint import checkpoint as checkpoint
    from symgrad.autodiff.custom.function import Function as Function
    from symgrad.autodiff.custom.numpy_function import NumpyFunction as NumpyFunction
    from symgrad.autodiff.explain import explain_grad as explain_grad
    from symgrad.autodiff.transforms import grad as grad
    from symgrad.autodiff.transforms import hessian as hessian
    from symgrad.autodiff.transforms import hvp as hvp
    from symgrad.autodiff.transforms import jacobian as jacobian
    from symgrad.autodiff.transforms import jvp as jvp
    from symgrad.autodiff.transforms import value_and_grad as value_and_grad
    from symgrad.autodiff.transforms import vjp as vjp
    from symgrad.autodiff.transforms import vmap as vmap
    from symgrad.compiler import compile as compile
    from symgrad.display import render as render
    from symgrad.dtypes import *
    from symgrad.dtypes import __array_api_version__ as __array_api_version__
    from symgrad.dtypes import __array_namespace_info__ as __array_namespace_info__
    from symgrad.ir.dim_text import dim as dim
    from symgrad.ir.dims import Dim as Dim
    from symgrad.ir.errors import *
    from symgrad.ir.graph import Graph as Graph
    from symgrad.ir.kinks import kinks as kinks
    from symgrad.ir.node import Node as Node
    from symgrad.ir.node import Variable as Variable
    from symgrad.ir.origin import scope as scope
    from symgrad.ir.types import TensorType as TensorType
    from symgrad.ops import *
    from symgrad.passes import graph_pass as graph_pass
    from symgrad.rewrite.pattern import Attr as Attr
    from symgrad.rewrite.pattern import Const as Const
    from symgrad.rewrite.pattern import Var as Var
    from symgrad.rewrite.rule import Exact as Exact
    from symgrad.rewrite.rule import Rewrite as Rewrite
    from symgrad.rewrite.rule import rule as rule
    from symgrad.runtime.program import Program as Program
    from symgrad.train.batches import Batches as Batches
    from symgrad.train.batches import batches as batches
    from symgrad.train.checkpoints import load_state as load_state
    from symgrad.train.checkpoints import save_state as save_state
    from symgrad.train.history import History as History
    from symgrad.train.history import early_stopping as early_stopping
    from symgrad.train.loop import evaluate as evaluate
    from symgrad.train.loop import fit as fit

__version__ = "0.1.0"

# Where the public names are, from the ground up; a `*` stands for all that a module declares.
_HOMES: tuple[tuple[str, str], ...] = (
    ("symgrad.display", "render"),
    ("symgrad.ir.errors", "*"),
    ("symgrad.ir.dims", "Dim"),
    ("symgrad.ir.dim_text", "dim"),
    ("symgrad.ir.types", "TensorType"),
    ("symgrad.ir.origin", "scope"),
    ("symgrad.ir.node", "Node Variable"),
    ("symgrad.ir.graph", "Graph"),
    ("symgrad.ir.kinks", "kinks"),
    ("symgrad.autodiff.explain", "explain_grad"),
    ("symgrad.autodiff.custom.function", "Function"),
    ("symgrad.autodiff.custom.numpy_function", "NumpyFunction"),
    ("symgrad.autodiff.custom.checkpoint", "checkpoint"),
    ("symgrad.rewrite.pattern", "Attr Const Var"),
    ("symgrad.rewrite.rule", "Exact Rewrite rule"),
    ("symgrad.passes", "graph_pass"),
    ("symgrad.runtime.program", "Program"),
    ("symgrad.autodiff.transforms", "grad value_and_grad vjp jvp hvp jacobian hessian vmap"),
    ("symgrad.compiler", "compile"),
    ("symgrad.train.checkpoints", "load_state save_state"),
    ("symgrad.train.batches", "Batches batches"),
    ("symgrad.train.history", "History early_stopping"),
    ("symgrad.train.loop", "evaluate fit"),
    ("symgrad.ops", "*"),
    ("symgrad.dtypes", "*"),
)
# What is built on the ops, and `display`, which draws.
_SUBMODULES = ("display", "fft", "linalg", "nn", "optim", "passes", "random", "special", "testing")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    for home, names in _HOMES:
        if names == "*" or name in names.split():
            module = import_module(home)
            if name in (module.__all__ if names == "*" else names.split()):
                globals()[name] = found = getattr(module, name)
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    names = {
        n
        for home, listed in _HOMES
        for n in (import_module(home).__all__ if listed == "*" else listed.split())
    }
    return sorted({*names, *_SUBMODULES, *(n for n in globals() if n.startswith("__"))})


def _viewer() -> Viewer:
    return cast(Viewer, import_module("symgrad.display"))


def _declare_ops() -> None:
    import_module("symgrad.ops")


SLOTS.viewer, SLOTS.declare_ops = _viewer, _declare_ops

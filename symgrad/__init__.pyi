"""The public names, each once: read by type checkers, and by `__init__.py` when a name is used."""

from typing import Any

from symgrad import display as display
from symgrad import fft as fft
from symgrad import linalg as linalg
from symgrad import nn as nn
from symgrad import optim as optim
from symgrad import passes as passes
from symgrad import random as random
from symgrad import special as special
from symgrad import stats as stats
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
from symgrad.ir.dim_text import same_size as same_size
from symgrad.ir.dims import Dim as Dim
from symgrad.ir.errors import *
from symgrad.ir.graph import Graph as Graph
from symgrad.ir.kinks import kinks as kinks
from symgrad.ir.node import Node as Node
from symgrad.ir.node import Variable as Variable
from symgrad.ir.origin import scope as scope
from symgrad.ir.types import TensorType as TensorType
from symgrad.ops import *
from symgrad.ops.families import *
from symgrad.ops.loops.scan import fori as fori
from symgrad.ops.loops.scan import map as map
from symgrad.ops.loops.scan import scan as scan
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

__version__: str

# The names of `*` are those that the registry holds, which no type checker knows.
def __getattr__(name: str) -> Any: ...

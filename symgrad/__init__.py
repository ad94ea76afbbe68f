"""symgrad: a define-then-run compiler for gradients."""
from symgrad.ops.leaves import *
from symgrad.ops.elementwise import *
from symgrad.ops.logic import *
from symgrad.ops.select import *
from symgrad.ops.shape import *
from symgrad.ops.reduce import *
from symgrad.ops.linalg import *
from symgrad.ir.graph import Graph
from symgrad.autodiff.reverse import grad, value_and_grad, vjp
from symgrad.compile import compile
from symgrad.ir.origin import scope

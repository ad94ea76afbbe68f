"""Floor 3: the ops, each declared once."""

from symgrad.ir.op import REGISTRY
from symgrad.ops.activations import *
from symgrad.ops.cumulative import *
from symgrad.ops.einsum import *
from symgrad.ops.elementwise import *
from symgrad.ops.identity import *
from symgrad.ops.index import *
from symgrad.ops.leaves import *
from symgrad.ops.linalg import *
from symgrad.ops.logic import *
from symgrad.ops.norms import *
from symgrad.ops.opaque import *
from symgrad.ops.order import *
from symgrad.ops.reduce import *
from symgrad.ops.select import *
from symgrad.ops.shape import *
from symgrad.ops.solve import *
from symgrad.ops.trigonometry import *

__all__ = [name for name in REGISTRY.functions if name in globals()]

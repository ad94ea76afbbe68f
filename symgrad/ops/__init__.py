"""Floor 3: the ops, each declared once."""

import symgrad.ops.decompositions  # with determinants and matrices: what sg.linalg has
import symgrad.ops.determinants
import symgrad.ops.frequencies  # with fourier: what sg.fft has
import symgrad.ops.fused
import symgrad.ops.matrices
import symgrad.ops.random  # noqa: F401  what sg.random has
from symgrad.ir.op import REGISTRY
from symgrad.ops.activations import *
from symgrad.ops.complexes import *
from symgrad.ops.convolution import *
from symgrad.ops.creation import *
from symgrad.ops.cumulative import *
from symgrad.ops.dtypes import *
from symgrad.ops.einsum import *
from symgrad.ops.elementwise import *
from symgrad.ops.gamma import *
from symgrad.ops.identity import *
from symgrad.ops.index import *
from symgrad.ops.leaves import *
from symgrad.ops.linalg import *
from symgrad.ops.logic import *
from symgrad.ops.manipulate import *
from symgrad.ops.norms import *
from symgrad.ops.opaque import *
from symgrad.ops.order import *
from symgrad.ops.padding import *
from symgrad.ops.pooling import *
from symgrad.ops.reduce import *
from symgrad.ops.scatter import *
from symgrad.ops.select import *
from symgrad.ops.sets import *
from symgrad.ops.shape import *
from symgrad.ops.solve import *
from symgrad.ops.special import *
from symgrad.ops.statistics import *
from symgrad.ops.take import *
from symgrad.ops.trigonometry import *
from symgrad.ops.windows import *

__all__ = [name for name in REGISTRY.functions if name in globals()]

"""Floor 3: the ops, each declared once; those of `families` when one of them is used."""

import symgrad.ops.conv.kernels  # with all other kernels, whose names no value of a program takes
import symgrad.ops.domain_kernels
import symgrad.ops.fourier.kernels
import symgrad.ops.fused
import symgrad.ops.linalg.decompositions  # with determinants and matrices: what sg.linalg has
import symgrad.ops.linalg.determinants
import symgrad.ops.linalg.matrices
import symgrad.ops.numpy.kernels
import symgrad.ops.random.kernels
import symgrad.ops.special.elementary_kernels
import symgrad.ops.special.gamma_kernels
import symgrad.ops.special.kernels  # noqa: F401
from symgrad.ir.op import REGISTRY
from symgrad.ops.activations import *
from symgrad.ops.complexes import *
from symgrad.ops.conv.pooling import *
from symgrad.ops.conv.windows import *
from symgrad.ops.creation import *
from symgrad.ops.cumulative import *
from symgrad.ops.dtypes import *
from symgrad.ops.elementwise import *
from symgrad.ops.identity import *
from symgrad.ops.index.scatter import *
from symgrad.ops.index.slices import *
from symgrad.ops.index.take import *
from symgrad.ops.leaves import *
from symgrad.ops.linalg.einsum import *
from symgrad.ops.linalg.norms import *
from symgrad.ops.linalg.products import *
from symgrad.ops.linalg.solve import *
from symgrad.ops.logic import *
from symgrad.ops.manipulate import *
from symgrad.ops.order import *
from symgrad.ops.padding import *
from symgrad.ops.reduce import *
from symgrad.ops.select import *
from symgrad.ops.shape import *
from symgrad.ops.trigonometry import *

__all__ = [name for name in REGISTRY.functions if name in globals()]

"""Floor 3: the ops, each declared once."""

import symgrad.ops.domains
import symgrad.ops.fourier.frequencies  # with fourier: what sg.fft has
import symgrad.ops.fourier.planes
import symgrad.ops.fused
import symgrad.ops.linalg.decompositions  # with determinants and matrices: what sg.linalg has
import symgrad.ops.linalg.determinants
import symgrad.ops.linalg.matrices
import symgrad.ops.linalg.tensors
import symgrad.ops.loops.loop
import symgrad.ops.random.draws  # what sg.random has
import symgrad.ops.special.bessel  # with elementary, integrals, quantiles: what sg.special has
import symgrad.ops.special.elementary
import symgrad.ops.special.integrals
import symgrad.ops.special.quantiles  # noqa: F401
from symgrad.ir.op import REGISTRY
from symgrad.ops.activations import *
from symgrad.ops.complexes import *
from symgrad.ops.conv.convolution import *
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
from symgrad.ops.numpy.arithmetic import *
from symgrad.ops.numpy.joins import *
from symgrad.ops.numpy.products import *
from symgrad.ops.numpy.statistics import *
from symgrad.ops.opaque import *
from symgrad.ops.order import *
from symgrad.ops.padding import *
from symgrad.ops.reduce import *
from symgrad.ops.select import *
from symgrad.ops.sets import *
from symgrad.ops.shape import *
from symgrad.ops.special.gamma import *
from symgrad.ops.special.normal import *
from symgrad.ops.statistics import *
from symgrad.ops.trigonometry import *

__all__ = [name for name in REGISTRY.functions if name in globals()]

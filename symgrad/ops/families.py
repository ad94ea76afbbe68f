"""Families of ops that no rule names and few programs have: declared when one of them is used.

Rules know them by their facts.
"""

import symgrad.ops.domains
import symgrad.ops.fourier.frequencies  # with fourier: what sg.fft has
import symgrad.ops.fourier.planes
import symgrad.ops.linalg.tensors
import symgrad.ops.loops.cond
import symgrad.ops.loops.loop
import symgrad.ops.numpy.least_squares
import symgrad.ops.random.draws  # what sg.random has
import symgrad.ops.special.bessel  # with elementary, integrals, quantiles: what sg.special has
import symgrad.ops.special.elementary
import symgrad.ops.special.integrals
import symgrad.ops.special.quantiles  # noqa: F401
from symgrad.ir.op import REGISTRY
from symgrad.ops.conv.convolution import *
from symgrad.ops.numpy.arithmetic import *
from symgrad.ops.numpy.joins import *
from symgrad.ops.numpy.numbers import *
from symgrad.ops.numpy.orders import *
from symgrad.ops.numpy.places import *
from symgrad.ops.numpy.polynomials import *
from symgrad.ops.numpy.products import *
from symgrad.ops.numpy.statistics import *
from symgrad.ops.opaque import *
from symgrad.ops.sets import *
from symgrad.ops.special.gamma import *
from symgrad.ops.special.normal import *
from symgrad.ops.statistics import *

__all__ = [name for name in REGISTRY.functions if name in globals()]

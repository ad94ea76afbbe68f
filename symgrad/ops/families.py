"""Families of ops that no rule names and few programs have: declared when one of them is used.

Rules know them by their facts.
"""

import symgrad.ops.conv.convolution
import symgrad.ops.domains
import symgrad.ops.fourier.frequencies  # with fourier: what sg.fft has
import symgrad.ops.fourier.planes
import symgrad.ops.linalg.tensors
import symgrad.ops.loops.cond
import symgrad.ops.loops.implicit
import symgrad.ops.loops.krylov
import symgrad.ops.loops.loop
import symgrad.ops.loops.while_loop
import symgrad.ops.numpy.arithmetic
import symgrad.ops.numpy.joins
import symgrad.ops.numpy.least_squares
import symgrad.ops.numpy.numbers
import symgrad.ops.numpy.orders
import symgrad.ops.numpy.places
import symgrad.ops.numpy.polynomials
import symgrad.ops.numpy.products
import symgrad.ops.numpy.statistics
import symgrad.ops.opaque
import symgrad.ops.quantiles
import symgrad.ops.random.draws  # what sg.random has
import symgrad.ops.sets
import symgrad.ops.sparse.matrix
import symgrad.ops.special.bessel  # with elementary, integrals, quantiles: what sg.special has
import symgrad.ops.special.elementary
import symgrad.ops.special.gamma
import symgrad.ops.special.integrals
import symgrad.ops.special.normal
import symgrad.ops.special.quantiles
import symgrad.ops.statistics  # noqa: F401

"""Families of ops that few programs have: declared when one of them is used.

Rules know them by their facts, or are loaded when a graph has one; see `symgrad.rules`.
"""

import symgrad.ops.complexes
import symgrad.ops.conv.convolution
import symgrad.ops.conv.pooling
import symgrad.ops.conv.windows
import symgrad.ops.creation
import symgrad.ops.cumulative
import symgrad.ops.domains
import symgrad.ops.dtypes
import symgrad.ops.fourier.frequencies  # with fourier: what sg.fft has
import symgrad.ops.fourier.planes
import symgrad.ops.index.in_rows
import symgrad.ops.index.scatter
import symgrad.ops.index.take
import symgrad.ops.linalg.decompositions  # with determinants and matrices: what sg.linalg has
import symgrad.ops.linalg.determinants
import symgrad.ops.linalg.einsum
import symgrad.ops.linalg.matrices
import symgrad.ops.linalg.norms
import symgrad.ops.linalg.solve
import symgrad.ops.linalg.systems
import symgrad.ops.linalg.tensors
import symgrad.ops.loops.cond
import symgrad.ops.loops.implicit
import symgrad.ops.loops.krylov
import symgrad.ops.loops.loop
import symgrad.ops.loops.while_loop
import symgrad.ops.manipulate
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
import symgrad.ops.order
import symgrad.ops.padding
import symgrad.ops.quantiles
import symgrad.ops.random.draws  # what sg.random has
import symgrad.ops.remainders
import symgrad.ops.sets
import symgrad.ops.sparse.matrix
import symgrad.ops.special.bessel  # with elementary, integrals, quantiles: what sg.special has
import symgrad.ops.special.elementary
import symgrad.ops.special.gamma
import symgrad.ops.special.integrals
import symgrad.ops.special.normal
import symgrad.ops.special.quantiles
import symgrad.ops.statistics
import symgrad.ops.trigonometry  # noqa: F401

"""Floor 3: the ops, each declared once; those of `families` when one of them is used."""

import symgrad.ops.activations
import symgrad.ops.complexes
import symgrad.ops.conv.kernels  # with all other kernels, whose names no value of a program takes
import symgrad.ops.conv.pooling
import symgrad.ops.conv.windows
import symgrad.ops.creation
import symgrad.ops.cumulative
import symgrad.ops.domain_kernels
import symgrad.ops.dtypes
import symgrad.ops.elementwise
import symgrad.ops.fourier.kernels
import symgrad.ops.fused
import symgrad.ops.identity
import symgrad.ops.index.in_rows
import symgrad.ops.index.scatter
import symgrad.ops.index.slices
import symgrad.ops.index.take
import symgrad.ops.leaves
import symgrad.ops.linalg.decompositions  # with determinants and matrices: what sg.linalg has
import symgrad.ops.linalg.determinants
import symgrad.ops.linalg.einsum
import symgrad.ops.linalg.matrices
import symgrad.ops.linalg.norms
import symgrad.ops.linalg.products
import symgrad.ops.linalg.solve
import symgrad.ops.linalg.systems
import symgrad.ops.logic
import symgrad.ops.manipulate
import symgrad.ops.numpy.kernels
import symgrad.ops.order
import symgrad.ops.padding
import symgrad.ops.random.kernels
import symgrad.ops.reduce
import symgrad.ops.remainders
import symgrad.ops.select
import symgrad.ops.shape
import symgrad.ops.special.elementary_kernels
import symgrad.ops.special.gamma_kernels
import symgrad.ops.special.kernels
import symgrad.ops.special.scipy_kernels
import symgrad.ops.trigonometry  # noqa: F401

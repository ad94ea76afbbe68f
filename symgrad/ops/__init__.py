"""Floor 3: the ops, each declared once; those of `families` when one of them is used."""

import symgrad.ops.activations
import symgrad.ops.complex_kernels
import symgrad.ops.conv.kernels  # with all other kernels, whose names no value of a program takes
import symgrad.ops.conv.window_kernels
import symgrad.ops.domain_kernels
import symgrad.ops.elementwise
import symgrad.ops.fourier.kernels
import symgrad.ops.fused
import symgrad.ops.identity
import symgrad.ops.index.slices
import symgrad.ops.leaves
import symgrad.ops.linalg.kernels
import symgrad.ops.linalg.products
import symgrad.ops.logic
import symgrad.ops.numpy.kernels
import symgrad.ops.random.kernels
import symgrad.ops.reduce
import symgrad.ops.select
import symgrad.ops.shape
import symgrad.ops.sparse.kernels
import symgrad.ops.special.elementary_kernels
import symgrad.ops.special.gamma_kernels
import symgrad.ops.special.kernels
import symgrad.ops.special.scipy_kernels  # noqa: F401

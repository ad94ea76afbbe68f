"""The table of ops, linear algebra. See `elementwise.py`."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from symgrad.backends.jax.windows import Windows


class Linear(Windows):
    """Ops on matrices; a matrix that NumPy refuses is one here at which the op fails."""

    def cholesky(self, x):
        """It fails by the rows before the first one with NaN; those from there on are NaN."""
        jnp, size = self.jnp, x.shape[-1]
        known = jnp.cumsum(jnp.any(jnp.isnan(jnp.tril(x)), -1), -1) == 0
        known = known[..., :, None] & known[..., None, :]
        regular = jnp.where(known, x, jnp.eye(size, dtype=x.dtype))
        y = self.lax.linalg.cholesky(regular, symmetrize_input=False)
        self.failing(jnp.isnan(y))
        return jnp.tril(jnp.where(known, y, np.nan))

    def solve_definite(self, a, b):
        half = self.solve_triangular(factor := self.cholesky(a), b, True)
        return self.solve_triangular(self._adjoint(factor), half, False)

    def inv_definite(self, x):
        return self.solve_definite(x, self.jnp.eye(x.shape[-1], dtype=x.dtype))

    def logdet_definite(self, x):
        factor = self.cholesky(x)
        return 2 * self.jnp.log(self.jnp.diagonal(factor, 0, -2, -1).real).sum(-1)

    def _adjoint(self, x):
        return self.jnp.conj(self.jnp.swapaxes(x, -1, -2))

    def _triangular(self, a, b, lower, **options):
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a = self.jnp.broadcast_to(a, (*batch, *a.shape[-2:]))
        b = self.jnp.broadcast_to(b, (*batch, *b.shape[-2:]))
        return self.lax.linalg.triangular_solve(a, b, left_side=True, lower=lower, **options)

    def _regular(self, triangle):
        """Note that it fails where a pivot is 0."""
        self.failing(self.jnp.diagonal(triangle, 0, -2, -1) == 0)

    def pivots(self, x):
        self.failing(x == 0)
        return x

    def converged(self, x, residual, wanted, method, most):
        self.failing(~(residual <= wanted))
        return x

    def solve_triangular(self, a, b, lower):
        self._regular(a)
        return self._triangular(a, b, lower)

    def inv_triangular(self, x, lower):
        self._regular(x)
        return self._triangular(x, self.jnp.eye(x.shape[-1], dtype=x.dtype), lower)

    def solve(self, a, b):
        vector = b.ndim == 1
        b = b[:, None] if vector else b
        factors, _, order = self.lax.linalg.lu(a)
        self._regular(factors)
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        b = self.jnp.broadcast_to(b, (*batch, *b.shape[-2:]))
        order = self.jnp.broadcast_to(order, (*batch, order.shape[-1]))
        b = self.jnp.take_along_axis(b, order[..., None], -2)
        y = self._triangular(factors, b, True, unit_diagonal=True)
        y = self._triangular(factors, y, False)
        return y[:, 0] if vector else y

    def inv(self, x):
        return self.solve(x, self.jnp.eye(x.shape[-1], dtype=x.dtype))

    def det(self, x):
        return self.jnp.linalg.det(x)

    def slogdet(self, x):
        return tuple(self.jnp.linalg.slogdet(x))

    def qr(self, x, complete):
        return tuple(self.jnp.linalg.qr(x, "complete" if complete else "reduced"))

    def eigh(self, x, degenerate):
        if x.shape[-1] > 2:  # of smaller ones with NaN NumPy gives NaN
            self.failing(self.jnp.isnan(self.jnp.tril(x)) | self.jnp.isinf(self.jnp.tril(x, -1)))
        return tuple(self.jnp.linalg.eigh(x, "L", symmetrize_input=False))

    def eigvalsh(self, x, degenerate):
        return self.eigh(x, degenerate)[0]

    def svd(self, x, full_matrices, degenerate):
        """With inf in a matrix, LAPACK's would never end: of that one all is NaN."""
        finite = self.jnp.isfinite(x)
        self.failing(~finite)
        found = self.jnp.linalg.svd(self.jnp.where(finite, x, 0), full_matrices)
        known = self.jnp.all(finite, (-2, -1))
        return tuple(
            self.jnp.where(self.jnp.expand_dims(known, range(x.ndim - 2, y.ndim)), y, np.nan)
            for y in found
        )

    def svdvals(self, x, full_matrices, degenerate):
        self.failing(self.jnp.isnan(x))
        return self.jnp.linalg.svd(x, compute_uv=False)

    def over_gaps(self, x, w, squared, degenerate):
        jnp, rows = self.jnp, self.jnp.swapaxes(w, -1, -2)
        gap, size = w - rows, w.shape[-1]
        top = jnp.max(abs(w), -1, keepdims=True, initial=0)
        tie = abs(gap) <= size * np.finfo(w.dtype).eps * top
        met = tie & (x != 0) & ~jnp.eye(size, dtype=bool)
        if degenerate == "error":
            self.failing(met)
        y = jnp.where(tie, 0, x / jnp.where(tie, 1, gap * (w + rows) if squared else gap))
        return jnp.where(met, jnp.nan, y) if degenerate == "nan" else y

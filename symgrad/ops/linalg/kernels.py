"""Kernels of linear algebra that NumPy does not have as one function; see `kernels.py`."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import numpy as np


def solve_triangular(a, b, lower):
    """The y with a @ y = b, by blocks: all but the blocks on the diagonal is a matrix product.

    A small upper triangular system is one for LU, which finds nothing to eliminate in it.
    """
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    y = np.empty((*batch, *b.shape[-2:]), b.dtype)
    y[...] = b
    starts = range(0, a.shape[-1], 64)
    for i in starts if lower else reversed(starts):
        here, rest = slice(i, i + 64), slice(i + 64, None) if lower else slice(i)
        block = a[..., here, here]
        if lower:
            turned = np.linalg.solve(np.tril(block)[..., ::-1, ::-1], y[..., here, :][..., ::-1, :])
            y[..., here, :] = turned[..., ::-1, :]
        else:
            y[..., here, :] = np.linalg.solve(np.triu(block), y[..., here, :])
        y[..., rest, :] -= np.matmul(a[..., rest, here], y[..., here, :])
    return y


def inv_triangular(x, lower):
    """The inverse of a triangular matrix, of which the other half is not read, by blocks."""
    y = np.zeros(x.shape, x.dtype)
    starts = range(0, x.shape[-1], 64)
    for i in starts if lower else reversed(starts):
        here, done = slice(i, i + 64), slice(i) if lower else slice(i + 64, None)
        block = x[..., here, here]
        if lower:
            inverse = np.linalg.inv(np.tril(block)[..., ::-1, ::-1])[..., ::-1, ::-1]
        else:
            inverse = np.linalg.inv(np.triu(block))
        y[..., here, here] = inverse
        beside = np.matmul(x[..., here, done], y[..., done, done])
        y[..., here, done] = -np.matmul(y[..., here, here], beside)
    return y


def cholesky(x, out=None):
    """The Cholesky factor; of a large matrix by blocks: all but these is a matrix product.

    It may be written over x: what is written is read no more, or as what it has become.
    """
    n, size = x.shape[-1], 48
    y = np.empty(x.shape, x.dtype) if out is None else out
    if n < 4 * size:
        y[...] = np.linalg.cholesky(x)
        return y
    for i in range(0, n, size):
        here, rest = slice(i, i + size), slice(i + size, None)
        done = np.conj(np.swapaxes(y[..., here, :i], -1, -2))
        left = x[..., i:, here] - np.matmul(y[..., i:, :i], done)
        block = np.linalg.cholesky(left[..., :size, :])
        y[..., here, here], y[..., here, rest] = block, 0
        turned = np.conj(np.swapaxes(np.linalg.inv(block), -1, -2))
        np.matmul(left[..., size:, :], turned, out=y[..., rest, here])
    return y


def pivots(x, out=None):
    """The numbers on the diagonal of a matrix that is to be regular: as they are, and none 0."""
    if not np.all(x):
        raise np.linalg.LinAlgError("Singular matrix")
    return np.positive(x, out=out)


def converged(x, residual, wanted, method, most, out=None):
    """x, whose residual is to be as small as wanted: else a method has failed."""
    bad = ~(residual <= wanted)
    if bad.any():
        more = "" if method != "cg" else "; a is to be symmetric and positive definite"
        raise np.linalg.LinAlgError(
            f"{method} did not converge in at most {most} steps: |b - a(x)| is "
            f"{residual[bad][0]:.3g}, and {wanted[bad][0]:.3g} was wanted; give maxiter, or a "
            f"larger tol{more}"
        )
    return np.positive(x, out=out)


def inv_definite(x):
    """The inverse by the Cholesky factor."""
    half = inv_triangular(cholesky(x), True)
    return np.matmul(np.conj(np.swapaxes(half, -1, -2)), half)


def solve_definite(a, b):
    """The y with a @ y = b, by the Cholesky factor of a."""
    factor = cholesky(a)
    half = solve_triangular(factor, b, True)
    return solve_triangular(np.conj(np.swapaxes(factor, -1, -2)), half, False)


def logdet_definite(x):
    """log(det(x)) by the Cholesky factor of x."""
    factor = cholesky(x)
    return 2 * np.log(np.diagonal(factor, 0, -2, -1).real).sum(-1)


def adjugate(x):
    """det(x) * inv(x), which a singular matrix has too: near these it is by singular values."""
    try:
        inverse = np.linalg.inv(x)
        sizes = [np.abs(a).sum(-2).max(-1, initial=0) for a in (x, inverse)]
        if not np.any(sizes[0] * sizes[1] > np.finfo(x.dtype).eps ** -0.5):
            return np.linalg.det(x)[..., None, None] * inverse
    except np.linalg.LinAlgError:
        pass
    if not np.isfinite(x).all():  # for which NumPy's svd may never return
        return np.full(x.shape, np.nan, x.dtype)
    u, s, vh = np.linalg.svd(x)
    n = x.shape[-1]
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(-1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    turned = np.conj(np.swapaxes(np.matmul(u * others[..., None, :], vh), -1, -2))
    return (turned * sign[..., None, None]).astype(x.dtype, copy=False)


def adjugate_slope(x, t):
    """The derivative of the adjugate of x along t, by singular values, of which some may be 0."""
    if not np.isfinite(x).all():  # for which NumPy's svd may never return
        return np.full(x.shape, np.nan, x.dtype)
    u, s, vh = np.linalg.svd(x)
    own = np.eye(x.shape[-1], dtype=bool)
    # The products of all values but i and j: of those but i, those before and those behind j.
    one_less = np.where(own, 1, s[..., None, :])
    before, behind = np.ones_like(one_less), np.ones_like(one_less)
    before[..., 1:] = np.cumprod(one_less, -1)[..., :-1]
    behind[..., :-1] = np.cumprod(one_less[..., ::-1], -1)[..., -2::-1]
    two_less = np.where(own, 0, before * behind)
    adjoints = [np.conj(np.swapaxes(a, -1, -2)) for a in (u, vh)]
    inner = adjoints[0] @ t @ adjoints[1]
    traces = two_less @ np.diagonal(inner, axis1=-2, axis2=-1)[..., None]
    turned = adjoints[1] @ (traces * own - two_less * inner) @ adjoints[0]
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return (turned * sign[..., None, None]).astype(x.dtype, copy=False)


def eigh(x, degenerate):
    """The eigenvalues and eigenvectors; how equal ones are dealt with matters to derivatives."""
    return np.linalg.eigh(x)


def eig(x, degenerate):
    """The eigenvalues and eigenvectors of any matrix, complex even if none of them is."""
    dtype = np.result_type(x.dtype, np.complex64)
    w, v = np.linalg.eig(x)
    return w.astype(dtype, copy=False), v.astype(dtype, copy=False)


def eigvals(x, degenerate):
    """The eigenvalues of `eig`."""
    return np.linalg.eigvals(x).astype(np.result_type(x.dtype, np.complex64), copy=False)


def eigvalsh(x, degenerate):
    """The eigenvalues of `eigh`."""
    return np.linalg.eigvalsh(x)


def svd(x, full_matrices, degenerate):
    """The singular values and vectors; how equal ones are dealt with matters to derivatives."""
    if not np.isfinite(x).all():
        raise np.linalg.LinAlgError("a matrix with inf or NaN has no singular vectors")
    return np.linalg.svd(x, full_matrices)


def svdvals(x, full_matrices, degenerate):
    """The singular values of `svd`."""
    return np.linalg.svd(x, compute_uv=False)


def qr(x, complete):
    """The orthogonal and the triangular factor."""
    return np.linalg.qr(x, "complete" if complete else "reduced")


def over_gaps(x, w, squared, degenerate):
    """x[i, j] / (w[j] - w[i]), or of the squares of w; 0 on the diagonal.

    Numbers that differ by no more than LAPACK's error, which is relative to the largest, are equal.
    """
    rows = np.swapaxes(w, -1, -2)
    gap = w - rows
    top = np.max(np.abs(w), axis=-1, keepdims=True, initial=0)
    tie = np.abs(gap) <= w.shape[-1] * np.finfo(w.dtype).eps * top
    met = tie & np.not_equal(x, 0) & ~np.eye(w.shape[-1], dtype=bool)
    if degenerate == "error" and met.any():
        i, j = (int(k) for k in np.argwhere(met)[0][-2:])
        raise np.linalg.LinAlgError(
            f"values {i} and {j} are equal, so that their vectors have no derivative; "
            "degenerate='mask' takes it for 0 where they turn into each other"
        )
    y = x / np.where(tie, 1, gap * (w + rows) if squared else gap)
    np.copyto(y, 0, where=tie)
    if degenerate == "nan":
        np.copyto(y, np.nan, where=met)
    return y


def pinv(x, rtol):
    """The pseudoinverse; singular values below rtol times the largest count as 0."""
    if not np.isfinite(x).all():  # for which NumPy's svd may never return
        raise np.linalg.LinAlgError("a matrix with inf or NaN has no pseudoinverse")
    return np.linalg.pinv(x, rtol=rtol)


def expm(x):
    """The exponential of a matrix: a Padé approximation, scaled and squared (Higham, 2005)."""
    size = np.max(np.sum(np.abs(x), axis=-2), initial=0)
    if not np.isfinite(size):
        return np.full(x.shape, np.nan, x.dtype)
    squarings = max(0, int(np.ceil(np.log2(max(size, 1) / 5.37))))
    x = x / 2.0**squarings
    one, x2 = np.eye(x.shape[-1], dtype=x.dtype), np.matmul(x, x)
    x4 = np.matmul(x2, x2)
    x6 = np.matmul(x4, x2)
    odd = np.matmul(x6, x6 + 16380.0 * x4 + 40840800.0 * x2)
    odd += 33522128640.0 * x6 + 10559470521600.0 * x4 + 1187353796428800.0 * x2
    odd = np.matmul(x, odd + 32382376266240000.0 * one)
    even = np.matmul(x6, 182.0 * x6 + 960960.0 * x4 + 1323241920.0 * x2)
    even += 670442572800.0 * x6 + 129060195264000.0 * x4 + 7771770303897600.0 * x2
    even += 64764752532480000.0 * one
    y = np.linalg.solve(even - odd, even + odd)
    for _ in range(squarings):
        y = np.matmul(y, y)
    return y

"""Kernels that NumPy does not have as one function.

Each uses nothing but NumPy and its own arguments, because its source is copied into the
stand-alone programs that symgrad writes. `out` may be the memory of an operand.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np


def select(mask, x, out=None, bits=None):
    """x where the mask holds, 0 elsewhere, by its bits: exact for inf and NaN, and fast."""
    if bits is None:
        if out is None:
            out = np.empty(np.broadcast_shapes(np.shape(mask), np.shape(x)), np.asarray(x).dtype)
        np.copyto(out, x)
        np.copyto(out, False, where=np.logical_not(mask))
        return out[()]
    np.copyto(bits, np.asarray(mask).view(np.int8))
    np.negative(bits, bits)
    np.bitwise_and(x.view(bits.dtype), bits, out.view(bits.dtype))
    return out


def keep_where_positive(y, x, out=None, bits=None):
    """x where y > 0, 0 elsewhere, by its bits: the backward of relu in three passes."""
    if bits is None:
        if out is None:
            out = np.empty(np.broadcast_shapes(np.shape(y), np.shape(x)), np.asarray(x).dtype)
        np.copyto(out, x)
        np.copyto(out, False, where=np.logical_not(np.greater(y, 0)))
        return out[()]
    np.greater(y, 0, bits)
    np.negative(bits, bits)
    np.bitwise_and(x.view(bits.dtype), bits, out.view(bits.dtype))
    return out


def where(condition, a, b, out=None, bits=None):
    """a where the condition holds, b elsewhere: b ^ ((a ^ b) & mask), on the bits."""
    if bits is None or a is b:
        if out is None:
            shapes = np.shape(condition), np.shape(a), np.shape(b)
            out = np.empty(np.broadcast_shapes(*shapes), np.asarray(a).dtype)
        np.copyto(out, a)
        np.copyto(out, b, where=np.logical_not(condition))
        return out[()]
    np.copyto(bits, np.asarray(condition).view(np.int8))
    np.negative(bits, bits)
    target = out.view(bits.dtype)
    np.bitwise_xor(a.view(bits.dtype), b.view(bits.dtype), target)
    np.bitwise_and(target, bits, target)
    np.bitwise_xor(target, b.view(bits.dtype), target)
    return out


def copy(x, out=None):
    """x itself."""
    if out is None:
        return x
    np.copyto(out, x)
    return out


def astype(x, dtype, out=None):
    """x converted as C does: towards zero from float to int."""
    if out is None:
        return np.asarray(x).astype(dtype)[()]
    np.copyto(out, x, casting="unsafe")
    return out


def real(x, out=None):
    """The real parts."""
    if out is None:
        return np.real(x)
    np.copyto(out, np.real(x))
    return out


def imag(x, out=None):
    """The imaginary parts."""
    if out is None:
        return np.imag(x)
    np.copyto(out, np.imag(x))
    return out


def concat(*arrays, axis, out=None):
    """The arrays one after the other along an axis."""
    return np.concatenate(arrays, axis=axis, out=out)


def place(x, shape, index, out=None):
    """x at the index of an array of zeros."""
    if out is None:
        out = np.zeros(shape, x.dtype)
    else:
        out.fill(0)
    out[tuple(slice(*s) for s in index)] = x
    return out


def vdot(a, b):
    """The sum of the products of all elements."""
    return np.vdot(a, b)

"""The kernel that checks a domain. As those in `kernels.py` its source is copied into programs."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, var-annotated"

import numpy as np


def within(x, domain, name, out=None):
    """x, if its elements lie in a domain; else a ValueError tells the first that does not."""
    a = np.asarray(x)
    if domain == "true":
        good, words = a != 0, "does not hold:"
    elif domain == "positive":
        good, words = a > 0, "is positive, not"
    elif domain == "nonnegative":
        good, words = a >= 0, "is at least 0, not"
    elif domain == "symmetric":
        far = np.abs(a - np.swapaxes(a, -1, -2))
        size = np.max(np.abs(a), axis=(-2, -1), keepdims=True, initial=0)
        # What is no number is left to who reads it.
        good = ~(far > np.sqrt(np.finfo(a.dtype).eps) * size)
        words = "is a symmetric matrix; it differs from its transpose at the element"
    elif domain == "count":
        good, words = (a >= 0) & (a == np.floor(a)), "is an integer from 0 on, not"
    else:
        good, words = (a >= 0) & (a <= 1), "is a probability, from 0 to 1, not"
    if not good.all():
        raise ValueError(f"{name} {words} {a[~good][0]}")
    if domain == "law":
        total = np.asarray(np.sum(a, axis=-1, dtype=np.float64))
        off = np.abs(total - 1) > np.sqrt(np.finfo(a.dtype).eps)
        if off.any():
            raise ValueError(f"{name} has probabilities that sum to 1, not {total[off][0]}")
    return np.positive(x, out=out)

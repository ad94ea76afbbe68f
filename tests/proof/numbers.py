"""The value of a normal form, computed from its atoms: what the table of ops is held against."""

import numpy as np

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Values:
    """Values of sums, of the values of inputs and of opaque atoms by their number."""

    def __init__(self, ring, feeds, sizes=None):
        self.ring, self.feeds, self.sizes = ring, feeds, sizes or {}

    def of(self, terms, shape):
        found = np.zeros(shape)
        for term, c in terms.items:
            found = found + float(c) * self._term(term, shape)
        return found

    def _term(self, term, shape):
        used = sorted({k for f in term for k in f.labels if k >= 0})
        names = {k: LETTERS[i] for i, k in enumerate(sorted({k for f in term for k in f.labels}))}
        parts = [self._atom(f) for f in term]
        wanted = "".join(names[k] for k in used)
        texts = ["".join(names[k] for k in f.labels) for f in term]
        value = np.einsum(",".join(texts) + "->" + wanted, *parts) if parts else np.array(1.0)
        return value.reshape([shape[k] if k in used else 1 for k in range(len(shape))])

    def _atom(self, f):
        kind, of, shape = self.ring.atoms[f.atom]
        shape = tuple(self.sizes.get(str(n), n) for n in shape)
        power = float(f.power)
        if kind == "leaf":
            value = np.squeeze(self.feeds[of[1]]).astype(float)
        elif kind == "delta":
            value = np.eye(shape[0])
        elif kind == "size":
            value = np.array(float(self.sizes[of]))
        elif kind == "number":
            value = np.array(float(of))
        else:
            inner = self.of(of, shape)
            with np.errstate(all="ignore"):
                value = FUNCTIONS[kind](inner)
        with np.errstate(all="ignore"):
            return value**power if power != 1 else value


def erf(x):
    from scipy import special

    return special.erf(x)


FUNCTIONS = {
    "sum": lambda x: x,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "erf": erf,
    "positive": lambda x: (x > 0).astype(float),
    "negative": lambda x: (x < 0).astype(float),
}

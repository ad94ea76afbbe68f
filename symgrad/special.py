"""`sg.special`: special functions, with gradients.

>>> sg.special.ndtr(d1)
"""

from __future__ import annotations

from symgrad.ops.activations import log1mexp, xlog1py, xlogy
from symgrad.ops.activations import sigmoid as expit
from symgrad.ops.special.gamma import (
    betainc,
    betaln,
    digamma,
    gammainc,
    gammaincc,
    gammaln,
    i0,
    i0e,
    i1,
    i1e,
    j0,
    j1,
    polygamma,
    zeta,
)
from symgrad.ops.special.normal import (
    erf,
    erfc,
    erfcinv,
    erfcx,
    erfinv,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
)

__all__ = [
    "betainc",
    "betaln",
    "digamma",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "expit",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "j0",
    "j1",
    "log1mexp",
    "log_ndtr",
    "logit",
    "ndtr",
    "ndtri",
    "polygamma",
    "xlog1py",
    "xlogy",
    "zeta",
]


def __dir__() -> list[str]:
    return __all__

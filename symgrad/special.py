"""`sg.special`: special functions, with gradients.

>>> sg.special.ndtr(d1)
"""

from __future__ import annotations

from symgrad.ops.activations import log1mexp as log1mexp
from symgrad.ops.activations import sigmoid as expit
from symgrad.ops.activations import xlog1py as xlog1py
from symgrad.ops.activations import xlogy as xlogy
from symgrad.ops.special.gamma import betainc as betainc
from symgrad.ops.special.gamma import betaln as betaln
from symgrad.ops.special.gamma import digamma as digamma
from symgrad.ops.special.gamma import gammainc as gammainc
from symgrad.ops.special.gamma import gammaincc as gammaincc
from symgrad.ops.special.gamma import gammaln as gammaln
from symgrad.ops.special.gamma import i0 as i0
from symgrad.ops.special.gamma import i0e as i0e
from symgrad.ops.special.gamma import i1 as i1
from symgrad.ops.special.gamma import i1e as i1e
from symgrad.ops.special.gamma import j0 as j0
from symgrad.ops.special.gamma import j1 as j1
from symgrad.ops.special.gamma import polygamma as polygamma
from symgrad.ops.special.gamma import zeta as zeta
from symgrad.ops.special.normal import erf as erf
from symgrad.ops.special.normal import erfc as erfc
from symgrad.ops.special.normal import erfcinv as erfcinv
from symgrad.ops.special.normal import erfcx as erfcx
from symgrad.ops.special.normal import erfinv as erfinv
from symgrad.ops.special.normal import log_ndtr as log_ndtr
from symgrad.ops.special.normal import logit as logit
from symgrad.ops.special.normal import ndtr as ndtr
from symgrad.ops.special.normal import ndtri as ndtri

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

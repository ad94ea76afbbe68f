"""`sg.special`: special functions, with gradients.

>>> sg.special.ndtr(d1)
"""

from __future__ import annotations

from symgrad.ir.node import Node
from symgrad.ops.activations import log1mexp, log_softmax, logsumexp, softmax, xlog1py, xlogy
from symgrad.ops.activations import log_sigmoid as log_expit
from symgrad.ops.activations import sigmoid as expit
from symgrad.ops.declare import NodeLike, explaining
from symgrad.ops.special.bessel import airy, iv, jv, kv, yv
from symgrad.ops.special.elementary import (
    entr,
    eval_gegenbauer,
    eval_legendre,
    kl_div_p,
    lambertw,
    rel_entr,
)
from symgrad.ops.special.gamma import (
    betainc,
    betaincc,
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
from symgrad.ops.special.integrals import ellipe, ellipk, exp1, expi, hyp2f1, sici
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
from symgrad.ops.special.quantiles import (
    beta_p,
    betainccinv,
    betaincinv,
    gamma_p,
    gammainccinv,
    gammaincinv,
    multigammaln,
    stdtr,
    stdtrit,
)


@explaining
def gamma(x: NodeLike, /) -> Node:
    """The gamma function, (x - 1)! for an int x; NaN at its poles. d = y * digamma(x) dx.

    >>> float(sg.special.gamma(5.0))
    24.0
    """
    return gamma_p(x)


@explaining
def beta(a: NodeLike, b: NodeLike, /) -> Node:
    """The beta function, gamma(a) * gamma(b) / gamma(a + b).

    d = y * (digamma(a) - digamma(a + b)) da + y * (digamma(b) - digamma(a + b)) db.
    """
    return beta_p(a, b)


@explaining
def kl_div(x1: NodeLike, x2: NodeLike, /) -> Node:
    """rel_entr(x1, x2) - x1 + x2, which is never negative; exact where the two are close.

    d = log(x1 / x2) dx1 + (1 - x1 / x2) dx2.
    """
    return kl_div_p(x1, x2)


__all__ = [
    "airy",
    "beta",
    "betainc",
    "betaincc",
    "betainccinv",
    "betaincinv",
    "betaln",
    "digamma",
    "ellipe",
    "ellipk",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "eval_gegenbauer",
    "eval_legendre",
    "exp1",
    "expi",
    "expit",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "gammaln",
    "hyp2f1",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "iv",
    "j0",
    "j1",
    "jv",
    "kl_div",
    "kv",
    "lambertw",
    "log1mexp",
    "log_expit",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "rel_entr",
    "sici",
    "softmax",
    "stdtr",
    "stdtrit",
    "xlog1py",
    "xlogy",
    "yv",
    "zeta",
]


def __dir__() -> list[str]:
    return __all__

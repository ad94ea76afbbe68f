"""`sg.special`: special functions, with gradients.

>>> sg.special.ndtr(d1)
"""

from symgrad.ir.namespace import public_names as _public_names
from symgrad.ir.node import Node as _Node
from symgrad.ops.activations import log1mexp as log1mexp
from symgrad.ops.activations import log_sigmoid as _log_sigmoid
from symgrad.ops.activations import log_softmax as log_softmax
from symgrad.ops.activations import logsumexp as logsumexp
from symgrad.ops.activations import sigmoid as _sigmoid
from symgrad.ops.activations import softmax as softmax
from symgrad.ops.activations import xlog1py as xlog1py
from symgrad.ops.activations import xlogy as xlogy
from symgrad.ops.declare import NodeLike as _NodeLike
from symgrad.ops.declare import explaining as _explaining
from symgrad.ops.special.bessel import airy as airy
from symgrad.ops.special.bessel import i0 as i0
from symgrad.ops.special.bessel import i0e as i0e
from symgrad.ops.special.bessel import i1 as i1
from symgrad.ops.special.bessel import i1e as i1e
from symgrad.ops.special.bessel import iv as iv
from symgrad.ops.special.bessel import j0 as j0
from symgrad.ops.special.bessel import j1 as j1
from symgrad.ops.special.bessel import jv as jv
from symgrad.ops.special.bessel import kv as kv
from symgrad.ops.special.bessel import yv as yv
from symgrad.ops.special.elementary import entr as entr
from symgrad.ops.special.elementary import eval_gegenbauer as eval_gegenbauer
from symgrad.ops.special.elementary import eval_legendre as eval_legendre
from symgrad.ops.special.elementary import kl_div_p as _kl_div
from symgrad.ops.special.elementary import lambertw as lambertw
from symgrad.ops.special.elementary import rel_entr as rel_entr
from symgrad.ops.special.gamma import betainc as betainc
from symgrad.ops.special.gamma import betaincc as betaincc
from symgrad.ops.special.gamma import betaln as betaln
from symgrad.ops.special.gamma import digamma as digamma
from symgrad.ops.special.gamma import gammainc as gammainc
from symgrad.ops.special.gamma import gammaincc as gammaincc
from symgrad.ops.special.gamma import gammaln as gammaln
from symgrad.ops.special.gamma import polygamma as polygamma
from symgrad.ops.special.gamma import zeta as zeta
from symgrad.ops.special.integrals import ellipe as ellipe
from symgrad.ops.special.integrals import ellipk as ellipk
from symgrad.ops.special.integrals import exp1 as exp1
from symgrad.ops.special.integrals import expi as expi
from symgrad.ops.special.integrals import hyp2f1 as hyp2f1
from symgrad.ops.special.integrals import sici as sici
from symgrad.ops.special.normal import erf as erf
from symgrad.ops.special.normal import erfc as erfc
from symgrad.ops.special.normal import erfcinv as erfcinv
from symgrad.ops.special.normal import erfcx as erfcx
from symgrad.ops.special.normal import erfinv as erfinv
from symgrad.ops.special.normal import log_ndtr as log_ndtr
from symgrad.ops.special.normal import logit as logit
from symgrad.ops.special.normal import ndtr as ndtr
from symgrad.ops.special.normal import ndtri as ndtri
from symgrad.ops.special.quantiles import beta_p as _beta
from symgrad.ops.special.quantiles import betainccinv as betainccinv
from symgrad.ops.special.quantiles import betaincinv as betaincinv
from symgrad.ops.special.quantiles import gamma_p as _gamma
from symgrad.ops.special.quantiles import gammainccinv as gammainccinv
from symgrad.ops.special.quantiles import gammaincinv as gammaincinv
from symgrad.ops.special.quantiles import multigammaln as multigammaln
from symgrad.ops.special.quantiles import stdtr as stdtr
from symgrad.ops.special.quantiles import stdtrit as stdtrit

expit, log_expit = _sigmoid, _log_sigmoid


@_explaining
def gamma(x: _NodeLike, /) -> _Node:
    """The gamma function, (x - 1)! for an int x; NaN at its poles. d = y * digamma(x) dx.

    >>> float(sg.special.gamma(5.0))
    24.0
    """
    return _gamma(x)


@_explaining
def beta(a: _NodeLike, b: _NodeLike, /) -> _Node:
    """The beta function, gamma(a) * gamma(b) / gamma(a + b).

    d = y * (digamma(a) - digamma(a + b)) da + y * (digamma(b) - digamma(a + b)) db.
    """
    return _beta(a, b)


@_explaining
def kl_div(x1: _NodeLike, x2: _NodeLike, /) -> _Node:
    """rel_entr(x1, x2) - x1 + x2, which is never negative; exact where the two are close.

    d = log(x1 / x2) dx1 + (1 - x1 / x2) dx2.
    """
    return _kl_div(x1, x2)


__all__ = _public_names(globals())


def __dir__() -> list[str]:
    return __all__

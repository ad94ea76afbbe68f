"""`sg.stats`: laws of probability, whose parameters are nodes.

>>> law = sg.stats.Normal(mu, sigma)
>>> loss = -sg.mean(law.log_prob(x))
>>> draws = law.sample(sg.random.key(0), (100,))

Densities, distribution functions, quantiles, moments, entropies, draws; `kl(p, q)`; laws of
functions of what has a law. All are built of differentiable functions.
"""

from symgrad.stats.bounded import Beta, Uniform, VonMises
from symgrad.stats.classes import Categorical, Multinomial
from symgrad.stats.discrete import Bernoulli, Binomial, Geometric, NegativeBinomial, Poisson
from symgrad.stats.gammas import Chi2, Gamma, InverseGamma
from symgrad.stats.law import Law, kl
from symgrad.stats.location_scale import Cauchy, Gumbel, Laplace, Logistic, Normal, StudentT
from symgrad.stats.mixture import Mixture
from symgrad.stats.positive import (
    Exponential,
    HalfNormal,
    Pareto,
    Weibull,
)
from symgrad.stats.transforms import Affine, Exp, LogNormal, Sigmoid, Transform, Transformed
from symgrad.stats.vectors import Dirichlet, Independent, MultivariateNormal

__all__ = [
    "Affine", "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "Dirichlet", "Exp",
    "Exponential", "Gamma", "Geometric", "Gumbel", "HalfNormal", "Independent", "InverseGamma",
    "Laplace", "Law", "LogNormal", "Logistic", "Mixture", "Multinomial", "MultivariateNormal",
    "NegativeBinomial", "Normal", "Pareto", "Poisson", "Sigmoid", "StudentT", "Transform",
    "Transformed", "Uniform", "VonMises", "Weibull", "kl",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__

"""NumPy's functions that have no symbolic form, and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_COUNTED = "how many elements there are depends on data; write "
_WRITES = "it writes into an array, and a node is frozen; write "
_DRAWS = "it draws from a hidden state; write "
_MEMORY = "a node has no memory; "
_STATE = "it keeps a hidden state; write sg.random.key(seed), and sg.random.split(key)"
_MADE_OF_OTHERS = (
    "chisquare f geometric hypergeometric laplace logistic lognormal logseries multinomial "
    "multivariate_normal negative_binomial noncentral_chisquare noncentral_f pareto power rayleigh "
    "standard_cauchy standard_t triangular vonmises wald weibull zipf"
)

INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "apply_along_axis": "a function of slices is sg.vmap(function)(x), or one with axis=",
        "argwhere": _COUNTED + "sg.stack(sg.nonzero(x, size=...), 1)",
        "array": "a node is an array already: write x, or sg.stack of several",
        "asanyarray": "a node is an array already: write x, or sg.asarray(x)",
        "asarray": "a node is an array already: write x, or sg.asarray(x)",
        "asarray_chkfinite": "write x, and program.check() finds what is not finite",
        "ascontiguousarray": _MEMORY + "write x",
        "asfortranarray": _MEMORY + "write x",
        "can_cast": "write sg.can_cast(x, dtype)",
        "copyto": _WRITES + "sg.where(mask, source, x)",
        "divmod": "write sg.floor_divide(a, b) and sg.remainder(a, b)",
        "fill_diagonal": _WRITES + "sg.where(sg.eye(n, dtype=bool), value, x)",
        "flatnonzero": _COUNTED + "sg.nonzero(sg.ravel(x), size=...)[0]",
        "from_dlpack": "a node has no value before a program runs; write x",
        "intersect1d": _COUNTED + "x and sg.isin(x, y)",
        "isfortran": _MEMORY + "nobody can tell in which order its elements lie",
        "may_share_memory": _MEMORY + "nothing is written into another's",
        "min_scalar_type": "write x.dtype",
        "nonzero": _COUNTED + "sg.nonzero(x, size=...)",
        "place": _WRITES + "sg.where(mask, values, x)",
        "polydiv": "how long the remainder is depends on data; write sg.linalg.lstsq, or NumPy's",
        "put": _WRITES + "sg.ravel(x).at[indices].set(values)",
        "put_along_axis": _WRITES + "x.at[indices].set(values)",
        "putmask": _WRITES + "sg.where(mask, values, x)",
        "require": _MEMORY + "write x",
        "roots": "how many there are depends on data; write sg.linalg.eigvals of the companion "
        "matrix, whose first row is -p[1:] / p[0] and which has ones below the diagonal",
        "setdiff1d": _COUNTED + "x and ~sg.isin(x, y)",
        "setxor1d": _COUNTED + "x and sg.isin(x, y)",
        "shares_memory": _MEMORY + "nothing is written into another's",
        "trim_zeros": _COUNTED + "a slice: x[start:stop]",
        "unique": _COUNTED + "sg.unique(x, size=...)",
        "unique_all": _COUNTED + "sg.unique_all(x, size=...)",
        "unique_counts": _COUNTED + "sg.unique_counts(x, size=...)",
        "unique_inverse": _COUNTED + "sg.unique_inverse(x, size=...)",
        "unique_values": _COUNTED + "sg.unique_values(x, size=...)",
        "union1d": _COUNTED + "sg.unique(sg.concat([x, y]), size=...)",
        **{
            f"random.{name}": _DRAWS + f"sg.random.{ours}"
            for name, ours in {
                "beta": "beta(key, a, b)",
                "binomial": "bernoulli(key, p, shape=(n, …)), summed over the first axis",
                "choice": "choice(key, x, shape)",
                "gamma": "gamma(key, a)",
                "permutation": "permutation(key, x)",
                "poisson": "poisson(key, rate)",
                "shuffle": "permutation(key, x)",
                "standard_gamma": "gamma(key, a)",
                "bytes": "randint(key, shape, low=0, high=256)",
                "dirichlet": "dirichlet(key, alpha)",
                "exponential": "exponential(key, shape, scale=...)",
                "gumbel": "gumbel(key, shape, loc=..., scale=...)",
                "normal": "normal(key, shape, loc=..., scale=...)",
                "rand": "uniform(key, shape)",
                "randint": "randint(key, shape, low=..., high=...)",
                "randn": "normal(key, shape)",
                "random": "uniform(key, shape)",
                "random_integers": "randint(key, shape, low=..., high=...)",
                "random_sample": "uniform(key, shape)",
                "ranf": "uniform(key, shape)",
                "sample": "uniform(key, shape)",
                "standard_exponential": "exponential(key, shape)",
                "standard_normal": "normal(key, shape)",
                "uniform": "uniform(key, shape, low=..., high=...)",
            }.items()
        },
        **{
            f"random.{n}": _DRAWS + "it by sg.random.uniform or sg.random.normal, or draw before"
            for n in _MADE_OF_OTHERS.split()
        },
        **{f"random.{n}": _STATE for n in ("default_rng", "get_state", "seed", "set_state")},
    }
)

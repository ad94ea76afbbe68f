"""Write the table of NumPy's functions anew: `python -m tools.numpy_table`. Review what changed.

Which functions are answered on nodes is read off the registry; which calls of them are not, is
tried (`numpy_calls.txt`). Why the rest is not answered, is said here by groups.
"""

import numpy as np

import symgrad as sg
from symgrad.ir.array_methods import NO_METHODS
from symgrad.ir.numpy_cases import COUNTED, DIRECT
from symgrad.ir.op import REGISTRY
from symgrad.ir.refusals import INSTEAD
from tools import numpy_calls
from tools.numpy_calls import SPACES, attributes, functions
from tools.rules_table import ROOT, row, updated, write

PAGE = ROOT / "symgrad" / "ops" / "NUMPY.md"
BEGIN, END = "<!-- numpy: begin -->", "<!-- numpy: end -->"
# Why a function has no symbolic form.
REASONS = {
    "it takes no array that could be a node: what it makes is a constant": """
        arange bartlett blackman diag_indices empty eye fromfunction hamming hanning
        identity indices kaiser mask_indices ones tri tril_indices triu_indices zeros
        fftfreq rfftfreq full frombuffer fromiter from_dlpack bmat asmatrix""",
    "it reads or writes files, bytes or text": """
        array2string array_repr array_str base_repr binary_repr format_float_positional
        format_float_scientific fromfile fromregex fromstring genfromtxt load loadtxt save savetxt
        savez savez_compressed typename""",
    "it asks about memory, types or settings, and of no values": """
        get_include get_printoptions getbufsize geterr geterrcall info
        isdtype isfortran isscalar issubdtype iterable may_share_memory
        mintypecode nested_iters printoptions promote_types set_printoptions setbufsize seterr
        seterrcall shares_memory show_config show_runtime test broadcast_shapes asarray_chkfinite
        ascontiguousarray asfortranarray require array asarray asanyarray""",
    "the shape of its result depends on the data": """
        argwhere flatnonzero intersect1d setdiff1d setxor1d trim_zeros union1d
        unique_all unique_counts unique_inverse unique_values""",
    "it writes into its argument; write `x.at[...].set(...)`": """
        copyto fill_diagonal place put put_along_axis putmask""",
    "it is about dates": """
        busday_count busday_offset datetime_as_string datetime_data is_busday isnat""",
    "it runs Python for each element": "apply_along_axis frompyfunc",
}  # fmt: skip

# What draws by a key, for a function of `np.random` or a method of its generators.
DRAWS = {
    "beta": "random.beta(key, a, b)",
    "binomial": "stats.Binomial(n, p).sample(key, shape)",
    "bytes": "random.randint(key, shape, low=0, high=256)",
    "chisquare": "stats.Chi2(df).sample(key, shape)",
    "choice": "random.choice(key, x, shape)",
    "default_rng": "random.key(seed)",
    "dirichlet": "random.dirichlet(key, alpha)",
    "exponential": "random.exponential(key, shape, scale=scale)",
    "gamma": "random.gamma(key, a)",
    "geometric": "stats.Geometric(p).sample(key, shape)",
    "gumbel": "random.gumbel(key, shape, loc=loc, scale=scale)",
    "integers": "random.randint(key, shape, low=low, high=high)",
    "laplace": "stats.Laplace(loc, scale).sample(key, shape)",
    "logistic": "stats.Logistic(loc, scale).sample(key, shape)",
    "lognormal": "stats.LogNormal(mean, sigma).sample(key, shape)",
    "multinomial": "stats.Multinomial(n, p).sample(key, shape)",
    "multivariate_normal": "stats.MultivariateNormal(mean, cov).sample(key, shape)",
    "negative_binomial": "stats.NegativeBinomial(n, p).sample(key, shape)",
    "normal": "random.normal(key, shape, loc=loc, scale=scale)",
    "pareto": "stats.Pareto(a).sample(key, shape) - 1",
    "permutation": "random.permutation(key, x)",
    "poisson": "random.poisson(key, rate)",
    "rand": "random.uniform(key, shape)",
    "randint": "random.randint(key, shape, low=low, high=high)",
    "randn": "random.normal(key, shape)",
    "random": "random.uniform(key, shape)",
    "random_integers": "random.randint(key, shape, low=low, high=high + 1)",
    "random_sample": "random.uniform(key, shape)",
    "ranf": "random.uniform(key, shape)",
    "rayleigh": "stats.Weibull(2.0, 2**0.5 * scale).sample(key, shape)",
    "sample": "random.uniform(key, shape)",
    "seed": "random.key(seed)",
    "shuffle": "random.permutation(key, x)",
    "spawn": "random.split(key)",
    "standard_cauchy": "stats.Cauchy(0.0, 1.0).sample(key, shape)",
    "standard_exponential": "random.exponential(key, shape)",
    "standard_gamma": "random.gamma(key, a)",
    "standard_normal": "random.normal(key, shape)",
    "standard_t": "stats.StudentT(df).sample(key, shape)",
    "uniform": "random.uniform(key, shape, low=low, high=high)",
    "vonmises": "stats.VonMises(loc, concentration).sample(key, shape)",
    "weibull": "stats.Weibull(a).sample(key, shape)",
}


def draws():
    """The functions of `np.random` and the methods of its generators."""
    methods = (n for n in dir(np.random.Generator) if not n.startswith("_"))
    return sorted({*functions(np.random), *methods} - {"bit_generator"})


def ours(function):
    """The counterpart on nodes of a function of NumPy's, as a user writes it; None if refused."""
    sg.Graph, sg.linalg, sg.fft  # noqa: B018  all that declares functions
    REGISTRY.every()
    name = REGISTRY.by_numpy.get(function)
    if name is not None:
        return f"`{REGISTRY.qualified_name(name)}`"
    if function is getattr(np, "row_stack", None):
        return "`sg.vstack`, of which it is another name"
    return "known when the graph is built, or a case of others" if function in DIRECT else None


def reason(name):
    """Why a function is not answered."""
    known = next((why for why, names in REASONS.items() if name in names.split()), "")
    return INSTEAD.get(name, known)


def unanswered(name):
    """Which of the calls that are tried of an answered function are not answered."""
    missed = numpy_calls.failing(name)
    why = numpy_calls.DIFFERENT.get(name, "")
    listed = ", ".join(f"`{call}`" for call in missed)
    return f"; not {listed}{why and f': {why}'}" if missed else ""


def told(space, name, function):
    """A function of NumPy's on nodes, in a cell."""
    known = " of constants;" if function in COUNTED else ""
    found = ours(function)
    if found is None:
        return f"–{known} {reason(name)}".rstrip()
    return found + unanswered(f"{space}.{name}")


def counts():
    """How many of the functions of each namespace are answered, and how many could be."""
    for label, space in SPACES.items():
        found = functions(space)
        answered = [n for n, f in found.items() if ours(f) is not None]
        whole = sum(not numpy_calls.failing(f"{label}.{n}") for n in answered)
        never = sum(ours(f) is None and bool(reason(n)) for n, f in found.items())
        rest = len(found) - len(answered) - never
        yield row(f"`{label}`", len(found), len(answered), whole, never, rest)
    have = [n for n in attributes() if hasattr(sg.Node, n)]
    whole = sum(not numpy_calls.failing(f"ndarray.{n}") for n in have)
    never = sum(n in NO_METHODS for n in attributes() if n not in have)
    rest = len(attributes()) - len(have) - never
    yield row("attributes of arrays", len(attributes()), len(have), whole, never, rest)
    by_key = sum(n in DRAWS for n in draws())
    yield row("`np.random`, by a key", len(draws()), by_key, by_key, len(draws()) - by_key, 0)


def listed():
    """The counts, and every function."""
    yield row("", "public", "on nodes", "in every call tried", "no symbolic form", "missing")
    yield "|---|--:|--:|--:|--:|--:|"
    yield from counts()
    for label, space in SPACES.items():
        yield from ("", f"## `{label}`", "", row("NumPy", "on nodes"), "|---|---|")
        for name, function in functions(space).items():
            yield row(f"`{name}`", told(label, name, function))
    yield from ("", "## Attributes of arrays", "")
    yield from (row("of an array `x`", "of a node `x`"), "|---|---|")
    for name in attributes():
        has = hasattr(sg.Node, name)
        yield row(
            f"`{name}`", f"✓{unanswered(f'ndarray.{name}')}" if has else f"– {NO_METHODS[name]}"
        )
    yield from ("", "## `np.random`", "", row("NumPy", "by a key"), "|---|---|")
    for name in draws():
        yield row(f"`{name}`", f"`sg.{DRAWS[name]}`" if name in DRAWS else "–")


def texts():
    """The page as it should be."""
    return {PAGE: updated(PAGE.read_text(encoding="utf-8"), listed(), BEGIN, END)}


if __name__ == "__main__":
    write(texts())

"""Floor 5: the rewrite rules, by what they are about.

Files that few graphs need are late: loaded when a graph has one of these ops, without which none of
their rules fits, or when a program is compiled by their grade, where all are of that or a looser
one.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType

from symgrad.rewrite.late import Late
from symgrad.rewrite.rule import Exact, Rule, rules_of

OPS: Mapping[str, str] = MappingProxyType(
    {
        "bounds": "equal leaky_relu less logical_and",
        "comparisons": "equal greater greater_equal less less_equal logical_and logical_not "
        "logical_or logical_xor not_equal",
        "in_rows": "gather scatter",
        "indexing": "concat place slice",
        "normal.cholesky": "cholesky",
        "reduced_extrema": "all any argmax argmin max min norm2 window_max",
        "scatter": "scatter",
        "systems": "assume cholesky diagonal inv inv_definite logdet_definite on_diagonal solve "
        "solve_definite solve_triangular",
        "low_rank": "",
        "ranges": "",
        "structure": "",
    }
)
GRADES: Mapping[str, Exact] = MappingProxyType({"low_rank": Exact.REALS, "structure": Exact.REALS})


def late(file: str, *names: str) -> Late:
    """The rules of a file, or those of some names and their twins."""

    def load() -> Iterator[Rule]:
        module = import_module(f"{__name__}.{file}")
        chosen = [rule for name in names for rule in vars(module)[name].family]
        return iter(chosen or rules_of(module))

    return Late(load, frozenset(OPS[file].split()), GRADES.get(file, Exact.BITS))

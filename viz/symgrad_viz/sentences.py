"""A plain sentence for each pass: its effect, for one who has not read how it works."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from types import MappingProxyType

from symgrad.passes import DEFAULT

_SENTENCES: Mapping[str, str] = MappingProxyType(
    {
        "erase_identities": "Takes out operations that give back what they are given, which only "
        "differentiation needed.",
        "dead_results": "Drops results that nobody reads.",
        "common_subexpressions": "Computes only once what was written several times.",
        "simplify": "Replaces formulas by equal ones that need less work, rule by rule.",
        "join_slices": "Writes pieces that sums place side by side straight into one array.",
        "merge": "Merges what the rules have made equal.",
        "loops": "Merges loops that belong together, and makes what they do in each step smaller.",
        "expand_softmax": "Writes out softmaxes of the same values, so that they share their work.",
        "short_axes": "Splits operations along very short axes, which NumPy is slow at.",
        "kernels": "Puts several operations into one kernel where there is one for them.",
        "shared_masks": "Widens a mask once for all the selections that read it.",
        "hoist_invariants": "Takes out of each call what can be computed once and kept.",
        "recomputation": "Computes some values again later, so that they need not be kept.",
        "fusion": "Computes neighbouring operations together, in pieces that stay in the cache.",
    }
)


def sentence_of(name: str) -> str:
    """The sentence for a pass of this name; of a pass of a user's own its docstring's first."""
    if name in _SENTENCES:
        return _SENTENCES[name]
    told = next((inspect.getdoc(p.run) or "" for p in DEFAULT if p.name == name), "")
    return re.split(r"(?<=\.)\s", " ".join(told.partition("\n\n")[0].split()))[0]

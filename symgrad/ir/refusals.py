"""Functions of NumPy and SciPy that have no symbolic form, and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from symgrad.ir.callers import function_of
from symgrad.ir.op import REGISTRY

_COUNTED = "how many elements there are depends on data; write "
_WRITES = "it writes into an array, and a node is frozen; write "
_MEMORY = "a node has no memory; "

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
        "copyto": _WRITES + "sg.where(mask, source, x)",
        "fill_diagonal": _WRITES + "sg.where(sg.eye(n, dtype=bool), value, x)",
        "flatnonzero": _COUNTED + "sg.nonzero(sg.ravel(x), size=...)[0]",
        "from_dlpack": "a node has no value before a program runs; write x",
        "intersect1d": _COUNTED + "x and sg.isin(x, y)",
        "isfortran": _MEMORY + "nobody can tell in which order its elements lie",
        "may_share_memory": _MEMORY + "nothing is written into another's",
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
    }
)


def instead_of_scipys() -> str | None:
    """The message about the function of SciPy that runs and asks for values, if one does."""
    module, name = function_of("scipy") or ("", "")
    if not module:
        return None
    if module.startswith("scipy.sparse"):
        hint = "sg.sparse.solve(A, b)" if "solve" in name else "with sg.sparse.matrix(A), and A @ x"
        return f"{module}.{name} takes arrays, not nodes; write {hint}"
    ours = REGISTRY.functions.get(name)
    if ours is None:
        REGISTRY.every()
        ours = REGISTRY.functions.get(name)
    hint = "give it what a program gives"
    if ours is not None and ours.__module__.startswith("symgrad.ops."):
        hint = f"write {REGISTRY.qualified_name(name)}"
    elif module.startswith("scipy.stats"):
        hint = "write with sg.stats, as in sg.stats.Normal(loc, scale).log_prob(x)"
    return f"{module}.{name} takes arrays, not nodes; {hint}"

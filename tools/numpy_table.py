"""Write the table of NumPy's functions anew: `python -m tools.numpy_table`. Review what changed.

What is answered on nodes is read off the registry; why the rest is not, is said here by groups.
"""

import types

import numpy as np

import symgrad as sg
from symgrad.ir import numpy_dispatch
from symgrad.ir.op import REGISTRY
from symgrad.ir.refusals import INSTEAD
from tools.rules_table import ROOT, row, updated

PAGE = ROOT / "symgrad" / "ops" / "NUMPY.md"
BEGIN, END = "<!-- numpy: begin -->", "<!-- numpy: end -->"
SPACES = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}
# Why a function has no symbolic form.
REASONS = {
    "it takes no array that could be a node: what it makes is a constant": """
        arange bartlett blackman diag_indices empty eye fromfunction hamming hanning
        identity indices ix_ kaiser mask_indices ones tri tril_indices triu_indices zeros
        fftfreq rfftfreq full frombuffer fromiter from_dlpack bmat asmatrix""",
    "it reads or writes files, bytes or text": """
        array2string array_repr array_str base_repr binary_repr format_float_positional
        format_float_scientific fromfile fromregex fromstring genfromtxt load loadtxt save savetxt
        savez savez_compressed packbits unpackbits typename""",
    "it asks about memory, types or settings, and of no values": """
        common_type einsum_path get_include get_printoptions getbufsize geterr geterrcall info
        isdtype isfortran isscalar issubdtype iterable may_share_memory min_scalar_type
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
    "it is another name, which NumPy gives up, of `vstack`": "row_stack",
    "it runs Python for each element": "apply_along_axis frompyfunc",
}  # fmt: skip


def functions(space):
    """The public functions of a namespace of NumPy's, by their names."""
    found = {n: getattr(space, n, None) for n in sorted(getattr(space, "__all__", dir(space)))}
    kinds = (type, types.ModuleType)
    return {
        n: f for n, f in found.items()
        if callable(f) and not isinstance(f, kinds) and not n.startswith("_")
    }  # fmt: skip


def ours(function):
    """The counterpart on nodes of a function of NumPy's, as a user writes it; None if refused."""
    sg.Graph, sg.linalg, sg.fft  # noqa: B018  all that declares functions
    REGISTRY.every()
    if function in numpy_dispatch.DIRECT:
        return "known when the graph is built, or a case of another function"
    name = REGISTRY.by_numpy.get(function)
    return None if name is None else f"`{REGISTRY.qualified_name(name)}`"


def reason(name):
    """Why a function is not answered."""
    known = next((why for why, names in REASONS.items() if name in names.split()), "")
    return INSTEAD.get(name, known)


def methods():
    """The public methods and attributes of NumPy's arrays."""
    return [n for n in dir(np.ndarray) if not n.startswith("_")]


def counts():
    """How many of the functions of each namespace are answered, and how many could be."""
    for label, space in SPACES.items():
        found = functions(space)
        answered = sum(ours(f) is not None for f in found.values())
        never = sum(ours(f) is None and bool(reason(n)) for n, f in found.items())
        yield row(f"`{label}`", len(found), answered, never, len(found) - answered - never)
    have = [n for n in methods() if hasattr(sg.Node, n)]
    yield row("attributes of arrays", len(methods()), len(have), "", len(methods()) - len(have))


def listed():
    """The counts, and every function."""
    yield row("", "public", "on nodes", "no symbolic form", "missing")
    yield "|---|--:|--:|--:|--:|"
    yield from counts()
    for label, space in SPACES.items():
        yield from ("", f"## `{label}`", "", row("NumPy", "on nodes"), "|---|---|")
        for name, function in functions(space).items():
            yield row(f"`{name}`", ours(function) or f"– {reason(name)}".rstrip())
    yield from ("", "## Attributes of arrays", "")
    yield "Nodes have " + ", ".join(f"`{n}`" for n in methods() if hasattr(sg.Node, n)) + "."


def texts():
    """The page as it should be."""
    return {PAGE: updated(PAGE.read_text(encoding="utf-8"), listed(), BEGIN, END)}


def main():
    """Write the table into the page."""
    for path, wanted in texts().items():
        path.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    main()

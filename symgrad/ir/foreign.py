"""Other libraries' arrays: those that NumPy takes, and what is to be written for the others.

Such libraries are known by the methods of their arrays, so that none need be imported.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.errors import FeedError, short
from symgrad.ir.types import KINDS


def by_dlpack(value: Any) -> Any:
    """A value as it is; NumPy's array of it if the DLPack protocol is all that it offers."""
    kind = type(value)
    alone = hasattr(kind, "__dlpack__") and not hasattr(kind, "__array__")
    return np.from_dlpack(value) if alone else value


def in_order_of(value: Any, names: tuple[str | None, ...], said: str) -> Any:
    """An array with named axes, as xarray's, with these in front of it; others as they are.

    `names` are those of the axes that are wanted, None for one without. If all have names, and the
    array has the same ones in another order, it is transposed. Raises `FeedError` if it has some
    of them in another place; `said` describes who wants it.
    """
    dims = getattr(value, "dims", None)
    if type(dims) is not tuple or not hasattr(value, "transpose") or len(dims) != len(names):
        return value
    if all(name in (None, dim) or name not in dims for name, dim in zip(names, dims, strict=True)):
        return value
    if set(dims) == set(names):
        return value.transpose(*names)
    rest = iter(d for d in dims if d not in names)
    order = ", ".join(repr(n if n in dims else next(rest)) for n in names)
    raise FeedError(
        f"{said} was fed an array of the dimensions {', '.join(map(repr, dims))}, in another "
        f"order; transpose it: array.transpose({order})"
    )


def as_array_mend(value: Any, dtype: Any = "float64") -> str:
    """How an array of another library becomes one that NumPy takes; "" if that is not known."""
    kind = type(value)
    if hasattr(kind, "detach"):
        mend = f"tensor{_of_tensor(value)}"
    elif hasattr(kind, "toarray"):
        mend = (
            "matrix.toarray(), since symgrad's arrays are dense; products, A @ x, take it as it is"
        )
    elif hasattr(kind, "todense"):
        mend = "matrix.todense()"
    elif hasattr(kind, "to_numpy"):
        missing = ", na_value=np.nan" * str(dtype).startswith("float")
        mend = f"frame.to_numpy(dtype={str(dtype)!r}{missing})"
        if listed := _not_numbers(value):
            mend += f", of columns of numbers; {listed} is none: encode it, or leave it out"
    elif hasattr(kind, "to_dataarray"):
        mend = "dataset['name'], one of its variables"
    elif callable(value) and not isinstance(value, type):
        return "; call it, on nodes: f(x)"
    else:
        return ""
    return f"; give its array: {mend}"


def _of_tensor(tensor: Any) -> str:
    """The methods by which a tensor of PyTorch's becomes one that NumPy takes."""
    text = "".join(str(getattr(tensor, name, "")) for name in ("dtype", "layout"))
    calls = {
        "detach": getattr(tensor, "requires_grad", True),
        "to_dense": "sparse" in text,
        "float": "float8" in text or "bfloat16" in text,
        "resolve_conj": _says(tensor, "is_conj"),
        "resolve_neg": _says(tensor, "is_neg"),
        "cpu": str(getattr(tensor, "device", "cpu")) != "cpu",
    }
    said = "".join(f".{name}()" for name, wanted in calls.items() if wanted)
    return said or ".detach().cpu().numpy()"


def _says(tensor: Any, question: str) -> bool:
    ask = getattr(tensor, question, None)
    return bool(ask is not None and ask())


def _not_numbers(frame: Any) -> str:
    """The columns of a frame that hold no numbers, as a text; "" if that is not known."""
    dtypes: Any = getattr(frame, "dtypes", None)
    items = dtypes.items() if hasattr(dtypes, "items") else ()
    found = [short(name) for name, t in items if getattr(t, "kind", "f") not in KINDS]
    return ", ".join(found)[:200]

"""Values as source text, exact to the bit, that needs NumPy only."""

from __future__ import annotations

import keyword
import math
import re
import reprlib
from ast import literal_eval
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from symgrad.ir.dims import Atom, Dim
from symgrad.ir.errors import GraphError
from symgrad.ir.schema import LEAST, MOST
from symgrad.ir.values import is_uniform

MOST_WRITTEN = 8
LONGEST_HEX = 96

# Of scalars, a sign is ten times as fast as a ufunc, and by IEEE 754 gives the same bits.
FLOATS = (np.dtype("float32"), np.dtype("float64"))
SIGNS: Mapping[Any, str] = {
    np.add: "{0} + {1}", np.subtract: "{0} - {1}", np.multiply: "{0} * {1}",
    np.divide: "{0} / {1}", np.negative: "-{0}", np.square: "{0} * {0}",
    np.less: "{0} < {1}", np.less_equal: "{0} <= {1}", np.equal: "{0} == {1}",
    np.greater: "{0} > {1}", np.greater_equal: "{0} >= {1}", np.not_equal: "{0} != {1}",
}  # fmt: skip


def literal_text(value: Any) -> str | None:
    """A NumPy scalar as a Python literal that NumPy turns back into the same, or None."""
    return None if value.ndim else _literal_text(value.dtype, value.tobytes())


@lru_cache(maxsize=1024)
def _literal_text(dtype: np.dtype[Any], data: bytes) -> str | None:
    value = np.frombuffer(data, dtype)[0]
    kind = value.dtype.kind
    if value.dtype.itemsize > (16 if kind == "c" else 8):
        return None
    if kind in "fc" and not np.isfinite(value):
        return None
    text = str(value)
    if kind == "c":
        back = value.dtype.type(literal_eval(text))  # a sum: it loses the sign of a zero
        return text if back.tobytes() == value.tobytes() else None
    back = value.dtype.type(float(text) if value.dtype.kind == "f" else value.item())
    return text if back.tobytes() == value.tobytes() else None


def is_short(value: Any) -> bool:
    """Whether a constant can be spelled out for a reader."""
    return np.size(value) <= MOST_WRITTEN or is_uniform(value)


def constant_text(value: Any) -> str:
    """An expression for a constant, exact to the bit, that needs NumPy only."""
    array = np.asarray(value)
    literals = [literal_text(x) for x in array.flat] if array.size <= MOST_WRITTEN else [None]
    name = array.dtype.name
    if array.ndim == 0:
        text = literals[0] or _special_text(array[()])
        if text is not None:
            return f"np.{name}({text})"
    elif None not in literals:
        flat = f"np.array([{', '.join(map(str, literals))}], {name!r})"
        return flat if array.ndim == 1 else f"{flat}.reshape({array.shape})"
    if is_uniform(array):
        for value, made in ((0, "zeros"), (1, "ones")):
            if array.flat[0].tobytes() == array.dtype.type(value).tobytes():
                return f"np.{made}({array.shape}, {array.dtype.name!r})"
        return f"np.full({array.shape}, {constant_text(array.flat[0])})"
    hexed = array.tobytes().hex()
    data = repr(hexed)
    if len(hexed) > LONGEST_HEX:
        rows = (hexed[i : i + LONGEST_HEX] for i in range(0, len(hexed), LONGEST_HEX))
        data = '"""\n' + "\n".join(rows) + '\n"""'
    whole = f"np.frombuffer(bytes.fromhex({data}), {array.dtype.str!r}).reshape({array.shape})"
    return f"{whole}[()]" if array.ndim == 0 else whole


def _special_text(value: Any) -> str | None:
    """A float that is not finite as a string that its dtype reads, if to the very same bits."""
    texts = ("inf", "-inf", "nan") if value.dtype.kind == "f" else ()
    return next((repr(s) for s in texts if value.dtype.type(s).tobytes() == value.tobytes()), None)


def plain_text(value: Any) -> str | None:
    """An expression for a plain value, or a tuple of such; None for any other.

    Plain are values of Python's own types and no others: one derived from them says of itself what
    it likes. All that is written of an attribute is what this or `int_text` returns.
    """
    kind = type(value)
    if kind is tuple:
        parts = [plain_text(v) for v in value]
        return None if None in parts else f"({', '.join(map(str, parts))}{',' * (len(parts) == 1)})"
    if kind is Dim:
        return int_text(value)
    if kind is int:
        return repr(value) if LEAST <= value <= MOST else None
    if kind is float and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value) if value is None or kind in (bool, float, str) else None


def name_text(name: str) -> str:
    """A name of a program, which is an identifier; raises `GraphError` for what is none."""
    if type(name) is str and name.isascii() and name.isidentifier() and not keyword.iskeyword(name):
        return name
    raise GraphError(f"{reprlib.repr(name)} is no name, and is not written into a program")


def int_text(value: Any) -> str:
    """An int; raises `GraphError` for what is none."""
    if type(value) is int and LEAST <= value <= MOST:
        return repr(value)
    if type(value) is Dim:
        return _size_text(value)
    raise GraphError(f"{reprlib.repr(value)} is no int, and is not written into a program")


def _size_text(size: Dim) -> str:
    """A size that is known when a program runs: a name, or a sum of products in brackets."""
    terms = []
    for monomial, factor in size.terms:
        factors = [text for name, power in monomial for text in [_factor_text(name)] * power]
        if factor != 1 or not factors:
            factors.insert(0, int_text(factor))
        terms.append(" * ".join(factors))
    return terms[0] if len(terms) == 1 and terms[0].isidentifier() else f"({' + '.join(terms)})"


def _factor_text(factor: str | Atom) -> str:
    if isinstance(factor, str):
        return name_text(factor)
    inner = [int_text(a) for a in factor.args]
    if factor.divisor:
        return f"({inner[0]} // {int_text(factor.divisor)})"
    return f"min({', '.join(inner)})"


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as a tuple."""
    return f"({inside(shape)}{',' * (len(shape) == 1)})"


def tuple_text(texts: list[str]) -> str:
    """Expressions as a tuple, of two or more."""
    return f"({', '.join(texts)})"


def inside(values: tuple[int, ...]) -> str:
    """Numbers as arguments."""
    return ", ".join(map(int_text, values))


def index_text(index: tuple[tuple[int | None, int | None, int], ...]) -> str:
    """An index, as between brackets."""
    return ", ".join(map(_slice_text, index))


def _slice_text(index: tuple[int | None, int | None, int]) -> str:
    start, stop, step = index
    first, last = ("" if v is None else int_text(v) for v in (start, stop))
    text = f"{'' if first == '0' and step > 0 else first}:{last}"
    return text if step == 1 else f"{text}:{int_text(step)}"


@lru_cache(maxsize=1024)
def is_numpy(kernel: Any) -> bool:
    """Whether a kernel is what NumPy has under its name."""
    return getattr(np, getattr(kernel, "__name__", ""), None) is kernel


@lru_cache(maxsize=1024)
def without_np(text: str) -> tuple[str, frozenset[str], frozenset[str]]:
    """Text without `np.`, the names of NumPy's in it, and the modules of SciPy's."""
    modules = frozenset(re.findall(r"\bscipy\.\w+(?=\.)", text))
    names = frozenset(re.findall(r"\bnp\.(\w+)", text))
    return re.sub(r"\bnp\.", "", text), names, modules

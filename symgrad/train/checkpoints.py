"""Checkpoints: the values of variables in a file, written whole or not at all, read all or none.

The suffix of the path says how: `.npz`, which `np.load` opens too, or `.safetensors`, which others
read as well. Nothing is pickled. A file may come from anywhere: see `symgrad/train/formats.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

from symgrad.ir.errors import AllocationError, StateError
from symgrad.ir.formats.reading import regular_file
from symgrad.ir.formats.writing import whole_file
from symgrad.ir.node import Node, Variable, describe
from symgrad.ir.origin import printable
from symgrad.ir.types import TensorType
from symgrad.ir.values import fetched, store
from symgrad.train.formats import FORMATS, Format

Variables: TypeAlias = Mapping[str, Any] | Iterable[Variable | tuple[str, Any]]

MOST_LISTED = 8
LONGEST_NAME = 1000
_read = attrgetter("content")


def save_state(path: str | Path, variables: Variables) -> Path:
    """Write the present values of variables: those of one moment, also while a program updates.

    `variables` are variables, or a dict or pairs that give them names in the file. In place of a
    variable a dict may have several, in any of these ways, whose names then begin with its key:
    `{"first": net_1.named_variables(), "second": [*net_2.parameters()]}`. The file is
    written whole or not at all, so that the one before it stays if the disk is full or the process
    is killed.

    >>> w = variable("w", np.ones(3))
    >>> load_state(save_state("w.npz", [w]), [w])

    Raises `StateError` for what is no variable, for two of one name, and for names or dtypes that
    the kind of file cannot hold; `SymbolicError` for a variable that has no value.
    """
    target, named = Path(path), _named(variables)
    form = _format(target)
    for name in named:
        if not _is_writable(name):
            raise StateError(
                f"no array in a file can be called {name[:60]!r}; give another name: "
                "save_state(path, {'name': variable})"
            )
    contents = list(map(_read, [v.cell for v in named.values()]))  # of one moment
    arrays = list(map(fetched, contents))
    for variable in (v for v, a in zip(named.values(), arrays, strict=True) if a is None):
        variable.cell.read(str(variable.name))
    form.check(state := dict(zip(named, arrays, strict=True)))
    with whole_file(target) as file:
        form.write(file, state)
    return target


def load_state(path: str | Path, variables: Variables) -> None:
    """Give variables the values that `save_state` wrote: all of them together, or none.

    The file must hold an array for each name, of the variable's shape and dtype, and no other.
    Raises `StateError`, which lists what differs, and for a file that is damaged or no checkpoint,
    `FileError` for what is no regular file; then nothing has changed. No more is read than the
    variables have room for.
    """
    source, named = Path(path), _named(variables)
    form = _format(source)
    with regular_file(source) as file:
        try:
            with form.opened(file) as (types, read):
                _compare(source, types, {name: v.tensor for name, v in named.items()})
                arrays = read()
        except StateError:
            raise
        except MemoryError:
            raise AllocationError(f"there is no memory for what {source} holds") from None
        except Exception as error:  # a reader of damaged bytes may raise anything
            said = f"{type(error).__name__}: {error}"
            raise StateError(f"{source} is damaged, or no checkpoint: {said}") from error
    store({v.cell: arrays[name] for name, v in named.items()})


def _named(variables: Any) -> dict[str, Variable]:
    named: dict[str, Variable] = {}
    for name, variable in _listed(variables):
        if name in named:
            raise StateError(
                f"two variables are called {name[:60]!r}: {describe(named[name])} and "
                f"{describe(variable)}; say which is whose: {{'first': [a, …], 'second': [b, …]}}, "
                "or name a layer before it is used: layer.named('first')"
            )
        named[name] = variable
    return named


def _listed(variables: Any) -> Iterator[tuple[str, Variable]]:
    if isinstance(variables, Node) or not isinstance(variables, Iterable):
        raise _no_variables(variables)
    for entry in variables.items() if isinstance(variables, Mapping) else variables:
        match entry:
            case Variable(name=str(name)) as variable:
                yield name, variable
            case (str(name), Variable() as variable):
                yield name, variable
            case (str(group), dict() | list() | tuple() as inner):
                for name, variable in _listed(inner):
                    yield f"{group}.{name}", variable
            case _:
                raise _no_variables(entry)


def _no_variables(given: Any) -> StateError:
    match given:
        case (str(key), value) if hasattr(type(value), "named_variables"):
            return StateError(
                f"{key!r:.60} is a module; write {{{key!r:.60}: net.named_variables()}}"
            )
        case (str(key), value) if hasattr(type(value), "variables"):
            return StateError(
                f"{key!r:.60} is an optimizer; write {{{key!r:.60}: optimizer.variables}}"
            )
    return StateError(
        f"the state is kept in variables that have names, not in {given!r:.80}; give a list of "
        "them, [w, b], or a dict, {'w': w, 'b': b}; for a module net.named_variables(), and with "
        "its optimizer [*net.named_variables(), *optimizer.variables]"
    )


def _is_writable(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and name != "__metadata__"


def _format(path: Path) -> Format:
    found = FORMATS.get(path.suffix.lower())
    if found is None:
        raise StateError(f"a checkpoint is a file *.npz or *.safetensors, not {path.name!r}")
    return found


def _compare(path: Path, found: Mapping[str, TensorType], wanted: Mapping[str, TensorType]) -> None:
    """Refuse a file that is not for these variables."""
    differing = [
        *(f"{printable(n[:60])}: not in the file" for n in wanted if n not in found),
        *(f"{printable(n[:60])}: {t!r} in the file, no variable here" for n, t in found.items()
          if n not in wanted),
        *(f"{printable(n[:60])}: {found[n]!r} in the file, {t!r} here" for n, t in wanted.items()
          if n in found and found[n] != t),
    ]  # fmt: skip
    if differing:
        more = len(differing) - MOST_LISTED
        listed = [*differing[:MOST_LISTED], *([f"and {more} more"] if more > 0 else [])]
        raise StateError("\n  ".join([f"{path} is a checkpoint of another model:", *listed]))

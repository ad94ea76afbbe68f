"""Record the public names and their signatures: `python -m tools.public_api`.

A change of the record is a change for users: it stands in CHANGELOG.md, in their words.
"""

import inspect
from enum import Enum
from types import ModuleType

import symgrad as sg
from symgrad.ir.op import REGISTRY
from tools.rules_table import ROOT

RECORD = ROOT / "tests" / "api.txt"
SPACES = ("fft", "linalg", "nn", "optim", "passes", "random", "special", "stats", "testing")


def signature(found):
    """The parameters with their defaults; types are told by the type checkers' tests."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return "(…)"
    bare = [p.replace(annotation=inspect.Parameter.empty, default=shown(p)) for p in parameters]
    return str(inspect.Signature(bare))


class Text(str):
    """A default as it is shown."""

    __slots__ = ()
    __repr__ = str.__str__


def shown(parameter):
    """The default of a parameter: in full if it is short and the same in every process."""
    default = parameter.default
    if default is inspect.Parameter.empty:
        return default
    text = repr(default)
    return Text("…" if " at 0x" in text or len(text) > 40 else text)


def lines():
    """Every public name, with its signature, and of classes the members."""
    REGISTRY.every()
    for space in ("", *SPACES):
        module = getattr(sg, space) if space else sg
        names = sorted(getattr(module, "__all__", None) or dir(module))
        for name in names:
            found = getattr(module, name, None)
            if not name.startswith("_") and not isinstance(found, ModuleType):
                yield from entry(f"sg.{space}.{name}" if space else f"sg.{name}", found)


def entry(name, found):
    if not callable(found) or getattr(found, "__module__", "").partition(".")[0] == "numpy":
        yield name
        return
    if not isinstance(found, type):
        yield name + signature(found)
        return
    made = "" if issubclass(found, Enum) else signature(found)
    yield f"class {name}{made}"
    for member, value in sorted(vars(found).items()):
        if member.startswith("_"):
            continue
        value = getattr(value, "__func__", value)
        yield f"    .{member}" + (signature(value) if inspect.isfunction(value) else "")


def text():
    """The record as it should be."""
    return "\n".join(lines()) + "\n"


def main():
    """Write it."""
    RECORD.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()

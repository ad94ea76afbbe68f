"""symgrad: a define-then-run compiler for gradients.

Build a graph with NumPy's vocabulary, derive its gradient as a graph, compile both into a NumPy
program, and look at every stage.

>>> import symgrad as sg
>>> x = sg.placeholder("x", ("N",))
>>> loss = sg.sum(sg.relu(x) ** 2)
>>> program = sg.compile([x], [loss, sg.grad(loss, x)])

The names stand in `__init__.pyi`. One is loaded when it is first used, so that `import symgrad`
costs next to nothing.
"""

import re
from functools import cache
from importlib import import_module
from typing import Any, cast

from symgrad.ir.late import SLOTS, Loops, Viewer

__version__ = "0.1.0"


@cache
def _homes() -> list[tuple[str, str]]:
    """The module and the name of each line of the stub, those that take all names (`*`) last."""
    # By the loader, since the package may lie in a zip file.
    stub = cast(Any, __spec__.loader).get_data(f"{__file__.rpartition('.')[0]}.pyi").decode()
    found = re.findall(r"^from (symgrad\S*) import (\S+)", stub, re.MULTILINE)
    return sorted(found, key=lambda line: line[1] == "*")


def _names() -> list[str]:
    listed = ([n] if n != "*" else import_module(home).__all__ for home, n in _homes())
    return [name for names in listed for name in names]


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return _names()
    for home, listed in _homes():
        if home == __name__ and listed == name:
            return import_module(f"{home}.{name}")
        if listed == name or (listed == "*" and name in import_module(home).__all__):
            globals()[name] = found = getattr(import_module(home), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*_names(), *(n for n in globals() if n.startswith("__"))})


def _viewer() -> Viewer:
    return cast(Viewer, import_module("symgrad.display"))


def _declare_ops() -> None:
    import_module("symgrad.ops.families")


def _loops() -> Loops:
    return cast(Loops, import_module("symgrad.autodiff.loops"))


SLOTS.viewer, SLOTS.declare_ops, SLOTS.loops = _viewer, _declare_ops, _loops

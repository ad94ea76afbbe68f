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

from symgrad.ir.late import SLOTS, LoopKind, Loops, Viewer

__version__ = "0.1.0"


@cache
def _homes() -> dict[str, str]:
    """The module of each public name, as the stub says."""
    # By the loader, since the package may lie in a zip file.
    stub = cast(Any, __spec__.loader).get_data(f"{__file__.rpartition('.')[0]}.pyi").decode()
    return {
        n: home for home, n in re.findall(r"^from (symgrad\S*) import (\S+)", stub, re.MULTILINE)
    }


def __getattr__(name: str) -> Any:
    homes = _homes()
    if name == "__all__":
        return [*homes]
    if name not in homes:
        said = f"module {__name__!r} has no attribute {name!r}"
        if not name.startswith("_"):
            said += import_module("symgrad.ir.elsewhere").hint(name, homes, __getattr__)
        raise AttributeError(said)
    home = homes[name]
    inside = home == __name__
    found = import_module(f"{home}.{name}") if inside else getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*_homes(), *(n for n in globals() if n.startswith("__"))})


def _viewer() -> Viewer:
    return cast(Viewer, import_module("symgrad.display"))


def _declare_ops(name: str) -> None:
    home = _homes().get(name, "")
    import_module(home if home.startswith("symgrad.ops.") else "symgrad.ops.families")


def _loops(kind: LoopKind) -> Loops:
    return cast(Loops, import_module(f"symgrad.autodiff.{kind}"))


def _export(*args: Any) -> Any:
    return import_module("symgrad.backends.jax.export").export(*args)


def _range_of(node: Any) -> Any:
    return import_module("symgrad.ops.ranges.inference").range_of(node)


SLOTS.range_of = _range_of
SLOTS.viewer, SLOTS.declare_ops, SLOTS.loops, SLOTS.export = _viewer, _declare_ops, _loops, _export

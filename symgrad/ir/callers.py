"""Who asks: symgrad itself, or code outside it."""

from __future__ import annotations

import itertools
import sys
from types import FrameType

_INSIDE = sys.stdlib_module_names | {"symgrad", "symgrad_viz", "numpy", "networkx"}


def asked_outside() -> bool:
    """Whether a method of symgrad's that calls this was called by a user's code.

    Standard library, NumPy and networkx call for symgrad as well as for users, and count as inside.
    """
    module = sys._getframe(2).f_globals.get("__name__", "")
    return str(module).partition(".")[0] not in _INSIDE


def asked_by(package: str, function: str) -> bool:
    """Whether a method of symgrad's that calls this was called by a function of a package."""
    frame = sys._getframe(2)
    name = str(frame.f_globals.get("__name__", ""))
    return frame.f_code.co_name == function and name.startswith(package)


def function_of(package: str) -> tuple[str, str] | None:
    """The outermost function of a package that is running, and its module, as users write them.

    It is that which a user called, if only what the package calls has run since; not a decorator,
    which its private parts have.
    """
    frame: FrameType | None = sys._getframe(1)
    found = None
    while frame is not None:
        names = str(frame.f_globals.get("__name__", "")).split(".")
        public = [*itertools.takewhile(lambda part: not part.startswith("_"), names)]
        if names[0] == package:
            found = (".".join(public), frame.f_code.co_name) if len(public) > 1 else found
        elif found is not None:
            break
        frame = frame.f_back
    return found

"""Who asks: symgrad itself, or code outside it."""

from __future__ import annotations

import sys

_INSIDE = sys.stdlib_module_names | {"symgrad", "symgrad_viz", "numpy", "networkx"}


def asked_outside() -> bool:
    """Whether a method of symgrad's that calls this was called by a user's code.

    Standard library, NumPy and networkx call for symgrad as well as for users, and count as inside.
    """
    module = sys._getframe(2).f_globals.get("__name__", "")
    return str(module).partition(".")[0] not in _INSIDE

"""The names that a namespace of functions and classes, such as `sg.nn`, gives to users."""

from collections.abc import Mapping
from types import ModuleType


def public_names(namespace: Mapping[str, object], defined_in: str | None = None) -> list[str]:
    """The names of a namespace, but for modules and those with a `_`; or of what a module defines.

    Such a namespace imports what it gives, by its own name: `from … import relu as relu`.
    """
    found = {n: v for n, v in namespace.items() if n[0] != "_" and not isinstance(v, ModuleType)}
    if defined_in is None:
        return sorted(found)
    return sorted(n for n, v in found.items() if getattr(v, "__module__", None) == defined_in)

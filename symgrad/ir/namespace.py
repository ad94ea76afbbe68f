"""The names that a namespace of functions and classes, such as `sg.nn`, gives to users."""

from collections.abc import Mapping
from types import ModuleType


def public_names(namespace: Mapping[str, object]) -> list[str]:
    """The names of a module's own and imported things, but for modules and those with a `_`."""
    return sorted(
        n for n, v in namespace.items() if not n.startswith("_") and not isinstance(v, ModuleType)
    )

"""Which kernels have their source copied into programs: those in files named `…kernels.py`."""

from __future__ import annotations

import dis
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType
from typing import Any

HOME = f"{__package__}."


def is_own(kernel: Any) -> bool:
    """Whether a kernel is one of those whose source is copied into programs."""
    module = getattr(kernel, "__module__", None) or ""
    return (
        module.startswith(HOME)
        and module.endswith("kernels")
        and getattr(sys.modules[module], getattr(kernel, "__name__", ""), None) is kernel
    )


def own_functions(kernel: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """A kernel, after the functions of its file that it calls."""
    home = vars(sys.modules[kernel.__module__])
    for name in _names(kernel.__code__):
        called = home.get(name)
        if inspect.isfunction(called) and is_own(called) and called is not kernel:
            yield from own_functions(called)
    yield kernel


@cache
def _names(code: CodeType) -> tuple[str, ...]:
    """The globals that code reads, the functions within it included; not `np.where`'s `where`."""
    found = [i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"]
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return tuple(dict.fromkeys([*found, *(n for c in inner for n in _names(c))]))


@cache
def source_of(function: Callable[..., Any]) -> str:
    """The text of such a function; `inspect.getsource` reads all of it token by token."""
    code = function.__code__
    last = max(end for _, end, _, _ in code.co_positions() if end is not None)
    return "".join(linecache.getlines(code.co_filename)[code.co_firstlineno - 1 : last])


def own_names() -> set[str]:
    """The names that copied source takes; nothing else in a program may have them."""
    homes = [m for n, m in sys.modules.items() if n.startswith(HOME) and n.endswith("kernels")]
    return {name for home in homes for name, f in vars(home).items() if is_own(f)}

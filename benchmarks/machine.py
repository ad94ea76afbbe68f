"""Where a run was made, and what installing and importing each library costs there."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.rounds import ROOT, compare

LIBRARIES = "numpy", "symgrad", "pytensor", "jax", "torch", "autograd", "numexpr", "numba"


def described() -> dict[str, Any]:
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return {
        "cpu": cpu[1] if cpu else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in installed() if name != "symgrad"},
    }


def installed() -> list[str]:
    return [name for name in LIBRARIES if find_spec(name) is not None]


def imports(count: int) -> dict[str, dict[str, float]]:
    """The time to import each library, in processes of their own, and its ratio to NumPy's."""
    names = [{"symgrad": "symgrad.compile"}.get(n, n) for n in installed()]
    found = compare(str(ROOT / "benchmarks" / "import_time.py"), names, count)
    return {name.partition(".")[0]: figures for name, figures in found.items()}


def sizes() -> dict[str, float]:
    """MiB on disk of each library with all that it requires."""
    found = {name: with_requirements(name) for name in installed() if name != "symgrad"}
    found["symgrad"] = with_requirements("numpy", "networkx", "graphviz") | {
        p: p.stat().st_size for part in ("symgrad", "viz") for p in (ROOT / part).rglob("*.py")
    }
    return {name: sum(files.values()) / 2**20 for name, files in found.items()}


def with_requirements(*names: str) -> dict[Path, int]:
    files: dict[Path, int] = {}
    left, seen = list(names), set()
    while left:
        name = left.pop().lower().replace("_", "-")
        if name in seen:
            continue
        seen.add(name)
        try:
            found = distribution(name)
        except PackageNotFoundError:  # wanted on another system only
            continue
        paths = (Path(str(found.locate_file(f))).resolve() for f in found.files or ())
        files |= {p: p.stat().st_size for p in paths if p.is_file() and p.suffix != ".pyc"}
        wanted = (r for r in found.requires or () if "extra ==" not in r)
        left += [re.split(r"[^\w.-]", r, maxsplit=1)[0] for r in wanted]
    return files

"""The installation: which packages, layout engines and libraries are there, and which work."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import symgrad as sg
from symgrad import display
from symgrad.ir.errors import SymgradError
from symgrad.ir.graph import Graph
from symgrad.native.blas import blas_threads
from symgrad.runtime.threads import available

PACKAGES = ("symgrad", "numpy", "networkx", "graphviz")
EXTRAS = ("pygraphviz", "scipy", "matplotlib", "tqdm", "llvmlite", "jax")


def installation() -> dict[str, Any]:
    """The versions and places of all that symgrad stands on, as data for JSON.

    `missing` lists the packages that it needs and that are not there; `faults` has, for each layout
    engine that is there and draws nothing, why.
    """
    versions = {name: _version(name) for name in (*PACKAGES, *EXTRAS)}
    try:
        engines = display.engines()
    except ImportError as error:
        engines = {}
        versions["graphviz"] = versions["graphviz"] and f"{versions['graphviz']} ({error})"
    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": versions,
        "engines": engines,
        "blas": {
            "name": blas.get("name"),
            "version": blas.get("version"),
            "threads": blas_threads(),
        },
        "threads": available(),
        "machine code": machine_code(),
        "missing": [n for n in PACKAGES[1:] if versions[n] is None],
        "faults": {n: fault for n, where in engines.items() if where and (fault := _fault(n))},
    }


def machine_code() -> str:
    """The compiler of machine code that is here, or the reason why there is none."""
    from symgrad.native.engine import Unavailable, host

    try:
        engine = host()
    except Unavailable as error:
        return f"none, NumPy does the work: {error}"
    return f"LLVM {engine.version} for {engine.cpu}"


def _fault(name: str) -> str:
    """Why an engine does not draw a small graph; "" if it does."""
    with TemporaryDirectory() as folder:
        graph = Graph([sg.placeholder("x", 3) * 2])
        try:
            display.render(graph, Path(folder, "x.svg"), engine=name)
        except (SymgradError, OSError) as error:
            return " ".join(str(error).split())
    return ""


def how_to_install(name: str) -> str:
    """That a package is missing, and the command that installs it."""
    extras = {"pygraphviz": "render", "llvmlite": "native", "jax": "jax"}
    wanted = f"'symgrad[{extras[name]}]'" if name in extras else name
    return f"not installed (pip install {wanted})"


def _version(name: str) -> str | None:
    if name == "symgrad":
        return sg.__version__
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None

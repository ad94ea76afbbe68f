"""Build the site into docs/_build/html: `python -m docs`. A warning is an error."""

import os
import sys
from pathlib import Path
from time import perf_counter

from sphinx.cmd.build import build_main

HOME = Path(__file__).parent


def main(options: list[str]) -> int:
    """Build it from nothing: Sphinx does not know that pages depend on the package."""
    # What a page computes is small, and other builds may run beside this one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    started = perf_counter()
    target = HOME / "_build"
    places = ["-d", str(target / "doctrees"), str(HOME), str(target / "html")]
    failed = build_main(["-W", "--keep-going", "-n", "-E", "-a", "-q", *options, *places])
    sys.stdout.write(f"{target / 'html' / 'index.html'}: {perf_counter() - started:.0f} s\n")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

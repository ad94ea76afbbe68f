"""What does `import symgrad` cost, beside importing NumPy alone?

    python benchmarks/import_time.py [rounds]

symgrad loads its names when they are used: `symgrad.compiler` is the import and the first use.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from time import perf_counter

import rounds as r

if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].isdigit():
        module, _, name = sys.argv[1].partition(".")
        start = perf_counter()
        getattr(import_module(module), name or "__name__")
        print(json.dumps({"ms": 1e3 * (perf_counter() - start)}))
    else:
        count = int(sys.argv[1]) if sys.argv[1:] else 15
        r.report(r.compare(__file__, ["numpy", "symgrad", "symgrad.compiler"], count))

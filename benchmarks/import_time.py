"""What does `import symgrad` cost, beside importing NumPy alone?

python benchmarks/import_time.py [rounds]
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from time import perf_counter

import rounds as r

if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in ("numpy", "symgrad"):
        start = perf_counter()
        import_module(sys.argv[1])
        print(json.dumps({"ms": 1e3 * (perf_counter() - start)}))
    else:
        count = int(sys.argv[1]) if sys.argv[1:] else 15
        r.report(r.compare(__file__, ["numpy", "symgrad"], count))

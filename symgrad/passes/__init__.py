"""Floor 6: the passes, each from a graph to a better graph.

`pipeline.py` has their order, with the reason for each place, and applies the rules of
`symgrad.rules`. Less to compute: `cse.py` (common subexpressions), `dead.py` (results that nobody
reads), `erase_identities.py`, `hoist.py` (what does not change between calls), `expand_softmax.py`,
`share_masks.py`, `join_slices.py`. Better loops: `fuse.py`, `short_axes.py`, and of machine code
`cut_operands.py`. Less memory:
`recompute.py`, and `stretches.py` for loops. Ops that run graphs: `loops.py`, `loop_parts.py` (what
needs no loop), `last_rows.py` (stacks of which the last row is read), `bodies.py` (choices and
while loops).
"""

from symgrad.passes.pipeline import BY_RANGES as BY_RANGES
from symgrad.passes.pipeline import DEFAULT as DEFAULT
from symgrad.passes.pipeline import HOIST as HOIST
from symgrad.passes.pipeline import KERNELS as KERNELS
from symgrad.passes.pipeline import PORTABLE as PORTABLE
from symgrad.passes.pipeline import RECOMPUTED_BEFORE as RECOMPUTED_BEFORE
from symgrad.passes.pipeline import RULES as RULES
from symgrad.passes.pipeline import Pass as Pass
from symgrad.passes.pipeline import PassLike as PassLike
from symgrad.passes.pipeline import graph_pass as graph_pass
from symgrad.passes.pipeline import in_stretches as in_stretches
from symgrad.passes.pipeline import recomputation as recomputation
from symgrad.passes.pipeline import rules_pass as rules_pass
from symgrad.passes.pipeline import run_passes as run_passes
from symgrad.passes.pipeline import run_split as run_split
from symgrad.passes.pipeline import within as within

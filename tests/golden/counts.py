"""Operations and bytes of four functions with their gradients, as written and optimised.

Counted as `peers.json` says it counts other systems: an elementary operation is an elementwise op,
a reduction or a product of matrices; what our kernels do in several counts severally. A kernel is a
fused group, or a step outside of one. Of bytes there are two figures: `bytes` if each group is one
pass, as it is counted for the peers, and `bytes_of_steps` as the program runs, op by op.
"""

from typing import Any

from symgrad.lowering.cost import PlanCost
from tests.golden.functions import FUNCTIONS

SEVERAL = {"log_softmax": 6, "softmax": 5, "logsumexp": 5, "keep_where_positive": 2}


def _counted(cost: PlanCost) -> dict[str, int]:
    steps = [s.step for s in cost.steps]
    groups = {s.group for s in steps if s.group is not None}
    return {
        "kernels": len(groups) + sum(s.group is None for s in steps),
        "operations": sum(SEVERAL.get(s.name, 1) for s in steps if s.name != "copy"),
        "bytes": cost.bytes_fused,
        "bytes_of_steps": cost.bytes_moved,
        "flops": cost.flops,
    }


def counts() -> dict[str, dict[str, Any]]:
    """The figures, by function."""
    found = {}
    for function in FUNCTIONS:
        cost = function().compile().cost()
        found[function.__name__] = {
            "as written": _counted(cost.before),
            "optimised": _counted(cost.after),
        }
    return found

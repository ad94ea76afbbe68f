"""Ops by the back end of JAX beside their kernels in NumPy: `python -m tests.backends.ops [names]`.

Values may differ by some units in the last place of the largest element; dtypes, shapes and the
places of NaN may not.
"""

import sys

import numpy as np

from symgrad.backends.jax.device import Device
from symgrad.backends.jax.lowering import Lowering, is_known
from symgrad.ir.graph import Graph
from tests.helpers import differences
from tests.test_every_op import OPS, has_cases, trials

ULPS = 64
# Code for these small functions is not worth improving.
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def lowered(trial, device):
    """A trial as one function of its arrays, or None if it is left to NumPy."""
    lowering = Lowering(Graph(trial.results, trial.xs), {}, device.jax)
    (stage, *more) = lowering.stages
    if more or stage.host or not stage.tasks:
        return None
    feeds = dict(zip(trial.xs, trial.arrays, strict=True))
    places = [lowering.given[i] for i in stage.takes]
    return lowering.function(stage, lowering.outputs), [feeds[x] for x in places]


def faults(tried):
    """What is wrong with ops, a line each; all of them are one function of XLA's."""
    device = Device(None)
    pairs = [(t, found) for t in tried if (found := lowered(t, device)) is not None]
    with device.here():
        functions = [function for _, (function, _) in pairs]

        def together(*arrays):
            return [f(*given) for f, given in zip(functions, arrays, strict=True)]

        run = device.jax.jit(together, compiler_options=QUICK)
        found = run(*(arrays for _, (_, arrays) in pairs)) if pairs else []
    for (trial, _), (made, flags) in zip(pairs, found, strict=True):
        name = f"{trial.node.op.name}({[x.type for x in trial.xs]}, {trial.attrs})"
        if np.asarray(flags).any():
            yield f"{name} is said to fail"
        for y, expected in zip(made, trial.values(), strict=True):
            room = ULPS * np.finfo(y.dtype).eps if np.dtype(y.dtype).kind in "fc" else 0
            yield from (f"{name} {words}" for words in differences(y, expected, room))


def ops(names=()):
    """The ops that have cases and a form in JAX."""
    for op in OPS:
        if has_cases(op) and is_known(op) and not op.identity and (not names or op.name in names):
            yield op


if __name__ == "__main__":
    for op in ops(sys.argv[1:]):
        for line in faults(list(trials(op))):
            sys.stdout.write(f"{line}\n")

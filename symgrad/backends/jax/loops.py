"""The table of ops, loops and choices, whose bodies are graphs: `scan`, `while_loop` and `cond`."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from symgrad.backends.jax.draws import Draws


class Loops(Draws):
    """Ops that run graphs. What fails in a body is told by a flag that goes along."""

    def inside(self, graph, arrays, sizes):
        """The results of a graph for arrays, and whether something failed."""
        raise NotImplementedError

    def loop(self, *arrays, body, carries, sequences, length, reverse, sizes):
        init, fixed = arrays[:carries], arrays[carries + sequences :]

        def step(carried, slices):
            state, bad = carried
            made, failed = self.inside(body, (*state, *slices, *fixed), sizes)
            return (made[:carries], bad | failed), made[carries:]

        begin = (init, self.jnp.zeros((), bool))
        rows = arrays[carries : carries + sequences]
        # JAX takes a length that is not known from what it scans alone.
        known = None if rows else length
        (state, bad), stacks = self.lax.scan(step, begin, rows, known, reverse)
        self.failing(bad)
        return (*state, *stacks)

    def while_loop(self, *arrays, test, step, most, what, sizes):
        count = len(step.outputs)
        fixed = arrays[count:]

        def tested(number, state, bad):
            (holds,), failed = self.inside(test, (*state, *fixed), sizes)
            return number, state, holds, bad | failed

        def goes_on(carried):
            number, _, holds, bad = carried
            more = holds & ~bad
            return more if most is None else more & (number < most)

        def stepped(carried):
            number, state, _, bad = carried
            made, failed = self.inside(step, (*state, *fixed), sizes)
            return tested(number + 1, made, bad | failed)

        begin = tested(self.jnp.zeros((), np.int64), arrays[:count], self.jnp.zeros((), bool))
        number, state, holds, bad = self.lax.while_loop(goes_on, stepped, begin)
        self.failing(bad | holds)  # if it would go on, it has taken the most steps
        return (number, *state)

    def branch(self, p, *arrays, true, false, sizes):
        def side(graph):
            return lambda given: self.inside(graph, given, sizes)

        made, bad = self.lax.cond(p, side(true), side(false), arrays)
        self.failing(bad)
        return made

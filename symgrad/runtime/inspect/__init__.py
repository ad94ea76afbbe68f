"""Looking at a program: why it runs what it runs, where a NaN comes from, what takes time.

`why.py` follows a line of the user's through the rewrites to its steps, and `joined.py` says why
ops are one fused group. `check.py` finds where a NaN or inf began, with `steps.py` for bodies of
loops and `assumptions.py` for matrices that are not what was declared; `finite.py` tells without
running whether there can be one. `rounding.py` has the error of results, bounded by `enclosure.py`,
a run on intervals; `precision.py` makes programs whose error has a limit. `profile.py` has the time
of each step, beside what `machine.py` measures.
"""

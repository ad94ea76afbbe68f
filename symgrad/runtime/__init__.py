"""Floor 8: running a plan, step by step or as a generated NumPy program.

`question.py` checks what `compile` is given and makes a graph of it. A call goes through
`program.py` (what a user holds), `feeding.py` (checks of the arguments), `runner.py` (an executable
for their sizes), `store.py` (the variables) and `prologue.py` (what was computed once and kept).
`partial.py` has programs that hold part of their inputs, `copies.py` copies and pickles.

`executable.py` is a plan that can be run, in the arrays of `workspace.py`: by `executor.py`, the
reference, or by source that `codegen.py` writes, with `running.py` for steps that run bodies,
`machine_code.py` for machine code, `literals.py` for values as text, `source.py` for the module as
it grows, `standalone.py` for a file of its own. `threads.py` shares tiles out, `native.py` chooses
what runs as machine code, `subnormals.py` has subnormal numbers count as 0.
`inspect/` looks at programs.
"""

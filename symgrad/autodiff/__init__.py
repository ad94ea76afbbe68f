"""Floor 7: derivatives, as graphs made from graphs.

`transforms.py` has `grad`, `vjp`, `jvp` and their kin; `jacobians.py` all derivatives at once. Both
ask `checks.py` whether the question makes sense, `explain.py` why a gradient is missing, and
`normal.py` for the form in which a function is differentiated.

Derivatives: `reverse.py` is the walk from a loss to its inputs, `forward.py` that from a tangent to
the outputs, `taylor.py` arithmetic of power series for high orders, `locking.py` derivatives along
a side of a kink (`KINKS.md`). `batching.py` makes of a graph for one value one for many, as `vmap`
and Jacobians need it. `sparsity.py` finds which entries of a Jacobian can differ from 0,
`colouring.py` which of its columns can be computed together, and `known.py` folds constants.

Ops that run graphs have files of their own for derivatives and batches: `loops.py` (`scan`),
`whiles.py`, `choices.py` (`cond`), `implicit.py` (solutions of equations, and in `krylov.py` those
of linear systems by iteration) and `dynamic_shapes.py` (`sized`). `custom/` has functions of a
user's own.
"""

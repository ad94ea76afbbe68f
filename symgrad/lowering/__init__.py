"""Floor 7: from what is computed to how: the order, the memory, the plan.

`lower.py` makes a plan of a graph and the sizes of its named dimensions. It asks in turn
`schedule.py` for the order of ops, `tiling.py` for how a fused group runs in tiles, `native.py` and
`native_program.py` for machine code, `calls.py` for the kernels, `products.py` for products that
threads share, `in_place.py` for what is written over an operand, `masks.py` for masks kept apart,
`memory.py` for offsets in the arena, `spares.py` for what lies in the arrays of next values,
`names.py` for the names of slots. The result is a `plan.py`: slots, and steps of the kinds in
`steps.py`, which `visitor.py` visits and `cost.py` counts.

Steps that run bodies: `running.py` for all of them, `loops.py` and `rows.py` for `scan`,
`whiles.py` for `while_loop` and computed sizes, `choices.py` for `cond`. `map_reduce/` splits a
graph along a named dimension.
"""

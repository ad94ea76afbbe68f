"""The back end of JAX: a graph as functions over `jax.numpy`, compiled by XLA for a device.

`device.py` finds the device, `lowering.py` writes a graph as functions, by a table of ops whose
families are in `elementwise.py`, `special.py`, `arrays.py`, `windows.py`, `linear.py`, `draws.py`
and `loops.py`; `program.py` runs them, `feeding.py` and `store.py` leave arrays and variables on
the device, `mesh.py` shares named dimensions out among several devices, `export.py` writes
StableHLO. No accelerator was reached while this was built: it has run on a processor, and on four
devices forced on one.
"""

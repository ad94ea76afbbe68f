"""Floor 1: what a graph is.

The graph: `op.py` has the record of an op and the registry, `schema.py` its attributes, `node.py`
nodes and `apply`, which makes them, `leaf_ops.py` the ops of leaves, `values.py` the contents of
constants and variables, `updates.py` nodes that carry the next value of a variable, `graph.py` the
frozen graph, `walk.py` its topological order, `networks.py` the same as networkx has it,
`evaluate.py` its value by the plainest way.

Types: `types.py` has shapes and dtypes, `dims.py` named dimensions, `dim_text.py` reads them from
text, `forms.py` nested lists and dicts of nodes, `along.py` how an op works along a named dimension
piece by piece. Numbers: `ranges.py`, `long_double.py`, and `kinks.py` for the choice at a kink.

Nodes that behave like arrays: `operators.py`, `array_methods.py`, `arraylike.py` (values), `at.py`
(`x.at[...]`), `masked.py` (`where=`); `numpy_dispatch.py` and `numpy_cases.py` for NumPy's
functions on nodes, `foreign.py` for other libraries' arrays.

Errors and help: `errors.py`, `messages.py`, `refusals.py`, `elsewhere.py` (what a missing name
means), `origin.py` (the user's line), `callers.py`, `telling.py` (log messages).

The rest: `formats/` reads and writes graphs, `saved.py` refuses old pickles, `late.py` has slots
that higher floors fill. Small tools: `cached.py`, `collector.py`, `digest.py`, `flow.py` (minimum
cuts), `namespace.py`, `record.py` (classes of fields).
"""

"""Floor 11: programs that run piece by piece along a named dimension, on any executor.

`step.py` has `map_reduce`, `rounds.py` runs the pieces of a round and joins their results,
`worker.py` computes one piece, in this process or another. `chunks.py` has the data in pieces, of
arrays and of files (`files.py`); `report.py` tells where the time went.
"""

"""Floor 11: programs in the forms of others: ONNX.

`writer.py` walks a program and emits nodes of ONNX, by the table of ops in `ops.py` and
`elementwise.py`, converting to
and from the dtypes of `signatures.py`, for which onnxruntime has kernels.
"""

from symgrad.export.writer import onnx as onnx

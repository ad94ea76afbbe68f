"""Floor 11: programs in the forms of others."""

from symgrad.export.writer import onnx as onnx

"""Sparse matrices: a pattern that is known when the graph is built, and values that are a node."""

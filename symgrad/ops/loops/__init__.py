"""Loops: one op, which runs a graph again and again, and the functions that build it."""

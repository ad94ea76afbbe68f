"""Graphs in files, mutated by the thousand: none may run code, open a file, hang or fill memory.

`python -m tests.mutants --count 100000` runs so many of them in worker processes.
"""

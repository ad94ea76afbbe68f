"""Floor 8: running a plan, step by step or as a generated NumPy program."""

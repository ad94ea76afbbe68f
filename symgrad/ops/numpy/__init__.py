"""NumPy's functions beyond the array API standard, made of those that are in it."""

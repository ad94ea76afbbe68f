"""Floor 12: whether two functions are equal, proved or refuted.

`same.py` has `same`, which tries three ways. `canonical.py` brings both to sums of products: the
arithmetic of these is in `terms.py` and `functions.py`, and `forms.py` says what each op becomes.
`search.py` looks for a way from one to the other among the rules of the compiler.
`counterexample.py` looks for a point at which they differ, and makes it simple.
"""

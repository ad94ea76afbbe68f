"""Floor 12: equations, minima and differential equations, solved when a program runs.

`roots.py` has roots, fixed points and minima; `ode.py` differential equations, solved by
`dormand_prince.py` and differentiated by `adjoint.py`. `flat.py` makes one vector of nested forms.
"""

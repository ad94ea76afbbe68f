"""The examples in the docstrings of public functions do what they say."""

import doctest
import inspect

import numpy as np
import pytest

import symgrad as sg
from tools import ops_table

FUNCTIONS = ops_table.loaded()
# As after `from symgrad import *`, but for Python's own round.
NAMES = {n: getattr(sg, n) for n in dir(sg) if not n.startswith("_") and n != "round"}
NAMES |= {"sg": sg, "np": np}


@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if ">>>" in (f.__doc__ or "")])
def test_the_example_of_a_function_runs(name):
    function = FUNCTIONS[name]
    space, _, last = name.rpartition(".")
    names = NAMES | (vars(getattr(sg, space)) if space else {}) | {last: function}
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(function), names, name, None, 0)
    told = []
    doctest.DocTestRunner().run(test, out=told.append)
    assert not told, "".join(told)

"""The examples in the docstrings of modules and optimisers do what they say."""

import doctest
import inspect

import numpy as np

import symgrad as sg
from tests.helpers import each

SPACES = {"nn": sg.nn, "optim": sg.optim}
NAMES = {n: getattr(sg, n) for n in dir(sg) if not n.startswith("_") and n != "round"}
NAMES |= {"sg": sg, "np": np}
WRITTEN = {
    f"{space}.{name}": getattr(module, name)
    for space, module in SPACES.items() for name in module.__all__
}  # fmt: skip
WRITTEN |= {
    f"{name}.{method}": found
    for name, cls in WRITTEN.items() if inspect.isclass(cls)
    for method, found in vars(cls).items() if inspect.isfunction(found)
}  # fmt: skip


@each("name", [n for n, f in WRITTEN.items() if ">>>" in (f.__doc__ or "")])
def test_the_example_runs(name):
    names = NAMES | vars(SPACES[name.partition(".")[0]])
    test = doctest.DocTestParser().get_doctest(WRITTEN[name].__doc__, names, name, None, 0)
    told = []
    doctest.DocTestRunner().run(test, out=told.append)
    assert not told, "".join(told)


@each("name", [n for n, f in WRITTEN.items() if inspect.isclass(f)])
def test_each_class_has_an_example(name):
    assert name == "optim.Optimizer" or ">>>" in WRITTEN[name].__doc__

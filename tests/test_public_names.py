"""The door: `symgrad/__init__.pyi` lists the public names, each once, and each is there."""

import pickle
from collections import Counter
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import pytest

import symgrad as sg
from symgrad import dtypes
from symgrad.ir import errors
from tools import public_names


def test_each_public_name_is_listed_once_and_there():
    assert [n for n, count in Counter(sg.__all__).items() if count > 1] == []
    assert all(hasattr(sg, name) for name in sg.__all__)
    assert {*sg.__all__} <= {*dir(sg)}
    assert {"compile", "Node", "nn", "fit", "matmul", "float32", "ShapeError"} <= {*sg.__all__}


def test_the_list_has_every_function_of_an_op_every_error_and_every_dtype():
    for path, wanted in public_names.texts().items():
        stale = {*path.read_text(encoding="utf-8").splitlines()} ^ {*wanted.splitlines()}
        assert not stale, "\n".join([*stale, "run: python -m tools.public_names"])
    classes = [e for e in vars(errors).values() if isinstance(e, type)]
    ours = {e.__name__ for e in classes if issubclass(e, errors.SymgradError)}
    assert {*ours, *dtypes.__all__} <= {*sg.__all__}


# What gives public functions and classes alone, beside the modules and optimisers of all files.
WHOLE = ("nn.activations", "nn.losses", "nn.normalization", "nn.regularization", "optim.schedules")


@pytest.mark.parametrize("door", [sg.nn, sg.optim], ids=lambda door: door.__name__)
def test_modules_losses_and_optimisers_are_at_their_door(door):
    left = []
    for info in iter_modules(door.__path__, f"{door.__name__}."):
        file = import_module(info.name)
        own = [v for n, v in vars(file).items() if n[0] != "_" and is_of(v, file)]
        if not info.name.endswith(WHOLE):
            own = [v for v in own if isinstance(v, type)]
            own = [v for v in own if issubclass(v, (sg.nn.Module, sg.optim.Optimizer))]
        left += [v.__name__ for v in own if getattr(door, v.__name__, None) is not v]
    assert left == [], f"import them in {door.__file__}"


def is_of(value, file):
    return getattr(value, "__module__", "") == file.__name__ and hasattr(value, "__qualname__")


def test_a_star_import_takes_the_public_names_and_no_others():
    taken = {}
    exec("from symgrad import *", taken)
    assert taken.keys() - {"__builtins__"} == {*sg.__all__}
    assert all(taken[name] is getattr(sg, name) for name in sg.__all__)


@pytest.mark.parametrize("name", ["adn", "ModuleType", "__wrapped__"])
def test_what_is_no_public_name_is_refused(name):
    with pytest.raises(AttributeError, match="module 'symgrad' has no attribute"):
        getattr(sg, name)


def test_public_functions_and_classes_are_pickled_by_name():
    found = [getattr(sg, name) for name in sg.__all__]
    named = [f for f in found if callable(f) and not isinstance(f, ModuleType)]
    assert sg.mean in named
    assert sg.SymgradError in named
    assert all(pickle.loads(pickle.dumps(f)) is f for f in named if hasattr(f, "__qualname__"))

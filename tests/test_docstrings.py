"""The examples in the docstrings of public functions do what they say."""

import ast
import doctest
import inspect
import re
from pathlib import Path

import numpy as np

import symgrad as sg
from tests.helpers import each
from tools import ops_table

FUNCTIONS = ops_table.loaded()
# As after `from symgrad import *`, but for Python's own round.
NAMES = {n: getattr(sg, n) for n in dir(sg) if not n.startswith("_") and n != "round"}
NAMES |= {"sg": sg, "np": np}


@each("name", [n for n, f in FUNCTIONS.items() if ">>>" in (f.__doc__ or "")])
def test_the_example_of_a_function_runs(name):
    function = FUNCTIONS[name]
    space, _, last = name.rpartition(".")
    names = NAMES | (vars(getattr(sg, space)) if space else {}) | {last: function}
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(function), names, name, None, 0)
    told = []
    doctest.DocTestRunner().run(test, out=told.append)
    assert not told, "".join(told)


HOME = Path(sg.__file__).parent.parent
FOLDERS = ("symgrad", "viz", "tools", "benchmarks")
FILES = [f for folder in FOLDERS for f in sorted((HOME / folder).rglob("*.py"))]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def is_rule(node):
    """Whether a function declares a rule, whose docstring is its reason."""
    made = [d.func for d in getattr(node, "decorator_list", ()) if isinstance(d, ast.Call)]
    return any(isinstance(f, ast.Name) and f.id in ("rule", "rule_for") for f in made)


def beginning_with_what(tree):
    """The docstrings that begin with "What", but for the reasons of rules."""
    found = [n for n in ast.walk(tree) if isinstance(n, DOCUMENTED) and not is_rule(n)]
    texts = [ast.get_docstring(n) or "" for n in found]
    return [text for text in texts if text.startswith("What ")]


@each("path", FILES, ids=lambda f: str(f.relative_to(HOME)))
def test_a_docstring_names_what_it_returns(path):
    """Not "What …" but a noun or a verb: a reader looks for the field's word."""
    text = path.read_text()
    if re.search(r"""["']\s*What """, text):  # seldom, and sooner seen than what follows
        assert beginning_with_what(ast.parse(text)) == []


def test_a_docstring_that_begins_with_what_is_found():
    function = 'def f(x):\n    """What is found."""\n'
    assert beginning_with_what(ast.parse(function)) == ["What is found."]
    assert beginning_with_what(ast.parse("@rule(exact='bits')\n" + function)) == []

"""The source of kernels, as it is copied into programs."""

import inspect

import symgrad as sg
from symgrad.ir.op import REGISTRY
from symgrad.ops.copied import is_own, own_functions, source_of
from tests.helpers import each

OWN = {f for op in REGISTRY.every().values() if is_own(op.kernel) for f in own_functions(op.kernel)}


@each("function", sorted(OWN, key=lambda f: f.__name__), ids=lambda f: f.__name__)
def test_the_source_is_all_of_the_source(function):
    assert source_of(function) == inspect.getsource(function)


def test_a_kernel_brings_what_it_calls_and_not_what_numpy_has_by_the_same_name():
    x, y = sg.placeholder("x", 3), sg.placeholder("y", 3)
    assert "np.where(" in source_of(REGISTRY.ops["logaddexp"].kernel)
    assert "def where(" not in sg.compile([x, y], sg.logaddexp(x, y)).source
    assert "def floor_of_quotient(" in sg.compile([x, y], list(divmod(x, y))).source


def test_a_program_runs_the_kernels_themselves_and_its_lines_keep_their_numbers():
    x = sg.placeholder("x", 3)
    program = sg.compile([x], sg.argsort(x))
    step = program.executables.of({}).function
    kernel = REGISTRY.ops["argsort"].kernel
    assert is_own(kernel)
    assert step.__globals__[kernel.__name__] is kernel
    assert program.source.splitlines()[step.__code__.co_firstlineno - 1].startswith("def step(")

"""Without machine code: NumPy does the work, and says why."""

import subprocess
import sys

import numpy as np
import pytest

import symgrad as sg
from symgrad.native.engine import Unavailable
from tests.native.checks import assert_same_bits

X, Y = (np.random.default_rng(0).standard_normal((4001, 37)).astype(np.float32) for _ in range(2))
x, y = (sg.placeholder(name, ("N", 37), "float32") for name in "xy")


def group():
    loss = sg.sum(sg.relu(x - y) + sg.abs(x - y) * sg.tanh(x))
    return [loss, sg.grad(loss, x)]


def test_where_there_is_no_machine_code_numpy_does_the_work(monkeypatch):
    def none():
        raise Unavailable("llvmlite is not there")

    outputs = group()
    expected = sg.compile([x, y], outputs, backend="numpy")(X, Y)
    for module in ("engine", "kernel"):
        monkeypatch.setattr(f"symgrad.native.{module}.host", none)
    program = sg.compile([x, y], outputs, backend=None)
    for a, e in zip(program(X, Y), expected, strict=True):
        assert_same_bits(np.asarray(a), np.asarray(e))
    assert not program.native
    assert list(program.natives.reasons) == ["llvmlite is not there"]
    told = "left to NumPy, not machine code: llvmlite is not there"
    assert told in str(program.why(outputs[1]))
    insisting = sg.compile([x, y], outputs, backend="native")
    with pytest.raises(sg.UnsupportedError, match=r"pip install symgrad\[native\]"):
        insisting(X, Y)


def test_a_small_program_imports_no_compiler():
    code = (
        "import sys, numpy as np, symgrad as sg\n"
        "x = sg.placeholder('x', (50,))\n"
        "sg.compile([x], [sg.exp(x) * 2 + x], backend=None)(np.ones(50))\n"
        "names = ('llvmlite', 'symgrad.native')\n"
        "sys.exit(any(m.startswith(names) for m in sys.modules))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

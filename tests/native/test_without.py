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


NO_EXECUTION = """
import ctypes, sys
import numpy as np, symgrad as sg
from symgrad import cli
from symgrad.runtime import native
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):  # no memory gains the permission to be executed
    sys.exit("not this kernel")
native.LEAST_BYTES = 0
x = sg.placeholder("x", (1000,), "float32")
y = np.tanh(x) * 2 + x
program = sg.compile([x], y, backend=None)
assert np.isfinite(program(np.ones(1000, "f4"))).all()
assert not program.native
assert "cannot be loaded" in str(program.why(y)), program.why(y)
assert "cannot be loaded" in cli._machine_code()
try:
    sg.compile([x], y, backend="native")
except sg.UnsupportedError as error:
    assert "install" not in str(error)
else:
    raise AssertionError
"""


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_a_process_that_may_not_make_code_leaves_the_work_to_numpy():
    pytest.importorskip("llvmlite")
    code = [sys.executable, "-c", NO_EXECUTION]
    done = subprocess.run(code, capture_output=True, text=True, check=False)
    if "not this kernel" in done.stderr:
        pytest.skip("this kernel does not refuse it")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("JIT session error") <= 1, "it is tried once"

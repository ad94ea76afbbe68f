"""Without machine code: NumPy does the work, and says why."""

import subprocess
import sys

import numpy as np
import pytest

import symgrad as sg
from benchmarks.workloads import WORKLOADS
from symgrad.native.engine import Unavailable
from symgrad.runtime import native
from tests.native.checks import assert_same_bits

X, Y = (np.random.default_rng(0).standard_normal((4001, 37)).astype(np.float32) for _ in range(2))
x, y = (sg.placeholder(name, ("N", 37), "float32") for name in "xy")


def group():
    loss = sg.sum(sg.relu(x - y) + sg.abs(x - y) * sg.tanh(x))
    return [loss, sg.grad(loss, x)]


def missing():
    raise Unavailable("llvmlite is not there")


@pytest.fixture
def no_llvm(monkeypatch):
    for module in ("small", "kernel", "engine"):  # whose names the others import
        monkeypatch.setattr(f"symgrad.native.{module}.host", missing)


def test_where_there_is_no_machine_code_numpy_does_the_work(no_llvm):
    outputs = group()
    expected = sg.compile([x, y], outputs, backend="numpy")(X, Y)
    program = sg.compile([x, y], outputs, backend=None)
    for a, e in zip(program(X, Y), expected, strict=True):
        assert_same_bits(np.asarray(a), np.asarray(e))
    assert not program.native
    assert list(program.natives.reasons) == ["llvmlite is not there"]
    told = "left to NumPy, not machine code: llvmlite is not there"
    assert told in str(program.why(outputs[1]))
    insisting = sg.compile([x, y], outputs, backend="native")
    with pytest.raises(sg.UnsupportedError, match=r"pip install 'symgrad\[native\]'"):
        insisting(X, Y)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_op_alone_says_so_too(threads, no_llvm):
    y = sg.special.erf(x)
    program = sg.compile(x, y, backend=None, threads=threads)
    assert_same_bits(program(X), sg.compile(x, y)(X))
    assert "left to NumPy, not machine code: llvmlite is not there" in str(program.why(y))
    with pytest.raises(sg.UnsupportedError, match=r"pip install 'symgrad\[native\]'"):
        sg.compile(x, y, backend="native", threads=threads)(X)


def test_subnormal_numbers_cannot_be_flushed_then(monkeypatch):
    monkeypatch.setattr("symgrad.native.mode.mode", missing)
    with pytest.raises(sg.UnsupportedError, match="flush_subnormals needs machine code: llvmlite"):
        sg.compile([x, y], group(), flush_subnormals=True)


def programs_of(work, backend, monkeypatch):
    """The results of two calls of a workload by a back end, and the programs that gave them."""
    compiled = []

    def kept(*args, **options):
        compiled.append(compile_(*args, **{**options, "backend": backend}))
        return compiled[-1]

    monkeypatch.setattr(sg, "compile", kept)
    run = work.symgrad(*work.inputs())
    found = [np.asarray(a) for _ in range(2) for a in run()]
    monkeypatch.setattr(sg, "compile", compile_)
    return found, compiled


compile_ = sg.compile
NETS = ("mlp_adam", "lenet", "gru_cell", "batch_norm", "attention", "lorenz_96", "rosenbrock")


@pytest.mark.parametrize("name", NETS)
def test_nets_without_machine_code_are_the_numpy_programs(name, no_llvm, monkeypatch):
    monkeypatch.setattr(native, "LEAST_BYTES", 0)
    both = [programs_of(WORKLOADS[name](0.02), backend, monkeypatch) for backend in (None, "numpy")]
    (found, programs), (expected, plain) = both
    for a, e in zip(found, expected, strict=True):
        assert_same_bits(a, e)
    assert [p.source for p in programs] == [p.source for p in plain]
    assert any(p.natives.reasons for p in programs)


def test_llvm_is_started_only_for_groups_that_pay(monkeypatch):
    def started():
        raise AssertionError("it was started")

    for module in ("small", "kernel", "engine"):  # whose names the others import
        monkeypatch.setattr(f"symgrad.native.{module}.host", started)
    _, (program,) = programs_of(WORKLOADS["augmentation"](0.1), None, monkeypatch)
    assert program.natives.reasons


@pytest.mark.parametrize(("size", "y"), [(50, "sg.exp(x) * 2 + x"), (100_000, "sg.relu(x)")])
def test_a_program_that_stays_numpys_imports_no_compiler(size, y):
    code = (
        "import sys, numpy as np, symgrad as sg\n"
        f"x = sg.placeholder('x', ({size},))\n"
        f"sg.compile([x], [{y}], backend=None, threads=1)(np.ones({size}))\n"
        "names = ('llvmlite', 'symgrad.native.')\n"
        "sys.exit(any(m.startswith(names) for m in sys.modules))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


NO_EXECUTION = """
import ctypes, sys
import numpy as np, symgrad as sg
from symgrad import doctor
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
assert "cannot be loaded" in doctor.machine_code()
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
    assert "JIT session error" not in done.stderr, "LLVM frees memory twice where it may not"

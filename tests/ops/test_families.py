"""Ops that are declared when one of them is used, each asked for in a process that has none."""

import subprocess
import sys
from pathlib import Path

import pytest

import symgrad.ops

ROOT = Path(symgrad.ops.__file__).parent
START = """
import sys
import numpy as np
import symgrad as sg
from symgrad.ir.op import REGISTRY
x = sg.placeholder("x", 3)
sg.compile(x, sg.grad(sg.sum(sg.relu(-x) ** 2), x))(np.ones(3))
assert not REGISTRY.ops.keys() & {"erf", "fourier", "scan", "cholesky", "sparse_matmul", "gather"}
loaded = {n for n in sys.modules if n.startswith("symgrad.") and not n.endswith("kernels")}
few = (
    "lowering.loops lowering.whiles ops.loops. ops.families ops.conv. ops.cumulative "
    "ops.fourier. ops.index.gather ops.linalg.decompositions ops.linalg.eigenvalues "
    "ops.linalg.solve ops.linalg.triangular ops.order ops.random. ops.sparse. ops.special. "
    "ops.statistics rules.in_rows rules.indexing rules.low_rank rules.normal.cholesky "
    "rules.ranges rules.reduced_extrema rules.scatter rules.structure rules.systems "
)
for name in few.split():
    assert not [n for n in loaded if n.startswith("symgrad." + name)], name
"""


def run(code):
    done = subprocess.run([sys.executable, "-c", START + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "found",
    [
        "sg.erf(x).op.name == 'erf'",
        "np.fft.fft(x).op.name == 'fourier'",
        "np.cov(x).shape == ()",
        "REGISTRY.find('erf').elementwise",
        "sg.cumulative_sum(x).shape == x.cumsum().shape == (3,)",
        "sg.linalg.svd(sg.expand_dims(x, 0))[1].shape == x[[0]].shape == (1,)",
        "REGISTRY.find('solve_triangular').linear is False",
        "(x % 2).op.name == 'remainder' and 'symgrad.ops.families' not in sys.modules",
        "(x // 2).shape == (x**x).shape == divmod(x, 2)[1].shape == abs(-x).shape == (3,)",
        "(np.int64(1) << sg.astype(x, 'int64')).dtype == (~sg.astype(x, 'int64')).dtype == 'int64'",
        "sg.Graph.parse(str(sg.Graph([sg.erf(x)]))).outputs[0].op.name == 'erf'",
        "'erf' in sg.__all__",
    ],
)
def test_an_op_is_declared_when_it_is_asked_for(found):
    run(f"assert {found}")


def test_a_node_tells_of_a_function_that_nobody_has_used():
    run(
        "try:\n    x.erf\nexcept AttributeError as error:\n    assert 'sg.erf(x)' in str(error)\n"
        "else:\n    raise AssertionError"
    )


def test_rules_that_go_by_a_fact_know_ops_that_were_declared_after_they_were_used():
    run(
        "program = sg.compile(x, x + sg.erf(sg.constant(0.5)))\n"
        "assert program.trace.rules()['constant_folding'] == 1\n"
    )


def test_the_names_of_all_kernels_are_known_before_their_ops_are():
    files = [f.relative_to(ROOT).with_suffix("").parts for f in ROOT.rglob("*kernels.py")]
    assert len(files) > 10
    names = [".".join(("symgrad", "ops", *parts)) for parts in files]
    run(f"assert {set(names)} <= sys.modules.keys()")

"""One hypothesis profile and one BLAS thread for all tests: the same examples and the same bits
on every machine, however slow or busy. Every op is declared, whatever is imported first.
"""

import gc
import os
import sys

from hypothesis import settings

# What is imported and collected stays: to look for what does not took a second in each process.
gc.disable()

settings.register_profile("symgrad", deadline=None, derandomize=True)
settings.load_profile("symgrad")

# Each process that a test starts, and each worker, would compile symgrad anew; so would each run.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Read when NumPy is imported, which is later than this.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import symgrad.ops.families  # noqa: E402, F401
from symgrad.runtime.inspect import machine  # noqa: E402

# Each profile measures this machine, for a fifth of a second: no test asks how well.
machine.CALIBRATION /= 20


def pytest_addoption(parser):
    said = "of tests that go through many cases: those with this in their names"
    parser.addoption("--only", metavar="TEXT", default="", help=said)


def pytest_configure(config):
    from tests import helpers  # which imports NumPy

    helpers.only = config.getoption("only")


def pytest_collection_finish():
    """What is there stays until the end; to walk it again and again took a fifth of a run.

    What a test makes seldom outlives it: to look for it after each 700 objects is dear, and so it
    is after each 20,000.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 10, 10)
    gc.enable()

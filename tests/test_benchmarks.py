"""Each workload of the benchmarks says the same in symgrad and in NumPy by hand, at tiny sizes."""

import json
import tracemalloc
from time import perf_counter

import numpy as np
import pytest

import symgrad as sg
from benchmarks import __main__ as suite
from benchmarks import machine, tables
from benchmarks.contestant import arrays, difference
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.convolution import LeNet
from benchmarks.workloads.training import Adam
from symgrad.ir.graph import Graph
from symgrad.lowering.lower import lower
from symgrad.passes.erase_identities import erase_updates
from symgrad.rewrite.trace import Trace
from tests.helpers import each

CALLS = 3


def answers(name, contestant):
    workload = WORKLOADS[name](scale=0.02)
    run = getattr(workload, contestant)(*workload.inputs())
    return [arrays(run()) for _ in range(CALLS)]


@each("name", WORKLOADS)
def test_symgrad_and_numpy_agree(name):
    expected = answers(name, "naive")
    for contestant in ("tuned", "symgrad"):
        for found, wanted in zip(answers(name, contestant), expected, strict=True):
            assert difference(found, wanted) <= WORKLOADS[name]().tolerance, contestant


@pytest.mark.parametrize(
    "name", ["black_scholes_f32", "augmentation", "distances", "half_layer_norm"]
)
def test_machine_code_agrees_too(name):
    pytest.importorskip("llvmlite")
    for found, wanted in zip(answers(name, "symgrad_native"), answers(name, "naive"), strict=True):
        assert difference(found, wanted) <= WORKLOADS[name]().tolerance


def test_a_wrong_shape_or_nan_is_no_answer():
    assert difference(arrays([[1.0, 2.0]]), arrays([1.0])) == float("inf")
    assert difference(arrays([float("nan")]), arrays([1.0])) == float("inf")
    assert difference(arrays([1.0]), arrays([2.0])) == 0.5


def test_imports_are_timed(monkeypatch):
    monkeypatch.setattr(machine, "installed", lambda: ["numpy", "symgrad"])
    assert machine.imports(1).keys() == {"numpy", "symgrad"}


def test_a_run_becomes_tables():
    ok = {"status": "ok", "time ratio to tuned": 1.0, "time ratio to symgrad": 0.5,
          "call MiB": 1.0, "memory MiB": 2.0, "first ms": 3.0}  # fmt: skip
    own = {**ok, "time ratio to tuned": 2.0, "time ratio to symgrad": 1.0}
    contest = {
        "workload": "rosenbrock", "title": "Rosenbrock", "memory bound": False, "threads": 1,
        "load average": [0.0, 0.0],
        "contestants": {"tuned": ok, "symgrad": own, "JAX": {"status": "failed: no"}},
    }  # fmt: skip
    result = {
        "date": "2000-01-01", "rounds": 1, "scale": 1, "runs": [contest],
        "machine": {"cpu": "a", "cores": 1, "system": "b", "python": "3", "versions": {}},
        "imports": {"numpy": {"ms": 1.0, "ms ratio": 1.0}}, "sizes MiB": {"numpy": 50.0},
    }  # fmt: skip
    code = {"status": "ok", "time ratio to tuned": 0.5, "call MiB": 1.5, "memory MiB": 2.0}
    numba = {**ok, "time ratio to symgrad native": 0.8}
    both = {"tuned": {**ok, "time ratio to symgrad native": 2.0}, "symgrad": own,
            "symgrad native": code, "Numba": numba}  # fmt: skip
    with_code = tables.markdown(result | {"runs": [contest | {"contestants": both}]})
    assert "| Rosenbrock | 0.50 | 1.25 (Numba) | – | 1.50, 1.00 (Numba) | 2.00 |" in with_code
    assert "- Rosenbrock: 1.25 × Numba, aim 1" in with_code
    text = tables.markdown(json.loads(json.dumps(result | {"turns": 5})))
    assert "1 round of 5 turns" in text
    assert "| Rosenbrock | 1.00 | 2.00 | failed |" in text
    assert "- Rosenbrock: 2.00 × tuned, aim 1.05" in text
    assert "- Rosenbrock: JAX: failed: no" in text


def test_a_run_is_told_in_a_readme(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"[all](benchmarks/results/1999-12-31.md) {tables.BEGIN}old{tables.END} end")
    machine = {"cpu": "a", "cores": 1, "python": "3"}
    tables.into_readme(
        {"date": "2000-01-01 UTC", "rounds": 2, "machine": machine, "runs": []}, readme
    )
    text = readme.read_text()
    assert text.startswith(f"[all](benchmarks/results/2000-01-01.md) {tables.BEGIN}")
    assert "2 rounds" in text
    assert "old" not in text


# Contestants, by what they do when they are asked for the first time, and again.
BEGIN = """
import json, os, subprocess, sys, time
from itertools import chain
def answer(ms): print(json.dumps({"status": "ok", "ms": ms, "compile ms": 10 * ms}), flush=True)
"""
FAKES = {
    "tuned": "for i, _ in enumerate(chain([0], sys.stdin)): answer(2.0 + i)",
    "naive": "sys.stderr.write('x' * 10**6)\n"
    "for i, _ in enumerate(chain([0], sys.stdin)): answer(4.0 + 2 * i)",
    "dies first": "os._exit(9)",
    "dies later": "answer(1.0)\nos._exit(9)",
    "hangs": "answer(1.0)\nsubprocess.Popen(['sleep', '60'])\ntime.sleep(60)",
}


@pytest.fixture
def fakes(tmp_path, monkeypatch):
    """What stands in for the contestants, each of which is asked in every turn."""
    script = tmp_path / "fake.py"
    script.write_text(f"{BEGIN}\nexec({FAKES!r}[sys.argv[1]])")
    monkeypatch.setattr(suite, "SCRIPT", str(script))
    return str(tmp_path)


def test_processes_are_timed_in_turns_and_who_fails_is_out(fakes):
    begun = perf_counter()
    found = suite.rounds_of("kinked_f32", [*FAKES], 2, 3, 1, 1.0, 2.0, fakes)
    assert perf_counter() - begun < 30
    assert [[f["ms"] for f in (turn["tuned"], turn["naive"])] for turn in found] == [
        [2.0, 4.0], [3.0, 6.0], [4.0, 8.0],
    ] * 2  # fmt: skip
    assert found[0]["dies first"] == {"status": "died: 9"}
    assert [found[0]["dies later"]["status"], found[1]["dies later"]["status"]] == ["ok", "died: 9"]
    assert found[1]["hangs"] == {"status": "over 2 s"}
    assert all({*turn} == {"tuned", "naive"} for turn in found[2:])


class LeNetAdam(LeNet):
    """LeNet moved by Adam, whose moments are two more arrays for each of weights."""

    name, next = "lenet_adam", Adam.next
    b1, b2, eps = Adam.b1, Adam.b2, Adam.eps

    def inputs(self):
        data, weights = super().inputs()[:2], super().inputs()[2:]
        moments = [np.zeros_like(w) for _ in range(2) for w in weights]
        return [*data, *weights, *moments, np.zeros((), self.dtype)]


@pytest.mark.parametrize("name", [n for n in (*WORKLOADS, "lenet_adam") if n != "deep_chain"])
def test_an_optimised_program_needs_no_more_memory_than_what_was_written(name, monkeypatch):
    """At full size."""
    made, compiled = [], sg.compile
    monkeypatch.setattr(
        sg, "compile", lambda *a, **k: made.append(compiled(*a, **k, threads=1)) or made[0]
    )
    monkeypatch.setattr(np.random, "default_rng", lambda seed: Zeros())
    workload = {**WORKLOADS, "lenet_adam": LeNetAdam}[name]()
    workload.symgrad(*workload.inputs())
    (program,) = made
    written = Graph(erase_updates(program.raw, Trace()), program.raw.inputs)
    raw = lower(written, program.plan.sizes, program.store.updated)
    kept = 0 if program.kept is None else program.kept.plan.output_bytes
    assert program.plan.peak_bytes + kept <= raw.peak_bytes


class Zeros:
    """Draws nothing: plans depend on shapes only."""

    def standard_normal(self, shape, dtype="float64"):
        return np.zeros(shape, dtype)

    def integers(self, low, high=None, size=(), dtype="int64"):
        return np.zeros(size, dtype)

    def uniform(self, low, high, size):
        return np.zeros(size)


@each("name", [n for n in WORKLOADS if n != "deep_chain"])
def test_a_call_takes_the_memory_that_is_predicted(name):
    """And what Python takes, and NumPy where it copies what its loops read: 64 KiB.

    On one thread: another may still hold the last call's arrays, which are not taken again then.
    """
    made, compiled, workload = [], sg.compile, WORKLOADS[name](scale=0.1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            sg, "compile", lambda *a, **k: made.append(compiled(*a, **k, threads=1)) or made[0]
        )
        run = workload.symgrad(*workload.inputs(), backend=None)
    held = [run()]
    executable = made[0].executables.shown()
    tracemalloc.start()
    held.append(run())  # from which the spare arrays of variables are there
    executable.free.clear()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    held.append(run())
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    planned = executable.plan.peak_bytes - executable.plan.next_bytes
    assert 0 <= peak - planned < 24_000 + 2**16, name

"""A cluster of two workers gives the same bits, and goes on when one is killed."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

import symgrad as sg
from tests.helpers import generator

distributed = pytest.importorskip("distributed")


def test_a_worker_is_killed_in_an_epoch(tmp_path, monkeypatch):
    root = Path(sg.__file__).parent.parent
    monkeypatch.setenv("PYTHONPATH", f"{root}:{root / 'viz'}")
    rng = generator("cluster")
    np.save(tmp_path / "x.npy", rng.standard_normal((4000, 64), dtype="float32"))
    x = sg.placeholder("x", ("N", 64), "float32")
    w = sg.variable("w", rng.standard_normal((64, 32), dtype="float32"))
    h = sg.tanh(x @ w)
    loss = sg.sum(sg.var(h, axis=0))
    step = sg.map_reduce([x], loss, {w: w - 0.1 * sg.grad(loss, w)}, over="N")
    data = sg.chunks(x=str(tmp_path / "x.npy"), rows=256)
    start = w.value
    expected = [step(data) for _ in range(3)], w.value.tobytes()
    w.value = start
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs="CRITICAL"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        victims = [next(iter(cluster.workers.values())).process.pid]

        def kill(number, spent):
            if spent.pieces == 5 and number == 1 and victims:
                os.kill(victims.pop(), signal.SIGKILL)

        executor = client.get_executor(pure=False, retries=3)
        found = [step(data, executor=executor, progress=kill) for _ in range(3)]
        assert not victims
        assert (found, w.value.tobytes()) == expected
        assert len(step.report.rounds[0].workers) == 2

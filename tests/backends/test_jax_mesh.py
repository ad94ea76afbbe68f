"""Named dimensions shared out among devices: four that are forced on a processor."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import symgrad as sg

pytest.importorskip("jax")

ROOT = Path(__file__).parents[2]
X = sg.placeholder("x", ("N", 3))


def test_four_devices_give_what_one_gives():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    made = subprocess.run(
        [sys.executable, "-m", "tests.backends.sharded"],
        capture_output=True, text=True, cwd=ROOT, check=False, env={**os.environ, **flags},
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    found = json.loads(made.stdout)
    words = "N = 10 rows are not shared out evenly among 4 devices; feed 8 or 12"
    assert found.pop("uneven") == words
    assert found.pop("elsewhere") == [[0, 4, 8, 12, 16, 20], [[1], [2], [0, 1, 2, 3]] * 2, 6]
    assert found.pop("within a mesh") == [12] * 7
    for one, four, _ in found.values():
        np.testing.assert_allclose(four, one, rtol=1e-6)
    assert {name: count for name, (*_, count) in found.items()} == {
        "mlp": 1, "normalised": 5, "Attention": 1, "Convolution": 1, "labelled": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("shard", "words"),
    [
        ({"M": 2}, "no input has the named dimension 'M' of shard; there is 'N'"),
        ({"N": 0}, "shard['N'] is a whole number from 1 on"),
        ({"N": 4096}, "wants 4096 devices, and there are"),
        (4, "shard is a dict such as {'N': 4}, not 4"),
    ],
)
def test_what_cannot_be_shared_out(shard, words):
    with pytest.raises(sg.GraphError, match=re.escape(words)):
        sg.compile(X, X + 1, backend="jax", shard=shard)


def test_one_device_is_a_mesh_too():
    program = sg.compile(X, sg.sum(X, axis=0), backend="jax", shard={"N": 1})
    assert program(np.ones((3, 3))).tolist() == [3, 3, 3]

"""The page of laws says what they are."""

import difflib
import re

import numpy as np
import pytest

import symgrad as sg
from tools import laws_table


@pytest.mark.parametrize("path", laws_table.texts())
def test_the_page_is_that_of_the_laws(path):
    kept = path.read_text(encoding="utf-8").splitlines()
    wanted = laws_table.texts()[path].splitlines()
    stale = [*difflib.unified_diff(kept, wanted, "as it is", "as they are", n=0, lineterm="")]
    assert not stale, "\n".join([*stale[:20], "run: python -m tools.laws_table"])


@pytest.mark.parametrize("name", ["Normal", "Poisson", "StudentT", "Cauchy"])
def test_what_the_page_says_is_true(name):
    law = {"Normal": sg.stats.Normal(), "Cauchy": sg.stats.Cauchy(),
           "StudentT": sg.stats.StudentT(3.0), "Poisson": sg.stats.Poisson(2.0)}[name]  # fmt: skip
    calls = {
        "cdf": lambda: law.cdf(1.0), "quantile": lambda: law.icdf(0.3), "mean": lambda: law.mean,
        "variance": lambda: law.variance, "mode": lambda: law.mode, "entropy": law.entropy,
        "KL": lambda: sg.stats.kl(law, law),
    }  # fmt: skip
    for part, method in laws_table.PARTS.items():
        if laws_table.has(type(law), method):
            assert isinstance(calls[part](), sg.Node)
        else:
            with pytest.raises(sg.UnsupportedError, match=name):
                calls[part]()


def test_the_code_of_the_page_runs():
    (code,) = re.findall(r"```python\n(.*?)```", laws_table.PAGE.read_text("utf-8"), re.DOTALL)
    found = {}
    exec(code, found)
    program = sg.compile([found["x"]], [found["loss"], found["d_mu"], found["d_sigma"]])
    loss, d_mu, d_sigma = program(np.array([1.0, 2.0]))
    np.testing.assert_allclose([d_mu, d_sigma], [-1.5, -1.5])
    assert loss > 0

"""The README shows what its own first example prints."""

import re
import runpy
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
EXAMPLE, LISTING = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)[:2]


@pytest.fixture
def source(tmp_path, monkeypatch):
    """The program that the first block of code makes, as text."""
    assert EXAMPLE.count("range(500)") == 1
    script = tmp_path / "train.py"
    script.write_text(EXAMPLE.replace("range(500)", "range(2)"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return runpy.run_path("train.py")["step"].source


def code(text):
    """The lines without their comments."""
    lines = (re.sub(r"\s*#.*", "", line) for line in text.splitlines())
    return [line for line in lines if line]


def test_the_listing_is_what_the_example_prints(source):
    shown = code(LISTING)
    assert shown[0].startswith("def step(")
    assert shown[-1] == "    return s"
    assert shown == code(source)[-len(shown) :]

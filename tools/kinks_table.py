"""Write the table of slopes at kinks anew: `python -m tools.kinks_table`. Review what changed.

What others give is read from `kinks_peers.json`, which `tools/kinks_peers.py` records.
"""

import json
import math
import re

import symgrad as sg
from symgrad.ir.evaluate import evaluate
from tools.kinks_peers import FUNCTIONS, RECORDED
from tools.rules_table import ROOT, row, updated, write

PAGE = ROOT / "symgrad" / "autodiff" / "KINKS.md"
BEGIN, END = "<!-- kinks: begin -->", "<!-- kinks: end -->"
CHOICES = ("zero", "left", "right")


def slopes(text, choices):
    """The slopes that symgrad gives at 0, by what is chosen."""
    x = sg.placeholder("x", ())
    named = {n: getattr(sg, n) for n in re.findall(r"\b[a-z_]{2,}\b", text)}
    y = eval(text, {**named, "x": x})
    found = [sg.grad(y, x, kinks=k, disconnected="zero") for k in choices]
    return [float(g) for g in evaluate(found, {x: 0.0})]


def shown(slope, left, right):
    """A slope; in bold where it does not lie between those from both sides."""
    low, high = sorted((left, right))
    value = math.nan if slope == "NaN" else slope
    # In the single precision of others, 0.1 is another number.
    text = f"{value:.6g}"
    return text if low - 1e-6 <= value <= high + 1e-6 else f"**{text}**"


def listed(choices=CHOICES):
    """The table."""
    others = json.loads(RECORDED.read_text(encoding="utf-8"))
    yield row("function at 0", "from the left", "right", *(f'`"{k}"`' for k in choices), *others)
    yield "|---" * (len(choices) + len(others) + 3) + "|"
    for text, (left, right) in FUNCTIONS.items():
        given = [*slopes(text, choices), *(other[text] for other in others.values())]
        yield row(f"`{text}`", left, right, *(shown(s, left, right) for s in given))


def texts():
    """The page as it should be."""
    return {PAGE: updated(PAGE.read_text(encoding="utf-8"), listed(), BEGIN, END)}


if __name__ == "__main__":
    write(texts())

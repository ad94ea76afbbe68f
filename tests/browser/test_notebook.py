"""A notebook: what each kind of thing shows of itself, as a kernel of Jupyter's runs it."""

import os
from pathlib import Path

import nbclient
import nbconvert
from nbformat.v4 import new_code_cell, new_notebook

ROOT = Path(__file__).parent.parent.parent
START = """
import numpy as np
import symgrad as sg
rng = np.random.default_rng(0)
x = sg.placeholder("x", ("N", 5), "float32")
w = sg.variable("w<b>", rng.standard_normal((5, 3), dtype="float32"))
loss = sg.mean(sg.relu(x @ w) ** 2)
step = sg.compile(x, loss, updates={w: w - 0.1 * sg.grad(loss, w)})
X = rng.standard_normal((64, 5), dtype="float32")
history = sg.fit(step, sg.batches(X, size=16, key=0), epochs=3, progress=False)
"""
# An expression, and the element that its output is.
SHOWN = {
    "x": "svg", "loss": "svg", "sg.grad(loss, w)": "svg", "step": "svg", "step.plan": "svg",
    "step.trace": "table", "step.profile(X)": "table", "step.cost()": "table",
    "step.check(X * np.nan)": "table", "step.check(X)": "p", "history": "img",
    "history.plot()": "img", "step.render()": "svg", "step.story()": "svg",
    "step.explore()": "iframe", "step.why(loss)": "pre", "sg.derivation(loss, w)": "math",
}  # fmt: skip
GROUND = "e => getComputedStyle(e.closest('div')).backgroundColor"


def run(cells):
    """The cells as a notebook that was run: the data of their outputs, and a page of all."""
    meta = {"kernelspec": {"name": "python3", "display_name": "Python", "language": "python"}}
    notebook = new_notebook(cells=list(map(new_code_cell, cells)), metadata=meta)
    path = os.pathsep.join(str(ROOT / folder) for folder in ("", "viz"))
    nbclient.NotebookClient(notebook, timeout=120).execute(env={**os.environ, "PYTHONPATH": path})
    text, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    return [cell.outputs[-1].data for cell in notebook.cells if cell.outputs], text


def test_everything_shows_itself_in_a_notebook(chromium, tmp_path):
    outputs, text = run([START, *SHOWN])
    assert len(outputs) == len(SHOWN)
    assert all(data["text/plain"] for data in outputs)
    path = tmp_path / "notebook.html"
    path.write_text(text, encoding="utf-8")
    for scheme, ground in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(22, 24, 27)")):
        page = chromium.new_page(color_scheme=scheme, viewport={"width": 900, "height": 800})
        faults = []
        page.on("pageerror", lambda error, faults=faults: faults.append(str(error)))
        page.route("http**", lambda route: route.abort())
        page.goto(path.as_uri(), wait_until="domcontentloaded")
        cells = page.locator(".jp-OutputArea-child.jp-OutputArea-executeResult")
        for i, (source, kind) in enumerate(SHOWN.items()):
            box = cells.nth(i).locator(kind).first.bounding_box()
            assert 30 < box["width"] <= 900, source
            assert box["height"] > 10, source
        drawn = cells.nth(1).locator("svg")
        tooltips = drawn.locator(".node > title").all_text_contents()
        assert any("sg.mean" in said for said in tooltips), "the line of a node"
        assert any("w<b>" in said for said in tooltips), "a name is text"
        assert drawn.evaluate(GROUND) == ground
        page.frame_locator("iframe").locator("#view .node").first.wait_for(timeout=10_000)
        assert faults == []
        page.close()

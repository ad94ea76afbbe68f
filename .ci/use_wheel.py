"""Uses an installed symgrad from where nothing else is: build, differentiate, run, draw, save."""

import sys
from pathlib import Path

import numpy as np

import symgrad as sg
import symgrad_viz

home = Path(sg.__file__).parent
if Path(sys.prefix) not in home.parents:
    raise SystemExit(f"symgrad was imported from {home}, not from the environment")
for package in (home, Path(symgrad_viz.__file__).parent):
    if not (package / "py.typed").exists():
        raise SystemExit(f"{package} has no py.typed")

x = sg.placeholder("x", ("N", 3))
loss = sg.sum(sg.tanh(x) ** 2)
program = sg.compile([x], [loss, sg.grad(loss, x)])
value, gradient = program(np.ones((2, 3)))
np.testing.assert_allclose(gradient, 2 * np.tanh(1) * (1 - np.tanh(1) ** 2))
program.render("program.svg")
symgrad_viz.story(program, "story.svg")
program.explore("program.html")
program.save_source("program.py")
texts = Path("program.svg").read_text(), Path("program.py").read_text()
if "<svg" not in texts[0] or "import symgrad" in texts[1]:
    raise SystemExit("the picture or the stand-alone program is not what it should be")
if "symgrad-explorer" not in Path("program.html").read_text(encoding="utf-8"):
    raise SystemExit("the explorer's page has no data")
print(f"symgrad {sg.__version__} from {home}: loss {value:.6f}")

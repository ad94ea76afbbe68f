"""Write the ops' functions into the list of public names: `python -m tools.public_names`.

Each stands with its own module, so that type checkers know it. The other names are kept by hand.
"""

import re

from symgrad.ir.op import REGISTRY
from tools.rules_table import ROOT, write

STUB = ROOT / "symgrad" / "__init__.pyi"
LINE = re.compile(r"from (\S+) import (\S+) as \2\n")


def texts():
    """The list as it should be."""
    text = STUB.read_text(encoding="utf-8")
    REGISTRY.every()
    public = [n for n in REGISTRY.functions if REGISTRY.qualified_name(n) == f"sg.{n}"]
    functions = {n: REGISTRY.functions[n].__module__ for n in public}
    others = {n: home for home, n in LINE.findall(text) if home not in functions.values()}
    lines = [
        f"from {home} import {name} as {name}\n"
        for name, home in sorted((others | functions).items(), key=in_order)
    ]
    head, *_, tail = re.split(rf"(?:{LINE.pattern})+", text)
    return {STUB: "".join([head, *lines, tail])}


def in_order(item):
    """By module, and in it by name as ruff sorts: complex64 before complex128."""
    name, home = item
    return home, [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


if __name__ == "__main__":
    write(texts())

"""Write the table of laws anew: `python -m tools.laws_table`. Review what changed.

What a law has is read off its class: a method is its own, or that of `Law`, which refuses.
"""

import inspect

import symgrad as sg
from symgrad.stats.law import Law
from symgrad.stats.location_scale import LocationScale
from tools.rules_table import ROOT, row, updated, write

PAGE = ROOT / "symgrad" / "stats" / "README.md"
BEGIN, END = "<!-- laws: begin -->", "<!-- laws: end -->"
PARTS = {
    "cdf": "_cdf", "quantile": "_icdf", "mean": "_mean", "variance": "_variance", "mode": "_mode",
    "entropy": "_entropy", "KL": "_kl",
}  # fmt: skip


def laws():
    """Every law, by its name."""
    found = {name: getattr(sg.stats, name) for name in sg.stats.__all__}
    return {
        n: c for n, c in found.items() if inspect.isclass(c) and issubclass(c, Law) and c is not Law
    }


def has(law, method):
    """Whether a law defines a formula, itself or by those of its standard form."""
    inner = {"_cdf": "_below", "_icdf": "_quantile"}.get(method)
    if inner and issubclass(law, LocationScale):
        return getattr(law, inner) is not getattr(LocationScale, inner)
    public = method.removeprefix("_")
    return getattr(law, method) is not getattr(Law, method) or (
        public in ("cdf", "icdf") and getattr(law, public) is not getattr(Law, public)
    )


def listed():
    """The table."""
    yield row("law", "what it is", *PARTS, "gradient of draws")
    yield "|---" * (len(PARTS) + 3) + "|"
    for name, law in laws().items():
        slope = law.reparametrised
        flows = "that of its law" if isinstance(slope, property) else "✓" if slope else ""
        marks = ["✓" if has(law, method) else "" for method in PARTS.values()]
        doc = " ".join(inspect.getdoc(law).split("\n\n")[0].split())
        yield row(f"`{name}{inspect.signature(law)}`", doc, *marks, flows)


def texts():
    """The page as it should be."""
    return {PAGE: updated(PAGE.read_text(encoding="utf-8"), listed(), BEGIN, END)}


if __name__ == "__main__":
    write(texts())

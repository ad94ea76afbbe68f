"""The results of a run as tables and plots: ratios, and what they are to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.workload import COMPILERS, CONTESTANTS

OWN = "symgrad", "symgrad native", "symgrad jax"
NOT_PEERS = "tuned", "naive", "products", *OWN
STARTED = "symgrad", "PyTensor", "JAX", "torch.compile", "autograd"
Contest = dict[str, Any]


def line(contest: Contest) -> str:
    """One contest in a line, for who is waiting."""
    told = ", ".join(f"{n} {ratio(f, 'time ratio to tuned')}"
                     for n, f in contest["contestants"].items()
                     if f["status"] != "does not apply")  # fmt: skip
    by_jax = contest["contestants"].get("symgrad jax", {})
    if "time ratio to JAX" in by_jax:
        told += (
            f"; symgrad jax is {number(by_jax['time ratio to JAX'])} × JAX, compile "
            f"{number(by_jax['compile again ratio to JAX'])} ×"
        )
    return f"{contest['workload']} ×{contest['threads']}: {told}"


def ratio(figures: dict[str, Any] | None, key: str) -> str:
    if figures is None or figures["status"] == "does not apply":
        return "–"
    return number(figures[key]) if key in figures else figures["status"].partition(":")[0]


def number(x: float) -> str:
    return f"{x:.2f}" if x < 10 else f"{x:,.1f}" if x < 100 else f"{x:,.0f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


def _rounds(result: Mapping[str, Any]) -> str:
    """How often was measured, in words."""
    rounds, turns = result["rounds"], result.get("turns", 1)
    said = f"{rounds} round{'s' * (rounds != 1)}"
    return said if turns == 1 else f"{said} of {turns} turns"


def markdown(result: dict[str, Any]) -> str:
    machine, runs = result["machine"], result["runs"]
    loads = [load for r in runs for load in r["load average"]]
    versions = ", ".join(f"{n} {v}" for n, v in machine["versions"].items())
    shown = [c for c in CONTESTANTS if any(c in r["contestants"] for r in runs)]
    compilers = [c for c in shown if c in COMPILERS]
    partly = f"at {result['scale']:g} of the sizes; " if result["scale"] != 1 else ""

    where = (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}, "
        f"Python {machine['python']}; {versions}; {partly}{_rounds(result)}; load average "
        f"{min(loads):.1f} to {max(loads):.1f}. How it is counted: `benchmarks/README.md`."
    )

    def contests(columns: Sequence[str], key: str) -> str:
        rows = [[named(r), *(ratio(r["contestants"].get(c), key) for c in columns)] for r in runs]
        return table(["workload", *columns], rows)

    parts = [
        f"# Benchmarks of {result['date']}",
        where,
        "## Overview",
        overview(result),
        "## Time of a call: ratio to NumPy tuned by hand",
        contests(shown, "time ratio to tuned"),
        "## Compile time: ratio to symgrad's, caches on disk empty",
        contests(compilers, "compile ratio to symgrad"),
        "## Compile time: ratio to symgrad's, caches on disk full",
        contests(compilers, "compile again ratio to symgrad"),
        "## Memory during a call beyond inputs, MiB",
        contests(shown, "call MiB"),
        "## Memory at most, compilation included, MiB",
        contests(shown, "memory MiB"),
        "## Import and installation",
        costs(result),
        "## What did not run",
        "\n".join(f"- {failure}" for failure in failures(runs)) or "Everything ran.",
        "## Where symgrad is behind",
        "\n".join(f"- {miss}" for miss in misses(runs)) or "Nowhere.",
    ]
    return "\n\n".join(parts) + "\n"


def overview(result: dict[str, Any]) -> str:
    """Where symgrad is ahead and where it is not, in one table."""
    machine = result["machine"]
    rows = []
    for contest in result["runs"]:
        ran = {n: f for n, f in contest["contestants"].items() if f["status"] == "ok"}
        name = fastest_own(ran)
        if name is None:
            continue
        own, numpy = ran[name], ran.get("symgrad")
        peers = {n: f for n, f in ran.items() if n not in NOT_PEERS}
        ratios = {n: 1 / f[f"time ratio to {name}"] for n, f in peers.items()}
        compiles = {
            n: f[f"compile ratio to {name}"]
            for n, f in peers.items()
            if n in COMPILERS and n != "Numba"
        }
        needed = {n: f["call MiB"] for n, f in peers.items()}
        rows.append(
            [
                named(contest),
                number(own["time ratio to tuned"]),
                _best(ratios, max),
                _best(compiles, min),
                f"{number(own['call MiB'])}, {_best(needed, min)}",
                ratio(numpy, "time ratio to tuned"),
            ]
        )
    where = (
        f"{result['date']}, {machine['cpu']}, {machine['cores']} cores, Python "
        f"{machine['python']}, {_rounds(result)}. Below 1, symgrad takes less time than "
        "NumPy tuned by hand, and than the fastest peer. The fastest peer compiler takes so many "
        "times as long to compile. Memory is symgrad's, then the leanest peer's. symgrad has "
        "machine code, the extra `native`; the last column is the time of its NumPy "
        "program to tuned NumPy's."
    )
    head = (
        "workload",
        "time / tuned NumPy",
        "time / fastest peer",
        "peer's compile time / ours",
        "MiB in a call, and a peer's",
        "without machine code",
    )
    return f"{where}\n\n{table(head, rows)}"


def fastest_own(ran: dict[str, Any]) -> str | None:
    """The contestant that users have who install all of symgrad: machine code, if it ran."""
    return next((n for n in ("symgrad native", "symgrad") if n in ran), None)


def _best(found: dict[str, float], choose: Any) -> str:
    if not found:
        return "–"
    name = choose(found, key=found.__getitem__)
    return f"{number(found[name])} ({name})"


BEGIN, END = "<!-- benchmarks -->", "<!-- end of benchmarks -->"
# Of each kind of workload one stands in the README; the site has all.
SHOWN = "two_layer_64", "mlp_adam", "lenet", "black_scholes_f32", "softmax_cross_entropy"
SHOWN += "attention", "gaussian_process", "rosenbrock"


def into_readme(result: dict[str, Any], readme: Path) -> None:
    """Put the overview of some workloads, on one thread, in its place in a README, and its link."""
    runs = [r for r in result["runs"] if r["threads"] == 1 and r["workload"] in SHOWN]
    text = readme.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or not after:
        raise SystemExit(f"{readme} has no place for it: {BEGIN} … {END}")
    results = "benchmarks/results/"
    before = re.sub(rf"{results}[\d-]+\.md", f"{results}{result['date'][:10]}.md", before)
    whole = f"{before}{BEGIN}\n{overview(result | {'runs': runs})}\n{END}{after}"
    readme.write_text(whole, encoding="utf-8")


def named(contest: Contest) -> str:
    return contest["title"] + f" ({contest['threads']} threads)" * (contest["threads"] > 1)


def costs(result: dict[str, Any]) -> str:
    imports, sizes = result["imports"], result["sizes MiB"]
    numpy = imports["numpy"]["ms"]
    firsts: dict[str, list[float]] = {}
    for contest in result["runs"]:
        for name, figures in contest["contestants"].items():
            if "first ms" in figures and name in STARTED:
                firsts.setdefault(CONTESTANTS[name][1], []).append(figures["first ms"])
    rows = [
        [
            name,
            number(figures["ms ratio"]),
            number(median(firsts[name]) / numpy) if firsts.get(name) else "–",
            number(sizes[name]),
        ]
        for name, figures in imports.items()
    ]
    head = "library", "import", "a first small program", "installed with requirements, MiB"
    return "Times as ratios to the import of NumPy.\n\n" + table(head, rows)


def failures(runs: Sequence[Contest]) -> list[str]:
    return [
        f"{named(r)}: {name}: {figures['status']}"
        for r in runs
        for name, figures in r["contestants"].items()
        if figures["status"] not in ("ok", "does not apply")
    ]


def misses(runs: Sequence[Contest]) -> list[str]:
    """The figures that fall short of the aims in the README of the benchmarks."""
    return [f"{named(r)}: {miss}" for r in runs for miss in misses_of(r)]


def misses_of(contest: Contest) -> Iterator[str]:
    ran = {n: f for n, f in contest["contestants"].items() if f["status"] == "ok"}
    name = fastest_own(ran)
    if name is None:
        yield "no answer of symgrad"
        return
    own = ran[name]
    for other, figures in ran.items():
        aim = aim_for(other, contest)
        if aim is not None and 1 / figures[f"time ratio to {name}"] > aim:
            yield f"{number(1 / figures[f'time ratio to {name}'])} × {other}, aim {aim:g}"
    peers = {n: f for n, f in ran.items() if n not in NOT_PEERS}
    # Numba is given loops and gradients by hand: it is no compiler of gradients.
    compilers = {n: f for n, f in peers.items() if n in COMPILERS and n != "Numba"}
    if compilers:
        fastest = min(compilers, key=lambda n: compilers[n]["compile ms"])
        times = compilers[fastest][f"compile ratio to {name}"]
        if times < 20:
            yield f"compiles {number(times)} times faster than {fastest}, aim 20"
    if peers:
        leanest = min(peers, key=lambda n: peers[n]["call MiB"])
        least = peers[leanest]["call MiB"]
        if own["call MiB"] > least + 1:  # allocators round
            yield f"{number(own['call MiB'])} MiB in a call, {leanest} {number(least)}"


def aim_for(name: str, contest: Contest) -> float | None:
    """The largest ratio of symgrad's time to this contestant's that is aimed at."""
    if name == "naive" or name in OWN:
        return None
    if name == "products":
        return 1.1 if contest["workload"].startswith("two_layer") else None
    return 1.05 if name == "tuned" else 1


def plots(result: dict[str, Any], stem: Path) -> None:
    """Bars of the ratios, one picture for time and one for compiling."""
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError:
        print("matplotlib is not installed: no plots")
        return
    runs = result["runs"]
    for what, key, columns in (
        ("time", "time ratio to tuned", list(CONTESTANTS)),
        ("compile", "compile ratio to symgrad", list(COMPILERS)),
    ):
        figure, axes = pyplot.subplots(figsize=(10, 1 + len(runs) * 0.7), layout="constrained")
        height = 0.85 / len(columns)
        for i, column in enumerate(columns):
            points = [
                (y + i * height, r["contestants"][column][key])
                for y, r in enumerate(runs)
                if key in r["contestants"].get(column, {})
            ]
            if points:
                axes.barh(*zip(*points, strict=True), height=height, label=column)
        axes.set_yticks([y + 0.4 for y in range(len(runs))], [named(r) for r in runs])
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set_xlabel(key)
        axes.legend(fontsize="small")
        figure.savefig(f"{stem}-{what}.png", dpi=120)
        pyplot.close(figure)

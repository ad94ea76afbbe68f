"""Fits the polynomials of symgrad/native's functions, and writes them into its coefficients.py.

Each is the minimax polynomial of a weighted error (Remez's exchange, in 60 digits), of the least
degree whose error is a sixteenth of a unit in the last place. It needs mpmath:

    python -m tools.fit_functions
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp, mpf

mp.dps = 60
TARGET = Path(__file__).parent.parent / "symgrad" / "native" / "coefficients.py"
# What the error may be, relative to the function: a sixteenth of a rounding, and a little room.
GOALS = {"f4": mpf(2) ** -28, "f8": mpf(2) ** -57}


class Fit(NamedTuple):
    """`function` on an interval; its error counts times `weight`, as part of the whole result."""

    function: Callable[[Any], Any]
    low: Any
    high: Any
    weight: Callable[[Any], Any]


def odd(function: Callable[[Any], Any], bound: Any) -> Fit:
    """f(x) = x + x z P(z), with z = x², for |x| up to a bound."""

    def rest(z: Any) -> Any:
        x = mp.sqrt(z)
        return (function(x) - x) / (x * z)

    return Fit(rest, mpf(0), mpf(bound) ** 2, lambda z: mp.sqrt(z) * z / function(mp.sqrt(z)))


def _log(z: Any) -> Any:
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s - 2) / z


def _erfcx(q: Any) -> Any:
    a = 2 * (1 + q) / (1 - q)
    if a > 1e8:
        return (1 + 2 * a) / (a * mp.sqrt(mp.pi)) * (1 - 1 / (2 * a * a))
    with mp.workdps(90):
        # By the continued fraction where exp(a * a) would have too many digits.
        scaled = mp.exp(a * a) * mp.erfc(a) if a < 20 else _tail(a)
    return (1 + 2 * a) * scaled


def _tail(a: Any) -> Any:
    found = mpf(0)
    for n in range(400, 0, -1):
        found = mpf(n) / 2 / (a + found)
    return 1 / (a + found) / mp.sqrt(mp.pi)


def normal_tail(far: str) -> Fit:
    """(a + 2) exp(a²/2) ndtr(-a) = P(q), with q = (a - 2) / (a + 2), for a from 0 to `far`."""

    def function(q: Any) -> Any:
        a = 2 * (1 + q) / (1 - q)
        b = a / mp.sqrt(2)
        return (a + 2) / (1 + 2 * b) * _erfcx((b - 2) / (b + 2)) / 2

    high = (mpf(far) - 2) / (mpf(far) + 2)
    return Fit(function, mpf(-1), high, lambda q: 1 / function(q))


HALF_LN2 = mp.log(2) / 2 * mpf("1.0001")
QUARTER_PI = mp.pi / 4 * mpf("1.0001")
FITS = {
    # exp(r) = 1 + r + r² P(r)
    "exp": Fit(lambda r: (mp.expm1(r) - r) / r**2, -HALF_LN2, HALF_LN2, lambda r: r**2 / mp.exp(r)),
    # log((1 + s) / (1 - s)) = 2 s + s z P(z), with z = s²
    "log": Fit(_log, mpf(0), (3 - 2 * mp.sqrt(2)) ** 2 * mpf("1.0001"), lambda z: z / 2),
    # The same without its first term: P(z) = 2 / 3 + z Q(z)
    "log_rest": Fit(
        lambda z: (_log(z) - mpf(2) / 3) / z,
        mpf(0),
        (3 - 2 * mp.sqrt(2)) ** 2 * mpf("1.0001"),
        lambda z: z**2 / 2 * mpf(2) ** 10,
    ),
    # log(1 + f) = f + f² P(f)
    "log1p": Fit(
        lambda f: (mp.log1p(f) - f) / f**2,
        mp.sqrt(mpf(1) / 2) * mpf("0.9999999") - 1,
        mp.sqrt(2) * mpf("1.0000001") - 1,
        lambda f: abs(f**2 / mp.log1p(f)),
    ),
    "sin": odd(mp.sin, QUARTER_PI),
    # cos(r) = 1 - z / 2 + z² P(z), with z = r²
    "cos": Fit(
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
        mpf(0),
        QUARTER_PI**2,
        lambda z: z**2 / mp.cos(mp.sqrt(z)),
    ),
    "sinh": odd(mp.sinh, 1),
    "tanh": odd(mp.tanh, mpf("0.55")),
    "asin": odd(mp.asin, mpf("0.5001")),
    "asinh": odd(mp.asinh, mpf("0.5001")),
    "atanh": odd(mp.atanh, mpf("0.5001")),
    "atan": odd(mp.atan, mpf("0.4143")),
    "erf": odd(mp.erf, 1)._replace(
        function=lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        weight=lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
    ),
    # (1 + 2 a) exp(a²) erfc(a) = P(q), with q = (a - 2) / (a + 2), for all a >= 0
    "erfcx": Fit(_erfcx, mpf(-1), mpf(1) - mpf(10) ** -9, lambda q: 1 / _erfcx(q)),
    "tail": normal_tail("38.6"),
    "short_tail": normal_tail("14.5"),
    # The derivative of erfcx by q, to three digits, for the error of q
    "erfcx_slope": Fit(
        lambda q: mp.diff(_erfcx, q, h=mpf(10) ** -15),
        mpf("-0.9999"),
        mpf("0.9999"),
        lambda q: mpf(2) ** -45,
    ),
    # erf(a) = 1 - exp(-a - a P(a)), for the range in which it is not 1 in float32
    "log_erfc": Fit(
        lambda a: -mp.log(mp.erfc(a)) / a - 1,
        mpf("0.9"),
        mpf("4.1"),
        lambda a: a * mp.erfc(a),
    ),
}
# The root of digamma, and how far around it and around 1 and 2 it and gammaln are polynomials.
ROOT = mp.findroot(mp.digamma, mpf("1.4616321449683623"))
NEAR = mpf("0.799"), mpf("2.301")
LARGEST = mpf("8.299") ** -2


def _stirling(z: Any) -> Any:
    return (z - mpf(1) / 2) * mp.log(z) - z + mp.log(2 * mp.pi) / 2


FITS |= {
    # log(gamma(t + 3 / 2)) = (t + 1 / 2) (t - 1 / 2) P(t)
    "gammaln": Fit(
        lambda t: mp.loggamma(t + mpf("1.5")) / (t * t - mpf("0.25")),
        NEAR[0] - mpf("1.5"),
        NEAR[1] - mpf("1.5"),
        lambda t: mpf(2),
    ),
    # log(gamma(z)) = Stirling's formula + P(w) / z, with w = 1 / z²
    "gammaln_tail": Fit(
        lambda w: (mp.loggamma(1 / mp.sqrt(w)) - _stirling(1 / mp.sqrt(w))) / mp.sqrt(w),
        mpf(10) ** -20,
        LARGEST,
        lambda w: mp.sqrt(w) * 7,
    ),
    # digamma(t + root) = t P(t)
    "digamma": Fit(
        lambda t: mp.digamma(t + ROOT) / t, NEAR[0] - ROOT, NEAR[1] - ROOT, lambda t: mpf(2)
    ),
    # digamma(z) = log(z) - 1 / (2 z) - w P(w)
    "digamma_tail": Fit(
        lambda w: (-mp.log(w) / 2 - mp.sqrt(w) / 2 - mp.digamma(1 / mp.sqrt(w))) / w,
        mpf(10) ** -12,
        LARGEST,
        lambda w: w * 2,
    ),
    # pi cot(pi r) = 1 / r - r P(z), with z = r²
    "cotangent": Fit(
        lambda z: (1 / mp.sqrt(z) - mp.pi * mp.cot(mp.pi * mp.sqrt(z))) / mp.sqrt(z),
        mpf(10) ** -12,
        mpf("0.2501"),
        lambda z: mp.sqrt(z),
    ),
}
KINDS = {
    "log_erfc": ("f4",),
    "log_rest": ("f8",),
    "log1p": ("f4",),
    "erfcx_slope": ("f8",),
    "tail": ("f8",),
    "short_tail": ("f4",),
}
# Those of which it counts what their constant loses by rounding.
CORRECTED = ("erfcx", "tail", "short_tail", "gammaln", "digamma")
# Those whose slope is a float, so that its rounding is not seen: the rest is fitted to it.
ROUNDED = ("tail", "short_tail")


def remez(fit: Fit, degree: int) -> tuple[list[Any], Any]:
    """The minimax polynomial of a degree, its highest coefficient last, and its weighted error."""
    count = degree + 2
    low, high = fit.low, fit.high
    tiny = (high - low) * mpf(10) ** -14

    def place(t: Any) -> Any:
        return min(max((low + high) / 2 + (high - low) / 2 * t, low + tiny), high - tiny)

    grid = [place(-mp.cos(mp.pi * i / (16 * count))) for i in range(16 * count + 1)]
    values = [fit.function(x) for x in grid]
    weights = [fit.weight(x) for x in grid]
    chosen = [round(i * 16 * count / (count - 1)) for i in range(count)]
    best: tuple[list[Any], Any] = [], mpf(10)
    for _ in range(12):
        rows = mp.matrix(count, count)
        right = mp.matrix(count, 1)
        for i, k in enumerate(chosen):
            for j in range(degree + 1):
                rows[i, j] = grid[k] ** j
            # Where the weight is nothing, so is the error that it allows.
            rows[i, degree + 1] = (-1) ** i / max(weights[k], mpf(10) ** -20)
            right[i] = values[k]
        found = list(mp.lu_solve(rows, right))
        errors = [
            (mp.polyval(found[degree::-1], x) - v) * w
            for x, v, w in zip(grid, values, weights, strict=True)
        ]
        worst = max(map(abs, errors))
        if worst < best[1]:
            best = found[: degree + 1], worst
        if worst < abs(found[-1]) * mpf("1.02"):
            break
        chosen = _extrema(errors, count)
        if len(chosen) < count:
            break
    return best


def with_slope(fit: Fit, found: list[Any], slope: float) -> list[Any]:
    """The same constant, another slope, and the minimax polynomial for what is left of them."""
    start = [found[0], mpf(slope)]
    rest = Fit(
        lambda x: (fit.function(x) - start[0] - start[1] * x) / x**2,
        fit.low,
        fit.high,
        lambda x: fit.weight(x) * x**2,
    )
    return start + remez(rest, len(found) - 3)[0]


def _extrema(errors: list[Any], count: int) -> list[int]:
    """Where the error is largest between its changes of sign: `count` neighbours of these."""
    runs: list[int] = []
    for i, e in enumerate(errors):
        if runs and (e > 0) == (errors[runs[-1]] > 0):
            if abs(e) > abs(errors[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    while len(runs) > count:
        runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
    return runs


def fitted(name: str, kind: str) -> list[Any]:
    """The coefficients of the least degree that reaches the goal, the highest first."""
    for degree in range(1, 32):
        found, error = remez(FITS[name], degree)
        if error < GOALS[kind]:
            if name in ROUNDED:
                slope = float(np.dtype(kind).type(found[1]))
                return with_slope(FITS[name], found, slope)[::-1]
            return found[::-1]
    raise ValueError(f"{name}: no polynomial is good enough for {kind}")


def parts(value: Any, bits: tuple[int, ...]) -> list[float]:
    """A number as a sum of floats, the first ones rounded down to so many bits."""
    found = []
    for n in bits:
        scale = mpf(2) ** (n - 1 - mp.floor(mp.log(abs(value), 2)))
        part = mp.nint(value * scale) / scale
        found.append(float(part))
        value -= part
    return found


CONSTANTS = {
    "LN2": (mp.log(2), (32, 53, 53)),
    "LN2_F4": (mp.log(2), (16, 24, 24)),
    "LOG2E": (1 / mp.log(2), (53, 53)),
    "TWO_THIRDS": (mpf(2) / 3, (53, 53)),
    "LOG10E": (1 / mp.log(10), (53, 53)),
    "LOG10_2": (mp.log(2) / mp.log(10), (32, 53)),
    "LOG2E_F4": (1 / mp.log(2), (24, 24)),
    "LOG10E_F4": (1 / mp.log(10), (24, 24)),
    "LOG10_2_F4": (mp.log(2) / mp.log(10), (16, 24)),
    # So many bits that its product with a quotient of 20 bits is exact.
    "HALF_PI": (mp.pi / 2, (33, 33, 53, 53)),
    "HALF_PI_F4": (mp.pi / 2, (12, 12, 24, 24)),
    "HALF_PI_SUM": (mp.pi / 2, (53, 53)),
    "SQRT_HALF": (mp.sqrt(mpf(1) / 2), (53, 53)),
    "TWO_OVER_ROOT_PI": (2 / mp.sqrt(mp.pi), (53, 53)),
    "HALF_LOG_TWO_PI": (mp.log(2 * mp.pi) / 2, (53, 53)),
    "LOG_PI": (mp.log(mp.pi), (53, 53)),
    "DIGAMMA_ROOT": (ROOT, (53, 53)),
}


def text() -> str:
    """The whole file."""
    lines = [
        '"""Coefficients of the functions; written by tools/fit_functions.py, which tells of what.',
        "",
        "Polynomials have their highest coefficient first. `f4` and `f8` say for which accuracy.",
        '"""',
        "",
        "# fmt: off",
        "from collections.abc import Mapping",
        "",
        "POLYNOMIALS: Mapping[tuple[str, str], tuple[float, ...]] = {",
    ]
    lost = {}
    for name in FITS:
        for kind in KINDS.get(name, ("f4", "f8")):
            found = fitted(name, kind)
            lines.append(f'    ("{name}", "{kind}"): (')
            rows = [[float(c) for c in found[i : i + 3]] for i in range(0, len(found), 3)]
            lines += [f"        {', '.join(map(repr, row))}," for row in rows]
            lines.append("    ),")
            lost[name] = float(found[-1] - float(np.dtype(kind).type(found[-1])))
    lines += ["}", "# What the last coefficient of some has lost by rounding."]
    lines += [
        "LOST: Mapping[str, float] = {",
        *(f'    "{name}": {lost[name]!r},' for name in CORRECTED),
        "}",
        "# Constants as sums of floats, the largest first.",
    ]
    for name, (value, bits) in CONSTANTS.items():
        found = ", ".join(map(repr, parts(value, bits)))
        line = f"{name} = ({found})"
        if len(line) > 100:
            line = f"{name} = (\n" + "".join(f"    {p!r},\n" for p in parts(value, bits)) + ")"
        lines.append(line)
    words = int(mp.floor(2 / mp.pi * mpf(2) ** 1280)) if mp.dps > 400 else _two_over_pi()
    lines += [
        "# 2 / pi in binary, 64 digits a word, the first after the point.",
        "TWO_OVER_PI = (",
        *(f"    0x{words >> (1216 - 64 * i) & (2**64 - 1):016X}," for i in range(20)),
        ")",
    ]
    return "\n".join(lines) + "\n"


def _two_over_pi() -> int:
    with mp.workdps(420):
        return int(mp.floor(2 / mp.pi * mpf(2) ** 1280))


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")

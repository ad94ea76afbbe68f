"""Formulas as trees, and three writers of them: LaTeX, MathML and plain text.

A tree is made once, by `notation.py`. Each writer escapes what users named: no name can end a
formula, or begin a command or an element.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

from symgrad_viz.words import printable, shortened

LOOSE, COMPARED, ADDED, MULTIPLIED, MATMUL, RAISED, ATOM = 0, 1, 6, 7, 8, 9, 10
LONGEST = 40  # letters of a name
Kind = Literal[
    "name", "number", "word", "sign", "row", "fence", "frac", "sup", "sub", "bar", "hat", "root"
]


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a formula: of a kind, with a text or parts, and how strongly it binds."""

    kind: Kind
    parts: tuple[Term, ...] = ()
    text: str = ""
    strength: int = ATOM

    @property
    def size(self) -> int:
        """How many names, numbers and signs it has."""
        return sum(p.size for p in self.parts) if self.parts else 1


class _Sign(NamedTuple):
    latex: str
    plain: str


GREEK: Mapping[str, str] = MappingProxyType(
    {
        "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η",
        "theta": "θ", "kappa": "κ", "lambda": "λ", "lam": "λ", "mu": "μ", "nu": "ν", "xi": "ξ",
        "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "chi": "χ", "psi": "ψ",
        "omega": "ω",
    }
)  # fmt: skip
SIGNS: Mapping[str, _Sign] = MappingProxyType(
    {
        "+": _Sign("+", " + "), "−": _Sign("-", " - "), "negative": _Sign("-", "-"),
        "⊙": _Sign(r"\odot ", " * "), "·": _Sign(r"\cdot ", " * "), " ": _Sign(r"\,", " "),
        "=": _Sign("=", " = "), "<": _Sign("<", " < "), ">": _Sign(">", " > "),
        "≤": _Sign(r"\leq ", " <= "), "≥": _Sign(r"\geq ", " >= "), "≠": _Sign(r"\neq ", " != "),
        "∧": _Sign(r"\wedge ", " and "), "∨": _Sign(r"\vee ", " or "), "¬": _Sign(r"\neg ", "not "),
        "⊤": _Sign(r"\top", "T"), "∑": _Sign(r"\sum ", "sum "), "∂": _Sign(r"\partial ", "d"),
        "∇": _Sign(r"\nabla ", "grad "), ",": _Sign(",\\;", ", "), "∞": _Sign(r"\infty ", "inf"),
        "…": _Sign(r"\ldots ", "..."), ";": _Sign(";\\;", "; "), ":": _Sign("{:}", ":"),
    }
)  # fmt: skip
FENCES: Mapping[str, tuple[str, str, str, str]] = MappingProxyType(
    {
        "()": (r"\left(", r"\right)", "(", ")"),
        "[]": (r"\left[", r"\right]", "[", "]"),
        "||": (r"\left|", r"\right|", "|", "|"),
        "‖‖": (r"\left\Vert ", r"\right\Vert ", "‖", "‖"),
        "⟨⟩": (r"\left\langle ", r"\right\rangle ", "⟨", "⟩"),
    }
)


def name(text: str) -> Term:
    """A user's name, whatever it is."""
    return Term("name", text=shortened(text, LONGEST))


def number(text: str) -> Term:
    """A number, as Python writes it: `1e-06` is a power of ten."""
    if text in ("inf", "-inf"):
        infinite = sign("∞")
        return negated(infinite) if text[0] == "-" else infinite
    mantissa, _, exponent = text.partition("e")
    mantissa = mantissa.removesuffix(".0")
    if mantissa.startswith("-"):
        return negated(number(text[1:]))
    if not exponent:
        return Term("number", text=mantissa)
    power = raised(Term("number", text="10"), number(str(int(exponent))))
    return power if mantissa == "1" else row(number(mantissa), "·", power, strength=MULTIPLIED)


def word(text: str) -> Term:
    """The name of a function, upright."""
    return Term("word", text=text)


def sign(text: str) -> Term:
    """One of `SIGNS`."""
    return Term("sign", text=text)


def row(*parts: Term | str, strength: int) -> Term:
    """Terms side by side; a text is a sign."""
    return Term("row", tuple(sign(p) if isinstance(p, str) else p for p in parts), "", strength)


def fence(inside: Term, kind: str = "()") -> Term:
    """A term in brackets of a kind."""
    return Term("fence", (inside,), kind)


def bound(term: Term, strength: int) -> Term:
    """A term, in brackets if it binds less than that."""
    return term if term.strength >= strength else fence(term)


def raised(base: Term, power: Term) -> Term:
    """A power, or what else stands above."""
    return Term("sup", (bound(base, ATOM), power), "", RAISED)


def negated(term: Term) -> Term:
    """A term with its sign changed."""
    return row("negative", bound(term, MULTIPLIED), strength=ADDED)


def listed(*terms: Term) -> Term:
    """Terms with commas between them."""
    inside: list[Term | str] = []
    for term in terms:
        inside += [",", term] if inside else [term]
    return row(*inside, strength=LOOSE)


def called(function: Term, *arguments: Term) -> Term:
    """A function of some arguments."""
    return row(function, fence(listed(*arguments)), strength=ATOM)


# ---- names --------------------------------------------------------------------------------------


def _named(text: str) -> tuple[str, str]:
    """The stem of a name and its number: `w1` and `hidden_2` have one."""
    found = re.fullmatch(r"([A-Za-zα-ω]+?)_?([0-9]{1,4})", text)
    return (found[1], found[2]) if found else (text, "")


# ---- LaTeX --------------------------------------------------------------------------------------

_SIGNS_IN_NAMES: Mapping[str, str] = MappingProxyType(
    {
        **{letter: rf"\{said} " for said, letter in GREEK.items() if said != "lam"},
        "$": r"\$", "#": r"\#", "%": r"\%", "_": r"\_", " ": r"\ ",
        **dict.fromkeys('\\{}&^~`"', "?"),
    }
)  # fmt: skip
_TEXT: Mapping[str, str] = MappingProxyType(
    {
        **{letter: rf"$\{said}$" for said, letter in GREEK.items() if said != "lam"},
        **{c: f"\\{c}" for c in "{}$&#%_"},
        "\\": r"\textbackslash{}", "^": r"\^{}", "~": r"\~{}", "→": r"$\to$", '"': "''", "`": "'",
        "<": r"\textless{}", ">": r"\textgreater{}", "·": r"$\cdot$", "⊙": r"$\odot$", "−": "$-$",
        "∇": r"$\nabla$", "|": r"\textbar{}", "×": r"$\times$", "²": "$^2$",
        "ᵀ": r"$^{\top}$", "ᵃ": "$^a$", "⁻": "$^{-}$", "¹": "$^1$", "√": r"$\surd$",
        "…": r"\ldots{}",
    }
)  # fmt: skip


def latex(term: Term) -> str:
    """A formula in LaTeX's mathematical mode, which needs the package amsmath."""
    parts = term.parts
    match term.kind:
        case "name":
            stem, digits = _named(term.text)
            return _latex_stem(stem) + (f"_{{{digits}}}" if digits else "")
        case "number":
            return term.text
        case "word":
            return rf"\operatorname{{{_in_math(term.text)}}}"
        case "sign":
            return SIGNS[term.text].latex
        case "row":
            return "".join(f"{{{latex(p)}}}" if p.kind == "row" else latex(p) for p in parts)
        case "fence":
            left, right, _, _ = FENCES[term.text]
            return f"{left}{latex(parts[0])}{right}"
        case "frac":
            return rf"\frac{{{latex(parts[0])}}}{{{latex(parts[1])}}}"
        case "sup":
            return f"{{{latex(parts[0])}}}^{{{latex(parts[1])}}}"
        case "sub":
            return f"{{{latex(parts[0])}}}_{{{latex(parts[1])}}}"
        case "root":
            return rf"\sqrt{{{latex(parts[0])}}}"
        case "bar" | "hat":
            inner, digits = _below(parts[0])
            wide = inner.kind == "name" and len(_letter(_named(inner.text)[0])) > 1
            command = {"bar": ("bar", "overline"), "hat": ("hat", "widehat")}[term.kind][wide]
            stem = _latex_stem(_named(inner.text)[0]) if inner.kind == "name" else latex(inner)
            return rf"\{command}{{{stem}}}" + (f"_{{{digits}}}" if digits else "")


def _below(term: Term) -> tuple[Term, str]:
    """The part below an accent, and the number of the name, which stands beside it."""
    if term.kind in ("bar", "hat"):
        inner, digits = _below(term.parts[0])
        return Term(term.kind, (inner,)), digits
    if term.kind == "name":
        stem, digits = _named(term.text)
        return name(stem), digits
    return term, ""


def _letter(stem: str) -> str:
    return GREEK.get(stem, stem)


def _latex_stem(stem: str) -> str:
    if _letter(stem) in _SIGNS_IN_NAMES and _letter(stem) in GREEK.values():
        return _SIGNS_IN_NAMES[_letter(stem)]
    return stem if len(stem) == 1 and stem.isascii() and stem.isalpha() else (
        rf"\mathit{{{_in_math(stem)}}}"
    )  # fmt: skip


def _in_math(text: str) -> str:
    """Any text as letters in mathematical mode; what LaTeX cannot write is a question mark."""
    safe = (_SIGNS_IN_NAMES.get(c, c if " " <= c < "\x7f" else "?") for c in text)
    return "".join(safe) or "?"


def latex_text(text: str) -> str:
    """Any text outside of mathematical mode."""
    plain = printable(text)
    return "".join(_TEXT.get(c, c if " " <= c < "\x7f" else "?") for c in plain)


# ---- MathML -------------------------------------------------------------------------------------


def mathml(term: Term) -> str:
    """A formula as presentation MathML, which browsers draw by themselves."""
    return f'<math displaystyle="true">{_mathml(term)}</math>'


def _mathml(term: Term) -> str:
    parts = [_mathml(p) for p in term.parts]
    match term.kind:
        case "name":
            stem, digits = _named(term.text)
            return _with_number(f"<mi>{_said(_letter(stem))}</mi>", digits)
        case "number":
            return f"<mn>{_said(term.text)}</mn>"
        case "word":
            return f'<mi mathvariant="normal">{_said(term.text)}</mi>'
        case "sign":
            return _mathml_sign(term.text)
        case "row":
            return f"<mrow>{''.join(parts)}</mrow>"
        case "fence":
            _, _, left, right = FENCES[term.text]
            return (
                f'<mrow><mo fence="true">{left}</mo>{parts[0]}<mo fence="true">{right}</mo></mrow>'
            )
        case "frac":
            return f"<mfrac>{''.join(parts)}</mfrac>"
        case "sup":
            return f"<msup>{''.join(parts)}</msup>"
        case "sub":
            return f"<msub>{''.join(parts)}</msub>"
        case "root":
            return f"<msqrt>{parts[0]}</msqrt>"
        case "bar" | "hat":
            inner, digits = _below(term.parts[0])
            mark = {"bar": "‾", "hat": "^"}[term.kind]
            # As an accent a bar would strike through small letters in many fonts.
            over = f'<mover>{_mathml(inner)}<mo stretchy="false">{mark}</mo></mover>'
            return _with_number(over, digits)


def _with_number(base: str, digits: str) -> str:
    return f"<msub>{base}<mn>{digits}</mn></msub>" if digits else base


def _mathml_sign(text: str) -> str:
    if text == " ":
        return '<mspace width="0.22em"></mspace>'
    if text == "negative":
        return '<mo form="prefix">−</mo>'
    large = ' largeop="false"' if text == "∑" else ""
    return f"<mo{large}>{html.escape(text)}</mo>"


def _said(text: str) -> str:
    return html.escape(printable(text))


# ---- plain text ---------------------------------------------------------------------------------


def plain(term: Term) -> str:
    """A formula in one line of text."""
    parts = [plain(p) for p in term.parts]
    match term.kind:
        case "name" | "number" | "word":
            return printable(term.text)
        case "sign":
            return SIGNS[term.text].plain
        case "row":
            return "".join(parts)
        case "fence":
            _, _, left, right = FENCES[term.text]
            return f"{left}{parts[0]}{right}"
        case "frac":
            over, under = (plain(bound(p, RAISED)) for p in term.parts)
            return f"{over}/{under}"
        case "sup":
            return f"{parts[0]}^{plain(bound(term.parts[1], RAISED))}"
        case "sub":
            plainly = re.fullmatch(r"\w+", parts[1])
            return f"{parts[0]}_{parts[1]}" if plainly else f"{parts[0]}[{parts[1]}]"
        case "root":
            return f"sqrt({parts[0]})"
        case "bar":
            return f"{parts[0]}'"
        case "hat":
            return f"{parts[0]}^"


def letters(taken: Iterable[str]) -> Iterable[str]:
    """Names for what has none: `z1`, `z2`, …, but for those that are taken."""
    used = {*taken}
    return (n for k in range(1, 10**9) if (n := f"z{k}") not in used)

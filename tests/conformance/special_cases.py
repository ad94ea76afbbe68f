"""The special cases of the array API standard's elementwise functions, version 2024.12, as data.

A line is a function and its cases, `operands: result`. An operand is a number or the name of a set
of numbers; a result is an expression of x (or x1 and x2; a and b for the parts of a complex x), or
several that the standard lets a library choose from, with `|` between them. A result that begins
with `±` may have either sign.
"""

import itertools
import math

TINY, BIG = 2.0**-40, 2.0**40
POSITIVE = (TINY, 0.5, 1.0, 1.5, 3.0, BIG)
NEGATIVE = tuple(-v for v in POSITIVE)
ZEROS, INFINITIES, NAN = (0.0, -0.0), (math.inf, -math.inf), (math.nan,)
SETS = {
    "0s": ZEROS,
    "infs": INFINITIES,
    "nan": NAN,
    "-nan": (-math.nan,),
    "+": POSITIVE,
    "-": NEGATIVE,
    "pos": (*POSITIVE, math.inf),
    "neg": (*NEGATIVE, -math.inf),
    "nonzero": POSITIVE + NEGATIVE,
    "finite": POSITIVE + NEGATIVE + ZEROS,
    "number": POSITIVE + NEGATIVE + ZEROS + INFINITIES,
    "any": POSITIVE + NEGATIVE + ZEROS + INFINITIES + NAN,
    "not1": (TINY, 0.5, 1.5, 3.0, *NEGATIVE, *ZEROS, *INFINITIES, math.nan),
    "not0": (*POSITIVE, *NEGATIVE, *INFINITIES, math.nan),
    ">1": (1.5, 3.0, BIG, math.inf),
    "<1": (0.5, 0.0, -0.0, -1.0, -3.0, -math.inf),
    "<-1": (-1.5, -3.0, -BIG, -math.inf),
    "|>1|": (1.5, 3.0, BIG, math.inf, -1.5, -3.0, -BIG, -math.inf),
    "|<1|": (TINY, 0.5, -TINY, -0.5, 0.0, -0.0),
    "|1|": (1.0, -1.0),
    "odd": (1.0, 3.0, 7.0),
    "-odd": (-1.0, -3.0, -7.0),
    "notodd": (2.0, 4.0, 0.5, 1.5, math.inf),
    "-notodd": (-2.0, -4.0, -0.5, -1.5, -math.inf),
    "fraction": (0.5, -0.5, 1.5, 2.25),
    "whole": (1.0, -1.0, 7.0, -BIG),
}

REAL = """
abs          nan: nan; -0: 0; 0: 0; infs: inf
acos         nan: nan; >1: nan; <-1: nan; 1: 0
acosh        nan: nan; <1: nan; 1: 0; inf: inf
add          nan,any: nan; any,nan: nan; inf,-inf: nan; -inf,inf: nan; inf,inf: inf
add          -inf,-inf: -inf; infs,finite: x1; finite,infs: x2; -0,-0: -0.0; -0,0: 0; 0,-0: 0
add          0,0: 0; 0s,nonzero: x2; nonzero,0s: x1
asin         nan: nan; >1: nan; <-1: nan; 0s: x
asinh        nan: nan; 0s: x; infs: x
atan         nan: nan; 0s: x; inf: pi/2; -inf: -pi/2
atan2        nan,any: nan; any,nan: nan; pos,0s: pi/2; 0,pos: 0; 0,0: 0; 0,-0: pi; 0,neg: pi
atan2        -0,pos: -0.0; -0,0: -0.0; -0,-0: -pi; -0,neg: -pi; neg,0s: -pi/2; +,inf: 0
atan2        +,-inf: pi; -,inf: -0.0; -,-inf: -pi; inf,finite: pi/2; -inf,finite: -pi/2
atan2        inf,inf: pi/4; inf,-inf: 3*pi/4; -inf,inf: -pi/4; -inf,-inf: -3*pi/4
atanh        nan: nan; <-1: nan; >1: nan; -1: -inf; 1: inf; 0s: x
ceil         whole: x; infs: x; 0s: x; nan: nan
copysign     any,neg: -abs(x1); any,-0: -abs(x1); any,0: abs(x1); any,pos: abs(x1)
copysign     number,nan: abs(x1); number,-nan: -abs(x1)
cos          nan: nan; 0s: 1; infs: nan
cosh         nan: nan; 0s: 1; infs: inf
divide       nan,any: nan; any,nan: nan; infs,infs: nan; 0s,0s: nan; 0,pos: 0; -0,pos: -0.0
divide       0,neg: -0.0; -0,neg: 0; pos,0: inf; pos,-0: -inf; neg,0: -inf; neg,-0: inf
divide       infs,+: x1; infs,-: -x1; +,inf: 0; +,-inf: -0.0; -,inf: -0.0; -,-inf: 0
equal        nan,any: False; any,nan: False; inf,inf: True; -inf,-inf: True; 0s,0s: True
equal        infs,finite: False; finite,infs: False; inf,-inf: False; finite,finite: x1 == x2
exp          nan: nan; 0s: 1; inf: inf; -inf: 0
expm1        nan: nan; 0s: x; inf: inf; -inf: -1
floor        whole: x; infs: x; 0s: x; nan: nan
floor_divide nan,any: nan; any,nan: nan; infs,infs: nan; 0s,0s: nan; 0,pos: 0; -0,pos: -0.0
floor_divide 0,neg: -0.0; -0,neg: 0; pos,0: inf; pos,-0: -inf; neg,0: -inf; neg,-0: inf
floor_divide infs,+: x1; infs,-: -x1; +,inf: 0; +,-inf: -0.0; -,inf: -0.0; -,-inf: 0
floor_divide 7,3: 2; -7,3: -3; 7,-3: -3; -7,-3: 2
greater      nan,any: False; any,nan: False
greater_equal nan,any: False; any,nan: False
hypot        infs,any: inf; any,infs: inf; 0s,any: abs(x2); any,0s: abs(x1); finite,nan: nan
hypot        nan,nan: nan; nan,finite: nan
isfinite     infs: False; nan: False; finite: True
isinf        infs: True; finite: False; nan: False
isnan        nan: True; number: False
less         nan,any: False; any,nan: False
less_equal   nan,any: False; any,nan: False
log          nan: nan; neg: nan; 0s: -inf; 1: 0; inf: inf
log10        nan: nan; neg: nan; 0s: -inf; 1: 0; inf: inf
log1p        nan: nan; <-1: nan; -1: -inf; 0s: x; inf: inf
log2         nan: nan; neg: nan; 0s: -inf; 1: 0; inf: inf
logaddexp    nan,any: nan; any,nan: nan; inf,number: inf; number,inf: inf
maximum      nan,any: nan; any,nan: nan
minimum      nan,any: nan; any,nan: nan
multiply     nan,any: nan; any,nan: nan; infs,0s: nan; 0s,infs: nan
multiply     infs,infs: x1*sign(x2); infs,nonzero: x1*sign(x2); nonzero,infs: x2*sign(x1)
multiply     0s,finite: x1*sign(x2); finite,0s: x2*sign(x1)
negative     0: -0.0; -0: 0; infs: -x; nan: nan
nextafter    nan,any: nan; any,nan: nan; -0,0: 0; 0,-0: -0.0
not_equal    nan,any: True; any,nan: True; inf,-inf: True; -inf,inf: True; infs,finite: True
not_equal    0s,0s: False; inf,inf: False; finite,finite: x1 != x2
positive     any: x
pow          not1,nan: nan; any,0s: 1; nan,not0: nan; |>1|,inf: inf; |>1|,-inf: 0; |1|,infs: 1
pow          1,number: 1; |<1|,inf: 0; |<1|,-inf: inf; inf,pos: inf; inf,neg: 0; -inf,odd: -inf
pow          -inf,notodd: inf; -inf,-odd: -0.0; -inf,-notodd: 0; 0,pos: 0; 0,neg: inf
pow          -0,odd: -0.0; -0,notodd: 0; -0,-odd: -inf; -0,-notodd: inf; -,fraction: nan
reciprocal   nan: nan; 0: inf; -0: -inf; inf: 0; -inf: -0.0
remainder    nan,any: nan; any,nan: nan; infs,infs: nan; 0s,0s: nan; 0s,pos: 0; 0s,neg: -0.0
remainder    any,0s: nan; infs,any: nan; +,inf: x1; +,-inf: x2; -,inf: x2; -,-inf: x1
round        whole: x; infs: x; 0s: x; nan: nan; 0.5: 0; 1.5: 2; 2.5: 2; -0.5: -0.0; -1.5: -2
sign         neg: -1; 0s: ±0; pos: 1; nan: nan
signbit      0: False; -0: True; pos: False; neg: True; nan: False; -nan: True
sin          nan: nan; 0s: x; infs: nan
sinh         nan: nan; 0s: x; infs: x
sqrt         nan: nan; neg: nan; 0s: x; inf: inf
square       nan: nan; 0s: 0; infs: inf
subtract     nan,any: nan; any,nan: nan; inf,inf: nan; -inf,-inf: nan; inf,-inf: inf; -inf,inf: -inf
subtract     infs,finite: x1; finite,infs: -x2; -0,0: -0.0; -0,-0: 0; 0,0: 0; 0,-0: 0
tan          nan: nan; 0s: x; infs: nan
tanh         nan: nan; 0s: x; inf: 1; -inf: -1
trunc        whole: x; infs: x; 0s: x; nan: nan
"""

# The parts of x are a and b; the results are parts too, but for what gives real numbers.
COMPLEX = """
abs      infs,any: inf; any,infs: inf; 0s,any: abs(b); any,0s: abs(a); nan,finite: nan; nan,nan: nan
acos     0s,0: pi/2, -0.0; 0s,nan: pi/2, nan; finite,inf: pi/2, -inf; nonzero,nan: nan, nan
acos     -inf,+: pi, -inf; inf,+: 0, -inf; -inf,inf: 3*pi/4, -inf; inf,inf: pi/4, -inf
acos     infs,nan: nan, ±inf; nan,finite: nan, nan; nan,inf: nan, -inf; nan,nan: nan, nan
acosh    0s,0: 0, pi/2; finite,inf: inf, pi/2; nonzero,nan: nan, nan; 0,nan: nan, ±pi/2
acosh    -inf,+: inf, pi; inf,+: inf, 0; -inf,inf: inf, 3*pi/4; inf,inf: inf, pi/4
acosh    infs,nan: inf, nan; nan,finite: nan, nan; nan,inf: inf, nan; nan,nan: nan, nan
asinh    0,0: 0, 0; +,inf: inf, pi/2; finite,nan: nan, nan; inf,+: inf, 0; inf,inf: inf, pi/4
asinh    nan,0: nan, 0; nan,nonzero: nan, nan; nan,inf: ±inf, nan; nan,nan: nan, nan
atanh    0,0: 0, 0; 0,nan: 0, nan; 1,0: inf, 0; +,inf: 0, pi/2; nonzero,nan: nan, nan
atanh    inf,+: 0, pi/2; inf,inf: 0, pi/2; inf,nan: 0, nan; nan,finite: nan, nan
atanh    nan,inf: ±0, pi/2; nan,nan: nan, nan
conj     any,any: a, -b
cosh     0,0: 1, 0; 0,inf: nan, ±0; 0,nan: nan, ±0; nonzero,inf: nan, nan; nonzero,nan: nan, nan
cosh     inf,0: inf, 0; inf,nonzero: inf*cos(b), inf*sin(b); inf,inf: ±inf, nan; inf,nan: inf, nan
cosh     nan,0s: nan, ±0; nan,nonzero: nan, nan; nan,nan: nan, nan
exp      0s,0: 1, 0; finite,inf: nan, nan; finite,nan: nan, nan; inf,0: inf, 0
exp      -inf,finite: 0*cos(b), 0*sin(b); inf,nonzero: inf*cos(b), inf*sin(b); -inf,inf: ±0, ±0
exp      inf,inf: ±inf, nan; -inf,nan: ±0, ±0; inf,nan: ±inf, nan; nan,0: nan, 0
exp      nan,nonzero: nan, nan; nan,nan: nan, nan
expm1    0s,0: 0, 0; finite,inf: nan, nan; finite,nan: nan, nan; inf,0: inf, 0
expm1    -inf,finite: -1, 0*sin(b); inf,nonzero: inf*cos(b), inf*sin(b); -inf,inf: -1, ±0
expm1    inf,inf: ±inf, nan; -inf,nan: -1, ±0; inf,nan: ±inf, nan; nan,0: nan, 0
expm1    nan,nonzero: nan, nan; nan,nan: nan, nan; 0s,-0: 0, -0.0; inf,-0: inf, -0.0
expm1    nan,-0: nan, -0.0; -inf,-inf: -1, ±0; inf,-inf: ±inf, nan; finite,-inf: nan, nan
imag     any,any: b
isfinite nan,any: False; any,nan: False; infs,any: False; any,infs: False; finite,finite: True
isinf    infs,any: True; any,infs: True; finite,finite: False; nan,finite: False
isnan    nan,any: True; any,nan: True; number,number: False
log      -0,0: -inf, pi; 0,0: -inf, 0; finite,inf: inf, pi/2; finite,nan: nan, nan; -inf,+: inf, pi
log      inf,+: inf, 0; -inf,inf: inf, 3*pi/4; inf,inf: inf, pi/4; infs,nan: inf, nan
log      nan,finite: nan, nan; nan,inf: inf, nan; nan,nan: nan, nan
log1p    -1,0: -inf, 0; finite,inf: inf, pi/2; finite,nan: nan, nan; -inf,+: inf, pi; inf,+: inf, 0
log1p    -inf,inf: inf, 3*pi/4; inf,inf: inf, pi/4; infs,nan: inf, nan; nan,finite: nan, nan
log1p    nan,inf: inf, nan; nan,nan: nan, nan
negative any,any: -a, -b
real     any,any: a
sign     0s,0s: ±0, ±0; nan,any: nan, nan; any,nan: nan, nan
sinh     0,0: 0, 0; 0,inf: ±0, nan; 0,nan: ±0, nan; +,inf: nan, nan; +,nan: nan, nan; inf,0: inf, 0
sinh     inf,+: inf*cos(b), inf*sin(b); inf,inf: ±inf, nan; inf,nan: ±inf, nan; nan,0: nan, 0
sinh     nan,nonzero: nan, nan; nan,nan: nan, nan
sqrt     0s,0: 0, 0; any,inf: inf, inf; finite,nan: nan, nan; inf,nan: inf, nan
sqrt     -inf,nan: nan, ±inf; nan,finite: nan, nan; nan,nan: nan, nan
tanh     0,0: 0, 0; nonzero,inf: nan, nan; 0,inf: 0|nan, nan; nonzero,nan: nan, nan
tanh     0,nan: 0|nan, nan; inf,+: 1, 0; inf,inf: 1, ±0; inf,nan: 1, ±0; nan,0: nan, 0
tanh     nan,nonzero: nan, nan; nan,nan: nan, nan; inf,-: 1, -0.0; -inf,+: -1, 0
tanh     -inf,-: -1, -0.0; -inf,inf: -1, ±0; -inf,nan: -1, ±0; nan,-0: nan, -0.0
"""


# Of statistics: a function, the elements, options, the result.
STATISTICAL = (
    ("sum", (), {}, 0.0),
    ("sum", (1.0, math.nan), {}, math.nan),
    ("sum", (math.inf, 1.0), {}, math.inf),
    ("sum", (math.inf, -math.inf), {}, math.nan),
    ("prod", (), {}, 1.0),
    ("prod", (2.0, math.nan), {}, math.nan),
    ("prod", (0.0, math.inf), {}, math.nan),
    ("mean", (), {}, math.nan),
    ("mean", (1.0, math.nan), {}, math.nan),
    ("max", (1.0, math.nan, 2.0), {}, math.nan),
    ("max", (1.0, math.inf), {}, math.inf),
    ("min", (1.0, math.nan, 2.0), {}, math.nan),
    ("min", (1.0, -math.inf), {}, -math.inf),
    ("all", (), {}, True),
    ("all", (1.0, math.nan), {}, True),
    ("any", (), {}, False),
    ("any", (0.0, -0.0), {}, False),
    ("any", (0.0, math.nan), {}, True),
    ("count_nonzero", (), {}, 0),
    ("count_nonzero", (0.0, -0.0, math.nan), {}, 1),
    *((f, (), {"correction": c}, math.nan) for f in ("std", "var") for c in (0, 1)),
    *((f, (1.0, 2.0), {"correction": c}, math.nan) for f in ("std", "var") for c in (2, 2.5, 7)),
    *((f, (1.0, math.nan), {"correction": c}, math.nan) for f in ("std", "var") for c in (0, 1)),
    ("cumulative_sum", (math.inf, -math.inf, 1.0), {}, (math.inf, math.nan, math.nan)),
    ("cumulative_prod", (0.0, math.inf, 1.0), {}, (0.0, math.nan, math.nan)),
    ("cumulative_sum", (), {"include_initial": True}, (0.0,)),
    ("cumulative_prod", (), {"include_initial": True}, (1.0,)),
)


def sign(v):
    """1 or -1, by the sign bit."""
    return math.copysign(1.0, v)


NAMES = {"inf": math.inf, "nan": math.nan, "pi": math.pi, "sign": sign, "abs": abs}
NAMES |= {"cos": math.cos, "sin": math.sin}


def allowed(text, names):
    """The values that a result may have."""
    values = []
    for choice in text.split("|"):
        value = eval(choice.strip().removeprefix("±"), NAMES, names)
        value = value if isinstance(value, bool) else float(value)
        values += [value, -value] if "±" in choice else [value]
    return values


def parsed(table, names):
    """For each function its cases: the operands, and for each part of the result what it may be."""
    found = {}
    for line in table.strip().splitlines():
        name, rest = line.split(maxsplit=1)
        for text in rest.split(";"):
            operands, _, result = text.rpartition(":")
            sets = [SETS.get(o.strip()) or (float(o),) for o in operands.split(",")]
            for xs in itertools.product(*sets):
                given = dict(zip(names if len(xs) > 1 else ("x",), xs, strict=True))
                parts = [allowed(part, given) for part in result.split(",")]
                found.setdefault(name, []).append((xs, parts))
    return found


REAL_CASES = parsed(REAL, ("x1", "x2"))
COMPLEX_CASES = parsed(COMPLEX, ("a", "b"))

"""Sine, cosine and tangent of all arguments, and their inverses.

Arguments up to a million are reduced by pi / 2 in four parts (Cody and Waite). For larger ones a
function is called that multiplies with the bits of 2 / pi that matter (M. Payne and R. Hanek,
Radian reduction for trigonometric functions, SIGNUM Newsletter 18, 1983).
"""

from __future__ import annotations

from symgrad.native import coefficients
from symgrad.native.precise import (
    INF,
    NAN,
    Pair,
    absolute,
    copysign,
    nearest,
    only_where,
    polynomial,
    product,
    quick_sum,
    root,
    two_sum,
    widened,
)
from symgrad.native.vectors import Module, Value, literal

MOST_REDUCED, MOST_REDUCED_F4 = 2.0**20, 2.0**12
PI, PI_LOW = 2 * coefficients.HALF_PI_SUM[0], 2 * coefficients.HALF_PI_SUM[1]


def _reduced(x: Value) -> tuple[Value, Pair]:
    """The quadrant of a float64, and what is left of the angle: a pair within pi / 4 of 0."""
    code = x.code
    n, quadrant = nearest(x * (1 / coefficients.HALF_PI_SUM[0]))
    p1, p2, p3, p4 = coefficients.HALF_PI
    first, error = two_sum(code.fma(n, -p1, x), n * -p2)
    high, more = quick_sum(first, n * -p3)
    more = code.fma(n, -p4, code.fma(n, -p3, -(n * -p3)) + more)
    high, low = quick_sum(high, error + more)
    large = ~(absolute(x) <= MOST_REDUCED)
    return _reduced_where(large, x, quadrant, high, low)


def _reduced_f4(x: Value) -> tuple[Value, Pair]:
    """The same of a float32."""
    code = x.code
    n, quadrant = nearest(x * (1 / coefficients.HALF_PI_SUM[0]))
    p1, p2, p3, p4 = coefficients.HALF_PI_F4
    first, error = two_sum(code.fma(n, -p1, x), n * -p2)
    third, lost = product(n, -p3)
    high, low = two_sum(first, third)
    low = code.fma(n, -p4, error + (low + lost))
    high, low = quick_sum(high, low)
    large = ~(absolute(x) <= MOST_REDUCED_F4)
    return _reduced_where(large, x, quadrant, high, low)


def _reduced_where(
    large: Value, x: Value, quadrant: Value, high: Value, low: Value
) -> tuple[Value, Pair]:
    """The same, of large arguments by a function that is called for each of them."""
    code = x.code
    _define_reduction(code.module)
    result = "{ double, double, i64 }"

    def reduced() -> tuple[Value, ...]:
        lanes, wide = [], widened(x)
        for i in range(code.lanes):
            parts = code.scalar(f"call {result} @reduced(double {code.lane(wide, i)})")
            lanes.append([code.scalar(f"extractvalue {result} {parts}, {j}") for j in range(3)])
        columns = [[lane[j] for lane in lanes] for j in range(3)]
        found = (code.vector(k, c) for k, c in zip(("f8", "f8", "i8"), columns, strict=True))
        own = (high, low, quadrant)
        return tuple(new.converted(old.kind) for new, old in zip(found, own, strict=True))

    high, low, quadrant = only_where(large, (high, low, quadrant), reduced)
    return quadrant, (high, low)


def _define_reduction(module: Module) -> None:
    """Add the function that reduces one large argument, with integers of 256 bits."""
    words = ", ".join(f"i64 {w}" for w in (0, *coefficients.TWO_OVER_PI))
    high, low = (literal("f8", p) for p in coefficients.HALF_PI_SUM)
    module.declarations["@two_over_pi"] = f"@two_over_pi = internal constant [21 x i64] [{words}]"
    module.declarations["@llvm.ctlz.i192"] = "declare i192 @llvm.ctlz.i192(i192, i1)"
    module.declarations["@llvm.fma.f64"] = "declare double @llvm.fma.f64(double, double, double)"
    # x = m 2**e, and the product of m with the bits of 2 / pi that make no multiple of 4 of it.
    lines = ["define internal { double, double, i64 } @reduced(double %x) noinline #0 {", "entry:"]
    lines += [
        "  %bits = bitcast double %x to i64",
        "  %up = lshr i64 %bits, 52",
        "  %biased = and i64 %up, 2047",
        "  %tail = and i64 %bits, 4503599627370495",
        "  %m = or i64 %tail, 4503599627370496",
        "  %finite = icmp ne i64 %biased, 2047",
        "  %usable = icmp ugt i64 %biased, 1030",
        "  %e = select i1 %usable, i64 %biased, i64 1030",
        "  %ok = select i1 %finite, i64 %e, i64 1030",
        # The first bit of the window is that of 2**(1 - e): the exponent counts from 1075.
        "  %skip = sub i64 %ok, 1013",
        "  %word = lshr i64 %skip, 6",
        "  %shift = and i64 %skip, 63",
        "  %shift256 = zext i64 %shift to i256",
    ]
    for i in range(4):
        lines += [
            f"  %i{i} = add i64 %word, {i}",
            f"  %q{i} = getelementptr [21 x i64], ptr @two_over_pi, i64 0, i64 %i{i}",
            f"  %w{i} = load i64, ptr %q{i}",
            f"  %z{i} = zext i64 %w{i} to i256",
            f"  %s{i} = shl i256 %z{i}, {192 - 64 * i}",
        ]
    lines += [
        "  %o1 = or i256 %s0, %s1",
        "  %o2 = or i256 %s2, %s3",
        "  %o3 = or i256 %o1, %o2",
        "  %o4 = shl i256 %o3, %shift256",
        "  %o5 = lshr i256 %o4, 64",
        "  %v = trunc i256 %o5 to i192",
        "  %m192 = zext i64 %m to i192",
        "  %t = mul i192 %v, %m192",
        "  %q192 = lshr i192 %t, 190",
        "  %q = trunc i192 %q192 to i64",
        "  %f = shl i192 %t, 2",
        "  %above = icmp slt i192 %f, 0",
        "  %q_up = zext i1 %above to i64",
        "  %n = add i64 %q, %q_up",
        "  %neg = sub i192 0, %f",
        "  %a = select i1 %above, i192 %neg, i192 %f",
        "  %lz192 = call i192 @llvm.ctlz.i192(i192 %a, i1 false)",
        "  %norm = shl i192 %a, %lz192",
        "  %h192 = lshr i192 %norm, 139",
        "  %h = trunc i192 %h192 to i64",
        "  %l192 = lshr i192 %norm, 75",
        "  %l = trunc i192 %l192 to i64",
        "  %lz = trunc i192 %lz192 to i64",
        "  %hd0 = uitofp i64 %h to double",
        "  %ld0 = uitofp i64 %l to double",
        "  %p = sub i64 970, %lz",  # 1023 - 53
        "  %pb = shl i64 %p, 52",
        "  %scale = bitcast i64 %pb to double",
        "  %hd = fmul double %hd0, %scale",
        f"  %ld1 = fmul double %ld0, {literal('f8', 2.0**-64)}",
        "  %ld = fmul double %ld1, %scale",
        f"  %r0 = fmul double %hd, {high}",
        "  %r0n = fneg double %r0",
        f"  %r1 = call double @llvm.fma.f64(double %hd, double {high}, double %r0n)",
        f"  %r2 = call double @llvm.fma.f64(double %hd, double {low}, double %r1)",
        f"  %r3 = call double @llvm.fma.f64(double %ld, double {high}, double %r2)",
        "  %rh = fadd double %r0, %r3",
        "  %d = fsub double %rh, %r0",
        "  %rl = fsub double %r3, %d",
        "  %minus = icmp slt i64 %bits, 0",
        "  %turn = xor i1 %minus, %above",
        "  %nrh = fneg double %rh",
        "  %nrl = fneg double %rl",
        "  %yh0 = select i1 %turn, double %nrh, double %rh",
        "  %yl = select i1 %turn, double %nrl, double %rl",
        "  %yh = select i1 %finite, double %yh0, double 0x7FF8000000000000",
        "  %nn = sub i64 0, %n",
        "  %yn = select i1 %minus, i64 %nn, i64 %n",
        "  %a0 = insertvalue { double, double, i64 } poison, double %yh, 0",
        "  %a1 = insertvalue { double, double, i64 } %a0, double %yl, 1",
        "  %a2 = insertvalue { double, double, i64 } %a1, i64 %yn, 2",
        "  ret { double, double, i64 } %a2",
        "}",
    ]
    module.definitions["@reduced"] = "\n".join(lines)


def sine(r: Value, low: Value, short: bool = False) -> Value:
    """The sine of a pair within pi / 4 of 0."""
    z = r * r
    p = polynomial("sin", z, short)
    return r.code.fma(r * z, p, low * r.code.fma(z, -0.5, 1.0)) + r


def cosine(r: Value, low: Value, short: bool = False) -> Value:
    """The cosine of a pair within pi / 4 of 0."""
    code = r.code
    z = r * r
    w, rest = quick_sum(1.0, z * -0.5)
    return w + (rest + code.fma(-r, low, z * z * polynomial("cos", z, short)))


def _both(x: Value) -> tuple[Value, Value, Value]:
    """The quadrant as an integer of x's size, and sine and cosine of the rest of the angle."""
    quadrant, (r, low) = _reduced(x) if x.kind == "f8" else _reduced_f4(x)
    return quadrant, sine(r, low), cosine(r, low)


def _turned(quadrant: Value, even: Value, odd: Value) -> Value:
    """One of two by a quadrant, with the sign that its second bit gives."""
    size = 8 * int(even.kind[1:])
    found = even.code.select((quadrant & 1).equals(0), even, odd).reinterpreted(quadrant.kind)
    return (found ^ ((quadrant & 2) << (size - 2))).reinterpreted(even.kind)


def sin(x: Value) -> Value:
    """The sine of an angle in radians."""
    quadrant, s, c = _both(x)
    found = _turned(quadrant, s, c)
    return x.code.select(x.equals(0.0), x, found)


def cos(x: Value) -> Value:
    """The cosine of an angle in radians."""
    quadrant, s, c = _both(x)
    return _turned(quadrant + 1, s, c)


def tan(x: Value, short: bool = False) -> Value:
    """The tangent of an angle in radians."""
    if x.kind == "f4":
        return tan(widened(x), True).converted("f4")
    code = x.code
    quadrant, (r, low) = _reduced(x)
    s, c = sine(r, low, short), cosine(r, low, short)
    even = (quadrant & 1).equals(0)
    found = code.select(even, s, -c) / code.select(even, c, s)
    return code.select(x.equals(0.0), x, found)


# ---- inverses -------------------------------------------------------------------------------


def _angle(top: Value, bottom: Value, short: bool) -> Value:
    """The angle of the vector (bottom, top) in the first quadrant."""
    code = top.code
    larger = code.select(top > bottom, top, bottom)
    one = code.constant("f8", 1.0)
    factor = code.select(larger > 2.0**1000, 2.0**-60, one)
    factor = code.select(larger < 2.0**-900, 2.0**100, factor)
    top, bottom = top * factor, bottom * factor
    low = top > 0.41421356 * bottom
    high = top > 2.4142135 * bottom
    a = code.select(high, -bottom, code.select(low, top - bottom, top))
    b = code.select(high, top, code.select(low, top + bottom, bottom))
    t = a / b
    half, half_low = coefficients.HALF_PI_SUM
    base = code.select(high, half, code.select(low, code.constant("f8", half / 2), 0.0))
    rest = code.select(high, half_low, code.select(low, code.constant("f8", half_low / 2), 0.0))
    z = t * t
    found = code.fma(t * z, polynomial("atan", z, short), rest)
    return base + (t + found)


def atan(x: Value) -> Value:
    """The inverse of the tangent."""
    if x.kind == "f4":
        return _atan(widened(x), True).converted("f4")
    return _atan(x, False)


def _atan(x: Value, short: bool) -> Value:
    code = x.code
    a = absolute(x)
    found = _angle(code.select(a < 2.0**100, a, 2.0**100), code.constant("f8", 1.0), short)
    found = code.select(x.is_nan(), x, found)
    return copysign(found, x)


def atan2(y: Value, x: Value) -> Value:
    """The angle of the vector (x, y)."""
    if y.kind == "f4":
        return _atan2(widened(y), widened(x), True).converted("f4")
    return _atan2(y, x, False)


def _atan2(y: Value, x: Value, short: bool) -> Value:
    code = y.code
    a, b = absolute(y), absolute(x)
    both = a.equals(INF) & b.equals(INF)
    one = code.constant("f8", 1.0)
    top = code.select(both, one, code.select(b.equals(INF), 0.0, a))
    bottom = code.select(both, one, code.select(a.equals(INF), 0.0, b))
    top = code.select(a.equals(INF), one, top)
    bottom = code.select(b.equals(INF), one, bottom)
    none = top.equals(0.0)
    found = _angle(top, code.select(bottom.equals(0.0) & none, one, bottom), short)
    behind = x.reinterpreted("i8") < 0
    high, low = quick_sum(PI, -found)
    found = code.select(behind, high + (low + PI_LOW), found)
    found = code.select(y.is_nan() | x.is_nan(), NAN, found)
    return copysign(found, y)


def _arc(x: Value, short: bool) -> tuple[Value, Pair]:
    """The mask of |x| <= 1/2, and asin of |x| there, else of sqrt((1 - |x|) / 2), as a pair."""
    code, a = x.code, absolute(x)
    small = a <= 0.5
    z = code.select(small, a * a, (1.0 - a) * 0.5)
    s = root(z)
    s_low = code.select(s > 0.0, code.fma(-s, s, z) / (2.0 * s), 0.0)
    s, s_low = code.select(small, a, s), code.select(small, 0.0, s_low)
    rest = code.fma(s * z, polynomial("asin", z, short), s_low)
    return small, (s, rest)


def asin(x: Value, short: bool = False) -> Value:
    """The inverse of the sine; NaN beyond -1 and 1."""
    if x.kind == "f4":
        return asin(widened(x), True).converted("f4")
    small, (s, rest) = _arc(x, short)
    half, half_low = coefficients.HALF_PI_SUM
    high, low = quick_sum(half, s * -2.0)
    large = high + (low + (half_low - 2.0 * rest))
    return copysign(x.code.select(small, s + rest, large), x)


def acos(x: Value, short: bool = False) -> Value:
    """The inverse of the cosine; NaN beyond -1 and 1."""
    if x.kind == "f4":
        return acos(widened(x), True).converted("f4")
    code = x.code
    small, (s, rest) = _arc(x, short)
    half, half_low = coefficients.HALF_PI_SUM
    negative = x < 0.0
    high, low = quick_sum(half, code.select(negative, s, -s))
    middle = high + (low + code.select(negative, half_low + rest, half_low - rest))
    near = 2.0 * (s + rest)
    high, low = quick_sum(PI, -2.0 * s)
    far = high + (low + (PI_LOW - 2.0 * rest))
    return code.select(small, middle, code.select(negative, far, near))

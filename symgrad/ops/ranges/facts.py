"""Facts of ops, by their names, that ranges and error bounds follow from."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from types import MappingProxyType

# Ends that no rounding takes a function beyond.
OWN: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "abs": (0, inf), "acos": (0, 3.2), "atan": (-1.6, 1.6), "cos": (-1, 1), "cosh": (1, inf),
        "erf": (-1, 1), "erfc": (0, 2), "exp": (0, inf), "exp2": (0, inf), "expm1": (-1, inf),
        "hypot": (0, inf), "ndtr": (0, 1), "norm2": (0, inf), "sigmoid": (0, 1), "sin": (-1, 1),
        "softmax": (0, 1), "softplus": (0, inf), "sqrt": (0, inf), "square": (0, inf),
        "tanh": (-1, 1),
    }
)  # fmt: skip
# Ops that IEEE 754 rounds correctly, or that round nothing.
ROUNDED = frozenset(
    {
        "abs", "add", "ceil", "divide", "floor", "leaky_relu", "maximum", "minimum", "multiply",
        "negative", "positive", "reciprocal", "relu", "rint", "select", "sign", "sqrt", "square",
        "subtract", "trunc", "where", "astype",
    }
)  # fmt: skip
# Ops that make no NaN of what is none.
TOTAL = frozenset(
    {
        "abs", "astype", "atan", "asinh", "cbrt", "ceil", "cosh", "deg2rad", "erf", "erfc", "exp",
        "exp2", "expm1", "floor", "hypot", "leaky_relu", "logaddexp", "maximum", "minimum", "ndtr",
        "negative", "positive", "rad2deg", "relu", "rint", "select", "sigmoid", "sign", "sinh",
        "softplus", "square", "tanh", "trunc", "where",
    }
)  # fmt: skip
# Where functions of one operand are defined.
DOMAINS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "acos": (-1, 1), "acosh": (1, inf), "asin": (-1, 1), "atanh": (-1, 1), "log": (0, inf),
        "log10": (0, inf), "log1p": (-1, inf), "log2": (0, inf), "sqrt": (0, inf),
    }
)  # fmt: skip
# Ops whose results are elements of their operands.
MOVES = frozenset(
    {
        "concat", "gather", "max", "min", "pick_in_rows", "roll", "running_extremum", "sort",
        "window_max",
    }
)  # fmt: skip
WITH_ZEROS = frozenset({"on_diagonal", "place"})
CONVOLUTIONS = frozenset({"convolve", "convolve_inputs", "convolve_weights"})
WINDOW_SUMS = frozenset({"overlapped", "window_spread", "window_sum"})

"""One function has one gradient: however it is spelled, in both modes, with and without passes.

The rows are the points at which other systems give two to four different answers, or NaN.
"""

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.ops.select import select
from tests.helpers import each

NAN, INF = np.nan, np.inf


@dataclass(frozen=True, eq=False)
class Row:
    """A function of some arrays, in several spellings, and its gradient at a point."""

    name: str
    spellings: dict[str, Any]
    at: tuple[Any, ...]
    expected: tuple[Any, ...]
    kinks: Any = None
    cotangent: Any = field(default=None)


def row(name, at, expected, kinks=None, cotangent=None, **spellings):
    at = at if isinstance(at, tuple) else (at,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    return Row(name, spellings, at, expected, kinks, cotangent)


def squared(function):
    return lambda x: function(x) ** 2


def times_itself(function):
    return lambda x: function(x) * function(x)


RELU = {
    "relu": sg.relu,
    "maximum_x_0": lambda x: sg.maximum(x, 0),
    "maximum_0_x": lambda x: sg.maximum(0, x),
    "maximum_of_zeros": lambda x: np.maximum(x, 0.0),
    "where_positive": lambda x: sg.where(x > 0, x, 0),
    "where_not_negative": lambda x: sg.where(x >= 0, x, 0),
    "where_0_less": lambda x: sg.where(sg.less(0, x), x, 0.0),
    "where_negative": lambda x: sg.where(x < 0, 0, x),
    "where_not_positive": lambda x: sg.where(x <= 0, 0, x),
    "where_not": lambda x: sg.where(~(x > 0), 0, x),
    "clip_below": lambda x: sg.clip(x, 0, None),
    "numpy_clip": lambda x: np.clip(x, 0, None),
    "mask_right": lambda x: x * (x > 0),
    "mask_left": lambda x: (x > 0) * x,
    "mask_cast": lambda x: x * sg.astype(x >= 0, x.dtype),
    "half_of_sum": lambda x: (x + abs(x)) / 2,
    "half_of_sum_swapped": lambda x: (abs(x) + x) / 2,
    "half_times_sum": lambda x: 0.5 * (x + abs(x)),
    "scaled_sum": lambda x: x * 0.5 + abs(x) * 0.5,
    "where_one": lambda x: sg.where(x > 0, 1.0, 0.0) * x,
    "maximum_zeros": lambda x: sg.maximum(x, np.zeros(x.shape)),
    "where_zeros_like": lambda x: sg.where(x > 0, x, sg.zeros_like(x)),
    "where_than_zeros": lambda x: sg.where(x > np.zeros(x.shape), x, 0),
    "abs_by_root": lambda x: (x + sg.sqrt(x * x)) / 2,
    "abs_by_where": lambda x: (x + sg.where(x > 0, x, -x)) / 2,
    "abs_of_negative": lambda x: 0.5 * (x + abs(-x)),
    "minimum_turned": lambda x: -sg.minimum(-x, 0),
    "minimum_turned_swapped": lambda x: 0 - sg.minimum(0, -x),
    "minimum_turned_by_factors": lambda x: -1 * sg.minimum(x * -1, 0),
    "minimum_turned_by_divisor": lambda x: sg.minimum(-x, 0) / -1,
    "minimum_of_quotient_turned": lambda x: -sg.minimum(x / -1, 0),
    "minimum_turned_by_divisors": lambda x: sg.minimum(0, x / -1.0) / -1,
    "clip_turned": lambda x: -sg.clip(0 - x, None, 0),
    "where_turned": lambda x: -sg.where(-x < 0, -x, 0),
    "where_negative_is_less": lambda x: sg.where(-x < 0, x, 0),
    "where_negative_is_not_less": lambda x: sg.where(-x >= 0, 0, x),
    "largest_of_stack": lambda x: sg.max(sg.stack([x, sg.zeros_like(x)]), axis=0),
    "smallest_of_stack_turned": lambda x: (
        -sg.min(sg.stack([np.zeros(x.shape), -x], axis=-1), axis=-1)
    ),
    "less_negative_part": lambda x: x - sg.minimum(x, 0),
    "with_relu_of_negative": lambda x: x + sg.relu(-x),
}
FMAX = {
    "fmax": lambda x: np.fmax(x, 0),
    "fmin_turned": lambda x: -np.fmin(-x, 0),
    "fmin_turned_by_divisors": lambda x: np.fmin(0, x / -1) / -1,
}
NEGATIVE = {
    "minimum": lambda x: sg.minimum(x, 0),
    "minimum_swapped": lambda x: sg.minimum(0, x),
    "clip_above": lambda x: sg.clip(x, None, 0),
    "relu_turned": lambda x: -sg.relu(-x),
    "maximum_turned": lambda x: -sg.maximum(-x, 0),
    "maximum_turned_swapped": lambda x: 0 - sg.maximum(0, 0 - x),
    "maximum_turned_by_divisors": lambda x: sg.maximum(x / -1, 0) / -1,
    "fmin": lambda x: np.fmin(x, 0),
    "fmax_turned": lambda x: -np.fmax(-x, 0),
    "clip_turned": lambda x: -sg.clip(-x, 0, None),
    "where_negative": lambda x: sg.where(x < 0, x, 0),
    "where_positive": lambda x: sg.where(x > 0, 0, x),
    "where_size": lambda x: -sg.where(x < 0, -x, 0),
    "mask": lambda x: x * (x < 0),
    "mask_with_zero": lambda x: (x <= 0) * x,
    "less_positive_part": lambda x: x - sg.relu(x),
    "half_of_difference": lambda x: (x - abs(x)) / 2,
    "half_times_difference": lambda x: (abs(x) - x) * -0.5,
    "smallest_of_stack": lambda x: sg.min(sg.stack([x, np.zeros(x.shape)]), axis=0),
}
CLIP = {
    "clip": lambda x: sg.clip(x, -1, 1),
    "hard_tanh": sg.hard_tanh,
    "turned": lambda x: -sg.clip(-x, -1, 1),
    "by_hand": lambda x: sg.minimum(sg.maximum(x, -1), 1),
    "by_hand_turned": lambda x: 0 - sg.maximum(sg.minimum(-x, 1), -1),
    "hard_tanh_turned": lambda x: -sg.hard_tanh(0 - x),
    "turned_by_divisors": lambda x: sg.clip(x / -1, -1, 1) / -1,
    "fmin_of_fmax_turned": lambda x: -sg.fmin(sg.fmax(-x, -1), 1),
    "fmax_of_fmin_turned": lambda x: -sg.fmax(sg.fmin(-x, 1), -1),
}
UNIT = {
    "clip": lambda x: sg.clip(x, 0, 1),
    "turned": lambda x: -sg.clip(-x, -1, 0),
    "relu_bounded": lambda x: sg.minimum(sg.relu(x), 1),
    "other_order_turned": lambda x: -sg.maximum(sg.minimum(-x, 0), -1),
    "relu_turned": lambda x: 1 - (1 - sg.minimum(sg.relu(x), 1)),
}
ABS = {
    "abs": sg.abs,
    "root_of_product": lambda x: sg.sqrt(x * x),
    "root_of_square": lambda x: sg.sqrt(sg.square(x)),
    "root_of_power": lambda x: sg.sqrt(x**2),
    "maximum": lambda x: sg.maximum(x, -x),
    "maximum_swapped": lambda x: sg.maximum(-x, x),
    "where_positive": lambda x: sg.where(x > 0, x, -x),
    "where_not_negative": lambda x: sg.where(x >= 0, x, -x),
    "where_negative": lambda x: sg.where(x < 0, -x, x),
    "where_not_positive": lambda x: sg.where(x <= 0, -x, x),
    "of_negative": lambda x: abs(-x),
    "minimum_turned": lambda x: -sg.minimum(x, -x),
    "where_turned": lambda x: -sg.where(x < 0, x, -x),
    "both_parts": lambda x: sg.relu(x) + sg.relu(-x),
    "difference_of_parts": lambda x: sg.relu(x) - sg.minimum(x, 0),
    "largest_of_stack": lambda x: sg.max(sg.stack([x, -x], axis=-1), axis=-1),
}
LEAKY = {
    "leaky_relu": lambda x: sg.leaky_relu(x, slope=0.1),
    "maximum": lambda x: sg.maximum(x, 0.1 * x),
    "maximum_swapped": lambda x: sg.maximum(x * 0.1, x),
    "where_positive": lambda x: sg.where(x > 0, x, 0.1 * x),
    "where_not_negative": lambda x: sg.where(x >= 0, x, x * 0.1),
    "where_negative": lambda x: sg.where(x < 0, 0.1 * x, x),
    "maximum_of_part": lambda x: sg.maximum(x, x / 10),
    "minimum_turned": lambda x: -sg.minimum(-x, 0.1 * -x),
    "parts": lambda x: sg.relu(x) + 0.1 * sg.minimum(x, 0),
    "relus": lambda x: sg.relu(x) - 0.1 * sg.relu(-x),
}
ELU = {
    "elu": lambda x: sg.nn.elu(x, alpha=0.5),
    "by_hand": lambda x: sg.leaky_relu(sg.where(x > 0, x, sg.expm1(x)), slope=0.5),
}
SELU = 1.0507009873554805
NORM = {
    "vector_norm": sg.vector_norm,
    "root_of_sum_of_products": lambda x: sg.sqrt(sg.sum(x * x)),
    "root_of_sum_of_squares": lambda x: sg.sqrt(sg.sum(x**2)),
    "power_of_sum": lambda x: sg.sum(x * x) ** 0.5,
    "root_of_dot": lambda x: sg.sqrt(x @ x),
    "root_of_vecdot": lambda x: sg.sqrt(sg.vecdot(x, x)),
    "root_of_scaled": lambda x: sg.sqrt(4 * sg.sum(x * x)) / 2,
    "numpy": lambda x: np.linalg.norm(x),
}
SQUARED_NORM = {f"{name}_squared": squared(f) for name, f in NORM.items()}
SQUARED_NORM |= {
    "scaled": lambda x: (2 * sg.vector_norm(x)) ** 2 / 4,
    "negated": lambda x: (-sg.vector_norm(x)) ** 2,
    "chained": lambda x: sg.vector_norm(x) * 2 * sg.vector_norm(x) / 2,
    "reshaped": lambda x: sg.reshape(sg.reshape(sg.vector_norm(x), (1,)) ** 2, ()),
    "power_twice": lambda x: (sg.sum(x * x) ** 0.5) ** 2,
}
SQUARED_NORM |= {f"{name}_twice": times_itself(f) for name, f in NORM.items()}
SOFTPLUS = {
    "softplus": sg.softplus,
    "log": lambda x: sg.log(1 + sg.exp(x)),
    "log_swapped": lambda x: sg.log(sg.exp(x) + 1),
    "log1p": lambda x: sg.log1p(sg.exp(x)),
    "logaddexp": lambda x: sg.logaddexp(x, 0),
    "relu_and_log1p": lambda x: sg.relu(x) + sg.log1p(sg.exp(-abs(x))),
}
SIGMOID = {
    "sigmoid": sg.sigmoid,
    "inverse": lambda x: 1 / (1 + sg.exp(-x)),
    "power": lambda x: (1 + sg.exp(-x)) ** -1,
    "reciprocal": lambda x: sg.reciprocal(1 + sg.exp(-x)),
    "one_less": lambda x: 1 - 1 / (1 + sg.exp(x)),
    "quotient": lambda x: sg.exp(x) / (1 + sg.exp(x)),
}
LOGSUMEXP = {
    "logsumexp": sg.logsumexp,
    "log_of_sum": lambda x: sg.log(sg.sum(sg.exp(x))),
}

POINTS = [-3.0, -1.5, 0.0, 1.5, 3.0]
ROWS = [
    row("relu", POINTS, [0, 0, 0, 1, 1], **RELU),
    row("relu right", POINTS, [0, 0, 1, 1, 1], kinks="right", **RELU),
    row("relu left", POINTS, [0, 0, 0, 1, 1], kinks="left", **RELU),
    row("relu split", POINTS, [0, 0, 0.5, 1, 1], kinks="split", **RELU),
    row("relu number", POINTS, [0, 0, 0.25, 1, 1], kinks=0.25, **RELU),
    row("fmax left", POINTS, [0, 0, 0, 1, 1], kinks="left", **FMAX),
    row("fmax right", POINTS, [0, 0, 1, 1, 1], kinks="right", **FMAX),
    row("fmax number", POINTS, [0, 0, 0.25, 1, 1], kinks=0.25, **FMAX),
    row("fmax, the other if one is nan", [NAN], [0], **FMAX),
    row("relu at nan", [NAN, 2.0], [0, 1], relu=sg.relu, maximum=lambda x: sg.maximum(x, 0),
        clip=lambda x: sg.clip(x, 0, None), relu6=sg.relu6, turned=lambda x: -np.minimum(-x, 0)),
    row("other extrema at nan", [NAN, 2.0], [1, 1], maximum=lambda x: sg.maximum(x, 1),
        minimum=lambda x: sg.minimum(x, 3), clip=lambda x: sg.clip(x, 1, 3)),
    row("relu, inf upstream", [-1.0, 2.0], [0, INF], cotangent=[INF, INF], **RELU),
    row("relu, nan upstream", [-1.0, 2.0], [0, NAN], cotangent=[NAN, NAN], **RELU),
    row("abs", [-2.0, 0.0, 2.0], [-1, 0, 1], **ABS),
    row("abs right", [-2.0, 0.0, 2.0], [-1, 1, 1], kinks="right", **ABS),
    row("abs left", [-2.0, 0.0, 2.0], [-1, -1, 1], kinks="left", **ABS),
    row("negative part", POINTS, [1, 1, 0, 0, 0], **NEGATIVE),
    row("negative part left", POINTS, [1, 1, 1, 0, 0], kinks="left", **NEGATIVE),
    row("negative part right", POINTS, [1, 1, 0, 0, 0], kinks="right", **NEGATIVE),
    row("negative part split", POINTS, [1, 1, 0.5, 0, 0], kinks="split", **NEGATIVE),
    row("negative part number", POINTS, [1, 1, 0.75, 0, 0], kinks=0.25, **NEGATIVE),
    row("clip left", [-1.0, 0.0, 1.0], [0, 1, 1], kinks="left", **CLIP),
    row("clip right", [-1.0, 0.0, 1.0], [1, 1, 0], kinks="right", **CLIP),
    row("clip number", [-1.0, 0.0, 1.0], [0.25, 1, 0.75], kinks=0.25, **CLIP),
    row("clip from 0 left", [0.0, 1.0], [0, 1], kinks="left", **UNIT),
    row("clip from 0 right", [0.0, 1.0], [1, 0], kinks="right", **UNIT),
    row("clip from 0 split", [0.0, 1.0], [0.5, 0.5], kinks="split", **UNIT),
    row("abs number", [-2.0, 0.0, 2.0], [-1, -0.5, 1], kinks=0.25, **ABS),
    row("leaky relu", [-2.0, 0.0, 2.0], [0.1, 0.1, 1], **LEAKY),
    row("leaky relu right", [-2.0, 0.0, 2.0], [0.1, 1, 1], kinks="right", **LEAKY),
    row("elu", [-2.0, 0.0, 2.0], [0.5 * np.exp(-2.0), 0.5, 1], **ELU),
    row("elu left", [0.0], [0.5], kinks="left", **ELU),
    row("elu right", [0.0], [1], kinks="right", **ELU),
    row("elu split", [0.0], [0.75], kinks="split", **ELU),
    row("elu number", [0.0], [0.625], kinks=0.25, **ELU),
    row("elu of alpha 1", [0.0], [1], kinks="left", elu=sg.nn.elu),
    row("selu", [0.0], [SELU], selu=sg.nn.selu),
    row("selu left", [0.0], [1.6732632423543772 * SELU], kinks="left", selu=sg.nn.selu),
    row("selu right", [0.0], [SELU], kinks="right", selu=sg.nn.selu),
    row("maximum tie", ([1.0, 2.0], [1.0, 3.0]), ([0.5, 0], [0.5, 1]),
        plain=sg.maximum, swapped=lambda x, y: sg.maximum(y, x), fmax=sg.fmax,
        negated=lambda x, y: -sg.minimum(-x, -y)),
    row("minimum tie", ([1.0, 2.0], [1.0, 3.0]), ([0.5, 1], [0.5, 0]),
        plain=sg.minimum, swapped=lambda x, y: sg.minimum(y, x), fmin=sg.fmin),
    row("fmax of nan", ([NAN, 2.0], [1.0, NAN]), ([0, 1], [1, 0]),
        plain=sg.fmax, swapped=lambda x, y: sg.fmax(y, x)),
    row("clip", [-1.0, 0.0, 0.5, 1.0, 2.0], [0, 0, 1, 0, 0],
        clip=lambda x: sg.clip(x, 0, 1), by_hand=lambda x: sg.minimum(sg.maximum(x, 0), 1),
        other_order=lambda x: sg.maximum(sg.minimum(x, 1), 0),
        swapped=lambda x: sg.minimum(1, sg.maximum(0, x))),
    row("clip, inf upstream", [-1.0, 0.5, 2.0], [0, INF, 0], cotangent=[INF] * 3,
        clip=lambda x: sg.clip(x, 0, 1)),
    row("relu6", [-1.0, 0.0, 3.0, 6.0, 7.0], [0, 0, 1, 0, 0],
        relu6=sg.relu6, by_hand=lambda x: sg.minimum(sg.relu(x), 6)),
    row("hard tanh", [-2.0, -1.0, 0.0, 1.0, 2.0], [0, 0, 1, 0, 0],
        hard_tanh=sg.hard_tanh, clip=lambda x: sg.clip(x, -1, 1)),
    row("sqrt", [0.0, 4.0], [INF, 0.25], sqrt=sg.sqrt, power=lambda x: x**0.5),
    row("norm at 0", [0.0, 0.0, 0.0], [0, 0, 0], **NORM),
    row("norm", [3.0, 4.0], [0.6, 0.8], **NORM),
    row("norm squared at 0", [0.0, 0.0], [0, 0], **SQUARED_NORM),
    row("norm squared", [3.0, 4.0], [6, 8], **SQUARED_NORM),
    row("norm 1", [0.0, -2.0, 3.0], [0, -1, 1],
        norm=lambda x: sg.vector_norm(x, ord=1), by_hand=lambda x: sg.sum(abs(x))),
    row("norm inf tie", [2.0, -2.0, 1.0], [0.5, -0.5, 0],
        norm=lambda x: sg.vector_norm(x, ord=np.inf), by_hand=lambda x: sg.max(abs(x))),
    row("max tie", [2.0, 1.0, 2.0], [0.5, 0, 0.5], max=sg.max,
        reduce=lambda x: np.maximum.reduce(x), negated=lambda x: -sg.min(-x)),
    row("sort tie", [1.0, 1.0], [1.5, 1.5], cotangent=[1.0, 2.0], sort=sg.sort,
        flipped=lambda x: sg.flip(sg.sort(x, descending=True))),
    row("median", [1.0, 1.0, 2.0], [0.5, 0.5, 0], median=sg.median),
    row("root of an untaken branch", [-1.0, 0.0, 4.0], [0, 0, 0.25],
        where=lambda x: sg.where(x > 0, sg.sqrt(x), 0),
        swapped=lambda x: sg.where(x <= 0, 0, sg.sqrt(x)),
        select=lambda x: select(x > 0, sg.sqrt(x)),
        scaled=lambda x: sg.where(x > 0, 2 * sg.sqrt(x) / 2, 0),
        summed=lambda x: sg.where(x > 0, sg.sqrt(x) / 2 + sg.sqrt(x) / 2, 0),
        masked=lambda x: sg.where(x > 0, sg.sqrt(sg.where(x > 0, x, 1)), 0)),
    row("x log x of an untaken branch", [-1.0, 0.0, 1.0], [0, 0, 1],
        where=lambda x: sg.where(x > 0, x * sg.log(x), 0),
        swapped=lambda x: sg.where(x <= 0, 0.0, sg.log(x) * x),
        reshaped=lambda x: sg.where(x > 0, sg.reshape(sg.reshape(x * sg.log(x), (3, 1)), 3), 0)),
    row("division in an untaken branch", [0.0, 2.0], [0, -0.25],
        where=lambda x: sg.where(x != 0, 1 / x, 0), power=lambda x: sg.where(x != 0, x**-1, 0)),
    row("overflow in an untaken branch", [1000.0, 0.0], [0, 1],
        where=lambda x: sg.where(x < 1, sg.exp(x), 0)),
    row("untaken sum", [-1.0, -1.0], [0, 0],
        where=lambda x: sg.where(sg.sum(x) > 0, sg.sum(sg.sqrt(x)), 0)),
    row("x**0", [0.0, 2.0], [0, 0], power=lambda x: x**0 + 0 * x,
        numpy=lambda x: np.power(x, 0) + 0 * x),
    row("x**1", [0.0, -2.0], [1, 1], power=lambda x: x**1, plain=lambda x: +x),
    row("x**2", [0.0, -2.0], [0, -4], power=lambda x: x**2, product=lambda x: x * x,
        square=sg.square, root=lambda x: sg.sqrt(x * x) ** 2, abs=lambda x: abs(x) ** 2),
    row("prod with a zero", [0.0, 2.0, 3.0], [6, 0, 0], prod=sg.prod,
        reduce=lambda x: np.multiply.reduce(x), by_hand=lambda x: x[0] * x[1] * x[2]),
    row("prod with two zeros", [0.0, 2.0, 0.0], [0, 0, 0], prod=sg.prod),
    row("cumulative prod with zeros", [0.0, 2.0, 0.0], [3, 0, 0],
        function=lambda x: sg.sum(sg.cumulative_prod(x)), numpy=lambda x: np.sum(np.cumprod(x)),
        by_hand=lambda x: x[0] + x[0] * x[1] + x[0] * x[1] * x[2]),
    row("hypot at 0", (0.0, 0.0), (0, 0), hypot=sg.hypot, swapped=lambda x, y: sg.hypot(y, x),
        root=lambda x, y: sg.sqrt(x * x + y * y), powers=lambda x, y: sg.sqrt(x**2 + y**2)),
    row("atan2 at 0", (0.0, 0.0), (0, 0), atan2=sg.atan2),
    row("xlogy at 0", (0.0, 0.0), (-INF, 0), xlogy=sg.xlogy),
    row("std of equals", [1.0, 1.0], [0, 0], std=sg.std,
        root_of_var=lambda x: sg.sqrt(sg.var(x)), numpy=lambda x: np.std(x)),
    row("sinc", [0.0], [0], sinc=sg.sinc),
    row("softplus", [0.0, 1.0], [0.5, 1 / (1 + np.exp(-1))], **SOFTPLUS),
    row("smooth though made of two kinks", [-1.0, 0.0, 1.0], [1, 1, 1],
        relus=lambda x: sg.relu(x) - sg.relu(-x),
        extrema=lambda x: sg.maximum(x, 0) + sg.minimum(x, 0)),
    row("log of sigmoid far out", [-1000.0, 1000.0], [1, 0],
        log=lambda x: sg.log(sg.sigmoid(x)), by_hand=lambda x: -sg.log(1 + sg.exp(-x))),
    row("logaddexp far out", ([-1000.0, 1000.0], [0.0, 0.0]), ([0, 1], [1, 0]),
        logaddexp=sg.logaddexp, by_hand=lambda x, y: sg.log(sg.exp(x) + sg.exp(y))),
    row("choice of two", ([1.0, 2.0], [1.0, 3.0]), ([0.5, 0], [0.5, 1]),
        greater=lambda x, y: sg.where(x > y, x, y), not_less=lambda x, y: sg.where(x >= y, x, y),
        less=lambda x, y: sg.where(x < y, y, x)),
    row("clip by choices", [-1.0, 0.0, 0.5, 1.0, 2.0], [0, 0, 1, 0, 0],
        nested=lambda x: sg.where(x < 0, 0, sg.where(x > 1, 1, x))),
    row("softplus far out", [-1000.0, 1000.0], [0, 1], **SOFTPLUS),
    row("sigmoid", [0.0], [0.25], **SIGMOID),
    row("sigmoid far out", [-1000.0, 1000.0], [0, 0], **SIGMOID),
    row("logsumexp", [0.0, 0.0], [0.5, 0.5], **LOGSUMEXP),
    row("logsumexp far out", [-1000.0, 1000.0], [0, 1], **LOGSUMEXP),
]  # fmt: skip

CASES = [(row, spelling) for row in ROWS for spelling in row.spellings]


def derivatives(row, spelling, mode):
    """The inputs, and the gradient by each of them as nodes."""
    xs = [sg.placeholder(f"x{i}", np.shape(a)) for i, a in enumerate(row.at)]
    y = row.spellings[spelling](*xs)
    g = np.ones(y.shape) if row.cotangent is None else np.asarray(row.cotangent)
    if mode == "reverse":
        return xs, list(sg.vjp(y, xs, g, kinks=row.kinks, disconnected="zero"))
    jacobians = sg.jacobian(y, xs, mode="forward", kinks=row.kinks, disconnected="zero")
    axes = tuple(range(y.ndim))
    return xs, [_contract(g, j, axes) for j in jacobians]


def _contract(g, jacobian, axes):
    """The cotangent times a Jacobian; nothing flows where the Jacobian is 0."""
    weights = np.reshape(g, (*g.shape, *(1,) * (jacobian.ndim - g.ndim)))
    return sg.sum(sg.where(jacobian == 0, 0, weights * jacobian), axis=axes)


def check_gradient(row, spelling, mode):
    xs, found = derivatives(row, spelling, mode)
    check_values(row, sg.Graph(found, xs))


@functools.cache  # many spellings have one gradient to the node
def check_values(row, graph):
    wanted = [np.asarray(a, float) for a in row.expected]
    for passes, said in ((), "raw"), (None, "optimised"):
        values = sg.compile(graph.inputs, graph.outputs, passes=passes)(*row.at)
        for value, expected in zip(values, wanted, strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-300, err_msg=said)


@each("mode", ["reverse", "forward"])
@each(("row", "spelling"), CASES, parts=2)
def test_one_function_has_one_gradient(row, spelling, mode):
    check_gradient(row, spelling, mode)


SECOND = [
    ("norm squared at 0", SQUARED_NORM, [0.0, 0.0], 2 * np.eye(2)),
    ("norm squared", SQUARED_NORM, [3.0, 4.0], 2 * np.eye(2)),
    ("relu", RELU, [-1.0, 0.0, 2.0], np.zeros((3, 3))),
    ("abs", ABS, [-1.0, 0.0, 2.0], np.zeros((3, 3))),
    ("relu squared", {name: squared(f) for name, f in RELU.items()},
     [-1.0, 2.0], np.diag([0, 2.0])),
    ("abs squared", {name: squared(f) for name, f in ABS.items()},
     [-1.0, 0.0], np.diag([2.0, 2.0])),
    ("std squared", {"std": lambda x: sg.std(x) ** 2}, [1.0, 1.0],
     np.array([[0.5, -0.5], [-0.5, 0.5]])),
    ("product", {"prod": sg.prod}, [0.0, 0.0, 3.0],
     np.array([[0, 3.0, 0], [3.0, 0, 0], [0, 0, 0]])),
    ("sinc", {"sinc": sg.sinc}, [0.0], np.array([[-np.pi**2 / 3]])),
]  # fmt: skip


@each("passes", [(), None], ids=["raw", "optimised"])
@each(
    ("function", "at", "expected"),
    [(f, at, expected) for _, spellings, at, expected in SECOND for f in spellings.values()],
    ids=[f"{name}-{spelling}" for name, spellings, _, _ in SECOND for spelling in spellings],
)
def test_second_derivatives(function, at, expected, passes):
    x = sg.placeholder("x", np.shape(at))
    y = function(x)
    loss = y if y.ndim == 0 else sg.sum(y)
    forward = sg.hessian(loss, x, disconnected="zero")
    backward = sg.jacobian(sg.grad(loss, x), x, mode="reverse", disconnected="zero")
    for found in sg.compile([x], [forward, backward], passes=passes)(at):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_the_hessian_of_relu_squared_at_its_kink_is_finite():
    x = sg.placeholder("x", 3)
    found = sg.compile([x], sg.hessian(sg.sum(sg.relu(x) ** 2), x))([-1.0, 0.0, 1.0])
    assert np.isfinite(found).all()
    assert 0 <= found[1, 1] <= 2


def test_what_the_forward_computes_stays_as_written():
    x = sg.placeholder("x", 3)
    h = (x + abs(x)) / 2
    loss = sg.sum(sg.tanh(h))
    program = sg.compile([x], [loss, sg.grad(loss, x)], passes=())
    ops = [n.op.name for n in program.graph.nodes]
    assert "relu" not in ops, "the gradient refers to what was written"
    assert ops.count("tanh") == 1, "nothing is computed twice"


def test_a_region_of_a_graph_has_its_own_choice():
    x = sg.placeholder("x", 3)
    with sg.kinks("right"):
        inside = sg.relu(x)
    outside = sg.relu(x)
    for passes in ((), None):
        found = sg.compile([x], sg.grad(sg.sum(10 * inside + outside), x), passes=passes)
        np.testing.assert_array_equal(found([-1.0, 0.0, 1.0]), [0, 10, 11])


@pytest.mark.parametrize("kinks", ["middle", 2, -0.5, True, {"relu": "right"}, (), ("split",), {}])
def test_a_choice_that_is_none_is_refused(kinks):
    x = sg.placeholder("x", 3)
    with pytest.raises(sg.GradientError, match="kink"):
        sg.grad(sg.sum(sg.relu(x)), x, kinks=kinks)


def test_the_trace_says_where_an_untaken_branch_was_silenced():
    x = sg.placeholder("x", 3)
    g = sg.grad(sg.sum(sg.where(x > 0, sg.sqrt(x), 0)), x)
    made = {m.name for n in sg.Graph([g]).nodes for m in n.origin.made_by}
    assert "untaken_branch_is_zero" in made

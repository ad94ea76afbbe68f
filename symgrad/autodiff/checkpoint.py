"""Checkpoints: computing again in the backward what the forward need not keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from symgrad.autodiff.reverse import pull_back
from symgrad.autodiff.traced import replaced
from symgrad.autodiff.use import Use
from symgrad.ir.node import Node, as_node, constant_value
from symgrad.ir.op import Cotangent
from symgrad.ir.origin import built_as
from symgrad.ir.walk import topological
from symgrad.ops.batch import of_all
from symgrad.ops.identity import _barrier as barrier
from symgrad.ops.identity import _hold as hold
from symgrad.ops.identity import custom, results_of

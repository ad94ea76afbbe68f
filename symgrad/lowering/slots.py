"""What a slot of a plan is while the plan is being made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from symgrad.ir.types import TensorType
from symgrad.lowering.plan import Kind


@dataclass
class Draft:
    """A slot before its place is known. `root` is the draft whose memory it takes over."""

    kind: Kind
    type: TensorType
    value: Any = None
    first: int = -1
    last: int = -1
    root: int = -1

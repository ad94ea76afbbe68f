"""Slots of a plan while the plan is being built: their lifetimes and whose memory they take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from symgrad.ir.types import TensorType
from symgrad.lowering.steps import Kind


@dataclass
class SlotBuilder:
    """A slot before its offset is known. `root` is the slot whose memory it takes over."""

    kind: Kind
    type: TensorType
    value: Any = None
    first: int = -1
    last: int = -1
    root: int = -1

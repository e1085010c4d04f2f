"""The table of meanings by operator and since-version, and what a meaning sees of a node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import onnx

Array = np.ndarray[Any, Any]


class BreachError(Exception):
    """The model does what its opset does not allow."""


class CannotJudgeError(Exception):
    """The specification of that opset does not say, or this evaluator does not know."""


@dataclass(frozen=True)
class Use:
    """One node: its attributes with the defaults of its schema, and a way to run its bodies."""

    node: onnx.NodeProto
    since: int
    attributes: dict[str, Any]
    run_body: Callable[[onnx.GraphProto, list[Any]], list[Any]]

    def __getitem__(self, name: str) -> Any:
        """An attribute, or ``None`` where it is absent and has no default."""
        return self.attributes.get(name)

    def needs(self, holds: bool, what: str) -> None:
        """Say what is broken unless it holds."""
        if not holds:
            raise BreachError(f"{self.node.op_type}-{self.since}: {what}")

    def axis(self, rank: int, *, past: int = 0) -> int:
        """The attribute ``axis``; versions before 11 count it from the front."""
        self.needs(self["axis"] is not None, "the axis has no default")
        self.needs(0 <= self["axis"] < rank + past, f"axis {self['axis']} of rank {rank}")
        return int(self["axis"])

    def axes(self, rank: int) -> tuple[int, ...]:
        """The attribute ``axes``: distinct, and counted from the front."""
        axes = tuple(self["axes"])
        self.needs(bool(axes), "an empty list of axes")
        self.needs(all(0 <= axis < rank for axis in axes), f"axes {axes} of rank {rank}")
        self.needs(len(set(axes)) == len(axes), f"axes {axes} repeat")
        return axes


Meaning = Callable[..., Any]
M = TypeVar("M", bound=Meaning)

MEANINGS: dict[tuple[str, int], Meaning] = {}


def meaning(*op_types: str, since: tuple[int, ...] = (1,)) -> Callable[[M], M]:
    """Register what operators compute at some of their since-versions."""

    def register(function: M) -> M:
        for op_type in op_types:
            for version in since:
                assert (op_type, version) not in MEANINGS
                MEANINGS[op_type, version] = function
        return function

    return register

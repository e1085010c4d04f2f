"""A capture that is kept for when some of its axes begin later: made again, it would be the same."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from onnx_ir.passes import common

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.exporter import Captured
from entrepot.ir.copying import copy_graphs

Asked: TypeAlias = tuple[list[tuple[int, ...]], list[Group]]
"""The sizes of what is captured, and the groups that are to vary."""


@dataclass(frozen=True)
class Kept:
    """What was made of a module, translated.

    Attributes:
        captured: It, with a graph of its own.
        asked: What was asked for.
        tensors: What it was captured with.
        more: Further inputs to prove it with.
        notes: What is to be said of it.
    """

    captured: Captured
    asked: Asked
    tensors: Sequence[torch.Tensor]
    more: list[list[torch.Tensor]]
    notes: Sequence[str]

    @classmethod
    def of(
        cls,
        captured: Captured,
        asked: Asked,
        tensors: Sequence[torch.Tensor],
        more: list[list[torch.Tensor]],
        notes: Sequence[str],
    ) -> Kept | None:
        """It, if axes may begin later; nothing where it fixes some: others would be asked for then."""
        if captured.fixed or not any(group.asked[0] < _LATE for group in asked[1]):
            return None
        common.RemoveUnusedNodesPass()(captured.graph)  # one that nobody reads may itself read what is nowhere
        own = replace(captured, graph=copy_graphs(captured.graph), groups=copy.deepcopy(captured.groups))
        return cls(own, (asked[0], copy.deepcopy(asked[1])), tensors, more, notes)

    def beginning_later(self, asked: Asked) -> Captured | None:
        """The same with axes that begin where they are asked to; ``None`` where anything else is asked for."""
        if not is_the_same(asked, self.asked[0], self.captured.groups, self.tensors):
            return None
        return replace(self.captured, graph=copy_graphs(self.captured.graph), groups=copy.deepcopy(asked[1]))


_LATE = 2
"""Axes hardly ever begin later than at this size."""


def is_the_same(
    asked: Asked, shapes: Sequence[tuple[int, ...]], groups: Sequence[Group], tensors: Sequence[torch.Tensor]
) -> bool:
    """Whether a capture that was made with some groups at some shapes is what is asked for, though axes begin later."""
    if [*shapes] != asked[0] or len(groups) != len(asked[1]):
        return False
    return all(_begins_later(group, own, tensors) for group, own in zip(asked[1], groups, strict=True))


def _begins_later(group: Group, other: Group, tensors: Sequence[torch.Tensor]) -> bool:
    """Whether a group is another, or begins at a later size, up to that which was captured."""
    index, axis = min(group.axes)
    (least, most), (first, last) = group.asked, other.asked
    alike = replace(group, asked=other.asked) == other and most == last
    return alike and first <= least <= max(first, tensors[index].shape[axis])

"""Inputs that take each branch of a module: the sample says nothing of a branch that it does not take."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

TAKEN: set[tuple[str, bool]] = set()
"""Branches on values that rewritten functions have taken: where, and which of the two."""
LEFT_OUT: dict[str, str] = {}
"""What a capture has left out, by its place: a "check" of values, or the "form" of what has no elements."""


@dataclass
class Sizes:
    """Branches that sizes decide.

    Attributes:
        decide: Whether each goes the way that it goes in the sample, which limits the sizes.
        met: Whether there was one to decide.
    """

    decide: bool = False
    met: bool = False

    @contextlib.contextmanager
    def decided(self) -> Iterator[None]:
        """Inside, they decide."""
        self.decide = True
        try:
            yield
        finally:
            self.decide = False


SIZES = Sizes()


def reach(
    run: Callable[[Sequence[torch.Tensor]], object],
    tensors: Sequence[torch.Tensor],
    places: Iterable[str],
    is_firm: Callable[[Sequence[torch.Tensor]], object] = lambda _: True,
) -> tuple[list[list[torch.Tensor]], list[str]]:
    """Inputs among simple ones that take branches which the sample does not, and the branches that none takes.

    Args:
        run: Calls the rewritten module; false for inputs that it refuses.
        tensors: The sample.
        places: Where there are branches on values.
        is_firm: Whether the module takes an input also if it chooses the first of equal elements, as a graph does.
    """
    wanted = {(place, way) for place in places for way in (True, False)}
    TAKEN.clear()
    run(tensors)
    found = []
    for other in itertools.chain(variants(tensors), _shuffled(tensors)):
        before = TAKEN & wanted
        if before == wanted:
            break
        if run(other) and TAKEN & wanted != before:
            if is_firm(other):
                found.append(other)
            else:  # of zeros, which are the largest is anybody's guess
                TAKEN.clear()
                TAKEN.update(before)
    words = {True: "holds", False: "does not hold"}
    return found, [f"{place} where its condition {words[way]}" for place, way in sorted(wanted - TAKEN)]


def variants(tensors: Sequence[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """Tensors with simple values in their place."""
    changes: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
        torch.neg,
        torch.abs,
        lambda x: -x.abs(),
        lambda x: x * 100,
        lambda x: x * 0.01,
        lambda x: x * -100,
        _summed,
        _alike,
        torch.zeros_like,
        lambda x: x.flip(list(range(x.dim()))),
        lambda x: x.abs() + 1,
        lambda x: -x.abs() - 1,
    )
    for change in changes:
        yield [change(each) if each.is_floating_point() else each for each in tensors]
    for change in (torch.zeros_like, torch.ones_like, torch.logical_not):
        yield [change(each) if each.dtype is torch.bool else each for each in tensors]
    for number in (torch.amin, torch.amax):
        yield [torch.full_like(each, int(number(each))) if _whole(each) else each for each in tensors]
    yield [each.flip(list(range(each.dim()))) if _whole(each) else each for each in tensors]


def _shuffled(tensors: Sequence[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """The same numbers at other places: which are the largest, or what is periodic in them, decides as well."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        orders = [torch.randperm(each.numel(), generator=generator) for each in tensors]
        yield [
            each.reshape(-1)[order].reshape(each.shape) if each.is_floating_point() else each
            for each, order in zip(tensors, orders, strict=True)
        ]


def _summed(tensor: torch.Tensor) -> torch.Tensor:
    """Each row with all before it: what changes slowly, as series do, and as independent numbers never do."""
    return tensor.cumsum(-2) if tensor.dim() > 1 else tensor


def _alike(tensor: torch.Tensor) -> torch.Tensor:
    """Every row as the first: all go one way then, as they would with zeros, but no two scores in them tie."""
    if tensor.dim() < 2 or not tensor.numel():
        return tensor
    return tensor.flatten(0, -2)[:1].expand(tensor[..., 0].numel(), -1).reshape(tensor.shape)


def _whole(tensor: torch.Tensor) -> bool:
    return not tensor.is_floating_point() and tensor.dtype is not torch.bool and tensor.numel() > 0

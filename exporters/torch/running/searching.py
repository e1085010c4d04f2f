"""Searches in what is not sorted, for which torch promises no result: its own depends on where it begins to look."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch

from entrepot.exporters.torch.translations import ordering


@contextlib.contextmanager
def searches_checked() -> Iterator[None]:
    """Inside, a search is an error whose result is not how many elements come before a value."""
    with contextlib.ExitStack() as stack:
        for name in ("searchsorted", "bucketize"):
            checked = _checked(getattr(torch, name), getattr(ordering, name))
            stack.enter_context(mock.patch.object(torch, name, checked))
        yield


def _checked(plain: Callable[..., torch.Tensor], counted: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def checked(*args: Any, **named: Any) -> torch.Tensor:
        found = plain(*args, **named)
        if "out" not in named and not _are_equal(found, counted(*args, **named)):
            raise RuntimeError(f"{plain.__name__}: the sequence is not sorted")
        return found

    return checked


def _are_equal(found: torch.Tensor, counted: torch.Tensor) -> bool:
    try:
        return torch.equal(found, counted)
    except RuntimeError:  # within vmap, which has no single answer
        return True

"""The largest row of each bag where there are rows and no bags: torch's kernel (2.13) ends the process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch

_LARGEST = 2  # the number of the mode in torch.embedding_bag


@contextlib.contextmanager
def bags_checked() -> Iterator[None]:
    """Inside, rows that are in no bag are an error, so that a module can be tried without bags."""
    plain = torch.embedding_bag

    def checked(weight: Any, indices: Any, offsets: Any, *how: Any, **named: Any) -> Any:
        mode = how[1] if len(how) > 1 else named.get("mode", 0)
        if mode == _LARGEST and not offsets.numel() and indices.numel():
            raise RuntimeError(f"embedding_bag: {indices.numel()} rows are in no bag")
        return plain(weight, indices, offsets, *how, **named)

    with mock.patch.object(torch, "embedding_bag", checked):
        yield

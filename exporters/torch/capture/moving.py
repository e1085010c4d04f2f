"""``module.to(dtype)`` inside of ``forward``: torch exchanges the weights even where none of them changes.

Models make sure so that a part computes in a certain type. Tensors of a capture cannot be exchanged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import torch


@contextlib.contextmanager
def modules_stay() -> Iterator[None]:
    """Inside, a module that is where and what it is to be stays as it is."""
    plain = torch.nn.Module.to

    def to(module: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
        tensors = [*module.parameters(), *module.buffers()]
        return module if all(_stays(tensor, args, kwargs) for tensor in tensors) else plain(module, *args, **kwargs)

    with mock.patch.object(torch.nn.Module, "to", to):
        yield


def _stays(tensor: torch.Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    return tensor.is_floating_point() and tensor.to(*args, **kwargs) is tensor

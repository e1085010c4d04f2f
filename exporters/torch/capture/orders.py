"""``torch.einsum`` of three and more tensors is put in order by ``opt_einsum``, which reads sizes as numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from torch.backends import opt_einsum

from entrepot.exporters.torch.rewriting.environment import hint

_UNKNOWN = 8


@contextlib.contextmanager
def orders_of_the_sample() -> Iterator[None]:
    """Inside, the order is that for the sizes of the sample, and holds for all."""
    package = opt_einsum.get_opt_einsum()
    if package is None:  # torch then goes from left to right
        yield
        return
    plain = package.contract_path

    def ordered(equation: str, *operands: Any, **how: Any) -> Any:
        shapes = [tuple(map(_number, getattr(each, "shape", each))) for each in operands]
        return plain(equation, *shapes, **{**how, "shapes": True})

    with mock.patch.object(package, "contract_path", ordered):
        yield


def _number(size: Any) -> int:
    found = hint(size)
    return _UNKNOWN if found is None else int(found)

"""``min`` and ``max`` of sizes: torch (2.13) follows them of two whole numbers, but not of three or of fractions."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch

from entrepot.exporters.torch.upstream import builtins_in_captures

_SIZES = (torch.SymInt, torch.SymFloat)


@contextlib.contextmanager
def extremes_followed() -> Iterator[None]:
    """Inside, a capture follows the least and the largest of any numbers of which one depends on a size."""
    plain: Callable[..., Any] = builtins_in_captures._tensor_min_max  # noqa: SLF001 - what a capture puts in place of min and max

    def extreme(*values: Any, real_callable: Any, tensor_callable: Any, **how: Any) -> Any:
        several = len(values) == 1 and not isinstance(values[0], torch.Tensor) and not how
        items = list(values[0]) if several else list(values)  # of an iterator, there is one only
        if how or not any(isinstance(item, _SIZES) for item in items) or not all(map(_is_number, items)):
            return plain(
                *([items] if several else values), real_callable=real_callable, tensor_callable=tensor_callable, **how
            )
        return functools.reduce(torch.sym_max if tensor_callable is torch.maximum else torch.sym_min, items)

    with mock.patch.object(builtins_in_captures, "_tensor_min_max", extreme):
        yield


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, *_SIZES))

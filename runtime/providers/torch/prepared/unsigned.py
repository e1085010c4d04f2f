"""What torch does with uint16, uint32 and uint64 on the host alone: devices get the same bits as signed numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.torch.dtypes import RAW, TORCH
from entrepot.runtime.providers.torch.table import prepared
from entrepot.runtime.providers.torch.unsigned import chosen, wrapping


def _by_bits(function: Callable[..., Any]) -> Callable[[NodeView], Any]:
    """A rule that takes the function where torch's own knows the element type on the host alone."""

    def rule(node: NodeView) -> Callable[..., Any] | None:
        last = node.inputs[-1]
        kind = None if last is None or last.dtype is None else TORCH.get(last.dtype)
        return function if kind is not None and kind in RAW else None

    return rule


prepared("BitwiseAnd", 18)(_by_bits(partial(wrapping, torch.bitwise_and)))
prepared("BitwiseOr", 18)(_by_bits(partial(wrapping, torch.bitwise_or)))
prepared("BitwiseXor", 18)(_by_bits(partial(wrapping, torch.bitwise_xor)))
prepared("Where", 16)(_by_bits(chosen))

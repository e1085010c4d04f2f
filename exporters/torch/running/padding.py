"""What ``TransformerEncoder`` returns at padded positions: zeros, wherever torch runs it on nested tensors.

It does so for inference under a padding mask alone. Nested tensors have no graph form, so the zeros are put in by the
last layer; otherwise a graph would return what attention makes of the padding there.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import torch


@contextlib.contextmanager
def padding_dropped(module: torch.nn.Module) -> Iterator[None]:
    """Inside, encoders without nested tensors return what they return with them."""
    with contextlib.ExitStack() as stack:
        for part in module.modules():
            if isinstance(part, torch.nn.TransformerEncoder) and getattr(part, "use_nested_tensor", False):
                hook = functools.partial(_zeros, part)
                stack.callback(part.layers[-1].register_forward_hook(hook, with_kwargs=True).remove)
        yield


def _zeros(encoder: Any, layer: Any, args: tuple[Any, ...], given: dict[str, Any], output: torch.Tensor) -> Any:
    padding = given.get("src_key_padding_mask")
    if padding is None or given.get("src_mask") is not None or layer.training or output.dim() != 3:
        return output
    padded = padding if padding.dtype == torch.bool else padding != 0
    if getattr(encoder, "mask_check", True):  # torch leaves the padding as it is unless it is all at the end
        padded = padded & (padded[:, :-1] <= padded[:, 1:]).all()
    return output.masked_fill(padded[..., None], 0.0)

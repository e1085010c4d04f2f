"""``weight.data = ...`` puts other memory in the place of the weight's, and in runs without values none at all."""

from __future__ import annotations

from typing import Any

from torch.overrides import TorchFunctionMode

from entrepot.exporters.torch.translations.raw_data import REPLACEMENTS


class DataWriter(TorchFunctionMode):
    """Inside, ``tensor.data`` is the tensor, without gradients."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Make the call, or another one."""
        return REPLACEMENTS.get(func, func)(*args, **(kwargs or {}))

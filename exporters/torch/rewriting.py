"""While a module is captured, some torch functions give way to others of the same meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._library.custom_ops import OPDEFS
from torch.overrides import TorchFunctionMode

from entrepot.exporters.torch.translations import replacements

_REPLACEMENTS = replacements()  # a plain dict: torch.cond compiles its branches through this mode
_KNOWN = ("aten::", "prims::", "entrepot::")


class Rewriting(TorchFunctionMode):
    """Inside, calls of the functions in ``replacements()`` are calls of their replacements.

    A custom operator that is written in Python gives way to its Python, as ONNX has no operator for it.
    """

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Call the replacement, if there is one; the mode is off while it runs."""
        return _counterpart(func)(*args, **(kwargs or {}))


def _counterpart(func: Any) -> Callable[..., Any]:
    if func in _REPLACEMENTS:
        return _REPLACEMENTS[func]
    if not isinstance(func, torch._ops.OpOverload | torch._ops.OpOverloadPacket):  # noqa: SLF001 - no public name
        return func
    name = (func if isinstance(func, torch._ops.OpOverloadPacket) else func.overloadpacket)._qualified_op_name  # noqa: SLF001
    if name in _REPLACEMENTS:
        return _REPLACEMENTS[name]
    if name.startswith(_KNOWN) or name not in OPDEFS:
        return func
    return OPDEFS[name]._init_fn  # noqa: SLF001 - what the decorator was given

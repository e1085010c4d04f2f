"""While a module is captured, some torch functions give way to others of the same meaning."""

from __future__ import annotations

from typing import Any

from torch.overrides import TorchFunctionMode

from entrepot.exporters.torch.translations import replacements

_REPLACEMENTS = replacements()  # a plain dict: torch.cond compiles its branches through this mode


class Rewriting(TorchFunctionMode):
    """Inside, calls of the functions in ``replacements()`` are calls of their replacements."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Call the replacement, if there is one; the mode is off while it runs."""
        return _REPLACEMENTS.get(func, func)(*args, **(kwargs or {}))

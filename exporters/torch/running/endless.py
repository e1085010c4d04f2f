"""A module whose loops end when a value says so may never end on other values: its calls are counted."""

from __future__ import annotations

from typing import Any

from torch.overrides import TorchFunctionMode

_TIMES = 100
_MANY = 20_000


class CallCounter(TorchFunctionMode):
    """Counts calls of torch, and ends what makes far more of them than on the sample.

    Attributes:
        count: How many calls there were.
    """

    def __init__(self, usual: int | None = None) -> None:
        super().__init__()
        self.count = 0
        self._most = None if usual is None else _TIMES * usual + _MANY

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Count, and call the function."""
        self.count += 1
        if self._most is not None and self.count > self._most:
            raise RuntimeError(f"it does not come to an end: {self.count} calls of torch")
        return func(*args, **(kwargs or {}))

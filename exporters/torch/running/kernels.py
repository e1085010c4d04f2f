"""The Python functions behind operators that were registered with ``torch.library.Library``, which keeps none of them.

They are seen when they run: the first function of somebody else that an operator enters is its kernel.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType, FunctionType
from typing import Any

from torch.overrides import TorchFunctionMode

from entrepot.exporters.torch.lowering.custom import is_foreign, qualified_name, remember_kernel
from entrepot.exporters.torch.running.spotting import is_theirs

_READING = {"__bool__", "__int__", "__float__", "__index__", "item", "tolist", "is_nonzero", "allclose", "equal"}


class KernelSpotter(TorchFunctionMode):
    """Inside, kernels that are written in Python are remembered as they run.

    Attributes:
        count: How many calls of torch there were.
        reads: Whether Python has seen a value of a tensor, and may have decided by it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.reads = False

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Make the call, and see what it enters."""
        self.count += 1
        self.reads |= getattr(func, "__name__", "") in _READING
        name = qualified_name(func)
        if not is_foreign(name):
            return func(*args, **(kwargs or {}))
        entered: list[FrameType] = []
        tracer = sys.getprofile()
        sys.setprofile(lambda frame, event, _: _note(entered, frame, event))
        try:
            result = func(*args, **(kwargs or {}))
        finally:
            sys.setprofile(tracer)
        function = _function(entered[0]) if entered else None
        if function is not None:
            remember_kernel(name, function)
        return result


def _note(entered: list[FrameType], frame: FrameType, event: str) -> None:
    if event == "call" and not entered and is_theirs(frame.f_code.co_filename):
        entered.append(frame)


def _function(frame: FrameType) -> Callable[..., Any] | None:
    """The function that a frame runs, if there is only one with its code."""
    frozen = gc.get_freeze_count()  # as exports do with what was there before; the collector finds nothing of that
    if frozen:
        gc.unfreeze()
    found = [each for each in gc.get_referrers(frame.f_code) if isinstance(each, FunctionType)]
    if frozen:
        gc.freeze()
    return found[0] if len(found) == 1 else None

"""What a module decides by the values of its tensors: the truths that Python reads of them, in order."""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from entrepot.exporters.exporter import Required
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.spotting import user_line

DECIDES_OTHERWISE = "forward decides otherwise than for the sample"


class DecisionSpotter(TorchFunctionMode):
    """Notes what Python reads of truths.

    Attributes:
        found: In order.
        failed: The lines of calls that raised an error, which the module may have caught.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Required] = []
        self.failed: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Make the call, and note it."""
        try:
            result = func(*args, **(kwargs or {}))
        except MODEL_ERRORS:
            self.failed.append(line_of_call())
            raise
        if isinstance(result, bool) and getattr(func, "__name__", "") in TRUTHS:
            self.found.append(Required(line_of_call(), result))
        return result


def require_decisions(found: Sequence[Required], wanted: Sequence[Required]) -> None:
    """Hold a call to what a capture relies on.

    Raises:
        ValueError: It decides otherwise.
    """
    lines = {decision.line for decision in wanted}
    mattering = [decision for decision in found if decision.line in lines]
    for one, other in itertools.zip_longest(mattering, wanted):
        if one != other:
            raise ValueError(f"{DECIDES_OTHERWISE} at {(one or other).line}")


def line_of_call() -> str:
    """The user's line that is running."""
    return user_line(traceback.extract_stack())


def _of_one(tensor: torch.Tensor) -> torch.Tensor | None:
    return tensor.reshape(()) != 0 if tensor.numel() == 1 else None


def _item(tensor: torch.Tensor) -> torch.Tensor | None:
    return tensor.reshape(()) if tensor.dtype is torch.bool and tensor.numel() == 1 else None


def _equal(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor | None:
    return (first == second).all() if first.shape == second.shape else None


def _allclose(*args: Any, **kwargs: Any) -> torch.Tensor:
    return torch.isclose(*args, **kwargs).all()


def _contains(tensor: torch.Tensor, element: Any) -> torch.Tensor:
    return (tensor == element).any()


TRUTHS: Mapping[str, Callable[..., torch.Tensor | None]] = {
    "__bool__": _of_one,
    "is_nonzero": _of_one,
    "item": _item,
    "equal": _equal,
    "allclose": _allclose,
    "__contains__": _contains,
}
"""What Python may read of tensors that is true or false, each as a tensor: ``None`` where it is no truth."""

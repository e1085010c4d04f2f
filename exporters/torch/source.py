"""The eager module as one side of a comparison: numpy in, numpy out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ml_dtypes
import numpy as np
import torch

from entrepot.exporters.torch.axes import Group
from entrepot.exporters.torch.eager import Eager, EagerRefusal
from entrepot.ir.errors import InputError
from entrepot.parity.verify import SourceRefusal


class ModuleSource:
    """A module that parity can run.

    Args:
        eager: The module on flat tensors.
        input_names: Graph inputs, in the order of the flat tensors.
        output_names: Graph outputs, in the order of the flat results.
        name: How reports call it.
        groups: Axes that the caller wants only for some sizes; others are refused.
    """

    def __init__(
        self,
        eager: Eager,
        input_names: Sequence[str],
        output_names: Sequence[str],
        name: str,
        groups: Sequence[Group] = (),
    ) -> None:
        self._eager = eager
        self._inputs = list(input_names)
        self._outputs = list(output_names)
        self._groups = groups
        self.name = name
        self._double: Eager | None = None

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Call the module.

        Raises:
            SourceRefusal: The module does not accept these feeds.
            InputError: It returns a different number of results than the model.
        """
        for group in self._groups:
            index, axis = min(group.axes)
            size = feeds[self._inputs[index]].shape[axis]
            if not group.wants(size):
                raise SourceRefusal(f"{size} is outside the range that was asked for '{group.symbol}'")
        try:
            flat = self._eager([from_numpy(feeds[name]) for name in self._inputs])
        except EagerRefusal as refusal:
            raise SourceRefusal(str(refusal)) from refusal
        if len(flat.tensors) != len(self._outputs):
            raise InputError(f"the module gives {len(flat.tensors)} tensors, the model {len(self._outputs)} outputs")
        return dict(zip(self._outputs, map(to_numpy, flat.tensors), strict=True))

    def exact(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray] | None:
        """Call a float64 copy of the module; ``None`` if it is too large, or insists on another type."""
        try:
            self._double = self._double or self._eager.in_double(_MOST_COPIED)
            flat = self._double([_widened(from_numpy(feeds[name])) for name in self._inputs])
        except EagerRefusal:
            return None
        alike = len(flat.tensors) == len(self._outputs)
        return dict(zip(self._outputs, map(to_numpy, flat.tensors), strict=True)) if alike else None


_MOST_COPIED = 1 << 29
"""Bytes of weights in float64."""


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


_VIEWED = {
    torch.bfloat16: torch.uint16,
    torch.float8_e4m3fn: torch.uint8,
    torch.float8_e4m3fnuz: torch.uint8,
    torch.float8_e5m2: torch.uint8,
    torch.float8_e5m2fnuz: torch.uint8,
}
"""Types that NumPy lacks but ml_dtypes has under the same name, with integers of their size."""

_BY_NAME = {str(dtype).removeprefix("torch."): dtype for dtype in _VIEWED}


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """The same values as an array; types that NumPy lacks come as those of ml_dtypes."""
    tensor = tensor.detach()
    if tensor.dtype in _VIEWED:
        bits = tensor.contiguous().view(_VIEWED[tensor.dtype]).numpy()
        return bits.view(getattr(ml_dtypes, str(tensor.dtype).removeprefix("torch.")))
    return tensor.resolve_neg().resolve_conj().numpy()


def from_numpy(array: np.ndarray) -> torch.Tensor:
    """The inverse of ``to_numpy``, as a copy: the module may write to it."""
    dtype = _BY_NAME.get(array.dtype.name)
    if dtype is None:
        return torch.from_numpy(np.array(array))
    bits = np.array(array).view(np.uint16 if _VIEWED[dtype] is torch.uint16 else np.uint8)
    return torch.from_numpy(bits).view(dtype)

"""torch's tensors as the pipeline sees them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

from entrepot.exporters.arrays import Arrays
from entrepot.exporters.torch.upstream import FakeTensor
from entrepot.ir.errors import InputError

_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
"""Types that torch stores and hardly computes with, and signed ones of the same width."""

PACKED_HINT = "run the layer on the padded tensor and mask its result by the lengths"


class TorchArrays(Arrays):
    """Tensors, detached; NumPy's arrays become tensors, and numbers that a capture computes become scalars."""

    constants = (torch.dtype, torch.device)

    def leaf(self, value: Any, name: str) -> torch.Tensor | None:
        """A tensor, contiguous if it is dense and has values.

        Raises:
            InputError: It is an array of a type that torch lacks, or a packed sequence.
        """
        if isinstance(value, torch.nn.utils.rnn.PackedSequence):
            raise InputError(
                "a PackedSequence cannot be an input or output of a graph", value=name or None, hint=PACKED_HINT
            )
        if isinstance(value, np.ndarray):
            value = _tensor(value, name)
        if not isinstance(value, torch.Tensor):
            return None
        as_it_is = value.layout is not torch.strided or isinstance(value, FakeTensor)  # whether it is, depends on sizes
        return value.detach() if as_it_is else value.detach().contiguous()

    def is_symbolic(self, value: Any) -> bool:
        """Whether it is a size, or computed from one, while torch captures."""
        return isinstance(value, torch.SymInt | torch.SymFloat)

    def of_number(self, value: Any) -> torch.Tensor:
        """A scalar tensor of the type that Python's numbers have in graphs."""
        whole = isinstance(value, int | torch.SymInt)
        return torch.scalar_tensor(value, dtype=torch.int64 if whole else torch.float32)

    def kind(self, array: torch.Tensor) -> str:
        """By torch's own classification."""
        if array.dtype == torch.bool:
            return "bool"
        if array.dtype.is_complex:
            return "complex"
        return "float" if array.is_floating_point() else "integer"

    def resized(self, array: torch.Tensor, axis: int, size: int) -> torch.Tensor:
        """Filled from its own values in their own order."""
        old = array.shape[axis]
        if old == 0:
            return array.new_zeros([*array.shape[:axis], size, *array.shape[axis + 1 :]])
        places, stored = torch.arange(size) * old // max(size, 1), _SIGNED.get(array.dtype)
        if stored is not None:  # torch (2.13) picks from no such tensor
            return array.view(stored).index_select(axis, places).view(array.dtype)
        return array.index_select(axis, places)

    def to_numpy(self, array: torch.Tensor) -> np.ndarray:
        """See ``to_numpy`` below."""
        return to_numpy(array)

    def from_numpy(self, array: np.ndarray) -> torch.Tensor:
        """See ``from_numpy`` below."""
        return from_numpy(array)


TORCH = TorchArrays()


def _tensor(array: np.ndarray, name: str) -> torch.Tensor:
    try:
        return from_numpy(array)
    except TypeError as error:
        raise InputError(f"an array of {array.dtype} cannot become a tensor", value=name or None) from error


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

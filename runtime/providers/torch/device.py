"""Where torch keeps tensors, and how they get there and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from entrepot.runtime.arrays import as_array
from entrepot.runtime.device import Array
from entrepot.runtime.providers.torch.accelerator import Accelerator
from entrepot.runtime.providers.torch.dtypes import NUMPY, array_of_tensor, tensor_of
from entrepot.runtime.providers.torch.uploads import kept_upload


class TorchDevice:
    """A memory that torch computes in.

    On the host, tensors and NumPy arrays share memory: what is fed is not copied. Constants are noted, so that a result
    that is one of them, or a view of one, is handed over as a copy.

    Args:
        name: As torch writes it.
        accelerator: How arrays get there, if it is not the host's memory.

    Attributes:
        constant_bytes: What its constants take.
    """

    def __init__(self, name: str = "cpu", accelerator: Accelerator | None = None) -> None:
        self._accelerator = accelerator
        self.constant_bytes = 0
        self._device = torch.empty(0, device=name).device  # with its index, as tensors have it
        self._number = torch.empty(0, device=name).__dlpack_device__()  # as all libraries number it
        self._constants: set[int] = set()

    @property
    def name(self) -> str:
        """As torch writes it: ``cpu``, ``cuda:0``."""
        return "torch:cpu" if self._is_host else str(self._device)

    @property
    def shares_host(self) -> bool:
        """Whether tensors lie in the host's memory."""
        return self._is_host

    @property
    def _is_host(self) -> bool:
        return self._accelerator is None

    @property
    def stream(self) -> int | None:
        """The stream that work is queued on, as DLPack numbers it."""
        return None if self._device.type != "cuda" else torch.cuda.current_stream(self._device).cuda_stream

    def holds(self, value: Any) -> bool:
        """Whether it is a dense tensor of this device."""
        return isinstance(value, Tensor) and value.device == self._device and value.layout is torch.strided

    def adopted(self, value: Any) -> Any:
        """An array of another library that lies on this device as a tensor, without a copy; anything else as it is."""
        if self._is_host or isinstance(value, Tensor) or value.__dlpack_device__() != self._number:
            return value
        return from_dlpack(value)

    def dtype(self, array: Array) -> np.dtype[Any]:
        """Its element type."""
        return NUMPY[array.dtype]

    def shape(self, array: Array) -> tuple[int, ...]:
        """Its sizes."""
        return tuple(array.shape)

    def to_device(self, value: Any) -> Array:
        """A tensor with the values of a NumPy array, or of any array with ``__dlpack__``."""
        if isinstance(value, Tensor):
            return value.detach().to(self._device)
        if not isinstance(value, np.ndarray):
            try:
                return from_dlpack(value).to(self._device)
            except (BufferError, RuntimeError, TypeError, ValueError):
                value = as_array(value)
        kept = kept_upload(value, self._device)
        if kept is not None:
            return kept
        tensor = tensor_of(value)
        return tensor if self._accelerator is None else self._accelerator.upload(tensor)

    def keep(self, constant: Array) -> Array:
        """The tensor itself, noted as a constant: no result may share memory with it."""
        if _memory(constant) not in self._constants:
            self._constants.add(_memory(constant))
            self.constant_bytes += constant.untyped_storage().nbytes()
        return constant

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        """A NumPy array of the same values; on the host over the same memory, unless that is a constant's."""
        if self._accelerator is not None:
            with self._accelerator.telling():
                return array_of_tensor(array.cpu().contiguous())
        return array_of_tensor(array.clone() if _memory(array) in self._constants else array.contiguous())

    def own(self, arrays: Sequence[Any], fed: Sequence[Any]) -> list[Any]:
        """Tensors that belong to whoever gets them: copies of those in the memory of a constant or of what was fed."""
        others = [_span(tensor) for tensor in _tensors(fed)]

        def is_shared(tensor: Tensor) -> bool:
            start, end = _span(tensor)
            return start in self._constants or any(start < stop and begin < end for begin, stop in others)

        def own(value: Any) -> Any:
            if isinstance(value, list):
                return [own(member) for member in value]
            if not isinstance(value, Tensor):
                return value
            return value.clone() if is_shared(value) else _with_history(value)

        return [own(value) for value in arrays]

    def synchronize(self) -> None:
        """Wait until all work that was queued is done."""
        if self._accelerator is not None:
            self._accelerator.synchronize()


def _with_history(tensor: Tensor) -> Tensor:
    """The same tensor as one that may be written to and take part in gradients, which those of inference may not."""
    if not tensor.is_inference() or torch.is_inference_mode_enabled():
        return tensor
    place = tensor.storage_offset(), tensor.shape, tensor.stride()
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage(), *place)


def _memory(tensor: Tensor) -> int:
    """Where the memory begins that a tensor has, or has a part of."""
    return tensor.untyped_storage().data_ptr()


def _span(tensor: Tensor) -> tuple[int, int]:
    """Where that memory begins, and where it ends; of NumPy's memory, a tensor of a part of an array has that part."""
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors among values, members of sequences included."""
    for value in values:
        if isinstance(value, list):
            yield from _tensors(value)
        elif isinstance(value, Tensor):
            yield value

"""What the provider asks of a device beyond torch's tensors: copies beside the work, captured work, memory given back.

``Accelerator`` is for devices with nothing of the kind, ``Cuda`` for those of CUDA and ROCm, and ``Metal``
for Apple's. ``Cuda`` has been run on such a device, ``Metal`` has not: tests give both a library that is not there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from entrepot.ir.errors import ExecutionError

_LARGEST_PINNED = 64 << 20
"""Bytes; weights go there once, and pinned memory is never given back."""

_TRIES = 5

Replay = Callable[[], None]
"""Does captured work again, on the same memory."""


class Accelerator:
    """A device with one queue of work.

    Args:
        device: As tensors have it.
    """

    captures = False
    """Whether work can be captured."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def upload(self, tensor: Tensor) -> Tensor:
        """A copy on the device of a tensor on the host, which may change as soon as this returns."""
        return tensor.to(self.device, copy=True)

    def exactly(self) -> AbstractContextManager[Any]:
        """Products as exact as their element type, not as fast as the device has them."""
        return nullcontext()

    def telling(self) -> AbstractContextManager[Any]:
        """What goes wrong on the device, told so that one knows what to do."""
        return nullcontext()

    def capture(self, work: Callable[[], tuple[Any, ...]]) -> tuple[Replay, tuple[Any, ...]]:
        """Work as something that is done again by one call, and the results that it writes to."""
        raise NotImplementedError(f"nothing can be captured on {self.device}")

    def seconds(self, work: Callable[[], Any]) -> float:
        """What work takes, from where it is asked for until it is done: the least of some runs."""
        least = math.inf
        for _ in range(_TRIES):
            self.synchronize()
            start = time.perf_counter()
            work()
            self.synchronize()
            least = min(least, time.perf_counter() - start)
        return least

    def synchronize(self) -> None:
        """Wait until all work that was queued is done."""

    def in_use(self) -> int:
        """Bytes of the tensors there are."""
        return 0

    def trim(self) -> None:
        """Give memory back that no tensor has."""


class Cuda(Accelerator):
    """A device of CUDA or ROCm.

    Args:
        device: As tensors have it.
        library: ``torch.cuda``, or what stands in for it.
    """

    captures = True

    def __init__(self, device: torch.device, library: Any = torch.cuda) -> None:
        super().__init__(device)
        self._library = library
        self._copies = library.Stream(device)

    def upload(self, tensor: Tensor) -> Tensor:
        """By pinned memory, on a stream beside the one that computes, which waits for it without the host."""
        if tensor.nbytes > _LARGEST_PINNED or not tensor.is_contiguous():  # constants may lie in another order
            return super().upload(tensor)
        pinned = self._pinned(tensor)
        computing = self._library.current_stream(self.device)
        with self._library.stream(self._copies):
            there = pinned.to(self.device, non_blocking=True)
        computing.wait_stream(self._copies)
        there.record_stream(computing)  # its memory is free once the work that reads it is done
        return there

    @staticmethod
    def _pinned(tensor: Tensor) -> Tensor:
        """A copy that the device reads by itself; the allocator keeps it until it has."""
        return tensor.pin_memory()

    @contextmanager
    def exactly(self) -> Iterator[None]:
        """Without TF32, which torch takes for convolutions unless it is told not to."""
        with self.telling(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            yield

    @contextmanager
    def telling(self) -> Iterator[None]:
        """An index out of range stops the device for good; torch says so at whatever is asked next."""
        try:
            yield
        except RuntimeError as error:
            if "device-side assert" not in str(error):
                raise
            raise ExecutionError(
                "a kernel on the device refused its input: most likely an index is out of range for its axis",
                hint="the device cannot be used again in this process; providers=['cpu'] says which node it is",
            ) from error

    def capture(self, work: Callable[[], tuple[Any, ...]]) -> tuple[Replay, tuple[Any, ...]]:
        """A CUDA graph; the work must have run before, so that libraries have taken what they need."""
        graph = self._library.CUDAGraph()
        with self._library.graph(graph, capture_error_mode="thread_local"):  # other threads go on as they please
            results = work()
        return graph.replay, results

    def synchronize(self) -> None:
        """Wait until all work that was queued is done."""
        self._library.synchronize(self.device)

    def in_use(self) -> int:
        """Bytes of the tensors there are, of all sessions."""
        return int(self._library.memory_allocated(self.device))

    def trim(self) -> None:
        """Give the allocator's cache back to the device."""
        self._library.empty_cache()


class Metal(Accelerator):
    """A device of Apple's.

    Args:
        device: As tensors have it.
        library: ``torch.mps``, or what stands in for it.
    """

    def __init__(self, device: torch.device, library: Any = torch.mps) -> None:
        super().__init__(device)
        self._library = library

    def synchronize(self) -> None:
        """Wait until all work that was queued is done."""
        self._library.synchronize()

    def in_use(self) -> int:
        """Bytes of the tensors there are, of all sessions."""
        return int(self._library.current_allocated_memory())

    def trim(self) -> None:
        """Give the allocator's cache back to the device."""
        self._library.empty_cache()

"""What captures take from torch's private side for transforms and questions; ``torch/upstream.py`` has the rest."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch._C import DisableTorchFunction as UnseenByModes
from torch._C import DispatchKey
from torch._subclasses.fake_tensor import FakeTensorConverter
from torch._subclasses.fake_tensor import in_kernel_invocation_manager as as_for_kernels
from torch.fx.experimental import symbolic_shapes as size_questions

__all__ = ["FakeTensorConverter", "UnseenByModes", "as_for_kernels", "factors_stay_numbers", "size_questions"]

_TRANSFORMED = DispatchKey.FuncTorchDynamicLayerFrontMode
"""Where a call is before any transform of ``torch.func`` has seen it."""
_BY_NUMBERS: tuple[tuple[Any, Any], ...] = (
    (torch.ops.aten.mul.Tensor, torch.ops.aten.mul.Scalar),
    (torch.ops.aten.mul_.Tensor, torch.ops.aten.mul_.Scalar),
    (torch.ops.aten.div.Tensor, torch.ops.aten.div.Scalar),
    (torch.ops.aten.div_.Tensor, torch.ops.aten.div_.Scalar),
)


@contextlib.contextmanager
def factors_stay_numbers() -> Iterator[None]:
    """Inside, functions that ``torch.func`` transforms may multiply and divide by numbers of Python.

    torch (2.13) makes such a number a tensor, keeps it for the gradient, and asks the data of what stands for it there:
    "Cannot access data pointer of Tensor that doesn't have storage". Overloads that take numbers keep none.
    """
    added = [(operator, number) for operator, number in _BY_NUMBERS if _TRANSFORMED not in operator.py_kernels]
    for operator, by_number in added:
        operator.py_impl(_TRANSFORMED)(_kernel(operator, by_number))
    try:
        yield
    finally:
        for operator, _ in added:
            del operator.py_kernels[_TRANSFORMED]
            operator._dispatch_cache.clear()  # noqa: SLF001 - as py_impl does


def _kernel(operator: Any, by_number: Any) -> Any:
    def call(tensor: Any, other: Any) -> Any:
        if isinstance(other, torch.Tensor):
            return operator._op_dk(_TRANSFORMED, tensor, other)  # noqa: SLF001 - what torch calls without this
        return by_number(tensor, other)

    return call

"""What captures take from torch's private side: transforms, questions, scripts; ``torch/upstream.py`` has the rest."""

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
from torch.jit._trace import TopLevelTracedModule, TracedModule

__all__ = [
    "FakeTensorConverter",
    "UnseenByModes",
    "as_for_kernels",
    "factors_stay_numbers",
    "has_own_kernel",
    "list_operators",
    "scripted_class",
    "scripted_values",
    "size_questions",
    "transforms_ended",
]

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


@contextlib.contextmanager
def transforms_ended() -> Iterator[None]:
    """After it, no more transforms of ``torch.func`` are under way than before.

    A capture notes that ``vmap`` ends as one more node of its graph (2.13), and does not end it where somebody ends the
    capture there: whatever the user computes from then on would be taken for a part of that ``vmap``.
    """
    depth = torch._C._functorch.get_dynamic_layer_stack_depth()  # noqa: SLF001 - torch's own way for its compiler
    try:
        yield
    finally:
        if torch._C._functorch.get_dynamic_layer_stack_depth() > depth:  # noqa: SLF001
            torch._C._functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)  # noqa: SLF001


def list_operators() -> dict[str, Any]:
    """``torch._foreach_mul`` and its like, by what they do to each tensor of a list."""
    return {name.removeprefix(_LISTS): vars(torch)[name] for name in vars(torch) if name.startswith(_LISTS)}


_LISTS = "_foreach_"


def scripted_class(script: torch.jit.ScriptModule) -> type[torch.nn.Module] | None:
    """The class of the module that was scripted; ``None`` where it was traced, or read from a file."""
    if isinstance(script, TracedModule | TopLevelTracedModule):
        return None
    made = vars(script).get("_concrete_type")
    kind = None if made is None else made.py_class
    return kind if isinstance(kind, type) and issubclass(kind, torch.nn.Module) else None


def scripted_values(script: torch.jit.ScriptModule) -> Iterator[tuple[str, Any]]:
    """What a module that was scripted holds besides tensors and parts: numbers, lists, constants, functions."""
    made: Any = vars(script)["_concrete_type"]
    for name in (*made.get_attributes(), *made.get_constants()):
        if name not in ("training", "_is_full_backward_hook"):
            yield name, getattr(script, name)


def _kernel(operator: Any, by_number: Any) -> Any:
    def call(tensor: Any, other: Any) -> Any:
        if isinstance(other, torch.Tensor):
            return operator._op_dk(_TRANSFORMED, tensor, other)  # noqa: SLF001 - what torch calls without this
        return by_number(tensor, other)

    return call


def has_own_kernel(operator: Any) -> bool:
    """Whether torch computes an operator by itself, although it may be made of others."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), "CPU"))  # noqa: SLF001

"""What Python reads of a module's own buffers while it is captured is what they hold, as it is in every call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from entrepot.exporters.torch.upstream import FakeTensor, pytree, without_modes

_MOST = 4096
"""Elements of what is computed beside the capture; Python decides by few."""

_READING = frozenset(
    ("__bool__", "__int__", "__float__", "__index__", "__contains__", "item", "tolist", "is_nonzero", "equal")
)


@contextlib.contextmanager
def held_values(flat: torch.nn.Module) -> Iterator[None]:
    """Inside, a branch by a buffer of ``flat``, or by what is computed of buffers alone, is the branch that it takes.

    A buffer that is changed in place, or replaced, is no longer known.
    """
    held = {name: buffer for name, buffer in flat.named_buffers() if buffer.numel() <= _MOST}
    if not held:
        yield
        return
    values = _Held(held)
    hook = flat.register_forward_pre_hook(lambda module, _: values.begin(module))
    try:
        with values:
            yield
    finally:
        hook.remove()


class _Held(TorchFunctionMode):
    """Knows what some tensors hold that the capture sees without values."""

    def __init__(self, held: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self._held = held
        self._known: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def begin(self, module: torch.nn.Module) -> None:
        """At the start of a call: which tensors stand for the buffers now."""
        found = ((buffer, self._held.get(name)) for name, buffer in module.named_buffers())
        self._known = {
            id(buffer): (buffer, real) for buffer, real in found if real is not None and isinstance(buffer, FakeTensor)
        }

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Read what is known, make any other call, and remember what follows."""
        kwargs = kwargs or {}
        if not self._known:
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        leaves, form = pytree.tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if _changes(name, kwargs) and any(id(tensor) in self._known for tensor in tensors):
            self._known.clear()  # and views of it, whichever they are
        if name == "__iter__":  # a function of Python, whose own calls no mode sees
            with self:
                return iter(torch.unbind(args[0], 0))
        real = self._real(leaves, tensors)
        if real is None:
            return func(*args, **kwargs)
        given, named = pytree.tree_unflatten(real, form)
        if name in _READING:
            with without_modes():
                return func(*given, **named)
        result = func(*args, **kwargs)
        self._remember(result, lambda: func(*given, **named))
        return result

    def _real(self, leaves: Sequence[Any], tensors: Sequence[torch.Tensor]) -> list[Any] | None:
        """The same arguments with what they hold; ``None`` if that is not known of all."""
        if not tensors or any(id(tensor) not in self._known for tensor in tensors):
            return None
        if any(isinstance(leaf, torch.SymInt | torch.SymFloat | torch.SymBool) for leaf in leaves):
            return None
        return [self._known[id(leaf)][1] if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]

    def _remember(self, result: Any, compute: Callable[[], Any]) -> None:
        made = pytree.tree_leaves(result)
        if not all(isinstance(each, FakeTensor) and _is_small(each) for each in made):
            return
        with without_modes():
            before = torch.get_rng_state()
            values = pytree.tree_leaves(compute())
            if not torch.equal(before, torch.get_rng_state()):  # another one in the next call
                torch.set_rng_state(before)
                return
        self._known |= {id(each): (each, value) for each, value in zip(made, values, strict=True)}


def _is_small(tensor: torch.Tensor) -> bool:
    return all(isinstance(size, int) for size in tensor.shape) and tensor.numel() <= _MOST


def _changes(name: str, kwargs: dict[str, Any]) -> bool:
    """Whether a function writes into an argument: ``add_``, ``__iadd__``, ``__setitem__``, or ``out=``."""
    if name.startswith("__"):
        return name == "__setitem__" or (name.startswith("__i") and name not in _READING | {"__invert__"})
    return name.endswith("_") or kwargs.get("out") is not None

"""Weights that a module computes from others each time it runs: computed once, and captured as weights.

Parametrisations (weight and spectral norm, orthogonal matrices), the hooks that came before them, and pruning. That
leaves fewer nodes and no second set of weights, and it needs no translation of what they compute.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import torch
from torch.nn.utils import parametrize

from entrepot.exporters.torch.running.swapping import put_back
from entrepot.exporters.torch.upstream import BasePruningMethod, SpectralNorm, WeightNorm

_FOLLOWED: ContextVar[bool] = ContextVar("_FOLLOWED", default=False)


@contextlib.contextmanager
def followed(share: bool) -> Iterator[None]:
    """Inside, if weights are shared, they are computed in the graph, so that it follows what they are computed from."""
    token = _FOLLOWED.set(share)
    try:
        yield
    finally:
        _FOLLOWED.reset(token)


@contextlib.contextmanager
def settled_weights(root: torch.nn.Module) -> Iterator[None]:
    """Inside, such weights are parameters of their own."""
    parts = [part for part in root.modules() if _computes(part) and not part.training]
    if _FOLLOWED.get() or not parts:
        yield
        return
    with put_back(parts):
        for part in parts:
            _settle(part)
        yield


def _computes(part: torch.nn.Module) -> bool:
    if isinstance(part, torch.jit.ScriptModule):
        return False
    return parametrize.is_parametrized(part) or any(_weight_of(hook, part) for hook in _hooks(part).values())


def _settle(part: torch.nn.Module) -> None:
    weights = {}
    if parametrize.is_parametrized(part):
        lists = part.get_submodule("parametrizations")
        weights = {name: getattr(part, name) for name, _ in lists.named_children()}
        del part._modules["parametrizations"]  # noqa: SLF001 - as torch's own remove_parametrizations does
        part.__class__ = type(part).__bases__[0]
    for key, hook in list(_hooks(part).items()):
        found = _weight_of(hook, part)
        if found is not None:
            name, value, sources = found
            del _hooks(part)[key]
            vars(part).pop(name, None)
            for source in sources:
                part._parameters.pop(source, None)  # noqa: SLF001
                part._buffers.pop(source, None)  # noqa: SLF001
            weights[name] = value
    for name, value in weights.items():
        part._parameters[name] = torch.nn.Parameter(value.detach().clone(), requires_grad=False)  # noqa: SLF001


def _hooks(part: torch.nn.Module) -> dict[int, object]:
    return part._forward_pre_hooks  # type: ignore[return-value] # noqa: SLF001 - where they are kept


def _weight_of(hook: Any, part: torch.nn.Module) -> tuple[str, torch.Tensor, tuple[str, ...]] | None:
    """The weight that a hook computes before each call: its name, its value, the names of what it is made of."""
    if isinstance(hook, WeightNorm):
        return hook.name, hook.compute_weight(part), (f"{hook.name}_g", f"{hook.name}_v")
    if isinstance(hook, SpectralNorm):
        name = hook.name
        return name, hook.compute_weight(part, do_power_iteration=False), (f"{name}_orig", f"{name}_u", f"{name}_v")
    if isinstance(hook, BasePruningMethod):
        name = hook._tensor_name  # noqa: SLF001 - no public name
        return name, hook.apply_mask(part), (f"{name}_orig", f"{name}_mask")
    return None

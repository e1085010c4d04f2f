"""Run a builder reproducibly and finish the module for inference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from entrepot.models_zoo.registry import Built

SEED = 20


def make(builder: Callable[..., Built], parameters: dict[str, Any]) -> Built:
    """Call ``builder`` under a fixed seed, give its norms statistics, and put it in eval mode.

    The global random state is as it was afterwards.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)  # torch.manual_seed would seed every device for good
        built = builder(**parameters)
        _settle_norms(built.module, built.samples[-1])
    built.module.eval()
    return built


def _settle_norms(module: nn.Module, sample: tuple[Any, ...] | dict[str, Any]) -> None:
    """Give untrained BatchNorms statistics of their own inputs, then disturb everything that would be 0 or 1.

    Random statistics alone would make a deep network's activations explode or vanish, and parity on them worthless.
    """
    norms = [norm for norm in module.modules() if isinstance(norm, _BatchNorm) and norm.num_batches_tracked == 0]
    if not norms:
        return
    for norm in norms:
        norm.momentum, norm.restore = 1.0, norm.momentum  # type: ignore[assignment]
    with torch.no_grad():
        module.train()
        module(**sample) if isinstance(sample, dict) else module(*sample)
        for norm in norms:
            norm.momentum = norm.__dict__.pop("restore")
            _disturb(norm)


def _disturb(norm: _BatchNorm) -> None:
    assert norm.running_mean is not None
    assert norm.running_var is not None
    norm.running_mean += 0.2 * norm.running_var.sqrt() * torch.randn_like(norm.running_mean)
    norm.running_var *= torch.empty_like(norm.running_var).uniform_(0.7, 1.4)
    norm.weight.uniform_(0.7, 1.3)
    norm.bias.normal_(0.0, 0.2)

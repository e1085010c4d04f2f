"""Norms of torch, where the scales have the input's type; the shared meanings do the rest."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from entrepot.runtime.kernels import normalization as shared
from entrepot.runtime.kernels.axes import counted
from entrepot.runtime.providers.torch.backend import TorchBackend
from entrepot.runtime.providers.torch.table import native


def _alike(x: Tensor, *others: Tensor | None) -> bool:
    return all(other is None or other.dtype == x.dtype for other in others)


@native("BatchNormalization", 15)
def batch_normalization(
    X: Tensor,
    scale: Tensor,
    B: Tensor,
    input_mean: Tensor,
    input_var: Tensor,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Any:
    """Normalise each channel by the given statistics, or in training by the batch's own."""
    if training_mode or not _alike(X, scale, B, input_mean, input_var):
        return shared.batch_normalization(
            TorchBackend(X.device), X, scale, B, input_mean, input_var, epsilon=epsilon, momentum=momentum,
            training_mode=training_mode,
        )  # fmt: skip
    shared.check_channels(X.shape, *[each.shape for each in (scale, B, input_mean, input_var)])
    y = torch.batch_norm(X, scale, B, input_mean, input_var, False, 0.0, epsilon, False)
    return y, input_mean, input_var


@native("InstanceNormalization", 22)
def instance_normalization(input: Tensor, scale: Tensor, B: Tensor, *, epsilon: float = 1e-5) -> Tensor:
    """Normalise each channel of each sample by its own mean and variance."""
    if not _alike(input, scale, B) or not input.numel():
        return shared.instance_normalization(TorchBackend(input.device), input, scale, B, epsilon=epsilon)
    shared.check_channels(input.shape, scale.shape, B.shape)
    return torch.instance_norm(input, scale, B, None, None, True, 0.0, epsilon, False)


@native("GroupNormalization", 21)
def group_normalization(
    X: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    """Normalise groups of channels of each sample; scale and bias are per channel."""
    if not _alike(X, scale, bias) or not X.numel() or num_groups < 1 or X.shape[1] % num_groups:
        return shared.group_normalization(
            TorchBackend(X.device), X, scale, bias, num_groups=num_groups, epsilon=epsilon, stash_type=stash_type
        )
    shared.check_channels(X.shape, scale.shape, bias.shape)
    return torch.group_norm(X, num_groups, scale, bias, epsilon)


@native("LayerNormalization", 17)
def layer_normalization(
    X: Tensor,
    Scale: Tensor,
    B: Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    n_outputs: int = 1,
) -> tuple[Tensor, ...]:
    """Normalise over the axes from ``axis`` on; also the mean and the inverse deviation."""
    shape = X.shape[counted(axis, X.ndim) :] if X.ndim else X.shape
    fits = X.ndim and Scale.shape == shape and (B is None or B.shape == shape) and math.prod(shape)
    if n_outputs > 1 or not fits or not _alike(X, Scale, B):
        return shared.layer_normalization(
            TorchBackend(X.device), X, Scale, B, axis=axis, epsilon=epsilon, stash_type=stash_type
        )
    return (torch.layer_norm(X, shape, Scale, B, epsilon),)


@native("RMSNormalization", 23)
def rms_normalization(
    X: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    """Divide by the root of the mean square over the axes from ``axis`` on."""
    shape = X.shape[counted(axis, X.ndim) :] if X.ndim else X.shape
    if not X.ndim or scale.shape != shape or not _alike(X, scale) or not math.prod(shape):
        return shared.rms_normalization(
            TorchBackend(X.device), X, scale, axis=axis, epsilon=epsilon, stash_type=stash_type
        )
    return torch.rms_norm(X, shape, scale, epsilon)

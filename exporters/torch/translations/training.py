"""What modules do in training mode only: statistics of the batch, and dropout.

torch.onnx (2.13) leaves the statistics of a batch normalisation to an operator that runtimes do not run in training
mode, and makes a Dropout node that onnxruntime (1.31) draws only once.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from entrepot.exporters.torch.rewriting.environment import hint

aten = torch.ops.aten
Maybe = torch.Tensor | None


def batch_norm(  # the signature is torch's
    input: torch.Tensor,
    running_mean: Maybe,
    running_var: Maybe,
    weight: Maybe = None,
    bias: Maybe = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> torch.Tensor:
    """Normalised by the mean and variance of the batch, which also move the running ones."""
    if not training and any(hint(size) is None for size in input.shape):  # torch asks whether there are any elements
        plain = aten._native_batch_norm_legit_no_training  # noqa: SLF001 - what its layer becomes
        return plain(input, weight, bias, running_mean, running_var, momentum, eps)[0]
    if not training:
        return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    axes = [axis for axis in range(input.dim()) if axis != 1]
    mean = input.mean(axes)
    centred = input - _by_channel(mean, input)
    variance = (centred**2).mean(axes)
    count = input.numel() // input.shape[1]
    _move(running_mean, mean, momentum, count)
    _move(running_var, variance * (count / (count - 1)), momentum, count)
    y = centred / torch.sqrt(_by_channel(variance, input) + eps)
    y = y if weight is None else y * _by_channel(weight, y)
    return y if bias is None else y + _by_channel(bias, y)


def instance_norm(  # the signature is torch's
    input: torch.Tensor,
    running_mean: Maybe = None,
    running_var: Maybe = None,
    weight: Maybe = None,
    bias: Maybe = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> torch.Tensor:
    """Normalised by each instance; the running statistics move by the mean over instances."""
    if use_input_stats and running_mean is not None:
        axes = list(range(2, input.dim()))
        _move(running_mean, input.mean(axes).mean(0), momentum, input.numel())
        _move(running_var, input.var(axes).mean(0), momentum, input.numel())
        running_mean = running_var = None
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def dropout(x: torch.Tensor, p: float, train: bool | None = True) -> torch.Tensor:
    """Zero with probability ``p``, and else larger by as much as that takes away."""
    if not train or p == 0:
        return NotImplemented
    return torch.where(torch.rand_like(x) < p, 0.0, x / (1 - p)) if p < 1 else torch.zeros_like(x)


def native_dropout(x: torch.Tensor, p: float, train: bool | None = True) -> tuple[torch.Tensor, torch.Tensor]:
    """The same with the mask of what is kept."""
    if not train or not 0 < p < 1:
        return NotImplemented
    kept = torch.rand_like(x) >= p
    return torch.where(kept, x / (1 - p), 0.0), kept


def _move(running: Maybe, now: torch.Tensor, momentum: float, count: int) -> None:
    """Towards what is now, unless that is the mean of nothing."""
    if running is not None:
        moved = (1 - momentum) * running + momentum * now
        running.copy_(torch.where(torch.scalar_tensor(count) > 0, moved, running))


def _by_channel(values: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return values.reshape([-1] + [1] * (x.dim() - 2))


REPLACEMENTS = {F.batch_norm: batch_norm, F.instance_norm: instance_norm}
DECOMPOSITIONS = {torch.ops.aten.dropout.default: dropout, torch.ops.aten.native_dropout.default: native_dropout}

"""Random operators, by torch's generators where the input is.

With a ``seed`` attribute a node gives the same numbers at every run; without one, other numbers each time. The
specification leaves the generator open: two runtimes never agree on the values, only on their distribution.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from torch import Tensor

from entrepot.ir.errors import InputError
from entrepot.runtime.providers.torch.dtypes import torch_dtype
from entrepot.runtime.providers.torch.moving import claim
from entrepot.runtime.providers.torch.table import native

HostArray = np.ndarray[Any, Any]


def _generator(seed: float | None, device: torch.device) -> torch.Generator | None:
    # the attribute is a float: its bit pattern is the seed, so 0.1 and 0.2 differ
    if seed is None or device.type == "meta":
        return None
    return torch.Generator(device).manual_seed(int(np.float32(seed).view(np.uint32)))


def _kind(dtype: int | None, like: Tensor) -> torch.dtype:
    return like.dtype if dtype is None else torch_dtype(np.dtype(ir.DataType(dtype).numpy()))


def _uniform(like: Tensor, seed: float | None) -> Tensor:
    return torch.rand(
        like.shape, generator=_generator(seed, like.device), device=like.device, dtype=torch.float64
    )  # fmt: skip


@native("RandomNormalLike", 22)
def random_normal_like(
    input: Tensor, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Tensor:
    """``RandomNormal`` in the shape of ``input``, and in its element type unless ``dtype`` says otherwise."""
    generator = _generator(seed, input.device)
    draws = torch.randn(input.shape, generator=generator, device=input.device, dtype=torch.float64)
    return (draws * scale + mean).to(_kind(dtype, input))


@native("RandomUniformLike", 22)
def random_uniform_like(
    input: Tensor, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0, seed: float | None = None
) -> Tensor:
    """``RandomUniform`` in the shape of ``input``, and in its element type unless ``dtype`` says otherwise."""
    return (_uniform(input, seed) * (high - low) + low).to(_kind(dtype, input))


@native("Bernoulli", 22)
def bernoulli(input: Tensor, *, dtype: int | None = None, seed: float | None = None) -> Tensor:
    """1 with the probability that ``input`` gives, else 0."""
    return (_uniform(input, seed) < input.to(torch.float64)).to(_kind(dtype, input))


@native("Multinomial", 22)
def multinomial(input: Tensor, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Tensor:
    """Class indices drawn from the unnormalised log-probabilities of each row (by the Gumbel-max rule)."""
    batch, classes = input.shape
    claim((batch, sample_size, classes))
    draws = torch.rand(
        (batch, sample_size, classes), generator=_generator(seed, input.device), device=input.device,
        dtype=torch.float64,
    )  # fmt: skip
    noise = -torch.log(-torch.log1p(-draws))  # 1 - draws is never 0
    return torch.argmax(input.unsqueeze(1).to(torch.float64) + noise, -1).to(_kind(dtype, input))


@native("Dropout", 22)
def dropout(
    data: Tensor,
    ratio: HostArray | None = None,
    training_mode: HostArray | None = None,
    *,
    seed: int | None = None,
    n_outputs: int = 1,
) -> tuple[Tensor, ...]:
    """The data itself, unless training: then a random share is zeroed and the rest scaled up."""
    share = 0.5 if ratio is None else float(ratio.item())
    if training_mode is None or not training_mode.item() or share == 0.0:
        return (data, torch.ones_like(data, dtype=torch.bool)) if n_outputs > 1 else (data,)
    if not 0.0 <= share < 1.0:
        raise InputError(f"Dropout takes a ratio from 0 to below 1, not {share}")
    mask = _drawn(data, seed) >= share
    wide = data if data.dtype is torch.float64 else data.to(torch.float32)
    y = torch.where(mask, wide * (1 / (1 - share)), torch.zeros_like(wide)).to(data.dtype)
    return (y, mask) if n_outputs > 1 else (y,)


def _drawn(data: Tensor, seed: int | None) -> Tensor:
    """Uniform draws; with a seed those of NumPy's legacy generator, which onnx's own tests expect."""
    if seed is None:
        return torch.rand(data.shape, device=data.device)
    return torch.from_numpy(np.asarray(np.random.RandomState(seed).uniform(0, 1, tuple(data.shape)))).to(data.device)

"""Random operators, drawn from the two that every runtime has: uniform and normal numbers.

ONNX's Bernoulli would be one node, but onnxruntime (1.31) follows a definition of it that draws 1 with the probability
of 0; ``tests/exporters/torch/test_random.py`` says when that has changed.
"""

from __future__ import annotations

from typing import Any

import torch

aten = torch.ops.aten


def bernoulli(x: torch.Tensor, *, generator: Any = None) -> torch.Tensor:
    """1 with the probability that each element gives."""
    return (torch.rand_like(x) < x).to(x.dtype)


def bernoulli_p(x: torch.Tensor, p: float, *, generator: Any = None) -> torch.Tensor:
    """1 with one probability, in the shape of a tensor."""
    return (torch.rand_like(_floating(x)) < p).to(x.dtype)


def multinomial(x: torch.Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> torch.Tensor:
    """The largest of logarithms with Gumbel noise: as many as are drawn, all at once without replacement."""
    if replacement:
        return NotImplemented
    noise = -torch.log(-torch.log(torch.rand_like(x)))
    return torch.topk(torch.log(x) + noise, num_samples, dim=-1).indices


def normal_around(mean: torch.Tensor, std: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    """Normal numbers around each element."""
    return mean + std * torch.randn_like(mean)


def normal_of_widths(mean: float, std: torch.Tensor, *, generator: Any = None) -> torch.Tensor:
    """Normal numbers of each element's width."""
    return mean + std * torch.randn_like(std)


def uniform(x: torch.Tensor, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    """Uniform numbers in the shape of a tensor."""
    return low + (high - low) * torch.rand_like(x)


def randperm(n: int, **how: Any) -> torch.Tensor:
    """The order of uniform numbers."""
    order = torch.rand([n]).argsort()
    return order if how.get("dtype") is None else order.to(how["dtype"])


def random_between(x: torch.Tensor, low: int, high: int | None, *, generator: Any = None) -> torch.Tensor:
    """Whole numbers from ``low`` to below ``high``, in the shape of a tensor."""
    if high is None:
        return NotImplemented
    return (low + torch.floor((high - low) * torch.rand_like(_floating(x)))).to(x.dtype)


def random_below(x: torch.Tensor, high: int, *, generator: Any = None) -> torch.Tensor:
    """Whole numbers below ``high``, in the shape of a tensor."""
    return random_between(x, 0, high)


def rrelu(
    x: torch.Tensor, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> torch.Tensor:
    """Negative elements times a slope of their own, or in evaluation times the mean slope."""
    slope = uniform(x, lower, upper) if training else (lower + upper) / 2
    return torch.where(x < 0, x * slope, x)


def _floating(x: torch.Tensor) -> torch.Tensor:
    return x if x.is_floating_point() else x.to(torch.float32)


DECOMPOSITIONS = {
    aten.bernoulli.default: bernoulli,
    aten.bernoulli.p: bernoulli_p,
    aten.multinomial.default: multinomial,
    aten.normal.Tensor_float: normal_around,
    aten.normal.float_Tensor: normal_of_widths,
    aten.uniform.default: uniform,
    aten.randperm.default: randperm,
    getattr(aten.random, "from"): random_between,
    aten.random.to: random_below,
    aten.rrelu.default: rrelu,
}

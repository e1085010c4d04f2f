"""Activations that torch has as one function; the others are formulas over its backend."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from entrepot.runtime.kernels import activation as shared
from entrepot.runtime.kernels.axes import counted
from entrepot.runtime.providers.torch.backend import TORCH
from entrepot.runtime.providers.torch.table import native

native("Relu", 14)(torch.relu)
native("Sigmoid", 13)(torch.sigmoid)


@native("LeakyRelu", 16)
def leaky_relu(X: Tensor, *, alpha: float = 0.01) -> Tensor:
    """X, times ``alpha`` below zero."""
    if not math.isfinite(alpha):  # which torch multiplies zeros by, too
        return shared.leaky_relu(TORCH, X, alpha=alpha)
    return functional.leaky_relu(X, alpha)


@native("Swish", 24)
def swish(X: Tensor, *, alpha: float = 1.0) -> Tensor:
    """X · sigmoid(alpha · x)."""
    return functional.silu(X) if alpha == 1.0 else shared.swish(TORCH, X, alpha=alpha)


@native("HardSwish", 22)
def hard_swish(X: Tensor) -> Tensor:
    """X times HardSigmoid(x, alpha=1/6, beta=0.5)."""
    return functional.hardswish(X) if X.dtype is torch.float32 else shared.hard_swish(TORCH, X)


@native("Softplus", 22)
def softplus(X: Tensor) -> Tensor:
    """log(1 + exp(x)); from 40 on that is x itself in every type."""
    return functional.softplus(X, threshold=40.0)


@native("Mish", 22)
def mish(X: Tensor) -> Tensor:
    """X · tanh(softplus(x))."""
    return functional.mish(X)


@native("Elu", 22)
def elu(X: Tensor, *, alpha: float = 1.0) -> Tensor:
    """X, or alpha · (exp(x) - 1) below zero."""
    return functional.elu(X, alpha)


@native("Selu", 22)
def selu(X: Tensor, *, alpha: float = 1.6732631921768188, gamma: float = 1.0507010221481323) -> Tensor:
    """Elu(x, alpha), times gamma."""
    return torch.ops.aten.elu(X, alpha, gamma)


@native("Gelu", 20)
def gelu(X: Tensor, *, approximate: str = "none") -> Tensor:
    """X · (1 + erf(x / √2)) / 2, or its approximation by tanh."""
    if approximate not in ("none", "tanh"):
        return shared.gelu(TORCH, X, approximate=approximate)  # raises the error that says why
    return functional.gelu(X, approximate=approximate)


@native("Softmax", 13)
def softmax(input: Tensor, *, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along ``axis``."""
    return torch.softmax(input, counted(axis, input.ndim))


@native("LogSoftmax", 13)
def log_softmax(input: Tensor, *, axis: int = -1) -> Tensor:
    """The logarithm of Softmax."""
    return torch.log_softmax(input, counted(axis, input.ndim))

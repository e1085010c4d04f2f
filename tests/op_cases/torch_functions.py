"""Functions of one tensor, of pairs and of rows of torch, and the values at which formulas come apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

EDGES = np.array(
    [
        *(sign * size for size in (0, 1e-30, 1e-7, 1e-3, 0.5, 1, 1.5, 2, 2.5, 3, 4, 7, 10, 30, 90, 100, 1e4, 1e30)
          for sign in (1.0, -1.0)),
        np.nan, np.inf, -np.inf,
    ],
    np.float32,
)  # fmt: skip
"""Zeros of both signs, tiny and large numbers, halves that round to even, NaN and the infinities."""


@dataclass(frozen=True)
class Function:
    """One function and the edge values that it is asked about.

    Attributes:
        name: What tables call it.
        call: Tensors to one tensor.
        inputs: One array per operand, of one shape.
    """

    name: str
    call: Callable[..., torch.Tensor]
    inputs: tuple[np.ndarray, ...]


def functions() -> Iterator[Function]:
    """Those of the three tables below."""
    for operands, table in ((1, UNARY), (2, BINARY)):
        for name, call in table.items():
            yield Function(name, call, edges(operands))
    for name, call in ROWS.items():
        yield Function(name, call, (_rows(),))


def edges(operands: int) -> tuple[np.ndarray, ...]:
    """Every edge value, or every pair of them."""
    grid = np.meshgrid(*[EDGES] * operands, indexing="ij")
    return tuple(axis.reshape(-1).copy() for axis in grid)


def _rows() -> np.ndarray:
    """Rows of four: edge values mixed, with and without those that are not finite, and ill-conditioned rows."""
    rng = np.random.default_rng(0)
    tame = EDGES[np.abs(EDGES) <= 1e4]
    special = [[1000, 1000.01, 999.99, 1000], [100] * 4, [0] * 4, [1e4, -1e4, 0, 0], [90, 0, 0, 0], [-np.inf] * 4]
    rows = [*rng.choice(tame, (200, 4)), *rng.choice(EDGES, (100, 4)), *special]
    return np.array(rows, np.float32)


def _labels(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros(x.shape[0], dtype=torch.int64)


_BOUNDS = torch.tensor([-1.0, 0.0, 1.0, 2.0])

UNARY: dict[str, Callable[..., torch.Tensor]] = {
    "gelu": F.gelu,
    "gelu, tanh": lambda x: F.gelu(x, approximate="tanh"),
    "x * sigmoid(1.702 x)": lambda x: x * torch.sigmoid(1.702 * x),
    "leaky_relu": F.leaky_relu,
    "hardswish": F.hardswish,
    "softplus, beta 2": lambda x: F.softplus(x, beta=2, threshold=5),
    "elu, alpha 0.7": lambda x: F.elu(x, 0.7),
    "celu, alpha 2": lambda x: F.celu(x, 2.0),
    "prelu": lambda x: F.prelu(x, torch.tensor([0.25])),
    "threshold": lambda x: F.threshold(x, 0.1, 20.0),
    "logit, eps": lambda x: torch.logit(x, 1e-6),
    "nan_to_num, values": lambda x: torch.nan_to_num(x, 1.0, 2.0, -2.0),
    "clamp": lambda x: x.clamp(-1, 1),
    "pow 2": lambda x: x**2,
    "pow 0.5": lambda x: x**0.5,
    "pow -1": lambda x: x**-1,
    "pow 3": lambda x: x**3,
    "pow -0.5": lambda x: x**-0.5,
    "2 ** x": lambda x: 2**x,
    "fmod 0.7": lambda x: torch.fmod(x, 0.7),
    "x % 0.7": lambda x: torch.remainder(x, 0.7),
    "x % -2.5": lambda x: x % -2.5,
    "x // 0.3": lambda x: x // 0.3,
    "1 - x": lambda x: 1 - x,
    "round, decimals 2": lambda x: torch.round(x, decimals=2),
    "xlogy, number": lambda x: torch.xlogy(x, 2.0),
    "bucketize": lambda x: torch.bucketize(x, _BOUNDS),
    "bucketize, right": lambda x: torch.bucketize(x, _BOUNDS, right=True),
    "searchsorted": lambda x: torch.searchsorted(_BOUNDS, x),
    "isin": lambda x: torch.isin(x, torch.tensor([0.0, 1.0, 2.0])),
    "masked_fill": lambda x: x.masked_fill(x > 1, 0.0),
    "x / (1 + |x|)": lambda x: x / (1 + x.abs()),
    "-softplus(-x)": lambda x: -F.softplus(-x),
    "polygamma 1": lambda x: torch.polygamma(1, x),
    "polygamma 4": lambda x: torch.polygamma(4, x),
    "multigammaln": lambda x: torch.special.multigammaln(x, 2),
    "log1p, in place": lambda x: (x + 0).log1p_(),
}

BINARY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "clamp, tensor": lambda x, y: torch.clamp(x, min=y),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=0.5),
    "addcdiv": lambda x, y: torch.addcdiv(x, x, y, value=0.5),
    "where NaN": lambda x, y: torch.where(x.isnan(), y, x),
    "max": lambda x, y: x.max(y),
    "isclose, NaN": lambda x, y: torch.isclose(x, y, equal_nan=True),
    "bce of logits": lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"),
    "bce": lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.nan_to_num(0.5).sigmoid(), reduction="none"),
    "mse": lambda x, y: F.mse_loss(x, y, reduction="none"),
    "l1": lambda x, y: F.l1_loss(x, y, reduction="none"),
    "smooth l1": lambda x, y: F.smooth_l1_loss(x, y, reduction="none"),
    "huber": lambda x, y: F.huber_loss(x, y, reduction="none"),
    "soft margin": lambda x, y: F.soft_margin_loss(x, y, reduction="none"),
    "hinge embedding": lambda x, y: F.hinge_embedding_loss(x, y, reduction="none"),
    "poisson nll": lambda x, y: F.poisson_nll_loss(x, y, reduction="none"),
    "poisson nll, full": lambda x, y: F.poisson_nll_loss(x, y, full=True, reduction="none"),
    "gaussian nll": lambda x, y: F.gaussian_nll_loss(x, y, y.abs(), reduction="none"),
    "kl_div": lambda x, y: F.kl_div(x, y, reduction="none"),
    "kl_div, log": lambda x, y: F.kl_div(x, y, log_target=True, reduction="none"),
    "logaddexp2": torch.logaddexp2,
}

ROWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "softmin": lambda x: F.softmin(x, -1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "logcumsumexp": lambda x: x.logcumsumexp(-1),
    "cross entropy": lambda x: F.cross_entropy(x, _labels(x), reduction="none"),
    "multi margin": lambda x: F.multi_margin_loss(x, _labels(x), reduction="none"),
    "attention": lambda x: F.scaled_dot_product_attention(*[x[None, None]] * 3)[0, 0],
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "rms_norm": lambda x: F.rms_norm(x, (4,)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "normalize": lambda x: F.normalize(x, dim=-1),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x.flip(-1), -1),
    "norm": lambda x: x.norm(dim=-1),
    "var": lambda x: x.var(-1),
    "std": lambda x: x.std(-1),
    "mean": lambda x: x.mean(-1),
    "nanmean": lambda x: x.nanmean(-1),
    "sum": lambda x: x.sum(-1),
    "nansum": lambda x: x.nansum(-1),
    "prod": lambda x: x.prod(-1),
    "cumsum": lambda x: x.cumsum(-1),
    "cumprod": lambda x: x.cumprod(-1),
    "amax": lambda x: x.amax(-1),
    "amin": lambda x: x.amin(-1),
    "max, indices": lambda x: x.max(-1).indices,
    "argmax": lambda x: x.argmax(-1),
    "median": lambda x: x.median(-1).values,
    "sort": lambda x: x.sort(-1).values,
    "topk": lambda x: x.topk(2, -1).values,
    "cummax": lambda x: x.cummax(-1).values,
    "max_pool1d": lambda x: F.max_pool1d(x[:, None], 2),
    "avg_pool1d": lambda x: F.avg_pool1d(x[:, None], 2),
    "glu": lambda x: F.glu(x, -1),
    "diff": lambda x: x.diff(dim=-1),
    "trapezoid": lambda x: torch.trapezoid(x, dim=-1),
    "any": lambda x: x.bool().any(-1),
    "all": lambda x: x.bool().all(-1),
    "count_nonzero": lambda x: torch.count_nonzero(x, -1),
}


class Module(torch.nn.Module):
    """A function as a module."""

    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self.call = call

    def forward(self, *args: torch.Tensor) -> Any:
        """Call it."""
        return self.call(*args)


def answers(function: Function) -> tuple[np.ndarray, np.ndarray]:
    """What torch says in float32 and, as the exact values, in float64."""
    with torch.no_grad():
        single, double = (
            function.call(*[torch.from_numpy(array).to(kind) for array in function.inputs])
            for kind in (torch.float32, torch.float64)
        )
    return single.numpy(), double.numpy()

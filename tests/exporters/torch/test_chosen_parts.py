"""Modules and functions that a value takes from a list: a branch for each, wherever they are called."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import entrepot as ep


class Three(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(4, 2) for _ in range(3))
        for at, part in enumerate(self.parts):
            nn.init.constant_(part.weight, at + 1.0)


class ByItem(Three):
    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        index = int(at[0])
        return self.parts[index](x) * 10 + self.parts[index - 1](input=x)


class ByRow(Three):
    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        return torch.stack([self.parts[each](row) for row, each in zip(x, at, strict=True)])


class OfEachKind(Three):
    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        out = torch.zeros(x.shape[0], 2)
        for kind in at.unique().tolist():
            out[at == kind] = self.parts[kind](x[at == kind])
        return out


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleDict({f"part_{at}": nn.Linear(4, 2) for at in (2, 0, 1)} | {"part_x": nn.Linear(4, 2)})
        self.numbered = nn.ModuleDict({str(at): nn.Linear(4, 2) for at in range(3)})
        self.layer0, self.layer1, self.layer2 = (nn.Linear(4, 2) for _ in range(3))


class ByName(Named):
    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        out = torch.zeros(x.shape[0], 2)
        for kind in at.unique():
            rows = torch.where(at == kind)[0]
            name = f"{kind}"
            out.index_add_(0, rows, self.parts[f"part_{name}"](x[rows]))
        return out


class ByText(Named):
    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        first = str(int(at[0]))
        return self.numbered[first](x) + self.parts["part_" + first](x)


class ByAttribute(Named):
    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        return getattr(self, f"layer{at.max().item()}")(x)


class Function(nn.Module):
    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        return (torch.relu, torch.tanh, torch.neg)[at.sum() % 3](x)


class Attention(nn.Module):
    """The number of rows depends on values."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        groups = int(at.max()) + 1
        rows = torch.zeros(groups, x.shape[0], 4).index_put((at, torch.arange(x.shape[0])), x)
        return self.attention(rows, rows, rows, need_weights=False)[0]


@pytest.mark.parametrize("kind", [ByItem, ByRow, OfEachKind, ByName, ByText, ByAttribute, Function, Attention])
def test_what_values_choose_is_followed(kind: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    module = kind().eval()
    model = ep.export(module, (torch.randn(4, 4), torch.tensor([1, 0, 2, 1])), progress=False)
    session = ep.Session(model, providers=["onnxruntime"])
    for at in ([0, 1], [2], [1, 2, 0, 0, 2], [0, 0]):
        x, chosen = torch.randn(len(at), 4), torch.tensor(at)
        with torch.no_grad():
            expected = module(x, chosen).numpy()
        found = session.run({"x": x.numpy(), "at": chosen.numpy()})
        np.testing.assert_allclose(next(iter(found.values())), expected, rtol=1e-4, atol=1e-5)


class Elsewhere(Named):
    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        return {"layer0": x, "layer1": -x, "layer2": 2 * x}[f"layer{at.max().item()}"]


def test_a_text_that_is_not_known_decides_nothing() -> None:
    with pytest.raises(ep.ConversionError):
        ep.export(Elsewhere().eval(), (torch.randn(4, 4), torch.tensor([1, 0, 2, 1])), progress=False)

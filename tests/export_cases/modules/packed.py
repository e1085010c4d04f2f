"""Sequences of different lengths: packed, nested, padded, bags of embeddings."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.export_cases.case import case


class Packed(nn.Module):
    """The usual classifier on packed sequences."""

    def __init__(self, layer: nn.Module, *, last: bool) -> None:
        super().__init__()
        self.rnn, self.last = layer, last

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, state = self.rnn(packed)
        if self.last:
            return (state[0] if isinstance(state, tuple) else state)[-1]
        return pad_packed_sequence(out, batch_first=True)[0]


def _call(batch: int, length: int) -> tuple[Tensor, Tensor]:
    lengths = torch.randint(1, length + 1, (batch,))
    lengths[batch // 2] = length
    return randn(batch, length, 3), lengths


@case("x.0", "x.1", "lengths.0")
def packed_lstm():
    return Packed(nn.LSTM(3, 4, batch_first=True), last=False), _call(2, 5), _call(4, 8)


@case("x.0", "x.1", "lengths.0")
def packed_bidirectional_gru_last_state():
    return Packed(nn.GRU(3, 4, batch_first=True, bidirectional=True), last=True), _call(2, 5), _call(4, 8)


@case("x.0", "x.1", "lengths.0")
def packed_two_layer_lstm_last_state():
    return Packed(nn.LSTM(3, 4, num_layers=2, batch_first=True), last=True), _call(3, 6), _call(2, 9)


@case("ids.0", "offsets.0")
def embedding_bag_with_offsets():
    bag = nn.EmbeddingBag(12, 4, mode="sum")
    sample = torch.randint(0, 12, (7,)), torch.tensor([0, 3, 5])
    return bag, sample, (torch.randint(0, 12, (11,)), torch.tensor([0, 2, 2, 9]))


@case("ids.0", "ids.1")
def embedding_bag_of_rows():
    return (
        nn.EmbeddingBag(12, 4, mode="mean", padding_idx=0),
        (torch.randint(0, 12, (2, 5)),),
        (torch.randint(0, 12, (4, 7)),),
    )


class Weighted(nn.Module):
    """A bag with a weight for each entry."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(12, 4, mode="sum")

    def forward(self, ids: Tensor, weights: Tensor, offsets: Tensor) -> Tensor:
        return self.bag(ids, offsets, per_sample_weights=weights)


@case("ids.0", "weights.0", "offsets.0")
def weighted_embedding_bag():
    return (
        Weighted(),
        (torch.randint(0, 12, (7,)), randn(7), torch.tensor([0, 3, 5])),
        (torch.randint(0, 12, (9,)), randn(9), torch.tensor([0, 4])),
    )


class DeepSets(nn.Module):
    """A set with a mask, pooled."""

    def __init__(self) -> None:
        super().__init__()
        self.phi, self.rho = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        mask = torch.arange(x.shape[1])[None] < lengths[:, None]
        total = (self.phi(x) * mask.unsqueeze(-1)).sum(1)
        return self.rho(total / lengths.unsqueeze(1).clamp(min=1))


@case("x.0", "x.1", "lengths.0")
def masked_set():
    return DeepSets(), _call(2, 5), _call(4, 8)


class Factorisation(nn.Module):
    """DLRM: bags, dense features, and all pairwise interactions."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(10, 4, mode="sum") for _ in range(3))
        self.dense, self.top = nn.Linear(5, 4), nn.Linear(4 + 6, 1)

    def forward(self, dense: Tensor, sparse: list[Tensor]) -> Tensor:
        d = F.relu(self.dense(dense))
        parts = torch.stack([d, *(bag(ids) for bag, ids in zip(self.bags, sparse, strict=True))], 1)
        rows, columns = torch.tril_indices(4, 4, offset=-1)
        crosses = torch.bmm(parts, parts.transpose(1, 2))[:, rows, columns]
        return torch.sigmoid(self.top(torch.cat([d, crosses], 1)))


@case("dense.0", "sparse.0.0", "sparse.1.0", "sparse.2.0")
def click_prediction():
    def call(batch: int):
        return randn(batch, 5), [torch.randint(0, 10, (batch, 2)) for _ in range(3)]

    return Factorisation(), call(2), call(5)

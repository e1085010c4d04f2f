"""Recommenders: behaviour that is attended to, crossed fields, sequences of items, items seen before."""

from __future__ import annotations

from itertools import combinations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class Interest(nn.Module):
    """What a user did, weighed by how much it has to do with a candidate."""

    class Dice(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.norm, self.alpha = nn.BatchNorm1d(width, affine=False), nn.Parameter(torch.full((width,), 0.2))

        def forward(self, x: Tensor) -> Tensor:
            p = torch.sigmoid(self.norm(x.reshape(-1, x.shape[-1]))).reshape(x.shape)
            return p * x + (1 - p) * self.alpha * x

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.items = nn.Embedding(50, width, padding_idx=0)
        self.attention = nn.Sequential(nn.Linear(4 * width, 8), self.Dice(8), nn.Linear(8, 1))
        self.head = nn.Sequential(nn.Linear(2 * width, 8), self.Dice(8), nn.Linear(8, 1))

    def forward(self, history: Tensor, candidate: Tensor) -> Tensor:
        keys, query = self.items(history), self.items(candidate)
        queries = query.unsqueeze(1).expand(-1, keys.shape[1], -1)
        weights = self.attention(torch.cat([queries, keys, queries - keys, queries * keys], -1)).squeeze(-1)
        weights = torch.where(history != 0, weights, torch.full_like(weights, -(2**32) + 1)).softmax(-1)
        user = torch.bmm(weights.unsqueeze(1), keys).squeeze(1)
        return self.head(torch.cat([user, query], -1)).squeeze(-1).sigmoid()


@case("history.0", "history.1", "candidate.0")
def interest_in_a_candidate():
    def call(b: int, t: int) -> tuple[Tensor, Tensor]:
        history = torch.randint(1, 50, (b, t))
        history[0, t - 1 :] = 0
        return history, torch.randint(1, 50, (b,))

    return Interest(), call(3, 5), call(2, 9), call(1, 2)


class Crossed(nn.Module):
    """Numbers and categories as vectors; every pair of them multiplied; a cross network beside it."""

    def __init__(self, sizes: tuple[int, ...] = (5, 7, 9), width: int = 4) -> None:
        super().__init__()
        self.tables = nn.ModuleDict({f"field_{i}": nn.Embedding(n, width) for i, n in enumerate(sizes)})
        self.dense = nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, width))
        self.cross = nn.ModuleList([nn.Linear(16, 16) for _ in range(2)])
        self.pairs = list(combinations(range(4), 2))
        self.head = nn.Linear(len(self.pairs) + 16, 1)

    def forward(self, dense: Tensor, sparse: dict[str, Tensor]) -> Tensor:
        vectors = [self.dense(torch.log1p(dense.clamp(min=0)))]
        vectors += [table(sparse[name]) for name, table in self.tables.items()]
        products = torch.stack([(vectors[i] * vectors[j]).sum(-1) for i, j in self.pairs], -1)
        x0 = x = torch.cat(vectors, -1)
        for layer in self.cross:
            x = x0 * layer(x) + x
        return torch.sigmoid(self.head(torch.cat([products, x], -1)))[:, 0]


@case("dense.0")
def crossed_fields():
    def call(b: int) -> tuple:
        return randn(b, 6), {f"field_{i}": torch.randint(0, n, (b,)) for i, n in enumerate((5, 7, 9))}

    return Crossed(), call(4), call(1), call(7)


class NextItem(nn.Module):
    """The next item of a session: padded at the left, what was seen is not recommended again."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.items, self.positions = nn.Embedding(30, width, padding_idx=0), nn.Embedding(20, width)
        self.attention = nn.ModuleList([nn.MultiheadAttention(width, 2) for _ in range(2)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])

    def forward(self, session: Tensor) -> tuple[Tensor, Tensor]:
        padding = session == 0
        positions = (~padding).long().cumsum(-1) - 1
        x = self.items(session) * self.items.embedding_dim**0.5 + self.positions(positions.clamp(min=0))
        x = x * ~padding.unsqueeze(-1)
        length = session.shape[1]
        causal = ~torch.tril(torch.ones((length, length), dtype=torch.bool))
        for attention, norm in zip(self.attention, self.norms, strict=True):
            y = x.transpose(0, 1)
            y, _ = attention(norm(y), y, y, attn_mask=causal)
            x = (x + y.transpose(0, 1)) * ~padding.unsqueeze(-1)
        scores = x[:, -1] @ self.items.weight.T
        scores = scores.scatter(1, session, float("-inf"))
        scores[:, 0] = float("-inf")
        best = scores.topk(5, -1)
        return best.indices, best.values


@case("session.0", "session.1")
def next_item_of_a_session():
    def call(b: int, t: int) -> tuple[Tensor]:
        session = torch.stack([torch.randperm(29)[:t] + 1 for _ in range(b)])
        session[0, : t // 2] = 0
        return (session,)

    return NextItem(), call(3, 6), call(2, 9), call(1, 4)


class Tasks(nn.Module):
    """Experts shared by several tasks; sessions of unequal length as one bag of items."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(40, 6, mode="mean", padding_idx=0)
        self.experts = nn.ModuleList([nn.Linear(8, 5) for _ in range(3)])
        self.gates = nn.ParameterDict({name: nn.Parameter(randn(8, 3)) for name in ("click", "buy")})
        self.towers = nn.ModuleDict({name: nn.Linear(5, 1) for name in ("click", "buy")})

    def forward(self, items: Tensor, user: Tensor) -> dict[str, Tensor]:
        x = torch.cat([self.bag(items), user], -1)
        experts = torch.stack([F.relu(expert(x)) for expert in self.experts], 1)
        results = {}
        for name, tower in self.towers.items():
            gate = (x @ self.gates[name]).softmax(-1).unsqueeze(1)
            results[name] = torch.sigmoid(tower((gate @ experts).squeeze(1)))
        results["both"] = results["click"] * results["buy"]
        return results


@case("items.0", "items.1", "user.0")
def experts_of_several_tasks():
    def call(b: int, n: int) -> tuple[Tensor, Tensor]:
        return torch.randint(0, 40, (b, n)), randn(b, 2)

    return Tasks(), call(3, 4), call(2, 7), call(5, 1)

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built


def dlrm(*, features: int = 13, tables: int = 4, rows: int = 50, width: int = 8, bag: int = 3) -> Built:
    """DLRM (Naumov et al., 2019): dense features and bags of ids to a click probability."""
    module = DLRM(features, tables, rows, width)
    samples = tuple(
        (torch.randn(batch, features), torch.randint(rows, (batch, tables, length)))
        for batch, length in ((1, bag), (5, bag + 2))
    )
    return Built(module, samples, frozenset({"dense.0", "ids.0", "ids.2"}))


def two_tower(*, users: int = 100, items: int = 80, width: int = 16, history: int = 6) -> Built:
    """A user and an item, each a dict of features, to their similarity."""
    samples = tuple(_pair(users, items, batch, length) for batch, length in ((1, history), (4, history + 3)))
    batch = {"user.id.0", "user.age.0", "user.history.0", "item.id.0", "item.price.0"}
    return Built(TwoTower(users, items, width), samples, frozenset(batch | {"user.history.1"}))


def _pair(users: int, items: int, batch: int, history: int) -> dict[str, dict[str, Tensor]]:
    user = {
        "id": torch.randint(users, (batch,)),
        "age": torch.rand(batch) * 60 + 18,
        "history": torch.randint(items, (batch, history)),  # 0 is padding
    }
    return {"user": user, "item": {"id": torch.randint(1, items, (batch,)), "price": torch.rand(batch) * 100}}


class DLRM(nn.Module):
    """Bags are summed into vectors; all pairs of vectors are multiplied."""

    def __init__(self, features: int, tables: int, rows: int, width: int) -> None:
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, width), nn.ReLU())
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, dense: Tensor, ids: Tensor) -> Tensor:
        x = self.bottom(dense)
        vectors = torch.stack([x, *(table(ids[:, index]) for index, table in enumerate(self.tables))], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        rows, columns = torch.tril_indices(vectors.shape[1], vectors.shape[1], offset=-1)
        return torch.sigmoid(self.top(torch.cat([x, products[:, rows, columns]], dim=1))).squeeze(1)


@dataclass
class Match:
    """What the two towers found."""

    score: Tensor
    user: Tensor
    item: Tensor


class TwoTower(nn.Module):
    """Unit vectors for user and item; their scalar product is the score."""

    def __init__(self, users: int, items: int, width: int) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(users, width), nn.Embedding(items, width, padding_idx=0)
        self.user_tower = nn.Sequential(nn.Linear(2 * width + 1, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.item_tower = nn.Sequential(nn.Linear(width + 1, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

    def forward(self, user: dict[str, Tensor], item: dict[str, Tensor]) -> Match:
        seen = (user["history"] != 0).unsqueeze(-1)
        history = (self.items(user["history"]) * seen).sum(1) / seen.sum(1).clamp(min=1)
        age = (user["age"] / 100).unsqueeze(-1)
        u = F.normalize(self.user_tower(torch.cat([self.users(user["id"]), history, age], dim=-1)), dim=-1)
        price = torch.log1p(item["price"])[:, None]
        i = F.normalize(self.item_tower(torch.cat([self.items(item["id"]), price], dim=-1)), dim=-1)
        return Match(score=(u * i).sum(-1), user=u, item=i)

"""What goes in and comes out: dataclasses, named tuples, nested dicts, caches, objects with tensors, constants."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import torch
from torch import Tensor, nn, randn

from tests.export_cases.case import case


@dataclass
class Prediction:
    """What a detector returns."""

    boxes: Tensor
    scores: Tensor
    kind: str = "box"
    extra: Tensor | None = None


class Detector(nn.Module):
    """A dataclass as result."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Prediction:
        y = self.net(x)
        return Prediction(y[..., :4], y[..., 4].sigmoid())


@case("x.0")
def dataclass_result():
    return Detector(), (randn(2, 4),), (randn(5, 4),)


class State(NamedTuple):
    """A recurrent state."""

    h: Tensor
    c: Tensor


class Step(nn.Module):
    """A named tuple in and out."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        state = State(*self.cell(x, (state.h, state.c)))
        return state.h, state


@case("x.0", "state.h.0", "state.c.0")
def named_tuple_state():
    def call(batch: int) -> tuple[Any, ...]:
        return randn(batch, 3), State(randn(batch, 4), randn(batch, 4))

    return Step(), call(2), call(5)


class Cache:
    """Keys and values by layer, grown in place, as generation libraries have them."""

    def __init__(self) -> None:
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        self.seen = 0

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        if layer < len(self.keys):
            k, v = torch.cat([self.keys[layer], k], 1), torch.cat([self.values[layer], v], 1)
            self.keys[layer], self.values[layer] = k, v
        else:
            self.keys.append(k)
            self.values.append(v)
        return k, v


class CachedLm(nn.Module):
    """Two layers of attention that share a cache object."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2))

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        cache = Cache() if cache is None else cache
        for index, layer in enumerate(self.layers):
            q, k, v = layer(x).chunk(3, -1)
            k, v = cache.update(index, k, v)
            x = x + (q @ k.transpose(1, 2)).softmax(-1) @ v
        return x, cache


def _cache(batch: int, length: int) -> Cache:
    cache = Cache()
    for index in range(2):
        cache.update(index, randn(batch, length, 8), randn(batch, length, 8))
    return cache


@case("x.0", "x.1")
def cache_object_returned():
    return CachedLm(), (randn(2, 3, 8),), (randn(3, 5, 8),)


@case("x.0", "x.1")
def cache_object_grown():
    return CachedLm(), (randn(2, 3, 8), _cache(2, 4)), (randn(3, 2, 8), _cache(3, 7))


class Batch(TypedDict):
    """A batch of a data loader."""

    user: dict[str, Tensor]
    items: list[Tensor]


class Recommender(nn.Module):
    """A nested batch, and a dict of results with an optional one."""

    def __init__(self) -> None:
        super().__init__()
        self.user, self.item = nn.Embedding(10, 4), nn.Linear(3, 4)

    def forward(self, batch: Batch, weight: Tensor | None = None) -> dict[str, Any]:
        u = self.user(batch["user"]["id"])
        scores = [(u * self.item(item)).sum(-1) for item in batch["items"]]
        total = torch.stack(scores, 1)
        return {"scores": total, "best": {"index": total.argmax(1)}, "loss": None, "names": ["a", "b"]}


@case("batch.user.id.0", "batch.items.0.0", "batch.items.1.0")
def nested_batch():
    def call(n: int) -> tuple[Any, ...]:
        return ({"user": {"id": torch.randint(0, 10, (n,))}, "items": [randn(n, 3), randn(n, 3)]},)

    return Recommender(), call(2), call(5)


class Features(nn.Module):
    """An ordered dict of feature maps, one of them the input itself, one of them twice."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, stride=2)

    def forward(self, x: Tensor) -> OrderedDict[str, Tensor]:
        one = self.a(x)
        two = self.b(one)
        return OrderedDict(input=x, one=one, two=two, again=two)


@case("x.0", "x.2", "x.3")
def ordered_dict_with_duplicates():
    return Features(), (randn(2, 3, 7, 8),), (randn(1, 3, 9, 11),)


class Graph:
    """A graph as graph libraries hold it: an object with tensors, numbers and a cache of its own."""

    def __init__(self, x: Tensor, edge_index: Tensor, name: str = "g") -> None:
        self.x, self.edge_index, self.name = x, edge_index, name

    @property
    def num_nodes(self) -> int:
        return self.x.shape[0]


class GraphLayer(nn.Module):
    """A layer on such an object."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 3)

    def forward(self, graph: Graph) -> Tensor:
        source, target = graph.edge_index
        h = self.lin(graph.x)
        return torch.zeros(graph.num_nodes, 3).index_add(0, target, h[source])


@case("graph.x.0", "graph.edge_index.1")
def object_with_tensors():
    def call(nodes: int, edges: int) -> tuple[Any, ...]:
        return (Graph(randn(nodes, 4), torch.randint(0, nodes, (2, edges))),)

    return GraphLayer(), call(4, 6), call(7, 9)


class Varargs(nn.Module):
    """Positional and keyword extras."""

    def forward(self, *tensors: Tensor, **named: Tensor) -> Tensor:
        return sum(tensors) * named["scale"] + named.get("shift", 0)


@case()
def variable_arguments():
    return Varargs(), {"scale": randn(3), "shift": randn(3)}, {"scale": randn(5), "shift": randn(5)}


class Sizes(nn.Module):
    """Python numbers among the results."""

    def forward(self, x: Tensor) -> tuple[Tensor, int, float]:
        return x.mean(1), x.shape[1], x.shape[0] / 2


@case("x.0", "x.1")
def python_numbers_returned():
    return Sizes(), (randn(2, 5),), (randn(4, 7),)


class Scalars(nn.Module):
    """Python scalars and a list of sizes as arguments."""

    def forward(self, x: Tensor, scale: float, repeats: int, flip: bool = False) -> Tensor:
        x = (x * scale).repeat(1, repeats)
        return x.flip(1) if flip else x


@case("x.0", "x.1")
def python_scalars_as_arguments():
    return Scalars(), (randn(2, 5), 0.5, 3, True), (randn(4, 7), 0.5, 3, True)


class Mutates(nn.Module):
    """Writes into its argument and returns it."""

    def forward(self, x: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        memory[:, 0] = x
        memory.mul_(0.9)
        return memory.sum(1), memory


@case("x.0", "memory.0", "memory.1")
def argument_written_into():
    return Mutates(), (randn(2, 3), randn(2, 4, 3)), (randn(4, 3), randn(4, 6, 3))

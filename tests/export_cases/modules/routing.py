"""Tokens and capsules sent to where their scores say: experts, capsules, capacities, top-k."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class Capacity(nn.Module):
    """A switch layer: one expert per token, each with a capacity; what does not fit passes by."""

    def __init__(self, width: int = 4, experts: int = 3) -> None:
        super().__init__()
        self.experts = experts
        self.gate = nn.Linear(width, experts)
        self.up, self.down = nn.Parameter(randn(experts, width, 8)), nn.Parameter(randn(experts, 8, width))

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, x.shape[-1])
        n = tokens.shape[0]
        capacity = max(1, int(1.25 * n / self.experts))
        weight, index = self.gate(tokens).softmax(-1).max(-1)
        chosen = F.one_hot(index, self.experts)
        place = (chosen.cumsum(0) - 1) * chosen
        fits = (place < capacity) & chosen.bool()
        slot = F.one_hot(place.sum(-1).clamp(max=capacity - 1), capacity).float()
        dispatch = fits.float().unsqueeze(-1) * slot.unsqueeze(1)
        inputs = torch.einsum("nec,nd->ecd", dispatch, tokens)
        outputs = torch.relu(inputs @ self.up) @ self.down
        y = torch.einsum("nec,ecd->nd", dispatch, outputs) * weight.unsqueeze(-1)
        return torch.where(fits.any(-1, keepdim=True), y, tokens).view_as(x)


@case("x.0", "x.1")
def switch_layer_with_capacity():
    return Capacity(), (randn(2, 6, 4),), (randn(3, 5, 4),), (randn(1, 9, 4),)


class SortedExperts(nn.Module):
    """Tokens sorted by expert, counted, and split."""

    def __init__(self, width: int = 4, experts: int = 3) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))

    def forward(self, x: Tensor) -> Tensor:
        scores, chosen = self.gate(x).softmax(-1).topk(2, dim=-1)
        flat = chosen.reshape(-1)
        order = flat.argsort(stable=True)
        token = order // 2
        counts = torch.bincount(flat, minlength=len(self.experts)).tolist()
        parts = x[token].split(counts)
        done = torch.cat([expert(part) for expert, part in zip(self.experts, parts, strict=True)])
        weighted = done * scores.reshape(-1)[order].unsqueeze(-1)
        return torch.zeros_like(x).index_add(0, token, weighted)


@case("x.0")
def experts_on_sorted_tokens():
    return SortedExperts(), (randn(7, 4),), (randn(11, 4),), (randn(2, 4),)


class ExpertLoop(nn.Module):
    """Experts called only when hit, as in Mixtral's reference."""

    def __init__(self, width: int = 4, experts: int = 4) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 6), nn.SiLU(), nn.Linear(6, width)) for _ in range(experts)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        b, t, c = x.shape
        flat = x.view(-1, c)
        logits = self.gate(flat)
        weights, chosen = torch.topk(F.softmax(logits, dim=1, dtype=torch.float), 2, dim=-1)
        weights /= weights.sum(dim=-1, keepdim=True)
        final = torch.zeros((b * t, c), dtype=flat.dtype)
        mask = F.one_hot(chosen, num_classes=len(self.experts)).permute(2, 1, 0)
        hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
        for at in hit:
            index, top = torch.where(mask[at].squeeze(0))
            current = flat[None, top].reshape(-1, c)
            for number, expert in enumerate(self.experts):
                if number == at:
                    current = expert(current) * weights[top, index, None]
            final.index_add_(0, top, current)
        return final.reshape(b, t, c), logits


@case("x.0", "x.1")
def experts_that_are_hit():
    return ExpertLoop(), (randn(2, 3, 4),), (randn(1, 5, 4),)


class Capsules(nn.Module):
    """Dynamic routing between capsules."""

    def __init__(self, inputs: int = 6, outputs: int = 3, size: int = 4) -> None:
        super().__init__()
        self.weight = nn.Parameter(randn(1, inputs, outputs, size, 5) * 0.3)

    @staticmethod
    def squash(x: Tensor) -> Tensor:
        squared = x.pow(2).sum(-1, keepdim=True)
        return squared / (1 + squared) * x / (squared.sqrt() + 1e-8)

    def forward(self, x: Tensor) -> Tensor:
        votes = (self.weight @ x[:, :, None, :, None]).squeeze(-1)
        fixed = votes.detach()
        logits = torch.zeros(*votes.shape[:3], 1)
        for step in range(3):
            share = logits.softmax(dim=2)
            if step < 2:
                v = self.squash((share * fixed).sum(1, keepdim=True))
                logits = logits + (fixed * v).sum(-1, keepdim=True)
        return self.squash((share * votes).sum(1)).norm(dim=-1)


@case("x.0")
def capsules_by_agreement():
    return Capsules(), (randn(2, 6, 5),), (randn(5, 6, 5),)


class TopKPool(nn.Module):
    """Keep the best half of the nodes, and the edges between them."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        score = torch.tanh(self.score(x)).squeeze(-1)
        k = int(0.5 * x.shape[0]) + 1
        _, kept = torch.topk(score, k)
        mapping = torch.full((x.shape[0],), -1, dtype=torch.long)
        mapping[kept] = torch.arange(k)
        source, target = mapping[edges[0]], mapping[edges[1]]
        alive = (source >= 0) & (target >= 0)
        return x[kept] * score[kept].unsqueeze(-1), torch.stack([source[alive], target[alive]])


@case("x.0", "edges.1")
def top_half_of_a_graph():
    net = TopKPool()
    sample = randn(6, 4), torch.randint(0, 6, (2, 9))
    return net, sample, (randn(9, 4), torch.randint(0, 9, (2, 14)))


class TokenPruning(nn.Module):
    """The tokens that the class token attends to; the rest is fused into one."""

    def __init__(self, keep: float = 0.6) -> None:
        super().__init__()
        self.keep, self.qkv = keep, nn.Linear(4, 12)

    def forward(self, x: Tensor) -> Tensor:
        _, n, c = x.shape
        q, k, v = self.qkv(x).chunk(3, -1)
        attention = (q @ k.transpose(1, 2) / 2).softmax(-1)
        x = x + attention @ v
        left = int(self.keep * (n - 1))
        score = attention[:, 0, 1:]
        _, kept = torch.topk(score, left, dim=1, largest=True, sorted=True)
        rest = score.scatter(1, kept, 0.0)
        fused = (x[:, 1:] * rest.unsqueeze(-1)).sum(1, keepdim=True)
        picked = torch.gather(x[:, 1:], 1, kept.unsqueeze(-1).expand(-1, -1, c))
        return torch.cat([x[:, :1], picked, fused], 1)


@case("x.0", "x.1")
def tokens_pruned_by_attention():
    return TokenPruning(), (randn(2, 11, 4),), (randn(3, 17, 4),)


class Memory(nn.Module):
    """An end-to-end memory network with three hops."""

    def __init__(self, words: int = 20, width: int = 6) -> None:
        super().__init__()
        self.a, self.c, self.b = nn.Embedding(words, width), nn.Embedding(words, width), nn.Embedding(words, width)
        self.time = nn.Parameter(randn(50, width))
        self.hop = nn.Linear(width, width)

    def forward(self, story: Tensor, query: Tensor) -> Tensor:
        u = self.b(query).sum(1)
        position = self.time[: story.shape[1]].flip(0)
        memory, out = self.a(story).sum(2) + position, self.c(story).sum(2) + position
        for _ in range(3):
            p = (memory @ u.unsqueeze(-1)).squeeze(-1).softmax(-1)
            u = self.hop(u) + (p.unsqueeze(-1) * out).sum(1)
        return u @ self.c.weight.t()


@case("story.0", "story.1", "story.2", "query.1")
def memory_network():
    def call(b, s, n, m):
        return torch.randint(0, 20, (b, s, n)), torch.randint(0, 20, (b, m))

    return Memory(), call(2, 5, 4, 3), call(3, 8, 6, 2)


class ProductKeys(nn.Module):
    """Product-key memory: the best of all pairs of the best halves."""

    def __init__(self, width: int = 8, keys: int = 6, k: int = 3) -> None:
        super().__init__()
        self.k, self.keys = k, nn.Parameter(randn(2, keys, width // 2))
        self.values = nn.EmbeddingBag(keys * keys, width, mode="sum")

    def forward(self, x: Tensor) -> Tensor:
        b, n, c = x.shape
        first, second = x.reshape(b * n, c).chunk(2, -1)
        s1, i1 = (first @ self.keys[0].t()).topk(self.k, -1)
        s2, i2 = (second @ self.keys[1].t()).topk(self.k, -1)
        every = (s1.unsqueeze(2) + s2.unsqueeze(1)).view(b * n, -1)
        index = (i1.unsqueeze(2) * self.keys.shape[1] + i2.unsqueeze(1)).view(b * n, -1)
        best, place = every.topk(self.k, -1)
        chosen = index.gather(1, place)
        return self.values(chosen, per_sample_weights=best.softmax(-1)).view(b, n, c)


@case("x.0", "x.1")
def product_key_memory():
    return ProductKeys(), (randn(2, 5, 8),), (randn(3, 4, 8),)


class Slots(nn.Module):
    """Slot attention with a GRU cell, three rounds."""

    def __init__(self, width: int = 6, slots: int = 3) -> None:
        super().__init__()
        self.slots, self.start = slots, nn.Parameter(randn(1, slots, width))
        self.k, self.v, self.q = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.gru, self.norm = nn.GRUCell(width, width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        b, _, c = x.shape
        k, v, slots = self.k(x), self.v(x), self.start.expand(b, -1, -1)
        for _ in range(3):
            scores = (k @ self.q(self.norm(slots)).transpose(1, 2)) * c**-0.5
            attention = scores.softmax(-1) + 1e-8
            weights = attention / attention.sum(1, keepdim=True)
            updates = weights.transpose(1, 2) @ v
            slots = self.gru(updates.reshape(-1, c), slots.reshape(-1, c)).view(b, self.slots, c)
        return slots, attention


@case("x.0", "x.1")
def slot_attention():
    return Slots(), (randn(2, 7, 6),), (randn(4, 10, 6),)


class OnlyThoseHit(nn.Module):
    """A loop over the experts that any token chose, each taken from the list by a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(6, 4, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 10), nn.GELU(), nn.Linear(10, 6)) for _ in range(4))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        batch, length, width = x.shape
        flat = x.view(-1, width)
        weights, chosen = torch.topk(self.gate(flat).softmax(-1), 2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        mask = F.one_hot(chosen, num_classes=4).permute(2, 1, 0)
        out = torch.zeros_like(flat)
        for hit in torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero():
            expert = self.experts[hit]
            place, token = torch.where(mask[hit].squeeze(0))
            out.index_add_(0, token, expert(flat[token]) * weights[token, place, None])
        return out.view(batch, length, width), mask.sum((1, 2))


@case("x.0", "x.1")
def experts_taken_by_a_tensor():
    return OnlyThoseHit(), (randn(2, 5, 6),), (randn(3, 1, 6),), (randn(1, 1, 6),)


class ExpertsInOrder(nn.Module):
    """A mixture of experts as it is run: tokens sorted by expert, NumPy's counts of them, a loop over the counts."""

    def __init__(self, width: int = 8, experts: int = 4, chosen: int = 2) -> None:
        super().__init__()
        self.chosen, self.gate = chosen, nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(experts))

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.view(-1, x.shape[-1])
        weights, indices = self.gate(tokens).softmax(-1).topk(self.chosen, dim=-1, sorted=False)
        return self.run(tokens, indices.view(-1), weights.view(-1, 1)).view(*x.shape) + x

    @torch.no_grad()
    def run(self, x: Tensor, indices: Tensor, weights: Tensor) -> Tensor:
        result = torch.zeros_like(x)
        order = indices.argsort()
        ends = indices.bincount().cpu().numpy().cumsum(0)
        tokens = order // self.chosen
        for i, end in enumerate(ends):
            start = 0 if i == 0 else ends[i - 1]
            if start == end:
                continue
            expert = self.experts[i]
            at = tokens[start:end]
            out = expert(x[at])
            out.mul_(weights[order[start:end]])
            result.scatter_reduce_(0, at.view(-1, 1).repeat(1, x.shape[-1]), out, reduce="sum")
        return result


@case("x.0", "x.1")
def experts_one_after_the_other():
    return ExpertsInOrder(), (randn(2, 5, 8),), (randn(3, 7, 8),), (randn(1, 1, 8),)

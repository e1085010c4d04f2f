"""Blocks and loops of generative models, experts, state spaces: schedules, patches, codebooks, chunks, scans."""

from __future__ import annotations

import itertools
import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randint, randn

from tests.export_cases.case import case


class DeterministicSampler(nn.Module):
    """Noise becomes an image in a few steps of a schedule, with clipping of what is predicted."""

    def __init__(self, steps: int = 4) -> None:
        super().__init__()
        self.register_buffer("alphas", torch.cumprod(1 - torch.linspace(1e-4, 0.02, 100), 0))
        self.net = nn.Conv2d(4, 3, 3, padding=1)
        self.steps = steps

    def model(self, x: Tensor, t: Tensor) -> Tensor:
        plane = (t.float() / 100)[:, None, None, None].expand(-1, 1, *x.shape[2:])
        return self.net(torch.cat([x, plane], dim=1))

    def forward(self, x: Tensor) -> Tensor:
        times = torch.linspace(99, 0, self.steps + 1).long()
        for now, then in itertools.pairwise(times):
            t = torch.full((x.shape[0],), int(now), dtype=torch.long)
            a, b = self.alphas[now], self.alphas[then]
            noise = self.model(x, t)
            start = ((x - (1 - a).sqrt() * noise) / a.sqrt()).clamp(-1, 1)
            x = b.sqrt() * start + (1 - b).sqrt() * noise
        return (x + 1) / 2


@case("x.0", "x.2", "x.3")
def sampler_with_a_schedule():
    return DeterministicSampler(), (randn(2, 3, 8, 8),), (randn(1, 3, 12, 7),), (randn(3, 3, 5, 9),)


class PatchTransformer(nn.Module):
    """Patches of an image, conditioned by time and label through scales and gates, and back to an image."""

    def __init__(self, width: int = 12, patch: int = 2) -> None:
        super().__init__()
        self.patch, self.width = patch, width
        self.embed = nn.Conv2d(4, width, patch, patch)
        self.time, self.label = nn.Linear(8, width), nn.Embedding(6, width)
        self.norm, self.norm2 = (nn.LayerNorm(width, elementwise_affine=False) for _ in range(2))
        self.attn = nn.MultiheadAttention(width, 3, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 24), nn.GELU(approximate="tanh"), nn.Linear(24, width))
        self.ada, self.out = nn.Linear(width, 6 * width), nn.Linear(width, patch * patch * 4)

    def frequencies(self, t: Tensor) -> Tensor:
        f = torch.exp(-math.log(1000) * torch.arange(4) / 4)
        args = t[:, None].float() * f[None]
        return torch.cat([args.cos(), args.sin()], dim=-1)

    def positions(self, h: int, w: int) -> Tensor:
        grid = torch.stack(torch.meshgrid(torch.arange(w).float(), torch.arange(h).float(), indexing="xy"))
        omega = 1.0 / 100 ** (torch.arange(self.width // 4) / (self.width / 4))
        parts = [torch.outer(g.reshape(-1), omega) for g in grid]
        return torch.cat([f(p) for p in parts for f in (torch.sin, torch.cos)], 1)

    def forward(self, x: Tensor, t: Tensor, y: Tensor) -> Tensor:
        tokens = self.embed(x)
        h, w = tokens.shape[2:]
        tokens = tokens.flatten(2).transpose(1, 2) + self.positions(h, w)
        c = self.time(self.frequencies(t)) + self.label(y)
        s1, b1, g1, s2, b2, g2 = self.ada(F.silu(c)).unsqueeze(1).chunk(6, dim=-1)
        z = self.norm(tokens) * (1 + s1) + b1
        tokens = tokens + g1 * self.attn(z, z, z, need_weights=False)[0]
        tokens = tokens + g2 * self.mlp(self.norm2(tokens) * (1 + s2) + b2)
        p = self.patch
        out = self.out(tokens).reshape(x.shape[0], h, w, p, p, 4)
        return torch.einsum("nhwpqc->nchpwq", out).reshape(x.shape[0], 4, h * p, w * p)


@case("x.0", "x.2", "x.3")
def patches_with_time_and_label():
    def call(b: int, h: int, w: int) -> tuple[Tensor, Tensor, Tensor]:
        return randn(b, 4, h, w), torch.randint(0, 100, (b,)), torch.randint(0, 6, (b,))

    return PatchTransformer(), call(2, 8, 6), call(1, 4, 10), call(3, 12, 12)


class ExpertsChoose(nn.Module):
    """Each expert picks its tokens."""

    def __init__(self, width: int = 6, experts: int = 3) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.w1, self.w2 = nn.Parameter(randn(experts, width, 8)), nn.Parameter(randn(experts, 8, width))
        self.experts = experts

    def forward(self, x: Tensor) -> Tensor:
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        n = x.shape[0]
        k = min(n, int(2 * n / self.experts))
        scores = F.softmax(self.gate(x), dim=-1)
        g, i = torch.topk(scores.t(), k=k, dim=-1)
        picked = x[i]
        y = torch.bmm(F.gelu(torch.bmm(picked, self.w1)), self.w2)
        out = torch.zeros_like(x)
        for e in range(self.experts):
            out.index_add_(0, i[e], y[e] * g[e][:, None])
        return out.view(shape)


@case("x.0", "x.1")
def experts_choose_tokens():
    return ExpertsChoose(), (randn(2, 6, 6),), (randn(1, 9, 6),), (randn(3, 5, 6),)


class TwoExpertsWithCapacity(nn.Module):
    """Two experts a token, as long as there is room, by tables of places."""

    def __init__(self, width: int = 6, experts: int = 4, factor: float = 1.25) -> None:
        super().__init__()
        self.experts, self.factor = experts, factor
        self.gate = nn.Linear(width, experts)
        self.nets = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 8), nn.ReLU(), nn.Linear(8, width)) for _ in range(experts)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        n = x.shape[0]
        capacity = math.ceil(self.factor * 2 * n / self.experts)
        p = self.gate(x).softmax(-1)
        first = F.one_hot(p.argmax(-1), self.experts)
        second = F.one_hot(p.masked_fill(first.bool(), float("-inf")).argmax(-1), self.experts)
        at1 = torch.cumsum(first, 0) - 1
        at2 = torch.cumsum(second, 0) - 1 + first.sum(0, keepdim=True)
        first, second = first * (at1 < capacity), second * (at2 < capacity)
        combine = 0
        for chosen, at in ((first, at1), (second, at2)):
            g = (p * chosen).sum(-1)
            place = F.one_hot((at * chosen).sum(-1), capacity).to(x.dtype)
            combine = combine + torch.einsum("n,ne,nc->nec", g, chosen.to(x.dtype), place)
        slots = torch.einsum("nec,nd->ecd", combine.bool().to(x.dtype), x)
        done = torch.stack([net(slots[i]) for i, net in enumerate(self.nets)])
        loss = (p.mean(0) * first.float().mean(0)).sum() * self.experts
        return torch.einsum("nec,ecd->nd", combine, done), loss


@case("x.0")
def two_experts_with_room():
    return TwoExpertsWithCapacity(), (randn(10, 6),), (randn(7, 6),), (randn(23, 6),)


class DualInChunks(nn.Module):
    """A state space by pieces: within a piece all at once, between pieces by their last states."""

    def __init__(self, heads: int = 2, width: int = 3, state: int = 4, piece: int = 4) -> None:
        super().__init__()
        self.a = nn.Parameter(-rand(heads))
        self.dt, self.bc = nn.Linear(heads * width, heads), nn.Linear(heads * width, 2 * state)
        self.heads, self.piece = heads, piece

    @staticmethod
    def segments(x: Tensor) -> Tensor:
        t = x.size(-1)
        c = torch.cumsum(x, -1)
        return (c[..., :, None] - c[..., None, :]).masked_fill(~torch.ones(t, t, dtype=torch.bool).tril(), -torch.inf)

    def forward(self, u: Tensor) -> Tensor:
        batch, length, _ = u.shape
        pad = (self.piece - length % self.piece) % self.piece
        dt = F.softplus(self.dt(u))
        b, c = self.bc(u).chunk(2, -1)
        x = u.unflatten(-1, (self.heads, -1)) * dt[..., None]
        a = self.a * dt
        x, a, b, c = (F.pad(t, (0, 0) * (t.dim() - 2) + (0, pad)) for t in (x, a, b, c))
        x, a, b, c = (t.reshape(batch, -1, self.piece, *t.shape[2:]) for t in (x, a, b, c))
        a = a.permute(0, 3, 1, 2)
        total = torch.cumsum(a, dim=-1)
        within = torch.einsum("bcln,bcsn,bhcls,bcshp->bclhp", c, b, self.segments(a).exp(), x)
        states = torch.einsum("bcln,bhcl,bclhp->bchpn", b, (total[..., -1:] - total).exp(), x)
        states = torch.cat([torch.zeros_like(states[:, :1]), states], dim=1)
        decay = self.segments(F.pad(total[..., -1], (1, 0))).exp()
        states = torch.einsum("bhzc,bchpn->bzhpn", decay, states)[:, :-1]
        between = torch.einsum("bcln,bchpn,bhcl->bclhp", c, states, total.exp())
        return (within + between).reshape(batch, length + pad, -1)[:, :length]


@case("u.0", "u.1")
def state_space_in_pieces():
    return DualInChunks(), (randn(2, 10, 6),), (randn(1, 8, 6),), (randn(3, 15, 6),)


class MatrixMemory(nn.Module):
    """A matrix of memory with exponential gates that are kept stable by their maximum."""

    def __init__(self, width: int = 5) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.gates = nn.Linear(width, 2)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor, Tensor] | None = None):
        b, t, d = x.shape
        if state is None:
            state = (x.new_zeros(b, d, d), x.new_zeros(b, d), x.new_zeros(b, 1))
        c, n, m = state
        outputs = []
        for i in range(t):
            now = x[:, i]
            q, k, v = self.q(now), self.k(now) / math.sqrt(d), self.v(now)
            gi, gf = self.gates(now).split(1, dim=-1)
            gf = F.logsigmoid(gf)
            top = torch.maximum(gf + m, gi)
            fi, ff = (gi - top).exp(), (gf + m - top).exp()
            c = ff.unsqueeze(-1) * c + fi.unsqueeze(-1) * torch.einsum("bi,bj->bij", v, k)
            n = ff * n + fi * k
            h = torch.bmm(c, q.unsqueeze(-1)).squeeze(-1)
            outputs.append(h / torch.maximum((n * q).sum(-1, keepdim=True).abs(), (-top).exp()))
            m = top
        return torch.stack(outputs, dim=1), (c, n, m)


@case("x.0", "x.1")
def matrix_memory_with_gates():
    return MatrixMemory(), (randn(2, 6, 5),), (randn(3, 9, 5),), (randn(1, 4, 5),)


class LongConvolution(nn.Module):
    """A filter as long as the sequence, made by a net from positions, applied by Fourier transforms."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.proj, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.short = nn.Conv1d(3 * width, 3 * width, 3, padding=2, groups=3 * width)
        self.filter = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, width))
        self.register_buffer("decay", torch.linspace(0.3, 1.5, width))
        self.bias = nn.Parameter(randn(width))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        z = self.short(self.proj(x).transpose(1, 2))[..., :n]
        v, a, b = z.chunk(3, dim=1)
        t = torch.linspace(0, 1, n)[:, None]
        features = torch.cat([t, torch.cos(2 * math.pi * t), torch.sin(2 * math.pi * t)], -1)
        h = (self.filter(features) * torch.exp(-t * self.decay)).t()
        u = v * a
        y = torch.fft.irfft(torch.fft.rfft(u, n=2 * n) * torch.fft.rfft(h, n=2 * n), n=2 * n)[..., :n]
        y = (y + u * self.bias[:, None]) * b
        return self.out(y.transpose(1, 2))


@case("x.0", "x.1")
def filter_as_long_as_the_sequence():
    return LongConvolution(), (randn(2, 9, 4),), (randn(1, 14, 4),), (randn(3, 6, 4),)


class Interpolated(nn.Module):
    """Features of a few points reach all points by the distances to the nearest three."""

    def __init__(self, width: int = 5) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(width + 3, 8, 1), nn.BatchNorm1d(8), nn.ReLU())

    def forward(self, points: Tensor, known: Tensor, features: Tensor) -> Tensor:
        d = (
            torch.sum(points**2, -1)[:, :, None]
            + torch.sum(known**2, -1)[:, None]
            - 2 * points @ known.permute(0, 2, 1)
        )
        d, at = d.sort(dim=-1)
        d, at = d[:, :, :3], at[:, :, :3]
        w = 1.0 / (d.clamp(min=0) + 1e-2)
        w = w / torch.sum(w, dim=2, keepdim=True)
        rows = torch.arange(points.shape[0]).view(-1, 1, 1).repeat(1, points.shape[1], 3)
        mixed = torch.sum(features[rows, at, :] * w.unsqueeze(-1), dim=2)
        return self.net(torch.cat([points, mixed], -1).permute(0, 2, 1))


@case("points.0", "points.1", "known.1")
def nearest_three():
    return (
        Interpolated(),
        (randn(2, 9, 3), randn(2, 5, 3), randn(2, 5, 5)),
        (randn(1, 14, 3), randn(1, 4, 3), randn(1, 4, 5)),
        (randn(3, 6, 3), randn(3, 8, 3), randn(3, 8, 5)),
    )


class Chamfer(nn.Module):
    """How far two clouds are from each other, in pieces that fit into memory."""

    def __init__(self, piece: int = 4) -> None:
        super().__init__()
        self.piece = piece

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        def one_way(x: Tensor, y: Tensor) -> Tensor:
            found = []
            for start in range(0, x.shape[1], self.piece):
                part = x[:, start : start + self.piece]
                found.append(torch.cdist(part, y).min(dim=2).values)
            return torch.cat(found, dim=1).mean(1)

        return one_way(a, b) + one_way(b, a)


@case("a.0", "a.1", "b.1")
def clouds_compared_in_pieces():
    return (
        Chamfer(),
        (randn(2, 9, 3), randn(2, 7, 3)),
        (randn(1, 4, 3), randn(1, 13, 3)),
        (randn(3, 11, 3), randn(3, 6, 3)),
    )


class RingBuffer(nn.Module):
    """The last values are kept in a ring; the oldest is overwritten."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(3, 4, 1)
        self.register_buffer("mean", randn(3))
        self.register_buffer("var", rand(3) + 0.5)

    def forward(self, new: Tensor, ring: Tensor, position: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        new = (new - self.mean) / torch.sqrt(self.var + 1e-5)
        size = ring.shape[1]
        slots = (position + torch.arange(new.shape[1])) % size
        ring = ring.clone()
        ring[:, slots] = new
        position = (position + new.shape[1]) % size
        ordered = torch.roll(ring, shifts=-1, dims=1)
        return self.conv(ordered.transpose(1, 2)).mean(-1), ring, position


@case("new.0", "ring.1")
def ring_of_the_last_values():
    return (
        RingBuffer(),
        (randn(2, 3, 3), randn(2, 8, 3), torch.tensor(6)),
        (randn(1, 2, 3), randn(1, 5, 3), torch.tensor(0)),
        (randn(3, 4, 3), randn(3, 10, 3), torch.tensor(9)),
    )


class ValueIteration(nn.Module):
    """Values of a map of rewards after some rounds of planning, and the best action at each agent."""

    def __init__(self, actions: int = 5, rounds: int = 6) -> None:
        super().__init__()
        self.h, self.r = nn.Conv2d(2, 6, 3, padding=1), nn.Conv2d(6, 1, 1, bias=False)
        self.q = nn.Conv2d(1, actions, 3, padding=1, bias=False)
        self.w = nn.Parameter(randn(actions, 1, 3, 3) * 0.1)
        self.rounds = rounds

    def forward(self, maps: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
        r = self.r(self.h(maps))
        q = self.q(r)
        v, _ = torch.max(q, dim=1, keepdim=True)
        for _ in range(self.rounds):
            q = F.conv2d(torch.cat([r, v], 1), torch.cat([self.q.weight, self.w], 1), stride=1, padding=1)
            v, _ = torch.max(q, dim=1, keepdim=True)
        b, a, _h, w = q.shape
        place = (where[:, 0] * w + where[:, 1]).view(b, 1, 1).expand(b, a, 1)
        logits = q.view(b, a, -1).gather(2, place).squeeze(2)
        return logits, v.squeeze(1)


@case("maps.0", "maps.2", "maps.3")
def planning_on_maps():
    return (
        ValueIteration(),
        (randn(2, 2, 6, 8), torch.tensor([[1, 2], [5, 7]])),
        (randn(3, 2, 9, 5), torch.tensor([[0, 0], [8, 4], [3, 3]])),
        (randn(1, 2, 7, 7), torch.tensor([[6, 1]])),
    )


class Diffusion(nn.Module):
    """A few steps of a sampler without noise, with guidance, from a schedule in double precision."""

    def __init__(self, steps: int = 4) -> None:
        super().__init__()
        betas = torch.linspace(1e-4, 0.02, 100, dtype=torch.float64)
        self.register_buffer("alphas", torch.cumprod(1 - betas, 0))
        self.steps = steps
        self.net = nn.Sequential(nn.Conv1d(5, 8, 3, padding=1), nn.SiLU(), nn.Conv1d(8, 2, 3, padding=1))
        self.label = nn.Embedding(4, 2)

    def _noise(self, x: Tensor, t: Tensor, label: Tensor) -> Tensor:
        clock = (t.float() / 100).view(-1, 1, 1).expand(-1, 1, x.size(2))
        return self.net(torch.cat([x, clock, self.label(label)[..., None].expand(-1, -1, x.size(2))], 1))

    def forward(self, x: Tensor, label: Tensor, guidance: Tensor) -> Tensor:
        times = torch.linspace(99, 0, self.steps + 1).long()
        for now, then in itertools.pairwise(times):
            t = now.expand(x.size(0))
            with_label, without = self._noise(x, t, label), self._noise(x, t, torch.full_like(label, 3))
            e = without + guidance.view(-1, 1, 1) * (with_label - without)
            a, b = self.alphas[now].float(), self.alphas[then].float()
            x0 = ((x - (1 - a).sqrt() * e) / a.sqrt()).clamp(-3, 3)
            x = b.sqrt() * x0 + (1 - b).sqrt() * e
        return x


@case("x.0", "x.2")
def guided_sampler():
    def inputs(b, t):
        return randn(b, 2, t), randint(0, 3, (b,)), rand(b) * 3

    return Diffusion(), inputs(2, 8), inputs(1, 13), inputs(3, 5)

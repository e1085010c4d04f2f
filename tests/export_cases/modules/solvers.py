"""Numerical methods as layers: integrators, filters, dynamic programmes, iterations with a fixed number of steps."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class RungeKutta(nn.Module):
    """An ODE solved by the classical method between given times."""

    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.f = nn.Sequential(nn.Linear(width + 1, 8), nn.Tanh(), nn.Linear(8, width))

    def rate(self, t: Tensor, y: Tensor) -> Tensor:
        return self.f(torch.cat([y, t.expand(y.shape[0], 1)], -1))

    def forward(self, y: Tensor, times: Tensor) -> Tensor:
        found = [y]
        for start, end in zip(times[:-1], times[1:], strict=True):  # noqa: RUF007 - what users write
            h = end - start
            k1 = self.rate(start, y)
            k2 = self.rate(start + h / 2, y + h / 2 * k1)
            k3 = self.rate(start + h / 2, y + h / 2 * k2)
            k4 = self.rate(end, y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            found.append(y)
        return torch.stack(found, 1)


@case("y.0", "times.0")
def runge_kutta_between_times():
    return RungeKutta(), (randn(2, 3), torch.linspace(0, 1, 5)), (randn(4, 3), torch.linspace(0, 2, 8))


class Kalman(nn.Module):
    """A filter with a two-dimensional state and scalar observations."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("a", torch.tensor([[1.0, 1.0], [0.0, 1.0]]))
        self.register_buffer("h", torch.tensor([[1.0, 0.0]]))
        self.q, self.r = nn.Parameter(torch.tensor(0.1)), nn.Parameter(torch.tensor(0.5))

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        b, t = z.shape
        x = torch.zeros(b, 2, 1)
        p = torch.eye(2).expand(b, 2, 2)
        states = []
        for i in range(t):
            x = self.a @ x
            p = self.a @ p @ self.a.T + self.q * torch.eye(2)
            s = self.h @ p @ self.h.T + self.r
            k = p @ self.h.T / s
            x = x + k * (z[:, i].view(b, 1, 1) - self.h @ x)
            p = (torch.eye(2) - k @ self.h) @ p
            states.append(x.squeeze(-1))
        return torch.stack(states, 1), p


@case("z.0", "z.1")
def kalman_filter_of_a_position():
    return Kalman(), (randn(2, 5),), (randn(3, 9),)


class Crf(nn.Module):
    """The score of a labelling minus the partition, over masked sequences."""

    def __init__(self, tags: int = 4) -> None:
        super().__init__()
        self.move, self.start, self.end = (
            nn.Parameter(randn(tags, tags)),
            nn.Parameter(randn(tags)),
            nn.Parameter(randn(tags)),
        )

    def forward(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        b, t, _ = emissions.shape
        rows = torch.arange(b)
        score = self.start[tags[:, 0]] + emissions[rows, 0, tags[:, 0]]
        alpha = self.start + emissions[:, 0]
        for i in range(1, t):
            step = self.move[tags[:, i - 1], tags[:, i]] + emissions[rows, i, tags[:, i]]
            score = score + step * mask[:, i]
            new = torch.logsumexp(alpha.unsqueeze(2) + self.move + emissions[:, i].unsqueeze(1), dim=1)
            alpha = torch.where(mask[:, i].unsqueeze(1), new, alpha)
        last = mask.long().sum(1) - 1
        score = score + self.end[tags.gather(1, last.unsqueeze(1)).squeeze(1)]
        return score - torch.logsumexp(alpha + self.end, 1)


@case("emissions.0", "emissions.1")
def crf_likelihood_with_mask():
    def call(b, t):
        lengths = torch.randint(1, t + 1, (b, 1))
        return randn(b, t, 4), torch.randint(0, 4, (b, t)), torch.arange(t) < lengths

    return Crf(), call(2, 5), call(3, 8)


class Viterbi(nn.Module):
    """The best path, with pointers kept in a list and walked back."""

    def __init__(self, tags: int = 4) -> None:
        super().__init__()
        self.move = nn.Parameter(randn(tags, tags))

    def forward(self, emissions: Tensor) -> Tensor:
        score, history = emissions[:, 0], []
        for i in range(1, emissions.shape[1]):
            best, pointer = (score.unsqueeze(2) + self.move).max(1)
            score = best + emissions[:, i]
            history.append(pointer)
        tag = score.argmax(1)
        path = [tag]
        for pointer in reversed(history):
            tag = pointer.gather(1, tag.unsqueeze(1)).squeeze(1)
            path.append(tag)
        path.reverse()
        return torch.stack(path, 1)


@case("emissions.0", "emissions.1")
def viterbi_with_back_pointers():
    return Viterbi(), (randn(2, 5, 4),), (randn(3, 8, 4),)


class ConjugateGradient(nn.Module):
    """Conjugate gradients until the residual is small, at most so many rounds."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        x = torch.zeros_like(b)
        r = b - a @ x
        p, rs = r, r @ r
        for _ in range(20):
            ap = a @ p
            step = rs / (p @ ap)
            x = x + step * p
            r = r - step * ap
            new = r @ r
            if torch.sqrt(new) < 1e-4:
                break
            p = r + (new / rs) * p
            rs = new
        return x


@case("a.0", "b.0")
def conjugate_gradients():
    def call(n):
        m = randn(n, n)
        return m @ m.t() / n + torch.eye(n) * 2, randn(n)

    return ConjugateGradient(), call(4), call(6)


class Heat(nn.Module):
    """A heat equation by an explicit scheme; steps come from the stability limit."""

    def forward(self, u: Tensor) -> Tensor:
        n = u.shape[-1]
        steps = max(1, math.ceil(0.1 * n))
        for _ in range(steps):
            padded = F.pad(u, (1, 1), mode="replicate")
            u = u + 0.2 * (padded[..., 2:] - 2 * u + padded[..., :-2])
        return u


@case("u.0", "u.1")
def explicit_heat_equation():
    return Heat(), (randn(2, 25),), (randn(3, 42),), (randn(1, 9),)


class Ddim(nn.Module):
    """A sampler over a schedule of timesteps kept in Python."""

    def __init__(self, steps: int = 4) -> None:
        super().__init__()
        beta = torch.linspace(1e-3, 0.2, 20)
        self.register_buffer("alpha", torch.cumprod(1 - beta, 0))
        self.schedule = list(range(0, 20, 20 // steps))[::-1]
        self.net = nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 3))

    def forward(self, x: Tensor) -> Tensor:
        for at, t in enumerate(self.schedule):
            time = torch.full((x.shape[0], 1), t / 20)
            noise = self.net(torch.cat([x, time], -1))
            a = self.alpha[t]
            last = self.alpha[self.schedule[at + 1]] if at + 1 < len(self.schedule) else torch.tensor(1.0)
            clean = (x - (1 - a).sqrt() * noise) / a.sqrt()
            x = last.sqrt() * clean + (1 - last).sqrt() * noise
        return x


@case("x.0")
def implicit_diffusion_sampler():
    return Ddim(), (randn(2, 3),), (randn(7, 3),)


class Hawkes(nn.Module):
    """Intensities of events that decay between them."""

    def __init__(self) -> None:
        super().__init__()
        self.mu, self.alpha, self.decay = (nn.Parameter(torch.tensor(v)) for v in (0.2, 0.8, 1.5))

    def forward(self, times: Tensor) -> Tensor:
        excitation = times.new_zeros(times.shape[0])
        log = torch.log(self.mu).expand(times.shape[0])
        for i in range(1, times.shape[1]):
            excitation = (excitation + 1) * torch.exp(-self.decay * (times[:, i] - times[:, i - 1]))
            log = log + torch.log(self.mu + self.alpha * excitation)
        return log


@case("times.0", "times.1")
def hawkes_likelihood():
    return Hawkes(), (torch.rand(2, 6).cumsum(1),), (torch.rand(3, 9).cumsum(1),)


class VolumeRendering(nn.Module):
    """NeRF: frequencies, density and colour along rays, composited by a cumulative product."""

    def __init__(self, octaves: int = 3) -> None:
        super().__init__()
        self.octaves = octaves
        self.net = nn.Sequential(nn.Linear(3 + 6 * octaves, 16), nn.ReLU(), nn.Linear(16, 4))

    def encoded(self, x: Tensor) -> Tensor:
        parts = [x]
        for i in range(self.octaves):
            for wave in (torch.sin, torch.cos):
                parts.append(wave(2.0**i * math.pi * x))
        return torch.cat(parts, -1)

    def forward(self, origin: Tensor, direction: Tensor, depth: Tensor) -> tuple[Tensor, Tensor]:
        points = origin[:, None] + direction[:, None] * depth[..., None]
        raw = self.net(self.encoded(points))
        gap = depth[:, 1:] - depth[:, :-1]
        gap = torch.cat([gap, torch.full_like(gap[:, :1], 1e10)], -1) * direction.norm(dim=-1, keepdim=True)
        alpha = 1 - torch.exp(-F.relu(raw[..., 3]) * gap)
        through = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
        weight = alpha * through
        return (weight[..., None] * raw[..., :3].sigmoid()).sum(-2), (weight * depth).sum(-1)


@case("origin.0", "depth.1")
def volume_rendering():
    def call(rays, samples):
        return randn(rays, 3), randn(rays, 3), torch.rand(rays, samples).cumsum(-1)

    return VolumeRendering(), call(5, 8), call(3, 12)


class HashGrid(nn.Module):
    """A multi-resolution hash encoding with trilinear weights."""

    def __init__(self, levels: int = 2, size: int = 32) -> None:
        super().__init__()
        self.size = size
        self.tables = nn.ModuleList(nn.Embedding(size, 2) for _ in range(levels))
        self.register_buffer("primes", torch.tensor([1, 2654435, 805459]))
        self.register_buffer("corners", torch.tensor([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)]))

    def forward(self, x: Tensor) -> Tensor:
        found = []
        for level, table in enumerate(self.tables):
            scaled = x * (4 * 2**level)
            low = scaled.floor().long()
            weight = scaled - low
            corner = low[:, None] + self.corners
            key = corner * self.primes
            index = (key[..., 0] ^ key[..., 1] ^ key[..., 2]) % self.size
            share = torch.where(self.corners.bool(), weight[:, None], 1 - weight[:, None]).prod(-1, keepdim=True)
            found.append((share * table(index)).sum(1))
        return torch.cat(found, -1)


@case("x.0")
def hash_grid_encoding():
    return HashGrid(), (torch.rand(5, 3),), (torch.rand(9, 3),)


class Sinkhorn(nn.Module):
    """Optimal transport between two sets with weights, in the log domain."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        cost = torch.cdist(x, y) ** 2
        n, m = cost.shape
        a, b = -math.log(n) * torch.ones(n), -math.log(m) * torch.ones(m)
        f, g = torch.zeros(n), torch.zeros(m)
        for _ in range(10):
            f = 0.5 * (a - torch.logsumexp((g[None] - cost) / 0.5, 1))
            g = 0.5 * (b - torch.logsumexp((f[:, None] - cost) / 0.5, 0))
        return (torch.exp((f[:, None] + g[None] - cost) / 0.5) * cost).sum()


@case("x.0", "y.0")
def transport_between_sets():
    return Sinkhorn(), (randn(5, 3), randn(6, 3)), (randn(7, 3), randn(4, 3))


class ParticleFilter(nn.Module):
    """One step of a particle filter with systematic resampling, noise given."""

    def forward(self, particles: Tensor, weights: Tensor, noise: Tensor, offset: Tensor) -> tuple[Tensor, Tensor]:
        n = particles.shape[0]
        weights = weights / weights.sum()
        effective = 1.0 / (weights**2).sum()
        if effective < n / 2:
            places = (torch.arange(n) + offset) / n
            index = torch.searchsorted(weights.cumsum(0), places).clamp(max=n - 1)
            particles, weights = particles[index], torch.full((n,), 1.0 / n)
        return particles + noise, weights


@case("particles.0", "weights.0", "noise.0")
def particle_filter():
    def call(n, sharp):
        return randn(n, 2), (randn(n) * sharp).exp(), randn(n, 2), torch.rand(())

    return ParticleFilter(), call(6, 0.1), call(9, 4.0), call(7, 0.1)


class Savgol(nn.Module):
    """A smoothing filter by least squares, its coefficients from a pseudo-inverse, ends by reflection."""

    def __init__(self, window: int = 5, degree: int = 2) -> None:
        super().__init__()
        place = torch.arange(window, dtype=torch.float64) - window // 2
        design = torch.stack([place**d for d in range(degree + 1)], 1)
        self.register_buffer("filter", torch.linalg.pinv(design)[0].float())

    def forward(self, x: Tensor) -> Tensor:
        n = len(self.filter)
        return F.conv1d(F.pad(x.unsqueeze(1), (n // 2, n // 2), mode="reflect"), self.filter.view(1, 1, -1)).squeeze(1)


@case("x.0", "x.1")
def smoothing_by_least_squares():
    return Savgol(), (randn(2, 12),), (randn(3, 19),)

"""Scans: Mamba, RWKV, linear recurrences, as their papers' reference code writes them."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class SelectiveScan(nn.Module):
    """Mamba's recurrence, one step at a time."""

    def __init__(self, width: int = 6, state: int = 4) -> None:
        super().__init__()
        self.a_log = nn.Parameter(torch.rand(width, state))
        self.d = nn.Parameter(torch.ones(width))
        self.project, self.delta = nn.Linear(width, 2 * state, bias=False), nn.Linear(width, width)
        self.conv = nn.Conv1d(width, width, 4, groups=width, padding=3)
        self.state = state

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        u = F.silu(self.conv(x.transpose(1, 2))[..., :length]).transpose(1, 2)
        delta, (b, c) = F.softplus(self.delta(u)), self.project(u).split(self.state, dim=-1)
        decay = torch.exp(delta.unsqueeze(-1) * -torch.exp(self.a_log))
        drive = delta.unsqueeze(-1) * b.unsqueeze(2) * u.unsqueeze(-1)
        h = x.new_zeros(batch, width, self.state)
        ys = []
        for t in range(length):
            h = decay[:, t] * h + drive[:, t]
            ys.append((h * c[:, t].unsqueeze(1)).sum(-1))
        return torch.stack(ys, dim=1) + u * self.d


@case("x.0", "x.1")
def selective_scan():
    return SelectiveScan(), (randn(2, 5, 6),), (randn(3, 9, 6),)


class TimeMixing(nn.Module):
    """RWKV's time mixing with its running maximum."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.decay, self.bonus = nn.Parameter(torch.rand(width)), nn.Parameter(torch.rand(width))
        self.key, self.value, self.gate = (nn.Linear(width, width, bias=False) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        k, v, r = self.key(x), self.value(x), torch.sigmoid(self.gate(x))
        num = torch.zeros_like(k[:, 0])
        den = torch.zeros_like(num)
        top = torch.full_like(num, -1e38)
        out = torch.empty_like(v)
        for t in range(x.size(1)):
            best = torch.maximum(top, self.bonus + k[:, t])
            e1, e2 = torch.exp(top - best), torch.exp(self.bonus + k[:, t] - best)
            out[:, t] = (e1 * num + e2 * v[:, t]) / (e1 * den + e2)
            best = torch.maximum(top - self.decay, k[:, t])
            e1, e2 = torch.exp(top - self.decay - best), torch.exp(k[:, t] - best)
            num, den, top = e1 * num + e2 * v[:, t], e1 * den + e2, best
        return r * out


@case("x.0", "x.1")
def rwkv_time_mixing():
    return TimeMixing(), (randn(2, 5, 6),), (randn(3, 8, 6),)


class GatedLinear(nn.Module):
    """RG-LRU: a gated linear recurrence."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.gates, self.a = nn.Linear(width, 2 * width), nn.Parameter(torch.rand(width))

    def forward(self, x: Tensor) -> Tensor:
        r, i = torch.sigmoid(self.gates(x)).chunk(2, -1)
        log_a = -8.0 * r * F.softplus(self.a)
        a, gated = log_a.exp(), torch.sqrt(1 - (2 * log_a).exp()) * i * x
        h, outs = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            h = a[:, t] * h + gated[:, t]
            outs.append(h)
        return torch.stack(outs, 1)


@case("x.0", "x.1")
def gated_linear_recurrence():
    return GatedLinear(), (randn(2, 5, 6),), (randn(3, 9, 6),)


class LinearAttention(nn.Module):
    """Causal linear attention with a matrix as its state."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        s = torch.einsum("btd,bte->btde", k, v).cumsum(1)
        z = 1 / (torch.einsum("btd,btd->bt", q, k.cumsum(1)) + 1e-6)
        return torch.einsum("btd,btde,bt->bte", q, s, z)


@case("x.0", "x.1")
def causal_linear_attention():
    return LinearAttention(), (randn(2, 5, 6),), (randn(3, 9, 6),)


class DeltaRule(nn.Module):
    """A fast-weight memory with the delta rule, over chunks of one token."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.qkv, self.beta = nn.Linear(width, 3 * width), nn.Linear(width, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        q, k, v = self.qkv(x).chunk(3, -1)
        k, beta = F.normalize(k, dim=-1), torch.sigmoid(self.beta(x))
        memory = torch.zeros(x.shape[0], x.shape[2], x.shape[2])
        read = []
        for qt, kt, vt, bt in zip(q.unbind(1), k.unbind(1), v.unbind(1), beta.unbind(1), strict=True):
            old = torch.einsum("bij,bj->bi", memory, kt)
            memory = memory + torch.einsum("bi,bj->bij", bt * (vt - old), kt)
            read.append(torch.einsum("bij,bj->bi", memory, qt))
        return torch.stack(read, 1), memory


@case("x.0", "x.1")
def delta_rule():
    return DeltaRule(), (randn(2, 5, 4),), (randn(3, 8, 4),)


class DiagonalSsm(nn.Module):
    """S4D: a convolution with a kernel that is made for the length, by FFT."""

    def __init__(self, width: int = 4, state: int = 8) -> None:
        super().__init__()
        self.log_a, self.c = nn.Parameter(torch.rand(width, state)), nn.Parameter(torch.randn(width, state))
        self.log_dt = nn.Parameter(torch.rand(width) - 2)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[-1]
        dt_a = -torch.exp(self.log_a) * torch.exp(self.log_dt).unsqueeze(-1)
        kernel = (self.c.unsqueeze(-1) * torch.exp(dt_a.unsqueeze(-1) * torch.arange(length))).sum(1)
        spectrum = torch.fft.rfft(x, n=2 * length) * torch.fft.rfft(kernel, n=2 * length)
        return torch.fft.irfft(spectrum, n=2 * length)[..., :length]


@case("x.0", "x.2")
def diagonal_state_space_by_fft():
    return DiagonalSsm(), (randn(2, 4, 6),), (randn(3, 4, 10),)


class Kalman(nn.Module):
    """A Kalman filter over observations."""

    def __init__(self) -> None:
        super().__init__()
        self.f, self.h = nn.Parameter(torch.eye(3) * 0.9), nn.Parameter(torch.randn(2, 3))
        self.register_buffer("q", torch.eye(3) * 0.1)
        self.register_buffer("r", torch.eye(2) * 0.2)

    def forward(self, z: Tensor) -> Tensor:
        x, p = z.new_zeros(3), torch.eye(3)
        path = []
        for observed in z:
            x, p = self.f @ x, self.f @ p @ self.f.T + self.q
            s = self.h @ p @ self.h.T + self.r
            gain = torch.linalg.solve(s, self.h @ p).T
            x = x + gain @ (observed - self.h @ x)
            p = (torch.eye(3) - gain @ self.h) @ p
            path.append(x)
        return torch.stack(path)


@case("z.0")
def kalman_filter():
    return Kalman(), (randn(5, 2),), (randn(9, 2),)


class Ode(nn.Module):
    """A neural ODE, Euler steps at given times."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3))

    def forward(self, y: Tensor, times: Tensor) -> Tensor:
        path = [y]
        for i in range(1, times.shape[0]):
            y = y + (times[i] - times[i - 1]) * self.net(y)
            path.append(y)
        return torch.stack(path)


@case("y.0", "times.0")
def neural_ode():
    return Ode(), (randn(2, 3), torch.linspace(0, 1, 5)), (randn(4, 3), torch.linspace(0, 2, 9))

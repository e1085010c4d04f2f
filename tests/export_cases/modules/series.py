"""Series: periods folded into planes, frequencies kept, smoothing with a trend, skips by seasons, scaled and back."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randn

from tests.export_cases.case import case


class Periods(nn.Module):
    """The strongest periods fold the series into planes for a convolution."""

    def __init__(self, width: int = 4, top: int = 2) -> None:
        super().__init__()
        self.top, self.conv = top, nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        b, t, n = x.shape
        spectrum = torch.fft.rfft(x, dim=1).abs().mean(0).mean(-1)
        spectrum[0] = 0
        _, places = torch.topk(spectrum, self.top)
        period = t // places
        weight = torch.fft.rfft(x, dim=1).abs().mean(-1)[:, places]
        results = []
        for i in range(self.top):
            p = int(period[i])
            length = t if t % p == 0 else (t // p + 1) * p
            padded = torch.cat([x, torch.zeros(b, length - t, n)], dim=1)
            plane = padded.reshape(b, length // p, p, n).permute(0, 3, 1, 2).contiguous()
            results.append(F.gelu(self.conv(plane)).permute(0, 2, 3, 1).reshape(b, -1, n)[:, :t])
        y = torch.stack(results, dim=-1)
        return (y * F.softmax(weight, 1)[:, None, None]).sum(-1) + x


@case("x.0")
def periods_folded_into_planes():
    return Periods(), (randn(2, 12, 4),), (randn(3, 15, 4),), (randn(1, 12, 4),), (randn(2, 17, 4),)


class Frequencies(nn.Module):
    """A few frequencies are mixed by weights, the rest is dropped."""

    def __init__(self, width: int = 4, modes: int = 3) -> None:
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(randn(modes, width, width, dtype=torch.cfloat) * 0.2)

    def forward(self, x: Tensor) -> Tensor:
        f = torch.fft.rfft(x, dim=1)
        out = torch.zeros_like(f)
        for i in range(min(self.modes, f.shape[1])):
            out[:, i] = torch.einsum("bi,io->bo", f[:, i], self.weight[i])
        return torch.fft.irfft(out, n=x.size(1), dim=1)


@case("x.0", "x.1")
def a_few_frequencies():
    return Frequencies(), (randn(2, 10, 4),), (randn(3, 15, 4),), (randn(1, 8, 4),)


class HoltWinters(nn.Module):
    """Level, trend and season are carried along; then a forecast of some steps."""

    def __init__(self, season: int = 3, horizon: int = 4) -> None:
        super().__init__()
        self.season, self.horizon = season, horizon
        self.raw = nn.Parameter(torch.tensor([0.2, -1.0, -0.5]))

    def forward(self, y: Tensor) -> tuple[Tensor, Tensor]:
        alpha, beta, gamma = torch.sigmoid(self.raw)
        level, trend = y[:, 0], y[:, 1] - y[:, 0]
        seasons = [torch.zeros_like(level) for _ in range(self.season)]
        fitted = []
        for t in range(y.size(1)):
            s = seasons.pop(0)
            fitted.append(level + trend + s)
            new = alpha * (y[:, t] - s) + (1 - alpha) * (level + trend)
            trend = beta * (new - level) + (1 - beta) * trend
            seasons.append(gamma * (y[:, t] - new) + (1 - gamma) * s)
            level = new
        ahead = [level + (h + 1) * trend + seasons[h % self.season] for h in range(self.horizon)]
        return torch.stack(fitted, 1), torch.stack(ahead, 1)


@case("y.0", "y.1")
def level_trend_and_season():
    return HoltWinters(), (randn(2, 9),), (randn(3, 14),), (randn(1, 6),)


class SkipsBySeason(nn.Module):
    """A convolution, a GRU over all steps, and one over every fourth."""

    def __init__(self, width: int = 3, skip: int = 4) -> None:
        super().__init__()
        self.skip, self.conv = skip, nn.Conv2d(1, 6, (3, width))
        self.gru, self.skips = nn.GRU(6, 5), nn.GRU(6, 4)
        self.out, self.linear = nn.Linear(5 + skip * 4, width), nn.Linear(5, 1)

    def forward(self, x: Tensor) -> Tensor:
        b = x.size(0)
        c = F.relu(self.conv(x.unsqueeze(1))).squeeze(3)
        _, last = self.gru(c.permute(2, 0, 1))
        times = int(c.size(2) / self.skip)
        s = c[:, :, int(-times * self.skip) :].contiguous()
        s = s.view(b, 6, times, self.skip).permute(2, 0, 3, 1).contiguous().view(times, b * self.skip, 6)
        _, s = self.skips(s)
        r = torch.cat([last.squeeze(0), s.view(b, -1)], 1)
        highway = self.linear(x[:, -5:].permute(0, 2, 1).reshape(-1, 5)).view(b, -1)
        return torch.tanh(self.out(r) + highway)


@case("x.0", "x.1")
def every_fourth_step():
    return SkipsBySeason(), (randn(2, 14, 3),), (randn(3, 18, 3),), (randn(1, 11, 3),)


class ScaledAndBack(nn.Module):
    """Windows pooled at several rates, each rate forecasts some knots, which are interpolated; scales are undone."""

    def __init__(self, history: int = 24, horizon: int = 12) -> None:
        super().__init__()
        self.horizon = horizon
        self.rates = (4, 2, 1)
        self.nets = nn.ModuleList(nn.Linear(history // r, history + horizon // r) for r in self.rates)
        self.gain, self.shift = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))

    def forward(self, history: Tensor) -> Tensor:
        mean = history.mean(-1, keepdim=True).detach()
        std = (history.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt().detach()
        rest = (history - mean) / std * self.gain + self.shift
        total = torch.zeros(history.shape[0], self.horizon)
        for rate, net in zip(self.rates, self.nets, strict=False):
            pooled = F.max_pool1d(rest[:, None], rate, rate, ceil_mode=True)[:, 0]
            theta = net(pooled)
            back, knots = theta[:, : history.shape[1]], theta[:, history.shape[1] :]
            rest = rest - back
            total = total + F.interpolate(knots[:, None], size=self.horizon, mode="linear")[:, 0]
        return (total - self.shift) / (self.gain + 1e-10) * std + mean


@case("history.0")
def rates_with_knots():
    return ScaledAndBack(), (randn(2, 24),), (randn(5, 24),), (randn(1, 24),)


class Irregular(nn.Module):
    """Values that are sometimes missing decay towards their mean, with the time since they were seen."""

    def __init__(self, width: int = 3, hidden: int = 5) -> None:
        super().__init__()
        self.hidden = hidden
        self.decay_x, self.decay_h = nn.Parameter(rand(width)), nn.Linear(width, hidden)
        self.cell = nn.GRUCell(2 * width, hidden)
        self.register_buffer("mean", randn(width))

    def forward(self, values: Tensor, mask: Tensor, times: Tensor) -> dict[str, Tensor]:
        b, t, d = values.size()
        h = torch.zeros(b, self.hidden)
        last = self.mean.expand(b, d).clone()
        since = torch.zeros(b, d)
        states = values.new_empty(b, t, self.hidden)
        for i in range(t):
            if i > 0:
                gap = (times[:, i] - times[:, i - 1]).unsqueeze(1)
                since = torch.where(mask[:, i - 1].bool(), gap.expand(-1, d), since + gap)
            m = mask[:, i]
            gamma = torch.exp(-torch.relu(self.decay_x * since))
            x = m * values[:, i] + (1 - m) * (gamma * last + (1 - gamma) * self.mean)
            last = torch.where(m > 0, values[:, i], last)
            h = h * torch.exp(-F.relu(self.decay_h(since)))
            h = self.cell(torch.cat([x, m], dim=1), h)
            states[:, i] = h
        return {"last": h, "states": states}


def _observed(batch: int, steps: int) -> tuple[Tensor, Tensor, Tensor]:
    return randn(batch, steps, 3), (rand(batch, steps, 3) > 0.4).float(), rand(batch, steps).cumsum(1)


@case("values.0", "values.1")
def missing_values_decay():
    return Irregular(), _observed(2, 6), _observed(3, 9), _observed(1, 4)

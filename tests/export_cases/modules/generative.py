"""Generative models: VAEs, VQ-VAEs, normalising flows, diffusion steps, GANs, energy models."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class Vae(nn.Module):
    """A VAE that takes its noise as an argument."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Linear(8, 6), nn.Linear(3, 8)

    def forward(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self.encode(x).chunk(2, -1)
        z = mean + noise * torch.exp(0.5 * log_variance)
        divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum(-1)
        return self.decode(z).sigmoid(), divergence


@case("x.0", "noise.0")
def vae_with_noise_given():
    return Vae(), (randn(2, 8), randn(2, 3)), (randn(5, 8), randn(5, 3))


class VaeMean(nn.Module):
    """A VAE that samples in training only."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Linear(8, 6), nn.Linear(3, 8)

    def forward(self, x: Tensor) -> Tensor:
        mean, log_variance = self.encode(x).chunk(2, -1)
        if self.training:
            mean = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        return self.decode(mean)


@case("x.0")
def vae_by_its_mean():
    return VaeMean().eval(), (randn(2, 8),), (randn(5, 8),)


class Quantiser(nn.Module):
    """The nearest code, with the straight-through trick."""

    def __init__(self) -> None:
        super().__init__()
        self.codes = nn.Embedding(9, 4)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        flat = z.permute(0, 2, 3, 1).reshape(-1, 4)
        gap = flat.pow(2).sum(1, keepdim=True) + self.codes.weight.pow(2).sum(1) - 2 * flat @ self.codes.weight.T
        index = gap.argmin(1)
        one_hot = F.one_hot(index, 9).type_as(z)
        q = (one_hot @ self.codes.weight).view(z.shape[0], z.shape[2], z.shape[3], 4).permute(0, 3, 1, 2)
        return z + (q - z).detach(), index.view(z.shape[0], z.shape[2], z.shape[3])


@case("z.0", "z.2", "z.3")
def vector_quantiser():
    return Quantiser(), (randn(2, 4, 3, 5),), (randn(1, 4, 6, 2),)


class RealNvp(nn.Module):
    """Coupling layers with masks, and the log-determinant."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8)) for _ in range(3))
        self.register_buffer("mask", torch.tensor([1.0, 0, 1, 0]))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        total = torch.zeros(x.shape[0])
        for index, net in enumerate(self.nets):
            mask = self.mask if index % 2 == 0 else 1 - self.mask
            scale, shift = net(x * mask).chunk(2, -1)
            scale = torch.tanh(scale) * (1 - mask)
            x = x * mask + (1 - mask) * (x * scale.exp() + shift)
            total = total + scale.sum(-1)
        return x, total


@case("x.0")
def coupling_flow():
    return RealNvp(), (randn(2, 4),), (randn(5, 4),)


class Glow(nn.Module):
    """An invertible 1x1 convolution, an activation norm, a squeeze."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.linalg.qr(randn(8, 8)).Q)
        self.shift, self.log_scale = nn.Parameter(randn(1, 8, 1, 1)), nn.Parameter(randn(1, 8, 1, 1) * 0.1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = F.pixel_unshuffle(x, 2)
        h, w = x.shape[-2:]
        x = (x + self.shift) * self.log_scale.exp()
        x = F.conv2d(x, self.w.view(8, 8, 1, 1))
        return x, h * w * (self.log_scale.sum() + torch.linalg.slogdet(self.w)[1])


@case("x.0", "x.2", "x.3")
def invertible_convolution():
    return Glow(), (randn(2, 2, 4, 6),), (randn(1, 2, 8, 4),)


class Spline(nn.Module):
    """A monotonic rational-quadratic spline, bins found by searchsorted."""

    def __init__(self, bins: int = 5) -> None:
        super().__init__()
        self.widths, self.heights = nn.Parameter(randn(bins)), nn.Parameter(randn(bins))
        self.slopes = nn.Parameter(randn(bins + 1))

    def forward(self, x: Tensor) -> Tensor:
        xs = F.pad(self.widths.softmax(0).cumsum(0), (1, 0))
        ys = F.pad(self.heights.softmax(0).cumsum(0), (1, 0))
        d = F.softplus(self.slopes)
        k = (torch.searchsorted(xs, x.contiguous(), right=True) - 1).clamp(0, 4)
        width, height = xs[k + 1] - xs[k], ys[k + 1] - ys[k]
        t = ((x - xs[k]) / width).clamp(0, 1)
        s = height / width
        return ys[k] + height * (s * t * t + d[k] * t * (1 - t)) / (s + (d[k + 1] + d[k] - 2 * s) * t * (1 - t))


@case("x.0", "x.1")
def rational_quadratic_spline():
    return Spline(), (torch.rand(2, 5),), (torch.rand(4, 3),)


class DiffusionStep(nn.Module):
    """A denoiser with time embedding, and one DDIM step at a time that is a tensor."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.inside, self.time, self.out = (
            nn.Conv2d(3, width, 3, padding=1),
            nn.Linear(width, width),
            nn.Conv2d(width, 3, 3, padding=1),
        )
        self.norm, self.width = nn.GroupNorm(2, width), width
        self.register_buffer("alphas", torch.linspace(0.99, 0.1, 50))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        rate = torch.exp(-math.log(1e4) * torch.arange(self.width // 2) / (self.width // 2))
        angle = t.float()[:, None] * rate
        h = self.inside(x) + self.time(torch.cat([angle.sin(), angle.cos()], -1))[:, :, None, None]
        noise = self.out(F.silu(self.norm(h)))
        now, before = (self.alphas[step][:, None, None, None] for step in (t, (t - 1).clamp(min=0)))
        clean = (x - (1 - now).sqrt() * noise) / now.sqrt()
        return before.sqrt() * clean.clamp(-1, 1) + (1 - before).sqrt() * noise


@case("x.0", "x.2", "x.3", "t.0")
def diffusion_step():
    return DiffusionStep(), (randn(2, 3, 8, 6), torch.tensor([3, 40])), (randn(1, 3, 10, 12), torch.tensor([7]))


class Sampler(nn.Module):
    """A whole sampling loop over a schedule."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 8), nn.SiLU(), nn.Linear(8, 4))
        self.steps = [0.9, 0.6, 0.3, 0.1]

    def forward(self, x: Tensor) -> Tensor:
        for now, after in zip(self.steps[:-1], self.steps[1:], strict=True):
            noise = self.net(torch.cat([x, torch.full((x.shape[0], 1), now)], 1))
            x = x + (after - now) * noise
        return x


@case("x.0")
def sampling_loop():
    return Sampler(), (randn(2, 4),), (randn(5, 4),)


class StyleBlock(nn.Module):
    """StyleGAN's modulated convolution: one kernel per sample by groups."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.style = nn.Parameter(randn(4, 3, 3, 3)), nn.Linear(5, 3)

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        b, c, h, wd = x.shape
        weight = self.weight[None] * (self.style(w) + 1)[:, None, :, None, None]
        weight = weight * torch.rsqrt(weight.pow(2).sum((2, 3, 4), keepdim=True) + 1e-8)
        x = F.conv2d(x.reshape(1, b * c, h, wd), weight.view(b * 4, c, 3, 3), padding=1, groups=b)
        return x.view(b, 4, h, wd)


@case("x.0", "x.2", "x.3", "w.0")
def modulated_convolution():
    return StyleBlock(), (randn(2, 3, 6, 7), randn(2, 5)), (randn(3, 3, 8, 5), randn(3, 5))


class Discriminator(nn.Module):
    """Minibatch standard deviation as a channel."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.utils.parametrizations.spectral_norm(nn.Conv2d(3, 4, 3, 2, 1)), nn.Conv2d(5, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = F.leaky_relu(self.conv(x), 0.2)
        spread = torch.sqrt(y.var(0, unbiased=False) + 1e-8).mean()
        return self.head(torch.cat([y, spread.expand(y.shape[0], 1, *y.shape[2:])], 1)).mean((1, 2, 3))


@case("x.0", "x.2", "x.3")
def minibatch_deviation():
    return Discriminator(), (randn(2, 3, 8, 6),), (randn(4, 3, 10, 12),)


class Gumbel(nn.Module):
    """A straight-through choice without noise, at a temperature."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        soft = (self.net(x) / 0.5).softmax(-1)
        index = soft.max(-1, keepdim=True)[1]
        hard = torch.zeros_like(soft).scatter_(-1, index, 1.0)
        return hard - soft.detach() + soft


@case("x.0", "x.1")
def straight_through_choice():
    return Gumbel(), (randn(2, 5, 4),), (randn(3, 8, 4),)

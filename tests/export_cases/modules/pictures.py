"""What is done to pictures by hand: windows over large ones, colours, likeness, edges, blocks, costs of disparities."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randint, randn

from tests.export_cases.case import case


class WindowByWindow(nn.Module):
    """A network of one size on a large picture, overlapping windows weighed by their middle."""

    def __init__(self, size: int = 8) -> None:
        super().__init__()
        self.net, self.size = nn.Conv2d(1, 2, 3, padding=1), size
        line = torch.hann_window(size, periodic=False) + 0.1
        self.register_buffer("weight", line[:, None] * line[None])

    def forward(self, x: Tensor) -> Tensor:
        size, (_, _, h, w) = self.size, x.shape
        x = F.pad(x, (0, max(size - w, 0), 0, max(size - h, 0)))
        height, width = x.shape[2:]
        step = size // 2
        rows = [min(i * step, height - size) for i in range(math.ceil((height - size) / step) + 1)]
        columns = [min(i * step, width - size) for i in range(math.ceil((width - size) / step) + 1)]
        out, count = x.new_zeros(x.shape[0], 2, height, width), x.new_zeros(1, 1, height, width)
        for top in rows:
            for left in columns:
                out[:, :, top : top + size, left : left + size] += (
                    self.net(x[:, :, top : top + size, left : left + size]) * self.weight
                )
                count[:, :, top : top + size, left : left + size] += self.weight
        return (out / count)[:, :, :h, :w]


@case("x.0")
def window_by_window():
    return WindowByWindow(), (randn(2, 1, 14, 11),), (randn(1, 1, 14, 11),), (randn(3, 1, 14, 11),)


class HueTurned(nn.Module):
    """Bytes to hue, saturation and value, turned, and back."""

    def forward(self, image: Tensor, turn: Tensor) -> Tensor:
        rgb = image.permute(0, 3, 1, 2).float() / 255
        value, at = rgb.max(1)
        low = rgb.min(1).values
        spread = value - low
        safe = torch.where(spread == 0, torch.ones_like(spread), spread)
        rc, gc, bc = ((value[:, None] - rgb) / safe[:, None]).unbind(1)
        hue = torch.stack([bc - gc, 2 + rc - bc, 4 + gc - rc], 1).gather(1, at[:, None])[:, 0]
        hue = torch.remainder(hue / 6 + turn[:, None, None], 1.0)
        saturation = spread / torch.where(value == 0, torch.ones_like(value), value)
        sixth = torch.floor(hue * 6)
        f = hue * 6 - sixth
        p, q, t = value * (1 - saturation), value * (1 - f * saturation), value * (1 - (1 - f) * saturation)
        which = sixth.long() % 6
        table = torch.stack([value, q, p, p, t, value, t, value, value, q, p, p, p, p, t, value, value, q], 1)
        index = torch.stack([which, which + 6, which + 12], 1)
        return (table.gather(1, index) * 255).round().clamp(0, 255).to(torch.uint8)


@case("image.0", "image.1", "image.2")
def hue_of_bytes():
    def inputs(b, h, w):
        return randint(0, 256, (b, h, w, 3), dtype=torch.uint8), rand(b)

    return HueTurned(), inputs(2, 5, 6), inputs(1, 8, 3), inputs(3, 4, 4)


class Likeness(nn.Module):
    """Structural similarity at several scales."""

    def __init__(self, scales: int = 3) -> None:
        super().__init__()
        line = torch.exp(-((torch.arange(5) - 2.0) ** 2) / (2 * 1.5**2))
        self.register_buffer("kernel", (line / line.sum())[None, None, None])
        self.register_buffer("weights", torch.tensor([0.3, 0.4, 0.3])[:scales])

    def _blur(self, x: Tensor) -> Tensor:
        c = x.shape[1]
        k = self.kernel.expand(c, 1, 1, -1)
        return F.conv2d(F.conv2d(x, k, groups=c), k.transpose(2, 3), groups=c)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        values = []
        for _ in range(len(self.weights)):
            mx, my = self._blur(x), self._blur(y)
            vx, vy, vxy = self._blur(x * x) - mx**2, self._blur(y * y) - my**2, self._blur(x * y) - mx * my
            contrast = (2 * vxy + 0.0009) / (vx + vy + 0.0009)
            light = (2 * mx * my + 0.0001) / (mx**2 + my**2 + 0.0001)
            values.append((contrast.mean((2, 3)), (contrast * light).mean((2, 3))))
            padding = [s % 2 for s in x.shape[2:]]
            x, y = F.avg_pool2d(x, 2, padding=padding), F.avg_pool2d(y, 2, padding=padding)
        parts = torch.stack([c for c, _ in values[:-1]] + [values[-1][1]]).relu()
        return (parts ** self.weights[:, None, None]).prod(0).mean(1)


@case("x.0", "x.2", "x.3")
def likeness_at_several_scales():
    def inputs(b, h, w):
        x = rand(b, 3, h, w)
        return x, (x + 0.1 * rand(b, 3, h, w)).clamp(0, 1)

    return Likeness(), inputs(2, 32, 40), inputs(1, 36, 28), inputs(3, 27, 30)


class Edges(nn.Module):
    """Strong edges, and weak ones that they reach."""

    def __init__(self) -> None:
        super().__init__()
        sobel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]])
        self.register_buffer("sobel", torch.stack([sobel, sobel.T])[:, None])

    def forward(self, x: Tensor, low: float = 0.5, high: float = 1.5) -> tuple[Tensor, Tensor]:
        gx, gy = F.conv2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), self.sobel).unbind(1)
        size = torch.hypot(gx, gy)
        angle = torch.round(torch.atan2(gy, gx) * (4 / math.pi)).long() % 4
        ways = ((0, 1), (1, 1), (1, 0), (1, -1))
        padded = F.pad(size, (1, 1, 1, 1))
        h, w = size.shape[-2:]
        ahead = torch.stack([padded[:, 1 + dy : 1 + dy + h, 1 + dx : 1 + dx + w] for dy, dx in ways], 1)
        behind = torch.stack([padded[:, 1 - dy : 1 - dy + h, 1 - dx : 1 - dx + w] for dy, dx in ways], 1)
        at = angle[:, None]
        thin = (size >= ahead.gather(1, at)[:, 0]) & (size >= behind.gather(1, at)[:, 0])
        strong, weak = thin & (size > high), thin & (size > low)
        while True:
            grown = (F.max_pool2d(strong[:, None].float(), 3, 1, 1)[:, 0] > 0) & weak
            if torch.equal(grown | strong, strong):
                break
            strong = strong | grown
        return strong, size


@case("x.0", "x.2", "x.3")
def edges_reached_from_strong_ones():
    return Edges(), (rand(2, 1, 9, 12),), (rand(1, 1, 14, 8),), (rand(3, 1, 6, 7),)


class Blocks(nn.Module):
    """Cosine transforms of blocks, rounded by a table, and back."""

    def __init__(self) -> None:
        super().__init__()
        k = torch.arange(8)
        basis = torch.cos((2 * k[None] + 1) * k[:, None] * math.pi / 16) * 0.5
        basis[0] = basis[0] / math.sqrt(2)
        self.register_buffer("basis", basis)
        self.register_buffer("table", (8 + k[:, None] + k[None]).float())

    def forward(self, x: Tensor) -> Tensor:
        b, _, h, w = x.shape
        x = F.pad(x * 255 - 128, (0, -w % 8, 0, -h % 8), mode="replicate")
        rows, columns = x.shape[2] // 8, x.shape[3] // 8
        blocks = x.view(b, 1, rows, 8, columns, 8).permute(0, 2, 4, 3, 5, 1).squeeze(-1)
        code = torch.round(self.basis @ blocks @ self.basis.T / self.table)
        back = self.basis.T @ (code * self.table) @ self.basis
        return (back.permute(0, 1, 3, 2, 4).reshape(b, 1, rows * 8, columns * 8)[..., :h, :w] + 128) / 255


@case("x.0", "x.2", "x.3")
def blocks_by_cosines():
    return Blocks(), (rand(2, 1, 16, 21),), (rand(1, 1, 9, 24),), (rand(3, 1, 13, 11),)


class Equalised(nn.Module):
    """Histograms of bytes made even, channel by channel."""

    def forward(self, image: Tensor) -> Tensor:
        b, c, h, w = image.shape
        flat = image.reshape(b * c, h * w).long()
        counts = torch.zeros(b * c, 256).scatter_add_(1, flat, torch.ones_like(flat, dtype=torch.float32))
        levels = counts.cumsum(1)
        first = levels.gather(1, flat.min(1, keepdim=True).values)
        table = ((levels - first) / (h * w - first).clamp(min=1) * 255).round().clamp(0, 255)
        return table.gather(1, flat).to(torch.uint8).view(b, c, h, w)


@case("image.0", "image.2", "image.3")
def histograms_made_even():
    def inputs(*shape):
        return (randint(0, 256, shape, dtype=torch.uint8),)

    return Equalised(), inputs(2, 3, 6, 7), inputs(1, 3, 10, 4), inputs(3, 3, 5, 5)


class Disparity(nn.Module):
    """Costs of all disparities between two views, and the expected one."""

    def __init__(self, most: int = 6) -> None:
        super().__init__()
        self.features, self.volume = nn.Conv2d(3, 4, 3, padding=1), nn.Conv3d(8, 1, 3, padding=1)
        self.most = most

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        a, b = self.features(left), self.features(right)
        n, c, h, w = a.shape
        cost = a.new_zeros(n, 2 * c, self.most, h, w)
        for i in range(self.most):
            if i > 0:
                cost[:, :c, i, :, i:], cost[:, c:, i, :, i:] = a[..., i:], b[..., :-i]
            else:
                cost[:, :c, i], cost[:, c:, i] = a, b
        odds = self.volume(cost).squeeze(1).neg().softmax(1)
        return (odds * torch.arange(self.most, dtype=odds.dtype)[None, :, None, None]).sum(1)


@case("left.0", "left.2", "left.3")
def disparity_of_two_views():
    def inputs(b, h, w):
        return randn(b, 3, h, w), randn(b, 3, h, w)

    return Disparity(), inputs(2, 6, 12), inputs(1, 9, 8), inputs(3, 4, 15)


class FlowSteps(nn.Module):
    """Correlations at levels looked up around a flow that is refined in steps, then upsampled convexly."""

    def __init__(self, steps: int = 2, radius: int = 1) -> None:
        super().__init__()
        self.features = nn.Conv2d(3, 6, 3, stride=4, padding=1)
        self.update = nn.Conv2d(2 * (2 * radius + 1) ** 2 + 2, 2, 3, padding=1)
        self.mask = nn.Conv2d(2, 9 * 16, 1)
        self.steps, self.radius = steps, radius

    def _look(self, volume: Tensor, at: Tensor) -> Tensor:
        b, h, w, _ = at.shape
        height, width = volume.shape[-2:]
        line = torch.arange(-self.radius, self.radius + 1, dtype=at.dtype)
        around = torch.stack(torch.meshgrid(line, line, indexing="ij"), -1).flip(-1)
        where = at.reshape(b * h * w, 1, 1, 2) + around
        scale = torch.tensor([max(width - 1, 1), max(height - 1, 1)], dtype=at.dtype)
        found = F.grid_sample(volume, 2 * where / scale - 1, align_corners=True)
        return found.view(b, h, w, -1).permute(0, 3, 1, 2)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        a, b = self.features(first), self.features(second)
        n, c, h, w = a.shape
        volume = (a.flatten(2).transpose(1, 2) @ b.flatten(2) / c**0.5).reshape(n * h * w, 1, h, w)
        levels = [volume, F.avg_pool2d(volume, 2)]
        ys, xs = torch.meshgrid(torch.arange(h).float(), torch.arange(w).float(), indexing="ij")
        start = torch.stack([xs, ys], -1).expand(n, -1, -1, -1)
        flow = torch.zeros(n, 2, h, w)
        for _ in range(self.steps):
            at = start + flow.permute(0, 2, 3, 1)
            seen = torch.cat([self._look(v, at / 2**i) for i, v in enumerate(levels)], 1)
            flow = flow + self.update(torch.cat([seen, flow], 1)).tanh()
        mask = self.mask(flow).view(n, 1, 9, 4, 4, h, w).softmax(2)
        fine = F.unfold(4 * flow, 3, padding=1).view(n, 2, 9, 1, 1, h, w)
        return (mask * fine).sum(2).permute(0, 1, 4, 2, 5, 3).reshape(n, 2, 4 * h, 4 * w)


@case("first.0", "first.2", "first.3")
def flow_refined_in_steps():
    def inputs(b, h, w):
        return randn(b, 3, h, w), randn(b, 3, h, w)

    return FlowSteps(), inputs(2, 16, 24), inputs(1, 20, 16), inputs(2, 12, 28)
